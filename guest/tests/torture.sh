#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The kernel's own tests of RCU and of locks end with success while functions and events are recorded by ids,
# and the map is replaced all the time. The ids agree with full stacks.
# Usage: torture.sh [seconds of each]
# flavour: x86_64+torture
# when: full
# thread: multi
# cpus: 4
# timeout: 3600
. /guest/lib.sh
. /guest/compare.sh

seconds=${1:-60}

# Like record_many_functions() of the selftests, for an emulator with a thread for each CPU.
record_many_functions() {
	filter_some .
	echo 1 > options/func_stack_trace
	record_functions
}

torture() { # module type
	local rotations
	rotations=$(stat_of rotations $ids)
	dmesg -C
	modprobe "$1" torture_type="$2" stat_interval=15 verbose=0
	sleep "$seconds"
	rmmod "$1"
	! complaints || fail "the kernel complained about $1 $2"
	dmesg | grep -q 'End of test: SUCCESS' || { dmesg | tail -n 20; fail "$1 $2 did not end with success"; }
	dmesg | grep -E 'rtc:|Writes: ' | tail -n 1
	rotations=$(($(stat_of rotations $ids) - rotations))
	[ $rotations -gt 0 ] || fail "the map was not replaced meanwhile"
	echo "$1 $2: success in $seconds s, $rotations rotations"
}

make_pair torture 1024
start_pair
modprobe torture
for type in rcu srcu tasks; do
	torture rcutorture $type
done
for type in spin_lock_irq rw_lock_irq mutex_lock rwsem_lock; do
	torture locktorture $type
done
stop_pair
compare_pair 1000 2
check_map $ids
