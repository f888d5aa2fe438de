#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# bcc's biolatency: block requests by device, as a recipe of the page of "report", and by stack, as the table of the man
# page has it. Each request of a program takes 10 ms at least. The sum, the number and the longest time are what awk
# makes of the report.
# takes: 30
# flavour: x86_64+block
# append: null_blk.nr_devices=2 null_blk.irqmode=2 null_blk.completion_nsec=10000000
# full: a kernel of its own, with block devices
. /guest/lib/lib.sh
. /guest/lib/record.sh

requests=50
# shellcheck disable=SC2016 # the inner shell expands it
recorded 0 -o "$out" -a -e block_rq_issue,block_rq_complete -- sh -c '
	dd if=/dev/nullb0 of=/dev/null bs=4096 count=$0 iflag=direct
	dd if=/dev/nullb1 of=/dev/null bs=4096 count=$(($0 / 2)) iflag=direct' $requests
whole "$out"
trace-cmd report -q -t -i "$out/trace.dat" 2> /dev/null > "$TMPDIR/report"
# SECONDS.NANOSECONDS: block_rq_issue: MAJOR,MINOR FLAGS [BYTES] () SECTOR + ...
# shellcheck disable=SC2016 # awk expands them
awk='$3 == "block_rq_issue" { since[$4, $8] = $1 $2 }
	$3 == "block_rq_complete" && ($4, $7) in since {
		us = (($1 $2) - since[$4, $7]) / 1000
		n[$4]++
		sum[$4] += us
		longest[$4] = us > longest[$4] ? us : longest[$4]
		delete since[$4, $7]
	}
	END { for (dev in n) printf "%s %d %d %d\n", dev, sum[dev], n[dev], longest[dev] }'
sed -nE 's/^.* ([0-9]+)\.([0-9]{9}): +(block_rq_(issue|complete)): +/\1 \2 \3 /p' "$TMPDIR/report" > "$TMPDIR/requests"
head -n 4 "$TMPDIR/requests"
awk "$awk" "$TMPDIR/requests" | sort > "$TMPDIR/truth"

weight=latency=block_rq_issue,block_rq_complete,dev,sector
stackmap_dump report -q --weight $weight --by dev --histogram "$out" > "$TMPDIR/text"
cat "$TMPDIR/text"
sed -nE 's/^([0-9]+) \([0-9.]+%\), ([0-9]+) [a-z]+, at most ([0-9]+), p50 .*, dev=([0-9,]+)$/\4 \1 \2 \3/p' \
	"$TMPDIR/text" | sort > "$TMPDIR/said"
echo "device, microseconds, requests, the longest; awk has:"
paste "$TMPDIR/said" "$TMPDIR/truth"
[ "$(awk '{ print $3 }' "$TMPDIR/truth" | sort -n | paste -s -d' ')" = "$((requests / 2)) $requests" ] ||
	fail "the report has other requests"
# Each time is whole microseconds; what is left over goes to the next one, of any device.
paste "$TMPDIR/said" "$TMPDIR/truth" | awk '
	$1 != $5 || $3 != $7 || ($2 - $6) ^ 2 > 1 || $4 < $8 || $4 > $8 + 1 || $2 < $3 * 10000 { bad = 1 }
	END { exit bad }' || fail "by device, awk says something else"
# The rows of a histogram have all requests, none below 10 ms.
[ "$(awk '/^ *[0-9]+ -> / { n += $5; early += $3 < 10000 ? $5 : 0 } END { print n, early }' "$TMPDIR/text")" = \
	"$((requests + requests / 2)) 0" ] || fail "the histograms have other requests"

stackmap_dump stacks -q --weight $weight "$out" > "$TMPDIR/text"
cat "$TMPDIR/text"
said=$(sed -nE 's/^([0-9]+) \([0-9.]+%\), ([0-9]+) [a-z]+, at most ([0-9]+)$/\1 \2 \3/p' "$TMPDIR/text" |
	awk '{ sum += $1; n += $2; longest = $3 > longest ? $3 : longest } END { print sum, n, longest }')
all=$(awk '{ sum += $2; n += $3; longest = $4 > longest ? $4 : longest } END { print sum, n, longest }' "$TMPDIR/said")
echo "by stack: $said, by device: $all"
[ "$said" = "$all" ] || fail "stacks have other sums than devices"
grep -qE '^[[:space:]]+(null_queue_rq|blk_mq_.*|vfs_read|blkdev_.*)$' "$TMPDIR/text" || fail "there is no stack"
