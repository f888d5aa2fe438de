#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The page "On a phone": trace-cmd alone records, files are copied by hand, and the reader knows threads and names. The
# time off the CPU is what awk makes of the report.
# takes: 15
. /guest/lib/lib.sh
. /guest/lib/record.sh
. /guest/lib/profile.sh

mkdir -p "$out"
cd "$out"
# shellcheck disable=SC2086 # words
for t in /proc/[0-9]*/task/[0-9]*; do p=${t#/proc/}; echo ${t##*/} ${p%%/*}; done > threads
trace-cmd record -C mono -O stacktrace -O stackmap -O stackmap-define -e sched_switch -e sched_waking -e sched_process_fork -e sched_process_exec -e task_newtask -e task_rename sleep 1 > /dev/null
cat /proc/kallsyms > kallsyms
trace-cmd reset > /dev/null 2>&1
cd $TRACING_DIR

ls "$out"
stackmap_dump report --weight off-cpu "$out" > "$TMPDIR/text" 2> "$TMPDIR/err"
cat "$TMPDIR/err"
head -n 5 "$TMPDIR/text"
events > "$TMPDIR/events"
same_tasks time "sleep [0-9]+" "$TMPDIR/events"
grep -q 'do_nanosleep\|hrtimer_nanosleep' "$TMPDIR/text" || fail "nobody has slept"
# Of threads of the kernel and of who was there before, the process is known; trace-cmd's recorders come between.
n=$(stackmap_dump report --by process --weight off-cpu --comm '[!t]*' "$out" 2>&1 | sed -nE 's/.*: ([0-9]+) samples of threads whose process.*/\1/p')
[ -z "$n" ] || fail "the process of $n samples is not known"
