// SPDX-License-Identifier: GPL-2.0
/* "save": makes a directory, as "record" does, of what is in the ring buffer now. */
#include "record.h"

/*
 * trace-cmd extract -B would read the top level as well, and reading consumes. So the instance, $0,
 * is what the top level seems to have in a mount namespace, where debugfs has none to be preferred.
 * Without -k, it would reset all.
 */
#define EXTRACT \
	"exec unshare -m sh -c '\n" \
	"umount -l /sys/kernel/debug/tracing 2> /dev/null\n" \
	"for f in per_cpu trace_clock; do mount --bind \"$0/$f\" " TRACEFS "/$f || exit; done\n" \
	"exec trace-cmd extract -k -o trace.dat 2> /dev/null' \"$0\""

static int run_extract(const char *from, const char *dir)
{
	u64 bytes = count_of(from, CPU_STATS, "bytes: ") + file_sizes(dir, "kallsyms");

	if (has_room(dir, 2 * bytes) && !run_script(EXTRACT, from, dir))
		return 0;
	return fail("%s: trace-cmd could not extract the buffer", from);
}

/* The buffer is read last: it is not there any more then. */
static int save_buffer(const char *from, const char *dir)
{
	bool extracts = find_program("trace-cmd");
	size_t nr_stacks;
	int ret;

	ret = save_map(from, dir, &nr_stacks) ||
	      (extracts ? run_extract(from, dir) : copy_file(from, "trace", dir));
	if (ret) {
		output_discard(dir);
		return ret;
	}
	ret = save_checksums(dir);
	note("%s: saved %zu stacks and %s", dir, nr_stacks, extracts ?
	     "the buffer, which is empty now" : "the text of trace (trace-cmd is not here)");
	if (!nr_stacks)
		note_empty(from);
	return ret;
}

/* Recording pauses, so that the map has all ids of the buffer. Signals wait until it goes on. */
static int save_paused(const char *from, const char *dir)
{
	bool was_on = is_set(from, "tracing_on");
	sigset_t signals;
	int ret;

	block_signals(&signals);
	set(from, "tracing_on", "0");
	ret = save_buffer(from, dir);
	if (was_on)
		set(from, "tracing_on", "1");
	unblock_signals();
	return ret;
}

int save(const char *name, const char *instance)
{
	char *from __free(pointer) = find_instance(instance);
	char *dir __free(pointer) = output_name(name);

	return check_instance(from) || output_make(dir) || save_paused(from, dir);
}
