#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The recipes of the page of "report": locks, softirqs, slab caches, the latency of the run queue. Each sum is what awk
# makes of the report of the same recording. That of initcalls is in initcalls.sh, that of requests in biolatency.sh.
# takes: 60
# full: the tests of the tool have each key and weight; the page changes seldom
# timeout: 400
. /guest/lib/lib.sh
. /guest/lib/record.sh
. /guest/lib/profile.sh

# group BY OPTIONS...: "value sum" of each.
group() {
	stackmap_dump report -q --by "$1" "${@:2}" "$out" | sed -nE "s/^# $1=(.*): ([0-9]+) \([0-9.]+%\)$/\1 \2/p" | sort
}
# near NAME: the sums of groups in both files are the same, but for a microsecond for each of the times, whose number awk
# tells: what is left of one goes to the next, of any group. So the sum of all is the same.
near() {
	echo "$1, us, times:"
	cat "$TMPDIR/awk"
	[ -s "$TMPDIR/awk" ] || fail "$1: awk finds none"
	awk 'FNR == NR { n[$1] = $2; all += $2; next }
		{ d = n[$1] - $2; if (!($1 in n) || d > $3 || d < -$3) print $0 ", not " n[$1]; delete n[$1]; sum += $2 }
		END { for (k in n) print k, n[k] ", awk has none"
			if (all - sum > 1 || sum - all > 1) print "in all " sum ", not " all }' "$TMPDIR/tool" "$TMPDIR/awk" > "$TMPDIR/bad"
	cat "$TMPDIR/bad"
	[ ! -s "$TMPDIR/bad" ] || fail "$1: awk says something else"
}
# Behind "task CPU time event": the fields. In awk, field(NAME) is one of them, and own has the tasks of the tool: what
# begins in one of these is left out.
lines() {
	events | sed -nE 's/^.*-([0-9]+) +\[([0-9]+)\] +([0-9]+)\.([0-9]{9}): +(\w+): +/\1 \2 \3\4 \5 /p'
}
# shellcheck disable=SC2016 # awk expands it
field='BEGIN { while ((getline pid < OWN) > 0) own[pid] = 1 }
	function field(name) { match(" " $0, " " name "=[^ ]*"); return substr($0, RSTART + length(name) + 1, RLENGTH - length(name) - 2) }'

# shellcheck disable=SC2016 # the inner shell expands it
work='mkdir -p $TMPDIR/w; for i in 1 2 3; do
	(for j in 1 2 3 4; do echo > $TMPDIR/w/$i; ls -l $TMPDIR/w > /dev/null; mv $TMPDIR/w/$i $TMPDIR/w/x$i; done) & done; wait'

echo "softirqs by vector"
recorded 0 -o "$out" -a -e softirq_entry,softirq_exit -- sh -c "$work"
whole "$out"
group vec --weight latency=softirq_entry,softirq_exit,vec,cpu | sed 's/ (\(.*\))/_\1/' > "$TMPDIR/tool"
lines | awk -v OWN="$out/own_pids" "$field"'
	{ sub(/ \[action=/, "_"); sub(/\]$/, ""); vec = field("vec") }
	$4 == "softirq_entry" && !($1 in own) { since[$2, vec] = $3 }
	$4 == "softirq_exit" && ($2, vec) in since { ns[vec] += $3 - since[$2, vec]; n[vec]++; delete since[$2, vec] }
	END { for (vec in ns) printf "%s %.6f %d\n", vec, ns[vec] / 1000, n[vec] }' | sort > "$TMPDIR/awk"
near "softirqs"
grep -q '_' "$TMPDIR/tool" || fail "vectors have no names"

echo "slab caches by name"
recorded 0 -o "$out" -a -e kmem_cache_alloc -- sh -c "$work"
whole "$out"
group name --weight bytes_alloc > "$TMPDIR/tool"
lines | awk -v OWN="$out/own_pids" "$field"'$4 == "kmem_cache_alloc" && !($1 in own) { n[field("name")] += field("bytes_alloc") }
	END { for (name in n) print name, n[name] }' | sort > "$TMPDIR/awk"
diff "$TMPDIR/tool" "$TMPDIR/awk" || fail "slab caches: awk says something else"
[ "$(wc -l < "$TMPDIR/awk")" -gt 2 ] || fail "few slab caches"

echo "run queue"
recorded 0 -o "$out" -a -b 8192 -e sched_waking,sched_switch -- sh -c "$work"
whole "$out"
# The histogram, as rows of "from count".
stackmap_dump report -q --weight latency=sched_waking,sched_switch,pid=next_pid --histogram "$out" > "$TMPDIR/text"
cat "$TMPDIR/text"
lines | awk -v OWN="$out/own_pids" "$field"'
	$4 == "sched_waking" { pid = field("pid"); since[pid, ++depth[pid]] = $3; skip[pid, depth[pid]] = $1 in own }
	$4 == "sched_switch" {
		pid = field("prev_pid")
		if (pid > 0 && depth[pid] && $3 - since[pid, depth[pid]] >= 10000)
			depth[pid]--
		pid = field("next_pid")
		if (pid > 0 && depth[pid]) {
			ns = $3 - since[pid, depth[pid]]
			if (skip[pid, depth[pid]--])
				next
			sum += ns
			n++
			longest = ns > longest ? ns : longest
		}
	} END { printf "%d %d %d\n", sum / 1000, n, longest / 1000 }' > "$TMPDIR/awk"
read -r sum n longest < "$TMPDIR/awk"
said=$(sed -nE 's/^([0-9]+) \(100.0%\), ([0-9]+) events, at most ([0-9]+), p50 [0-9]+, p90 [0-9]+, p99 [0-9]+$/\1 \2 \3/p' "$TMPDIR/text")
echo "microseconds, times, the longest: $said; awk: $sum $n $longest"
read -r said_sum said_n said_longest <<< "$said"
[ "$n" -gt 10 ] && [ "$said_n" -eq "$n" ] && same_us "$said_sum" "$sum" &&
	[ $((said_longest - longest)) -le 1 ] && [ "$said_longest" -ge "$longest" ] || fail "run queue: awk says something else"
[ "$(sed -nE 's/^ *[0-9]+ -> [0-9]+ +: ([0-9]+) +\|.*/\1/p' "$TMPDIR/text" | total)" -eq "$n" ] || fail "the rows have another sum"

echo "locks by lock and by stack"
recorded 0 -o "$out" -a -b 8192 -e contention_begin,contention_end -- sh -c "$work"
report "$out"
args=(--weight "latency=contention_begin,contention_end,lock_addr,common_pid")
group lock_addr "${args[@]}" > "$TMPDIR/named"
cat "$TMPDIR/named"
lines | awk -v OWN="$out/own_pids" "$field"'
	{ lock = field("lock_addr"); key = lock SUBSEP $1 }
	$4 == "contention_begin" && !($1 in own) { since[key, ++depth[key]] = $3 }
	$4 == "contention_end" && depth[key] { sum += $3 - since[key, depth[key]--] }
	END { printf "%d\n", sum / 1000 }' > "$TMPDIR/awk"
truth=$(cat "$TMPDIR/awk")
n=$(total < "$TMPDIR/named")
echo "locks: $n us, awk: $truth"
if [ "$(lines | grep -c ' contention_end ')" -gt 0 ]; then
	same_us "$n" "$truth" || fail "locks: awk says something else"
	stacks=$(stackmap_dump stacks -q "${args[@]}" "$out" | awk '/^[0-9]+ \(/ { n += $1 } END { print n + 0 }')
	[ "$stacks" -eq "$n" ] || fail "locks by stack have another sum: $stacks"
else
	echo "no lock was contended"
fi

echo "a filter afterwards"
recorded 0 -o "$out" -a -e kmem_cache_alloc -- sh -c "$work"
n=$(stackmap_dump report -q --where 'bytes_alloc > 512' "$out" | sed -n 's/^# \([0-9]*\) events$/\1/p')
truth=$(lines | awk -v OWN="$out/own_pids" "$field"'$4 == "kmem_cache_alloc" && !($1 in own) && field("bytes_alloc") + 0 > 512 { n++ } END { print n + 0 }')
echo "allocations of more than 512 bytes: $n, awk: $truth"
[ "$n" -eq "$truth" ] && [ "$n" -gt 0 ] || fail "awk says something else"

echo "a timeline"
stackmap_dump export --format perfetto -o "$TMPDIR/trace" "$out" 2> "$TMPDIR/err"
cat "$TMPDIR/err"
grep -q "times are of the clock" "$TMPDIR/err" && [ -s "$TMPDIR/trace" ] || fail "there is no timeline"
