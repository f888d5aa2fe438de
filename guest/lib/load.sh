# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced after lib.sh: stacks of a load in a buffer that holds all of them.

# The bytes in the buffers of an instance.
bytes_of() { # dir
	cat "$1"/per_cpu/cpu*/stats | awk '/^bytes:/ { n += $2 } END { print n }'
}

record_load() { # KB rounds events...
	local e
	stackmap_on
	set_opt buffer_size_kb "$1"
	for e in "${@:3}"; do echo 1 > "events/$e/enable"; done
	echo 1 > tracing_on
	for _ in $(seq "$2"); do stackmap_work 20; done
	stop_recording
	echo 0 > events/enable
	[ "$(lost_events .)" -eq 0 ] || fail "the buffer is too small"
}
