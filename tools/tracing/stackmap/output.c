// SPDX-License-Identifier: GPL-2.0
/* The directory of "record" and "save": what it may replace, the files beside trace.dat. */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "record.h"
#include "symbols.h"

/*
 * Only these are ever removed. A recording has one or more of the first, however it has ended. The
 * last ones, and head.dat, are there only until trace.dat is complete.
 */
static const char * const our_files[] = {
	"head.dat", "trace.dat", "stack_map_bin", "trace", "stack_map_stat", "kallsyms",
	"build_id", "user_maps", "checksums", "trace.dat.*", "(null).cpu*",
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
	struct content c = walk(old, NULL, false);

	rmdir(dir);
	if (walk(dir, NULL, false).recording) {
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

int copy_file(const char *from_dir, const char *name, const char *dir)
{
	FILE *from __free(file) = open_in(from_dir, name, "re");
	FILE *to __free(file) = from ? open_in(dir, name, "we") : NULL;
	char buf[1 << 16];
	size_t n;

	while (to && (n = fread(buf, 1, sizeof(buf), from)))
		fwrite(buf, 1, n, to);
	if (to && !ferror(from) && !ferror(to) && !fflush(to))
		return 0;
	return fail("%s/%s, copied into %s: %s", from_dir, name, dir, strerror(errno));
}

/* @f: a file of @dir that was written, or NULL */
int check_saved(FILE *f, const char *dir, const char *name)
{
	if (f && !fflush(f) && !ferror(f))
		return 0;
	return fail("%s/%s: %s", dir, name, strerror(errno));
}

static int save_build_id(const struct map *m, const char *dir)
{
	char *id __free(pointer) = build_id_text(&m->build_id);
	FILE *f __free(file) = open_in(dir, "build_id", "we");

	if (f)
		fprintf(f, "%s\n", id);
	return check_saved(f, dir, "build_id");
}

static int copy_map(const char *from, const char *dir)
{
	char *path __free(pointer) = format("%s/stack_map_bin", from);
	char *buf __free(pointer) = NULL;
	FILE *f __free(file) = NULL;
	size_t len;

	buf = slurp_map(path, &len);
	if (!buf)
		return -EIO;
	f = open_in(dir, "stack_map_bin", "we");
	if (f)
		fwrite(buf, 1, len, f);
	return check_saved(f, dir, "stack_map_bin");
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

	ret = copy_map(from, dir) || copy_file(from, "stack_map_stat", dir) ||
	      copy_file("/proc", "kallsyms", dir) || load_map(&m, dir) ||
	      (m.build_id.len && save_build_id(&m, dir)) ||
	      (m.nr_user_stacks && !is_beside(dir, "user_maps") && save_users(dir));
	if (!ret)
		load_kallsyms(&m, &cfg);
	*nr_stacks = m.nr_stacks;
	map_free(&m);
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
