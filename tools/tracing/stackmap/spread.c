// SPDX-License-Identifier: GPL-2.0
/*
 * How the single weights of a stack spread: by powers of two, and what so many percent of them do
 * not exceed. A weight keeps its first ten bits, so there are few different ones.
 */
#include "stackmap.h"

#define KEPT_BITS	10
#define STARS		40

/* How many samples of a stack have a weight. */
struct share {
	u64	owner;		/* the number of the stack */
	u64	weight;
	u64	nr;
};

/* @owner: a number of the stack that the sample belongs to */
void spread_add(struct map *m, u32 owner, u64 weight)
{
	int bits = weight ? 64 - __builtin_clzll(weight) : 0;
	int lost = bits > KEPT_BITS ? bits - KEPT_BITS : 0;

	pool_find(&m->weights, owner, weight >> lost << lost)->value++;
}

/* The stacks were merged. */
void spread_join(struct map *m, u32 to, u32 from)
{
	pool_find(&m->owners, from, 0)->value = to;
}

static int compare_shares(const void *a, const void *b)
{
	const struct share *sa = a, *sb = b;

	return compare_u64(sa->owner, sb->owner) ?: compare_u64(sa->weight, sb->weight);
}

static void sort_shares(struct map *m)
{
	struct share *list = check_mem(calloc(m->weights.nr + 1, sizeof(*list)));
	const u64 *key;
	u64 to;
	u32 i;

	for (i = 1; i <= m->weights.nr; i++) {
		key = pool_words(&m->weights, i);
		to = pool_find(&m->owners, key[0], 0)->value;
		list[i - 1] = (struct share) { to ? to : key[0], key[1], m->weights.list[i].value };
	}
	sort_array(list, m->weights.nr, sizeof(*list), compare_shares);
	for (i = m->weights.nr; i--; )
		pool_find(&m->owners, list[i].owner, 1)->value = i;
	m->shares = list;
}

/* Those of a stack, the smallest weight first; they end where the owner is another one. */
static const struct share *shares_of(struct map *m, const struct stack *s)
{
	if (!m->shares)
		sort_shares(m);
	return &m->shares[pool_find(&m->owners, s->owner, 1)->value];
}

/* So many percent of the samples weigh this or less. */
u64 spread_percentile(struct map *m, const struct stack *s, u32 percent)
{
	const struct share *share = shares_of(m, s);
	u64 nr = 0, all = s->val[VAL_EVENTS];

	while ((nr += share->nr) * 100 < all * percent)
		share++;
	return share->weight;
}

/* Rows of powers of two: 0 and 1, 2 and 3, 4 to 7. Returns the last one that has any. */
static u32 count_rows(struct map *m, const struct stack *s, u64 *rows)
{
	const struct share *share = shares_of(m, s), *end = m->shares + m->weights.nr;
	u32 row = 0;

	for (; share != end && share->owner == s->owner; share++) {
		row = share->weight < 2 ? 0 : 63 - __builtin_clzll(share->weight);
		rows[row] += share->nr;
	}
	return row;
}

static u64 begin_of(u32 row)
{
	return row ? 1ULL << row : 0;
}

void print_histogram(struct map *m, const struct stack *s)
{
	static const char stars[] = "****************************************";
	const struct value_type *v = &m->values[m->main_value];
	u64 rows[64] = {}, most = 1;
	u32 i, last = count_rows(m, s, rows);

	for (i = 0; i <= last; i++)
		most = rows[i] > most ? rows[i] : most;
	printf("%24s : count    distribution\n", strcmp(v->unit, "count") ? v->unit : v->type);
	for (i = 0; i <= last; i++)
		printf("%10llu -> %-10llu : %-8llu |%-*.*s|\n", begin_of(i), begin_of(i + 1) - 1,
		       rows[i], STARS, (int)(rows[i] * STARS / most), stars);
	putchar('\n');
}

void print_json_histogram(struct map *m, const struct stack *s)
{
	u32 i, last;
	u64 rows[64] = {};

	last = count_rows(m, s, rows);
	printf(" \"p50\": %llu, \"p90\": %llu, \"p99\": %llu,\n  \"histogram\": [",
	       spread_percentile(m, s, 50), spread_percentile(m, s, 90),
	       spread_percentile(m, s, 99));
	for (i = 0; i <= last; i++)
		printf("%s{\"from\": %llu, \"to\": %llu, \"count\": %llu}", i ? ", " : "",
		       begin_of(i), begin_of(i + 1) - 1, rows[i]);
	fputs("],", stdout);
}
