// SPDX-License-Identifier: GPL-2.0
/*
 * User stacks by their ids: recording that of the current task, and printing.
 *
 * A user stack is a TRACE_USER_STACK_ID event, or a TRACE_USER_UNWIND_STACK_ID event if it
 * was taken on the way back to user space.
 * Where an interrupt had hit, it is a TRACE_USER_UNWIND_STACK_SPLIT event.
 *
 * The map stores them like kernel stacks, but in one part. A user stack and a kernel stack
 * with equal frames are two stacks.
 *
 * A program chooses its user stacks. The hash has a random key, so a program can't pile
 * its stacks up on one slot.
 */
#include <linux/cleanup.h>
#include <linux/init.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>
#include <linux/string.h>

#include "trace_output.h"
#include "trace_stackmap_internal.h"

#ifdef CONFIG_USER_STACKTRACE_SUPPORT
struct stackmap_user_frames {
	unsigned long		ips[USER_STACK_MAX_DEPTH + 1];
};

static DEFINE_PER_CPU(struct stackmap_user_frames, stackmap_user_frames);

/**
 * ftrace_stackmap_record_user - record the user stack of the current task
 * @tr: the instance, with options/stackmap on
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 *
 * A kernel thread has no user stack, and gets no event. Nor does a worker of
 * io_uring or vhost, which has the registers of the task that created it.
 *
 * Context: any but NMI, with preemption off. Must not nest: the frame buffer is
 * per CPU.
 * Return: as ftrace_stackmap_record().
 */
int ftrace_stackmap_record_user(struct trace_array *tr, struct trace_buffer *buffer,
				unsigned int trace_ctx)
{
	unsigned long *ips = this_cpu_ptr(&stackmap_user_frames)->ips;
	struct stackmap_user user = {
		.type	= TRACE_USER_STACK_ID,
		.size	= sizeof(struct user_stack_id_entry),
		.tgid	= current->tgid,
	};
	struct stackmap_stack stack = { .ips = ips, .user = &user };
	unsigned int depth = 0;

	if (!stackmap_active(tr))
		return 1;

	if (!(current->flags & PF_USER_WORKER)) {
		depth = stack_trace_save_user(ips, USER_STACK_MAX_DEPTH + 1);
		stack.nr = user_stack_depth(ips, depth);
	}
	if (stack.nr > USER_STACK_MAX_DEPTH) {
		stack.nr = USER_STACK_MAX_DEPTH;
		ftrace_stackmap_deep(tr);
	}
	return depth ? ftrace_stackmap_record_stack(tr, buffer, trace_ctx, &stack) : 0;
}
#endif

/* Count a user stack whose outermost frames are not recorded. Preemption is off. */
void ftrace_stackmap_deep(struct trace_array *tr)
{
	stackmap_count(tr->stackmap, STACKMAP_DEEP, 1);
}

/* Copy the stack of an id. Returns the number of frames, or -ENOENT. */
static int stackmap_copy_user(struct trace_iterator *iter, int id, unsigned long *ips)
{
	const struct stackmap_record *rec;
	int nr;

	guard(rcu)();
	rec = stackmap_resolve(iter->tr, id);
	if (!rec)
		return -ENOENT;

	nr = min(rec->nr, USER_STACK_MAX_DEPTH);
	memcpy(ips, rec->ips, nr * sizeof(*ips));
	return nr;
}

#ifdef CONFIG_TRACE_USER_FILES
/**
 * user_file_print - print a frame of a user stack by its file
 * @iter: the event, whose id or definition the frame is from
 * @word: the frame, which refers to a file
 *
 * Return: false if it is an address, and nothing was printed.
 */
bool user_file_print(struct trace_iterator *iter, unsigned long word)
{
	int id;

	/* A full stack has addresses only, whatever its program made of them. */
	if (!stackmap_event_ids(iter->ent))
		return false;

	id = user_word_file_id(word, stackmap_event_id(iter->ent, 0));
	guard(rcu)();
	trace_seq_printf(&iter->seq, "%s[+0x%llx]",
			 user_file_path(stackmap_resolve(iter->tr, id)) ?: "?",
			 word & USER_WORD_OFFSET);
	return true;
}
#endif

static enum print_line_t trace_user_stack_id_print(struct trace_iterator *iter,
						   int flags, struct trace_event *event)
{
	struct user_unwind_stack_split_entry *split = (void *)iter->ent;
	struct user_unwind_stack_id_entry *field = (void *)iter->ent;
	unsigned long ips[USER_STACK_MAX_DEPTH];
	struct trace_seq *s = &iter->seq;
	int nr;

	switch (iter->ent->type) {
	case TRACE_USER_STACK_ID:
		trace_seq_printf(s, "<user_stack_id %d>", field->stack_id);
		break;
	case TRACE_USER_UNWIND_STACK_ID:
		trace_seq_printf(s, "<user_unwind_stack_id %llx %d>", field->cookie,
				 field->stack_id);
		break;
	case TRACE_USER_UNWIND_STACK_SPLIT:
		trace_seq_printf(s, "<user_unwind_stack_split %llx @%lx %d>", field->cookie,
				 split->ip, field->stack_id);
		break;
	}

	/* Copied, because to look up the file of an address may sleep. */
	nr = stackmap_copy_user(iter, field->stack_id, ips);
	trace_seq_puts(s, nr < 0 ? " (stale)\n" : "\n");
	if (nr < 0 || !stackmap_frames(iter))
		return trace_handle_return(s);

	if (iter->ent->type == TRACE_USER_UNWIND_STACK_SPLIT)
		trace_print_user_frames(iter, flags, field->tgid, &split->ip, 1);
	trace_print_user_frames(iter, flags, field->tgid, ips, nr);
	return trace_handle_return(s);
}

static enum print_line_t trace_user_stack_def_print(struct trace_iterator *iter,
						    int flags, struct trace_event *event)
{
	const unsigned long *end = (void *)iter->ent + iter->ent_size;
	struct stack_def_entry *field = (void *)iter->ent;

	trace_seq_printf(&iter->seq, "<user_stack_def %d>\n", field->stack_id);
	/* No process: several may have the stack. */
	trace_print_user_frames(iter, flags, 0, field->caller, max(end - field->caller, 0));
	return trace_handle_return(&iter->seq);
}

static struct trace_event_functions trace_user_stack_id_funcs = {
	.trace		= trace_user_stack_id_print,
};

static struct trace_event_functions trace_user_stack_def_funcs = {
	.trace		= trace_user_stack_def_print,
};

static struct trace_event stackmap_user_events[] = {
	{ .type = TRACE_USER_STACK_ID, .funcs = &trace_user_stack_id_funcs },
	{ .type = TRACE_USER_UNWIND_STACK_ID, .funcs = &trace_user_stack_id_funcs },
	{ .type = TRACE_USER_UNWIND_STACK_SPLIT, .funcs = &trace_user_stack_id_funcs },
	{ .type = TRACE_USER_STACK_DEF, .funcs = &trace_user_stack_def_funcs },
};

static int __init stackmap_init_user_events(void)
{
	for (int i = 0; i < ARRAY_SIZE(stackmap_user_events); i++)
		WARN_ON_ONCE(!register_trace_event(&stackmap_user_events[i]));
	return 0;
}
early_initcall(stackmap_init_user_events);
