#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What user stacks cost, by depth: instructions of one close() of which the entry, or entry and exit, are
# traced. Run with scripts/guest -j icount, where a nanosecond is an instruction.
cd /sys/kernel/tracing || exit 1
n=${1:-3000}
depths='1 4 8 16 32 64 100 125'
echo 1 >tracing_on
echo 8192 >buffer_size_kb

measure() { # label
	echo >trace
	userstack -n 300 1 >/dev/null
	# shellcheck disable=SC2086
	printf '%-34s %s\n' "$1" "$(userstack -n "$n" $depths | awk '{ printf "%8d", $2 }')"
}
printf '%-34s %s\n' "instructions at a depth of" "$(printf '%8d' $depths)"
measure "nothing is traced"
for events in "sys_enter_close" "sys_enter_close sys_exit_close"; do
	for e in $events; do echo 1 >"events/syscalls/$e/enable"; done
	measure "$(echo "$events" | wc -w) event"
	for map in 0 1; do
		echo $map >options/stackmap
		for option in userstacktrace userstacktrace_delay; do
			[ -e options/$option ] || continue
			echo 1 >options/$option
			measure "  $option, map $map"
			echo 0 >options/$option
		done
	done
	echo 0 >options/stackmap
done
