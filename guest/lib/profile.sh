# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced after record.sh by tests that compare what stackmap_dump says of a recording with what awk makes of it.

# shellcheck disable=SC2154 # record.sh sets it
events() { trace-cmd report -q -t -N -i "$out/trace.dat" 2> /dev/null; }

# Whether two numbers of microseconds are the same but for what was rounded.
same_us() { [ $(($1 - $2)) -le 1 ] && [ $(($2 - $1)) -le 1 ]; }

# awk's own way, over lines of a report, "comm-pid [cpu] time: event: fields". A task is followed if it was from
# the start or its parent is; all are if the recording is of no command. It prints the same as profile() below, and
# by how much that may differ, the number of times: each is whole microseconds there, and what is left over goes to
# the next one.
own_profile() { # time | preempted | uninterruptible | bytes, with the report as input
	awk -v what="$1" -v command="$out/command" '
		function number(field) {
			return match($0, " " field "=(0x)?[0-9]+") ? substr($0, RSTART + length(field) + 2) + 0 : -1
		}
		function back(pid) {
			if (pid in left) {
				sum[comm[pid] " " pid] += (now - left[pid]) / 1000
				n[comm[pid] " " pid]++
			}
			delete left[pid]
		}
		BEGIN {
			states["time"] = "^[^RXZ]"
			states["preempted"] = "^R"
			states["uninterruptible"] = "^D"
			states["bytes"] = "^$"
			all = (getline pid < command) < 0
			if (!all)
				do
					followed[pid] = 1
				while ((getline pid < command) > 0)
		}
		# trace-cmd 3.3 prints flags before the time.
		!match($0, /-[0-9]+ +\[[0-9]+\]( +[^ ]+)? +[0-9]+\.[0-9]+: /) { next }
		{
			fields = split(substr($0, RSTART + 1, RLENGTH - 1), head, / +/)
			split(head[fields - 1], time, /[.:]/)
			now = time[1] * 1000000000 + time[2]
			pid = head[1]
			event = substr($0, RSTART + RLENGTH)
			sub(/^ */, "", event)
			sub(/:.*/, "", event)
		}
		event == "sched_process_fork" && number("pid") in followed { followed[number("child_pid")] = 1 }
		event == "sched_switch" {
			prev = number("prev_pid")
			match($0, /prev_state=[^ ]*/)
			state = substr($0, RSTART + 11, RLENGTH - 11)
			if ((all ? prev : prev in followed) && state ~ states[what]) {
				left[prev] = now
				comm[prev] = $0
				sub(/.* prev_comm=/, "", comm[prev])
				sub(/ prev_pid=.*/, "", comm[prev])
			}
			back(number("next_pid"))
			if (state ~ /^[XZ]/)
				delete followed[prev]
		}
		what == "bytes" && (all || pid in followed) && / bytes_alloc=/ { sum[event " " pid] += number("bytes_alloc") }
		END {
			for (pid in left)
				back(pid)
			for (key in sum)
				printf "%s %d %d\n", key, sum[key], n[key]
		}' | sort
}

# Of each task, the microseconds or the bytes: "name pid sum", where the name is the task's or the event's.
profile() { # time | preempted | uninterruptible | bytes, options
	case $1 in
	time) args=(--weight off-cpu) ;;
	preempted | uninterruptible) args=(--weight "off-cpu:$1") ;;
	bytes) args=(--weight bytes_alloc) ;;
	esac
	stackmap_dump export --format perf -q "${args[@]}" "${@:2}" "$out" | awk -v what="$1" '
		/^[^\t]/ {
			match($0, / +[0-9]+ \[[0-9]+\] +[0-9.]+: +[0-9]+ /)
			split(substr($0, RSTART, RLENGTH), head)
			event = substr($0, RSTART + RLENGTH)
			sub(/:.*/, "", event)
			sum[(what == "bytes" ? event : substr($0, 1, RSTART - 1)) " " head[1]] += head[4]
		}
		END {
			for (key in sum)
				if (sum[key])
					print key, sum[key]
		}' | sort
}

# differ TOOL AWK: the lines of AWK that TOOL has otherwise, and those of TOOL that AWK has not
differ() {
	awk '
		FNR == NR { tool[$1 " " $2] = $3; next }
		{
			d = tool[$1 " " $2] - $3
			if (d > $4 || d < -$4)
				print $0 ", not " tool[$1 " " $2] + 0
			delete tool[$1 " " $2]
		}
		END { for (key in tool) print key, tool[key] }' "$1" "$2"
}

# Compares the profile of some tasks with awk's.
same_tasks() { # time | preempted | uninterruptible | bytes, "name task" as a regular expression, report, options
	profile "$1" "${@:4}" | grep -E "^($2) " > "$TMPDIR/tool.$1" || true
	own_profile "$1" < "$3" | grep -E "^($2) " > "$TMPDIR/awk.$1" || true
	echo "$1: name, task, us, times:"
	cat "$TMPDIR/awk.$1"
	differ "$TMPDIR/tool.$1" "$TMPDIR/awk.$1" > "$TMPDIR/bad"
	cat "$TMPDIR/bad"
	[ ! -s "$TMPDIR/bad" ] || fail "awk says something else"
}

same_profile() { # time | preempted | bytes
	profile "$1" > "$TMPDIR/tool.$1"
	events | own_profile "$1" > "$TMPDIR/awk.$1"
	n=$(total < "$TMPDIR/tool.$1")
	truth=$(awk '{ n += $3 } END { print n + 0 }' "$TMPDIR/awk.$1")
	tasks=$(wc -l < "$TMPDIR/awk.$1")
	echo "${program-}${program+: }$1: $n of $(wc -l < "$TMPDIR/tool.$1"), awk $truth of $tasks"
	differ "$TMPDIR/tool.$1" "$TMPDIR/awk.$1" > "$TMPDIR/bad"
	cat "$TMPDIR/bad"
	[ ! -s "$TMPDIR/bad" ] || fail "awk says something else"
	# awk has cut what is less than a microsecond of each task.
	[ "$n" -gt 0 ] && [ "$n" -ge "$truth" ] && [ "$n" -le $((truth + tasks)) ] || fail "awk has another sum"
	[ "$(stackmap_dump export --format folded -q "${args[@]}" "$out" | total)" = "$n" ] || fail "another sum in folded stacks"
}
