// SPDX-License-Identifier: GPL-2.0
/*
 * A filter for the text of trace, trace_pipe or trace-cmd report. Prints the frames of
 * each stack below the line that has its id. Frames that the kernel printed are replaced, so the
 * output can be annotated again. The parts of a stack that an interrupt split are joined. Names of
 * tasks and the text of trace_marker are not mistaken for stacks.
 */
#include "stackmap.h"

/*
 * What stands before an event. A task can have any name, of up to 15 characters:
 *
 *	"          <idle>-0     [001] d..2.   143.250001: "
 *	"            bash-123     (    120) [000] .....  143.250001: "
 *	"    instance:       bash-123   [000]   143.250001: "		by trace-cmd
 *	"    bash-123   [000]   143.250001: (+25)     "			with --ts-diff
 *	"    bash-123       0d..2.   12us : "				latency formats
 *	"            bash     123   0 1 00000000 00000000 [000004d2] 1.234ms (+0.001ms): "
 */
#define HEAD									\
	"^ *(([^ ]+: +)?.{0,15}-[0-9]+ +(\\([^)]*\\) +)?(\\[[0-9]+\\]( [^ ]+)?|[0-9]+[^ ]+)"	\
	" +[0-9.]+(us.)?|.{0,15} +[0-9]+ +[0-9]+ [0-9]+ [0-9a-f]+ [0-9a-f]+ \\[[0-9a-f]+\\] "	\
	"[0-9.]+ms \\(\\+[0-9.]+ms\\)): +(\\(\\+[0-9.]+\\) +)?"

/*
 * "<stack_id 42>", "<stack_split 42 @ffffffff81000000 43>"; trace-cmd prints the name before.
 * "(stale)" follows an id of before a reset.
 */
#define IDS									\
	"^((user_)?(unwind_)?stack_[a-z3]+: +)?"						\
	"<((user_)?(unwind_)?stack_(id|split))(( @[0-9a-f]+| -?[0-9a-f]+)+)>( \\(stale\\))?\r?\n?$"

enum { IDS_NAME = 4, IDS_USER = 5, IDS_UNWIND = 6, IDS_KIND = 7, IDS_LIST = 8, NR_IDS_GROUPS };

struct filter {
	struct map		*map;
	const struct config	*cfg;
	FILE			*f;
	regex_t			head;
	regex_t			ids_form;
	char			*line;
	size_t			room;
	ssize_t			len;
	bool			has_context;	/* task, CPU and time before the event */
	bool			user;		/* the stack of the line is of user space */
	struct parts	parts;		/* of the line */
	struct ids		ids;
	struct words		words;
	struct pool		unknown;	/* stacks that it did not have */
	bool			drop;		/* the frames that follow */
	bool			missing;	/* the map lacks the stack */
	size_t			nr_ids;
	size_t			nr_missing;
	size_t			nr_odd;
};

/* " 42>", " 42 @ffffffff81000000 43>". With @cookie, " 30 42>" or " 30 @5500 42>". */
static bool take_parts(struct parts *parts, const char *list, bool cookie, bool split)
{
	bool hit = cookie && split;
	char *p = (char *)list;
	long long id;
	u64 ip;

	errno = 0;
	parts->nr = 0;
	if (cookie)
		strtoull(p, &p, 16);
	while (*p == ' ') {
		ip = p[1] == '@' ? strtoull(p + 2, &p, 16) : 0;
		id = *p == ' ' ? strtoll(p, &p, 10) : -1;
		if (id < 0 || id > INT32_MAX || parts->nr == MAX_PARTS ||
		    (bool)ip != (parts->nr || hit))
			return false;
		parts->ip[parts->nr] = ip;
		parts->id[parts->nr++] = id;
	}
	return !errno && (*p == '>' || *p == ' ') && parts->nr &&
	       (parts->nr > 1) == (split && !hit);
}

/* Returns what follows the context, the whole line if it has none. */
static const char *skip_context(struct filter *t, bool *found)
{
	regmatch_t match;

	*found = strstr(t->line, ": ") && !regexec(&t->head, t->line, 1, &match, 0);
	t->has_context |= *found;
	return *found ? t->line + match.rm_eo : t->line;
}

/* Without options/context-info, a line has only the text of the event. */
static bool has_ids(struct filter *t, const char *text)
{
	regmatch_t m[NR_IDS_GROUPS];

	if (regexec(&t->ids_form, text, NR_IDS_GROUPS, m, 0))
		return false;
	t->user = m[IDS_USER].rm_so >= 0;
	if (take_parts(&t->parts, text + m[IDS_LIST].rm_so, m[IDS_UNWIND].rm_so >= 0,
		       text[m[IDS_KIND].rm_so] == 's'))
		return true;
	t->nr_odd++;
	return false;
}

/*
 * The live map grows while trace_pipe is read. It has a stack before that has an event, so one look
 * will do, and what is not there then comes no more.
 */
static bool read_map_again(struct filter *t, u32 stack)
{
	struct pooled *e = pool_find(&t->unknown, stack, 0);

	if (!t->map->live || e->value++)
		return false;
	t->map->live = !reload_map(t->map);
	if (t->map->live)
		use_map(&t->ids, t->map, 0);
	return t->map->live;
}

static bool find_frames(struct filter *t)
{
	u32 stack = stack_of_parts(&t->ids, 0, t->user, 0, &t->parts);

	t->words = (struct words) { t->words.w };
	return resolve_stack(&t->ids, stack, &t->words) ||
	       (read_map_again(t, stack) && resolve_stack(&t->ids, stack, &t->words));
}

static void print_frames(struct filter *t)
{
	struct map *m = t->map;
	struct stack *s;
	u32 i;

	t->nr_ids++;
	if (t->line[t->len - 1] != '\n')
		putchar('\n');
	t->drop = find_frames(t);
	t->missing = !t->drop;
	t->nr_missing += t->missing;
	if (t->missing)
		return;
	s = map_add(m, t->words.w, t->words.nr);
	s->nr_user = t->user ? s->nr : 0;
	s->hits = t->words.hits;
	for (i = 0; i < s->nr; i++) {
		fputs(" => ", stdout);
		print_frame(m, s, i, t->cfg->lines);
	}
	m->nr_ips = s->first;
	m->nr_stacks--;
}

/* trace-cmd prints no space before "=>", or a tab. A task may be named "=> x". */
static bool is_frame(const char *line)
{
	line += *line == ' ' || *line == '\t';
	return !strncmp(line, "=> ", 3);
}

/* Frames that the kernel printed are dropped if the map has the stack. */
static void filter_line(struct filter *t)
{
	bool whole = strlen(t->line) == (size_t)t->len, context, frame;
	const char *text = skip_context(t, &context);

	frame = !context && is_frame(t->line);
	if (!frame && t->missing)
		puts(" => [not in this map]");
	t->drop &= frame;
	t->missing = false;
	if (!t->drop)
		fwrite(t->line, 1, t->len, stdout);
	if (whole && !frame && context == t->has_context && has_ids(t, text))
		print_frames(t);
}

static int end_filter(struct filter *t)
{
	const char *name = t->cfg->trace;

	if (t->missing)
		puts(" => [not in this map]");
	if (t->nr_missing)
		note("%s: %zu ids are not in %s", name, t->nr_missing, t->map->name);
	if (t->nr_odd)
		note("%s: %zu lines have ids that cannot be read", name, t->nr_odd);
	if (ferror(t->f))
		return fail("%s: %s", name, strerror(errno));
	return t->nr_ids ? 0 : fail("%s: has no ids of stacks", name);
}

int annotate(struct map *m, const struct config *cfg)
{
	struct filter t = { .map = m, .cfg = cfg, .f = open_input(cfg->trace) };
	struct stat st;
	int ret;

	if (!t.f || fstat(fileno(t.f), &st))
		return fail("%s: %s", cfg->trace, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return fail("%s: %s", cfg->trace, strerror(EISDIR));
	if (open_output(cfg->output))
		return -EINVAL;
	regcomp(&t.head, HEAD, REG_EXTENDED);
	regcomp(&t.ids_form, IDS, REG_EXTENDED);
	/* Lines may come one by one. */
	if (!S_ISREG(st.st_mode))
		setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	t.ids.users = &m->sym.users;
	use_map(&t.ids, m, 0);
	while (!ferror(stdout) && (t.len = getline(&t.line, &t.room, t.f)) >= 0)
		filter_line(&t);
	ret = ferror(stdout) ? -EIO : end_filter(&t);
	if (t.f != stdin)
		fclose(t.f);
	ids_free(&t.ids);
	pool_free(&t.unknown);
	regfree(&t.head);
	regfree(&t.ids_form);
	free(t.words.w);
	free(t.line);
	return ret;
}
