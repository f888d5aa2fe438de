// SPDX-License-Identifier: GPL-2.0
/* "diff": of two maps, or of two recordings. */
#include "stackmap.h"

/*
 * Ids and addresses differ between two maps, the texts of the frames do not. So stacks
 * are compared by the texts, as numbers in one table. Those of recordings have names already.
 */
struct change {
	struct map	*map;
	struct stack	stack;		/* of all generations: the newest id */
	u64		refs[2];	/* in the new and in the old map, of all generations */
	long long	by;
};

/* @changes: of {text..., is_user} */
static struct change *get_change(struct pool *changes, struct pool *texts, struct map *m,
				 const struct stack *s)
{
	struct words w = {};
	struct pooled *e;
	struct frame *f;
	u32 i;

	if (m->merged)
		add_words(&w, m->ips + s->first, s->nr);
	for (i = 0; !m->merged && i < s->nr; i++) {
		f = frame_get(m, s, i);
		if (!f->uid)
			f->uid = intern(texts, f->text);
		add_word(&w, f->uid);
	}
	add_word(&w, s->user);
	e = pool_at(changes, pool_add(changes, w.w, w.nr));
	free(w.w);
	if (!e->ptr)
		e->ptr = check_mem(calloc(1, sizeof(struct change)));
	return e->ptr;
}

static void add_stacks(struct pool *changes, struct pool *texts, struct map *m, bool old)
{
	const struct stack *s;
	struct change *c;

	for (s = m->stacks; s != stacks_end(m); s++) {
		if (m->merged && !s->ref)
			continue;
		c = get_change(changes, texts, m, s);
		if (!c->map || (c->map == m && s->id > c->stack.id))
			c->stack = *s;
		c->map = c->map ? c->map : m;
		c->refs[old] += s->ref;
		c->by = c->refs[0] - c->refs[1];
	}
}

static int compare_by(const void *a, const void *b)
{
	const struct change *ca = ((const struct pooled *)a)->ptr;
	const struct change *cb = ((const struct pooled *)b)->ptr;

	return compare_u64(llabs(cb->by), llabs(ca->by)) ?:
	       compare_u64(ca->stack.id, cb->stack.id);
}

/* @names: of the functions of merged stacks */
static void print_change(struct change *c, struct pool *names, const struct config *cfg)
{
	printf("%+lld %s ", c->by, !c->refs[1] ? "new" : c->refs[0] ? "moved" : "gone");
	if (!c->map->merged) {
		print_stack(c->map, &c->stack, cfg);
		return;
	}
	printf("%llu", c->stack.ref);
	print_merged(c->map, &c->stack, names, cfg);
}

/* Flame graphs need what has not changed, too. */
static bool is_left_out(const struct change *c, const struct config *cfg)
{
	if (cfg->format == FORM_DIFF_FOLDED)
		return c->refs[0] < cfg->min_ref && c->refs[1] < cfg->min_ref;
	return !c->by || (u64)llabs(c->by) < cfg->min_ref;
}

void print_diff(struct map *m, struct map *old, struct pool *names, const struct config *cfg)
{
	bool folded = cfg->format == FORM_DIFF_FOLDED;
	struct pool changes = {}, texts = {};
	struct change *c;
	size_t i, n = 0;

	for (i = 1; folded && i <= names->nr; i++)
		folded_name(pool_string(names, i));
	add_stacks(&changes, &texts, m, false);
	add_stacks(&changes, &texts, old, true);
	pool_sort(&changes, compare_by);
	for (i = 1; i <= changes.nr && (!cfg->top || n < cfg->top); i++) {
		c = changes.list[i].ptr;
		c->stack.ref = c->refs[0] ? c->refs[0] : c->refs[1];
		if (is_left_out(c, cfg) || !stack_matches(c->map, &c->stack, cfg))
			continue;
		n++;
		if (!folded) {
			print_change(c, names, cfg);
			continue;
		}
		print_path(c->map, &c->stack, names);
		printf("%llu %llu\n", c->refs[1], c->refs[0]);
	}
	pool_free_all(&changes);
	pool_free(&texts);
}
