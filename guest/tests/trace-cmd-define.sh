#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A recording with options/stackmap-define needs nothing else: with the plugin of libtraceevent, trace-cmd
# prints the frames that a second instance has recorded as full stacks. Then the same with a map, for reports
# that leave definitions out.
# takes: 14
# timeout: 300
. /guest/lib/lib.sh
. /guest/lib/report.sh

command -v trace-cmd > /dev/null || skip "there is no trace-cmd here"
[ -e options/stackmap-define ] || skip "this kernel has no stackmap-define"
[ -e /guest/plugins/plugin_stackmap.so ] || skip "the plugin was not built: no libtraceevent-dev"

# trace-cmd would remove instances that it makes.
make_instance ids
make_instance full
ids=$TRACING_DIR/instances/ids
# It puts temporary files into the current directory.
cd "$TMPDIR"

# The end of the command, see stacks_of().
cp "$(command -v sleep)" "$TMPDIR/end"
# A process that must not be recorded.
cp "$(command -v sleep)" "$TMPDIR/nap"
while :; do "$TMPDIR/nap" .03; done &
bystander=$!

# Only the command and its children are recorded, so both instances have the same events. No other one comes
# between an event and its stack, as these do not interrupt each other. -c belongs to the -B before it.
record() { # file [option]
	trace-cmd record -q -k -F -o "$1" -C global \
		-B ids -c -C global -e sched:sched_switch -e irq:softirq_entry -O stacktrace -O stackmap ${2:+-O "$2"} \
		-B full -c -C global -e sched:sched_switch -e irq:softirq_entry -O stacktrace \
		sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep .01; done; cat /proc/kallsyms > /dev/null; exec "$TMPDIR/end" .02'
	echo 0 > "$ids/options/stackmap-define"
}

with_plugin() { TRACEEVENT_PLUGIN_DIR=/guest/plugins trace-cmd report -q "$@" 2> "$TMPDIR/err"; }

resolved() { # report
	echo "$1: $(grep -cE ' stack_(id|split3?): ' "$1") ids, $(bare "$1") of them without frames"
	[ "$(grep -cE ' stack_(id|split3?): ' "$1")" -ge 10 ] || fail "too few ids"
	[ "$(bare "$1")" -eq 0 ] || { cat "$TMPDIR/err"; fail "ids without frames"; }
}

echo "definitions"
record trace.dat stackmap-define
kill $bystander
cat "$ids/stack_map_bin" > map.bin
echo reset > "$ids/stack_map"
with_plugin -i trace.dat > report
[ ! -s err ] || { cat err; fail "report has a complaint"; }
resolved report
for instance in ids full; do
	[ "$(grep -c "^ *$instance: .* sched_switch: .* sleep:.* ==> swapper/" report)" -ge 3 ] || fail "$instance: no events of children"
	if grep "^ *$instance: .* sched_switch: .* nap:.* swapper/" report; then
		fail "$instance: another process was recorded"
	fi
done
stacks_of ids report > ids.txt
stacks_of full report > full.txt
echo "$(wc -l < full.txt) events, $(grep -c 'stack_split3\?: ' report) split stacks"
[ "$(wc -l < full.txt)" -ge 10 ] || fail "too few events"
grep -q 'stack_split: ' report || fail "no stack was split"
cmp full.txt ids.txt || { diff full.txt ids.txt | head -n 20; fail "the stacks differ"; }
if grep -q '	$' full.txt; then
	fail "events without a stack"
fi

# The comparison must be able to fail.
sed '/ ids: .* stack_id:/,/^[^=]/s/^=> __schedule .*/=> other/' report > mutilated
stacks_of ids mutilated > ids.txt
! cmp -s full.txt ids.txt || fail "another frame, and nobody noticed"

echo "one CPU, whose definitions may be on the other one"
for cpu in 0 1; do
	with_plugin -i trace.dat --cpu $cpu -O stackmap:map="$TMPDIR/map.bin" > one
	[ "$(bare one)" -eq 0 ] || fail "CPU $cpu: ids that the map does not have"
done

echo "without definitions"
record plain.dat
cat "$ids/stack_map_bin" > plain.bin
with_plugin -i plain.dat > report
[ "$(bare report)" -ge 10 ] || fail "frames, from where?"
grep -q 'no frames for id' err || fail "no word of what is missing"
STACKMAP=$TMPDIR/plain.bin with_plugin -i plain.dat > report
resolved report
stacks_of ids report > ids.txt
stacks_of full report | cmp - ids.txt || fail "the stacks differ"
with_plugin -i plain.dat -O stackmap:map="$ids" > live
cmp live report || fail "the live map is another one"

echo "stackmap_dump annotates the report with the plugin as that without"
annotate() { stackmap_dump annotate -q - plain.bin | sed 's/ @0 -1//g'; }
trace-cmd report -q -i plain.dat | annotate > annotated
annotate < report | cmp - annotated || fail "another text"
[ "$(grep -c '^ => ' annotated)" -ge 50 ] || fail "too few frames"

# trace-cmd leaves these.
cd "$TRACING_DIR"
echo > set_event_pid
echo > set_ftrace_pid
echo local > trace_clock
