#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a user stack by file costs at most: that of a program with 16 files whose notes take as long as they can,
# which are the same at each system call, changed before each, or new.
# takes: 60
# thread: icount
# timeout: 300
. /guest/lib/lib.sh
[ -e options/userstacktrace_delay ] || skip "no deferred unwinding"
command -v costly > /dev/null || skip "there is no program for this here"

make_instance cost
dir=$TRACING_DIR/instances/cost
trace_closes "$dir"
cd "$TMPDIR"
for how in same changed new; do
	echo 0 > "$dir/events/syscalls/sys_enter_close/enable"
	untraced=$(costly 100 ${how:0:1})
	echo 1 > "$dir/events/syscalls/sys_enter_close/enable"
	took=$(costly 100 ${how:0:1})
	echo "$how: $took instructions for a close(), $untraced if it is not traced"
	[ "$took" -le 1000000 ] || fail "$how: more than a million"
	[ "$took" -gt $((4 * untraced)) ] || fail "$how: nothing was asked"
	grep -q 'costly\.[0-9]*\.[0-9]*+0x600b$' "$dir/stack_map" || fail "$how: no frame in a file"
done
check_map "$dir"
cd "$TRACING_DIR"
echo "the cost of user stacks by file: passed"
