#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# CPUs go offline and online while stacks are recorded. No count is lost. A CPU that no grace period
# waits for puts no stack into the map. The clock of an emulated CPU may jump when it comes online.
# takes: 15
# append: rcupdate.rcu_cpu_stall_suppress=1
# timeout: 300
. /guest/lib/lib.sh

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
	# Each has its own file, because > empties the file that another one may be reading.
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

# The counts of an offline CPU still count.
successes=$(stat_of successes)
echo 0 > $cpu
[ "$(stat_of successes)" = "$successes" ] || fail "the counts of the CPU are lost"
check_map
echo reset > stack_map
[ "$(stat_of successes)" = 0 ] || fail "the reset did not clear the counts of an offline CPU"
echo 1 > $cpu

# A grace period does not wait for a CPU that is going offline or coming online. It records full
# stacks there, while the other CPU resets the map all the time.
echo 0 > events/enable
for f in smp_call_function_single arch_cpu_idle_dead native_play_dead play_dead_common \
	cpuhp_ap_report_dead load_ucode_ap fpu__init_cpu; do
	echo $f >> set_ftrace_filter || true
done
set_opt options/func_stack_trace 1
clear_trace
record_functions
: > "$TMPDIR/resets"
(
	while [ ! -e "$TMPDIR/end" ]; do
		echo 0 > tracing_on
		! echo reset > stack_map || echo 1 >> "$TMPDIR/resets"
		echo 1 > tracing_on
	done
) 2> /dev/null &
for round in 1 2 3 4 5 6; do
	echo 0 > $cpu
	echo 1 > $cpu
done
: > "$TMPDIR/end"
wait
# One round with recording on all the time.
echo 1 > tracing_on
echo 0 > $cpu
echo 1 > $cpu
stop_recording
echo "$(wc -l < "$TMPDIR/resets") resets"
# In trace, a line of CPU 0 may be between a function and its stack.
awk '/: [a-z_0-9]+ <-/ { f = /: (arch_cpu_idle_dead|native_play_dead|play_dead_common|cpuhp_ap_report_dead|load_ucode_ap|fpu__init_cpu) <-/; next }
	f && /: <stack_(id|split) / { bad++; print }
	f && /: <stack trace>/ { full++ }
	END { printf "%d stacks of a CPU that is not online, %d of them by id\n", full + bad, bad; exit bad || !full }' \
	per_cpu/cpu1/trace || fail "stacks that no grace period waits for are in the map"

# The map is replaced while the CPU is away: what it has counted is not lost.
stackmap_idle
make_small_instance hotplug
dir=instances/hotplug
for e in sched/sched_switch kmem/kmem_cache_alloc; do
	echo 1 > $dir/events/$e/enable
done
echo 1 > $dir/tracing_on
for _ in 1 2 3 4 5; do
	taskset -c 1 cat /proc/stat > /dev/null
done
echo 0 > $dir/events/enable
[ "$(stat_of rotations $dir)" = 0 ] || fail "the map was replaced before the CPU went"
echo 0 > $cpu
(cd $dir; record_many_functions)
rotate 2 $dir
# It would overwrite its events when it is back.
stop_recording $dir
echo 1 > $cpu
cat $dir/stack_map_stat
check_map $dir

# What it had recorded before is not lost either. trace begins where the function tracer does.
trace=$TMPDIR/of_cpu1
timeout 60 cat $dir/per_cpu/cpu1/trace_pipe > "$trace"
[ "$(count_ids "$trace")" -gt 0 ] || fail "there is no id of the CPU that was away"
! grep -m 3 '(stale)' "$trace" || fail "ids of the CPU that was away are stale"
