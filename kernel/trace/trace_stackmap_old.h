/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_OLD_H
#define _TRACE_STACKMAP_OLD_H

#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/workqueue.h>

/*
 * Replacement of maps, see trace_stackmap_replace.c. Included by trace_stackmap_internal.h.
 */

struct stackmap_iter;

/* Log2 of the size of the first map. */
#define STACKMAP_BITS_FIRST	12

/* A stack of a map that is gone. */
struct stackmap_kept {
	struct hlist_node	node;
	int			id;
	bool			used;	/* the walk has found an event with @id */
	struct rcu_head		rcu;
	struct stackmap_record	rec;
};

/* What became of older maps. Changed by the work, read by readers. */
struct stackmap_past {
	unsigned long		rotations;	/* replacements */
	unsigned long		recycled;	/* stacks that are gone ... */
	unsigned long		recycled_refs;	/* ... and their references */
	size_t			kept_size;	/* bytes */
	u32			nr_kept;
};

/* The replacement of the maps of an instance, from the first one to the next reset. */
struct stackmap_replacement {
	bool			asked;		/* for one, or there are none */
	bool			never;		/* replace the map, by parameter */
	bool			stop;		/* a reset waits for the work */
	struct trace_array	*tr;
	struct irq_work		nearly_full;	/* queues the work, from any context */
	struct delayed_work	work;		/* replaces the map; nobody else does */
	unsigned long		not_before;	/* jiffies; the next replacement */
	struct stackmap_past	past;
	u32			forgotten;	/* twice for each time that stacks went */
	unsigned int		kept_bits;
	struct hlist_head	kept[];		/* 2^kept_bits lists, by hash of the id */
};

/* Where a map is replaced: at 3/4. The rest is used meanwhile. */
static inline u32 stackmap_most(u32 all)
{
	return all - all / 4;
}

/* Have a map replaced if it is nearly full. With preemption off since it was obtained. */
static inline void stackmap_ask(const struct ftrace_stackmap *map, u32 entries, u32 units)
{
	struct stackmap_replacement *repl = map->shared->repl;

	if ((entries >= stackmap_most(map->max_entries) ||
	     units > stackmap_most(map->arena_units)) && !READ_ONCE(repl->asked))
		irq_work_queue(&repl->nearly_full);
}

/* trace_stackmap_old.c */
struct ftrace_stackmap *stackmap_of(struct ftrace_stackmap *map, int id);
const struct stackmap_record *stackmap_lookup(struct ftrace_stackmap *map, int id);
int stackmap_mark(struct ftrace_stackmap *map, unsigned int bits);
void stackmap_unmark(struct ftrace_stackmap *map);
struct ftrace_stackmap *stackmap_forget(struct ftrace_stackmap *map);
void stackmap_free_kept(struct stackmap_replacement *repl);

/* trace_stackmap_read.c */
const struct stackmap_record *stackmap_next(struct stackmap_iter *iter, loff_t *pos);

/* trace_stackmap_replace.c */
struct ftrace_stackmap *stackmap_alloc_first(struct stackmap_shared *shared, unsigned int bits,
					     u32 gen);
int stackmap_start(struct trace_array *tr, struct ftrace_stackmap *map);
void stackmap_end_replacement(struct ftrace_stackmap *map);
void stackmap_stop(struct trace_array *tr);
void stackmap_restart(struct trace_array *tr);

#endif /* _TRACE_STACKMAP_OLD_H */
