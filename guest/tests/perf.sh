#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# perf while the stack map is in use: its events and call chains do not change, and "perf ftrace" shows
# ids with their frames.
# takes: 8
# program: perf
# timeout: 300
. /guest/lib/lib.sh

command -v perf > /dev/null || skip "there is no perf here"

stackmap_on
echo 1 > events/sched/sched_switch/enable
echo 1 > tracing_on
perf record -q -a -g -e sched:sched_switch -o "$TMPDIR/perf.data" sleep 1 ||
	fail "perf record"
stop_recording
[ "$(count_ids trace)" -gt 5 ] || fail "no ids beside perf"
[ "$(count_full trace)" -eq 0 ] || fail "full stacks beside perf"
check_map
perf script -i "$TMPDIR/perf.data" > "$TMPDIR/script" 2> "$TMPDIR/err" || { cat "$TMPDIR/err"; fail "perf script"; }
grep -q 'sched:sched_switch' "$TMPDIR/script" || fail "perf script shows no event"
grep -qE '^[[:space:]]+[0-9a-f]+ (__)?schedule' "$TMPDIR/script" || fail "perf script shows no call chain"

# perf ftrace reads trace_pipe. It resets the options that it knows; stackmap is not one of them.
echo 0 > events/enable
echo 1 > options/stackmap
set_opt options/irq-info 1
perf ftrace trace -a --func-opts call-graph -T do_sys_openat2 -- ls / > "$TMPDIR/ftrace" 2> "$TMPDIR/err" ||
	{ cat "$TMPDIR/err"; fail "perf ftrace"; }
head -n 20 "$TMPDIR/ftrace"
[ "$(count_ids "$TMPDIR/ftrace")" -ge 1 ] || fail "perf ftrace shows no id"
grep -q '^ => ' "$TMPDIR/ftrace" || fail "perf ftrace shows no frame"
