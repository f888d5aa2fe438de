/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arrays of words, each stored once. The first one has the number 1. A value that belongs to it is
 * 0 at first, or it is a structure. So a pool is a set of stacks, or a table from a key to a value.
 */
#ifndef STACKMAP_POOL_H
#define STACKMAP_POOL_H

#include "stackmap.h"

u32 pool_add(struct pool *p, const u64 *words, u32 nr);
u32 intern(struct pool *p, const char *s);
void *pool_get(struct pool *p, u64 a, u64 b, size_t size);
void pool_free_all(struct pool *p);
void add_words(struct words *w, const u64 *words, size_t nr);
void add_word(struct words *w, u64 word);
void pool_free(struct pool *p);

static inline const u64 *pool_words(const struct pool *p, u32 nr)
{
	return p->words.w + p->list[nr].first;
}

/* Valid until more is added. */
static inline struct pooled *pool_at(struct pool *p, u32 nr)
{
	return &p->list[nr];
}

static inline char *pool_string(const struct pool *p, u32 nr)
{
	return (char *)(p->words.w + p->list[nr].first);
}

/* What belongs to a key of two words. */
static inline struct pooled *pool_find(struct pool *p, u64 a, u64 b)
{
	const u64 key[] = { a, b };

	return pool_at(p, pool_add(p, key, ARRAY_SIZE(key)));
}

#endif
