// SPDX-License-Identifier: GPL-2.0
/*
 * "record": trace-cmd records from a trace instance that is made for it, to the disk as it comes.
 *
 *	the tool	reads the options, passes signals on, and waits for
 *	the keeper	a child (keeper.c): makes the instance, runs trace-cmd and the command,
 *			saves the map, removes the instance
 *	trace-cmd	and its recorders
 *
 * The keeper ends the recording when the command has ended, or when the tool has been killed.
 */
#include <getopt.h>
#include <sys/wait.h>
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

/* @list: an event, or several with commas between them. */
static void add_events(struct recording *r, char *list)
{
	char *event;

	if (strpbrk(list, " \t\n"))
		usage("not an event", list);
	r->last = r->nr_events;
	while ((event = strsep(&list, ","))) {
		if (!*event || *event == '!')
			usage("not an event", event);
		r->events = grow(r->events, &r->room_events, r->nr_events + 1, sizeof(*r->events));
		r->events[r->nr_events++] = (struct wanted) { event, NULL };
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

static enum user_stacks parse_user(const char *how)
{
	if (!how)
		return USER_ANY;
	if (!strcmp(how, "delay"))
		return USER_DELAY;
	if (!strcmp(how, "now"))
		return USER_NOW;
	usage("--user knows delay and now, not", how);
}

/* parse_number() takes 0 as well. */
static u64 positive(u64 max)
{
	u64 n = parse_number(optarg, max, 10);

	if (!n)
		usage("not a valid number", optarg);
	return n;
}

enum { OPT_REALTIME = 0x101 };

static const char *output = "stackmap.data";

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
		r->pids = grow(r->pids, &r->room_pids, r->nr_pids + 1, sizeof(*r->pids));
		r->pids[r->nr_pids++] = positive(INT32_MAX);
		break;
	case 'a':
		r->all = true;
		break;
	case 'd':
		r->duration = 1000 * positive(INT32_MAX);
		break;
	case 'o':
		output = optarg;
		break;
	case 'u':
		r->user = parse_user(optarg);
		break;
	case 'b':
		positive(INT32_MAX);
		r->buffer_kb = optarg;
		break;
	case OPT_REALTIME:
		positive(99);
		r->realtime = optarg;
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
	static char every_switch[] = "sched:sched_switch", name[32];
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
		add_events(r, every_switch);
	snprintf(name, sizeof(name), "stackmap_record_%d", getpid());
	if (!r->instance)
		r->instance = name;
	r->output = output_name(output);
	r->dir = find_instance(r->instance);
}

/* The signals of the terminal reach the command as well, but not the keeper. */
static int wait_for_keeper(const struct recording *r, pid_t keeper)
{
	union sigval of_terminal;
	siginfo_t info;
	int status;

	do {
		if (sigwaitinfo(&r->signals, &info) < 0 || info.si_signo == SIGCHLD)
			continue;
		of_terminal.sival_int = info.si_code == SI_KERNEL;
		sigqueue(keeper, info.si_signo, of_terminal);
	} while (waitpid(keeper, &status, WNOHANG) != keeper);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	/* It was killed. */
	if (!access(r->dir, F_OK))
		remove_instance(r->dir);
	return 1;
}

static int start_keeper(struct recording *r)
{
	pid_t keeper;

	block_signals(&r->signals);
	r->tool = getpid();
	r->group = getpgrp();
	keeper = fork();
	if (!keeper)
		return keep(r);
	if (keeper > 0)
		return wait_for_keeper(r, keeper);
	complain("fork: %s", strerror(errno));
	return 1;
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
	struct recording r = {};
	int ret;

	parse_record_options(argc, argv, &r);
	ret = check_start(&r);
	if (!ret)
		ret = start_keeper(&r);
	free(r.events);
	free(r.pids);
	free(r.output);
	free(r.dir);
	return ret;
}
