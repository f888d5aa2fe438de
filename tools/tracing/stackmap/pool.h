/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arrays of words, each stored once. The first one has the number 1, and a value that belongs to it
 * is 0 at first. So a pool is a set of stacks, or a table from a key of some words to a value.
 */
#ifndef STACKMAP_POOL_H
#define STACKMAP_POOL_H

#include "stackmap.h"

u32 pool_add(struct pool *p, const u64 *words, u32 nr);
void add_words(struct words *w, const u64 *words, size_t nr);
void add_word(struct words *w, u64 word);
void pool_free(struct pool *p);

static inline u64 *pool_value(struct pool *p, u32 nr)
{
	return &p->list[nr].value;
}

static inline const u64 *pool_words(const struct pool *p, u32 nr)
{
	return p->words.w + p->list[nr].first;
}

/* The value of a key of two words. */
static inline u64 *pool_find(struct pool *p, u64 a, u64 b)
{
	const u64 key[] = { a, b };

	return pool_value(p, pool_add(p, key, ARRAY_SIZE(key)));
}

#endif
