#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# How much persistent buffers of 4 and 12 MB hold with full stacks and with a map, by the same work. The last rows have
# several events at once, without and with user stacks (addresses, so each run of a program has its own).
# Usage: scripts/guest -c 1 -t 3000 -a "reserve_mem=4M:4096:a reserve_mem=4M:4096:b reserve_mem=12M:4096:c
#        reserve_mem=12M:4096:d trace_instance=full4^traceoff@a trace_instance=map4^traceoff^stackmap@b
#        trace_instance=full12^traceoff@c trace_instance=map12^traceoff^stackmap@d"
#        guest/measure/persistent.sh [EVENT...]
echo 2 >/proc/sys/kernel/randomize_va_space
cd /sys/kernel/tracing/instances || exit 1

# Processes, programs, files, directories, and a token that two processes pass to each other.
mkfifo /tmp/there /tmp/back
exec 3<>/tmp/there 4<>/tmp/back
work() {
	local i
	for ((i = 0; i < 1500; i++)); do read -r <&3; echo >&4; done &
	for ((i = 0; i < 1500; i++)); do echo >&3; read -r <&4; done
	wait
	for ((i = 0; i < 1000; i++)); do : < /proc/self/stat; done
	for ((i = 0; i < 5; i++)); do
		( : )
		echo some text | cat > /tmp/file
		dd if=/dev/zero of=/tmp/zeroes bs=64k count=32 2> /dev/null
	done
	ls -lR /proc/self /proc/sys/kernel > /dev/null 2>&1
}

full() { # instance: its buffer has lost events
	awk '/^overrun/ { n += $2 } END { exit !n }' "$1"/per_cpu/cpu0/stats
}

entries() { # instance
	awk '/^entries/ { print $2 }' "$1"/per_cpu/cpu0/stats
}

all="sched/sched_switch kmem/kmem_cache_alloc kmem/mm_page_alloc syscalls/sys_enter_close"
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $all "$all" "$all user"
for events; do
	names=
	for e in $events; do
		names+="${names:+ }${e##*/}"
	done
	for i in *; do
		echo 0 > "$i/options/stackmap-frames"
		echo 1 > "$i/options/stacktrace"
		echo > "$i/trace"
		[[ $i = full* ]] || echo reset > "$i/stack_map"
		for e in $events; do
			[ "$e" = user ] && e=options/userstacktrace || e=events/$e/enable
			echo 1 > "$i/$e"
		done
		echo 1 > "$i/tracing_on"
	done
	until full map4 && full map12; do
		work
	done
	for i in *; do
		echo 0 > "$i/tracing_on"
		echo 0 > "$i/events/enable"
		echo 0 > "$i/options/userstacktrace"
	done
	for size in 4 12; do
		# An event is one entry, and its stack another one; so is a user stack, if the task has one.
		awk -v e="$names" -v size=$size -v a="$(entries full$size)" -v b="$(entries map$size)" \
			-v s="$(awk '/^(entries|drops.*|successes):/ && $2 { printf "%s ", $0 }' map$size/stack_map_stat)" '
			BEGIN { printf "%s, %d MB: %d entries in full, %d with a map, %.2f times as many; %s\n", e, size, a, b, b / a, s }'
	done
done
