#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs the commands of the document's quick start.
# takes: 6
# file: Documentation/trace/ftrace-stackmap.rst
# timeout: 300
. /guest/lib/lib.sh

doc=/guest/ftrace-stackmap.rst

# Prints the commands of the section from the line that matches FROM to the one that matches TO.
commands() { # from to
	awk -v from="$1" -v to="$2" '
		/^Quick start$/ { section = 1 }
		!section { next }
		$0 ~ from { on = 1 }
		on && $0 ~ to { exit }
		on && /^  # / { print substr($0, 5) }' "$doc"
}

# Runs the commands in one shell, which exits at the first failure.
type_in() { # commands output
	sh -ex "$1" > "$2" 2>&1 || { cat "$2"; fail "a command of $1 failed"; }
	cat "$2"
}

trap - EXIT
commands '^Quick start' '^To put everything back' > "$TMPDIR/do"
commands '^To put everything back' '^From boot' > "$TMPDIR/undo"
[ "$(wc -l < "$TMPDIR/do")" -ge 5 ] || fail "too few commands in the quick start"
[ "$(wc -l < "$TMPDIR/undo")" -ge 4 ] || fail "too few commands to put everything back"

cd /
type_in "$TMPDIR/do" "$TMPDIR/out"
grep -qE ': <stack_(id [0-9]+|split [0-9]+( @[0-9a-f]+ [0-9]+)+)>$' "$TMPDIR/out" || fail "no id is shown"
grep -q '^ => ' "$TMPDIR/out" || fail "no frame is shown"
grep -q '^successes: [1-9]' "$TMPDIR/out" || fail "no statistics are shown"
grep -q '^  \[0\] ' "$TMPDIR/out" || fail "no stack of stack_map is shown"
# The user is in the directory to which the first commands changed.
cd /sys/kernel/tracing
type_in "$TMPDIR/undo" "$TMPDIR/out"
# But for what keeps the generations of stale ids from being used again.
[ "$(stat_of memory)" -lt 4096 ] || fail "memory is left"
[ "$(cat options/stackmap) $(cat options/stacktrace) $(cat events/enable) $(cat tracing_on)" = "0 0 0 1" ] ||
	fail "not everything was put back"

# boot.sh must boot with the kernel arguments of the document.
line=$(sed -n 's/^  \(trace_options=.*\)/\1/p' "$doc")
[ -n "$line" ] || fail "the document has no kernel arguments"
grep -qF "append: $line " /guest/tests/boot.sh || fail "boot.sh has other kernel arguments than $line"
