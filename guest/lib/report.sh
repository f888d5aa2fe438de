# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Sourced: reads reports of trace-cmd with the plugin of libtraceevent.

# The events of an instance with their frames. An event is told by its process and text, and by how many like
# it come after it; not by the CPU, since a process may move between two records. When a process has ended, so
# may have the recording. report -l, and trace-cmd 3.3 always, shows the context too: an interrupt may come between an event and its
# stack. The second flag may change between two records.
# trace-cmd starts and stops one instance after the other, while the command is there. So only events count from the
# first one that names a task "sh" to the first one that names a task "end", if the command is sh and execs end.
stacks_of() { # instance report
	awk -v wanted="$1:" '/^=> / {
		if (current)
			frames[current] = frames[current] $0
		next
	}
	{ current = 0 }
	$1 != wanted || ended { next }
	/ sh:[0-9]+ \[/ { began = 1 }
	/ end:[0-9]+ \[/ { ended = 1 }
	!began || ended { next }
	match($0, /-[0-9]+ +(\[[0-9]+\]( +[^ ][^ ][^ ][^ ][^ ])?|[0-9]+[^ ][^ ][^ ][^ ][^ ]) +[0-9.]+: [a-z_0-9]+: +/) {
		nr = split(substr($0, RSTART, RLENGTH), field, " ")
		event = field[nr]
		cpu = field[2]
		flags = nr == 5 ? field[3] : cpu ~ /^\[/ ? "" : substr(cpu, length(cpu) - 4)
		flags = substr(flags, 1, 1) substr(flags, 3)
		sub(/^\[/, "", cpu)
		cpu += 0
		# Each CPU has an idle task of its own.
		context = field[1] (field[1] == "-0" ? "/" cpu : "") " " flags
		if (/ [XZ] ==> /) {
			last[context] = 0
		} else if (event ~ /^(kernel_stack|stack_id|stack_split3?):/) {
			current = last[context]
		} else if (event != "stack_def:") {
			last[context] = ++n
			key[n] = context " " event " " substr($0, RSTART + RLENGTH)
			rank[n] = ++count[key[n]]
		}
	}
	END {
		for (i = 1; i <= n; i++)
			printf "%s #%d\t%s\n", key[i], count[key[i]] - rank[i], frames[i]
	}' "$2" | sort
}

# Ids that have no frames below them.
bare() { # report
	awk 'bare && !/^=> / { n++ } { bare = / (stack_id|stack_split3?): / } END { print n + bare }' "$1"
}
