#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/test-persistent, whose guests have the same memory, one after the other. Prints what the
# persistent instance has of the boot before, then records, prints that, and ends. What is printed is between
# lines "@@ NAME" and "@@".
# Usage: boots.sh panic|reset|end [seconds]     how to end, and after how many seconds
#        boots.sh run                           prints the stacks until the guest is killed
cd /sys/kernel/tracing/instances/boot_map || exit 1

show() { # NAME command
	echo "@@ $1"
	"${@:2}"
	echo "@@"
}

# Events with stacks of all kinds, on all CPUs.
record() {
	modprobe trace-events-sample
	echo 1 > options/stacktrace
	! [ -e options/userstacktrace_delay ] || echo 1 > options/userstacktrace_delay
	echo 1 > options/userstacktrace
	for e in sched/sched_switch kmem/kmem_cache_alloc irq/softirq_entry sample-trace syscalls/sys_enter_close; do
		echo 1 > events/$e/enable
	done
	echo 1 > tracing_on
}

work() { # cpu
	while :; do
		( : )
		echo a b c | cat > "/tmp/work.$1"
		cat /proc/self/maps /proc/self/stat > /dev/null
		ls /sys/kernel /proc/sys/kernel > /dev/null
	done
}

start_work() {
	local cpu
	for cpu in $(seq 0 $(($(nproc) - 1))); do
		work "$cpu" &
		taskset -cp "$cpu" $! > /dev/null
	done
}

counts() { grep -E '^(entries|files|generation)' stack_map_stat; }

# The beginning of the trace, without what differs: names of tasks, fields of events, which are printed in another way
# after a reboot, and addresses that are not symbols.
events() {
	head -n 12000 trace | sed -E '/^#/d; s/^ *[^ ]+-([0-9]+) +/\1 /; s/ @[0-9a-f]{16}//g; s/(: [a-z_]+[:(]).*/\1/'
}

log() { dmesg | grep 'stack map of'; }
stale() { grep -c '(stale)' trace; }
by_id() { grep -cE '<(user_)?(unwind_)?stack_(id|split)' trace; }

# Modules at other addresses.
modprobe preemptirq_delay_test 2> /dev/null
modprobe trace-events-sample
show log log
show found cat stack_map
show found-counts counts
show found-events events
show stale stale
show by-id by_id
if command -v stackmap_dump > /dev/null; then
	stackmap_dump map . > /tmp/map || echo "FAIL: stackmap_dump map"
fi

# The instance records again: the old stacks are gone.
[ "$(cat options/stackmap)" = 1 ] || { echo "FAIL: the option is not set"; exit 1; }
record
start_work
if [ "$1" = run ]; then
	while :; do
		show stacks cat stack_map
	done
fi
sleep "${2:-3}"
echo 0 > tracing_on
show stacks cat stack_map
show counts counts
show events events
if [ "$(stale)" -gt 0 ]; then echo "FAIL: an event of this boot is stale"; fi
echo "@@ done"
case $1 in
panic) echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger; sleep 60 ;;
reset) echo 1 > /proc/sys/kernel/sysrq; echo b > /proc/sysrq-trigger; sleep 60 ;;
esac
