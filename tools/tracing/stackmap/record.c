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
#include <sys/wait.h>
#include <unistd.h>

#include "options.h"
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

static struct recording rec;
static const char *output = "stackmap.data";

/* An event, or several with commas between them. */
static void add_events(void *to, char *arg)
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

static void set_filters(void *to, char *arg)
{
	size_t i;

	if (!rec.nr_events)
		usage("--filter comes after its --event", NULL);
	for (i = rec.last; i < rec.nr_events; i++)
		rec.events[i].filter = arg;
}

static void add_pid(void *to, char *arg)
{
	u64 pid;

	set_positive(&pid, arg);
	*APPEND(rec.pids, rec.nr_pids) = pid;
}

static void set_user(void *to, char *arg)
{
	if (!arg)
		rec.user = USER_ANY;
	else if (!strcmp(arg, "delay"))
		rec.user = USER_DELAY;
	else if (!strcmp(arg, "now"))
		rec.user = USER_NOW;
	else
		usage("--user knows delay and now, not", arg);
}

static const struct choice choices[] = {
	{ "event", 'e', ARG, add_events, NULL },
	{ "filter", 'f', ARG, set_filters, NULL },
	{ "pid", 'p', ARG, add_pid, NULL },
	{ "all", 'a', NO_ARG, set_flag, &rec.all },
	{ "duration", 'd', ARG, set_positive, &rec.duration },
	{ "output", 'o', ARG, set_text, &output },
	{ "user", 'u', MAY_ARG, set_user, NULL },
	{ "buffer-size", 'b', ARG, set_positive, &rec.buffer_kb },
	{ "realtime", FIRST_LONG, ARG, set_positive, &rec.realtime },
	{ "instance", 'i', ARG, set_instance, &rec.instance },
	{ "quiet", 'q', NO_ARG, set_flag, &quiet },
	{ "help", 'h', NO_ARG, print_help, (char *)record_help },
};

static void parse_record_options(int argc, char **argv)
{
	static char name[32], every_switch[] = "sched:sched_switch";

	optind = 2;
	parse_choices(argc, argv, choices, ARRAY_SIZE(choices), true);
	if (optind < argc)
		rec.command = argv + optind;
	if (rec.all && rec.nr_pids)
		usage("--all records every process, --pid one", NULL);
	if (rec.realtime > 99)
		usage("--realtime is a priority from 1 to 99", NULL);
	rec.all |= !rec.command && !rec.nr_pids;
	if (!rec.nr_events)
		add_events(NULL, every_switch);
	snprintf(name, sizeof(name), "stackmap_record_%d", getpid());
	if (!rec.instance)
		rec.instance = name;
	rec.output = output_name(output);
	rec.dir = find_instance(rec.instance);
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
	int ret;

	parse_record_options(argc, argv);
	ret = check_start(&rec);
	if (!ret)
		ret = start_keeper(&rec);
	free(rec.events);
	free(rec.pids);
	free(rec.output);
	free(rec.dir);
	return ret;
}
