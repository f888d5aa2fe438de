#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Instances in memory that survives a reboot, and read-only copies of them, refuse the option, because
# their ids could not be resolved after the reboot.
# takes: 4
# append: reserve_mem=12M:4096:trace trace_instance=boot_map@trace trace_instance=copy=boot_map trace_options=stackmap
# timeout: 300
. /guest/lib/lib.sh

[ "$(cat options/stackmap)" = 1 ] || fail "the top level takes the option"
ls instances
[ -d instances/boot_map ] || { dmesg | grep -i -E "trac|reserve"; fail "no instance at boot"; }
for i in boot_map copy; do
	[ -d instances/$i ] || { echo "no instance $i"; continue; }
	[ "$(cat instances/$i/options/stackmap)" = 0 ] || fail "$i inherits the option"
	expect_errno "Operation not supported" instances/$i/options/stackmap 1
	[ "$(cat instances/$i/options/stackmap)" = 0 ] || fail "$i has the option on after all"
	# Setting it to 0 is no error.
	write_once instances/$i/options/stackmap 0 || fail "0 is refused"
	[ ! -e instances/$i/trace_options ] ||
		expect_errno "Operation not supported" instances/$i/trace_options stackmap
done
[ "$(stat_of memory instances/boot_map)" -eq 0 ] || fail "memory for nothing"
if [ -d instances/copy ]; then
	case $(ls -l instances/copy/stack_map) in -r--r-----*) ;; *) fail "a read-only instance has a reset" ;; esac
	expect_errno "Permission denied" instances/copy/stack_map reset
fi

# It records full stacks.
cd instances/boot_map || exit 1
echo 1 > options/stacktrace
echo 1 > events/sched/sched_process_fork/enable
echo 1 > tracing_on
( : )
echo 0 > tracing_on
echo 0 > events/sched/sched_process_fork/enable
[ "$(count_full trace)" -gt 0 ] || fail "no stack"
[ "$(count_ids trace)" -eq 0 ] || fail "an id"
echo 0 > options/stacktrace
