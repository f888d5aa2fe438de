# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Sourced by guest/tests/*.sh: the helpers of the stackmap selftests, for use outside of ftracetest.
# At the end of a test, its changes are undone.

set -e
export LC_ALL=C
TRACING_DIR=/sys/kernel/tracing
TMPDIR=$(mktemp -d)
export TMPDIR

explained=
exit_fail() { explained=1; exit 1; }
skip() { echo "skipped: $1"; trap - EXIT; exit 4; }
clear_trace() { echo > trace; }

cd $TRACING_DIR
[ -e options/stackmap ] || { echo "this kernel has no stack map"; exit 1; }
TEST_DIR=${SELFTESTS:-/selftests/ftrace}/test.d
for helpers in more bin; do
	# shellcheck source=/dev/null
	. "$TEST_DIR/ftrace/stackmap/functions-$helpers"
done

# For "trap ... EXIT", with a command that undoes something first. Says where a test ends that has said nothing.
at_exit() { # [command]
	ended=$?
	set +e
	# shellcheck disable=SC3028 # a shell other than bash says less
	[ $ended -eq 0 ] || [ -n "$explained" ] || echo "FAIL: status $ended${BASH_COMMAND:+ of: $BASH_COMMAND}" >&2
	eval "${1:-}"
	(exit $ended)
	stackmap_cleanup
}
trap at_exit EXIT

# Linux 6.12 always prints the frames.
has_frames_option() { [ -e $TRACING_DIR/options/stackmap-frames ]; }

# The cleanup restores them. An instance that is made later has the frames option of the top level.
set_opt tracing_on "$(cat tracing_on)"
! has_frames_option || set_opt options/stackmap-frames 1

# Fills the map with stacks of events, interrupts, and a module.
record_some() {
	stackmap_on
	set_opt buffer_size_kb 256
	modprobe trace-events-sample
	echo 1 > events/sched/sched_switch/enable
	echo 1 > events/kmem/kmem_cache_alloc/enable
	echo 1 > events/irq/softirq_entry/enable
	echo 1 > events/sample-trace/enable
	echo 1 > tracing_on
	stackmap_work 3
	# The module's thread records once a second. An emulator may lose jiffies.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		sleep 1
		! grep -q '\[trace_events_sample\]$' stack_map || break
	done
	stop_recording
}

# close() of a number above 1000, which only the test programs do, with its user stack on the way back, by the map.
trace_closes() { # dir
	echo 1 > "$1/options/stackmap"
	echo 1 > "$1/options/userstacktrace_delay"
	echo "fd > 1000" > "$1/events/syscalls/sys_enter_close/filter"
	echo 1 > "$1/events/syscalls/sys_enter_close/enable"
}

# An instance whose maps hold few stacks, so that they are replaced often. It records functions that
# have many stacks; its options are for what else it is to record.
make_small_instance() { # name
	set_opt /sys/module/ftrace_stackmap/parameters/bits 10
	make_instance "$1"
	echo 0 > "instances/$1/options/pause-on-trace"
	echo 0 > "instances/$1/tracing_on"
	echo 1 > "instances/$1/options/stackmap"
	echo 1 > "instances/$1/options/stacktrace"
}

# Some hundred functions for the function tracer: those that an emulator with a thread for each CPU stands.
filter_some() { # dir
	for f in 'vfs_*' 'do_sys_*' 'ksys_*' 'pipe_*' 'path_*' 'lookup_*' 'dup_*' 'copy_*' do_exit 'do_wait*' 'wait_*' \
		handle_mm_fault dput 'mntput*' 'fput*' 'anon_vma_*' 'unmap_*' 'free_p*' 'wake_up_*' kmem_cache_free; do
		echo "$f" >> "$1/set_ftrace_filter" || true
	done
	echo '*rcu*' '*lock*' > "$1/set_ftrace_notrace"
} 2> /dev/null

# Works until the map of an instance has been replaced that many times more.
rotate() { # number dir
	now=$(stat_of rotations "$2")
	wanted=$((now + $1))
	tries=0
	while [ "$now" -lt $wanted ]; do
		stackmap_work 1
		before=$now
		now=$(stat_of rotations "$2")
		[ "$now" -eq "$before" ] || tries=0
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { cat "$2/stack_map_stat"; fail "the map is not replaced any more"; }
	done
}

complaints() {
	dmesg | grep -E 'WARNING: |BUG: |INFO: (task|rcu)|possible (recursive|circular)|suspicious|KASAN: |Oops'
}

# Of the blocks whose report matches, none is left. kmemleak reports blocks that are older than 5 seconds.
check_leaks() { # regular expression
	leaks=/sys/kernel/debug/kmemleak
	sleep 6
	echo scan > $leaks
	echo scan > $leaks
	cat $leaks
	! grep -qE "$1" $leaks || fail "memory leaks"
}

now() { cut -d. -f1 /proc/uptime; }

# Prints the kernel stacks of a process and its children.
where() { # pid
	echo "$1: $(tr '\0' ' ' < "/proc/$1/cmdline") $(grep State "/proc/$1/status")"
	cat "/proc/$1/stack" || true
	grep -l "^PPid:.$1\$" /proc/[0-9]*/status 2> /dev/null | while IFS=/ read -r _ _ child _; do
		(where "$child")
	done
}

# Waits for a map that is nearly full to be replaced. A reader of its files could get ESTALE meanwhile.
wait_for_room() { # dir
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		awk '$1 == "entries:" { exit 4 * $2 >= 3 * $4 }' "$1/stack_map_stat" && return
		sleep 2
	done
}

# The sum of the numbers at the ends of lines, where folded stacks have their weights.
total() { awk '{ n += $NF } END { print n + 0 }'; }

# Each event has its stack behind it, so half of what was recorded are stacks. When tracing starts or stops, a
# CPU may be between the two: the function tracer records a stack even if its event was refused.
check_recorded() { # stacks that the map was asked for, dir
	recorded=$(cat "$2"/per_cpu/cpu*/stats | awk '/^(entries|overrun|read events):/ { n += $NF } END { print n }')
	alone=$((recorded - 2 * $1))
	[ ${alone#-} -le "$(nproc)" ] ||
		fail "$recorded events and stacks, but the map was asked for $1"
}

# Prints "depth frame frame ..." for each close() of userstack in a trace, with the addresses as numbers,
# or what else is in the line of the frame.
stacks_of() { # trace
	awk 'function flush() { if (fd) print line; fd = 0 }
	function number(hex,   i, v) {
		for (i = 1; i <= length(hex); i++)
			v = v * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
		return v
	}
	/^ => / {
		if (!fd || !user)
			next
		sub(/^ => +/, "")
		if (/^<[0-9a-f]+>$/)
			sub(/^<0+/, "0x")
		gsub(/[<>]/, "")
		line = line " " $0
		next
	}
	/: sys_close\(fd: (0x)?[34][0-9a-f][0-9a-f]\)$/ {
		flush()
		fd = number(substr($0, length($0) - 3, 3))
		line = fd - 1000
		next
	}
	{ user = /: <user_(stack_id [0-9]+|unwind_stack(_id|_split)? [0-9a-f]+( @[0-9a-f]+)?( [0-9]+)?)>$|: <user stack trace>$/ }
	END { flush() }' "$1"
}

innermost() { # frames, from a file of "depth frame frame ..."
	cut -d' ' -f "1-$(($1 + 1))" "$2"
}
