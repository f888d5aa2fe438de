#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/test-guest: runs several tests, one after the other. The lines of each are between
# "@begin NAME" and "@end NAME STATUS SECONDS [WHY]". It ends early if a test leaves something behind, or the
# kernel has complained.
# Usage: several.sh NAME...
cd /sys/kernel/tracing || exit 1

# What a test must leave as it was: "+ WHAT", which is there, or "FILE:LINE". Not trace_clock: the kernel takes
# "global" where the TSC is unstable, and trace-cmd sets "local".
state() {
	ls instances | sed 's/^/+ instance /'
	grep -s '' current_tracer tracing_on buffer_size_kb buffer_subbuf_size_kb tracing_cpumask \
		set_event set_event_pid set_event_notrace_pid set_ftrace_filter set_ftrace_notrace set_ftrace_pid \
		set_graph_function dynamic_events options/* /sys/module/ftrace_stackmap/parameters/* \
		/sys/devices/system/cpu/online /proc/sys/kernel/ftrace_* /proc/sys/vm/nr_hugepages
	grep -rv '^#' --include=trigger --include=filter events | grep -v ':none$' | sed 's/^/+ /'
	grep -E '^(entries|successes|drops): [1-9]' stack_map_stat | sed 's/: */:/; s/^/stack_map_stat, /'
	cut -d' ' -f1-3 /proc/mounts | sed 's/^/+ mount /'
	ps axo pid,ppid,args | awk '$2 != 2 && $1 > 2 && $3 !~ /^(ps|awk|-?bash|\/script|\/init)/ { $1 = $2 = ""; sub(/^ */, "+ process "); print }'
	ls /tmp | sed 's|^|+ file /tmp/|'
} 2>/dev/null

# How the state differs from the one at the beginning, in words.
changes() {
	state >/run/after
	awk '/^\+ / {
		n[substr($0, 3)] += FNR == NR ? -1 : 1
		next
	}
	{
		file = $0
		sub(/:.*/, "", file)
		value[file, FNR == NR] = value[file, FNR == NR] " " substr($0, length(file) + 2)
		files[file]
	}
	END {
		for (what in n)
			if (n[what])
				print what " is " (n[what] > 0 ? "still there" : "gone")
		for (file in files)
			if (value[file, 1] != value[file, 0])
				print file " was" value[file, 1] " and is" value[file, 0]
	}' /run/before /run/after
}

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
	mkdir "$TMPDIR" "$OUT"
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
		changes >/run/left
		[ -s /run/left ] && [ $rc -eq 0 ] || break
		sleep .5
	done
	# One that has failed tells why by itself; it may have ended where something was yet to be undone.
	if [ -s /run/left ]; then
		sed 's/^/left behind: /' /run/left
		[ $rc -ne 0 ] || rc=1 why="left behind: $(paste -sd '|' /run/left | sed 's,|,; ,g')"
	fi
	echo "@end $name $rc $((SECONDS - start)) $why"
	[ -z "$why" ] || exit 1
	[ $rc -eq 0 ] || [ $rc -eq 4 ] || exit 1
done
