#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs hackbench with nothing traced, and with what ftrace can record with full stacks and with the stack
# map: run 1 of all rows, run 2 of all rows in reverse order, and so on. For scripts/hackbench, which prints
# the table. All is recorded in an instance of its own, so that other tracing goes on as it was.
# Usage: hackbench.sh --rows | groups loops runs [first run [last run]]
# Prints: result ROW SECONDS ENTRIES SUCCESSES DROPS (the last two of the map), reason ROW TEXT for a row that
# this kernel cannot do, hackbench ARGUMENTS, kernel TEXT; other lines are progress.
# The row "plain" is that of a kernel without the stack map, which runs no other row.

functions='vfs_* kmem_cache_* wake_up_*'
rows=(
	"plain|kernel without the patches"
	"off|with them, all off"
	"sched-none|sched events"
	"sched-full|  with full stacks"
	"sched-map|  with the map"
	"three-none|sched, irq and timer events"
	"three-full|  with full stacks"
	"three-map|  with the map"
	"function|function tracer, all functions"
	"filter-none|function tracer, $functions"
	"filter-full|  func_stack_trace, full stacks"
	"filter-map|  func_stack_trace, the map"
	"irqsoff-full|irqsoff, full stacks"
	"irqsoff-map|  the map"
	"preemptoff-full|preemptoff, full stacks"
	"preemptoff-map|  the map"
	"preemptirqsoff-full|preemptirqsoff, full stacks"
	"preemptirqsoff-map|  the map"
	"wakeup-full|wakeup, full stacks"
	"wakeup-map|  the map"
	"user-full|sched events, full user stacks"
	"user-map|  user stacks by the map"
)
if [ "$1" = --rows ]; then
	printf '%s\n' "${rows[@]}"
	exit
fi

set -e
export LC_ALL=C
groups=$1 loops=$2 first=${4:-1} last=${5:-$3} total=$3
tracing=/sys/kernel/tracing
wrong() {
	echo "hackbench.sh: $*"
	exit 1
}

command -v hackbench >/dev/null || wrong "there is no hackbench here (Debian's package rt-tests)"
[ -d $tracing/instances ] || mount -t tracefs tracefs $tracing 2>/dev/null || true
[ -d $tracing/instances ] || wrong "no trace instances in $tracing (not root, or a kernel without ftrace)"

# load: sets $time. The traditional sockets, or pipes if the kernel has no sockets.
load() {
	local out status=0
	# shellcheck disable=SC2086
	out=$(hackbench $pipe -g "$groups" -l "$loops" 2>&1) || status=$?
	time=$(sed -n 's/^Time: \([0-9.]*\)$/\1/p' <<<"$out")
	[ $status = 0 ] && [ -n "$time" ] || wrong "hackbench $pipe -g $groups -l $loops ended with status $status:" \
		"${out##*bytes}; $((40 * groups)) processes in $(sed -n 's/^MemAvailable: *//p' /proc/meminfo) of memory"
}
pipe=
hackbench -g 1 -l 1 >/dev/null 2>&1 || pipe=--pipe
# Not counted: they bring the programs into memory, and show whether it works at all. The first ones are slow.
for _ in 1 2 3; do
	load
done
echo "hackbench $pipe -g $groups -l $loops"
echo "kernel Linux $(uname -r), $(nproc) CPU$([ "$(nproc)" = 1 ] || echo s)"

if [ ! -e $tracing/options/stackmap ]; then
	for ((run = first; run <= last; run++)); do
		echo "row 1 of ${#rows[@]}, run $run of $total"
		load
		echo "result plain $time 0 0 0"
	done
	exit
fi

# From here on, the current directory is the instance.
lib=$(dirname "$0")/../lib/lib.sh
[ -e "$lib" ] || lib=/guest/lib/lib.sh
# shellcheck source=guest/lib/lib.sh
. "$lib"
cleanup() {
	status=$?
	trap - EXIT
	set +e
	cd $tracing || exit 1
	if [ -n "$STACKMAP_INSTANCES" ]; then
		(cd instances/hackbench && stackmap_idle)
		rmdir instances/hackbench || status=1
	fi
	rm -r "$TMPDIR"
	exit $status
}
# In place of lib.sh's, which clears the top level.
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

[ "$(cat current_tracer)" = nop ] && [ "$(cat events/enable)" = 0 ] && [ -z "$(ls instances)" ] ||
	echo "note other tracing is on in this kernel, also in the row with all off"
make_instance hackbench
cd instances/hackbench
echo 0 >tracing_on

# All that was written to the buffer, also what is overwritten.
entries() { cat per_cpu/cpu*/stats | awk '/^(entries|overrun):/ { n += $2 } END { print n + 0 }'; }

# begin ROW: records as that row says, or fails.
begin() {
	local what=${1%-*} how=${1##*-} f
	echo >trace
	[ "$how" != map ] || echo 1 >options/stackmap
	case $what in
	off) return ;;
	filter) echo "$functions" >set_ftrace_filter ;;
	esac
	case $what in
	sched|three|user) [ "$how" = none ] || echo 1 >options/stacktrace ;;
	filter) [ "$how" = none ] || echo 1 >options/func_stack_trace ;;
	esac
	# Only the kernel's stack or only the user's.
	[ "$what" != user ] || echo 0 >options/stacktrace
	[ "$what" != user ] || echo 1 >options/userstacktrace
	echo 1 >tracing_on
	case $what in
	sched|user) echo 1 >events/sched/enable ;;
	three) for f in sched irq timer; do echo 1 >events/$f/enable; done ;;
	function|filter) echo function >current_tracer ;;
	*)
		# What is measured is the latency tracer, not the function tracer that it can start.
		[ ! -e options/function-trace ] || echo 0 >options/function-trace
		echo "$what" >current_tracer
		echo 0 >tracing_max_latency ;;
	esac
}

# end ROW: ends the recording and sets $recorded, $successes and $drops. Fails if nothing was recorded.
end() {
	local what=${1%-*} how=${1##*-} sign=''
	recorded=0 successes=0 drops=0
	[ "$what" != off ] || return 0
	stop_recording
	case $what in
	# Such a tracer records all the time, and keeps a copy of the longest.
	irqsoff|preemptoff|preemptirqsoff|wakeup) recorded=$(grep -vc '^#' trace || true) ;;
	*) recorded=$(entries) ;;
	esac
	case $what-$how in
	user-full) sign='<user stack trace>' ;;
	user-map) sign='<user_stack_id ' ;;
	*-full) sign='<stack trace>' ;;
	*-map) sign='<stack_(id|split) ' ;;
	esac
	[ "$recorded" -gt 0 ] || wrong "$1: nothing was recorded"
	[ -z "$sign" ] || grep -qE "$sign" trace || wrong "$1: no $sign> among $recorded entries"
	if [ "$how" = map ]; then
		successes=$(stat_of successes) drops=$(stat_of drops)
		[ "$successes" -gt 0 ] || wrong "$1: no stack went through the map"
	fi
	undo
}

# Back to a new instance.
undo() {
	local f
	stackmap_idle
	for f in stacktrace userstacktrace func_stack_trace stackmap; do
		[ ! -e options/$f ] || echo 0 >options/$f
	done
	echo reset >stack_map
}

# impossible ROW: prints why this kernel cannot do it.
impossible() {
	local what=${1%-*}
	case $what in
	plain) echo "the first row needs another kernel" ;;
	filter|function) what=function ;;&
	function|filter|irqsoff|preemptoff|preemptirqsoff|wakeup)
		[[ " $(cat available_tracers) " = *" $what "* ]] || echo "this kernel has no tracer \"$what\"" ;;
	user)
		begin user-full 2>/dev/null || true
		(:)
		settle
		echo 0 >tracing_on
		grep -q '<user stack trace>' trace || echo "this kernel takes no user stacks (USER_STACKTRACE_SUPPORT)"
		undo ;;
	esac
}

declare -A cannot=()
for row in "${rows[@]}"; do
	row=${row%%|*}
	cannot[$row]=$(impossible "$row")
	[ -z "${cannot[$row]}" ] || echo "reason $row ${cannot[$row]}"
done

for ((run = first; run <= last; run++)); do
	for ((i = 0; i < ${#rows[@]}; i++)); do
		# "off" comes first. The others change their order, since a row may slow down those behind it.
		j=$i
		[ $((run % 2)) = 1 ] || [ $i -lt 2 ] || j=$((${#rows[@]} + 1 - i))
		row=${rows[j]%%|*}
		[ -z "${cannot[$row]}" ] || continue
		echo "row $((i + 1)) of ${#rows[@]}, run $run of $total"
		begin "$row"
		settle
		load
		# It follows only wakeups of a task whose priority is higher than that of the running one, as of
		# some kernel threads. All of hackbench has one priority.
		[ "${row%-*}" != wakeup ] || nice -n -20 sleep .01
		end "$row"
		echo "result $row $time $recorded $successes $drops"
	done
done
