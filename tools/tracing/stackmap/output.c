// SPDX-License-Identifier: GPL-2.0
/* The directory of "record" and "save": what it may replace, the files beside trace.dat. */
#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
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

/* rename() refuses ".", ".." and "/". */
static bool can_be_renamed(const char *dir, size_t len)
{
	const char *slash = memrchr(dir, '/', len), *name = slash ? slash + 1 : dir;

	len -= name - dir;
	return len > 2 || (len && strncmp(name, "..", len));
}

/* @dir without slashes at its end. */
char *output_name(const char *dir)
{
	size_t len = strlen(dir);

	while (len > 1 && dir[len - 1] == '/')
		len--;
	if (!len || !strcmp(dir, "-"))
		usage("not a directory", dir);
	if (!can_be_renamed(dir, len))
		usage("not the name of a directory that can be renamed", dir);
	return format("%.*s", (int)len, dir);
}

struct content {
	bool	exists;
	bool	empty;
	bool	recording;
	bool	other;		/* has other files, too */
};

bool has_file(const char *dir, const char *name)
{
	char *path = format("%s/%s", dir, name);
	bool ret = !access(path, F_OK);

	free(path);
	return ret;
}

static struct content look_into(const char *path)
{
	struct content c = {};
	struct dirent *e;
	struct stat st;
	DIR *dir;

	c.exists = !lstat(path, &st);
	dir = c.exists && S_ISDIR(st.st_mode) ? opendir(path) : NULL;
	if (!dir)
		return c;
	c.empty = true;
	c.recording = has_file(path, "stack_map_bin") || has_file(path, "trace.dat") ||
		      has_file(path, "head.dat");
	while ((e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		c.empty = false;
		c.other |= !is_ours(e->d_name);
	}
	closedir(dir);
	return c;
}

/* An earlier recording becomes @dir.old, whose place only another recording may have. */
int output_check(const char *dir)
{
	struct content c = look_into(dir), old;
	char *name;

	if (!c.exists || c.empty)
		return 0;
	if (!c.recording) {
		complain("%s: exists and is no recording", dir);
		return -EEXIST;
	}
	name = format("%s.old", dir);
	old = look_into(name);
	free(name);
	if (!old.exists || old.empty || (old.recording && !old.other))
		return 0;
	complain("%s.old: has other files than a recording, please remove it", dir);
	return -EEXIST;
}

void output_discard(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (is_ours(e->d_name))
			unlinkat(dirfd(dir), e->d_name, 0);
	}
	if (dir)
		closedir(dir);
	if (rmdir(path))
		complain("%s: %s", path, strerror(errno));
}

/* Only for the user, because addresses of the kernel are in it. */
int output_make(const char *dir)
{
	char *old = format("%s.old", dir);
	int ret = 0;

	if (!rmdir(dir))
		;
	else if (errno == ENOTEMPTY && !access(old, F_OK))
		output_discard(old);
	if ((!access(dir, F_OK) && rename(dir, old)) || mkdir(dir, 0700)) {
		ret = -errno;
		complain("%s: %s", dir, strerror(errno));
	}
	free(old);
	return ret;
}

u64 file_sizes(const char *dir, const char *pattern)
{
	char *path = format("%s/%s", dir, pattern);
	glob_t found = {};
	struct stat st;
	u64 bytes = 0;
	size_t i;

	glob(path, 0, NULL, &found);
	for (i = 0; i < found.gl_pathc; i++)
		bytes += stat(found.gl_pathv[i], &st) ? 0 : st.st_size;
	globfree(&found);
	free(path);
	return bytes;
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

static FILE *create(const char *dir, const char *name)
{
	char *path = format("%s/%s", dir, name);
	FILE *f = fopen(path, "wxe");

	if (!f)
		complain("%s: %s", path, strerror(errno));
	free(path);
	return f;
}

static int finish(FILE *f, const char *dir, const char *name)
{
	bool bad = ferror(f);

	if (!fclose(f) && !bad)
		return 0;
	complain("%s/%s: %s", dir, name, strerror(errno));
	return -EIO;
}

void remove_file(const char *dir, const char *name)
{
	char *path = format("%s/%s", dir, name);

	unlink(path);
	free(path);
}

static int copy_bytes(const char *path, FILE *to)
{
	FILE *from = fopen(path, "re");
	char buf[1 << 16];
	int ret = 0;
	size_t n;

	if (!from)
		return -errno;
	while ((n = fread(buf, 1, sizeof(buf), from)))
		fwrite(buf, 1, n, to);
	if (ferror(from))
		ret = -errno;
	fclose(from);
	return ret;
}

static int copy_again(const char *path, FILE *to)
{
	rewind(to);
	return ftruncate(fileno(to), 0) ? -errno : copy_bytes(path, to);
}

static int copy_to(const char *path, FILE *to)
{
	int ret, tries;

	ret = copy_bytes(path, to);
	for (tries = 1; ret == -ESTALE && tries < MAX_READS; tries++)
		ret = copy_again(path, to);
	if (ret == -ESTALE)
		complain_stale(path);
	else if (ret)
		complain("%s: %s", path, strerror(-ret));
	return ret;
}

int copy_file(const char *from_dir, const char *name, const char *dir)
{
	char *path = format("%s/%s", from_dir, name);
	FILE *out = NULL;
	int ret = -EIO;

	if (access(path, R_OK))
		complain("%s: %s", path, strerror(errno));
	else
		out = create(dir, name);
	if (out) {
		ret = copy_to(path, out);
		if (finish(out, dir, name))
			ret = -EIO;
		if (ret)
			remove_file(dir, name);
	}
	free(path);
	return ret;
}

static int save_build_id(const struct map *m, const char *dir)
{
	FILE *f;
	size_t i;

	if (!m->build_id.len)
		return 0;
	f = create(dir, "build_id");
	if (!f)
		return -EIO;
	for (i = 0; i < m->build_id.len; i++)
		fprintf(f, "%02x", m->build_id.bytes[i]);
	fputc('\n', f);
	return finish(f, dir, "build_id");
}

/* @text: what record has seen; NULL: what is running now. */
static int save_users(const struct map *m, const char *dir, const char *text)
{
	bool user = false;
	size_t i;
	FILE *f;

	for (i = 0; !user && i < m->nr_stacks; i++)
		user = m->stacks[i].nr_user;
	if (!user)
		return 0;
	f = create(dir, "user_maps");
	if (!f)
		return -EIO;
	if (text)
		fputs(text, f);
	else
		write_users(f);
	return finish(f, dir, "user_maps");
}

/* Reads the copy back, to report an unusable one now. */
static int check_saved(const char *dir, const char *user_maps, size_t *nr_stacks)
{
	struct map m = {};
	int ret;

	ret = load_map(&m, dir);
	if (!ret)
		ret = save_build_id(&m, dir);
	if (!ret)
		ret = save_users(&m, dir, user_maps);
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
