#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Ids and full stacks of the same events agree frame by frame, while the map is replaced all the time and whatever
# moves, takes or drops events happens at once: snapshots of one CPU and of all, a CPU that goes and comes, buffers
# and sub-buffers of other sizes, trace_pipe, trace_pipe_raw by read, splice and mmap, echo > trace. No id is stale.
# Usage: rotate-disturbed.sh [rounds]
# takes: 150
# full: rotate-equivalence, rotate-snapshot, hotplug, rotate-users and KUnit have each of these alone
# append: rcupdate.rcu_cpu_stall_suppress=1
# program: perl
# timeout: 900
. /guest/lib/lib.sh
. /guest/lib/compare.sh

online=/sys/devices/system/cpu/cpu1/online
pids=

# disturb NAME COMMAND...: again and again until $TMPDIR/run is gone. Counts how often it did.
disturb() {
	(
		trap - EXIT
		set +e
		name=$1
		shift
		while [ -e "$TMPDIR/run" ]; do
			"$@" 2> /dev/null && echo >> "$TMPDIR/did.$name"
			sleep .1
		done
	) &
	pids="$pids $!"
}

snapshots() { echo 1 > $ids/snapshot; }
cpu_snapshots() { echo 1 > "$ids/per_cpu/cpu$((RANDOM % 2))/snapshot"; }
hotplug() { sleep 1; echo 0 > $online; sleep 1; echo 1 > $online; }
# Where pages are mapped, this fails.
sizes() { echo $((300 + RANDOM % 400)) > $ids/buffer_size_kb; }
sub_buffers() { sleep .5; echo $((4 << RANDOM % 3)) > $ids/buffer_subbuf_size_kb; }
clear() { sleep 2; echo > $ids/trace; }
pipe() {
	timeout 2 head -n 3000 $ids/trace_pipe > "$TMPDIR/piped"
	cat "$TMPDIR/piped" >> "$TMPDIR/pipe"
	[ -s "$TMPDIR/piped" ]
}
# It ends by itself if the buffer is empty, which it seldom is. What it can't do is another status.
raw() { # how
	sleep .7
	timeout 1 perl /guest/programs/raw.pl "$1" $ids/per_cpu/cpu0/trace_pipe_raw "$TMPDIR/none" > /dev/null
	case $? in 0|124) echo >> "$TMPDIR/did.$1" ;; esac
}
raws() { raw read; raw splice; raw mmap; }

make_pair disturbed 512
for ((round = 1; round <= ${1:-4}; round++)); do
	: > "$TMPDIR/run"
	start_pair
	for name in snapshots cpu_snapshots hotplug sizes sub_buffers clear pipe raws; do
		disturb $name $name
	done
	await_rotations $(($(stat_of rotations $ids) + 8))
	rm "$TMPDIR/run"
	# shellcheck disable=SC2086 # a list
	wait $pids
	pids=
	echo 1 > $online
	echo 1 > $ids/snapshot
	await_rotations $(($(stat_of rotations $ids) + 1))
	stop_pair
	compare_pair 300 1
	cat $ids/snapshot > "$TMPDIR/snapshot"
	for f in snapshot pipe; do
		! grep -m 3 '(stale)' "$TMPDIR/$f" || fail "stale ids in $f"
		n=$(count_ids "$TMPDIR/$f")
		echo "round $round: $n ids in $f, none is stale"
		[ "$n" -gt 0 ] || fail "that says nothing of $f"
	done
	check_map $ids
	: > "$TMPDIR/pipe"
	for i in $ids $full; do
		echo nop > $i/current_tracer
		echo > $i/set_ftrace_filter
		echo > $i/trace
	done
	rm "$TMPDIR"/go.*
done
cat $ids/stack_map_stat
for name in snapshots cpu_snapshots hotplug sizes sub_buffers clear pipe read splice mmap; do
	n=$(wc -l < "$TMPDIR/did.$name") || n=0
	echo "$name: $n times"
	[ "$n" -gt 0 ] || fail "that says nothing of $name"
done
