#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The generations wrap while one CPU still has ids of old ones, stale ones among them: none comes to
# mean another stack. Nor do readers of trace that stopped half-way at the beginning see another one, when they
# go on at the end: but for the event that they have a copy of, which may be stale. Resets bring the generation near the wrap, user space can't set it.
# Usage: rotate-many.sh [resets [rotations [wraps]]]
# takes: 56
# timeout: 400
. /guest/lib/lib.sh
. /guest/lib/compare.sh

resets=${1:-4084}
rounds=${2:-24}
make_pair many 256
both options/sym-offset 1
for f in vfs_read vfs_write vfs_open kernel_clone do_exit handle_mm_fault pipe_write pipe_read \
	vfs_fstat do_wait; do
	! grep -qx $f available_filter_functions || {
		echo $f >> $ids/set_ftrace_filter
		echo $f >> $full/set_ftrace_filter
	}
done
# Switched on once: the function tracer empties the buffer each time.
taskset -cp 0 $$ > /dev/null
both tracing_cpumask 1
for i in $ids $full; do
	record_functions $i
done
settle

# A few events on CPU 1, behind those that it has.
few() {
	mkfifo "$TMPDIR/go"
	(
		trap - EXIT
		read -r _ < "$TMPDIR/go"
		echo some text | cat > /dev/null
	) &
	taskset -cp 1 $! > /dev/null
	both set_ftrace_pid $!
	both tracing_cpumask 2
	echo > "$TMPDIR/go"
	wait
	rm "$TMPDIR/go"
	settle
	both tracing_cpumask 1
	without_names $ids/per_cpu/cpu1/trace | grep -v '^#' > "$TMPDIR/before"
}

few
stale=$(count_ids "$TMPDIR/before")
first=$(stat_of generation $ids)
echo "$stale stacks of generation $first, then $resets resets"
# They need not wait for the other CPU as long as they do otherwise. A map without stacks would keep its
# generation.
echo 1 > /sys/kernel/rcu_expedited
both options/stacktrace 1
both events/syscalls/sys_enter_openat/enable 1
n=0
while [ $n -lt "$resets" ]; do
	echo 0 > $ids/options/stackmap
	echo reset 1<> $ids/stack_map
	echo 1 > $ids/options/stackmap
	n=$((n + 1))
done
both events/syscalls/sys_enter_openat/enable 0
both options/stacktrace 0
echo 0 > /sys/kernel/rcu_expedited
second=$(stat_of generation $ids)
few
old=$(count_ids "$TMPDIR/before")
old=$((old - stale))
echo "$old stacks of generation $second"
[ "$(grep -c '(stale)$' "$TMPDIR/before")" -eq "$stale" ] || fail "not as many are stale"
[ "$stale" -ge 10 ] && [ "$old" -ge 10 ] || fail "these are too few"

start_pair 0
await_rotations 2
# Nothing is recorded while they stop.
# shellcheck disable=SC2086 # a list
kill -STOP $pair
sleep 1
cat $ids/per_cpu/cpu0/trace > "$TMPDIR/all"
opened=$(stat_of generation $ids)
readers=
for part in 1 2 3 4 5; do
	exec {reader}< $ids/per_cpu/cpu0/trace
	readers="$readers $reader"
	dd bs=$(($(wc -c < "$TMPDIR/all") * part / 6)) count=1 iflag=fullblock <&$reader > "$TMPDIR/half.$reader" 2> /dev/null
done
# shellcheck disable=SC2086 # a list
kill -CONT $pair
next=500
while n=$(stat_of rotations $ids) && [ "$n" -lt "$rounds" ]; do
	# shellcheck disable=SC2086 # a list
	kill -0 $pair
	[ "$n" -lt $next ] || { echo "$n of $rounds rotations"; next=$((n + 500)); }
	sleep .5
done
stop_pair
cat $ids/stack_map_stat

without_names $ids/per_cpu/cpu1/trace | grep -v '^#' > "$TMPDIR/after"
cmp "$TMPDIR/before" "$TMPDIR/after" ||
	{ diff "$TMPDIR/before" "$TMPDIR/after" | head; fail "CPU 1's events mean other stacks"; }
# Of those that CPU 1 has, and of the last map.
compare_pair 1000 2 "$stale"
check_map $ids

# Prints a line for each stack by ids, with its frames.
stacks() { # trace
	without_names "$1" | awk '/^ => / { if (on) line = line $0; next }
		{ if (on) print line; on = /: <stack_(id|split) /; line = $0 }
		END { if (on) print line }'
}

stacks "$TMPDIR/all" > "$TMPDIR/all.txt"
last=$(awk 'match($0, / [0-9]+\.[0-9]+: /) { t = substr($0, RSTART + 1, RLENGTH - 3) } END { print t }' "$TMPDIR/all")
later=0
for reader in $readers; do
	half=$TMPDIR/half.$reader
	before=$(stacks "$half" | wc -l)
	cat <&"$reader" >> "$half"
	exec {reader}<&-
	stacks "$half" | awk -F'>' 'FNR == NR { all[$1] = $0; next }
		$1 in all && / \(stale\)$/ && all[$1] !~ / \(stale\)$/ && !copies++ { next }
		$1 in all { n++; if (all[$1] != $0 && bad++ < 3) print all[$1] "\n" $0 }
		END { print n + 0; exit bad > 0 }' "$TMPDIR/all.txt" - > "$TMPDIR/same" ||
		{ cat "$TMPDIR/same"; fail "a reader that was half-way sees other stacks"; }
	later=$((later + $(cat "$TMPDIR/same") - before))
	# What is new; of the old events, some that came after them are missing.
	awk -v last="$last" 'match($0, / [0-9]+\.[0-9]+: /) { on = substr($0, RSTART + 1, RLENGTH - 3) + 0 > last + 0 } on' \
		"$half" > "$half.new"
	normalise "$half.new" > "$half.txt"
	agree "$TMPDIR/full.txt" "$half.txt" > "$TMPDIR/agree" ||
		{ cat "$TMPDIR/agree"; fail "stacks of a reader that was half-way differ"; }
	echo "a reader that had $before stacks: $(cat "$TMPDIR/agree")"
done
echo "$later old stacks were read at the end"

# The generations that CPU 1 has are skipped. So is that of the event which a half-way reader holds, each time that
# its turn comes again.
gen=$second wraps=0 turns=0
for ((n = $(stat_of rotations $ids); n; n--)); do
	gen=$(((gen + 1) % 4096))
	while [ $gen -eq "$first" ] || [ $gen -eq "$second" ]; do
		gen=$(((gen + 1) % 4096))
	done
	[ $gen -ne $((first + 1)) ] || wraps=$((wraps + 1))
	[ $wraps -eq 0 ] || [ $gen -ne "$opened" ] || turns=$((turns + 1))
done
echo "the generations have wrapped $wraps times"
[ $wraps -ge "${3:-1}" ] || fail "that is not enough"
held=$((($(stat_of generation $ids) - gen + 4096) % 4096))
[ $held -le $((5 * turns)) ] || fail "the generation is $held after $gen, in $turns turns"
