// SPDX-License-Identifier: GPL-2.0
/*
 * The stack map of a trace instance: its option, its reset and the parameters.
 *
 * trace_types_lock serializes option and reset.
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include <asm/sections.h>

#include <kunit/visibility.h>

#include "trace_stackmap_internal.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "ftrace_stackmap."

/* Where interrupts enter the kernel. No stack is split where this is not known to be assembly. */
#if defined(CONFIG_X86) || defined(CONFIG_ARM64) || defined(CONFIG_ARM)
#define STACKMAP_ENTRY_START	((unsigned long)__entry_text_start)
#define STACKMAP_ENTRY_END	((unsigned long)__entry_text_end)
#elif defined(CONFIG_S390) || defined(CONFIG_RISCV)
#define STACKMAP_ENTRY_START	((unsigned long)__irqentry_text_start)
#define STACKMAP_ENTRY_END	((unsigned long)__irqentry_text_end)
#else
#define STACKMAP_ENTRY_START	0UL
#define STACKMAP_ENTRY_END	0UL
#endif

/* Read when a map is allocated, and when it is the first one after a reset. */
unsigned int ftrace_stackmap_bits __read_mostly = STACKMAP_BITS_DEFAULT;
static bool stackmap_split __read_mostly = true;

static int stackmap_bits_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, STACKMAP_BITS_MIN, STACKMAP_BITS_MAX);
}

static const struct kernel_param_ops stackmap_bits_ops = {
	.set		= stackmap_bits_set,
	.get		= param_get_uint,
};

module_param_cb(bits, &stackmap_bits_ops, &ftrace_stackmap_bits, 0644);
MODULE_PARM_DESC(bits, "log2 of the number of stacks that a stack map holds at most, 10 to 18");

module_param_named(split, stackmap_split, bool, 0644);
MODULE_PARM_DESC(split, "split stacks where an interrupt has hit");

/**
 * stackmap_publish - replace the map of an instance
 * @tr: the instance
 * @map: the new map, or NULL
 *
 * Nobody uses the map before it afterwards.
 *
 * Context: may sleep, under trace_types_lock or in the work that replaces maps.
 */
void stackmap_publish(struct trace_array *tr, struct ftrace_stackmap *map)
{
	if (map) {
		__set_bit(map->gen & STACKMAP_GEN_MASK, tr->stackmap_gens);
		WRITE_ONCE(tr->stackmap_gen, map->gen);
	}
	rcu_assign_pointer(tr->stackmap, map);
	/* stackmap_publish:A, pairs with stackmap_active() and the readers */
	synchronize_rcu();
}

static void stackmap_free_shared(struct stackmap_shared *shared)
{
	free_percpu(shared->counts);
	user_objects_put(shared->objects);
	kvfree(shared->repl);
	kfree(shared);
}

/* The first map of an instance, or the first one after a reset. Returns NULL without memory. */
VISIBLE_IF_KUNIT struct ftrace_stackmap *stackmap_new(unsigned int bits, u32 gen)
{
	struct stackmap_shared *shared = kzalloc_obj(*shared);
	struct ftrace_stackmap *map = NULL;

	if (!shared)
		return NULL;

	if (READ_ONCE(stackmap_split)) {
		shared->entry_start = STACKMAP_ENTRY_START;
		shared->entry_size = STACKMAP_ENTRY_END - STACKMAP_ENTRY_START;
	}
	shared->counts = alloc_percpu(struct stackmap_counts);
	shared->objects = user_objects_alloc();
	if (shared->counts && !IS_ERR(shared->objects))
		map = stackmap_alloc_first(shared, bits, gen);
	if (!map)
		stackmap_free_shared(shared);
	return map;
}

/* Free all maps of an instance. Nobody uses them, and the work is stopped. */
VISIBLE_IF_KUNIT void stackmap_free_all(struct ftrace_stackmap *map)
{
	struct stackmap_shared *shared = map->shared;

	stackmap_end_replacement(map);
	stackmap_free(map);
	stackmap_free_shared(shared);
}

/* A map for an instance that has none, or is going to be reset. */
static struct ftrace_stackmap *stackmap_create(struct trace_array *tr, u32 gen)
{
	struct ftrace_stackmap *map;
	int ret;

	/* The ids would survive a reboot, the map would not. */
	if (tr->range_addr_start)
		return ERR_PTR(-EOPNOTSUPP);

	map = stackmap_new(READ_ONCE(ftrace_stackmap_bits), gen);
	if (!map)
		return ERR_PTR(-ENOMEM);

	ret = stackmap_start(tr, map);
	if (!ret)
		return map;

	stackmap_free_all(map);
	return ERR_PTR(ret);
}

/**
 * ftrace_stackmap_set - set or clear options/stackmap
 * @tr: the instance
 * @enable: whether stacks are to go through the map
 *
 * Allocates the map if there is none, and changes tr->trace_flags.
 *
 * Context: may sleep, under trace_types_lock.
 * Return: 0, -EOPNOTSUPP for a persistent or read-only instance, or -ENOMEM.
 * Also -EBUSY, if events hold ids of all generations.
 */
int ftrace_stackmap_set(struct trace_array *tr, bool enable)
{
	struct ftrace_stackmap *map;

	lockdep_assert_held(&trace_types_lock);

	if (!enable) {
		tr->trace_flags &= ~TRACE_ITER(STACKMAP);
		return 0;
	}

	if (!stackmap_current(tr)) {
		map = stackmap_create(tr, tr->stackmap_gen);
		if (IS_ERR(map))
			return PTR_ERR(map);
		stackmap_publish(tr, map);
	}
	tr->trace_flags |= TRACE_ITER(STACKMAP);
	return 0;
}

/* Has nothing been stored or counted since the last reset? */
static bool stackmap_unused(const struct ftrace_stackmap *map)
{
	if (map->shared->repl->past.rotations || atomic_read(&map->entries))
		return false;

	for (int i = 0; i < STACKMAP_NR_COUNTS; i++) {
		if (stackmap_sum(map->shared, i))
			return false;
	}
	return true;
}

/**
 * stackmap_reset - forget all stacks of an instance
 * @tr: the instance
 *
 * With options/stackmap on, an empty map replaces the current one. With the
 * option off, the memory is freed. The ids in the buffer are stale afterwards. If
 * there are none, the generation stays.
 *
 * Context: may sleep, under trace_types_lock.
 * Return: 0, or with the option on: -ENOMEM, or -EBUSY while tracing is on in @tr.
 * Also -EBUSY, if events hold ids of all generations.
 */
int stackmap_reset(struct trace_array *tr)
{
	bool on = tr->trace_flags & TRACE_ITER(STACKMAP);
	struct ftrace_stackmap *map, *new;
	u32 gen;

	lockdep_assert_held(&trace_types_lock);

	if (!stackmap_current(tr))
		return 0;
	if (on && tracer_tracing_is_on(tr))
		return -EBUSY;

	stackmap_stop(tr);
	map = stackmap_current(tr);
	gen = map->gen + 1;
	new = on ? stackmap_create(tr, gen) : NULL;
	if (IS_ERR(new)) {
		stackmap_restart(tr);
		return PTR_ERR(new);
	}

	stackmap_publish(tr, NULL);
	/* Now nobody records into the old map. If it gave no id, its generation can stay. */
	if (stackmap_unused(map)) {
		gen = map->gen;
		__clear_bit(gen & STACKMAP_GEN_MASK, tr->stackmap_gens);
		if (new)
			new->gen = gen;
	}
	WRITE_ONCE(tr->stackmap_gen, gen);
	if (new)
		stackmap_publish(tr, new);
	stackmap_free_all(map);
	return 0;
}

/**
 * ftrace_stackmap_destroy - free the map of an instance
 * @tr: the instance, which has no users
 *
 * Context: may sleep, under trace_types_lock.
 */
void ftrace_stackmap_destroy(struct trace_array *tr)
{
	ftrace_stackmap_set(tr, false);
	stackmap_reset(tr);
	bitmap_free(tr->stackmap_gens);
}
