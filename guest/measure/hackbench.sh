#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What tracing adds to hackbench (perf bench sched messaging): events alone, with full stacks, and by the stack map. All
# is recorded in a trace instance that the script makes and removes. Runs of a row are spread over all rows, so that
# other load hits all alike.
# Usage, as root: hackbench.sh [groups [loops [runs]]]    make hackbench, make hackbench HERE=1
# Prints milliseconds, the median and the minimum of the runs, each in percent of the first row. Under scripts/guest
# -j icount, a millisecond is a million instructions.
set -e
export LC_ALL=C
groups=${1:-50} loops=${2:-100} runs=${3:-5}
instance=/sys/kernel/tracing/instances/hackbench
wrong() {
	echo "hackbench: $*" >&2
	exit 1
}
for n in "$groups" "$loops" "$runs"; do
	[[ $n =~ ^[1-9][0-9]*$ ]] || wrong "groups, loops and runs are numbers from 1, not $n"
done
[ "$(id -u)" = 0 ] || wrong "this needs root"
command -v perf >/dev/null || wrong "there is no perf (Debian's package linux-perf)"
[ -d "${instance%/*}" ] || mount -t tracefs tracefs /sys/kernel/tracing
[ -e /sys/kernel/tracing/options/stackmap ] || wrong "the kernel $(uname -r) has no stack map"
[ ! -e "$instance" ] || wrong "there is an instance hackbench already"

files=$(mktemp -d) pipe=() status=0
mkdir "$instance"
trap 'status=$?; cd /; off || status=1; rmdir "$instance" || status=1; rm -r "$files"; exit $status' EXIT
trap 'exit 130' INT TERM
cd "$instance"

off() {
	echo 0 >"$instance/tracing_on"
	echo nop >"$instance/current_tracer"
	echo 0 >"$instance/events/enable"
	for o in stackmap stacktrace func_stack_trace; do
		[ ! -e "$instance/options/$o" ] || echo 0 >"$instance/options/$o"
	done
	echo >"$instance/trace"
	echo reset >"$instance/stack_map"
}

# record WHAT HOW: WHAT is a system of events or a function, HOW none, full or map.
record() {
	[ "$1" != off ] || return 0
	[ "$2" != map ] || echo 1 >options/stackmap
	if [ -d "events/$1" ]; then
		[ "$2" = none ] || echo 1 >options/stacktrace
		echo 1 >tracing_on
		echo 1 >"events/$1/enable"
	else
		echo "$1" >set_ftrace_filter
		echo 1 >tracing_on
		echo function >current_tracer
		[ "$2" = none ] || echo 1 >options/func_stack_trace
	fi
}

load() { perf bench -f simple sched messaging "${pipe[@]}" -g "$groups" -l "$loops"; }

rows=("off none|not traced")
for what in sched kmem vfs_read; do
	[ $what != vfs_read ] || grep -qw function available_tracers || continue
	rows+=("$what none|$what" "$what full|  with full stacks" "$what map|  by the map")
done

echo "Linux $(uname -r), $(nproc) CPUs, $(grep -o 'unwind_cache=[^ ]*' /proc/cmdline || echo unwind_cache=1)"
echo "perf bench sched messaging -g $groups -l $loops, $runs runs"
perf bench sched messaging -g 1 -l 1 >/dev/null 2>&1 || pipe=(-p)
load >/dev/null
for ((run = 1; run <= runs; run++)); do
	for i in "${!rows[@]}"; do
		read -r what how <<<"${rows[i]%%|*}"
		record "$what" "$how"
		seconds=$(load | tail -n 1)
		echo 0 >tracing_on
		[ "$what" = off ] || grep -q '^entries: [1-9]' per_cpu/cpu*/stats || wrong "${rows[i]}: nothing was recorded"
		[ "$how" != map ] || grep -q '^successes: [1-9]' stack_map_stat || wrong "${rows[i]}: no stack by an id"
		echo "$i $seconds" >>"$files/times"
		off
	done
done
printf '%-20s%10s%8s%10s%8s\n' ms median % minimum %
for i in "${!rows[@]}"; do
	awk -v i="$i" '$1 == i { print 1000 * $2 }' "$files/times" | sort -n |
		awk -v label="${rows[i]#*|}" '{ ms[NR] = $1 } END { print label "|" ms[int((NR + 1) / 2)] "|" ms[1] }'
done | awk -F'|' 'NR == 1 { median = $2; least = $3 }
	{ printf "%-20s%10.0f%8.0f%10.0f%8.0f\n", $1, $2, 100 * $2 / median, $3, 100 * $3 / least }'
