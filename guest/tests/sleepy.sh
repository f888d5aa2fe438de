#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One CPU records a few events, and then nothing more, while the other one goes through 50 maps. What
# the first one has recorded still has its frames, nothing else of that map stays, and the maps
# go on to be replaced.
# Usage: sleepy.sh [rotations]
# takes: 15
# timeout: 400
. /guest/lib/lib.sh

rounds=${1:-50}
make_small_instance sleepy
dir=instances/sleepy
echo 64 > $dir/buffer_size_kb
echo 1 > $dir/options/sym-offset
one=$(stat_of memory $dir)

echo "A few events on CPU 1"
echo 2 > $dir/tracing_cpumask
for f in vfs_read vfs_write vfs_open kernel_clone do_exit handle_mm_fault pipe_write pipe_read \
	vfs_fstat do_wait; do
	! grep -qx $f available_filter_functions || echo $f >> $dir/set_ftrace_filter
done
echo 1 > $dir/options/func_stack_trace
record_functions $dir
taskset -c 1 sh -c '(echo some text | cat) > /dev/null'
# The function tracer empties the buffer when tracing is switched on again.
echo 1 > $dir/tracing_cpumask
settle
cat $dir/per_cpu/cpu1/trace > "$TMPDIR/before"
n=$(check_resolved "$TMPDIR/before" $dir)
ids_of() { # file
	sed -nE 's/.*: <stack_(id|split) (.*)>$/\2/p' "$1" | sed 's/ @[0-9a-f]* /\n/g' | sort -u
}
ids_of "$TMPDIR/before" > "$TMPDIR/ids"
echo "$n events, $(wc -l < "$TMPDIR/ids") distinct stacks"
[ "$(wc -l < "$TMPDIR/ids")" -ge 10 ] || fail "these are not ten"
[ "$(lost_events $dir)" -eq 0 ] || fail "the buffer is too small"
[ "$(stat_of rotations $dir)" -eq 0 ] || fail "the map was replaced too early"

echo "$rounds maps on CPU 0"
taskset -cp 0 $$ > /dev/null
echo 1 > $dir/events/kmem/enable
(cd $dir; record_many_functions)
most=0
for _ in 1 2 3 4 5; do
	rotate $((rounds / 5)) $dir
	memory=$(stat_of memory $dir)
	[ "$memory" -le $most ] || most=$memory
done
stop_recording $dir
cat $dir/stack_map_stat
[ "$(stat_of recycled $dir)" -ge $((rounds * 500)) ] || fail "hardly a stack was recycled"
# A third map for what is kept. The buffers are smaller.
[ $most -le $((3 * one)) ] || fail "$most bytes, and a map has $one"

cat $dir/per_cpu/cpu1/trace > "$TMPDIR/after"
for i in before after; do
	without_names "$TMPDIR/$i" | grep -v '^#' > "$TMPDIR/$i.txt"
done
cmp "$TMPDIR/before.txt" "$TMPDIR/after.txt" ||
	{ diff "$TMPDIR/before.txt" "$TMPDIR/after.txt" | head; fail "CPU 1 has lost some of its history"; }
[ "$(check_resolved "$TMPDIR/after" $dir)" -eq "$n" ]
# Of the first map, whose generation is that of the ids, there are these stacks and no others.
awk 'NR == FNR { gen[int($1 / 524288)]; next } $1 == "stack_id" && (int($2 / 524288) in gen) { print $2 }' \
	"$TMPDIR/ids" $dir/stack_map | sort > "$TMPDIR/left"
cmp "$TMPDIR/ids" "$TMPDIR/left" || fail "the kept stacks are not those of the events"
check_map $dir
