#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# CPUs go and come while stacks are recorded: no count is lost with them.
# timeout: 300
. /guest/lib.sh

cpu=/sys/devices/system/cpu/cpu1/online
[ -w $cpu ] || skip "CPU 1 can't go"
set_opt buffer_size_kb 16384
stackmap_on
show_frames 0
echo 1 > events/sched/sched_switch/enable
echo 1 > events/kmem/kmem_cache_alloc/enable
echo 1 > tracing_on
round=0
while [ $round -lt 6 ]; do
	# Each with a file of its own: one would empty it while another one reads.
	for i in 1 2; do
		mkdir -p "$TMPDIR/$i"
		(TMPDIR=$TMPDIR/$i; stackmap_work 1) &
	done
	echo 0 > $cpu
	[ "$(nproc)" = 1 ] || fail "CPU 1 is still there"
	stackmap_work 1
	before=$(stat_of successes)
	echo 1 > $cpu
	[ "$(stat_of successes)" -ge "$before" ] || fail "successes are forgotten"
	wait
	round=$((round + 1))
done
stop_recording
cat stack_map_stat
check_map
check_counts

# While it is off, what it has counted still counts.
successes=$(stat_of successes)
echo 0 > $cpu
[ "$(stat_of successes)" = "$successes" ] || fail "its counts went with the CPU"
check_map
echo reset > stack_map
[ "$(stat_of successes)" = 0 ] || fail "the reset leaves counts of a CPU that is off"
echo 1 > $cpu
