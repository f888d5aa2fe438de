#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The shell reads stack_map line by line while stacks are recorded. In a file that can be sought in,
# bash reads ahead and seeks back to the end of the line.
# takes: 20
# timeout: 300
. /guest/lib/lib.sh

read_lines() { # file
	while IFS= read -r line; do
		printf '%s\n' "$line"
	done < stack_map > "$1"
}

stackmap_on
set_opt buffer_size_kb 4096
for e in sched irq timer kmem; do
	echo 1 > events/$e/enable
done
echo 1 > tracing_on
stackmap_work 1

echo "Whole blocks, each id once, while others come"
(while [ ! -e "$TMPDIR/end" ]; do stackmap_work 1; done) 2> /dev/null &
for _ in 1 2; do
	SECONDS=0
	read_lines "$TMPDIR/stack_map"
	echo "$(wc -l < "$TMPDIR/stack_map") lines in $SECONDS s"
	map_text "$TMPDIR" > "$TMPDIR/blocks" || fail "$(tail -n 1 "$TMPDIR/blocks")"
	test "$(wc -l < "$TMPDIR/blocks")" -gt 50 || fail "only $(wc -l < "$TMPDIR/blocks") stacks"
	test -z "$(cut -d' ' -f1 "$TMPDIR/blocks" | sort | uniq -d)" || fail "an id is there twice"
done
: > "$TMPDIR/end"
wait
stop_recording

echo "The same as all at once"
read_lines "$TMPDIR/stack_map"
cmp "$TMPDIR/stack_map" stack_map || fail "read line by line it is another text"
