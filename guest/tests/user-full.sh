#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A full map: a user stack that it does not take is recorded in full, and counted.
# takes: 8
# timeout: 300
. /guest/lib/lib.sh
command -v userstack > /dev/null || skip "there is no userstack here"

set_opt /sys/module/ftrace_stackmap/parameters/bits 10
set_opt /sys/module/ftrace_stackmap/parameters/recycle 0
make_instance full
cd instances/full
echo 0 > tracing_on
echo 1 > options/stackmap
echo "fd > 1000" > events/syscalls/sys_enter_close/filter
echo 1 > events/syscalls/sys_enter_close/enable

# The map has the files of the program, but a stack in full has addresses.
if [ -e options/userstacktrace_delay ]; then
	echo 1 > options/userstacktrace_delay
	echo 1 > tracing_on
	userstack 2 > /dev/null
	echo 0 > tracing_on
	echo 0 > options/userstacktrace_delay
	[ "$(stat_of files)" -gt 0 ] || fail "no stack is by file"
fi

# The program is elsewhere in memory each time that it runs.
set_opt /proc/sys/kernel/randomize_va_space 2
echo 1 > options/userstacktrace
echo 1 > tracing_on
for ((n = 0; n < 100 && $(stat_of entries) < 1024; n++)); do
	userstack {1..35} > /dev/null
done
echo 0 > tracing_on
echo 0 > options/userstacktrace
[ "$(stat_of entries)" -eq 1024 ] || fail "the map is not full"

for option in userstacktrace userstacktrace_delay; do
	[ -e options/$option ] || continue
	[ $option = userstacktrace ] && frames=8 || frames=127
	echo > trace
	drops=$(stat_of drops)
	echo 1 > options/$option
	echo 1 > tracing_on
	userstack 1 20 140 > "$TMPDIR/truth"
	echo 0 > tracing_on
	echo 0 > options/$option
	[ "$(count_ids trace)" -eq 0 ] || fail "$option: ids from a full map"
	[ "$(count_full trace)" -eq 3 ] || fail "$option: $(count_full trace) full stacks"
	stacks_of trace > "$TMPDIR/full"
	innermost $frames "$TMPDIR/truth" | diff - "$TMPDIR/full" || fail "$option: not the stacks of the program"
	[ $(($(stat_of drops) - drops)) -eq 3 ] || fail "$option: $(($(stat_of drops) - drops)) drops"
	echo "$option: the stacks that the map does not take are true"
done
check_map
echo "user stacks and a full map: passed"
