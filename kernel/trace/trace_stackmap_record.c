// SPDX-License-Identifier: GPL-2.0
/*
 * Recording of stacks by their ids.
 *
 * A kernel stack is one TRACE_STACK_ID event, or one TRACE_STACK_SPLIT event where it
 * is split.
 */
#include <linux/ring_buffer.h>
#include <linux/string.h>

#include <kunit/visibility.h>

#include "trace_stackmap_internal.h"

/* Find the parts of a stack. Returns their number, or why there is none, negated. */
VISIBLE_IF_KUNIT int stackmap_find_parts(struct ftrace_stackmap *map,
					 const struct stackmap_stack *stack,
					 struct stackmap_part *parts)
{
	const unsigned long *ips = stack->ips;
	unsigned int nr = stack->nr;
	int why;

	for (int i = 0; i < STACKMAP_MAX_PARTS; i++) {
		parts[i].user = stack->user;
		why = stackmap_find(map, ips, nr, &parts[i]);
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

/**
 * stackmap_store - store what is new of a stack
 * @map: the map
 * @parts: the parts, from stackmap_find()
 * @nr: number of parts
 *
 * Context: any, NMI included, with preemption off.
 * Return: 0 or why a part does not fit (enum stackmap_count).
 */
int stackmap_store(struct ftrace_stackmap *map, struct stackmap_part *parts, int nr)
{
	int why = 0;

	for (int i = 0; !why && i < nr; i++) {
		if (parts[i].idx < 0)
			why = stackmap_insert(map, &parts[i]);
	}
	return why;
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
	const struct stackmap_user *user = stack->user;
	struct stack_id_entry *entry;
	int type = TRACE_STACK_ID, nr, why;
	size_t size = sizeof(*entry);
	u32 define = 0;

	if (stackmap_foreign(tr, buffer))
		return STACKMAP_DROP_BUFFER;
	if (user && user->objects && user->objects != map->shared->objects)
		return STACKMAP_DROP_OBJECTS;

	nr = stackmap_find_parts(map, stack, parts);
	if (nr < 0)
		return -nr;

	if (tr->trace_flags & TRACE_ITER(STACKMAP_DEFINE)) {
		why = stackmap_define(tr, map, buffer, trace_ctx, parts, nr, &define);
		if (why)
			return why;
		if (user)
			user_objects_define(map, buffer, trace_ctx, &user->ip, 1, define);
	}

	if (nr > 1) {
		type = TRACE_STACK_SPLIT;
		size = struct_size_t(struct stack_split_entry, rest, 2 * (nr - 2));
	} else if (user) {
		type = user->type;
		size = user->size;
	}
	event = __trace_buffer_lock_reserve(buffer, type, size, trace_ctx);
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
	if (nr > 1)
		stackmap_fill_split(map, (void *)entry, parts, nr);
	else if (user)
		stackmap_fill_user(entry, user);
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
	if (why && full(buffer, trace_ctx, stack))
		stackmap_count(map->shared, why, 1);
	return true;
}
