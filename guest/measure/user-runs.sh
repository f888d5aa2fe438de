#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# How many user stacks programs leave in the map that run again and again: 200 runs of four small programs,
# with their system calls and page faults: scripts/guest -p perl guest/measure/user-runs.sh
# Usage: user-runs.sh [option [random]], with userstacktrace_delay or userstacktrace as the option; random is 0 for
# programs at the same addresses in each run, or 2
echo "${2:-2}" >/proc/sys/kernel/randomize_va_space
cd /sys/kernel/tracing || exit 1
mkdir instances/runs || exit 1
cd instances/runs || exit 1
# Room for all stacks.
echo 18 >/sys/module/ftrace_stackmap/parameters/bits
echo 0 >/sys/module/ftrace_stackmap/parameters/recycle
echo 16384 >buffer_size_kb
echo 1 >options/stackmap
echo 1 >"options/${1:-userstacktrace_delay}"
for e in raw_syscalls/sys_enter exceptions/page_fault_user; do echo 1 >"events/$e/enable"; done
work=$(mktemp -d)
seq 1 200 >"$work/lines"
for ((i = 0; i < 200; i++)); do
	ls -l /usr/bin
	cat "$work/lines"
	awk '{ n += $1 } END { print n }' "$work/lines"
	perl -e 'print join(" ", sort map { $_ * 7 % 31 } 1 .. 200), "\n"'
done >"$work/out"
echo 0 >tracing_on
echo "$(cat per_cpu/cpu*/stats | awk '/^(entries|overrun):/ { n += $NF } END { print n }') events, with cookies and ids"
grep -E '^(files|drops:|successes|cut|addresses|entries)' stack_map_stat
awk '/^user_stack_id/ { n++; f = 0 } /^  \[[0-9]+\] [^0]/ { if (!f++) files++ }
	END { print n + 0 " user stacks in the map, " files + 0 " with frames in files" }' stack_map
