// SPDX-License-Identifier: GPL-2.0
/* "save": makes a directory, as "record" does, of what is in the ring buffer now. */
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "record.h"
#include "util.h"

/* In a mount namespace of its own: the instance is what the top level seems to have. */
static int hide_top_level(const char *dir)
{
	char *top __free(pointer) = find_tracefs();
	static const char * const files[] = { "per_cpu", "trace_clock" };
	size_t i;
	int bad;

	bad = unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	for (i = 0; !bad && i < ARRAY_SIZE(files); i++) {
		char *from __free(pointer) = format("%s/%s", dir, files[i]);
		char *to __free(pointer) = format("%s/%s", top, files[i]);

		bad = mount(from, to, NULL, MS_BIND, NULL);
	}
	if (bad)
		complain("cannot mount %s in a namespace: %s", dir, strerror(errno));
	return bad ? -EIO : 0;
}

/*
 * trace-cmd extract -B would read the top level as well, and reading consumes. Without -k, it would
 * reset all.
 */
static int run_extract(const char *from, const char *instance, const char *dir)
{
	const char * const args[] = { "trace-cmd", "extract", "-k", "-o", "trace.dat", NULL };
	struct instance_stat s;
	int ret = 0;

	read_instance_stat(from, &s);
	if (!has_room(dir, 2 * (s.bytes + file_sizes(dir, "kallsyms"))))
		return -ENOSPC;
	if (instance)
		ret = hide_top_level(from);
	if (ret)
		return ret;
	ret = run_program(args, dir, true);
	if (ret)
		complain("trace-cmd extract has failed");
	return ret;
}

/* The buffer is read last: it is not there any more then. */
static int save_buffer(const char *from, const char *instance, const char *dir)
{
	bool extracts = find_program("trace-cmd");
	size_t nr_stacks;
	int ret;

	ret = save_map(from, dir, NULL, &nr_stacks);
	if (!ret && extracts)
		ret = run_extract(from, instance, dir);
	else if (!ret)
		ret = copy_file(from, "trace", dir);
	if (ret) {
		output_discard(dir);
		return ret;
	}
	ret = save_checksums(dir);
	note("%s: saved %zu stacks and %s", dir, nr_stacks, extracts ?
	     "the buffer, which is empty now" : "the text of trace (trace-cmd is not here)");
	if (!nr_stacks)
		note_empty(instance);
	return ret;
}

/* Recording pauses, so that the map has all ids of the buffer. Signals wait until it goes on. */
static int save_paused(const char *from, const char *instance, const char *dir)
{
	bool was_on = is_set(from, "tracing_on");
	sigset_t signals;
	int ret;

	block_signals(&signals);
	if (was_on)
		set(from, "tracing_on", "0");
	ret = save_buffer(from, instance, dir);
	if (was_on)
		set(from, "tracing_on", "1");
	unblock_signals();
	return ret;
}

int save(const char *name, const char *instance)
{
	char *from __free(pointer) = find_instance(instance);
	char *dir __free(pointer) = output_name(name);
	int ret;

	ret = check_instance(instance);
	if (!ret)
		ret = output_check(dir);
	if (!ret)
		ret = output_make(dir);
	if (!ret)
		ret = save_paused(from, instance, dir);
	return ret;
}
