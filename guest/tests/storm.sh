#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Everything at once: kmem and sched events and the function tracer use maps, with definitions, and with user
# stacks taken at once and on the way out, while options are toggled, maps reset and replaced, files read,
# tracers changed, instances made and removed. At the end, the kernel has not complained, no process is
# stuck, and the counts add up.
# Usage: storm.sh [seconds]
# takes: 96
# flavour: debug
# thread: multi
# cpus: 2
# mem: 1024
# timeout: 1200
# shellcheck disable=SC2030,SC2031 # each loop has a TMPDIR and an n of its own
. /guest/lib/lib.sh

seconds=${1:-${STORM_SECONDS:-30}}
storm=$TMPDIR
pids=

# QEMU runs each CPU in a thread, so the races are real. Then a guest does not survive much code
# patching: sometimes a CPU executes a breakpoint that is no longer there. So the function tracer has
# a filter, and two instances, the anchors, trace the same functions and events all the time without
# recording. A function or tracepoint with another user is not patched when a user comes or goes.

anchor() { # name
	mkdir "instances/$1"
	echo 0 > "instances/$1/tracing_on"
	filter_some "instances/$1"
	echo function > "instances/$1/current_tracer"
	echo 1 > "instances/$1/events/kmem/enable"
	echo 1 > "instances/$1/events/sched/enable"
}

# start NAME COMMAND...: repeats the command until the storm is over.
start() {
	name=$1
	shift
	(
		set +e
		trap - EXIT
		TMPDIR=$storm/$name
		mkdir "$TMPDIR"
		n=0
		while [ -e "$storm/run" ]; do
			"$@" > /dev/null 2> "$storm/stderr.$name"
			n=$((n + 1))
		done
		echo "$n" > "$storm/count.$name"
	) &
	pids="$pids $!:$name"
}

pause() {
	sleep .0"$1"
}

toggle() {
	for dir in . instances/storm*; do
		for option in stackmap stackmap-frames stackmap-define userstacktrace userstacktrace_delay; do
			[ -e "$dir/options/$option" ] || continue
			echo 0 > "$dir/options/$option"
			pause 1
			echo 1 > "$dir/options/$option"
		done
		[ "$dir" != . ] || echo 0 > options/stacktrace
		pause 2
		[ "$dir" != . ] || echo 1 > options/stacktrace
		pause 3
	done
}

reset() {
	echo reset > stack_map
	echo 0 > tracing_on
	echo reset > stack_map
	echo 1 > tracing_on
	pause 9
}

# Also with the option off, which frees the memory.
free() {
	echo 0 > tracing_on
	echo 0 > options/stackmap
	echo 0 > stack_map
	echo $((10 + n % 2)) > /sys/module/ftrace_stackmap/parameters/bits
	echo 1 > options/stackmap
	echo 1 > tracing_on
	sleep .3
}

read_files() {
	for dir in . instances/storm*; do
		cat "$dir/stack_map_stat"
		cat "$dir/stack_map"
		cat "$dir/stack_map_bin"
		head -c 5000 "$dir/trace"
		timeout 1 head -n 100 "$dir/trace_pipe"
	done
}

tracer() {
	echo nop > current_tracer
	pause 5
	echo function > current_tracer
	sleep .5
	echo 1 > snapshot
}

# Makes an instance, checks its counts, removes it.
instance() { # name
	dir=instances/$1
	mkdir "$dir"
	echo 1 > "$dir/options/stackmap"
	echo 1 > "$dir/options/stacktrace"
	for option in userstacktrace userstacktrace_delay stackmap-define; do
		[ ! -e "$dir/options/$option" ] || echo $(((n / 2 + ${#option}) % 2)) > "$dir/options/$option"
	done
	echo 1 > "$dir/events/sched/enable"
	echo 1 > "$dir/events/kmem/mm_page_alloc/enable"
	if [ $((n % 3)) -eq 0 ]; then
		echo 'vfs_*' > "$dir/set_ftrace_filter"
		echo '*rcu*' '*lock*' > "$dir/set_ftrace_notrace"
		echo 1 > "$dir/options/func_stack_trace"
		echo function > "$dir/current_tracer"
	fi
	stackmap_work 1
	echo 0 > "$dir/tracing_on"
	if [ $((n % 2)) -eq 0 ]; then
		settle
		stat_of rotations "$dir" >> "$storm/rotations"
		(check_map "$dir") || cat "$storm/stderr.$1" "$dir/stack_map_stat" >> "$storm/wrong"
	fi
	echo nop > "$dir/current_tracer"
	until rmdir "$dir" || [ ! -e "$storm/run" ]; do
		pause 5
	done
}

churn() { # makes an instance and removes it at once, with or without a reader
	mkdir instances/"$1"
	echo 1 > instances/"$1"/options/stackmap
	echo 1 > instances/"$1"/options/stacktrace
	[ ! -e instances/"$1"/options/userstacktrace_delay ] || echo 1 > instances/"$1"/options/userstacktrace_delay
	echo 1 > instances/"$1"/events/sched/enable
	cat instances/"$1"/stack_map
	rmdir instances/"$1"
}

# A process may wait for a mutex for that long under this load.
[ ! -e /proc/sys/kernel/hung_task_timeout_secs ] || echo 600 > /proc/sys/kernel/hung_task_timeout_secs
touch "$storm/run"
set_opt buffer_size_kb 256
set_opt /sys/module/ftrace_stackmap/parameters/bits 10
anchor anchor1
anchor anchor2
stackmap_on
set_opt options/func_stack_trace 1
filter_some .
echo "the function tracer has $(wc -l < set_ftrace_filter) functions"
[ "$(wc -l < set_ftrace_filter)" -lt 1500 ] || fail "these are too many"
echo function > current_tracer
echo 1 > events/kmem/mm_page_alloc/enable
echo 1 > events/kmem/kfree/enable
echo 1 > events/sched/enable
echo 1 > tracing_on

start load stackmap_work
start calls userstack 1 9 99
start toggle toggle
start reset reset
start free free
start read read_files
start tracer tracer
start storm1 instance storm1
start storm2 instance storm2
start churn churn storm_churn

replaced() { # also in instances that are still there
	{
		cat "$storm/rotations"
		sed -n 's/^rotations: //p' instances/storm*/stack_map_stat || true
	} 2> /dev/null | awk '{ n += $1 } END { print n + 0, "maps of instances were replaced"; exit !n }'
}

: > "$storm/rotations"
# The loop that checks the time must not wait for the others. A map takes longer to fill on a busy machine.
renice -n -20 $$ > /dev/null
begin=$(now)
end=$((begin + seconds))
until [ "$(now)" -ge $end ] && { replaced || [ "$(now)" -ge $((end + 9 * seconds)) ]; }; do
	sleep 10
	echo "$(($(now) - begin)) s: $(grep -E '^(entries|successes|drops|generation|rotations):' stack_map_stat | tr '\n' ' ')"
done

rm "$storm/run"
echo "the storm is over, waiting for its processes"
limit=$(($(now) + 480))
for p in $pids; do
	while kill -0 "${p%:*}" 2> /dev/null && [ "$(now)" -lt $limit ]; do
		# The remaining checks are faster without tracing.
		for i in . instances/*; do
			echo 0 > "$i/tracing_on" || true
		done 2> /dev/null
		sleep 1
	done
	if kill -0 "${p%:*}" 2> /dev/null; then
		where "${p%:*}"
		fail "process ${p%:*} (${p#*:}) is stuck"
	fi
done
for f in "$storm"/count.*; do
	echo "${f##*/count.}: $(cat "$f") rounds"
	[ "$(cat "$f")" -gt 0 ] || fail "${f##*/count.} did nothing"
done
replaced || fail "recycling took no part"
[ ! -e "$storm/wrong" ] || fail "counts that don't add up in an instance: $(cat "$storm/wrong")"

stop_recording
echo nop > current_tracer
echo 0 > events/enable
for i in instances/anchor* instances/storm*; do
	[ -d "$i" ] || continue
	echo nop > "$i/current_tracer"
	rmdir "$i"
done
settle
wait_for_room .
cat stack_map_stat
check_map

echo "a quiet run at the end, with nothing lost"
echo 16384 > buffer_size_kb
echo 1 > options/stackmap
echo 1 > options/stacktrace
show_frames 0
echo reset > stack_map
clear_trace
echo 1 > events/kmem/enable
echo 1 > events/sched/enable
echo 1 > tracing_on
stackmap_work 2
stop_recording
wait_for_room .
cat stack_map_stat
check_map
check_counts

if dmesg | grep -E 'WARNING: |BUG: |INFO: (task|rcu)|possible (recursive|circular)|suspicious|KASAN: |Oops|Call Trace'; then
	fail "the kernel complained"
fi
