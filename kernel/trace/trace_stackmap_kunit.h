/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_KUNIT_H
#define _TRACE_STACKMAP_KUNIT_H

/*
 * What the KUnit tests have in common that record into an instance, or split stacks.
 */
#include <linux/delay.h>
#include <linux/rcupdate.h>
#include <linux/ring_buffer.h>

#include "trace_output.h"
#include "trace_stackmap_map_kunit.h"
#include "trace_stackmap_tracefs.h"
#include "trace_stackmap_user_kunit.h"

#define TEST_MAX_DEPTH	1024
#define TEST_IRQ	5	/* the stack that ends in entry code, where there is any */

/* What counts the stacks: of the instance under test, or of a map alone. */
static struct stackmap_instance *test_inst;

/* The id of @parts, of which there are @nr, after stackmap_find_parts(). */
static inline int test_store_parts(struct ftrace_stackmap *map, struct stackmap_key *parts, int nr)
{
	int ret = nr < 0 ? nr : stackmap_store(map, parts, nr);

	if (ret && test_inst->tr)
		stackmap_request_replace(test_inst, map);
	if (ret < 0) {
		stackmap_count(test_inst, -ret, 1);
		return -ENOSPC;
	}
	stackmap_success(test_inst, map, parts, nr);
	return stackmap_id(map, parts->idx);
}

static inline int test_get_parts_id(struct ftrace_stackmap *map, const unsigned long *ips,
				    unsigned int nr)
{
	struct stackmap_key parts[STACKMAP_MAX_PARTS] = { };

	guard(preempt_notrace)();
	return test_store_parts(map, parts, stackmap_find_parts(map, ips, nr, parts));
}

/* The id of test stack @no, which is counted. */
static inline int test_insert_counted(struct ftrace_stackmap *map, unsigned int no)
{
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, no, test_depth(no));
	return test_get_parts_id(map, ips, test_depth(no));
}

/* Makes the last frame of test stack TEST_IRQ all of the entry code. */
static inline void test_set_entry(struct ftrace_stackmap *map)
{
	map->irqentry_start = test_frame(TEST_IRQ, test_depth(TEST_IRQ) - 1);
	map->irqentry_size = 1;
}

/* Test stack TEST_IRQ, then @ip, then test stack @no. Returns the number of frames. */
static inline unsigned int test_fill_irq(unsigned long *ips, unsigned long ip, unsigned int no)
{
	unsigned int nr = test_depth(TEST_IRQ);

	test_fill(ips, TEST_IRQ, nr);
	ips[nr++] = ip;
	test_fill(ips + nr, no, test_depth(no));
	return nr + test_depth(no);
}

static inline unsigned long test_sum(int what)
{
	return stackmap_sum(test_inst, what);
}

static inline unsigned long test_successes(void)
{
	return test_sum(STACKMAP_SUCCESSES);
}

static inline unsigned long test_parts(void)
{
	return test_successes() + test_sum(STACKMAP_MORE_PARTS);
}

static inline unsigned long test_drops(void)
{
	unsigned long sum = 0;

	for (int why = 0; why < STACKMAP_NR_DROPS; why++)
		sum += test_sum(why);
	return sum;
}

/*
 * What holds whenever nobody inserts: @calls are accounted for, references and
 * the parts of the successes agree, and the stacks.
 */
static inline void test_check_map(struct kunit *test, struct ftrace_stackmap *map,
				  unsigned long calls, unsigned int nr_stacks)
{
	KUNIT_EXPECT_EQ(test, test_refs(map), test_parts());
	KUNIT_EXPECT_EQ(test, test_successes() + test_drops(), calls);
	test_check_stacks(test, map, nr_stacks);
}

/*
 * The event of stack @no, TRACE_STACK_SPLIT for what an interrupt has hit there.
 * The number looks like a preempt count.
 */
static inline void test_write(struct trace_array *tr, unsigned int no, int type)
{
	/* A snapshot may swap the buffers. */
	struct trace_buffer *buffer = data_race(READ_ONCE(tr->array_buffer.buffer));
	unsigned long ips[2 * TEST_DEPTHS + 1];
	unsigned int nr = test_depth(no);

	if (type == TRACE_STACK_SPLIT)
		nr = test_fill_irq(ips, ~no, no);
	else
		test_fill(ips, no, nr);

	guard(preempt_notrace)();
	if (test_write_user(tr, buffer, no & 0xff, ips, nr, type))
		return;
	trace_record_stack(tr, buffer, no & 0xff, ips, nr);
}

/* What a writer does: record events of all kinds, or of kernel stacks. */
static inline bool test_write_all(struct test_writer *w, unsigned int no)
{
	static const int types[] = {
		TRACE_STACK_ID, TRACE_STACK_SPLIT, TRACE_STACK_ID,
		TRACE_USER_STACK_ID, TRACE_USER_UNWIND_STACK_ID,
	};

	test_write(w->data, no, types[no % ARRAY_SIZE(types)]);
	if (!in_hardirq() && w->calls % 64 == 0)
		usleep_range(50, 100);
	return true;
}

static inline bool test_write_ids(struct test_writer *w, unsigned int no)
{
	test_write(w->data, no, TRACE_STACK_ID);
	return true;
}

static inline void test_put_instance(void *data)
{
	struct trace_array *tr = data;

	trace_array_put(tr);
	trace_array_destroy(tr);
}

static inline void test_restore_bits(void *bits)
{
	ftrace_stackmap_bits = (unsigned long)bits;
}

static inline struct ftrace_stackmap *test_current(struct trace_array *tr)
{
	return rcu_dereference_check(tr->stackmap->map, true);
}

static inline struct stackmap_gens *test_gens(struct trace_array *tr)
{
	return rcu_dereference_check(tr->stackmap->gens, true);
}

static inline int test_set_option(struct trace_array *tr, const char *name)
{
	char option[20];

	strscpy(option, name);
	return trace_set_options(tr, option);
}

static inline int test_reset(struct trace_array *tr)
{
	guard(mutex)(&trace_types_lock);
	return stackmap_reset(tr);
}

/* Have the next map be of generation @gen. */
static inline void test_next_gen(struct trace_array *tr, u32 gen)
{
	tr->stackmap->next_gen = gen;
}

static inline void test_set_gen(struct kunit *test, struct trace_array *tr, u32 gen)
{
	if (gen) {
		test_next_gen(tr, gen);
		KUNIT_ASSERT_EQ(test, test_reset(tr), 0);
	}
	KUNIT_ASSERT_EQ(test, test_current(tr)->first_id, gen << STACKMAP_SLOT_BITS);
}

/* An instance of its own, with the smallest map, the option on and recording off. */
static inline struct trace_array *test_instance(struct kunit *test, u32 gen)
{
	struct trace_array *tr = trace_array_get_by_name("stackmap_kunit", NULL);

	KUNIT_ASSERT_NOT_NULL(test, tr);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_put_instance, tr), 0);
	KUNIT_EXPECT_NULL(test, tr->stackmap);

	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_restore_bits,
							(void *)(long)ftrace_stackmap_bits), 0);
	ftrace_stackmap_bits = STACKMAP_BITS_MIN;
	KUNIT_ASSERT_EQ(test, test_set_option(tr, "stackmap"), 0);
	test_inst = tr->stackmap;
	KUNIT_ASSERT_NOT_NULL(test, test_current(tr));
	tracer_tracing_off(tr);
	test_set_gen(test, tr, gen);
	return tr;
}

static inline void test_replace(struct kunit *test, struct trace_array *tr, unsigned int times)
{
	int ret = 0;

	scoped_guard(mutex, &tr->stackmap->lock) {
		while (!ret && times--)
			ret = stackmap_replace(tr->stackmap);
	}
	KUNIT_ASSERT_EQ(test, ret, 0);
}

static inline int test_instance_id(struct trace_array *tr, unsigned int no)
{
	return test_insert_counted(test_current(tr), no);
}

/* What an id stands for; without frames if it is gone. */
struct test_stack {
	unsigned int	nr;
	unsigned long	ip;	/* the first frame */
	bool		user;
};

static inline struct test_stack test_lookup(struct trace_array *tr, int id)
{
	const struct stackmap_record *rec;

	guard(rcu)();
	rec = stackmap_lookup(rcu_dereference(tr->stackmap->gens), id);
	if (!rec)
		return (struct test_stack) { };
	return (struct test_stack) { .nr = rec->nr, .ip = rec->ips[0], .user = rec->user };
}

/* Whether @id stands for stack @no, which has to be whole then. */
static inline bool test_resolves(struct kunit *test, struct trace_array *tr, int id,
				 unsigned int no)
{
	struct test_stack stack = test_lookup(tr, id);

	if (!stack.nr)
		return false;
	KUNIT_EXPECT_EQ(test, stack.nr, test_depth(no));
	KUNIT_EXPECT_EQ(test, stack.ip, test_frame(no, 0));
	return true;
}

static inline void test_record_frames(struct trace_array *tr, const unsigned long *ips,
				      unsigned int nr)
{
	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		trace_record_stack(tr, tr->array_buffer.buffer, tracing_gen_ctx(), ips, nr);
	tracer_tracing_off(tr);
}

static inline void test_record(struct trace_array *tr, unsigned int no, int type)
{
	tracer_tracing_on(tr);
	test_write(tr, no, type);
	tracer_tracing_off(tr);
}

static inline void test_record_event(struct trace_array *tr, unsigned int no)
{
	test_record(tr, no, TRACE_STACK_ID);
}

static inline struct ring_buffer_event *test_next_event(struct trace_buffer *buffer)
{
	struct ring_buffer_event *event = NULL;
	int cpu;

	for_each_possible_cpu(cpu) {
		event = ring_buffer_consume(buffer, cpu, NULL, NULL);
		if (event)
			break;
	}
	return event;
}

/* A copy of @event, as a reader of @tr has it. */
static inline struct trace_iterator *test_iter(struct kunit *test, struct trace_array *tr,
					       struct ring_buffer_event *event)
{
	struct trace_iterator *iter = kunit_kzalloc(test, sizeof(*iter), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, iter);
	KUNIT_ASSERT_NOT_NULL(test, event);
	iter->tr = tr;
	iter->ent_size = ring_buffer_event_length(event);
	iter->ent = kunit_kzalloc(test, iter->ent_size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, iter->ent);
	memcpy(iter->ent, ring_buffer_event_data(event), iter->ent_size);
	return iter;
}

/* The oldest event of @tr, which is removed, as a reader has it. */
static inline struct trace_iterator *test_consume(struct kunit *test, struct trace_array *tr)
{
	return test_iter(test, tr, test_next_event(tr->array_buffer.buffer));
}

/* What `trace` shows for an event. */
static inline const char *test_print(struct trace_iterator *iter)
{
	struct trace_event *event = ftrace_find_event(iter->ent->type);

	trace_seq_init(&iter->seq);
	event->funcs->trace(iter, TRACE_ITER(SYM_ADDR), event);
	return trace_seq_buffer_ptr(&iter->seq) - trace_seq_used(&iter->seq);
}

static inline unsigned int test_printed_frames(struct trace_iterator *iter)
{
	unsigned int frames = 0;

	for (const char *s = test_print(iter); (s = strstr(s, "\n => ")); s++)
		frames++;
	return frames;
}

#ifdef CONFIG_TRACER_SNAPSHOT
/* Moves the events of @tr into its snapshot. */
static inline void test_take_snapshot(struct kunit *test, struct trace_array *tr)
{
	KUNIT_ASSERT_EQ(test, tracing_arm_snapshot(tr), 0);
	tracing_snapshot_instance(tr);
	KUNIT_EXPECT_EQ(test, ring_buffer_entries(tr->array_buffer.buffer), 0);
}

static inline void test_empty_buffers(struct trace_array *tr)
{
	ring_buffer_reset(tr->snapshot_buffer.buffer);
	ring_buffer_reset(tr->array_buffer.buffer);
}

/* Swap the buffers of all CPUs, and of one. */
static inline void test_swap_buffers(struct trace_array *tr)
{
	tracing_snapshot_instance(tr);
	if (IS_ENABLED(CONFIG_RING_BUFFER_ALLOW_SWAP)) {
		guard(irqsave)();
		update_max_tr_single(tr, current, smp_processor_id());
	}
}

static inline struct trace_buffer *test_snapshot_buffer(struct trace_array *tr)
{
	return tr->snapshot_buffer.buffer;
}

static inline void test_end_snapshot(struct trace_array *tr)
{
	tracing_disarm_snapshot(tr);
}
#else
static inline void test_take_snapshot(struct kunit *test, struct trace_array *tr) { }
static inline void test_swap_buffers(struct trace_array *tr) { }
static inline struct trace_buffer *test_snapshot_buffer(struct trace_array *tr) { return NULL; }
static inline void test_end_snapshot(struct trace_array *tr) { }

static inline void test_empty_buffers(struct trace_array *tr)
{
	ring_buffer_reset(tr->array_buffer.buffer);
}
#endif

/*
 * Take all events out of @buffer. Each has to resolve, to the stack that it was
 * recorded with. Returns the number of those that were recorded in full.
 */
static inline unsigned int test_all_resolve(struct kunit *test, struct trace_array *tr,
					    struct trace_buffer *buffer)
{
	struct ring_buffer_event *event;
	struct test_stack stack;
	struct trace_entry *ent;
	unsigned int full = 0;
	int nr;

	while ((event = test_next_event(buffer))) {
		ent = ring_buffer_event_data(event);
		nr = stackmap_event_ids(ent);
		full += !nr;
		for (int i = 0; i < nr; i++) {
			stack = test_lookup(tr, stackmap_event_id(ent, i));
			KUNIT_ASSERT_NE(test, stack.nr, 0);
			KUNIT_EXPECT_EQ(test, (stack.ip >> 8) & 0xff,
					i + 1 < nr ? TEST_IRQ : ent->preempt_count);
			KUNIT_EXPECT_EQ(test, stack.nr, test_depth(stack.ip >> 8));
			KUNIT_EXPECT_EQ(test, stack.user, ent->type != TRACE_STACK_ID &&
					ent->type != TRACE_STACK_SPLIT);
		}
	}
	return full;
}

static inline void test_resize(struct kunit *test, struct trace_buffer *buffer, unsigned int pages)
{
	KUNIT_ASSERT_GE(test, ring_buffer_resize(buffer, pages * PAGE_SIZE, RING_BUFFER_ALL_CPUS),
			0);
}

/* The oldest event, which has to be of this type. It is removed. */
static inline struct trace_iterator *test_expect_event(struct kunit *test, struct trace_array *tr,
						       int type)
{
	struct trace_iterator *iter = test_consume(test, tr);

	KUNIT_ASSERT_EQ(test, iter->ent->type, type);
	return iter;
}

static inline void test_expect_no_event(struct kunit *test, struct trace_array *tr)
{
	KUNIT_EXPECT_EQ(test, ring_buffer_entries(tr->array_buffer.buffer), 0);
}

#endif /* _TRACE_STACKMAP_KUNIT_H */
