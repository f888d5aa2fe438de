// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks as the names of their functions, for flame graphs. Stacks that differ only in offsets are
 * merged.
 */
#include "util.h"
#include "view.h"

u32 name_frame(struct map *m, const struct stack *s, u32 i, struct pool *names)
{
	struct frame *f = frame_get(m, s, i);
	char *full __free(pointer) = NULL;
	const char *mod, *name;

	if (f->uid)
		return f->uid;
	name = frame_name(f, &mod);
	if (mod)
		full = format("%s[%s]", name, mod);
	f->uid = intern(names, full ? full : name);
	return f->uid;
}

/* The most frequent first, so that they have the lowest numbers in @p. */
void merge_stacks(struct map *m, struct paths *p, const struct config *cfg)
{
	struct pool known = {};
	struct stack *s;
	size_t i, n = 0;
	u32 frame, nr;

	p->uids = check_mem(calloc(m->nr_ips + 1, sizeof(*p->uids)));
	sort_stacks(m, SORT_REF);
	for (i = 0; i < m->nr_stacks; i++) {
		s = &m->stacks[i];
		if (!s->nr || !stack_matches(m, s, cfg))
			continue;
		for (frame = 0; frame < s->nr; frame++)
			p->uids[s->first + frame] = name_frame(m, s, frame, &p->names);
		nr = pool_add(&known, p->uids + s->first, s->nr);
		if (nr > n)
			m->stacks[n++] = *s;
		else
			m->stacks[nr - 1].ref += s->ref;
	}
	m->nr_stacks = n;
	pool_free(&known);
}

void paths_free(struct paths *p)
{
	pool_free(&p->names);
	free(p->uids);
}

static const struct paths *sorted_paths;

static int compare_paths(const void *a, const void *b)
{
	const struct stack *sa = a, *sb = b;
	const u64 *ua = sorted_paths->uids + sa->first, *ub = sorted_paths->uids + sb->first;
	u32 ia = sa->nr, ib = sb->nr;

	while (ia && ib) {
		if (ua[--ia] != ub[--ib])
			return compare_u64(ua[ia], ub[ib]);
	}
	return compare_u64(ia, ib);
}

/* Callers side by side, the most frequent first. */
void sort_by_path(struct map *m, const struct paths *p)
{
	sorted_paths = p;
	sort_array(m->stacks, m->nr_stacks, sizeof(*m->stacks), compare_paths);
}
