#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/series: a kernel with the first mails of the series, of which the arguments say what
# it has to have. No test here needs what only later mails bring.
# shellcheck disable=SC2317
cd /sys/kernel/tracing || exit 1
has=" $* "

has() { [ "${has#* "$1" }" != "$has" ]; }
fail() {
	echo "FAIL: $*"
	exit 1
}
number() { sed -n "s/^$1: *\([0-9]*\).*/\1/p" "${2:-.}/stack_map_stat"; }
ids() { grep -cE ': <stack_(id|split) ' "${1:-.}/trace"; }
full() { grep -c ': <stack trace>$' trace; }

# The ids and their frames, without the names of the tasks, some of which become known later.
stacks() { grep -oE '^ => .*|<stack_.*' trace; }

# Events with their stacks, in the instance in $1; interrupts for those that are to be split.
record() {
	echo > "${1:-.}/trace"
	echo 1 > "${1:-.}/options/stacktrace"
	echo 1 > "${1:-.}/events/sched/sched_switch/enable"
	echo 1 > "${1:-.}/events/timer/hrtimer_expire_entry/enable"
	echo 1 > "${1:-.}/tracing_on"
	i=0
	while [ $i -lt 40 ]; do
		(:)
		i=$((i + 1))
	done
	sleep .1
	echo 0 > "${1:-.}/tracing_on"
	echo 0 > "${1:-.}/events/enable"
	sleep .2
}

# Every event with a stack has its frames, none has the same id and other frames.
frames() {
	awk 'function done() {
		if (id == "")
			return
		if (frames == "" || ((id in known) && known[id] != frames)) {
			print "id " id ":" frames
			bad = 1
		}
		known[id] = frames
		id = ""
	}
	/^ => / { frames = frames "\n" $0; next }
	{ done() }
	/: <stack_(id|split) [^>]*>$/ { id = $0; sub(/.*: /, "", id); frames = "" }
	/: <stack trace>$/ { id = "full " NR; frames = "" }
	END { done(); exit bad }' "${1:-.}/trace" || fail "frames"
}

echo 0 > tracing_on
echo 4096 > buffer_size_kb
echo "stacks without the map"
record
[ "$(full)" -ge 20 ] || fail "$(full) full stacks"
[ "$(ids)" -eq 0 ] || fail "ids, but nothing has asked for them"
frames
has option || [ ! -e options/stackmap ] || fail "an option before its mail"

if has option; then
	echo "ids and their frames"
	echo 1 > options/stackmap || fail "options/stackmap"
	record
	n=$(ids)
	[ "$n" -ge 20 ] && [ "$(full)" -eq 0 ] || fail "$n ids, $(full) full stacks"
	different=$(grep -oE '<stack_(id|split) [0-9]+' trace | sort -u | wc -l)
	[ "$different" -ge 5 ] && [ "$different" -lt "$n" ] || fail "$different ids in $n events"
	frames
	stacks > /tmp/on
	echo 0 > options/stackmap
	stacks > /tmp/off
	cmp /tmp/on /tmp/off || fail "the option is off, and the ids do not resolve"
	mkdir instances/a || fail "an instance"
	[ "$(cat instances/a/options/stackmap)" = 0 ] || fail "the option in a new instance"
	echo 0 > instances/a/tracing_on
	echo 1 > instances/a/options/stackmap
	record instances/a
	[ "$(ids instances/a)" -ge 20 ] || fail "no ids in an instance"
	frames instances/a
	rmdir instances/a || fail "rmdir"
	record
	[ "$(ids)" -eq 0 ] || fail "the option is off, and there are ids"
fi

if has files; then
	echo "counts, files, reset"
	echo 1 > options/stackmap
	echo 0 > stack_map || fail "reset"
	record
	[ "$(number successes)" -eq "$(ids)" ] && [ "$(number drops)" -eq "$(full)" ] || fail "counts: $(cat stack_map_stat)"
	refs=$(awk '/^stack_id / { n += $4 } END { print n + 0 }' stack_map)
	parts=$(number parts)
	[ "$refs" -eq "${parts:-$(number successes)}" ] || fail "$refs references: $(cat stack_map_stat)"
	[ "$(grep -c ^stack_id stack_map)" -eq "$(number entries)" ] || fail "entries: $(cat stack_map_stat)"
	[ "$(od -An -tx4 -N8 stack_map_bin)" = " 464d5342 00000002" ] || fail "stack_map_bin"
	n=$(ids)
	echo reset > stack_map || fail "reset"
	[ "$(number entries)" -eq 0 ] && [ "$(grep -c '> (stale)$' trace)" -eq "$n" ] || fail "after the reset"
fi

if has split; then
	echo "stacks of interrupts"
	record
	grep -q ': <stack_split [0-9]* @' trace || fail "no stack was split"
	[ "$(number split)" -eq "$(grep -c ': <stack_split ' trace)" ] || fail "split: $(cat stack_map_stat)"
	frames
elif has option && grep -q stack_split trace; then
	fail "a split stack before its mail"
fi

if has growth; then
	echo "memory"
	mkdir instances/b
	echo 1 > instances/b/options/stackmap
	[ "$(number memory instances/b)" -lt 500000 ] || fail "a new map takes $(number memory instances/b) bytes"
	rmdir instances/b
elif has files && [ "$(number memory)" -lt 3000000 ]; then
	fail "a map grows before its mail: $(number memory) bytes"
fi

if has recycle; then
	echo "rotations"
	echo 10 > /sys/module/ftrace_stackmap/parameters/bits
	echo reset > stack_map
	echo 1 > tracing_on
	echo 1 > events/enable
	i=0
	while [ "$(number rotations)" -lt 3 ]; do
		i=$((i + 1))
		[ $i -lt 200 ] || fail "no rotation: $(cat stack_map_stat)"
		ls -lR /sys/kernel/tracing/events/sched /proc/self >/dev/null 2>&1
	done
	echo 0 > tracing_on
	echo 0 > events/enable
	echo 14 > /sys/module/ftrace_stackmap/parameters/bits
	(! grep '> (stale)$' trace) || fail "a rotation forgot a stack that is in the trace"
fi

if has define && [ -e options/stackmap-define ]; then
	echo "definitions"
	echo 1 > options/stackmap-define
	record
	(! grep stack_def trace) || fail "trace prints a definition"
	echo 0 > options/stackmap-frames
	grep -oE '<stack_(id|split) [0-9]+|@[0-9a-f]+ [0-9]+|<stack_def [0-9]+' trace |
		awk '{ if ($1 == "<stack_def") known[$2]; else if (!($2 in known)) exit 1 }' ||
		fail "no definition ahead of an id"
	grep -q ': <stack_def [0-9]*>$' trace || fail "no definition"
	echo 1 > options/stackmap-frames
	echo 0 > options/stackmap-define
fi

# The stacks that userstack has printed to /tmp/truth.
frames_printed() {
	for frame in $(sed 's/^[0-9]* //' /tmp/truth); do
		grep -q "^ =>  <0*${frame#0x}>\$" trace || fail "the frame $frame is not printed"
	done
}

if has user; then
	echo "user stacks"
	echo > trace
	echo 1 > options/userstacktrace
	echo 1 > events/syscalls/sys_enter_close/enable
	echo 1 > tracing_on
	userstack 1 20 > /tmp/truth
	echo 0 > tracing_on
	echo 0 > options/userstacktrace
	grep -q 'user_stack_id' trace || fail "no user stack"
	frames_printed
fi

if has delay && [ -e options/userstacktrace_delay ]; then
	echo "deferred user stacks"
	echo > trace
	echo 1 > options/userstacktrace_delay
	echo 1 > tracing_on
	userstack 1 20 > /tmp/truth
	echo 0 > events/enable
	echo 0 > tracing_on
	echo 0 > options/userstacktrace_delay
	grep -o 'user_unwind_cookie [0-9a-f]*' trace | cut -d' ' -f2 | sort -u > /tmp/cookies
	grep -o 'user_unwind_stack_id [0-9a-f]*' trace | cut -d' ' -f2 | sort > /tmp/stacks
	[ "$(wc -l < /tmp/cookies)" -ge 2 ] || fail "no cookies"
	# That of the write that has stopped the recording may be without a stack.
	[ "$(comm -23 /tmp/cookies /tmp/stacks | wc -l)" -le 2 ] || fail "cookies without a stack"
	frames_printed
fi
echo 0 > events/enable

echo 0 > options/stacktrace
[ ! -e options/stackmap ] || echo 0 > options/stackmap
[ ! -e stack_map ] || echo reset > stack_map
echo > trace
echo 1 > tracing_on

if has selftests; then
	echo "selftests"
	set --
	for t in nodes stat reset interrupt; do
		set -- "$@" "test.d/ftrace/stackmap/stackmap-$t.tc"
	done
	exec /guest/ftracetest.sh "$@"
fi
exit 0
