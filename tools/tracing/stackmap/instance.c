// SPDX-License-Identifier: GPL-2.0
/* Trace instances. */
#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include "record.h"

/* The directory of the instance; NULL or an empty name is the top level. */
char *find_instance(const char *instance)
{
	return instance && *instance ? format(TRACEFS "/instances/%s", instance) :
				       copy_string(TRACEFS);
}

int trace_error(const char *dir, const char *file, int err)
{
	complain("%s/%s: %s%s", dir, file, strerror(-err),
		 err == -EACCES ? " (only root may trace)" :
		 err == -EPERM ? " (the kernel may be locked down)" : "");
	return err;
}

/* Tells why there is no map to read. */
int check_instance(const char *dir)
{
	/* A read-only instance has this one, too. */
	FILE *f __free(file) = open_in(dir, "trace_clock", "re");

	if (f && is_beside(dir, "options/stackmap"))
		return 0;
	if (f)
		complain("this kernel has no stack map: there is no %s/options/stackmap", dir);
	else if (errno != ENOENT)
		trace_error(dir, "trace_clock", -errno);
	else if (strcmp(dir, TRACEFS))
		complain("there is no trace instance %s", basename(dir));
	else
		complain("%s: no tracefs is mounted here", dir);
	return -ENOENT;
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
void note_empty(const char *dir)
{
	if (!is_set(dir, "options/stackmap"))
		note("the map is empty: %s/options/stackmap is 0", dir);
	else if (!is_set(dir, "options/stacktrace") && !is_set(dir, "options/userstacktrace") &&
		 !is_set(dir, "options/userstacktrace_delay"))
		note("the map is empty: %s/options/stacktrace is 0", dir);
	else
		note("the map is empty: no event was recorded with its stack");
}

/* Someone may be reading one of its files. */
void remove_instance(const char *dir)
{
	char *quoted __free(pointer) = quote(dir);
	int tries;

	for (tries = 0; rmdir(dir); tries++) {
		if (errno != EBUSY || tries == 50) {
			complain("%s: %s; remove it when nobody reads it: rmdir %s", dir,
				 strerror(errno), quoted);
			return;
		}
		usleep(100000);
	}
}

/*
 * @event: "sched:sched_switch", "sched:*", ":sched_switch", "sched_switch" or "sched". The filter
 * of a system leaves alone what lacks the field: it would be recorded in full.
 */
static int set_filter(const char *dir, const char *event, const char *filter)
{
	char *path __free(pointer) = copy_string(*event == ':' ? event + 1 : event);
	char *log_file __free(pointer) = format("%s/error_log", dir);
	char *pattern __free(pointer) = NULL, *log __free(pointer) = NULL;
	char *colon = strchr(path, ':');
	size_t i, len, bad = 0;
	glob_t found = {};
	const char *file;

	if (colon)
		*colon = '/';
	pattern = colon ? format("%s/events/%s%s/filter", dir, path, colon[1] ? "" : "*") :
		  format("%s/events/{%s/*,*/%s}/filter", dir, path, path);
	glob(pattern, GLOB_BRACE, NULL, &found);
	for (i = 0; i < found.gl_pathc; i++) {
		file = found.gl_pathv[i] + strlen(dir) + 1;
		if (!write_file(dir, file, filter))
			continue;
		bad++;
		complain("%s: not a filter of %.*s", filter,
			 (int)(strlen(file) - strlen("/filter")), file);
	}
	globfree(&found);
	log = bad && bad == i ? slurp(log_file, &len) : NULL;
	if (bad || !i)
		complain("%s", log ? log : "name only events that have all its fields");
	return bad || !i ? -EINVAL : 0;
}

int enable_event(const char *dir, const char *event, const char *filter)
{
	int ret = write_file(dir, "set_event", event);

	if (ret == -EINVAL)
		complain("there is no event %s (see " TRACEFS "/available_events)", event);
	else if (ret)
		trace_error(dir, "set_event", ret);
	else if (filter)
		ret = set_filter(dir, event, filter);
	return ret;
}

/* The sum of what the lines with @key count, in all files that @files names. */
u64 count_of(const char *dir, const char *files, const char *key)
{
	char *pattern __free(pointer) = format("%s/%s", dir, files);
	size_t i, len = strlen(key);
	glob_t found = {};
	char line[128];
	u64 sum = 0;

	glob(pattern, 0, NULL, &found);
	for (i = 0; i < found.gl_pathc; i++) {
		FILE *f __free(file) = fopen(found.gl_pathv[i], "re");

		while (f && fgets(line, sizeof(line), f))
			sum += strncmp(line, key, len) ? 0 : strtoull(line + len, NULL, 10);
	}
	globfree(&found);
	return sum;
}

/* Entries that were overwritten, or found no room. */
u64 count_lost(const char *dir)
{
	return count_of(dir, CPU_STATS, "overrun: ") +
	       count_of(dir, CPU_STATS, "commit overrun: ") +
	       count_of(dir, CPU_STATS, "dropped events: ");
}
