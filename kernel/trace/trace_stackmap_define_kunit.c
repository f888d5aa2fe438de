// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the definitions of stacks in the ring buffer.
 */
#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/ring_buffer.h>
#include <linux/slab.h>

#include "trace_stackmap_kunit.h"

/* An event with the value of tr->stackmap_define. */
static void test_write_mark(struct trace_array *tr)
{
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct ring_buffer_event *event;
	struct print_entry *entry;

	event = trace_buffer_lock_reserve(buffer, TRACE_PRINT, sizeof(*entry), 0);
	if (!event)
		return;
	entry = ring_buffer_event_data(event);
	entry->ip = atomic_read(&tr->stackmap_define);
	ring_buffer_unlock_commit(buffer);
}

/* Buffers were swapped, as far as definitions are concerned. */
static void test_swap(struct test_writer *w)
{
	ftrace_stackmap_undefine(w->data);
	test_write_mark(w->data);
	w->irq_calls++;
}

/* The definition of stack @no, which is removed. */
static void test_expect_def(struct kunit *test, struct trace_array *tr, unsigned int no)
{
	struct trace_iterator *iter = test_expect_event(test, tr, TRACE_STACK_DEF);
	struct stack_def_entry *entry = (void *)iter->ent;

	KUNIT_EXPECT_EQ(test, stackmap_event_ids(iter->ent), 1);
	KUNIT_EXPECT_EQ(test, stackmap_event_id(iter->ent, 0), entry->stack_id);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, entry->stack_id, no));
	KUNIT_ASSERT_EQ(test, entry->size, test_depth(no));
	for (unsigned int i = 0; i < entry->size; i++)
		KUNIT_EXPECT_EQ(test, entry->caller[i], test_frame(no, i));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(no));
}

/* The event of stack @no, which is removed. */
static void test_expect_id(struct kunit *test, struct trace_array *tr, unsigned int no)
{
	struct trace_iterator *iter = test_expect_event(test, tr, TRACE_STACK_ID);

	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, stackmap_event_id(iter->ent, 0),
					      no));
}

static void test_define(struct kunit *test, struct trace_array *tr)
{
	KUNIT_ASSERT_EQ(test, test_set_option(tr, "stackmap-define"), 0);
}

static struct trace_array *test_defining_instance(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 3);
	struct ftrace_stackmap *map = test_current(tr);

	if (!TRACE_ITER(STACKMAP_DEFINE))
		kunit_skip(test, "no option");
	test_define(test, tr);
	/* What was in the memory before does not count. */
	memset32(map->arena, atomic_read(&tr->stackmap_define),
		 array_size(map->arena_units, STACKMAP_UNIT) / sizeof(u32));
	/* Events are consumed in the order in which they were written. */
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	return tr;
}

/* The next event of a stack is defined, the one after that is not. */
static void test_expect_defined(struct kunit *test, struct trace_array *tr)
{
	test_record_event(tr, 9);
	test_record_event(tr, 9);
	test_expect_def(test, tr, 9);
	test_expect_id(test, tr, 9);
	test_expect_id(test, tr, 9);
	test_expect_no_event(test, tr);
}

/* A definition is ahead of the first event that has the id, and only of that. */
static void stackmap_defines_once(struct kunit *test)
{
	struct trace_array *tr = test_defining_instance(test);
	struct trace_iterator *iter;

	test_set_entry(test_current(tr));
	test_expect_defined(test, tr);

	/* Each part of a split stack is defined. */
	test_record(tr, 7, TRACE_STACK_SPLIT);
	test_record(tr, 9, TRACE_STACK_SPLIT);
	test_expect_def(test, tr, TEST_IRQ);
	test_expect_def(test, tr, 7);
	test_expect_event(test, tr, TRACE_STACK_SPLIT);
	iter = test_expect_event(test, tr, TRACE_STACK_SPLIT);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr,
					      stackmap_event_id(iter->ent, 1), 9));
	test_expect_no_event(test, tr);

	KUNIT_EXPECT_EQ(test, test_successes(), 4);
	KUNIT_EXPECT_EQ(test, test_refs(test_current(tr)), 6);
}

/* A definition is printed where the frames are not below the ids. */
static void stackmap_hides_definitions(struct kunit *test)
{
	struct trace_array *tr = test_defining_instance(test);
	struct trace_iterator *iter;

	test_record_event(tr, 9);
	iter = test_expect_event(test, tr, TRACE_STACK_DEF);
	KUNIT_EXPECT_TRUE(test, tr->trace_flags & TRACE_ITER(STACKMAP_FRAMES));
	KUNIT_EXPECT_EQ(test, print_trace_line(iter), TRACE_TYPE_HANDLED);
	KUNIT_EXPECT_EQ(test, trace_seq_used(&iter->seq), 0);
	tr->trace_flags &= ~TRACE_ITER(STACKMAP_FRAMES);
	KUNIT_EXPECT_EQ(test, print_trace_line(iter), TRACE_TYPE_HANDLED);
	KUNIT_EXPECT_GT(test, trace_seq_used(&iter->seq), 0);

	iter = test_expect_event(test, tr, TRACE_STACK_ID);
	KUNIT_EXPECT_FALSE(test, ftrace_stackmap_hidden(iter));
}

/* An event that was begun before the snapshot: in full. Without definitions, by its id. */
static void test_expect_in_snapshot(struct kunit *test, struct trace_array *tr)
{
	struct trace_buffer *buffer = test_snapshot_buffer(tr);
	unsigned long ids = test_successes();
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, 9, test_depth(9));
	ring_buffer_reset(buffer);
	ring_buffer_record_on(buffer);
	for (int i = 0; i < 2; i++) {
		scoped_guard(preempt_notrace)
			trace_record_stack(tr, buffer, tracing_gen_ctx(), ips, test_depth(9));
		KUNIT_EXPECT_EQ(test, ring_buffer_entries(buffer), i + 1);
		KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_BUFFER), 1);
		KUNIT_EXPECT_EQ(test, test_successes(), ids + i);
		KUNIT_ASSERT_EQ(test, test_set_option(tr, "nostackmap-define"), 0);
	}
}

static void stackmap_defines_anew(struct kunit *test)
{
	struct trace_array *tr = test_defining_instance(test);

	test_expect_defined(test, tr);
	/* Set again, which does nothing, then cleared and set. */
	test_define(test, tr);
	test_record_event(tr, 9);
	test_expect_id(test, tr, 9);
	KUNIT_ASSERT_EQ(test, test_set_option(tr, "nostackmap-define"), 0);
	test_define(test, tr);
	test_expect_defined(test, tr);
	test_replace(test, tr, 1);
	test_expect_defined(test, tr);
	test_record_event(tr, 9);
	tracing_reset_online_cpus(&tr->array_buffer);
	test_expect_defined(test, tr);
	test_record_event(tr, 9);
	tracing_reset_cpu(&tr->array_buffer, 0);
	test_expect_defined(test, tr);
	if (!IS_ENABLED(CONFIG_TRACER_SNAPSHOT))
		return;
	test_take_snapshot(test, tr);
	test_expect_defined(test, tr);
	test_expect_in_snapshot(test, tr);
	test_end_snapshot(tr);
}

/*
 * Take all events out of the buffer of CPU 0. Each id was defined since the last
 * mark. Returns the number of stacks that were recorded in full.
 */
static unsigned long test_all_defined(struct kunit *test, struct trace_array *tr)
{
	unsigned int nr = test_current(tr)->nr_slots;
	unsigned long *known = kunit_kzalloc(test, BITS_TO_LONGS(nr) * sizeof(long), GFP_KERNEL);
	struct ring_buffer_event *event;
	unsigned long full = 0, bad = 0;
	struct trace_entry *ent;

	KUNIT_ASSERT_NOT_NULL(test, known);
	while ((event = ring_buffer_consume(tr->array_buffer.buffer, 0, NULL, NULL))) {
		ent = ring_buffer_event_data(event);
		switch (ent->type) {
		case TRACE_PRINT:
			bitmap_zero(known, nr);
			break;
		case TRACE_STACK_DEF:
			__set_bit(stackmap_event_id(ent, 0) & (nr - 1), known);
			break;
		case TRACE_STACK_ID:
			bad += !test_bit(stackmap_event_id(ent, 0) & (nr - 1), known);
			break;
		default:
			full++;
		}
	}
	KUNIT_EXPECT_EQ(test, bad, 0);
	kunit_kfree(test, known);
	return full;
}

#define TEST_SWAP_DROPS	10

/* Whenever an interrupt swaps the buffers, the next id is defined anew, or its stack is in full. */
static void stackmap_defines_in_time(struct kunit *test)
{
	struct trace_array *tr = test_defining_instance(test);
	struct test_writer model = {
		.insert		= test_write_ids,
		.data		= tr,
		.nr_stacks	= 4,
		.passes		= 5000,
		.interrupt	= test_swap,
	};
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	unsigned long calls = 0, swaps = 0, full = 0;
	struct test_writer *w = test_writers(test);
	atomic_t start;

	test_resize(test, buffer, 512);
	/* Timers that expire with the tick seldom hit the writer where it matters. */
	for (int i = 0; i < 300 && full < TEST_SWAP_DROPS; i++) {
		KUNIT_ASSERT_TRUE(test, test_create_writer(w, &model, 0, &start));
		atomic_set(&start, 1);
		tracer_tracing_on(tr);
		ftrace_stackmap_undefine(tr);
		test_write_mark(tr);
		wake_up_process(w->task);
		wait_for_completion(&w->done);
		tracer_tracing_off(tr);
		calls += w->calls;
		swaps += w->irq_calls;
		full += test_all_defined(test, tr);
	}

	kunit_info(test, "%lu events, %lu swaps, %lu full\n", calls, swaps, full);
	KUNIT_EXPECT_EQ(test, ring_buffer_overruns(buffer), 0);
	KUNIT_EXPECT_GT(test, full, 0);
	KUNIT_EXPECT_EQ(test, full, test_sum(STACKMAP_DROP_BUFFER));
	KUNIT_EXPECT_EQ(test, full, test_drops());
	KUNIT_EXPECT_EQ(test, full + test_successes(), calls);
}

/* A definition that the buffer did not take is tried again. */
static void stackmap_defines_later(struct kunit *test)
{
	struct trace_array *tr = test_defining_instance(test);
	struct trace_buffer *buffer = tr->array_buffer.buffer;

	KUNIT_ASSERT_GE(test, test_instance_id(tr, 9), 0);
	ring_buffer_record_disable(buffer);
	test_record_event(tr, 9);
	ring_buffer_record_enable(buffer);
	test_expect_no_event(test, tr);
	test_expect_defined(test, tr);
}

/* What the map does not take is recorded in full, without a definition. */
static void stackmap_defines_no_drop(struct kunit *test)
{
	struct trace_array *tr = test_defining_instance(test);
	struct ftrace_stackmap *map = test_current(tr);
	unsigned long ips[2 * TEST_DEPTHS + 1];
	struct stack_entry *entry;
	unsigned int nr;

	test_set_entry(map);
	test_current(tr)->gen->recycle = false;
	map->max_entries = 1;
	nr = test_fill_irq(ips, ~7UL, 7);
	test_record_frames(tr, ips, nr);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 1);
	map->max_entries = 1 << STACKMAP_BITS_MIN;
	test_replace(test, tr, 1);
	/*
	 * The first part was stored and defined when the second one failed. It stays as long as
	 * its definition.
	 */
	test_expect_def(test, tr, TEST_IRQ);
	entry = (void *)test_expect_event(test, tr, TRACE_STACK)->ent;
	KUNIT_ASSERT_EQ(test, entry->size, nr);
	KUNIT_EXPECT_MEMEQ(test, entry->caller, ips, nr * sizeof(*ips));
	test_expect_no_event(test, tr);
	KUNIT_EXPECT_EQ(test, test_successes(), 0);
	KUNIT_EXPECT_EQ(test, test_drops(), 1);
}

static struct kunit_case stackmap_define_test_cases[] = {
	KUNIT_CASE(stackmap_defines_once),
	KUNIT_CASE(stackmap_hides_definitions),
	KUNIT_CASE(stackmap_defines_anew),
	KUNIT_CASE(stackmap_defines_in_time),
	KUNIT_CASE(stackmap_defines_later),
	KUNIT_CASE(stackmap_defines_no_drop),
	{ }
};

static struct kunit_suite stackmap_define_test_suite = {
	.name = "ftrace_stackmap_define",
	.test_cases = stackmap_define_test_cases,
};

kunit_test_suite(stackmap_define_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the ftrace stack map");
