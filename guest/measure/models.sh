#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Two other ways to store stacks once, as models on the ids that the stack map gave in a recording: how far a buffer
# reaches back with a dictionary in each page, where the first use of a stack in a page is in full; and the stacks in
# full with two maps in turn, each with room for half of the distinct stacks. One of these is emptied when no CPU has an
# event of it in its last 10,000.
# Usage: scripts/guest -m 2048 -t 3000 guest/measure/models.sh [rounds]
. /guest/lib/lib.sh
. /guest/lib/load.sh

measure() { # system of events...
	record_load 131072 "$rounds" "$@"
	awk -v what="$*" -v bytes="$(bytes_of .)" '
		function stored(nr) { return 16 + 8 * nr + (nr > 12 ? 8 : 4) }
		function id_bytes() { return nr == 1 ? 16 : nr == 2 ? 28 : 44 }
		# In a dictionary, the first use of a stack in a page is in full. A split stack also has the event of its parts.
		function in_page(how,   i, n, new) {
			for (i = 1; i <= nr; i++) {
				if (!((how, cpu, page[how, cpu], ids[i]) in seen)) {
					n += stored(depth[ids[i]])
					new++
				}
			}
			return nr == 1 && new ? n : n + id_bytes()
		}
		function bytes_of(how) { return how == "full" ? stored(frames) : how == "map" ? id_bytes() : in_page(how) }
		# Write an event and its stack, where the pages have this room.
		function put(how, room,   i) {
			if (event + bytes_of(how) > left[how, cpu]) {
				pages[how]++
				page[how, cpu]++
				left[how, cpu] = room
			}
			left[how, cpu] -= event + bytes_of(how)
			for (i = 1; i <= nr; i++)
				seen[how, cpu, page[how, cpu], ids[i]]
		}
		function in_use(   c) {
			for (c in old)
				if (count[c] - old[c] < 10000)
					return 1
			return 0
		}
		function two_maps(id,   c) {
			if (!(id in now)) {
				if (size >= distinct / 2) {
					if (in_use())
						return 1
					delete now
					delete old
					for (c in last)
						old[c] = last[c]
					delete last
					size = 0
				}
				now[id]
				size++
			}
			last[cpu] = count[cpu]
			return 0
		}
		FILENAME ~ /stack_map$/ {
			if (/^stack_id /) {
				depth[$2] = $NF + 0
				distinct++
			}
			next
		}
		!/: <stack_(id|split) / { next }
		{
			match($0, /\[[0-9]+\]/)
			cpu = substr($0, RSTART + 1, RLENGTH - 2) + 0
			sub(/.*: <stack_(id|split) /, "")
			sub(/>.*/, "")
			gsub(/@[0-9a-f]+ /, "")
			stack[++n] = cpu " " $0
			nr = split($0, ids, " ")
			sum += id_bytes()
		}
		END {
			if (!n)
				exit 1
			event = (bytes - sum) / n
			for (line = 1; line <= n; line++) {
				nr = split(stack[line], ids, " ") - 1
				cpu = ids[1]
				frames = nr - 1
				for (i = 1; i <= nr; i++) {
					ids[i] = ids[i + 1]
					frames += depth[ids[i]]
				}
				put("full", 4080)
				put("map", 4080)
				put("4 KB", 4080)
				put("64 KB", 65520)
				count[cpu]++
				full = 0
				for (i = 1; i <= nr; i++)
					full += two_maps(ids[i])
				in_full += full > 0
			}
			printf "%-24s%9d%9d%9.2f%9.2f%9.2f%9.1f %%\n", what, n, distinct, pages["full"] / pages["map"],
				pages["full"] / pages["4 KB"], pages["full"] / (16 * pages["64 KB"]), 100 * in_full / n
		}' stack_map trace
}

rounds=${1:-10}
# All stacks in one map.
set_opt /sys/module/ftrace_stackmap/parameters/bits 18
set_opt /sys/module/ftrace_stackmap/parameters/recycle 0
set_opt options/stackmap-frames 0
printf '%-24s%9s%9s%9s%9s%9s%11s\n' "" stacks distinct map 4KB 64KB "two maps"
measure sched
measure kmem
measure sched irq timer kmem
