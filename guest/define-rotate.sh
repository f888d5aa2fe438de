#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Records the same events in two instances: with definitions while the map is replaced three times, and with
# full stacks. Leaves trace.dat in /out. The map is gone then.
. /guest/lib/lib.sh

make_small_instance ids
make_instance full
cd "$TMPDIR"
cat > work.sh <<-'W'
	. /guest/lib/lib.sh
	while [ "$(stat_of rotations instances/ids)" -lt 3 ]; do
		stackmap_work 1
	done
W
events='-O stacktrace -e kmem -e sched -e irq -e timer -e signal -e task'
# shellcheck disable=SC2086 # a list
trace-cmd record -q -k -F -c -o /out/trace.dat -C global \
	-B ids -C global -b 4096 $events -O stackmap -O stackmap-define \
	-B full -C global -b 65536 $events \
	sh work.sh
cat "$TRACING_DIR/instances/ids/stack_map_stat"
