// SPDX-License-Identifier: GPL-2.0
/* The directory of "record" and "save": what it may replace, the files beside trace.dat. */
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "checksum.h"
#include "map.h"
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

	while (end > path + 1 && end[-1] == '/')
		*--end = '\0';
	name = basename(path);
	if (!*path || !strcmp(path, "-"))
		usage("not a directory", dir);
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		usage("not the name of a directory that can be renamed", dir);
	return path;
}

static bool has_file(const char *dir, const char *name)
{
	char *path __free(pointer) = format("%s/%s", dir, name);

	return !access(path, F_OK);
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

enum content { NOTHING, RECORDING, RECORDING_AND_MORE, OTHER };

static enum content look_into(const char *path)
{
	DIR *dir __free(dir) = open_real(path);
	size_t nr = 0, ours = 0;
	struct dirent *e;

	if (!dir)
		return errno == ENOENT ? NOTHING : OTHER;
	for (; (e = readdir(dir)); ours += is_ours(e->d_name))
		nr += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	if (!nr)
		return NOTHING;
	if (!has_file(path, "stack_map_bin") && !has_file(path, "trace.dat") &&
	    !has_file(path, "head.dat"))
		return OTHER;
	return nr == ours ? RECORDING : RECORDING_AND_MORE;
}

/* An earlier recording becomes @dir.old, whose place only another recording may have. */
int output_check(const char *dir)
{
	char *old __free(pointer) = format("%s.old", dir);
	enum content c = look_into(dir);

	if (c == NOTHING || (c != OTHER && look_into(old) <= RECORDING))
		return 0;
	if (c == OTHER)
		complain("%s: exists and is no recording", dir);
	else
		complain("%s: has other files than a recording, please remove it", old);
	return -EEXIST;
}

void output_discard(const char *dir)
{
	remove_files(dir, NULL);
	if (rmdir(dir))
		complain("%s: %s", dir, strerror(errno));
}

/* Only for the user, because addresses of the kernel are in it. */
int output_make(const char *dir)
{
	char *old __free(pointer) = format("%s.old", dir);

	if (rmdir(dir) && errno == ENOTEMPTY && !access(old, F_OK))
		output_discard(old);
	if ((access(dir, F_OK) || !rename(dir, old)) && !mkdir(dir, 0700))
		return 0;
	complain("%s: %s", dir, strerror(errno));
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

/* What the kernel writes may be replaced meanwhile. */
static int try_copy(const char *from_dir, const char *name, const char *dir)
{
	FILE *from __free(file) = open_in(from_dir, name, "re");
	FILE *to __free(file) = from ? open_in(dir, name, "we") : NULL;
	char buf[1 << 16];
	size_t n;

	if (!to)
		return -errno;
	while ((n = fread(buf, 1, sizeof(buf), from)))
		fwrite(buf, 1, n, to);
	return ferror(from) || ferror(to) || fflush(to) ? -errno : 0;
}

int copy_file(const char *from_dir, const char *name, const char *dir)
{
	char *path __free(pointer) = format("%s/%s", from_dir, name);
	int ret = -ESTALE, tries;

	for (tries = 0; ret == -ESTALE && tries < MAX_READS; tries++)
		ret = try_copy(from_dir, name, dir);
	if (ret == -ESTALE)
		complain_stale(path);
	else if (ret)
		complain("%s, copied into %s: %s", path, dir, strerror(-ret));
	if (ret)
		remove_files(dir, name);
	return ret;
}

static int save_text(const char *dir, const char *name, const char *text)
{
	FILE *f __free(file) = open_in(dir, name, "we");

	if (f && fputs(text, f) >= 0 && !fflush(f))
		return 0;
	complain("%s/%s: %s", dir, name, strerror(errno));
	return -EIO;
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

/* What is running now. */
static int save_running_users(const char *dir)
{
	FILE *f __free(file) = open_in(dir, "user_maps", "we");

	if (f)
		write_users(f);
	if (f && !ferror(f) && !fflush(f))
		return 0;
	complain("%s/user_maps: %s", dir, strerror(errno));
	return -EIO;
}

/*
 * Reads the copy back, to report an unusable one now. @user_maps: what record has seen; NULL: what
 * is running now.
 */
static int check_saved(const char *dir, const char *user_maps, size_t *nr_stacks)
{
	struct map m = {};
	int ret;

	ret = load_map(&m, dir);
	if (!ret && m.build_id.len)
		ret = save_build_id(&m, dir);
	if (!ret && has_users(&m))
		ret = user_maps ? save_text(dir, "user_maps", user_maps) :
				  save_running_users(dir);
	if (!ret)
		load_own_kallsyms(&m);
	*nr_stacks = m.nr_stacks;
	map_free(&m);
	return ret;
}

/* All that belongs to trace.dat. A kernel without modules has no /proc/modules. */
int save_map(const char *from, const char *dir, const char *user_maps, size_t *nr_stacks)
{
	int ret;

	ret = copy_file(from, "stack_map_bin", dir);
	if (!ret)
		ret = copy_file(from, "stack_map_stat", dir);
	if (!ret)
		ret = copy_file("/proc", "kallsyms", dir);
	if (!ret && !access("/proc/modules", R_OK))
		ret = copy_file("/proc", "modules", dir);
	if (!ret)
		ret = check_saved(dir, user_maps, nr_stacks);
	return ret;
}

/* When all files are there. */
int save_checksums(const char *dir)
{
	return write_checksums(dir, our_files, NR_SUMMED);
}
