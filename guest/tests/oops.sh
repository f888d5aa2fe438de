#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A panic with ftrace_dump_on_oops: the console shows the frames of the ids.
# takes: 4
# append: ftrace_dump_on_oops
# timeout: 300
# expect: panic
# expect-console: Dumping ftrace buffer
# expect-console: sched_process_fork: .*child_pid
# expect-console: : <stack_id [0-9]+>$
# expect-console: [ ]+=> kernel_clone$
# expect-console: [ ]+=> entry_SYSCALL_64_after_hwframe$
# reject-console: <stack trace>
# reject-console: stack_id [0-9]+> \(stale\)
. /guest/lib/lib.sh

stackmap_on
echo 1 > events/sched/sched_process_fork/enable
echo 1 > tracing_on
( : )
( : )
[ "$(count_ids trace)" -ge 2 ] || fail "nothing to dump"
trap - EXIT
echo c > /proc/sysrq-trigger
sleep 10
