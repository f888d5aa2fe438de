#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/test-gdb: records, prints what the stack maps have, and ends by a panic.
. /guest/lib/lib.sh
. /guest/lib/show.sh

# ids DIR: of the events of each CPU, in order, without those of definitions.
ids() {
	local f
	for f in "$1"/per_cpu/cpu*; do
		echo "CPU ${f##*cpu}"
		grep -oE '<(user_)?(unwind_)?stack_(id|split) .*' "$f/trace" || true
	done
}

# Old generations, user stacks by address.
make_small_instance old
old=instances/old
echo 1 > $old/options/userstacktrace
echo 1 > $old/events/syscalls/sys_enter_close/enable
filter_some $old
echo function > $old/current_tracer
echo 1 > $old/options/func_stack_trace
echo 1 > $old/tracing_on
rotate 3 $old
stop_recording $old

# Interrupts, a module, user stacks by file.
echo 1 > options/userstacktrace_delay
set_opt options/userstacktrace 1
record_some

show text grep ' _text$' /proc/kallsyms
show code grep 'Kernel code' /proc/iomem
for dir in . $old; do
	echo 0 > $dir/options/stackmap-frames
	show "bin ${dir##*/}" base64 $dir/stack_map_bin
	show "stacks ${dir##*/}" cat $dir/stack_map
	show "ids ${dir##*/}" ids $dir
	cat $dir/stack_map_stat
done
echo 1 > /proc/sys/kernel/sysrq
echo c > /proc/sysrq-trigger
