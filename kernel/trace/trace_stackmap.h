/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_H
#define _TRACE_STACKMAP_H

#include "trace.h"
#include "trace_user_object.h"

/*
 * The stack map of a trace instance
 * =================================
 *
 * A map stores each distinct stack once and names it by an id, so that
 * the ring buffer holds 4 bytes in place of the frames. The rest of
 * kernel/trace calls what is declared here. trace_stackmap_internal.h has the
 * structures. The files:
 *
 *   trace_stackmap.c           the map of one generation
 *   trace_stackmap_old.c       the stacks of older generations
 *   trace_stackmap_read.c      the stacks of all generations, for readers
 *   trace_stackmap_replace.c   replacement of the map
 *   trace_stackmap_record.c    events with ids
 *   trace_stackmap_print.c     how they are printed
 *   trace_stackmap_instance.c  option, reset, parameters
 *   trace_stackmap_stat.c      the statistics in tracefs
 *   trace_stackmap_files.c     the other files there
 *   trace_stackmap_define.c    definitions of stacks in the ring buffer
 *   trace_stackmap_user.c      user stacks: recorded and printed
 *   trace_user_object.c        the files that user stacks refer to
 *
 * The map:
 *
 *   slots  2^(bits + 1) words, open addressing with linear probing. 0 is an
 *          empty slot. Any other value is the offset of a record in the arena,
 *          and above that some bits of its hash (the tag).
 *   arena  the records, each as long as its stack.
 *
 * To insert a stack, the CPU reserves arena space, fills the record and
 * publishes it by one cmpxchg of an empty slot. A slot never changes after
 * that. So there is no half-inserted state, and nothing to wait for, no matter
 * which context was interrupted. If the slot was taken meanwhile, the look-up is
 * repeated. It finds the same stack, or the next empty slot. Hence a stack is
 * stored once and has one id. The arena space of the loser stays unused.
 *
 * Each CPU has a small cache of the stacks that it recorded last, by a sample of
 * their frames. A stack that is still there is found by comparing it, without a
 * hash. The cache also counts references. When another stack takes a place, the
 * count is added to the record of the stack that leaves.
 *
 * Interrupts: the stack of an interrupted task contains the address of the
 * instruction that was hit, which makes nearly every such stack a new one. So a
 * kernel stack is split after each frame in the entry code. The parts are stored
 * like stacks. The instruction that was hit is in no part, it goes into the event:
 *
 *	frames			part	event (TRACE_STACK_SPLIT)
 *	timer_fn		 0	stack_id
 *	 ...			 0
 *	asm_timer_interrupt	 0
 *	memcpy			 -	ip
 *	vfs_read		 1	outer
 *	 ...			 1
 *
 * Memory ordering:
 *
 *   stackmap_insert:A   fills a record, then cmpxchg_release() of its slot.
 *   stackmap_probe:A    READ_ONCE() of a slot, then the record by its address.
 *   stackmap_record:A   The same. Both pair with stackmap_insert:A.
 *   stackmap_publish:A  replaces the map, then synchronize_rcu(). Pairs with
 *                       stackmap_active() and the readers' rcu_dereference().
 *   stackmap_latch:A    reads the arena's tail, then synchronize_rcu(). A
 *                       record below that tail is published by then, or never.
 */

/**
 * struct stackmap_stack - a stack to record
 * @ips: its frames, innermost first
 * @nr: number of frames
 * @user: what makes it a user stack, or NULL
 */
struct stackmap_stack {
	const unsigned long	*ips;
	unsigned int		nr;
	struct stackmap_user	*user;
};

/* Write the event of a whole stack. Returns whether the buffer took it. */
typedef bool (*stackmap_full_fn)(struct trace_buffer *buffer, unsigned int trace_ctx,
				 const struct stackmap_stack *stack);

#ifdef CONFIG_FTRACE_STACKMAP
int ftrace_stackmap_set(struct trace_array *tr, bool enable);
void ftrace_stackmap_destroy(struct trace_array *tr);
void ftrace_stackmap_create_files(struct trace_array *tr, struct dentry *dir);
bool ftrace_stackmap_record(struct trace_array *tr, struct trace_buffer *buffer,
			    unsigned int trace_ctx, const struct stackmap_stack *stack,
			    stackmap_full_fn full);
bool ftrace_stackmap_record_user(struct trace_array *tr, struct trace_buffer *buffer,
				 unsigned int trace_ctx, stackmap_full_fn full);
bool ftrace_stackmap_hidden(const struct trace_iterator *iter);
void ftrace_stackmap_undefine(struct trace_array *tr);
void ftrace_stackmap_swap_begin(struct trace_array *tr);
void ftrace_stackmap_swap_end(struct trace_array *tr);
#else
static inline int ftrace_stackmap_set(struct trace_array *tr, bool enable)
{
	return -EOPNOTSUPP;
}

static inline void ftrace_stackmap_destroy(struct trace_array *tr) { }

static inline void ftrace_stackmap_create_files(struct trace_array *tr, struct dentry *dir) { }

static inline bool ftrace_stackmap_record(struct trace_array *tr, struct trace_buffer *buffer,
					  unsigned int trace_ctx,
					  const struct stackmap_stack *stack,
					  stackmap_full_fn full)
{
	return false;
}

static inline bool ftrace_stackmap_record_user(struct trace_array *tr,
					       struct trace_buffer *buffer,
					       unsigned int trace_ctx, stackmap_full_fn full)
{
	return false;
}

static inline bool ftrace_stackmap_hidden(const struct trace_iterator *iter)
{
	return false;
}

static inline void ftrace_stackmap_undefine(struct trace_array *tr) { }

static inline void ftrace_stackmap_swap_begin(struct trace_array *tr) { }

static inline void ftrace_stackmap_swap_end(struct trace_array *tr) { }
#endif /* CONFIG_FTRACE_STACKMAP */

#endif /* _TRACE_STACKMAP_H */
