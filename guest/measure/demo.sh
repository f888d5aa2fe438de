#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Records the same workload in the same small buffer, with full stacks and with the stack map. Prints
# a table, the most frequent stacks, and a part of the trace. The status is 0 if all runs worked and
# their counts add up.
# Usage: demo.sh [KiB of buffer for each CPU [EVENT]]
# With an EVENT (or "function"), records only that with the map, and saves the map in /out/map.

export LC_ALL=C
# As on other machines, each run of a program has its own addresses.
echo 2 >/proc/sys/kernel/randomize_va_space
cd /sys/kernel/tracing || exit 1
[ -e options/stackmap ] || { echo "this kernel has no stack map"; exit 1; }
kib=${1:-512}
only=${2:-}
tmp=$(mktemp -d)
cpus=$(nproc)
bad=0
traced_functions='vfs_* kmem_cache_* handle_mm_fault wake_up_* dput'

wrong() {
	echo "WRONG: $*"
	bad=1
}

# The load of a CPU: processes, programs, directories, files, pipes, and a token that two processes
# pass to each other.
work() { # cpu [runs of a program]
	local dir=$tmp/work.$1 i
	mkdir "$dir"
	mkfifo "$dir/there" "$dir/back"
	exec 3<>"$dir/there" 4<>"$dir/back"
	for ((i = 0; i < 3500; i++)); do read -r <&3; echo >&4; done &
	for ((i = 0; i < 3500; i++)); do echo >&3; read -r <&4; done
	wait
	for ((i = 0; i < 8; i++)); do
		ls -l /proc/self/fd /sys/kernel >"$dir/list"
		tr '[:lower:]' '[:upper:]' <"$dir/list" | sort | uniq -c | tail -n 1 >"$dir/sorted"
		dd if=/dev/zero of="$dir/zeroes" bs=4k count=64 2>/dev/null
		find /proc/sys/kernel -maxdepth 1 -name '*a*' >"$dir/found"
		( : )
		rm "$dir"/[lszf]*
	done
	for ((i = 0; i < ${2:-0}; i++)); do
		ls -l /sys/kernel >/dev/null
	done
	rm -r "$dir"
}

# sum KEY DIR: the sum of this statistic over all CPUs.
sum() {
	cat "$2"/per_cpu/cpu*/stats | awk -v key="$1:" '$1 == key { n += $2 } END { printf "%d", n }'
}

stat_of() { sed -n "s/^$1: *\([0-9]*\).*/\1/p" "$2/stack_map_stat"; }

# Linux 6.12 always prints the frames.
show_frames() { # 0|1 dir
	[ ! -e "$2/options/stackmap-frames" ] || echo "$1" >"$2/options/stackmap-frames"
}

# One recording; leaves "events bytes-per-event entries successes drops" in $tmp/NAME.MODE. A name that
# ends with "+user" or "+delay" is that of an event with user stacks as well.
record() { # name full|map
	local name=$1 mode=$2 dir=instances/demo.$1.$2 cpu pids=() began=$SECONDS
	local events stacks user bytes written event=${1%+*} runs=''
	printf '  %-18s %-4s ' "$name" "$mode"
	mkdir "$dir" || return 1
	echo 0 >"$dir/tracing_on"
	echo "$kib" >"$dir/buffer_size_kb"
	show_frames 0 "$dir"
	[ "$mode" = full ] || echo 1 >"$dir/options/stackmap" || return 1
	# On first and off last: otherwise an event could be recorded without its stack.
	echo 1 >"$dir/tracing_on"
	if [ "$name" = function ]; then
		echo "$traced_functions" >"$dir/set_ftrace_filter"
		echo 1 >"$dir/options/func_stack_trace"
		echo function >"$dir/current_tracer" || return 1
	else
		echo 1 >"$dir/options/stacktrace"
		[ "$name" != "$event+user" ] || echo 1 >"$dir/options/userstacktrace" || return 1
		if [ "$name" = "$event+delay" ]; then
			runs=50
			echo 1 >"$dir/options/userstacktrace_delay" || return 1
		fi
		echo 1 >"$(echo "$dir"/events/*/"$event")/enable" || return 1
	fi

	for ((cpu = 0; cpu < cpus; cpu++)); do
		taskset -pc $cpu $BASHPID >/dev/null
		work $cpu $runs &
		pids+=($!)
	done
	wait "${pids[@]}" || wrong "$name $mode: the workload failed"
	echo 0 >"$dir/events/enable"
	echo "$traced_functions" >"$dir/set_ftrace_notrace"
	taskset -pc 0-$((cpus - 1)) $BASHPID >/dev/null
	sleep .3
	echo 0 >"$dir/tracing_on"

	cat "$dir/trace" >"$tmp/trace"
	stacks=$(grep -cE ': <(stack_id [0-9]+|stack_split [0-9]+( @[0-9a-f]+ [0-9]+){1,2}|stack trace)>' "$tmp/trace")
	user=$(grep -cE ': <user(_stack_id [0-9]+| stack trace|_unwind_[a-z_]+ [^>]+)>$' "$tmp/trace")
	events=$(grep -cE '^ .*-[0-9]+ +\[[0-9]+\]' "$tmp/trace")
	events=$((events - stacks - user))
	bytes=$(sum bytes "$dir")
	written=$(($(sum entries "$dir") + $(sum overrun "$dir")))
	printf '%7d events kept of %d entries, %d s\n' $events $written $((SECONDS - began))

	[ $events -gt 100 ] || wrong "$name $mode: too few events"
	for ((cpu = 0; cpu < cpus; cpu++)); do
		grep -q '^overrun: [1-9]' "$dir/per_cpu/cpu$cpu/stats" ||
			wrong "$name $mode: the buffer of CPU $cpu did not wrap"
	done
	# The oldest entry of a CPU may be the stack of an event that was overwritten.
	((events <= stacks && stacks <= events + cpus)) ||
		wrong "$name $mode: $events events with $stacks stacks"
	echo "$events $(awk "BEGIN { printf \"%.1f\", $bytes / $events }")" \
		"$(stat_of entries "$dir") $(stat_of successes "$dir") $(stat_of drops "$dir")" >"$tmp/$name.$mode"

	if [ "$mode" = map ]; then
		check_counts "$name" "$dir" $written
		cat "$dir/stack_map" >"$tmp/$name.stacks"
		stat_of memory "$dir" >"$tmp/$name.memory"
		show_frames 1 "$dir"
		head -n 400 "$dir/trace" >"$tmp/$name.trace"
	fi
	[ -z "$only" ] || stackmap_dump save -i "${dir#*/}" /out/map || wrong "$name: not saved"
	echo nop >"$dir/current_tracer"
	rmdir "$dir" || wrong "$name $mode: the instance cannot be removed"
}

# The references are the parts of the successes. Each event has one stack, an id or a full one.
check_counts() { # name dir entries-ever-written
	local refs successes drops parts
	successes=$(stat_of successes "$2")
	drops=$(stat_of drops "$2")
	parts=$(stat_of parts "$2")
	# Part 1 of the series has no split stacks.
	: "${parts:=$successes}"
	refs=$(sed -n 's/^\(user_\)\{0,1\}stack_id .*\[ref \([0-9]*\),.*/\2/p' "$2/stack_map" | awk '{ n += $1 } END { printf "%d", n }')
	[ "$successes" -gt 0 ] || wrong "$1: no stack went through the map"
	[ "$refs" = "$parts" ] || wrong "$1: $refs references, $parts parts"
	# Not every task has a user stack.
	[ "$1" = "${1%+*}" ] || return
	[ $((2 * (successes + drops))) = "$3" ] ||
		wrong "$1: $successes successes and $drops drops for $3 entries of events and their stacks"
}

if [ -n "$only" ]; then
	record "$only" map
	exit $bad
fi

echo "Linux $(uname -r), $cpus CPUs, $kib KiB of buffer for each of them. Recording the same workload:"
names='sched_switch kmem_cache_alloc function sched_switch+user sys_enter+user'
[ ! -e options/userstacktrace_delay ] || names+=' sys_enter+delay'
for name in $names; do
	for mode in full map; do
		record $name $mode || { wrong "$name $mode: could not record"; exit 1; }
	done
done

echo
printf '%-18s %-6s %9s %10s %9s %9s %10s %7s\n' "" "" events bytes reaches distinct "" ""
printf '%-18s %-6s %9s %10s %9s %9s %10s %7s\n' traced stacks retained "an event" back stacks successes drops
printf -- '-%.0s' {1..87}
echo
for name in $names; do
	read -r full_events full_bytes _ <"$tmp/$name.full"
	read -r events bytes entries successes drops <"$tmp/$name.map"
	factor=$(awk "BEGIN { printf \"%.1f\", $events / $full_events }")
	printf '%-18s %-6s %9d %10s %9s\n' $name full "$full_events" "$full_bytes" "1.0 x"
	printf '%-18s %-6s %9d %10s %9s %9d %10d %7d\n' "" map "$events" "$bytes" "$factor x" \
		"$entries" "$successes" "$drops"
	[ "$events" -gt "$full_events" ] || wrong "$name: the map keeps no more events"
done
cat <<E

events retained  traced events that are in the buffer at the end of the workload, without their stacks
bytes an event   bytes in the buffer for each of them: the event, its stack or id, time stamps
reaches back     events retained, compared with full stacks
function         func_stack_trace is on: $traced_functions
+user            user stacks as well: 8 frames in full, up to 127 with the map
+delay           user stacks on the way back to user space, by file with the map; 50 more runs of a program
The map of function takes $(($(cat "$tmp/function.memory") / 1000)) KB beside the buffer. It grows when more stacks come.

The three most frequent stacks at sched_switch:

E
grep '^stack_id' "$tmp/sched_switch.stacks" | sed 's/.*\[ref \([0-9]*\),.*/\1 &/' | sort -rn | head -n 3 |
	while read -r _ _ id _; do
		awk -v id="$id" '/^stack_id / { on = $2 == id } on' "$tmp/sched_switch.stacks"
	done
echo "The trace file (kmem_cache_alloc):"
echo
awk '/^#/ { print; next } / kmem_cache_alloc: / && ++n == 3 { exit } n || / kmem_cache_alloc: / { print }' \
	"$tmp/kmem_cache_alloc.trace"
echo
rm -r "$tmp"
[ $bad -eq 0 ] && echo "All runs worked and their counts add up." || echo "Failed, see above."
exit $bad
