// SPDX-License-Identifier: GPL-2.0
/*
 * --annotate: print the text of trace, trace_pipe or trace-cmd report, with the frames of each
 * stack below the line that has its id. Frames that the kernel printed are replaced, so the output
 * can be annotated again. The parts of a stack that an interrupt split are joined.
 */

static int compare_id(const void *key, const void *elem)
{
	const struct stack *s = elem;

	return compare_u64(*(const u32 *)key, s->id);
}

static void note_missing(size_t nr, const struct map *m, const struct config *cfg)
{
	if (!nr)
		return;
	if (m->no_file)
		note("%s: %zu ids are not defined there (give a map with them)", cfg->trace, nr);
	else
		note("%s: %zu ids are not in %s", cfg->trace, nr, m->name);
}

static void note_more(size_t nr, const struct config *cfg)
{
	if (nr)
		note("%s: %zu stacks are not resolved: trace-cmd prints only %u of their parts",
		     cfg->trace, nr, PRINTED_PARTS);
}

static const struct stack *find_stack(const struct map *m, u32 id)
{
	return m->nr_stacks ? bsearch(&id, m->stacks, m->nr_stacks, sizeof(*m->stacks),
				      compare_id) : NULL;
}

static void append_ip(struct map *m, struct stack *whole, u64 ip)
{
	if (whole->named)
		ip = name_index(m, frame_text(frame_fill(m, ip, true)));
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
			word = name_index(m, frame_text(frame_get(m, part, i)));
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
		part[i] = find_stack(m, ids->id[i]);
		if (!part[i] || part[i]->ambiguous)
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

static bool annotate_ids(struct map *m, const struct stack_ids *ids, const struct config *cfg)
{
	struct stack whole;
	u32 i;

	if (!join_parts(m, ids, &whole))
		return false;
	for (i = 0; i < whole.nr; i++)
		print_frame(m, &whole, i, " => ", cfg);
	return true;
}

/* Frames that the kernel printed below an id are dropped if the map has the stack. */
static void annotate_lines(struct map *m, const struct config *cfg)
{
	size_t nr_missing = 0, nr_more = 0;
	bool drop = false, missing = false;
	struct trace t = { .f = cfg->trace_file };
	enum line_kind kind;

	while (read_line(&t, &kind)) {
		if (kind == LINE_FRAME && drop)
			continue;
		if (kind != LINE_FRAME && missing)
			puts(" => [not in this map]");
		drop &= kind == LINE_FRAME;
		missing = false;
		fwrite(t.line, 1, t.len, stdout);
		if (kind != LINE_IDS)
			continue;
		nr_more += t.ids.more;
		if (t.ids.more)
			continue;
		if (t.line[t.len - 1] != '\n')
			putchar('\n');
		drop = annotate_ids(m, &t.ids, cfg);
		missing = !drop;
		nr_missing += missing;
	}
	if (missing)
		puts(" => [not in this map]");
	note_missing(nr_missing, m, cfg);
	note_more(nr_more, cfg);
	free(t.line);
}

static int annotate(struct map *m, const struct config *cfg)
{
	int ret = read_definitions(m, cfg);

	annotate_lines(m, cfg);
	return ret;
}
