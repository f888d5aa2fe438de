#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# stackmap_dump save, of the top level and of an instance; again after a failure, and without trace-cmd. What the
# tool says if there is nothing to read. stackmap_dump top.
# takes: 17
# timeout: 300
. /guest/lib/lib.sh
. /guest/lib/record.sh

# Entries that the buffer holds.
entries() { # directory of the instance
	cat "$1"/per_cpu/cpu*/stats | awk '/^entries: / { n += $2 } END { print n }'
}
saved() { # status arguments...
	want=$1
	shift
	PATH=${path:-$PATH} stackmap_dump "$@" 2> "$TMPDIR/err" && rc=0 || rc=$?
	err=$(cat "$TMPDIR/err")
	echo "$*: $rc: $err"
	[ $rc -eq "$want" ] || fail "the status is $rc, not $want"
}

echo "nothing to read"
saved 1 map -i none
says "there is no trace instance none"
saved 1 save -i none "$out"
says "there is no trace instance none"
nothing_left
stackmap_idle
make_instance one
saved 0 map -i one
says "the map is empty: $TRACING_DIR/instances/one/options/stackmap is 0"
echo 1 > instances/one/options/stackmap
saved 0 map -i one
says "instances/one/options/stacktrace is 0"
echo 1 > instances/one/options/stacktrace
saved 0 map -i one
says "the map is empty: no event was recorded"
unshare -m sh -c 'umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug; stackmap_dump map' 2> "$TMPDIR/err" &&
	fail "without tracefs"
err=$(cat "$TMPDIR/err")
says "no tracefs is mounted here"

echo "an instance; the top level keeps what it has"
stackmap_on
echo 1 > tracing_on
for dir in . instances/one; do
	echo 1 > $dir/events/sched/sched_switch/enable
done
stackmap_work 3
for dir in . instances/one; do
	echo 0 > $dir/events/sched/sched_switch/enable
done
top=$(entries .) one=$(entries instances/one)
[ "$top" -gt 20 ] && [ "$one" -gt 20 ] || fail "$top and $one entries to save"
saved 0 save -i one "$out"
says "$out: saved "
says "the buffer, which is empty now"
[ "$(stat -c %a "$out")" = 700 ] || fail "others may read the addresses"
[ "$(entries instances/one)" -eq 0 ] && [ "$(entries .)" -eq "$top" ] || fail "read from the wrong buffer"
[ "$(cat instances/one/tracing_on)" = 1 ] || fail "recording does not go on"
report "$out"
[ "$(grep -vc '^cpus=' "$TMPDIR/report")" -eq "$one" ] || fail "not all of the $one entries were saved"
grep -q ' stack_id: ' "$TMPDIR/report" || fail "no stacks"
! grep -q per_cpu /proc/mounts || fail "something is still mounted"
mv "$out" "$TMPDIR/one"

echo "the top level; again after a failure"
mkdir "$TMPDIR/small"
mount -t tmpfs -o size=100k none "$TMPDIR/small"
saved 1 save "$TMPDIR/small/out"
mount -o remount,size=3m "$TMPDIR/small"
saved 1 save "$TMPDIR/small/out"
says "the disk is nearly full"
[ -z "$(ls "$TMPDIR/small")" ] || fail "files are left: $(ls -R "$TMPDIR/small")"
umount "$TMPDIR/small"
[ "$(entries .)" -eq "$top" ] || fail "the buffer was read"
saved 0 save "$out"
report "$out"
[ "$(grep -vc '^cpus=' "$TMPDIR/report")" -eq "$top" ] || fail "not all of the $top entries were saved"
saved 0 save "$out"
report "$out.old"
rm -r "$out" "$out.old"

echo "without trace-cmd: the text"
mkdir "$TMPDIR/path"
ln -s "$(command -v stackmap_dump)" "$TMPDIR/path/"
echo 1 > events/sched/sched_switch/enable
stackmap_work 2
echo 0 > events/sched/sched_switch/enable
top=$(entries .)
path=$TMPDIR/path
saved 0 save "$out"
path=
says "the text of trace (trace-cmd is not here)"
[ "$(entries .)" -eq "$top" ] || fail "the buffer was read"
cmp trace "$out/trace" || fail "another text"
stackmap_dump annotate -q "$out/trace" "$out" > "$TMPDIR/annotated"
[ "$(grep -c '^ => ' "$TMPDIR/annotated")" -ge 50 ] || fail "too few frames"

echo "the directory of an instance is not for it"
saved 1 save "$TRACING_DIR/instances/one"
[ "$(cat instances/one/options/stackmap)" = 1 ] || fail "the instance was made anew"

echo "top: what was used more since the last look, and nothing else"
echo 1 > instances/one/events/syscalls/sys_enter_getpriority/enable
stackmap_dump top -i one -n 3 --delay 1 > "$TMPDIR/top" &
pid=$!
sleep 1.5
i=0
while [ $i -lt 5 ]; do
	nice true
	i=$((i + 1))
done
wait $pid
cat "$TMPDIR/top"
[ "$(grep -c 'stacks in a second' "$TMPDIR/top")" -eq 3 ] || fail "not 3 looks"
awk '/STACK$/ { on = 1; next } /^$/ { on = 0 } on { n++; if (!/ftrace_syscall_enter|do_syscall_64/) bad++ }
	END { exit !n || bad }' "$TMPDIR/top" || fail "other stacks, or none"
