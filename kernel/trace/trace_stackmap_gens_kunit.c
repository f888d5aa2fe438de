// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the replacement of stack maps, of the generations of an instance and of
 * the positions of the ring buffer.
 */
#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/ring_buffer.h>
#include <linux/slab.h>

#include "trace_stackmap_tracefs.h"
#include "trace_stackmap_kunit.h"

/* End the pause, and wait for the work that a new stack has asked for. */
static void test_settle(struct trace_array *tr)
{
	struct stackmap_instance *inst = tr->stackmap;

	irq_work_sync(&inst->nearly_full);
	inst->replaced = jiffies - inst->pause;
	flush_delayed_work(&inst->work);
	inst->pause = 0;
}

/* Whether the work was asked for. It does not run before test_settle(). */
static bool test_asked(struct trace_array *tr)
{
	/* Without work, there is no grace period to wait for, as each call does on UML. */
	if (irq_work_is_busy(&tr->stackmap->nearly_full))
		irq_work_sync(&tr->stackmap->nearly_full);
	flush_work(&tr->stackmap->work.work);
	return delayed_work_pending(&tr->stackmap->work);
}

static void test_wait_for_ever(struct trace_array *tr)
{
	tr->stackmap->replaced = jiffies;
	tr->stackmap->pause = 500 * HZ;
}

static void test_shrink(struct trace_array *tr)
{
	guard(mutex)(&tr->stackmap->lock);
	stackmap_free_unused(tr->stackmap);
}

static unsigned long test_rotations(struct trace_array *tr)
{
	return tr->stackmap->past.rotations;
}

/* The number of stacks of older maps. */
static unsigned int test_nr_kept(struct trace_array *tr)
{
	struct stackmap_gens *gens = test_gens(tr);
	unsigned int nr = 0;

	for (u32 i = 0; i < gens->nr; i++)
		nr += gens->gen[i]->map ? 0 : gens->gen[i]->nr;
	return nr;
}

static unsigned int test_nr_gens(struct trace_array *tr)
{
	return test_gens(tr)->nr;
}

static int test_gen(int id)
{
	return id >> STACKMAP_SLOT_BITS;
}

/* Is a generation in use? */
static bool test_has_gen(struct trace_array *tr, u32 gen)
{
	return stackmap_gen_of(test_gens(tr), gen << STACKMAP_SLOT_BITS);
}

/* The references of all stacks, those that are gone included, are the parts of all successes. */
static void test_check_recycling(struct kunit *test, struct trace_array *tr)
{
	const struct stackmap_record *rec;
	const struct stackmap_gens *gens;
	unsigned long refs;
	u32 idx;

	test_settle(tr);
	refs = tr->stackmap->past.recycled_refs + test_refs(test_current(tr));
	gens = test_gens(tr);
	for (u32 nr = 0; nr < gens->nr; nr++) {
		if (gens->gen[nr]->map)
			continue;
		for (u32 i = 0; !IS_ERR(rec = stackmap_at(gens->gen[nr], i, &idx)); i++) {
			refs += atomic_long_read(&rec->ref);
			idx |= gens->gen[nr]->first_id;
			KUNIT_EXPECT_PTR_EQ(test, rec, stackmap_lookup(gens, idx));
		}
	}
	KUNIT_EXPECT_EQ(test, refs, test_parts());
}

/* All @calls are accounted for, and the stacks of this map are whole. */
static void test_check_maps(struct kunit *test, struct ftrace_stackmap *map,
			    unsigned long calls, unsigned int nr_stacks)
{
	KUNIT_EXPECT_EQ(test, test_successes() + test_drops(), calls);
	test_check_stacks(test, map, nr_stacks);
}

/* An id that no slot can have stands for nothing, in this map or an older one. */
static void stackmap_bad_ids(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 5);
	struct ftrace_stackmap *map = test_current(tr);
	u32 nr_slots = map->nr_slots;

	for (int no = 0; no < 500; no++)
		test_record_event(tr, no);
	for (int i = 0; i < 2; i++) {
		for (u32 idx = nr_slots; idx < 2 * nr_slots; idx++)
			KUNIT_EXPECT_NULL(test, stackmap_lookup(test_gens(tr),
								5 << STACKMAP_SLOT_BITS | idx));
		test_replace(test, tr, 1);
	}
	KUNIT_EXPECT_EQ(test, test_nr_kept(tr), 500);
}

/* A generation that an event may have an id of is not used again, a stale one included. */
static void stackmap_generation_skips(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	int id;

	test_record_event(tr, 1);
	id = test_instance_id(tr, 1);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	test_record_event(tr, 1);
	test_take_snapshot(test, tr);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	test_record_event(tr, 1);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);

	/* 0 and 1 are in one buffer, 2 in the other, and 3 is current. */
	for (u32 gen = 0; gen < 5; gen++)
		KUNIT_EXPECT_EQ(test, test_has_gen(tr, gen), gen < 4);
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, id, 1));

	test_next_gen(tr, 0);
	test_replace(test, tr, 1);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 4);
	/* Nothing was recorded in generation 3. */
	KUNIT_EXPECT_FALSE(test, test_has_gen(tr, 3));
	test_next_gen(tr, STACKMAP_GENS + 1);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 3);

	/* The others are gone with their events. */
	test_empty_buffers(tr);
	test_shrink(tr);
	KUNIT_EXPECT_EQ(test, test_nr_gens(tr), 1);
	test_next_gen(tr, 0);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 0);
	test_end_snapshot(tr);
}

/* With events of all generations, a reset changes nothing. */
static void stackmap_generations_used_up(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map;

	test_resize(test, tr->array_buffer.buffer, 64);
	for (int gen = 0; gen < STACKMAP_GENS - 1; gen++) {
		test_record_event(tr, 1);
		KUNIT_ASSERT_EQ(test, test_reset(tr), 0);
	}
	test_record_event(tr, 1);
	KUNIT_EXPECT_EQ(test, test_nr_gens(tr), STACKMAP_GENS);
	map = test_current(tr);
	KUNIT_EXPECT_EQ(test, test_reset(tr), -EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, test_current(tr), map);
	KUNIT_EXPECT_EQ(test, test_successes(), 1);

	/* The map that has stayed is replaced as before, as soon as there is a generation. */
	for (int no = 0; no < map->max_entries; no++)
		test_instance_id(tr, no);
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 0);
	test_empty_buffers(tr);
	test_instance_id(tr, map->max_entries);
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 1);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 0);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
}

/* Many resets without an id in the buffer use up no generations. */
static void stackmap_resets_alone(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);

	tracer_tracing_on(tr);
	trace_array_printk_buf(tr, tr->array_buffer.buffer, _THIS_IP_, "not a stack\n");
	tracer_tracing_off(tr);
	for (int i = 0; i < 10; i++) {
		KUNIT_ASSERT_EQ(test, test_reset(tr), 0);
		KUNIT_EXPECT_LE(test, test_nr_gens(tr), 2);
	}
}

/* Hits, and new stacks in a map that is less than 3/4 full, queue no work. */
static void stackmap_idle(struct kunit *test)
{
	unsigned long *ips = kunit_kcalloc(test, TEST_MAX_DEPTH, sizeof(*ips), GFP_KERNEL);
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);
	unsigned int limit = map->max_entries / 4 * 3;

	KUNIT_ASSERT_NOT_NULL(test, ips);
	test_wait_for_ever(tr);
	for (int i = 0; i < 10000; i++)
		KUNIT_ASSERT_GE(test, test_instance_id(tr, i % (limit - 1)), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), limit - 1);
	KUNIT_EXPECT_FALSE(test, test_asked(tr));
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 0);

	test_wait_for_ever(tr);
	test_record_event(tr, limit);
	KUNIT_EXPECT_TRUE(test, test_asked(tr));
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 0);
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 1);
	KUNIT_EXPECT_FALSE(test, test_asked(tr));

	/* The arena has a limit, too. */
	map = test_current(tr);
	limit = map->arena_units / 4 * 3;
	test_wait_for_ever(tr);
	for (int no = 0; !test_asked(tr); no++) {
		KUNIT_ASSERT_LT(test, atomic_read(&map->tail), limit);
		test_fill(ips, no, TEST_MAX_DEPTH);
		KUNIT_ASSERT_GE(test, test_get_parts_id(map, ips, TEST_MAX_DEPTH), 0);
	}
	KUNIT_EXPECT_GE(test, atomic_read(&map->tail), limit);
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 2);
}

/* Before interrupts are set up, an irq_work may not even be queued. */
static void stackmap_asks_early(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	enum system_states state = system_state;
	struct ftrace_stackmap *map = test_current(tr);

	test_wait_for_ever(tr);
	scoped_guard(irqsave) {
		system_state = SYSTEM_BOOTING;
		for (int no = 0; no < map->max_entries; no++)
			test_instance_id(tr, no);
		system_state = state;
		KUNIT_EXPECT_FALSE(test, irq_work_is_pending(&tr->stackmap->nearly_full));
	}
	KUNIT_EXPECT_FALSE(test, test_asked(tr));

	/* A stack that does not fit asks, too. */
	KUNIT_EXPECT_LT(test, test_instance_id(tr, map->max_entries), 0);
	KUNIT_EXPECT_TRUE(test, test_asked(tr));
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 1);
}

/* A map that is nearly full is replaced by a larger one. What events refer to stays. */
static void test_grows(struct kunit *test, struct trace_array *tr)
{
	unsigned int max = 10000, nr_entries;
	struct ftrace_stackmap *map;
	int *ids;

	ids = kunit_kcalloc(test, max, sizeof(*ids), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ids);
	test_resize(test, tr->array_buffer.buffer, 600);
	ftrace_stackmap_bits = STACKMAP_BITS_MIN + 3;
	for (int no = 0; no < max; no++) {
		map = test_current(tr);
		nr_entries = map->max_entries;
		test_wait_for_ever(tr);
		test_record_event(tr, no);
		ids[no] = test_instance_id(tr, no);
		if (!test_asked(tr))
			continue;
		KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), nr_entries / 4 * 3);
		test_settle(tr);
		KUNIT_EXPECT_EQ(test, test_current(tr)->max_entries, 2 * nr_entries);
	}
	KUNIT_EXPECT_EQ(test, test_current(tr)->max_entries, 1U << ftrace_stackmap_bits);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 3);
	KUNIT_EXPECT_EQ(test, tr->stackmap->past.recycled, 0);
	for (int no = 0; no < max; no++)
		KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, ids[no], no));
	test_check_recycling(test, tr);
	test_check_maps(test, test_current(tr), 2 * max, max);

	/* The next one is as large as it may be then. */
	ftrace_stackmap_bits = STACKMAP_BITS_MIN;
	test_replace(test, tr, 1);
	KUNIT_EXPECT_EQ(test, test_current(tr)->max_entries, 1U << STACKMAP_BITS_MIN);
	KUNIT_EXPECT_EQ(test, test_nr_kept(tr), max);
	test_empty_buffers(tr);
	test_shrink(tr);
	KUNIT_EXPECT_EQ(test, test_nr_kept(tr), 0);
	KUNIT_EXPECT_EQ(test, tr->stackmap->past.recycled, max);
	test_check_recycling(test, tr);
}

static void stackmap_grows(struct kunit *test)
{
	test_grows(test, test_instance(test, STACKMAP_GENS - 2));
}

/* Stacks that a definition has stored are new ones, too. */
static void stackmap_grows_by_definitions(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, STACKMAP_GENS - 2);

	if (!TRACE_ITER(STACKMAP_DEFINE))
		kunit_skip(test, "no option");
	KUNIT_ASSERT_EQ(test, test_set_option(tr, "stackmap-define"), 0);
	test_grows(test, tr);
}

/* A CPU, its own events, and its own stacks: from 1000 times its number on. */
static void test_record_on(struct kunit *test, struct trace_array *tr, int cpu, unsigned int nr)
{
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)), 0);
	for (unsigned int no = 0; no < nr; no++)
		test_record_event(tr, 1000 * cpu + no);
}

/* The stacks of a CPU that records little stay, those that only the other one has used go. */
static void stackmap_sleepy_cpu(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	unsigned int more;

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");

	test_resize(test, buffer, 2);
	test_record_on(test, tr, 1, 3);
	for (int i = 0; i < 20; i++) {
		test_record_on(test, tr, 0, 500);
		test_replace(test, tr, 1);
	}
	KUNIT_EXPECT_GT(test, ring_buffer_overrun_cpu(buffer, 0), 0);
	/* All of the last map, and two pages of CPU 0. */
	more = test_nr_kept(tr) - 3;
	KUNIT_EXPECT_GE(test, more, 500);
	KUNIT_EXPECT_LE(test, more, 1000);
	KUNIT_EXPECT_LE(test, test_nr_gens(tr), 5);
	test_check_recycling(test, tr);
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, buffer), 0);

	test_shrink(tr);
	KUNIT_EXPECT_EQ(test, test_nr_kept(tr), 0);
	KUNIT_EXPECT_EQ(test, test_nr_gens(tr), 1);
	test_check_recycling(test, tr);
}

/* An old generation is in use as long as half a page is left of it. Those since are not. */
static void stackmap_half_read(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_buffer *buffer = tr->array_buffer.buffer;

	test_resize(test, buffer, 2);
	test_record_on(test, tr, 0, 100);
	for (int i = 0; i < 10; i++)
		KUNIT_ASSERT_NOT_NULL(test, ring_buffer_consume(buffer, 0, NULL, NULL));
	for (int i = 0; i < 10; i++) {
		test_replace(test, tr, 1);
		test_record_on(test, tr, 0, 900);
	}
	test_replace(test, tr, 1);
	KUNIT_EXPECT_TRUE(test, test_has_gen(tr, 0));
	KUNIT_EXPECT_FALSE(test, test_has_gen(tr, 3));
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, buffer), 0);
	test_shrink(tr);
	KUNIT_EXPECT_EQ(test, test_nr_gens(tr), 1);
	test_check_recycling(test, tr);
}

/* The same, if the buffer of the CPU was reset after the generation began. */
static void stackmap_half_read_reset(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_buffer *buffer = tr->array_buffer.buffer;

	test_resize(test, buffer, 2);
	test_record_on(test, tr, 0, 700);
	test_replace(test, tr, 1);
	tracing_reset_cpu(&tr->array_buffer, 0);
	test_record_on(test, tr, 0, 100);
	KUNIT_ASSERT_NOT_NULL(test, ring_buffer_consume(buffer, 0, NULL, NULL));
	test_replace(test, tr, 1);
	test_record_on(test, tr, 0, 700);
	test_record_on(test, tr, 0, 700);
	test_replace(test, tr, 2);
	KUNIT_EXPECT_TRUE(test, test_has_gen(tr, 1));
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, buffer), 0);
	test_check_recycling(test, tr);
}

/* After a replacement there is a pause, by the size of the map. */
static void stackmap_pauses(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct stackmap_instance *inst = tr->stackmap;

	for (unsigned int no = 0; no < 1 << STACKMAP_BITS_MIN && !test_rotations(tr); no++) {
		test_record_event(tr, no);
		irq_work_sync(&inst->nearly_full);
		flush_work(&inst->work.work);
	}
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 1);
	KUNIT_EXPECT_GT(test, inst->pause, msecs_to_jiffies((1 << STACKMAP_BITS_MIN) / 128));
	KUNIT_EXPECT_LT(test, inst->pause, HZ / 4);

	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, inst->pause, 0);
}

/* Stacks that no event refers to go, with their references. Those that were in caches count. */
static void stackmap_recycles(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	const struct stackmap_record *rec;
	int ids[10];

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	for (int no = 0; no < ARRAY_SIZE(ids); no++) {
		for (int i = 0; i <= no; i++)
			test_record_event(tr, no);
		ids[no] = test_instance_id(tr, no);
	}
	test_replace(test, tr, 3);
	KUNIT_EXPECT_EQ(test, test_nr_kept(tr), 10);
	KUNIT_EXPECT_EQ(test, tr->stackmap->past.recycled, 0);
	for (int no = 0; no < ARRAY_SIZE(ids); no++) {
		rec = stackmap_lookup(test_gens(tr), ids[no]);
		KUNIT_ASSERT_NOT_NULL(test, rec);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&rec->ref), no + 2);
		KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, ids[no], no));
	}
	test_check_recycling(test, tr);

	test_empty_buffers(tr);
	test_shrink(tr);
	KUNIT_EXPECT_EQ(test, test_nr_kept(tr), 0);
	KUNIT_EXPECT_EQ(test, tr->stackmap->past.recycled, 10);
	KUNIT_EXPECT_EQ(test, tr->stackmap->past.recycled_refs, 55 + 10);
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, ids[0], 0));
	test_check_recycling(test, tr);
}

/* A packed generation stays while less than half of it is gone. Nothing of it counts as gone. */
static void stackmap_few_gone(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");

	test_record_on(test, tr, 1, 2);
	test_record_on(test, tr, 0, 8);
	test_replace(test, tr, 1);
	tracing_reset_cpu(&tr->array_buffer, 1);
	for (int i = 0; i < 2; i++) {
		test_shrink(tr);
		KUNIT_EXPECT_EQ(test, test_nr_kept(tr), 10);
		KUNIT_EXPECT_EQ(test, tr->stackmap->past.recycled, 0);
		test_check_recycling(test, tr);
	}

	tracing_reset_cpu(&tr->array_buffer, 0);
	test_shrink(tr);
	KUNIT_EXPECT_EQ(test, test_nr_kept(tr), 0);
	KUNIT_EXPECT_EQ(test, tr->stackmap->past.recycled, 10);
	test_check_recycling(test, tr);
}

/* The next map splits stacks where the one before it did. */
static void stackmap_splits_on(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);

	test_current(tr)->irqentry_start = 1000;
	test_current(tr)->irqentry_size = 20;
	test_replace(test, tr, 2);
	KUNIT_EXPECT_EQ(test, test_current(tr)->irqentry_start, 1000);
	KUNIT_EXPECT_EQ(test, test_current(tr)->irqentry_size, 20);
}

/* The cache slot of a stack in slot 0 without references is like an empty one. */
static void stackmap_slot_0(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	int id, no;

	/* Each map has another key. */
	for (no = 0; (id = test_instance_id(tr, no)) & STACKMAP_SLOT_MASK; no++) {
		KUNIT_ASSERT_LT(test, no, 50000);
		if (no % 500 == 499)
			KUNIT_ASSERT_EQ(test, test_reset(tr), 0);
	}

	/* As if another CPU had stored it. */
	stackmap_flush(test_current(tr));
	stackmap_record(test_current(tr), 0)->cpus = 0;
	test_record_event(tr, no);
	test_replace(test, tr, 1);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, id, no));
}

/* Records one event in each generation with an even number, as soon as its map is there. */
static int test_first_event_fn(void *data)
{
	struct trace_array *tr = data;
	u32 gen, last = 0;

	while (!kthread_should_stop()) {
		usleep_range(50, 100);
		scoped_guard(rcu)
			gen = test_gen(rcu_dereference(tr->stackmap->map)->first_id);
		if (gen != last && gen % 2 == 0)
			test_write(tr, gen, TRACE_STACK_ID);
		last = gen;
	}
	return 0;
}

/* An event recorded before the old map is done with keeps the new generation in use. */
static void stackmap_first_event(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct task_struct *task;

	tracer_tracing_on(tr);
	task = kthread_run(test_first_event_fn, tr, "stackmap_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	test_replace(test, tr, 300);
	kthread_stop(task);
	tracer_tracing_off(tr);
	KUNIT_EXPECT_GT(test, ring_buffer_entries(buffer), 0);
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, buffer), 0);
}

static unsigned int test_nr_read(struct stackmap_iter *iter)
{
	unsigned int nr = 0;

	for (loff_t pos = 1; stackmap_next(iter, &pos); pos++)
		nr++;
	return nr;
}

/* A reader gets the stacks that it has counted, whatever comes and goes meanwhile. */
static void stackmap_reads_its_gens(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct stackmap_iter iter = { .tr = tr };

	test_record_event(tr, 1);
	stackmap_snapshot_tail(&iter);
	KUNIT_EXPECT_EQ(test, test_nr_read(&iter), 1);

	/* A new stack, a thousand maps, and the stacks of the first one go. */
	test_record_event(tr, 2);
	for (unsigned int no = 3; no < 1003; no++) {
		test_replace(test, tr, 1);
		test_record_event(tr, no);
	}
	KUNIT_EXPECT_EQ(test, test_nr_read(&iter), 1);
	test_empty_buffers(tr);
	test_shrink(tr);
	KUNIT_EXPECT_EQ(test, test_nr_kept(tr), 0);
	KUNIT_EXPECT_EQ(test, test_nr_read(&iter), 1);

	stackmap_snapshot_tail(&iter);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_nr_read(&iter), 1);
	KUNIT_EXPECT_NE(test, tr->stackmap->resets, iter.resets);
	stackmap_put(iter.gens);
}

struct test_late_insert {
	u32			*slot;
	struct completion	reserved;
	struct completion	done;
};

/* An insert that takes long between taking space and publishing the stack. */
static int test_insert_late(void *data)
{
	struct test_late_insert *late = data;
	u32 slot = *late->slot;

	scoped_guard(preempt) {
		WRITE_ONCE(*late->slot, 0);
		complete(&late->reserved);
		mdelay(20);
		WRITE_ONCE(*late->slot, slot);
	}
	complete(&late->done);
	return 0;
}

/* A reader waits for inserts below the tail that it has read. */
static void stackmap_tail_waits(struct kunit *test)
{
	struct stackmap_iter iter = { .tr = test_instance(test, 0) };
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	struct ftrace_stackmap *map = test_current(iter.tr);
	struct test_late_insert late;
	struct task_struct *task;

	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "needs two CPUs");
	late.slot = &map->slots[test_instance_id(iter.tr, 1) & STACKMAP_SLOT_MASK];
	init_completion(&late.reserved);
	init_completion(&late.done);
	task = kthread_create_on_cpu(test_insert_late, &late, cpu, "stackmap_test/%u");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	wake_up_process(task);
	wait_for_completion(&late.reserved);
	stackmap_snapshot_tail(&iter);
	KUNIT_EXPECT_EQ(test, test_nr_read(&iter), 1);
	wait_for_completion(&late.done);
	stackmap_put(iter.gens);
}

/* What would take too much memory is recorded in full, until the buffer has moved on. */
static void stackmap_keeps_no_more(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct stackmap_instance *inst = tr->stackmap;
	size_t size = 0, limit = 0;
	unsigned long full;
	unsigned int no;
	int cpu;

	/* A buffer that holds them all. */
	test_resize(test, buffer, 128);
	for_each_online_cpu(cpu)
		limit += ring_buffer_size(buffer, cpu);
	limit = max(4 * stackmap_size(STACKMAP_BITS_MIN), limit);
	for (no = 0; no < 100000 && !test_sum(STACKMAP_DROP_ENTRIES); no++) {
		test_record_event(tr, no);
		if (no % 64 == 0)
			test_settle(tr);
	}
	KUNIT_EXPECT_GT(test, test_sum(STACKMAP_DROP_ENTRIES), 0);
	for (u32 i = 0; i < test_nr_gens(tr); i++)
		size += test_gens(tr)->gen[i]->map ? 0 : test_gens(tr)->gen[i]->size;
	kunit_info(test, "%u stacks, %u kept, %zu of %zu bytes\n", no, test_nr_kept(tr), size,
		   limit);
	KUNIT_EXPECT_GT(test, test_nr_kept(tr), 2 << STACKMAP_BITS_MIN);
	KUNIT_EXPECT_LE(test, size, limit);
	size += (stackmap_tail(test_current(tr)) + atomic_read(&test_current(tr)->entries)) *
		STACKMAP_UNIT;
	KUNIT_EXPECT_GT(test, size, limit);
	scoped_guard(mutex, &inst->lock)
		KUNIT_EXPECT_EQ(test, stackmap_replace(inst), -ENOSPC);
	test_check_recycling(test, tr);

	/* The next stack asks again, but not at once. */
	test_record_event(tr, ++no);
	irq_work_sync(&inst->nearly_full);
	flush_delayed_work(&inst->work);
	KUNIT_EXPECT_EQ(test, inst->pause, HZ);
	test_record_event(tr, ++no);
	KUNIT_EXPECT_TRUE(test, test_asked(tr));
	full = test_sum(STACKMAP_DROP_ENTRIES);
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, buffer), full);

	/* The events are gone. */
	test_settle(tr);
	test_record_event(tr, ++no);
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_ENTRIES), full);
	test_shrink(tr);
	KUNIT_EXPECT_LE(test, test_nr_kept(tr), 1);
	test_check_recycling(test, tr);
}

struct test_load {
	const char		*desc;
	unsigned int		bits;
	bool			swap;
};

static const struct test_load stackmap_loads[] = {
	{ "the map grows", STACKMAP_BITS_MIN + 2 },
	{ "the map is recycled", STACKMAP_BITS_MIN },
#ifdef CONFIG_TRACER_SNAPSHOT
	{ "the map is recycled, buffers are swapped", STACKMAP_BITS_MIN, true },
#endif
};

KUNIT_ARRAY_PARAM_DESC(stackmap_load, stackmap_loads, desc);

/* All CPUs and interrupts record while the map is replaced. What is in either buffer resolves. */
static void stackmap_replaced_under_load(struct kunit *test)
{
	const struct test_load *load = test->param_value;
	struct trace_array *tr = test_instance(test, STACKMAP_GENS - 5);
	struct test_writer model = {
		.insert		= test_write_all,
		.data		= tr,
		.nr_stacks	= 12000,
		.passes		= 100,
	};
	struct test_writer *w = test_writers(test);
	unsigned long calls = 0, full = 0;
	unsigned int swaps = 0;
	atomic_t start;
	int nr;

	ftrace_stackmap_bits = load->bits;
	test_set_entry(test_current(tr));
	if (load->swap)
		test_take_snapshot(test, tr);
	/* Of one size, or single CPUs can't be swapped. */
	test_resize(test, tr->array_buffer.buffer, 8);
	if (load->swap)
		test_resize(test, test_snapshot_buffer(tr), 8);

	tracer_tracing_on(tr);
	nr = test_start_writers(test, w, &model, &start);
	while (!completion_done(&w[0].done) && test_rotations(tr) < 12) {
		test_settle(tr);
		if (load->swap)
			test_swap_buffers(tr);
		swaps += load->swap;
		usleep_range(50, 100);
	}
	atomic_set(&start, -1);
	for (int i = 0; i < nr; i++) {
		wait_for_completion(&w[i].done);
		calls += w[i].calls + w[i].irq_calls;
	}
	tracer_tracing_off(tr);

	test_check_recycling(test, tr);
	kunit_info(test, "%lu calls, %lu rotations, %u kept, %lu drops, %u swaps\n", calls,
		   test_rotations(tr), test_nr_kept(tr), test_drops(), swaps);
	test_check_maps(test, test_current(tr), calls, model.nr_stacks);
	KUNIT_EXPECT_GE(test, test_rotations(tr), 12);
	full = test_all_resolve(test, tr, tr->array_buffer.buffer);
	if (load->swap)
		full += test_all_resolve(test, tr, test_snapshot_buffer(tr));
	KUNIT_EXPECT_LE(test, full, test_drops());
	if (load->swap)
		test_end_snapshot(tr);
}

/* Two buffers, and what they should hold: the events of one since its last reset. */
struct test_ring {
	struct trace_buffer	*buffer;
	u32			written;
	unsigned long		epoch;
};

/* What the numbers of a ring say is there, and all of it, must be there. */
static void test_check_position(struct kunit *test, struct test_ring *ring)
{
	u32 no, nr = 0, first = U32_MAX;
	struct ring_buffer_position pos;
	struct ring_buffer_event *event;
	struct ring_buffer_iter *iter;

	ring_buffer_position(ring->buffer, 0, &pos);
	KUNIT_ASSERT_EQ(test, pos.written, ring->written);
	iter = ring_buffer_read_start(ring->buffer, 0, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, iter);
	for (; (event = ring_buffer_iter_peek(iter, NULL)); ring_buffer_iter_advance(iter)) {
		no = *(u32 *)ring_buffer_event_data(event);
		first = min(first, no);
		nr++;
		if (no >= pos.oldest && no < pos.written)
			continue;
		KUNIT_EXPECT_GE(test, no, pos.page);
		KUNIT_EXPECT_LT(test, no, pos.page_end);
	}
	ring_buffer_read_finish(iter);
	KUNIT_ASSERT_EQ(test, nr, pos.written - pos.oldest);
	if (!nr)
		KUNIT_EXPECT_EQ(test, pos.page, pos.page_end);
	else
		KUNIT_EXPECT_EQ(test, first, pos.page == pos.page_end ? pos.oldest : pos.page);
}

static void test_change_ring(struct kunit *test, struct test_ring *rings, struct rnd_state *rnd)
{
	u32 nr = prandom_u32_state(rnd) % 400, size = 1 + prandom_u32_state(rnd) % 12;
	struct ring_buffer_position pos;
	struct test_ring *ring = rings;
	u32 data[12];

	switch (prandom_u32_state(rnd) % 16) {
	case 0:
		test_resize(test, ring->buffer, 2 + nr % 8);
		break;
	case 1:
		ring_buffer_reset_cpu(ring->buffer, 0);
		ring->written = 0;
		ring_buffer_position(ring->buffer, 0, &pos);
		KUNIT_EXPECT_NE(test, pos.epoch, ring->epoch);
		ring->epoch = pos.epoch;
		break;
	case 2:
		if (ring_buffer_swap_cpu(rings[0].buffer, rings[1].buffer, 0))
			break;
		swap(rings[0].written, rings[1].written);
		swap(rings[0].epoch, rings[1].epoch);
		break;
	case 3:
		KUNIT_EXPECT_EQ(test, ring_buffer_subbuf_order_set(ring->buffer, nr % 3), 0);
		KUNIT_EXPECT_EQ(test, ring_buffer_subbuf_order_set(rings[1].buffer, nr % 3), 0);
		break;
	case 4 ... 8:
		while (nr-- && ring_buffer_consume(ring->buffer, 0, NULL, NULL))
			;
		break;
	default:
		for (; nr; nr--, ring->written++) {
			memset32(data, ring->written, ARRAY_SIZE(data));
			ring_buffer_write(ring->buffer, size * sizeof(*data), data);
		}
		/* It is not counted, and may have begun a page. */
		ring_buffer_discard_commit(ring->buffer,
					   ring_buffer_lock_reserve(ring->buffer, sizeof(*data)));
	}
}

/* Whatever is done to a buffer, its position says what it holds. */
static void stackmap_positions(struct kunit *test)
{
	struct ring_buffer_position pos;
	struct test_ring rings[2] = { };
	struct rnd_state rnd;

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	prandom_seed_state(&rnd, 42);
	for (int i = 0; i < 2; i++) {
		rings[i].buffer = ring_buffer_alloc(4 * PAGE_SIZE, RB_FL_OVERWRITE);
		KUNIT_ASSERT_NOT_NULL(test, rings[i].buffer);
		ring_buffer_position(rings[i].buffer, 0, &pos);
		rings[i].epoch = pos.epoch;
	}
	KUNIT_EXPECT_NE(test, rings[0].epoch, rings[1].epoch);
	for (int i = 0; i < 4000; i++) {
		test_change_ring(test, rings, &rnd);
		test_check_position(test, &rings[0]);
		ring_buffer_position(rings[0].buffer, 0, &pos);
		KUNIT_ASSERT_EQ(test, pos.epoch, rings[0].epoch);
	}
	for (int i = 0; i < 2; i++)
		ring_buffer_free(rings[i].buffer);
}

static struct kunit_case stackmap_gens_test_cases[] = {
	KUNIT_CASE(stackmap_generation_skips),
	KUNIT_CASE_SLOW(stackmap_generations_used_up),
	KUNIT_CASE(stackmap_resets_alone),
	KUNIT_CASE(stackmap_bad_ids),
	KUNIT_CASE(stackmap_positions),
	KUNIT_CASE(stackmap_idle),
	KUNIT_CASE(stackmap_asks_early),
	KUNIT_CASE(stackmap_grows),
	KUNIT_CASE(stackmap_grows_by_definitions),
	KUNIT_CASE(stackmap_recycles),
	KUNIT_CASE(stackmap_few_gone),
	KUNIT_CASE(stackmap_splits_on),
	KUNIT_CASE(stackmap_slot_0),
	KUNIT_CASE(stackmap_first_event),
	KUNIT_CASE(stackmap_sleepy_cpu),
	KUNIT_CASE(stackmap_half_read),
	KUNIT_CASE(stackmap_half_read_reset),
	KUNIT_CASE(stackmap_pauses),
	KUNIT_CASE(stackmap_reads_its_gens),
	KUNIT_CASE(stackmap_tail_waits),
	KUNIT_CASE(stackmap_keeps_no_more),
	KUNIT_CASE_PARAM(stackmap_replaced_under_load, stackmap_load_gen_params),
	{ }
};

static struct kunit_suite stackmap_gens_test_suite = {
	.name = "ftrace_stackmap_gens",
	.test_cases = stackmap_gens_test_cases,
};

kunit_test_suite(stackmap_gens_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the ftrace stack map");
