#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# stackmap_dump --off-cpu of threads that sleep known times in known functions on two CPUs: the time of each
# function is what the program itself has measured, the time of each thread what "perf sched timehist" says of
# the same switches. Two other programs share a CPU: they are preempted and do not sleep.
# takes: 22
# program: perf
# timeout: 300
. /guest/lib.sh
. /guest/record.sh

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
delay() { stackmap_dump -q --folded "--off-cpu${kind:-}" "$@" "$out" 2> /dev/null | awk '{ n += $NF } END { print n + 0 }'; }
# near A B PER_CENT
near() { awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { d = a > b ? a - b : b - a; exit !(d <= b * p / 100) }'; }

bad=0
while read -r function truth; do
	us=$(delay --comm sleeper --grep "$function")
	preempted_us=$(kind="=preempted" delay --comm sleeper --grep "$function")
	echo "$function: slept $us us, preempted $preempted_us us, $truth by its own clock"
	us=$((us + preempted_us))
	near "$us" "$truth" 1 || bad=1
done < "$TMPDIR/truth"
[ $bad -eq 0 ] || fail "more than 1 % apart"
[ "$(awk '{ n += $2 } END { print n }' "$TMPDIR/truth")" -ge 15600000 ] || fail "too short"

[ -e "$TMPDIR/perf.data" ] || exit 0

# The wait of a line is what came after the state of the task's line before. W is perf's name for a task that
# could run and was preempted.
perf sched timehist -i "$TMPDIR/perf.data" --state 2> /dev/null | awk '
	match($0, /[^ ]\[[0-9]+(\/[0-9]+)?\] /) {
		tid = substr($0, RSTART + 2) + 0
		split(substr($0, RSTART + RLENGTH), column, " ")
		if (tid in state)
			us[tid, state[tid] ~ /^[RW]/] += 1000 * column[1]
		state[tid] = column[4]
		name[tid] = $3
		sub(/\[.*/, "", name[tid])
	}
	END {
		for (tid in state)
			if (name[tid] ~ /^(sleeper|dd)$/)
				printf "%d %s %d %d\n", tid, name[tid], us[tid, 0], us[tid, 1]
	}' | sort -n > "$TMPDIR/perf"

# Each of the two reads the clock for itself, so the sum of many short times differs more.
while read -r tid name slept preempted; do
	us=$(delay --tid "$tid")
	preempted_us=$(kind="=preempted" delay --tid "$tid")
	echo "$name-$tid: slept $us us, perf $slept; preempted $preempted_us us, perf $preempted"
	case $name in
	sleeper) near "$us" "$slept" 1 || bad=1 ;;
	dd) near "$preempted_us" "$preempted" 10 || bad=1 ;;
	esac
done < "$TMPDIR/perf"
[ $bad -eq 0 ] || fail "perf says something else"
[ "$(grep -c ' sleeper ' "$TMPDIR/perf")" -ge 5 ] && [ "$(grep -c ' dd ' "$TMPDIR/perf")" -eq 2 ] ||
	fail "tasks are missing"
