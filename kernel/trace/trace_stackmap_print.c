// SPDX-License-Identifier: GPL-2.0
/*
 * Printing of stack ids and definitions. Each is printed as the stack that it stands
 * for, by the functions that print full stacks.
 */
#include <linux/cleanup.h>
#include <linux/init.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "trace_output.h"
#include "trace_stackmap_internal.h"

static bool stackmap_frames(const struct trace_iterator *iter)
{
	return iter->tr->trace_flags & TRACE_ITER(STACKMAP_FRAMES);
}

/**
 * ftrace_stackmap_hidden - whether an event is not to be printed
 * @iter: the event
 *
 * Context: any.
 * Return: true for a definition whose frames are printed below each use.
 */
bool ftrace_stackmap_hidden(const struct trace_iterator *iter)
{
	int type = iter->ent->type;

	return (type == TRACE_STACK_DEF || type == TRACE_USER_STACK_DEF ||
		type == TRACE_USER_OBJECT_DEF) && stackmap_frames(iter);
}

/* Returns the map if all ids of an event have their stacks, else NULL. Under RCU. */
static struct ftrace_stackmap *stackmap_resolve(struct trace_iterator *iter)
{
	struct ftrace_stackmap *map = rcu_dereference(iter->tr->stackmap);
	int nr = stackmap_event_ids(iter->ent, iter->ent_size);

	for (int i = 0; i < nr; i++) {
		if (!stackmap_lookup(map, stackmap_event_id(iter->ent, i)))
			return NULL;
	}
	return map;
}

static void stackmap_print_kernel(struct trace_iterator *iter, int flags,
				  struct ftrace_stackmap *map, int id)
{
	const struct stackmap_record *rec = stackmap_lookup(map, id);

	if (rec)
		trace_print_stack_frames(iter, flags, rec->ips, rec->ips + rec->nr);
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
	int nr = stackmap_event_ids(iter->ent, iter->ent_size);
	int id = stackmap_event_id(iter->ent, 0);
	struct trace_seq *s = &iter->seq;
	struct ftrace_stackmap *map;
	const unsigned long *ip;

	guard(rcu)();
	map = stackmap_resolve(iter);

	trace_seq_printf(s, nr > 1 ? "<stack_split %d" : "<stack_id %d", id);
	for (int i = 1; i < nr; i++)
		trace_seq_printf(s, " @%lx %d", *stack_split_ip(iter->ent, i),
				 stackmap_event_id(iter->ent, i));
	trace_seq_printf(s, ">%s\n", map ? "" : " (stale)");
	if (!map || !stackmap_frames(iter))
		return trace_handle_return(s);

	stackmap_print_kernel(iter, flags, map, id);
	for (int i = 1; i < nr; i++) {
		ip = stack_split_ip(iter->ent, i);
		trace_print_stack_frames(iter, flags, ip, ip + 1);
		stackmap_print_kernel(iter, flags, map, stackmap_event_id(iter->ent, i));
	}
	return trace_handle_return(s);
}

/* Copy the stack of an event. Returns the number of frames, or -ENOENT. */
static int stackmap_copy_user(struct trace_iterator *iter, unsigned long *ips)
{
	const struct stackmap_record *rec;
	struct ftrace_stackmap *map;
	int nr;

	guard(rcu)();
	map = stackmap_resolve(iter);
	rec = stackmap_lookup(map, stackmap_event_id(iter->ent, 0));
	if (!rec)
		return -ENOENT;

	nr = min(rec->nr, USER_STACK_MAX_DEPTH);
	memcpy(ips, rec->ips, nr * sizeof(*ips));
	return nr;
}

static enum print_line_t trace_user_stack_id_print(struct trace_iterator *iter,
						   int flags, struct trace_event *event)
{
	struct user_unwind_stack_split_entry *field = (void *)iter->ent;
	unsigned long ips[USER_STACK_MAX_DEPTH + 1];
	int nr, split = 0, type = iter->ent->type;
	struct trace_seq *s = &iter->seq;

	if (type == TRACE_USER_STACK_ID) {
		trace_seq_printf(s, "<user_stack_id %d>", field->stack_id);
	} else if (type == TRACE_USER_UNWIND_STACK_ID) {
		trace_seq_printf(s, "<user_unwind_stack_id %llx %d>", field->cookie,
				 field->stack_id);
	} else {
		trace_seq_printf(s, "<user_unwind_stack_split %llx @%lx %d>", field->cookie,
				 field->ip, field->stack_id);
		ips[split++] = field->ip;
	}

	/* Copied, because to look up the file of an address may sleep. */
	nr = stackmap_copy_user(iter, ips + split);
	trace_seq_puts(s, nr < 0 ? " (stale)\n" : "\n");
	if (nr > 0 && stackmap_frames(iter))
		trace_print_user_frames(iter, flags, field->tgid, ips, split + nr);
	return trace_handle_return(s);
}

static enum print_line_t trace_stack_def_print(struct trace_iterator *iter,
					       int flags, struct trace_event *event)
{
	struct stack_def_entry *field = (void *)iter->ent;
	const void *end = (void *)iter->ent + iter->ent_size;
	bool user = iter->ent->type == TRACE_USER_STACK_DEF;
	struct trace_seq *s = &iter->seq;
	const unsigned long *p;

	trace_seq_printf(s, "<%sstack_def %d>\n", user ? "user_" : "", field->stack_id);
	p = field->caller;
	/* No process: several may have the stack. */
	if (user)
		trace_print_user_frames(iter, flags, 0, p, max((const unsigned long *)end - p, 0));
	else
		trace_print_stack_frames(iter, flags, p, end);
	return trace_handle_return(s);
}

static struct trace_event_functions trace_stack_id_funcs = {
	.trace		= trace_stack_id_print,
};

static struct trace_event_functions trace_user_stack_id_funcs = {
	.trace		= trace_user_stack_id_print,
};

static struct trace_event_functions trace_stack_def_funcs = {
	.trace		= trace_stack_def_print,
};

static struct trace_event stackmap_events[] = {
	{ .type = TRACE_STACK_ID, .funcs = &trace_stack_id_funcs },
	{ .type = TRACE_STACK_SPLIT, .funcs = &trace_stack_id_funcs },
	{ .type = TRACE_USER_STACK_ID, .funcs = &trace_user_stack_id_funcs },
	{ .type = TRACE_USER_UNWIND_STACK_ID, .funcs = &trace_user_stack_id_funcs },
	{ .type = TRACE_USER_UNWIND_STACK_SPLIT, .funcs = &trace_user_stack_id_funcs },
	{ .type = TRACE_STACK_DEF, .funcs = &trace_stack_def_funcs },
	{ .type = TRACE_USER_STACK_DEF, .funcs = &trace_stack_def_funcs },
};

static int __init stackmap_init_events(void)
{
	for (int i = 0; i < ARRAY_SIZE(stackmap_events); i++)
		WARN_ON_ONCE(!register_trace_event(&stackmap_events[i]));
	return 0;
}
early_initcall(stackmap_init_events);
