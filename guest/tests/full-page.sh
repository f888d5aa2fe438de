#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# trace shows the events of a page that is exactly full, also if the page was read in an earlier round. This
# is a test of Linux itself, and needs no stack map.
# takes: 6
set -e
export LC_ALL=C
dir=/sys/kernel/tracing/instances/full_page
fail() { echo "FAIL: $1"; exit 1; }

mkdir $dir
trap 'cd /; rmdir $dir' EXIT
# With this clock, no event needs more space because the one before was long ago.
echo counter > $dir/trace_clock
echo 4 > $dir/buffer_size_kb
cd $dir/per_cpu/cpu1

# 4 bytes of the ring buffer's, 16 of the event's own, 16 of text, and 4 for a newline and a zero byte.
text=1234567890123456
event=40
page=$(sed -n 's/.* data;.*size:\([0-9]*\);.*/\1/p' $dir/events/header_page)
events=$((page / event))
if [ $((events * event)) -ne "$page" ]; then
	echo "skipped: a page has $page bytes"
	exit 4
fi

# The buffer has two pages, and one for the reader: the first one to come back is that of round 4.
failed=
for round in 1 2 3 4 5 6 7 8; do
	taskset -c 1 sh -c "for _ in \$(seq $events); do echo $text; done > $dir/trace_marker"
	bytes=$(sed -n 's/^bytes: //p' stats)
	[ "$bytes" -eq "$page" ] || fail "round $round: $bytes bytes, a page has $page"
	shown=$(grep -c ": $text\$" trace) || true
	consumed=$(dd if=trace_pipe iflag=nonblock bs=64k 2> /dev/null | grep -c ": $text\$") || true
	echo "round $round: $events events, $shown in trace, $consumed in trace_pipe"
	[ "$shown" -eq $events ] && [ "$consumed" -eq $events ] || failed=1
done
[ -z "$failed" ] || fail "events are missing"
