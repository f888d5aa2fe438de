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

#include "frame.h"
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

enum line_kind {
	LINE_OTHER,
	LINE_FRAME,
	LINE_IDS,
	LINE_DEF,		/* the frames of an id */
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
	bool			user;		/* a stack of user space */
	bool			by_file;	/* the map has the frames by file */
	bool			hit;		/* ids.ip[0] is before its frames */
	u32			def;		/* LINE_DEF: the id */
	const char		*words;		/* its frames */
	struct stack_ids	ids;
	struct pool		stacks;		/* {id, user}: the index of a stack, plus 1 */
	time_t			loaded;		/* when the live map was read */
	bool			defines;	/* so the live map may be of another machine */
	bool			drop;		/* the frames that follow */
	bool			missing;	/* the map lacks the stack */
	size_t			nr_ids;
	size_t			nr_missing;
	size_t			nr_more;
};

/*
 * The ids of a stack's parts, innermost first, and between two parts the address that an interrupt
 * has hit. Most stacks have one part.
 */
static bool parse_id(const char **p, long long *n)
{
	char *end;

	if (!isdigit((unsigned char)(*p)[**p == '-']))
		return false;
	errno = 0;
	*n = strtoll(*p, &end, 10);
	*p = end;
	return !errno;
}

/* The address in " @ffffffff81000000 ". */
static bool parse_hit(const char **p, u64 *ip)
{
	char *end;

	if (strncmp(*p, " @", 2) || !isxdigit((unsigned char)(*p)[2]))
		return false;
	errno = 0;
	*ip = strtoull(*p + 2, &end, 16);
	if (*end != ' ' || errno)
		return false;
	*p = end + 1;
	return true;
}

/*
 * The last id that trace-cmd prints may have the sign bit: more parts follow. As the field is 32 or
 * 64 bits wide, it prints as a number below 0 or above INT32_MAX.
 */
static bool means_more(long long id)
{
	return (id >= INT32_MIN && id < -1) || (id > INT32_MAX && id <= UINT32_MAX);
}

static bool add_part(struct stack_ids *ids, u64 ip, long long id)
{
	if (ids->nr == MAX_PARTS || id < 0 || id > INT32_MAX)
		return false;
	if (ids->nr)
		ids->ip[ids->nr - 1] = ip;
	ids->id[ids->nr++] = id;
	return true;
}

/*
 * "42>" or "42 @ffffffff81000000 43>". trace-cmd always prints four parts, unused ones as "@0 -1".
 */
static bool parse_parts(const char **p, struct stack_ids *ids)
{
	bool ended = false;
	long long id;
	u64 ip = 0;

	ids->nr = 0;
	ids->more = false;
	do {
		if (!parse_id(p, &id) || ids->more || (ended && id != -1))
			return false;
		ended = ids->nr > 1 && id == -1;
		ids->more = ids->nr == PRINTED_PARTS - 1 && means_more(id);
		if (!ended && !ids->more && !add_part(ids, ip, id))
			return false;
	} while (parse_hit(p, &ip));
	return *(*p)++ == '>';
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

/* trace-cmd names the event: "stack_id:    " */
static char *skip_event(char *p, const char *event)
{
	size_t len = strlen(event);

	p = skip_diff(p);
	if (strncmp(p, event, len))
		return NULL;
	return p + len + strspn(p + len, " ");
}

/* "0xffffffff81000148", or from libtraceevent "18446744071578845512" */
static bool parse_word(const char **p, u64 *word)
{
	char *end;

	if (!isdigit((unsigned char)**p))
		return false;
	errno = 0;
	*word = strtoull(*p, &end, 0);
	*p = end;
	return !errno;
}

static const char *skip_separator(const char *p)
{
	return p + strspn(p, " ,");
}

/* "{0x1,0x2}" or "1 2"; nothing may be cut off. */
static bool are_words(const char *p, const char *end)
{
	bool braces = *p == '{';
	u32 nr = 0;
	u64 word;

	for (p += braces; parse_word(&p, &word); p = skip_separator(p))
		nr++;
	if (braces && *p++ != '}')
		return false;
	return nr && nr <= MAX_DEPTH && *p == '\n' && p + 1 == end;
}

/* The text behind "<name ", which may follow the name of the event. */
static const char *skip_name(char *text, const char *event, const char *name)
{
	char *behind = skip_event(text, event);

	text = behind ? behind : text;
	return strncmp(text, name, strlen(name)) ? NULL : text + strlen(name);
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

/* "<stack_id 42>", or from trace-cmd "stack_id:            <stack_id 42>" */
static bool find_ids(struct filter *t, char *text, const char *event, const char *name, bool split)
{
	const char *p = skip_name(text, event, name);

	return p && parse_parts(&p, &t->ids) && (t->ids.nr > 1) == split &&
	       is_end(p, t->line + t->len);
}

static bool skip_cookie(const char **p)
{
	size_t len = *p ? strspn(*p, "0123456789abcdef") : 0;

	if (!len || (*p)[len] != ' ')
		return false;
	*p += len + 1;
	return true;
}

/* "<user_unwind_stack_id 300000001 42>" */
static bool find_unwound(struct filter *t, char *text)
{
	const char *p = skip_name(text, "user_unwind_stack_id:", "<user_unwind_stack_id ");

	return skip_cookie(&p) && parse_parts(&p, &t->ids) && t->ids.nr == 1 &&
	       is_end(p, t->line + t->len);
}

/* "<user_unwind_stack_split 300000001 @5581c0a0d123 42>" */
static bool find_unwound_split(struct filter *t, char *text)
{
	const char *p = skip_name(text, "user_unwind_stack_split:", "<user_unwind_stack_split ");
	char *end;
	u64 ip;

	if (!skip_cookie(&p) || *p != '@' || !isxdigit((unsigned char)p[1]))
		return false;
	ip = strtoull(p + 1, &end, 16);
	p = end + 1;
	if (*end != ' ' || !parse_parts(&p, &t->ids) || t->ids.nr != 1 ||
	    !is_end(p, t->line + t->len))
		return false;
	t->ids.ip[0] = ip;
	t->hit = true;
	return true;
}

/* From trace-cmd "stack_def:            <stack_def 42> 1 2" */
static bool find_def(struct filter *t, char *text, const char *event, const char *name)
{
	const char *p = skip_name(text, event, name);
	long long id;

	if (!p || !parse_id(&p, &id) || id < 0 || id > INT32_MAX || *p++ != '>' || *p++ != ' ')
		return false;
	t->def = id;
	t->words = p;
	return are_words(p, t->line + t->len);
}

static enum line_kind classify_text(struct filter *t, char *text)
{
	const char *p = skip_diff(text);

	t->user = !strncmp(p + (*p == '<'), "user", 4);
	if (!t->user) {
		if (find_ids(t, text, "stack_id:", "<stack_id ", false) ||
		    find_ids(t, text, "stack_split:", "<stack_split ", true))
			return LINE_IDS;
		return find_def(t, text, "stack_def:", "<stack_def ") ? LINE_DEF : LINE_OTHER;
	}
	if (find_ids(t, text, "user_stack_id:", "<user_stack_id ", false) ||
	    find_unwound(t, text) || find_unwound_split(t, text))
		return LINE_IDS;
	return find_def(t, text, "user_stack_def:", "<user_stack_def ") ? LINE_DEF : LINE_OTHER;
}

/* Without options/context-info, a line has only the text of the event. */
static enum line_kind classify_line(struct filter *t)
{
	char *text = skip_context(t->line, t->line + t->len);
	bool has_context = text;

	t->has_context |= has_context;
	t->hit = false;
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

	*pool_find(&t->stacks, s->id, is_user_stack(s)) = i + 1;
}

static void know_map(struct filter *t)
{
	size_t i;

	for (i = 0; i < t->map->nr_stacks; i++)
		know_stack(t, i);
	t->loaded = time(NULL);
}

static void define(struct filter *t)
{
	struct map *m = t->map;
	const char *p = t->words + (*t->words == '{');
	struct stack s = { .id = t->def, .first = m->nr_ips };
	u64 word;

	if (m->live && !t->cfg->instance && !t->defines)
		pool_free(&t->stacks);
	t->defines = true;
	for (; parse_word(&p, &word); p = skip_separator(p), s.nr++) {
		m->ips = grow(m->ips, &m->room_ips, m->nr_ips + 1, sizeof(*m->ips));
		m->ips[m->nr_ips++] = word;
	}
	s.nr_user = t->user ? s.nr : 0;
	s.user = t->user;
	m->stacks = grow(m->stacks, &m->room_stacks, m->nr_stacks + 1, sizeof(*m->stacks));
	m->stacks[m->nr_stacks] = s;
	know_stack(t, m->nr_stacks++);
}

/* The live map grows while trace_pipe is read. */
static bool read_map_again(struct filter *t)
{
	struct map *m = t->map;

	if (!m->live || t->defines || time(NULL) == t->loaded)
		return false;
	if (load_more(m))
		return false;
	know_map(t);
	return true;
}

static const struct stack *find_stack(struct filter *t, u32 id)
{
	u64 i = *pool_find(&t->stacks, id, t->user);

	if (!i && read_map_again(t))
		i = *pool_find(&t->stacks, id, t->user);
	return i ? &t->map->stacks[i - 1] : NULL;
}

static void add_ips(struct map *m, struct stack *whole, const u64 *ips, u32 nr)
{
	memcpy(m->ips + whole->first + whole->nr, ips, nr * sizeof(*ips));
	whole->nr += nr;
}

/* Behind the frames of the map; false if the map lacks a part. */
static bool join_parts(struct filter *t, struct stack *whole)
{
	const struct stack_ids *ids = &t->ids;
	struct map *m = t->map;
	const struct stack *s;
	size_t need = 1;
	u32 i;

	for (i = 0; i < ids->nr; i++) {
		s = find_stack(t, ids->id[i]);
		if (!s)
			return false;
		need += s->nr + 1;
	}
	m->ips = grow(m->ips, &m->room_ips, m->nr_ips + need, sizeof(*m->ips));
	*whole = (struct stack) { .first = m->nr_ips };
	for (i = 0; i < ids->nr; i++) {
		if (i || t->hit) {
			whole->hits |= whole->nr < 64 ? 1ULL << whole->nr : 0;
			add_ips(m, whole, &ids->ip[t->hit ? 0 : i - 1], 1);
		}
		s = find_stack(t, ids->id[i]);
		t->by_file = s->by_file;
		add_ips(m, whole, m->ips + s->first, s->nr);
	}
	whole->nr_user = t->user ? whole->nr : 0;
	whole->by_file = t->by_file;
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
	struct filter t = { .map = m, .cfg = cfg };
	enum line_kind kind;
	struct stat st;
	int ret;

	t.f = strcmp(cfg->trace, "-") ? fopen(cfg->trace, "re") : stdin;
	if (!t.f) {
		complain("%s: %s", cfg->trace, strerror(errno));
		return -errno;
	}
	t.streams = fstat(fileno(t.f), &st) || !S_ISREG(st.st_mode);
	know_map(&t);
	while (read_line(&t, &kind))
		filter_line(&t, kind);
	ret = end_filter(&t);
	if (t.f != stdin)
		fclose(t.f);
	pool_free(&t.stacks);
	free(t.line);
	return ret;
}
