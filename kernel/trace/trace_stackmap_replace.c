// SPDX-License-Identifier: GPL-2.0
/*
 * Replacement of a stack map that is nearly full.
 *
 * A map never changes its size. When it is nearly full, a work publishes an empty one
 * of the next generation, which leads to the one before it (prev). An id tells its
 * generation.
 *
 *   growth     the new map is twice as large. Nothing is copied: all maps before
 *              it stay whole, since together they are smaller than the new one.
 *   recycling  the map may not grow. The work walks the ring buffers. Of the maps
 *              before the current one, it keeps those stacks that an event refers
 *              to (kept). The current map stays whole until the next time.
 *
 *	gen	current		prev		kept
 *	 0	2^12 stacks	-		-
 *	 1	2^13		gen 0		-
 *	 2	2^14, the most	gen 1, gen 0	-
 *	 3	2^14		gen 2		of gen 0 and 1
 *	 4	2^14		gen 3		of gen 0, 1 and 2
 *
 * After the grace period of a replacement, no CPU makes ids of older maps, and all
 * events with such ids are committed. No new event refers to them, so a walk can't miss
 * one. For the same reason, a generation whose ids the walk has not found can be used
 * again when the 12 bits wrap.
 *
 * Option and reset disable the work before they touch the map, so that it takes no
 * lock.
 */
#include <linux/bitmap.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/cputime.h>
#include <linux/slab.h>

#include <kunit/visibility.h>

#include "trace_stackmap_internal.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "ftrace_stackmap."

/* The longest pause, so that a wrap of jiffies can't make it endless. */
#define STACKMAP_MAX_PAUSE	(600L * HZ)

/* Read at the first map after a reset. */
static bool stackmap_recycle __read_mostly = true;

/* After replacing a map took t of CPU time, this is not done again for this number times t. */
static unsigned int stackmap_pause __read_mostly = 20;

module_param_named(recycle, stackmap_recycle, bool, 0644);
MODULE_PARM_DESC(recycle, "replace a map that is nearly full, and forget unused stacks");

#ifdef CONFIG_FTRACE_STACKMAP_KUNIT_TEST
module_param_named(pause, stackmap_pause, uint, 0644);
MODULE_PARM_DESC(pause, "how many times the CPU time of replacing a map is the pause after it");
#endif

/* Find the first generation from @gen on that is not in use. */
static int stackmap_unused_gen(const struct trace_array *tr, u32 *gen)
{
	for (u32 i = 0; i < STACKMAP_GENS; i++, ++*gen) {
		if (!test_bit(*gen & STACKMAP_GEN_MASK, tr->stackmap_gens))
			return 0;
	}
	return -EBUSY;
}

/*
 * Find a generation of which no event has an id, from @gen on. If all seem to be in
 * use, walks the buffers.
 */
static int stackmap_take_gen(struct ftrace_stackmap *map, u32 *gen)
{
	struct trace_array *tr = map->shared->repl->tr;
	int ret;

	if (!stackmap_unused_gen(tr, gen))
		return 0;

	ret = stackmap_mark(map, STACKMAP_BITS_MAX);
	if (ret)
		return ret;
	stackmap_unmark(map);
	return stackmap_unused_gen(tr, gen);
}

/* Empty and free the caches of a map that nobody records into any more. */
static void stackmap_retire(struct ftrace_stackmap *map)
{
	struct stackmap_cache __percpu *cache = map->cache;
	int cpu;

	for_each_possible_cpu(cpu) {
		for (int i = 0; i < ARRAY_SIZE(cache->words); i++)
			stackmap_flush(map, local_xchg(&per_cpu_ptr(cache, cpu)->words[i], 0));
		cond_resched();
	}

	WRITE_ONCE(map->cache, NULL);
	synchronize_rcu();
	free_percpu(cache);
}

/* Free @map and those before it. */
static void stackmap_free_chain(struct ftrace_stackmap *map)
{
	struct ftrace_stackmap *prev;

	for (; map; map = prev) {
		prev = map->prev;
		stackmap_free(map);
	}
}

/**
 * stackmap_replace - replace the map of an instance by an empty one
 * @repl: of the instance
 *
 * The new one is twice as large, or takes the stacks of a map that is as large as
 * it may be. Then the map stays, and of those before it the stacks that an event
 * refers to.
 *
 * Context: the work of @repl.
 * Return: 0, -ENOMEM, -ENOSPC if too many stacks would have to be kept, -EINTR if a
 * reset waits for the work, or -EBUSY if all generations are in use.
 */
VISIBLE_IF_KUNIT int stackmap_replace(struct stackmap_replacement *repl)
{
	struct ftrace_stackmap *map = stackmap_current(repl->tr), *new, *old = NULL;
	unsigned int bits = READ_ONCE(ftrace_stackmap_bits);
	bool grow = map->max_entries < 1U << bits;
	u32 gen = map->gen + 1;
	int ret;

	if (!grow) {
		ret = stackmap_mark(map, bits);
		if (ret)
			return ret;
		ret = stackmap_unused_gen(repl->tr, &gen);
	} else {
		bits = ilog2(map->max_entries) + 1;
		ret = stackmap_take_gen(map, &gen);
	}

	new = ret ? NULL : stackmap_alloc(map->shared, bits, gen);
	if (!new) {
		if (!grow)
			stackmap_unmark(map);
		return ret ?: -ENOMEM;
	}

	if (!grow)
		old = stackmap_forget(map);
	new->prev = map;
	repl->past.rotations++;
	stackmap_publish(repl->tr, new);
	stackmap_retire(map);
	stackmap_free_chain(old);
	return 0;
}

static void stackmap_work(struct work_struct *work)
{
	struct stackmap_replacement *repl = container_of(to_delayed_work(work),
							 struct stackmap_replacement, work);
	u64 start = task_sched_runtime(current), ran;
	int ret;

	ret = stackmap_replace(repl);
	ran = task_sched_runtime(current) - start;
	WRITE_ONCE(repl->not_before,
		   jiffies + 1 + nsecs_to_jiffies(ran * stackmap_pause) + (ret ? HZ : 0));
	/* After a failure, the next insert asks again. */
	WRITE_ONCE(repl->asked, false);
}

/* An insert may happen in the scheduler or in an NMI, and can't queue a work. */
static void stackmap_nearly_full(struct irq_work *work)
{
	struct stackmap_replacement *repl = container_of(work, struct stackmap_replacement,
							 nearly_full);
	long wait = READ_ONCE(repl->not_before) - jiffies;

	/* Too early during boot. */
	if (!system_dfl_wq || xchg(&repl->asked, true))
		return;

	queue_delayed_work(system_dfl_wq, &repl->work, clamp(wait, 0L, STACKMAP_MAX_PAUSE));
}

/**
 * stackmap_alloc_first - allocate the first map after a reset
 * @shared: of the instance
 * @bits: log2 of the number of stacks that it may hold
 * @gen: its generation
 *
 * Context: may sleep.
 * Return: the map, or NULL when there is not enough memory.
 */
struct ftrace_stackmap *stackmap_alloc_first(struct stackmap_shared *shared, unsigned int bits,
					     u32 gen)
{
	struct stackmap_replacement *repl;

	repl = kvzalloc(struct_size(repl, kept, 1U << bits), GFP_KERNEL);
	if (!repl)
		return NULL;

	repl->kept_bits = bits;
	repl->never = !READ_ONCE(stackmap_recycle);
	repl->asked = repl->never;
	repl->not_before = jiffies;
	repl->nearly_full = IRQ_WORK_INIT_HARD(stackmap_nearly_full);
	INIT_DELAYED_WORK(&repl->work, stackmap_work);
	shared->repl = repl;

	/* Unless it can't be replaced, or not by a work yet, it may be small. */
	if (!repl->never && system_state >= SYSTEM_SCHEDULING)
		bits = min(bits, STACKMAP_BITS_FIRST);
	return stackmap_alloc(shared, bits, gen);
}

/**
 * stackmap_start - prepare the first map after a reset for being published
 * @tr: the instance
 * @map: the map; gets the next generation that is not in use
 *
 * Context: may sleep, under trace_types_lock.
 * Return: 0, -ENOMEM, or -EBUSY if all generations are in use.
 */
int stackmap_start(struct trace_array *tr, struct ftrace_stackmap *map)
{
	map->shared->repl->tr = tr;
	if (!tr->stackmap_gens)
		tr->stackmap_gens = bitmap_zalloc(STACKMAP_GENS, GFP_KERNEL);
	return tr->stackmap_gens ? stackmap_take_gen(map, &map->gen) : -ENOMEM;
}

/**
 * stackmap_end_replacement - free what replacements have left
 * @map: the map of an instance without users, after stackmap_stop()
 *
 * Context: may sleep.
 */
void stackmap_end_replacement(struct ftrace_stackmap *map)
{
	struct stackmap_replacement *repl = map->shared->repl;

	irq_work_sync(&repl->nearly_full);
	stackmap_free_kept(repl);
	stackmap_free_chain(map->prev);
}

/**
 * stackmap_stop - stop the work that replaces a map
 * @tr: an instance with a map
 *
 * Context: may sleep, under trace_types_lock.
 */
void stackmap_stop(struct trace_array *tr)
{
	struct stackmap_replacement *repl = stackmap_current(tr)->shared->repl;

	WRITE_ONCE(repl->stop, true);
	disable_delayed_work_sync(&repl->work);
	WRITE_ONCE(repl->stop, false);
}

/**
 * stackmap_restart - undo stackmap_stop()
 * @tr: the instance
 *
 * Context: under trace_types_lock.
 */
void stackmap_restart(struct trace_array *tr)
{
	struct stackmap_replacement *repl = stackmap_current(tr)->shared->repl;

	enable_delayed_work(&repl->work);
	/* A request may have been lost. */
	WRITE_ONCE(repl->asked, repl->never);
}
