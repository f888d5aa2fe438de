#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# How many events have a split stack, and how many parts these have. How many events fewer a buffer would hold if each
# split stack took the 44 bytes of three parts, not 28 for two.
# Usage: scripts/guest guest/measure/split-share.sh
. /guest/lib/lib.sh
. /guest/lib/load.sh

measure() { # system of events...
	record_load 65536 5 "$@"
	echo "$*:"
	awk -v bytes="$(bytes_of .)" -v more="$(stat_of drops_parts .)" '
		/^ => / || /^#/ || !NF { next }
		/: <stack_split / { n[gsub(/@/, "@") + 1]++; next }
		/: <stack trace>$/ || /: <stack_id / { next }
		{ events++ }
		END {
			splits = n[2] + n[3] + more
			printf "  %d events, %.1f %% with a split stack: %d of two parts, %d of three, %d of more (in full)\n",
				events, 100 * splits / events, n[2], n[3], more
			printf "  with 44 bytes for each split stack: %.1f %% fewer events\n",
				100 * 16 * n[2] / (bytes + 16 * n[2])
		}' trace
}

set_opt options/stackmap-frames 0
measure sched
measure irq timer sched
measure irq timer sched syscalls
measure irq timer sched kmem
