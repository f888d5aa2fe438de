// SPDX-License-Identifier: GPL-2.0
/* The directory of "record" and "save": what it may replace, the files beside trace.dat. */
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "record.h"
#include "symbols.h"
#include "user.h"
#include "util.h"

/* Only these are ever removed. The last ones are there only until trace.dat is complete. */
static const char * const our_files[] = {
	"trace.dat", "trace", "stack_map_bin", "stack_map_stat", "kallsyms", "modules", "build_id",
	"user_maps", "checksums", "head.dat", "trace.dat.*", "(null).cpu*",
};

#define NR_SUMMED	8	/* the first ones; those that change no more */

static bool is_ours(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(our_files); i++) {
		if (!fnmatch(our_files[i], name, 0))
			return true;
	}
	return false;
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

/* Follows no symbolic link. */
static DIR *open_real(const char *path)
{
	int fd = open(path, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);

	return fd < 0 ? NULL : fdopendir(fd);
}

/* Returns the sum of the sizes of files; NULL: of all of ours. */
static u64 walk(const char *path, const char *pattern, bool remove)
{
	DIR *dir __free(dir) = opendir(path);
	struct dirent *e;
	struct stat st;
	u64 bytes = 0;

	while (dir && (e = readdir(dir))) {
		if (pattern ? fnmatch(pattern, e->d_name, 0) : !is_ours(e->d_name))
			continue;
		bytes += fstatat(dirfd(dir), e->d_name, &st, 0) ? 0 : st.st_size;
		if (remove)
			unlinkat(dirfd(dir), e->d_name, 0);
	}
	return bytes;
}

u64 file_sizes(const char *dir, const char *pattern)
{
	return walk(dir, pattern, false);
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

struct content {
	bool	recording;	/* there is one */
	bool	more;		/* other files than those of one */
};

static struct content look_into(const char *path)
{
	DIR *dir __free(dir) = open_real(path);
	struct content c = {};
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		c.recording |= !strcmp(e->d_name, "trace.dat") || !strcmp(e->d_name, "head.dat") ||
			       !strcmp(e->d_name, "stack_map_bin");
		c.more |= !is_ours(e->d_name) && strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	}
	return c;
}

/* Nothing of the user's is lost: only a recording without other files is removed. */
static int move_to_old(const char *dir)
{
	char *old __free(pointer) = format("%s.old", dir);
	struct content c = look_into(old);

	if (c.recording && !c.more)
		output_discard(old);
	if (!rename(dir, old))
		return 0;
	complain("%s: has other files than a recording, please remove it (%s)", old,
		 strerror(errno));
	return -errno;
}

/*
 * An earlier recording becomes @dir.old. Only for the user, because addresses of the kernel are in
 * it.
 */
int output_make(const char *dir)
{
	int ret = 0;

	rmdir(dir);
	if (look_into(dir).recording)
		ret = move_to_old(dir);
	if (ret || !mkdir(dir, 0700))
		return ret;
	complain("%s: %s", dir, errno == EEXIST ? "exists and is no recording" : strerror(errno));
	return -EIO;
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
	complain("%s/%s, copied into %s: %s", from_dir, name, dir, strerror(errno));
	return -EIO;
}

static int save_file(const char *dir, const char *name, const char *data, size_t len)
{
	FILE *f __free(file) = open_in(dir, name, "we");

	if (f && fwrite(data, 1, len, f) == len && !fflush(f))
		return 0;
	complain("%s/%s: %s", dir, name, strerror(errno));
	return -EIO;
}

static int save_text(const char *dir, const char *name, const char *text)
{
	return save_file(dir, name, text, strlen(text));
}

static int save_build_id(const struct map *m, const char *dir)
{
	char *id __free(pointer) = build_id_text(&m->build_id);
	char *line __free(pointer) = format("%s\n", id);

	return save_text(dir, "build_id", line);
}

static bool has_users(const struct map *m)
{
	size_t i;

	for (i = 0; i < m->nr_stacks; i++) {
		if (m->stacks[i].nr_user)
			return true;
	}
	return false;
}

/* @user_maps: what record has seen; NULL: what is running now is written */
static int save_users(const char *dir, const char *user_maps)
{
	char *now __free(pointer) = user_maps ? NULL : scan_users();

	return save_text(dir, "user_maps", user_maps ? user_maps : now);
}

static int copy_map(const char *from, const char *dir)
{
	char *path __free(pointer) = format("%s/stack_map_bin", from);
	char *buf __free(pointer) = NULL;
	size_t len;

	buf = slurp_map(path, &len);
	return buf ? save_file(dir, "stack_map_bin", buf, len) : -EIO;
}

/* All that belongs to trace.dat. The copy of the map is read back, to report a bad one now. */
int save_map(const char *from, const char *dir, const char *user_maps, size_t *nr_stacks)
{
	const struct config cfg = {};
	struct map m = {};
	int ret;

	ret = copy_map(from, dir);
	if (!ret)
		ret = copy_file(from, "stack_map_stat", dir);
	if (!ret)
		ret = copy_file("/proc", "kallsyms", dir);
	if (!ret)
		ret = load_map(&m, dir);
	if (!ret && m.build_id.len)
		ret = save_build_id(&m, dir);
	if (!ret && has_users(&m))
		ret = save_users(dir, user_maps);
	if (!ret)
		load_kallsyms(&m, &cfg);
	*nr_stacks = m.nr_stacks;
	map_free(&m);
	return ret;
}

/* When all files are there. */
int save_checksums(const char *dir)
{
	char *text __free(pointer) = NULL;
	size_t i, len;
	FILE *f;

	f = check_mem(open_memstream(&text, &len));
	for (i = 0; i < NR_SUMMED; i++) {
		char *line __free(pointer) = sum_file(dir, our_files[i]);

		if (line)
			fprintf(f, "%s\n", line);
	}
	fclose(f);
	return save_text(dir, "checksums", check_mem(text));
}
