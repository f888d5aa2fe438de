// SPDX-License-Identifier: GPL-2.0
/*
 * --annotate: the text of trace, trace_pipe or trace-cmd report, with the frames of each stack
 * under the line that has its id. Frames that the kernel printed itself are replaced, so what was
 * annotated once can be annotated again.
 */

static int compare_id(const void *key, const void *elem)
{
	const struct stack *s = elem;

	return compare_u64(*(const u32 *)key, s->id);
}

/* The id that @line ends with, or that a field of its name has in a raw report; -1: none. */
static long long id_of_line(const char *line)
{
	const char *p = strstr(line, "<stack_id ");
	char *end;
	long id;

	if (!p)
		return -1;
	p += strlen("<stack_id ");
	if (!isdigit((unsigned char)*p))
		return -1;
	errno = 0;
	id = strtol(p, &end, 10);
	return *end == '>' && !errno && id <= INT32_MAX ? id : -1;
}

static bool is_frame_line(const char *line)
{
	return !strncmp(line, " => ", 4);
}

static bool annotate_id(struct map *m, u32 id, const struct config *cfg)
{
	const struct stack *s = NULL;
	u32 i;

	if (m->nr_stacks)
		s = bsearch(&id, m->stacks, m->nr_stacks, sizeof(*s), compare_id);
	for (i = 0; s && i < s->nr; i++)
		print_frame(m, s, i, " => ", cfg);
	return s;
}

/* After a line with an id, its own frames if it has any are dropped when ours are better. */
static size_t annotate_lines(struct map *m, FILE *f, const struct config *cfg)
{
	bool drop = false, missing = false;
	size_t room = 0, nr_missing = 0;
	char *line = NULL;
	long long id;

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
		id = id_of_line(line);
		if (id < 0)
			continue;
		if (!strchr(line, '\n'))
			putchar('\n');
		drop = annotate_id(m, id, cfg);
		missing = !drop;
		nr_missing += missing;
	}
	if (missing)
		puts(" => [not in this map]");
	free(line);
	return nr_missing;
}

static int annotate(struct map *m, const struct config *cfg)
{
	FILE *f = strcmp(cfg->trace, "-") ? fopen(cfg->trace, "re") : stdin;
	size_t nr_missing;
	int ret = 0;

	if (!f) {
		complain("%s: %s", cfg->trace, strerror(errno));
		return 1;
	}
	sort_stacks(m, SORT_ID);
	nr_missing = annotate_lines(m, f, cfg);
	if (nr_missing)
		note("%s: %zu ids are not in %s", cfg->trace, nr_missing, m->name);
	if (ferror(f)) {
		complain("%s: %s", cfg->trace, strerror(errno));
		ret = 1;
	}
	if (f != stdin)
		fclose(f);
	return ret;
}
