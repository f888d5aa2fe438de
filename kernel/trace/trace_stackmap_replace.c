// SPDX-License-Identifier: GPL-2.0
/*
 * Replacement of the map of an instance, by a work or by a reset. Nothing else changes
 * its size. trace_stackmap_gens.h has the design.
 */
#include <linux/cleanup.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/ring_buffer.h>

#include <kunit/visibility.h>

#include "trace_stackmap_internal.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "ftrace_stackmap."

/* Old stacks take no more memory than this number of the largest maps, or the ring buffer. */
#define STACKMAP_OLD_MAPS	4

/*
 * The pause after a replacement is 1 ms for each STACKMAP_PAUSE_STACKS stacks that the
 * larger of the two maps can hold. Replacing takes about 5 % of that time. The cache of a
 * CPU, which is flushed and freed, counts as STACKMAP_PAUSE_CPU stacks.
 */
#define STACKMAP_PAUSE_STACKS	128
#define STACKMAP_PAUSE_CPU	16

/* Read at the first map after a reset. */
static bool stackmap_recycle __read_mostly = true;

module_param_named(recycle, stackmap_recycle, bool, 0644);
MODULE_PARM_DESC(recycle, "replace a map that is nearly full, and free unused stacks");

/* The first id of a generation that is not in use, or -EBUSY. */
static int stackmap_unused_id(const struct stackmap_instance *inst)
{
	u32 first_id;

	for (u32 i = 0; i < STACKMAP_GENS; i++) {
		first_id = (inst->next_gen + i) % STACKMAP_GENS << STACKMAP_SLOT_BITS;
		if (!stackmap_gen_of(stackmap_gens(inst), first_id))
			return first_id;
	}
	return -EBUSY;
}

/* An empty map of 2^@bits stacks, as a generation of its own. */
static struct stackmap_gen *stackmap_create(struct stackmap_instance *inst, unsigned int bits)
{
	struct ftrace_stackmap *map;
	struct stackmap_gen *gen;
	int first_id;

	first_id = stackmap_unused_id(inst);
	if (first_id < 0) {
		stackmap_free_unused(inst);
		first_id = stackmap_unused_id(inst);
	}
	if (first_id < 0)
		return ERR_PTR(first_id);

	map = stackmap_persistent(inst) ? stackmap_range_empty(inst, first_id) :
					  stackmap_alloc(bits, first_id);
	gen = map ? stackmap_gen_alloc(first_id, map) : NULL;
	if (!gen) {
		stackmap_free(map);
		return ERR_PTR(-ENOMEM);
	}

	inst->next_gen = (first_id >> STACKMAP_SLOT_BITS) + 1;
	return gen;
}

/* Log2 of the size of the first map. It is small if a work can replace it. */
unsigned int stackmap_first_bits(void)
{
	unsigned int bits = READ_ONCE(ftrace_stackmap_bits);

	return READ_ONCE(stackmap_recycle) && system_state >= SYSTEM_SCHEDULING ?
	       min(bits, STACKMAP_BITS_FIRST) : bits;
}

/**
 * stackmap_create_first - allocate the first map after a reset
 * @inst: the instance
 *
 * Return: its generation, or -ENOMEM, or -EBUSY if all generations are in use.
 */
struct stackmap_gen *stackmap_create_first(struct stackmap_instance *inst)
{
	bool recycle = READ_ONCE(stackmap_recycle) && !stackmap_persistent(inst);
	struct stackmap_gen *gen;

	gen = stackmap_create(inst, stackmap_first_bits());
	if (IS_ERR(gen))
		return gen;

	gen->recycle = recycle;
	stackmap_set_irqentry(gen->map);
	return gen;
}

/**
 * stackmap_begin_map - begin to record into the map of a new generation
 * @inst: the instance
 * @gen: the generation; its reference is given away
 *
 * Afterwards, nobody records into the previous map.
 *
 * Return: 0 or -ENOMEM.
 */
int stackmap_begin_map(struct stackmap_instance *inst, struct stackmap_gen *gen)
{
	struct stackmap_gens *gens = stackmap_gens_with(inst, gen);

	if (!gens)
		return -ENOMEM;
	stackmap_set_range(inst, gen, false);
	stackmap_publish(inst, gens, gen->map);
	return 0;
}

/* Is there room for the stacks of the current map among the old ones? */
static bool stackmap_has_room(const struct stackmap_instance *inst)
{
	struct ftrace_stackmap *map = stackmap_current(inst);
	unsigned int bits = ilog2(map->max_entries);
	/* Its stacks take that much when they are packed. */
	size_t size = (stackmap_tail(map) + atomic_read(&map->entries)) * STACKMAP_UNIT;
	const struct stackmap_gens *gens = stackmap_gens(inst);
	/* If a snapshot swaps them now, one may count twice, this time. */
	struct trace_buffer *buffer = data_race(READ_ONCE(inst->tr->array_buffer.buffer));
	struct trace_buffer *other = stackmap_other_buffer(inst->tr);
	size_t buffer_size = 0;
	int cpu;

	bits = max(bits, READ_ONCE(ftrace_stackmap_bits));
	for (u32 i = 0; i < gens->nr; i++) {
		if (gens->gen[i] != map->gen)
			size += gens->gen[i]->size;
	}
	for_each_tracing_cpu(cpu)
		buffer_size += ring_buffer_size(buffer, cpu) +
			       (other ? ring_buffer_size(other, cpu) : 0);
	return size <= max(STACKMAP_OLD_MAPS * stackmap_size(bits), buffer_size);
}

/**
 * stackmap_replace - replace the map of an instance by an empty one
 * @inst: the instance, which has a map
 *
 * The new one is twice as large if the map is nearly full, and if it may be.
 *
 * Return: 0, -ENOMEM, -ENOSPC if old stacks take too much memory, or -EBUSY if all
 * generations are in use.
 */
VISIBLE_IF_KUNIT int stackmap_replace(struct stackmap_instance *inst)
{
	struct ftrace_stackmap *map = stackmap_current(inst);
	unsigned int bits = ilog2(map->max_entries) + stackmap_nearly_full(map);
	struct stackmap_gen *gen = map->gen, *new;
	int ret;

	if (!stackmap_has_room(inst))
		stackmap_free_unused(inst);
	if (!stackmap_has_room(inst))
		return -ENOSPC;

	new = stackmap_create(inst, min(bits, READ_ONCE(ftrace_stackmap_bits)));
	if (IS_ERR(new))
		return PTR_ERR(new);

	new->recycle = gen->recycle;
	new->map->irqentry_start = map->irqentry_start;
	new->map->irqentry_size = map->irqentry_size;
	ret = stackmap_begin_map(inst, new);
	if (ret)
		return ret;

	stackmap_flush(map);
	stackmap_set_range(inst, gen, true);
	inst->past.rotations++;
	stackmap_free_unused(inst);
	return 0;
}

/**
 * stackmap_request_replace - request that a map be replaced if it is nearly full
 * @inst: the instance
 * @map: its map, which has got a new stack, or did not take one
 *
 * An insert may happen in the scheduler or in an NMI, and can't queue a work. Early
 * during boot, there is no irq_work either.
 *
 * Context: any, NMI included, with preemption off or under RCU.
 */
void stackmap_request_replace(struct stackmap_instance *inst, const struct ftrace_stackmap *map)
{
	if (stackmap_nearly_full(map) && map->gen->recycle && system_state >= SYSTEM_SCHEDULING &&
	    !delayed_work_pending(&inst->work))
		irq_work_queue(&inst->nearly_full);
}

static void stackmap_work(struct work_struct *work)
{
	struct stackmap_instance *inst = container_of(to_delayed_work(work),
						      struct stackmap_instance, work);
	struct ftrace_stackmap *map;
	unsigned long since;
	u32 stacks;
	int ret;

	guard(mutex)(&inst->lock);
	map = stackmap_current(inst);
	if (!map || !map->gen->recycle || !stackmap_nearly_full(map))
		return;

	since = jiffies - inst->replaced;
	if (since < inst->pause) {
		queue_delayed_work(system_dfl_wq, &inst->work, inst->pause - since);
		return;
	}

	stacks = map->max_entries;
	ret = stackmap_replace(inst);
	inst->replaced = jiffies;
	stacks = max(stacks, stackmap_current(inst)->max_entries) +
		 num_possible_cpus() * STACKMAP_PAUSE_CPU;
	inst->pause = ret ? HZ : 1 + msecs_to_jiffies(stacks / STACKMAP_PAUSE_STACKS);
}

static void stackmap_nearly_full_fn(struct irq_work *work)
{
	struct stackmap_instance *inst = container_of(work, struct stackmap_instance,
						      nearly_full);

	queue_delayed_work(system_dfl_wq, &inst->work, 0);
}

/**
 * stackmap_init_replacement - prepare an instance for replacing its maps
 * @inst: the instance
 */
void stackmap_init_replacement(struct stackmap_instance *inst)
{
	inst->nearly_full = IRQ_WORK_INIT_HARD(stackmap_nearly_full_fn);
	INIT_DELAYED_WORK(&inst->work, stackmap_work);
}

/**
 * stackmap_stop_replacement - stop replacing the maps of an instance for good
 * @inst: the instance, into whose map nobody records
 *
 * Waits for the work, which takes inst->lock.
 */
void stackmap_stop_replacement(struct stackmap_instance *inst)
{
	irq_work_sync(&inst->nearly_full);
	cancel_delayed_work_sync(&inst->work);
}
