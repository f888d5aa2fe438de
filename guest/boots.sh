#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/test-persistent, whose guests have the same memory, one after the other. Prints what the
# persistent instance has of the boot before, then records, prints that, and ends.
# Usage: boots.sh panic|reset|end [seconds]     how to end, and after how many seconds
#        boots.sh save [seconds]                the same as panic, but stackmap_dump save reads what it has
#        boots.sh start [seconds]               the same as panic, in a guest that has recorded since boot
#        boots.sh run                           prints the stacks until the guest is killed
. /guest/lib/show.sh
cd /sys/kernel/tracing/instances/boot_map || exit 1

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

# The last event of each CPU.
mark() {
	local cpu
	for cpu in $(seq 0 $(($(nproc) - 1))); do
		taskset -c "$cpu" sh -c 'echo the last one > trace_marker'
	done
}
marks() { grep -c 'the last one' "$1/trace"; }

# Kernel stacks with the numbers of their events: of the text of trace with addresses, and of what perf script
# prints, which lacks the frames of the event itself.
text_stacks() {
	awk 'function end() { if (s) n[s]++; s = "" }
		/^ => / { if (on && (s || !/ => (__traceiter_|trace_|ftrace_)/)) s = s " " $NF; next }
		{ end(); on = /: <(stack_id|stack_split|stack trace)/ }
		END { end(); for (s in n) print n[s] s }' | tr -d '<>' | sort
}
perf_stacks() {
	awk '/^\tffff/ { s = s " " $1 }
		/^$/ { if (s) n[s]++; s = "" }
		END { if (s) n[s]++; for (s in n) print n[s] s }' | sort
}

# What "save" has of the instance, or of its copy, is what its trace has printed.
save() { # instance
	if [ "$1" = boot_map ]; then
		echo 1 > options/sym-addr
		text_stacks < trace > /tmp/text
		echo 0 > options/sym-addr
	fi
	rm -rf /tmp/saved
	stackmap_dump save -i "$1" /tmp/saved 2>&1 || echo "FAIL: save of $1"
	stackmap_dump export -q --format perf /tmp/saved | perf_stacks > /tmp/perf
	awk '{ n += $1 } END { print n, "events,", NR, "stacks" }' /tmp/perf
	cmp /tmp/text /tmp/perf || diff /tmp/text /tmp/perf | sed 's/^/FAIL: saved: /' | head -n 5
}

log() { dmesg | grep 'stack map of boot_map'; }
stale() { grep -c '(stale)' trace; }
by_id() { grep -cE '<(user_)?(unwind_)?stack_(id|split)' trace; }

# A process records user stacks at once, with addresses. After the reboot, another one has its id and its mappings.
start_process() {
	echo 0 > options/userstacktrace_delay
	userstack.nopie -p 31999 2 > /dev/null
}
at_once() {
	local pid
	command -v userstack.nopie > /dev/null || return
	userstack.nopie -l -p 31999 2 &
	pid=$!
	until [ -d /proc/31999 ]; do sleep .01; done
	echo 1 > options/sym-userobj
	awk '/^ => / { if (on && /\[\+/) print "FAIL: by a process of this boot: " $0; n += on; next }
		{ on = /-31999 .*: <user_stack_id/ }
		END { print n + 0 }' trace
	echo 0 > options/sym-userobj
	kill 31999 && wait $pid
}

# What the last boot has left is in the copy as well, and only there if the instance records already.
if [ "$1" = start ]; then
	echo 0 > tracing_on
	[ "$(marks .)" -eq 0 ] || echo "FAIL: $(marks .) CPUs have events of the last boot beside those of this one"
	cd ../copy || exit 1
	echo "@@ marks $(marks .)"
elif [ -d ../copy ]; then
	cmp stack_map ../copy/stack_map || echo "FAIL: the copy has other stacks"
	cmp trace ../copy/trace || echo "FAIL: the copy has other events"
fi

# Modules at other addresses.
modprobe preemptirq_delay_test 2> /dev/null
modprobe trace-events-sample
show log log
show found cat stack_map
show found-counts counts
show found-events events
show stale stale
show by-id by_id
show at-once at_once
if command -v stackmap_dump > /dev/null; then
	stackmap_dump map . > /tmp/map || echo "FAIL: stackmap_dump map"
fi

if [ "$1" = save ]; then
	show saved save boot_map
	[ -z "$(cat stack_map)" ] || echo "FAIL: the map has stacks"
	cp /tmp/saved/stack_map_bin /tmp/
	show saved-copy save copy
	cmp /tmp/saved/stack_map_bin /tmp/stack_map_bin || echo "FAIL: the copy of the map differs"
	sleep 1
	[ ! -d ../copy ] || echo "FAIL: the copy is still there"
fi
cd ../boot_map || exit 1

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
! command -v userstack.nopie > /dev/null || start_process
mark
echo 0 > tracing_on
show stacks cat stack_map
show counts counts
show events events
if [ "$(stale)" -gt 0 ]; then echo "FAIL: an event of this boot is stale"; fi
echo "@@ done"
case $1 in
panic|save|start) echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger; sleep 60 ;;
reset) echo 1 > /proc/sys/kernel/sysrq; echo b > /proc/sysrq-trigger; sleep 60 ;;
esac
