// SPDX-License-Identifier: GPL-2.0
/* "top": which stacks of the live map are used most now, by the differences of their counts. */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"
#include "map.h"
#include "record.h"
#include "symbols.h"
#include "util.h"
#include "view.h"

static const char top_help[] =
"Usage: stackmap_dump top [OPTIONS]\n"
"\n"
"Show the stacks that the running kernel used most since the last look at the map, each second:\n"
"how often in a second, how often in all, and the functions, the innermost first. No event is\n"
"read. q or Ctrl-C ends it.\n"
"\n"
"  -i, --instance NAME    the map of this trace instance\n"
"  -d, --delay SECONDS    time between two looks (1)\n"
"  -n, --number N         end after N looks\n"
"  -t, --top N            show N stacks (as many as fit; with -b, all that were used)\n"
"  -b, --batch            print text that is not for a terminal, with all functions\n"
"  -h, --help             print this text\n";

struct use {
	u32	id;
	bool	user;
	u64	ref;		/* in all */
	u64	more;		/* since the last look */
	size_t	index;		/* in map->stacks */
};

struct top {
	const char	*instance;
	u64		delay;		/* in milliseconds */
	u64		number;		/* of looks; 0: no end */
	u64		limit;		/* of rows; 0: all */
	bool		batch;
	struct map	map;
	struct config	cfg;
	struct use	*uses;		/* by id */
	size_t		nr;
	u64		time;		/* of the look, in milliseconds */
	struct termios	terminal;	/* as it was */
};

static int ended;	/* by a signal */

static void end(int sig)
{
	__atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
}

static bool is_ended(void)
{
	return __atomic_load_n(&ended, __ATOMIC_RELAXED);
}

static u64 milliseconds(const char *arg)
{
	char *rest;
	double s = strtod(arg, &rest);

	if (rest == arg || *rest || !(s >= 0.01 && s <= 1e6))
		usage("not a number of seconds", arg);
	return s * 1000;
}

static void parse_top_options(int argc, char **argv, struct top *t)
{
	static const struct option options[] = {
		{ "instance",	required_argument, NULL, 'i' },
		{ "delay",	required_argument, NULL, 'd' },
		{ "number",	required_argument, NULL, 'n' },
		{ "top",	required_argument, NULL, 't' },
		{ "batch",	no_argument,	   NULL, 'b' },
		{ "help",	no_argument,	   NULL, 'h' },
		{}
	};
	int opt;

	optind = 2;
	while ((opt = getopt_long(argc, argv, "i:d:n:t:bh", options, NULL)) != -1) {
		if (opt == 'i')
			t->instance = instance_name(optarg);
		else if (opt == 'd')
			t->delay = milliseconds(optarg);
		else if (opt == 'n')
			t->number = parse_number(optarg, UINT32_MAX, 10);
		else if (opt == 't')
			t->limit = parse_number(optarg, UINT32_MAX, 10);
		else if (opt == 'b')
			t->batch = true;
		else if (opt == 'h')
			print_and_exit(top_help);
		else
			exit(EXIT_USAGE);
	}
	if (optind < argc)
		usage("top has no arguments", argv[optind]);
	t->batch |= !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
}

static int compare_ids(const void *a, const void *b)
{
	const struct use *ua = a, *ub = b;
	int ret = compare_u64(ua->id, ub->id);

	return ret ? ret : ua->user - ub->user;
}

static int compare_more(const void *a, const void *b)
{
	const struct use *ua = a, *ub = b;
	int ret = compare_u64(ub->more, ua->more);

	return ret ? ret : compare_u64(ua->id, ub->id);
}

/* A stack is new if its id was not there before, or if it counts less: there was a reset. */
static void take_uses(struct top *t)
{
	struct use *old = t->uses, *u, *before;
	size_t i, nr_old = t->nr;

	t->nr = t->map.nr_stacks;
	t->uses = check_mem(calloc(t->nr + 1, sizeof(*t->uses)));
	for (i = 0; i < t->nr; i++) {
		const struct stack *s = &t->map.stacks[i];

		u = &t->uses[i];
		*u = (struct use) { s->id, is_user_stack(s), s->ref, s->ref, i };
		before = old ? bsearch(u, old, nr_old, sizeof(*old), compare_ids) : NULL;
		if (before && before->ref <= u->ref)
			u->more -= before->ref;
	}
	sort_array(t->uses, t->nr, sizeof(*t->uses), compare_ids);
	free(old);
}

/* @width: of the line; 0: no limit */
static void print_use(struct top *t, const struct use *u, u64 ms, size_t width)
{
	const struct stack *s = &t->map.stacks[u->index];
	const char *mod, *between = "";
	char *line;
	size_t len;
	FILE *f;
	u32 i;

	f = check_mem(open_memstream(&line, &len));
	fprintf(f, "%10.1f %10llu  ", u->more * 1000.0 / ms, u->ref);
	for (i = 0; i < s->nr && (!width || (size_t)ftell(f) < width); i++) {
		fprintf(f, "%s%s", between, frame_name(frame_get(&t->map, s, i), &mod));
		between = " < ";
	}
	fclose(f);
	check_mem(line);
	printf("%.*s\n", (int)(width && len > width ? width : len), line);
	free(line);
}

static void show(struct top *t, u64 ms)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	struct use *rows = check_mem(calloc(t->nr + 1, sizeof(*rows)));
	size_t i, nr = 0, limit = t->limit ? t->limit : SIZE_MAX;
	u64 more = 0;

	for (i = 0; i < t->nr; i++) {
		more += t->uses[i].more;
		if (t->uses[i].more)
			rows[nr++] = t->uses[i];
	}
	sort_array(rows, nr, sizeof(*rows), compare_more);
	if (!t->batch) {
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
		limit = t->limit ? t->limit : size.ws_row > 4 ? size.ws_row - 4U : 1;
		printf("\033[H\033[J");
	}
	printf("%.1f stacks in a second, %zu different ones now, %zu in the map\n\n",
	       more * 1000.0 / ms, nr, t->nr);
	printf("%10s %10s  STACK\n", "A SECOND", "IN ALL");
	for (i = 0; i < nr && i < limit; i++)
		print_use(t, &rows[i], ms, t->batch ? 0 : size.ws_col - 1);
	if (t->batch)
		putchar('\n');
	fflush(stdout);
	free(rows);
}

/* Returns false if it is time to end. */
static bool wait_for_look(const struct top *t)
{
	struct pollfd fd = { .fd = t->batch ? -1 : STDIN_FILENO, .events = POLLIN };
	u64 now, until = t->time + t->delay;
	char c;

	for (now = now_ms(); !is_ended() && now < until; now = now_ms()) {
		if (poll(&fd, 1, until - now) <= 0)
			continue;
		/* Ctrl-C is a byte here. */
		if (read(STDIN_FILENO, &c, 1) != 1 || c == 'q' || c == 3)
			return false;
	}
	return !is_ended();
}

static int look_again(struct top *t)
{
	u64 before = t->time;
	int ret;

	ret = reload_map(&t->map);
	if (ret)
		return ret;
	drop_tracers(&t->map);
	t->time = now_ms();
	take_uses(t);
	show(t, t->time - before);
	return ferror(stdout) ? -EIO : 0;
}

static int watch_map(struct top *t)
{
	u64 i;
	int ret = 0;

	t->time = now_ms();
	take_uses(t);
	for (i = 0; !ret && (!t->number || i < t->number) && wait_for_look(t); i++)
		ret = look_again(t);
	return ret;
}

static int watch_on_terminal(struct top *t)
{
	const struct sigaction action = { .sa_handler = end };
	struct termios now;
	int ret;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	tcgetattr(STDIN_FILENO, &t->terminal);
	now = t->terminal;
	now.c_lflag &= ~(ICANON | ECHO | ISIG);
	tcsetattr(STDIN_FILENO, TCSANOW, &now);
	ret = watch_map(t);
	tcsetattr(STDIN_FILENO, TCSANOW, &t->terminal);
	return ret;
}

int top(int argc, char **argv)
{
	struct top t = { .delay = 1000 };
	char *path;
	int ret;

	parse_top_options(argc, argv, &t);
	path = find_live_map(t.instance);
	ret = check_instance(t.instance);
	if (!ret)
		ret = load_map(&t.map, path);
	if (!ret)
		ret = load_symbols(&t.map, NULL, &t.cfg);
	if (!ret && !t.map.nr_stacks)
		note_empty(t.instance);
	if (!ret)
		ret = t.batch ? watch_map(&t) : watch_on_terminal(&t);
	map_free(&t.map);
	free(t.uses);
	free(path);
	return ret ? 1 : 0;
}
