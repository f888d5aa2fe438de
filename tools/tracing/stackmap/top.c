// SPDX-License-Identifier: GPL-2.0
/* "top": which stacks of the live map are used most now, by the differences of their counts. */
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "record.h"

/* Clears a terminal, and lets it cut lines that are too long. */
#define CLEAR	"\033[H\033[J\033[?7l"
#define WRAP	"\033[?7h"

static const char top_help[] =
"Usage: stackmap_dump top [OPTIONS]\n"
"\n"
"Show the stacks that the running kernel used most since the last look at the map, each second:\n"
"how often in a second, how often in all, and the functions, the innermost first. No event is\n"
"read. Ctrl-C ends it.\n"
"\n"
"  -i, --instance NAME    the map of this trace instance\n"
"  -d, --delay SECONDS    time between two looks (1)\n"
"  -n, --number N         end after N looks\n"
"  -t, --top N            show N stacks (as many as fit on the terminal)\n"
"  -h, --help             print this text\n";

struct top {
	const char	*instance;
	u64		delay;		/* in nanoseconds */
	u64		number;		/* of looks; 0: no end */
	u64		limit;		/* of rows; 0: all */
	struct map	map;		/* ref: since the last look, val[0]: in all */
	struct pool	refs;		/* of {id, is_user} */
};

static void parse_top_options(int argc, char **argv, struct top *t)
{
	struct choice choices[] = {
		{ "instance", 'i', ARG, set_instance, &t->instance },
		{ "delay", 'd', ARG, set_seconds, &t->delay },
		{ "number", 'n', ARG, set_number, &t->number },
		{ "top", 't', ARG, set_number, &t->limit },
		{ "help", 'h', NO_ARG, print_help, (char *)top_help },
	};

	parse_choices(argc, argv, choices, ARRAY_SIZE(choices), true);
	if (optind < argc)
		usage("top has no arguments", argv[optind]);
	if (t->delay < 10000000)
		usage("--delay is 0.01 seconds or more", NULL);
}

/* A stack is new if its id was not there before, or if it counts less: there was a reset. */
static u64 take_refs(struct top *t)
{
	struct pool before = t->refs;
	struct stack *s;
	u64 old, sum = 0;

	t->refs = (struct pool) {};
	for (s = t->map.stacks; s != stacks_end(&t->map); s++) {
		old = pool_find(&before, s->id, s->user)->value;
		pool_find(&t->refs, s->id, s->user)->value = s->ref;
		s->val[0] = s->ref;
		s->ref -= old <= s->ref ? old : 0;
		sum += s->ref;
	}
	pool_free(&before);
	return sum;
}

static void print_use(struct map *m, const struct stack *s, u64 ms)
{
	const char *name, *mod;
	u32 i;

	printf("%10.1f %10llu  ", s->ref * 1000.0 / ms, s->val[0]);
	for (i = 0; i < s->nr; i++) {
		name = frame_name(frame_get(m, s, i), &mod);
		if (!*name)
			name = mod && *mod ? mod : "[unknown]";
		printf("%s%s", i ? " < " : "", name);
	}
	putchar('\n');
}

/* @sum: of all stacks since the last look, so many milliseconds ago. */
static void show(struct top *t, u64 sum, u64 ms)
{
	struct winsize size = { .ws_row = 24 };
	bool on_terminal = isatty(STDOUT_FILENO);
	size_t i, nr = 0, limit = t->limit ? t->limit : SIZE_MAX;
	struct map *m = &t->map;

	sort_stacks(m, SORT_REF);
	while (nr < m->nr_stacks && m->stacks[nr].ref)
		nr++;
	if (on_terminal) {
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
		limit = t->limit ? t->limit : size.ws_row > 5 ? size.ws_row - 5U : 1;
		printf(CLEAR);
	}
	printf("%.1f stacks in a second, %zu different ones now, %zu in the map\n\n",
	       sum * 1000.0 / ms, nr, m->nr_stacks);
	printf("%10s %10s  STACK\n", "A SECOND", "IN ALL");
	for (i = 0; i < nr && i < limit; i++)
		print_use(m, &m->stacks[i], ms);
	puts(on_terminal ? WRAP : "");
	fflush(stdout);
}

static int watch_map(struct top *t)
{
	const struct timespec delay = { t->delay / 1000000000, t->delay % 1000000000 };
	u64 i, before, now = now_ms();
	int ret;

	/* A look is one write, so Ctrl-C does not come in the middle. */
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	take_refs(t);
	for (i = 0; !t->number || i < t->number; i++) {
		nanosleep(&delay, NULL);
		ret = reload_map(&t->map);
		if (ret)
			return ret;
		drop_tracers(&t->map);
		before = now;
		now = now_ms();
		show(t, take_refs(t), now - before);
		if (ferror(stdout))
			return -EIO;
	}
	return 0;
}

int top(int argc, char **argv)
{
	char *dir __free(pointer) = NULL;
	static struct top t = { .delay = 1000000000 };
	struct config cfg = {};

	parse_top_options(argc, argv, &t);
	dir = find_instance(t.instance);
	if (check_instance(dir) || load_map(&t.map, dir) || load_symbols(&t.map, NULL, &cfg))
		return 1;
	if (!t.map.nr_stacks)
		note_empty(dir);
	return watch_map(&t) ? 1 : 0;
}
