// SPDX-License-Identifier: GPL-2.0
/* The child of "record" that keeps a recording: see record.c. */
#include <dirent.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"
#include "recording.h"
#include "util.h"

static int try_user_option(const struct recording *r, const char *option)
{
	int ret = write_file(r->dir, option, "1");

	if (!ret)
		note("stacks of user space: %s", option);
	return ret;
}

static int set_user_option(const struct recording *r)
{
	static const char now[] = "options/userstacktrace";
	static const char delay[] = "options/userstacktrace_delay";
	int ret = -ENOENT;

	if (r->user != USER_NOW)
		ret = try_user_option(r, delay);
	if (ret && r->user != USER_DELAY)
		ret = try_user_option(r, now);
	if (ret)
		complain("this kernel has no %s: %s", r->user == USER_DELAY ? delay : now,
			 strerror(-ret));
	return ret;
}

static int follow(const struct recording *r, u32 pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", pid);
	return set(r->dir, "set_event_pid", text);
}

/* Its children to come are followed, the threads that it has are not. */
static int follow_threads(const struct recording *r, u32 pid)
{
	char *path = format("/proc/%u/task", pid);
	DIR *dir = opendir(path);
	struct dirent *e;
	int ret = 0;

	if (!dir) {
		complain("there is no process %u", pid);
		ret = -ESRCH;
	}
	while (!ret && (e = readdir(dir))) {
		if (*e->d_name != '.')
			ret = set(r->dir, "set_event_pid", e->d_name);
	}
	if (dir)
		closedir(dir);
	free(path);
	return ret;
}

#define INITIAL_PID_NS	0xEFFFFFFCU	/* the inode of its file */

static int select_processes(const struct recording *r)
{
	struct stat st;
	size_t i;
	int ret;

	if (!stat("/proc/self/ns/pid", &st) && st.st_ino != INITIAL_PID_NS) {
		complain("in a pid namespace, only --all processes can be recorded");
		return -EINVAL;
	}
	ret = set(r->dir, "options/event-fork", "1");
	if (!ret && r->pid)
		ret = follow(r, r->pid);
	for (i = 0; !ret && i < r->nr_pids; i++)
		ret = follow_threads(r, r->pids[i]);
	return ret;
}

/* trace-cmd sets the events itself. But it hangs if it does not like a filter. */
static int set_up(const struct recording *r)
{
	static const char * const settings[][2] = {
		{ "tracing_on", "0" },
		{ "trace_clock", "mono" },
		{ "options/stackmap", "1" },
		{ "options/stackmap-define", "1" },
		{ "options/stacktrace", "1" },
	};
	int ret = 0;
	size_t i;

	for (i = 0; !ret && i < ARRAY_SIZE(settings); i++)
		ret = set(r->dir, settings[i][0], settings[i][1]);
	if (!ret && r->buffer_kb)
		ret = set(r->dir, "buffer_size_kb", r->buffer_kb);
	if (!ret && r->user)
		ret = set_user_option(r);
	if (!ret && !r->all)
		ret = select_processes(r);
	for (i = 0; !ret && i < r->nr_events; i++)
		ret = enable_event(r->dir, r->events[i].event, r->events[i].filter);
	return ret;
}

/* Without -k, trace-cmd would remove the instance. */
static pid_t start_recorder(const struct recording *r)
{
	struct args args = {};
	size_t i;
	pid_t pid;

	add_args(&args, "trace-cmd", "record", "-q", "-k", "-o", "trace.dat", NULL);
	if (r->realtime)
		add_args(&args, "-r", r->realtime, NULL);
	add_args(&args, "-B", r->instance, NULL);
	for (i = 0; i < r->nr_events; i++) {
		add_args(&args, "-e", r->events[i].event, NULL);
		if (r->events[i].filter)
			add_args(&args, "-f", r->events[i].filter, NULL);
	}
	pid = start_program(&args, r->output, false, &r->old_signals);
	free_args(&args);
	return pid;
}

/* Did the tool close the pipe? */
static bool is_stopped(int stop, int ms)
{
	struct pollfd fd = { .fd = stop, .events = POLLIN };

	return poll(&fd, 1, ms);
}

static bool recorder_ended(struct recording *r)
{
	if (r->recorder > 0 && waitpid(r->recorder, NULL, WNOHANG) != r->recorder)
		return false;
	complain("trace-cmd ended early");
	return true;
}

/* It sets tracing_on when its recorders run. */
static int wait_for_recorder(struct recording *r, int stop)
{
	while (!is_set(r->dir, "tracing_on")) {
		if (recorder_ended(r))
			return -EIO;
		if (is_stopped(stop, 20)) {
			kill(-r->recorder, SIGKILL);
			waitpid(r->recorder, NULL, 0);
			return -EINTR;
		}
	}
	return 0;
}

/*
 * In the end, trace-cmd makes one file of those of the CPUs, most often a compressed one, with what
 * head.dat has, and kallsyms is copied. What the buffer holds comes before.
 */
static bool disk_is_full(const struct recording *r)
{
	struct instance_stat s;

	read_instance_stat(r->dir, &s);
	return !has_room(r->output, file_sizes(r->output, "trace.dat.*") / 2 + s.bytes +
			 2 * file_sizes(r->output, "head.dat"));
}

/* The events of mappings have little room. */
static int keep_recording(struct recording *r, int stop)
{
	while (!is_stopped(stop, r->user ? 100 : 500)) {
		if (r->user)
			watch_drain(&r->watch);
		if (recorder_ended(r))
			return -EIO;
		if (disk_is_full(r))
			return -ENOSPC;
	}
	return 0;
}

static int salvage(const struct recording *r)
{
	int ret = restore(r->output, r->instance, &r->old_signals);

	if (ret)
		complain("%s has no trace.dat. With more room, there: trace-cmd restore %s",
			 r->output, "-o trace.dat -i head.dat $(ls -v trace.dat.*)");
	else
		note("%s/trace.dat was restored from the files of the recorders", r->output);
	return ret;
}

static int finish_recorder(const struct recording *r, int ret)
{
	if (!ret || ret == -ENOSPC) {
		kill(r->recorder, SIGINT);
		if (wait_for_program(r->recorder))
			ret = -EIO;
	}
	/* If trace-cmd has failed, its recorders go on. */
	kill(-r->recorder, SIGKILL);
	if (ret != -EIO || !salvage(r))
		remove_file(r->output, "head.dat");
	return ret;
}

static void tell_result(const struct recording *r, size_t nr_stacks)
{
	char *path = format("%s/trace.dat", r->output);
	u64 nr_events = count_events(path);
	struct instance_stat s;

	free(path);
	read_instance_stat(r->dir, &s);
	s.lost += s.left;
	if (nr_events)
		note("%s: recorded %llu events with %zu different stacks; see stackmap_dump %s",
		     r->output, nr_events, nr_stacks, r->output);
	else
		note("%s: recorded %llu buffer entries, %zu different stacks; see stackmap_dump %s",
		     r->output, s.read, nr_stacks, r->output);
	if (s.lost)
		complain("%llu of %llu buffer entries were lost%s", s.lost, s.lost + s.read,
			 " (events, stacks, definitions): try --realtime 10 or a larger buffer (-b)");
	if (s.recycled)
		note("the map has recycled %llu more stacks", s.recycled);
}

/* The map is saved first, it is small and the disk may be full. */
static int finish_recording(struct recording *r, int ret)
{
	size_t nr_stacks = 0;
	int err;

	set(r->dir, "tracing_on", "0");
	if (r->user)
		watch_stop(&r->watch);
	err = save_map(r->dir, r->output, r->watch.text, &nr_stacks);
	ret = finish_recorder(r, ret);
	if (!err)
		err = save_checksums(r->output);
	tell_result(r, nr_stacks);
	return ret ? ret : err;
}

static int record_in_instance(struct recording *r, int ready, int stop)
{
	int ret;

	ret = set_up(r);
	if (!ret)
		ret = output_make(r->output);
	if (ret)
		return ret;
	if (r->user)
		watch_start(&r->watch);
	ret = make_head(r->output, &r->old_signals);
	if (!ret && disk_is_full(r))
		ret = -ENOSPC;
	if (!ret) {
		r->recorder = start_recorder(r);
		ret = wait_for_recorder(r, stop);
	}
	if (!ret && write(ready, "", 1) != 1)
		ret = -errno;
	if (ret) {
		output_discard(r->output);
		return ret;
	}
	return finish_recording(r, keep_recording(r, stop));
}

int keep(struct recording *r, int ready, int stop)
{
	int ret;

	/* The signals of the terminal are for the tool. */
	setpgid(0, 0);
	ret = make_instance(r->dir);
	if (!ret) {
		ret = record_in_instance(r, ready, stop);
		remove_instance(r->dir);
	}
	free_recording(r);
	return ret ? 1 : 0;
}
