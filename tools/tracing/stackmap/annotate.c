// SPDX-License-Identifier: GPL-2.0
/*
 * --annotate: a filter for the text of trace, trace_pipe or trace-cmd report. Prints the frames of
 * each stack below the line that has its id. Frames that the kernel printed are replaced, so the
 * output can be annotated again. The parts of a stack that an interrupt split are joined. Names of
 * tasks and the text of trace_marker are not mistaken for stacks.
 */
#include <ctype.h>
#include <sys/stat.h>
#include <time.h>

#include "map.h"
#include "pool.h"
#include "util.h"
#include "view.h"

/*
 * The ids of a stack's parts, innermost first, and between two parts the address that an interrupt
 * has hit. Most stacks have one part. A user stack has one, and may have an address before it.
 */
struct stack_ids {
	u32	nr;
	u32	id[MAX_PARTS];
	u64	ip[MAX_PARTS];
	bool	more;		/* trace-cmd printed only some of the parts */
};

enum line_kind { LINE_OTHER, LINE_FRAME, LINE_IDS, LINE_DEF };

/* The texts of events that have ids of stacks, and of those that define stacks. */
static const struct form {
	const char	*name;
	bool		user;
	bool		cookie;		/* before the id */
	bool		hit;		/* an address before the id */
	bool		split;		/* several ids */
	bool		def;		/* frames behind the id */
} forms[] = {
	{ .name = "stack_id" },
	{ .name = "stack_split", .split = true },
	{ .name = "stack_def", .def = true },
	{ .name = "user_stack_id", .user = true },
	{ .name = "user_stack_def", .user = true, .def = true },
	{ .name = "user_unwind_stack_id", .user = true, .cookie = true },
	{ .name = "user_unwind_stack_split", .user = true, .cookie = true, .hit = true },
};

struct filter {
	struct map		*map;
	const struct config	*cfg;
	FILE			*f;
	bool			streams;	/* its lines come one by one */
	char			*line;
	size_t			room;
	size_t			len;
	bool			has_context;	/* task, CPU and time before the event */
	const struct form	*form;		/* of the line */
	struct stack_ids	ids;
	u64			hit;		/* before its frames, if the form has it */
	u64			words[MAX_DEPTH]; /* LINE_DEF: the frames */
	u32			nr_words;
	struct pool		stacks;		/* {id, user}: the index of a stack, plus 1 */
	time_t			loaded;		/* when the live map was read */
	bool			defines;	/* so the live map may be of another machine */
	bool			drop;		/* the frames that follow */
	bool			missing;	/* the map lacks the stack */
	size_t			nr_ids;
	size_t			nr_missing;
	size_t			nr_more;
};

/* A number behind @before. A negative decimal one wraps around. */
static bool take(const char **p, const char *before, int base, u64 *n)
{
	size_t len = strlen(before);
	const char *digits = *p + len;
	char *end;

	if (strncmp(*p, before, len))
		return false;
	if (!isxdigit((unsigned char)digits[base == 10 && *digits == '-']))
		return false;
	errno = 0;
	*n = strtoull(digits, &end, base);
	*p = end;
	return end > digits && !errno;
}

/*
 * The last id that trace-cmd prints may have the sign bit: more parts follow. As the field is 32 or
 * 64 bits wide, it prints as a number below 0 or above INT32_MAX.
 */
static bool means_more(long long id)
{
	return (id >= INT32_MIN && id < -1) || (id > INT32_MAX && id <= UINT32_MAX);
}

static bool add_part(struct stack_ids *ids, u64 ip, u64 id)
{
	if (ids->nr == MAX_PARTS || id > INT32_MAX)
		return false;
	if (ids->nr)
		ids->ip[ids->nr - 1] = ip;
	ids->id[ids->nr++] = id;
	return true;
}

/* " 42>", " 42 @ffffffff81000000 43>". trace-cmd prints at least four parts, unused as "@0 -1". */
static bool take_ids(const char **p, struct stack_ids *ids)
{
	bool ended = false;
	u64 ip = 0, id;

	ids->nr = 0;
	ids->more = false;
	do {
		if (!take(p, " ", 10, &id) || ids->more || (ended && id != UINT64_MAX))
			return false;
		ended = ids->nr > 1 && id == UINT64_MAX;
		ids->more = ids->nr == PRINTED_PARTS - 1 && means_more(id);
		if (!ended && !ids->more && !add_part(ids, ip, id))
			return false;
	} while (take(p, " @", 16, &ip));
	return *(*p)++ == '>';
}

/*
 * " {0x1,0x2}" or from libtraceevent " 18446744071578845512 2" up to the end of the line; nothing
 * may be cut off.
 */
static bool take_words(struct filter *t, const char *p)
{
	bool braces;

	if (*p++ != ' ')
		return false;
	braces = *p == '{';
	p += braces;
	for (t->nr_words = 0; t->nr_words < MAX_DEPTH; t->nr_words++) {
		if (!take(&p, "", 0, &t->words[t->nr_words]))
			break;
		p += strspn(p, " ,");
	}
	if (braces && *p++ != '}')
		return false;
	return t->nr_words && *p == '\n' && p + 1 == t->line + t->len;
}

/* Up to the end of the line; "(stale)" follows an id of before a reset. */
static bool is_end(const char *p, const char *end)
{
	if (!strncmp(p, " (stale)", 8))
		p += 8;
	return p + (*p == '\n') == end;
}

/* " 143.250001", and in the latency format "   12us+" or "(+0.001ms)" */
static bool is_timestamp(const char *end)
{
	if (isdigit((unsigned char)end[-1]) || end[-1] == ')')
		return true;
	return end[-2] == 's' && memchr(" !+#*@$", end[-1], 7);
}

/* "-123     [000]", "-123     (    120) [000]", in the latency formats "-123     0", " 123   0" */
static char *find_pid(char *p, const char *end)
{
	char *next;

	for (; p < end; p++) {
		if (*p != '-' && *p != ' ')
			continue;
		next = p + 1 + strspn(p + 1, "0123456789");
		if (next == p + 1 || *next != ' ')
			continue;
		next += strspn(next, " ");
		if (*next == '[' || *next == '(' || isdigit((unsigned char)*next))
			return next;
	}
	return NULL;
}

/*
 * "          <idle>-0     [001] d..2.   143.250001: ". A task can have any name, but the text from
 * its name to the timestamp is longer than the longest name.
 */
static char *skip_context(char *line, const char *end)
{
	char *name = line + strspn(line, " "), *p = find_pid(name, end);

	if (!p || end - name < COMM_LEN)
		return NULL;
	for (p = p < name + COMM_LEN ? name + COMM_LEN : p; p + 1 < end; p++) {
		if (p[0] == ':' && p[1] == ' ' && is_timestamp(p))
			return p + 2;
	}
	return NULL;
}

/* " (+12) ": trace-cmd --ts-diff prints the time passed. */
static char *skip_diff(char *p)
{
	p += strspn(p, " ");
	if (!strncmp(p, "(+", 2))
		p += strcspn(p, " ");
	return p + strspn(p, " ");
}

/* What is behind "<stack_id", or from trace-cmd "stack_id:            <stack_id" */
static const char *skip_name(const char *p, const char *name)
{
	size_t len = strlen(name);

	if (!strncmp(p, name, len) && p[len] == ':')
		p += len + 1 + strspn(p + len + 1, " ");
	return *p == '<' && !strncmp(p + 1, name, len) && p[len + 1] == ' ' ? p + len + 1 : NULL;
}

/* trace-cmd prints no space before "=>", or a tab. The last line of a trace may be cut off. */
static bool is_frame_line(const struct filter *t)
{
	static const char arrow[] = " => ";
	size_t len = t->line[t->len - 1] == '\n' ? sizeof(arrow) : t->len;

	if (!strncmp(t->line, "\t=> ", 4))
		return true;
	return !strncmp(t->line, arrow, len < 4 ? len : 4) ||
	       !strncmp(t->line, arrow + 1, len < 3 ? len : 3);
}

static enum line_kind classify_form(struct filter *t, const struct form *form, const char *p)
{
	u64 cookie;

	t->form = form;
	if ((form->cookie && !take(&p, " ", 16, &cookie)) ||
	    (form->hit && !take(&p, " @", 16, &t->hit)) ||
	    !take_ids(&p, &t->ids) || (form->split ? t->ids.nr < 2 : t->ids.nr > 1))
		return LINE_OTHER;
	if (form->def)
		return take_words(t, p) ? LINE_DEF : LINE_OTHER;
	return is_end(p, t->line + t->len) ? LINE_IDS : LINE_OTHER;
}

static enum line_kind classify_text(struct filter *t, char *text)
{
	const char *p;
	size_t i;

	text = skip_diff(text);
	for (i = 0; i < ARRAY_SIZE(forms); i++) {
		p = skip_name(text, forms[i].name);
		if (p)
			return classify_form(t, &forms[i], p);
	}
	return LINE_OTHER;
}

/* Without options/context-info, a line has only the text of the event. */
static enum line_kind classify_line(struct filter *t)
{
	char *text = skip_context(t->line, t->line + t->len);
	bool has_context = text;

	t->has_context |= has_context;
	if (!text && !t->has_context)
		text = t->line;
	/* A task may be named "=> x". */
	if (is_frame_line(t) && !has_context)
		return LINE_FRAME;
	return text ? classify_text(t, text) : LINE_OTHER;
}

/* False at the end of the text. Other systems end a line with "\r\n". */
static bool read_line(struct filter *t, enum line_kind *kind)
{
	ssize_t len = getline(&t->line, &t->room, t->f);

	if (len < 0)
		return false;
	if (len > 1 && t->line[len - 2] == '\r' && t->line[len - 1] == '\n') {
		t->line[--len - 1] = '\n';
		t->line[len] = '\0';
	}
	t->len = len;
	*kind = classify_line(t);
	return true;
}

/* The last definition of an id counts. */
static void know_stack(struct filter *t, size_t i)
{
	const struct stack *s = &t->map->stacks[i];

	pool_find(&t->stacks, s->id, s->user)->value = i + 1;
}

static void know_map(struct filter *t)
{
	size_t i;

	for (i = 0; i < t->map->nr_stacks; i++)
		know_stack(t, i);
}

static void define(struct filter *t)
{
	struct map *m = t->map;
	struct stack *s;

	if (m->live && !t->cfg->instance && !t->defines)
		pool_free(&t->stacks);
	t->defines = true;
	s = new_stack(m, t->nr_words);
	s->id = t->ids.id[0];
	s->user = t->form->user;
	s->nr_user = s->user ? s->nr : 0;
	memcpy(m->ips + s->first, t->words, s->nr * sizeof(*t->words));
	know_stack(t, m->nr_stacks - 1);
}

/* The live map grows while trace_pipe is read. */
static bool read_map_again(struct filter *t)
{
	struct map *m = t->map;

	if (!m->live || t->defines || time(NULL) == t->loaded)
		return false;
	if (!load_more(m))
		know_map(t);
	t->loaded = time(NULL);
	return true;
}

static const struct stack *find_stack(struct filter *t, u32 id)
{
	u64 i = pool_find(&t->stacks, id, t->form->user)->value;

	if (!i && read_map_again(t))
		i = pool_find(&t->stacks, id, t->form->user)->value;
	return i ? &t->map->stacks[i - 1] : NULL;
}

/* Behind the frames of the map; false if the map lacks a part. */
static bool join_parts(struct filter *t, struct stack *whole)
{
	const struct stack_ids *ids = &t->ids;
	const struct stack *parts[MAX_PARTS];
	struct map *m = t->map;
	size_t need = 0;
	u64 *to;
	u32 i;

	for (i = 0; i < ids->nr; i++) {
		if (!find_stack(t, ids->id[i]))
			return false;
	}
	/* Another read of the map may have moved them. */
	for (i = 0; i < ids->nr; i++) {
		parts[i] = find_stack(t, ids->id[i]);
		need += parts[i]->nr + 1;
	}
	m->ips = grow(m->ips, m->nr_ips, need, sizeof(*m->ips));
	*whole = (struct stack) { .first = m->nr_ips, .by_file = parts[0]->by_file };
	to = m->ips + whole->first;
	for (i = 0; i < ids->nr; i++) {
		if (i || t->form->hit) {
			whole->hits |= whole->nr < 64 ? 1ULL << whole->nr : 0;
			to[whole->nr++] = i ? ids->ip[i - 1] : t->hit;
		}
		memcpy(to + whole->nr, m->ips + parts[i]->first, parts[i]->nr * sizeof(*to));
		whole->nr += parts[i]->nr;
	}
	whole->nr_user = t->form->user ? whole->nr : 0;
	return true;
}

static void print_frames(struct filter *t)
{
	struct stack whole;
	u32 i;

	t->nr_ids++;
	t->nr_more += t->ids.more;
	if (t->ids.more)
		return;
	if (t->line[t->len - 1] != '\n')
		putchar('\n');
	t->drop = join_parts(t, &whole);
	t->missing = !t->drop;
	t->nr_missing += t->missing;
	for (i = 0; t->drop && i < whole.nr; i++)
		print_frame(t->map, &whole, i, " => ", t->cfg);
}

/* Frames that the kernel printed are dropped if the map has the stack. */
static void filter_line(struct filter *t, enum line_kind kind)
{
	if (kind != LINE_FRAME && t->missing)
		puts(" => [not in this map]");
	t->drop &= kind == LINE_FRAME;
	t->missing = false;
	if (!t->drop)
		fwrite(t->line, 1, t->len, stdout);
	if (kind == LINE_IDS)
		print_frames(t);
	else if (kind == LINE_DEF)
		define(t);
	if (t->streams)
		fflush(stdout);
}

static int end_filter(struct filter *t)
{
	const char *name = t->cfg->trace;

	if (t->missing)
		puts(" => [not in this map]");
	if (t->nr_missing && t->map->name)
		note("%s: %zu ids are not in %s", name, t->nr_missing, t->map->name);
	else if (t->nr_missing)
		note("%s: %zu ids are not defined there (give a map with them)", name,
		     t->nr_missing);
	if (t->nr_more)
		note("%s: %zu stacks are not resolved: trace-cmd prints only %u of their parts",
		     name, t->nr_more, PRINTED_PARTS);
	if (ferror(t->f))
		complain("%s: %s", name, strerror(errno));
	else if (!t->nr_ids)
		complain("%s: has no ids of stacks", name);
	return ferror(t->f) || !t->nr_ids ? -EINVAL : 0;
}

int annotate(struct map *m, const struct config *cfg)
{
	struct filter t = { .map = m, .cfg = cfg, .f = open_input(cfg->trace) };
	enum line_kind kind;
	struct stat st;
	off_t start;
	int ret;

	if (!t.f) {
		complain("%s: %s", cfg->trace, strerror(errno));
		return -errno;
	}
	t.streams = fstat(fileno(t.f), &st) || !S_ISREG(st.st_mode);
	know_map(&t);
	t.loaded = time(NULL);
	start = ftello(t.f);
	/* A CPU may use an id before the definition that another one writes. */
	while (!t.streams && read_line(&t, &kind)) {
		if (kind == LINE_DEF)
			define(&t);
	}
	if (!t.streams)
		fseeko(t.f, start, SEEK_SET);
	t.has_context = false;
	while (read_line(&t, &kind))
		filter_line(&t, kind);
	ret = end_filter(&t);
	if (t.f != stdin)
		fclose(t.f);
	pool_free(&t.stacks);
	free(t.line);
	return ret;
}
