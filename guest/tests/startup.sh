#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The tests that tracers and trace events run on themselves at boot (CONFIG_FTRACE_STARTUP_TEST) pass
# where all kernel stacks are ids: the buffers that they look through have them.
# flavour: startup
# append: trace_options=stackmap,stacktrace
# when: full
# timeout: 1200
. /guest/lib.sh

cat stack_map_stat
[ "$(stat_of successes)" -gt 0 ] || fail "no stack went through the map"
dmesg | grep -E 'Testing (tracer|event|dynamic|ftrace)|trace event|selftest' > "$TMPDIR/lines"
tracers=$(grep -c 'Testing tracer .*PASSED' "$TMPDIR/lines")
events=$(grep -c 'Testing event .*OK' "$TMPDIR/lines")
echo "$tracers tracers, $events events"
grep 'Testing tracer' "$TMPDIR/lines"
[ "$tracers" -ge 4 ] || fail "hardly a tracer was tested"
[ "$events" -ge 50 ] || fail "hardly an event was tested"
if dmesg | grep -E 'Testing .*(FAILED|failed)|Failed to (enable|disable)|did ?n.t (start|stop)|\.\. corrupted trace buffer'; then
	fail "a startup test failed"
fi
