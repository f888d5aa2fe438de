#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The time off the CPU of threads that sleep known times in known functions on two CPUs. The time of each function
# is about what the program itself has measured, that of each thread what awk makes of the report. perf has seen each
# of them as often. Two other programs share a CPU: they are preempted and do not sleep.
# takes: 22
# program: perf
# timeout: 300
. /guest/lib/lib.sh
. /guest/lib/record.sh
. /guest/lib/profile.sh

command -v sleeper > /dev/null || skip "there is no sleeper here"

cat > "$TMPDIR/load" <<'W'
for i in 1 2; do taskset 1 dd if=/dev/zero of=/dev/null bs=1M count=300 2> /dev/null & done
sleeper > "$TMPDIR/truth"
wait
W
perf=(bash)
! command -v perf > /dev/null ||
	perf=(perf record -q -a -m 1024 -k mono -e sched:sched_switch -o "$TMPDIR/perf.data" bash)
recorded 0 -o "$out" --all -u -b 8192 -e sched_switch -- "${perf[@]}" "$TMPDIR/load"
whole "$out"

# delay OPTION...: microseconds
delay() { stackmap_dump export --format folded -q --weight "off-cpu${kind:-}" "$@" "$out" 2> /dev/null | total; }
# near A B
near() { [ "$1" -le $(($2 * 11 / 10)) ] && [ "$1" -ge $(($2 * 9 / 10)) ]; }

bad=0
while read -r function truth; do
	us=$(delay --comm sleeper --grep "$function")
	preempted_us=$(kind=":preempted" delay --comm sleeper --grep "$function")
	echo "$function: slept $us us, preempted $preempted_us us, $truth by its own clock"
	us=$((us + preempted_us))
	near "$us" "$truth" || bad=1
done < "$TMPDIR/truth"
[ $bad -eq 0 ] || fail "more than 10 % apart"
[ "$(awk '{ n += $2 } END { print n }' "$TMPDIR/truth")" -ge 15600000 ] || fail "too short"

events > "$TMPDIR/report"
for what in time preempted; do
	same_tasks $what '(sleeper|dd) .*' "$TMPDIR/report"
done
[ "$(grep -c '^sleeper ' "$TMPDIR/awk.time")" -ge 5 ] && [ "$(grep -c '^dd ' "$TMPDIR/awk.preempted")" -eq 2 ] ||
	fail "tasks are missing"

[ -e "$TMPDIR/perf.data" ] || exit 0

# It reads the clock at another moment, so its times differ. With a plugin, perf prints COMM:PID [PRIO] of a task.
perf script --ns -i "$TMPDIR/perf.data" -F comm,tid,cpu,time,event,trace 2> /dev/null |
	sed -E -e 's/^ *(.*[^ ]) +(-?[0-9]+) (\[[0-9]+\] .*) sched:(sched_switch:)/\1-\2 \3 \4/' \
		-e 's/(sched_switch:) +([^=]*):([0-9]+) \[[0-9]+\] ([^ ]+) ==> (.*):([0-9]+) \[[0-9]+\]$/\1 prev_comm=\2 prev_pid=\3 prev_state=\4 ==> next_comm=\5 next_pid=\6/' \
		> "$TMPDIR/perf"
for what in time preempted; do
	own_profile $what < "$TMPDIR/perf" | grep -E '^(sleeper|dd) ' > "$TMPDIR/perf.$what"
	echo "$what: perf's"
	cat "$TMPDIR/perf.$what"
	diff <(awk '{ print $1, $2, $4 }' "$TMPDIR/awk.$what") <(awk '{ print $1, $2, $4 }' "$TMPDIR/perf.$what") ||
		fail "$what: perf has seen others"
done
