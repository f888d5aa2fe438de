#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# bcc's biolatency by stack, as the table of the man page has it: each request of a program takes 10 ms at least. The
# sum, the number and the longest time are what awk makes of the report.
# takes: 30
# flavour: x86_64+block
# append: null_blk.nr_devices=1 null_blk.irqmode=2 null_blk.completion_nsec=10000000
# full: a kernel of its own, with block devices
. /guest/lib/lib.sh
. /guest/lib/record.sh

requests=50
recorded 0 -o "$out" -a -e block -- dd if=/dev/nullb0 of=/dev/null bs=4096 count=$requests iflag=direct
whole "$out"
trace-cmd report -q -t -i "$out/trace.dat" 2> /dev/null > "$TMPDIR/report"
# SECONDS.NANOSECONDS: block_rq_issue: MAJOR,MINOR FLAGS [BYTES] () SECTOR + ...
# shellcheck disable=SC2016 # awk expands them
awk='$3 == "block_rq_issue" { since[$4, $8] = $1 $2 }
	$3 == "block_rq_complete" && ($4, $7) in since {
		us = (($1 $2) - since[$4, $7]) / 1000
		n++
		sum += us
		longest = us > longest ? us : longest
		delete since[$4, $7]
	}
	END { printf "%d %d %d\n", sum, n, longest }'
sed -nE 's/^.* ([0-9]+)\.([0-9]{9}): +(block_rq_(issue|complete)): +/\1 \2 \3 /p' "$TMPDIR/report" > "$TMPDIR/requests"
head -n 4 "$TMPDIR/requests"
truth=$(awk "$awk" "$TMPDIR/requests")
stackmap_dump stacks -q --weight latency=block_rq_issue,block_rq_complete,dev,sector "$out" > "$TMPDIR/text"
cat "$TMPDIR/text"
said=$(sed -nE 's/^([0-9]+) \([0-9.]+%\), ([0-9]+) [a-z]+, at most ([0-9]+)$/\1 \2 \3/p' "$TMPDIR/text" |
	awk '{ sum += $1; n += $2; longest = $3 > longest ? $3 : longest } END { printf "%d %d %d\n", sum, n, longest }')
echo "microseconds, requests, the longest: $said, awk: $truth"
read -r sum n longest <<< "$truth"
read -r said_sum said_n said_longest <<< "$said"
[ "$n" -eq $requests ] && [ "$sum" -ge $((requests * 10000)) ] || fail "the report has other requests"
# Each time is whole microseconds; what is left over goes to the next one.
[ "$said_n" -eq "$n" ] && [ "$said_longest" -ge "$longest" ] && [ "$said_longest" -le $((longest + 1)) ] &&
	[ "$said_sum" -ge $((sum - 1)) ] && [ "$said_sum" -le $((sum + 1)) ] || fail "awk says something else"
grep -qE '^[[:space:]]+(null_queue_rq|blk_mq_.*|vfs_read|blkdev_.*)$' "$TMPDIR/text" || fail "there is no stack"
