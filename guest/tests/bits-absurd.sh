#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Absurd map sizes on the command line, one after the other. Each gives the kernel's own message and
# changes nothing. The machine boots and traces.
# takes: 7
# append: ftrace_stackmap.bits ftrace_stackmap.bits= ftrace_stackmap.bits=abc ftrace_stackmap.bits=12x ftrace_stackmap.bits=0x ftrace_stackmap.bits=-1 ftrace_stackmap.bits=0 ftrace_stackmap.bits=9 ftrace_stackmap.bits=19 ftrace_stackmap.bits=32 ftrace_stackmap.bits=4294967310 ftrace_stackmap.bits=-9999999999999999999999 ftrace_stackmap.bits=18446744073709551630 ftrace_stackmap.bits=99999999999999999999999999999999 ftrace_stackmap.bits=1e3 ftrace_stackmap.bits=0xb ftrace_stackmap.split=maybe ftrace_stackmap.split= ftrace_stackmap.nonsense=1 trace_options=stackmap,nonsense,,stacktrace
# timeout: 300
. /guest/lib/lib.sh

bits=/sys/module/ftrace_stackmap/parameters/bits
dmesg | grep -E 'ftrace_stackmap|stackmap:' > "$TMPDIR/said"
cat "$TMPDIR/said"
for word in "" abc 12x 0x 1e3 -1 0 9 19 32 4294967310 -9999999999999999999999 18446744073709551630 \
	99999999999999999999999999999999; do
	grep -qF "\`$word' invalid for parameter \`ftrace_stackmap.bits'" "$TMPDIR/said" || fail "$word was taken"
done
[ "$(cat $bits)" = 11 ] || fail "bits is $(cat $bits), not the last good value"
[ "$(cat options/stackmap)" = 1 ] || fail "trace_options=stackmap did not set the option"
[ "$(sed -n 's/^entries: [0-9]* \/ //p' stack_map_stat)" -eq 2048 ] || fail "the map has another size"

for value in "" abc 12x 0x -1 0 9 19 32 4294967310 1e3 -9999999999999999999999 99999999999999999999999; do
	if write_once $bits "$value\n"; then
		fail "'$value' was accepted at run time"
	fi
	grep -qE 'Invalid argument|out of range' "$TMPDIR/errno" || fail "'$value': $(cat "$TMPDIR/errno")"
	[ "$(cat $bits)" = 11 ] || fail "'$value' has changed bits to $(cat $bits)"
done

echo 1 > events/sched/sched_switch/enable
echo 1 > tracing_on
stackmap_work
stop_recording
[ "$(stat_of successes)" -gt 0 ] || fail "no stack went through the map"
check_map
