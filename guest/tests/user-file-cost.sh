#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a user stack by file costs at most: that of a program with 16 files whose notes take as long as they can,
# which are the same at each system call, changed before each, or new; and with paths as long as they can be.
# takes: 60
# thread: icount
# timeout: 300
. /guest/lib/lib.sh
[ -e options/userstacktrace_delay ] || skip "no deferred unwinding"
command -v costly > /dev/null || skip "there is no program for this here"

make_instance cost
dir=$TRACING_DIR/instances/cost
trace_closes "$dir"
measure() { # what letter
	echo 0 > "$dir/events/syscalls/sys_enter_close/enable"
	untraced=$(costly 100 "$2")
	echo 1 > "$dir/events/syscalls/sys_enter_close/enable"
	took=$(costly 100 "$2")
	echo "$1: $took instructions for a close(), $untraced if it is not traced"
	[ "$took" -le 1000000 ] || fail "$1: more than a million"
	[ "$took" -gt $((4 * untraced)) ] || fail "$1: nothing was asked"
}
cd "$TMPDIR"
measure "the same files" s
measure "changed files" c
measure "new files" n
grep -q 'costly\.[0-9]*\.[0-9]*+0x600b$' "$dir/stack_map" || fail "no frame in a file"
# Of 1,800 characters, no path has the room, but it is walked as far as there is room.
for depth in 730 900; do
	long=$TMPDIR/$depth/$(printf 'a/%.0s' $(seq $depth))
	mkdir -p "$long"
	cd "$long"
	measure "changed files, $depth directories deep" c
done
check_map "$dir"
cd "$TRACING_DIR"
echo "the cost of user stacks by file: passed"
