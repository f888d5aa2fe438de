#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Under KCSAN, both CPUs insert, hit, reset, read and toggle, and maps are replaced; with user stacks and
# definitions. The KUnit tests have run at boot, with threads and interrupts that race for slots. No report
# may name a function of the stack map. Reports about the ring buffer and a task's recursion bits are ignored: they
# come without a stack map, too. So is that of ftrace_stackmap_set(), which changes tr->trace_flags while events read
# them, as set_tracer_flag() does for the other options.
# takes: 600
# flavour: kcsan
# thread: multi
# append: log_buf_len=8M
# full: a kernel of its own; the races that KUnit makes are in make test
# timeout: 1800
# splat: allowed
# reject-console: BUG: KCSAN: data-race in (|.* )(ftrace_stackmap_(s[^e]|[^s])|stackmap_|[a-eg-z][a-z_]*stackmap|test_)
. /guest/lib/lib.sh

dmesg | grep -q 'kcsan: enabled' || fail "KCSAN is not on"
dmesg | grep -E '^\[[^]]*\] *(# ftrace_stackmap|ok [0-9]+ ftrace_stackmap|not ok)' || true
dmesg | grep -q '] ok [0-9]* ftrace_stackmap' || fail "the KUnit tests did not pass"

# The events stay on from the start, because QEMU does not survive code patching under load, see storm.sh.
seconds=60
stackmap_on
set_opt /sys/module/ftrace_stackmap/parameters/bits 10
echo 1 > events/kmem/enable
echo 1 > events/sched/enable
echo 1 > tracing_on
# Nobody resets this one: its map fills up.
make_small_instance recycled
# With user stacks and definitions, one way in each instance.
set_opt options/userstacktrace 1
for o in userstacktrace_delay stackmap-define; do
	[ ! -e instances/recycled/options/$o ] || echo 1 > instances/recycled/options/$o
done
for e in kmem sched irq timer; do
	echo 1 > instances/recycled/events/$e/enable
done
echo 1 > instances/recycled/tracing_on
touch "$TMPDIR/run"
forever() {
	trap - EXIT
	set +e
	while [ -e "$TMPDIR/run" ]; do
		"$@" > /dev/null 2>&1
	done
}
reset() {
	echo 0 > tracing_on
	echo reset > stack_map
	echo 1 > tracing_on
	sleep .2
}
read_files() {
	cat stack_map stack_map_bin stack_map_stat
	head -c 20000 trace
	cd instances/recycled || return
	cat stack_map stack_map_bin stack_map_stat
	head -c 20000 trace
	echo 1 > snapshot
	cd ../..
}
toggle() {
	echo 0 > options/stackmap
	sleep .1
	echo 1 > options/stackmap
	sleep .1
}
for cpu in 0 1; do
	for what in "stackmap_work 1" read_files; do
		forever $what &
		taskset -pc $cpu $! > /dev/null
	done
done
forever reset &
forever toggle &
sleep $seconds
rm "$TMPDIR/run"
wait
stop_recording
cat stack_map_stat
check_map
stop_recording instances/recycled
echo "a map that nobody resets: $(stat_of rotations instances/recycled) rotations"
[ "$(stat_of rotations instances/recycled)" -gt 0 ] || fail "no map was replaced"
check_map instances/recycled

echo "KCSAN has told of:"
dmesg | sed -n 's/.*BUG: KCSAN: //p' | sort | uniq -c
