#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A buffer whose sub-buffers get another size is empty, and so are its counts, whether it was read or not.
# takes: 5
# program: perl
# timeout: 300
. /guest/lib/lib.sh

stat_of_cpu() { sed -n "s/^$1: //p" per_cpu/cpu0/stats; }

kb=$(cat buffer_subbuf_size_kb)
echo 1 > tracing_on
for read in 0 1; do
	clear_trace
	taskset 1 sh -c 'echo hello > trace_marker'
	[ $read -eq 0 ] || timeout 60 sed '/hello$/q' per_cpu/cpu0/trace_pipe
	set_opt buffer_subbuf_size_kb $((2 * kb))
	cat per_cpu/cpu0/stats
	[ "$(stat_of_cpu entries)" = 0 ] || fail "$(stat_of_cpu entries) entries"
	# A reader that finds no event in a buffer that is not empty does not end.
	[ -z "$(dd if=trace_pipe iflag=nonblock 2> /dev/null)" ] || fail "events in trace_pipe"
	[ "$(stat_of_cpu bytes)" = 0 ] || fail "$(stat_of_cpu bytes) bytes"
	[ "$(stat_of_cpu overrun)" = $((1 - read)) ] || fail "$(stat_of_cpu overrun) events are lost"
	[ "$(stat_of_cpu "read events")" = $read ] || fail "$(stat_of_cpu "read events") events were read"

	# The pages with events are counted by who waits for some of them.
	taskset 1 sh -c 'echo again > trace_marker'
	perl -e 'open(my $f, "<", "per_cpu/cpu0/trace_pipe_raw") or die "$!\n";
		vec(my $files, fileno($f), 1) = 1;
		select($files, undef, undef, .1)'
	set_opt buffer_subbuf_size_kb "$kb"
done

# Events that such a change has lost are no gap for a reader of the mapped buffer.
for _ in $(seq 2000); do
	echo fill > trace_marker
done
set_opt buffer_subbuf_size_kb $((2 * kb))
taskset 1 sh -c 'for i in 1 2 3; do echo $i > trace_marker; done'
perl /guest/programs/raw.pl mmap per_cpu/cpu0/trace_pipe_raw "$TMPDIR/none" > "$TMPDIR/read"
cat "$TMPDIR/read"
grep -qx 'lost 0' "$TMPDIR/read" || fail "the reader of a mapped buffer misses events"
set_opt buffer_subbuf_size_kb "$kb"
