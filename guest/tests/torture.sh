#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rcutorture and locktorture find no fault while an instance records all that they do into a small map, which
# is replaced under them, and two record the same processes by ids and in full, with the same stacks.
# Usage: torture.sh [seconds of each]
# takes: 400
# flavour: x86_64+torture
# full: a kernel of its own, a minute for each kind of lock; storm.sh has RCU and lockdep checks
# thread: multi
# cpus: 4
# timeout: 2400
. /guest/lib/lib.sh
. /guest/lib/compare.sh

seconds=${1:-60}
record_many_functions() {
	filter_some .
	echo 1 > options/func_stack_trace
	record_functions
}

# torture MODULE TYPE: runs it, and wants its own verdict.
torture() {
	dmesg -C
	modprobe "$1" torture_type="$2" stat_interval=15
	sleep "$seconds"
	rmmod "$1"
	! complaints || fail "the kernel complained during $1 $2"
	dmesg | grep -q -- '--- End of test: SUCCESS' || { dmesg | tail -n 20; fail "$1 $2 found a fault"; }
	echo "$1 $2: SUCCESS, $(stat_of successes $all) by id, $(stat_of drops $all) in full," \
		"$(stat_of rotations $all) rotations"
}

make_pair torture 256
start_pair
both tracing_on 1
make_small_instance all
all=instances/all
[ ! -e $all/options/userstacktrace_delay ] || echo 1 > $all/options/userstacktrace_delay
for event in sched irq timer rcu kmem/kmalloc kmem/kfree; do
	echo 1 > $all/events/$event/enable
done
(cd $all && record_many_functions)
modprobe torture
for type in rcu srcu tasks; do
	torture rcutorture $type
done
for type in spin_lock_irq rw_lock_irq mutex_lock rwsem_lock; do
	torture locktorture $type
done
stop_pair
stop_recording $all
[ "$(stat_of rotations $all)" -gt 0 ] || fail "the map was not replaced"
check_map $all
compare_pair 100 1
check_map $ids
