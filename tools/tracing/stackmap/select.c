// SPDX-License-Identifier: GPL-2.0
/*
 * Selects and sorts stacks. For flame graphs, they become the names of their functions, and those
 * that differ only in offsets are merged.
 */
#include "stackmap.h"

/* The most frequent ones first. */
static int compare_stacks(const void *a, const void *b)
{
	const struct stack *sa = a, *sb = b;

	return compare_u64(sb->ref, sa->ref) ?: compare_u64(sa->id, sb->id);
}

void sort_stacks(struct map *m)
{
	sort_array(m->stacks, m->nr_stacks, sizeof(*m->stacks), compare_stacks);
}

bool stack_matches(struct map *m, const struct stack *s, const struct config *cfg)
{
	struct frame *f;
	u32 i;

	/* It is for addresses: merge_stacks() has done it. */
	if (!cfg->has_grep || m->merged)
		return true;
	for (i = 0; i < s->nr; i++) {
		f = frame_get(m, s, i);
		if (f->matches < 0)
			f->matches = !regexec(&cfg->grep, f->text, 0, NULL, 0);
		if (f->matches)
			return true;
	}
	return false;
}

void select_stacks(struct map *m, const struct config *cfg, size_t top)
{
	struct stack *s;
	size_t n = 0;

	for (s = m->stacks; s != stacks_end(m); s++) {
		if (s->ref >= cfg->min_ref && stack_matches(m, s, cfg))
			m->stacks[n++] = *s;
	}
	m->nr_stacks = n;
	sort_stacks(m);
	if (top && m->nr_stacks > top)
		m->nr_stacks = top;
}

static u32 name_frame(struct map *m, const struct stack *s, u32 i, struct pool *names)
{
	char *full __free(pointer) = NULL;
	struct frame *f = frame_get(m, s, i);
	const char *mod, *name;

	if (f->uid)
		return f->uid;
	name = frame_name(f, &mod);
	if (mod)
		full = format("%s[%s]", name, mod);
	f->uid = intern(names, full ? full : name);
	return f->uid;
}

/* Without or with its module. */
static bool is_named(const char *name, const char *function)
{
	size_t len = strlen(function);

	return !strncmp(name, function, len) && (!name[len] || name[len] == '[');
}

/*
 * Of the outermost call of a function, leaves what it calls, or turns round what calls it: the
 * function is the root then. Returns false if the stack has no such function.
 */
static bool cut_stack(struct map *m, struct stack *s, const struct pool *names,
		      const struct config *cfg)
{
	u64 *ips = m->ips + s->first, swap;
	u32 i = s->nr, a, b;

	while (i && !is_named(pool_string(names, ips[i - 1]), cfg->function)) {
		/* The stack of who ended a sleep is turned round. */
		if (!strcmp(pool_string(names, ips[--i]), WOKEN_BY))
			return false;
	}
	if (!i)
		return false;
	for (a = i - 1, b = s->nr - 1; cfg->callers && a < b; a++, b--) {
		swap = ips[a];
		ips[a] = ips[b];
		ips[b] = swap;
	}
	s->first += cfg->callers ? i - 1 : 0;
	s->nr = cfg->callers ? s->nr - i + 1 : i;
	if (cfg->direct && s->nr > 2) {
		s->first += s->nr - 2;
		s->nr = 2;
	}
	return true;
}

/*
 * Replaces addresses by the numbers of names, and adds up the stacks of a group that are equal
 * then. The most frequent names have the lowest numbers.
 */
void merge_stacks(struct map *m, struct pool *names, const struct config *cfg)
{
	struct pool known = {};
	struct words w = {};
	struct stack *s;
	u32 frame, nr;
	size_t n = 0;

	sort_stacks(m);
	for (s = m->stacks; s != stacks_end(m); s++) {
		if (!s->nr || !stack_matches(m, s, cfg))
			continue;
		/* From the end: a frame is looked up by the address before it, too. */
		for (frame = s->nr; frame--;)
			m->ips[s->first + frame] = name_frame(m, s, frame, names);
		if (cfg->function && !cut_stack(m, s, names, cfg))
			continue;
		s->nr = cfg->flat ? 0 : s->nr;
		w.nr = 0;
		add_words(&w, m->ips + s->first, s->nr);
		add_word(&w, (uintptr_t)s->task);
		add_word(&w, s->group);
		nr = pool_add(&known, w.w, w.nr);
		if (nr > n) {
			m->stacks[n++] = *s;
			continue;
		}
		spread_join(m, m->stacks[nr - 1].owner, s->owner);
		m->stacks[nr - 1].ref += s->ref;
		add_values(m->stacks[nr - 1].val, s->val);
	}
	m->nr_stacks = n;
	m->merged = true;
	pool_free(&known);
	free(w.w);
}

/* In percent. */
double share(u64 part, u64 all)
{
	return all ? 100.0 * part / all : 0;
}

u64 sum_of(const struct map *m)
{
	const struct stack *s;
	u64 sum = 0;

	for (s = m->stacks; s != stacks_end(m); s++)
		sum += s->ref;
	return sum;
}

void drop_tracers(struct map *m)
{
	struct stack *s;
	u32 n;

	for (s = m->stacks; s != stacks_end(m); s++) {
		n = s->user ? 0 : tracer_frames(&m->sym, m->ips + s->first, s->nr - s->nr_user);
		s->first += n;
		s->nr -= n;
	}
}
