// SPDX-License-Identifier: GPL-2.0
/*
 * Events with stack ids: how they are recorded and printed.
 *
 * A kernel stack is one TRACE_STACK_ID event, or one TRACE_STACK_SPLIT or TRACE_STACK_SPLIT3
 * event where it is split.
 */
#include <linux/cleanup.h>
#include <linux/rcupdate.h>
#include <linux/ring_buffer.h>

#include <kunit/visibility.h>

#include "trace_output.h"
#include "trace_stackmap_internal.h"

/* Fill in what follows the id in the event of a user stack. */
static void stackmap_fill_user(struct stack_id_entry *entry, const struct stackmap_user *user)
{
	struct user_unwind_stack_split_entry *split = (void *)entry;
	struct user_unwind_stack_id_entry *field = (void *)entry;

	field->tgid = user->tgid;
	if (user->type != TRACE_USER_STACK_ID)
		field->cookie = user->cookie;
	if (user->type == TRACE_USER_UNWIND_STACK_SPLIT)
		split->ip = user->ip;
}

/* Count a stack of @nr parts that was recorded by its ids. */
VISIBLE_IF_KUNIT void stackmap_success(struct stackmap_instance *inst, struct ftrace_stackmap *map,
				       const struct stackmap_key *parts, int nr)
{
	for (int i = 0; i < nr; i++)
		stackmap_add_ref(map, &parts[i]);
	stackmap_count(inst, STACKMAP_SUCCESSES, 1);
	if (nr > 1) {
		stackmap_count(inst, STACKMAP_SPLIT, 1);
		stackmap_count(inst, STACKMAP_MORE_PARTS, nr - 1);
	}
}

/* The event of a stack of @nr parts: its type. Sets the size. */
static int stackmap_event_type(const struct stackmap_user *user, int nr, size_t *size)
{
	if (nr > 2) {
		*size = sizeof(struct stack_split3_entry);
		return TRACE_STACK_SPLIT3;
	}
	if (nr > 1) {
		*size = sizeof(struct stack_split_entry);
		return TRACE_STACK_SPLIT;
	}
	*size = user ? user->size : sizeof(struct stack_id_entry);
	return user ? user->type : TRACE_STACK_ID;
}

/*
 * Write the event of a stack whose parts were found. New parts are stored only after
 * the event is reserved, since the buffer may not take it. Returns 0, also without an
 * event, or why the stack has to be recorded in full.
 */
static int stackmap_write_ids(struct trace_array *tr, struct ftrace_stackmap *map,
			      struct trace_buffer *buffer, unsigned int trace_ctx,
			      const struct stackmap_user *user, struct stackmap_key *parts,
			      int nr, u32 define)
{
	struct ring_buffer_event *event;
	struct stack_id_entry *entry;
	size_t size;
	int type, ret;

	type = stackmap_event_type(user, nr, &size);
	event = __trace_buffer_lock_reserve(buffer, type, size, trace_ctx);
	if (!event)
		return 0;

	/* This event keeps a snapshot from swapping the buffer of the CPU. */
	if (define && define != atomic_read(&tr->stackmap_define))
		ret = -STACKMAP_DROP_BUFFER;
	else
		ret = stackmap_store(map, parts, nr);
	if (ret < 0) {
		ring_buffer_discard_commit(buffer, event);
		return ret;
	}

	entry = ring_buffer_event_data(event);
	entry->stack_id = stackmap_id(map, parts[0].idx);
	if (nr > 1)
		stackmap_fill_split(map, (void *)entry, parts, nr);
	else if (user)
		stackmap_fill_user(entry, user);
	if (user) {
		stackmap_count(tr->stackmap, STACKMAP_CUT, user->cut);
		stackmap_count(tr->stackmap, STACKMAP_ADDRESSES, user->addresses);
	}
	stackmap_success(tr->stackmap, map, parts, nr);
	__buffer_unlock_commit(buffer, event);
	if (ret)
		stackmap_request_replace(tr->stackmap, map);
	return 0;
}

/* Do the frames refer to files in a map? */
static bool user_by_file(const struct stackmap_user *user)
{
	return IS_ENABLED(CONFIG_TRACE_USER_FILES) && user && user->map;
}

/*
 * Record a stack by its ids. Returns 0, also if the buffer did not take the event, or why
 * the stack has to be recorded in full.
 */
static __always_inline int
stackmap_record_ids(struct trace_array *tr, struct ftrace_stackmap *map,
		    struct trace_buffer *buffer, unsigned int trace_ctx,
		    const struct stackmap_stack *stack)
{
	struct stackmap_key parts[STACKMAP_MAX_PARTS] __uninitialized;
	const struct stackmap_user *user = stack->user;
	u32 define = 0;
	int nr, ret;

	parts[0].user = !!user;
	nr = stackmap_find_parts(map, stack->ips, stack->nr, parts);
	if (nr < 0)
		return nr;

	if (user_by_file(user))
		user_files_use(stack, parts[0].idx);
	if (tr->trace_flags & TRACE_ITER(STACKMAP_DEFINE)) {
		ret = stackmap_define(tr, map, buffer, trace_ctx, parts, nr, &define);
		if (ret)
			return ret;
		if (user_by_file(user) && !user_files_define(buffer, trace_ctx, stack, define))
			return 0;
	}

	return stackmap_write_ids(tr, map, buffer, trace_ctx, user, parts, nr, define);
}

/**
 * ftrace_stackmap_record_stack - record a stack
 * @tr: the instance, with options/stackmap on
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 * @stack: the stack
 *
 * Return: 0 if done, else the stack has to be recorded in full: 1 if no map is in use, or
 * a negative value for ftrace_stackmap_drop().
 */
int ftrace_stackmap_record_stack(struct trace_array *tr, struct trace_buffer *buffer,
				 unsigned int trace_ctx, const struct stackmap_stack *stack)
{
	struct ftrace_stackmap *map;
	int ret;

	/* A stack by file is recorded where its files are, even if that map is being replaced. */
	map = user_by_file(stack->user) ? stack->user->map : stackmap_active(tr);
	if (!map)
		return 1;

	ret = stackmap_record_ids(tr, map, buffer, trace_ctx, stack);
	if (ret)
		stackmap_request_replace(tr->stackmap, map);
	return ret;
}

/**
 * ftrace_stackmap_record - record a kernel stack
 * @tr: the instance, with options/stackmap on
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 * @ips: the frames, innermost first
 * @nr: number of frames
 *
 * Context: any, NMI included, with preemption off.
 * Return: 0 if done, else the stack has to be recorded in full: 1 if no map is in use, or
 * a negative value for ftrace_stackmap_drop().
 */
int ftrace_stackmap_record(struct trace_array *tr, struct trace_buffer *buffer,
			   unsigned int trace_ctx, const unsigned long *ips, unsigned int nr)
{
	struct stackmap_stack stack = { .ips = ips, .nr = nr };

	return ftrace_stackmap_record_stack(tr, buffer, trace_ctx, &stack);
}

/* Count a stack that the buffer took in full, because ftrace_stackmap_record() returned @why. */
void ftrace_stackmap_drop(struct trace_array *tr, int why)
{
	stackmap_count(tr->stackmap, -why, 1);
}

/**
 * stackmap_resolve - find the stack or the file of an id
 * @tr: the instance whose buffer has the id
 * @id: the id
 *
 * Under RCU.
 * Return: its record, or NULL if it is gone.
 */
const struct stackmap_record *stackmap_resolve(struct trace_array *tr, int id)
{
	struct stackmap_instance *inst = READ_ONCE(tr->stackmap);

	/* stackmap_resolve:A, pairs with stackmap_publish:A */
	return inst ? stackmap_lookup(rcu_dereference(inst->gens), id) : NULL;
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
