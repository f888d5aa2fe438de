// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the stack map of an instance: what is recorded, and what a reset does.
 */
#include <linux/completion.h>
#include <linux/preempt.h>
#include <linux/ring_buffer.h>

#include "trace_stackmap_kunit.h"

static void stackmap_recording_off(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);

	test_write(tr, 1, TRACE_STACK_ID);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 0);
	KUNIT_EXPECT_EQ(test, test_successes() + test_drops(), 0);

	test_record_event(tr, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 1);
	KUNIT_EXPECT_EQ(test, test_successes(), 1);
}

/* The options of the instance say what trace_array_printk() records, not those of the top level. */
static void stackmap_printk(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);

	KUNIT_ASSERT_EQ(test, trace_array_init_printk(tr), 0);
	KUNIT_ASSERT_EQ(test, test_set_option(tr, "stacktrace"), 0);
	tracer_tracing_on(tr);
	trace_array_printk(tr, _THIS_IP_, "with a stack\n");
	tracer_tracing_off(tr);
	/* All frames of a thread may be among those that are skipped. */
	KUNIT_EXPECT_EQ(test, test_successes() + test_drops(), 1);
	KUNIT_EXPECT_EQ(test, ring_buffer_entries(tr->array_buffer.buffer), 2);
}

static void stackmap_reset_generation(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 5);
	int old, new;

	old = test_instance_id(tr, 1);
	KUNIT_EXPECT_EQ(test, old >> STACKMAP_SLOT_BITS, 5);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, old, 1));

	tracer_tracing_on(tr);
	KUNIT_EXPECT_EQ(test, test_reset(tr), -EBUSY);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, old, 1));

	tracer_tracing_off(tr);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, old, 1));

	/* The same stack takes the same slot again, under another id. */
	new = test_instance_id(tr, 1);
	KUNIT_EXPECT_EQ(test, new >> STACKMAP_SLOT_BITS, 6);
	KUNIT_EXPECT_NE(test, new, old);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, new, 1));
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, old, 1));
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, -1, 1));
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, new ^ 1, 1));
}

/* Generations wrap. An id in a buffer never comes to stand for another stack. */
static void stackmap_wraps(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	int old, ret;

	test_record_event(tr, 1);
	old = test_instance_id(tr, 1);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	for (int i = 0; i < 2; i++) {
		test_next_gen(tr, STACKMAP_GENS);
		/* It is refused, or takes another generation. */
		ret = test_reset(tr);
		KUNIT_EXPECT_TRUE(test, !ret || ret == -EBUSY);
		test_instance_id(tr, 1);
		KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, old, 1));
		if (!i)
			test_take_snapshot(test, tr);
	}

	test_empty_buffers(tr);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	test_next_gen(tr, STACKMAP_GENS);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_instance_id(tr, 1) >> STACKMAP_SLOT_BITS, 0);
	test_end_snapshot(tr);
}

static void stackmap_reset_frees(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	int old = test_instance_id(tr, 1);

	KUNIT_EXPECT_EQ(test, test_set_option(tr, "nostackmap"), 0);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, old, 1));
	test_record_event(tr, 1);
	KUNIT_EXPECT_EQ(test, test_consume(test, tr)->ent->type, TRACE_STACK);
	KUNIT_EXPECT_EQ(test, test_successes(), 1);

	/* With the option off, tracing may be on. */
	tracer_tracing_on(tr);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	tracer_tracing_off(tr);
	KUNIT_EXPECT_NULL(test, test_current(tr));
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, old, 1));
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);

	/* The generation outlives the memory. */
	KUNIT_ASSERT_EQ(test, test_set_option(tr, "stackmap"), 0);
	KUNIT_EXPECT_EQ(test, test_instance_id(tr, 1) >> STACKMAP_SLOT_BITS, 1);
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, old, 1));
}

/* Inserts a stack into the current map, and checks that the id leads back to it. */
static bool test_insert_current(struct test_writer *w, unsigned int no)
{
	struct trace_array *tr = w->data;
	struct ftrace_stackmap *map;
	int id;

	guard(preempt_notrace)();
	map = rcu_dereference_sched(tr->stackmap->map);
	id = map ? test_insert_counted(map, no) : -ENOENT;
	return id < 0 || test_leads_to(map, id, no);
}

/* Writers must never see memory of a map that a reset has freed. */
static void stackmap_reset_under_load(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct test_writer model = {
		.insert		= test_insert_current,
		.data		= tr,
		.nr_stacks	= 700,
		.passes		= 20000,
	};
	struct test_writer *w = test_writers(test);
	unsigned int resets = 0;
	atomic_t start;
	int nr;

	model.passes = min(stackmap_test_hits / model.nr_stacks, model.passes);
	nr = test_start_writers(test, w, &model, &start);
	for (; !completion_done(&w[0].done); resets++)
		KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	for (int i = 0; i < nr; i++) {
		wait_for_completion(&w[i].done);
		KUNIT_EXPECT_EQ(test, w[i].errors, 0);
	}
	kunit_info(test, "%u resets\n", resets);
	KUNIT_EXPECT_GT(test, resets, 0);
}

static struct kunit_case stackmap_test_cases[] = {
	KUNIT_CASE(stackmap_recording_off),
	KUNIT_CASE(stackmap_printk),
	KUNIT_CASE(stackmap_reset_generation),
	KUNIT_CASE(stackmap_wraps),
	KUNIT_CASE(stackmap_reset_frees),
	KUNIT_CASE(stackmap_reset_under_load),
	{ }
};

static struct kunit_suite stackmap_test_suite = {
	.name = "ftrace_stackmap",
	.test_cases = stackmap_test_cases,
};

kunit_test_suite(stackmap_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the ftrace stack map of an instance");
