// SPDX-License-Identifier: GPL-2.0
/*
 * Definitions: with options/stackmap-define, the first use of a stack writes a
 * TRACE_STACK_DEF event with its frames, ahead of the event that has the id. So
 * a recording of the raw buffer can be read without the map. The definition of a
 * user stack is a TRACE_USER_STACK_DEF event, which looks the same.
 *
 * A record is marked with the value of tr->stackmap_define. Where that changes, all
 * stacks are undefined. It is odd while a snapshot swaps the buffers: nobody knows
 * then in which of them a definition is.
 *
 * Memory ordering:
 *
 *   stackmap_define_part:A       commits a definition, then smp_store_release() of
 *                                the mark in the record.
 *   ftrace_stackmap_define:A     reads the mark, then writes an event with the id.
 *                                Pairs with stackmap_define_part:A.
 *   ftrace_stackmap_swap_begin:A makes stackmap_define odd, then the buffers are
 *                                swapped.
 *   ftrace_stackmap_define:B     has the buffer, then reads stackmap_define. Pairs
 *                                with ftrace_stackmap_swap_begin:A.
 *   ftrace_stackmap_swap_end:A   the buffers are swapped, then makes stackmap_define
 *                                even by a release.
 *   ftrace_stackmap_define:C     acquires stackmap_define, then checks the buffer.
 *                                Pairs with ftrace_stackmap_swap_end:A.
 */
#include "trace_output.h"
#include "trace_stackmap.h"

/* Write the definition of @part, which is stored if it is new. Returns 0 or the drop. */
static int stackmap_define_part(struct ftrace_stackmap *map, struct trace_buffer *buffer,
				unsigned int trace_ctx, struct stackmap_part *part, u32 define)
{
	struct ring_buffer_event *event;
	struct stack_def_entry *entry;
	int drop;

	event = trace_buffer_lock_reserve(buffer,
					  part->user ? TRACE_USER_STACK_DEF : TRACE_STACK_DEF,
					  struct_size(entry, caller, part->nr), trace_ctx);
	/* The next use tries again. */
	if (!event)
		return 0;

	drop = ftrace_stackmap_insert(map, part, 1);
	if (drop) {
		ring_buffer_discard_commit(buffer, event);
		return drop;
	}

	entry = ring_buffer_event_data(event);
	entry->stack_id = stackmap_id(map, part->idx);
	entry->size = part->nr;
	memcpy(entry->caller, part->ips, flex_array_size(entry, caller, part->nr));
	trace_buffer_unlock_commit_nostack(buffer, event);

	if (define & 1)
		return 0;

	/* stackmap_define_part:A, pairs with ftrace_stackmap_define:A */
	smp_store_release(&stackmap_record(map, part->idx)->defined, define);
	return 0;
}

/**
 * ftrace_stackmap_define - define the parts of a stack that are not defined yet
 * @tr: the instance
 * @map: its map, from ftrace_stackmap_active()
 * @buffer: the ring buffer of the instance
 * @trace_ctx: context of the event
 * @parts: the parts, from ftrace_stackmap_find(); @idx is set in those that are stored
 * @nr: number of parts
 * @define: set to the value of tr->stackmap_define
 *
 * If tr->stackmap_define changes before the event with the ids is reserved, a
 * snapshot may have taken the definitions away.
 *
 * Context: any, NMI included, with preemption off since the map was obtained.
 * Return: 0, also if the buffer does not take a definition, or the drop to
 * count.
 */
int ftrace_stackmap_define(struct trace_array *tr, struct ftrace_stackmap *map,
			   struct trace_buffer *buffer, unsigned int trace_ctx,
			   struct stackmap_part *parts, unsigned int nr, u32 *define)
{
	int drop;

	/* ftrace_stackmap_define:B, pairs with ftrace_stackmap_swap_begin:A */
	smp_rmb();
	/* ftrace_stackmap_define:C, pairs with ftrace_stackmap_swap_end:A */
	*define = atomic_read_acquire(&tr->stackmap_define);

	/* What is defined in a buffer that has become the snapshot's is not defined. */
	if (buffer != data_race(READ_ONCE(tr->array_buffer.buffer)))
		return STACKMAP_DROP_BUFFER;

	for (unsigned int i = 0; i < nr; i++) {
		/* ftrace_stackmap_define:A, pairs with stackmap_define_part:A */
		if (parts[i].idx >= 0 && !(*define & 1) &&
		    READ_ONCE(stackmap_record(map, parts[i].idx)->defined) == *define)
			continue;
		drop = stackmap_define_part(map, buffer, trace_ctx, &parts[i], *define);
		if (drop)
			return drop;
	}
	return 0;
}

static enum print_line_t trace_stack_def_print(struct trace_iterator *iter,
					       int flags, struct trace_event *event)
{
	struct trace_seq *s = &iter->seq;
	struct stack_def_entry *field;

	trace_assign_type(field, iter->ent);

	trace_seq_printf(s, "<stack_def %d>\n", field->stack_id);
	trace_print_stack_frames(iter, flags, field->caller, (void *)iter->ent + iter->ent_size);
	return trace_handle_return(s);
}

static enum print_line_t trace_user_stack_def_print(struct trace_iterator *iter,
						    int flags, struct trace_event *event)
{
	int size = iter->ent_size - (int)sizeof(struct stack_def_entry);
	struct trace_seq *s = &iter->seq;
	struct stack_def_entry *field;

	trace_assign_type(field, iter->ent);

	trace_seq_printf(s, "<user_stack_def %d>\n", field->stack_id);
	/* Several processes may have the stack. */
	trace_print_user_frames(iter, flags, 0, field->caller, max(size, 0) / sizeof(long));
	return trace_handle_return(s);
}

static struct trace_event_functions trace_stack_def_funcs = {
	.trace		= trace_stack_def_print,
};

static struct trace_event_functions trace_user_stack_def_funcs = {
	.trace		= trace_user_stack_def_print,
};

static struct trace_event trace_stack_def_event = {
	.type		= TRACE_STACK_DEF,
	.funcs		= &trace_stack_def_funcs,
};

static struct trace_event trace_user_stack_def_event = {
	.type		= TRACE_USER_STACK_DEF,
	.funcs		= &trace_user_stack_def_funcs,
};

/**
 * ftrace_stackmap_init_define - register the events of definitions
 *
 * Context: boot, from init_events().
 */
void __init ftrace_stackmap_init_define(void)
{
	WARN_ON_ONCE(!register_trace_event(&trace_stack_def_event));
	WARN_ON_ONCE(!register_trace_event(&trace_user_stack_def_event));
}
