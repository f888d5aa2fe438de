// SPDX-License-Identifier: GPL-2.0
/*
 * Stack ids: which an event has, and printing them. The function that prints full
 * stacks prints the stack of an id.
 */
#include <linux/cleanup.h>
#include <linux/init.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "trace_output.h"
#include "trace_stackmap_internal.h"

/* The number of stack ids that an event of @size bytes holds, 0 if it is of another type. */
int stackmap_event_ids(const struct trace_entry *ent, int size)
{
	int rest = size - (int)sizeof(struct stack_split_entry);

	if (size < (int)sizeof(struct stack_id_entry))
		return 0;

	switch (ent->type) {
	case TRACE_STACK_ID:
	case TRACE_STACK_DEF:
	case TRACE_USER_STACK_ID:
	case TRACE_USER_STACK_DEF:
	case TRACE_USER_UNWIND_STACK_ID:
	case TRACE_USER_UNWIND_STACK_SPLIT:
		return 1;
	case TRACE_STACK_SPLIT:
		return rest < 0 ? 0 : min(2 + rest / (2 * (int)sizeof(long)), STACKMAP_MAX_PARTS);
	default:
		return 0;
	}
}

/* Id number @i of an event, innermost part first. */
int stackmap_event_id(const struct trace_entry *ent, int i)
{
	const struct stack_split_entry *field = (const void *)ent;

	if (!i)
		return field->stack_id;
	return (i == 1 ? field->outer : field->rest[2 * i - 3]) & ~STACK_SPLIT_MORE;
}

/**
 * stackmap_resolve - find the stacks of an event
 * @iter: the event
 * @recs: set to the record of each of its ids
 *
 * Context: any, under RCU.
 * Return: false if one is gone, or there are none.
 */
bool stackmap_resolve(struct trace_iterator *iter, const struct stackmap_record **recs)
{
	struct stackmap_instance *inst = READ_ONCE(iter->tr->stackmap);
	const struct stackmap_set *set;
	int nr = stackmap_event_ids(iter->ent, iter->ent_size);

	if (!inst)
		return false;

	/* stackmap_resolve:A, pairs with stackmap_publish:A */
	set = rcu_dereference(inst->set);
	for (int i = 0; i < nr; i++) {
		recs[i] = stackmap_lookup(set, stackmap_event_id(iter->ent, i));
		if (!recs[i])
			return false;
	}
	return nr;
}

/* The instruction before part number @i. */
static const unsigned long *stack_split_ip(const struct trace_entry *ent, int i)
{
	const struct stack_split_entry *field = (const void *)ent;

	return i == 1 ? &field->ip : &field->rest[2 * i - 4];
}

static enum print_line_t trace_stack_id_print(struct trace_iterator *iter,
					      int flags, struct trace_event *event)
{
	const struct stackmap_record *recs[STACKMAP_MAX_PARTS];
	int nr = stackmap_event_ids(iter->ent, iter->ent_size);
	struct trace_seq *s = &iter->seq;
	const unsigned long *ip;
	bool resolved;

	guard(rcu)();
	/* All at once: if a stack goes meanwhile, it is printed nevertheless. */
	resolved = stackmap_resolve(iter, recs);

	trace_seq_printf(s, nr > 1 ? "<stack_split %d" : "<stack_id %d",
			 stackmap_event_id(iter->ent, 0));
	for (int i = 1; i < nr; i++)
		trace_seq_printf(s, " @%lx %d", *stack_split_ip(iter->ent, i),
				 stackmap_event_id(iter->ent, i));
	trace_seq_printf(s, ">%s\n", resolved ? "" : " (stale)");
	for (int i = 0; resolved && stackmap_frames(iter) && i < nr; i++) {
		ip = i ? stack_split_ip(iter->ent, i) : NULL;
		if (ip)
			trace_print_stack_frames(iter, flags, ip, ip + 1);
		trace_print_stack_frames(iter, flags, recs[i]->ips, recs[i]->ips + recs[i]->nr);
	}
	return trace_handle_return(s);
}

static struct trace_event_functions trace_stack_id_funcs = {
	.trace		= trace_stack_id_print,
};

static struct trace_event stackmap_events[] = {
	{ .type = TRACE_STACK_ID, .funcs = &trace_stack_id_funcs },
	{ .type = TRACE_STACK_SPLIT, .funcs = &trace_stack_id_funcs },
};

static int __init stackmap_init_events(void)
{
	for (int i = 0; i < ARRAY_SIZE(stackmap_events); i++)
		WARN_ON_ONCE(!register_trace_event(&stackmap_events[i]));
	return 0;
}
early_initcall(stackmap_init_events);
