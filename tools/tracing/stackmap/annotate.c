// SPDX-License-Identifier: GPL-2.0
/*
 * --annotate: print the text of trace, trace_pipe or trace-cmd report, with the frames of each
 * stack below the line that has its id. Frames that the kernel printed are replaced, so the output
 * can be annotated again. The parts of a stack that an interrupt split are joined.
 */
#include "frame.h"
#include "trace.h"
#include "user.h"
#include "util.h"
#include "view.h"

static int compare_id(const void *key, const void *elem)
{
	const struct stack *s = elem;

	return compare_u64(*(const u32 *)key, s->id);
}

void note_missing(size_t nr, const struct map *m, const struct config *cfg)
{
	if (!nr)
		return;
	if (m->no_file)
		note("%s: %zu ids are not defined there (give a map with them)", cfg->trace, nr);
	else
		note("%s: %zu ids are not in %s", cfg->trace, nr, m->name);
}

void note_more(size_t nr, const struct config *cfg)
{
	if (nr)
		note("%s: %zu stacks are not resolved: trace-cmd prints only %u of their parts",
		     cfg->trace, nr, PRINTED_PARTS);
}

/* NULL if the map does not have it, or as a stack of the other kind. */
struct stack *find_stack(const struct map *m, u32 id, bool user)
{
	struct stack *s = NULL;

	if (m->nr_stacks)
		s = bsearch(&id, m->stacks, m->nr_stacks, sizeof(*m->stacks), compare_id);
	return s && !s->ambiguous && is_user_stack(s) == user ? s : NULL;
}

static void append_ip(struct map *m, struct stack *whole, u64 ip)
{
	if (whole->named)
		ip = name_index(m, frame_text(frame_fill(m, NULL, ip, true)), false);
	m->ips[whole->first + whole->nr++] = ip;
}

/* If one part has names only, the whole has them, too. */
static void append_part(struct map *m, struct stack *whole, const struct stack *part)
{
	u64 word;
	u32 i;

	for (i = 0; i < part->nr; i++) {
		word = m->ips[part->first + i];
		if (whole->named && !part->named)
			word = name_index(m, frame_text(frame_get(m, part, i)), false);
		m->ips[whole->first + whole->nr++] = word;
	}
}

/* Appends the joined parts to the frames of the map; false if the map lacks one of them. */
static bool join_parts(struct map *m, const struct stack_ids *ids, struct stack *whole)
{
	const struct stack *part[MAX_PARTS];
	size_t need = m->nr_ips;
	bool named = false;
	u32 i;

	for (i = 0; i < ids->nr; i++) {
		part[i] = find_stack(m, ids->id[i], false);
		if (!part[i])
			return false;
		need += part[i]->nr + 1;
		named |= part[i]->named;
	}
	m->ips = grow(m->ips, &m->room_ips, need, sizeof(*m->ips));
	*whole = (struct stack) { .id = ids->id[0], .first = m->nr_ips, .named = named };
	for (i = 0; i < ids->nr; i++) {
		if (i)
			append_ip(m, whole, ids->ip[i - 1]);
		append_part(m, whole, part[i]);
	}
	return true;
}

/* Behind the frames that the stack has already; false if the map lacks them. */
static bool append_user_id(struct map *m, struct stack *whole, u32 id)
{
	const struct stack *s = find_stack(m, id, true);

	if (!s)
		return false;
	m->ips = grow(m->ips, &m->room_ips, whole->first + whole->nr + s->nr, sizeof(*m->ips));
	memcpy(m->ips + whole->first + whole->nr, m->ips + s->first, s->nr * sizeof(*m->ips));
	whole->nr += s->nr;
	whole->user_named = s->user_named;
	return true;
}

void add_kernel_half(struct map *m, struct stack *whole, const struct half *h)
{
	if (h->kind == LINE_IDS)
		join_parts(m, &h->ids, whole);
	else if (h->kind == LINE_FULL)
		take_frame_lines(m, whole, h->text);
}

/* Behind the frames of the kernel. */
void add_user_half(struct map *m, struct stack *whole, const struct half *h,
			  const struct process *p)
{
	u32 nr = whole->nr;

	whole->process = p;
	if (h->kind == LINE_IDS)
		append_user_id(m, whole, h->ids.id[0]);
	else if (h->words)
		take_words(m, whole, h->text);
	else if (h->kind == LINE_FULL)
		take_user_lines(m, whole, h->text, p);
	whole->nr_user = whole->nr - nr;
}

static void print_joined(struct map *m, const struct stack *s, const struct config *cfg)
{
	u32 i;

	for (i = 0; i < s->nr; i++)
		print_frame(m, s, i, " => ", cfg);
}

struct annotation {
	struct map		*map;
	const struct config	*cfg;
	struct trace		t;
	enum line_kind		kind;
	struct frame_lines	lines;
	bool			drop;		/* the frames that follow */
	bool			missing;	/* the map lacks the stack */
	size_t			nr_missing;
	size_t			nr_more;
	size_t			nr_lost;
};

/* The process of the line's task. */
static const struct process *line_process(const struct annotation *a)
{
	struct context c;

	return parse_context(&a->t, &c) ? find_process(&a->map->users, &c.task) : NULL;
}

static bool annotate_ids(struct annotation *a)
{
	struct stack whole;

	if (!join_parts(a->map, &a->t.ids, &whole))
		return false;
	print_joined(a->map, &whole, a->cfg);
	return true;
}

static bool annotate_user(struct annotation *a, const struct half *h, const struct process *p)
{
	struct stack s = { .first = a->map->nr_ips };

	add_user_half(a->map, &s, h, p);
	print_joined(a->map, &s, a->cfg);
	return s.nr;
}

static bool annotate_user_id(struct annotation *a)
{
	struct half h = { .kind = LINE_IDS, .ids = a->t.ids };

	return annotate_user(a, &h, line_process(a));
}

static bool annotate_cookie(struct annotation *a)
{
	const struct half *h = find_cookie_stack(a->map, a->t.cookie);

	return h && annotate_user(a, h, line_process(a));
}

static void print_line(struct annotation *a)
{
	if (a->kind != LINE_FRAME && a->missing)
		puts(" => [not in this map]");
	a->drop &= a->kind == LINE_FRAME;
	a->missing = false;
	if (a->t.first && line_process(a))
		printf("%.*s<user stack trace>\n", (int)(a->t.first - a->t.line), a->t.line);
	else if (!a->drop)
		fwrite(a->t.line, 1, a->t.len, stdout);
}

static void end_line(const struct annotation *a)
{
	if (a->t.line[a->t.len - 1] != '\n')
		putchar('\n');
}

/* Frames that the kernel printed below an id are dropped if the map has the stack. */
static void annotate_id_line(struct annotation *a)
{
	a->nr_more += a->t.ids.more;
	if (a->t.ids.more)
		return;
	end_line(a);
	a->drop = a->t.user ? annotate_user_id(a) : annotate_ids(a);
	a->missing = !a->drop;
	a->nr_missing += a->missing;
}

static void annotate_cookie_line(struct annotation *a)
{
	end_line(a);
	a->drop = annotate_cookie(a);
	a->nr_lost += !a->drop;
}

/* The kernel prints the addresses of a full stack. Returns false at the end of the trace. */
static bool annotate_full(struct annotation *a)
{
	const struct process *p = line_process(a);
	struct half h = {};
	bool more;

	if (!p && !a->t.words)
		return read_line(&a->t, &a->kind);
	more = read_full(&h, &a->t, &a->kind, &a->lines);
	/* This has been annotated before. */
	a->drop = h.words;
	if (h.kind == LINE_FULL)
		annotate_user(a, &h, p);
	else
		fwrite(a->lines.text, 1, a->lines.len, stdout);
	free(h.text);
	return more;
}

/* Returns false at the end of the trace. */
static bool annotate_line(struct annotation *a)
{
	print_line(a);
	if (a->kind == LINE_FULL && a->t.user)
		return annotate_full(a);
	if (a->kind == LINE_IDS)
		annotate_id_line(a);
	else if (a->kind == LINE_COOKIE)
		annotate_cookie_line(a);
	return read_line(&a->t, &a->kind);
}

/* Both processes have the same files there. */
static bool same_places(const struct map *m, const struct stack *s, const struct process *p)
{
	struct place a = {}, b = {};
	bool found;
	u32 i;

	for (i = 0; i < s->nr; i++) {
		found = find_place(s->process, m->ips[s->first + i], &a);
		if (find_place(p, m->ips[s->first + i], &b) != found)
			return false;
		if (found && (a.object != b.object || a.offset != b.offset))
			return false;
	}
	return true;
}

static void set_owner(struct map *m, const struct trace *t)
{
	struct stack *s = find_stack(m, t->ids.id[0], true);
	const struct process *p;
	struct context c;

	p = s && parse_context(t, &c) ? find_process(&m->users, &c.task) : NULL;
	if (!p || p == s->process)
		return;
	s->process = s->process && !same_places(m, s, p) ? &unknown_process : p;
}

/* A map does not tell whose its stacks are, but the trace that was saved with it does. */
void find_owners(struct map *m)
{
	struct trace t = {};
	enum line_kind kind;
	char *path;

	if (!m->dir || !m->users.processes)
		return;
	path = format("%s/trace", m->dir);
	t.f = fopen(path, "re");
	sort_stacks(m, SORT_ID);
	while (t.f && read_line(&t, &kind)) {
		if (kind == LINE_IDS && t.user)
			set_owner(m, &t);
	}
	if (t.f)
		fclose(t.f);
	free(t.line);
	free(path);
}

int annotate(struct map *m, const struct config *cfg)
{
	struct annotation a = { .map = m, .cfg = cfg, .t.f = cfg->trace_file };
	int ret = read_definitions(m, cfg);
	bool more;

	for (more = read_line(&a.t, &a.kind); more; )
		more = annotate_line(&a);
	if (a.missing)
		puts(" => [not in this map]");
	note_missing(a.nr_missing, m, cfg);
	note_more(a.nr_more, cfg);
	note_lost(a.nr_lost, cfg);
	free(a.lines.text);
	free(a.t.line);
	return ret;
}
