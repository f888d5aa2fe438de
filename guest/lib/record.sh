# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Sourced by the tests of "stackmap_dump record": runs it, and checks that all else stays as it was.

command -v stackmap_dump > /dev/null || skip "there is no stackmap_dump here"
command -v trace-cmd > /dev/null || skip "there is no trace-cmd here"

out=$TMPDIR/out
# shellcheck disable=SC2034 # for who sources this
sleeps='for i in 1 2 3 4 5 6 7 8 9 10; do sleep .01; done'

# All that a user may have set, what the map of the top level has, and who works for trace-cmd.
state() {
	ls instances
	grep '' tracing_on trace_options set_event set_event_pid current_tracer buffer_size_kb stack_map_stat trace_clock \
		events/enable /sys/module/ftrace_stackmap/parameters/*
	grep -v "^#" trace || true
	ps axo args | grep '^trace-cmd' || true
} 2> /dev/null

# A process that was killed needs a moment to end.
undisturbed() {
	for _ in $(seq 20); do
		state > "$TMPDIR/after"
		! cmp -s "$TMPDIR/before" "$TMPDIR/after" || return 0
		sleep .5
	done
	fail "tracing is not as it was: $(diff "$TMPDIR/before" "$TMPDIR/after" | grep '^[<>]' | tr '\n' ';')"
}

# Runs "record" and compares its status. Sets $err to its messages.
recorded() { # status arguments...
	want=$1
	shift
	state > "$TMPDIR/before"
	stackmap_dump record "$@" > "$TMPDIR/stdout" 2> "$TMPDIR/err" < /dev/null && rc=0 || rc=$?
	err=$(cat "$TMPDIR/err")
	echo "record $*: $rc: $err"
	[ $rc -eq "$want" ] || fail "the status is $rc, not $want"
	undisturbed
}

says() { # text
	case $err in
	*"$1"*) ;;
	*) fail "no word of: $1" ;;
	esac
}

nothing_left() {
	[ "$(echo "$out"*)" = "$out*" ] || fail "there is $(echo "$out"*)"
}

# What is on the disk can be read.
report() { # directory
	trace-cmd report -q -i "$1/trace.dat" 2> /dev/null > "$TMPDIR/report" || fail "no trace.dat to read in $1"
	[ -s "$1/stack_map_bin" ] && [ -s "$1/kallsyms" ] || fail "$1 has no map or no symbols"
	[ ! -e "$1/head.dat" ] && [ "$(echo "$1"/trace.dat.*)" = "$1/trace.dat.*" ] || fail "files are left: $(ls "$1")"
	stackmap_dump map -q "$1" > /dev/null || fail "the map in $1 cannot be read"
}

# If nothing was lost, there are as many stacks as the map was asked for.
whole() { # directory
	report "$1"
	ids=$(grep -cE ': (stack_id|stack_split3?|kernel_stack|user_stack_id|user_unwind_stack(_id|_split)?|user_stack): ' "$TMPDIR/report")
	asked=$(awk '/^(successes|drops): / { n += $2 } END { print n }' "$1/stack_map_stat")
	echo "$1: $ids stacks of $asked"
	[ "$ids" -eq "$asked" ] || fail "$ids stacks on disk, the map was asked for $asked"
}

# Waits until an instance records.
began() { # instance
	for _ in $(seq 200); do
		if [ "$(cat "instances/$1/tracing_on" 2> /dev/null)" = 1 ]; then
			sleep 1
			return
		fi
		sleep .5
	done
	fail "instances/$1 does not record"
}
