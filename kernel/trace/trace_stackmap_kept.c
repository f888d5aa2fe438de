// SPDX-License-Identifier: GPL-2.0
/*
 * The stacks of older maps of an instance: those of the map before the current
 * one, and those that are kept of the maps before that.
 */
#include <linux/bsearch.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "trace_stackmap.h"

/* The index of the slot that @id names, or -ENOENT if it is not an id of @map. */
static int stackmap_id_slot(const struct ftrace_stackmap *map, int id)
{
	u32 idx = id & (BIT(STACKMAP_SLOT_BITS) - 1);

	if (id < 0 || idx >= map->nr_slots || stackmap_id(map, idx) != id)
		return -ENOENT;
	return idx;
}

static int stackmap_cmp_id(const void *id, const void *kept)
{
	return *(const int *)id - ((const struct stackmap_kept_id *)kept)->id;
}

/* Number of places of the kept stacks. Those of the slots of the map before follow. */
static u32 stackmap_kept_places(const struct ftrace_stackmap *map)
{
	return map->kept ? map->kept->nr : 0;
}

/**
 * ftrace_stackmap_nr_old - number of places for stacks of older maps
 * @map: the map
 *
 * The kept stacks come first, then the slots of the map before.
 *
 * Context: any, while the map can't be freed.
 * Return: the number. Places that are empty are counted in.
 */
u32 ftrace_stackmap_nr_old(const struct ftrace_stackmap *map)
{
	return stackmap_kept_places(map) + (map->prev ? map->prev->nr_slots : 0);
}

/**
 * ftrace_stackmap_old_pos - the place of a stack of an older map
 * @map: the map
 * @id: the id of the stack
 *
 * Context: any, while the map can't be freed.
 * Return: the place, or -ENOENT.
 */
int ftrace_stackmap_old_pos(const struct ftrace_stackmap *map, int id)
{
	const struct stackmap_kept *kept = map->kept;
	u32 nr_kept = stackmap_kept_places(map);
	struct stackmap_kept_id *found;
	int idx;

	idx = map->prev ? stackmap_id_slot(map->prev, id) : -ENOENT;
	if (idx >= 0)
		return nr_kept + idx;

	found = nr_kept ? bsearch(&id, kept->ids, nr_kept, sizeof(*found), stackmap_cmp_id) : NULL;
	return found ? found - kept->ids : -ENOENT;
}

/**
 * ftrace_stackmap_old - a stack of an older map
 * @map: the map
 * @pos: its place, less than ftrace_stackmap_nr_old()
 * @id: set to its id
 *
 * Context: any, while the map can't be freed.
 * Return: the record, or NULL if the place is empty.
 */
const struct stackmap_record *ftrace_stackmap_old(const struct ftrace_stackmap *map, u32 pos,
						  int *id)
{
	const struct stackmap_kept *kept = map->kept;
	u32 nr_kept = stackmap_kept_places(map);

	if (pos < nr_kept) {
		*id = kept->ids[pos].id;
		return (const void *)kept + (size_t)kept->ids[pos].offset * STACKMAP_UNIT;
	}

	*id = stackmap_id(map->prev, pos - nr_kept);
	return stackmap_record(map->prev, pos - nr_kept);
}

/**
 * ftrace_stackmap_old_ref - the references to a stack of an older map
 * @map: the map
 * @pos: its place, which is not empty
 *
 * Context: any, while the map can't be freed.
 * Return: their number.
 */
unsigned long ftrace_stackmap_old_ref(const struct ftrace_stackmap *map, u32 pos)
{
	u32 nr_kept = stackmap_kept_places(map);
	int id;

	if (pos < nr_kept)
		return atomic_long_read(&ftrace_stackmap_old(map, pos, &id)->ref);
	return ftrace_stackmap_ref(map->prev, pos - nr_kept);
}

/**
 * ftrace_stackmap_lookup - the stack that an id stands for
 * @map: the map of the instance that recorded the id, or NULL
 * @id: the id
 *
 * Context: any, while the map can't be freed.
 * Return: the record, or NULL if @id is neither from this map nor from an older
 * one whose stack is still there.
 */
const struct stackmap_record *ftrace_stackmap_lookup(const struct ftrace_stackmap *map, int id)
{
	int pos;

	if (!map)
		return NULL;

	pos = stackmap_id_slot(map, id);
	if (pos >= 0)
		return stackmap_record(map, pos);

	pos = ftrace_stackmap_old_pos(map, id);
	return pos < 0 ? NULL : ftrace_stackmap_old(map, pos, &id);
}

/**
 * ftrace_stackmap_nr_kept - number of stacks of older maps
 * @map: the map
 *
 * Context: any, while the map can't be freed.
 * Return: the number.
 */
u32 ftrace_stackmap_nr_kept(const struct ftrace_stackmap *map)
{
	return stackmap_kept_places(map) + (map->prev ? atomic_read(&map->prev->entries) : 0);
}

/* Append copies of those stacks to @kept that are marked, from place @pos to @end. */
static void stackmap_copy(struct stackmap_kept *kept, const struct ftrace_stackmap *map,
			  const unsigned long *marks, u32 pos, u32 end)
{
	u32 units = DIV_ROUND_UP(kept->used, STACKMAP_UNIT);
	const struct stackmap_record *rec;
	struct stackmap_record *copy;
	unsigned long ref;

	for_each_set_bit_from(pos, marks, end) {
		rec = ftrace_stackmap_old(map, pos, &kept->ids[kept->nr].id);
		kept->ids[kept->nr++].offset = units;
		copy = (void *)kept + (size_t)units * STACKMAP_UNIT;
		stackmap_fill(copy, rec->ips, rec->nr, rec->user);
		ref = ftrace_stackmap_old_ref(map, pos);
		atomic_long_set(&copy->ref, ref);
		kept->refs += ref;
		units += stackmap_units(rec->nr);
		cond_resched();
	}
	kept->used = (size_t)units * STACKMAP_UNIT;
}

/* The number of kept stacks whose ids are below those of the map before. */
static u32 stackmap_nr_below(const struct ftrace_stackmap *map)
{
	u32 nr = 0;

	while (map->kept && map->prev && nr < map->kept->nr &&
	       map->kept->ids[nr].id < stackmap_id(map->prev, 0))
		nr++;
	return nr;
}

/**
 * ftrace_stackmap_keep - copy stacks of older maps
 * @map: the map
 * @marks: a bitmap of the places of the stacks to copy
 * @limit: the copy takes no more bytes than this
 *
 * Context: may sleep.
 * Return: the copy, -ENOMEM, or -ENOSPC if @limit is too small.
 */
struct stackmap_kept *ftrace_stackmap_keep(const struct ftrace_stackmap *map,
					   const unsigned long *marks, size_t limit)
{
	u32 nr_kept = stackmap_kept_places(map), nr_old = ftrace_stackmap_nr_old(map);
	u32 below = stackmap_nr_below(map), nr = 0, pos;
	struct stackmap_kept *kept;
	size_t size = 0;
	int id;

	for_each_set_bit(pos, marks, nr_old) {
		size += stackmap_units(ftrace_stackmap_old(map, pos, &id)->nr) * STACKMAP_UNIT;
		nr++;
	}

	size += ALIGN(struct_size(kept, ids, nr), STACKMAP_UNIT);
	if (size > limit)
		return ERR_PTR(-ENOSPC);
	kept = kvmalloc(size, GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!kept)
		return ERR_PTR(-ENOMEM);

	kept->refs = 0;
	kept->nr = 0;
	kept->used = struct_size(kept, ids, nr);
	/* In the order of their ids. */
	stackmap_copy(kept, map, marks, 0, below);
	stackmap_copy(kept, map, marks, nr_kept, nr_old);
	stackmap_copy(kept, map, marks, below, nr_kept);
	return kept;
}
