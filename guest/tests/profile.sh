#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Profiles of one recording by trace-cmd of two instances: those of ids and of full stacks are the same, the time off
# the CPU is what awk makes of the report of each, and all forms have the same sum of a field.
# takes: 8
# timeout: 200
. /guest/lib/lib.sh
. /guest/lib/record.sh
. /guest/lib/profile.sh

[ -e options/stackmap-define ] || skip "this kernel has no stackmap-define"

make_instance ids
make_instance full
cd "$TMPDIR"
out=$TMPDIR/trace.dat

# Of all tasks. Both instances have the same events.
trace-cmd record -q -k -o "$out" \
	-B ids -C mono -e sched:sched_switch -e kmem:kmem_cache_alloc -O stacktrace -O stackmap -O stackmap-define \
	-B full -C mono -e sched:sched_switch -O stacktrace -- \
	sh -c 'for cpu in 0 1 0 1; do taskset $((cpu + 1)) sleep 1 & done; wait'
trace-cmd report -q -t -N -i "$out" 2> /dev/null > report

echo "four tasks sleep one second each, on two CPUs"
for instance in ids full; do
	grep "^ *$instance: " report > $instance.report
	echo $instance
	same_tasks time 'sleep .*' $instance.report -i $instance
	[ "$(total < tool.time)" -ge 3000000 ] || fail "they have slept longer"
	stackmap_dump export --format folded -q -i $instance -e sched_switch "$out" | sort > $instance.folded
done
[ "$(wc -l < ids.folded)" -ge 10 ] || fail "too few stacks"
# Events may be lost at the beginning and at the end of one of them.
same=$(comm -12 ids.folded full.folded | wc -l)
echo "$same of $(wc -l < ids.folded) different stacks have the same count"
[ "$same" -ge $(($(wc -l < ids.folded) * 8 / 10)) ] || { diff ids.folded full.folded; fail "the profiles differ"; }

echo "bytes"
bytes=$(own_profile bytes < ids.report | awk '{ n += $(NF - 1) } END { print n + 0 }')
for format in folded perf; do
	stackmap_dump export --format $format -q -i ids -w bytes_alloc "$out" > out.$format
done
echo "$bytes, and $(total < out.folded) in folded stacks"
[ "$bytes" -gt 0 ] && [ "$(total < out.folded)" = "$bytes" ] || fail "the sums of bytes_alloc differ"
[ "$(stackmap_dump report --json -q -i ids -w bytes_alloc "$out" | sed -n 's/^ {"self": \([0-9]*\),.*/\1/p' | total)" = "$bytes" ] ||
	fail "the report as JSON has another sum"
[ "$(awk '/^[^\t]/ { n += $(NF - 1) } END { print n }' out.perf)" = "$bytes" ] || fail "perf script has another sum"
[ "$(stackmap_dump report -q -i ids -w bytes_alloc "$out" | awk 'NR == 1 { print $2 }')" = "$bytes" ] ||
	fail "the report has another sum"
