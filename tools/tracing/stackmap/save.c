// SPDX-License-Identifier: GPL-2.0
/*
 * The directory of "record" and "save": what it may replace, the files beside trace.dat. "save"
 * makes it of what is in the ring buffer now.
 */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "record.h"

/*
 * Only these are ever removed. A recording has one or more of the first, however it has ended. The
 * last ones, and head.dat, are there only until trace.dat is complete.
 */
static const char * const our_files[] = {
	"head.dat", "trace.dat", "stack_map_bin", "trace", "stack_map_stat", "kallsyms",
	"build_id", "user_maps", "checksums", CPU_FILES, "(null).cpu[0-9]*",
};

#define NR_MAIN		3
#define FIRST_SUMMED	1	/* those that change no more */
#define LAST_SUMMED	7

static size_t find_ours(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(our_files) && fnmatch(our_files[i], name, 0); i++)
		;
	return i;
}

/* @dir without slashes at its end. rename() refuses ".", ".." and "/". */
char *output_name(const char *dir)
{
	char *path = copy_string(dir), *end = path + strlen(path);
	const char *name;

	while (end > path && end[-1] == '/')
		*--end = '\0';
	name = basename(path);
	if (!*name || !strcmp(path, "-") || !strcmp(name, ".") || !strcmp(name, ".."))
		usage("not the name of a directory", dir);
	return path;
}

struct content {
	u64	bytes;		/* of the files that match */
	bool	recording;	/* there is one */
	bool	more;		/* other files */
};

/* @pattern: of the files; NULL: all of ours. Follows no symbolic link. */
static struct content walk(const char *path, const char *pattern, bool remove)
{
	int fd = open(path, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct content c = {};
	struct dirent *e;
	struct stat st;
	size_t i;

	while (dir && (e = readdir(dir))) {
		i = find_ours(e->d_name);
		if (pattern ? fnmatch(pattern, e->d_name, 0) : i == ARRAY_SIZE(our_files)) {
			c.more |= strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
			continue;
		}
		c.recording |= i < NR_MAIN;
		c.bytes += fstatat(fd, e->d_name, &st, 0) ? 0 : st.st_size;
		if (remove)
			unlinkat(fd, e->d_name, 0);
	}
	if (dir)
		closedir(dir);
	return c;
}

u64 file_sizes(const char *dir, const char *pattern)
{
	return walk(dir, pattern, false).bytes;
}

void remove_files(const char *dir, const char *pattern)
{
	walk(dir, pattern, true);
}

void output_discard(const char *dir)
{
	remove_files(dir, NULL);
	if (rmdir(dir))
		complain("%s: %s", dir, strerror(errno));
}

/*
 * An earlier recording becomes @dir.old. Nothing of the user's is lost: only a recording without
 * other files is removed. Only for the user, because addresses of the kernel are in it.
 */
int output_make(const char *dir)
{
	char *old __free(pointer) = format("%s.old", dir);
	struct content c = walk(old, NULL, false), now = walk(dir, NULL, false);

	/* In tracefs, rmdir() removes an instance with all its files. */
	if (!now.recording && !now.more)
		rmdir(dir);
	if (now.recording) {
		if (c.recording && !c.more)
			output_discard(old);
		if (rename(dir, old))
			return fail("%s: has other files than a recording, please remove it (%s)",
				    old, strerror(errno));
	}
	if (!mkdir(dir, 0700))
		return 0;
	return fail("%s: %s", dir,
		    errno == EEXIST ? "exists and is no recording" : strerror(errno));
}

bool has_room(const char *dir, u64 bytes)
{
	struct statvfs fs;

	if (statvfs(dir, &fs) || (u64)fs.f_bavail * fs.f_frsize >= bytes)
		return true;
	complain("%s: the disk is nearly full, trace.dat needs up to %llu MB", dir,
		 (bytes >> 20) + 1);
	return false;
}

/* Again if a map was replaced meanwhile. */
static int copy_file(const char *from_dir, const char *name, const char *dir)
{
	char buf[1 << 16];
	int tries = 0;
	size_t n;

	do {
		FILE *from __free(file) = open_in(from_dir, name, "re");
		FILE *to __free(file) = from ? open_in(dir, name, "we") : NULL;

		while (to && (n = fread(buf, 1, sizeof(buf), from)))
			fwrite(buf, 1, n, to);
		if (to && !ferror(from) && !ferror(to) && !fflush(to))
			return 0;
	} while (errno == ESTALE && ++tries < MAX_READS);
	return fail("%s/%s, copied into %s: %s", from_dir, name, dir, read_error());
}

/* @f: a file of @dir that was written, or NULL */
int check_saved(FILE *f, const char *dir, const char *name)
{
	if (f && !fflush(f) && !ferror(f))
		return 0;
	return fail("%s/%s: %s", dir, name, strerror(errno));
}

static int save_file(const char *dir, const char *name, const char *data, size_t len)
{
	FILE *f __free(file) = open_in(dir, name, "we");

	if (f)
		fwrite(data, 1, len, f);
	return check_saved(f, dir, name);
}

static int save_build_id(const struct map *m, const char *dir)
{
	char *id __free(pointer) = build_id_text(&m->build_id);
	char *line __free(pointer) = format("%s\n", id);

	return save_file(dir, "build_id", line, strlen(line));
}

/*
 * All that belongs to trace.dat. The copy of the map is read back, to report a bad one now. For
 * stacks of user space, "record" has its own user_maps.
 */
int save_map(const char *from, const char *dir, size_t *nr_stacks)
{
	const struct config cfg = {};
	struct map m = {};
	int ret;

	ret = copy_file(from, "stack_map_bin", dir) || copy_file(from, "stack_map_stat", dir) ||
	      copy_file("/proc", "kallsyms", dir) || load_map(&m, dir) ||
	      (m.build_id.len && save_build_id(&m, dir)) ||
	      (m.nr_user_stacks && !is_beside(dir, "user_maps") && save_users(dir));
	if (!ret)
		load_kallsyms(&m, NULL, &cfg);
	*nr_stacks = m.nr_stacks;
	map_free(&m);
	return ret;
}

/*
 * The file "checksums" has a line for each file, with its CRC-32, its size and its name. It tells
 * if a file was cut off, damaged, or is of another recording. A recording may be large, and reading
 * it finds most damage. So only its size is checked.
 */
#define MAX_CHECKED	(64 << 20)

static u32 crc32(const void *data, size_t len)
{
	const unsigned char *p = data;
	u32 crc = ~0U;
	int bit;

	for (; len--; p++) {
		crc ^= *p;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (0xedb88320 & -(crc & 1));
	}
	return ~crc;
}

/* The line of a file; the sum of a large one is 0. NULL and errno if it cannot be read. */
static char *sum_file(const char *dir, const char *name)
{
	char *path __free(pointer) = format("%s/%s", dir, name), *buf __free(pointer) = NULL;
	struct stat st;
	size_t len;

	if (stat(path, &st))
		return NULL;
	if (st.st_size > MAX_CHECKED)
		return format("%08x %llu %s", 0, (u64)st.st_size, name);
	buf = slurp(path, &len);
	return buf ? format("%08x %zu %s", crc32(buf, len), len, name) : NULL;
}

static int check_line(const char *dir, const char *line)
{
	char *own __free(pointer) = NULL;
	char name[32];

	if (sscanf(line, "%*x %*u %31[a-z._0-9]", name) != 1)
		return fail("%s/checksums: not such a line: %s", dir, line);
	own = sum_file(dir, name);
	if (own && !strcmp(own, line))
		return 0;
	return fail("%s/%s: is not what was saved: now %s, %s when it was saved", dir, name,
		    own ? own : strerror(errno), line);
}

/* A directory may have no checksums. */
int check_directory(const char *dir)
{
	FILE *f __free(file) = open_in(dir, "checksums", "re");
	char *line __free(pointer) = NULL;
	size_t room = 0;
	int ret = 0;

	while (f && getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		ret |= check_line(dir, hide_controls(line));
	}
	return ret;
}

/* When all files are there. */
int save_checksums(const char *dir)
{
	FILE *f __free(file) = open_in(dir, "checksums", "we");
	size_t i;

	for (i = FIRST_SUMMED; f && i <= LAST_SUMMED; i++) {
		char *line __free(pointer) = sum_file(dir, our_files[i]);

		if (line)
			fprintf(f, "%s\n", line);
	}
	return check_saved(f, dir, "checksums");
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
	/* What was read is not in the buffer any more. */
	if (ret && file_sizes(dir, "*.cpu[0-9]*"))
		return fail("%s has no trace.dat, but its parts. To make it, there: %s", dir,
			    RESTORE);
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
