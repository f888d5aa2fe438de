#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/test-guest: runs several tests, one after the other. The lines of each are between
# "@begin NAME" and "@end NAME STATUS SECONDS [WHY]". It ends early if a test leaves something behind, or the
# kernel has complained.
# Usage: several.sh NAME...
cd /sys/kernel/tracing || exit 1

# What a test must leave as it was. Not trace_clock: the kernel takes "global" where the TSC is unstable, and
# trace-cmd sets "local".
state() {
	local f
	ls instances
	for f in current_tracer tracing_on buffer_size_kb buffer_subbuf_size_kb tracing_cpumask \
		set_event set_event_pid set_event_notrace_pid set_ftrace_filter set_ftrace_notrace set_ftrace_pid \
		set_graph_function dynamic_events options/* /sys/module/ftrace_stackmap/parameters/* \
		/sys/devices/system/cpu/online /proc/sys/kernel/ftrace_* /proc/sys/vm/nr_hugepages; do
		[ ! -f "$f" ] || sed "s|^|$f: |" "$f"
	done
	grep -rhv '^#' --include=trigger --include=filter events | grep -v '^none$'
	grep -E '^(entries|successes|drops): [1-9]' stack_map_stat
	cut -d' ' -f1-3 /proc/mounts
	ps axo pid,ppid,args | awk '$2 != 2 && $1 > 2 && $3 !~ /^(ps|awk|-?bash|\/script|\/init)/ { $1 = $2 = ""; print }'
	ls /tmp
} 2>/dev/null

# The first event makes the buffer as large as it stays.
echo 1 >events/sched/sched_switch/enable
echo 0 >events/sched/sched_switch/enable
echo >trace
state >/run/before
chmod 755 /guest/tests/*

for name; do
	echo "@begin $name"
	dmesg -C
	export OUT=/out/$name TMPDIR=/tmp/$name
	mkdir "$TMPDIR"
	start=$SECONDS why=''
	# Not the last output without a newline: "@end" begins a line.
	setsid -w "/guest/tests/$name.sh" 2>&1 </dev/null
	rc=$?
	echo
	cd /sys/kernel/tracing || exit 1
	rm -r "$TMPDIR"
	if [ $rc -eq 0 ] && dmesg | grep -E 'WARNING: |BUG: |INFO: (task|rcu)|suspicious RCU|possible (recursive|circular)|KASAN: |Oops: |general protection'; then
		rc=1 why="the kernel complained"
	fi
	# A process that was killed needs a moment to end, on a busy machine more than one.
	for ((end = SECONDS + 60; SECONDS < end; )); do
		state >/run/after
		! cmp -s /run/before /run/after || break
		sleep .5
	done
	if ! diff /run/before /run/after >/run/left; then
		cat /run/left
		[ $rc -eq 4 ] || why=${why:-"it leaves something behind: $(grep -m1 '^[<>]' /run/left)"} rc=$((rc ? rc : 1))
	fi
	echo "@end $name $rc $((SECONDS - start)) $why"
	[ -z "$why" ] || exit 1
	[ $rc -eq 0 ] || [ $rc -eq 4 ] || exit 1
done
