#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The generations wrap twice by recycling alone, the pause between two works lifted. A reader of `trace` stops
# in the middle before that and goes on at the end: what it prints of the old events is what it was then, or
# stale. Ids of the last generations mean the same stacks as in full.
# Usage: wrap-long.sh [rotations]
# flavour: x86_64+kunit
# when: full
# timeout: 14400
. /guest/lib.sh
. /guest/compare.sh

rounds=${1:-8400}
make_pair wrap 256
pause=/sys/module/ftrace_stackmap/parameters/pause
[ -e $pause ] || skip "no KUnit, so the pause can't be lifted"
echo 0 > $pause
began=$(now)

rotations_until() { # number
	# shellcheck disable=SC2154 # pair is set by start_pair
	while [ "$(stat_of rotations "$ids")" -lt "$1" ]; do
		# shellcheck disable=SC2086 # a list
		kill -0 $pair
		sleep 2
	done
	echo "$(($(now) - began)) s: $(stat_of rotations "$ids") rotations, generation $(stat_of generation "$ids"), \
$(stat_of successes "$ids") by id, $(stat_of drops "$ids") in full, $(stat_of memory "$ids") bytes"
}

both tracing_on 1
start_pair
rotations_until 5
both tracing_on 0
settle
cat "$ids/trace" > "$TMPDIR/before"
exec 3< "$ids/trace"
read -r -N 20000 half <&3
both tracing_on 1
for ((n = 1; n <= 20; n++)); do
	rotations_until $((5 + rounds * n / 20))
done
stop_pair
cat "$ids/stack_map_stat"

{ printf %s "$half"; cat <&3; } > "$TMPDIR/halves"
awk '/^#/ { next }
	/^ => / { frames = frames "\n" $0; next }
	function flush() {
		if (line == "")
			return
		if (first) {
			was[line] = frames
			last = time
		} else if (time > last) {
			after++
		} else {
			old++
			stale += gone
			if (!gone && (!(line in was) || was[line] != frames) && bad++ < 3)
				print "not what it was: " line frames
		}
		line = frames = ""
	}
	{
		flush()
		first = FILENAME == ARGV[1]
		gone = sub(/ \(stale\)$/, "")
		match($0, / [0-9]+\.[0-9]+: /)
		time = substr($0, RSTART, RLENGTH - 2) + 0
		line = $0
	}
	END {
		flush()
		printf "%d old events, %d stale, %d differ; %d after them\n", old, stale, bad, after
		exit bad || old < 50 || after < 50
	}' "$TMPDIR/before" "$TMPDIR/halves" || fail "the reader that had stopped"
compare_pair 1000 2
check_map "$ids"
