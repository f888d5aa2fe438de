#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Compares stackmap_dump with the kernel: the stacks and symbols of stack_map, the frames of trace, live
# and from a saved directory, and every id of a trace-cmd report. Leaves the saved map for
# guest/host/stackmap_dump.sh, and its text, which is the kernel's.
# takes: 19
# timeout: 300
. /guest/lib/lib.sh
. /guest/lib/same_text.sh

command -v stackmap_dump > /dev/null || skip "there is no stackmap_dump here"
out=${OUT:-/out}

# dump COMMAND...
dump() {
	stackmap_dump "$@" -q
}

show_frames 1
set_opt options/sym-offset 1
record_some
check_map

# Some stacks are in full, as those of more than three parts are. No switches, as those of the pause would be missing.
echo 0 > options/stackmap
echo 0 > events/sched/sched_switch/enable
echo 1 > tracing_on
(:)
stop_recording
echo 1 > options/stackmap
test "$(count_full trace)" -ge 2 || fail "no stack is in full"

# stack_map is sorted by id.
cat stack_map > "$TMPDIR/text"
dump map | by_id > "$TMPDIR/ours"
test "$(grep -c ^stack_id "$TMPDIR/ours")" -ge 20 || fail "too few stacks were recorded"
grep -m 3 '\[trace_events_sample\]$' "$TMPDIR/text" || fail "no frame of the module"
same_text "live" "$TMPDIR/text" "$TMPDIR/ours"
cp "$TMPDIR/ours" "$out/text"

# A saved map gives the same text without options. Saving takes the buffer.
test "$(check_resolved trace)" -ge 100 || fail "too few stacks in the buffer"
cp trace "$TMPDIR/trace"
if has_frames_option; then
	show_frames 0
	cp trace "$TMPDIR/dense"
	show_frames 1
fi
stackmap_dump save "$out/map"
dump map "$out/map" | by_id | cmp - "$TMPDIR/ours" || fail "the saved map is another one"
dump map - < stack_map_bin | by_id | cmp - "$TMPDIR/ours" ||
	fail "a copy of the map does not get the symbols of the running kernel"
dump map -k /proc/kallsyms - < stack_map_bin | by_id | cmp - "$TMPDIR/ours" ||
	fail "kallsyms by name say something else"

# The frames below the ids: the kernel's, and those added to a trace without frames.
dump annotate "$TMPDIR/trace" > "$TMPDIR/annotated"
same_text "annotate" "$TMPDIR/trace" "$TMPDIR/annotated"
has_frames_option ||
	awk '!/^ => / { full = /: <stack trace>$/; print } /^ => / && full' "$TMPDIR/trace" > "$TMPDIR/dense"
no_frames "$TMPDIR/dense" || fail "there are frames with stackmap-frames off"
dump annotate "$TMPDIR/dense" "$out/map" > "$TMPDIR/annotated"
same_text "annotate dense" "$TMPDIR/trace" "$TMPDIR/annotated"

# The counts of the notes are those of stack_map_stat.
stackmap_dump map 2>&1 > /dev/null | tee "$TMPDIR/notes"
grep -q ": stacks: $(stat_of entries)," "$TMPDIR/notes" || fail "another number of stacks"
grep -q ", references: $(stat_of parts)$" "$TMPDIR/notes" || fail "another number of references"
grep -q ": kernel: $(uname -r)" "$TMPDIR/notes" || fail "another kernel"
test "$(dump export --map --format folded | awk '{ n += $NF } END { printf "%.0f", n }')" = "$(stat_of parts)" ||
	fail "the folded map has other counts"
dump export --format folded "$out/map" > "$TMPDIR/whole"
stacks=$(($(count_ids "$TMPDIR/trace") + $(count_full "$TMPDIR/trace")))
test "$(awk '{ n += $NF } END { printf "%.0f", n }' "$TMPDIR/whole")" = $stacks ||
	fail "the folded recording has other counts"
dump diff --map "$out/map" > "$TMPDIR/diff"
test ! -s "$TMPDIR/diff" || fail "a difference with itself"

# A message explains why addresses are hidden.
restrict=$(cat /proc/sys/kernel/kptr_restrict)
echo 2 > /proc/sys/kernel/kptr_restrict
stackmap_dump map --top 1 > "$TMPDIR/hidden" 2> "$TMPDIR/err"
echo "$restrict" > /proc/sys/kernel/kptr_restrict
grep -q kptr_restrict "$TMPDIR/err" || fail "no word of kptr_restrict"
grep -q '  \[0\] 0x' "$TMPDIR/hidden" || fail "no raw addresses"

# An instance has its own map.
make_instance stackmap_dump
dump map -i stackmap_dump > "$TMPDIR/instance"
test ! -s "$TMPDIR/instance" || fail "the map of an unused instance has stacks"
(
	cd instances/stackmap_dump
	stackmap_on
	echo 1 > events/sched/sched_switch/enable
	echo 1 > tracing_on
	stackmap_work 2
	stop_recording
)
dump map -i stackmap_dump | by_id > "$TMPDIR/instance"
test -s "$TMPDIR/instance" || fail "the map of the instance is empty"
same_text "instance" instances/stackmap_dump/stack_map "$TMPDIR/instance"
dump map instances/stackmap_dump | by_id | cmp - "$TMPDIR/instance" ||
	fail "an instance by its directory has other symbols"

# A live pipe: a stack is in the map before an event has its id.
make_instance pipe
timeout 8 cat instances/pipe/trace_pipe | dump annotate -i pipe - > "$TMPDIR/live" &
pid=$!
(
	cd instances/pipe
	show_frames 0
	stackmap_on
	echo 1 > events/sched/sched_switch/enable
	echo 1 > events/kmem/kmem_cache_alloc/enable
	echo 1 > tracing_on
	stackmap_work 2
	ls -lR /proc/self/task > /dev/null
	stop_recording
)
wait $pid
echo "trace_pipe: $(count_ids "$TMPDIR/live") ids"
test "$(count_ids "$TMPDIR/live")" -ge 100 || fail "too few stacks in the live pipe"
if grep 'not in this map' "$TMPDIR/live"; then
	fail "ids of a live pipe are not in the map"
fi

# trace-cmd has its own parser of events, and clears the options when it ends.
if command -v trace-cmd > /dev/null; then
	stackmap_idle
	echo reset > stack_map
	trace-cmd record -q -o "$TMPDIR/trace.dat" -e sched_switch -e kmem_cache_alloc \
		-O stacktrace -O stackmap ls -lR /proc/self/task > /dev/null
	trace-cmd report -q "$TMPDIR/trace.dat" > "$TMPDIR/report" 2> /dev/null
	ids=$(grep -cE 'stack_id: *<stack_id [0-9]+>$|stack_split3?: *<stack_split [0-9]+ @' "$TMPDIR/report")
	test "$ids" -ge 100 || fail "$ids ids in the report of trace-cmd"
	dump annotate - < "$TMPDIR/report" > "$TMPDIR/annotated"
	if grep -q 'not in this map' "$TMPDIR/annotated"; then
		fail "ids of trace-cmd are not in the map"
	fi
	grep -v '^ => ' "$TMPDIR/report" > "$TMPDIR/lines"
	grep -v '^ => ' "$TMPDIR/annotated" | cmp - "$TMPDIR/lines" ||
		fail "annotate has changed lines of the report"
	awk '/<stack_(id [0-9]+>|split [0-9]+ @)/ { if (want) exit 1; want = 1; next } /^ => / { want = 0 }
		END { exit want }' "$TMPDIR/annotated" || fail "an id without frames"
	echo "trace-cmd: $ids ids, all of them resolved"

	# A recording that defines its stacks needs no map.
	if [ -e options/stackmap-define ]; then
		trace-cmd record -q -o "$TMPDIR/trace.dat" -e sched_switch -e kmem_cache_alloc -O stacktrace \
			-O stackmap -O stackmap-define ls -lR /proc/self/task > /dev/null
		cp stack_map_bin "$TMPDIR/map"
		dump export --format folded -k /proc/kallsyms "$TMPDIR/trace.dat" > "$TMPDIR/by_definition"
		mkdir "$TMPDIR/recording"
		mv "$TMPDIR/trace.dat" "$TMPDIR/recording"
		cp "$TMPDIR/map" "$TMPDIR/recording/stack_map_bin"
		dump export --format folded -k /proc/kallsyms "$TMPDIR/recording" | cmp - "$TMPDIR/by_definition" ||
			fail "definitions give other stacks than the map"
		test "$(wc -l < "$TMPDIR/by_definition")" -ge 20 || fail "too few stacks"
		dump export --format perf -k /proc/kallsyms "$TMPDIR/recording" > "$TMPDIR/samples"
		test "$(grep -c '^$' "$TMPDIR/samples")" = \
			"$(awk '{ n += $NF } END { print n }' "$TMPDIR/by_definition")" ||
			fail "perf script has another number of samples"
		if grep '^[^	].*: unknown: ' "$TMPDIR/samples"; then
			fail "a stack without its event"
		fi
	fi
fi

# Definitions in trace_pipe are lines as others.
if [ -e options/stackmap-define ]; then
	make_instance define
	(
		cd instances/define
		set_opt options/stackmap-define 1
		show_frames 0
		stackmap_on
		echo 1 > events/sched/sched_switch/enable
		echo 1 > tracing_on
		stackmap_work 2
		stop_recording
	)
	timeout 60 cat instances/define/trace_pipe > "$TMPDIR/pipe" || true
	grep -q '<stack_def ' "$TMPDIR/pipe" || fail "trace_pipe has no definitions"
	dump annotate -i define "$TMPDIR/pipe" > "$TMPDIR/alone"
	test "$(count_ids "$TMPDIR/pipe")" -ge 10 || fail "too few stacks in trace_pipe"
	awk '/<stack_(id [0-9]+>|split [0-9]+ @)/ { if (want) exit 1; want = 1; next } /^ => / { want = 0 }
		END { exit want }' "$TMPDIR/alone" || fail "not all stacks of trace_pipe have frames"
	if grep '^ => 0x\|not in' "$TMPDIR/alone"; then
		fail "a frame without a name"
	fi
fi
