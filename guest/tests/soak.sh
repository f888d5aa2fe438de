#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A small map and no end of new stacks: two CPUs fork and exec all the time, recording sched, irq, timer
# and kmem events and some functions, in a buffer that overwrites. With recycling nearly all stacks
# are ids, none that a reader finds is stale, and the memory keeps its bound. Then the same without.
# Usage: soak.sh [seconds [seconds of a line of the table]]
# takes: 51
# full: storm.sh, rotate-equivalence.sh and KUnit replace maps under load, too
# timeout: 500
# shellcheck disable=SC2154 # read_stat sets them
. /guest/lib/lib.sh

seconds=${1:-30}
step=${2:-10}
param=/sys/module/ftrace_stackmap/parameters
buffer_kb=256
dir=instances/soak

start_load() {
	: > "$TMPDIR/run"
	for cpu in 0 1; do
		(
			trap - EXIT
			set +e
			file=$TMPDIR/file.$cpu
			while [ -e "$TMPDIR/run" ]; do
				( : )
				/usr/bin/true
				{ echo some text | cat > "$file"; }
				read -r _ < "$file"
				ls /proc/self/fd > /dev/null
				rm "$file"
			done
		) 2> /dev/null &
		taskset -cp $cpu $! > /dev/null
	done
}

now() {
	read -r uptime _ < /proc/uptime
	uptime=${uptime%.*}
}

# The statistics as variables: entries, kept and so on. In one go, since the shell reads and seeks.
read_stat() {
	cat $dir/stack_map_stat > "$TMPDIR/stat"
	while read -r name value _; do
		printf -v "${name%:}" '%s' "$value"
	done < "$TMPDIR/stat"
}

record() { # seconds
	# In this order: the function tracer empties the buffer when it starts, and a moment after tracing_on
	# was set. What was recorded before would be counted, and missing in the buffer.
	record_functions $dir
	for e in sched irq timer kmem; do
		echo 1 > $dir/events/$e/enable
	done
	start_load
	printf '%8s %8s %7s %9s %10s %11s %9s %10s %10s\n' seconds entries kept recycled rotations \
		successes drops success memory
	now
	begin=$uptime line=$((begin + step)) reads=0 most=0 most_kept=0 old_successes=0 old_drops=0
	while [ "$uptime" -lt $((begin + $1)) ]; do
		sleep 1
		# A reader that is slower than the writer never comes to an end.
		nice -n -20 head -n 1500 $dir/trace > "$TMPDIR/trace"
		reads=$((reads + 1))
		grep -m 3 '(stale)' "$TMPDIR/trace" && fail "stale ids in the buffer"
		read_stat
		[ "$memory" -le $most ] || most=$memory
		[ "$kept" -le $most_kept ] || most_kept=$kept
		now
		[ "$uptime" -ge $line ] || continue
		new=$((successes - old_successes)) new_drops=$((drops - old_drops))
		printf '%8d %8d %7d %9d %10d %11d %9d %8d.%d%% %7d KB\n' $((uptime - begin)) "$entries" \
			"$kept" "$recycled" "$rotations" "$new" "$new_drops" \
			$((100 * new / (new + new_drops))) $((1000 * new / (new + new_drops) % 10)) \
			$((memory / 1024))
		old_successes=$successes old_drops=$drops line=$((line + step))
	done
	rm "$TMPDIR/run"
	wait
	stop_recording $dir
	read_stat
	permille=$((1000 * successes / (successes + drops)))
	echo "$reads readings, $rotations rotations, at most $((most / 1024)) KB and $most_kept kept stacks;" \
		"$((permille / 10)).$((permille % 10))% are ids"
}

check_asked() {
	check_recorded $((successes + drops)) $dir
	check_map $dir
}

setup() { # recycle
	set_opt $param/recycle "$1"
	make_small_instance soak
	echo $buffer_kb > $dir/buffer_size_kb
	show_frames 0 $dir
	for f in vfs_read vfs_write vfs_open kernel_clone do_exit handle_mm_fault pipe_write; do
		! grep -qx $f available_filter_functions || echo $f >> $dir/set_ftrace_filter
	done
	echo 1 > $dir/options/func_stack_trace
	one=$(stat_of memory $dir)
}

echo "With recycling"
setup 1
record "$seconds"
# Two maps, and what is kept: no more than four maps, or than the buffers.
buffers=$((buffer_kb * 1024 * $(find $dir/per_cpu -name 'cpu[0-9]*' | wc -l)))
bound=$((2 * one + (4 * one > buffers ? 4 * one : buffers)))
[ $most -le $bound ] || fail "$most bytes, the bound is $bound"
[ "$rotations" -ge 5 ] || fail "this load does not need recycling"
# The work takes no more than 5 % of a CPU; what is new meanwhile is recorded in full.
[ $permille -ge 950 ] || fail "too many stacks were recorded in full"
# A burst is what comes faster than the map is replaced.
[ "$drops" -eq $((drops_entries + drops_arena + drops_parts)) ] || { cat $dir/stack_map_stat; fail "drops of other reasons"; }
check_asked
show_frames 1 $dir
echo 1 > $dir/options/sym-offset
echo "$(check_resolved $dir/trace $dir) stacks in the buffer, each with its frames"
rmdir $dir
with=$permille

echo "Without"
setup 0
record $((seconds < 360 ? seconds / 3 : 120))
[ "$rotations" -eq 0 ] || fail "a rotation, with recycle=0"
[ $permille -lt $((with - 20)) ] || fail "the map did not fill up, so the load says nothing"
check_asked
