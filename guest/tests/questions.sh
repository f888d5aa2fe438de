#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The questions that bcc's tools answer, as the table of the man page has them: a program knows the numbers, and awk
# makes them of the report of the same recording. In all forms of output they are the same.
# takes: 60
# full: leaks.sh, off-cpu.sh and the tests of the tool have each weight; the page changes seldom
# timeout: 400
. /guest/lib/lib.sh
. /guest/lib/record.sh
. /guest/lib/profile.sh

command -v known > /dev/null || skip "there is no known here"
[ -e options/func_stack_trace ] || [ -e set_ftrace_filter ] || skip "no function tracer"

trap 'at_exit "cd $TRACING_DIR; echo > kprobe_events; echo > uprobe_events"' EXIT

folded() { stackmap_dump export --format folded -q "$@" "$out"; }
# same WHAT A B
same() { echo "$1: $2, $3 are right"; [ "$2" -gt 0 ] && [ "$2" -eq "$3" ] || fail "$1: they differ"; }
# within WHAT A B: B is what the program has measured, with its own calls and what a busy machine adds.
within() {
	echo "$1: $2, $3 by the program's clock"
	[ "$2" -le "$3" ] && [ "$2" -ge $(($3 / 2)) ] || fail "$1: too far apart"
}
# recorded_known ARGUMENTS...: recorded with the options in $options. Sets $pid and $truth.
recorded_known() {
	# shellcheck disable=SC2016 # the inner shell expands it
	recorded 0 -o "$out" "${options[@]}" -- sh -c 'echo $$ > "$TMPDIR/pid"; exec known "$@"' sh "$@"
	case $err in
	*"were lost"*) fail "entries were lost" ;;
	esac
	pid=$(cat "$TMPDIR/pid") truth=$(cat "$TMPDIR/stdout")
	trace-cmd report -q -t -i "$out/trace.dat" 2> /dev/null > "$TMPDIR/report"
}

echo "stackcount"
options=(--function 'vfs_rea[d]')
recorded_known read 200
recorded 1 -o "$out-none" --function 'no_such*' touch "$TMPDIR/ran"
says "there is no function no_such* to trace"
[ ! -e "$TMPDIR/ran" ] && [ ! -e "$out-none" ] || fail "it has begun"
same "vfs_read" "$(folded -e function --comm known | total)" "$truth"
same "vfs_read in the report" "$(folded -e function | total)" "$(grep -c ': function: *vfs_read' "$TMPDIR/report")"
same "its caller" "$(stackmap_dump report -q --comm known --callers vfs_read "$out" | awk '$NF == "ksys_read" { print $1 }')" "$truth"

echo "funclatency"
echo 'p:probes/enter vfs_read' > kprobe_events
echo 'r:probes/leave vfs_read' >> kprobe_events
options=(-u -e probes)
recorded_known pipe 10
within "vfs_read" "$(folded --weight latency=enter,leave,common_pid --comm known --grep takes | total)" "$truth"
us=$(sed -nE 's/^.*-([0-9]+) +\[[0-9]+\].* ([0-9]+)\.([0-9]{9}): +(enter|leave): .*$/\1 \2\3 \4/p' "$TMPDIR/report" |
	awk '$3 == "enter" { since[$1] = $2 } $3 == "leave" && $1 in since { n += $2 - since[$1]; delete since[$1] }
		END { printf "%d\n", n / 1000 }')
same "all of the report" "$(folded --weight latency=enter,leave,common_pid | total)" "$us"
echo > kprobe_events

echo "offcputime, offwaketime, wakeuptime"
options=(-a -u -b 8192 -e "sched_switch,sched_waking")
recorded_known wake 20
events > "$TMPDIR/events"
for what in time preempted; do
	same_tasks $what "[^ ]+ $pid" "$TMPDIR/events"
done
[ -s "$TMPDIR/tool.time" ] || fail "it was never off the CPU"
us=$(folded --weight off-cpu --tid "$pid" --grep 'waits\+' | total)
within "waits" "$us" "$truth"
folded --weight off-cpu --wakers --tid "$pid" --grep 'waits\+' > "$TMPDIR/woken"
cat "$TMPDIR/woken"
same "woken in wakes by helper" "$(grep ';waits\[known\];.*;\[woken_by\];\[helper\];.*;wakes\[known\];helper\[known\];' "$TMPDIR/woken" | total)" "$us"
same "of who wakes" "$(folded --weight off-cpu --wakers --tid "$pid" --grep 'waits\+' --callees '[woken by]' |
	grep '^\[woken_by\];\[helper\];.*;wakes\[known\];' | total)" "$us"
us=$(folded --weight off-cpu --comm helper --grep nanosleep | total)
same "woken by the clock" "$(folded --weight off-cpu --wakers --comm helper --grep nanosleep | grep ';\[woken_by\];\[interrupt_handler\];' | total)" "$us"

echo "forms, and by"
for args in "--weight off-cpu" "--weight off-cpu --wakers" "-e sched_waking"; do
	# shellcheck disable=SC2086 # words
	{
		all=$(folded $args | total)
		same "text, $args" "$(stackmap_dump stacks -q $args "$out" | awk '/^[0-9]+ \(/ { n += $1 } END { print n }')" "$all"
		same "JSON, $args" "$(stackmap_dump stacks -q --json $args "$out" | sed -n 's/^ {"weight": \([0-9]*\),.*/\1/p' | total)" "$all"
		for by in cpu event task process; do
			same "by $by, $args" "$(stackmap_dump report -q --by $by $args "$out" |
				awk '/^# .*: [0-9]+ \([0-9.]+%\)$/ { n += $(NF - 1) } END { print n }')" "$all"
		done
		[ -z "$(stackmap_dump diff -q $args "$out" "$out")" ] || fail "it differs from itself"
	}
done
stackmap_dump report -q --weight off-cpu --by process "$out" | grep '^# known-'"$pid:"
! stackmap_dump report -q --weight off-cpu --by process "$out" | grep '^# helper-' || fail "a thread is a process"

echo "uninterruptible"
options=(-a -u -b 8192 -e sched_switch)
recorded_known vfork 10
events > "$TMPDIR/events"
same_tasks uninterruptible "[^ ]+ $pid" "$TMPDIR/events"
within "state D" "$(folded --weight off-cpu:uninterruptible --tid "$pid" --grep 'vfork' | total)" "$truth"

echo "memleak of user space"
read -r malloc free < <(known where)
echo "r:heap/malloc $(command -v known):$malloc ptr=\$retval" > uprobe_events
echo "p:heap/free $(command -v known):$free ptr=%di" >> uprobe_events
# On the way back, the program is still in the probe.
options=(--user=now -e heap)
recorded_known heap
same "leaky" "$(folded --weight outstanding=malloc,free,ptr --grep 'leaky\+' | total)" "$truth"
[ "$(folded --weight outstanding=malloc,free,ptr --grep 'tidy\+' | total)" -eq 0 ] || fail "tidy"
same "all of the report" "$(folded --weight outstanding=malloc,free,ptr | total)" "$(awk '
	{ ptr = ""; for (i = 1; i <= NF; i++) if (sub(/^ptr=/, "", $i)) ptr = $i }
	/ malloc: / { held[ptr] = 1 }
	/ free: / { delete held[ptr] }
	END { for (ptr in held) n++; print n }' "$TMPDIR/report")"
