// SPDX-License-Identifier: GPL-2.0
/*
 * options/userstacktrace_delay: the user stack is taken once for each entry into
 * the kernel, on the way back to user space. Each event is followed by the cookie
 * of the entry. The stack has the same one.
 */
#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/trace_recursion.h>
#include <linux/unwind_deferred.h>

#include "trace_output.h"
#include "trace_stackmap.h"
#include "trace_stackmap_map.h"

/**
 * trace_user_unwind_request - request the user stack of the current task
 * @tr: the instance, with options/userstacktrace_delay on
 * @buffer: the ring buffer for the cookie
 * @trace_ctx: context of the event
 *
 * A task that exits or has no user space gets no cookie. All events of an entry into
 * the kernel get the same cookie, also those after its stack was taken.
 *
 * Context: any, NMI included.
 * Return: false if the stack can't be taken later.
 */
bool trace_user_unwind_request(struct trace_array *tr, struct trace_buffer *buffer,
			       unsigned int trace_ctx)
{
	struct ring_buffer_event *event = NULL;
	struct user_unwind_cookie_entry *entry;
	bool requested;
	u64 cookie;
	int bit;

	/* A worker of io_uring or vhost has the registers of the task that created it. */
	if (!is_user_task(current))
		return false;

	/* The request may cause events. */
	bit = trace_test_and_set_recursion(_THIS_IP_, _RET_IP_, TRACE_EVENT_START);
	if (bit < 0)
		return true;

	requested = unwind_deferred_request(&tr->user_unwind, &cookie) >= 0;
	if (requested)
		event = trace_buffer_lock_reserve(buffer, TRACE_USER_UNWIND_COOKIE, sizeof(*entry),
						  trace_ctx);
	if (event) {
		entry = ring_buffer_event_data(event);
		entry->cookie = cookie;
		trace_buffer_unlock_commit_nostack(buffer, event);
	}
	trace_clear_recursion(bit);
	return requested;
}

/* Write the event of a whole user stack. Returns whether the buffer took it. */
static bool user_unwind_write(struct trace_buffer *buffer, unsigned int trace_ctx,
			      const struct stackmap_stack *stack)
{
	unsigned int nr = user_stack_depth(stack->ips, stack->nr);
	struct user_unwind_stack_entry *entry;
	struct ring_buffer_event *event;

	event = trace_buffer_lock_reserve(buffer, TRACE_USER_UNWIND_STACK,
					  struct_size(entry, caller, nr), trace_ctx);
	if (!event)
		return false;
	entry = ring_buffer_event_data(event);
	entry->cookie = stack->user->cookie;
	entry->tgid = stack->user->tgid;
	entry->size = nr;
	memcpy(entry->caller, stack->ips, flex_array_size(entry, caller, nr));
	trace_buffer_unlock_commit_nostack(buffer, event);
	return true;
}

/* Record a stack, by file if it goes through the map. */
static void user_unwind_record(struct trace_array *tr, const struct stackmap_stack *full)
{
	unsigned long words[USER_STACK_MAX_DEPTH] __uninitialized;
	unsigned int trace_ctx = tracing_gen_ctx();
	bool enabled = ftrace_stackmap_enabled(tr);
	struct stackmap_stack stack = *full;
	struct trace_buffer *buffer;
	int ret = 1;

	/* The map with the files stays until the stack is recorded. */
	guard(rcu)();
	if (IS_ENABLED(CONFIG_TRACE_USER_FILES) && enabled)
		user_files_translate(tr, &stack, words);
	else if (enabled)
		stack.nr = user_stack_depth(full->ips, full->nr);

	guard(preempt_notrace)();
	/* A snapshot swaps the buffers at any time. */
	buffer = data_race(READ_ONCE(tr->array_buffer.buffer));
	if (enabled) {
		ret = ftrace_stackmap_record_stack(tr, buffer, trace_ctx, &stack);
		if (ret <= 0 && full->user->deep)
			ftrace_stackmap_deep(tr);
	}
	if (ret && !user_unwind_write(buffer, trace_ctx, full))
		ret = 0;
	if (ret < 0)
		ftrace_stackmap_drop(tr, ret);
}

/* On the way back to user space. A stack that could not be taken has no frames. */
static void trace_user_unwind_callback(struct unwind_work *work, struct unwind_stacktrace *trace,
				       u64 cookie)
{
	struct trace_array *tr = container_of(work, struct trace_array, user_unwind);
	struct stackmap_user user = {
		.type	= TRACE_USER_UNWIND_STACK_ID,
		.size	= sizeof(struct user_unwind_stack_id_entry),
		.tgid	= current->tgid,
		.cookie	= cookie,
		.deep	= trace->nr > USER_STACK_MAX_DEPTH &&
			  user_stack_depth(trace->entries, USER_STACK_MAX_DEPTH + 1) >
			  USER_STACK_MAX_DEPTH,
	};
	struct stackmap_stack stack = {
		.ips	= trace->entries,
		.nr	= min(trace->nr, USER_STACK_MAX_DEPTH),
		.user	= &user,
	};

	/* An NMI raced with clearing the cookie. */
	if (cookie)
		user_unwind_record(tr, &stack);
}

/**
 * trace_user_unwind_init - prepare an instance for options/userstacktrace_delay
 * @tr: the instance
 *
 * Return: 0, or -EBUSY if there are too many users of deferred unwinding.
 */
int trace_user_unwind_init(struct trace_array *tr)
{
	lockdep_assert_held(&trace_types_lock);

	/* It stays registered, for the stacks that are pending when the option is cleared. */
	if (tr->user_unwind.func)
		return 0;

	return unwind_deferred_init(&tr->user_unwind, trace_user_unwind_callback);
}

/**
 * trace_user_unwind_destroy - give back what trace_user_unwind_init() has taken
 * @tr: the instance, which has no users and records no events
 */
void trace_user_unwind_destroy(struct trace_array *tr)
{
	lockdep_assert_held(&trace_types_lock);

	if (tr->user_unwind.func)
		unwind_deferred_cancel(&tr->user_unwind);
}

static enum print_line_t trace_user_unwind_print(struct trace_iterator *iter, int flags,
						 struct trace_event *event)
{
	struct user_unwind_stack_entry *field = (void *)iter->ent;
	int size = iter->ent_size - (int)sizeof(*field);
	struct trace_seq *s = &iter->seq;

	switch (iter->ent->type) {
	case TRACE_USER_UNWIND_COOKIE:
		trace_seq_printf(s, "<user_unwind_cookie %llx>\n", field->cookie);
		break;
	case TRACE_USER_UNWIND_STACK:
		trace_seq_printf(s, "<user_unwind_stack %llx>\n", field->cookie);
		trace_print_user_frames(iter, flags, field->tgid, field->caller,
					max(size, 0) / sizeof(long));
		break;
	}
	return trace_handle_return(s);
}

static struct trace_event_functions trace_user_unwind_funcs = {
	.trace		= trace_user_unwind_print,
};

static struct trace_event trace_user_unwind_events[] = {
	{ .type = TRACE_USER_UNWIND_COOKIE, .funcs = &trace_user_unwind_funcs },
	{ .type = TRACE_USER_UNWIND_STACK, .funcs = &trace_user_unwind_funcs },
};

static int __init trace_user_unwind_init_events(void)
{
	for (int i = 0; i < ARRAY_SIZE(trace_user_unwind_events); i++)
		WARN_ON_ONCE(!register_trace_event(&trace_user_unwind_events[i]));
	return 0;
}
early_initcall(trace_user_unwind_init_events);
