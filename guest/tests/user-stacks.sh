#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# User stacks: what the map prints are the true stacks of a program that knows them (guest/programs/userstack.c),
# taken at once and on the way back to user space. The first 8 frames, and what sym-userobj prints of them,
# are those of a full user stack.
# takes: 12
# timeout: 300
. /guest/lib/lib.sh
. /guest/lib/compare.sh
command -v userstack > /dev/null || skip "there is no userstack here"

ids=instances/ids
full=instances/full
# The stacks of a program, in the instance "ids" and in "$TMPDIR/truth".
record_program() { # userstack's arguments
	both tracing_on 1
	userstack "$@" > "$TMPDIR/truth"
	both tracing_on 0
	stacks_of instances/ids/trace > "$TMPDIR/ids"
}

# A program that does the same again and again, until both buffers have wrapped. It lives on, as $pid.
record_until_wrapped() { # program arguments...
	both trace ""
	both tracing_on 1
	taskset 1 "$@" &
	pid=$!
	for ((i = 0; i < 300; i++)); do
		[ "$(lost_events instances/ids)" -eq 0 ] || [ "$(lost_events instances/full)" -eq 0 ] || break
		sleep .1
	done
	both tracing_on 0
	[ $i -lt 300 ] || fail "$1 does not fill the buffers"
}

make_instance ids
make_instance full
both buffer_size_kb 4096
both events/syscalls/sys_enter_close/filter "fd > 1000"
both events/syscalls/sys_enter_close/enable 1
echo 1 > instances/ids/options/stackmap

deep=0
for option in userstacktrace userstacktrace_delay; do
	[ -e options/$option ] || continue
	# These have the files of the frames, which a full stack has not.
	by_file=
	[ $option = userstacktrace ] || by_file=-f
	both options/userstacktrace 0
	both trace ""
	echo 1 > "instances/ids/options/$option"
	echo 1 > instances/full/options/userstacktrace
	record_program $by_file 1 2 3 10 100 124 125 126 149
	stacks_of instances/full/trace > "$TMPDIR/full"
	# The 127 innermost frames are recorded.
	innermost 127 "$TMPDIR/truth" > "$TMPDIR/want"
	diff "$TMPDIR/want" "$TMPDIR/ids" || fail "$option: not the stacks of the program"
	innermost 8 "$TMPDIR/truth" > "$TMPDIR/want"
	[ -n "$by_file" ] || diff "$TMPDIR/want" "$TMPDIR/full" || fail "full user stacks are not those of the program"
	[ "$(awk 'NF == 128' "$TMPDIR/ids" | wc -l)" -eq 3 ] || fail "$option: three stacks must have 127 frames"
	deep=$((deep + $(awk 'NF > 128' "$TMPDIR/truth" | wc -l)))
	[ "$(stat_of deep instances/ids)" -eq "$deep" ] || fail "$option: not $deep stacks are counted as deeper"
	stackmap_dump map --top 1 instances/ids/stack_map_bin 2>&1 > /dev/null | grep ' 127 frames' ||
		fail "no word of frames that are missing"
	echo "$option: $(wc -l < "$TMPDIR/ids") stacks are true, up to $(awk '{ print NF - 1 }' "$TMPDIR/ids" | sort -n | tail -n 1) frames"

	# 0 ends a stack, in the map, too.
	both trace ""
	record_program $by_file -z 1 5 30
	diff "$TMPDIR/truth" "$TMPDIR/ids" || fail "$option: a stack does not end at 0"
	! grep -E '^  \[[0-9]+\] (0x)?0+$' instances/ids/stack_map || fail "$option: frames behind 0"
	[ "$(stat_of drops instances/ids)" -eq 0 ] || fail "$option: drops"
	both options/$option 0
done

# Programs of all kinds: each of their events has the same stack in both instances, up to 8 frames.
stacks_of_tasks() { # trace
	awk '/^ => / { if (at && ++n[at] <= 8) frames[at] = frames[at] $0; next }
		match($0, /-[0-9]+ +\[/) { pid = substr($0, RSTART + 1) + 0 }
		/: <user/ { at = last[pid]; next }
		/: sys_/ { at = last[pid] = ++events; task[events] = pid; at = 0 }
		END { for (i = 1; i <= events; i++) print task[i], frames[i] }' "$1" | sort -s -n -k1,1
}
both options/userstacktrace 0
both events/syscalls/sys_enter_close/filter 0
both options/event-fork 1
for e in openat close mprotect munmap execve wait4 clone; do
	both "events/syscalls/sys_enter_$e/enable" 1
done
mkfifo "$TMPDIR/go"
(
	trap - EXIT
	read -r _ < "$TMPDIR/go"
	stackmap_work 10
	userstack 7 77 > /dev/null
	trace-cmd --help > /dev/null || true
) &
pid=$!
both set_event_pid $pid
both options/userstacktrace 1
both trace ""
both tracing_on 1
echo > "$TMPDIR/go"
wait $pid
both tracing_on 0
for i in ids full; do
	[ "$(lost_events instances/$i)" -eq 0 ] || fail "the buffer was too small for this test"
	stacks_of_tasks instances/$i/trace > "$TMPDIR/$i"
done
diff "$TMPDIR/full" "$TMPDIR/ids" || fail "the map has other stacks"
awk 'NF > 1 { n++; tasks[$1] } END { for (t in tasks) nt++; print n " stacks of " nt " tasks are equal"
	exit n < 300 || nt < 10 }' "$TMPDIR/ids" || fail "too few"
both set_event_pid ""
both events/enable 0
both events/syscalls/sys_enter_close/filter "fd > 1000"
both events/syscalls/sys_enter_close/enable 1

# As long as the program lives, sym-userobj prints files. It looks each of them up, which takes long. One CPU:
# what is left on another may begin with a stack that has lost its event.
both buffer_size_kb 16
both options/sym-userobj 1
both options/userstacktrace 1
record_until_wrapped userstack -l 100
# The last event may be without its stack.
stacks_of instances/ids/trace | awk 'NF > 1' | sort -u > "$TMPDIR/ids"
stacks_of instances/full/trace | awk 'NF > 1' | sort -u > "$TMPDIR/full"
kill $pid
cat "$TMPDIR/full"
[ "$(wc -l < "$TMPDIR/full")" -eq 1 ] && [ "$(wc -l < "$TMPDIR/ids")" -eq 1 ] || fail "more than one stack"
grep -q '/userstack\[+0x[0-9a-f]*\]' "$TMPDIR/ids" || fail "no file is printed"
innermost 8 "$TMPDIR/ids" | diff - "$TMPDIR/full" || fail "sym-userobj prints something else"

# An address below all mappings is in no file.
if command -v userstack.nopie > /dev/null; then
	record_until_wrapped userstack.nopie -l -r 0x1000 1
	head -n 1000 instances/ids/trace > "$TMPDIR/ids"
	head -n 1000 instances/full/trace > "$TMPDIR/full"
	kill $pid
	for i in ids full; do
		grep -q '^ =>  <0*1000>$' "$TMPDIR/$i" || { head -n 20 "$TMPDIR/$i"; fail "$i: no such address"; }
		! grep '\[+0xf' "$TMPDIR/$i" || fail "$i: a file that does not have the address"
	done
fi
both options/sym-userobj 0

# Kernel threads have no user stack.
both events/syscalls/sys_enter_close/enable 0
both trace ""
both events/sched/sched_switch/enable 1
both tracing_on 1
sleep .3
both tracing_on 0
grep -q '<idle>-0.*: sched_switch' instances/ids/trace
! grep '<idle>-0.*: <user' instances/ids/trace || fail "a kernel thread with a user stack"
check_map instances/ids
echo "user stacks: passed"
