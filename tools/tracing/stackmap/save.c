// SPDX-License-Identifier: GPL-2.0
/* "save": a directory of what is in the ring buffer now. */
#include <glob.h>

#include "record.h"

/* Of the kernel's text and data, if no symbol tells. */
#define MAX_KERNEL	0x40000000ULL

/* What came behind the last record that was read of a CPU: it was left there, or found no room. */
int save_lost(const char *from)
{
	char *pattern __free(pointer) = format("%s/per_cpu/cpu[0-9]*", from);
	FILE *f __free(file) = output_open("lost");
	glob_t found = {};
	const char *cpu;
	size_t i;
	u64 lost;

	glob(pattern, 0, NULL, &found);
	for (i = 0; f && i < found.gl_pathc; i++) {
		cpu = found.gl_pathv[i];
		lost = count_of(cpu, "stats", "entries: ") +
		       count_of(cpu, "stats", "dropped events: ");
		if (lost)
			fprintf(f, "%d %llu\n", atoi(basename(cpu) + strlen("cpu")), lost);
	}
	globfree(&found);
	return output_check(f, "lost");
}

static int save_build_id(const struct map *m)
{
	char *id __free(pointer) = build_id_text(&m->build_id);
	FILE *f __free(file) = output_open("build_id");

	if (f)
		fprintf(f, "%s\n", id);
	return output_check(f, "build_id");
}

static int save_by(void (*write)(FILE *f), const char *name)
{
	FILE *f __free(file) = output_open(name);

	if (f)
		write(f);
	return output_check(f, name);
}

/* A module of the last boot, if it is here. */
static void write_moved_module(FILE *f, u64 start, const char *name)
{
	FILE *modules __free(file) = open_in("/proc", "modules", "re");
	char line[512], other[64];
	u64 size, now;

	while (modules && fgets(line, sizeof(line), modules)) {
		if (sscanf(line, "%63s %llu %*s %*s %*s %llx", other, &size, &now) == 3 &&
		    !strcmp(other, name))
			fprintf(f, "%llx %llx %llx\n", start, start + size, now);
	}
}

/*
 * Raw events of the last boot have its addresses. A line is "start end now", of the kernel first,
 * then of each module.
 */
static int save_moved(const char *from)
{
	char *kallsyms __free(pointer) = format("%s/kallsyms", output_path);
	FILE *last __free(file) = open_in(from, "last_boot_info", "re");
	FILE *f __free(file) = NULL;
	char line[128], name[64];
	struct symtab t = {};
	u64 start, end;

	if (!last || !fgets(line, sizeof(line), last) || sscanf(line, "%llx [kernel]", &start) != 1)
		return 0;
	f = output_open("moved");
	if (f && !symtab_load(&t, kallsyms)) {
		end = t.kernel_end ?: t.text + MAX_KERNEL;
		fprintf(f, "%llx %llx %llx\n", start, start + end - t.text, t.text);
		while (fgets(line, sizeof(line), last)) {
			if (sscanf(line, "%llx %63s", &start, name) == 2)
				write_moved_module(f, start, name);
		}
	}
	symtab_free(&t);
	return output_check(f, "moved");
}

/* Now, as it is too late when someone reads it. To parse it all takes long. */
static void check_kallsyms(void)
{
	FILE *f __free(file) = open_in(output_path, "kallsyms", "re");
	char end[512] = "";
	char *line;

	if (!f || fseek(f, 1 - (long)sizeof(end), SEEK_END) || !fread(end, 1, sizeof(end) - 1, f))
		return;
	line = strchr(end, '\n');
	if (line && !strtoull(line + 1, NULL, 16))
		complain(HIDDEN, "kallsyms");
}

/*
 * All that belongs to trace.dat. The copy of the map is read back, to report a bad one now.
 * @users: for stacks of user space, what the processes have mapped now
 */
int save_map(const char *from, bool users, size_t *nr_stacks)
{
	struct map m = {};
	int ret;

	ret = save_file(from, "stack_map_bin", "stack_map_bin") ||
	      save_file(from, "stack_map_stat", "stack_map_stat") ||
	      save_file("/proc", "kallsyms", "kallsyms") || load_map(&m, output_path) ||
	      (m.build_id.len && save_build_id(&m)) ||
	      (m.nr_user_stacks && (save_by(write_vdso, "vdso") ||
				    (users && save_by(scan_processes, "user_maps"))));
	if (!ret)
		check_kallsyms();
	*nr_stacks = m.nr_stacks;
	map_free(&m);
	return ret;
}

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

static int run_extract(const char *from)
{
	u64 bytes = count_of(from, CPU_STATS, "bytes: ") + output_bytes("kallsyms");

	if (output_has_room(2 * bytes) && !run_script(EXTRACT, from))
		return save_lost(from);
	return fail("%s: trace-cmd could not extract the buffer", from);
}

/* The buffer is read last: it is not there any more then. */
static int save_buffer(const char *from)
{
	char *quoted __free(pointer) = quote(output_dir);
	bool extracts = find_program("trace-cmd");
	size_t nr_stacks;
	int ret;

	ret = save_map(from, true, &nr_stacks) || save_moved(from) ||
	      (extracts ? run_extract(from) : save_file(from, "trace", "trace"));
	/* What was read is not in the buffer any more. */
	if (ret && output_bytes("*.cpu[0-9]*"))
		return fail("%s has no trace.dat, but its parts. To make it, there: %s",
			    output_dir, RESTORE);
	if (ret) {
		output_discard();
		return ret;
	}
	note("%s: saved %zu stacks and %s", output_dir, nr_stacks, extracts ?
	     "the buffer, which is empty now" : "the text of trace (trace-cmd is not here)");
	if (!nr_stacks)
		note_empty(from);
	else
		note("see: stackmap_dump %s %s", extracts ? "report" : "map", quoted);
	return ret;
}

/* Recording pauses, so that the map has all ids of the buffer. Signals wait until it goes on. */
static int save_paused(const char *from)
{
	bool was_on = is_set(from, "tracing_on");
	sigset_t signals;
	int ret;

	block_signals(&signals);
	if (was_on)
		set(from, "tracing_on", "0");
	ret = save_buffer(from);
	if (was_on)
		set(from, "tracing_on", "1");
	unblock_signals();
	return ret;
}

static const char *save_from;

static struct choice save_choices[] = {
	{ "instance", 'i', "NAME", set_instance, &save_from,
	  "of this trace instance, not of the top level" },
	{}
};

static int run_save(const struct command *cmd, int argc, char **argv)
{
	char *from __free(pointer) = find_instance(save_from), *dir __free(pointer) = NULL;

	if (argc != 1)
		usage("name one directory", NULL);
	dir = output_name(argv[0]);
	return check_instance(from) || output_make(dir) || save_paused(from) ? 1 : 0;
}

const struct command save_command = {
	.name = "save", .run = run_save, .args = "[OPTIONS] DIR",
	.summary = "what is in the ring buffer now, with the map, into a directory",
	.text =
"Save what is in the ring buffer now, with the stack map and the names of functions, into DIR.\n"
"With trace-cmd, the buffer is empty then. An earlier recording in DIR becomes DIR.old.\n",
	.groups = { { "Options", save_choices }, { "", common_choices } },
	.examples = "Example:\n"
		    "  stackmap_dump save /tmp/now && stackmap_dump report /tmp/now\n",
};
