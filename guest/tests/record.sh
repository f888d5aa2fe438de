#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# stackmap_dump record: all events of a command are on disk, and only its own; the statuses; the selections;
# what goes wrong. Each time, the instance is gone and the rest of tracing as it was.
# takes: 75
# timeout: 800
. /guest/lib/lib.sh
. /guest/lib/record.sh

# The stacks of the command, not those of another process that has the same events all the time. It waits between
# them, since it would take half of the emulator.
cp "$(command -v bash)" "$TMPDIR/bystander"
mkfifo "$TMPDIR/fifo"
"$TMPDIR/bystander" -c 'exec 3<> "$TMPDIR/fifo"; while :; do echo > /dev/null; read -r -t .01 _ <&3; done' &
bystander=$!
recorded 0 -o "$out" -e sched:sched_switch,kmem -e syscalls -- sh -c "$sleeps"
says "$out: recorded "
[ "$(stat -c %a "$out")" = 700 ] || fail "others may read the addresses"
whole "$out"
[ "$(grep -c 'execve\|sched_switch: .* sleep:' "$TMPDIR/report")" -ge 10 ] || fail "no events of children"
entries=$(grep -vc '^cpus=' "$TMPDIR/report")
says "$out: recorded $entries buffer entries with "
# A switch has two processes. The next one may be recorded.
if grep ' bystander-' "$TMPDIR/report" | grep -v ' sched_switch: \| stack_'; then
	fail "another process was recorded"
fi
stackmap_dump map "$out" 2>&1 > /dev/null | grep ': stacks: [1-9]'
says "see: stackmap_dump report $out"

# Who was recorded is said. What the tool needs for itself is there, and does not count.
pid=$(cat "$out/command")
grep -q " sched_process_exec: .* pid=$pid " "$TMPDIR/report" || fail "the command is not $pid"
[ "$(grep -v '^module:' "$out/own_events" | tr '\n' ' ')" = \
	"sched:sched_process_fork sched:sched_process_exec sched:sched_process_exit task:task_rename task:task_newtask " ] || fail "own events: $(cat "$out/own_events")"
grep -q ' task_rename: ' "$TMPDIR/report" || fail "no names of tasks"
stackmap_dump export --format perf -q "$out" > "$TMPDIR/samples"
! grep -q ' task_rename:' "$TMPDIR/samples" || fail "what the tool needs counts"

# The earlier recording is kept once. Other directories are not touched.
mv "$out" "$TMPDIR/first"
cp -r "$TMPDIR/first" "$out"
recorded 0 -o "$out" -e syscalls --all sleep .1
whole "$out"
grep -q ' bystander-' "$TMPDIR/report" || fail "--all did not record another process"
[ ! -e "$out/command" ] || fail "--all is limited to someone"
recorders=$(paste -sd '|' "$out/own_pids")
[ "$(wc -l < "$out/own_pids")" -ge 3 ] || fail "recorders: $recorders"
if grep -E -- "-($recorders) " "$TMPDIR/report" | grep -v ' sched_switch: \| stack_'; then
	fail "the recorders were recorded"
fi
diff -r "$out.old" "$TMPDIR/first" || fail "the earlier recording is not there"
rm -r "$out"
mv "$out.old" "$out"
cp -r "$TMPDIR/first" "$out.old"
echo kept > "$out/note"
recorded 0 -q -o "$out/" true
[ -z "$err" ] || fail "-q: $err"
[ "$(cat "$out.old/note")" = kept ] || fail "the earlier recording was not renamed"
cp -r "$out" "$TMPDIR/third"
recorded 1 -o "$out" true
says "$out.old: has other files"
diff -r "$out" "$TMPDIR/third" || fail "the recording was touched"
rm -r "$out" "$out.old"
mkdir "$out"
recorded 0 -o "$out" true
[ ! -e "$out.old" ] || fail "an empty directory was kept"
rm -r "$out"
mkdir "$out"
echo mine > "$out/trace"
recorded 1 -o "$out" true
says "$out: exists and is no recording"
[ "$(cat "$out/trace")" = mine ] && [ "$(ls "$out")" = trace ] || fail "the directory was touched"
rm -r "$out"
(cd "$TMPDIR" && stackmap_dump record -q true && [ -f stackmap.data/trace.dat ]) || fail "the default directory"

# What the user has set stays, and events of the instance do not come to the top level.
set_opt tracing_on 0
echo 1 > events/sched/sched_wakeup/enable
echo 99 > set_event_pid
recorded 0 -o "$out" -e sched_switch -e sched -b 64 true
whole "$out"
echo 0 > events/sched/sched_wakeup/enable
echo > set_event_pid
set_opt tracing_on 1
rm -r "$out"

# A filter belongs to the events before it.
recorded 0 -o "$out" -e sched_switch -e kmem_cache_alloc,kmem_cache_free -f 'common_pid < 0' -- sh -c "$sleeps"
report "$out"
grep -q ' sched_switch: ' "$TMPDIR/report" || fail "no sched_switch"
if grep ' kmem_cache_' "$TMPDIR/report"; then
	fail "the filter has no effect"
fi

# Events that lack the field are not recorded in full.
recorded 1 -o "$out" -e kmem -f 'bytes_alloc > 3000' touch "$TMPDIR/ran"
says "bytes_alloc > 3000: not a filter of events/kmem/kfree"
says "name only events that have all its fields"
recorded 0 -o "$out" -e kmem:kmalloc -f 'bytes_alloc > 3000' -- sh -c "$sleeps"
recorded 1 -o "$out" -e sched -f 'common_pid < 0' touch "$TMPDIR/ran"
says "all of these are needed, without a filter"

# Two into one directory.
stackmap_dump record -o "$out" -i first -- sh -c 'sleep 4; exit 3' 2> "$TMPDIR/first.err" &
first=$!
began first
stackmap_dump record -o "$out" touch "$TMPDIR/ran" 2> "$TMPDIR/err" && fail "a second one wrote it, too"
err=$(cat "$TMPDIR/err")
says "$out: another stackmap_dump writes it"
wait $first && rc=0 || rc=$?
[ $rc -eq 3 ] || { cat "$TMPDIR/first.err"; fail "the first one: $rc"; }
report "$out"

# A module that comes and goes: both symbol tables, and when.
module=$(find /lib/modules -name 'trace-events-sample.ko*' 2> /dev/null)
if [ -n "$module" ]; then
	name=$(basename "$module" | sed 's/\.ko.*//; s/-/_/g')
	! grep -q "^$name " /proc/modules || rmmod "$name"
	insmod "$module"
	recorded 0 -o "$out" -- sh -c "rmmod $name; insmod $module; sleep .1"
	report "$out"
	[ "$(grep -c " module_\(load\|free\): .*$name" "$TMPDIR/report")" -eq 2 ] || fail "no events of the module"
	recorded 0 -o "$out" -- rmmod "$name"
	grep -q "\[$name\]" "$out/kallsyms.start" || fail "no symbols of the module"
	! grep -q "\[$name\]" "$out/kallsyms" || fail "the module is there"
fi
recorded 0 -o "$out" true
[ ! -e "$out/kallsyms.start" ] || fail "two equal symbol tables"

# A process that runs, with its threads and its children to come, until it ends.
recorded 0 -o "$out" -e syscalls:sys_enter_write -p $bystander -d 1
report "$out"
grep -q ' bystander-' "$TMPDIR/report" || fail "--pid did not record the process"
if grep ' sys_enter_write: ' "$TMPDIR/report" | grep -v " bystander-$bystander "; then
	fail "--pid recorded another process"
fi
(trap - EXIT; began mine; kill $bystander) &
recorded 0 -o "$out" -i mine -e sched -p $bystander
recorded 1 -o "$out" -p 4194000 touch "$TMPDIR/ran"
says "there is no process 4194000"
rm -r "$out" "$out.old"

# The status is that of the command. -d ends it.
recorded 7 -o "$out" sh -c 'exit 7'
recorded 143 -o "$out" -- sh -c 'kill $$'
recorded 143 -o "$out" -d 1 sleep 1000
recorded 0 -o "$out" -d 1 sh -c 'trap "" TERM; i=0; while [ $i -lt 60 ]; do sleep .1; i=$((i + 1)); done'
report "$out"
[ "$(grep -c ' sched_process_exec: .*/sleep' "$TMPDIR/report")" -lt 50 ] || fail "-d does not end the recording"
recorded 0 -o "$out" -d 1.5
whole "$out"
[ "$ids" -gt 10 ] || fail "too few events of the machine"
rm -r "$out" "$out.old"

# User stacks: which option was taken is said.
recorded 0 -o "$out" -e syscalls:sys_enter_close -u -- sh -c "$sleeps"
way=userstacktrace
[ ! -e options/userstacktrace_delay ] || way=userstacktrace_delay
says "stacks of user space: options/$way"
whole "$out"
grep -qE ' user_(unwind_)?stack' "$TMPDIR/report" || fail "no stacks of user space"
# With files, nothing else is needed: to look at mappings takes memory of those who map.
[ -s "$out/user_maps" ] || [ $way = userstacktrace_delay ] || fail "no user_maps"
[ ! -e "$out/user_maps" ] || [ $way = userstacktrace ] || fail "user_maps"
recorded 0 -o "$out" -e syscalls:sys_enter_close --user=now -- sh -c "$sleeps"
[ -s "$out/user_maps" ] || fail "no user_maps"
grep -q 'options/userstacktrace$' "$TMPDIR/err" || fail "--user=now"
recorded 2 -o "$out" --user=never true
rm -r "$out" "$out.old"

# Failures leave nothing.
recorded 127 -o "$out" no_such_command
says "no_such_command: No such file"
nothing_left
recorded 127 -o "$out" /proc/version
says "Permission denied"
nothing_left
for event in sched:nothing nothing nothing:sched_switch sched_switch,nothing; do
	recorded 1 -o "$out" -e "$event" touch "$TMPDIR/ran"
	says "there is no event "
	nothing_left
done
recorded 1 -o "$out" -e sched_switch -f 'nothing == 1' touch "$TMPDIR/ran"
says "nothing == 1: not a filter of events/sched/sched_switch"
says "Field not found"
nothing_left
recorded 2 -o "$out" -f 'common_pid < 0' touch "$TMPDIR/ran"
recorded 2 -o "$out" --realtime 100 touch "$TMPDIR/ran"
recorded 2 -o "$out" -a -p 1 touch "$TMPDIR/ran"
recorded 1 -o "$out" -b 2000000000 touch "$TMPDIR/ran"
says "buffer_size_kb: Cannot allocate memory"
nothing_left
make_instance theirs
recorded 1 -o "$out" -i theirs touch "$TMPDIR/ran"
says "instances/theirs: File exists"
nothing_left
recorded 1 -o "$TMPDIR/none/out" touch "$TMPDIR/ran"
says "none/out"
mkdir "$TMPDIR/path"
ln -s "$(command -v stackmap_dump)" "$(command -v touch)" "$TMPDIR/path/"
PATH=$TMPDIR/path stackmap_dump record -o "$out" touch "$TMPDIR/ran" 2> "$TMPDIR/err" && fail "without trace-cmd"
err=$(cat "$TMPDIR/err")
says "trace-cmd is not here"
nothing_left
unshare -m sh -c 'umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug
	stackmap_dump record -o "$1" touch "$2"' sh "$out" "$TMPDIR/ran" 2> "$TMPDIR/err" && fail "without tracefs"
err=$(cat "$TMPDIR/err")
says "no tracefs is mounted here"
nothing_left
[ ! -e "$TMPDIR/ran" ] || fail "the command ran"
mkdir -m 777 "$TMPDIR/open"
chmod 755 "$TMPDIR"
if setpriv --reuid 1000 --clear-groups stackmap_dump record -o "$TMPDIR/open/out" true 2> "$TMPDIR/err"; then
	fail "a user may trace"
fi
err=$(cat "$TMPDIR/err")
says "Permission denied (only root may trace)"
[ -z "$(ls "$TMPDIR/open")" ] || fail "files are left"
undisturbed

# What was lost is said, and the rest is there.
recorded 0 -o "$out" -b 4 -e syscalls,kmem,sched -- sh -c 'for i in 1 2 3; do cat /proc/kallsyms; done | wc -l'
says " buffer entries were lost (events, stacks, definitions)"
report "$out"
lost=$(echo "$err" | sed -n 's/.* \([0-9]*\) of \([0-9]*\) buffer entries were lost .*/\1/p')
[ "$lost" -gt 0 ] || fail "lost: $lost"
