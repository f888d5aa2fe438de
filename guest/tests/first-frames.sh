#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A stack begins with the function that has the tracepoint, the probe, or the traced function. With several probes of a
# tracepoint, its iterator is before that.
# takes: 12
. /guest/lib/lib.sh

set_opt options/stacktrace 1
set_opt options/func_stack_trace 1
load() {
	ls -l /proc/self > /dev/null
	sleep .2
}

# What stands first in each stack of an event.
check() { # event functions
	awk '/ <stack trace>$/ { getline; sub(/^ => __traceiter_.*/, ""); if (/^$/) getline; print $2 }' trace > "$TMPDIR/first"
	[ -s "$TMPDIR/first" ] || fail "$1: no stack"
	echo "$1: $(sort "$TMPDIR/first" | uniq -c | sort -rn | awk '{ print $2, $1 }' | xargs)"
	grep -m 3 -vxE "$2" "$TMPDIR/first" && fail "$1: its stack begins elsewhere"
	clear_trace
}

event() { # event functions
	echo 1 > "events/$1/enable"
	load
	echo 0 > "events/$1/enable"
	check "$@"
}

trigger() { # event functions
	echo stacktrace > "events/$1/trigger"
	load
	echo '!stacktrace' > "events/$1/trigger"
	check "trigger of $1" "$2"
}

echo 1 > tracing_on
event sched/sched_switch '__schedule'
event sched/sched_waking 'try_to_wake_up'
event syscalls/sys_enter_close 'trace_syscall_enter|syscall_trace_enter'
event kmem/kmem_cache_alloc 'kmem_cache_alloc.*'
event kmem/mm_page_alloc '__alloc_.*pages.*'
event exceptions/page_fault_user 'exc_page_fault|do_user_addr_fault'
event timer/timer_start 'enqueue_timer|__mod_timer|add_timer.*'
event irq/softirq_entry 'handle_softirqs'
event irq_vectors/local_timer_entry '(__)?sysvec_apic_timer_interrupt'
event task/task_newtask 'copy_process'
trigger sched/sched_switch '__schedule'
trigger sched/sched_waking 'try_to_wake_up'
echo 'p:first vfs_read' > kprobe_events
event kprobes/first 'vfs_read'
echo > kprobe_events
echo vfs_read > set_ftrace_filter
echo function > current_tracer
load
echo 0 > tracing_on
# Its trampoline is in front.
check function '\[FTRACE|vfs_read'
echo nop > current_tracer
echo > set_ftrace_filter
