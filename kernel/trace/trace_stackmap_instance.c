// SPDX-License-Identifier: GPL-2.0
/*
 * The stack map of a trace instance: its option, its reset and the parameters.
 *
 * The map is replaced as a whole, under trace_types_lock, and freed after a
 * grace period. It outlives the option, for the ids in the buffer.
 */
#define pr_fmt(fmt) "ftrace_stackmap: " fmt

#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>

#include <asm/sections.h>

#include "trace_stackmap.h"

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

/*
 * For maps that are allocated from now on: log2 of the stacks, whether they are
 * split, and whether the map is replaced when it is nearly full.
 */
unsigned int ftrace_stackmap_bits __read_mostly = STACKMAP_BITS_DEFAULT;
static bool stackmap_split __read_mostly = true;
static bool stackmap_recycle __read_mostly = true;

/* At boot, a number out of range is clamped, so that a typo does not cost the trace. */
static int stackmap_bits_set(const char *val, const struct kernel_param *kp)
{
	long bits, nearest;
	int ret;

	ret = kstrtol(val, 0, &bits);
	if (ret == -ERANGE)
		bits = *val == '-' ? LONG_MIN : LONG_MAX;
	else if (ret)
		return ret;

	nearest = clamp(bits, STACKMAP_BITS_MIN, STACKMAP_BITS_MAX);
	if (nearest != bits && system_state >= SYSTEM_RUNNING)
		return -EINVAL;
	if (nearest != bits)
		pr_warn("bits is out of range, using %ld\n", nearest);

	WRITE_ONCE(ftrace_stackmap_bits, nearest);
	return 0;
}

static const struct kernel_param_ops stackmap_bits_ops = {
	.set		= stackmap_bits_set,
	.get		= param_get_uint,
};

module_param_cb(bits, &stackmap_bits_ops, &ftrace_stackmap_bits, 0644);
MODULE_PARM_DESC(bits, "log2 of the number of stacks that a stack map holds, 10 to 18");

module_param_named(split, stackmap_split, bool, 0644);
MODULE_PARM_DESC(split, "split stacks where an interrupt has hit");

module_param_named(recycle, stackmap_recycle, bool, 0644);
MODULE_PARM_DESC(recycle, "forget stacks that no event refers to when the map is nearly full");

/**
 * ftrace_stackmap_new - allocate an empty map for an instance
 * @tr: the instance
 * @gen: its generation
 *
 * Context: may sleep.
 * Return: the map, or NULL when there is not enough memory.
 */
struct ftrace_stackmap *ftrace_stackmap_new(struct trace_array *tr, u32 gen)
{
	bool early = system_state < SYSTEM_SCHEDULING;
	struct ftrace_stackmap *map;

	map = ftrace_stackmap_alloc(READ_ONCE(ftrace_stackmap_bits), gen, early);
	if (map && READ_ONCE(stackmap_split)) {
		map->entry_start = STACKMAP_ENTRY_START;
		map->entry_size = STACKMAP_ENTRY_END - STACKMAP_ENTRY_START;
	}
	if (map && READ_ONCE(stackmap_recycle))
		ftrace_stackmap_set_rotate(map, tr, ftrace_stackmap_rotate);
	return map;
}

static struct ftrace_stackmap *stackmap_protected(struct trace_array *tr)
{
	return rcu_dereference_protected(tr->stackmap, lockdep_is_held(&trace_types_lock));
}

/* Replace the map of @tr by @new, which may be NULL. */
static void stackmap_swap(struct trace_array *tr, struct ftrace_stackmap *new)
{
	struct ftrace_stackmap *old = stackmap_protected(tr);

	rcu_assign_pointer(tr->stackmap, new);
	if (!old)
		return;

	/* stackmap_swap:A, pairs with ftrace_stackmap_active() and the readers */
	synchronize_rcu();
	if (new)
		new->settled = atomic_read(&new->tail);
	ftrace_stackmap_free(old);
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
	struct ftrace_stackmap *map;
	u32 gen = tr->stackmap_gen;
	int ret;

	lockdep_assert_held(&trace_types_lock);

	if (!enable) {
		tr->trace_flags &= ~TRACE_ITER(STACKMAP);
		return 0;
	}

	/* The ids would survive a reboot, the map would not. */
	if (tr->range_addr_start)
		return -EOPNOTSUPP;

	if (!stackmap_protected(tr)) {
		ret = ftrace_stackmap_unused_gen(tr, &gen);
		if (ret)
			return ret;
		map = ftrace_stackmap_new(tr, gen);
		if (!map)
			return -ENOMEM;
		WRITE_ONCE(tr->stackmap_gen, gen);
		stackmap_swap(tr, map);
	}

	tr->trace_flags |= TRACE_ITER(STACKMAP);
	return 0;
}

/**
 * ftrace_stackmap_reset - forget all stacks of an instance
 * @tr: the instance
 *
 * With options/stackmap on, an empty map replaces the current one. With the
 * option off, the memory is freed. The ids in the buffer are stale afterwards.
 *
 * Context: may sleep, under trace_types_lock.
 * Return: 0, or with the option on: -ENOMEM; -EBUSY while tracing is on in @tr,
 * or if events hold ids of all generations.
 */
int ftrace_stackmap_reset(struct trace_array *tr)
{
	struct ftrace_stackmap *new = NULL;
	u32 gen = tr->stackmap_gen + 1;
	int ret;

	lockdep_assert_held(&trace_types_lock);

	if (!stackmap_protected(tr))
		return 0;

	if (tr->trace_flags & TRACE_ITER(STACKMAP)) {
		if (tracer_tracing_is_on(tr))
			return -EBUSY;
		ret = ftrace_stackmap_unused_gen(tr, &gen);
		if (ret)
			return ret;
		new = ftrace_stackmap_new(tr, gen);
		if (!new)
			return -ENOMEM;
	}

	WRITE_ONCE(tr->stackmap_gen, gen);
	stackmap_swap(tr, new);
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
	stackmap_swap(tr, NULL);
}
