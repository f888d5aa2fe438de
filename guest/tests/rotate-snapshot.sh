#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Snapshots while the map is replaced: those that were taken before keep their frames over 8 maps,
# and nothing is stale where buffers are swapped all the time.
# Usage: rotate-snapshot.sh [rotations]
# takes: 52
# timeout: 400
. /guest/lib/lib.sh

rounds=${1:-8}
make_small_instance snap
dir=instances/snap
echo 128 > $dir/buffer_size_kb
echo 1 > $dir/options/sym-offset

record() {
	echo 1 > $dir/events/kmem/enable
	(cd $dir; record_many_functions)
}

# What a file shows now, and after the map was replaced.
compare() { # file
	cat $dir/"$1" > "$TMPDIR/before"
	n=$(count_ids "$TMPDIR/before")
	[ "$n" -ge "${2:-100}" ] || fail "$n ids in $1"
	rotate "$rounds" $dir
	cat $dir/"$1" > "$TMPDIR/after"
	for i in before after; do
		without_names "$TMPDIR/$i" | grep -v '^#' > "$TMPDIR/$i.txt"
	done
	cmp "$TMPDIR/before.txt" "$TMPDIR/after.txt" ||
		{ diff "$TMPDIR/before.txt" "$TMPDIR/after.txt" | head; fail "$1 is not what it was"; }
	[ "$(grep -c '^ => ' "$TMPDIR/after")" -ge "$n" ] || fail "$1 has fewer frames than stacks"
	echo "$n stacks in $1, the same after $rounds rotations"
}

# At the end of recording every id resolves.
resolved() { # file...
	stop_recording $dir
	for i; do
		cat $dir/"$i" > "$TMPDIR/all"
		grep -m 3 '(stale)' "$TMPDIR/all" && fail "stale ids in $i"
		n=$(check_resolved "$TMPDIR/all" $dir)
		echo "$n stacks in $i, $(stat_of rotations $dir) rotations"
		[ "$n" -gt "${least:-0}" ] || fail "no stack in $i"
	done
	check_map $dir
}

# The trace of a latency tracer is of the longest time with interrupts off, which may have no event.
find_longest() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		echo 0 > $dir/tracing_max_latency
		rotate 1 $dir
		# From now on nothing takes longer.
		echo 100000000 > $dir/tracing_max_latency
		cat $dir/trace > "$TMPDIR/longest"
		[ "$(count_ids "$TMPDIR/longest")" -eq 0 ] || break
	done
}

echo "By hand"
record
rotate 3 $dir
echo 1 > $dir/snapshot
compare snapshot
echo 1 > $dir/snapshot
compare snapshot

echo "By a trigger"
: > $dir/trace
echo 'snapshot:1' > $dir/events/sched/sched_process_exec/trigger
until grep -q 'snapshot:count=0' $dir/events/sched/sched_process_exec/trigger; do
	stackmap_work 1
done
compare snapshot

echo "By a trigger at each exec"
echo '!snapshot' > $dir/events/sched/sched_process_exec/trigger
echo snapshot > $dir/events/sched/sched_process_exec/trigger
rotate "$rounds" $dir
echo '!snapshot' > $dir/events/sched/sched_process_exec/trigger
resolved trace snapshot

echo "One CPU at a time"
echo 1 > $dir/tracing_on
: > "$TMPDIR/run"
(
	trap - EXIT
	set +e
	while [ -e "$TMPDIR/run" ]; do
		for i in 0 1; do
			echo 1 > $dir/per_cpu/cpu$i/snapshot && echo 1 >> "$TMPDIR/swaps"
		done
	done
) 2> /dev/null &
rotate "$rounds" $dir
rm "$TMPDIR/run"
wait
echo "$(wc -l < "$TMPDIR/swaps") swaps"
resolved trace snapshot

grep -qw irqsoff $dir/available_tracers 2> /dev/null || grep -qw irqsoff available_tracers || exit 0
echo "By a latency tracer"
echo nop > $dir/current_tracer
set_opt tracing_max_latency 0
echo 0 > $dir/options/function-trace
echo irqsoff > $dir/current_tracer
for e in sched irq timer; do
	echo 1 > $dir/events/$e/enable
done
echo 1 > $dir/tracing_on
find_longest
compare trace 1
(
	trap - EXIT
	set +e
	: > "$TMPDIR/run"
	while [ -e "$TMPDIR/run" ]; do
		echo 0 > $dir/tracing_max_latency
		sleep .05
	done
) &
rotate 5 $dir
rm "$TMPDIR/run"
wait
find_longest
resolved trace
echo nop > $dir/current_tracer
