// SPDX-License-Identifier: GPL-2.0
/*
 * User stacks: where options/stackmap is on, options/userstacktrace records their
 * ids as TRACE_USER_STACK_ID events, and options/userstacktrace_delay as
 * TRACE_USER_UNWIND_STACK_ID events. They are printed like TRACE_USER_STACK.
 */
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>
#include <linux/string.h>

#include "trace_output.h"
#include "trace_stackmap.h"

struct stackmap_user_frames {
	unsigned long		ips[USER_STACK_MAX_DEPTH];
};

#ifdef CONFIG_USER_STACKTRACE_SUPPORT
static DEFINE_PER_CPU(struct stackmap_user_frames, stackmap_user_frames);

/**
 * ftrace_stackmap_record_user - record the user stack of the current task by its id
 * @tr: the instance
 * @map: its map, from ftrace_stackmap_active()
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 *
 * A kernel thread has no user stack, and gets no event. Nor does a worker of
 * io_uring or vhost, which has the registers of the task that created it.
 *
 * Context: any but NMI, with preemption off since the map was obtained. Not for
 * events that happen meanwhile: there is one buffer for the frames on each CPU.
 * Return: as ftrace_stackmap_record().
 */
int ftrace_stackmap_record_user(struct trace_array *tr, struct ftrace_stackmap *map,
				struct trace_buffer *buffer, unsigned int trace_ctx)
{
	unsigned long *ips = this_cpu_ptr(&stackmap_user_frames)->ips;
	struct stackmap_stack stack = {
		.ips	= ips,
		.type	= TRACE_USER_STACK_ID,
		.tgid	= current->tgid,
	};
	unsigned int nr;

	if (current->flags & PF_USER_WORKER)
		return 0;

	nr = stack_trace_save_user(ips, USER_STACK_MAX_DEPTH);
	stack.nr = user_stack_depth(ips, nr);
	return stack.nr ? ftrace_stackmap_record(tr, map, buffer, trace_ctx, &stack) : 0;
}
#endif

/* Copy the stack of an event. Returns the number of frames, or -ENOENT. */
static int stackmap_user_copy(struct trace_iterator *iter, struct stackmap_user_frames *frames)
{
	const struct stackmap_record *rec;
	struct ftrace_stackmap *map;
	int nr;

	guard(rcu)();
	map = rcu_dereference(iter->tr->stackmap);
	if (!ftrace_stackmap_resolves(iter, map))
		return -ENOENT;

	rec = ftrace_stackmap_lookup(map, ftrace_stackmap_event_id(iter->ent, 0));
	nr = min(rec->nr, USER_STACK_MAX_DEPTH);
	memcpy(frames->ips, rec->ips, nr * sizeof(*rec->ips));
	return nr;
}

/* Print the end of the line, and the frames. */
static enum print_line_t stackmap_user_print(struct trace_iterator *iter, int flags,
					     unsigned int tgid)
{
	struct stackmap_user_frames frames;
	struct trace_seq *s = &iter->seq;
	int nr;

	/* Copied, because to look up the file of an address may sleep. */
	nr = stackmap_user_copy(iter, &frames);
	trace_seq_puts(s, nr < 0 ? " (stale)\n" : "\n");
	if (nr > 0 && (iter->tr->trace_flags & TRACE_ITER(STACKMAP_FRAMES)))
		trace_print_user_frames(iter, flags, tgid, frames.ips, nr);
	return trace_handle_return(s);
}

static enum print_line_t trace_user_stack_id_print(struct trace_iterator *iter,
						   int flags, struct trace_event *event)
{
	struct user_stack_id_entry *field;

	trace_assign_type(field, iter->ent);

	trace_seq_printf(&iter->seq, "<user_stack_id %d>", field->stack_id);
	return stackmap_user_print(iter, flags, field->tgid);
}

static enum print_line_t trace_user_unwind_stack_id_print(struct trace_iterator *iter,
							  int flags, struct trace_event *event)
{
	struct user_unwind_stack_id_entry *field;

	trace_assign_type(field, iter->ent);

	trace_seq_printf(&iter->seq, "<user_unwind_stack_id %llx %d>", field->cookie,
			 field->stack_id);
	return stackmap_user_print(iter, flags, field->tgid);
}

static struct trace_event_functions trace_user_stack_id_funcs = {
	.trace		= trace_user_stack_id_print,
};

static struct trace_event_functions trace_user_unwind_stack_id_funcs = {
	.trace		= trace_user_unwind_stack_id_print,
};

static struct trace_event trace_user_stack_id_event = {
	.type		= TRACE_USER_STACK_ID,
	.funcs		= &trace_user_stack_id_funcs,
};

static struct trace_event trace_user_unwind_stack_id_event = {
	.type		= TRACE_USER_UNWIND_STACK_ID,
	.funcs		= &trace_user_unwind_stack_id_funcs,
};

/**
 * ftrace_stackmap_init_user - register the events of user stacks
 *
 * Context: boot, from init_events().
 */
void __init ftrace_stackmap_init_user(void)
{
	WARN_ON_ONCE(!register_trace_event(&trace_user_stack_id_event));
	WARN_ON_ONCE(!register_trace_event(&trace_user_unwind_stack_id_event));
}
