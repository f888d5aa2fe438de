#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# User stacks by file where the file system of a program never answers, and the page with the build id is not
# in memory: nothing waits for it. The frames have their file, and an instance can be removed.
# takes: 15
# timeout: 300
. /guest/lib/lib.sh
[ -e options/userstacktrace_delay ] || skip "no deferred unwinding"
grep -q fuse /proc/filesystems || skip "no FUSE"
command -v hangfs > /dev/null || skip "there is no program for this here"

jobs=()
end() {
	kill -9 "${jobs[@]}" 2> /dev/null
	umount -l "$TMPDIR/mnt"
}
trap 'at_exit end' EXIT

wait_for() { # what command...
	for ((i = 0; i < 100; i++)); do
		! "${@:2}" || return 0
		sleep .1
	done
	for job in "${jobs[@]}"; do where "$job"; done
	fail "$1"
}

lines() { [ "$(wc -l < "$1")" -ge "$2" ]; } # file number
ended() { [ ! -e "/proc/$1/fd/1" ]; } # pid
gone() { [ ! -e "instances/$1" ]; } # instance
recorded() { grep -qs 'mnt/code\[+0x100b\]' "instances/$1/trace"; } # instance

instance() { # name filter
	make_instance "$1"
	echo 1 > "instances/$1/options/stackmap"
	echo 1 > "instances/$1/options/userstacktrace_delay"
	echo "$2" > "instances/$1/events/syscalls/sys_enter_close/filter"
	echo 1 > "instances/$1/events/syscalls/sys_enter_close/enable"
}

mkdir "$TMPDIR/mnt"
# It hangs when the second program has opened the file.
hangfs "$TMPDIR/mnt" 2 > "$TMPDIR/server" &
jobs+=($!)
wait_for "not mounted" mountpoint -q "$TMPDIR/mnt"
instance known "fd > 1000 && fd != 1009"
instance other "fd == 1009"
file=(-k -m "$TMPDIR/mnt/code" -o 4096)

userstack -l "${file[@]}" 9 &
jobs+=($!)
wait_for "no stacks" recorded other
userstack -f "${file[@]}" 2 5 > "$TMPDIR/truth" &
jobs+=($!)
wait_for "a program waits" lines "$TMPDIR/truth" 2
wait_for "a program does not end" ended $!
echo 0 > instances/known/tracing_on

# The headers are in the first page, and nobody gets it.
head -c 1 "$TMPDIR/mnt/code" &
jobs+=($!)
sleep 1
cat "$TMPDIR/server" "$TMPDIR/truth"
[ "$(tr '\n' ' ' < "$TMPDIR/server")" = "page 1 hangs " ] || fail "the first page was read"
! ended $! || fail "the file system answers"
stacks_of instances/known/trace | diff "$TMPDIR/truth" - || fail "wrong stacks"
[ "$(grep -c 'mnt/code\[+0x100b\]' "$TMPDIR/truth")" -eq 2 ] || fail "not through the file"

# New frames still come from the file, and the instance that has them goes.
echo > instances/other/trace
wait_for "no more stacks" recorded other
grep -q 'mnt/code+0x100b$' instances/other/stack_map || fail "the file is not in the map"
rmdir instances/other &
wait_for "the removal of an instance waits" gone other
check_map instances/known
echo "a file system that never answers: passed"
