#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# At boot, each stack is an id from the first event on, and it resolves.
# takes: 6
# append: trace_options=stackmap,stacktrace trace_event=sched:sched_switch trace_buf_size=16M
# timeout: 300
. /guest/lib/lib.sh

# Read it before recording ends, which can separate an event from its stack.
echo 0 > events/enable
stop_recording
cat stack_map_stat
[ "$(cat options/stackmap)" = 1 ] || fail "the option is off"
[ "$(lost_events)" -eq 0 ] || fail "the buffer was overwritten"

echo 1 > options/sym-offset
first_lines trace 400 > "$TMPDIR/first"
sed -n '/^#/d; 1,25p' "$TMPDIR/first"
grep -E ': <(stack_id [0-9]+|stack trace)>$' "$TMPDIR/first" | head -n 1 | grep stack_id ||
	fail "the first stack in the buffer is no id"
n=$(check_resolved "$TMPDIR/first")
[ "$n" -gt 5 ] || fail "$n ids in the first lines"

# The option was set before the first event, so each event has an id.
show_frames 0
cat trace > "$TMPDIR/all"
ids=$(count_ids "$TMPDIR/all")
full=$(count_full "$TMPDIR/all")
events=$(awk '/: sched_switch: / { n++ } END { print n + 0 }' "$TMPDIR/all")
echo "$events events, $ids ids, $full full stacks"
[ "$full" -eq 0 ] || fail "full stacks"
[ "$events" -gt 100 ] || fail "too few events"
[ "$ids" -eq "$events" ] || fail "stacks are missing"
[ "$ids" -eq "$(stat_of successes)" ] || fail "the ids are not the successes"
# The kernel's threads switch before init, process 1, starts.
awk '/: sched_switch: / { exit !/swapper|kthreadd|<idle>|rcu/ }' "$TMPDIR/all" ||
	fail "the first event is not one of early boot"
check_map

# A map from before the workqueues cannot be replaced yet, so it has 2^bits stacks at once.
[ "$(stat_of memory)" -gt 3000000 ] || fail "the map of the boot is not allocated whole"
[ "$(stat_of drops_arena)" -eq 0 ] || fail "it was too small"

# A new instance inherits neither option nor memory.
mkdir instances/new
[ "$(cat instances/new/options/stackmap)" = 0 ] || fail "an instance inherits the option"
[ "$(stat_of memory instances/new)" -eq 0 ] || fail "an instance inherits memory"
rmdir instances/new
