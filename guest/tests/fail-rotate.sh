#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes each allocation fail when the map is replaced, one at a time, and then all from a page on. The map stays,
# or it is replaced without that memory. No id is lost, no stack is uncounted, nothing leaks, and the next
# try replaces the map. A work does it, which fail-nth of a process does not reach, so failures are for
# calls from stackmap_work().
# Usage: fail-rotate.sh [allocations of each kind, at most]
# takes: 900
# flavour: debug
# full: some hundred allocations of the debug kernel, one by one; no other test has them
# timeout: 3000
. /guest/lib/lib.sh

most=${1:-1000}
debug=/sys/kernel/debug
[ -e $debug/failslab/require-start ] || skip "no failures by the caller"
[ -e $debug/kmemleak ] || skip "no kmemleak"
# To read all names takes more than a minute.
awk '$3 == "stackmap_work" { start = $1 }
	start && $1 != start { print "0x" start, "0x" $1; exit }' /proc/kallsyms > "$TMPDIR/symbol"
read -r start end < "$TMPDIR/symbol"
for kind in failslab fail_page_alloc; do
	echo N > $debug/$kind/ignore-gfp-wait
	echo 0 > $debug/$kind/verbose
	echo "$start" > $debug/$kind/require-start
	echo "$end" > $debug/$kind/require-end
done
echo N > $debug/fail_page_alloc/ignore-gfp-highmem
echo 0 > $debug/fail_page_alloc/min-order
echo clear > $debug/kmemleak

# Another instance records when the work of a map begins to wait, and when it has ended.
make_instance works
echo 0 > instances/works/options/pause-on-trace
for e in queue_work execute_end; do
	echo 'function.function == stackmap_work' > instances/works/events/workqueue/workqueue_$e/filter
	echo 1 > instances/works/events/workqueue/workqueue_$e/enable
done

make_small_instance fail
dir=instances/fail
echo 32 > $dir/buffer_size_kb
echo 1 > $dir/options/sym-offset
echo 1 > $dir/options/event-fork

# A process that does a little when it is told to. Nothing else is recorded. It stops before the map tries
# again, a second after a failure.
mkfifo "$TMPDIR/go" "$TMPDIR/done"
(
	trap - EXIT
	set +e
	while read -r what; do
		case $what in
		0) { echo some text | cat > "$TMPDIR/file"; } ;;
		1) ls /proc/self/fd > /dev/null ;;
		2) (/usr/bin/true) ;;
		esac
		echo
	done < "$TMPDIR/go" > "$TMPDIR/done"
) 2> /dev/null &
echo $! > $dir/set_event_pid
exec 5> "$TMPDIR/go" 6< "$TMPDIR/done"
for e in kmem sched irq timer; do
	echo 1 > $dir/events/$e/enable
done
echo 1 > $dir/tracing_on

work_busy() {
	! awk '/workqueue_queue_work/ { n++ } /workqueue_execute_end/ { n-- } END { exit n != 0 }' \
		instances/works/trace
}

wait_for_work() {
	for _ in {1..500}; do
		work_busy || return 0
		settle
	done
	fail "the work does not end"
}

did=0
do_a_little() {
	echo $((did++ % 3)) >&5
	read -r _ <&6
	wait_for_work
}

rotations() { stat_of rotations $dir; }

# Does a little until a command succeeds.
until_it() { # command...
	for _ in {1..500}; do
		! "$@" || return 0
		do_a_little
	done
	cat $dir/stack_map_stat
	fail "no end: $*"
}

replaced() { [ "$(rotations)" -gt "$before" ]; }
struck() {
	read -r left < $debug/$kind/times
	[ "$left" -ne $times ]
}
struck_or_replaced() { struck || replaced; }

# Every id has its stack. With frames, every stack is the right one, and the counts add up.
check() { # 0|1
	! grep -m 3 '(stale)' $dir/trace || fail "stale ids in the buffer"
	[ "$1" -eq 1 ] || return 0
	check_map $dir
	drops=$(stat_of drops $dir)
	[ "$drops" -eq "$(awk '/^drops_(entries|arena|parts):/ { n += $2 } END { print n }' $dir/stack_map_stat)" ] ||
		{ cat $dir/stack_map_stat; fail "drops of other reasons"; }
	check_recorded $(($(stat_of successes $dir) + drops - taken)) $dir
	show_frames 1 $dir
	cat $dir/trace > "$TMPDIR/trace"
	resolved=$(check_resolved "$TMPDIR/trace" $dir)
	[ "$resolved" -ge 100 ] || fail "$resolved stacks in the buffer"
	cat $dir/snapshot | without_names - | grep -v '^#' | cmp - "$TMPDIR/snapshot" ||
		fail "the snapshot is not what it was"
	show_frames 0 $dir
}

# Calls a function with 1, 2, ..., which says what is to fail, until a map is replaced without a failure.
all_refused=0
every() { # function
	local n=0 failures=0 refused=0
	while [ $n -lt "$most" ]; do
		n=$((n + 1))
		before=$(rotations)
		: > instances/works/trace
		$1 $n
		echo $times > $debug/$kind/times
		echo 100 > $debug/$kind/probability
		until_it struck_or_replaced
		echo 0 > $debug/$kind/probability
		struck || break
		failures=$n
		[ "$(rotations)" -gt "$before" ] || refused=$((refused + 1))
		# If something was recorded after the failure, there is another try a second later.
		sleep 1.5
		wait_for_work
		check $((n % 10 == 1))
		until_it replaced
		[ $n -lt 1000 ] || fail "$1: no end"
	done
	check 1
	echo "$1: $failures failures, after $refused of them the map stays;" \
		"$resolved stacks in the buffer, $(rotations) rotations"
	all_refused=$((all_refused + refused))
}

# The kernel counts the allocations from the beginning.
declare -A count=([failslab]=0 [fail_page_alloc]=0)
nth() {
	kind=$1 times=1
	echo $((count[$1] + $2)) > $debug/$kind/interval
	# 1 is not counted.
	[ $((count[$1] + $2)) -eq 1 ] || count[$1]=$((count[$1] + $2))
}
one_from_slab() { nth failslab "$1"; }
one_page() { nth fail_page_alloc "$1"; }
# What vmalloc() could take the place of, too.
all_pages_from() {
	kind=fail_page_alloc times=1000000
	echo 1 > $debug/$kind/interval
	echo $((1 << ($1 - 1))) > $debug/$kind/space
}

before=2
until_it replaced
echo 1 > $dir/snapshot
show_frames 1 $dir
cat $dir/snapshot | without_names - | grep -v '^#' > "$TMPDIR/snapshot"
# What was recorded before is not in the statistics of the buffers.
taken=$(($(stat_of successes $dir) + $(stat_of drops $dir)))
echo "$(count_ids "$TMPDIR/snapshot") stacks in the snapshot"
every one_from_slab
every one_page
every all_pages_from
[ $all_refused -gt 0 ] || fail "nothing failed"
cat $dir/stack_map_stat

echo 0 > $dir/tracing_on
echo 0 > $dir/options/stackmap
echo reset > $dir/stack_map
# But for what keeps the generations of stale ids from being used again.
[ "$(stat_of memory $dir)" -lt 4096 ] || fail "the reset does not free the map"
check_leaks stackmap
