// SPDX-License-Identifier: GPL-2.0
/*
 * Printing of stack ids: the id, and below it the frames of its stack, by the
 * function that prints those of a full stack. A stack that was split is printed
 * whole.
 */
#include <linux/array_size.h>
#include <linux/cleanup.h>
#include <linux/init.h>
#include <linux/rcupdate.h>

#include "trace_output.h"
#include "trace_stackmap.h"

/* options/stackmap-frames */
static bool stackmap_show_frames(const struct trace_array *tr)
{
	return tr->trace_flags & TRACE_ITER(STACKMAP_FRAMES);
}

static enum print_line_t trace_stack_id_print(struct trace_iterator *iter,
					      int flags, struct trace_event *event)
{
	const struct stackmap_record *rec;
	struct trace_seq *s = &iter->seq;
	struct stack_id_entry *field;

	trace_assign_type(field, iter->ent);

	guard(rcu)();
	rec = ftrace_stackmap_lookup(iter->tr, field->stack_id);

	trace_seq_printf(s, "<stack_id %d>%s\n", field->stack_id, rec ? "" : " (stale)");
	if (rec && stackmap_show_frames(iter->tr))
		trace_print_stack_frames(iter, flags, rec->ips, rec->ips + rec->nr);

	return trace_handle_return(s);
}

static struct trace_event_functions trace_stack_id_funcs = {
	.trace		= trace_stack_id_print,
};

static struct trace_event trace_stack_id_event = {
	.type		= TRACE_STACK_ID,
	.funcs		= &trace_stack_id_funcs,
};

/* Number of places where the stack of @entry is split. */
static int stack_split_nr(const struct stack_split_entry *entry)
{
	int nr = 0;

	while (nr < ARRAY_SIZE(entry->outer) && entry->outer[nr] >= 0)
		nr++;
	return nr;
}

static void stack_split_print_frames(struct trace_iterator *iter, int flags,
				     const struct stack_split_entry *entry)
{
	const struct stackmap_record *rec = ftrace_stackmap_lookup(iter->tr, entry->stack_id);
	int nr = stack_split_nr(entry);

	for (int i = 0; rec; i++) {
		trace_print_stack_frames(iter, flags, rec->ips, rec->ips + rec->nr);
		if (i == nr)
			return;
		/* What the interrupt has hit */
		trace_print_stack_frames(iter, flags, &entry->ip[i], &entry->ip[i + 1]);
		rec = ftrace_stackmap_lookup(iter->tr, entry->outer[i]);
	}
}

static enum print_line_t trace_stack_split_print(struct trace_iterator *iter,
						 int flags, struct trace_event *event)
{
	struct trace_seq *s = &iter->seq;
	struct stack_split_entry *field;
	bool stale;

	trace_assign_type(field, iter->ent);

	guard(rcu)();
	/* The ids of an event are all of one generation. */
	stale = !ftrace_stackmap_lookup(iter->tr, field->stack_id);

	trace_seq_printf(s, "<stack_split %d", field->stack_id);
	for (int i = 0; i < stack_split_nr(field); i++)
		trace_seq_printf(s, " @%lx %d", field->ip[i], field->outer[i]);
	trace_seq_printf(s, ">%s\n", stale ? " (stale)" : "");
	if (stackmap_show_frames(iter->tr))
		stack_split_print_frames(iter, flags, field);

	return trace_handle_return(s);
}

static struct trace_event_functions trace_stack_split_funcs = {
	.trace		= trace_stack_split_print,
};

static struct trace_event trace_stack_split_event = {
	.type		= TRACE_STACK_SPLIT,
	.funcs		= &trace_stack_split_funcs,
};

/**
 * ftrace_stackmap_init_events - have the stack ids printed
 *
 * Context: boot, from init_events().
 */
void __init ftrace_stackmap_init_events(void)
{
	WARN_ON_ONCE(!register_trace_event(&trace_stack_id_event));
	WARN_ON_ONCE(!register_trace_event(&trace_stack_split_event));
}
