#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One allocation after the other fails: of setting the option, of a reset, of reading the files. Each
# time the call says ENOMEM and nothing has changed, or it does without that memory; nothing leaks,
# and tracing goes on.
# flavour: debug
# when: full
# timeout: 1500
. /guest/lib.sh

[ -e /proc/self/fail-nth ] || skip "no fail-nth"
debug=/sys/kernel/debug
[ -e $debug/kmemleak ] || skip "no kmemleak"
# Any allocation may fail, those that may sleep and of all orders.
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

# The N-th allocation fails, of this shell itself, so that no other program's count. Prints what is
# left of N behind the call: 0 if it came to that. What the call complains of goes to $TMPDIR/errno.
nth_write() { # n file text
	exec 9<> "/proc/$BASHPID/fail-nth"
	exec 2> "$TMPDIR/errno"
	echo "$1" >&9
	# Without O_TRUNC, which would be a reset of its own.
	echo "$3" 1<> "$2"
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
	# What could not be read is read whole with the next try.
	if [ -s "$TMPDIR/errno" ] && [ -e /proc/self/fd/8 ]; then
		cat <&8 | cmp - "$2" > /dev/null || echo "it differs when it is read again" >&2
	fi
}

# every NAME REFUSED DONE COMMAND...: for each allocation. REFUSED is called after an ENOMEM, DONE
# after a success in spite of the failure.
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
	test "$(stat_of memory $dir)" = 0 || fail "there is memory after ENOMEM"
}

free_map() {
	test "$(cat $dir/options/stackmap)" = 1 || fail "the option is off after it was set"
	echo 0 > $dir/options/stackmap
	echo 0 > $dir/tracing_on
	echo reset > $dir/stack_map
	test "$(stat_of memory $dir)" = 0 || fail "the reset does not free the map"
	echo 1 > $dir/tracing_on
}

no_reset() {
	test "$(stat_of generation $dir)" = "$gen" || fail "a new generation after ENOMEM"
	test "$(cat $dir/options/stackmap)" = 1 || fail "the option has gone"
}

was_reset() {
	gen=$((gen + 1))
	no_reset
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
# kmemleak reports what is older than 5 seconds.
sleep 6
echo scan > $debug/kmemleak
echo scan > $debug/kmemleak
cat $debug/kmemleak
! grep -q stackmap $debug/kmemleak || fail "memory leaks"
