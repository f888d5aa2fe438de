#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The generations wrap while one CPU still has ids of old ones, stale ones among them: none comes to
# mean another stack. Resets bring the generation near the wrap, user space can't set it.
# Usage: rotate-many.sh [resets [rotations]]
# timeout: 400
. /guest/lib.sh
. /guest/compare.sh

resets=${1:-4070}
rounds=${2:-40}
make_pair many 256
both options/sym-offset 1
for f in vfs_read vfs_write vfs_open kernel_clone do_exit handle_mm_fault pipe_write pipe_read \
	vfs_fstat do_wait; do
	! grep -qx $f available_filter_functions || {
		echo $f >> $ids/set_ftrace_filter
		echo $f >> $full/set_ftrace_filter
	}
done
# Switched on once: the function tracer empties the buffer each time.
taskset -cp 0 $$ > /dev/null
both tracing_cpumask 1
for i in $ids $full; do
	record_functions $i
done
settle

# A few events on CPU 1, behind those that it has.
few() {
	mkfifo "$TMPDIR/go"
	(
		trap - EXIT
		read -r _ < "$TMPDIR/go"
		echo some text | cat > /dev/null
	) &
	taskset -cp 1 $! > /dev/null
	both set_ftrace_pid $!
	both tracing_cpumask 2
	echo > "$TMPDIR/go"
	wait
	rm "$TMPDIR/go"
	settle
	both tracing_cpumask 1
	without_names $ids/per_cpu/cpu1/trace | grep -v '^#' > "$TMPDIR/before"
}

few
stale=$(count_ids "$TMPDIR/before")
first=$(stat_of generation $ids)
echo "$stale stacks of generation $first, then $resets resets"
# They need not wait for the other CPU as long as they do otherwise. A map without stacks would keep its
# generation.
echo 1 > /sys/kernel/rcu_expedited
both options/stacktrace 1
both events/sched/sched_process_fork/enable 1
n=0
while [ $n -lt "$resets" ]; do
	( : )
	echo 0 > $ids/options/stackmap
	echo reset 1<> $ids/stack_map
	echo 1 > $ids/options/stackmap
	n=$((n + 1))
done
both events/sched/sched_process_fork/enable 0
both options/stacktrace 0
echo 0 > /sys/kernel/rcu_expedited
second=$(stat_of generation $ids)
few
old=$(count_ids "$TMPDIR/before")
old=$((old - stale))
echo "$old stacks of generation $second"
[ "$(grep -c '(stale)$' "$TMPDIR/before")" -eq "$stale" ] || fail "not as many are stale"
[ "$stale" -ge 10 ] && [ "$old" -ge 10 ] || fail "these are too few"

start_pair 0
while [ "$(stat_of rotations $ids)" -lt "$rounds" ]; do
	# shellcheck disable=SC2086 # a list
	kill -0 $pair
	sleep .5
done
stop_pair
cat $ids/stack_map_stat

without_names $ids/per_cpu/cpu1/trace | grep -v '^#' > "$TMPDIR/after"
cmp "$TMPDIR/before" "$TMPDIR/after" ||
	{ diff "$TMPDIR/before" "$TMPDIR/after" | head; fail "CPU 1's events mean other stacks"; }
# Of those that CPU 1 has, and of the last map.
compare_pair 1000 2 "$stale"
check_map $ids

# The generations that CPU 1 has are skipped.
gen=$second wraps=0
for ((n = $(stat_of rotations $ids); n; n--)); do
	gen=$(((gen + 1) % 4096))
	while [ $gen -eq "$first" ] || [ $gen -eq "$second" ]; do
		gen=$(((gen + 1) % 4096))
	done
	[ $gen -ne $((first + 1)) ] || wraps=$((wraps + 1))
done
echo "the generations have wrapped $wraps times"
[ $wraps -gt 0 ] || fail "they have not"
[ "$(stat_of generation $ids)" -eq $gen ] || fail "the generation is not $gen"
