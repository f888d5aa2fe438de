// SPDX-License-Identifier: GPL-2.0
/* The child of "record" that keeps a recording: see record.c. */
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"
#include "view.h"
#include "util.h"

#define RESTORE	"trace-cmd restore -o trace.dat -i head.dat $(ls -v trace.dat.*)"

static int set_user_option(const struct recording *r)
{
	static const char * const options[] = {
		"options/userstacktrace_delay", "options/userstacktrace",
	};
	bool last = r->user != USER_DELAY;
	int ret = -ENOENT, i;

	for (i = r->user == USER_NOW; ret && i <= last; i++) {
		ret = write_file(r->dir, options[i], "1");
		if (!ret)
			note("stacks of user space: %s", options[i]);
	}
	if (ret)
		complain("this kernel has no %s: %s", options[last], strerror(-ret));
	return ret;
}

/* Its children to come are followed, the threads that it has are not. */
static int follow_threads(const struct recording *r, u32 pid)
{
	char *pattern __free(pointer) = format("/proc/%u/task/*", pid);
	glob_t found = {};
	int ret = 0;
	size_t i;

	if (glob(pattern, 0, NULL, &found)) {
		complain("there is no process %u", pid);
		ret = -ESRCH;
	}
	for (i = 0; !ret && i < found.gl_pathc; i++)
		ret = set(r->dir, "set_event_pid", strrchr(found.gl_pathv[i], '/') + 1);
	globfree(&found);
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
		ret = follow_threads(r, r->pid);
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
		{ "options/stacktrace", "1" },
	};
	char kb[24];
	int ret = 0;
	size_t i;

	for (i = 0; !ret && i < ARRAY_SIZE(settings); i++)
		ret = set(r->dir, settings[i][0], settings[i][1]);
	/* Not every kernel has it. The map has the stacks as well. */
	write_file(r->dir, "options/stackmap-define", "1");
	snprintf(kb, sizeof(kb), "%llu", r->buffer_kb);
	if (!ret && r->buffer_kb)
		ret = set(r->dir, "buffer_size_kb", kb);
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
	const char **args __free(pointer) = NULL;
	char prio[24];
	const char * const first[] = {
		"trace-cmd", "record", "-q", "-k", "-o", "trace.dat", "-r", prio, "-B",
		r->instance,
	};
	size_t i, nr = ARRAY_SIZE(first);

	snprintf(prio, sizeof(prio), "%llu", r->realtime);
	args = check_mem(calloc(nr + 4 * r->nr_events + 1, sizeof(*args)));
	memcpy(args, first, sizeof(first));
	for (i = 0; i < r->nr_events; i++) {
		args[nr++] = "-e";
		args[nr++] = r->events[i].event;
		if (!r->events[i].filter)
			continue;
		args[nr++] = "-f";
		args[nr++] = r->events[i].filter;
	}
	return start_program(args, r->output, false);
}

/* Waits for a byte before it starts. If the keeper ends without it, there is no command. */
static _Noreturn void be_command(const struct recording *r, int go)
{
	char c;

	setpgid(0, r->group);
	if (read(go, &c, 1) != 1)
		_exit(NO_COMMAND);
	unblock_signals();
	execvp(r->command[0], r->command);
	complain("%s: %s", r->command[0], strerror(errno));
	_exit(NO_COMMAND);
}

static int fork_command(struct recording *r)
{
	int go[2];

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	r->pid = fork();
	if (!r->pid) {
		close(go[1]);
		be_command(r, go[0]);
	}
	close(go[0]);
	r->go = go[1];
	return r->pid < 0 ? -errno : 0;
}

/* A signal of the terminal goes to the command as well, and the recording ends with the command. */
static void pass_signal(struct recording *r, const struct signalfd_siginfo *info)
{
	if (!r->pid || !r->start)
		r->stopped = true;
	else if (!info->ssi_int)
		kill(r->pid, info->ssi_signo);
}

/* Waits for one, but not for long. */
static void take_signal(struct recording *r, int ms)
{
	struct pollfd fd = { .fd = r->signal_fd, .events = POLLIN };
	struct signalfd_siginfo info;

	if (poll(&fd, 1, ms) > 0 && read(r->signal_fd, &info, sizeof(info)) == sizeof(info) &&
	    info.ssi_signo != SIGCHLD)
		pass_signal(r, &info);
	if (r->pid && waitpid(r->pid, &r->status, WNOHANG) == r->pid) {
		r->pid = 0;
		r->stopped = true;
	}
	r->stopped |= getppid() != r->tool;
}

static bool recorder_ended(const struct recording *r)
{
	if (r->recorder > 0 && waitpid(r->recorder, NULL, WNOHANG) != r->recorder)
		return false;
	complain("trace-cmd ended early");
	return true;
}

/* It sets tracing_on when its recorders run. */
static int wait_for_recorder(struct recording *r)
{
	while (!is_set(r->dir, "tracing_on")) {
		if (recorder_ended(r))
			return -EIO;
		take_signal(r, 20);
		if (r->stopped)
			return -EINTR;
	}
	return 0;
}

static bool processes_ended(const struct recording *r)
{
	size_t i;

	for (i = 0; i < r->nr_pids; i++) {
		if (!kill(r->pids[i], 0) || errno != ESRCH)
			return false;
	}
	return r->nr_pids && !r->command;
}

/*
 * In the end, trace-cmd makes one file of those of the CPUs, most often a compressed one, with what
 * head.dat has, and kallsyms is copied. What the buffer holds comes before.
 */
static bool disk_is_full(const struct recording *r, const struct instance_stat *s)
{
	return !has_room(r->output, file_sizes(r->output, "trace.dat.*") / 2 + s->bytes +
			 2 * file_sizes(r->output, "head.dat"));
}

/* Twice in a second. Progress is a line each second, later every ten seconds. */
static int look(struct recording *r, u64 half)
{
	struct instance_stat s;

	if (half == r->last_look)
		return 0;
	r->last_look = half;
	read_instance_stat(r->dir, &s);
	if (half > 1 && half % (half > 20 ? 20 : 2) == 0 && isatty(STDERR_FILENO))
		note("%llu s, %llu stacks, %llu different ones, %llu buffer entries lost", half / 2,
		     s.stacks, s.different, s.lost);
	return disk_is_full(r, &s) ? -ENOSPC : 0;
}

/* The events of mappings have little room. */
static int keep_recording(struct recording *r)
{
	int ret = 0;
	u64 ms;

	while (!ret && !r->stopped) {
		take_signal(r, 100);
		ms = now_ms() - r->start;
		if (r->duration && ms >= 1000 * r->duration) {
			r->duration = 0;
			r->stopped |= !r->pid;
			if (r->pid)
				kill(r->pid, SIGTERM);
		}
		r->stopped |= processes_ended(r);
		if (r->user)
			watch_drain(&r->watch);
		ret = recorder_ended(r) ? -EIO : look(r, ms / 500);
	}
	return ret;
}

/* The number of a CPU is its place among the arguments. */
static int restore(const struct recording *r)
{
	const char * const args[] = { "sh", "-c", RESTORE, NULL };
	int ret;

	remove_files(r->output, "trace.dat");
	ret = run_program(args, r->output, true);
	if (ret) {
		remove_files(r->output, "trace.dat");
		complain("%s has no trace.dat. With more room, there: %s", r->output, RESTORE);
	} else {
		remove_files(r->output, "trace.dat.*");
		note("%s/trace.dat was restored from the files of the recorders", r->output);
	}
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
	if (ret != -EIO || !restore(r))
		remove_files(r->output, "head.dat");
	return ret;
}

static void tell_result(const struct recording *r, size_t nr_stacks)
{
	char *path __free(pointer) = format("%s/trace.dat", r->output);
	u64 nr_events = count_events(path);
	struct instance_stat s;

	read_instance_stat(r->dir, &s);
	s.lost += s.left;
	note("%s: recorded %llu %s with %zu different stacks; see stackmap_dump %s", r->output,
	     nr_events ? nr_events : s.read, nr_events ? "events" : "buffer entries", nr_stacks,
	     r->output);
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

/* Of head.dat, trace.dat can be restored. */
static int start_recording(struct recording *r)
{
	const char * const args[] = { "trace-cmd", "restore", "-c", "-o", "head.dat", NULL };
	struct instance_stat s;
	int ret;

	if (r->user)
		watch_start(&r->watch);
	ret = run_program(args, r->output, false);
	if (ret) {
		complain("trace-cmd did not make %s/head.dat", r->output);
		return ret;
	}
	read_instance_stat(r->dir, &s);
	if (disk_is_full(r, &s))
		return -ENOSPC;
	r->recorder = start_recorder(r);
	ret = wait_for_recorder(r);
	if (!ret && r->command && write(r->go, "", 1) != 1)
		ret = -errno;
	r->start = now_ms();
	return ret;
}

static int record_in_instance(struct recording *r)
{
	int ret = set_up(r);

	if (!ret)
		ret = output_make(r->output);
	if (ret)
		return ret;
	ret = start_recording(r);
	if (!ret)
		return finish_recording(r, keep_recording(r));
	if (r->recorder > 0) {
		kill(-r->recorder, SIGKILL);
		waitpid(r->recorder, NULL, 0);
	}
	output_discard(r->output);
	return ret;
}

/* Returns the status of "record". The signals of the terminal are for the tool. */
int keep(struct recording *r)
{
	int ret;

	setpgid(0, 0);
	r->signal_fd = signalfd(-1, &r->signals, SFD_CLOEXEC);
	if (r->command && fork_command(r)) {
		complain("fork: %s", strerror(errno));
		return 1;
	}
	ret = make_instance(r->dir);
	if (!ret) {
		ret = record_in_instance(r);
		remove_instance(r->dir);
	}
	watch_free(&r->watch);
	close(r->go);
	/* A command that goes on without being recorded. */
	while (r->pid && getppid() == r->tool)
		take_signal(r, 100);
	if (ret || !r->command)
		return !!ret;
	return WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);
}
