// SPDX-License-Identifier: GPL-2.0
#include "pool.h"

void add_words(struct words *w, const u64 *words, size_t nr)
{
	w->w = grow(w->w, w->nr, nr, sizeof(*w->w));
	if (nr)
		memcpy(w->w + w->nr, words, nr * sizeof(*words));
	w->nr += nr;
}

void add_word(struct words *w, u64 word)
{
	add_words(w, &word, 1);
}

/* The first @n ones. */
void drop_words(struct words *w, u32 n)
{
	w->nr -= n;
	memmove(w->w, w->w + n, w->nr * sizeof(*w->w));
	w->hits = n < 64 ? w->hits >> n : 0;
}

static u64 hash_words(const u64 *words, u32 nr)
{
	u64 hash = nr;

	for (; nr; nr--, words++) {
		hash = (hash ^ *words) * 0x9E3779B97F4A7C15ULL;
		hash ^= hash >> 29;
	}
	return hash;
}

static void make_slots(struct pool *p)
{
	size_t i, at;

	p->mask = p->mask ? 2 * p->mask + 1 : 1023;
	free(p->slots);
	p->slots = check_mem(calloc(p->mask + 1, sizeof(*p->slots)));
	for (i = 1; i <= p->nr; i++) {
		at = p->list[i].hash & p->mask;
		while (p->slots[at])
			at = (at + 1) & p->mask;
		p->slots[at] = i;
	}
}

static bool is_pooled(const struct pool *p, u32 i, u64 hash, const u64 *words, u32 nr)
{
	const struct pooled *e = &p->list[i];
	const u64 *known = p->words.w + e->first;

	if (e->hash != hash || e->nr != nr)
		return false;
	while (nr && known[nr - 1] == words[nr - 1])
		nr--;
	return !nr;
}

u32 pool_add(struct pool *p, const u64 *words, u32 nr)
{
	u64 hash = hash_words(words, nr);
	size_t at;

	if (2 * p->nr >= p->mask)
		make_slots(p);
	for (at = hash & p->mask; p->slots[at]; at = (at + 1) & p->mask) {
		if (is_pooled(p, p->slots[at], hash, words, nr))
			return p->slots[at];
	}
	p->list = grow(p->list, p->nr + 1, 1, sizeof(*p->list));
	p->list[++p->nr] = (struct pooled) { .hash = hash, .first = p->words.nr, .nr = nr };
	add_words(&p->words, words, nr);
	p->slots[at] = p->nr;
	return p->nr;
}

/* A string is padded with zeros. */
u32 intern(struct pool *p, const char *s)
{
	u64 *words __free(pointer) = check_mem(calloc(1, strlen(s) + sizeof(*words)));

	memcpy(words, s, strlen(s));
	return pool_add(p, words, strlen(s) / sizeof(*words) + 1);
}

/* The structure of a key of two words; zeros at first */
void *pool_get(struct pool *p, u64 a, u64 b, size_t size)
{
	struct pooled *e = pool_find(p, a, b);

	if (!e->ptr)
		e->ptr = check_mem(calloc(1, size));
	return e->ptr;
}

/* Then nothing can be looked up any more. */
void pool_sort(struct pool *p, int (*cmp)(const void *, const void *))
{
	if (p->nr)
		qsort(p->list + 1, p->nr, sizeof(*p->list), cmp);
}

/* With the structures. */
void pool_free_all(struct pool *p)
{
	u32 i;

	for (i = 1; i <= p->nr; i++)
		free(p->list[i].ptr);
	pool_free(p);
}

void pool_free(struct pool *p)
{
	free(p->list);
	free(p->words.w);
	free(p->slots);
	*p = (struct pool) {};
}
