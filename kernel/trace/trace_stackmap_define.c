// SPDX-License-Identifier: GPL-2.0
/*
 * Definitions of stacks in the ring buffer.
 *
 * With options/stackmap-define, the first use of a stack writes its definition, an event
 * with its frames, ahead of the event that has the id. So a recording of the raw buffer
 * can be read without the map.
 *
 * A definition marks the record with the value of tr->stackmap_define. When that
 * value changes, all stacks are undefined. It changes after a snapshot has swapped the
 * buffers, so an event in between may have an id without a definition.
 *
 * Memory ordering:
 *
 *   stackmap_define_part:A      commits a definition, then smp_store_release() of the
 *                               mark in the record.
 *   stackmap_define:A           reads the mark, then writes an event with the id. Pairs
 *                               with stackmap_define_part:A.
 *   ftrace_stackmap_undefine:A  the buffers are swapped, then changes stackmap_define by
 *                               a release.
 *   stackmap_define:B           acquires stackmap_define, then checks the buffer. Pairs
 *                               with ftrace_stackmap_undefine:A.
 */
#include <linux/sched.h>
#include <linux/string.h>

#include "trace_output.h"
#include "trace_stackmap_internal.h"

/* Write the definition of @part, which is stored if it is new. Returns 0 or why it does not fit. */
static int stackmap_define_part(struct trace_array *tr, struct ftrace_stackmap *map,
				struct trace_buffer *buffer, unsigned int trace_ctx,
				struct stackmap_key *part, u32 define)
{
	int type = part->user ? TRACE_USER_STACK_DEF : TRACE_STACK_DEF;
	unsigned int nr = stackmap_depth(part->ips, part->nr);
	struct ring_buffer_event *event;
	struct stack_def_entry *entry;
	struct stackmap_record *rec;
	int ret;

	event = __trace_buffer_lock_reserve(buffer, type, struct_size(entry, caller, nr),
					    trace_ctx);
	/* The next use tries again. */
	if (!event)
		return 0;

	ret = stackmap_store(map, part, 1);
	if (ret < 0) {
		ring_buffer_discard_commit(buffer, event);
		return ret;
	}
	rec = stackmap_record(map, part->idx);
	stackmap_set_cpu(map, rec);

	entry = ring_buffer_event_data(event);
	entry->stack_id = stackmap_id(map, part->idx);
	entry->size = nr;
	memcpy(entry->caller, part->ips, flex_array_size(entry, caller, nr));
	__buffer_unlock_commit(buffer, event);

	/* stackmap_define_part:A, pairs with stackmap_define:A */
	smp_store_release(&rec->defined, define);
	if (ret)
		stackmap_request_replace(tr->stackmap, map);
	return 0;
}

/**
 * stackmap_define - define those parts of a stack that are not defined yet
 * @tr: the instance, with options/stackmap-define on
 * @map: its map
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 * @parts: the parts, from stackmap_find(); those that are new are stored
 * @nr: number of parts
 * @define: set to the value of tr->stackmap_define. If that changes before the event
 *	with the ids is reserved, a snapshot may have taken the definitions away.
 *
 * Return: 0, or why a part does not fit (enum stackmap_drop, negated).
 */
int stackmap_define(struct trace_array *tr, struct ftrace_stackmap *map,
		    struct trace_buffer *buffer, unsigned int trace_ctx,
		    struct stackmap_key *parts, int nr, u32 *define)
{
	int ret;

	/* stackmap_define:B, pairs with ftrace_stackmap_undefine:A */
	*define = atomic_read_acquire(&tr->stackmap_define);

	/* The buffer became the snapshot's; a definition there is useless. */
	if (buffer != data_race(READ_ONCE(tr->array_buffer.buffer)))
		return -STACKMAP_DROP_BUFFER;

	for (int i = 0; i < nr; i++) {
		/* stackmap_define:A, pairs with stackmap_define_part:A */
		if (parts[i].idx >= 0 &&
		    READ_ONCE(stackmap_record(map, parts[i].idx)->defined) == *define)
			continue;
		ret = stackmap_define_part(tr, map, buffer, trace_ctx, &parts[i], *define);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * ftrace_stackmap_undefine - have all stacks of an instance defined again
 * @tr: the instance
 *
 * To be called after buffers were swapped, or before events are removed while nobody
 * records.
 */
void ftrace_stackmap_undefine(struct trace_array *tr)
{
	/* ftrace_stackmap_undefine:A, pairs with stackmap_define:B */
	atomic_fetch_add_release(2, &tr->stackmap_define);
}

/**
 * ftrace_stackmap_hidden - whether an event is not to be printed
 * @iter: the event
 *
 * Return: true for a definition whose frames are printed below each use.
 */
bool ftrace_stackmap_hidden(const struct trace_iterator *iter)
{
	switch (iter->ent->type) {
	case TRACE_STACK_DEF:
	case TRACE_USER_STACK_DEF:
	case TRACE_USER_FILE_DEF:
		return stackmap_frames(iter);
	}
	return false;
}

static enum print_line_t trace_stack_def_print(struct trace_iterator *iter,
					       int flags, struct trace_event *event)
{
	struct stack_def_entry *field = (void *)iter->ent;
	const void *end = (void *)iter->ent + iter->ent_size;

	trace_seq_printf(&iter->seq, "<stack_def %d>\n", field->stack_id);
	trace_print_stack_frames(iter, flags, field->caller, end);
	return trace_handle_return(&iter->seq);
}

static struct trace_event_functions trace_stack_def_funcs = {
	.trace		= trace_stack_def_print,
};

struct trace_event trace_stack_def_event = {
	.type		= TRACE_STACK_DEF,
	.funcs		= &trace_stack_def_funcs,
};
