// SPDX-License-Identifier: GPL-2.0
/* --annotate with --folded or --speedscope: count the distinct stacks of a trace. */

struct count {
	struct map	*map;
	struct map	whole;		/* the stacks of the trace */
	struct intern	seen;		/* their ids or frames, as text */
	struct intern	names;		/* of the frames in map->named */
	char		*full;		/* the frames of a full stack, a line for each */
	size_t		room_full;
	size_t		nr_missing;
	size_t		nr_more;
	size_t		nr_cut;
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
	w->stacks[i].ref += w->stacks[i].ref < UINT32_MAX;
	return &w->stacks[i];
}

static void count_ids(struct count *c, struct trace *t)
{
	struct stack stack, *s;

	if (t->ids.more) {
		c->nr_more++;
		return;
	}
	if (!join_parts(c->map, &t->ids, &stack)) {
		c->nr_missing++;
		return;
	}
	*strchr(t->text, '>') = '\0';
	s = count_key(c, t->text);
	if (!s->nr) {
		s->first = stack.first;
		s->nr = stack.nr;
		c->map->nr_ips += stack.nr;
	}
}

static size_t name_index(struct count *c, const char *name)
{
	size_t i = intern(&c->names, name);

	return i == c->map->nr_named ? add_named(c->map, name) : i;
}

static size_t frame_index(struct count *c, const struct printed_frame *f)
{
	char *name = f->text ? copy_string(f->text) : format("0x%llx", f->ip);
	size_t i = name_index(c, name);

	free(name);
	return i;
}

static bool is_known(const struct map *m, const struct printed_frame *f, bool exact)
{
	return f->has_ip && (is_trampoline(f->ip) || find_symbol(m, f->ip, exact));
}

static bool add_frame(struct count *c, struct stack *s, char *line)
{
	struct map *m = c->map;
	struct printed_frame f;

	parse_frame(line, &f);
	if (!s->named && !is_known(m, &f, !s->nr))
		return false;
	m->ips = grow(m->ips, &m->room_ips, s->first + s->nr + 1, sizeof(*m->ips));
	m->ips[s->first + s->nr++] = s->named ? frame_index(c, &f) : f.ip;
	return true;
}

static bool add_frames(struct count *c, struct stack *s)
{
	char *copy = copy_string(c->full), *next = copy, *line;
	bool ok = true;

	while (ok && (line = strsep(&next, "\n")) && *line)
		ok = add_frame(c, s, line);
	free(copy);
	return ok;
}

/*
 * Uses the addresses if the trace has them and all have symbols. The stack then prints like one
 * of the map. Otherwise uses the names in the trace.
 */
static void count_full(struct count *c)
{
	struct stack *s = count_key(c, c->full);

	if (s->nr)
		return;
	s->first = c->map->nr_ips;
	if (!add_frames(c, s)) {
		s->named = true;
		s->nr = 0;
		add_frames(c, s);
	}
	c->map->nr_ips += s->nr;
}

/* Reads the frames of a full stack. Returns the kind of the line after them. */
static bool read_full(struct count *c, struct trace *t, enum line_kind *kind)
{
	bool more, cut = false;
	size_t len = 0;

	while ((more = read_line(t, kind)) && *kind == LINE_FRAME) {
		size_t n = strlen(t->line);

		cut |= t->line[n - 1] != '\n';
		c->full = grow(c->full, &c->room_full, len + n + 1, 1);
		memcpy(c->full + len, t->line, n + 1);
		len += n;
	}
	if (cut || !len)
		c->nr_cut++;
	else
		count_full(c);
	return more;
}

static void count_lines(struct count *c, FILE *f)
{
	struct trace t = { .f = f };
	enum line_kind kind;
	bool more = read_line(&t, &kind);

	while (more) {
		if (kind == LINE_FULL) {
			more = read_full(c, &t, &kind);
			continue;
		}
		if (kind == LINE_IDS)
			count_ids(c, &t);
		more = read_line(&t, &kind);
	}
	free(t.line);
}

/* Replaces the stacks of the map by those of the trace. */
static void count_stacks(struct map *m, FILE *f, const struct config *cfg)
{
	struct count c = { .map = m };

	sort_stacks(m, SORT_ID);
	count_lines(&c, f);
	note_missing(c.nr_missing, m, cfg);
	note_more(c.nr_more, cfg);
	if (c.nr_cut)
		note("%s: left out %zu stacks that are cut off", cfg->trace, c.nr_cut);
	free(m->stacks);
	m->stacks = c.whole.stacks;
	m->nr_stacks = c.whole.nr_stacks;
	m->room_stacks = c.whole.room_stacks;
	intern_free(&c.seen);
	intern_free(&c.names);
	free(c.full);
}

static int take_stacks_of_trace(struct map *m, const struct config *cfg)
{
	FILE *f = open_trace(cfg);

	if (!f)
		return 1;
	count_stacks(m, f, cfg);
	return close_trace(f, cfg);
}
