// SPDX-License-Identifier: GPL-2.0
/* Trace instances: finds, makes, sets and removes them. */
#include <fcntl.h>
#include <glob.h>
#include <mntent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "record.h"
#include "util.h"

char *find_tracefs(void)
{
	FILE *f __free(file) = setmntent("/proc/self/mounts", "re");
	struct mntent *e;

	while (f && (e = getmntent(f))) {
		if (!strcmp(e->mnt_type, "tracefs"))
			return copy_string(e->mnt_dir);
	}
	return copy_string("/sys/kernel/tracing");
}

const char *instance_name(const char *name)
{
	if (!*name || *name == '.' || strchr(name, '/'))
		usage("not the name of an instance", name);
	return name;
}

/* The directory of the instance; NULL is the top level. */
char *find_instance(const char *instance)
{
	char *top __free(pointer) = find_tracefs();

	return instance ? format("%s/instances/%s", top, instance) : copy_string(top);
}

char *find_live_map(const char *instance)
{
	char *dir __free(pointer) = find_instance(instance);

	return format("%s/stack_map_bin", dir);
}

bool has_live_map(void)
{
	char *path __free(pointer) = find_live_map(NULL);

	return !access(path, R_OK);
}

static const char *hint(int err)
{
	return err == -EACCES ? " (only root may trace)" :
	       err == -EPERM ? " (the kernel may be locked down)" : "";
}

static int trace_error(const char *dir, const char *file, int err)
{
	complain("%s/%s: %s%s", dir, file, strerror(-err), hint(err));
	return err;
}

FILE *open_in(const char *dir, const char *name, const char *mode)
{
	char *path __free(pointer) = format("%s/%s", dir, name);

	return fopen(path, mode);
}

/* Returns 0 or the error of opening the file. */
static int try_open(const char *dir, const char *file)
{
	FILE *f __free(file) = open_in(dir, file, "re");

	return f ? 0 : -errno;
}

/* Tells why there is no map to read. */
int check_instance(const char *instance)
{
	char *dir __free(pointer) = find_instance(instance);
	static const char file[] = "tracing_on", option[] = "options/stackmap";
	int ret = try_open(dir, file);

	if (ret == -ENOENT && instance)
		complain("there is no trace instance %s (%s)", instance, dir);
	else if (ret == -ENOENT)
		complain("%s: no tracefs is mounted here", dir);
	else if (ret)
		trace_error(dir, file, ret);
	if (ret)
		return ret;

	ret = try_open(dir, option);
	if (ret)
		complain("this kernel has no stack map (%s/%s: %s)", dir, option, strerror(-ret));
	return ret;
}

/* Files of tracefs want all by one write(2). */
int write_file(const char *dir, const char *file, const char *text)
{
	char *path __free(pointer) = format("%s/%s", dir, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

int set(const char *dir, const char *file, const char *text)
{
	int ret = write_file(dir, file, text);

	return ret ? trace_error(dir, file, ret) : 0;
}

bool is_set(const char *dir, const char *file)
{
	FILE *f __free(file) = open_in(dir, file, "re");

	return f && getc(f) == '1';
}

/* Tells why a map has no stacks. */
void note_empty(const char *instance)
{
	char *dir __free(pointer) = find_instance(instance);

	if (!is_set(dir, "options/stackmap"))
		note("the map is empty: %s/options/stackmap is 0", dir);
	else if (!is_set(dir, "options/stacktrace") && !is_set(dir, "options/userstacktrace") &&
		 !is_set(dir, "options/userstacktrace_delay"))
		note("the map is empty: %s/options/stacktrace is 0", dir);
	else
		note("the map is empty: no event was recorded with its stack");
}

int make_instance(const char *dir)
{
	if (!mkdir(dir, 0700))
		return 0;
	complain("%s: %s%s", dir, strerror(errno), hint(-errno));
	return -errno;
}

/* Someone may be reading one of its files. */
int remove_instance(const char *dir)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	int tries;

	for (tries = 0; tries < 50; tries++) {
		if (!rmdir(dir))
			return 0;
		if (errno != EBUSY)
			break;
		nanosleep(&pause, NULL);
	}
	complain("%s: %s; remove it when nobody reads it: rmdir %s", dir, strerror(errno), dir);
	return -EIO;
}

/* error_log: "[   11.855049] event filter parse error: error: Field not found", then where. */
static void complain_filter(const char *dir, const char *filter)
{
	FILE *f __free(file) = open_in(dir, "error_log", "re");
	static const char key[] = "filter parse error: error: ";
	char line[256], why[256] = "", *found;

	while (f && fgets(line, sizeof(line), f)) {
		found = strstr(line, key);
		if (found)
			sprintf(why, ": %.*s", (int)strcspn(found, "\n") - (int)strlen(key),
				found + strlen(key));
	}
	complain("%s: not a filter of this event%s", filter, why);
}

/* @event: "sched:sched_switch", "sched_switch" or "sched". */
static int set_filter(const char *dir, const char *event, const char *filter)
{
	char *pattern __free(pointer) = NULL;
	const char *colon = strchr(event, ':');
	glob_t found = {};
	size_t i;
	int ret;

	pattern = colon ?
		format("%s/events/%.*s/%s", dir, (int)(colon - event), event, colon + 1) :
		format("%s/events/{%s,*/%s}", dir, event, event);
	ret = glob(pattern, GLOB_BRACE, NULL, &found) ? -ENOENT : 0;
	for (i = 0; !ret && i < found.gl_pathc; i++) {
		ret = write_file(found.gl_pathv[i], "filter", filter);
		if (ret)
			complain_filter(dir, filter);
	}
	globfree(&found);
	return ret;
}

int enable_event(const char *dir, const char *event, const char *filter)
{
	int ret = write_file(dir, "set_event", event);

	if (ret == -EINVAL)
		complain("there is no event %s (see available_events)", event);
	else if (ret)
		trace_error(dir, "set_event", ret);
	else if (filter)
		ret = set_filter(dir, event, filter);
	return ret;
}

static void add_count(const char *line, const char *key, u64 *n)
{
	if (!strncmp(line, key, strlen(key)))
		*n += strtoull(line + strlen(key), NULL, 10);
}

static void read_stat_file(const char *path, bool of_map, struct instance_stat *s)
{
	FILE *f __free(file) = fopen(path, "re");
	char line[128];

	while (f && fgets(line, sizeof(line), f)) {
		add_count(line, "entries: ", of_map ? &s->different : &s->left);
		add_count(line, "successes: ", &s->stacks);
		add_count(line, "drops: ", &s->stacks);
		add_count(line, "recycled: ", &s->recycled);
		add_count(line, "read events: ", &s->read);
		add_count(line, "bytes: ", &s->bytes);
		add_count(line, "overrun: ", &s->lost);
		add_count(line, "commit overrun: ", &s->lost);
		add_count(line, "dropped events: ", &s->lost);
	}
}

void read_instance_stat(const char *dir, struct instance_stat *s)
{
	char *map __free(pointer) = format("%s/stack_map_stat", dir);
	char *cpus __free(pointer) = format("%s/per_cpu/cpu*/stats", dir);
	glob_t found = {};
	size_t i;

	*s = (struct instance_stat) {};
	read_stat_file(map, true, s);
	glob(cpus, 0, NULL, &found);
	for (i = 0; i < found.gl_pathc; i++)
		read_stat_file(found.gl_pathv[i], false, s);
	globfree(&found);
}
