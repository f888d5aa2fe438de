#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Profiles of recordings by trace-cmd: the time off the CPU of tasks that sleep known times, the bytes of a field,
# files that were opened and not closed. Ids and full stacks of the same events make the same profile.
# takes: 13
# timeout: 200
. /guest/lib/lib.sh

command -v trace-cmd > /dev/null || skip "there is no trace-cmd here"
command -v stackmap_dump > /dev/null || skip "there is no stackmap_dump here"
[ -e options/stackmap-define ] || skip "this kernel has no stackmap-define"

make_instance ids
make_instance full
cd "$TMPDIR"

folded() { stackmap_dump -q --folded "$@"; }

# Microseconds of the longest wait of each sleep, which is that in nanosleep, by trace-cmd's report.
slept() { # instance file
	trace-cmd report -q -t -R -i "$2" 2> /dev/null | awk -v instance="$1:" '
		$1 == instance && / sched_switch: / {
			for (i = 2; i <= NF; i++)
				if (split($i, f, "=") == 2)
					field[f[1]] = f[2]
				else if ($i ~ /^[0-9]+\.[0-9]+:$/)
					now = $i + 0
			pid = field["next_pid"]
			if (pid in out && now - out[pid] > longest[pid])
				longest[pid] = now - out[pid]
			if (field["prev_comm"] == "sleep")
				out[field["prev_pid"]] = now
		}
		END {
			for (pid in longest)
				us += 1000000 * longest[pid]
			printf "%d\n", us
		}'
}

# Of all tasks. Both instances have the same events.
record() { # file command
	file=$1
	shift
	trace-cmd record -q -k -o "$file" \
		-B ids -C mono -e sched:sched_switch -e kmem:kmem_cache_alloc -e kmem:kmem_cache_free \
		-O stacktrace -O stackmap -O stackmap-define \
		-B full -C mono -e sched:sched_switch -O stacktrace -- "$@"
}

echo "four tasks sleep two seconds each, on two CPUs"
record sleep.dat sh -c 'for cpu in 0 1 0 1; do taskset $((cpu + 1)) sleep 2 & done; wait'
for instance in ids full; do
	us=$(folded -i $instance --off-cpu --comm sleep --grep nanosleep sleep.dat | total)
	truth=$(slept $instance sleep.dat)
	echo "$instance: $us us in nanosleep, $truth by the report"
	[ "$truth" -ge 4000000 ] && [ "$us" -ge $((truth - 100)) ] && [ "$us" -le $((truth + 100)) ] ||
		fail "$instance: the report has another time"
	folded -i $instance -e sched_switch sleep.dat | sort > $instance.folded
done
[ "$(wc -l < ids.folded)" -ge 10 ] || fail "too few stacks"
# Events may be lost at the beginning and at the end of one of them.
same=$(comm -12 ids.folded full.folded | wc -l)
echo "$same of $(wc -l < ids.folded) different stacks have the same count"
[ "$same" -ge $(($(wc -l < ids.folded) * 8 / 10)) ] || { diff ids.folded full.folded; fail "the profiles differ"; }

echo "bytes"
bytes=$(folded -i ids --weight bytes_alloc sleep.dat | total)
report=$(trace-cmd report -q -i sleep.dat 2> /dev/null | grep '^ *ids:.* kmem_cache_alloc: ' |
	awk '{ for (i = 1; i <= NF; i++) if (sub("^bytes_alloc=", "", $i)) n += $i } END { print n + 0 }')
echo "$bytes, and $report in the report"
[ "$bytes" -gt 0 ] && [ "$bytes" = "$report" ] || fail "the sums of bytes_alloc differ"
for form in --folded --speedscope --perf-script; do
	stackmap_dump -q $form -i ids -w bytes_alloc sleep.dat > "out$form"
done
[ "$(grep -o '"endValue": [0-9]*' out--speedscope)" = "\"endValue\": $bytes" ] || fail "speedscope has another sum"
[ "$(awk '/^[^\t]/ { n += $(NF - 1) } END { print n }' out--perf-script)" = "$bytes" ] || fail "perf script has another sum"
[ "$(stackmap_dump report -q -i ids -w bytes_alloc sleep.dat | awk 'NR == 1 { print $2 }')" = "$bytes" ] ||
	fail "the report has another sum"

# What is left running has the others open at the end, too.
echo "50 files are opened, 20 of them closed"
# shellcheck disable=SC2016
record files.dat bash -c 'for i in {1..50}; do exec {fd[$i]}< /dev/null; done
	for i in {1..20}; do exec {fd[$i]}<&-; done; echo $$ > pid; sleep 100 & echo $! > holder; sleep 1'
kill "$(cat holder)"
open=$(folded -i ids --outstanding kmem_cache_alloc:kmem_cache_free:ptr --pid "$(cat pid)" --grep alloc_empty_file files.dat | total)
echo "$open files are not freed"
[ "$open" -eq 30 ] || fail "30 are"
