// SPDX-License-Identifier: GPL-2.0
/*
 * --annotate: the text of trace, trace_pipe or trace-cmd report, with the frames of each stack
 * under the line that has its id. Frames that the kernel printed itself are replaced, so what was
 * annotated once can be annotated again. The parts of a stack that the kernel has split where an
 * interrupt had hit are joined here; with --folded and --speedscope, too, which then show the
 * stacks of the trace.
 */

static int compare_id(const void *key, const void *elem)
{
	const struct stack *s = elem;

	return compare_u64(*(const u32 *)key, s->id);
}

/*
 * What a line of a trace has of a stack: the ids of its parts, innermost first, and between each
 * two of them the address that an interrupt has hit. Most stacks have one part.
 */
struct stack_ids {
	u32	nr;
	u32	id[MAX_PARTS];
	u64	ip[MAX_PARTS];
	bool	more;		/* trace-cmd has not printed all parts */
};

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
 * The last id that trace-cmd prints still has the sign bit that tells that more follow. Its field
 * is 32 or 64 bits wide, so it comes out below 0 or above INT32_MAX.
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
 * "42>" or "42 @ffffffff81000000 43>". trace-cmd always prints four parts, those that are not there
 * as "@0 -1".
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

static bool parse_ids(const char *p, const char *name, bool split, struct stack_ids *ids)
{
	size_t len = strlen(name);

	if (strncmp(p, name, len))
		return false;
	p += len;
	return parse_parts(&p, ids) && (ids->nr > 1) == split;
}

/* The ids that @line ends with, or that a field of its name has in a raw report. */
static char *ids_of_line(char *line, struct stack_ids *ids)
{
	char *id = strstr(line, "<stack_id "), *split = strstr(line, "<stack_split ");

	if (id && parse_ids(id, "<stack_id ", false, ids))
		return id;
	if (split && parse_ids(split, "<stack_split ", true, ids))
		return split;
	return NULL;
}

static void note_more(size_t nr, const struct config *cfg)
{
	if (nr)
		note("%s: %zu stacks have more than %u parts, which trace-cmd does not print",
		     cfg->trace, nr, PRINTED_PARTS);
}

static const struct stack *find_stack(const struct map *m, u32 id)
{
	return m->nr_stacks ? bsearch(&id, m->stacks, m->nr_stacks, sizeof(*m->stacks),
				      compare_id) : NULL;
}

static void add_ips(struct map *m, struct stack *whole, const u64 *ips, u32 nr)
{
	memcpy(m->ips + whole->first + whole->nr, ips, nr * sizeof(*ips));
	whole->nr += nr;
}

/* Joins the parts behind all other frames of the map; false if one of them is not there. */
static bool join_parts(struct map *m, const struct stack_ids *ids, struct stack *whole)
{
	const struct stack *part[MAX_PARTS];
	size_t need = m->nr_ips;
	u32 i;

	for (i = 0; i < ids->nr; i++) {
		part[i] = find_stack(m, ids->id[i]);
		if (!part[i])
			return false;
		need += part[i]->nr + 1;
	}
	m->ips = grow(m->ips, &m->room_ips, need, sizeof(*m->ips));
	*whole = (struct stack) { .id = ids->id[0], .first = m->nr_ips };
	for (i = 0; i < ids->nr; i++) {
		if (i)
			add_ips(m, whole, &ids->ip[i - 1], 1);
		add_ips(m, whole, m->ips + part[i]->first, part[i]->nr);
	}
	return true;
}

static bool is_frame_line(const char *line)
{
	return !strncmp(line, " => ", 4);
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

/* After a line with an id, its own frames if it has any are dropped when ours are better. */
static void annotate_lines(struct map *m, FILE *f, const struct config *cfg)
{
	size_t room = 0, nr_missing = 0, nr_more = 0;
	bool drop = false, missing = false;
	struct stack_ids ids;
	char *line = NULL;

	while (getline(&line, &room, f) >= 0) {
		if (is_frame_line(line)) {
			missing = false;
			if (drop)
				continue;
		} else {
			drop = false;
		}
		if (missing)
			puts(" => [not in this map]");
		missing = false;
		fputs(line, stdout);
		if (!ids_of_line(line, &ids))
			continue;
		nr_more += ids.more;
		if (ids.more)
			continue;
		if (!strchr(line, '\n'))
			putchar('\n');
		drop = annotate_ids(m, &ids, cfg);
		missing = !drop;
		nr_missing += missing;
	}
	if (missing)
		puts(" => [not in this map]");
	if (nr_missing)
		note("%s: %zu ids are not in %s", cfg->trace, nr_missing, m->name);
	note_more(nr_more, cfg);
	free(line);
}

/* Each different stack of a trace once, with the number of times that it is there. */
static void count_lines(struct map *m, FILE *f, struct map *whole, const struct config *cfg)
{
	size_t room = 0, nr_missing = 0, nr_more = 0, nr_full = 0, i;
	struct intern seen = {};
	struct stack_ids ids;
	struct stack stack;
	char *line = NULL;
	char *p;

	while (getline(&line, &room, f) >= 0) {
		nr_full += !!strstr(line, ": <stack trace>");
		p = ids_of_line(line, &ids);
		nr_more += p && ids.more;
		if (!p || ids.more)
			continue;
		if (!join_parts(m, &ids, &stack)) {
			nr_missing++;
			continue;
		}
		*strchr(p, '>') = '\0';
		i = intern(&seen, p);
		if (i == whole->nr_stacks) {
			whole->stacks = grow(whole->stacks, &whole->room_stacks, i + 1,
					     sizeof(*whole->stacks));
			stack.id = i;
			whole->stacks[whole->nr_stacks++] = stack;
			m->nr_ips += stack.nr;
		}
		whole->stacks[i].ref += whole->stacks[i].ref < UINT32_MAX;
	}
	if (nr_missing)
		note("%s: %zu ids are not in %s", cfg->trace, nr_missing, m->name);
	note_more(nr_more, cfg);
	if (nr_full)
		note("%zu stacks that the map had no space for are left out", nr_full);
	intern_free(&seen);
	free(line);
}

/* Puts the stacks of the trace in the place of those of the map. */
static void count_stacks(struct map *m, FILE *f, const struct config *cfg)
{
	struct map whole = {};

	sort_stacks(m, SORT_ID);
	count_lines(m, f, &whole, cfg);
	free(m->stacks);
	m->stacks = whole.stacks;
	m->nr_stacks = whole.nr_stacks;
	m->room_stacks = whole.room_stacks;
}

static FILE *open_trace(const struct config *cfg)
{
	FILE *f = strcmp(cfg->trace, "-") ? fopen(cfg->trace, "re") : stdin;

	if (!f)
		complain("%s: %s", cfg->trace, strerror(errno));
	return f;
}

static int close_trace(FILE *f, const struct config *cfg)
{
	int ret = 0;

	if (ferror(f)) {
		complain("%s: %s", cfg->trace, strerror(errno));
		ret = 1;
	}
	if (f != stdin)
		fclose(f);
	return ret;
}

static int take_stacks_of_trace(struct map *m, const struct config *cfg)
{
	FILE *f = open_trace(cfg);

	if (!f)
		return 1;
	count_stacks(m, f, cfg);
	return close_trace(f, cfg);
}

static int annotate(struct map *m, const struct config *cfg)
{
	FILE *f = open_trace(cfg);

	if (!f)
		return 1;
	sort_stacks(m, SORT_ID);
	annotate_lines(m, f, cfg);
	return close_trace(f, cfg);
}
