#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the replacement of maps takes under fork and exec: the CPU time of all kworkers, the share of the stacks
# that are recorded in full, and how many stacks of older maps are kept for those that the buffer has ids of.
# Usage: scripts/guest -j icount -m 2048 -t 3000 guest/measure/recycle-cost.sh [seconds]
. /guest/lib/lib.sh

seconds=${1:-20}
kworkers='hist:keys=comm:vals=runtime if comm ~ "kworker*"'
stat_runtime=events/sched/sched_stat_runtime

work() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		( : )
		/usr/bin/true
		echo some text | cat > "$TMPDIR/file"
		ls /proc/self/fd > /dev/null
	done
}

# Right after a replacement, as what is kept is found out then.
kept() { # dir
	local n tries=0
	n=$(stat_of rotations "$1")
	while [ "$(stat_of rotations "$1")" -eq "$n" ] && [ $tries -lt 100 ]; do
		work
		tries=$((tries + 1))
	done
	echo 0 > "$1/tracing_on"
	n=$(show_frames 0 "$1"; awk -v gen="$(stat_of generation "$1")" '/: <(user_)?(unwind_)?stack_(id|split) / {
			sub(/^.*: </, "")
			sub(/^user_unwind_[a-z_]* [0-9a-f]*/, "")
			while (match($0, / [0-9]+[ >]/)) {
				id = substr($0, RSTART + 1, RLENGTH - 2)
				if (int(id / 524288) != gen)
					seen[id]
				$0 = substr($0, RSTART + RLENGTH - 1)
			}
		} END { print length(seen) }' "$1/trace")
	echo "    $(stat_of kept "$1") stacks are kept, the buffer has ids of $n"
}

measure() { # bits buffer_kb [option]
	local dir=instances/cost begin ns
	echo "$1" > /sys/module/ftrace_stackmap/parameters/bits
	make_instance cost
	echo 0 > $dir/tracing_on
	echo "$2" > $dir/buffer_size_kb
	for option in stackmap stacktrace $3; do
		echo 1 > "$dir/options/$option"
	done
	for event in sched irq timer kmem; do
		echo 1 > $dir/events/$event/enable
	done
	echo "$kworkers" > $stat_runtime/trigger
	begin=$(now)
	echo 1 > $dir/tracing_on
	while [ "$(now)" -lt $((begin + seconds)) ]; do
		work
	done
	ns=$(grep -o 'runtime: *[0-9]*' $stat_runtime/hist | awk '{ sum += $2 } END { printf "%.0f", sum }')
	echo "!$kworkers" > $stat_runtime/trigger
	awk -v what="bits=$1, $2 KB $3" -v ns="$ns" -v seconds=$(($(now) - begin)) -v drops="$(stat_of drops $dir)" \
		-v ids="$(stat_of successes $dir)" -v rotations="$(stat_of rotations $dir)" 'BEGIN {
			printf "%s: kworkers %.2f %% of the CPU, %d stacks, %.2f %% in full, %d rotations\n",
				what, ns / seconds / 1e7, ids + drops, 100 * drops / (ids + drops), rotations
		}'
	kept $dir
	echo 0 > $dir/events/enable
	rmdir $dir
}

measure 10 16384
measure 10 1024 userstacktrace
measure 10 1024 userstacktrace_delay
measure 14 16384
measure 14 1024 userstacktrace
