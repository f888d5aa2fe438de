// SPDX-License-Identifier: GPL-2.0
/* Selects and sorts the stacks. */
#include "frame.h"
#include "util.h"
#include "view.h"

static enum sort_key sort_key;

int compare_u64(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

static int compare_stacks(const void *a, const void *b)
{
	const struct stack *sa = a, *sb = b;
	int ret = 0;

	if (sort_key == SORT_REF)
		ret = compare_u64(sb->ref, sa->ref);
	else if (sort_key == SORT_DEPTH)
		ret = compare_u64(sb->nr, sa->nr);
	return ret ? ret : compare_u64(sa->id, sb->id);
}

void sort_stacks(struct map *m, enum sort_key key)
{
	sort_key = key;
	sort_array(m->stacks, m->nr_stacks, sizeof(*m->stacks), compare_stacks);
}

bool stack_matches(struct map *m, const struct stack *s, const struct config *cfg)
{
	struct frame *f;
	u32 i;

	for (i = 0; cfg->has_grep && i < s->nr; i++) {
		f = frame_get(m, s, i);
		if (f->matches < 0)
			f->matches = !regexec(&cfg->grep, frame_text(f), 0, NULL, 0);
		if (f->matches)
			return true;
	}
	return !cfg->has_grep;
}

void select_stacks(struct map *m, const struct config *cfg)
{
	size_t i, n = 0;

	for (i = 0; i < m->nr_stacks; i++) {
		if (m->stacks[i].ref >= cfg->min_ref && stack_matches(m, &m->stacks[i], cfg))
			m->stacks[n++] = m->stacks[i];
	}
	m->nr_stacks = n;
	sort_stacks(m, cfg->sort);
	if (cfg->top && m->nr_stacks > cfg->top)
		m->nr_stacks = cfg->top;
}
