#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# stress-ng loads the machine while a fuzzer does to instances whatever their files allow. After each minute of
# load, with recording stopped: the kernel has not complained, ids and full stacks of the same events agree, no id
# is stale, the counts add up, the memory is within its bound. At the end everything is given back.
# Usage: stress.sh [minutes] [seed [faults]]
# The same seed gives the same loads and the same steps of the fuzzer. With "faults", one allocation in a
# hundred fails, those of the loads, of the fuzzer and of the work that replaces maps.
# flavour: debug
# shellcheck disable=SC2030,SC2031 # the pair has a TMPDIR of its own
. /guest/lib/lib.sh
. /guest/lib/compare.sh

minutes=${1:-5} seed=${2:-$RANDOM} faults=${3:-}
debug=/sys/kernel/debug
command -v stress-ng > /dev/null || skip "no stress-ng"
# Those that fill the memory are not among them: the kernel would end this script.
loads=(context switch yield nice schedpolicy affinity pthread mutex futex sem pipe eventfd poll
	clone fork vfork spawn exec wait daemon zombie kill signal sigq sigfd sigsegv sigchld itimer timer timerfd alarm
	nanosleep hrtimers fault mmap mmapmany mprotect mremap munmap madvise vm shm memfd
	dentry dir open close dup fcntl flock rename symlink link touch utime fstat getdent procfs tmpfs hdd copy-file
	mq msg sock sockpair splice tee sendfile userfaultfd vm-splice vdso get getrandom sysinfo set)
fuzzed="fuzz1 fuzz2"
events="sched kmem irq timer syscalls/sys_enter_close syscalls/sys_enter_read"
# At most four maps of 2^14 stacks for what is kept, two to look up, one to come, all smaller ones, and caches.
memory_bound=$((10 * 3670016))

# In place of the thousands that the helpers of the selftests take. Once, since each function is patched.
record_many_functions() {
	! grep -qx function current_tracer || return 0
	filter_some .
	echo 1 > options/func_stack_trace
	record_functions
}

enable_events() { # dir
	for event in $events; do
		echo 1 > "$1/events/$event/enable"
	done
}

others_online() { # 0|1
	local online
	for online in /sys/devices/system/cpu/cpu[1-9]*/online; do
		echo "$1" > "$online"
	done
}

# Two instances that trace the same all the time, without recording. A function or tracepoint with two other users
# is not patched when a user comes or goes: QEMU with a thread for each CPU does not survive much of that, with
# more than one of them online.
make_anchors() {
	local name
	for name in anchor1 anchor2; do
		make_instance $name
		echo 0 > instances/$name/tracing_on
		echo 1 > instances/$name/options/stackmap
		enable_events instances/$name
		(cd instances/$name && record_many_functions)
		echo 0 > instances/$name/tracing_on
	done
}

is_there() { [ -e "instances/$1/stack_map" ]; }

make_fuzzed() { # name
	local dir=instances/$1
	mkdir "$dir" || return
	echo 64 > "$dir/buffer_size_kb"
	echo 1 > "$dir/options/stackmap"
	echo 1 > "$dir/options/stacktrace"
	enable_events "$dir"
	[ "$1" != fuzz1 ] || (cd "$dir" && record_many_functions)
}

hotplug() { # CPU
	local online=/sys/devices/system/cpu/cpu$1/online
	[ ! -w "$online" ] || { echo 0 > "$online"; echo 1 > "$online"; }
}

# One step of the fuzzer. Any command may fail. A change of the size of sub-buffers and a snapshot of one CPU are
# not for the same instance: the two buffers may then differ in size, and the kernel warns, without the map as well.
step() { # name
	local dir=instances/$1 n=$((RANDOM % 27)) file
	is_there "$1" || { make_fuzzed "$1"; return; }
	case $n in
	0) echo $((RANDOM % 2)) > "$dir/options/stackmap" ;;
	1) echo $((RANDOM % 2)) > "$dir/options/stacktrace" ;;
	2) echo $((RANDOM % 2)) > "$dir/options/stackmap-define" ;;
	3) echo $((RANDOM % 2)) > "$dir/options/stackmap-frames" ;;
	4) echo $((RANDOM % 2)) > "$dir/options/userstacktrace" ;;
	5) echo $((RANDOM % 2)) > "$dir/options/userstacktrace_delay" ;;
	6) echo reset > "$dir/stack_map" ;;
	7) echo 0 > "$dir/tracing_on"; echo reset 1<> "$dir/stack_map"; echo 1 > "$dir/tracing_on" ;;
	8) echo > "$dir/trace" ;;
	9) echo > "$dir/per_cpu/cpu$((RANDOM % 2))/trace" ;;
	10) echo $((RANDOM % 3)) > "$dir/snapshot" ;;
	11) [ "$1" = fuzz1 ] || echo 1 > "$dir/per_cpu/cpu$((RANDOM % 2))/snapshot" ;;
	12) echo $((16 << RANDOM % 6)) > "$dir/buffer_size_kb" ;;
	13) [ "$1" = fuzz2 ] || echo $((4 << RANDOM % 2)) > "$dir/buffer_subbuf_size_kb" ;;
	14) head -c $((RANDOM % 20000)) "$dir/trace" ;;
	15) timeout 1 head -n $((RANDOM % 200)) "$dir/trace_pipe" ;;
	16) timeout 1 dd if="$dir/per_cpu/cpu0/trace_pipe_raw" bs=4096 count=$((RANDOM % 8)) iflag=nonblock ;;
	17) for file in stack_map stack_map_bin stack_map_stat; do
		dd if="$dir/$file" bs=$((1 + RANDOM % 4096)) count=$((1 + RANDOM % 9))
	done ;;
	18) head -c $((RANDOM % 12)) /dev/urandom > "$dir/stack_map" ;;
	19) head -c $((RANDOM % 4)) /dev/urandom > "$dir/options/stackmap" ;;
	20) echo nop > "$dir/current_tracer"; rmdir "$dir" ;;
	21) cat "$dir/stack_map_bin" ;;
	22) cat "$dir/stack_map_stat" ;;
	23) echo $((10 + RANDOM % 5)) > /sys/module/ftrace_stackmap/parameters/bits ;;
	24) timeout 1 perl /guest/programs/raw.pl mmap "$dir/per_cpu/cpu$((RANDOM % 2))/trace_pipe_raw" "$TMPDIR/go_on" ;;
	25) timeout 1 perl /guest/programs/raw.pl splice "$dir/per_cpu/cpu$((RANDOM % 2))/trace_pipe_raw" "$TMPDIR/go_on" ;;
	26) hotplug $((RANDOM % $(nproc) + 2)) ;;
	esac
}

fuzz() { # name seed
	set +e
	trap - EXIT
	RANDOM=$2
	local draw
	while [ -e "$TMPDIR/go_on" ]; do
		draw=$RANDOM
		# A shell whose fork fails ends.
		(
			RANDOM=$draw
			may_fail $BASHPID
			step "$1"
		)
		echo >> "$TMPDIR/steps.$1"
	done > /dev/null 2>&1
}

set_faults() {
	local kind
	for kind in failslab fail_page_alloc; do
		echo Y > $debug/$kind/task-filter
		echo N > $debug/$kind/ignore-gfp-wait
		echo 0 > $debug/$kind/verbose
		echo -1 > $debug/$kind/times
		echo 1 > $debug/$kind/probability
	done
	echo N > $debug/fail_page_alloc/ignore-gfp-highmem
	echo 0 > $debug/fail_page_alloc/min-order
}

# Its allocations may fail, and those of the processes that it makes.
may_fail() { # pid...
	local pid
	[ -n "$faults" ] || return 0
	for pid; do
		echo 1 > "/proc/$pid/make-it-fail" || true
	done
}

workers() {
	grep -sl '^kworker/' /proc/[0-9]*/comm | cut -d/ -f3
}

make_recorded() {
	make_instance trace_cmd
	echo 1 > instances/trace_cmd/options/stackmap
	echo 1 > instances/trace_cmd/options/stackmap-define
	echo 1 > instances/trace_cmd/options/stacktrace
	[ ! -e instances/trace_cmd/options/userstacktrace_delay ] || echo 1 > instances/trace_cmd/options/userstacktrace_delay
}

# trace-cmd records an instance of its own, with definitions, to a file. Version 3.1 also makes files of the
# top level in the working directory, and fails if it can't.
start_recording() {
	(
		trap - EXIT
		cd "$TMPDIR"
		rm -f "$TMPDIR/trace.dat"
		exec trace-cmd record -B trace_cmd -e sched -e irq -o "$TMPDIR/trace.dat" sleep 10
	) > "$TMPDIR/trace-cmd.out" 2>&1 &
	recording=$!
}

# The memory of the guest holds the recording and its text.
check_recording() {
	[ -s "$TMPDIR/trace.dat" ] || { cat "$TMPDIR/trace-cmd.out"; fail "trace-cmd recorded nothing"; }
	# Without memory for a map, stacks are in full.
	recorded=$(trace-cmd report -i "$TMPDIR/trace.dat" 2> /dev/null |
		grep -cE "stack_(id|split|def): ${faults:+|kernel_stack: }" || true)
	# It reads saved_cmdlines twice, and its file can't be read if the size has changed meanwhile.
	if [ "$recorded" -eq 0 ]; then
		cat "$TMPDIR/trace-cmd.out"
		grep -q 'error in size of file' "$TMPDIR/trace-cmd.out" || fail "trace-cmd recorded no stack"
	fi
	rm "$TMPDIR/trace.dat"
	! is_there trace_cmd || rmdir instances/trace_cmd
}

# Root may not execute or spawn. If allocations fail, the loads may end at any time, and begin again.
run_loads() { # argument...
	trap - EXIT
	set +e
	local end=$(($(now) + 60))
	while [ "$(now)" -lt $end ]; do
		(
			may_fail $BASHPID
			exec setpriv --reuid=65534 --regid=65534 --clear-groups \
				stress-ng --seed "$seed" --oomable --vm-bytes 16m --hdd-bytes 8m --mmap-bytes 16m --shm-bytes 1m \
				--temp-path "$TMPDIR/stress" --timeout $((end - $(now)))s --quiet "$@"
		)
		[ -n "$faults" ] || return
		sleep 1
	done
}

start_loads() {
	local load n
	args=()
	names=
	for ((n = 0; n < 6; n++)); do
		load=${loads[RANDOM % ${#loads[@]}]}
		[[ " $names " != *" $load "* ]] || continue
		args+=("--$load" 1)
		names+=" $load"
	done
	run_loads "${args[@]}" > "$TMPDIR/stress.out" 2>&1 &
	stress=$!
}

# Waits for processes that are to end, but not for ever.
wait_all() { # pid...
	local pid limit
	limit=$(($(now) + 120))
	for pid; do
		while kill -0 "$pid" 2> /dev/null && [ "$(now)" -lt $limit ]; do sleep 1; done
		! kill -0 "$pid" 2> /dev/null || { where "$pid"; fail "process $pid is stuck, round $round, seed $seed"; }
	done
}

check_memory() { # dir
	[ "$(stat_of memory "$1")" -le $memory_bound ] || fail "$1 takes $(stat_of memory "$1") bytes"
}

# With the fuzzer stopped: successes and references of an instance add up.
check_fuzzed() { # name
	is_there "$1" || return 0
	echo 0 > "instances/$1/tracing_on"
	settle
	wait_for_room "instances/$1"
	check_map "instances/$1"
	check_memory "instances/$1"
	echo 1 > "instances/$1/tracing_on"
}

asked() { echo $(($(stat_of successes $ids) + $(stat_of drops $ids))); }

echo "seed $seed, $minutes minutes, $(nproc) CPUs, Linux $(uname -r)"
RANDOM=$seed
mkdir -m 777 "$TMPDIR/stress"
chmod 755 "$TMPDIR"
# An emulated CPU may stand still while the machine does something else.
[ ! -e /proc/sys/kernel/hung_task_timeout_secs ] || echo 600 > /proc/sys/kernel/hung_task_timeout_secs
[ ! -e /proc/sys/kernel/watchdog_thresh ] || echo 60 > /proc/sys/kernel/watchdog_thresh
[ ! -e $debug/kmemleak ] || echo clear > $debug/kmemleak
others_online 0
make_anchors
make_pair stress 64
# Now, because the function tracer empties the buffer when it starts. Of a process that does nothing.
sleep infinity &
for dir in $ids $full; do
	echo $! > $dir/set_ftrace_pid
	(cd $dir && record_many_functions)
	echo 0 > $dir/tracing_on
done
others_online 1
[ -z "$faults" ] || [ -e /proc/self/make-it-fail ] || skip "no failures of allocations"
[ -z "$faults" ] || set_faults
end=$(($(now) + 60 * minutes))
for ((round = 1; $(now) < end; round++)); do
	began=$(now)
	: > "$TMPDIR/go_on"
	rm -rf "$TMPDIR"/go.? "$TMPDIR"/steps.* "$TMPDIR"/stress/*
	both tracing_on 0
	echo > $ids/trace
	echo > $full/trace
	make_recorded
	asked=$(asked)
	start_pair
	# Now, because a list of processes that is written anew is empty for a moment, which means all processes.
	both tracing_on 1
	start_loads
	fuzzers=
	for name in $fuzzed; do
		fuzz "$name" $((seed + round + ${#fuzzers})) &
		fuzzers="$fuzzers $!"
	done
	start_recording
	# shellcheck disable=SC2046 # a list
	may_fail $(workers)
	loaded=$(now)
	while kill -0 $stress 2> /dev/null && [ $(($(now) - loaded)) -lt 90 ]; do sleep 1; done
	loaded=$(($(now) - loaded))
	rm "$TMPDIR/go_on" "$TMPDIR/work_on"
	# Some look at the time only once in a great while.
	pkill -KILL stress-ng || true
	# shellcheck disable=SC2086,SC2046 # lists
	wait_all $stress $fuzzers $pair $recording $(pgrep stress-ng)
	[ -n "$faults" ] || [ $loaded -ge 55 ] || { cat "$TMPDIR/stress.out"; fail "the loads ended after $loaded s"; }
	both tracing_on 0
	both events/enable 0
	settle
	! complaints || fail "the kernel complained, round $round, seed $seed"
	check_recorded $(($(asked) - asked)) $ids
	compare_pair 100 1
	check_map $ids
	check_memory $ids
	for name in $fuzzed; do check_fuzzed "$name"; done
	check_recording
	echo "round $round, $loaded of $(($(now) - began)) s under load: $(cat "$TMPDIR"/steps.* | wc -l) steps;$names;" \
		"$recorded stacks by trace-cmd;" \
		"$(stat_of successes $ids) by id, $(stat_of drops $ids) in full, $(stat_of rotations $ids) rotations"
done

for name in ${ids#*/} ${full#*/} $fuzzed anchor1 anchor2; do
	dir=instances/$name
	[ -d "$dir" ] || continue
	echo nop > "$dir/current_tracer"
	rmdir "$dir" || fail "$dir stays"
done
if [ -e $debug/kmemleak ]; then
	check_leaks 'stackmap|user_file'
fi
! complaints || fail "the kernel complained at the end"
