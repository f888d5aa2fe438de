// SPDX-License-Identifier: GPL-2.0
/*
 * Recording of stacks by their ids, and of definitions.
 *
 * A kernel stack is one TRACE_STACK_ID event, or one TRACE_STACK_SPLIT event where it
 * is split. A user stack is a TRACE_USER_STACK_ID event, or a TRACE_USER_UNWIND_STACK_ID
 * or TRACE_USER_UNWIND_STACK_SPLIT event if it was taken on the way back.
 *
 * With options/stackmap-define, the first use of a stack writes a TRACE_STACK_DEF or
 * TRACE_USER_STACK_DEF event with its frames, ahead of the event that has the id. So
 * a recording of the raw buffer can be read without the map.
 *
 * A record is marked with the value of tr->stackmap_define. Where that changes, all
 * stacks are undefined. It is odd while a snapshot swaps the buffers: a definition
 * may end up in either of them then.
 *
 * Memory ordering:
 *
 *   stackmap_define_part:A       commits a definition, then smp_store_release() of
 *                                the mark in the record.
 *   stackmap_define:A            reads the mark, then writes an event with the id.
 *                                Pairs with stackmap_define_part:A.
 *   ftrace_stackmap_swap_begin:A makes stackmap_define odd, then the buffers are
 *                                swapped.
 *   stackmap_define:B            has the buffer, then reads stackmap_define. Pairs
 *                                with ftrace_stackmap_swap_begin:A.
 *   ftrace_stackmap_swap_end:A   the buffers are swapped, then makes stackmap_define
 *                                even by a release.
 *   stackmap_define:C            acquires stackmap_define, then checks the buffer.
 *                                Pairs with ftrace_stackmap_swap_end:A.
 */
#include <linux/cpumask.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>

#include <kunit/visibility.h>

#include "trace_stackmap_internal.h"

/*
 * The map that stacks go through, or NULL. A CPU that RCU ignores, or that is not
 * online, has none: a grace period would not wait for it. Preemption is off.
 */
static __always_inline struct ftrace_stackmap *stackmap_active(struct trace_array *tr)
{
	if (!(tr->trace_flags & TRACE_ITER(STACKMAP)))
		return NULL;

	if (!rcu_is_watching() || !cpu_online(raw_smp_processor_id()))
		return NULL;

	/* The checking variants call functions that could be traced. */
	return rcu_dereference_raw_check(tr->stackmap);
}

/* Is @buffer another one than that of the instance? */
static bool stackmap_foreign(struct trace_array *tr, struct trace_buffer *buffer)
{
	/* A snapshot swaps the buffers at any time. */
	return buffer != data_race(READ_ONCE(tr->array_buffer.buffer));
}

/* Find the parts of a stack. Returns their number, or why there is none, negated. */
VISIBLE_IF_KUNIT int stackmap_find_parts(struct ftrace_stackmap *map,
					 const struct stackmap_stack *stack,
					 struct stackmap_part *parts)
{
	bool user = stack->type != TRACE_STACK_ID;
	const unsigned long *ips = stack->ips;
	unsigned int nr = stack->nr;
	int why;

	for (int i = 0; i < STACKMAP_MAX_PARTS; i++) {
		why = stackmap_find(map, ips, nr, user, &parts[i]);
		if (why)
			return -why;
		if (parts[i].nr == nr)
			return i + 1;
		/* The instruction that was hit is in no part. */
		ips += parts[i].nr + 1;
		nr -= parts[i].nr + 1;
	}
	return -STACKMAP_DROP_PARTS;
}

/* Store what is new of a stack. Returns 0 or why a part does not fit. */
VISIBLE_IF_KUNIT int stackmap_store(struct ftrace_stackmap *map, struct stackmap_part *parts,
				    int nr)
{
	int why = 0;

	for (int i = 0; !why && i < nr; i++) {
		if (parts[i].idx < 0)
			why = stackmap_insert(map, &parts[i]);
	}
	return why;
}

/* Write the definition of @part, which is stored if it is new. Returns 0 or why it does not fit. */
static int stackmap_define_part(struct ftrace_stackmap *map, struct trace_buffer *buffer,
				unsigned int trace_ctx, struct stackmap_part *part, u32 define)
{
	int why, type = part->user ? TRACE_USER_STACK_DEF : TRACE_STACK_DEF;
	unsigned int nr = stackmap_depth(part->ips, part->nr);
	struct ring_buffer_event *event;
	struct stack_def_entry *entry;
	bool objects;

	objects = !part->user || user_objects_define(map->shared->objects, buffer, trace_ctx,
						     part->ips, part->nr, define);
	event = __trace_buffer_lock_reserve(buffer, type, struct_size(entry, caller, nr), trace_ctx);
	/* The next use tries again. */
	if (!event)
		return 0;

	why = stackmap_store(map, part, 1);
	if (why) {
		ring_buffer_discard_commit(buffer, event);
		return why;
	}

	entry = ring_buffer_event_data(event);
	entry->stack_id = stackmap_id(map, part->idx);
	entry->size = nr;
	memcpy(entry->caller, part->ips, flex_array_size(entry, caller, nr));
	__buffer_unlock_commit(buffer, event);

	if (define & 1 || !objects)
		return 0;

	/* stackmap_define_part:A, pairs with stackmap_define:A */
	smp_store_release(&stackmap_record(map, part->idx)->defined, define);
	return 0;
}

/*
 * Define those parts of a stack that are not defined yet, and set @define to the
 * value of tr->stackmap_define. If that changes before the event with the ids is
 * reserved, a snapshot may have taken the definitions away. Returns 0, also if the
 * buffer does not take a definition, or why a part does not fit.
 */
static int stackmap_define(struct trace_array *tr, struct ftrace_stackmap *map,
			   struct trace_buffer *buffer, unsigned int trace_ctx,
			   struct stackmap_part *parts, int nr, u32 *define)
{
	int why = 0;

	/* stackmap_define:B, pairs with ftrace_stackmap_swap_begin:A */
	smp_rmb();
	/* stackmap_define:C, pairs with ftrace_stackmap_swap_end:A */
	*define = atomic_read_acquire(&tr->stackmap_define);

	/* The buffer became the snapshot's; a definition there is useless. */
	if (stackmap_foreign(tr, buffer))
		return STACKMAP_DROP_BUFFER;

	for (int i = 0; !why && i < nr; i++) {
		/* stackmap_define:A, pairs with stackmap_define_part:A */
		if (parts[i].idx >= 0 && !(*define & 1) &&
		    READ_ONCE(stackmap_record(map, parts[i].idx)->defined) == *define)
			continue;
		why = stackmap_define_part(map, buffer, trace_ctx, &parts[i], *define);
	}
	return why;
}

static size_t stackmap_event_size(int type, int nr_parts)
{
	switch (type) {
	case TRACE_USER_UNWIND_STACK_SPLIT:
		return sizeof(struct user_unwind_stack_split_entry);
	case TRACE_USER_UNWIND_STACK_ID:
		return sizeof(struct user_unwind_stack_id_entry);
	case TRACE_USER_STACK_ID:
		return sizeof(struct user_stack_id_entry);
	case TRACE_STACK_SPLIT:
		return struct_size_t(struct stack_split_entry, rest, 2 * (nr_parts - 2));
	default:
		return sizeof(struct stack_id_entry);
	}
}

/* Fill in what follows the first id of a split stack. */
static void stackmap_fill_split(struct ftrace_stackmap *map, struct stack_split_entry *entry,
				const struct stackmap_part *parts, int nr)
{
	unsigned long *rest = entry->rest;
	int id;

	for (int i = 1; i < nr; i++) {
		id = stackmap_id(map, parts[i].idx);
		if (i + 1 < nr)
			id |= STACK_SPLIT_MORE;
		if (i == 1) {
			entry->ip = parts[0].ips[parts[0].nr];
			entry->outer = id;
		} else {
			*rest++ = parts[i - 1].ips[parts[i - 1].nr];
			*rest++ = (u32)id;
		}
	}
}

/* Fill in what follows the id of a user stack. */
static void stackmap_fill_user(struct user_unwind_stack_split_entry *entry,
			       const struct stackmap_stack *stack)
{
	entry->tgid = stack->tgid;
	if (stack->type != TRACE_USER_STACK_ID)
		entry->cookie = stack->cookie;
	if (stack->type == TRACE_USER_UNWIND_STACK_SPLIT)
		entry->ip = stack->ip;
}

/* Count a stack of @nr parts that was recorded by its ids. */
VISIBLE_IF_KUNIT void stackmap_success(struct ftrace_stackmap *map,
				       const struct stackmap_part *parts, int nr)
{
	for (int i = 0; i < nr; i++)
		stackmap_add_ref(map, &parts[i]);
	stackmap_count(map->shared, STACKMAP_SUCCESSES, 1);
	if (nr > 1) {
		stackmap_count(map->shared, STACKMAP_SPLIT, 1);
		stackmap_count(map->shared, STACKMAP_MORE_PARTS, nr - 1);
	}
}

/*
 * Record a stack by its ids. It is stored only after its event, or its definition,
 * is reserved, since the buffer may take neither. Only the instance's buffer gets
 * ids. @buffer is another one in trace_array_printk(), or if it has become the
 * snapshot's. Returns 0 if done, also if the buffer did not take the event, else why
 * the stack has to be recorded in full.
 */
static int stackmap_record_ids(struct trace_array *tr, struct ftrace_stackmap *map,
			       struct trace_buffer *buffer, unsigned int trace_ctx,
			       const struct stackmap_stack *stack)
{
	struct stackmap_part parts[STACKMAP_MAX_PARTS] __uninitialized;
	struct ring_buffer_event *event;
	int type = stack->type, nr, why;
	struct stack_id_entry *entry;
	u32 define = 0;

	if (stackmap_foreign(tr, buffer))
		return STACKMAP_DROP_BUFFER;
	if (stack->objects && stack->objects != map->shared->objects)
		return STACKMAP_DROP_OBJECTS;

	nr = stackmap_find_parts(map, stack, parts);
	if (nr < 0)
		return -nr;

	if (tr->trace_flags & TRACE_ITER(STACKMAP_DEFINE)) {
		why = stackmap_define(tr, map, buffer, trace_ctx, parts, nr, &define);
		if (why)
			return why;
		user_objects_define(stack->objects, buffer, trace_ctx, &stack->ip, 1, define);
	}

	if (nr > 1)
		type = TRACE_STACK_SPLIT;
	event = __trace_buffer_lock_reserve(buffer, type, stackmap_event_size(type, nr), trace_ctx);
	if (!event)
		return 0;

	/* This event keeps a snapshot from swapping the buffer of the CPU. */
	if (define && define != atomic_read(&tr->stackmap_define))
		why = STACKMAP_DROP_BUFFER;
	else
		why = stackmap_store(map, parts, nr);
	if (why) {
		ring_buffer_discard_commit(buffer, event);
		return why;
	}

	entry = ring_buffer_event_data(event);
	entry->stack_id = stackmap_id(map, parts[0].idx);
	if (type == TRACE_STACK_SPLIT)
		stackmap_fill_split(map, (void *)entry, parts, nr);
	else if (type != TRACE_STACK_ID)
		stackmap_fill_user((void *)entry, stack);
	stackmap_success(map, parts, nr);
	__buffer_unlock_commit(buffer, event);
	return 0;
}

/**
 * ftrace_stackmap_record - record a stack
 * @tr: the instance
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 * @stack: the stack
 * @full: writes the event of the whole stack, where it can't be recorded by its id
 *
 * Counts what the buffer has taken.
 *
 * Context: any, NMI included, with preemption off.
 * Return: true if done, false if no map is in use.
 */
bool ftrace_stackmap_record(struct trace_array *tr, struct trace_buffer *buffer,
			    unsigned int trace_ctx, const struct stackmap_stack *stack,
			    stackmap_full_fn full)
{
	struct ftrace_stackmap *map = stackmap_active(tr);
	int why;

	if (!map)
		return false;

	why = stackmap_record_ids(tr, map, buffer, trace_ctx, stack);
	if (why && full(buffer, trace_ctx, stack->full ?: stack))
		stackmap_count(map->shared, why, 1);
	return true;
}

#ifdef CONFIG_USER_STACKTRACE_SUPPORT
struct stackmap_user_frames {
	unsigned long		ips[USER_STACK_MAX_DEPTH];
};

static DEFINE_PER_CPU(struct stackmap_user_frames, stackmap_user_frames);

/**
 * ftrace_stackmap_record_user - record the user stack of the current task
 * @tr: the instance
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 * @full: as of ftrace_stackmap_record()
 *
 * A kernel thread has no user stack, and gets no event. Nor does a worker of
 * io_uring or vhost, which has the registers of the task that created it.
 *
 * Context: any but NMI, with preemption off. Must not nest: the frame buffer is
 * per CPU.
 * Return: as ftrace_stackmap_record().
 */
bool ftrace_stackmap_record_user(struct trace_array *tr, struct trace_buffer *buffer,
				 unsigned int trace_ctx, stackmap_full_fn full)
{
	unsigned long *ips = this_cpu_ptr(&stackmap_user_frames)->ips;
	struct stackmap_stack stack = {
		.ips	= ips,
		.type	= TRACE_USER_STACK_ID,
		.tgid	= current->tgid,
	};

	if (!stackmap_active(tr))
		return false;

	if (!(current->flags & PF_USER_WORKER)) {
		stack.nr = stack_trace_save_user(ips, USER_STACK_MAX_DEPTH);
		stack.nr = user_stack_depth(ips, stack.nr);
		stack.nr = user_addresses(ips, stack.nr);
	}
	return !stack.nr || ftrace_stackmap_record(tr, buffer, trace_ctx, &stack, full);
}
#endif

/**
 * ftrace_stackmap_undefine - have all stacks of an instance defined again
 * @tr: the instance
 *
 * Context: any.
 */
void ftrace_stackmap_undefine(struct trace_array *tr)
{
	atomic_add(2, &tr->stackmap_define);
}

/**
 * ftrace_stackmap_swap_begin - buffers of an instance are going to be swapped
 * @tr: the instance
 *
 * Until ftrace_stackmap_swap_end(), every use of a stack is defined.
 *
 * Context: any, under tr->max_lock.
 */
void ftrace_stackmap_swap_begin(struct trace_array *tr)
{
	atomic_inc(&tr->stackmap_define);
	/* ftrace_stackmap_swap_begin:A, pairs with stackmap_define:B */
	smp_mb__after_atomic();
}

/**
 * ftrace_stackmap_swap_end - the buffers are swapped
 * @tr: the instance
 *
 * Context: any, under tr->max_lock.
 */
void ftrace_stackmap_swap_end(struct trace_array *tr)
{
	/* ftrace_stackmap_swap_end:A, pairs with stackmap_define:C */
	atomic_fetch_inc_release(&tr->stackmap_define);
}
