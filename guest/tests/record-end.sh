#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# stackmap_dump record, however it ends: signals, Ctrl-C on a terminal, SIGKILL of each process, a full disk, an
# instance in use. What is on disk can be read, all recorders are gone, and so is the instance, unless the tool
# itself was killed.
# takes: 90
# timeout: 800
# program: script
. /guest/lib/lib.sh
. /guest/lib/record.sh

begin() { # arguments...
	state > "$TMPDIR/before"
	env --default-signal=INT stackmap_dump record -o "$out" -i mine "$@" 2> "$TMPDIR/err" &
	pid=$!
	began mine
}

ended() { # status
	wait $pid && rc=0 || rc=$?
	err=$(cat "$TMPDIR/err")
	echo "status $rc: $err"
	[ $rc -eq "$1" ] || fail "status $rc, not $1"
}

# A signal to the tool alone is passed on.
for signal in 10 14 15; do
	begin -- sleep 1000
	kill -$signal $pid
	ended $((128 + signal))
	undisturbed
	whole "$out"
done
rm -r "$out" "$out.old"

# Without a command, all processes, until the signal.
begin
kill -2 $pid
ended 0
undisturbed
whole "$out"
[ "$ids" -ge 10 ] || fail "too few events of the machine"
rm -r "$out"

# On a terminal: progress, and Ctrl-C, which goes to the command as well.
if command -v script > /dev/null; then
	printf '#!/bin/sh\ntrap "exit 5" INT\nsleep 1000 & wait\n' > "$TMPDIR/command"
	chmod 755 "$TMPDIR/command"
	{
		began mine
		sleep 3
		printf '\003'
		sleep 4
	} | script -qefc "exec stackmap_dump record -o $out -i mine -- $TMPDIR/command" /dev/null > "$TMPDIR/tty" && rc=0 || rc=$?
	cat "$TMPDIR/tty"
	[ $rc -eq 5 ] || fail "status $rc on the terminal"
	grep -q 'stackmap_dump: [1-4] s, [0-9]* stacks, [1-9][0-9]* different ones, 0 buffer entries lost' "$TMPDIR/tty" || fail "no progress"
	grep -q "$out: recorded " "$TMPDIR/tty" || fail "nothing was saved"
	undisturbed
	whole "$out"
	rm -r "$out"
fi

# What the tool has started.
tree() {
	ps axo pid,ppid,args | awk -v top=$pid '
		{ parent[$1] = $2; text[$1] = $3 " " $4 }
		END { for (p in parent) {
			for (q = p; q in parent && q != top; q = parent[q]) ;
			if (q == top) print p, parent[p], text[p] } }'
}
gone() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ -n "$(ps axo args | grep '^trace-cmd\|^stackmap_dump')" ] || return 0
		sleep .5
	done
	ps axo pid,ppid,args | grep 'trace-cmd\|stackmap_dump'
	fail "processes are left"
}
calls='while :; do cat /proc/kallsyms > /dev/null; done'

echo "SIGKILL of the tool: the instance stays, with the map"
begin -e sched,kmem -- sh -c "$calls"
command=$(tree | awk '$3 == "sh" { print $1 }')
kill -9 $pid
ended 137
gone
kill "$command"
[ "$(cat instances/mine/tracing_on)" = 0 ] || fail "the instance still records"
mv "$out/head.dat" "$TMPDIR/"
cp instances/mine/stack_map_bin instances/mine/stack_map_stat /proc/kallsyms "$out/"
rmdir instances/mine
undisturbed
whole "$out"
stackmap_dump report -q "$out" | head -n 3
recorded 0 -o "$out" true
[ -e "$out.old/trace.dat" ] || fail "the recording was not kept"

echo "SIGKILL of trace-cmd, not of its recorders"
begin -b 64 -e sched,kmem -- sh -c "$calls"
recorder=$(tree | awk -v tool=$pid '$2 == tool && $3 == "trace-cmd" { print $1 }')
sleep 3
kill -9 "$recorder"
sleep 2
kill $pid
ended 1
says "trace-cmd ended early"
ls -l "$out"
says "$out has no trace.dat. To make it, there: trace-cmd restore"
gone
undisturbed
# shellcheck disable=SC2046
(cd "$out" && trace-cmd restore -o trace.dat -i head.dat $(ls -v trace.dat.*) && rm head.dat trace.dat.*)
report "$out"
[ "$(grep -c ' stack_id: ' "$TMPDIR/report")" -gt 1000 ] || fail "too little was restored"

rm -r "$out" "$out.old"

echo "a disk that is too small; one that becomes full"
mkdir "$TMPDIR/small"
mount -t tmpfs -o size=1m none "$TMPDIR/small"
recorded 1 -o "$TMPDIR/small/out" touch "$TMPDIR/ran"
[ -z "$(ls "$TMPDIR/small")" ] && [ ! -e "$TMPDIR/ran" ] || fail "files are left: $(ls -R "$TMPDIR/small")"
mount -o remount,size=8m "$TMPDIR/small"
recorded 1 -o "$TMPDIR/small/out" touch "$TMPDIR/ran"
says "the disk is nearly full"
[ -z "$(ls "$TMPDIR/small")" ] && [ ! -e "$TMPDIR/ran" ] || fail "files are left: $(ls -R "$TMPDIR/small")"
mount -o remount,size=14m "$TMPDIR/small"
# The command goes on without the recording. It would be waited for.
recorded 1 -o "$TMPDIR/small/out" -i mine -e sched,kmem -d 120 sh -c 'i=0
	while [ $i -lt 400 ] && grep -q 1 instances/mine/tracing_on; do cat /proc/kallsyms > /dev/null; ls -lR /usr > /dev/null; i=$((i + 1)); done'
says "the disk is nearly full"
report "$TMPDIR/small/out"
[ "$(grep -c ' stack_id: ' "$TMPDIR/report")" -gt 10000 ] || fail "too little was recorded"
umount "$TMPDIR/small"

echo "SIGKILL of the recorder of a CPU: what it leaves in the buffer is lost"
begin -a -e sched,kmem -- sh -c "$calls"
kill -9 "$(tree | awk '$3 == "trace-cmd" { parent[$1] = $2 } END { for (p in parent) if (parent[p] in parent) { print p; exit } }')"
sleep 3
kill $pid
ended 1
says "buffer entries were lost (events, stacks, definitions): a recorder of trace-cmd has ended early"
gone
undisturbed
report "$out"
rm -r "$out"

echo "an instance in use, for a while and for long"
for seconds in 2 1000; do
	begin -- sh -c 'sleep 3; exit 3'
	# shellcheck disable=SC2217 # keeps the file open
	sleep $seconds < instances/mine/trace &
	reader=$!
	ended 3
	case $seconds in
	2) undisturbed ;;
	*) says "rmdir $TRACING_DIR/instances/mine"
		kill $reader
		wait $reader || true
		rmdir instances/mine
		undisturbed ;;
	esac
	whole "$out"
done
