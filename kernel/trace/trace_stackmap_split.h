/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_SPLIT_H
#define _TRACE_STACKMAP_SPLIT_H

#include "trace_stackmap_map.h"

/*
 * Stacks of interrupts.
 *
 * The stack of an interrupted task contains the address of the instruction that was
 * hit, which makes nearly every such stack a new one. So a kernel stack is split after
 * each frame in the entry code. The parts are stored like stacks. The instruction that
 * was hit is in no part, it goes into the event:
 *
 *	frames			part	event (TRACE_STACK_SPLIT)
 *	timer_fn		 0	stack_id
 *	 ...			 0
 *	asm_timer_interrupt	 0
 *	memcpy			 -	ip
 *	vfs_read		 1	outer_id
 *	 ...			 1
 *
 * An interrupt on top of another one, or of a page fault, makes a third part. The event is
 * TRACE_STACK_SPLIT3 then, which also has outer2_ip and outer2_id. Stacks of more parts are
 * rare. They are recorded in full.
 */

#define STACKMAP_MAX_PARTS	3

struct stack_split_entry;
struct trace_entry;

void stackmap_set_irqentry(struct ftrace_stackmap *map);
void stackmap_fill_split(struct ftrace_stackmap *map, struct stack_split_entry *entry,
			 const struct stackmap_key *parts, int nr);
int stackmap_event_ids(const struct trace_entry *ent);
int stackmap_event_id(const struct trace_entry *ent, int i);

/*
 * Look up the parts of a stack, of which there are up to STACKMAP_MAX_PARTS. Returns how
 * many there are, or why one can't be stored. In the first one, @user is set.
 */
static __always_inline int
stackmap_find_parts(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
		    struct stackmap_key *parts)
{
	int ret;

	for (int i = 0; i < STACKMAP_MAX_PARTS; i++) {
		parts[i].user = parts[0].user;
		ret = stackmap_find(map, ips, nr, &parts[i]);
		if (ret)
			return ret;
		if (parts[i].nr == nr)
			return i + 1;
		/* The instruction that was hit is in no part. */
		ips += parts[i].nr + 1;
		nr -= parts[i].nr + 1;
	}
	return -STACKMAP_DROP_PARTS;
}

/* Store those of @nr parts that are new. Returns how many, or why one does not fit. */
static inline int stackmap_store(struct ftrace_stackmap *map, struct stackmap_key *parts, int nr)
{
	int stored = 0, ret;

	for (int i = 0; i < nr; i++) {
		if (parts[i].idx >= 0)
			continue;
		ret = stackmap_insert(map, &parts[i]);
		if (ret)
			return ret;
		stored++;
	}
	return stored;
}

#endif /* _TRACE_STACKMAP_SPLIT_H */
