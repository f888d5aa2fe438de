// SPDX-License-Identifier: GPL-2.0
/*
 * The stacks of older maps of an instance: how an id leads to one, which of them
 * the events in the ring buffers refer to, and how the others are forgotten.
 *
 * Memory ordering:
 *
 *   stackmap_forget_begin:A  makes the count odd, then maps and stacks are unlinked.
 *   stackmap_next:A          has found a stack, then reads that count. Pairs with
 *                            stackmap_forget_begin:A.
 *   stackmap_forget_end:A    they are unlinked, then makes the count even by a release.
 *   stackmap_latch:B         acquires the count, then counts the stacks. Pairs with
 *                            stackmap_forget_end:A.
 *   stackmap_forget:B        has copied the stacks to keep, then unlinks their maps.
 *   stackmap_of:A            finds no map, then looks for a kept stack. Pairs with
 *                            stackmap_forget:B.
 */
#include <linux/bitmap.h>
#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/ring_buffer.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "trace_stackmap_internal.h"

/* Kept stacks take no more memory than this number of the largest maps, or the ring buffer. */
#define STACKMAP_KEPT_MAPS	4

/* For each list, no more than this number of kept stacks are in use, on average. */
#define STACKMAP_KEPT_LENGTH	16

#define STACKMAP_RECENT_BITS	8

/**
 * struct stackmap_walk - a walk of the ring buffers
 * @map: the current map of the instance
 * @nr_used: number of kept stacks that events refer to
 * @size: their bytes
 * @limit: what @size may be
 * @gens: generations of all ids
 * @recent: ids that were met lately, plus 1
 * @nr: number of @ids
 * @ids: from the events of one batch
 */
struct stackmap_walk {
	struct ftrace_stackmap	*map;
	u32			nr_used;
	size_t			size;
	size_t			limit;
	DECLARE_BITMAP(gens, STACKMAP_GENS);
	u32			recent[1 << STACKMAP_RECENT_BITS];
	unsigned int		nr;
	int			ids[2 * RING_BUFFER_WALK_EVENTS * STACKMAP_MAX_PARTS];
};

/**
 * stackmap_of - the map that an id was made by
 * @map: the current map, or a later one than that of @id
 * @id: the id
 *
 * Context: any, under RCU or in the work that replaces maps.
 * Return: the map, or NULL if it is gone.
 */
struct ftrace_stackmap *stackmap_of(struct ftrace_stackmap *map, int id)
{
	while (map && (map->gen & STACKMAP_GEN_MASK) != (u32)id >> STACKMAP_SLOT_BITS) {
		/* stackmap_of:A, pairs with stackmap_forget:B */
		map = smp_load_acquire(&map->prev);
	}
	return map;
}

static struct hlist_head *stackmap_kept_list(struct stackmap_replacement *repl, int id)
{
	return &repl->kept[hash_32(id, repl->kept_bits)];
}

static struct stackmap_kept *stackmap_find_kept(struct stackmap_replacement *repl, int id)
{
	struct stackmap_kept *kept;

	hlist_for_each_entry_rcu_notrace(kept, stackmap_kept_list(repl, id), node) {
		if (kept->id == id)
			return kept;
	}
	return NULL;
}

/**
 * stackmap_lookup - the stack that an id stands for
 * @map: the current map of the instance that recorded the id, or NULL
 * @id: the id
 *
 * Context: any, under RCU or in the work that replaces maps.
 * Return: the record, or NULL if @id is neither from this map nor from an older
 * one whose stack is still there.
 */
const struct stackmap_record *stackmap_lookup(struct ftrace_stackmap *map, int id)
{
	struct ftrace_stackmap *owner = stackmap_of(map, id);
	u32 idx = id & STACKMAP_SLOT_MASK;
	struct stackmap_kept *kept;

	if (owner)
		return idx < owner->nr_slots ? stackmap_record(owner, idx) : NULL;

	kept = map ? stackmap_find_kept(map->shared->repl, id) : NULL;
	return kept ? &kept->rec : NULL;
}

/* Collect the ids of an event but those that were met lately. Interrupts are off. */
static void stackmap_collect(void *data, const void *entry, unsigned int size)
{
	int nr = stackmap_event_ids(entry, size), id;
	struct stackmap_walk *walk = data;
	u32 *recent;

	for (int i = 0; i < nr && walk->nr < ARRAY_SIZE(walk->ids); i++) {
		id = stackmap_event_id(entry, i);
		recent = &walk->recent[hash_32(id, STACKMAP_RECENT_BITS)];
		if (*recent == id + 1U)
			continue;
		*recent = id + 1U;
		walk->ids[walk->nr++] = id;
	}
}

/* Bytes that a kept stack of @nr frames takes. */
static size_t stackmap_kept_size(unsigned int nr)
{
	return kmalloc_size_roundup(struct_size_t(struct stackmap_kept, rec.ips, nr));
}

/* Copy a stack of an older map. */
static struct stackmap_kept *stackmap_keep(struct stackmap_replacement *repl, int id,
					   const struct stackmap_record *rec)
{
	size_t size = stackmap_kept_size(rec->nr);
	struct stackmap_kept *kept;

	kept = kmalloc(size, GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!kept)
		return NULL;

	kept->id = id;
	kept->used = false;
	/* With all references: the caches of its map are gone. */
	kept->rec = *rec;
	memcpy(kept->rec.ips, rec->ips, flex_array_size(rec, ips, rec->nr));
	/* Readers count places in the list. */
	hlist_add_tail_rcu(&kept->node, stackmap_kept_list(repl, id));
	repl->past.nr_kept++;
	repl->past.kept_size += size;
	return kept;
}

/* Keep the stack of an id that the walk has found. */
static int stackmap_use(struct stackmap_walk *walk, int id)
{
	struct stackmap_replacement *repl = walk->map->shared->repl;
	u32 gen = (u32)id >> STACKMAP_SLOT_BITS;
	const struct stackmap_record *rec;
	struct stackmap_kept *kept;

	__set_bit(gen, walk->gens);
	if (gen == (walk->map->gen & STACKMAP_GEN_MASK))
		return 0;

	kept = stackmap_find_kept(repl, id);
	if (!kept) {
		rec = stackmap_lookup(walk->map, id);
		if (!rec)
			return 0;
		kept = stackmap_keep(repl, id, rec);
	}
	if (!kept)
		return -ENOMEM;

	if (!kept->used) {
		walk->nr_used++;
		walk->size += stackmap_kept_size(kept->rec.nr);
	}
	kept->used = true;
	if (walk->size > walk->limit || walk->nr_used >> repl->kept_bits > STACKMAP_KEPT_LENGTH)
		return -ENOSPC;
	return 0;
}

static int stackmap_walk_buffer(struct stackmap_walk *walk, struct ring_buffer_walk *events)
{
	bool more = true;
	int ret = 0;

	while (more && !ret) {
		walk->nr = 0;
		more = ring_buffer_walk_next(events, stackmap_collect, walk);
		for (unsigned int i = 0; !ret && i < walk->nr; i++)
			ret = stackmap_use(walk, walk->ids[i]);
		/* More iterators than there is room for the ids of their copies. */
		if (walk->nr == ARRAY_SIZE(walk->ids))
			ret = -ENOSPC;
		if (READ_ONCE(walk->map->shared->repl->stop))
			ret = -EINTR;
		cond_resched();
	}
	return ret;
}

#if defined(CONFIG_TRACER_SNAPSHOT) || defined(CONFIG_TRACER_MAX_TRACE)
static struct trace_buffer *stackmap_other_buffer(struct trace_array *tr)
{
	/* A snapshot swaps it at any time. */
	return data_race(READ_ONCE(tr->snapshot_buffer.buffer));
}
#else
static struct trace_buffer *stackmap_other_buffer(struct trace_array *tr)
{
	return NULL;
}
#endif

/*
 * Walk both buffers of a CPU, the instance's and the snapshot's. They may be swapped
 * at any time, but there are no others: two that differ are these two.
 */
static int stackmap_walk_cpu(struct stackmap_walk *walk, int cpu)
{
	struct trace_array *tr = walk->map->shared->repl->tr;
	struct ring_buffer_walk events, others = { };
	struct trace_buffer *buffer, *other;
	int ret;

	do {
		/* As above. */
		buffer = data_race(READ_ONCE(tr->array_buffer.buffer));
		other = stackmap_other_buffer(tr);
		ring_buffer_walk_start(&events, buffer, cpu);
		if (other)
			ring_buffer_walk_start(&others, other, cpu);
	} while (events.cpu_buffer && events.cpu_buffer == others.cpu_buffer);

	ret = stackmap_walk_buffer(walk, &events);
	return ret ?: stackmap_walk_buffer(walk, &others);
}

/* Bytes for kept stacks. */
static size_t stackmap_kept_limit(struct trace_array *tr, unsigned int bits)
{
	/* A snapshot may swap it now. Either buffer will do. */
	struct trace_buffer *buffer = data_race(READ_ONCE(tr->array_buffer.buffer));
	size_t size = 0;
	int cpu;

	for_each_tracing_cpu(cpu)
		size += ring_buffer_size(buffer, cpu);
	return max(STACKMAP_KEPT_MAPS * stackmap_size(bits), size);
}

/* Say which generations are in use: those of events and of maps. */
static void stackmap_set_gens(struct stackmap_walk *walk)
{
	struct trace_array *tr = walk->map->shared->repl->tr;
	struct ftrace_stackmap *map;

	/* Not that of a first map, which takes one. */
	for (map = stackmap_current(tr); map; map = map->prev)
		__set_bit(map->gen & STACKMAP_GEN_MASK, walk->gens);
	bitmap_copy(tr->stackmap_gens, walk->gens, STACKMAP_GENS);
}

/*
 * Let the copies of stacks go whose maps are still there, and after a walk those that no
 * event refers to.
 */
static void stackmap_sweep(struct ftrace_stackmap *map, bool walked)
{
	struct stackmap_replacement *repl = map->shared->repl;
	struct stackmap_kept *kept;
	struct hlist_node *next;
	bool copy;

	for (u32 i = 0; i < 1U << repl->kept_bits; i++) {
		hlist_for_each_entry_safe(kept, next, &repl->kept[i], node) {
			copy = stackmap_of(map, kept->id);
			if (!copy && (kept->used || !walked)) {
				kept->used = false;
				continue;
			}
			if (!copy) {
				repl->past.recycled++;
				repl->past.recycled_refs += atomic_long_read(&kept->rec.ref);
			}
			hlist_del_rcu(&kept->node);
			repl->past.nr_kept--;
			repl->past.kept_size -= stackmap_kept_size(kept->rec.nr);
			kfree_rcu(kept, rcu);
		}
		cond_resched();
	}
}

/* Tell readers that stacks go from now on. */
static void stackmap_forget_begin(struct stackmap_replacement *repl)
{
	WRITE_ONCE(repl->forgotten, repl->forgotten + 1);
	/* stackmap_forget_begin:A, pairs with stackmap_next:A */
	smp_wmb();
}

/* They are gone. Who began to read meanwhile begins again. */
static void stackmap_forget_end(struct stackmap_replacement *repl)
{
	/* stackmap_forget_end:A, pairs with stackmap_latch:B */
	smp_store_release(&repl->forgotten, repl->forgotten + 1);
}

/**
 * stackmap_mark - keep the stacks of older maps that an event refers to
 * @map: the current map of an instance
 * @bits: log2 of the number of stacks of the largest map
 *
 * Updates tr->stackmap_gens. The stacks stay in their maps, too. On success, to be
 * followed by stackmap_forget() or stackmap_unmark().
 *
 * Context: the work that replaces maps.
 * Return: 0, -ENOMEM, -ENOSPC if too many stacks would have to be kept, -EINTR if a
 * reset waits for the work.
 */
int stackmap_mark(struct ftrace_stackmap *map, unsigned int bits)
{
	struct stackmap_walk *walk;
	int ret = 0, cpu;

	walk = kvzalloc_obj(*walk, GFP_KERNEL | __GFP_NOWARN);
	if (!walk)
		return -ENOMEM;

	walk->map = map;
	walk->limit = stackmap_kept_limit(map->shared->repl->tr, bits);
	for_each_tracing_cpu(cpu) {
		ret = stackmap_walk_cpu(walk, cpu);
		if (ret)
			break;
	}

	if (ret)
		stackmap_sweep(map, false);
	else
		stackmap_set_gens(walk);
	kvfree(walk);
	return ret;
}

/**
 * stackmap_unmark - let the older maps stay after all
 * @map: the current map of an instance
 *
 * After stackmap_mark(). Kept stacks that no event refers to go, since their
 * generations can be used again.
 *
 * Context: the work that replaces maps.
 */
void stackmap_unmark(struct ftrace_stackmap *map)
{
	stackmap_forget_begin(map->shared->repl);
	stackmap_sweep(map, true);
	stackmap_forget_end(map->shared->repl);
}

/**
 * stackmap_forget - let the older maps go, and the stacks that no event refers to
 * @map: the current map of an instance
 *
 * After stackmap_mark().
 *
 * Context: the work that replaces maps.
 * Return: the maps before @map, to be freed after a grace period.
 */
struct ftrace_stackmap *stackmap_forget(struct ftrace_stackmap *map)
{
	struct ftrace_stackmap *prev = map->prev, *old;
	struct stackmap_replacement *repl = map->shared->repl;
	const struct stackmap_record *rec;

	stackmap_forget_begin(repl);
	/* stackmap_forget:B, pairs with stackmap_of:A */
	smp_store_release(&map->prev, NULL);

	for (old = prev; old; old = old->prev) {
		for (u32 idx = 0; idx < old->nr_slots; idx++) {
			cond_resched();
			rec = stackmap_record(old, idx);
			if (!rec || stackmap_find_kept(repl, stackmap_id(old, idx)))
				continue;
			repl->past.recycled++;
			repl->past.recycled_refs += atomic_long_read(&rec->ref);
		}
	}
	stackmap_sweep(map, true);
	stackmap_forget_end(repl);
	return prev;
}

/**
 * stackmap_free_kept - free all kept stacks
 * @repl: of an instance without users
 *
 * Context: may sleep.
 */
void stackmap_free_kept(struct stackmap_replacement *repl)
{
	struct stackmap_kept *kept;
	struct hlist_node *next;

	for (u32 i = 0; i < 1U << repl->kept_bits; i++) {
		hlist_for_each_entry_safe(kept, next, &repl->kept[i], node)
			kfree(kept);
		cond_resched();
	}
}
