// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks as the names of their functions, for flame graphs. Stacks that differ only in offsets are
 * merged.
 */
#include "frame.h"
#include "util.h"
#include "view.h"

/* The numbers of symbols, which are asked for again when frame slots have been evicted. */
struct name_slot {
	const struct symbol	*sym;
	u32			uid;
};

#ifndef NAME_SLOTS
#define NAME_SLOTS	0x10000
#endif

static u32 intern_name(struct frame *f, struct intern *names)
{
	const char *mod, *name = frame_name(f, &mod);
	char *full;
	u32 uid;

	if (!mod)
		return intern(names, name);
	full = format("%s[%s]", name, mod);
	uid = intern(names, full);
	free(full);
	return uid;
}

static u32 name_uid(struct frame *f, struct paths *p)
{
	struct name_slot *slot = &p->slots[((uintptr_t)f->sym / sizeof(*f->sym)) % NAME_SLOTS];

	if (f->uid)
		return f->uid - 1;
	if (!f->sym || slot->sym != f->sym) {
		slot->sym = f->sym;
		slot->uid = intern_name(f, &p->names);
	}
	f->uid = slot->uid + 1;
	return slot->uid;
}

static void name_frames(struct map *m, struct paths *p, const struct stack *s)
{
	u32 i;

	frames_prefetch(m, s);
	for (i = 0; i < s->nr; i++)
		p->uids[s->first + i] = name_uid(frame_get(m, s, i), p);
}

static bool same_path(const struct paths *p, const struct stack *a, const struct stack *b)
{
	return a->nr == b->nr &&
	       !memcmp(p->uids + a->first, p->uids + b->first, a->nr * sizeof(*p->uids));
}

static u64 hash_path(const struct paths *p, const struct stack *s)
{
	u64 hash = 0;
	u32 i;

	for (i = 0; i < s->nr; i++)
		hash = (hash ^ p->uids[s->first + i]) * 0x9E3779B97F4A7C15ULL;
	return hash ^ hash >> 32;
}

/* The stacks so far, by hash: each slot has an index plus 1. */
struct path_table {
	u32	*slots;
	size_t	mask;
};

static u32 *find_path(const struct path_table *t, const struct map *m, const struct paths *p,
		      const struct stack *s)
{
	size_t i = hash_path(p, s);
	u32 *slot;

	for (;; i++) {
		slot = &t->slots[i & t->mask];
		if (!*slot || same_path(p, &m->stacks[*slot - 1], s))
			return slot;
	}
}

/* The most frequent first, so that they have the lowest numbers in @p. */
void merge_stacks(struct map *m, struct paths *p, const struct config *cfg)
{
	struct path_table t = { .mask = 1 };
	struct stack *s;
	size_t i, n = 0;
	u32 *slot;

	while (t.mask < 2 * m->nr_stacks)
		t.mask = 2 * t.mask + 1;
	t.slots = check_mem(calloc(t.mask + 1, sizeof(*t.slots)));
	p->uids = check_mem(calloc(m->nr_ips + 1, sizeof(*p->uids)));
	p->slots = check_mem(calloc(NAME_SLOTS, sizeof(*p->slots)));
	sort_stacks(m, SORT_REF);
	for (i = 0; i < m->nr_stacks; i++) {
		s = &m->stacks[i];
		if (!s->nr || !stack_matches(m, s, cfg))
			continue;
		name_frames(m, p, s);
		slot = find_path(&t, m, p, s);
		if (*slot) {
			m->stacks[*slot - 1].ref += s->ref;
		} else {
			m->stacks[n] = *s;
			*slot = ++n;
		}
	}
	m->nr_stacks = n;
	free(t.slots);
}

void paths_free(struct paths *p)
{
	intern_free(&p->names);
	free(p->uids);
	free(p->slots);
}

static const struct paths *sorted_paths;

static int compare_paths(const void *a, const void *b)
{
	const struct stack *sa = a, *sb = b;
	const u32 *ua = sorted_paths->uids + sa->first, *ub = sorted_paths->uids + sb->first;
	u32 ia = sa->nr, ib = sb->nr;

	while (ia && ib) {
		if (ua[--ia] != ub[--ib])
			return ua[ia] < ub[ib] ? -1 : 1;
	}
	return compare_u64(ia, ib);
}

/* Callers side by side, the most frequent first. */
void sort_by_path(struct map *m, const struct paths *p)
{
	sorted_paths = p;
	sort_array(m->stacks, m->nr_stacks, sizeof(*m->stacks), compare_paths);
}
