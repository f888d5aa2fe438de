#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/test-plugin: records the same events in two instances, with definitions and with full stacks.
# Leaves short.dat in /out with the report of trace-cmd and the plugin here, and trace.dat, during which the map is
# replaced three times. The maps are gone then.
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
record() { # file command...
	file=$1
	shift
	# shellcheck disable=SC2086 # a list
	trace-cmd record -q -k -F -c -o "$file" -C global \
		-B ids -C global -b 4096 $events -O stackmap -O stackmap-define \
		-B full -C global -b 65536 $events \
		"$@"
}
record /out/short.dat sleep .1
TRACEEVENT_PLUGIN_DIR=/guest/plugins trace-cmd report -q -i /out/short.dat > /out/report
echo 0 > "$TRACING_DIR/instances/ids/options/stackmap-define"
echo > "$TRACING_DIR/instances/ids/trace"
echo > "$TRACING_DIR/instances/full/trace"
echo reset > "$TRACING_DIR/instances/ids/stack_map"
record /out/trace.dat sh work.sh
cat "$TRACING_DIR/instances/ids/stack_map_stat"
