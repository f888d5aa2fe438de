/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_INTERNAL_H
#define _TRACE_STACKMAP_INTERNAL_H

#include <linux/irq_work.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/ring_buffer.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <asm/local.h>

#include "trace_stackmap.h"
#include "trace_stackmap_map.h"
#include "trace_stackmap_gens.h"
#include "trace_stackmap_split.h"

/*
 * What the files of the stack map have in common. trace_stackmap_gens.h has how the
 * map of an instance is replaced.
 *
 * Memory ordering:
 *
 *   stackmap_snapshot_tail:A   reads the tail of the arena, then synchronize_rcu(). A
 *                              record below that tail is published by then, or never.
 *   stackmap_alloc_instance:A  publishes an instance's state by a release. Pairs with
 *                              READ_ONCE(tr->stackmap).
 */

/* What is counted, beside the drops. */
enum stackmap_count {
	STACKMAP_SUCCESSES = STACKMAP_NR_DROPS,	/* stacks recorded by their ids */
	STACKMAP_SPLIT,		/* those that have more than one part */
	STACKMAP_MORE_PARTS,	/* their parts but the first */
	STACKMAP_DEEP,		/* user stacks of more than USER_STACK_MAX_DEPTH frames */
	STACKMAP_CUT,		/* user stacks that end outside of code */
	STACKMAP_ADDRESSES,	/* frames of user stacks that were not translated */
	STACKMAP_NR_COUNTS,
};

struct stackmap_counts {
	local_t			of[STACKMAP_NR_COUNTS];
};

/**
 * struct stackmap_instance - the stack map of a trace instance
 * @map: stacks are recorded into it; NULL after a reset with the option off
 * @counts: since the last reset
 * @gens: all generations, the current one included
 * @tr: the instance
 * @lock: serializes what changes @map and @gens; nests inside trace_types_lock
 * @next_gen: generation of the next map
 * @resets: number of resets
 * @past: what became of older maps
 * @pos: what the buffers of each CPU hold
 * @replaced: jiffies; the last replacement, or attempt
 * @pause: jiffies; no replacement for this long after @replaced
 * @nearly_full: queues the work, from any context
 * @work: replaces the map
 * @range: the map in persistent memory, or NULL
 * @range_bits: log2 of the number of its stacks
 * @range_cache: its caches
 * @panic_nb: empties them
 */
struct stackmap_instance {
	struct ftrace_stackmap	__rcu *map;
	struct stackmap_counts	__percpu *counts;
	struct stackmap_gens	__rcu *gens;
	struct trace_array	*tr;
	struct mutex		lock;		/* replacement, option and reset */
	u32			next_gen;
	unsigned int		resets;
	struct stackmap_past	past;
	struct ring_buffer_position (*pos)[STACKMAP_BUFFERS];
	unsigned long		replaced;
	unsigned long		pause;
	struct irq_work		nearly_full;
	struct delayed_work	work;
	struct ftrace_stackmap	*range;
	unsigned int		range_bits;
	struct stackmap_cache	__percpu *range_cache;
	struct notifier_block	panic_nb;
};

/* trace_stackmap_define.c */
int stackmap_define(struct trace_array *tr, struct ftrace_stackmap *map,
		    struct trace_buffer *buffer, unsigned int trace_ctx,
		    struct stackmap_key *parts, int nr, u32 *define);

/* trace_stackmap_event.c */
const struct stackmap_record *stackmap_resolve(struct trace_array *tr, int id);

/* trace_stackmap.c */
extern unsigned int ftrace_stackmap_bits;
struct trace_buffer *stackmap_other_buffer(struct trace_array *tr);
struct stackmap_instance *stackmap_alloc_instance(struct trace_array *tr);
int stackmap_begin(struct stackmap_instance *inst);

/* trace_stackmap_persist.c */
struct ftrace_stackmap *stackmap_range_empty(struct stackmap_instance *inst, u32 first_id);

#if IS_ENABLED(CONFIG_KUNIT)
void stackmap_success(struct stackmap_instance *inst, struct ftrace_stackmap *map,
		      const struct stackmap_key *parts, int nr);
u32 stackmap_header_hash(const struct ftrace_stackmap *map, unsigned int bits, unsigned long text);
unsigned int stackmap_restore(struct ftrace_stackmap *map, unsigned int bits);
int stackmap_panic(struct notifier_block *nb, unsigned long event, void *data);
#endif

static inline u32 stackmap_id(const struct ftrace_stackmap *map, u32 idx)
{
	return map->first_id | idx;
}

/* Is the map in memory that survives a reboot? */
static inline bool stackmap_persistent(const struct stackmap_instance *inst)
{
	return IS_ENABLED(CONFIG_FTRACE_STACKMAP_PERSIST) && inst->range;
}

/* The current map. */
static inline struct ftrace_stackmap *stackmap_current(const struct stackmap_instance *inst)
{
	return rcu_dereference_protected(inst->map, lockdep_is_held(&inst->lock));
}

/* All generations. */
static inline struct stackmap_gens *stackmap_gens(const struct stackmap_instance *inst)
{
	return rcu_dereference_protected(inst->gens, lockdep_is_held(&inst->lock));
}

/* Are the frames to be printed below an id? */
static inline bool stackmap_frames(const struct trace_iterator *iter)
{
	return iter->tr->trace_flags & TRACE_ITER(STACKMAP_FRAMES);
}

/*
 * The map that stacks go through, or NULL. A CPU that RCU ignores, or that is not
 * online, has none: a grace period would not wait for it. Preemption is off, or the caller
 * is an RCU reader.
 */
static __always_inline struct ftrace_stackmap *stackmap_active(struct trace_array *tr)
{
	/* Pairs with stackmap_alloc_instance:A */
	struct stackmap_instance *inst = READ_ONCE(tr->stackmap);

	if (!inst || !rcu_is_watching() || !cpu_online(raw_smp_processor_id()))
		return NULL;

	/* The checking variants call functions that could be traced. */
	return rcu_dereference_raw_check(inst->map);
}

/* Add to a count. Preemption is off. */
static inline void stackmap_count(struct stackmap_instance *inst, int what, long nr)
{
	local_add(nr, &this_cpu_ptr(inst->counts)->of[what]);
}

#endif /* _TRACE_STACKMAP_INTERNAL_H */
