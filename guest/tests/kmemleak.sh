#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Makes and removes instances with maps that are used, reset, freed or left to rmdir. Nothing leaks.
# takes: 120
# flavour: debug
# full: two minutes of scans; stackmap-rmdir.tc sees that memory is given back
# timeout: 900
. /guest/lib/lib.sh

leaks=/sys/kernel/debug/kmemleak
[ -e $leaks ] || skip "no kmemleak"
echo clear > $leaks

# The anchor avoids patching of the tracepoints, see storm.sh.
make_instance anchor
echo 1 > instances/anchor/events/sched/sched_switch/enable
echo 10 > /sys/module/ftrace_stackmap/parameters/bits
round=0
while [ $round -lt 24 ]; do
	dir=instances/leak$((round % 3))
	mkdir $dir
	echo 1 > $dir/options/stackmap
	echo 1 > $dir/options/stacktrace
	echo 1 > $dir/events/sched/sched_switch/enable
	stackmap_work 1
	head -n 3 $dir/stack_map > /dev/null
	head -c 30 $dir/stack_map_bin > /dev/null
	case $((round % 4)) in
	1)
		echo 0 > $dir/tracing_on
		echo reset > $dir/stack_map
		;;
	2)
		echo 0 > $dir/options/stackmap
		echo 0 > $dir/tracing_on
		echo 0 > $dir/stack_map
		;;
	3)
		echo 0 > $dir/options/stackmap
		echo 1 > $dir/options/stackmap
		;;
	esac
	rmdir $dir
	round=$((round + 1))
done
echo "$round instances made and removed"

# Blocks that are older than 5 seconds and not referenced in two scans.
sleep 6
echo scan > $leaks
echo scan > $leaks
# A later scan finds a pointer that was being moved during an earlier one.
if [ -s $leaks ]; then
	sleep 6
	echo scan > $leaks
fi
cat $leaks
[ ! -s $leaks ] || fail "memory leaks"
