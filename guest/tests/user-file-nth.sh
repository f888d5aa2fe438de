#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# User stacks by file without memory: each allocation on the way back from a system call fails, one at a
# time. Frames have the right file, or stay addresses; the file has a record at the next use. Nothing leaks.
# takes: 120
# flavour: debug
# full: each allocation of the debug kernel, one by one; no other test has them
# timeout: 600
. /guest/lib/lib.sh
[ -e options/userstacktrace_delay ] || skip "no deferred unwinding"
[ -e /proc/self/fail-nth ] || skip "no fail-nth"
debug=/sys/kernel/debug
for kind in failslab fail_page_alloc; do
	echo N > $debug/$kind/ignore-gfp-wait
	echo 0 > $debug/$kind/verbose
done
echo N > $debug/fail_page_alloc/ignore-gfp-highmem
echo 0 > $debug/fail_page_alloc/min-order
echo clear > $debug/kmemleak

make_instance nth
cd instances/nth
echo 0 > tracing_on
trace_closes .

record() { # command, which prints its stacks
	echo > trace
	echo 1 > tracing_on
	"$@" > "$TMPDIR/truth" 2> "$TMPDIR/left"
	echo 0 > tracing_on
	stacks_of trace > "$TMPDIR/trace"
}

# Each frame is the right one, or an address. Prints how many of each.
compare() {
	paste -d '\n' "$TMPDIR/truth" "$TMPDIR/trace" | awk 'NR % 2 { n = split($0, truth); next }
		# Without memory for the unwinder, there is no stack.
		NF > 1 && NF != n { print "not " n " frames: " $0; exit 1 }
		{ for (i = 2; i <= NF; i++) if ($i ~ /^0x/) bare++; else if ($i == truth[i]) right++; else {
			print $i " is not " truth[i]; exit 1 } }
		END { print right + 0 " " bare + 0 }'
}

# The checkers allocate now and then, too, so the same number may be another allocation.
i=0
addresses=0
while [ $i -lt 24 ]; do
	i=$((i + 1))
	n=$(((i - 1) % 8 + 1))
	# Each is a new file, without a build id.
	cp /usr/local/bin/userstack.stripped "$TMPDIR/prog$i"
	record "$TMPDIR/prog$i" -f -e $n 3
	counts=$(compare) || fail "allocation $n: $counts"
	left=$(tr -d '\0' < "$TMPDIR/left")
	echo "allocation $n: right, addresses: $counts; left: $left"
	[ "${counts#* }" -eq 0 ] || addresses=$((addresses + 1))
	record "$TMPDIR/prog$i" -f 3
	diff "$TMPDIR/truth" "$TMPDIR/trace" || fail "allocation $n: no file later"
done
[ $addresses -gt 0 ] || fail "nothing failed"
check_map .

cd $TRACING_DIR
echo 0 > instances/nth/options/stackmap
echo reset > instances/nth/stack_map
rmdir instances/nth
check_leaks 'user_file|user_mapping'
echo "user stacks by file without memory: passed"
