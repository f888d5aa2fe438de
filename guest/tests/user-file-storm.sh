#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# User stacks by file while programs map, unmap, fork and execute, under KASAN and lockdep, with resets,
# definitions and readers. The load is stress-ng where it is there (scripts/guest -p stress-ng).
# Afterwards nothing holds a file system.
# Usage: user-file-storm.sh [seconds]
# takes: 200
# flavour: debug
# timeout: 900
# program: stress-ng
# full: three minutes under KASAN; user-file.sh has each kind of file, storm.sh the options
. /guest/lib/lib.sh
[ -e options/userstacktrace_delay ] || skip "no deferred unwinding"

seconds=${1:-120}
mkdir "$TMPDIR/mnt"
mount -t tmpfs tmpfs "$TMPDIR/mnt"
for f in userstack userstack.stripped userstack.nopie; do
	cp "/usr/local/bin/$f" "$TMPDIR/mnt/"
done
[ ! -e /usr/bin/stress-ng ] || cp /usr/bin/stress-ng "$TMPDIR/mnt/"

make_instance storm
dir=$TRACING_DIR/instances/storm
echo 1024 > "$dir/buffer_size_kb"
echo 1 > "$dir/options/stackmap"
echo 1 > "$dir/options/stackmap-define"
echo 1 > "$dir/options/userstacktrace_delay"
for e in raw_syscalls/sys_enter exceptions/page_fault_user sched/sched_switch; do
	echo 1 > "$dir/events/$e/enable"
done

touch "$TMPDIR/go_on"
(
	trap - EXIT
	set +e
	while [ -e "$TMPDIR/go_on" ]; do
		cat "$dir/stack_map" "$dir/stack_map_bin" "$dir/stack_map_stat" > /dev/null
		head -c 300000 "$dir/trace" > /dev/null
		timeout 1 head -n 100 "$dir/trace_pipe" > /dev/null
	done 2> /dev/null
) &
readers=$!
(
	trap - EXIT
	set +e
	while [ -e "$TMPDIR/go_on" ]; do
		sleep 2
		cp "$TMPDIR/mnt/userstack.stripped" "$TMPDIR/mnt/new"
		"$TMPDIR/mnt/new" -f -m memfd 5
		"$TMPDIR/mnt/new" -f -u -m anon 5
		"$TMPDIR/mnt/userstack" -f -r 0x8000100000000000 5
		rm "$TMPDIR/mnt/new"
		echo 0 > "$dir/tracing_on"
		echo reset > "$dir/stack_map"
		echo $((RANDOM % 4 > 0)) > "$dir/options/stackmap"
		echo reset > "$dir/stack_map"
		echo 1 > "$dir/tracing_on"
		echo >> "$TMPDIR/resets"
	done > /dev/null 2>&1
) &
resets=$!
if [ -e "$TMPDIR/mnt/stress-ng" ]; then
	# Root must not run the exec stressor.
	chmod 777 "$TMPDIR" "$TMPDIR/mnt"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$TMPDIR/mnt/stress-ng" --temp-path "$TMPDIR/mnt" --timeout "$seconds" --oom-avoid --vm-bytes 32M --mmap-bytes 32M \
		--mmap 1 --munmap 1 --mmapmany 1 --fork 1 --exec 1 --vfork 1 --clone 1 --mremap 1 --memfd 1 --sigsegv 1 \
		2>&1 | tail -n 4
else
	end=$(($(now) + seconds))
	while [ "$(now)" -lt $end ]; do
		stackmap_work 3
	done
fi
rm "$TMPDIR/go_on"
wait $readers $resets
echo 0 > "$dir/tracing_on"
echo "$(wc -l < "$TMPDIR/resets") resets"
cat "$dir/stack_map_stat"
echo 1 > "$dir/options/stackmap"
echo 1 > "$dir/tracing_on"
"$TMPDIR/mnt/userstack" -f 5 > /dev/null
echo 0 > "$dir/tracing_on"
settle
check_map "$dir"
grep -q "$TMPDIR/mnt/userstack+" "$dir/stack_map" || fail "no path of the file system"
for ((i = 0; i < 50; i++)); do
	! umount "$TMPDIR/mnt" 2> /dev/null || break
	sleep .2
done
! mountpoint -q "$TMPDIR/mnt" || fail "the file system is in use"
grep -q "$TMPDIR/mnt/userstack+" "$dir/stack_map" || fail "the path is gone"
if dmesg | grep -E 'WARNING: |BUG: |INFO: (task|rcu)|possible (recursive|circular)|suspicious|KASAN: |Oops|Call Trace'; then
	fail "the kernel complained"
fi
echo "storm of user stacks by file: passed"
