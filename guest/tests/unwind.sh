#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Walks stacks by the unwinder's cache and without it, while all that changes return addresses or text comes and
# goes: the function graph tracer, kretprobes, fprobes, trampolines of ftrace, modules, BPF programs, interrupts and
# NMIs. The kernel warns of a frame that differs.
# Usage: unwind.sh [seconds]
# takes: 75
# full: it needs a kernel of its own
# flavour: x86_64+bpf+unwind
# mem: 2048
# program: perf
# program: bpftrace
# timeout: 3000
. /guest/lib/lib.sh

seconds=${1:-40}
run=$TMPDIR/run
pids=()
loads=(graph trampoline probes module tasks nmi profile)
: > "$run"

# again NAME COMMAND...: repeats the command until $run is gone.
again() {
	(
		set +e
		trap - EXIT
		export TMPDIR=$TMPDIR/$1
		mkdir "$TMPDIR"
		n=0
		while [ -e "$run" ]; do
			"${@:2}" > /dev/null 2>&1
			n=$((n + 1))
		done
		echo "$n" > "$run.$1"
	) &
	pids+=($!)
}

graph() {
	echo function_graph > current_tracer
	sleep 1
	echo nop > current_tracer
	sleep .2
}

# A tracer in an instance has a trampoline of its own.
trampoline() {
	echo function > instances/tramp/current_tracer
	sleep .3
	echo nop > instances/tramp/current_tracer
}

probes() {
	echo 'r:ret_read vfs_read' > dynamic_events
	echo 'r:ret_open do_sys_openat2' >> dynamic_events
	echo 'p:offset vfs_write+16' >> dynamic_events
	echo 'f:exit_stat vfs_statx%return' >> dynamic_events
	echo 1 > instances/walk/events/kprobes/enable
	echo 1 > instances/walk/events/fprobes/enable
	sleep 1
	echo 0 > instances/walk/events/kprobes/enable
	echo 0 > instances/walk/events/fprobes/enable
	echo > dynamic_events
}

module() {
	modprobe trace-events-sample
	echo 1 > instances/walk/events/sample-trace/enable
	# Its thread has an event each second.
	sleep 1.2
	modprobe -r trace-events-sample
	modprobe preemptirq_delay_test delay=100 burst_size=3
	modprobe -r preemptirq_delay_test
}

tasks() {
	cat /proc/[0-9]*/stack
	sleep .1
}

nmi() {
	echo l > /proc/sysrq-trigger
	sleep 1
}

# Interrupts hit the program and what it calls.
bpf() {
	bpftrace -e 'kprobe:vfs_read,kprobe:vfs_write,kprobe:do_sys_openat2 { unroll(20) { @[nsecs % 997] = count(); } }
		interval:s:10 { exit(); }'
}

profile() { perf record -q -g -e cpu-clock -F 2000 -a -o "$TMPDIR/perf.data" sleep 1; }

echo 1 > /proc/sys/kernel/printk
# Each place warns once. It may have been at boot.
! dmesg | grep 'cached frame differs' || fail "the walks differed at boot"
dmesg -C
set_opt options/func_stack_trace 0
make_instance walk
make_instance tramp
filter_some instances/tramp
filter_some instances/walk
echo 'vfs_* do_sys_* ksys_* handle_mm_fault' > set_ftrace_filter
cd instances/walk
echo 1 > options/stackmap
echo 1 > options/stacktrace
for e in sched kmem irq timer syscalls exceptions; do
	echo 1 > "events/$e/enable" || true
done
echo 1 > options/func_stack_trace
echo 1 > tracing_on
echo function > current_tracer
cd ../..

if command -v bpftrace > /dev/null; then
	loads+=(bpf)
else
	echo "(no bpftrace: no stacks of BPF programs)"
fi
for name in "${loads[@]}"; do
	again $name $name
done
again work1 stackmap_work 1
again work2 stackmap_work 1
sleep "$seconds"
rm "$run"
wait "${pids[@]}"
for name in "${loads[@]}" work1; do
	echo "$name: $(cat "$run.$name") times"
done
echo 0 > instances/walk/tracing_on
awk '/^(successes|drops):/ { n += $2 } END { print n " stacks were walked both ways" }' instances/walk/stack_map_stat
grep -hE '\[trace_events_sample\]|return_to_handler|rethook|asm_sysvec|asm_exc|trace_call_bpf' instances/walk/stack_map | sed 's/+.*\[/ [/; s/+.*//; s/^ *\[[0-9]*\] //' | sort | uniq -c | sort -rn | head -n 20
! dmesg | grep 'cached frame differs' || fail "the walks differ"
! complaints || fail "the kernel complained"
rmdir instances/walk instances/tramp
