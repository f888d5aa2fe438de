#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Trinity, a fuzzer of system calls, has the files of an instance that records with a small map: reads and
# writes of any size and place, seeks, maps, polls, ioctls, splice and sendfile, in four processes. After
# each round the kernel has not complained and the counts add up; at the end everything is given back.
# Usage: syscalls.sh [minutes] [seed]
# flavour: debug
# program: trinity
. /guest/lib/lib.sh

minutes=${1:-5} seed=${2:-$RANDOM}
debug=/sys/kernel/debug
command -v trinity > /dev/null || skip "no trinity"
calls=
for call in read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2 lseek mmap mremap munmap \
	madvise msync poll ppoll select ioctl splice tee vmsplice sendfile copy_file_range newfstat ftruncate fallocate \
	fsync fcntl dup readahead fadvise64; do
	calls="$calls -c $call"
done

setup() {
	echo 1 > "$dir/options/stackmap"
	echo 1 > "$dir/options/stackmap-define"
	echo 1 > "$dir/options/stacktrace"
	echo 1 > "$dir/options/userstacktrace_delay"
	echo 128 > "$dir/buffer_size_kb"
	for event in sched kmem irq syscalls/sys_enter_close; do
		echo 1 > "$dir/events/$event/enable"
	done
	echo 1 > "$dir/tracing_on"
}

[ ! -e /proc/sys/kernel/hung_task_timeout_secs ] || echo 600 > /proc/sys/kernel/hung_task_timeout_secs
[ ! -e /proc/sys/kernel/watchdog_thresh ] || echo 60 > /proc/sys/kernel/watchdog_thresh
[ ! -e $debug/kmemleak ] || echo clear > $debug/kmemleak

# The fuzzer takes all files below a directory, so they are put together in one.
files=$TMPDIR/files
put() { # file...
	local file to
	for file; do
		[ -f "$file" ] || continue
		to=$files/$(echo "${file#"$dir/"}" | tr / .)
		: > "$to"
		mount --bind "$file" "$to"
	done
}

echo "seed $seed, $minutes minutes, $(nproc) CPUs, Linux $(uname -r)"
make_small_instance syscalls
dir=$TRACING_DIR/instances/syscalls
mkdir "$TMPDIR/trinity" "$files"
put "$dir"/{stack_map,stack_map_bin,stack_map_stat,trace,trace_pipe,snapshot,tracing_on,buffer_size_kb,trace_options} \
	"$dir"/options/{stackmap,stackmap-define,stackmap-frames,stacktrace,userstacktrace,userstacktrace_delay} \
	"$dir"/per_cpu/cpu[01]/{trace,trace_pipe,trace_pipe_raw,snapshot,snapshot_raw,stats}
end=$(($(now) + 60 * minutes))
for ((round = 1; $(now) < end; round++)); do
	# It may have switched off or overwritten anything.
	setup 2> /dev/null || true
	(
		trap - EXIT
		cd "$TMPDIR/trinity" || exit
		# shellcheck disable=SC2086 # a list
		exec timeout -k 10 90 trinity -l off -C 4 -s $((seed + round)) -V "$files" --enable-fds=pseudo --dangerous $calls
	) > "$TMPDIR/trinity.out" 2>&1 &
	fuzzer=$!
	while kill -0 $fuzzer 2> /dev/null; do
		stackmap_work 1
	done
	echo 0 > "$dir/tracing_on"
	settle
	! complaints || fail "the kernel complained, round $round, seed $seed"
	wait_for_room "$dir"
	check_map "$dir"
	done=$(grep -ac '^\[child' "$TMPDIR/trinity.out" || true)
	[ "$done" -gt 100 ] || { tail "$TMPDIR/trinity.out"; fail "the fuzzer did nothing"; }
	echo "round $round: $done system calls;" \
		"$(stat_of successes "$dir") by id, $(stat_of drops "$dir") in full, $(stat_of rotations "$dir") rotations"
done
umount "$files"/*
rmdir "$dir" || fail "the instance stays"
if [ -e $debug/kmemleak ]; then
	check_leaks 'stackmap|user_file'
fi
! complaints || fail "the kernel complained at the end"
