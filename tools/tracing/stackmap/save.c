// SPDX-License-Identifier: GPL-2.0
/* Live input: finds tracefs, and copies all that another machine needs ("save"). */

static char *find_tracefs(void)
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

static char *find_live_map(const char *instance)
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

static int copy_bytes(FILE *from, FILE *to)
{
	char buf[1 << 16];
	size_t n;

	while ((n = fread(buf, 1, sizeof(buf), from)))
		fwrite(buf, 1, n, to);
	return ferror(from) ? -errno : 0;
}

static int copy_file(const char *from_dir, const char *from, const char *dir, const char *name)
{
	char *path = format("%s/%s", from_dir, from);
	FILE *in = fopen(path, "re"), *out = NULL;
	int ret = 0;

	if (in)
		out = create(dir, name);
	else
		ret = -errno;
	if (in && !out)
		ret = -EIO;
	else if (in)
		ret = copy_bytes(in, out);
	if (ret && !(in && !out))
		complain("%s: %s", path, strerror(-ret));
	if (out && finish(out, dir, name))
		ret = -EIO;
	if (in)
		fclose(in);
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

/* Reads the copy back, to report an unusable save now. */
static int check_saved(const char *dir)
{
	struct map m = {};
	size_t nr = 0;
	int ret;

	ret = load_map(&m, dir);
	if (!ret)
		ret = save_build_id(&m, dir);
	if (!ret)
		load_own_kallsyms(&m);
	nr = m.nr_stacks;
	map_free(&m);
	if (!ret)
		note("%s: saved %zu stacks", dir, nr);
	return ret;
}

/*
 * Copies the trace first: a map only grows, so it then has all ids of the trace. A kernel without
 * modules has no /proc/modules.
 */
static int save(const char *dir, const char *instance)
{
	char *from = find_instance(instance);
	int ret = 0;

	if (mkdir(dir, 0777) && errno != EEXIST) {
		ret = -errno;
		complain("%s: %s", dir, strerror(errno));
	}
	if (!ret)
		ret = copy_file(from, "trace", dir, "trace");
	if (!ret)
		ret = copy_file(from, "stack_map_bin", dir, "stack_map_bin");
	if (!ret)
		ret = copy_file(from, "stack_map_stat", dir, "stack_map_stat");
	if (!ret)
		ret = copy_file("/proc", "kallsyms", dir, "kallsyms");
	if (!ret && !access("/proc/modules", R_OK))
		ret = copy_file("/proc", "modules", dir, "modules");
	if (!ret)
		ret = check_saved(dir);
	free(from);
	return ret;
}
