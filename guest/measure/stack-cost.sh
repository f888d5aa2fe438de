#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What an event costs alone, with its full kernel stack, and by the stack map if the kernel has it: instructions that
# the operation takes more than untraced, divided by its events. Of 32 batches of 128 operations, the middle half counts.
# The map has the stacks already, and nothing in the buffer is overwritten.
# Usage: scripts/guest -j icount [-f flavour] [-k image] guest/measure/stack-cost.sh [regular expression of rows]
export LC_ALL=C
cd /sys/kernel/tracing || exit 1
rows=${1:-.} measured=0 status=0 files=$(mktemp -d)
modes='event full'
[ ! -e options/stackmap ] || modes+=' map'
[ ! -e options/stackmap-frames ] || echo 0 >options/stackmap-frames
echo 4096 >buffer_size_kb

failed() {
	echo "$*"
	status=1
}

# Prints the frames in a full stack; full stacks, ids, and of these split stacks, for each event.
look() {
	awk '/^#/ { next }
		/^ => / { frames++; next }
		/: <stack trace>/ { full++; next }
		/: <stack_id / { ids++; next }
		/: <stack_split / { ids++; splits++; next }
		NF { events++ }
		END {
			if (events)
				printf "%.1f %.2f %.2f %.2f\n", full ? frames / full : 0, full / events, ids / events, splits / events
		}' trace
}

measure() { # label, event or function, operation [file]
	local label=$1 event=$2 mode stacks depth frames full ids split untraced ns n per_op expected
	local -A cost=([full]=- [map]=-)
	shift 2
	[[ $label =~ $rows ]] || return 0
	if [ -d "events/$event" ]; then
		stacks=options/stacktrace
	elif grep -qx "$event" available_filter_functions; then
		stacks=options/func_stack_trace
		echo "$event" >set_ftrace_filter
	else
		echo "  ($label: this kernel has no $event)"
		return 0
	fi
	measured=$((measured + 1))
	# The first run of an operation after boot is up to 1 % faster or slower.
	events "$@" >/dev/null
	read -r untraced n < <(events "$@")
	[ "$n" = 0.000 ] || failed "$label: $n events of an operation that is not traced"
	for mode in $modes; do
		if [ -d "events/$event" ]; then echo 1 >"events/$event/enable"; else echo function >current_tracer; fi
		[ $mode = event ] || echo 1 >$stacks
		[ $mode != map ] || echo 1 >options/stackmap
		read -r ns n < <(events "$@")
		read -r frames full ids split < <(look)
		case $mode in
		event) expected='0.00 0.00' per_op=$n ;;
		full) expected='1.00 0.00' depth=$frames ;;
		map) expected='0.00 1.00' ;;
		esac
		[ "$full $ids" = "$expected" ] || failed "$label, $mode: $full full stacks and $ids ids for an event"
		cost[$mode]=$(awk -v a="$untraced" -v b="$ns" -v n="$per_op" 'BEGIN { if (n > 0) printf "%.0f", (b - a) / n }')
		[ -n "${cost[$mode]}" ] || failed "$label, $mode: no events"
		[ ! -e options/stackmap ] || echo 0 >options/stackmap
		echo 0 >$stacks
		echo 0 >events/enable
		echo nop >current_tracer
	done
	awk -v label="$label" -v depth="$depth" -v event="${cost[event]}" -v full="${cost[full]}" -v map="${cost[map]}" \
		'BEGIN {
			ratio = map + 0 ? sprintf("%.2f", map / full) : "-"
			printf "%-41s%7s%8s%8s%8s%12s\n", label, depth, event, full, map, ratio
		}'
	[[ $label != *split* || $modes != *map* ]] ||
		awk -v share="$split" 'BEGIN { printf "  (%.0f %% of these by the map are split stacks)\n", 100 * share }'
}

unwinder='frame pointers'
! grep -q ' __start_orc_unwind$' /proc/kallsyms || unwinder=ORC
echo "Linux $(uname -rm), unwinder: $unwinder"
printf '%-41s%7s%8s%8s%8s%12s\n' "instructions an event" frames event full map "map : full"
file=$files/file over=''
mkdir "$files"/{lower,upper,work,merged}
if mount -t overlay -o "lowerdir=$files/lower,upperdir=$files/upper,workdir=$files/work" overlay "$files/merged" \
	2>/dev/null; then
	over=$files/merged/file
else
	echo "  (there is no overlayfs)"
fi
measure "page_fault_user" exceptions/page_fault_user fault
measure "sys_enter_close" syscalls/sys_enter_close close
measure "shmem_write_begin(), write()" shmem_write_begin write "$file"
measure "kmem_cache_alloc, open()" kmem/kmem_cache_alloc open "$file"
measure "sched_switch" sched/sched_switch switch
measure "hrtimer_expire_entry, split stacks" timer/hrtimer_expire_entry timers
measure "mm_page_alloc, write()" kmem/mm_page_alloc write "$file"
measure "shmem_write_begin(), sendfile()" shmem_write_begin sendfile "$file"
if [ -n "$over" ]; then
	measure "shmem_write_begin(), write() on overlay" shmem_write_begin write "$over"
	measure "shmem_write_begin(), sendfile(), overlay" shmem_write_begin sendfile "$over"
	measure "mm_page_alloc, write() on overlay" kmem/mm_page_alloc write "$over"
fi
[ -z "$over" ] || umount "$files/merged"
[ $measured -gt 0 ] || failed "no such row: $rows"
exit $status
