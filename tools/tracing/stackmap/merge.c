// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks as the names of their functions, for flame graphs. Stacks that differ only in offsets are
 * merged.
 */
#include "cleanup.h"
#include "frame.h"
#include "util.h"
#include "view.h"

static u32 add_name(struct frame *f, struct intern *names)
{
	char *full __free(pointer) = NULL;
	const char *mod, *name = frame_name(f, &mod);

	if (mod)
		full = format("%s[%s]", name, mod);
	return intern(names, full ? full : name);
}

/* Symbols are remembered, because frames are not for long. */
u32 name_frame(struct map *m, const struct stack *s, u32 i, struct paths *p)
{
	struct frame *f = frame_get(m, s, i);
	u64 *known;

	if (f->uid)
		return f->uid - 1;
	if (f->sym) {
		known = pool_find(&p->symbols, (uintptr_t)f->sym, 0);
		if (!*known)
			*known = add_name(f, &p->names) + 1;
		f->uid = *known;
	} else {
		f->uid = add_name(f, &p->names) + 1;
	}
	return f->uid - 1;
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
			p->uids[s->first + frame] = name_frame(m, s, frame, p);
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
	intern_free(&p->names);
	pool_free(&p->symbols);
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
