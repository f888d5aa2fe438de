// SPDX-License-Identifier: GPL-2.0
/* The directory of "record" and "save": what it may replace, the files beside trace.dat. */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "record.h"

/*
 * Only these are ever removed. A recording has one or more of the first, however it has ended. The
 * last ones, and head.dat, are there only until trace.dat is complete. Older ones have checksums.
 */
static const char * const our_files[] = {
	"head.dat", "trace.dat", "stack_map_bin", "trace", "stack_map_stat", "kallsyms",
	"kallsyms.start", "build_id", "user_maps", "vdso", "command", "own_events", "own_pids",
	"threads", "lost", "moved", "checksums", CPU_FILES, "(null).cpu[0-9]*",
};

#define NR_MAIN		3

/* What is written, and locked. Whoever renames it, @output_path leads to it. */
int output_fd = -1;
const char *output_dir;
char output_path[32];

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

/* @fd: of the directory, or -1; @pattern: of the files; NULL: all of ours */
static struct content walk(int fd, const char *pattern, bool remove)
{
	int own = fd < 0 ? fd : openat(fd, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
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

u64 output_bytes(const char *pattern)
{
	return walk(output_fd, pattern, false).bytes;
}

void output_remove(const char *pattern)
{
	walk(output_fd, pattern, true);
}

static void discard(int fd, const char *dir)
{
	walk(fd, NULL, true);
	if (rmdir(dir))
		complain("%s: %s", dir, strerror(errno));
}

void output_discard(void)
{
	discard(output_fd, output_dir);
}

/* Returns -1 if there is none, -2 if someone writes it. Not all file systems can lock one. */
static int lock_directory(const char *dir)
{
	int fd = open(dir, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);

	if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
		return fd;
	close(fd);
	complain("%s: another stackmap_dump writes it, choose another directory", dir);
	return -2;
}

/*
 * An earlier recording becomes @dir.old. Nothing of the user's is lost: only a recording without
 * other files is removed.
 */
static int make_room(const char *dir, int fd, const char *old, int old_fd)
{
	struct content c = walk(old_fd, NULL, false), now = walk(fd, NULL, false);

	/* In tracefs, rmdir() removes an instance with all its files. */
	if (!now.recording && !now.more)
		rmdir(dir);
	if (!now.recording)
		return 0;
	if (c.recording && !c.more)
		discard(old_fd, old);
	return !rename(dir, old) ? 0 :
	       fail("%s: has other files than a recording, please remove it (%s)", old,
		    strerror(errno));
}

/* Only for the user, because addresses of the kernel are in it. */
int output_make(const char *dir)
{
	char *old __free(pointer) = format("%s.old", dir);
	int fd = lock_directory(dir), old_fd = lock_directory(old);
	int ret = fd == -2 || old_fd == -2 ? -EBUSY : make_room(dir, fd, old, old_fd);

	if (!ret && mkdir(dir, 0700))
		ret = fail("%s: %s", dir, errno == EEXIST ? "exists and is no recording" :
			   strerror(errno));
	if (!ret) {
		output_dir = dir;
		output_fd = lock_directory(dir);
		ret = output_fd < 0 ? fail("%s: %s", dir, strerror(errno)) : 0;
		snprintf(output_path, sizeof(output_path), "/proc/self/fd/%d", output_fd);
	}
	close(fd);
	close(old_fd);
	return ret;
}

/* To be written; NULL and errno if that fails. */
FILE *output_open(const char *name)
{
	return open_in(output_path, name, "we");
}

/* @f: that was written, or NULL */
int output_check(FILE *f, const char *name)
{
	if (f && !fflush(f) && !ferror(f))
		return 0;
	return fail("%s/%s: %s", output_dir, name, strerror(errno));
}

bool output_has_room(u64 bytes)
{
	struct statvfs fs;

	if (fstatvfs(output_fd, &fs) || (u64)fs.f_bavail * fs.f_frsize >= bytes)
		return true;
	complain("%s: the disk is nearly full, trace.dat needs up to %llu MB", output_dir,
		 (bytes >> 20) + 1);
	return false;
}

/* Again if a map was replaced meanwhile. */
int save_file(const char *from_dir, const char *name, const char *to_name)
{
	char buf[1 << 16];
	int tries = 0;
	size_t n;

	do {
		FILE *from __free(file) = open_in(from_dir, name, "re");
		FILE *to __free(file) = from ? output_open(to_name) : NULL;

		while (to && (n = fread(buf, 1, sizeof(buf), from)))
			fwrite(buf, 1, n, to);
		if (to && !ferror(from) && !ferror(to) && !fflush(to))
			return 0;
	} while (errno == ESTALE && ++tries < MAX_READS);
	return fail("%s/%s, copied into %s: %s", from_dir, name, output_dir, read_error());
}
