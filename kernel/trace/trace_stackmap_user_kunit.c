// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of user stacks in the stack map.
 */
#include <linux/preempt.h>

#include "trace_stackmap_kunit.h"

static void test_record_user(struct trace_array *tr, const unsigned long *ips, unsigned int nr)
{
	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		test_write_user(tr, tr->array_buffer.buffer, tracing_gen_ctx(), ips, nr,
				TRACE_USER_STACK_ID);
	tracer_tracing_off(tr);
}

/* Equal frames of a process and of the kernel are two stacks, no matter which one came first. */
static void stackmap_user_and_kernel(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);
	struct user_stack_id_entry *entry;
	struct trace_iterator *iter;
	int id, kernel;
	char text[32];

	for (int i = 0; i < 4; i++) {
		if (i & 1)
			test_record_event(tr, 8);
		test_record(tr, 8 + i / 2, TRACE_USER_STACK_ID);
		if (i & 2)
			test_record_event(tr, 9);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 4);
	KUNIT_EXPECT_EQ(test, test_successes(), 8);
	KUNIT_EXPECT_EQ(test, test_refs(map), 8);

	iter = test_expect_event(test, tr, TRACE_USER_STACK_ID);
	entry = (void *)iter->ent;
	KUNIT_EXPECT_EQ(test, iter->ent_size, sizeof(*entry));
	KUNIT_EXPECT_EQ(test, entry->tgid, TEST_TGID);
	KUNIT_EXPECT_TRUE(test, test_lookup(tr, entry->stack_id).user);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, entry->stack_id, 8));
	id = entry->stack_id;
	snprintf(text, sizeof(text), "<user_stack_id %d>\n =>  <", id);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), text));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(8));

	iter = test_expect_event(test, tr, TRACE_STACK_ID);
	kernel = stackmap_event_id(iter->ent, 0);
	KUNIT_EXPECT_NE(test, kernel, id);
	KUNIT_EXPECT_FALSE(test, test_lookup(tr, kernel).user);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, kernel, 8));
	iter = test_expect_event(test, tr, TRACE_USER_STACK_ID);
	KUNIT_EXPECT_EQ(test, stackmap_event_id(iter->ent, 0), id);
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, tr->array_buffer.buffer), 0);
}

/* User stacks have no parts, whatever addresses they contain. */
static void stackmap_user_whole(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);
	unsigned long ips[2 * TEST_DEPTHS + 1];
	struct trace_iterator *iter;
	unsigned int nr;

	test_set_entry(map);
	nr = test_fill_irq(ips, ~7UL, 7);
	test_record_frames(tr, ips, nr);
	test_record_user(tr, ips, nr);
	test_record_user(tr, ips, nr);
	test_expect_event(test, tr, TRACE_STACK_SPLIT);
	test_expect_event(test, tr, TRACE_USER_STACK_ID);
	iter = test_expect_event(test, tr, TRACE_USER_STACK_ID);
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), nr);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 3);
}

static void stackmap_user_cookie(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct user_unwind_stack_id_entry *entry;
	struct trace_iterator *iter;
	char text[64];

	test_record(tr, 9, TRACE_USER_UNWIND_STACK_ID);
	iter = test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	entry = (void *)iter->ent;
	KUNIT_EXPECT_EQ(test, iter->ent_size, sizeof(*entry));
	KUNIT_EXPECT_EQ(test, entry->cookie, TEST_COOKIE);
	KUNIT_EXPECT_EQ(test, entry->tgid, TEST_TGID);
	KUNIT_EXPECT_EQ(test, stackmap_event_id(iter->ent, 0), entry->stack_id);
	KUNIT_EXPECT_TRUE(test, test_lookup(tr, entry->stack_id).user);
	snprintf(text, sizeof(text), "<user_unwind_stack_id 123456789ab %d>\n", entry->stack_id);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), text));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(9));

	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), "> (stale)\n"));
}

/* What is recorded in full is counted if the buffer takes it. */
static void stackmap_user_drop(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct stackmap_user user = { .type = TRACE_USER_STACK_ID };
	struct stackmap_stack stack = { .user = &user };
	struct ftrace_stackmap *map = test_current(tr);

	atomic_set(&test_fulls, 0);
	test_current(tr)->gen->recycle = false;
	map->max_entries = 0;
	test_record(tr, 9, TRACE_USER_STACK_ID);
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_ENTRIES), 1);
	test_record_user(tr, NULL, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&test_fulls), 2);
	KUNIT_EXPECT_EQ(test, test_drops(), 1);
	KUNIT_EXPECT_EQ(test, test_successes(), 0);

	KUNIT_EXPECT_EQ(test, test_set_option(tr, "nostackmap"), 0);
	KUNIT_EXPECT_FALSE(test, ftrace_stackmap_enabled(tr));
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	scoped_guard(preempt_notrace)
		KUNIT_EXPECT_EQ(test, test_record_stack(tr, buffer, 0, &stack), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&test_fulls), 2);
	test_expect_no_event(test, tr);
}

/* A 0 ends a stack, whatever an unwinder finds behind it. */
static void stackmap_user_ends(struct kunit *test)
{
	static const unsigned long ips[] = { 1, 2, 0, 4 };

	KUNIT_EXPECT_EQ(test, user_stack_depth(ips, 4), 2);
	KUNIT_EXPECT_EQ(test, user_stack_depth(ips, 2), 2);
	KUNIT_EXPECT_EQ(test, user_stack_depth(ips + 2, 2), 0);
}

/* A stack is defined once, whichever event uses it. */
static void stackmap_user_defined(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct stack_def_entry *def;
	struct trace_iterator *iter;

	if (!TRACE_ITER(STACKMAP_DEFINE))
		kunit_skip(test, "no option");
	KUNIT_ASSERT_EQ(test, test_set_option(tr, "stackmap-define"), 0);
	/* Events are consumed in the order in which they were written. */
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	test_record(tr, 9, TRACE_USER_STACK_ID);
	test_record(tr, 9, TRACE_USER_UNWIND_STACK_ID);
	iter = test_expect_event(test, tr, TRACE_USER_STACK_DEF);
	def = (void *)iter->ent;
	KUNIT_EXPECT_TRUE(test, test_lookup(tr, def->stack_id).user);
	KUNIT_EXPECT_EQ(test, def->size, test_depth(9));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(9));
	KUNIT_EXPECT_TRUE(test, ftrace_stackmap_hidden(iter));
	iter = test_expect_event(test, tr, TRACE_USER_STACK_ID);
	KUNIT_EXPECT_EQ(test, stackmap_event_id(iter->ent, 0), def->stack_id);
	iter = test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	KUNIT_EXPECT_EQ(test, stackmap_event_id(iter->ent, 0), def->stack_id);
	test_expect_no_event(test, tr);
}

static struct kunit_case stackmap_user_test_cases[] = {
	KUNIT_CASE(stackmap_user_and_kernel),
	KUNIT_CASE(stackmap_user_whole),
	KUNIT_CASE(stackmap_user_cookie),
	KUNIT_CASE(stackmap_user_drop),
	KUNIT_CASE(stackmap_user_ends),
	KUNIT_CASE(stackmap_user_defined),
	{ }
};

static struct kunit_suite stackmap_user_test_suite = {
	.name = "ftrace_stackmap_user",
	.test_cases = stackmap_user_test_cases,
};

kunit_test_suite(stackmap_user_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the ftrace stack map");
