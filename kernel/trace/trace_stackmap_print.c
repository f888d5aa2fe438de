// SPDX-License-Identifier: GPL-2.0
/*
 * Printing of stack ids. The function that prints full stacks prints the stack of an id.
 */
#include <linux/cleanup.h>
#include <linux/kernel.h>
#include <linux/rcupdate.h>

#include "trace_output.h"
#include "trace_stackmap_internal.h"

/**
 * stackmap_resolve - find the stack of an id
 * @tr: the instance whose buffer has the id
 * @id: the id
 *
 * Under RCU.
 * Return: the stack, or NULL if it is gone.
 */
const struct stackmap_record *stackmap_resolve(struct trace_array *tr, int id)
{
	struct stackmap_instance *inst = READ_ONCE(tr->stackmap);

	/* stackmap_resolve:A, pairs with stackmap_publish:A */
	return inst ? stackmap_lookup(rcu_dereference(inst->set), id) : NULL;
}

static enum print_line_t trace_stack_id_print(struct trace_iterator *iter,
					      int flags, struct trace_event *event)
{
	struct stack_id_entry *field = (void *)iter->ent;
	const struct stackmap_record *rec;
	struct trace_seq *s = &iter->seq;

	guard(rcu)();
	rec = stackmap_resolve(iter->tr, field->stack_id);
	trace_seq_printf(s, "<stack_id %d>%s\n", field->stack_id, rec ? "" : " (stale)");
	if (rec && stackmap_frames(iter))
		trace_print_stack_frames(iter, flags, rec->ips, rec->ips + rec->nr);
	return trace_handle_return(s);
}

static struct trace_event_functions trace_stack_id_funcs = {
	.trace		= trace_stack_id_print,
};

struct trace_event trace_stack_id_event = {
	.type		= TRACE_STACK_ID,
	.funcs		= &trace_stack_id_funcs,
};
