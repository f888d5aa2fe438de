#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# How many events a persistent buffer holds with full stacks and with a map, by the same work.
# Usage: scripts/guest -c 1 -t 1200 -a "reserve_mem=4M:4096:one reserve_mem=4M:4096:two
#        trace_instance=full^traceoff@one trace_instance=map^traceoff^stackmap@two" guest/measure/persistent.sh
cd /sys/kernel/tracing/instances || exit 1

work() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		( : )
		/usr/bin/true
		echo some text | cat > /tmp/file
		ls -lR /proc/self /sys/kernel/debug/kunit /sys/class > /dev/null 2>&1
	done
}

full() { # instance: its buffer has lost events
	awk '/^overrun/ { n += $2 } END { exit !n }' "$1"/per_cpu/cpu0/stats
}

for event in sched/sched_switch kmem/kmem_cache_alloc kmem/mm_page_alloc syscalls/sys_enter_close irq/softirq_entry; do
	for i in full map; do
		echo 0 > $i/options/stackmap-frames
		echo 1 > $i/options/stacktrace
		echo 1 > $i/events/$event/enable
		echo > $i/trace
		[ $i = full ] || echo reset > $i/stack_map
		echo 1 > $i/tracing_on
	done
	while ! full map; do
		work
	done
	for i in full map; do
		echo 0 > $i/tracing_on
		echo 0 > $i/events/$event/enable
	done
	# Without the map, each event is one entry, and its stack another one.
	a=$(awk '/^entries/ { print int($2 / 2) }' full/per_cpu/cpu0/stats)
	b=$(awk '/^entries/ { print int($2 / 2) }' map/per_cpu/cpu0/stats)
	awk -v e="$event" -v a="$a" -v b="$b" -v s="$(awk '/^(entries|drops):/ { printf "%s ", $0 }' map/stack_map_stat)" \
		'BEGIN { printf "%-24s %7d events in full, %7d with a map, %.2f times as many; %s\n", e, a, b, b / a, s }'
done
