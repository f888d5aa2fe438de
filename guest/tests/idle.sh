#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Nothing polls: with the option on and nothing recorded, the stack map runs no timer and no work for 20
# seconds. Then the map fills up, and the test must see its work.
# takes: 45
# timeout: 200
. /guest/lib/lib.sh

set_opt /sys/module/ftrace_stackmap/parameters/bits 10
make_instance idle
make_instance watch
echo 8192 > instances/watch/buffer_size_kb
echo 1 > instances/idle/options/stacktrace
echo 1 > instances/idle/options/stackmap
stackmap_work

ours() {
	grep -E '(function|func|work struct.*)[= ]_?_?(ftrace_)?stackmap_' instances/watch/trace || true
}

for e in workqueue timer irq_vectors/irq_work_entry; do
	[ ! -e instances/watch/events/$e ] || echo 1 > instances/watch/events/$e/enable
done
sleep 20
echo 0 > instances/watch/tracing_on
[ "$(lost_events instances/watch)" -eq 0 ] || fail "the buffer was too small for 20 seconds"
echo "in 20 seconds: $(grep -c 'workqueue_queue_work:' instances/watch/trace) works," \
	"$(grep -c 'timer_start:' instances/watch/trace) timers; of the stack map: $(ours | wc -l)"
[ -z "$(ours)" ] || fail "$(ours | head -n 5)"

echo "And while the map fills up"
echo 1 > instances/watch/tracing_on
cd instances/idle
record_many_functions
rounds=0
while [ -z "$(cd $TRACING_DIR; ours)" ]; do
	[ $rounds -lt 50 ] || fail "the work of a map that is nearly full is not seen"
	rounds=$((rounds + 1))
	stackmap_work 1
done
stop_recording
cd $TRACING_DIR
ours | head -n 3
