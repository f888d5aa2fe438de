#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Readers are killed half-way, or keep the files open while the map is reset and the option cleared.
# They block nothing. Each sees the stacks that were there when it began, or ESTALE. Their memory is
# freed.
# takes: 20
# timeout: 300
. /guest/lib/lib.sh

make_instance readers
dir=instances/readers
echo 1 > $dir/options/stackmap
echo 1 > $dir/options/stacktrace
echo 1 > $dir/events/sched/sched_switch/enable
echo 1 > $dir/events/kmem/kmem_cache_alloc/enable
stackmap_work 4
stop_recording $dir

mkfifo "$TMPDIR/ready" "$TMPDIR/never"
for round in 1 2 3 4; do
	for file in stack_map stack_map_bin; do
		(
			trap - EXIT
			exec 3< $dir/$file
			read -r -n 1 -u 3 _
			echo > "$TMPDIR/ready"
			read -r _ < "$TMPDIR/never"
		) &
		reader=$!
		read -r _ < "$TMPDIR/ready"
		! rmdir $dir 2> /dev/null || fail "the instance went away under a reader"
		[ $((round % 2)) = 0 ] || echo reset 1<> $dir/stack_map
		kill -9 $reader
		wait $reader 2> /dev/null || true
		echo 1 > $dir/tracing_on
		stackmap_work 1
		stop_recording $dir
	done
done
check_map $dir
echo "8 readers were killed half-way"

# Readers with the files open; some have read a part.
for n in {10..40}; do
	case $((n % 3)) in
	0) file=stack_map_bin ;;
	1) file=stack_map ;;
	2) file=stack_map_stat ;;
	esac
	eval "exec $n< $dir/$file"
	[ $((n % 2)) = 0 ] || read -r -n 1 -u "$n" _
done
# Each map is a generation of its own.
gen=$(stat_of generation $dir)
seconds=${1:-10}
end=$((SECONDS + seconds))
rounds=0
while [ $SECONDS -lt $end ]; do
	for _ in {1..10}; do
		echo reset 1<> $dir/stack_map
	done
	echo 0 > $dir/options/stackmap
	echo reset 1<> $dir/stack_map
	echo 1 > $dir/options/stackmap
	echo 1 > $dir/tracing_on
	stackmap_work 1
	stop_recording $dir
	check_map $dir
	rounds=$((rounds + 1))
done
[ "$(stat_of generation $dir)" = $(((gen + 11 * rounds) % 4096)) ] ||
	fail "$rounds rounds with resets, but not as many generations"
stale=0 whole=0
for n in {10..40}; do
	[ $((n % 3)) != 2 ] || continue
	if cat <&"$n" > "$TMPDIR/rest" 2> "$TMPDIR/errno"; then
		whole=$((whole + 1))
		[ $((n % 2)) = 0 ] || fail "reader $n went on over resets"
	else
		grep -q "Stale file handle" "$TMPDIR/errno" || fail "reader $n: $(cat "$TMPDIR/errno")"
		stale=$((stale + 1))
	fi
done
echo "$((11 * rounds)) resets in $seconds s: $stale readers were told ESTALE, $whole had not begun"
[ $stale -gt 0 ] && [ $whole -gt 0 ] || fail "no such readers"
! rmdir $dir 2> /dev/null || fail "the instance went away under its readers"
for n in {10..40}; do
	eval "exec $n<&-"
done
