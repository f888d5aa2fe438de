// SPDX-License-Identifier: GPL-2.0
/* --summary and --diff. */
#include "symbols.h"
#include "util.h"
#include "view.h"

#define GENERATION_SHIFT	19

/* A map that replaces another one stores the stacks that stay in use anew. */
static void count_different(const struct map *m, size_t *nr_stacks, size_t *nr_ids)
{
	struct pool stacks = {}, ids = {};
	struct words w = {};
	const struct stack *s;
	size_t i;

	for (i = 0; i < m->nr_stacks; i++) {
		s = &m->stacks[i];
		w.nr = 0;
		add_word(&w, s->id);
		pool_add(&ids, w.w, 1);
		w.w[0] >>= GENERATION_SHIFT;
		add_word(&w, s->user);
		add_words(&w, m->ips + s->first, s->nr);
		pool_add(&stacks, w.w, w.nr);
	}
	*nr_stacks = stacks.nr;
	*nr_ids = ids.nr;
	pool_free(&stacks);
	pool_free(&ids);
	free(w.w);
}

#define DEPTH_BUCKETS	11	/* 1, 2-3, 4-7, ... 1024 */
#define BAR_WIDTH	40

static void print_bucket(unsigned int bucket, size_t nr, size_t most)
{
	unsigned int lo = 1U << bucket, hi = lo * 2 - 1;
	char range[24];

	snprintf(range, sizeof(range), lo == hi ? "%u" : "%u-%u", lo, hi);
	printf("  %9s %8zu |", range, nr);
	for (nr = (nr * BAR_WIDTH + most - 1) / most; nr; nr--)
		putchar('#');
	putchar('\n');
}

static void print_depths(const struct map *m)
{
	size_t i, buckets[DEPTH_BUCKETS] = {}, most = 1;
	unsigned int b, first = DEPTH_BUCKETS, last = 0;

	for (i = 0; i < m->nr_stacks; i++) {
		b = 31 - __builtin_clz(m->stacks[i].nr | 1);
		buckets[b]++;
		most = buckets[b] > most ? buckets[b] : most;
		first = b < first ? b : first;
		last = b > last ? b : last;
	}
	for (b = first; b <= last && b < DEPTH_BUCKETS; b++)
		print_bucket(b, buckets[b], most);
}

static void print_shares(struct map *m)
{
	u64 all = 0, top = 0;
	size_t i, saturated = 0;

	sort_stacks(m, SORT_REF);
	for (i = 0; i < m->nr_stacks; i++) {
		all += m->stacks[i].ref;
		top += i < 10 ? m->stacks[i].ref : 0;
		saturated += m->stacks[i].ref == UINT32_MAX;
	}
	printf("references: %llu\n", all);
	if (m->split)
		printf("split by interrupts: %llu\n", m->split);
	printf("top 10 hold: %.1f%%\n", all ? 100.0 * top / all : 0.0);
	if (saturated)
		printf("counts at their limit: %zu (the references are more)\n", saturated);
}

static void print_kernel(const struct map *m)
{
	char *id __free(pointer) = build_id_text(&m->build_id);

	printf("kernel: %s%s%s\n", *m->release ? m->release : "unknown",
	       *id ? ", build id " : "", id);
}

static void print_users(const struct map *m)
{
	size_t i, nr = 0;

	for (i = 0; i < m->nr_stacks; i++)
		nr += m->stacks[i].user;
	if (nr)
		printf("stacks of user space: %zu\n", nr);
}

/* Returns 1 if there are duplicates, which the kernel never makes. */
int print_summary(struct map *m)
{
	size_t stacks, ids;

	print_kernel(m);
	printf("symbols: %s\n", m->source);
	printf("stacks: %zu\nframes: %zu\n", m->nr_stacks, m->nr_ips);
	print_users(m);
	print_shares(m);
	puts("depth:");
	print_depths(m);
	count_different(m, &stacks, &ids);
	printf("duplicates: %zu stacks, %zu ids\n", m->nr_stacks - stacks, m->nr_stacks - ids);
	return stacks < m->nr_stacks || ids < m->nr_stacks;
}

/*
 * --diff. Ids and addresses differ between two maps, the texts of the frames do not. So stacks
 * are compared by the texts, as numbers in one table.
 */
struct change {
	struct map	*map;
	struct stack	stack;		/* of all generations: the newest id */
	u64		refs[2];	/* in the new and in the old map, of all generations */
	bool		in[2];
	long long	by;
};

struct changes {
	struct pool	texts;
	struct pool	stacks;		/* of {is_user, text...} */
	struct change	*list;		/* at the numbers of the stacks minus 1 */
};

static struct change *get_change(struct changes *cs, struct map *m, const struct stack *s)
{
	size_t known = cs->stacks.nr, nr;
	struct words w = {};
	struct frame *f;
	u32 i;

	add_word(&w, s->user);
	for (i = 0; i < s->nr; i++) {
		f = frame_get(m, s, i);
		if (!f->uid)
			f->uid = intern(&cs->texts, frame_text(f));
		add_word(&w, f->uid);
	}
	nr = pool_add(&cs->stacks, w.w, w.nr);
	free(w.w);
	if (nr > known) {
		cs->list = grow(cs->list, known, 1, sizeof(*cs->list));
		cs->list[nr - 1] = (struct change) { .map = m, .stack = *s };
	}
	return &cs->list[nr - 1];
}

static void add_stacks(struct changes *cs, struct map *m, bool old)
{
	const struct stack *s;
	struct change *c;
	size_t i;

	for (i = 0; i < m->nr_stacks; i++) {
		s = &m->stacks[i];
		c = get_change(cs, m, s);
		if (c->map == m && s->id > c->stack.id)
			c->stack.id = s->id;
		c->refs[old] += s->ref;
		c->in[old] = true;
		c->by = c->refs[0] - c->refs[1];
	}
}

static int compare_by(const void *a, const void *b)
{
	const struct change *ca = a, *cb = b;
	int ret = compare_u64(llabs(cb->by), llabs(ca->by));

	return ret ? ret : compare_u64(ca->stack.id, cb->stack.id);
}

/* A stack that is new or gone is a change even without references. */
static bool is_change(const struct change *c, const struct config *cfg)
{
	if (!c->by && c->in[0] && c->in[1])
		return false;
	return (u64)llabs(c->by) >= cfg->min_ref && stack_matches(c->map, &c->stack, cfg);
}

static void print_change(struct change *c, const struct config *cfg)
{
	c->stack.ref = c->refs[!c->in[0]];
	printf("%+lld %s ", c->by, !c->in[1] ? "new" : c->in[0] ? "moved" : "gone");
	print_stack(c->map, &c->stack, cfg);
}

void print_diff(struct map *m, struct map *old, const struct config *cfg)
{
	struct changes cs = {};
	size_t i, n = 0;

	add_stacks(&cs, m, false);
	add_stacks(&cs, old, true);
	for (i = 0; i < cs.stacks.nr; i++) {
		if (is_change(&cs.list[i], cfg))
			cs.list[n++] = cs.list[i];
	}
	sort_array(cs.list, n, sizeof(*cs.list), compare_by);
	for (i = 0; i < n && (!cfg->top || i < cfg->top); i++)
		print_change(&cs.list[i], cfg);
	free(cs.list);
	pool_free(&cs.stacks);
	pool_free(&cs.texts);
}
