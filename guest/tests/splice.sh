#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# splice() of trace_pipe prints all ids with their frames, and goes on behind a line that does not fit.
# takes: 15
# program: perl
# timeout: 300
. /guest/lib/lib.sh

[ "$(uname -m)" = x86_64 ] || skip "the number of the system call is that of x86-64"
has_frames_option || skip "Linux 6.12 does not get the fixes of splice()"

# Splices up to LEN bytes at a time, until there are none, behind a read() of READ bytes; prints them.
# FULL pages of the pipe are taken.
splice() { # LEN [READ [FULL]]
	perl -e 'sysopen(my $in, "trace_pipe", 04000) or die "$!\n";	# O_NONBLOCK
		pipe(my $out, my $pipe);
		if ($ARGV[1]) { sysread($in, my $left, $ARGV[1]); print $left; }
		my $full = ($ARGV[2] || 0) * 4096;
		while (1) {
			syswrite($pipe, "\0" x $full);
			my $n = syscall(275, fileno($in), 0, fileno($pipe), 0, $ARGV[0] + 0, 0);
			last if $n <= 0;
			die "$n bytes, not $ARGV[0]\n" if $n > $ARGV[0];
			my $text = "";
			1 while sysread($out, $text, $full + $n - length $text, length $text);
			print substr($text, $full);
		}' "$@" > "$TMPDIR/text" &
	pid=$!
	for _ in $(seq 100); do
		sleep .5
		kill -0 $pid 2> /dev/null || { wait $pid; return; }
	done
	kill -9 $pid
	fail "splice() of $1 bytes does not end"
}

set_opt options/markers 1
echo "a line" > trace_marker
splice 10
[ ! -s "$TMPDIR/text" ] || fail "a line was printed that does not fit"
splice 4096
grep 'tracing_mark_write: a line$' "$TMPDIR/text" || fail "the line is lost"
echo "another line" > trace_marker
splice 4096 10
grep 'tracing_mark_write: another line$' "$TMPDIR/text" || fail "what read() has left is lost"

# A pipe with room for one page only, and a read() that leaves the end of a line.
set_opt buffer_size_kb 1024
mark_lines() { perl -e 'open(my $f, ">", "trace_marker"); syswrite($f, "x" x ($_ % 71) . "\n") for 1 .. 2000;'; }
for how in "65536 0 15" "200 10"; do
	mark_lines
	# shellcheck disable=SC2086
	splice $how
	n=$(grep -c 'tracing_mark_write: x*$' "$TMPDIR/text")
	[ "$n" -eq 2000 ] || fail "splice $how: $n of 2000 lines"
done

stackmap_on
set_opt options/sym-offset 1
[ ! -e options/stackmap-define ] || set_opt options/stackmap-define 1
# Several pages at once. read() may leave the end of an event.
for how in "65536 0" "65536 5000" "65536 100" "65536 5000 15"; do
	echo 1 > events/sched/sched_process_fork/enable
	echo 1 > tracing_on
	for _ in $(seq 100); do ( : ); done
	stop_recording
	echo 0 > events/sched/sched_process_fork/enable
	n=$(count_ids trace)
	[ "$n" -ge 100 ] || fail "$n stacks"
	echo 1 > tracing_on
	# shellcheck disable=SC2086
	splice $how
	[ "$(check_resolved "$TMPDIR/text")" -eq "$n" ] || fail "splice $how: not $n ids with their frames"
done

# The tracer prints a line again that did not fit the page.
if grep -qw function_graph available_tracers; then
	echo > trace
	echo 'vfs_*' 'do_*open*' > set_ftrace_filter
	echo function_graph > current_tracer
	for _ in $(seq 40); do cat trace_clock > /dev/null; done
	echo 0 > tracing_on
	grep '[;{}]' trace | sed 's, /\*.*,,' > "$TMPDIR/want"
	[ "$(wc -l < "$TMPDIR/want")" -gt 200 ] || fail "few functions"
	splice 65536
	# Only one of the two has names behind some "}", or lines where another task runs.
	grep '[;{}]' "$TMPDIR/text" | sed 's, /\*.*,,' > "$TMPDIR/got"
	diff "$TMPDIR/want" "$TMPDIR/got" || fail "other functions"
	echo nop > current_tracer
	echo > set_ftrace_filter
	echo 1 > tracing_on
fi

# A user stack of more text than a line may have.
command -v userstack > /dev/null && [ -e options/userstacktrace ] || exit 0
long=$TMPDIR/$(printf '%0100d' 0)
cp "$(command -v userstack)" "$long"
set_opt options/stacktrace 0
set_opt options/userstacktrace 1
set_opt options/sym-userobj 1
echo 'fd == 1120' > events/syscalls/sys_enter_close/filter
echo 1 > events/syscalls/sys_enter_close/enable
# Some dozen: to print them takes long.
set_opt buffer_size_kb 4
# Paths are printed only while the process lives.
"$long" -l 120 > /dev/null &
user=$!
sleep 1
stop_recording
echo 0 > events/syscalls/sys_enter_close/enable
echo 0 > events/syscalls/sys_enter_close/filter
grep -q 'LINE TOO BIG' trace || fail "the stack is no long line"
echo 1 > tracing_on
echo "behind it" > trace_marker
# The read() leaves more than a page.
splice 65536 100
kill $user
awk '/^ => / { n++ } /LINE TOO BIG/ { print n + 0; n = 0 }' "$TMPDIR/text" > "$TMPDIR/frames"
[ "$(wc -l < "$TMPDIR/frames")" -ge 2 ] || fail "the long lines are not marked"
frames=$(sort -n "$TMPDIR/frames" | head -n 1)
[ "$frames" -ge 10 ] || fail "$frames frames of a long line are printed"
grep ': behind it$' "$TMPDIR/text" || fail "what follows a long line is lost"
