#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The recipe of initcalls: recorded from boot on, saved later, and how long each took by its name. awk makes the same of
# the report, and the slowest one is in the names of the kernel.
# takes: 20
# append: trace_event=initcall:initcall_start,initcall:initcall_finish trace_options=stacktrace,stackmap trace_buf_size=2M
. /guest/lib/lib.sh
. /guest/lib/record.sh
. /guest/lib/profile.sh

# shellcheck disable=SC2154 # record.sh sets it
stackmap_dump save "$out"
stackmap_dump report -q --weight latency=initcall_start,initcall_finish,func --by func "$out" > "$TMPDIR/text"
sed -nE 's/^# func=(.*): ([0-9]+) \([0-9.]+%\)$/\1 \2/p' "$TMPDIR/text" | sort > "$TMPDIR/tool"
head -n 5 "$TMPDIR/text"
events | sed -nE 's/^.* ([0-9]+)\.([0-9]{6,9}): +(initcall_(start|finish)): +func=(0x[0-9a-f]+|[A-Za-z0-9_]+)(\+0x0\S*)?.*/\1\2 \3 \5/p' > "$TMPDIR/lines"
head -n 4 "$TMPDIR/lines"
awk '$2 == "initcall_start" { since[$3] = $1 }
	$2 == "initcall_finish" && $3 in since { n++; sum += $1 - since[$3]; delete since[$3] }
	END { printf "%d %d\n", n, sum / 1000 }' "$TMPDIR/lines" > "$TMPDIR/awk"
read -r n sum < "$TMPDIR/awk"
said=$(total < "$TMPDIR/tool")
echo "$n initcalls, $sum us; $(wc -l < "$TMPDIR/tool") names, $said us"
[ "$n" -gt 50 ] || fail "few initcalls"
# Names may be those of two.
same_us "$said" "$sum" && [ "$(wc -l < "$TMPDIR/tool")" -ge $((n * 9 / 10)) ] ||
	fail "awk says something else"
# shellcheck disable=SC2013 # a word each
for name in $(cut -d' ' -f1 "$TMPDIR/tool"); do
	case $name in
	0x*) fail "an address has no name: $name" ;;
	esac
done
