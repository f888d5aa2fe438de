#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Records stack ids for KernelShark. Leaves in /out: trace.dat, map.bin, and row, the number of the event
# whose stack is to be shown.
. /guest/lib/lib.sh

cd "$TMPDIR"
trace-cmd record -q -o /out/trace.dat -e sched:sched_switch -O stacktrace -O stackmap \
	sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep .01; done'
cat "$TRACING_DIR/stack_map_bin" > /out/map.bin
# Without the plugin, an event is a line.
trace-cmd report -q -i /out/trace.dat | sed 1d | awk 'NR > 4 && / stack_id: / { print NR - 1; exit }' > /out/row
cat /out/row
[ "$(cat /out/row)" -lt 14 ]
