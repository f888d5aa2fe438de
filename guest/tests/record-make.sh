#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# stackmap_dump record of a build of some minutes, with the default buffer: all events are on disk, or the
# number of those that were lost is said. Most of them are of processes that make starts.
# takes: 600
# full: a build of minutes; record.sh records short commands
# program: make
# timeout: 1500
. /guest/lib/lib.sh
. /guest/lib/record.sh

command -v make > /dev/null || skip "there is no make here"

mkdir "$TMPDIR/work"
cat > "$TMPDIR/work/Makefile" <<'M'
objects := $(shell seq -f %g.o $(N))
program: $(objects)
	cat $(objects) | sort -n | wc -l > $@
%.o:
	seq $* 400 | sort -r > $*.tmp
	for i in 1 2 3; do grep $$i $*.tmp || true; done | gzip -c > $*.gz
	zcat $*.gz | awk '{ n += $$1 } END { print n + 0 }' > $@
	cat /proc/kallsyms | head -n 3000 | sort | tail -n 1 >> $*.gz
	rm $*.tmp
M
start=$(now)
recorded 0 -o "$out" -e sched:sched_switch -- make -s -j 3 -C "$TMPDIR/work" N="${1:-130}"
seconds=$(($(now) - start))
lost=$(echo "$err" | sed -n 's/.* \([0-9]*\) of \([0-9]*\) buffer entries were lost .*/\1/p')
# shellcheck disable=SC2012 # one file
size=$(ls -s "$out/trace.dat" | awk '{ print $1 }')
report "$out"
ids=$(grep -cE ': (stack_id|stack_split3?|kernel_stack): ' "$TMPDIR/report")
asked=$(awk '/^(successes|drops): / { n += $2 } END { print n }' "$out/stack_map_stat")
echo "$((seconds / 60)) min $((seconds % 60)) s, $ids stacks of $asked, ${lost:-0} entries lost, trace.dat has $size KB"
cat "$out/stack_map_stat"
[ "$seconds" -ge 120 ] || [ -n "$1" ] || fail "too short"
[ "$ids" -ge 10000 ] || fail "too few"
missing=$((asked - ids))
[ $missing -ge 0 ] && [ $missing -le "${lost:-0}" ] || fail "$missing are not on disk, and ${lost:-0} were lost"

# The profile has all of them.
events=$(stackmap_dump report -q "$out" | awk 'NR == 1 { print $2 }')
switches=$(grep -c ': sched_switch: ' "$TMPDIR/report")
echo "$events events in the profile, $switches in the report"
[ "$events" -eq "$switches" ] || fail "the profile is of other events"
