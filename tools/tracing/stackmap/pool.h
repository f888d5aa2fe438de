/* SPDX-License-Identifier: GPL-2.0 */
/* Arrays of words, and sets of them. */
#ifndef STACKMAP_POOL_H
#define STACKMAP_POOL_H

#include "util.h"

struct words {
	u64	*w;
	size_t	nr;
	u64	hits;		/* as in struct stack */
};

/*
 * Arrays of words, each stored once. The first one has the number 1. A value that belongs to it is
 * 0 at first, or it is a structure. So a pool is a set of stacks, or a table from a key to a value.
 */
struct pooled {
	u64	hash;
	union {
		u64	value;
		void	*ptr;
	};
	size_t	first;		/* index of the first word */
	u32	nr;
};

struct pool {
	struct pooled	*list;		/* list[0] is not used */
	size_t		nr;		/* the highest number */
	struct words	words;
	u32		*slots;		/* numbers, by hash; 0: free */
	size_t		mask;
};

u32 pool_add(struct pool *p, const u64 *words, u32 nr);
u32 intern(struct pool *p, const char *s);
void *pool_get(struct pool *p, u64 a, u64 b, size_t size);
void pool_sort(struct pool *p, int (*cmp)(const void *, const void *));
void pool_free_all(struct pool *p);
void add_words(struct words *w, const u64 *words, size_t nr);
void add_word(struct words *w, u64 word);
void drop_words(struct words *w, u32 n);
void pool_free(struct pool *p);

/* Valid until more is added. A function, as pool_add() in its argument may move the list. */
static inline struct pooled *pool_at(struct pool *p, u32 nr)
{
	return &p->list[nr];
}

static inline const u64 *pool_words(const struct pool *p, u32 nr)
{
	return p->words.w + p->list[nr].first;
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
