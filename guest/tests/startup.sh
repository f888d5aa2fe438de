#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The startup tests of the tracers (CONFIG_FTRACE_STARTUP_TEST) pass while kernel stacks are recorded
# as ids: they accept ids in the buffers.
# takes: 60
# flavour: startup
# append: trace_options=stackmap,stacktrace
# full: a kernel of its own, for some lines of trace_selftest.c
# timeout: 600
. /guest/lib/lib.sh

cat stack_map_stat
[ "$(stat_of successes)" -gt 0 ] || fail "no stack went through the map"
dmesg | grep 'Testing \(tracer\|dynamic\|ftrace\)' > "$TMPDIR/lines"
cat "$TMPDIR/lines"
[ "$(grep -c 'Testing tracer .*PASSED' "$TMPDIR/lines")" -ge 4 ] || fail "too few tracers were tested"
if dmesg | grep -E '(^|[^a-z])FAILED|corrupted trace buffer'; then
	fail "a startup test failed"
fi
