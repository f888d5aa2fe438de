// SPDX-License-Identifier: GPL-2.0
/* "top": which stacks of the live map are used most now, by the differences of their counts. */
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "record.h"

#define CLEAR	"\033[H\033[J"	/* a terminal */

struct top {
	const char	*instance;
	u64		delay;		/* in nanoseconds */
	u64		number;		/* of looks; 0: no end */
	u64		limit;		/* of rows; 0: all */
	struct map	map;		/* ref: since the last look, val[0]: in all */
	struct pool	refs;		/* of {id, is_user} */
};

static struct top now = { .delay = 1000000000 };

static struct choice live_choices[] = {
	{ "instance", 'i', "NAME", set_instance, &now.instance, "the map of this trace instance" },
	{ "delay", 0, "SECONDS", set_seconds, &now.delay, "time between two looks (1)" },
	{ "number", 'n', "N", set_number, &now.number, "end after N looks" },
	{ "top", 't', "N", set_number, &now.limit,
	  "show N stacks (as many as fit on the terminal)" },
	{}
};

/* A stack is new if its id was not there before. If one counts less, there was a reset: all are. */
static u64 take_refs(struct top *t)
{
	struct pool before = t->refs;
	bool reset = false;
	struct stack *s;
	u64 sum = 0;

	t->refs = (struct pool) {};
	for (s = t->map.stacks; s != stacks_end(&t->map); s++)
		reset |= pool_find(&before, s->id, s->user)->value > s->ref;
	for (s = t->map.stacks; s != stacks_end(&t->map); s++) {
		pool_find(&t->refs, s->id, s->user)->value = s->ref;
		s->val[0] = s->ref;
		s->ref -= reset ? 0 : pool_find(&before, s->id, s->user)->value;
		sum += s->ref;
	}
	pool_free(&before);
	return sum;
}

/* @width: at most so many characters; 0: all */
static void print_use(struct map *m, const struct stack *s, u64 ms, int width)
{
	char *line __free(pointer) = format("%10.1f %10llu  ", s->ref * 1000.0 / ms, s->val[0]);
	const char *name, *mod;
	u32 i;

	for (i = 0; i < s->nr && (!width || strlen(line) < (size_t)width); i++) {
		char *before __free(pointer) = line;

		name = frame_name(frame_get(m, s, i), &mod);
		if (!*name)
			name = mod && *mod ? mod : "[unknown]";
		line = format("%s%s%s", before, i ? " < " : "", name);
	}
	printf("%.*s\n", width ? width : -1, line);
}

/* @sum: of all stacks since the last look, so many milliseconds ago. */
static void show(struct top *t, u64 sum, u64 ms)
{
	size_t i, nr = 0, limit = t->limit ? t->limit : SIZE_MAX;
	bool on_terminal = isatty(STDOUT_FILENO);
	struct map *m = &t->map;
	struct winsize size = {};

	sort_stacks(m);
	while (nr < m->nr_stacks && m->stacks[nr].ref)
		nr++;
	if (on_terminal) {
		/* A serial console has 0 of both. */
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
		size.ws_col = size.ws_col ? size.ws_col : 80;
		size.ws_row = size.ws_row ? size.ws_row : 24;
		limit = t->limit ? t->limit : size.ws_row > 5 ? size.ws_row - 5U : 1;
		printf(CLEAR);
	}
	printf("%.1f stacks in a second, %zu different ones now, %zu in the map\n\n",
	       sum * 1000.0 / ms, nr, m->nr_stacks);
	printf("%10s %10s  STACK\n", "A SECOND", "IN ALL");
	for (i = 0; i < nr && i < limit; i++)
		print_use(m, &m->stacks[i], ms, size.ws_col);
	putchar('\n');
	fflush(stdout);
}

static sig_atomic_t stopped;

static void stop(int sig)
{
	stopped = true;
}

/* Until the next look. Another key than q looks at once. */
static void wait_for_key(const struct top *t, bool has_keys)
{
	struct pollfd in = { STDIN_FILENO, POLLIN };
	u64 ms = t->delay / 1000000;
	char key;

	if (poll(&in, has_keys, ms < INT32_MAX ? ms : INT32_MAX) > 0)
		stopped |= read(STDIN_FILENO, &key, 1) != 1 || key == 'q';
}

static int watch_map(struct top *t, bool has_keys)
{
	u64 i, before, now = now_ms();
	int ret;

	/* A look is one write, so Ctrl-C does not come in the middle. */
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	take_refs(t);
	for (i = 0; !t->number || i < t->number; i++) {
		wait_for_key(t, has_keys);
		if (stopped)
			return 0;
		ret = reload_map(&t->map);
		if (ret)
			return ret;
		drop_tracers(&t->map);
		before = now;
		now = now_ms();
		show(t, take_refs(t), now > before ? now - before : 1);
		if (ferror(stdout))
			return -EIO;
	}
	return 0;
}

/* Keys come as they are typed, and the terminal is left as it was. */
static int watch_keys(struct top *t)
{
	bool has_keys = isatty(STDOUT_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
	struct termios old, new;
	int ret;

	if (!has_keys || tcgetattr(STDIN_FILENO, &old))
		return watch_map(t, false);
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	new = old;
	new.c_lflag &= ~(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &new);
	ret = watch_map(t, true);
	tcsetattr(STDIN_FILENO, TCSANOW, &old);
	return ret;
}

static int run_top(const struct command *cmd, int argc, char **argv)
{
	char *dir __free(pointer) = find_instance(now.instance);
	struct config cfg = {};

	if (argc)
		usage("top has no arguments", argv[0]);
	if (now.delay < 10000000)
		usage("--delay is 0.01 seconds or more", NULL);
	if (check_instance(dir) || load_map(&now.map, dir) || load_symbols(&now.map, NULL, &cfg))
		return 1;
	if (!now.map.nr_stacks)
		note_empty(dir);
	return watch_keys(&now) ? 1 : 0;
}

const struct command top_command = {
	.name = "top", .run = run_top, .args = "[OPTIONS]",
	.summary = "live: the stacks that the running kernel uses most",
	.text =
"Show the stacks that the running kernel used most since the last look at the map, each second:\n"
"how often in a second, how often in all, and the functions, the innermost first. No event is\n"
"read. The key q ends it.\n",
	.groups = { { "Options", live_choices }, { "", common_choices } },
	.examples = "Example, what a recording with the instance \"mine\" records:\n"
		    "  stackmap_dump top -i mine\n",
};
