#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A program that maps many files, or changes one again and again: maps are replaced, each event has its stack, memory
# is bounded. That keeps no other program from stacks by file, even if one CPU is quiet and holds old generations.
# takes: 60
# timeout: 600
. /guest/lib/lib.sh
[ -e options/userstacktrace_delay ] || skip "no deferred unwinding"
[ "$(grep -c ^processor /proc/cpuinfo)" -ge 2 ] || skip "one CPU"

make_instance many
dir=$TRACING_DIR/instances/many
bin=/usr/local/bin
echo 512 > "$dir/buffer_size_kb"
trace_closes "$dir"

# 4 of the largest maps for old stacks, the map, the next one, and caches.
check_memory() {
	memory=$(stat_of memory "$dir")
	echo "$1: $(stat_of files "$dir") files, $(stat_of rotations "$dir") rotations," \
		"$(stat_of drops "$dir") of $(stat_of successes "$dir") in full, $memory bytes"
	[ "$memory" -le 24000000 ] || fail "$1: too much memory"
}

# Of a new program, each frame has its file.
by_file() { # name
	cp $bin/userstack.stripped "$TMPDIR/$1"
	echo > "$dir/trace"
	"$TMPDIR/$1" -f 2 > "$TMPDIR/truth"
	stacks_of "$dir/trace" | diff "$TMPDIR/truth" - || fail "$1: wrong stacks"
	grep -q "$TMPDIR/$1" "$TMPDIR/truth" || fail "$1: no file"
}

echo "== a quiet CPU"
long=$TMPDIR
for ((i = 0; i < 5; i++)); do long=$long/$(printf '%0200d' $i); done
mkdir -p "$long/many"
mount -t tmpfs tmpfs "$long/many"
for round in 1 2 3 4; do
	cp $bin/userstack.stripped "$TMPDIR/quiet$round"
	taskset -c 1 "$TMPDIR/quiet$round" 1 2 3 > /dev/null
	before=$(stat_of rotations "$dir")
	# Each time, as many new files as fill a map.
	for ((i = 0; i < 20 && $(stat_of rotations "$dir") == before; i++)); do
		(cd "$long/many" && rm -f ./* && taskset -c 0 userstack -b 1000)
	done
	[ "$(stat_of rotations "$dir")" -gt "$before" ] || fail "no map was replaced"
	check_memory "round $round"
done
umount "$long/many"
grep -q "$TMPDIR/quiet1\[+0x" "$dir/per_cpu/cpu1/trace" || fail "the quiet CPU has lost a file"
[ "$(grep -c '(stale)$' "$dir/trace")" -eq 0 ] || fail "stale ids"
by_file after

echo "== 20,000 files"
mkdir "$TMPDIR/mnt"
mount -t tmpfs tmpfs "$TMPDIR/mnt"
events=$(($(stat_of successes "$dir") + $(stat_of drops "$dir")))
(cd "$TMPDIR/mnt" && userstack -b 20000)
umount "$TMPDIR/mnt"
check_memory "20000 files"
[ $(($(stat_of successes "$dir") + $(stat_of drops "$dir") - events)) -eq 20000 ] || fail "stacks are lost"
by_file late

echo "== a file that changes"
cp $bin/userstack.stripped "$TMPDIR/changes"
for ((i = 0; i < 300; i++)); do
	printf '\n' >> "$TMPDIR/changes"
	"$TMPDIR/changes" 1 > /dev/null
done
check_memory "300 changes"
by_file last
check_map "$dir"
echo "many files: passed"
