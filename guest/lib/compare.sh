# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced after lib.sh: two instances record the same events of processes that keep to their CPUs, one
# with ids, one with full stacks. Both buffers overwrite, so each holds the last events of a CPU.

both() { # file value
	echo "$2" > "$full/$1"
	echo "$2" > "$ids/$1"
}

# ids, full: directories; the first one's map is small.
make_pair() { # name buffer_size_kb
	ids=instances/$1
	full=instances/$1_full
	make_small_instance "$1"
	make_instance "$1_full"
	both tracing_on 0
	both trace_clock global
	both options/pause-on-trace 0
	both options/stacktrace 1
	both options/func_stack_trace 1
	both options/event-fork 1
	both options/function-fork 1
	# A full stack takes many times what an id takes.
	echo "$2" > "$ids/buffer_size_kb"
	echo $((4 * $2)) > "$full/buffer_size_kb"
}

# Two processes that work until $TMPDIR/work is gone, and whose events both instances record.
start_pair() { # [CPUs]
	: > "$TMPDIR/work_on"
	pair=
	for cpu in ${1:-0 1}; do
		mkfifo "$TMPDIR/go.$cpu"
		(
			trap - EXIT
			TMPDIR=$TMPDIR/$cpu
			mkdir -p "$TMPDIR"
			read -r _ < "${TMPDIR%/*}/go.$cpu"
			while [ -e "${TMPDIR%/*}/work_on" ]; do
				stackmap_work 1
			done
		) &
		pair="$pair $!"
		taskset -cp "$cpu" $! > /dev/null
	done
	both set_event_pid "$pair"
	both set_ftrace_pid "$pair"
	for e in kmem/kmem_cache_alloc kmem/kmem_cache_free kmem/kmalloc sched/sched_switch \
		irq/softirq_entry; do
		both "events/$e/enable" 1
	done
	for i in $ids $full; do
		(cd "$i" || exit; record_many_functions)
	done
	for cpu in ${1:-0 1}; do
		echo > "$TMPDIR/go.$cpu"
	done
}

# Until the map has been replaced so many times.
await_rotations() { # number
	while [ "$(stat_of rotations "$ids")" -lt "$1" ]; do
		# shellcheck disable=SC2086 # a list
		kill -0 $pair
		sleep .5
	done
}

# How many events both have got.
written() {
	grep -hE '^(entries|overrun)' "$ids"/per_cpu/cpu*/stats "$full"/per_cpu/cpu*/stats
}

stop_pair() {
	rm "$TMPDIR/work_on"
	# shellcheck disable=SC2086 # a list
	wait $pair
	# A process that was waited for runs on until it is switched out for good.
	until before=$(written) && sleep 1 && [ "$before" = "$(written)" ]; do :; done
	both tracing_on 0
	both events/enable 0
	settle
}

# An event is told by its CPU, process, context and text, and by how many like it came after it. Not by the
# second flag: an interrupt between the two records may ask to reschedule. Nor by what another CPU may
# change between the two: names of processes, the CPU that one waits for, whether a dead one has been
# waited for. Prints the events with their frames, and the generation of the id.
normalise() { # trace file
	awk '/^ => / {
		if (current)
			frames[current] = frames[current] substr($0, 4)
		next
	}
	match($0, /-[0-9]+ +\[[0-9]+\] [^ ]+ +[0-9]+\.[0-9]+: /) {
		split(substr($0, RSTART, RLENGTH), f, " ")
		context = f[1] " " f[2] " " substr(f[3], 1, 1) substr(f[3], 3)
		text = substr($0, RSTART + RLENGTH)
		if (text ~ /^<stack/) {
			# What was before it may be overwritten.
			current = last[context]
			frames[current] = frames[current] ":"
			if (match(text, /^<stack_(id|split) [0-9]+/)) {
				sub(/^<[a-z_]+ /, "", text)
				gen[current] = int(text / 524288)
				if (text ~ /stale/)
					frames[current] = frames[current] " stale"
			}
			next
		}
		gsub(/comm=[^ ]+|target_cpu=[0-9]+/, "", text)
		sub(/prev_state=X/, "prev_state=Z", text)
		last[context] = ++n
		key[n] = context " " text
		rank[n] = ++count[key[n]]
	}
	END {
		for (i = 1; i <= n; i++)
			printf "%s #%d\t%s\t%s\n", key[i], count[key[i]] - rank[i], frames[i], gen[i]
	}' "$1"
}

# Compares the events that both files hold, and prints how many these are, and of how many generations.
agree() { # full.txt ids.txt
	awk -F'\t' 'FNR == NR { frames[$1] = $2; next }
	/stale/ { stale++; next }
	$1 in frames {
		same += $2 == frames[$1]
		if ($2 != frames[$1] && bad++ < 3)
			printf "%s\n  full:%s\n  id: %s\n", $1, frames[$1], $2
		if ($3 != "" && !($3 in gens)) {
			gens[$3]
			nr_gens++
		}
	}
	END {
		printf "%d events agree, %d differ, %d are stale, of %d; %d generations\n", same, bad, stale, FNR,
			nr_gens
		exit bad > 0
	}' "$1" "$2"
}

# Wants so many events, ids of so many generations among them, and so many stale ones (0).
compare_pair() { # events generations [stale]
	cat $full/trace > "$TMPDIR/full"
	cat $ids/trace > "$TMPDIR/ids"
	[ "$(count_ids "$TMPDIR/full")" -eq 0 ] || fail "ids among the full stacks"
	normalise "$TMPDIR/full" > "$TMPDIR/full.txt"
	normalise "$TMPDIR/ids" > "$TMPDIR/ids.txt"
	agree "$TMPDIR/full.txt" "$TMPDIR/ids.txt" > "$TMPDIR/agree" ||
		{ cat "$TMPDIR/agree"; fail "stacks differ"; }
	cat "$TMPDIR/agree"
	read -r same _ _ _ _ stale _ < "$TMPDIR/agree"
	[ "$same" -ge "$1" ] || fail "too few events to compare"
	[ "$stale" -eq "${3:-0}" ] || fail "$stale stale ids"
	[ "$(sed 's/.*; //; s/ .*//' "$TMPDIR/agree")" -ge "$2" ] || fail "too few generations"
}
