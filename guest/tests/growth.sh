#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Measures the growth of the map under sched, irq and timer events and load. Two instances record the
# same events, one with its stacks split at interrupts and one without. Then measures the bytes of a
# stack in the ring buffer, split and full. Leaves growth.txt and growth.csv in $OUT, or /out.
# Usage: growth.sh [seconds [permille]]
#   seconds    at least; a slow machine gets more, as new call paths come in the beginning
#   permille   limit of what the split map gains, relative to the other one
# takes: 60
# full: a measurement; KUnit and stackmap-interrupt.tc have the stacks that are split
# timeout: 400
# out: build/growth
. /guest/lib/lib.sh
. /guest/lib/load.sh

out=${OUT:-/out}
seconds=${1:-10}
limit=${2:-100}
steps=10
enough=24000
param=/sys/module/ftrace_stackmap/parameters
flat=instances/growth_flat
split=instances/growth_split

# Long-lived processes, as on a production machine. With fork and exec all the time, there are so many
# call paths that new ones come for hours, even without interrupts.
start_load() {
	dd if=/dev/zero of=/dev/null bs=64k &
	pids=$!
	{ yes | cat > /dev/null; } &
	pids="$pids $!"
	for i in 1 2; do
		[ -p "$TMPDIR/wait.$i" ] || mkfifo "$TMPDIR/wait.$i"
		(
			exec 3<> "$TMPDIR/wait.$i"
			while :; do
				read -r _ < /proc/self/stat
				echo "some text" > "$TMPDIR/file.$i"
				read -r -t .01 _ <&3 || true
			done
		) &
		pids="$pids $!"
	done
} 2> /dev/null

stop_load() {
	# shellcheck disable=SC2086 # a list
	kill $pids
	pkill yes || true
	wait || true
} 2> /dev/null

instance() { # name, bits, split
	set_opt $param/bits "$2"
	echo "$3" > $param/split
	make_instance "$1"
	echo 0 > "instances/$1/tracing_on"
	echo 1 > "instances/$1/options/stackmap"
	echo 1 > "instances/$1/options/stacktrace"
}

record() { # event...
	for i in $flat $split; do
		echo > $i/trace
		for e in "$@"; do
			echo 1 > "$i/events/$e/enable"
		done
		echo 1 > $i/tracing_on
	done
}

stop() {
	for i in $flat $split; do
		echo 0 > $i/tracing_on
		echo 0 > $i/events/enable
	done
	settle
}

# Not replaced, so that "entries" counts all stacks.
set_opt $param/recycle N
instance growth_flat 18 0
instance growth_split 14 1
record sched irq timer
start_load
echo "step,seconds,flat,split" > $out/growth.csv
n=0
stacks=0
while [ $n -lt $steps ] || { [ "$stacks" -lt $enough ] && [ $n -lt $((6 * steps)) ]; }; do
	[ "$stacks" -lt 250000 ] || break
	sleep $((seconds / steps))
	n=$((n + 1))
	stacks=$(stat_of entries $flat)
	echo "$n,$((n * seconds / steps)),$stacks,$(stat_of entries $split)" >> $out/growth.csv
done
stop_load
stop

awk -F, 'NR == 1 {
	printf "%8s %12s %10s %12s %10s\n", "seconds", "not split", "gained", "split", "gained"
	next
}
{
	printf "%8d %12d %10d %12d %10d\n", $2, $3, $3 - flat, $4, $4 - parts
	flat = $3
	parts = $4
}' $out/growth.csv | tee $out/growth.txt
echo
echo "not split:"
cat $flat/stack_map_stat
echo "split:"
cat $split/stack_map_stat
test "$(stat_of drops $split)" -eq "$(stat_of drops_parts $split)" || fail "the split map was full, or did not grow in time"
# In the first second, nearly all stacks are new. They can come faster than the map is replaced.
late=$(($(stat_of drops_arena $flat) + $(stat_of drops_entries $flat)))
test "$(stat_of drops $flat)" -eq "$late" || fail "drops of other reasons"
test $((100 * late)) -le "$(stat_of successes $flat)" ||
	fail "the map that is not split did not grow in time"
check_map $split
test "$(stat_of split $flat)" -eq 0 || fail "stacks were split, with split=0"

awk -F, -v limit="$limit" 'NR == 2 { flat = $3; parts = $4 }
END {
	gained = $3 - flat
	printf "after the first tenth: %d stacks not split, %d split, %.2f %%\n", gained, $4 - parts,
		gained ? 100 * ($4 - parts) / gained : 100
	exit !(gained > 100 && 1000 * ($4 - parts) <= limit * gained)
}' $out/growth.csv || fail "the split map gained too much"

# The same sched_switch events with full stacks and with the map. An event takes 4 bytes more than its
# fields, or 8 if these have more than 112 bytes. The fields of a stack have 16 bytes and 8 for each
# frame (full), 12 (an id), or 40 (split). The sum must be the number of bytes in the buffer.
echo 0 > $flat/options/stackmap
echo reset > $split/stack_map
for i in $flat $split; do
	echo 16384 > $i/buffer_size_kb
done
record sched/sched_switch
start_load
sleep 5
stop_load
stop
for i in $flat $split; do
	test "$(lost_events $i)" -eq 0 || fail "the buffer is too small"
done
size=$(awk '/offset:/ { sub(/.*offset:/, ""); n = $1 + 0; sub(/.*size:/, ""); n += $1 } END { print n }' \
	events/sched/sched_switch/format)
bytes_flat=$(bytes_of $flat)
bytes_split=$(bytes_of $split)
awk -v size="$size" -v bytes_flat="$bytes_flat" -v bytes_split="$bytes_split" '
function flush() {
	if (kind == "split") {
		full_of_split += 16 + 8 * frames + (frames > 12 ? 8 : 4)
		split_frames += frames
	}
	kind = ""
	frames = 0
}
/^ => / { frames++; next }
{ flush() }
/: sched_switch: / { events++; expected += size + 4 }
/: <stack_id [0-9]+>$/ { kind = "id"; ids++; expected += 16 }
/: <stack_split / { kind = "split"; splits++; split_bytes += gsub(/@/, "@") > 1 ? 44 : 28 }
END {
	flush()
	expected += split_bytes
	printf "sched_switch events: %d, %d with a split stack (%.1f frames)\n", events, splits,
		splits ? split_frames / splits : 0
	if (splits)
		printf "bytes for a split stack: %.1f, as a full one: %.1f\n", split_bytes / splits,
			full_of_split / splits
	printf "bytes for an event and its stack, in the buffer: %.1f, with full stacks: %.1f\n",
		bytes_split / events, bytes_flat / events
	printf "bytes that the events make up: %d, in the buffer: %d\n", expected, bytes_split
	exit !(splits > 10 && expected <= bytes_split && bytes_split < 1.05 * expected)
}' $split/trace | tee -a $out/growth.txt || fail "the buffer does not hold that many bytes"
