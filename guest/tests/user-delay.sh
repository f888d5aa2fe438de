#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# options/userstacktrace_delay: each cookie has exactly one stack once its task is back in user space. With
# processes that fork, exec, exit and are killed, kernel threads, NMIs, two instances at once, one through
# the map and one in full; with the option cleared, and an instance removed, while cookies are pending.
# takes: 34
# timeout: 300
. /guest/lib/lib.sh
[ -e options/userstacktrace_delay ] || skip "no deferred unwinding"

begin() { # instance
	make_instance "$1"
	echo 0 > "instances/$1/tracing_on"
	echo 16384 > "instances/$1/buffer_size_kb"
	echo 1 > "instances/$1/options/userstacktrace_delay"
}

# Prints "cookies stacks twice pending lost orphans": different cookies, stacks, cookies with two stacks,
# those without a stack whose task still is there, those whose task is gone, and stacks without a cookie.
cookies_of() { # trace
	awk 'match($0, /-[0-9]+ +\[/) {
		pid = substr($0, RSTART + 1) + 0
	}
	match($0, /: <user_unwind_(cookie|stack|stack_id|stack_split) [0-9a-f]+[ >]/) {
		split(substr($0, RSTART + 3, RLENGTH - 4), f, " ")
		if (f[1] == "user_unwind_cookie")
			cookie[f[2]] = pid
		else
			stack[f[2]]++
	}
	END {
		for (c in stack) {
			stacks += stack[c]
			twice += stack[c] > 1
			orphans += !(c in cookie)
		}
		for (c in cookie) {
			n++
			if (c in stack)
				continue
			if (system("[ -d /proc/" cookie[c] " ]") == 0)
				pending++
			else
				lost++
		}
		print n + 0, stacks + 0, twice + 0, pending + 0, lost + 0, orphans + 0
	}' "$1"
}

# In the order of time: events off, then what is pending, then the buffer off.
finish() { # instance
	echo 0 > "instances/$1/events/enable"
	settle
	echo 0 > "instances/$1/tracing_on"
	[ "$(lost_events "instances/$1")" -eq 0 ] || fail "$1: the buffer was too small for this test"
	cat "instances/$1/trace" > "$TMPDIR/$1"
	cookies_of "$TMPDIR/$1" > "$TMPDIR/$1.n"
	read -r cookies stacks twice pending lost orphans < "$TMPDIR/$1.n"
	echo "$1: $cookies cookies, $stacks stacks, $twice twice, $pending pending, $lost lost, $orphans without a cookie"
	[ "$cookies" -ge "$2" ] || fail "$1: too few cookies"
	[ "$twice" -eq 0 ] || fail "$1: cookies with two stacks"
	[ "$lost" -eq 0 ] || fail "$1: cookies without a stack"
	[ "$orphans" -eq 0 ] || fail "$1: stacks without a cookie"
	# This shell, init, and what else waits in a system call.
	[ "$pending" -le 4 ] || fail "$1: too many tasks are not back in user space"
}

events='sched/sched_switch sched/sched_process_exit syscalls/sys_enter_close syscalls/sys_exit_execve
	exceptions/page_fault_user irq/softirq_entry nmi/nmi_handler'

echo "== two instances"
begin ids
begin full
echo 1 > instances/ids/options/stackmap
for i in ids full; do
	for e in $events; do
		echo 1 > "instances/$i/events/$e/enable"
	done
done
for i in ids full; do
	echo 1 > "instances/$i/tracing_on"
done
stackmap_work 5
for _ in 1 2 3 4 5; do
	userstack -l 5 &
	sleep .05
	{ kill -9 $! && wait $! || true; } 2> /dev/null
done
finish ids 300
finish full 300
! grep -q 'user_unwind_stack ' "$TMPDIR/ids" || fail "a full stack with the map"
! grep -q 'stack_id\|stack_split' "$TMPDIR/full" || fail "an id without the map"
check_map instances/ids
check_counts instances/ids
[ "$(stat_of drops instances/ids)" -eq 0 ] || fail "drops"
! grep -E 'kworker.*user_unwind|<idle>-0.*user_unwind' "$TMPDIR/ids" "$TMPDIR/full" || fail "kernel threads have cookies"
grep -q 'sched_process_exit' "$TMPDIR/ids" || fail "no task ended"
# The two saw the same entries into the kernel, with the same stacks. An address and the offset in a file
# have the same last digits. With the map, a stack ends where it leaves executable memory.
for i in ids full; do
	awk '/^ => / { if (c) { gsub(/[]>]$/, ""); s[c] = s[c] " " substr($0, length($0) - 2) } next }
		{ c = "" }
		match($0, /: <user_unwind_stack(_id|_split)? [0-9a-f]+/) {
			n = split(substr($0, RSTART, RLENGTH), f, " ")
			c = f[n]
		}
		END { for (c in s) print c, s[c] }' "$TMPDIR/$i" | sort > "$TMPDIR/$i.stacks"
done
sed 's/$/ \//' "$TMPDIR/ids.stacks" | join - "$TMPDIR/full.stacks" > "$TMPDIR/common"
awk -F' / ' '{ n = split($1, ids, " "); m = split($2, full, " ")
	for (i = 2; i <= n; i++) {
		frames++
		if (ids[i] != full[i - 1]) { print; exit 1 } }
	if (n < m + 1) cut++ }
	END { print frames, "frames are equal,", cut + 0, "stacks are cut" }' "$TMPDIR/common" || fail "the instances have other stacks"
[ "$(wc -l < "$TMPDIR/common")" -ge 300 ] || fail "too few entries in both instances"
rmdir instances/ids instances/full

echo "== NMIs in one system call"
begin nmi
echo 1 > /proc/sys/kernel/printk
echo 1 > instances/nmi/options/stackmap
echo 1 > instances/nmi/events/nmi/nmi_handler/enable
taskset -c 1 dd if=/dev/urandom of=/dev/null bs=500M count=10000 2> /dev/null &
pid=$!
sleep 1
echo 1 > instances/nmi/tracing_on
taskset -pc 0 $$ > /dev/null
for ((n = 0; n < 150; n++)); do
	echo l > /proc/sysrq-trigger
done
{ kill $pid && wait $pid || true; } 2> /dev/null
finish nmi 1
most=$(awk 'match($0, /<user_unwind_cookie [0-9a-f]+/) { n[substr($0, RSTART, RLENGTH)]++ }
	END { for (c in n) if (n[c] > most) most = n[c]; print most + 0 }' "$TMPDIR/nmi")
echo "up to $most events in one system call"
[ "$most" -ge 100 ] || fail "too few NMIs in one system call"
rmdir instances/nmi

# A process that waits in a system call.
start_reader() { # instance that records nothing else
	mkfifo "$TMPDIR/fifo"
	bash -c 'read -r _ < "$TMPDIR/fifo"' &
	pid=$!
	echo $pid > "instances/$1/set_event_pid"
	exec 3> "$TMPDIR/fifo"
	settle
}

# The same, and its cookie is recorded.
wait_in_read() { # instance
	echo 1 > "instances/$1/events/syscalls/sys_enter_read/enable"
	echo 1 > "instances/$1/tracing_on"
	start_reader "$1"
	grep -q -- "-$pid .*user_unwind_cookie" "instances/$1/trace" || fail "$1: nobody waits"
	last=$(sed -n 's/.*<user_unwind_cookie \([0-9a-f]*\)>/\1/p' "instances/$1/trace" | tail -n 1)
	! grep -q "<user_unwind_stack[_a-z]* $last" "instances/$1/trace" || fail "$1: it does not wait"
}

wake_up() {
	echo go >&3
	exec 3>&-
	wait $pid
	rm "$TMPDIR/fifo"
}

echo "== the option is cleared"
begin cleared
wait_in_read cleared
echo 0 > instances/cleared/options/userstacktrace_delay
wake_up
[ "$(grep -c "<user_unwind_stack[_a-z]* $last" instances/cleared/trace)" -eq 1 ] || fail "the pending stack is lost"
grep "user_unwind" instances/cleared/trace | tail -n 3
rmdir instances/cleared

# A trigger with a filter looks at the event, although nothing is recorded.
echo "== recording begins in a system call"
begin begun
echo 1 > instances/begun/events/syscalls/sys_enter_read/enable
echo 'traceoff if fd == 12345' > instances/begun/events/syscalls/sys_enter_read/trigger
start_reader begun
echo 1 > instances/begun/tracing_on
wake_up
finish begun 1
rmdir instances/begun

echo "== the instance is removed"
begin removed
wait_in_read removed
echo 0 > instances/removed/events/enable
rmdir instances/removed
wake_up

# The FPU's event comes after the last check for work. Two processes take turns on a CPU.
late=events/x86_fpu/x86_fpu_regs_activated/enable
if [ -e $late ]; then
	echo "== too late for the entry"
	begin early
	begin late
	echo 65536 > instances/early/per_cpu/cpu0/buffer_size_kb
	echo 1 > instances/early/events/syscalls/sys_enter_close/enable
	echo 1 > instances/late/$late
	for i in early late; do
		echo 1 > "instances/$i/tracing_on"
	done
	taskset 1 userstack -l 3 &
	pid=$!
	taskset 1 userstack -l 5 &
	sleep .6
	{ kill -9 $pid $! && wait $pid $! || true; } 2> /dev/null
	finish early 1000
	finish late 20
	rmdir instances/early instances/late
	sort -m -s -k4,4 <(grep userstack "$TMPDIR/early") <(grep userstack "$TMPDIR/late") | awk '
		/: sys_close|: x86_fpu/ { close_of[$1] = /: sys_close/ }
		match($0, /user_unwind_cookie [0-9a-f]+/) {
			c = substr($0, RSTART, RLENGTH)
			if (!close_of[$1]) {
				events++
				late[c]
				next
			}
			closes++
			twice += closed[c]++ > 0
			after += c in late
		}
		END { print closes, "system calls,", events, "late events;", twice + 0, "share a cookie,",
			after + 0, "have that of an earlier event"
			exit closes < 1000 || events < 20 || twice || after }' || fail "two entries with one cookie"
fi

echo "== again and again"
mkdir "$TMPDIR/other"
for ((n = 0; n < 20; n++)); do
	make_instance again
	echo 1 > instances/again/options/stackmap
	echo 1 > instances/again/options/userstacktrace_delay
	echo 1 > instances/again/events/sched/enable
	# It has its own file, because > empties the file that another one may be reading.
	(TMPDIR=$TMPDIR/other; stackmap_work 1) &
	stackmap_work 1
	echo $((n % 2)) > instances/again/options/userstacktrace_delay
	rmdir instances/again
	wait
done
echo "deferred user stacks: passed"
