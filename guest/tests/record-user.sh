#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# stackmap_dump record --user: the stacks of a program whose stacks are known, at once and on the way back
# to user space. The mappings of processes that are gone are in the recording. Leaves the recordings and the
# program for guest/host/record-user.sh.
# takes: 15
# timeout: 300
. /guest/lib/lib.sh

command -v stackmap_dump > /dev/null || skip "there is no stackmap_dump here"
command -v userstack > /dev/null || skip "there is no userstack here"
[ -e options/userstacktrace ] || skip "no user stacks"

# Programs are elsewhere in memory each time.
set_opt /proc/sys/kernel/randomize_va_space 2

# The program is gone in the end. A shell forks it, so its mappings are those of another process at first.
work='userstack 3 100 3; sh -c "userstack 7"; :'

record() { # directory arguments...
	dir=$TMPDIR/$1
	shift
	stackmap_dump record -o "$dir" -e syscalls:sys_enter_close "$@" -- sh -c "$work" > "$dir.frames" 2> "$dir.err" ||
		fail "record $*: $(cat "$dir.err")"
	cat "$dir.err"
	[ -s "$dir/vdso" ] || fail "no vdso"
	# With files, nothing else is needed.
	[ "$1" != -u ] || return 0
	[ -s "$dir/user_maps" ] || fail "no user_maps"
	if grep 'perf events\|were lost' "$dir.err"; then
		fail "not all mappings were seen"
	fi
	[ "$(grep -c '/userstack$' "$dir/user_maps")" -ge 2 ] || fail "the mappings of the program are missing"
}

# The frames of the program that it has printed, as offsets in its file, are those of the samples. The guest has
# no symbols of it.
check() { # directory
	dir=$TMPDIR/$1
	stackmap_dump export --format perf -q "$dir" > "$dir.samples"
	for depth in 3 100 7; do
		want=$(grep -m 1 "^$depth " "$dir.frames" | wc -w)
		awk -v want=$((want - 1)) '
			/userstack/ && /^\t/ { n++; next }
			/^$/ { good += n == want; n = 0 }
			END { exit !good }' "$dir.samples" ||
			{ grep -B3 -A12 "userstack)" "$dir.samples" | head -40; fail "$1: not all frames of depth $depth"; }
	done
}

record now --user=now
check now
[ ! -e options/userstacktrace_delay ] || { record delay -u; check delay; }
out=${OUT:-/out}
mkdir -p "$out/root/usr/local/bin"
cp "$(command -v userstack)" "$out/root/usr/local/bin/"
mv "$TMPDIR/now" "$out/"
[ ! -e "$TMPDIR/delay" ] || mv "$TMPDIR/delay" "$out/"

# Without -u there are none. A live process is found by save.
stackmap_dump record -q -o "$TMPDIR/without" -e syscalls:sys_enter_close true
trace-cmd report -q -i "$TMPDIR/without/trace.dat" > "$TMPDIR/report" 2> /dev/null
if [ -e "$TMPDIR/without/user_maps" ] || [ -e "$TMPDIR/without/vdso" ] || grep ' user_' "$TMPDIR/report"; then
	fail "stacks of user space without -u"
fi
userstack -l 5 &
pid=$!
make_instance user
echo 1 > instances/user/options/stackmap
echo 1 > instances/user/options/stacktrace
echo 1 > instances/user/options/userstacktrace
echo mono > instances/user/trace_clock
echo $pid > instances/user/set_event_pid
echo 1 > instances/user/events/syscalls/sys_enter_close/enable
sleep 1
echo 0 > instances/user/events/enable
stackmap_dump save -i user "$TMPDIR/saved"
kill $pid
stackmap_dump export --format folded -q "$TMPDIR/saved" | tee "$TMPDIR/folded"
grep -q 'userstack.*;do_syscall_64.* [1-9][0-9]*$' "$TMPDIR/folded" || fail "no frame of the live process"
