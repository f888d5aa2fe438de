#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/test-arch and of scripts/series: all KUnit suites of the stack map that the kernel has.
cd /sys/kernel/debug/kunit/ftrace_stackmap/.. || exit 1
rc=0
for suite in ftrace_stackmap* *user_file*; do
	[ -d "$suite" ] || continue
	echo 1 > "$suite/run"
	cat "$suite/results"
	grep -q '^ok ' "$suite/results" || rc=1
done
exit $rc
