#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# sysrq-z dumps ids with their frames, or without them if options/stackmap-frames is 0.
# takes: 8
# timeout: 300
. /guest/lib/lib.sh

dump() { # prints the dump without the time stamps
	dmesg -c > /dev/null
	echo z > /proc/sysrq-trigger
	sleep .5
	dmesg | sed 's/^\[ *[0-9.]*\] \{0,1\}//; s/^ *=>/ =>/' > "$TMPDIR/dump"
	cat "$TMPDIR/dump"
}

# A dump consumes the events.
record() {
	echo 1 > tracing_on
	( : )
	( : )
	stop_recording
	n=$(count_ids trace)
	[ "$n" -ge 2 ] || fail "nothing to dump"
}

stackmap_on
set_opt options/sym-offset 1
echo 1 > events/sched/sched_process_fork/enable

record
dump
[ "$(check_resolved "$TMPDIR/dump")" -eq "$n" ] || fail "not $n ids with their frames"

if has_frames_option; then
	show_frames 0
	record
	dump
	[ "$(count_ids "$TMPDIR/dump")" -eq "$n" ] || fail "not $n ids"
	if grep '^ => ' "$TMPDIR/dump"; then
		fail "frames although the option is off"
	fi
	show_frames 1
fi

record
echo reset > stack_map
dump
[ "$(grep -c '(stale)$' "$TMPDIR/dump")" -eq "$n" ] || fail "not $n stale ids"
if grep '^ => ' "$TMPDIR/dump"; then
	fail "frames of stale ids"
fi

[ -e options/stackmap-define ] || exit 0
set_opt options/stackmap-define 1
record
dump
[ "$(check_resolved "$TMPDIR/dump")" -eq "$n" ] || fail "not $n ids with their frames"
# A definition is no empty line either.
if grep -E 'stack_def|^$' "$TMPDIR/dump"; then
	fail "something is left of a definition"
fi
