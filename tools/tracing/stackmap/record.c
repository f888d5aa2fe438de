// SPDX-License-Identifier: GPL-2.0
/*
 * "record": lets a trace instance of its own record a command, and saves it. In the end, and when
 * something fails, the instance is removed. Files are written beside the output directory, which
 * they replace when all are there.
 */
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record.h"
#include "user.h"
#include "util.h"

static const char record_help[] =
"Usage: stackmap_dump record [OPTIONS] [--] [COMMAND [ARGS]]\n"
"\n"
"Record the kernel stacks of events while COMMAND runs, of it and its children; without a\n"
"COMMAND, those of all processes until Ctrl-C. Save them, for stackmap_dump DIR.\n"
"\n"
"  -e, --event EVENT      an event (sched:sched_switch, the default) or a group of events\n"
"                         (sched); repeatable\n"
"  -a, --all              record all processes while COMMAND runs\n"
"  -o, --output DIR       save into DIR (stackmap.data); an earlier recording becomes DIR.old\n"
"  -u, --user[=delay]     record the stacks of user space, too; with \"delay\", once for each entry\n"
"                         into the kernel, on the way back\n"
"  -b, --buffer-size KB   size of the ring buffer of each CPU\n"
"  -i, --instance NAME    name of the trace instance (stackmap_record_PID)\n"
"  -q, --quiet            print only errors\n"
"  -h, --help             print this text\n"
"\n"
"The exit status is that of COMMAND, 127 if it cannot be started, 1 if recording fails.\n";

static const char default_event[] = "sched:sched_switch";

/* All that a recording can consist of. Only these files are ever removed. */
static const char * const saved_files[] = {
	"trace", "stack_map_bin", "stack_map_stat", "kallsyms", "modules", "build_id",
	"user_maps",
};

struct recording {
	const char	*instance;
	const char	**events;
	size_t		nr_events;
	const char	*buffer_kb;
	bool		all;
	const char	*user_option;	/* of the instance; NULL: no stacks of user space */
	struct watch	watch;
	char		**command;	/* NULL: until a signal comes */
	char		*output;
	char		*old;		/* the earlier recording */
	char		*new;		/* the files, until all are there */
	char		*dir;		/* of the instance */
	sigset_t	signals;	/* that the tool waits for */
	sigset_t	old_signals;	/* blocked for the command */
	pid_t		pid;
	int		go;		/* pipe to the process that is going to be the command */
	int		failure;	/* pipe from it */
	int		status;		/* of the command */
	time_t		start;
	unsigned int	shown;		/* seconds from the start to the last progress */
	bool		complete;	/* all files are there */
};

#define NO_COMMAND	127

/* @events: one, or several with commas between them. */
static bool are_events(const char *events)
{
	const char *end;

	for (;; events = end + 1) {
		end = strchrnul(events, ',');
		if (end == events || *events == '!')
			return false;
		if (!*end)
			return true;
	}
}

static void add_event(struct recording *r, const char *event)
{
	size_t size = (r->nr_events + 1) * sizeof(*r->events);

	if (strpbrk(event, " \t\n") || !are_events(event))
		usage("not an event", event);
	r->events = check_mem(realloc(r->events, size));
	r->events[r->nr_events++] = event;
}

/* rename() refuses ".", ".." and "/". */
static bool can_be_renamed(const char *dir, size_t len)
{
	const char *slash = memrchr(dir, '/', len), *name = slash ? slash + 1 : dir;

	len -= name - dir;
	return len > 2 || (len && strncmp(name, "..", len));
}

static void set_output(struct recording *r, const char *dir)
{
	size_t len = strlen(dir);

	while (len > 1 && dir[len - 1] == '/')
		len--;
	if (!len || !strcmp(dir, "-"))
		usage("not a directory", dir);
	if (!can_be_renamed(dir, len))
		usage("not the name of a directory that can be renamed", dir);
	free(r->output);
	r->output = format("%.*s", (int)len, dir);
}

static void set_user(struct recording *r, const char *how)
{
	if (how && strcmp(how, "delay"))
		usage("--user knows delay, not", how);
	r->user_option = how ? "options/userstacktrace_delay" : "options/userstacktrace";
}

static void set_record_option(int opt, struct recording *r)
{
	switch (opt) {
	case 'e':
		add_event(r, optarg);
		break;
	case 'a':
		r->all = true;
		break;
	case 'o':
		set_output(r, optarg);
		break;
	case 'u':
		set_user(r, optarg);
		break;
	case 'b':
		if (!parse_number(optarg, INT32_MAX, 10))
			usage("not a valid number", optarg);
		r->buffer_kb = optarg;
		break;
	case 'i':
		r->instance = instance_name(optarg);
		break;
	case 'q':
		quiet = true;
		break;
	case 'h':
		print_and_exit(record_help);
	default:
		/* getopt_long() has printed the error. */
		exit(EXIT_USAGE);
	}
}

static void parse_record_options(int argc, char **argv, struct recording *r)
{
	static const struct option options[] = {
		{ "event",	 required_argument, NULL, 'e' },
		{ "all",	 no_argument,	    NULL, 'a' },
		{ "user",	 optional_argument, NULL, 'u' },
		{ "output",	 required_argument, NULL, 'o' },
		{ "buffer-size", required_argument, NULL, 'b' },
		{ "instance",	 required_argument, NULL, 'i' },
		{ "quiet",	 no_argument,	    NULL, 'q' },
		{ "help",	 no_argument,	    NULL, 'h' },
		{}
	};
	int opt;

	optind = 2;
	/* "+": the first word that is no option begins the command. */
	while ((opt = getopt_long(argc, argv, "+e:auo:b:i:qh", options, NULL)) != -1)
		set_record_option(opt, r);
	if (optind < argc)
		r->command = argv + optind;
	if (!r->output)
		set_output(r, "stackmap.data");
	r->old = format("%s.old", r->output);
	r->new = format("%s.%d", r->output, getpid());
}

static void free_recording(struct recording *r)
{
	free(r->events);
	free(r->output);
	free(r->old);
	free(r->new);
	free(r->dir);
	watch_free(&r->watch);
}

/* The output directory. */

static bool exists(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static bool has_map(const char *dir)
{
	char *map = format("%s/stack_map_bin", dir);
	bool ret = exists(map);

	free(map);
	return ret;
}

static bool is_saved_file(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(saved_files); i++) {
		if (!strcmp(name, saved_files[i]))
			return true;
	}
	return false;
}

enum content {
	EMPTY,
	RECORDING,
	RECORDING_AND_OTHER,
	OTHER,
};

static enum content look_into(DIR *dir, bool map)
{
	enum content content = EMPTY;
	struct dirent *e;

	while ((e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (!map)
			return OTHER;
		if (!is_saved_file(e->d_name))
			return RECORDING_AND_OTHER;
		content = RECORDING;
	}
	return content;
}

static enum content content_of(const char *path)
{
	enum content content = OTHER;
	struct stat st;
	DIR *dir;

	dir = !lstat(path, &st) && S_ISDIR(st.st_mode) ? opendir(path) : NULL;
	if (dir) {
		content = look_into(dir, has_map(path));
		closedir(dir);
	}
	return content;
}

static int discard(const char *dir)
{
	char *path;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(saved_files); i++) {
		path = format("%s/%s", dir, saved_files[i]);
		unlink(path);
		free(path);
	}
	if (!rmdir(dir))
		return 0;
	complain("%s: %s", dir, strerror(errno));
	return -EIO;
}

static int check_output(const struct recording *r)
{
	enum content content = exists(r->output) ? content_of(r->output) : EMPTY;

	if (content == OTHER) {
		complain("%s: exists and is no recording", r->output);
		return -EEXIST;
	}
	if (content == EMPTY || !exists(r->old) || content_of(r->old) <= RECORDING)
		return 0;
	complain("%s: has other files than a recording, please remove it", r->old);
	return -EEXIST;
}

/* Only for the user, because addresses of the kernel are in it. */
static int prepare_output(const struct recording *r)
{
	int ret = check_output(r);

	if (ret || !mkdir(r->new, 0700))
		return ret;
	complain("%s: %s", r->new, strerror(errno));
	return -EIO;
}

static int replace(const char *from, const char *to)
{
	if (!rename(from, to))
		return 0;
	complain("%s: cannot become %s: %s", from, to, strerror(errno));
	return -EIO;
}

/* rename() replaces an empty directory. */
static int commit_output(const struct recording *r)
{
	int ret = 0;

	if (exists(r->output) && content_of(r->output) != EMPTY) {
		if (exists(r->old))
			ret = discard(r->old);
		if (!ret)
			ret = replace(r->output, r->old);
	}
	return ret ? ret : replace(r->new, r->output);
}

/* The trace instance. */

static const char *hint(int err)
{
	switch (err) {
	case -EACCES:
		return " (only root may trace)";
	case -EPERM:
		return " (the kernel may be locked down)";
	default:
		return "";
	}
}

static int trace_error(const char *dir, const char *file, int err)
{
	complain("%s/%s: %s%s", dir, file, strerror(-err), hint(err));
	return err;
}

/* Files of tracefs want all by one write(2). */
static int write_file(const struct recording *r, const char *file, const char *text)
{
	char *path = format("%s/%s", r->dir, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		ret = -errno;
	if (fd >= 0)
		close(fd);
	free(path);
	return ret;
}

static int set(const struct recording *r, const char *file, const char *text)
{
	int ret = write_file(r, file, text);

	return ret ? trace_error(r->dir, file, ret) : 0;
}

/* Returns 0 or the error of opening the file. */
static int try_open(const char *dir, const char *file)
{
	char *path = format("%s/%s", dir, file);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int ret = fd < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	free(path);
	return ret;
}

static int check_kernel(const char *tracefs)
{
	static const char file[] = "tracing_on", option[] = "options/stackmap";
	int ret;

	ret = try_open(tracefs, file);
	if (ret == -ENOENT)
		complain("%s: no tracefs is mounted here", tracefs);
	else if (ret)
		trace_error(tracefs, file, ret);
	if (ret)
		return ret;

	ret = try_open(tracefs, option);
	if (ret)
		complain("this kernel has no stack map (%s/%s: %s)", tracefs, option,
			 strerror(-ret));
	return ret;
}

static char *make_dir_name(const struct recording *r, const char *tracefs)
{
	if (r->instance)
		return format("%s/instances/%s", tracefs, r->instance);
	return format("%s/instances/stackmap_record_%d", tracefs, getpid());
}

static int make_instance(struct recording *r)
{
	char *tracefs = find_tracefs();
	int ret;

	ret = check_kernel(tracefs);
	r->dir = make_dir_name(r, tracefs);
	free(tracefs);
	if (!ret && mkdir(r->dir, 0700)) {
		ret = -errno;
		complain("%s: %s%s", r->dir, strerror(-ret), hint(ret));
	}
	return ret;
}

static int remove_instance(const struct recording *r)
{
	if (!rmdir(r->dir))
		return 0;
	complain("%s: cannot be removed: %s", r->dir, strerror(errno));
	return -EIO;
}

static int enable_event(const struct recording *r, const char *event)
{
	int ret = write_file(r, "set_event", event);

	if (ret == -EINVAL)
		complain("there is no event %s (see available_events)", event);
	else if (ret)
		trace_error(r->dir, "set_event", ret);
	return ret;
}

static int enable_events(const struct recording *r, const char *events)
{
	char *copy = copy_string(events), *next = copy, *event;
	int ret = 0;

	while (!ret && (event = strsep(&next, ",")))
		ret = enable_event(r, event);
	free(copy);
	return ret;
}

static int set_user_option(const struct recording *r)
{
	int ret = write_file(r, r->user_option, "1");

	if (ret == -ENOENT)
		complain("this kernel has no %s", r->user_option);
	else if (ret)
		trace_error(r->dir, r->user_option, ret);
	return ret;
}

/* An instance inherits these options from the top level. A kernel may lack some. */
static int set_text_options(const struct recording *r)
{
	static const char * const options[] = {
		"noraw", "nobin", "nohex", "nofields", "nolatency-format", "context-info",
		"irq-info",
	};
	int ret = 0;
	size_t i;

	for (i = 0; !ret && i < ARRAY_SIZE(options); i++) {
		ret = write_file(r, "trace_options", options[i]);
		if (ret == -EINVAL)
			ret = 0;
	}
	return ret ? trace_error(r->dir, "trace_options", ret) : 0;
}

static int set_up(const struct recording *r)
{
	size_t i;
	int ret;

	ret = set(r, "tracing_on", "0");
	if (!ret)
		ret = set_text_options(r);
	if (!ret && r->buffer_kb)
		ret = set(r, "buffer_size_kb", r->buffer_kb);
	if (!ret)
		ret = set(r, "options/stackmap", "1");
	if (!ret)
		ret = set(r, "options/stacktrace", "1");
	if (!ret && r->user_option)
		ret = set_user_option(r);
	if (!ret && !r->nr_events)
		ret = enable_events(r, default_event);
	for (i = 0; !ret && i < r->nr_events; i++)
		ret = enable_events(r, r->events[i]);
	return ret;
}

struct record_stat {
	u64	successes;
	u64	drops;
	u64	entries;
	u64	recycled;
};

static void read_count(const char *line, const char *key, u64 *n)
{
	if (!strncmp(line, key, strlen(key)))
		*n = strtoull(line + strlen(key), NULL, 10);
}

static void read_stat(const char *dir, struct record_stat *s)
{
	char *path = format("%s/stack_map_stat", dir), line[128];
	FILE *f = fopen(path, "re");

	*s = (struct record_stat) {};
	while (f && fgets(line, sizeof(line), f)) {
		read_count(line, "successes: ", &s->successes);
		read_count(line, "drops: ", &s->drops);
		read_count(line, "entries: ", &s->entries);
		read_count(line, "recycled: ", &s->recycled);
	}
	if (f)
		fclose(f);
	free(path);
}

/* The command. */

/*
 * Signals are waited for, not handled. From the terminal, SIGINT goes to the command as well, and
 * the recording ends with the command.
 */
static void block_signals(struct recording *r)
{
	static const int signals[] = {
		SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGXCPU,
	};
	struct sigaction hup;
	sigset_t blocked;
	size_t i;

	sigemptyset(&r->signals);
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&r->signals, signals[i]);
	/* As nohup has it. */
	if (!sigaction(SIGHUP, NULL, &hup) && hup.sa_handler != SIG_IGN)
		sigaddset(&r->signals, SIGHUP);
	signal(SIGCHLD, SIG_DFL);
	sigaddset(&r->signals, SIGCHLD);

	/* For these, write() has an error. */
	blocked = r->signals;
	sigaddset(&blocked, SIGPIPE);
	sigaddset(&blocked, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &blocked, &r->old_signals);
}

/* Waits for a byte before it starts. If the tool ends without it, there is no command. */
static _Noreturn void be_command(const struct recording *r, int go, int failure)
{
	int err;
	char c;

	if (read(go, &c, 1) != 1)
		_exit(NO_COMMAND);
	sigprocmask(SIG_SETMASK, &r->old_signals, NULL);
	execvp(r->command[0], r->command);
	err = errno;
	_exit(write(failure, &err, sizeof(err)) < 0 ? 1 : NO_COMMAND);
}

static int fork_command(struct recording *r)
{
	int go[2], failure[2], ret = 0;

	if (pipe2(go, O_CLOEXEC) || pipe2(failure, O_CLOEXEC)) {
		ret = -errno;
		complain("pipe: %s", strerror(errno));
		return ret;
	}
	r->pid = fork();
	if (!r->pid) {
		close(go[1]);
		close(failure[0]);
		be_command(r, go[0], failure[1]);
	}
	if (r->pid < 0) {
		ret = -errno;
		complain("fork: %s", strerror(errno));
	}
	close(go[0]);
	close(failure[1]);
	r->go = go[1];
	r->failure = failure[0];
	return ret;
}

#define INITIAL_PID_NS	0xEFFFFFFCU	/* the inode of its file */

static int follow_command(const struct recording *r)
{
	struct stat st;
	char pid[16];
	int ret;

	if (!stat("/proc/self/ns/pid", &st) && st.st_ino != INITIAL_PID_NS) {
		complain("in a pid namespace, only --all processes can be recorded");
		return -EINVAL;
	}
	snprintf(pid, sizeof(pid), "%d", r->pid);
	ret = set(r, "set_event_pid", pid);
	return ret ? ret : set(r, "options/event-fork", "1");
}

static int start_command(const struct recording *r)
{
	int err;

	if (write(r->go, "", 1) != 1) {
		complain("%s: %s", r->command[0], strerror(errno));
		return -EIO;
	}
	/* A successful execvp() closes the pipe. */
	if (read(r->failure, &err, sizeof(err)) != sizeof(err))
		return 0;
	complain("%s: %s", r->command[0], strerror(err));
	return -ECHILD;
}

/* A line each second, later every ten seconds. */
static void show_progress(struct recording *r)
{
	unsigned int s = time(NULL) - r->start;
	struct record_stat stat;

	if (quiet || !isatty(STDERR_FILENO) || s == r->shown || (s > 10 && s % 10))
		return;
	r->shown = s;
	read_stat(r->dir, &stat);
	note("%u s, %llu events, %llu different stacks", s, stat.successes + stat.drops,
	     stat.entries);
}

static bool command_ended(struct recording *r)
{
	return waitpid(r->pid, &r->status, WNOHANG) == r->pid;
}

/* The events of mappings have little room. */
static void wait_for_end(struct recording *r)
{
	const struct timespec tick = {
		.tv_sec = !r->user_option, .tv_nsec = r->user_option ? 100000000 : 0,
	};
	siginfo_t info;
	int sig;

	r->start = time(NULL);
	for (;;) {
		sig = sigtimedwait(&r->signals, &info, &tick);
		watch_drain(&r->watch);
		if (sig < 0)
			show_progress(r);
		else if (sig == SIGCHLD && r->command && command_ended(r))
			return;
		else if (sig != SIGCHLD && !r->command)
			return;
		else if (sig != SIGCHLD && info.si_code != SI_KERNEL)
			kill(r->pid, sig);
	}
}

static int run_recorded(struct recording *r)
{
	int ret;

	ret = set(r, "tracing_on", "1");
	if (!ret && r->command)
		ret = start_command(r);
	if (!ret)
		wait_for_end(r);
	if (ret)
		write_file(r, "tracing_on", "0");
	else
		ret = set(r, "tracing_on", "0");
	return ret;
}

static int run_command(struct recording *r)
{
	int ret;

	ret = fork_command(r);
	if (ret)
		return ret;
	if (!r->all)
		ret = follow_command(r);
	if (!ret)
		ret = run_recorded(r);
	/* If it did not start, this ends it. */
	close(r->go);
	close(r->failure);
	if (ret)
		waitpid(r->pid, NULL, 0);
	return ret;
}

static void tell_result(const struct recording *r, size_t nr_stacks)
{
	struct record_stat s;

	read_stat(r->output, &s);
	note("%s: recorded %llu events, saved %zu stacks; see stackmap_dump %s", r->output,
	     s.successes + s.drops, nr_stacks, r->output);
	if (s.recycled)
		note("%llu more stacks were recycled (ftrace_stackmap.recycle=0 keeps all)",
		     s.recycled);
}

static int save_recording(struct recording *r)
{
	size_t nr_stacks;
	int ret;

	ret = save_files(r->dir, r->new, r->watch.text, &nr_stacks);
	if (ret)
		return ret;
	r->complete = true;
	ret = commit_output(r);
	if (!ret)
		tell_result(r, nr_stacks);
	return ret;
}

static int watch_and_run(struct recording *r)
{
	int ret;

	if (r->user_option)
		watch_start(&r->watch);
	ret = r->command ? run_command(r) : run_recorded(r);
	if (r->user_option)
		watch_stop(&r->watch);
	return ret;
}

static int record_in_instance(struct recording *r)
{
	int ret;

	ret = make_instance(r);
	if (ret)
		return ret;
	ret = set_up(r);
	if (!ret)
		ret = watch_and_run(r);
	if (!ret)
		ret = save_recording(r);
	if (remove_instance(r) && !ret)
		ret = -EIO;
	return ret;
}

static int exit_status(const struct recording *r, int ret)
{
	if (ret)
		return ret == -ECHILD ? NO_COMMAND : 1;
	if (!r->command)
		return 0;
	return WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);
}

int record(int argc, char **argv)
{
	struct recording r = {};
	int ret;

	parse_record_options(argc, argv, &r);
	block_signals(&r);
	ret = prepare_output(&r);
	if (!ret) {
		ret = record_in_instance(&r);
		if (!r.complete)
			discard(r.new);
	}
	ret = exit_status(&r, ret);
	free_recording(&r);
	return ret;
}
