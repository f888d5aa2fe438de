// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the replacement of stack maps, of what is kept and of generations;
 * and of the walk of the ring buffer.
 */
#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/ring_buffer.h>
#include <linux/slab.h>

#include "trace_stackmap_kunit.h"

/* What an insert into a map that is nearly full has begun is over then, without a pause. */
static void test_settle(struct trace_array *tr)
{
	struct stackmap_replacement *repl = test_current(tr)->shared->repl;

	irq_work_sync(&repl->nearly_full);
	flush_delayed_work(&repl->work);
	repl->not_before = jiffies;
}

/* An id that no slot can have stands for nothing, in this map or an older one. */
static void stackmap_bad_ids(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 5);
	struct ftrace_stackmap *map = test_current(tr);

	for (int no = 0; no < 500; no++)
		test_instance_id(tr, no);
	for (int i = 0; i < 2; i++) {
		for (u32 idx = map->nr_slots; idx < 2 * map->nr_slots; idx++)
			KUNIT_EXPECT_NULL(test, stackmap_lookup(test_current(tr),
								stackmap_id(map, idx)));
		test_replace(test, tr, 1);
	}
}

static int test_gen(int id)
{
	return id >> STACKMAP_SLOT_BITS;
}

static void test_find_gens(struct kunit *test, struct trace_array *tr)
{
	KUNIT_ASSERT_EQ(test, stackmap_mark(test_current(tr), STACKMAP_BITS_MAX), 0);
	stackmap_unmark(test_current(tr));
}

static unsigned int test_nr_gens(struct trace_array *tr)
{
	return bitmap_weight(tr->stackmap_gens, STACKMAP_GENS);
}

/* A generation that an event has an id of is not used again, a stale one included. */
static void stackmap_generation_skips(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	int id = test_instance_id(tr, 1);

	test_record_event(tr, 1);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	test_record_event(tr, 1);
	test_take_snapshot(test, tr);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	test_record_event(tr, 1);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 3);

	/* 0 and 1 are in one buffer, 2 in the other, and 3 is current. */
	bitmap_fill(tr->stackmap_gens, STACKMAP_GENS);
	test_find_gens(test, tr);
	KUNIT_EXPECT_EQ(test, find_first_zero_bit(tr->stackmap_gens, STACKMAP_GENS), 4);
	KUNIT_EXPECT_EQ(test, test_nr_gens(tr), 4);
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, id, 1));

	/* If all seem to be in use, growth and a reset look for one that is not. */
	bitmap_fill(tr->stackmap_gens, STACKMAP_GENS);
	ftrace_stackmap_bits++;
	KUNIT_EXPECT_EQ(test, stackmap_replace(test_current(tr)->shared->repl), 0);
	ftrace_stackmap_bits--;
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 4);
	KUNIT_EXPECT_EQ(test, test_nr_gens(tr), 5);
	bitmap_fill(tr->stackmap_gens, STACKMAP_GENS);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 5);

	/* The others are gone with their events, but 5 is still not used again. */
	test_empty_buffers(tr);
	test_find_gens(test, tr);
	KUNIT_EXPECT_EQ(test, test_nr_gens(tr), 1);
	bitmap_set(tr->stackmap_gens, 6, STACKMAP_GENS - 6);
	clear_bit(1, tr->stackmap_gens);
	set_bit(0, tr->stackmap_gens);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 1);
	test_settle(tr);
	test_end_snapshot(tr);
}

/* With events of all generations, a reset changes nothing. */
static void stackmap_generations_used_up(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);

	for (int gen = 0; gen < STACKMAP_GENS; gen++) {
		map->gen = gen;
		test_record_event(tr, 1);
	}
	test_find_gens(test, tr);
	KUNIT_EXPECT_EQ(test, test_nr_gens(tr), STACKMAP_GENS);
	tr->stackmap_gen = STACKMAP_GEN_MASK;
	KUNIT_EXPECT_EQ(test, test_reset(tr), -EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, test_current(tr), map);
	KUNIT_EXPECT_EQ(test, tr->stackmap_gen, STACKMAP_GEN_MASK);

	test_empty_buffers(tr);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 0);
}

/* Enabling looks for a generation that is not in use. */
static void stackmap_enable_generation(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 7);

	test_instance_id(tr, 1);
	KUNIT_EXPECT_EQ(test, test_set_option(tr, "nostackmap"), 0);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	bitmap_fill(tr->stackmap_gens, STACKMAP_GENS);
	clear_bit(5, tr->stackmap_gens);
	KUNIT_EXPECT_EQ(test, test_set_option(tr, "stackmap"), 0);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 5);

	/* All seem to be in use, and there is no map. */
	KUNIT_EXPECT_EQ(test, test_set_option(tr, "nostackmap"), 0);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_NULL(test, test_current(tr));
	bitmap_fill(tr->stackmap_gens, STACKMAP_GENS);
	KUNIT_EXPECT_EQ(test, test_set_option(tr, "stackmap"), 0);
	KUNIT_EXPECT_LE(test, test_nr_gens(tr), 2);
}

/* A reset of a map that holds nothing and has counted nothing keeps its generation. */
static void stackmap_reset_unused(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 7);
	unsigned int gen = 7;

	for (int i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
		KUNIT_EXPECT_EQ(test, test_current(tr)->gen, gen);
		KUNIT_EXPECT_EQ(test, test_nr_gens(tr), 1);
	}
	KUNIT_EXPECT_EQ(test, test_set_option(tr, "nostackmap"), 0);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_nr_gens(tr), 0);
	KUNIT_EXPECT_EQ(test, test_set_option(tr, "stackmap"), 0);
	KUNIT_EXPECT_EQ(test, test_current(tr)->gen, gen);

	/* A stack, a count, or an older map. */
	for (int i = 0; i < 3; i++) {
		if (i == 0)
			test_instance_id(tr, 1);
		else if (i == 1)
			test_get_id(test_current(tr), NULL, 0);
		else
			test_replace(test, tr, 1);
		gen = test_current(tr)->gen + 1;
		KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
		KUNIT_EXPECT_EQ(test, test_current(tr)->gen, gen);
	}
	KUNIT_EXPECT_EQ(test, test_drops(test_current(tr)), 0);
}

/* After a reset that has failed, the map is replaced as before. */
static void stackmap_reset_fails(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);
	unsigned int rotations = map->shared->repl->past.rotations;

	tr->range_addr_start = 1;
	KUNIT_EXPECT_EQ(test, test_reset(tr), -EOPNOTSUPP);
	tr->range_addr_start = 0;
	KUNIT_EXPECT_PTR_EQ(test, test_current(tr), map);
	for (int no = 0; no <= map->max_entries / 4 * 3; no++)
		KUNIT_ASSERT_GE(test, test_instance_id(tr, no), 0);
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_current(tr)->shared->repl->past.rotations, rotations + 1);
}

/* The references of all stacks, those of older maps and those that are gone included. */
static unsigned long test_all_refs(struct ftrace_stackmap *map)
{
	struct stackmap_replacement *repl = map->shared->repl;
	unsigned long sum = repl->past.recycled_refs;
	struct stackmap_kept *kept;

	for (u32 i = 0; i < 1U << repl->kept_bits; i++) {
		hlist_for_each_entry(kept, &repl->kept[i], node)
			sum += atomic_long_read(&kept->rec.ref);
	}
	for (; map; map = map->prev)
		sum += test_refs(map);
	return sum;
}

/* All @calls are accounted for, and the stacks of this map and older ones are whole. */
static void test_check_maps(struct kunit *test, struct ftrace_stackmap *map,
			    unsigned long calls, unsigned int nr_stacks)
{
	KUNIT_EXPECT_EQ(test, test_successes(map) + test_drops(map), calls);
	for (; map; map = map->prev)
		test_check_stacks(test, map, nr_stacks);
}

/* The references of all stacks, gone ones included, are the parts of all successes. */
static void test_check_recycling(struct kunit *test, struct trace_array *tr)
{
	struct stackmap_replacement *repl;
	struct ftrace_stackmap *map;
	struct stackmap_kept *kept;
	unsigned int nr = 0;
	size_t size = 0;

	test_settle(tr);
	map = test_current(tr);
	repl = map->shared->repl;
	KUNIT_EXPECT_EQ(test, test_all_refs(map), test_parts(map));
	for (u32 i = 0; i < 1U << repl->kept_bits; i++) {
		hlist_for_each_entry(kept, &repl->kept[i], node) {
			KUNIT_EXPECT_FALSE(test, kept->used);
			KUNIT_EXPECT_PTR_EQ(test, stackmap_lookup(map, kept->id), &kept->rec);
			size += ksize(kept);
			nr++;
		}
	}
	KUNIT_EXPECT_EQ(test, nr, repl->past.nr_kept);
	KUNIT_EXPECT_EQ(test, size, repl->past.kept_size);
}

static unsigned long test_rotations(struct trace_array *tr)
{
	return test_current(tr)->shared->repl->past.rotations;
}

static unsigned int test_nr_kept(struct trace_array *tr)
{
	return test_current(tr)->shared->repl->past.nr_kept;
}

/* Whether the work was asked for. It does not run before test_settle(). */
static bool test_asked(struct trace_array *tr)
{
	irq_work_sync(&test_current(tr)->shared->repl->nearly_full);
	return test_current(tr)->shared->repl->asked;
}

/* Hits, and new stacks in a map that is less than 3/4 full, queue no work. */
static void stackmap_idle(struct kunit *test)
{
	unsigned long *ips = kunit_kcalloc(test, TEST_MAX_DEPTH, sizeof(*ips), GFP_KERNEL);
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);
	struct stackmap_replacement *repl = map->shared->repl;
	unsigned int mark = map->max_entries / 4 * 3;

	KUNIT_ASSERT_NOT_NULL(test, ips);
	repl->not_before = jiffies + 1000 * HZ;
	for (int i = 0; i < 10000; i++)
		KUNIT_ASSERT_GE(test, test_instance_id(tr, i % mark), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), mark);
	KUNIT_EXPECT_FALSE(test, test_asked(tr));
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 0);

	repl->not_before = jiffies + 1000 * HZ;
	test_instance_id(tr, mark);
	KUNIT_EXPECT_TRUE(test, test_asked(tr));
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 0);
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 1);
	KUNIT_EXPECT_FALSE(test, test_asked(tr));

	/* The arena has a mark, too. */
	map = test_current(tr);
	mark = map->arena_units / 4 * 3;
	repl->not_before = jiffies + 1000 * HZ;
	for (int no = 0; !test_asked(tr); no++) {
		KUNIT_ASSERT_LE(test, atomic_read(&map->tail), mark);
		test_fill(ips, no, TEST_MAX_DEPTH);
		KUNIT_ASSERT_GE(test, test_get_id(map, ips, TEST_MAX_DEPTH), 0);
	}
	KUNIT_EXPECT_GT(test, atomic_read(&map->tail), mark);
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 2);
}

/* A map that is nearly full is replaced by a larger one. Nothing is copied, nothing gets lost. */
static void stackmap_grows(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, STACKMAP_GEN_MASK - 1);
	struct stackmap_replacement *repl = test_current(tr)->shared->repl;
	unsigned int max = 10000, stored = 0;
	struct ftrace_stackmap *map;
	int *ids;

	ids = kunit_kcalloc(test, max, sizeof(*ids), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ids);
	ftrace_stackmap_bits = STACKMAP_BITS_MIN + 3;
	for (int no = 0; no < max; no++) {
		map = test_current(tr);
		ids[no] = test_instance_id(tr, no);
		if (!irq_work_is_busy(&repl->nearly_full) && !repl->asked)
			continue;
		test_settle(tr);
		KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), map->max_entries / 4 * 3 + 1);
		KUNIT_EXPECT_EQ(test, test_current(tr)->max_entries, 2 * map->max_entries);
		KUNIT_EXPECT_NULL(test, map->cache);
		stored += atomic_read(&map->entries);
	}
	KUNIT_EXPECT_EQ(test, test_current(tr)->max_entries, 1U << ftrace_stackmap_bits);
	KUNIT_EXPECT_EQ(test, repl->past.rotations, 3);
	KUNIT_EXPECT_EQ(test, repl->past.nr_kept + repl->past.recycled, 0);
	for (int no = 0; no < max; no++)
		KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, ids[no], no));
	test_check_recycling(test, tr);
	test_check_maps(test, test_current(tr), max, max);

	/* The next one is as large as it may be then, and those that it grew from go. */
	map = test_current(tr);
	ftrace_stackmap_bits = STACKMAP_BITS_MIN;
	test_replace(test, tr, 1);
	KUNIT_EXPECT_EQ(test, test_current(tr)->max_entries, 1U << STACKMAP_BITS_MIN);
	KUNIT_EXPECT_PTR_EQ(test, test_current(tr)->prev, map);
	KUNIT_EXPECT_NULL(test, map->prev);
	KUNIT_EXPECT_EQ(test, repl->past.recycled, stored);
	KUNIT_EXPECT_EQ(test, repl->past.recycled_refs, stored);
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, ids[stored - 1], stored - 1));
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, ids[stored], stored));
}

/* Stacks that no event refers to go, with their references. Those that were in caches count. */
static void stackmap_recycles(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct stackmap_replacement *repl = test_current(tr)->shared->repl;
	const struct stackmap_record *rec;
	int ids[10];

	for (int no = 0; no < ARRAY_SIZE(ids); no++) {
		for (int i = 0; i <= no; i++)
			ids[no] = test_instance_id(tr, no);
		if (no < 3)
			test_record_event(tr, no);
	}
	test_replace(test, tr, 1);
	KUNIT_EXPECT_EQ(test, repl->past.nr_kept + repl->past.recycled, 0);
	for (int i = 0; i < 2; i++) {
		test_replace(test, tr, 1);
		KUNIT_EXPECT_EQ(test, repl->past.nr_kept, 3);
		KUNIT_EXPECT_EQ(test, repl->past.recycled, 7);
		KUNIT_EXPECT_EQ(test, repl->past.recycled_refs, 4 + 5 + 6 + 7 + 8 + 9 + 10);
		for (int no = 0; no < ARRAY_SIZE(ids); no++)
			KUNIT_EXPECT_EQ(test, test_resolves(test, tr, ids[no], no), no < 3);
		for (int no = 0; no < 3; no++) {
			rec = stackmap_lookup(test_current(tr), ids[no]);
			KUNIT_EXPECT_EQ(test, atomic_long_read(&rec->ref), no + 2);
		}
		test_check_recycling(test, tr);
	}

	/* The search for a generation finds theirs. */
	ring_buffer_reset(tr->array_buffer.buffer);
	test_find_gens(test, tr);
	KUNIT_EXPECT_FALSE(test, test_bit(0, tr->stackmap_gens));
	KUNIT_EXPECT_EQ(test, repl->past.nr_kept, 0);
	KUNIT_EXPECT_EQ(test, repl->past.recycled, ARRAY_SIZE(ids));
	test_check_recycling(test, tr);
}

/* A walk that is stopped leaves no copies, and those that were there before stay. */
static void stackmap_stops(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct stackmap_replacement *repl = test_current(tr)->shared->repl;
	struct ftrace_stackmap *map;

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	for (int no = 0; no < 100; no++)
		test_record_event(tr, no);
	test_replace(test, tr, 1);
	for (int i = 0; i < 2; i++) {
		map = test_current(tr);
		repl->stop = true;
		KUNIT_EXPECT_EQ(test, stackmap_replace(repl), -EINTR);
		repl->stop = false;
		KUNIT_EXPECT_PTR_EQ(test, test_current(tr), map);
		KUNIT_EXPECT_EQ(test, repl->past.nr_kept, i ? 100 : 0);
		KUNIT_EXPECT_EQ(test, repl->past.rotations, 1 + i);
		test_check_recycling(test, tr);
		test_replace(test, tr, 1);
	}
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, tr->array_buffer.buffer), 0);
}

/* The ids of all events are found. */
static void stackmap_walks_all_types(struct kunit *test)
{
	static const int types[] = {
		TRACE_PRINT, TRACE_STACK_ID,
		TRACE_STACK_DEF,
		TRACE_USER_STACK_ID, TRACE_USER_STACK_DEF, TRACE_USER_UNWIND_STACK_ID,
	};
	struct trace_array *tr = test_instance(test, 0);
	unsigned long ips[4 * STACKMAP_MAX_PARTS - 4];
	struct ring_buffer_event *event;
	struct stack_id_entry *entry;
	int ids[ARRAY_SIZE(types)];

	tracer_tracing_on(tr);
	for (int i = 0; i < ARRAY_SIZE(types); i++) {
		ids[i] = test_instance_id(tr, i);
		event = trace_buffer_lock_reserve(tr->array_buffer.buffer, types[i],
						  sizeof(*entry), 0);
		KUNIT_ASSERT_NOT_NULL(test, event);
		entry = ring_buffer_event_data(event);
		entry->stack_id = ids[i];
		ring_buffer_unlock_commit(tr->array_buffer.buffer);
	}
	test_current(tr)->shared->entry_start = 0x1000;
	test_current(tr)->shared->entry_size = 1;
	for (int i = 0; i < ARRAY_SIZE(ips); i++)
		ips[i] = i % 4 == 1 ? 0x1000 : i;
	test_record_frames(tr, ips, ARRAY_SIZE(ips));
	KUNIT_EXPECT_EQ(test, test_parts(test_current(tr)), ARRAY_SIZE(types) + STACKMAP_MAX_PARTS);

	test_replace(test, tr, 3);
	KUNIT_EXPECT_EQ(test, test_nr_kept(tr), ARRAY_SIZE(types) - 1 + STACKMAP_MAX_PARTS);
	for (int i = 0; i < ARRAY_SIZE(types); i++)
		KUNIT_EXPECT_EQ(test, test_resolves(test, tr, ids[i], i), types[i] != TRACE_PRINT);
}

static unsigned long test_full(struct trace_array *tr)
{
	return test_sum(test_current(tr), STACKMAP_DROP_ENTRIES);
}

static unsigned int test_nr_read(struct stackmap_iter *iter)
{
	unsigned int nr = 0;

	guard(rcu)();
	for (loff_t pos = 1; !IS_ERR_OR_NULL(stackmap_next(iter, &pos)); pos++)
		nr++;
	return nr;
}

/* The next read must find out, too: seq_file drops an error that comes after some data. */
static bool test_stale(struct stackmap_iter *iter)
{
	loff_t pos = 1;

	guard(rcu)();
	return stackmap_next(iter, &pos) == ERR_PTR(-ESTALE) && pos == 1;
}

/* A reader gets the stacks that it has counted, or ESTALE, whatever is kept meanwhile. */
static void stackmap_reads_its_set(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct stackmap_replacement *repl = test_current(tr)->shared->repl;
	struct stackmap_iter iter = { .tr = tr };

	test_record_event(tr, 1);
	KUNIT_EXPECT_EQ(test, stackmap_latch(&iter), 0);
	KUNIT_EXPECT_EQ(test, iter.nr_stacks, 1);

	/* The map grows twice. Then stacks of both are kept, but their maps are still there. */
	for (unsigned int no = 2; no < 4; no++) {
		ftrace_stackmap_bits++;
		test_replace(test, tr, 1);
		test_record_event(tr, no);
	}
	KUNIT_ASSERT_EQ(test, stackmap_mark(test_current(tr), STACKMAP_BITS_MAX), 0);
	KUNIT_EXPECT_EQ(test, repl->past.nr_kept, 2);
	KUNIT_EXPECT_EQ(test, test_nr_read(&iter), 1);
	KUNIT_EXPECT_FALSE(test, test_stale(&iter));
	stackmap_unmark(test_current(tr));
	KUNIT_EXPECT_TRUE(test, test_stale(&iter));

	/* One that begins while stacks go. */
	repl->forgotten++;
	KUNIT_EXPECT_EQ(test, stackmap_latch(&iter), -ESTALE);
	repl->forgotten++;
	KUNIT_EXPECT_EQ(test, stackmap_latch(&iter), 0);
	KUNIT_EXPECT_EQ(test, iter.nr_stacks, 3);
	KUNIT_EXPECT_EQ(test, test_nr_read(&iter), 3);
}

/* More than may be kept is recorded in full, until the buffer has moved on. */
static void stackmap_keeps_no_more(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct stackmap_replacement *repl = test_current(tr)->shared->repl;
	struct ftrace_stackmap *map;
	unsigned long full;
	size_t size, limit;
	unsigned int no;
	int cpu;

	/* A buffer that holds them all. */
	test_resize(test, buffer, 128);
	limit = 0;
	for_each_online_cpu(cpu)
		limit += ring_buffer_size(buffer, cpu);
	limit = max(4 * stackmap_size(STACKMAP_BITS_MIN), limit);
	for (no = 0; no < 100000 && !test_full(tr); no++) {
		test_record_event(tr, no);
		if (no % 64 == 0)
			test_settle(tr);
	}
	KUNIT_EXPECT_GT(test, test_full(tr), 0);
	test_check_recycling(test, tr);

	/* The stacks that there would be one more of are not kept. */
	map = test_current(tr);
	size = repl->past.kept_size;
	kunit_info(test, "%u stacks, %u kept, %zu bytes\n", no, repl->past.nr_kept, size);
	KUNIT_EXPECT_GT(test, repl->past.nr_kept, 2 * map->max_entries);
	KUNIT_EXPECT_LE(test, size, limit);
	KUNIT_EXPECT_EQ(test, stackmap_replace(repl), -ENOSPC);
	KUNIT_EXPECT_EQ(test, repl->past.kept_size, size);
	test_check_recycling(test, tr);

	/* An insert asks again, but not at once. */
	test_record_event(tr, ++no);
	irq_work_sync(&repl->nearly_full);
	flush_delayed_work(&repl->work);
	KUNIT_EXPECT_FALSE(test, repl->asked);
	KUNIT_EXPECT_TRUE(test, time_after(repl->not_before, jiffies + HZ / 2));
	test_record_event(tr, ++no);
	irq_work_sync(&repl->nearly_full);
	KUNIT_EXPECT_TRUE(test, repl->asked && delayed_work_pending(&repl->work));
	full = test_full(tr);
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, buffer), full);

	/* The events are gone. */
	test_settle(tr);
	KUNIT_EXPECT_PTR_NE(test, test_current(tr), map);
	test_record_event(tr, ++no);
	KUNIT_EXPECT_EQ(test, test_full(tr), full);
	KUNIT_EXPECT_EQ(test, repl->past.nr_kept, 0);
	test_check_recycling(test, tr);
}

/* What no event refers to any more does not count, also before it has gone. */
static void stackmap_keeps_what_is_used(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct stackmap_replacement *repl = test_current(tr)->shared->repl;
	unsigned int no = 0;

	/* Events are consumed in the order in which they were written. */
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	test_resize(test, buffer, 1024);
	/* The work stays out of it. */
	WRITE_ONCE(repl->asked, true);
	for (int maps = 0; maps < 18; maps++) {
		for (int i = 0; i < 1000; i++)
			test_record_event(tr, no++);
		test_replace(test, tr, 1);
	}
	KUNIT_ASSERT_EQ(test, repl->past.nr_kept, 17000);

	for (int i = 0; i < 17000; i++)
		test_next_event(buffer);
	/* 1,000 come, and there would be too many if none went. */
	test_replace(test, tr, 1);
	KUNIT_EXPECT_EQ(test, repl->past.nr_kept, 1000);
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
	struct trace_array *tr = test_instance(test, STACKMAP_GEN_MASK - 4);
	struct test_writer model = { .tr = tr, .nr_stacks = 12000, .passes = 100, .record = true };
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
		   test_rotations(tr), test_nr_kept(tr), test_drops(test_current(tr)), swaps);
	test_check_maps(test, test_current(tr), calls, model.nr_stacks);
	KUNIT_EXPECT_GE(test, test_rotations(tr), 12);
	full = test_all_resolve(test, tr, tr->array_buffer.buffer);
	if (load->swap)
		full += test_all_resolve(test, tr, test_snapshot_buffer(tr));
	KUNIT_EXPECT_LE(test, full, test_drops(test_current(tr)));
	if (load->swap)
		test_end_snapshot(tr);
}

/* A reader that stopped has a copy of an event, which it is going to print. */
static void stackmap_keeps_copy(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct ring_buffer_event *event;
	struct ring_buffer_iter *copy;
	struct trace_iterator *iter;
	int id;

	test_resize(test, buffer, 2);
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	test_record_event(tr, 1);
	id = test_instance_id(tr, 1);
	copy = ring_buffer_read_start(buffer, 0, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	event = ring_buffer_iter_peek(copy, NULL);

	/* The event itself is overwritten, then the buffer is cleared. */
	for (int i = 0; i < 1000; i++)
		test_record_event(tr, 2);
	KUNIT_EXPECT_GT(test, ring_buffer_overruns(buffer), 0);
	test_replace(test, tr, 3);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, id, 1));
	ring_buffer_reset(buffer);
	test_replace(test, tr, 3);
	KUNIT_EXPECT_EQ(test, test_nr_kept(tr), 1);
	iter = test_iter(test, tr, event);
	KUNIT_EXPECT_EQ(test, stackmap_event_id(iter->ent, 0), id);
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(1));

	/* After a reset, its generation is not used again. */
	KUNIT_ASSERT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), "(stale)"));
	test_find_gens(test, tr);
	KUNIT_EXPECT_TRUE(test, test_bit(0, tr->stackmap_gens));

	ring_buffer_read_finish(copy);
	test_find_gens(test, tr);
	KUNIT_EXPECT_FALSE(test, test_bit(0, tr->stackmap_gens));
}

#define TEST_WALK_PAGES		10
#define TEST_WALK_CALLS		25

/* What happens after each call of ring_buffer_walk_next(), and after one of them. */
struct test_walk {
	const char		*desc;
	unsigned int		read;		/* number of events */
	unsigned int		write;
	unsigned int		once_read;
	unsigned int		once_write;
	unsigned int		once_pages;	/* new size */
	bool			once_swap;
};

static const struct test_walk stackmap_walks[] = {
	{ "nothing" },
	{ "reads", 20 },
	{ "writes", .write = 15 },
	{ "reads and writes", 15, 15 },
	{ "many reads", .once_read = 300 },
	{ "many writes", .once_write = 700 },
	{ "many reads and writes", .once_read = 300, .once_write = 400 },
	{ "all is read", .write = 15, .once_read = 10000 },
	{ "all is overwritten", 15, .once_write = 5000 },
	{ "pages are added", 10, 10, .once_pages = 2 * TEST_WALK_PAGES },
	{ "pages are removed", 10, 10, .once_pages = TEST_WALK_PAGES / 2 },
	{ "the buffer is swapped", 10, 10, .once_swap = true },
};

KUNIT_ARRAY_PARAM_DESC(stackmap_walk, stackmap_walks, desc);

/* The events that were written, and those that the walk has seen. */
struct test_walked {
	u32			written;
	u32			bad;
	DECLARE_BITMAP(seen, 1 << 14);
};

/* Bytes of event number @no. Some are so long that their header is, too. */
static unsigned int test_walk_size(u32 no)
{
	return no % 9 ? no % 9 * sizeof(no) : 200;
}

static void test_walk_see(void *data, const void *entry, unsigned int size)
{
	struct test_walked *walked = data;
	u32 no = *(const u32 *)entry;

	if (no >= walked->written || size - test_walk_size(no) >= sizeof(u64))
		walked->bad++;
	else
		__set_bit(no, walked->seen);
}

static void test_walk_write(struct trace_buffer *buffer, struct test_walked *walked,
			    unsigned int nr)
{
	u32 data[50];

	for (; nr; nr--, walked->written++) {
		memset32(data, walked->written, ARRAY_SIZE(data));
		ring_buffer_write(buffer, test_walk_size(walked->written), data);
	}
	/* It may have begun a page. */
	ring_buffer_discard_commit(buffer, ring_buffer_lock_reserve(buffer, sizeof(*data)));
}

static void test_walk_read(struct trace_buffer *buffer, unsigned int nr)
{
	while (nr-- && ring_buffer_consume(buffer, 0, NULL, NULL))
		;
}

/* Something happens after call number @once. What is in the buffer all the time is seen. */
static void test_walk(struct kunit *test, struct trace_buffer **buffers, unsigned int once,
		      struct test_walked *walked)
{
	const struct test_walk *what = test->param_value;
	struct ring_buffer_event *event;
	unsigned int calls = 0, old;
	struct ring_buffer_walk walk;
	bool some = false;
	u32 no;

	/* The head page is another one each time. */
	test_walk_write(buffers[0], walked, 3000 + once * 100);
	/* On the reader page, or none yet. */
	test_walk_read(buffers[0], once % 4 * 20);
	old = walked->written;

	ring_buffer_walk_start(&walk, buffers[0], 0);
	while (ring_buffer_walk_next(&walk, test_walk_see, walked)) {
		KUNIT_ASSERT_LT(test, calls, 4 * TEST_WALK_CALLS);
		test_walk_read(buffers[0], what->read);
		test_walk_write(buffers[0], walked, what->write);
		if (calls++ != once)
			continue;
		test_walk_read(buffers[0], what->once_read);
		test_walk_write(buffers[0], walked, what->once_write);
		if (what->once_pages)
			test_resize(test, buffers[0], what->once_pages);
		if (what->once_swap && !ring_buffer_swap_cpu(buffers[0], buffers[1], 0))
			swap(buffers[0], buffers[1]);
	}

	while ((event = ring_buffer_consume(buffers[0], 0, NULL, NULL))) {
		no = *(u32 *)ring_buffer_event_data(event);
		if (no >= old)
			break;
		some = true;
		KUNIT_ASSERT_TRUE_MSG(test, test_bit(no, walked->seen), "event %u of %u, call %u",
				      no, old, once);
	}
	KUNIT_EXPECT_TRUE(test, some || what->once_read + what->once_write > 1000);
	KUNIT_EXPECT_EQ(test, walked->bad, 0);
}

static void stackmap_walk_events(struct kunit *test)
{
	struct test_walked *walked = kunit_kzalloc(test, sizeof(*walked), GFP_KERNEL);
	const struct test_walk *what = test->param_value;
	struct trace_buffer *buffers[2] = { };

	KUNIT_ASSERT_NOT_NULL(test, walked);
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	for (unsigned int once = 0; once < TEST_WALK_CALLS; once++) {
		memset(walked, 0, sizeof(*walked));
		for (int i = 0; i <= what->once_swap; i++) {
			buffers[i] = ring_buffer_alloc(TEST_WALK_PAGES * PAGE_SIZE,
						       RB_FL_OVERWRITE);
			KUNIT_ASSERT_NOT_NULL(test, buffers[i]);
		}
		test_walk(test, buffers, once, walked);
		for (int i = 0; i <= what->once_swap; i++)
			ring_buffer_free(buffers[i]);
	}
}

static struct kunit_case stackmap_old_test_cases[] = {
	KUNIT_CASE(stackmap_reset_unused),
	KUNIT_CASE(stackmap_reset_fails),
	KUNIT_CASE(stackmap_enable_generation),
	KUNIT_CASE(stackmap_generation_skips),
	KUNIT_CASE(stackmap_generations_used_up),
	KUNIT_CASE(stackmap_bad_ids),
	KUNIT_CASE_PARAM(stackmap_walk_events, stackmap_walk_gen_params),
	KUNIT_CASE(stackmap_idle),
	KUNIT_CASE(stackmap_grows),
	KUNIT_CASE(stackmap_recycles),
	KUNIT_CASE(stackmap_stops),
	KUNIT_CASE(stackmap_walks_all_types),
	KUNIT_CASE(stackmap_reads_its_set),
	KUNIT_CASE(stackmap_keeps_no_more),
	KUNIT_CASE(stackmap_keeps_what_is_used),
	KUNIT_CASE_PARAM(stackmap_replaced_under_load, stackmap_load_gen_params),
	KUNIT_CASE(stackmap_keeps_copy),
	{ }
};

static struct kunit_suite stackmap_old_test_suite = {
	.name = "ftrace_stackmap_old",
	.test_cases = stackmap_old_test_cases,
};

kunit_test_suite(stackmap_old_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the ftrace stack map");
