// SPDX-License-Identifier: GPL-2.0
/*
 * The stack map of a trace instance: its option, its reset and the parameters.
 *
 * trace_types_lock serializes option and reset.
 */
#include <linux/bitmap.h>
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
	kvfree(shared);
}

static struct stackmap_shared *stackmap_alloc_shared(struct trace_array *tr, unsigned int bits)
{
	struct stackmap_shared *shared;

	shared = kvzalloc(struct_size(shared, kept, 1U << bits), GFP_KERNEL);
	if (!shared)
		return NULL;

	shared->counts = alloc_percpu(struct stackmap_counts);
	if (IS_ENABLED(CONFIG_TRACE_USER_OBJECTS))
		shared->objects = user_objects_alloc();
	if (!shared->counts || (IS_ENABLED(CONFIG_TRACE_USER_OBJECTS) && !shared->objects)) {
		stackmap_free_shared(shared);
		return NULL;
	}

	if (READ_ONCE(stackmap_split)) {
		shared->entry_start = STACKMAP_ENTRY_START;
		shared->entry_size = STACKMAP_ENTRY_END - STACKMAP_ENTRY_START;
	}
	stackmap_init_replacement(shared, tr, bits);
	return shared;
}

/* The first map of an instance, or the first one after a reset. Returns NULL without memory. */
VISIBLE_IF_KUNIT struct ftrace_stackmap *stackmap_new(struct trace_array *tr, unsigned int bits,
						      u32 gen)
{
	struct stackmap_shared *shared = stackmap_alloc_shared(tr, bits);
	struct ftrace_stackmap *map;

	if (!shared)
		return NULL;

	map = stackmap_alloc(shared, stackmap_first_bits(shared, bits), gen);
	if (!map)
		stackmap_free_shared(shared);
	return map;
}

/* Free all maps of an instance. Nobody uses them, and the work is stopped. */
VISIBLE_IF_KUNIT void stackmap_free_all(struct ftrace_stackmap *map)
{
	struct stackmap_shared *shared = map->shared;

	stackmap_end_replacement(shared);
	stackmap_free(map);
	stackmap_free_shared(shared);
}

static int stackmap_enable(struct trace_array *tr)
{
	struct ftrace_stackmap *map;
	int ret;

	/* The ids would survive a reboot, the map would not. */
	if (tr->range_addr_start)
		return -EOPNOTSUPP;

	if (stackmap_current(tr))
		return 0;

	if (!tr->stackmap_gens)
		tr->stackmap_gens = bitmap_zalloc(STACKMAP_GENS, GFP_KERNEL);
	if (!tr->stackmap_gens)
		return -ENOMEM;

	map = stackmap_new(tr, READ_ONCE(ftrace_stackmap_bits), tr->stackmap_gen);
	if (!map)
		return -ENOMEM;

	ret = stackmap_take_gen(map, &map->gen);
	if (ret)
		stackmap_free_all(map);
	else
		stackmap_publish(tr, map);
	return ret;
}

/**
 * ftrace_stackmap_set - set or clear options/stackmap
 * @tr: the instance
 * @enable: whether stacks are to go through the map
 *
 * Allocates the map if there is none, and changes tr->trace_flags.
 *
 * Context: may sleep, under trace_types_lock.
 * Return: 0, -EOPNOTSUPP for a persistent or read-only instance, -ENOMEM, or
 * -EBUSY if events hold ids of all generations.
 */
int ftrace_stackmap_set(struct trace_array *tr, bool enable)
{
	int ret;

	lockdep_assert_held(&trace_types_lock);

	if (!enable) {
		tr->trace_flags &= ~TRACE_ITER(STACKMAP);
		return 0;
	}

	ret = stackmap_enable(tr);
	if (!ret)
		tr->trace_flags |= TRACE_ITER(STACKMAP);
	return ret;
}

/* Has nothing been stored or counted since the last reset? */
static bool stackmap_unused(const struct ftrace_stackmap *map)
{
	if (map->shared->past.rotations || atomic_read(&map->entries))
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
 * Return: 0, or with the option on: -ENOMEM; -EBUSY while tracing is on in @tr,
 * or if events hold ids of all generations.
 */
int stackmap_reset(struct trace_array *tr)
{
	bool on = tr->trace_flags & TRACE_ITER(STACKMAP);
	struct ftrace_stackmap *map, *new = NULL;
	int ret = 0;
	u32 gen;

	lockdep_assert_held(&trace_types_lock);

	map = stackmap_current(tr);
	if (!map)
		return 0;
	if (on && tracer_tracing_is_on(tr))
		return -EBUSY;

	stackmap_stop(map->shared);
	map = stackmap_current(tr);
	gen = map->gen + 1;
	if (on) {
		ret = stackmap_take_gen(map, &gen);
		new = ret ? NULL : stackmap_new(tr, READ_ONCE(ftrace_stackmap_bits), gen);
	}
	if (on && !new) {
		stackmap_restart(map->shared);
		return ret ?: -ENOMEM;
	}

	stackmap_publish(tr, NULL);
	/* Now nobody records into the old map. If it gave no id, its generation can stay. */
	if (stackmap_unused(map)) {
		gen = map->gen;
		__clear_bit(gen & STACKMAP_GEN_MASK, tr->stackmap_gens);
	}
	if (new) {
		new->gen = gen;
		stackmap_publish(tr, new);
	}
	WRITE_ONCE(tr->stackmap_gen, gen);
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
