// SPDX-License-Identifier: GPL-2.0
/*
 * Recording of stack ids, and printing of those of kernel stacks.
 *
 * A kernel stack is one TRACE_STACK_ID event, or one TRACE_STACK_SPLIT event where it
 * is split. Either is printed as the stack that it stands for, by the function
 * that prints full stacks.
 */
#include <linux/cleanup.h>
#include <linux/rcupdate.h>

#include <kunit/visibility.h>

#include "trace_output.h"
#include "trace_stackmap.h"

/* The sign bit of an id in stack_split_entry: another instruction and id follow in @rest. */
#define STACK_SPLIT_MORE	INT_MIN

/* Find the parts of a stack. Returns their number, or the drop to count, negated. */
VISIBLE_IF_KUNIT int stackmap_find_parts(struct ftrace_stackmap *map, const unsigned long *ips,
					 unsigned int nr, struct stackmap_part *parts)
{
	int drop;

	for (int i = 0; i < STACKMAP_MAX_PARTS; i++) {
		drop = ftrace_stackmap_find(map, ips, nr, &parts[i]);
		if (drop)
			return -drop;
		if (parts[i].nr == nr)
			return i + 1;
		/* The instruction that was hit is in no part. */
		ips += parts[i].nr + 1;
		nr -= parts[i].nr + 1;
	}
	return -STACKMAP_DROP_PARTS;
}

/* Fill in what follows the first id. */
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

static int stackmap_find_stack(struct ftrace_stackmap *map, const struct stackmap_stack *stack,
			       struct stackmap_part *parts)
{
	int drop;

	if (stack->type == TRACE_STACK_ID)
		return stackmap_find_parts(map, stack->ips, stack->nr, parts);

	drop = ftrace_stackmap_find_user(map, stack->ips, stack->nr, parts);
	return drop ? -drop : 1;
}

static size_t stackmap_event_size(int type, int nr_parts)
{
	switch (type) {
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

static void stackmap_fill_event(struct ftrace_stackmap *map, void *entry, int type,
				const struct stackmap_stack *stack,
				const struct stackmap_part *parts, int nr_parts)
{
	struct user_unwind_stack_id_entry *unwind = entry;
	int id = stackmap_id(map, parts[0].idx);
	struct user_stack_id_entry *user = entry;
	struct stack_split_entry *split = entry;
	struct stack_id_entry *kernel = entry;

	switch (type) {
	case TRACE_USER_UNWIND_STACK_ID:
		unwind->cookie = stack->cookie;
		unwind->tgid = stack->tgid;
		unwind->stack_id = id;
		break;
	case TRACE_USER_STACK_ID:
		user->tgid = stack->tgid;
		user->stack_id = id;
		break;
	case TRACE_STACK_SPLIT:
		split->stack_id = id;
		stackmap_fill_split(map, split, parts, nr_parts);
		break;
	default:
		kernel->stack_id = id;
	}
}

/**
 * ftrace_stackmap_record - record a stack by its id
 * @tr: the instance
 * @map: its map, from ftrace_stackmap_active()
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 * @stack: the stack
 *
 * A stack is stored only after its event, or its definition, is reserved, since
 * the buffer may take neither. Only the instance's buffer gets
 * ids. @buffer is another one in trace_array_printk(), or if it was swapped for
 * the snapshot's meanwhile.
 *
 * Context: any, NMI included, with preemption off since the map was obtained.
 * Return: 0 if nothing is left to do, else the drop to count when the stack is
 * recorded in full.
 */
int ftrace_stackmap_record(struct trace_array *tr, struct ftrace_stackmap *map,
			   struct trace_buffer *buffer, unsigned int trace_ctx,
			   const struct stackmap_stack *stack)
{
	struct stackmap_part parts[STACKMAP_MAX_PARTS] __uninitialized;
	struct ring_buffer_event *event;
	int type = stack->type;
	u32 define = 0;
	int nr_parts, drop;

	/* A snapshot swaps the buffers at any time. */
	if (buffer != data_race(READ_ONCE(tr->array_buffer.buffer)))
		return STACKMAP_DROP_BUFFER;

	nr_parts = stackmap_find_stack(map, stack, parts);
	if (nr_parts < 0)
		return -nr_parts;

	if (tr->trace_flags & TRACE_ITER(STACKMAP_DEFINE)) {
		drop = ftrace_stackmap_define(tr, map, buffer, trace_ctx, parts, nr_parts,
					      &define);
		if (drop)
			return drop;
	}

	if (nr_parts > 1)
		type = TRACE_STACK_SPLIT;
	event = trace_buffer_lock_reserve(buffer, type, stackmap_event_size(type, nr_parts),
					  trace_ctx);
	if (!event)
		return 0;

	/* This event keeps a snapshot from swapping the buffer of the CPU. */
	if (define && define != atomic_read(&tr->stackmap_define))
		drop = STACKMAP_DROP_BUFFER;
	else
		drop = ftrace_stackmap_store(map, parts, nr_parts);
	if (drop) {
		ring_buffer_discard_commit(buffer, event);
		return drop;
	}

	stackmap_fill_event(map, ring_buffer_event_data(event), type, stack, parts, nr_parts);
	trace_buffer_unlock_commit_nostack(buffer, event);
	return 0;
}

static void stackmap_print_frames(struct trace_iterator *iter, int flags,
				  const struct ftrace_stackmap *map, int id)
{
	const struct stackmap_record *rec = ftrace_stackmap_lookup(map, id);

	if (rec)
		trace_print_stack_frames(iter, flags, rec->ips, rec->ips + rec->nr);
}

/**
 * ftrace_stackmap_event_ids - the number of stack ids that an event holds
 * @ent: the event
 * @size: its size in bytes
 *
 * Context: any.
 * Return: the number, 0 for an event of another type.
 */
int ftrace_stackmap_event_ids(const struct trace_entry *ent, int size)
{
	int rest = size - (int)sizeof(struct stack_split_entry);

	switch (ent->type) {
	case TRACE_STACK_ID:
	case TRACE_STACK_DEF:
	case TRACE_USER_STACK_ID:
	case TRACE_USER_STACK_DEF:
	case TRACE_USER_UNWIND_STACK_ID:
		return 1;
	case TRACE_STACK_SPLIT:
		return 2 + max(rest, 0) / (2 * (int)sizeof(long));
	default:
		return 0;
	}
}

/**
 * ftrace_stackmap_event_id - one of the stack ids that an event holds
 * @ent: the event
 * @i: which one, innermost part first
 *
 * Context: any.
 * Return: the id.
 */
int ftrace_stackmap_event_id(const struct trace_entry *ent, int i)
{
	const struct user_unwind_stack_id_entry *unwind = (const void *)ent;
	const struct user_stack_id_entry *user = (const void *)ent;
	const struct stack_split_entry *field = (const void *)ent;

	if (ent->type == TRACE_USER_STACK_ID)
		return user->stack_id;
	if (ent->type == TRACE_USER_UNWIND_STACK_ID)
		return unwind->stack_id;

	switch (i) {
	case 0:
		return field->stack_id;
	case 1:
		return field->outer & ~STACK_SPLIT_MORE;
	default:
		return field->rest[2 * i - 3] & ~STACK_SPLIT_MORE;
	}
}

/* The instruction before part number @i. */
static const unsigned long *stack_split_ip(const struct trace_entry *ent, int i)
{
	const struct stack_split_entry *field = (const void *)ent;

	return i == 1 ? &field->ip : &field->rest[2 * i - 4];
}

/*
 * Whether the ids of an event may have got another meaning. A reader that stopped
 * half-way has a copy of an event that is overwritten by now, so that its
 * generation may be in use for the second time.
 */
static bool stackmap_reused(struct trace_iterator *iter, const struct ftrace_stackmap *map)
{
	struct ring_buffer_iter *copy = trace_buffer_iter(iter, iter->cpu);

	return map->gen > STACKMAP_GEN_MASK && copy && ring_buffer_iter_overrun(copy);
}

/**
 * ftrace_stackmap_resolves - whether all ids of an event have their stacks
 * @iter: the event
 * @map: the map of its instance, or NULL
 *
 * Context: any, while the map can't be freed.
 * Return: true if they have.
 */
bool ftrace_stackmap_resolves(struct trace_iterator *iter, const struct ftrace_stackmap *map)
{
	int nr = ftrace_stackmap_event_ids(iter->ent, iter->ent_size);

	for (int i = 0; i < nr; i++) {
		if (!ftrace_stackmap_lookup(map, ftrace_stackmap_event_id(iter->ent, i)))
			return false;
	}
	return !stackmap_reused(iter, map);
}

static enum print_line_t trace_stack_id_print(struct trace_iterator *iter,
					      int flags, struct trace_event *event)
{
	int nr = ftrace_stackmap_event_ids(iter->ent, iter->ent_size);
	int id = ftrace_stackmap_event_id(iter->ent, 0);
	const struct ftrace_stackmap *map;
	struct trace_seq *s = &iter->seq;
	const unsigned long *ip;

	guard(rcu)();
	map = rcu_dereference(iter->tr->stackmap);
	if (!ftrace_stackmap_resolves(iter, map))
		map = NULL;

	trace_seq_printf(s, nr > 1 ? "<stack_split %d" : "<stack_id %d", id);
	for (int i = 1; i < nr; i++)
		trace_seq_printf(s, " @%lx %d", *stack_split_ip(iter->ent, i),
				 ftrace_stackmap_event_id(iter->ent, i));
	trace_seq_printf(s, ">%s\n", map ? "" : " (stale)");
	if (!map || !(iter->tr->trace_flags & TRACE_ITER(STACKMAP_FRAMES)))
		return trace_handle_return(s);

	stackmap_print_frames(iter, flags, map, id);
	for (int i = 1; i < nr; i++) {
		ip = stack_split_ip(iter->ent, i);
		trace_print_stack_frames(iter, flags, ip, ip + 1);
		stackmap_print_frames(iter, flags, map, ftrace_stackmap_event_id(iter->ent, i));
	}
	return trace_handle_return(s);
}

static struct trace_event_functions trace_stack_id_funcs = {
	.trace		= trace_stack_id_print,
};

static struct trace_event trace_stack_id_event = {
	.type		= TRACE_STACK_ID,
	.funcs		= &trace_stack_id_funcs,
};

static struct trace_event trace_stack_split_event = {
	.type		= TRACE_STACK_SPLIT,
	.funcs		= &trace_stack_id_funcs,
};

/**
 * ftrace_stackmap_init_events - register the events of stack ids
 *
 * Context: boot, from init_events().
 */
void __init ftrace_stackmap_init_events(void)
{
	WARN_ON_ONCE(!register_trace_event(&trace_stack_id_event));
	WARN_ON_ONCE(!register_trace_event(&trace_stack_split_event));
	ftrace_stackmap_init_define();
	ftrace_stackmap_init_user();
}
