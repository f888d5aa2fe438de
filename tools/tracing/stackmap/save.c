// SPDX-License-Identifier: GPL-2.0
/* Live input: finds tracefs, and copies all that another machine needs ("save"). */
#include <dirent.h>
#include <mntent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "map.h"
#include "record.h"
#include "symbols.h"
#include "user.h"
#include "util.h"

char *find_tracefs(void)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *e = NULL;
	char *path = NULL;

	while (f && !path && (e = getmntent(f))) {
		if (!strcmp(e->mnt_type, "tracefs"))
			path = copy_string(e->mnt_dir);
	}
	if (f)
		endmntent(f);
	return path ? path : copy_string("/sys/kernel/tracing");
}

const char *instance_name(const char *name)
{
	if (!*name || *name == '.' || strchr(name, '/'))
		usage("not the name of an instance", name);
	return name;
}

/* The directory of the instance; NULL is the top level. */
static char *find_instance(const char *instance)
{
	char *path, *top = find_tracefs();

	if (!instance)
		return top;
	path = format("%s/instances/%s", top, instance);
	free(top);
	return path;
}

bool has_live_map(void)
{
	char *path = find_live_map(NULL);
	bool has = !access(path, R_OK);

	free(path);
	return has;
}

char *find_live_map(const char *instance)
{
	char *dir = find_instance(instance);
	char *path = format("%s/stack_map_bin", dir);

	free(dir);
	return path;
}

/* Does not overwrite files of an earlier save, so that a directory never mixes two saves. */
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

static int copy_file(const char *from_dir, const char *from, const char *dir, const char *name)
{
	char *path = format("%s/%s", from_dir, from);
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
	}
	free(path);
	return ret;
}

/* @text: what record has seen; NULL: what is running now. */
static int save_users(const char *dir, const char *text)
{
	FILE *f;

	f = create(dir, "user_maps");
	if (!f)
		return -EIO;
	if (text)
		fputs(text, f);
	else
		write_users(f);
	return finish(f, dir, "user_maps");
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

/* Reads the copy back, to report an unusable save now. */
static int check_saved(const char *dir, size_t *nr_stacks)
{
	struct map m = {};
	int ret;

	ret = load_map(&m, dir);
	if (!ret)
		ret = save_build_id(&m, dir);
	if (!ret)
		load_own_kallsyms(&m);
	*nr_stacks = m.nr_stacks;
	map_free(&m);
	return ret;
}

/*
 * Copies the trace first, so that a map that only grows has all ids of the trace. If recording goes
 * on, the stack of an event that leaves the buffer meanwhile may be missing. A kernel without
 * modules has no /proc/modules.
 */
int save_files(const char *from, const char *dir, const char *user_maps,
		      size_t *nr_stacks)
{
	int ret;

	ret = copy_file(from, "trace", dir, "trace");
	if (!ret)
		ret = save_users(dir, user_maps);
	if (!ret)
		ret = copy_file(from, "stack_map_bin", dir, "stack_map_bin");
	if (!ret)
		ret = copy_file(from, "stack_map_stat", dir, "stack_map_stat");
	if (!ret)
		ret = copy_file("/proc", "kallsyms", dir, "kallsyms");
	if (!ret && !access("/proc/modules", R_OK))
		ret = copy_file("/proc", "modules", dir, "modules");
	if (!ret)
		ret = check_saved(dir, nr_stacks);
	return ret;
}

int save(const char *dir, const char *instance)
{
	char *from = find_instance(instance);
	size_t nr_stacks;
	int ret = 0;

	if (mkdir(dir, 0777) && errno != EEXIST) {
		ret = -errno;
		complain("%s: %s", dir, strerror(errno));
	}
	if (!ret)
		ret = save_files(from, dir, NULL, &nr_stacks);
	if (!ret)
		note("%s: saved %zu stacks", dir, nr_stacks);
	free(from);
	return ret;
}
