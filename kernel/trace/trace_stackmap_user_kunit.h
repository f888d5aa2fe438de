/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_USER_KUNIT_H
#define _TRACE_STACKMAP_USER_KUNIT_H

#include "trace_stackmap_internal.h"

#define TEST_TGID	1234
#define TEST_COOKIE	0x123456789abULL

static atomic_t test_fulls;

/* Record a stack, in full if that has frames. */
static inline int test_record_stack(struct trace_array *tr, struct trace_buffer *buffer,
				    unsigned int trace_ctx, const struct stackmap_stack *stack)
{
	int ret = ftrace_stackmap_record_stack(tr, buffer, trace_ctx, stack);

	if (ret < 0) {
		atomic_inc(&test_fulls);
		if (stack->nr)
			ftrace_stackmap_drop(tr, ret);
	}
	return ret;
}

/* The event of a user stack. Returns false if @type is another event. */
static inline bool test_write_user(struct trace_array *tr, struct trace_buffer *buffer,
				   unsigned int trace_ctx, const unsigned long *ips,
				   unsigned int nr, int type)
{
	struct stackmap_user user = {
		.type	= type,
		.size	= sizeof(struct user_unwind_stack_id_entry),
		.tgid	= TEST_TGID,
		.cookie	= TEST_COOKIE,
	};
	struct stackmap_stack stack = { .ips = ips, .nr = nr, .user = &user };

	if (type == TRACE_USER_STACK_ID)
		user.size = sizeof(struct user_stack_id_entry);
	else if (type != TRACE_USER_UNWIND_STACK_ID)
		return false;
	if (ftrace_stackmap_enabled(tr))
		test_record_stack(tr, buffer, trace_ctx, &stack);
	return true;
}

#endif /* _TRACE_STACKMAP_USER_KUNIT_H */
