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

/* How often a CPU's buffers are walked, when the writer or a swap gets in the way. */
#define STACKMAP_WALKS		16

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
 * there are only ids of the current map. While @cpu records, its newest events
 * overwrite the oldest. An iterator that was overtaken has missed what is
 * between them.
 */
static int stackmap_walk_buffer(struct stackmap_walk *walk, struct trace_buffer *buffer, int cpu)
{
	/* A reader that takes events out makes the iterator begin again. */
	unsigned long steps = 4 * ring_buffer_entries_cpu(buffer, cpu) + 1024;
	bool done = false, overrun = false;
	struct ring_buffer_event *event;
	struct ring_buffer_iter *iter;

	if (ring_buffer_empty_cpu(buffer, cpu))
		return 0;

	iter = ring_buffer_read_start(buffer, cpu, GFP_KERNEL);
	if (!iter)
		return -ENOMEM;

	while (!done && !overrun && steps--) {
		event = ring_buffer_iter_peek(iter, NULL);
		if (event) {
			done = stackmap_mark_event(walk, event);
			ring_buffer_iter_advance(iter);
		} else {
			/* NULL while an event is being written, too. */
			done = ring_buffer_iter_empty(iter) || ring_buffer_empty_cpu(buffer, cpu);
		}
		overrun = ring_buffer_iter_overrun(iter);
		cond_resched();
	}

	ring_buffer_read_finish(iter);
	return done && !overrun ? 0 : -EAGAIN;
}

#ifdef CONFIG_TRACER_SNAPSHOT
static int stackmap_walk_buffers(struct stackmap_walk *walk, int cpu)
{
	struct trace_array *tr = walk->tr;
	unsigned int seq = raw_read_seqcount_begin(&tr->snapshot_cpu_seq);
	/* A snapshot swaps these two at any time, but there are no others. */
	struct trace_buffer *buffer = READ_ONCE(tr->array_buffer.buffer);
	struct trace_buffer *other = READ_ONCE(tr->snapshot_buffer.buffer);
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

/* trace_types_lock keeps the size of the buffers. The access lock holds up consuming readers. */
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

/* The next generation of which no event has an id. */
static int stackmap_free_gen(const struct stackmap_walk *walk, u32 *gen)
{
	u32 current_gen = walk->tr->stackmap_gen;

	for (u32 i = 1; i <= STACKMAP_GEN_MASK; i++) {
		*gen = current_gen + i;
		if (!test_bit(*gen & STACKMAP_GEN_MASK, walk->gens))
			return 0;
	}
	return -EBUSY;
}

/**
 * ftrace_stackmap_next_gen - the generation for the next map of an instance
 * @tr: the instance
 * @gen: set to it
 *
 * Context: may sleep, under trace_types_lock.
 * Return: 0, -ENOMEM, or -EBUSY if events hold ids of all generations.
 */
int ftrace_stackmap_next_gen(struct trace_array *tr, u32 *gen)
{
	struct stackmap_walk *walk;
	int ret = 0, cpu;

	/* Not used before. */
	*gen = tr->stackmap_gen + 1;
	if (*gen <= STACKMAP_GEN_MASK)
		return 0;

	walk = stackmap_walk_alloc(tr, rcu_dereference_protected(tr->stackmap, true));
	if (!walk)
		return -ENOMEM;

	for_each_tracing_cpu(cpu) {
		ret = stackmap_walk_cpu(walk, cpu);
		if (ret)
			break;
	}
	if (!ret)
		ret = stackmap_free_gen(walk, gen);
	kvfree(walk);
	return ret == -EAGAIN ? -EBUSY : ret;
}

/*
 * Take trace_types_lock while @map is in use. Who frees it holds the lock, and
 * waits for the work that calls this.
 */
static bool stackmap_lock(struct ftrace_stackmap *map)
{
	while (!mutex_trylock(&trace_types_lock)) {
		if (rcu_access_pointer(map->tr->stackmap) != map)
			return false;
		schedule_timeout_uninterruptible(1);
	}
	if (rcu_access_pointer(map->tr->stackmap) == map)
		return true;

	mutex_unlock(&trace_types_lock);
	return false;
}

/* Bytes for kept stacks: no more than the buffers take, or a full map. */
static size_t stackmap_kept_limit(struct ftrace_stackmap *map)
{
	size_t limit = (size_t)map->arena_limit * STACKMAP_UNIT, size = 0;
	int cpu;

	for_each_tracing_cpu(cpu)
		size += ring_buffer_size(map->tr->array_buffer.buffer, cpu);
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

/* Publish an empty map in place of the one that was walked with. */
static int stackmap_publish(struct stackmap_walk *walk)
{
	struct ftrace_stackmap *map = walk->map, *new;
	struct trace_array *tr = walk->tr;
	struct stackmap_kept *kept;
	u32 gen;
	int ret;

	ret = stackmap_free_gen(walk, &gen);
	if (ret)
		return ret;

	kept = ftrace_stackmap_keep(map, walk->marks, stackmap_kept_limit(map));
	if (IS_ERR(kept))
		return PTR_ERR(kept);

	new = ftrace_stackmap_new(tr, gen);
	if (!new) {
		kvfree(kept);
		return -ENOMEM;
	}

	stackmap_inherit(new, map, kept);
	WRITE_ONCE(tr->stackmap_gen, gen);
	rcu_assign_pointer(tr->stackmap, new);

	/* stackmap_publish:A, pairs with ftrace_stackmap_active() and the readers */
	synchronize_rcu();
	new->settled = atomic_read(&new->tail);

	if (map->prev)
		ftrace_stackmap_free(map->prev);
	kvfree(map->kept);
	map->prev = NULL;
	map->kept = NULL;
	return 0;
}

/**
 * ftrace_stackmap_rotate - replace the map of an instance by an empty one
 * @map: the map, which is nearly full
 *
 * The stacks of @map stay. Of those before it, the ones stay that an event
 * refers to.
 *
 * Context: the work of @map. Takes trace_types_lock for a CPU at a time.
 * Return: 0, also if @map was replaced meanwhile; -EAGAIN if the writers were too
 * fast; -ENOMEM; -ENOSPC if too many stacks would have to be kept; -EBUSY if
 * events hold ids of all generations.
 */
int ftrace_stackmap_rotate(struct ftrace_stackmap *map)
{
	struct stackmap_walk *walk;
	int ret = 0, cpu;

	walk = stackmap_walk_alloc(map->tr, map);
	if (!walk)
		return -ENOMEM;

	for_each_tracing_cpu(cpu) {
		if (!stackmap_lock(map))
			goto out;
		ret = stackmap_walk_cpu(walk, cpu);
		mutex_unlock(&trace_types_lock);
		if (ret)
			goto out;
	}

	if (stackmap_lock(map)) {
		ret = stackmap_publish(walk);
		mutex_unlock(&trace_types_lock);
	}
 out:
	kvfree(walk);
	return ret;
}
