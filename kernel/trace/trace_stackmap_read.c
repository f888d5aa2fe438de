// SPDX-License-Identifier: GPL-2.0
/*
 * The stacks of all generations of an instance, one after the other, for the readers of
 * its files.
 */
#include <linux/err.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/rculist.h>

#include "trace_stackmap_internal.h"

/*
 * Positions of a reader: 0 is the header. Then come the kept stacks, by the bucket of
 * the hash table and the place in it, then the slots of all maps, by generation, and
 * the trailer.
 */
#define STACKMAP_POS_BUCKET	((loff_t)1 << 24)
#define STACKMAP_POS_MAPS	((loff_t)1 << 52)

/* The next kept stack from *@pos on, or NULL. */
static const struct stackmap_record *stackmap_next_kept(struct stackmap_iter *iter, loff_t *pos)
{
	struct ftrace_stackmap *current_map = rcu_dereference(iter->tr->stackmap);
	const struct stackmap_replacement *repl = iter->map->shared->repl;
	loff_t end = 1 + (STACKMAP_POS_BUCKET << repl->kept_bits), bucket, nr;
	struct stackmap_kept *kept;

	for (; *pos < end; *pos = bucket + STACKMAP_POS_BUCKET) {
		bucket = round_down(*pos - 1, STACKMAP_POS_BUCKET) + 1;
		nr = bucket;
		hlist_for_each_entry_rcu(kept, &repl->kept[bucket / STACKMAP_POS_BUCKET], node) {
			/* A stack that is about to be kept is still in its map. */
			if (nr++ < *pos || stackmap_of(current_map, kept->id))
				continue;
			*pos = nr - 1;
			iter->owner = NULL;
			iter->id = kept->id;
			return &kept->rec;
		}
	}
	return NULL;
}

/* The oldest map from generation @gen on, or NULL. */
static struct ftrace_stackmap *stackmap_oldest(const struct stackmap_iter *iter, u32 gen)
{
	struct ftrace_stackmap *map, *oldest = NULL;

	for (map = iter->map; map && map->gen >= gen; map = READ_ONCE(map->prev))
		oldest = map;
	return oldest;
}

/* The next stack of a map from *@pos on, or NULL. */
static const struct stackmap_record *stackmap_next_slot(struct stackmap_iter *iter, loff_t *pos)
{
	u64 at = max(*pos - STACKMAP_POS_MAPS, 0);
	u32 gen = at >> STACKMAP_SLOT_BITS, idx = at & STACKMAP_SLOT_MASK, slot;
	struct ftrace_stackmap *map;

	for (; (map = stackmap_oldest(iter, gen)); gen = map->gen + 1, idx = 0) {
		for (idx = map->gen == gen ? idx : 0; idx < map->nr_slots; idx++) {
			slot = READ_ONCE(map->slots[idx]);
			if (!slot || (map == iter->map && (slot & map->offset_mask) >= iter->tail))
				continue;
			*pos = STACKMAP_POS_MAPS + (((loff_t)map->gen << STACKMAP_SLOT_BITS) | idx);
			iter->owner = map;
			iter->id = stackmap_id(map, idx);
			return stackmap_record_at(map, slot);
		}
	}
	return NULL;
}

/**
 * stackmap_next - the next stack that a reader gets
 * @iter: the reader
 * @pos: where to begin; set to where it is, and left alone with -ESTALE
 *
 * Context: under RCU.
 * Return: the record, NULL, or -ESTALE if one may be gone from there on that was there
 * when the reader began.
 */
const struct stackmap_record *stackmap_next(struct stackmap_iter *iter, loff_t *pos)
{
	/* Positions in the newest map stay valid when older stacks are forgotten. */
	const loff_t newest = STACKMAP_POS_MAPS + ((loff_t)iter->gen << STACKMAP_SLOT_BITS);
	const struct stackmap_record *rec;
	const loff_t from = *pos;

	rec = stackmap_next_kept(iter, pos) ?: stackmap_next_slot(iter, pos);
	/* stackmap_next:A, pairs with stackmap_forget_begin:A */
	smp_rmb();
	if (from >= newest || READ_ONCE(iter->map->shared->repl->forgotten) == iter->forgotten)
		return rec;

	/* seq_file forgets an error after some data: the next read is to find it again. */
	*pos = from;
	return ERR_PTR(-ESTALE);
}
