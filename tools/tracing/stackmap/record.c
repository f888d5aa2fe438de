// SPDX-License-Identifier: GPL-2.0
/*
 * "record": trace-cmd records from a trace instance that is made for it, to the disk as it comes.
 *
 *	the tool	starts the command, and waits for its end or for a signal
 *	the keeper	a child (keeper.c): makes the instance, runs trace-cmd, saves the map,
 *			removes the instance
 *	trace-cmd	and its recorders
 *
 * The keeper ends the recording when the tool closes a pipe, so also when the tool is killed.
 */
#include <getopt.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record.h"
#include "util.h"

static const char record_help[] =
"Usage: stackmap_dump record [OPTIONS] [--] [COMMAND [ARGS]]\n"
"\n"
"Record events with their stacks while COMMAND runs, of it and its children, into DIR/trace.dat;\n"
"without a COMMAND, those of all processes, until Ctrl-C. trace-cmd does the recording.\n"
"\n"
"  -e, --event EVENT      an event (sched:sched_switch, the default) or a group of events\n"
"                         (sched); repeatable\n"
"  -f, --filter FILTER    only those of the last EVENT that FILTER selects (prev_prio < 100)\n"
"  -p, --pid PID          record this process and its children to come; repeatable\n"
"  -a, --all              record all processes while COMMAND runs\n"
"  -d, --duration SECONDS end after this time; COMMAND gets a SIGTERM\n"
"  -o, --output DIR       save into DIR (stackmap.data); an earlier recording becomes DIR.old\n"
"  -u, --user[=HOW]       record the stacks of user space, too: \"delay\", once for each entry\n"
"                         into the kernel, on the way back, or \"now\", at each event; without\n"
"                         HOW, delay if the kernel can do that\n"
"  -b, --buffer-size KB   size of the ring buffer of each CPU\n"
"      --realtime PRIO    run the recorders with this real-time priority (1 to 99)\n"
"  -i, --instance NAME    name of the trace instance (stackmap_record_PID)\n"
"  -q, --quiet            print only errors\n"
"  -h, --help             print this text\n"
"\n"
"The exit status is that of COMMAND, 127 if it cannot be started, 1 if recording fails.\n";

#define NO_COMMAND	127

/* Options. */

static void add_event(struct recording *r, const char *event, size_t len)
{
	if (!len || *event == '!')
		usage("not an event", event);
	r->events = grow(r->events, &r->room_events, r->nr_events + 1, sizeof(*r->events));
	r->events[r->nr_events++] = (struct wanted) { format("%.*s", (int)len, event), NULL };
}

/* @events: one, or several with commas between them. */
static void add_events(struct recording *r, const char *events)
{
	const char *end;

	if (strpbrk(events, " \t\n"))
		usage("not an event", events);
	r->last = r->nr_events;
	for (;; events = end + 1) {
		end = strchrnul(events, ',');
		add_event(r, events, end - events);
		if (!*end)
			return;
	}
}

static void set_filters(struct recording *r, const char *filter)
{
	size_t i;

	if (!r->nr_events)
		usage("--filter comes after its --event", NULL);
	for (i = r->last; i < r->nr_events; i++)
		r->events[i].filter = filter;
}

static void add_pid(struct recording *r, u32 pid)
{
	r->pids = grow(r->pids, &r->room_pids, r->nr_pids + 1, sizeof(*r->pids));
	r->pids[r->nr_pids++] = pid;
}

static void set_user(struct recording *r, const char *how)
{
	if (!how)
		r->user = USER_ANY;
	else if (!strcmp(how, "delay"))
		r->user = USER_DELAY;
	else if (!strcmp(how, "now"))
		r->user = USER_NOW;
	else
		usage("--user knows delay and now, not", how);
}

static const char *positive(const char *arg, u64 max)
{
	if (!parse_number(arg, max, 10))
		usage("not a valid number", arg);
	return arg;
}

enum { OPT_REALTIME = 0x101 };

static void set_record_option(int opt, struct recording *r)
{
	switch (opt) {
	case 'e':
		add_events(r, optarg);
		break;
	case 'f':
		set_filters(r, optarg);
		break;
	case 'p':
		add_pid(r, strtoul(positive(optarg, INT32_MAX), NULL, 10));
		break;
	case 'a':
		r->all = true;
		break;
	case 'd':
		r->duration = strtoul(positive(optarg, INT32_MAX), NULL, 10);
		break;
	case 'o':
		free(r->output);
		r->output = output_name(optarg);
		break;
	case 'u':
		set_user(r, optarg);
		break;
	case 'b':
		r->buffer_kb = positive(optarg, INT32_MAX);
		break;
	case OPT_REALTIME:
		r->realtime = positive(optarg, 99);
		break;
	case 'i':
		free(r->instance);
		r->instance = copy_string(instance_name(optarg));
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
		{ "filter",	 required_argument, NULL, 'f' },
		{ "pid",	 required_argument, NULL, 'p' },
		{ "all",	 no_argument,	    NULL, 'a' },
		{ "duration",	 required_argument, NULL, 'd' },
		{ "output",	 required_argument, NULL, 'o' },
		{ "user",	 optional_argument, NULL, 'u' },
		{ "buffer-size", required_argument, NULL, 'b' },
		{ "realtime",	 required_argument, NULL, OPT_REALTIME },
		{ "instance",	 required_argument, NULL, 'i' },
		{ "quiet",	 no_argument,	    NULL, 'q' },
		{ "help",	 no_argument,	    NULL, 'h' },
		{}
	};
	int opt;

	optind = 2;
	/* "+": the first word that is no option begins the command. */
	while ((opt = getopt_long(argc, argv, "+e:f:p:ad:o:u::b:i:qh", options, NULL)) != -1)
		set_record_option(opt, r);
	if (optind < argc)
		r->command = argv + optind;
	if (r->all && r->nr_pids)
		usage("--all records every process, --pid one", NULL);
	r->all |= !r->command && !r->nr_pids;
	if (!r->nr_events)
		add_events(r, "sched:sched_switch");
	if (!r->output)
		r->output = output_name("stackmap.data");
	if (!r->instance)
		r->instance = format("stackmap_record_%d", getpid());
	r->dir = find_instance(r->instance);
}

void free_recording(struct recording *r)
{
	size_t i;

	for (i = 0; i < r->nr_events; i++)
		free(r->events[i].event);
	free(r->events);
	free(r->pids);
	free(r->output);
	free(r->instance);
	free(r->dir);
	watch_free(&r->watch);
}

/* The tool. */

/* SIGTTOU: the keeper may write to the terminal. For SIGPIPE and SIGXFSZ, write() has an error. */
static void block_signals(struct recording *r)
{
	static const int signals[] = {
		SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGXCPU, SIGCHLD,
	};
	struct sigaction hup;
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	/* As nohup has it. */
	if (!sigaction(SIGHUP, NULL, &hup) && hup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	signal(SIGCHLD, SIG_DFL);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGXFSZ);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, &r->old_signals);
}

static int make_pipe(int fds[2])
{
	if (!pipe2(fds, O_CLOEXEC))
		return 0;
	complain("pipe: %s", strerror(errno));
	return -errno;
}

/* Waits for a byte before it starts. If the tool ends without it, there is no command. */
static _Noreturn void be_command(const struct recording *r, int go)
{
	char c;

	if (read(go, &c, 1) != 1)
		_exit(NO_COMMAND);
	sigprocmask(SIG_SETMASK, &r->old_signals, NULL);
	execvp(r->command[0], r->command);
	complain("%s: %s", r->command[0], strerror(errno));
	_exit(NO_COMMAND);
}

static int fork_command(struct recording *r)
{
	int go[2];

	if (make_pipe(go))
		return -EIO;
	r->pid = fork();
	if (!r->pid) {
		close(go[1]);
		be_command(r, go[0]);
	}
	close(go[0]);
	r->go = go[1];
	if (r->pid > 0)
		return 0;
	complain("fork: %s", strerror(errno));
	return -EIO;
}

static int fork_keeper(struct recording *r)
{
	int ready[2], stop[2];

	if (make_pipe(ready) || make_pipe(stop))
		return -EIO;
	r->keeper = fork();
	if (!r->keeper) {
		close(r->go);
		close(ready[0]);
		close(stop[1]);
		exit(keep(r, ready[1], stop[0]));
	}
	close(ready[1]);
	close(stop[0]);
	r->ready = ready[0];
	r->stop = stop[1];
	if (r->keeper > 0)
		return 0;
	complain("fork: %s", strerror(errno));
	return -EIO;
}

static void close_pipe(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Also for a command that has not started: it ends. */
static void stop_recording(struct recording *r)
{
	close_pipe(&r->stop);
	close_pipe(&r->go);
}

static void start(struct recording *r)
{
	char c;

	r->started = read(r->ready, &c, 1) == 1 && (!r->command || write(r->go, "", 1) == 1);
	close_pipe(&r->ready);
	close_pipe(&r->go);
	r->start = now_ms();
}

static void reap(struct recording *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == r->pid) {
			r->pid = 0;
			r->status = status;
			stop_recording(r);
		} else if (pid == r->keeper) {
			r->keeper = 0;
			r->keeper_status = status;
			close_pipe(&r->go);
		}
	}
}

/* A signal of the terminal goes to the command as well, and the recording ends with the command. */
static void take_signal(struct recording *r)
{
	struct signalfd_siginfo info;

	if (read(r->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		reap(r);
	else if (!r->command || !r->started)
		stop_recording(r);
	else if (r->pid && info.ssi_code != SI_KERNEL)
		kill(r->pid, info.ssi_signo);
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

/* A line each second, later every ten seconds. */
static void show_progress(struct recording *r, u64 s)
{
	struct instance_stat stat;

	if (quiet || !isatty(STDERR_FILENO) || s == r->shown || (s > 10 && s % 10))
		return;
	r->shown = s;
	read_instance_stat(r->dir, &stat);
	note("%llu s, %llu stacks, %llu different ones, %llu buffer entries lost", s, stat.stacks,
	     stat.different, stat.lost);
}

static void tick(struct recording *r)
{
	u64 ms = now_ms() - r->start;

	if (!r->started || r->stop < 0)
		return;
	if (r->duration && ms >= r->duration * 1000) {
		if (r->pid)
			kill(r->pid, SIGTERM);
		r->duration = 0;
		if (!r->command)
			stop_recording(r);
	} else if (processes_ended(r)) {
		stop_recording(r);
	} else {
		show_progress(r, ms / 1000);
	}
}

static void wait_for_end(struct recording *r)
{
	struct pollfd fds[] = {
		{ .fd = r->signals, .events = POLLIN },
		{ .fd = r->ready, .events = POLLIN },
	};

	while (r->keeper || r->pid) {
		fds[1].fd = r->ready;
		poll(fds, ARRAY_SIZE(fds), 100);
		if (fds[0].revents)
			take_signal(r);
		if (r->ready >= 0 && fds[1].revents)
			start(r);
		tick(r);
	}
}

static int exit_status(const struct recording *r)
{
	if (!WIFEXITED(r->keeper_status) || WEXITSTATUS(r->keeper_status))
		return 1;
	if (!r->command)
		return 0;
	return WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);
}

static int check_start(const struct recording *r)
{
	if (output_check(r->output) || check_instance(NULL))
		return 1;
	if (!find_program("trace-cmd")) {
		complain("trace-cmd is not here; \"save\" works without it");
		return 1;
	}
	if (r->command && !find_program(r->command[0])) {
		complain("%s: %s", r->command[0], strerror(errno));
		return NO_COMMAND;
	}
	return 0;
}

int record(int argc, char **argv)
{
	struct recording r = { .go = -1, .stop = -1, .ready = -1 };
	int ret;

	parse_record_options(argc, argv, &r);
	ret = check_start(&r);
	if (!ret) {
		block_signals(&r);
		ret = r.command ? fork_command(&r) : 0;
		ret = ret || fork_keeper(&r) ? 1 : 0;
	}
	if (!ret) {
		wait_for_end(&r);
		ret = exit_status(&r);
		/* The keeper was killed. */
		if (WIFSIGNALED(r.keeper_status) && !access(r.dir, F_OK))
			remove_instance(r.dir);
	}
	free_recording(&r);
	return ret;
}
