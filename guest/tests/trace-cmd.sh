#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The event in user space: its format file, and trace-cmd with ids in the buffer.
# takes: 10
# timeout: 300
. /guest/lib/lib.sh

# The format of an event is what is read, but for the common fields.
has_format() { # event
	cat > "$TMPDIR/format"
	grep -qx "name: $1" "events/ftrace/$1/format" || fail "the format of $1 has another name"
	grep -v common_ "events/ftrace/$1/format" | sed '1,/^format:/d' | sed 1d | cmp - "$TMPDIR/format" ||
		{ cat "events/ftrace/$1/format"; fail "the format of $1 is another one"; }
}
has_format stack_id <<'F'
	field:int stack_id;	offset:8;	size:4;	signed:1;

print fmt: "<stack_id %d>", REC->stack_id
F
has_format stack_split <<'F'
	field:int stack_id;	offset:8;	size:4;	signed:1;
	field:int outer_id;	offset:12;	size:4;	signed:1;
	field:unsigned long ip;	offset:16;	size:8;	signed:0;

print fmt: "<stack_split %d @%lx %d>", REC->stack_id, REC->ip, REC->outer_id
F
has_format stack_split3 <<'F'
	field:int stack_id;	offset:8;	size:4;	signed:1;
	field:int outer_id;	offset:12;	size:4;	signed:1;
	field:unsigned long ip;	offset:16;	size:8;	signed:0;
	field:unsigned long outer2_ip;	offset:24;	size:8;	signed:0;
	field:int outer2_id;	offset:32;	size:4;	signed:1;

print fmt: "<stack_split %d @%lx %d @%lx %d>", REC->stack_id, REC->ip, REC->outer_id, REC->outer2_ip, REC->outer2_id
F

command -v trace-cmd > /dev/null || skip "there is no trace-cmd here"

split='<stack_split [0-9]+( @[0-9a-f]+ [0-9]+){1,2}>'

# Each line of a report must be an event that trace-cmd understood, or a frame of a full stack.
understood() { # report
	if grep -E 'FAILED|[Uu]nknown|failed to|^ *version = *$' "$1"; then
		fail "trace-cmd does not understand something"
	fi
	# Without a plug-in, the ids follow the event's name.
	ids=$(grep -cE "stack_id: *<stack_id [0-9]+>$|stack_split3?: *$split\$" "$1" || true)
	events=$(grep -c 'sched_switch: ' "$1" || true)
	echo "$1: $events events, $ids ids"
	[ "$ids" -ge 20 ] || fail "$ids ids in the report"
}

# On each CPU, an id follows each event. Recording begins and ends at any moment, so the event of the
# first id may be missing, and the id of the last event.
paired() { # report
	awk 'match($0, / \[[0-9]+\]( +[^ ][^ ][^ ][^ ][^ ])? +[0-9.]+: [a-z_0-9]+: /) {
		nr = split(substr($0, RSTART, RLENGTH), field, " ")
		cpu = field[1]
		event = field[nr] == "sched_switch:"
		if (cpu in before && before[cpu] == event) {
			print event ? "an event without an id before:" : "no event before:"
			print
			bad = 1
			exit
		}
		before[cpu] = event
		seen = 1
	}
	END { exit bad || !seen }' "$1" || fail "events and ids do not alternate"
}

# The shell and each sleep wait once.
switches='for i in 1 2 3 4 5 6 7 8 9 10; do sleep .01; done'

echo "record, report"
# trace-cmd leaves it set.
set_opt options/stacktrace 0
trace-cmd record -q -o "$TMPDIR/trace.dat" -e sched:sched_switch -O stacktrace -O stackmap \
	sh -c "$switches"
trace-cmd report -q -i "$TMPDIR/trace.dat" > "$TMPDIR/report" 2> "$TMPDIR/err" || { cat "$TMPDIR/err"; fail "report"; }
understood "$TMPDIR/report"
paired "$TMPDIR/report"
# Raw fields, without the print format.
trace-cmd report -q -R -i "$TMPDIR/trace.dat" > "$TMPDIR/raw" 2> /dev/null
[ "$(grep -cE 'stack_(id|split3?): +stack_id=(0x)?[0-9a-f]+' "$TMPDIR/raw")" -eq "$ids" ] || fail "report -R has other ids"
check_map

echo "start, stop, show, extract"
stackmap_idle
echo reset > stack_map
trace-cmd start -e sched:sched_switch -O stacktrace -O stackmap > /dev/null
stackmap_work 3
trace-cmd stop
settle
trace-cmd show > "$TMPDIR/shown"
n=$(count_ids "$TMPDIR/shown")
[ "$n" -eq "$(count_ids trace)" ] || fail "show has $n ids"
grep -q '^ => ' "$TMPDIR/shown" || fail "show has no frames"
trace-cmd extract -o "$TMPDIR/extract.dat" > /dev/null
trace-cmd report -q -i "$TMPDIR/extract.dat" > "$TMPDIR/report" 2> /dev/null
understood "$TMPDIR/report"
[ "$ids" -eq "$n" ] || fail "extract has $ids ids of $n"
# The map still has the ids of the recording.
grep -oE "<stack_id [0-9]+>|$split" "$TMPDIR/report" |
	awk '{ for (i = 2; i <= NF; i += 2) if ($i + 0 >= 0) print $i + 0 }' | sort -u > "$TMPDIR/taken"
sed -n 's/^stack_id \([0-9]*\) .*/\1/p' stack_map | sort > "$TMPDIR/known"
comm -23 "$TMPDIR/taken" "$TMPDIR/known" > "$TMPDIR/lost"
[ ! -s "$TMPDIR/lost" ] || fail "ids that the map does not have: $(head -n 3 "$TMPDIR/lost")"

echo "an instance"
trace-cmd reset > /dev/null
# trace-cmd puts temporary files into the current directory.
cd "$TMPDIR"
trace-cmd record -q -o instance.dat -B stackmap_tc -e sched:sched_switch -O stacktrace -O stackmap \
	sh -c "$switches"
trace-cmd report -q -i instance.dat > "$TMPDIR/report" 2> /dev/null
understood "$TMPDIR/report"
