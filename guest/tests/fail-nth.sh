#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes each allocation fail, one at a time: of setting the option, of a reset, of reading the files.
# The call returns ENOMEM and changes nothing, or works without that memory. Nothing leaks, and tracing
# goes on.
# takes: 600
# flavour: debug
# full: some hundred allocations of the debug kernel, one by one; no other test has them
# timeout: 1500
. /guest/lib/lib.sh

[ -e /proc/self/fail-nth ] || skip "no fail-nth"
debug=/sys/kernel/debug
[ -e $debug/kmemleak ] || skip "no kmemleak"
# Inject failures into allocations of all orders, also into those that may sleep.
for kind in failslab fail_page_alloc; do
	echo N > $debug/$kind/ignore-gfp-wait
	echo 0 > $debug/$kind/verbose
done
echo N > $debug/fail_page_alloc/ignore-gfp-highmem
echo 0 > $debug/fail_page_alloc/min-order
echo clear > $debug/kmemleak

make_instance nth
dir=instances/nth
echo 1 > $dir/options/stacktrace
echo 1 > $dir/events/sched/sched_switch/enable
echo 10 > /sys/module/ftrace_stackmap/parameters/bits

# Makes the N-th allocation of this shell fail. Prints the rest of N after the call: 0 if it came to the
# N-th. The error message goes to $TMPDIR/errno.
nth_write() { # n file text
	exec 9<> "/proc/$BASHPID/fail-nth"
	exec 2> "$TMPDIR/errno"
	echo "$1" >&9
	echo "$3" > "$2"
	read -r left <&9
	echo 0 >&9
	echo "$left"
}

nth_read() { # n file
	exec 9<> "/proc/$BASHPID/fail-nth"
	exec 2> "$TMPDIR/errno"
	echo "$1" >&9
	exec 8< "$2" && IFS= read -r -u 8 -N 300 _
	read -r left <&9
	echo 0 >&9
	echo "$left"
	# The next try reads the whole file.
	if [ -s "$TMPDIR/errno" ] && [ -e /proc/self/fd/8 ]; then
		cat <&8 | cmp - "$2" > /dev/null || echo "it differs when it is read again" >&2
	fi
}

# every NAME REFUSED DONE COMMAND...: runs COMMAND once for each allocation. Calls REFUSED after an
# ENOMEM, DONE if the command succeeds in spite of the failure.
every() {
	local name=$1 refused=$2 done=$3 i=0 struck=0 left error
	shift 3
	while :; do
		i=$((i + 1))
		left=$(trap - EXIT; set +e; "$1" $i "${@:2}" 2> /dev/null)
		error=$(tr -d '\0' < "$TMPDIR/errno")
		[ "$left" = 0 ] || break
		case $error in
		"") $done ;;
		*"it differs"*) fail "$name, allocation $i: $error" ;;
		*"Cannot allocate memory"*) struck=$((struck + 1)); $refused ;;
		*) fail "$name, allocation $i: $error" ;;
		esac
		[ $i -lt 3000 ] || fail "$name: no end of allocations"
	done
	[ -z "$error" ] || fail "$name fails with all the memory: $error"
	echo "$name: $((i - 1)) allocations, without $struck of them it ends with ENOMEM"
	[ $struck -gt 0 ] || fail "$name: nothing failed"
}

no_map() {
	test "$(cat $dir/options/stackmap)" = 0 || fail "the option is on after ENOMEM"
	test "$(stat_of memory $dir)" -lt 4096 || fail "there is memory after ENOMEM"
}

free_map() {
	test "$(cat $dir/options/stackmap)" = 1 || fail "the option is off after it was set"
	echo 0 > $dir/options/stackmap
	echo 0 > $dir/tracing_on
	echo reset > $dir/stack_map
	test "$(stat_of memory $dir)" -lt 4096 || fail "the reset does not free the map"
	echo 1 > $dir/tracing_on
}

no_reset() {
	test "$(stat_of generation $dir)" = "$gen" || fail "a new generation after ENOMEM"
	test "$(cat $dir/options/stackmap)" = 1 || fail "the option has gone"
}

was_reset() {
	gen=$((gen + 1))
	no_reset
	# A reset of a map that was not used keeps the generation.
	echo 1 > $dir/tracing_on
	stackmap_work
	stop_recording $dir
}

every "enabling" no_map free_map nth_write $dir/options/stackmap 1
test "$(cat $dir/options/stackmap)" = 1 || fail "the option is off after it was set"
stackmap_work
test "$(stat_of successes $dir)" -gt 0 || fail "nothing goes through the map"

echo 0 > $dir/tracing_on
gen=$(stat_of generation $dir)
every "reset" no_reset was_reset nth_write $dir/stack_map reset
was_reset

echo 1 > $dir/tracing_on
stackmap_work
test "$(stat_of successes $dir)" -gt 0 || fail "nothing goes through the new map"
stop_recording $dir
for file in stack_map stack_map_bin stack_map_stat; do
	every "reading $file" : : nth_read $dir/$file
done
check_map $dir

echo 0 > $dir/events/enable
free_map
rmdir $dir
check_leaks stackmap
