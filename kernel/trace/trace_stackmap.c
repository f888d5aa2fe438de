// SPDX-License-Identifier: GPL-2.0
/*
 * The stack map of a trace instance: its option and its size.
 *
 * What an instance has is allocated when the option is set the first time, and
 * stays until the instance is removed. The maps come and go.
 */
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/panic_notifier.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "trace_stackmap_internal.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "ftrace_stackmap."

unsigned int ftrace_stackmap_bits __read_mostly = 14;

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

#if defined(CONFIG_TRACER_SNAPSHOT) || defined(CONFIG_TRACER_MAX_TRACE)
/**
 * stackmap_other_buffer - the buffer of an instance that is not recorded to
 * @tr: the instance
 *
 * Return: the snapshot, or NULL if there are none.
 */
struct trace_buffer *stackmap_other_buffer(struct trace_array *tr)
{
	/* A snapshot swaps it at any time. */
	return data_race(READ_ONCE(tr->snapshot_buffer.buffer));
}
#else
struct trace_buffer *stackmap_other_buffer(struct trace_array *tr)
{
	return NULL;
}
#endif

static void stackmap_free_instance(struct stackmap_instance *inst)
{
	if (stackmap_persistent(inst))
		atomic_notifier_chain_unregister(&panic_notifier_list, &inst->panic_nb);
	free_percpu(inst->range_cache);
	free_percpu(inst->counts);
	kvfree(inst->pos);
	kfree(inst);
}

/**
 * stackmap_alloc_instance - allocate what an instance has beside its maps
 * @tr: the instance
 *
 * Return: its state, or NULL without memory.
 */
struct stackmap_instance *stackmap_alloc_instance(struct trace_array *tr)
{
	struct stackmap_instance *inst = kzalloc_obj(*inst);

	if (!inst)
		return NULL;

	inst->counts = alloc_percpu(struct stackmap_counts);
	inst->pos = kvcalloc(nr_cpu_ids, sizeof(*inst->pos), GFP_KERNEL);
	if (!inst->counts || !inst->pos) {
		stackmap_free_instance(inst);
		return NULL;
	}
	inst->tr = tr;
	mutex_init(&inst->lock);
	stackmap_init_replacement(inst);
	/* stackmap_alloc_instance:A, pairs with READ_ONCE(tr->stackmap) */
	smp_store_release(&tr->stackmap, inst);
	return inst;
}

/**
 * stackmap_begin - have stacks recorded into a map, if there is none
 * @inst: the instance
 *
 * Return: 0, -ENOMEM, or -EBUSY if all generations are in use.
 */
int stackmap_begin(struct stackmap_instance *inst)
{
	struct stackmap_gen *gen;

	if (stackmap_current(inst))
		return 0;

	gen = stackmap_create_first(inst);
	return IS_ERR(gen) ? PTR_ERR(gen) : stackmap_begin_map(inst, gen);
}

/**
 * ftrace_stackmap_set - set or clear options/stackmap
 * @tr: the instance
 * @enable: whether stacks are to go through the map
 *
 * Allocates the map if there is none, and changes tr->trace_flags.
 *
 * Return: 0, -EOPNOTSUPP for a persistent instance without a map in its memory or for a copy of
 * one, -ENOMEM, or -EBUSY if events hold ids of all generations.
 */
int ftrace_stackmap_set(struct trace_array *tr, bool enable)
{
	struct stackmap_instance *inst = tr->stackmap;
	int ret = 0;

	lockdep_assert_held(&trace_types_lock);

	if (!enable) {
		tr->trace_flags &= ~TRACE_ITER(STACKMAP);
		return 0;
	}

	/* The ids would survive a reboot, the map would not. */
	if (tr->range_addr_start &&
	    (!inst || !stackmap_persistent(inst) || trace_array_is_readonly(tr)))
		return -EOPNOTSUPP;

	inst = inst ?: stackmap_alloc_instance(tr);
	if (!inst)
		return -ENOMEM;

	guard(mutex)(&inst->lock);
	/* No map of this boot begins before ftrace_stackmap_next_boot(). */
	if (!stackmap_persistent(inst) || !(tr->flags & TRACE_ARRAY_FL_LAST_BOOT))
		ret = stackmap_begin(inst);
	if (!ret)
		tr->trace_flags |= TRACE_ITER(STACKMAP);
	return ret;
}

/**
 * ftrace_stackmap_destroy - free what an instance has of the stack map
 * @tr: the instance, which has no users
 */
void ftrace_stackmap_destroy(struct trace_array *tr)
{
	struct stackmap_instance *inst = tr->stackmap;

	if (!inst)
		return;

	scoped_guard(mutex, &inst->lock)
		stackmap_publish(inst, NULL, NULL);
	/* Nobody has a map whose replacement could be requested. */
	stackmap_stop_replacement(inst);
	tr->stackmap = NULL;
	stackmap_free_instance(inst);
}
