// SPDX-License-Identifier: GPL-2.0
/* --summary and --diff. */
#include "frame.h"
#include "util.h"
#include "view.h"

#define GENERATION_SHIFT	19

static const struct map *sorted_map;

/* A map that replaces another one stores the stacks that stay in use anew. */
static int compare_in_generation(const void *a, const void *b)
{
	const struct stack *sa = a, *sb = b;
	const u64 *ia = sorted_map->ips + sa->first, *ib = sorted_map->ips + sb->first;
	u32 i;
	int ret;

	ret = compare_u64(sa->id >> GENERATION_SHIFT, sb->id >> GENERATION_SHIFT);
	if (!ret)
		ret = compare_u64(is_user_stack(sa), is_user_stack(sb));
	if (ret)
		return ret;
	if (sa->nr != sb->nr)
		return sa->nr < sb->nr ? -1 : 1;
	for (i = 0; i < sa->nr; i++) {
		ret = compare_u64(ia[i], ib[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static size_t count_duplicate_stacks(struct map *m)
{
	size_t i, nr = 0;

	sorted_map = m;
	sort_array(m->stacks, m->nr_stacks, sizeof(*m->stacks), compare_in_generation);
	for (i = 1; i < m->nr_stacks; i++)
		nr += !compare_in_generation(&m->stacks[i - 1], &m->stacks[i]);
	return nr;
}

static size_t count_duplicate_ids(struct map *m)
{
	size_t i, nr = 0;

	sort_stacks(m, SORT_ID);
	for (i = 1; i < m->nr_stacks; i++)
		nr += m->stacks[i - 1].id == m->stacks[i].id;
	return nr;
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
	size_t i;

	printf("kernel: %s", *m->release ? m->release : "unknown");
	if (m->build_id.len)
		printf(", build id ");
	for (i = 0; i < m->build_id.len; i++)
		printf("%02x", m->build_id.bytes[i]);
	putchar('\n');
}

static void print_users(const struct map *m)
{
	size_t i, nr = 0;

	for (i = 0; i < m->nr_stacks; i++)
		nr += is_user_stack(&m->stacks[i]);
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
	stacks = count_duplicate_stacks(m);
	ids = count_duplicate_ids(m);
	printf("duplicates: %zu stacks, %zu ids\n", stacks, ids);
	return stacks || ids;
}

/*
 * --diff. Ids and addresses differ between two maps, the texts of the frames do not. So stacks
 * are compared by the texts, as numbers in one table.
 */
struct change {
	struct map		*map;
	struct stack		stack;	/* of all generations: the sum, and the newest id */
	u32			*uids;
	long long			by;
	const char		*kind;
};

static u32 frame_uid(struct map *m, const struct stack *s, u32 i, struct intern *texts)
{
	struct frame *f = frame_get(m, s, i);

	if (!f->uid)
		f->uid = intern(texts, frame_text(f)) + 1;
	return f->uid;
}

/* An entry for each stack; *uids holds the numbers of all their frames. The caller frees both. */
static struct change *list_stacks(struct map *m, struct intern *texts, u32 **uids)
{
	struct change *list = check_mem(calloc(m->nr_stacks + 1, sizeof(*list)));
	const struct stack *s;
	u32 frame;
	size_t i;

	*uids = check_mem(calloc(m->nr_ips + 1, sizeof(**uids)));
	for (i = 0; i < m->nr_stacks; i++) {
		s = &m->stacks[i];
		list[i] = (struct change) { .map = m, .stack = *s, .uids = *uids + s->first };
		for (frame = 0; frame < s->nr; frame++)
			list[i].uids[frame] = frame_uid(m, s, frame, texts);
	}
	return list;
}

static int compare_changes(const void *a, const void *b)
{
	const struct change *ca = a, *cb = b;
	int ret = compare_u64(is_user_stack(&ca->stack), is_user_stack(&cb->stack));
	u32 i;

	if (ret)
		return ret;
	if (ca->stack.nr != cb->stack.nr)
		return ca->stack.nr < cb->stack.nr ? -1 : 1;
	for (i = 0; i < ca->stack.nr; i++) {
		if (ca->uids[i] != cb->uids[i])
			return ca->uids[i] < cb->uids[i] ? -1 : 1;
	}
	return 0;
}

/* Equal stacks, of several generations, become one. */
static size_t merge_generations(struct change *list, size_t nr)
{
	struct stack *last = NULL;
	size_t i, n = 0;

	sort_array(list, nr, sizeof(*list), compare_changes);
	for (i = 0; i < nr; i++) {
		if (!n || compare_changes(&list[n - 1], &list[i])) {
			list[n] = list[i];
			last = &list[n++].stack;
			continue;
		}
		last->ref += list[i].stack.ref;
		last->id = list[i].stack.id > last->id ? list[i].stack.id : last->id;
	}
	return n;
}

static int compare_by(const void *a, const void *b)
{
	const struct change *ca = a, *cb = b;
	int ret = compare_u64(llabs(cb->by), llabs(ca->by));

	return ret ? ret : compare_u64(ca->stack.id, cb->stack.id);
}

static void set_change(struct change *c, const char *kind, long long by)
{
	c->kind = kind;
	c->by = by;
}

/* Merges both sorted lists and sets "by" to the difference, 0 for no change. */
static void match_lists(struct change *new, size_t nr_new, struct change *old, size_t nr_old)
{
	size_t n = 0, o = 0;
	int ret;

	while (n < nr_new || o < nr_old) {
		if (n == nr_new)
			ret = 1;
		else
			ret = o == nr_old ? -1 : compare_changes(&new[n], &old[o]);
		if (ret < 0) {
			set_change(&new[n], "new", new[n].stack.ref);
			n++;
		} else if (ret > 0) {
			set_change(&old[o], "gone", -(long long)old[o].stack.ref);
			o++;
		} else {
			set_change(&new[n], "moved",
				   (long long)(new[n].stack.ref - old[o++].stack.ref));
			n++;
		}
	}
}

/* A stack that is new or gone is a change even without references. */
static bool is_change(const struct change *c, const struct config *cfg)
{
	if (!c->kind || (!c->by && !strcmp(c->kind, "moved")))
		return false;
	return (u64)llabs(c->by) >= cfg->min_ref && stack_matches(c->map, &c->stack, cfg);
}

static void print_change(const struct change *c, const struct config *cfg)
{
	printf("%+lld %s ", c->by, c->kind);
	print_stack(c->map, &c->stack, cfg);
}

static void print_changes(struct change *list, size_t nr, const struct config *cfg)
{
	size_t i, n = 0;

	for (i = 0; i < nr; i++) {
		if (is_change(&list[i], cfg))
			list[n++] = list[i];
	}
	sort_array(list, n, sizeof(*list), compare_by);
	for (i = 0; i < n && (!cfg->top || i < cfg->top); i++)
		print_change(&list[i], cfg);
}

void print_diff(struct map *m, struct map *old, const struct config *cfg)
{
	struct change *new_list, *old_list;
	u32 *new_uids, *old_uids;
	struct intern texts = {};
	size_t nr_new, nr_old;

	new_list = list_stacks(m, &texts, &new_uids);
	old_list = list_stacks(old, &texts, &old_uids);
	nr_new = merge_generations(new_list, m->nr_stacks);
	nr_old = merge_generations(old_list, old->nr_stacks);
	match_lists(new_list, nr_new, old_list, nr_old);

	new_list = check_mem(reallocarray(new_list, nr_new + nr_old + 1, sizeof(*new_list)));
	memcpy(new_list + nr_new, old_list, nr_old * sizeof(*old_list));
	print_changes(new_list, nr_new + nr_old, cfg);

	free(new_list);
	free(old_list);
	free(new_uids);
	free(old_uids);
	intern_free(&texts);
}
