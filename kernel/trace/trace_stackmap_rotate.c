// SPDX-License-Identifier: GPL-2.0
/*
 * Recycling: a map that is nearly full is replaced by an empty one. Of the older
 * maps, the stacks are kept that an event in the ring buffers refers to.
 */
#include <linux/mutex.h>
#include <linux/ring_buffer.h>
#include <linux/sched.h>
#include <linux/seqlock.h>
#include <linux/slab.h>

#include "trace_stackmap.h"

/* How often a walk begins again, when the writer has overtaken it or buffers were swapped. */
#define STACKMAP_WALKS		16

/* The kept stacks take no more memory than this number of full maps, or the ring buffer. */
#define STACKMAP_KEPT_MAPS	4

/**
 * struct stackmap_walk - what a walk of the ring buffers has found
 * @tr: the instance
 * @map: its map, or NULL
 * @gens: generations of all ids
 * @marks: places of the stacks of older maps that events refer to
 */
struct stackmap_walk {
	struct trace_array	*tr;
	struct ftrace_stackmap	*map;
	DECLARE_BITMAP(gens, 1 << STACKMAP_GEN_BITS);
	unsigned long		marks[];
};

static struct stackmap_walk *stackmap_walk_alloc(struct trace_array *tr,
						 struct ftrace_stackmap *map)
{
	u32 nr_old = map ? ftrace_stackmap_nr_old(map) : 0;
	struct stackmap_walk *walk;

	walk = kvzalloc(struct_size(walk, marks, BITS_TO_LONGS(nr_old)),
			GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (walk) {
		walk->tr = tr;
		walk->map = map;
	}
	return walk;
}

/*
 * Mark what @id names. Returns whether every later event of the CPU has ids of
 * the current map, because the stack was stored after older maps were in use.
 */
static bool stackmap_mark(struct stackmap_walk *walk, int id)
{
	u32 gen = (u32)id >> STACKMAP_SLOT_BITS, slot;
	struct ftrace_stackmap *map = walk->map;
	int pos;

	if (id < 0)
		return false;

	__set_bit(gen, walk->gens);
	if (!map)
		return false;

	if (gen != (map->gen & STACKMAP_GEN_MASK)) {
		pos = ftrace_stackmap_old_pos(map, id);
		if (pos >= 0 && ftrace_stackmap_old(map, pos, &id))
			__set_bit(pos, walk->marks);
		return false;
	}

	slot = READ_ONCE(map->slots[id & (map->nr_slots - 1)]);
	return (slot & map->offset_mask) >= map->settled;
}

static bool stackmap_mark_event(struct stackmap_walk *walk, struct ring_buffer_event *event)
{
	const struct trace_entry *ent = ring_buffer_event_data(event);
	int nr = ftrace_stackmap_event_ids(ent, ring_buffer_event_length(event));
	bool settled = false;

	for (int i = 0; i < nr; i++)
		settled |= stackmap_mark(walk, ftrace_stackmap_event_id(ent, i));
	return settled;
}

/*
 * Walk the buffer of a CPU, from the oldest event to the first one after which
 * there are only ids of the current map. Returns -EAGAIN if the writer has
 * overtaken the walk, which has missed events then.
 */
static int stackmap_walk_once(struct stackmap_walk *walk, struct trace_buffer *buffer, int cpu)
{
	/* A page that a reader by mmap() takes out makes the iterator begin again. */
	unsigned long steps = 4 * ring_buffer_entries_cpu(buffer, cpu) + 1024;
	bool done = false, overrun = false;
	struct ring_buffer_event *event;
	struct ring_buffer_iter *iter;

	iter = ring_buffer_read_start(buffer, cpu, GFP_KERNEL);
	if (!iter)
		return -ENOMEM;

	while (!done && !overrun && steps--) {
		event = ring_buffer_iter_peek(iter, NULL);
		if (event)
			done = stackmap_mark_event(walk, event);
		else /* The end, or an event is being written. */
			done = ring_buffer_iter_empty(iter) || ring_buffer_empty_cpu(buffer, cpu);
		overrun = ring_buffer_iter_overrun(iter);
		if (event)
			ring_buffer_iter_advance(iter);
		cond_resched();
	}

	ring_buffer_read_finish(iter);
	return done && !overrun ? 0 : -EAGAIN;
}

/* Try again after -EAGAIN, until the writer has overwritten all that was there at first. */
static int stackmap_walk_buffer(struct stackmap_walk *walk, struct trace_buffer *buffer, int cpu)
{
	unsigned long entries = ring_buffer_entries_cpu(buffer, cpu);
	unsigned long overrun = ring_buffer_overrun_cpu(buffer, cpu);
	int ret = 0;

	if (!entries && ring_buffer_empty_cpu(buffer, cpu))
		return 0;

	for (int i = 0; i < STACKMAP_WALKS; i++) {
		ret = stackmap_walk_once(walk, buffer, cpu);
		if (ret != -EAGAIN)
			break;
		if (ring_buffer_overrun_cpu(buffer, cpu) - overrun >= entries)
			return 0;
	}
	return ret;
}

#ifdef CONFIG_TRACER_SNAPSHOT
static int stackmap_walk_buffers(struct stackmap_walk *walk, int cpu)
{
	struct trace_array *tr = walk->tr;
	unsigned int seq = raw_read_seqcount_begin(&tr->snapshot_cpu_seq);
	/* A snapshot swaps these two at any time, but there are no others. */
	struct trace_buffer *buffer = data_race(READ_ONCE(tr->array_buffer.buffer));
	/* The other one of the two. */
	struct trace_buffer *other = data_race(READ_ONCE(tr->snapshot_buffer.buffer));
	int ret;

	if (buffer == other)
		return -EAGAIN;

	ret = stackmap_walk_buffer(walk, buffer, cpu);
	if (!ret)
		ret = stackmap_walk_buffer(walk, other, cpu);
	/* One was walked twice if they have exchanged the buffer of this CPU. */
	if (!ret && read_seqcount_retry(&tr->snapshot_cpu_seq, seq))
		ret = -EAGAIN;
	return ret;
}
#else
static int stackmap_walk_buffers(struct stackmap_walk *walk, int cpu)
{
	return stackmap_walk_buffer(walk, walk->tr->array_buffer.buffer, cpu);
}
#endif

/*
 * trace_types_lock keeps the number of pages, the access lock their size. The
 * access lock also holds up readers that consume events, but those by mmap().
 */
static int stackmap_walk_cpu(struct stackmap_walk *walk, int cpu)
{
	int ret = -EAGAIN;

	lockdep_assert_held(&trace_types_lock);

	trace_access_lock(cpu);
	for (int i = 0; ret == -EAGAIN && i < STACKMAP_WALKS; i++)
		ret = stackmap_walk_buffers(walk, cpu);
	trace_access_unlock(cpu);
	return ret;
}

/* Advance @gen to the next generation of which no event has an id. */
static int stackmap_unused_gen(const struct stackmap_walk *walk, u32 *gen)
{
	for (u32 i = 0; i < STACKMAP_GEN_MASK; i++, ++*gen) {
		if (!test_bit(*gen & STACKMAP_GEN_MASK, walk->gens))
			return 0;
	}
	return -EBUSY;
}

/**
 * ftrace_stackmap_unused_gen - choose the generation of a map
 * @tr: its instance
 * @gen: the first one that will do; set to the one that is chosen
 *
 * Context: may sleep, under trace_types_lock.
 * Return: 0, -ENOMEM, or -EBUSY if events hold ids of all generations.
 */
int ftrace_stackmap_unused_gen(struct trace_array *tr, u32 *gen)
{
	struct ftrace_stackmap *map = rcu_dereference_protected(tr->stackmap,
								lockdep_is_held(&trace_types_lock));
	struct stackmap_walk *walk;
	int ret = 0, cpu;

	/* Not used before. */
	if (*gen <= STACKMAP_GEN_MASK)
		return 0;

	walk = stackmap_walk_alloc(tr, map);
	if (!walk)
		return -ENOMEM;

	for_each_tracing_cpu(cpu) {
		ret = stackmap_walk_cpu(walk, cpu);
		if (ret)
			break;
	}
	if (!ret)
		ret = stackmap_unused_gen(walk, gen);
	kvfree(walk);
	return ret == -EAGAIN ? -EBUSY : ret;
}

/*
 * Take trace_types_lock, or return -ESTALE if @map is not the current one any
 * more. Whoever replaces it holds the lock and waits for the work that calls
 * this, so to wait for the lock could deadlock. A reference to the instance would
 * make rmdir fail.
 */
static int stackmap_lock(struct ftrace_stackmap *map)
{
	while (!mutex_trylock(&trace_types_lock)) {
		if (rcu_access_pointer(map->tr->stackmap) != map)
			return -ESTALE;
		schedule_timeout_uninterruptible(1);
	}
	if (rcu_access_pointer(map->tr->stackmap) == map)
		return 0;

	mutex_unlock(&trace_types_lock);
	return -ESTALE;
}

/* Bytes for kept stacks. */
static size_t stackmap_kept_limit(struct ftrace_stackmap *map)
{
	size_t limit = (size_t)map->arena_limit * STACKMAP_UNIT * STACKMAP_KEPT_MAPS, size = 0;
	/* A snapshot may swap it now. Either buffer will do. */
	struct trace_buffer *buffer = data_race(READ_ONCE(map->tr->array_buffer.buffer));
	int cpu;

	for_each_tracing_cpu(cpu)
		size += ring_buffer_size(buffer, cpu);
	/* As much as kvmalloc() gives. */
	return min(max(limit, size), INT_MAX);
}

/* The new map counts on where @map and the maps before it ended. */
static void stackmap_inherit(struct ftrace_stackmap *new, struct ftrace_stackmap *map,
			     struct stackmap_kept *kept)
{
	const struct ftrace_stackmap *prev = map->prev;

	new->prev = map;
	new->kept = kept;
	new->rotations = map->rotations + 1;
	for (int i = 0; i < STACKMAP_NR_COUNTS; i++)
		new->before[i] = map->before[i] + (prev ? ftrace_stackmap_sum(prev, i) : 0);

	new->recycled = map->recycled + ftrace_stackmap_nr_kept(map) - kept->nr;
	new->recycled_refs = map->recycled_refs - kept->refs;
	if (prev)
		new->recycled_refs += ftrace_stackmap_sum(prev, STACKMAP_PARTS);
	if (map->kept)
		new->recycled_refs += map->kept->refs;
}

/* Allocate the map that replaces that of @walk. */
static struct ftrace_stackmap *stackmap_successor(struct stackmap_walk *walk)
{
	u32 gen = READ_ONCE(walk->tr->stackmap_gen) + 1;
	struct ftrace_stackmap *map = walk->map, *new;
	struct stackmap_kept *kept;
	int ret;

	ret = stackmap_unused_gen(walk, &gen);
	if (ret)
		return ERR_PTR(ret);

	kept = ftrace_stackmap_keep(map, walk->marks, stackmap_kept_limit(map));
	if (IS_ERR(kept))
		return ERR_CAST(kept);

	new = ftrace_stackmap_new(walk->tr, gen);
	if (!new) {
		kvfree(kept);
		return ERR_PTR(-ENOMEM);
	}
	stackmap_inherit(new, map, kept);
	return new;
}

/* Replace @map by @new, unless it was replaced meanwhile. */
static void stackmap_publish(struct ftrace_stackmap *map, struct ftrace_stackmap *new)
{
	struct ftrace_stackmap *prev = map->prev;
	struct stackmap_kept *kept = map->kept;
	struct trace_array *tr = map->tr;

	if (stackmap_lock(map)) {
		new->prev = NULL;
		ftrace_stackmap_free(new);
		return;
	}

	WRITE_ONCE(tr->stackmap_gen, new->gen);
	rcu_assign_pointer(tr->stackmap, new);
	/* stackmap_publish:A, pairs with ftrace_stackmap_active() and the readers */
	synchronize_rcu();
	new->settled = atomic_read(&new->tail);
	map->prev = NULL;
	map->kept = NULL;
	mutex_unlock(&trace_types_lock);

	if (prev)
		ftrace_stackmap_free(prev);
	kvfree(kept);
}

static int stackmap_walk_all(struct stackmap_walk *walk)
{
	int ret, cpu;

	for_each_tracing_cpu(cpu) {
		ret = stackmap_lock(walk->map);
		if (ret)
			return ret;
		ret = stackmap_walk_cpu(walk, cpu);
		mutex_unlock(&trace_types_lock);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * ftrace_stackmap_rotate - replace the map of an instance by an empty one
 * @map: the map, which is nearly full
 *
 * The stacks of @map stay. Of those before it, the ones stay that an event
 * refers to.
 *
 * Context: the work of @map, which nobody but this changes and frees meanwhile.
 * Takes trace_types_lock for a CPU at a time.
 * Return: 0, also if @map was replaced meanwhile; -EAGAIN if the walk failed;
 * -ENOMEM; -ENOSPC if too many stacks would have to be kept; -EBUSY if events
 * hold ids of all generations.
 */
int ftrace_stackmap_rotate(struct ftrace_stackmap *map)
{
	struct ftrace_stackmap *new;
	struct stackmap_walk *walk;
	int ret;

	walk = stackmap_walk_alloc(map->tr, map);
	if (!walk)
		return -ENOMEM;

	ret = stackmap_walk_all(walk);
	if (!ret) {
		new = stackmap_successor(walk);
		ret = PTR_ERR_OR_ZERO(new);
	}
	kvfree(walk);
	if (!ret)
		stackmap_publish(map, new);
	return ret == -ESTALE ? 0 : ret;
}
