// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the stack map: what it stores and finds, how it fills up, how
 * it counts, and what a reset does, with one context and with many at a time.
 *
 * A test stack describes itself: from its number follow its depth and each of
 * its frames, so that a torn or mixed up record shows.
 */
#include <kunit/test.h>

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/vmalloc.h>

#include "trace_output.h"
#include "trace_stackmap.h"

#define TEST_MAX_DEPTH	1024
#define TEST_GARBAGE	0xa5
#define TEST_DEPTHS	24	/* depths of numbered stacks: 1 to this */
#define TEST_HASH	0x12345678
#define TEST_SIMILAR_BITS	14
#define TEST_IRQ	5	/* the stack that ends in entry code, where there is any */

static unsigned int test_depth(unsigned int no)
{
	return 1 + no % TEST_DEPTHS;
}

static unsigned long test_frame(unsigned int no, unsigned int i)
{
	return ((unsigned long)no << 8) + i;
}

static void test_fill(unsigned long *ips, unsigned int no, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		ips[i] = test_frame(no, i);
}

/* Return address number @i, where x86_64 has its kernel text (cut off on 32 bits). */
static unsigned long test_kernel_text(unsigned int i)
{
	return -0x7f000000UL + 0x4d5c3 * (i + 1);
}

/* The id of @parts after a look-up that returned @drop. */
static int test_store(struct ftrace_stackmap *map, struct stackmap_part *parts, unsigned int nr,
		      int drop)
{
	if (!drop)
		drop = ftrace_stackmap_store(map, parts, nr);
	if (drop) {
		ftrace_stackmap_count(map, drop);
		return -ENOSPC;
	}
	return stackmap_id(map, parts->idx);
}

static int test_get_part(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
			 struct stackmap_part *part)
{
	guard(preempt_notrace)();
	return test_store(map, part, 1, ftrace_stackmap_find(map, ips, nr, part));
}

static int test_get_id(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr)
{
	struct stackmap_part part;

	return test_get_part(map, ips, nr, &part);
}

/* The id of test stack @no. */
static int test_insert(struct ftrace_stackmap *map, unsigned int no)
{
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, no, test_depth(no));
	return test_get_id(map, ips, test_depth(no));
}

static int test_get_id_hash(struct ftrace_stackmap *map, const unsigned long *ips,
			    unsigned int nr, u32 hash)
{
	struct stackmap_part part = { .ips = ips, .nr = nr, .hash = hash, .idx = -ENOENT };

	guard(preempt_notrace)();
	return test_store(map, &part, 1, stackmap_probe(map, &part) ? 0 : STACKMAP_DROP_PROBES);
}

static int test_insert_hash(struct ftrace_stackmap *map, unsigned int no, u32 hash)
{
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, no, test_depth(no));
	return test_get_id_hash(map, ips, test_depth(no), hash);
}

/* Makes the last frame of test stack TEST_IRQ all of the entry code. */
static void test_set_entry(struct ftrace_stackmap *map)
{
	map->entry_start = test_frame(TEST_IRQ, test_depth(TEST_IRQ) - 1);
	map->entry_size = 1;
}

/* Test stack TEST_IRQ, then @ip, then test stack @no. Returns the number of frames. */
static unsigned int test_fill_irq(unsigned long *ips, unsigned long ip, unsigned int no)
{
	unsigned int nr = test_depth(TEST_IRQ);

	test_fill(ips, TEST_IRQ, nr);
	ips[nr++] = ip;
	test_fill(ips + nr, no, test_depth(no));
	return nr + test_depth(no);
}

static int test_insert_irq(struct ftrace_stackmap *map, unsigned long ip, unsigned int no, int *ids)
{
	struct stackmap_part parts[STACKMAP_MAX_PARTS];
	unsigned long ips[2 * TEST_DEPTHS + 1];
	int nr;

	guard(preempt_notrace)();
	nr = stackmap_find_parts(map, ips, test_fill_irq(ips, ip, no), parts);
	if (test_store(map, parts, nr, min(nr, 0) * -1) < 0)
		return -ENOSPC;
	for (int i = 0; i < nr; i++)
		ids[i] = stackmap_id(map, parts[i].idx);
	return 0;
}

/* The record of @id in a map that is not published anywhere. */
static const struct stackmap_record *test_record(struct ftrace_stackmap *map, int id)
{
	return stackmap_record(map, id & (BIT(STACKMAP_SLOT_BITS) - 1));
}

static void test_free_map(void *map)
{
	ftrace_stackmap_free(map);
}

static struct ftrace_stackmap *test_alloc(struct kunit *test, unsigned int bits, bool whole)
{
	struct ftrace_stackmap *map = ftrace_stackmap_alloc(bits, 0, whole);

	KUNIT_ASSERT_NOT_NULL(test, map);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_free_map, map), 0);
	/* Not what is left of the map of an earlier test: a record that is read too early shows. */
	memset(map->arena, TEST_GARBAGE, array_size(map->arena_units, STACKMAP_UNIT));
	return map;
}

/* With all the memory that it may have. */
static struct ftrace_stackmap *test_map(struct kunit *test, unsigned int bits)
{
	return test_alloc(test, bits, true);
}

static unsigned long test_successes(struct ftrace_stackmap *map)
{
	return ftrace_stackmap_sum(map, STACKMAP_SUCCESSES);
}

static unsigned long test_drops(struct ftrace_stackmap *map)
{
	unsigned long sum = 0;

	for (int why = STACKMAP_DROP_ENTRIES; why < STACKMAP_NR_COUNTS; why++)
		sum += ftrace_stackmap_sum(map, why);
	return sum;
}

/* The references of all stacks. */
static unsigned long test_refs(struct ftrace_stackmap *map)
{
	unsigned long sum = 0;

	for (u32 idx = 0; idx < map->nr_slots; idx++)
		sum += map->slots[idx] ? ftrace_stackmap_ref(map, idx) : 0;
	return sum;
}

/*
 * What holds whenever nobody inserts: @calls are accounted for, references and
 * the parts of the successes agree, every stack is whole and stored once.
 */
static void test_check_map(struct kunit *test, struct ftrace_stackmap *map, unsigned long calls,
			   unsigned int nr_stacks)
{
	unsigned long *seen = kunit_kzalloc(test, BITS_TO_LONGS(nr_stacks) * sizeof(long),
					    GFP_KERNEL);
	const struct stackmap_record *rec;
	unsigned int entries = 0;
	unsigned long no;

	KUNIT_ASSERT_NOT_NULL(test, seen);

	for (u32 idx = 0; idx < map->nr_slots; idx++) {
		if (!map->slots[idx])
			continue;
		rec = test_record(map, idx);
		entries++;

		no = rec->ips[0] >> 8;
		KUNIT_ASSERT_LT(test, no, nr_stacks);
		KUNIT_ASSERT_FALSE_MSG(test, test_and_set_bit(no, seen),
				       "stack %lu is stored twice", no);
		KUNIT_ASSERT_EQ(test, rec->nr, test_depth(no));
		for (unsigned int i = 0; i < rec->nr; i++)
			KUNIT_ASSERT_EQ(test, rec->ips[i], test_frame(no, i));
	}

	KUNIT_EXPECT_EQ(test, entries, atomic_read(&map->entries));
	KUNIT_EXPECT_LE(test, entries, map->max_entries);
	KUNIT_EXPECT_EQ(test, test_refs(map), ftrace_stackmap_sum(map, STACKMAP_PARTS));
	KUNIT_EXPECT_EQ(test, test_successes(map) + test_drops(map), calls);
}

static void stackmap_same_and_different(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	int id[100];

	for (int no = 0; no < ARRAY_SIZE(id); no++) {
		id[no] = test_insert(map, no);
		KUNIT_ASSERT_GE(test, id[no], 0);
		for (int other = 0; other < no; other++)
			KUNIT_EXPECT_NE(test, id[no], id[other]);
	}
	for (int no = 0; no < ARRAY_SIZE(id); no++)
		KUNIT_EXPECT_EQ(test, test_insert(map, no), id[no]);

	test_check_map(test, map, 2 * ARRAY_SIZE(id), ARRAY_SIZE(id));
}

static void stackmap_equal_hashes(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	int id[STACKMAP_PROBES];

	for (int no = 0; no < ARRAY_SIZE(id); no++) {
		id[no] = test_insert_hash(map, no, TEST_HASH);
		KUNIT_ASSERT_GE(test, id[no], 0);
		for (int other = 0; other < no; other++)
			KUNIT_EXPECT_NE(test, id[no], id[other]);
	}
	for (int no = 0; no < ARRAY_SIZE(id); no++)
		KUNIT_EXPECT_EQ(test, test_insert_hash(map, no, TEST_HASH), id[no]);

	test_check_map(test, map, 2 * ARRAY_SIZE(id), ARRAY_SIZE(id));
}

static void stackmap_bounded_probes(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);

	for (int no = 0; no < STACKMAP_PROBES; no++)
		KUNIT_ASSERT_GE(test, test_insert_hash(map, no, TEST_HASH), 0);

	KUNIT_EXPECT_EQ(test, test_insert_hash(map, STACKMAP_PROBES, TEST_HASH), -ENOSPC);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_DROP_PROBES), 1);

	/* Nothing is left of the one that failed, and the others are found. */
	for (int no = 0; no < STACKMAP_PROBES; no++)
		KUNIT_EXPECT_GE(test, test_insert_hash(map, no, TEST_HASH), 0);
	test_check_map(test, map, 2 * STACKMAP_PROBES + 1, STACKMAP_PROBES);
}

static void stackmap_prefixes(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	unsigned long ips[32];
	int id[33] = { };

	/* Short ones among long ones, and the other way round. */
	test_fill(ips, 1, ARRAY_SIZE(ips));
	for (int nr = 16; nr > 0; nr--)
		id[nr] = test_get_id_hash(map, ips, nr, TEST_HASH);
	for (int nr = 17; nr < ARRAY_SIZE(id); nr++)
		id[nr] = test_get_id_hash(map, ips, nr, TEST_HASH);

	for (int nr = 1; nr < ARRAY_SIZE(id); nr++) {
		KUNIT_ASSERT_GE(test, id[nr], 0);
		KUNIT_EXPECT_EQ(test, test_record(map, id[nr])->nr, nr);
		for (int other = 1; other < nr; other++)
			KUNIT_EXPECT_NE(test, id[nr], id[other]);
	}
}

/* Stacks that differ in little, as stacks do: what tells number @no from the others. */
static void test_similar_leaf(unsigned long *ips, unsigned int nr, unsigned int no)
{
	ips[0] += no;
}

static void test_similar_middle(unsigned long *ips, unsigned int nr, unsigned int no)
{
	ips[nr / 2] += no * 16UL;
}

static void test_similar_last(unsigned long *ips, unsigned int nr, unsigned int no)
{
	ips[nr - 1] += no * 64UL;
}

static void test_similar_pages(unsigned long *ips, unsigned int nr, unsigned int no)
{
	ips[nr / 2] += no * 4096UL;
}

/* The sum of all frames is the same. */
static void test_similar_balanced(unsigned long *ips, unsigned int nr, unsigned int no)
{
	ips[0] += no;
	ips[nr - 1] -= no;
}

/* The same frames in different order, nearly. */
static void test_similar_paths(unsigned long *ips, unsigned int nr, unsigned int no)
{
	for (unsigned int i = 0; i < nr; i++)
		ips[i] = test_kernel_text(no >> (i % TEST_SIMILAR_BITS) & 1);
	ips[nr - 1] += no;
}

struct test_similar {
	const char	*desc;
	void		(*change)(unsigned long *ips, unsigned int nr, unsigned int no);
};

static const struct test_similar stackmap_similars[] = {
	{ "the first frame", test_similar_leaf },
	{ "one in the middle", test_similar_middle },
	{ "the last frame", test_similar_last },
	{ "by pages", test_similar_pages },
	{ "two that balance", test_similar_balanced },
	{ "one of two functions", test_similar_paths },
};

KUNIT_ARRAY_PARAM_DESC(stackmap_similar, stackmap_similars, desc);

/*
 * With 2^14 stacks in 2^15 slots a good hash leaves them 0.5 slots from their
 * place on average, and 20 to 50 at most, in one map of a hundred more than 70.
 */
static void stackmap_similar_stacks(struct kunit *test)
{
	static const unsigned int depths[] = { 3, 8, 15, 23 };
	const struct test_similar *similar = test->param_value;
	unsigned long ips[TEST_DEPTHS];
	struct ftrace_stackmap *map;
	struct stackmap_part part;
	u32 distance, sum, worst;

	for (int d = 0; d < ARRAY_SIZE(depths); d++) {
		map = test_map(test, TEST_SIMILAR_BITS);
		sum = 0;
		worst = 0;
		for (unsigned int no = 0; no < map->max_entries; no++) {
			for (unsigned int i = 0; i < depths[d]; i++)
				ips[i] = test_kernel_text(i);
			similar->change(ips, depths[d], no);
			KUNIT_ASSERT_GE(test, test_get_part(map, ips, depths[d], &part), 0);
			/* How far from its place it is. */
			distance = (part.idx - part.hash) & (map->nr_slots - 1);
			sum += distance;
			worst = max(worst, distance);
		}
		KUNIT_ASSERT_EQ(test, atomic_read(&map->entries), map->max_entries);

		kunit_info(test, "depth %u: %u/1000 slots on average, %u at most\n", depths[d],
			   sum * 1000 / map->max_entries, worst);
		KUNIT_EXPECT_LT(test, sum, map->max_entries * 3 / 4);
		KUNIT_EXPECT_LT(test, worst, STACKMAP_PROBES * 3 / 4);
		kunit_release_action(test, test_free_map, map);
	}
}

static void test_describe(const unsigned int *param, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u", *param);
}

static const unsigned int stackmap_depths[] = { 1, 64, 65, TEST_MAX_DEPTH };
KUNIT_ARRAY_PARAM(stackmap_depth, stackmap_depths, test_describe);

static void stackmap_any_depth(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	unsigned int nr = *(const unsigned int *)test->param_value;
	unsigned long *ips = kunit_kcalloc(test, TEST_MAX_DEPTH, sizeof(*ips), GFP_KERNEL);
	const struct stackmap_record *rec;
	int id;

	KUNIT_ASSERT_NOT_NULL(test, ips);
	test_fill(ips, 3, nr);
	id = test_get_id(map, ips, nr);
	KUNIT_ASSERT_GE(test, id, 0);
	KUNIT_EXPECT_EQ(test, test_get_id(map, ips, nr), id);

	rec = test_record(map, id);
	KUNIT_EXPECT_EQ(test, rec->nr, nr);
	KUNIT_EXPECT_MEMEQ(test, rec->ips, ips, nr * sizeof(*ips));
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_ref(map, id), 2);

	/* The last frame counts like any other. */
	ips[nr - 1]++;
	KUNIT_EXPECT_NE(test, test_get_id(map, ips, nr), id);
}

static void stackmap_no_frames(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	unsigned long ip = 0;

	KUNIT_EXPECT_EQ(test, test_get_id(map, &ip, 0), -ENOSPC);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_DROP_EMPTY), 1);
	test_check_map(test, map, 1, 1);
}

static void stackmap_full_table(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	unsigned int max = map->max_entries;
	int *id = kunit_kcalloc(test, max, sizeof(*id), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, id);
	for (int no = 0; no < max; no++) {
		id[no] = test_insert(map, no);
		KUNIT_ASSERT_GE(test, id[no], 0);
	}

	for (int no = max; no < max + 100; no++)
		KUNIT_EXPECT_EQ(test, test_insert(map, no), -ENOSPC);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_DROP_ENTRIES), 100);

	for (int no = 0; no < max; no++)
		KUNIT_EXPECT_EQ(test, test_insert(map, no), id[no]);
	test_check_map(test, map, 2 * max + 100, max);
}

static void stackmap_full_arena(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	unsigned long *ips = kunit_kcalloc(test, TEST_MAX_DEPTH, sizeof(*ips), GFP_KERNEL);
	int *id = kunit_kcalloc(test, map->max_entries, sizeof(*id), GFP_KERNEL);
	unsigned int stored;

	KUNIT_ASSERT_NOT_NULL(test, ips);
	KUNIT_ASSERT_NOT_NULL(test, id);

	for (stored = 0; stored < map->max_entries; stored++) {
		test_fill(ips, stored, TEST_MAX_DEPTH);
		id[stored] = test_get_id(map, ips, TEST_MAX_DEPTH);
		if (id[stored] < 0)
			break;
	}
	KUNIT_ASSERT_GT(test, stored, 0);
	KUNIT_ASSERT_LT(test, stored, map->max_entries);
	KUNIT_EXPECT_EQ(test, id[stored], -ENOSPC);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_DROP_ARENA), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), stored);

	for (int no = 0; no < stored; no++) {
		test_fill(ips, no, TEST_MAX_DEPTH);
		KUNIT_EXPECT_EQ(test, test_get_id(map, ips, TEST_MAX_DEPTH), id[no]);
		KUNIT_EXPECT_MEMEQ(test, test_record(map, id[no])->ips, ips,
				   TEST_MAX_DEPTH * sizeof(*ips));
	}
	KUNIT_EXPECT_EQ(test, test_successes(map), 2 * stored);
}

/* What an insert below the low-water mark has begun is over then. */
static void test_wait_for_growth(struct ftrace_stackmap *map)
{
	irq_work_sync(&map->low);
	flush_delayed_work(&map->work);
}

/* Deep stacks, stored until there is no memory for one more, again and again. */
static void stackmap_grows(struct kunit *test)
{
	struct ftrace_stackmap *map = test_alloc(test, STACKMAP_BITS_MIN + 2, false);
	unsigned long *ips = kunit_kcalloc(test, TEST_MAX_DEPTH, sizeof(*ips), GFP_KERNEL);
	int *id = kunit_kcalloc(test, map->max_entries, sizeof(*id), GFP_KERNEL);
	unsigned int stored, grown = 0;
	u32 units = map->arena_units;

	KUNIT_ASSERT_NOT_NULL(test, ips);
	KUNIT_ASSERT_NOT_NULL(test, id);

	for (stored = 0; stored < map->max_entries; stored++) {
		test_fill(ips, stored, TEST_MAX_DEPTH);
		id[stored] = test_get_id(map, ips, TEST_MAX_DEPTH);
		if (id[stored] < 0)
			break;

		/* In time: there is always headroom for what comes meanwhile. */
		test_wait_for_growth(map);
		if (map->arena_units == units)
			continue;
		KUNIT_EXPECT_GT(test, map->arena_units, units);
		KUNIT_EXPECT_GT(test, atomic_read(&map->tail), units / 4);
		KUNIT_EXPECT_LT(test, atomic_read(&map->tail), units);
		units = map->arena_units;
		grown++;
	}
	KUNIT_EXPECT_GT(test, grown, 1);
	KUNIT_EXPECT_EQ(test, map->arena_units, map->arena_limit);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_DROP_ARENA), 1);

	for (int no = 0; no < stored; no++) {
		test_fill(ips, no, TEST_MAX_DEPTH);
		KUNIT_EXPECT_EQ(test, test_get_id(map, ips, TEST_MAX_DEPTH), id[no]);
	}
}

/* A map that gets no memory goes on as it is, and asks again a second later. */
static void stackmap_growth_fails(struct kunit *test)
{
	struct ftrace_stackmap *map = test_alloc(test, STACKMAP_BITS_MIN + 2, false);
	unsigned long *ips = kunit_kcalloc(test, TEST_MAX_DEPTH, sizeof(*ips), GFP_KERNEL);
	unsigned long size = map->area->size;
	u32 units = map->arena_units;
	unsigned int no;

	KUNIT_ASSERT_NOT_NULL(test, ips);
	/* The next page is out of range, but for the guard page. */
	map->area->size = PAGE_ALIGN(array_size(units, STACKMAP_UNIT)) + PAGE_SIZE;
	for (no = 0; atomic_read(&map->tail) < units * 2 / 3; no++) {
		test_fill(ips, no, TEST_MAX_DEPTH);
		KUNIT_ASSERT_GE(test, test_get_id(map, ips, TEST_MAX_DEPTH), 0);
	}
	test_wait_for_growth(map);
	map->area->size = size;
	KUNIT_ASSERT_EQ(test, map->arena_units, units);
	KUNIT_EXPECT_EQ(test, map->backoff, HZ);

	test_fill(ips, no, TEST_MAX_DEPTH);
	KUNIT_EXPECT_GE(test, test_get_id(map, ips, TEST_MAX_DEPTH), 0);
	test_wait_for_growth(map);
	KUNIT_EXPECT_GT(test, map->arena_units, units);
	KUNIT_EXPECT_EQ(test, map->backoff, 0);
}

/* Hits, and a map that has all its memory, start no work. */
static void stackmap_idle(struct kunit *test)
{
	struct ftrace_stackmap *map = test_alloc(test, STACKMAP_BITS_MIN + 2, false);
	u32 units = map->arena_units;

	for (int no = 0; no < 100; no++)
		KUNIT_ASSERT_GE(test, test_insert(map, no), 0);
	for (int i = 0; i < 10000; i++)
		KUNIT_ASSERT_GE(test, test_insert(map, i % 100), 0);
	test_wait_for_growth(map);
	KUNIT_EXPECT_EQ(test, map->arena_units, units);
	KUNIT_EXPECT_NE(test, map->low_water, U32_MAX);

	map = test_map(test, STACKMAP_BITS_MIN);
	KUNIT_EXPECT_EQ(test, map->low_water, U32_MAX);
}

/* What VmallocUsed does not tell of: the pages of the arena come back. */
static void stackmap_frees_pages(struct kunit *test)
{
	unsigned long before = si_mem_available();
	struct ftrace_stackmap *map;
	unsigned long pages = 0;

	for (int i = 0; i < 50; i++) {
		map = ftrace_stackmap_alloc(STACKMAP_BITS_DEFAULT, 0, true);
		KUNIT_ASSERT_NOT_NULL(test, map);
		KUNIT_EXPECT_EQ(test, map->arena_units, map->arena_limit);
		pages += ftrace_stackmap_memory(map) / PAGE_SIZE;
		ftrace_stackmap_free(map);
	}
	KUNIT_EXPECT_GT(test, si_mem_available() + pages / 2, before);
}

/* Stacks that share a word of the reference cache, in turn and in a row. */
static void stackmap_ref_eviction(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_DEFAULT);
	int first = test_insert(map, 0), other;
	unsigned long calls;
	unsigned int no = 0;

	/* The reference of the first moves to its record when another one takes the word. */
	do {
		KUNIT_ASSERT_LT(test, ++no, map->max_entries);
		other = test_insert(map, no);
	} while (!atomic_long_read(&test_record(map, first)->ref));

	calls = no + 1;
	for (int i = 0; i < 1000; i++) {
		KUNIT_ASSERT_EQ(test, test_insert(map, 0), first);
		KUNIT_ASSERT_EQ(test, test_insert(map, no), other);
		calls += 2;
		for (int k = 0; k < i % 3; k++, calls++)
			test_insert(map, no);
	}
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_ref(map, first), 1001);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_ref(map, other), calls - no - 1000);
	test_check_map(test, map, calls, no + 1);
}

/* Stacks that differ in one frame are not taken for one another, in whatever order they come. */
static void stackmap_recall(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	unsigned long ips[TEST_DEPTHS];
	int ids[TEST_DEPTHS + 1];

	test_fill(ips, 1, TEST_DEPTHS);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i <= TEST_DEPTHS; i++) {
			if (i < TEST_DEPTHS)
				ips[i]++;
			if (!round)
				ids[i] = test_get_id(map, ips, TEST_DEPTHS);
			KUNIT_EXPECT_EQ(test, test_get_id(map, ips, TEST_DEPTHS), ids[i]);
			if (i < TEST_DEPTHS)
				ips[i]--;
		}
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), TEST_DEPTHS + 1);
	for (int i = 0; i <= TEST_DEPTHS; i++)
		KUNIT_EXPECT_EQ(test, ftrace_stackmap_ref(map, ids[i]), 4);
}

static void stackmap_many_hits(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	int id = test_insert(map, 1);

	/* More than a word of the cache can count. */
	for (int i = 1; i < 20000; i++)
		KUNIT_ASSERT_EQ(test, test_insert(map, 1), id);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_ref(map, id), 20000);
	test_check_map(test, map, 20000, 2);
}

/* A stack, E for a frame in the entry code, and the part that each frame belongs to. */
struct test_split {
	const char		*frames;
	const char		*parts;
};

static const struct test_split stackmap_splits[] = {
	{ ".",			"0" },
	{ "......",		"000000" },
	{ "..E",		"000" },		/* from user space */
	{ "..E.",		"0000" },
	{ "..E..",		"000-1" },
	{ "E..",		"0-1" },
	{ "..E.....E",		"000-11111" },
	{ "..EE..",		"000-11" },
	{ "..EE.E",		"000-11" },
	{ "..E.E..",		"000-1-2" },
	{ ".E.E.E..",		"00-1-2-3" },
	{ ".E..E..E..E..E..",	"00-11-22-33-44-5" },
	{ "E.E.E.E.E.E.E...",	"0-1-2-3-4-5-6-77" },
	{ "E.E.E.E.E.E.E.E..",	NULL },			/* more than STACKMAP_MAX_PARTS */
};

static void test_describe_split(const struct test_split *split, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "'%s'", split->frames);
}

KUNIT_ARRAY_PARAM(stackmap_split, stackmap_splits, test_describe_split);

static void stackmap_parts(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	const struct test_split *split = test->param_value;
	struct stackmap_part parts[STACKMAP_MAX_PARTS];
	unsigned int nr = strlen(split->frames);
	unsigned int first = 0;
	unsigned long ips[18];
	char found[19] = "";
	int nr_parts;

	map->entry_start = 0x1000;
	map->entry_size = 0x200;
	KUNIT_ASSERT_LE(test, nr, ARRAY_SIZE(ips));
	for (int i = 0; i < nr; i++)
		ips[i] = split->frames[i] == 'E' ? 0x1000 + i * 0x11 : i % 2 ? 0xfff : 0x1200;

	scoped_guard(preempt_notrace)
		nr_parts = stackmap_find_parts(map, ips, nr, parts);
	if (!split->parts) {
		KUNIT_EXPECT_EQ(test, nr_parts, -STACKMAP_DROP_PARTS);
		return;
	}
	KUNIT_ASSERT_GT(test, nr_parts, 0);
	memset(found, '-', nr);
	for (int i = 0; i < nr_parts; i++) {
		KUNIT_EXPECT_PTR_EQ(test, parts[i].ips, ips + first);
		memset(found + first, '0' + i, parts[i].nr);
		first += parts[i].nr + 1;
	}
	KUNIT_EXPECT_EQ(test, first, nr + 1);
	KUNIT_EXPECT_STREQ(test, found, split->parts);

	map->entry_size = 0;
	scoped_guard(preempt_notrace)
		nr_parts = stackmap_find_parts(map, ips, nr, parts);
	KUNIT_EXPECT_EQ(test, nr_parts, 1);
	KUNIT_EXPECT_EQ(test, parts[0].nr, nr);
}

/* The instruction that was hit is not in the map, however many there are. */
static void stackmap_split_counts(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	int irq, task, ids[STACKMAP_MAX_PARTS];

	test_set_entry(map);
	irq = test_insert(map, TEST_IRQ);
	task = test_insert(map, 7);
	for (int i = 0; i < 1000; i++) {
		KUNIT_ASSERT_EQ(test, test_insert_irq(map, i, 7, ids), 0);
		KUNIT_EXPECT_EQ(test, ids[0], irq);
		KUNIT_EXPECT_EQ(test, ids[1], task);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 2);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_ref(map, irq), 1001);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_ref(map, task), 1001);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_SPLIT), 1000);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_PARTS), 2002);
	test_check_map(test, map, 1002, 8);
}

/* Where one part does not fit, none is counted. */
static void stackmap_split_whole(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	unsigned int max = map->max_entries;
	int ids[STACKMAP_MAX_PARTS];

	test_set_entry(map);
	for (int no = 0; no < max; no++)
		KUNIT_ASSERT_GE(test, test_insert(map, no), 0);

	KUNIT_EXPECT_EQ(test, test_insert_irq(map, 1, max, ids), -ENOSPC);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_DROP_ENTRIES), 1);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_ref(map, test_insert(map, TEST_IRQ)), 2);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_SPLIT), 0);

	KUNIT_EXPECT_EQ(test, test_insert_irq(map, 1, max - 1, ids), 0);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_SPLIT), 1);
	test_check_map(test, map, max + 3, max);
}

#define TEST_MAX_WRITERS	8
#define TEST_TIMER_NS		(50 * NSEC_PER_USEC)

/* A thread and, on the same CPU, a timer that interrupts it; both insert. */
struct test_writer {
	struct task_struct	*task;
	atomic_t		*start;	/* number of writers that are not ready yet */
	struct hrtimer		timer;
	struct completion	done;
	struct ftrace_stackmap	*map;	/* to insert into, or */
	struct trace_array	*tr;	/* the instance whose map to use */
	unsigned int		nr_stacks;
	unsigned int		passes;
	unsigned int		most;	/* passes while the map has yet to grow */
	bool			irq;	/* insert each as what an interrupt has hit */
	bool			swap;	/* record events; the timer swaps buffers, as it seems */
	unsigned long		calls;
	unsigned long		irq_calls;
	unsigned long		errors;
};

/* Whether @id leads to stack @no. */
static bool test_leads_to(struct ftrace_stackmap *map, int id, unsigned int no)
{
	const struct stackmap_record *rec = test_record(map, id);

	return rec->nr == test_depth(no) && rec->ips[0] == test_frame(no, 0) &&
	       rec->ips[rec->nr - 1] == test_frame(no, rec->nr - 1);
}

/* Inserts a stack, and checks that the id leads back to it. */
static bool test_insert_checked(struct ftrace_stackmap *map, unsigned int no)
{
	int id = test_insert(map, no);

	return id < 0 || test_leads_to(map, id, no);
}

static bool test_insert_irq_checked(struct ftrace_stackmap *map, unsigned int no)
{
	int ids[STACKMAP_MAX_PARTS];

	return test_insert_irq(map, ~no, no, ids) ||
	       (test_leads_to(map, ids[0], TEST_IRQ) && test_leads_to(map, ids[1], no));
}

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

/* A swap of buffers begins, or ends. It is over at once, or at the next call. */
static void test_swap(struct test_writer *w)
{
	bool begun = atomic_read(&w->tr->stackmap_define) & 1;

	if (!begun)
		ftrace_stackmap_swap_begin(w->tr);
	if (begun || w->irq_calls % 3 == 0)
		ftrace_stackmap_swap_end(w->tr);
	test_write_mark(w->tr);
	w->irq_calls++;
}

static void test_write_event(struct trace_array *tr, unsigned int no)
{
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, no, test_depth(no));
	trace_record_stack(tr, tr->array_buffer.buffer, 0, ips, test_depth(no));
}

static bool test_write_one(struct test_writer *w, unsigned int no)
{
	struct ftrace_stackmap *map = w->map;

	guard(preempt_notrace)();
	if (w->swap) {
		test_write_event(w->tr, no);
		return true;
	}
	if (w->tr)
		map = ftrace_stackmap_active(w->tr);
	if (map && w->irq)
		return test_insert_irq_checked(map, no);
	return !map || test_insert_checked(map, no);
}

static enum hrtimer_restart test_timer(struct hrtimer *timer)
{
	struct test_writer *w = container_of(timer, struct test_writer, timer);

	if (w->swap)
		test_swap(w);
	/* What the thread is at, or will be soon. */
	for (int i = 0; !w->swap && i < 8; i++, w->irq_calls++) {
		if (!test_write_one(w, (READ_ONCE(w->calls) + i) % w->nr_stacks))
			w->errors++;
	}
	/* Counted from now, so that the thread gets on where all this takes long. */
	hrtimer_set_expires(timer, ktime_add_ns(ktime_get(), TEST_TIMER_NS));
	return HRTIMER_RESTART;
}

static bool test_grown(struct ftrace_stackmap *map)
{
	return READ_ONCE(map->arena_units) > map->arena_limit / 8;
}

static int test_writer_fn(void *data)
{
	struct test_writer *w = data;
	unsigned long errors = 0;

	hrtimer_setup(&w->timer, test_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	hrtimer_start(&w->timer, ns_to_ktime(TEST_TIMER_NS), HRTIMER_MODE_REL_PINNED_HARD);

	/* All at once, and in the same order, so that they meet at each slot. */
	atomic_dec(w->start);
	while (atomic_read(w->start) > 0)
		cpu_relax();

	while (w->calls < w->passes * w->nr_stacks ||
	       (w->calls < w->most * w->nr_stacks && !test_grown(w->map))) {
		if (!test_write_one(w, w->calls % w->nr_stacks))
			errors++;
		WRITE_ONCE(w->calls, w->calls + 1);
		if (w->calls % 4096 == 0)
			cond_resched();
	}

	hrtimer_cancel(&w->timer);
	w->errors += errors;
	complete(&w->done);
	return 0;
}

/* Prepares a copy of @model for a CPU. */
static bool test_create_writer(struct test_writer *w, const struct test_writer *model, int cpu,
			       atomic_t *start)
{
	*w = *model;
	w->start = start;
	init_completion(&w->done);
	w->task = kthread_create_on_cpu(test_writer_fn, w, cpu, "stackmap_test/%u");
	return !IS_ERR(w->task);
}

/* Starts a copy of @model on each CPU; returns how many there are. */
static int test_start_writers(struct kunit *test, struct test_writer *w,
			      const struct test_writer *model, atomic_t *start)
{
	int nr = 0;
	int cpu;

	for_each_online_cpu(cpu) {
		if (nr == TEST_MAX_WRITERS)
			break;
		if (!test_create_writer(&w[nr], model, cpu, start))
			break;
		nr++;
	}

	atomic_set(start, nr);
	for (int i = 0; i < nr; i++)
		wake_up_process(w[i].task);
	KUNIT_EXPECT_GT(test, nr, 0);
	return nr;
}

static struct test_writer *test_writers(struct kunit *test)
{
	struct test_writer *w = kunit_kcalloc(test, TEST_MAX_WRITERS, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	return w;
}

struct test_race {
	const char		*desc;
	unsigned int		nr_stacks;
	unsigned int		rounds;	/* each with a map of its own */
	unsigned int		passes;	/* at most, or 0: what stackmap_test_hits makes of it */
	bool			irq;
	unsigned int		bits;	/* not 0: of a map that grows meanwhile */
	bool			fill;	/* there are too many stacks for the map */
};

static const struct test_race stackmap_races[] = {
	{ "every slot is fought for", 700, 200, 3 },
	{ "the map fills up", 5000, 20, 3, .fill = true },
	{ "interrupted hits", 8, 1, 0 },
	{ "interrupted evictions", 900, 1, 0 },
	{ "split stacks", 700, 100, 3, true },
	{ "split stacks fill the map", 5000, 20, 3, true, .fill = true },
	{ "the map grows", 12000, 6, 600, .bits = STACKMAP_BITS_DEFAULT },
};

KUNIT_ARRAY_PARAM_DESC(stackmap_race, stackmap_races, desc);

static unsigned int stackmap_test_hits = 24000000;
module_param_named(hits, stackmap_test_hits, uint, 0444);
MODULE_PARM_DESC(hits, "how many stacks each CPU asks for where most are known, at most");

static void stackmap_concurrent_inserts(struct kunit *test)
{
	const struct test_race *race = test->param_value;
	struct test_writer model = {
		.nr_stacks	= race->nr_stacks,
		.passes		= stackmap_test_hits / race->nr_stacks,
		.most		= race->passes,
		.irq		= race->irq,
	};
	unsigned long calls = 0, irq_calls = 0, drops = 0, round_calls;
	struct test_writer *w = test_writers(test);
	struct ftrace_stackmap *map;
	int rounds = race->rounds;
	atomic_t start;
	int nr;

	if (race->passes)
		model.passes = min(model.passes, race->passes);

	for (int round = 0; round < rounds; round++) {
		/* With room for what many CPUs leave in the arena when they lose. */
		map = test_alloc(test, race->bits ?: STACKMAP_BITS_MIN + 2 * !race->fill,
				 !race->bits);
		if (race->irq)
			test_set_entry(map);
		model.map = map;
		round_calls = 0;

		nr = test_start_writers(test, w, &model, &start);
		for (int i = 0; i < nr; i++) {
			wait_for_completion(&w[i].done);
			KUNIT_EXPECT_EQ(test, w[i].errors, 0);
			calls += w[i].calls;
			irq_calls += w[i].irq_calls;
			round_calls += w[i].calls + w[i].irq_calls;
		}

		/* Whoever loses a race must end up with an id, too. */
		drops += test_drops(map);
		if (race->bits)
			KUNIT_EXPECT_TRUE(test, test_grown(map));
		else if (!race->fill)
			KUNIT_ASSERT_EQ(test, drops, 0);
		if (race->irq)
			KUNIT_EXPECT_GT(test, ftrace_stackmap_sum(map, STACKMAP_SPLIT), 0);
		test_check_map(test, map, round_calls, model.nr_stacks);
		kunit_release_action(test, test_free_map, map);

		/* Timers that expire with the tick may need more rounds to hit a writer. */
		if (!irq_calls && round + 1 == rounds && rounds < 100 * race->rounds)
			rounds++;
	}

	kunit_info(test, "%d CPUs, %lu calls by threads, %lu by interrupts, %lu drops\n",
		   nr, calls, irq_calls, drops);
	KUNIT_EXPECT_GT(test, irq_calls, 0);
}

static void test_put_instance(void *data)
{
	struct trace_array *tr = data;

	trace_array_put(tr);
	trace_array_destroy(tr);
}

/* An instance of its own, with the option on and recording off. */
static struct trace_array *test_instance(struct kunit *test, u32 gen)
{
	struct trace_array *tr = trace_array_get_by_name("stackmap_kunit", NULL);
	char option[] = "stackmap";

	KUNIT_ASSERT_NOT_NULL(test, tr);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_put_instance, tr), 0);
	KUNIT_EXPECT_NULL(test, rcu_access_pointer(tr->stackmap));

	tr->stackmap_gen = gen;
	KUNIT_ASSERT_EQ(test, trace_set_options(tr, option), 0);
	KUNIT_ASSERT_NOT_NULL(test, rcu_access_pointer(tr->stackmap));
	tracer_tracing_off(tr);
	return tr;
}

static int test_reset(struct trace_array *tr)
{
	guard(mutex)(&trace_types_lock);
	return ftrace_stackmap_reset(tr);
}

static int test_option_off(struct trace_array *tr)
{
	char option[] = "nostackmap";

	return trace_set_options(tr, option);
}

static int test_instance_id(struct trace_array *tr, unsigned int no)
{
	guard(preempt_notrace)();
	return test_insert(ftrace_stackmap_active(tr), no);
}

/* The map of @tr gets all its memory, and splits behind frames from @entry on. */
static struct ftrace_stackmap *test_whole_map(struct kunit *test, struct trace_array *tr,
					      unsigned long entry)
{
	struct ftrace_stackmap *map = ftrace_stackmap_alloc(STACKMAP_BITS_DEFAULT,
							    tr->stackmap_gen, true);

	KUNIT_ASSERT_NOT_NULL(test, map);
	map->entry_start = entry;
	map->entry_size = 1;
	ftrace_stackmap_free(rcu_replace_pointer(tr->stackmap, map, true));
	return map;
}

/* Whether @id stands for stack @no, which has to be whole then. */
static bool test_resolves(struct kunit *test, struct trace_array *tr, int id, unsigned int no)
{
	const struct stackmap_record *rec;

	guard(rcu)();
	rec = ftrace_stackmap_lookup(rcu_dereference(tr->stackmap), id);
	if (!rec)
		return false;
	KUNIT_EXPECT_EQ(test, rec->nr, test_depth(no));
	KUNIT_EXPECT_EQ(test, rec->ips[0], test_frame(no, 0));
	return true;
}

static void test_record_ctx(struct trace_array *tr, unsigned int trace_ctx,
			    const unsigned long *ips, unsigned int nr)
{
	/* A snapshot may swap the buffers. */
	struct trace_buffer *buffer = data_race(READ_ONCE(tr->array_buffer.buffer));

	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		trace_record_stack(tr, buffer, trace_ctx, ips, nr);
	tracer_tracing_off(tr);
}

static void test_record_frames(struct trace_array *tr, const unsigned long *ips, unsigned int nr)
{
	test_record_ctx(tr, tracing_gen_ctx(), ips, nr);
}

/* The number of the stack is in the event, too: it looks like a preempt count. */
static void test_record_event(struct trace_array *tr, unsigned int no)
{
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, no, test_depth(no));
	test_record_ctx(tr, no & 0xff, ips, test_depth(no));
}

static void test_record_irq_event(struct trace_array *tr, unsigned int no)
{
	unsigned long ips[2 * TEST_DEPTHS + 1];

	test_record_frames(tr, ips, test_fill_irq(ips, ~no, no));
}

static struct ring_buffer_event *test_next_event(struct trace_buffer *buffer, u64 *ts)
{
	struct ring_buffer_event *event = NULL;
	int cpu;

	for_each_possible_cpu(cpu) {
		event = ring_buffer_consume(buffer, cpu, ts, NULL);
		if (event)
			break;
	}
	return event;
}

/* A copy of @event, as a reader of @tr has it. */
static struct trace_iterator *test_iter(struct kunit *test, struct trace_array *tr,
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
static struct trace_iterator *test_consume(struct kunit *test, struct trace_array *tr)
{
	return test_iter(test, tr, test_next_event(tr->array_buffer.buffer, NULL));
}

/* What `trace` shows for an event. */
static const char *test_print(struct trace_iterator *iter)
{
	struct trace_event *event = ftrace_find_event(iter->ent->type);

	trace_seq_init(&iter->seq);
	event->funcs->trace(iter, TRACE_ITER(SYM_ADDR), event);
	return trace_seq_buffer_ptr(&iter->seq) - trace_seq_used(&iter->seq);
}

static unsigned int test_printed_frames(struct trace_iterator *iter)
{
	unsigned int frames = 0;

	for (const char *s = test_print(iter); (s = strstr(s, "\n => ")); s++)
		frames++;
	return frames;
}

static void stackmap_split_event(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 3);
	struct stack_split_entry *entry;
	struct trace_iterator *iter;
	char ids[64];

	scoped_guard(preempt_notrace)
		test_set_entry(ftrace_stackmap_active(tr));
	test_record_irq_event(tr, 7);
	KUNIT_EXPECT_EQ(test, ring_buffer_entries(tr->array_buffer.buffer), 1);

	iter = test_consume(test, tr);
	entry = (void *)iter->ent;
	KUNIT_EXPECT_EQ(test, entry->ent.type, TRACE_STACK_SPLIT);
	KUNIT_EXPECT_EQ(test, iter->ent_size, sizeof(*entry));
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, entry->stack_id, TEST_IRQ));
	KUNIT_EXPECT_EQ(test, entry->ip, ~7U);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, entry->outer, 7));

	snprintf(ids, sizeof(ids), "<stack_split %d @%lx %d>\n", entry->stack_id, entry->ip,
		 entry->outer);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), ids));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(TEST_IRQ) + 1 + test_depth(7));
}

/* How many frames each part of a stack is to have. Returns the number of parts. */
static unsigned int test_split_simply(const unsigned long *ips, unsigned int nr,
				      unsigned long entry, unsigned int *nrs)
{
	unsigned int first = 0, parts = 0;

	for (unsigned int i = 0; i + 2 < nr && parts < STACKMAP_MAX_PARTS - 1; i++) {
		if (ips[i] != entry)
			continue;
		nrs[parts++] = i + 1 - first;
		first = i + 2;
		i++;
	}
	nrs[parts++] = nr - first;
	return parts;
}

/* The frames of an event, and how many each of its parts has. Returns the number of parts. */
static unsigned int test_join(struct ftrace_stackmap *map, const struct trace_entry *ent,
			      unsigned long *ips, unsigned int *nrs)
{
	const struct stack_split_entry *entry = (void *)ent;
	const struct stackmap_record *rec = test_record(map, entry->stack_id);
	const unsigned long *rest = entry->rest;
	unsigned int parts = 0;
	unsigned long ip;
	int id;

	for (;;) {
		memcpy(ips, rec->ips, flex_array_size(rec, ips, rec->nr));
		ips += rec->nr;
		nrs[parts++] = rec->nr;
		if (ent->type == TRACE_STACK_ID || (parts > 1 && id >= 0))
			return parts;
		ip = parts == 1 ? entry->ip : *rest++;
		id = parts == 1 ? entry->outer : *rest++;
		*ips++ = ip;
		rec = test_record(map, id);
	}
}

static void test_record_split(struct kunit *test, struct trace_array *tr,
			      const unsigned long *ips, unsigned int nr, unsigned long entry)
{
	struct ftrace_stackmap *map = rcu_dereference_protected(tr->stackmap, true);
	unsigned int nrs[STACKMAP_MAX_PARTS], joined_nrs[STACKMAP_MAX_PARTS];
	struct ring_buffer_event *event;
	unsigned long joined[64];
	unsigned int parts;

	test_record_frames(tr, ips, nr);
	KUNIT_ASSERT_EQ(test, test_drops(map), 0);
	parts = test_split_simply(ips, nr, entry, nrs);
	event = test_next_event(tr->array_buffer.buffer, NULL);
	KUNIT_ASSERT_NOT_NULL(test, event);
	KUNIT_ASSERT_EQ(test, parts, test_join(map, ring_buffer_event_data(event), joined,
					       joined_nrs));
	KUNIT_ASSERT_MEMEQ(test, nrs, joined_nrs, parts * sizeof(*nrs));
	KUNIT_ASSERT_MEMEQ(test, ips, joined, nr * sizeof(*ips));
}

/* All stacks of a few frames: whatever the CPU remembers of others, each is split as if alone. */
static void stackmap_split_all(struct kunit *test)
{
	static const unsigned long frames[] = { 0x1000, 1, 2 };
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_whole_map(test, tr, frames[0]);
	unsigned int nr, stacks = 1;
	unsigned long ips[9];

	for (unsigned int pass = 0; pass < 2 * ARRAY_SIZE(ips); pass++) {
		nr = pass % ARRAY_SIZE(ips) + 1;
		stacks = nr == 1 ? ARRAY_SIZE(frames) : stacks * ARRAY_SIZE(frames);
		for (unsigned int i = 0; i < stacks; i++) {
			/* In no order that would suit one that guesses, and then again. */
			for (unsigned int k = 0, no = i * 7919 % stacks; k < nr; k++, no /= 3)
				ips[k] = frames[no % 3];
			test_record_split(test, tr, ips, nr, frames[0]);
			test_record_split(test, tr, ips, nr, frames[0]);
		}
	}

	KUNIT_EXPECT_EQ(test, test_refs(map), ftrace_stackmap_sum(map, STACKMAP_PARTS));
}

/* A stack of which one part does not fit is recorded as it is. */
static void stackmap_split_full(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = rcu_dereference_protected(tr->stackmap, true);
	unsigned long ips[2 * TEST_DEPTHS + 1];
	struct stack_entry *entry;
	unsigned int max = 100;
	unsigned int nr;

	map->max_entries = max;
	test_set_entry(map);
	for (int no = 0; no < max; no++)
		KUNIT_ASSERT_GE(test, test_insert(map, no), 0);
	test_record_irq_event(tr, max);
	KUNIT_EXPECT_EQ(test, ring_buffer_entries(tr->array_buffer.buffer), 1);

	entry = (void *)test_consume(test, tr)->ent;
	nr = test_fill_irq(ips, ~max, max);
	KUNIT_EXPECT_EQ(test, entry->ent.type, TRACE_STACK);
	KUNIT_ASSERT_EQ(test, entry->size, nr);
	KUNIT_EXPECT_MEMEQ(test, entry->caller, ips, nr * sizeof(*ips));
	test_check_map(test, map, max + 1, max);
}

/* An event of three parts and more, and a stack that has too many. */
static void stackmap_split_often(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_whole_map(test, tr, 0x1000);
	struct trace_iterator *iter;
	unsigned long ips[4 * STACKMAP_MAX_PARTS];
	unsigned int nr;

	for (int i = 0; i < ARRAY_SIZE(ips); i++)
		ips[i] = i % 4 == 1 ? 0x1000 : i;
	for (int splits = 1; splits < STACKMAP_MAX_PARTS; splits++) {
		nr = 4 * splits;
		for (int i = 0; i < 2; i++) {
			test_record_frames(tr, ips, nr + i);
			iter = test_consume(test, tr);
			KUNIT_EXPECT_EQ(test, iter->ent->type, TRACE_STACK_SPLIT);
			KUNIT_EXPECT_EQ(test, test_printed_frames(iter), nr + i);
		}
	}
	KUNIT_EXPECT_EQ(test, test_drops(map), 0);
	test_record_frames(tr, ips, ARRAY_SIZE(ips));
	iter = test_consume(test, tr);
	KUNIT_EXPECT_EQ(test, iter->ent->type, TRACE_STACK);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_DROP_PARTS), 1);
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

static void stackmap_reset_frees(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	char option[] = "stackmap";
	int old = test_instance_id(tr, 1);

	KUNIT_EXPECT_EQ(test, test_option_off(tr), 0);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, old, 1));
	KUNIT_EXPECT_NULL(test, ftrace_stackmap_active(tr));

	/* With the option off, tracing may be on. */
	tracer_tracing_on(tr);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	tracer_tracing_off(tr);
	KUNIT_EXPECT_NULL(test, rcu_access_pointer(tr->stackmap));
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, old, 1));
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);

	/* The generation outlives the memory. */
	KUNIT_ASSERT_EQ(test, trace_set_options(tr, option), 0);
	KUNIT_EXPECT_EQ(test, test_instance_id(tr, 1) >> STACKMAP_SLOT_BITS, 1);
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, old, 1));
}

#ifdef LATENCY_FS_NOTIFY
/* What tells inotify of a snapshot of @tr; nobody waits for it when the instance goes. */
static void test_wait_for_inotify(struct trace_array *tr)
{
	irq_work_sync(&tr->fsnotify_irqwork);
	flush_work(&tr->fsnotify_work);
}
#else
static inline void test_wait_for_inotify(struct trace_array *tr) { }
#endif

#ifdef CONFIG_TRACER_SNAPSHOT
/* Moves the events of @tr into its snapshot. */
static void test_take_snapshot(struct kunit *test, struct trace_array *tr)
{
	KUNIT_ASSERT_EQ(test, tracing_arm_snapshot(tr), 0);
	tracing_snapshot_instance(tr);
	KUNIT_EXPECT_EQ(test, ring_buffer_entries(tr->array_buffer.buffer), 0);
}

static void test_empty_buffers(struct trace_array *tr)
{
	ring_buffer_reset(tr->snapshot_buffer.buffer);
	ring_buffer_reset(tr->array_buffer.buffer);
}

static void test_end_snapshot(struct trace_array *tr)
{
	tracing_disarm_snapshot(tr);
	test_wait_for_inotify(tr);
}
#else
static void test_take_snapshot(struct kunit *test, struct trace_array *tr) { }
static void test_end_snapshot(struct trace_array *tr) { }

static void test_empty_buffers(struct trace_array *tr)
{
	ring_buffer_reset(tr->array_buffer.buffer);
}
#endif

static int test_gen(int id)
{
	return id >> STACKMAP_SLOT_BITS;
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

	/* 0 and 1 are in one buffer, 2 in the other. */
	tr->stackmap_gen = STACKMAP_GEN_MASK;
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 3);
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, id, 1));

	test_empty_buffers(tr);
	tr->stackmap_gen = STACKMAP_GEN_MASK;
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 0);
	test_end_snapshot(tr);
}

/* With events of all generations, a reset changes nothing. */
static void stackmap_generations_used_up(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = rcu_access_pointer(tr->stackmap);

	for (int gen = 0; gen <= STACKMAP_GEN_MASK; gen++) {
		map->gen = gen;
		/* Not the ids of the current map, after which the walk ends. */
		map->settled = U32_MAX;
		test_record_event(tr, 1);
	}
	tr->stackmap_gen = STACKMAP_GEN_MASK;
	KUNIT_EXPECT_EQ(test, test_reset(tr), -EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, rcu_access_pointer(tr->stackmap), map);
	KUNIT_EXPECT_EQ(test, tr->stackmap_gen, STACKMAP_GEN_MASK);

	test_empty_buffers(tr);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
}

static void test_restore_bits(void *bits)
{
	ftrace_stackmap_bits = (unsigned long)bits;
}

/* An instance with the smallest map. */
static struct trace_array *test_small_instance(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_restore_bits,
							(void *)(long)ftrace_stackmap_bits), 0);
	ftrace_stackmap_bits = STACKMAP_BITS_MIN;
	return test_instance(test, 0);
}

/* The references of all stacks, gone ones included, are the parts of all successes. */
static void test_check_recycling(struct kunit *test, struct trace_array *tr)
{
	struct ftrace_stackmap *map;
	unsigned long refs, stacks = 0;
	int id;

	/* The work of the last insert may still have to run. */
	guard(mutex)(&trace_types_lock);
	map = rcu_dereference_protected(tr->stackmap, lockdep_is_held(&trace_types_lock));
	refs = test_refs(map) + map->recycled_refs;
	for (u32 pos = 0; pos < ftrace_stackmap_nr_old(map); pos++) {
		if (!ftrace_stackmap_old(map, pos, &id))
			continue;
		KUNIT_EXPECT_EQ(test, ftrace_stackmap_old_pos(map, id), pos);
		refs += ftrace_stackmap_old_ref(map, pos);
		stacks++;
	}
	KUNIT_EXPECT_EQ(test, stacks, ftrace_stackmap_nr_kept(map));
	KUNIT_EXPECT_EQ(test, refs, ftrace_stackmap_total(map, STACKMAP_PARTS));
}

static unsigned long test_rotations(struct trace_array *tr)
{
	guard(rcu)();
	return rcu_dereference(tr->stackmap)->rotations;
}

/* Record stack number @no, and let the work of the map keep up. */
static void test_record_slowly(struct trace_array *tr, unsigned int no)
{
	test_record_event(tr, no);
	/* If it is replaced, it is still there as the map before. */
	if (no % 64 == 0)
		test_wait_for_growth(rcu_access_pointer(tr->stackmap));
}

/*
 * Take all events out of @buffer. Each has to resolve, to the stack that it was
 * recorded with. Returns the number of those that were recorded in full.
 */
static unsigned int test_all_resolve(struct kunit *test, struct trace_array *tr,
				     struct trace_buffer *buffer)
{
	const struct stackmap_record *rec;
	struct ring_buffer_event *event;
	struct stack_id_entry *entry;
	unsigned int full = 0;

	guard(rcu)();
	while ((event = test_next_event(buffer, NULL))) {
		entry = ring_buffer_event_data(event);
		if (entry->ent.type != TRACE_STACK_ID) {
			full++;
			continue;
		}
		rec = ftrace_stackmap_lookup(rcu_dereference(tr->stackmap), entry->stack_id);
		KUNIT_ASSERT_NOT_NULL(test, rec);
		KUNIT_EXPECT_EQ(test, (rec->ips[0] >> 8) & 0xff, entry->ent.preempt_count);
		KUNIT_EXPECT_EQ(test, rec->nr, test_depth(rec->ips[0] >> 8));
	}
	return full;
}

static void test_resize(struct kunit *test, struct trace_buffer *buffer, unsigned int pages)
{
	KUNIT_ASSERT_GE(test, ring_buffer_resize(buffer, pages * PAGE_SIZE, RING_BUFFER_ALL_CPUS),
			0);
}

/* Every stack is a new one. What the wrapping buffer holds at the end resolves. */
static void stackmap_rotates(struct kunit *test)
{
	struct trace_array *tr = test_small_instance(test);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct ftrace_stackmap *map;
	unsigned int max = 12000;

	test_resize(test, buffer, 6);
	for (unsigned int no = 0; no < max; no++)
		test_record_slowly(tr, no);

	map = rcu_access_pointer(tr->stackmap);
	kunit_info(test, "%lu rotations, %lu events, %u kept\n", map->rotations,
		   ring_buffer_entries(buffer), map->kept->nr);
	KUNIT_EXPECT_GE(test, map->rotations, 10);
	KUNIT_EXPECT_GT(test, map->kept->nr, 0);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_total(map, STACKMAP_SUCCESSES), max);
	test_check_recycling(test, tr);
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, buffer), 0);
}

static void test_rotate(struct kunit *test, struct trace_array *tr)
{
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_rotate(rcu_access_pointer(tr->stackmap)), 0);
}

/* All parts of a split stack are kept. */
static void stackmap_keeps_all_parts(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = rcu_access_pointer(tr->stackmap);
	int ids[STACKMAP_MAX_PARTS];

	test_set_entry(map);
	test_record_irq_event(tr, 7);
	KUNIT_ASSERT_EQ(test, test_insert_irq(map, ~7UL, 7, ids), 0);
	for (int i = 0; i < 3; i++)
		test_rotate(test, tr);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_nr_kept(rcu_access_pointer(tr->stackmap)), 2);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, ids[0], TEST_IRQ));
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, ids[1], 7));
}

/*
 * The buffer is full, and its newest page is empty, since the first event there was
 * discarded. It was the oldest page when somebody read last.
 */
static void stackmap_walks_behind_discard(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct ring_buffer_event *event;
	int id = test_instance_id(tr, 1);
	bool full = false;

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	tracer_tracing_on(tr);
	for (unsigned int i = 0; !full; i++) {
		/* Not on the first page. */
		if (i == 100) {
			test_record_event(tr, 1);
			tracer_tracing_on(tr);
		}
		event = trace_buffer_lock_reserve(buffer, TRACE_PRINT, 100, 0);
		KUNIT_ASSERT_NOT_NULL(test, event);
		full = ring_buffer_overrun_cpu(buffer, 0);
		if (full)
			ring_buffer_discard_commit(buffer, event);
		else
			ring_buffer_unlock_commit(buffer);
	}
	tracer_tracing_off(tr);

	for (int i = 0; i < 3; i++)
		test_rotate(test, tr);
	KUNIT_EXPECT_EQ(test, rcu_access_pointer(tr->stackmap)->rotations, 3);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, id, 1));
}

static unsigned long test_full(struct trace_array *tr)
{
	guard(rcu)();
	return ftrace_stackmap_total(rcu_dereference(tr->stackmap), STACKMAP_DROP_ENTRIES);
}

/* More than may be kept is recorded in full, until the buffer has moved on. */
static void stackmap_keeps_no_more(struct kunit *test)
{
	struct trace_array *tr = test_small_instance(test);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct ftrace_stackmap *map;
	unsigned long full, before;
	unsigned int no;

	/* A buffer that holds them all. */
	test_resize(test, buffer, 128);
	for (no = 0; no < 100000 && !test_full(tr); no++)
		test_record_slowly(tr, no);
	map = rcu_access_pointer(tr->stackmap);
	full = test_full(tr);
	kunit_info(test, "%u stacks, %u kept, %zu bytes\n", no, map->kept->nr, map->kept->used);
	KUNIT_EXPECT_GT(test, full, 0);
	test_check_recycling(test, tr);
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, buffer), full);

	/* The events are gone: after the pause, an insert has the map replaced. */
	for (int i = 0; i < 50; i++) {
		before = test_full(tr);
		test_record_event(tr, ++no);
		if (test_full(tr) == before)
			break;
		msleep(100);
	}
	KUNIT_EXPECT_EQ(test, test_full(tr), before);
	KUNIT_EXPECT_PTR_NE(test, rcu_access_pointer(tr->stackmap), map);
	test_check_recycling(test, tr);
}

#ifdef CONFIG_TRACER_SNAPSHOT
struct test_swapper {
	struct trace_array	*tr;
	unsigned int		swaps;
};

/* Swap the buffers all the time, those of all CPUs and of one. */
static int test_swapper_fn(void *data)
{
	struct test_swapper *w = data;

	while (!kthread_should_stop()) {
		tracing_snapshot_instance(w->tr);
		if (IS_ENABLED(CONFIG_RING_BUFFER_ALLOW_SWAP)) {
			guard(irqsave)();
			update_max_tr_single(w->tr, current, smp_processor_id());
		}
		w->swaps++;
		usleep_range(50, 100);
	}
	return 0;
}

/* What is in either buffer resolves, whatever swapped them during the rotations. */
static void stackmap_rotates_and_swaps(struct kunit *test)
{
	struct trace_array *tr = test_small_instance(test);
	struct test_swapper w = { .tr = tr };
	struct task_struct *task;

	KUNIT_ASSERT_EQ(test, tracing_arm_snapshot(tr), 0);
	/* Of one size, or single CPUs can't be swapped. */
	test_resize(test, tr->array_buffer.buffer, 4);
	test_resize(test, tr->snapshot_buffer.buffer, 4);
	/* Swaps make walks fail. How often depends on the machine. */
	for (int round = 0; round < 4 || (round < 40 && test_rotations(tr) < 10); round++) {
		task = kthread_run(test_swapper_fn, &w, "stackmap_swap");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
		for (unsigned int no = 0; no < 4000; no++)
			test_record_slowly(tr, no);
		kthread_stop(task);
		test_check_recycling(test, tr);
		test_all_resolve(test, tr, tr->array_buffer.buffer);
		test_all_resolve(test, tr, tr->snapshot_buffer.buffer);
	}
	kunit_info(test, "%u swaps, %lu rotations, %lu full\n", w.swaps, test_rotations(tr),
		   test_full(tr));
	KUNIT_EXPECT_GE(test, test_rotations(tr), 10);
	test_end_snapshot(tr);
}
#else
static void stackmap_rotates_and_swaps(struct kunit *test)
{
	kunit_skip(test, "no snapshots");
}
#endif

/* A reader that stopped has a copy of an event. It does not print another stack for it. */
static void stackmap_old_copy(struct kunit *test)
{
	struct trace_array *tr = test_small_instance(test);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct ring_buffer_iter *copies[1];
	struct trace_iterator *iter;
	int id;

	test_resize(test, buffer, 2);
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	test_record_event(tr, 1);
	id = test_instance_id(tr, 1);
	copies[0] = ring_buffer_read_start(buffer, 0, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copies[0]);
	iter = test_iter(test, tr, ring_buffer_iter_peek(copies[0], NULL));
	iter->buffer_iter = copies;
	KUNIT_EXPECT_FALSE(test, ring_buffer_iter_overrun(copies[0]));

	/* The event is still there, so its generation is skipped. */
	tr->stackmap_gen = STACKMAP_GEN_MASK;
	KUNIT_ASSERT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_gen(test_instance_id(tr, 1)), 1);

	/* It is overwritten, so its generation begins again, and its stack has the same id. */
	for (int i = 0; i < 1000; i++)
		test_record_event(tr, 2);
	KUNIT_EXPECT_TRUE(test, ring_buffer_iter_overrun(copies[0]));
	tr->stackmap_gen = 2 * STACKMAP_GEN_MASK + 1;
	KUNIT_ASSERT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_EQ(test, test_instance_id(tr, 1), id);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), "(stale)"));
	iter->buffer_iter = NULL;
	KUNIT_EXPECT_NULL(test, strstr(test_print(iter), "(stale)"));

	ring_buffer_read_finish(copies[0]);
}

/* The oldest event, which has to be of this type. It is removed. */
static struct trace_iterator *test_expect_event(struct kunit *test, struct trace_array *tr,
						int type)
{
	struct trace_iterator *iter = test_consume(test, tr);

	KUNIT_ASSERT_EQ(test, iter->ent->type, type);
	return iter;
}

/* The definition of stack @no, which is removed. */
static void test_expect_def(struct kunit *test, struct trace_array *tr, unsigned int no)
{
	struct trace_iterator *iter = test_expect_event(test, tr, TRACE_STACK_DEF);
	struct stack_def_entry *entry = (void *)iter->ent;

	KUNIT_EXPECT_EQ(test, ftrace_stackmap_event_ids(iter->ent, iter->ent_size), 1);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_event_id(iter->ent, 0), entry->stack_id);
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

	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, ftrace_stackmap_event_id(iter->ent, 0),
					      no));
}

static void test_expect_no_event(struct kunit *test, struct trace_array *tr)
{
	KUNIT_EXPECT_EQ(test, ring_buffer_entries(tr->array_buffer.buffer), 0);
}

static void test_define(struct kunit *test, struct trace_array *tr)
{
	char option[] = "stackmap-define";

	KUNIT_ASSERT_EQ(test, trace_set_options(tr, option), 0);
}

static struct trace_array *test_defining_instance(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 3);
	struct ftrace_stackmap *map = rcu_access_pointer(tr->stackmap);

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

	test_set_entry(rcu_access_pointer(tr->stackmap));
	test_expect_defined(test, tr);

	/* Each part of a split stack is defined. */
	test_record_irq_event(tr, 7);
	test_record_irq_event(tr, 9);
	test_expect_def(test, tr, TEST_IRQ);
	test_expect_def(test, tr, 7);
	test_expect_event(test, tr, TRACE_STACK_SPLIT);
	iter = test_expect_event(test, tr, TRACE_STACK_SPLIT);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr,
					      ftrace_stackmap_event_id(iter->ent, 1), 9));
	test_expect_no_event(test, tr);

	KUNIT_EXPECT_EQ(test, test_successes(rcu_access_pointer(tr->stackmap)), 4);
	KUNIT_EXPECT_EQ(test, test_refs(rcu_access_pointer(tr->stackmap)), 6);
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

static void stackmap_defines_anew(struct kunit *test)
{
	struct trace_array *tr = test_defining_instance(test);

	test_expect_defined(test, tr);
	/* Set again. */
	test_define(test, tr);
	test_expect_defined(test, tr);
	test_rotate(test, tr);
	test_expect_defined(test, tr);
	test_record_event(tr, 9);
	tracing_reset_online_cpus(&tr->array_buffer);
	test_expect_defined(test, tr);
	test_record_event(tr, 9);
	tracing_reset_cpu(&tr->array_buffer, 0);
	test_expect_defined(test, tr);
	/* While the buffers are swapped, each use is defined. */
	ftrace_stackmap_swap_begin(tr);
	for (int i = 0; i < 3; i++) {
		test_record_event(tr, 9);
		test_expect_def(test, tr, 9);
		test_expect_id(test, tr, 9);
	}
	ftrace_stackmap_swap_end(tr);
	test_expect_defined(test, tr);
	if (!IS_ENABLED(CONFIG_TRACER_SNAPSHOT))
		return;
	test_take_snapshot(test, tr);
	test_expect_defined(test, tr);
	test_end_snapshot(tr);
}

/*
 * Take all events out of the buffer of CPU 0. Each id was defined since the last
 * mark, or since the last event while a swap is going on. Returns the number of
 * stacks that were recorded in full.
 */
static unsigned long test_all_defined(struct kunit *test, struct trace_array *tr)
{
	unsigned int nr = rcu_access_pointer(tr->stackmap)->nr_slots;
	unsigned long *known = kunit_kzalloc(test, BITS_TO_LONGS(nr) * sizeof(long), GFP_KERNEL);
	struct ring_buffer_event *event;
	unsigned long full = 0, bad = 0;
	struct trace_entry *ent;
	bool odd = false;

	KUNIT_ASSERT_NOT_NULL(test, known);
	while ((event = ring_buffer_consume(tr->array_buffer.buffer, 0, NULL, NULL))) {
		ent = ring_buffer_event_data(event);
		switch (ent->type) {
		case TRACE_PRINT:
			odd = ((struct print_entry *)ent)->ip & 1;
			bitmap_zero(known, nr);
			break;
		case TRACE_STACK_DEF:
			__set_bit(ftrace_stackmap_event_id(ent, 0) & (nr - 1), known);
			break;
		case TRACE_STACK_ID:
			bad += !test_bit(ftrace_stackmap_event_id(ent, 0) & (nr - 1), known);
			if (odd)
				bitmap_zero(known, nr);
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
	struct ftrace_stackmap *map = rcu_access_pointer(tr->stackmap);
	struct test_writer model = { .tr = tr, .nr_stacks = 4, .passes = 5000, .swap = true };
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
	KUNIT_EXPECT_EQ(test, full, ftrace_stackmap_sum(map, STACKMAP_DROP_BUFFER));
	KUNIT_EXPECT_EQ(test, full, test_drops(map));
	KUNIT_EXPECT_EQ(test, full + test_successes(map), calls);
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
	struct ftrace_stackmap *map = rcu_access_pointer(tr->stackmap);
	unsigned long ips[2 * TEST_DEPTHS + 1];
	unsigned int nr;

	test_set_entry(map);
	map->max_entries = 1;
	nr = test_fill_irq(ips, ~7UL, 7);
	test_record_frames(tr, ips, nr);
	/* The first part was stored and defined when the second one failed. */
	test_expect_def(test, tr, TEST_IRQ);
	test_expect_event(test, tr, TRACE_STACK);
	test_expect_no_event(test, tr);
	KUNIT_EXPECT_EQ(test, test_successes(map), 0);
	KUNIT_EXPECT_EQ(test, test_drops(map), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 1);
}

static int test_record_user(struct trace_array *tr, const unsigned long *ips, unsigned int nr,
			    u64 cookie)
{
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct stackmap_stack stack = {
		.ips = ips, .nr = nr, .tgid = 1234, .cookie = cookie,
		.type = cookie ? TRACE_USER_UNWIND_STACK_ID : TRACE_USER_STACK_ID,
	};
	int drop;

	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		drop = ftrace_stackmap_record(tr, ftrace_stackmap_active(tr), buffer,
					      tracing_gen_ctx(), &stack);
	tracer_tracing_off(tr);
	return drop;
}

/* User stack @no has the frames of test stack @no. */
static int test_record_user_event(struct trace_array *tr, unsigned int no, u64 cookie)
{
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, no, test_depth(no));
	return test_record_user(tr, ips, test_depth(no), cookie);
}

static bool test_is_user(struct trace_array *tr, int id)
{
	const struct stackmap_record *rec;

	guard(rcu)();
	rec = ftrace_stackmap_lookup(rcu_dereference(tr->stackmap), id);
	return rec && rec->user;
}

/* Equal frames of a process and of the kernel are two stacks, no matter which one came first. */
static void stackmap_user_and_kernel(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = rcu_dereference_protected(tr->stackmap, true);
	struct user_stack_id_entry *entry;
	struct trace_iterator *iter;
	int ids[2], kernel;
	char text[32];

	for (int i = 0; i < 4; i++) {
		if (i & 1)
			test_record_event(tr, 8);
		KUNIT_EXPECT_EQ(test, test_record_user_event(tr, 8 + i / 2, 0), 0);
		if (i & 2)
			test_record_event(tr, 9);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 4);
	KUNIT_EXPECT_EQ(test, test_successes(map), 8);
	KUNIT_EXPECT_EQ(test, test_refs(map), 8);

	iter = test_expect_event(test, tr, TRACE_USER_STACK_ID);
	entry = (void *)iter->ent;
	KUNIT_EXPECT_EQ(test, iter->ent_size, sizeof(*entry));
	KUNIT_EXPECT_EQ(test, entry->tgid, 1234);
	KUNIT_EXPECT_TRUE(test, test_is_user(tr, entry->stack_id));
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, entry->stack_id, 8));
	ids[0] = entry->stack_id;
	snprintf(text, sizeof(text), "<user_stack_id %d>\n =>  <", ids[0]);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), text));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(8));

	iter = test_expect_event(test, tr, TRACE_STACK_ID);
	kernel = ftrace_stackmap_event_id(iter->ent, 0);
	KUNIT_EXPECT_NE(test, kernel, ids[0]);
	KUNIT_EXPECT_FALSE(test, test_is_user(tr, kernel));
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, kernel, 8));
	iter = test_expect_event(test, tr, TRACE_USER_STACK_ID);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_event_id(iter->ent, 0), ids[0]);

	iter = test_expect_event(test, tr, TRACE_USER_STACK_ID);
	ids[1] = ftrace_stackmap_event_id(iter->ent, 0);
	iter = test_expect_event(test, tr, TRACE_STACK_ID);
	KUNIT_EXPECT_NE(test, ftrace_stackmap_event_id(iter->ent, 0), ids[1]);
	KUNIT_EXPECT_FALSE(test, test_is_user(tr, ftrace_stackmap_event_id(iter->ent, 0)));
}

/* User stacks have no parts, whatever addresses they contain. */
static void stackmap_user_whole(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = rcu_dereference_protected(tr->stackmap, true);
	unsigned long ips[2 * TEST_DEPTHS + 1];
	struct trace_iterator *iter;
	unsigned int nr;

	test_set_entry(map);
	nr = test_fill_irq(ips, ~7UL, 7);
	test_record_frames(tr, ips, nr);
	KUNIT_EXPECT_EQ(test, test_record_user(tr, ips, nr, 0), 0);
	KUNIT_EXPECT_EQ(test, test_record_user(tr, ips, nr, 0), 0);
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

	KUNIT_EXPECT_EQ(test, test_record_user_event(tr, 9, 0x123456789abULL), 0);
	iter = test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	entry = (void *)iter->ent;
	KUNIT_EXPECT_EQ(test, iter->ent_size, sizeof(*entry));
	KUNIT_EXPECT_EQ(test, entry->cookie, 0x123456789abULL);
	KUNIT_EXPECT_EQ(test, entry->tgid, 1234);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_event_id(iter->ent, 0), entry->stack_id);
	KUNIT_EXPECT_TRUE(test, test_is_user(tr, entry->stack_id));
	snprintf(text, sizeof(text), "<user_unwind_stack_id 123456789ab %d>\n", entry->stack_id);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), text));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(9));

	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), "> (stale)\n"));
}

static void stackmap_user_drop(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = rcu_dereference_protected(tr->stackmap, true);

	map->max_entries = 0;
	KUNIT_EXPECT_EQ(test, test_record_user_event(tr, 9, 0), STACKMAP_DROP_ENTRIES);
	KUNIT_EXPECT_EQ(test, test_record_user(tr, NULL, 0, 0), STACKMAP_DROP_EMPTY);
	test_expect_no_event(test, tr);
	KUNIT_EXPECT_EQ(test, test_successes(map), 0);
}

static void stackmap_keeps_user(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_iterator *iter;

	test_record_event(tr, 8);
	KUNIT_EXPECT_EQ(test, test_record_user_event(tr, 8, 0), 0);
	KUNIT_EXPECT_EQ(test, test_record_user_event(tr, 9, 1), 0);
	for (int i = 0; i < 3; i++)
		test_rotate(test, tr);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_nr_kept(rcu_access_pointer(tr->stackmap)), 3);
	test_expect_event(test, tr, TRACE_STACK_ID);
	for (int no = 8; no < 10; no++) {
		iter = test_consume(test, tr);
		KUNIT_EXPECT_TRUE(test, test_is_user(tr, ftrace_stackmap_event_id(iter->ent, 0)));
		KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(no));
	}
}

static void stackmap_defines_user(struct kunit *test)
{
	struct trace_array *tr = test_defining_instance(test);
	struct stack_def_entry *def;
	struct trace_iterator *iter;

	test_expect_defined(test, tr);
	KUNIT_EXPECT_EQ(test, test_record_user_event(tr, 9, 0), 0);
	KUNIT_EXPECT_EQ(test, test_record_user_event(tr, 9, 1), 0);
	iter = test_expect_event(test, tr, TRACE_USER_STACK_DEF);
	def = (void *)iter->ent;
	KUNIT_EXPECT_TRUE(test, test_is_user(tr, def->stack_id));
	KUNIT_EXPECT_EQ(test, def->size, test_depth(9));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(9));
	KUNIT_EXPECT_TRUE(test, ftrace_stackmap_hidden(iter));
	iter = test_expect_event(test, tr, TRACE_USER_STACK_ID);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_event_id(iter->ent, 0), def->stack_id);
	iter = test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_event_id(iter->ent, 0), def->stack_id);
	test_expect_no_event(test, tr);
}

/* The second part fails after the event is reserved: none is counted. */
static void stackmap_store_fails(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	struct stackmap_part parts[STACKMAP_MAX_PARTS];
	unsigned long ips[2 * TEST_DEPTHS + 1];
	unsigned int nr;

	test_set_entry(map);
	nr = test_fill_irq(ips, 1, 7);
	guard(preempt_notrace)();
	KUNIT_ASSERT_EQ(test, stackmap_find_parts(map, ips, nr, parts), 2);
	map->max_entries = 1;
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_store(map, parts, 2), STACKMAP_DROP_ENTRIES);
	KUNIT_EXPECT_GE(test, parts[0].idx, 0);
	KUNIT_EXPECT_LT(test, parts[1].idx, 0);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_ref(map, parts[0].idx), 0);
	KUNIT_EXPECT_EQ(test, test_successes(map), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 1);

	/* Stored meanwhile by another context: no space is taken. */
	map->max_entries = 2;
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_store(map, parts, 2), 0);
	nr = atomic_read(&map->tail);
	parts[0].idx = -ENOENT;
	parts[1].idx = -ENOENT;
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_store(map, parts, 2), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->tail), nr);
	KUNIT_EXPECT_EQ(test, test_successes(map), 2);
	KUNIT_EXPECT_EQ(test, test_refs(map), 4);

	/* Other contexts take the space after the look-up. */
	map->max_entries = 3;
	test_fill(ips, 8, test_depth(8));
	KUNIT_ASSERT_EQ(test, ftrace_stackmap_find(map, ips, test_depth(8), parts), 0);
	nr = map->arena_units;
	map->arena_units = atomic_read(&map->tail) + 1;
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_store(map, parts, 1), STACKMAP_DROP_ARENA);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 2);
	map->arena_units = nr;
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_store(map, parts, 1), 0);
}

static void stackmap_recording_off(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = rcu_dereference_protected(tr->stackmap, true);
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, 1, test_depth(1));
	scoped_guard(preempt_notrace)
		trace_record_stack(tr, tr->array_buffer.buffer, tracing_gen_ctx(), ips,
				   test_depth(1));
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 0);
	KUNIT_EXPECT_EQ(test, test_successes(map) + test_drops(map), 0);

	test_record_event(tr, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 1);
	KUNIT_EXPECT_EQ(test, test_successes(map), 1);
}

/* In the buffer of another instance, an id would be read with the wrong map. */
static void stackmap_foreign_buffer(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_array *other = trace_array_get_by_name("stackmap_kunit_other", NULL);
	struct ftrace_stackmap *map = rcu_dereference_protected(tr->stackmap, true);
	unsigned long ips[TEST_DEPTHS];

	KUNIT_ASSERT_NOT_NULL(test, other);
	test_fill(ips, 1, test_depth(1));
	scoped_guard(preempt_notrace)
		trace_record_stack(tr, other->array_buffer.buffer, tracing_gen_ctx(), ips,
				   test_depth(1));
	KUNIT_EXPECT_EQ(test, ring_buffer_entries(other->array_buffer.buffer), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 0);
	KUNIT_EXPECT_EQ(test, ftrace_stackmap_sum(map, STACKMAP_DROP_BUFFER), 1);
	test_put_instance(other);
}

/* Writers must never see memory of a map that a reset has freed. */
static void stackmap_reset_under_load(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct test_writer model = { .tr = tr, .nr_stacks = 700, .passes = 20000 };
	struct test_writer *w = test_writers(test);
	unsigned int resets = 0;
	bool running = true;
	atomic_t start;
	int nr;

	model.passes = min(model.passes, stackmap_test_hits / model.nr_stacks);
	nr = test_start_writers(test, w, &model, &start);
	while (running) {
		KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
		resets++;
		running = false;
		for (int i = 0; i < nr; i++)
			running |= !completion_done(&w[i].done);
	}
	for (int i = 0; i < nr; i++) {
		wait_for_completion(&w[i].done);
		KUNIT_EXPECT_EQ(test, w[i].errors, 0);
	}
	kunit_info(test, "%u resets\n", resets);
	KUNIT_EXPECT_EQ(test, tr->stackmap_gen, resets);
}

static struct kunit_case stackmap_test_cases[] = {
	KUNIT_CASE(stackmap_same_and_different),
	KUNIT_CASE(stackmap_equal_hashes),
	KUNIT_CASE(stackmap_bounded_probes),
	KUNIT_CASE(stackmap_prefixes),
	KUNIT_CASE_PARAM(stackmap_similar_stacks, stackmap_similar_gen_params),
	KUNIT_CASE_PARAM(stackmap_any_depth, stackmap_depth_gen_params),
	KUNIT_CASE(stackmap_no_frames),
	KUNIT_CASE(stackmap_full_table),
	KUNIT_CASE(stackmap_full_arena),
	KUNIT_CASE(stackmap_grows),
	KUNIT_CASE(stackmap_growth_fails),
	KUNIT_CASE(stackmap_idle),
	KUNIT_CASE(stackmap_frees_pages),
	KUNIT_CASE(stackmap_ref_eviction),
	KUNIT_CASE(stackmap_recall),
	KUNIT_CASE(stackmap_many_hits),
	KUNIT_CASE_PARAM(stackmap_concurrent_inserts, stackmap_race_gen_params),
	KUNIT_CASE_PARAM(stackmap_parts, stackmap_split_gen_params),
	KUNIT_CASE(stackmap_split_counts),
	KUNIT_CASE(stackmap_split_whole),
	KUNIT_CASE(stackmap_split_event),
	KUNIT_CASE(stackmap_split_all),
	KUNIT_CASE(stackmap_split_full),
	KUNIT_CASE(stackmap_split_often),
	KUNIT_CASE(stackmap_store_fails),
	KUNIT_CASE(stackmap_recording_off),
	KUNIT_CASE(stackmap_foreign_buffer),
	KUNIT_CASE(stackmap_reset_generation),
	KUNIT_CASE(stackmap_reset_frees),
	KUNIT_CASE(stackmap_generation_skips),
	KUNIT_CASE(stackmap_generations_used_up),
	KUNIT_CASE(stackmap_rotates),
	KUNIT_CASE(stackmap_keeps_all_parts),
	KUNIT_CASE(stackmap_walks_behind_discard),
	KUNIT_CASE(stackmap_keeps_no_more),
	KUNIT_CASE(stackmap_rotates_and_swaps),
	KUNIT_CASE(stackmap_old_copy),
	KUNIT_CASE(stackmap_defines_once),
	KUNIT_CASE(stackmap_hides_definitions),
	KUNIT_CASE(stackmap_defines_anew),
	KUNIT_CASE(stackmap_defines_in_time),
	KUNIT_CASE(stackmap_defines_later),
	KUNIT_CASE(stackmap_defines_no_drop),
	KUNIT_CASE(stackmap_user_and_kernel),
	KUNIT_CASE(stackmap_user_whole),
	KUNIT_CASE(stackmap_user_cookie),
	KUNIT_CASE(stackmap_user_drop),
	KUNIT_CASE(stackmap_keeps_user),
	KUNIT_CASE(stackmap_defines_user),
	KUNIT_CASE(stackmap_reset_under_load),
	{}
};

static struct kunit_suite stackmap_test_suite = {
	.name = "ftrace_stackmap",
	.test_cases = stackmap_test_cases,
};

kunit_test_suite(stackmap_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the ftrace stack map");
