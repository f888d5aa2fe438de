#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Others that use the buffers while the map is replaced: consuming readers, one with the buffer mapped,
# resizes, CPUs that go and come, resets, the removal of the instance. Nothing is lost or stuck.
# Usage: rotate-users.sh [rotations]
# takes: 77
# append: rcupdate.rcu_cpu_stall_suppress=1
# program: perl
# timeout: 600
. /guest/lib/lib.sh

rounds=${1:-3}
dir=instances/users

begin() { # buffer_size_kb
	make_small_instance users
	echo "$1" > $dir/buffer_size_kb
	(cd $dir; record_many_functions)
}

# A process in the background, and its end.
start() { # command...
	: > "$TMPDIR/run"
	(trap - EXIT; set +e; "$@") &
	other=$!
}

stop() {
	rm "$TMPDIR/run"
	wait $other || fail "$1"
}

# A reader of trace_pipe that has nothing to read when tracing is turned off waits for one more event. With the
# function tracer, the buffer is emptied just after tracing is turned on, with the first events in it.
end_reader() { # cpu...
	stop_recording $dir
	while kill -0 $other 2>/dev/null; do
		sleep .1
		for cpu; do
			grep -q '^entries: 0$' $dir/per_cpu/cpu"$cpu"/stats || continue 2
		done
		echo nop > $dir/current_tracer
		echo 1 > $dir/tracing_on
		for cpu; do
			taskset -c "$cpu" sh -c "echo end > $dir/trace_marker"
		done
		echo 0 > $dir/tracing_on
	done
	wait $other
}

# Nothing is lost that was recorded, and all of it resolves.
finish() {
	stop_recording $dir
	cat $dir/trace > "$TMPDIR/trace"
	grep -m 3 '(stale)' "$TMPDIR/trace" && fail "stale ids in the buffer"
	check_map $dir
	left=$(count_ids "$TMPDIR/trace")
	echo "$(stat_of rotations $dir) rotations, $(stat_of successes $dir) ids, $left of them in the buffer"
	rmdir $dir
}

lost_in() { # what came out of the buffer
	[ "$(lost_events $dir)" -eq 0 ] || fail "the buffer is too small"
	[ $(($1 + $(count_ids $dir/trace))) -eq "$(stat_of successes $dir)" ] ||
		fail "$1 ids were read, $(count_ids $dir/trace) are left, of $(stat_of successes $dir)"
}

echo "trace_pipe"
begin 8192
show_frames 0 $dir
cat $dir/trace_pipe > "$TMPDIR/pipe" &
other=$!
rotate "$rounds" $dir
end_reader 0 1
grep -m 3 '(stale)' "$TMPDIR/pipe" && fail "stale ids in trace_pipe"
lost_in "$(count_ids "$TMPDIR/pipe")"
finish

id_types() {
	for e in stack_id stack_split stack_split3; do
		sed -n 's/^ID: //p' events/ftrace/$e/format
	done
}

raw() { # how
	perl /guest/programs/raw.pl "$1" $dir/per_cpu/cpu0/trace_pipe_raw "$TMPDIR/run" > "$TMPDIR/raw"
}

for how in read splice mmap; do
	command -v perl > /dev/null || continue
	echo "trace_pipe_raw, $how"
	make_small_instance users
	echo 1 > $dir/tracing_cpumask
	echo 16384 > $dir/buffer_size_kb
	(cd $dir; record_many_functions)
	start raw $how
	taskset -cp 0 $$ > /dev/null
	rotate "$rounds" $dir
	taskset -cp 0-1 $$ > /dev/null
	stop_recording $dir
	stop "the reader of trace_pipe_raw failed"
	id_types > "$TMPDIR/types"
	lost_in "$(awk 'NR == FNR { id[$1]; next } $1 in id { n += $2 } END { print n + 0 }' \
		"$TMPDIR/types" "$TMPDIR/raw")"
	finish
done

# Three rotations, and room for all that they record on one CPU: a lost event would end the reader's page.
echo "trace, half read"
begin 16384
show_frames 0 $dir
stackmap_work 1
exec 3< $dir/trace
read -r -N 2000 text <&3
rotate 3 $dir
stop_recording $dir
cat <&3 > "$TMPDIR/trace"
exec 3<&-
[ ${#text} -eq 2000 ] || fail "${#text} bytes are read before the pause"
[ "$(lost_events $dir)" -eq 0 ] || fail "the buffer is too small: $(lost_events $dir) events are lost"
[ "$(count_ids "$TMPDIR/trace")" -gt 1000 ] ||
	fail "$(count_ids "$TMPDIR/trace") ids are read after the pause"
grep -m 3 '(stale)' "$TMPDIR/trace" && fail "stale ids after the pause"
finish

echo "A CPU whose buffer is full and does not overwrite"
begin 64
echo 0 > $dir/options/overwrite
taskset -cp 0 $$ > /dev/null
: > $dir/trace
until grep -q '^dropped events: [1-9]' $dir/per_cpu/cpu0/stats; do
	stackmap_work 1
done
grep -v '^#' $dir/per_cpu/cpu0/trace > "$TMPDIR/before"
cat $dir/per_cpu/cpu1/trace_pipe > /dev/null &
other=$!
taskset -cp 1 $$ > /dev/null
rotate "$rounds" $dir
taskset -cp 0-1 $$ > /dev/null
grep -v '^#' $dir/per_cpu/cpu0/trace > "$TMPDIR/after"
for i in before after; do
	without_names "$TMPDIR/$i" > "$TMPDIR/$i.txt"
done
cmp "$TMPDIR/before.txt" "$TMPDIR/after.txt" || fail "the full buffer is not what it was"
echo "$(count_ids "$TMPDIR/after") ids in it"
end_reader 1
finish

resize() {
	while [ -e "$TMPDIR/run" ]; do
		for kb in 300 100 200; do
			echo $kb > $dir/buffer_size_kb || return
			echo 150 > $dir/per_cpu/cpu1/buffer_size_kb || return
			echo x >> "$TMPDIR/resizes"
		done
		[ ! -e $dir/buffer_subbuf_size_kb ] || {
			echo 8 > $dir/buffer_subbuf_size_kb || return
			echo 4 > $dir/buffer_subbuf_size_kb || return
		}
	done
}

echo "Resizes"
begin 200
start resize
rotate "$rounds" $dir
stop "a resize was refused"
echo "$(wc -l < "$TMPDIR/resizes") resizes"
finish

online=/sys/devices/system/cpu/cpu1/online
hotplug() {
	while [ -e "$TMPDIR/run" ]; do
		echo 0 > $online || return
		echo 1 > $online || return
		echo x >> "$TMPDIR/hotplugs"
	done
}

if [ -w $online ]; then
	echo "CPU 1 goes and comes"
	begin 200
	start hotplug
	rotate "$rounds" $dir
	stop "CPU 1 can't go or come"
	echo "$(wc -l < "$TMPDIR/hotplugs") times"
	finish
fi

reset() {
	while [ -e "$TMPDIR/run" ]; do
		sleep .3
		echo 0 > $dir/options/stackmap || return
		echo reset 1<> $dir/stack_map || return
		echo 1 > $dir/options/stackmap || return
		echo x >> "$TMPDIR/resets"
	done
}

echo "Resets, with recording on"
begin 200
start reset
gen=$(stat_of generation $dir)
until [ "$(stat_of generation $dir)" -ge $((gen + 3 * rounds)) ]; do
	stackmap_work 1
done
stop "a reset was refused"
resets=$(wc -l < "$TMPDIR/resets")
echo "$resets resets, $(stat_of generation $dir) generations"
[ "$resets" -gt 0 ] && [ $((resets + rounds)) -lt "$(stat_of generation $dir)" ] ||
	fail "not resets and rotations"
stop_recording $dir
check_map $dir
rmdir $dir

echo "Removal"
for n in 1 2 3 4 5; do
	begin 100
	rotate 2 $dir
	start stackmap_work 20
	sleep .$n
	echo nop > $dir/current_tracer
	rmdir $dir || fail "the instance can't be removed"
	stop "the work failed"
done
