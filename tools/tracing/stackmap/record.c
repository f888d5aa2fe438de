// SPDX-License-Identifier: GPL-2.0
/*
 * "record": trace-cmd records from a trace instance that is made for it, to the disk as it comes.
 * It is in a process group of its own, which Ctrl-C does not reach. The recording ends with the
 * command. If the tool is killed, trace-cmd is told to end.
 *
 * Some files tell who and what counts, a line each. "command" has the tasks that were followed,
 * with their children; without it, all were. "own_events" are recorded for the names of tasks and
 * modules only, "own_pids" has the tasks that recorded. "threads" has tasks that were there before,
 * each with its process; "lost" is described in gaps.c.
 */
#include <fcntl.h>
#include <glob.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"

struct wanted {
	const char	*event;
	const char	*filter;	/* or NULL */
	bool		own;		/* the user does not want it */
};

struct recording {
	/* The options. */
	struct wanted	*events;
	size_t		nr_events;
	size_t		last;		/* the first one of the last --event */
	const char	**functions;
	size_t		nr_functions;
	u64		*pids;
	size_t		nr_pids;
	u64		pid_arg;	/* the last one */
	u64		buffer_kb;	/* 0: as it is */
	u64		realtime;	/* 0: no */
	u64		duration;	/* in nanoseconds */
	bool		all;
	const char	*user;		/* NULL: no stacks of user space; "": whatever there is */
	bool		by_address;	/* these */
	char		**command;	/* NULL: none */
	const char	*output;
	const char	*instance;
	/* What is there now. */
	char		*dir;		/* of the instance */
	FILE		*user_maps;	/* NULL: it is not needed */
	sigset_t	signals;	/* those that wait_for_signal() takes */
	pid_t		recorder;
	pid_t		pid;		/* of the command, until it has ended */
	int		status;		/* of the command */
	int		go;		/* a pipe: a byte starts the command */
	bool		stopped;
	int		stopped_by;	/* a signal, or 0 */
	u64		start;		/* in milliseconds; 0: not yet */
	u64		last_look;	/* in seconds */
};

static struct recording rec = { .output = "stackmap.data", .duration = UINT64_MAX };

/* An event, or several with commas between them. */
static void add_events(const struct choice *c, char *arg)
{
	char *event;

	if (strpbrk(arg, " \t\n"))
		usage("not an event", arg);
	rec.last = rec.nr_events;
	while ((event = strsep(&arg, ","))) {
		if (!*event || *event == '!')
			usage("not an event", event);
		*APPEND(rec.events, rec.nr_events) = (struct wanted) { event, NULL };
	}
}

static void set_filters(const struct choice *c, char *arg)
{
	size_t i;

	if (!rec.nr_events)
		usage("--filter comes after its --event", NULL);
	if (rec.events[rec.last].filter)
		usage("--filter: an event has one, join two by &&", NULL);
	for (i = rec.last; i < rec.nr_events; i++)
		rec.events[i].filter = arg;
}

static void add_function(const struct choice *c, char *arg)
{
	if (!*arg || strpbrk(arg, " \t\n:!"))
		usage("not a function or a pattern", arg);
	*APPEND(rec.functions, rec.nr_functions) = arg;
}

static void add_pid(const struct choice *c, char *arg)
{
	set_number(c, arg);
	*APPEND(rec.pids, rec.nr_pids) = rec.pid_arg;
}

static void set_user(const struct choice *c, char *arg)
{
	if (arg && strcmp(arg, "delay") && strcmp(arg, "now"))
		usage("--user knows delay and now, not", arg);
	rec.user = arg ? arg : "";
}

static struct choice record_choices[] = {
	{ "event", 'e', "EVENT", add_events, NULL,
	  "an event or a group (sched:sched_switch is the default); repeatable", true },
	{ "filter", 'f', "FILTER", set_filters, NULL,
	  "only those of the last EVENT that FILTER selects (prev_prio < 100)", true },
	{ "function", 0, "PATTERN", add_function, NULL,
	  "record calls of these functions of the kernel (vfs_*); repeatable", true },
	{ "pid", 'p', "PID", add_pid, &rec.pid_arg,
	  "record this process and its children to come; repeatable", true },
	{ "all", 'a', NULL, set_flag, &rec.all, "record all processes while COMMAND runs" },
	{ "duration", 'd', "SECONDS", set_seconds, &rec.duration,
	  "end after this time (1.5); COMMAND gets a SIGTERM" },
	{ "output", 'o', "DIR", set_text, &rec.output,
	  "save into DIR (stackmap.data); an earlier recording becomes DIR.old" },
	{ "user", 'u', "[=HOW]", set_user, NULL,
	  "record the stacks of user space, too: --user=now, at each event, or\n"
	  "--user=delay, on the way back (the default if the kernel can do it)", true },
	{ "buffer-size", 'b', "KB", set_number, &rec.buffer_kb,
	  "size of the ring buffer of each CPU" },
	{ "realtime", 0, "PRIO", set_number, &rec.realtime,
	  "run the recorders with this real-time priority (1 to 99)" },
	{ "instance", 'i', "NAME", set_instance, &rec.instance,
	  "name of the trace instance (stackmap_record_PID)" },
	REFUSED("where", 0, "of a recording; record has --filter, behind its --event"),
	{}
};

/* @argv: what follows the options */
static void check_options(int argc, char **argv)
{
	rec.command = argc ? argv : NULL;
	if (rec.user && !*rec.user && rec.command && strcmp(argv[-1], "--") &&
	    (!strcmp(*rec.command, "now") || !strcmp(*rec.command, "delay")))
		usage("write --user=now or --user=delay; -- comes before a command of that name",
		      NULL);
	if (rec.all && rec.nr_pids)
		usage("--all records every process, --pid one", NULL);
	if (!rec.duration)
		usage("--duration is more than 0", NULL);
	if (rec.realtime > 99)
		usage("--realtime is a priority from 1 to 99", NULL);
	if (rec.user && rec.nr_functions && !rec.nr_events)
		usage("--function has no stacks of user space, --user needs an --event", NULL);
	rec.all |= !rec.command && !rec.nr_pids;
	if (!rec.nr_events && !rec.nr_functions)
		add_events(NULL, copy_string("sched:sched_switch"));
	if (!rec.instance)
		rec.instance = format("stackmap_record_%d", getpid());
	rec.output = output_name(rec.output);
	rec.dir = find_instance(rec.instance);
}

/* With "delay", the kernel tells the file of a frame. */
static int set_user_option(struct recording *r)
{
	static const char * const ways[][2] = {
		{ "delay", "options/userstacktrace_delay" }, { "now", "options/userstacktrace" },
	};
	int ret = -ENOENT;
	size_t i;

	for (i = 0; ret && i < ARRAY_SIZE(ways); i++) {
		if (*r->user && strcmp(r->user, ways[i][0]))
			continue;
		ret = write_file(r->dir, ways[i][1], "1");
		if (!ret)
			note("stacks of user space: %s", ways[i][1]);
		r->by_address = i;
	}
	return ret ? fail("this kernel cannot do --user=%s: %s", r->user, strerror(-ret)) : 0;
}

/* Its children to come are followed, the threads that it has are not. */
static int follow_threads(const struct recording *r, u64 pid)
{
	char *pattern __free(pointer) = format("/proc/%llu/task/*", pid);
	glob_t found = {};
	int ret = 0;
	size_t i;

	if (glob(pattern, 0, NULL, &found))
		ret = fail("there is no process %llu", pid);
	for (i = 0; !ret && i < found.gl_pathc; i++)
		ret = set(r->dir, "set_event_pid", basename(found.gl_pathv[i]));
	globfree(&found);
	return ret;
}

#define INITIAL_PID_NS	0xEFFFFFFCU	/* the inode of its file */

/* Then /proc has other numbers than the recording. */
static bool in_pid_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino != INITIAL_PID_NS;
}

static void write_threads(FILE *f, const char *pattern)
{
	glob_t found = {};
	u32 pid, tgid;
	size_t i;

	glob(pattern, GLOB_NOSORT, NULL, &found);
	for (i = 0; i < found.gl_pathc; i++) {
		if (sscanf(found.gl_pathv[i], "/proc/%u/task/%u", &tgid, &pid) == 2)
			fprintf(f, "%u %u\n", pid, tgid);
	}
	globfree(&found);
}

/* Of those that are there already. Events tell it of the others. */
static int save_threads(const struct recording *r)
{
	FILE *f __free(file) = NULL;
	size_t i;

	if (in_pid_namespace())
		return 0;
	f = output_open("threads");
	if (f && r->all)
		write_threads(f, "/proc/[0-9]*/task/*");
	for (i = 0; f && i < r->nr_pids; i++) {
		char *pattern __free(pointer) = format("/proc/%llu/task/*", r->pids[i]);

		write_threads(f, pattern);
	}
	return output_check(f, "threads");
}

/* What the tool starts from here on is its own. */
static int select_processes(const struct recording *r)
{
	char *own __free(pointer) = format("%d", getpid());
	bool inside = in_pid_namespace();
	size_t i;
	int ret;

	if (inside && !r->all)
		return fail("in a pid namespace, only --all processes can be recorded");
	ret = set(r->dir, "options/event-fork", "1") ?:
	      (inside ? 0 : set(r->dir, "set_event_notrace_pid", own));
	for (i = 0; !ret && !r->all && i < r->nr_pids; i++)
		ret = follow_threads(r, r->pids[i]);
	return ret;
}

/*
 * They tell who is a child of the command, and the names of programs and modules at a time. Not
 * each kernel has all of them.
 */
static int add_own_events(struct recording *r)
{
	static const char * const events[][2] = {
		{ "sched", "sched_process_fork" }, { "sched", "sched_process_exec" },
		{ "sched", "sched_process_exit" }, { "task", "task_rename" },
		{ "task", "task_newtask" },
		{ "module", "module_load" }, { "module", "module_free" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		char *dir __free(pointer) = format("%s/events/%s/%s", r->dir, events[i][0],
						   events[i][1]);
		FILE *filter __free(file) = open_in(dir, "filter", "re");

		if (filter && !is_set(dir, "enable"))
			*APPEND(r->events, r->nr_events) = (struct wanted) {
				.event = format("%s:%s", events[i][0], events[i][1]), .own = true,
			};
		else if (filter && (getc(filter) != 'n' || getc(filter) != 'o'))	/* none */
			return fail("%s: all of these are needed, without a filter", events[i][1]);
	}
	return 0;
}

static int copy_pids(const struct recording *r, const char *from, const char *to)
{
	char *path __free(pointer) = format("%s/%s", r->dir, from);
	char *pids __free(pointer) = NULL;
	size_t len;

	pids = slurp(path, &len);
	return pids && len ? set(r->dir, to, pids) : 0;
}

/*
 * The tracer cannot be changed while its buffer is read, and trace-cmd resets most of this. So it
 * begins with functions that are not to be traced.
 */
static int set_functions(const struct recording *r)
{
	int ret = 0;
	size_t i;

	for (i = 0; !ret && i < r->nr_functions; i++) {
		char *line __free(pointer) = format("%s\n", r->functions[i]);

		ret = write_file(r->dir, "set_ftrace_filter", line) ?:
		      write_file(r->dir, "set_ftrace_notrace", line);
		if (ret == -EINVAL)
			complain("there is no function %s to trace (see " TRACEFS
				 "/available_filter_functions)", r->functions[i]);
		else if (ret)
			trace_error(r->dir, "set_ftrace_filter", ret);
	}
	return ret || !i ? ret : set(r->dir, "current_tracer", "function");
}

static int start_functions(const struct recording *r)
{
	size_t i;
	int ret;

	if (!r->nr_functions)
		return 0;
	ret = (r->all ? 0 : copy_pids(r, "set_event_pid", "set_ftrace_pid")) ?:
	      copy_pids(r, "set_event_notrace_pid", "set_ftrace_notrace_pid") ?:
	      set(r->dir, "options/function-fork", "1") ?:
	      set(r->dir, "options/func_stack_trace", "1");
	for (i = 0; !ret && i < r->nr_functions; i++) {
		char *undo __free(pointer) = format("!%s\n", r->functions[i]);

		ret = set(r->dir, "set_ftrace_notrace", undo);
	}
	return ret;
}

/* trace-cmd sets the events itself. But it hangs if it does not like a filter. */
static int set_up(struct recording *r)
{
	char *kb __free(pointer) = format("%llu", r->buffer_kb);
	const char * const settings[][2] = {
		{ "tracing_on", "0" },
		{ "trace_clock", "mono" },
		{ "options/stackmap", "1" },
		{ "options/stacktrace", "1" },
		{ "buffer_size_kb", kb },
	};
	/* Without -b, the last one stays as it is. */
	size_t i, nr = ARRAY_SIZE(settings) - !r->buffer_kb;
	int ret = 0;

	for (i = 0; !ret && i < nr; i++)
		ret = set(r->dir, settings[i][0], settings[i][1]);
	/* Not every kernel has it. The map has the stacks as well. */
	write_file(r->dir, "options/stackmap-define", "1");
	if (!ret && r->user)
		ret = set_user_option(r);
	if (!ret)
		ret = select_processes(r);
	for (i = 0; !ret && i < r->nr_events; i++)
		ret = enable_event(r->dir, r->events[i].event, r->events[i].filter);
	if (!ret)
		ret = set_functions(r);
	return ret ? ret : add_own_events(r);
}

/* Without -k, trace-cmd would remove the instance. */
static pid_t start_recorder(const struct recording *r)
{
	char *prio __free(pointer) = format("%llu", r->realtime);
	const char **args __free(pointer) = NULL;
	const char * const first[] = {
		"trace-cmd", "record", "-q", "-k", "-o", "trace.dat", "-r", prio, "-B",
		r->instance,
	};
	size_t i, nr = ARRAY_SIZE(first);

	args = check_mem(calloc(nr + 4 * r->nr_events + 3, sizeof(*args)));
	memcpy(args, first, sizeof(first));
	if (r->nr_functions) {
		args[nr++] = "-p";
		args[nr++] = "function";
	}
	for (i = 0; i < r->nr_events; i++) {
		args[nr++] = "-e";
		args[nr++] = r->events[i].event;
		if (!r->events[i].filter)
			continue;
		args[nr++] = "-f";
		args[nr++] = r->events[i].filter;
	}
	return start_program(args);
}

/* It waits for a byte before it starts. If the tool ends without it, there is no command. */
static int fork_command(struct recording *r)
{
	int go[2];
	char c;

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	r->pid = fork();
	if (!r->pid) {
		close(go[1]);
		if (read(go[0], &c, 1) == 1)
			exec_program(r->command);
		_exit(NO_COMMAND);
	}
	close(go[0]);
	r->go = go[1];
	return r->pid < 0 ? -errno : 0;
}

/* Not for long. A signal of the terminal goes to the command as well. */
static void wait_for_signal(struct recording *r, int ms)
{
	const struct timespec t = { .tv_nsec = ms * 1000000L };
	siginfo_t info;

	if (sigtimedwait(&r->signals, &info, &t) > 0 && info.si_signo != SIGCHLD) {
		if (!r->pid || !r->start) {
			r->stopped = true;
			r->stopped_by = info.si_signo;
		} else if (info.si_code != SI_KERNEL) {
			kill(r->pid, info.si_signo);
		}
	}
	if (r->pid && waitpid(r->pid, &r->status, WNOHANG) == r->pid) {
		r->pid = 0;
		r->stopped = true;
	}
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
		wait_for_signal(r, 20);
		if (r->stopped)
			return -EINTR;
	}
	return 0;
}

static bool processes_ended(const struct recording *r)
{
	size_t i = 0;

	while (i < r->nr_pids && kill(r->pids[i], 0) && errno == ESRCH)
		i++;
	return r->nr_pids && i == r->nr_pids && !r->command;
}

/*
 * In the end, trace-cmd makes one file of those of the CPUs, most often a compressed one, with what
 * head.dat has, and kallsyms is copied. What the buffer holds comes before.
 */
static bool disk_is_full(const struct recording *r)
{
	return !output_has_room(output_bytes(CPU_FILES) / 2 + 2 * output_bytes("head.dat") +
				count_of(r->dir, CPU_STATS, "bytes: "));
}

/* Once in a second. Progress is a line each second, later every ten seconds. */
static int look(struct recording *r, u64 second)
{
	if (second == r->last_look)
		return 0;
	r->last_look = second;
	if (isatty(STDERR_FILENO) && (second < 10 || second % 10 == 0))
		note("%llu s, %llu stacks, %llu different ones, %llu buffer entries lost", second,
		     count_of(r->dir, MAP_STAT, "successes: ") +
		     count_of(r->dir, MAP_STAT, "drops: "),
		     count_of(r->dir, MAP_STAT, "entries: "), count_lost(r->dir));
	return disk_is_full(r) ? -ENOSPC : 0;
}

/* The events of mappings have little room. */
static int keep_recording(struct recording *r)
{
	int ret = 0;
	u64 ms;

	while (!ret && !r->stopped) {
		wait_for_signal(r, 100);
		ms = now_ms() - r->start;
		if (ms >= r->duration / 1000000) {
			r->stopped = true;
			if (r->pid)
				kill(r->pid, SIGTERM);
		}
		r->stopped |= processes_ended(r);
		if (r->user_maps)
			watch_drain();
		ret = recorder_ended(r) ? -EIO : look(r, ms / 1000);
	}
	return ret;
}

static int finish_recorder(const struct recording *r, int ret)
{
	int status;

	if (!ret || ret == -ENOSPC) {
		kill(r->recorder, SIGINT);
		if (waitpid(r->recorder, &status, 0) != r->recorder || status)
			ret = -EIO;
	}
	/* If trace-cmd has failed, its recorders go on. */
	kill(-r->recorder, SIGKILL);
	/* Files of CPUs are not left if someone else has ended it. */
	if (ret == -EIO && output_bytes(CPU_FILES)) {
		output_remove("trace.dat");
		complain("%s has no trace.dat. To make it, there: %s", r->output, RESTORE);
	} else {
		output_remove("head.dat");
	}
	return ret;
}

/* Of a recorder that was killed, the buffer still has entries. Returns an error then. */
static int tell_result(const struct recording *r, size_t nr_stacks)
{
	char *quoted __free(pointer) = quote(r->output);
	u64 left = count_of(r->dir, CPU_STATS, "entries: "), lost = count_lost(r->dir) + left;
	u64 nr_read = count_of(r->dir, CPU_STATS, "read events: ");
	u64 recycled = count_of(r->dir, MAP_STAT, "recycled: ");

	note("%s: recorded %llu buffer entries with %zu different stacks", r->output, nr_read,
	     nr_stacks);
	if (lost)
		complain("%llu of %llu buffer entries were lost (events, stacks, definitions): %s",
			 lost, lost + nr_read, left ? "a recorder of trace-cmd has ended early" :
			 "try --realtime 10 or a larger buffer (-b)");
	if (recycled)
		note("the map has recycled %llu more stacks", recycled);
	if (output_bytes("trace.dat"))
		note("see: stackmap_dump report %s", quoted);
	return left ? -EIO : 0;
}

/* The map is saved first, it is small and the disk may be full. */
static int finish_recording(struct recording *r, int ret)
{
	size_t nr_stacks = 0;
	int err;

	set(r->dir, "tracing_on", "0");
	err = save_map(r->dir, false, &nr_stacks);
	/* Of modules, BPF programs and trampolines that come and go. */
	run_script("cmp -s kallsyms.start kallsyms && rm kallsyms.start", NULL);
	if (r->user_maps) {
		watch_stop();
		err |= output_check(r->user_maps, "user_maps");
	}
	ret = finish_recorder(r, ret);
	err |= save_lost(r->dir);
	err |= tell_result(r, nr_stacks);
	return ret ? ret : err;
}

static int save_own_events(const struct recording *r)
{
	FILE *f __free(file) = output_open("own_events");
	size_t i;

	for (i = 0; f && i < r->nr_events; i++) {
		if (r->events[i].own)
			fprintf(f, "%s\n", r->events[i].event);
	}
	return output_check(f, "own_events");
}

/* Of head.dat, trace.dat can be restored. */
static int start_recording(struct recording *r)
{
	int ret;

	r->user_maps = r->by_address ? output_open("user_maps") : NULL;
	if (r->by_address && output_check(r->user_maps, "user_maps"))
		return -EIO;
	if (r->user_maps)
		watch_start(r->user_maps);
	if (save_file("/proc", "kallsyms", "kallsyms.start") || save_own_events(r) ||
	    (!r->all && save_file(r->dir, "set_event_pid", "command")))
		return -EIO;
	if (run_script("exec trace-cmd restore -c -o head.dat", NULL))
		return fail("trace-cmd did not make %s/head.dat", r->output);
	if (disk_is_full(r))
		return -ENOSPC;
	r->recorder = start_recorder(r);
	ret = wait_for_recorder(r) ?: start_functions(r) ?: save_threads(r) ?:
	      save_file(r->dir, "set_event_notrace_pid", "own_pids");
	if (!ret && r->command && write(r->go, "", 1) != 1)
		ret = -errno;
	r->start = now_ms();
	return ret;
}

static int record_in_instance(struct recording *r)
{
	int ret;

	if (set_up(r) || output_make(r->output))
		return -EINVAL;
	ret = start_recording(r);
	if (!ret)
		return finish_recording(r, keep_recording(r));
	if (r->recorder > 0) {
		kill(-r->recorder, SIGKILL);
		waitpid(r->recorder, NULL, 0);
	}
	output_discard();
	return ret;
}

/* Returns the status of "record". */
static int record(struct recording *r)
{
	int ret;

	block_signals(&r->signals);
	if (r->command && fork_command(r)) {
		complain("fork: %s", strerror(errno));
		return 1;
	}
	if (r->command)
		*APPEND(r->pids, r->nr_pids) = r->pid;
	ret = mkdir(r->dir, 0700) ? trace_error(TRACEFS "/instances", r->instance, -errno) : 0;
	if (!ret) {
		ret = record_in_instance(r);
		remove_instance(r->dir);
	}
	if (r->command)
		close(r->go);
	/* It may go on without being recorded. */
	wait_for_signal(r, r->pid ? 100 : 0);
	if (r->pid && r->start)
		note("waiting for the end of %s (%d), which is not recorded any more",
		     r->command[0], r->pid);
	while (r->pid)
		wait_for_signal(r, 100);
	if (ret == -EINTR && r->stopped_by) {
		complain("%s, before the recording began", strsignal(r->stopped_by));
		return 128 + r->stopped_by;
	}
	if (ret || !r->command)
		return !!ret;
	return WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);
}

/* A record that was killed leaves its instance. In a namespace, it may be of another one. */
static void tell_dead_instances(void)
{
	static const char prefix[] = TRACEFS "/instances/stackmap_record_";
	glob_t found = {};
	char *end;
	size_t i;
	int pid;

	glob(TRACEFS "/instances/stackmap_record_*", 0, NULL, &found);
	for (i = 0; i < found.gl_pathc && !in_pid_namespace(); i++) {
		pid = strtol(found.gl_pathv[i] + strlen(prefix), &end, 10);
		if (pid > 0 && !*end && kill(pid, 0) && errno == ESRCH)
			note("a record that was killed has left this, to remove it: rmdir %s",
			     found.gl_pathv[i]);
	}
	globfree(&found);
}

static int run_record(const struct command *cmd, int argc, char **argv)
{
	check_options(argc, argv);
	if (check_instance(TRACEFS))
		return 1;
	if (!find_program("trace-cmd")) {
		complain("trace-cmd is not here; \"save\" works without it");
		return 1;
	}
	if (rec.command && !find_program(rec.command[0])) {
		complain("%s: %s", rec.command[0],
			 strerror(access(rec.command[0], F_OK) ? ENOENT : EACCES));
		return NO_COMMAND;
	}
	tell_dead_instances();
	return record(&rec);
}

const struct command record_command = {
	.name = "record", .run = run_record, .args = "[OPTIONS] [--] [COMMAND [ARGS]]",
	.summary = "events with their stacks, while a command runs",
	.text =
"Record events with their stacks while COMMAND runs, of it and its children, into DIR/trace.dat;\n"
"without a COMMAND, those of all processes, until Ctrl-C. trace-cmd does the recording.\n",
	.groups = { { "Options", record_choices }, { "", common_choices } },
	.examples =
"The exit status is that of COMMAND, 127 if it cannot be started, 1 if recording fails.\n"
"\n"
"Examples: where make waits, and how much memory of the kernel its programs take:\n"
"  stackmap_dump record -- make && stackmap_dump report --weight off-cpu\n"
"  stackmap_dump record -u -e kmem -- make && stackmap_dump report --weight bytes_alloc\n",
	.ends_at_word = true,
};
