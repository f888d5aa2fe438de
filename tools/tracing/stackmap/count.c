// SPDX-License-Identifier: GPL-2.0
/* --annotate with --folded or another form: count the distinct stacks of a trace. */

/* Goes through a trace. */
struct walk {
	struct map		*map;
	const struct config	*cfg;
	struct trace		t;
	enum line_kind		kind;
	bool			more;
	bool			ahead;		/* the next line is read already */
	bool			other;		/* the line is no part of a stack */
	bool			found;		/* a stack, and these belong to it: */
	struct frame_lines	lines;		/* its frames, or the line with its ids */
	struct stack		stack;		/* no frames yet if the trace has it in full */
	bool			has_context;
	struct context		context;
	size_t			nr_missing;
	size_t			nr_more;
	size_t			nr_cut;
};

static void walk_start(struct walk *w, struct map *m, const struct config *cfg)
{
	*w = (struct walk) { .map = m, .cfg = cfg, .t.f = cfg->trace_file };
}

static void walk_end(struct walk *w)
{
	note_missing(w->nr_missing, w->map, w->cfg);
	note_more(w->nr_more, w->cfg);
	if (w->nr_cut)
		note("%s: left out %zu stacks that are cut off", w->cfg->trace, w->nr_cut);
	free(w->lines.text);
	free(w->t.line);
}

static bool walk_ids(struct walk *w)
{
	size_t len;

	if (w->t.ids.more) {
		w->nr_more++;
		return false;
	}
	if (!join_parts(w->map, &w->t.ids, &w->stack)) {
		w->nr_missing++;
		return false;
	}
	len = strcspn(w->t.text, ">");
	w->lines.text = grow(w->lines.text, &w->lines.room, len + 1, 1);
	memcpy(w->lines.text, w->t.text, len);
	w->lines.text[len] = '\0';
	return true;
}

static bool walk_full(struct walk *w)
{
	w->stack = (struct stack) {};
	w->more = read_frame_lines(&w->lines, &w->t, &w->kind);
	w->ahead = true;
	w->nr_cut += !is_whole(&w->lines);
	return is_whole(&w->lines);
}

/* False at the end of the trace. The lines of a stack are taken at once. */
static bool next_line(struct walk *w)
{
	if (!w->ahead)
		w->more = read_line(&w->t, &w->kind);
	w->ahead = false;
	w->found = false;
	if (!w->more)
		return false;
	w->other = w->kind == LINE_OTHER;
	if (w->kind == LINE_IDS || w->kind == LINE_FULL) {
		w->has_context = parse_context(&w->t, &w->context);
		w->found = w->kind == LINE_IDS ? walk_ids(w) : walk_full(w);
	}
	return true;
}

/* The frames are those behind the map's, until someone keeps them by raising nr_ips. */
static const struct stack *walk_frames(struct walk *w)
{
	if (!w->stack.nr)
		take_frame_lines(w->map, &w->stack, w->lines.text);
	return &w->stack;
}

struct count {
	bool		by_task;
	struct map	whole;		/* the stacks of the trace */
	size_t		room_tasks;
	struct intern	seen;		/* the stacks' keys */
};

/* Returns the stack of @key. A new one has no frames yet. */
static struct stack *count_key(struct count *c, const char *key)
{
	size_t i = intern(&c->seen, key);
	struct map *w = &c->whole;

	if (i == w->nr_stacks) {
		w->stacks = grow(w->stacks, &w->room_stacks, i + 1, sizeof(*w->stacks));
		w->stacks[w->nr_stacks++] = (struct stack) { .id = i };
	}
	w->stacks[i].ref++;
	return &w->stacks[i];
}

/* Stacks of several tasks are told apart by what precedes the key. */
static struct stack *count_by_task(struct count *c, struct walk *w)
{
	struct task *task = &w->context.task;
	struct map *m = &c->whole;
	struct stack *s;
	char *key;

	if (!w->has_context)
		*task = (struct task) {};
	key = format("%s\n%u\n%s", task->comm, task->pid, w->lines.text);
	s = count_key(c, key);
	free(key);
	m->tasks = grow(m->tasks, &c->room_tasks, m->nr_stacks, sizeof(*m->tasks));
	m->tasks[s->id] = *task;
	return s;
}

static void count_stack(struct count *c, struct walk *w)
{
	struct stack *s = c->by_task ? count_by_task(c, w) : count_key(c, w->lines.text);
	const struct stack *new;

	if (s->nr)
		return;
	new = walk_frames(w);
	s->first = new->first;
	s->nr = new->nr;
	s->named = new->named;
	w->map->nr_ips += new->nr;
}

/* Replaces the stacks of the map by those of the trace. */
static int count_stacks(struct map *m, bool by_task, const struct config *cfg)
{
	int ret = read_definitions(m, cfg);
	struct count c = { .by_task = by_task };
	struct walk w;

	walk_start(&w, m, cfg);
	while (next_line(&w)) {
		if (w.found)
			count_stack(&c, &w);
	}
	walk_end(&w);
	free(m->stacks);
	m->stacks = c.whole.stacks;
	m->tasks = c.whole.tasks;
	m->nr_stacks = c.whole.nr_stacks;
	m->room_stacks = c.whole.room_stacks;
	if (!m->nr_stacks && cfg->saved_trace)
		note("%s has no stacks (--map-only prints those of the map)", cfg->trace);
	intern_free(&c.seen);
	return ret;
}
