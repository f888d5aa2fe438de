#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# stackmap_dump record: a command's stacks are saved, and only its own; the statuses; signals, and Ctrl-C on
# a terminal; what goes wrong. Each time, the instance is gone and the rest of tracing as it was.
# timeout: 300
# program: script
. /guest/lib.sh

command -v stackmap_dump > /dev/null || skip "there is no stackmap_dump here"

out=$TMPDIR/out
sleeps='for i in 1 2 3 4 5 6 7 8 9 10; do sleep .01; done'

# All that a user may have set, and what the map of the top level has.
state() {
	ls instances
	for f in tracing_on trace_options set_event set_event_pid current_tracer buffer_size_kb stack_map_stat \
		events/enable /sys/module/ftrace_stackmap/parameters/*; do
		echo "$f: $(cat $f)"
	done
	grep -v "^#" trace || true
} 2> /dev/null

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

undisturbed() {
	state > "$TMPDIR/after"
	diff "$TMPDIR/before" "$TMPDIR/after" || fail "tracing is not as it was"
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

folded() {
	stackmap_dump -q --folded "$@"
}

sum() {
	awk '{ n += $NF } END { printf "%.0f", n }'
}

# The stacks of the command, not those of another process that has the same events all the time.
cp "$(command -v dd)" "$TMPDIR/bystander"
"$TMPDIR/bystander" if=/dev/zero of=/dev/null bs=64k 2> /dev/null &
bystander=$!
recorded 0 -o "$out" -e sched:sched_switch,kmem -e syscalls -- sh -c "$sleeps"
says "$out: recorded "
[ "$(stat -c %a "$out")" = 700 ] || fail "others may read the addresses"
ls "$out"
folded --map-only "$out" > "$TMPDIR/map"
[ "$(sum < "$TMPDIR/map")" = "$(sed -n 's/^parts: //p' "$out/stack_map_stat")" ] || fail "the map has other counts"
folded --annotate "$out/trace" "$out" > "$TMPDIR/stacks"
[ "$(sum < "$TMPDIR/stacks")" = "$(count_ids "$out/trace")" ] || fail "the trace has other counts"
grep nanosleep "$TMPDIR/stacks" > "$TMPDIR/sleeps" || fail "no stack of sleep"
[ "$(sum < "$TMPDIR/sleeps")" -ge 10 ] || fail "too few stacks of sleep"
[ "$(grep -c 'sys_exit_execve\|sched_switch: prev_comm=sleep' "$out/trace")" -ge 10 ] || fail "no events of children"
# A switch has two processes. The next one may be recorded.
if grep '^ *bystander-' "$out/trace" | grep -v ' sched_switch: \| <stack_'; then
	fail "another process was recorded"
fi
stackmap_dump -q --summary "$out" | grep '^duplicates: 0 '

# The earlier recording is kept once. Other directories are not touched.
mv "$out" "$TMPDIR/first"
cp -r "$TMPDIR/first" "$out"
recorded 0 -o "$out" -e syscalls --all sleep .1
grep -q '^ *bystander-' "$out/trace" || fail "--all did not record another process"
kill $bystander
diff -r "$out.old" "$TMPDIR/first" || fail "the earlier recording is not there"
mv "$out" "$TMPDIR/second"
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
(cd "$TMPDIR" && stackmap_dump record -q true && [ -f stackmap.data/stack_map_bin ]) || fail "the default directory"

# What the user has set stays, and events of the instance do not come to the top level.
set_opt tracing_on 0
echo 1 > events/sched/sched_wakeup/enable
echo 99 > set_event_pid
recorded 0 -o "$out" -e sched_switch -e sched -b 64 true
echo 0 > events/sched/sched_wakeup/enable
echo > set_event_pid
rm -r "$out"

# The form of the text that the user has chosen would be no trace to read.
for option in raw bin hex fields latency-format nocontext-info noirq-info; do
	echo $option > trace_options 2> /dev/null || continue
	recorded 0 -o "$out" -e sched -- sh -c "$sleeps"
	case $option in
	no*) echo "${option#no}" > trace_options ;;
	*) echo no$option > trace_options ;;
	esac
	[ "$(folded "$out" | sum)" -gt 0 ] || fail "$option: no stacks"
	stackmap_dump -q --perf-script "$out" > "$TMPDIR/samples"
	grep -q '^sleep .*: sched_' "$TMPDIR/samples" || fail "$option: no samples"
	rm -r "$out"
done

# The status is that of the command.
recorded 7 -o "$out" sh -c 'exit 7'
recorded 143 -o "$out" -- sh -c 'kill $$'
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
recorded 1 -o "$out" -b 2000000000 touch "$TMPDIR/ran"
says "buffer_size_kb: Cannot allocate memory"
nothing_left
make_instance theirs
recorded 1 -o "$out" -i theirs touch "$TMPDIR/ran"
says "instances/theirs: File exists"
nothing_left
[ ! -e "$TMPDIR/ran" ] || fail "the command ran"
recorded 1 -o "$TMPDIR/none/out" true
says "none/out"
mkdir "$TMPDIR/small"
mount -t tmpfs -o size=128k none "$TMPDIR/small"
recorded 1 -o "$TMPDIR/small/out" sh -c "$sleeps"
says "No space left"
[ -z "$(ls "$TMPDIR/small")" ] || fail "files are left: $(ls -R "$TMPDIR/small")"
umount "$TMPDIR/small"
state > "$TMPDIR/before"
(
	ulimit -f 8
	stackmap_dump record -o "$out" sh -c "$sleeps"
) 2> "$TMPDIR/err" && rc=0 || rc=$?
err=$(cat "$TMPDIR/err")
[ $rc -eq 1 ] || fail "status $rc with a limit of file sizes"
says "File too large"
nothing_left
undisturbed
mkdir -m 777 "$TMPDIR/open"
chmod 755 "$TMPDIR"
if setpriv --reuid 1000 --clear-groups stackmap_dump record -o "$TMPDIR/open/out" true 2> "$TMPDIR/err"; then
	fail "a user may trace"
fi
err=$(cat "$TMPDIR/err")
says "Permission denied (only root may trace)"
[ -z "$(ls "$TMPDIR/open")" ] || fail "files are left"
undisturbed

# A signal to the tool alone is passed on.
began() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ "$(cat instances/"$1"/tracing_on 2> /dev/null)" != 1 ] || break
		sleep .5
	done
	sleep 1
}
for signal in 2 10 14 15; do
	state > "$TMPDIR/before"
	env --default-signal=INT stackmap_dump record -o "$out" -i mine -- sleep 1000 2> "$TMPDIR/err" &
	pid=$!
	began mine
	kill -$signal $pid
	wait $pid && rc=0 || rc=$?
	err=$(cat "$TMPDIR/err")
	echo "signal $signal: $rc: $err"
	[ $rc -eq $((128 + signal)) ] || fail "status $rc after signal $signal"
	says "$out: recorded "
	undisturbed
	folded --annotate "$out/trace" "$out" | grep nanosleep || fail "no stack of sleep"
done
rm -r "$out" "$out.old"

# Without a command, all processes, until the signal.
stackmap_dump record -o "$out" -i mine 2> "$TMPDIR/err" &
pid=$!
began mine
kill -INT $pid
wait $pid || fail "status $? after Ctrl-C"
cat "$TMPDIR/err"
undisturbed
[ "$(count_ids "$out/trace")" -ge 20 ] || fail "too few events of the machine"
rm -r "$out"

# On a terminal: progress, and Ctrl-C, which goes to the command as well.
if command -v script > /dev/null; then
	printf '#!/bin/sh\ntrap "exit 5" INT\nsleep 1000 & wait\n' > "$TMPDIR/command"
	chmod 755 "$TMPDIR/command"
	{
		began mine
		sleep 3
		printf '\003'
		sleep 2
	} | script -qefc "exec stackmap_dump record -o $out -i mine -- $TMPDIR/command" /dev/null > "$TMPDIR/tty" && rc=0 || rc=$?
	cat "$TMPDIR/tty"
	[ $rc -eq 5 ] || fail "status $rc on the terminal"
	grep -q 'stackmap_dump: [1-3] s, [0-9]* events, [1-9][0-9]* different stacks' "$TMPDIR/tty" || fail "no progress"
	grep -q "$out: recorded " "$TMPDIR/tty" || fail "nothing was saved"
	undisturbed
fi
