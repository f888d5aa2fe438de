// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the stack map: what it stores and finds, how it counts, how it
 * is replaced, what is kept, and what a reset does, with one context and with many
 * at a time; and of the walk of the ring buffer.
 *
 * A test stack describes itself: from its number follow its depth and each of
 * its frames, so that a torn or mixed up record shows.
 */
#include <kunit/test.h>

#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/ring_buffer.h>
#include <linux/slab.h>

#include "trace_output.h"
#include "trace_stackmap_internal.h"

#define TEST_MAX_DEPTH	1024
#define TEST_GARBAGE	0xa5
#define TEST_DEPTHS	24	/* depths of numbered stacks: 1 to this */
#define TEST_HASH	0x12345678
#define TEST_SIMILAR_BITS	14
#define TEST_TGID	1234
#define TEST_COOKIE	0x123456789abULL
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

/* The id of @parts after a look-up that returned @why. */
static int test_store(struct ftrace_stackmap *map, struct stackmap_part *parts, unsigned int nr,
		      int why)
{
	if (!why)
		why = stackmap_store(map, parts, nr);
	if (why) {
		stackmap_count(map->shared, why, 1);
		return -ENOSPC;
	}
	stackmap_success(map, parts, nr);
	return stackmap_id(map, parts->idx);
}

static int test_get_part(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
			 bool user, struct stackmap_part *part)
{
	guard(preempt_notrace)();
	return test_store(map, part, 1, stackmap_find(map, ips, nr, user, part));
}

static int test_get_id(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr)
{
	struct stackmap_part part;

	return test_get_part(map, ips, nr, false, &part);
}

/* The id of test stack @no. */
static int test_insert(struct ftrace_stackmap *map, unsigned int no)
{
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, no, test_depth(no));
	return test_get_id(map, ips, test_depth(no));
}

/* As if @hash were that of the stack. */
static int test_get_id_hash(struct ftrace_stackmap *map, const unsigned long *ips,
			    unsigned int nr, u32 hash)
{
	struct stackmap_part part;

	guard(preempt_notrace)();
	/* It may meet a pile of stacks where its own hash leads. */
	stackmap_find(map, ips, nr, false, &part);
	part.hash = hash;
	part.idx = -ENOENT;
	return test_store(map, &part, 1, stackmap_probe(map, &part) ? 0 : STACKMAP_DROP_PROBES);
}

/* Without @hash, the stack has its own. */
static int test_insert_hash(struct ftrace_stackmap *map, unsigned int no, u32 hash)
{
	unsigned long ips[TEST_DEPTHS];

	if (!hash)
		return test_insert(map, no);
	test_fill(ips, no, test_depth(no));
	return test_get_id_hash(map, ips, test_depth(no), hash);
}

/* Makes the last frame of test stack TEST_IRQ all of the entry code. */
static void test_set_entry(struct ftrace_stackmap *map)
{
	map->shared->entry_start = test_frame(TEST_IRQ, test_depth(TEST_IRQ) - 1);
	map->shared->entry_size = 1;
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
	struct stackmap_stack stack = {
		.ips	= ips,
		.nr	= test_fill_irq(ips, ip, no),
		.type	= TRACE_STACK_ID,
	};
	int nr;

	guard(preempt_notrace)();
	nr = stackmap_find_parts(map, &stack, parts);
	if (test_store(map, parts, nr, min(nr, 0) * -1) < 0)
		return -ENOSPC;
	for (int i = 0; i < nr; i++)
		ids[i] = stackmap_id(map, parts[i].idx);
	return 0;
}

/* The record of @id, which @map has made. */
static const struct stackmap_record *test_record_of(struct ftrace_stackmap *map, int id)
{
	return stackmap_record(map, id & STACKMAP_SLOT_MASK);
}

static void test_free_map(void *map)
{
	stackmap_free_all(map);
}

/* A map of 2^@bits stacks that belongs to no instance, and is never replaced. */
static struct ftrace_stackmap *test_map(struct kunit *test, unsigned int bits)
{
	struct ftrace_stackmap *first = stackmap_new(NULL, STACKMAP_BITS_MIN, 0), *map;

	KUNIT_ASSERT_NOT_NULL(test, first);
	first->shared->asked = true;
	map = stackmap_alloc(first->shared, bits, 0);
	if (map)
		stackmap_free(first);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_free_map, map ?: first), 0);
	KUNIT_ASSERT_NOT_NULL(test, map);
	/* Not what is left of the map of an earlier test: a record that is read too early shows. */
	memset(map->arena, TEST_GARBAGE, array_size(map->arena_units, STACKMAP_UNIT));
	return map;
}

static unsigned long test_sum(struct ftrace_stackmap *map, enum stackmap_count what)
{
	return stackmap_sum(map->shared, what);
}

static unsigned long test_successes(struct ftrace_stackmap *map)
{
	return test_sum(map, STACKMAP_SUCCESSES);
}

static unsigned long test_parts(struct ftrace_stackmap *map)
{
	return test_successes(map) + test_sum(map, STACKMAP_MORE_PARTS);
}

static unsigned long test_drops(struct ftrace_stackmap *map)
{
	unsigned long sum = 0;

	for (int why = STACKMAP_DROP_ENTRIES; why < STACKMAP_NR_COUNTS; why++)
		sum += test_sum(map, why);
	return sum;
}

/* The references of all stacks, those of older maps and those that are gone included. */
static unsigned long test_refs(struct ftrace_stackmap *map)
{
	unsigned long sum = map->shared->past.recycled_refs;
	struct stackmap_kept *kept;

	for (u32 i = 0; i < 1U << map->shared->kept_bits; i++) {
		hlist_for_each_entry(kept, &map->shared->kept[i], node)
			sum += atomic_long_read(&kept->rec.ref);
	}
	for (; map; map = map->prev) {
		for (u32 idx = 0; idx < map->nr_slots; idx++)
			sum += map->slots[idx] ? stackmap_ref(map, idx) : 0;
	}
	return sum;
}

/*
 * What holds whenever nobody inserts: @calls are accounted for, references and
 * the parts of the successes agree, every stack is whole and stored once in a map.
 */
static void test_check_map(struct kunit *test, struct ftrace_stackmap *map, unsigned long calls,
			   unsigned int nr_stacks)
{
	unsigned long *seen = kunit_kzalloc(test, BITS_TO_LONGS(nr_stacks) * sizeof(long),
					    GFP_KERNEL);
	const struct stackmap_record *rec;
	unsigned int entries;
	unsigned long no;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	KUNIT_EXPECT_EQ(test, test_refs(map), test_parts(map));
	KUNIT_EXPECT_EQ(test, test_successes(map) + test_drops(map), calls);

	for (; map; map = map->prev) {
		entries = 0;
		bitmap_zero(seen, nr_stacks);
		for (u32 idx = 0; idx < map->nr_slots; idx++) {
			if (!map->slots[idx])
				continue;
			rec = test_record_of(map, idx);
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
	}
}

static void stackmap_same_and_different(struct kunit *test)
{
	struct ftrace_stackmap *map;
	int id[STACKMAP_PROBES];

	for (int hash = 0; hash <= TEST_HASH; hash += TEST_HASH) {
		map = test_map(test, STACKMAP_BITS_MIN);
		for (int no = 0; no < ARRAY_SIZE(id); no++) {
			id[no] = test_insert_hash(map, no, hash);
			KUNIT_ASSERT_GE(test, id[no], 0);
			for (int other = 0; other < no; other++)
				KUNIT_EXPECT_NE(test, id[no], id[other]);
		}
		for (int no = 0; no < ARRAY_SIZE(id); no++)
			KUNIT_EXPECT_EQ(test, test_insert_hash(map, no, hash), id[no]);
		test_check_map(test, map, 2 * ARRAY_SIZE(id), ARRAY_SIZE(id));
	}
}

static void stackmap_bounded_probes(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);

	for (int no = 0; no < STACKMAP_PROBES; no++)
		KUNIT_ASSERT_GE(test, test_insert_hash(map, no, TEST_HASH), 0);

	KUNIT_EXPECT_EQ(test, test_insert_hash(map, STACKMAP_PROBES, TEST_HASH), -ENOSPC);
	KUNIT_EXPECT_EQ(test, test_sum(map, STACKMAP_DROP_PROBES), 1);

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
		KUNIT_EXPECT_EQ(test, test_record_of(map, id[nr])->nr, nr);
		for (int other = 1; other < nr; other++)
			KUNIT_EXPECT_NE(test, id[nr], id[other]);
	}
}

/* Stacks that differ in little, as stacks do: what tells number @no from the others. */
static void test_similar_leaf(unsigned long *ips, unsigned int nr, unsigned int no)
{
	ips[0] += no;
}

static void test_similar_last(unsigned long *ips, unsigned int nr, unsigned int no)
{
	ips[nr - 1] += no * 64UL;
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
	{ "the last frame", test_similar_last },
	{ "two that balance", test_similar_balanced },
	{ "one of two functions", test_similar_paths },
};

KUNIT_ARRAY_PARAM_DESC(stackmap_similar, stackmap_similars, desc);

/*
 * With 2^14 stacks in 2^15 slots a good hash leaves them 0.5 slots from their
 * place on average, and 20 to 50 at most, in one map of a hundred more than 70, in one
 * of a million more than 112.
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
			KUNIT_ASSERT_GE(test, test_get_part(map, ips, depths[d], false, &part), 0);
			/* How far from its place it is. */
			distance = (part.idx - part.hash) & (map->nr_slots - 1);
			sum += distance;
			worst = max(worst, distance);
		}
		KUNIT_ASSERT_EQ(test, atomic_read(&map->entries), map->max_entries);

		kunit_info(test, "depth %u: %u/1000 slots on average, %u at most\n", depths[d],
			   sum * 1000 / map->max_entries, worst);
		KUNIT_EXPECT_LT(test, sum, map->max_entries * 3 / 4);
		KUNIT_EXPECT_LT(test, worst, STACKMAP_PROBES * 7 / 8);
		kunit_release_action(test, test_free_map, map);
	}
}

/*
 * Bit 63 of a frame, and bit 31 of the one after the next: their differences cancel
 * out in a hash that multiplies and rotates, if they are not kept from it by a key.
 */
static void stackmap_forged_stacks(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN + 2);
	struct ftrace_stackmap *other = test_map(test, STACKMAP_BITS_MIN + 2);
	unsigned long ips[TEST_DEPTHS];
	struct stackmap_part part;
	u32 hash;

	for (unsigned int no = 0; no < 2000; no++) {
		test_fill(ips, 1, TEST_DEPTHS);
		for (unsigned int i = 0; i < 11; i++) {
			if (!(no & BIT(i)))
				continue;
			ips[2 * i] ^= BIT(BITS_PER_LONG - 1);
			ips[2 * i + 2] ^= BIT(BITS_PER_LONG / 2 - 1);
		}
		KUNIT_ASSERT_GE(test, test_get_part(map, ips, TEST_DEPTHS, true, &part), 0);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 2000);

	/* A program can't find out in one map what to do in another one. */
	hash = part.hash;
	KUNIT_EXPECT_GE(test, test_get_part(other, ips, TEST_DEPTHS, true, &part), 0);
	KUNIT_EXPECT_NE(test, part.hash, hash);
}

static void stackmap_any_depth(struct kunit *test)
{
	static const unsigned int depths[] = { 1, 64, 65, TEST_MAX_DEPTH };
	unsigned long *ips = kunit_kcalloc(test, TEST_MAX_DEPTH, sizeof(*ips), GFP_KERNEL);
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	const struct stackmap_record *rec;
	unsigned int nr;
	int id;

	KUNIT_ASSERT_NOT_NULL(test, ips);
	for (int i = 0; i < ARRAY_SIZE(depths); i++) {
		nr = depths[i];
		test_fill(ips, 3, nr);
		id = test_get_id(map, ips, nr);
		KUNIT_ASSERT_GE(test, id, 0);
		KUNIT_EXPECT_EQ(test, test_get_id(map, ips, nr), id);

		rec = test_record_of(map, id);
		KUNIT_EXPECT_EQ(test, rec->nr, nr);
		KUNIT_EXPECT_MEMEQ(test, rec->ips, ips, nr * sizeof(*ips));
		KUNIT_EXPECT_EQ(test, stackmap_ref(map, id), 2);

		/* The last frame counts like any other. */
		ips[nr - 1]++;
		KUNIT_EXPECT_NE(test, test_get_id(map, ips, nr), id);
	}
	KUNIT_EXPECT_EQ(test, test_get_id(map, ips, 0), -ENOSPC);
	KUNIT_EXPECT_EQ(test, test_sum(map, STACKMAP_DROP_EMPTY), 1);
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
	KUNIT_EXPECT_EQ(test, test_sum(map, STACKMAP_DROP_ENTRIES), 100);

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
	KUNIT_EXPECT_EQ(test, test_sum(map, STACKMAP_DROP_ARENA), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), stored);

	for (int no = 0; no < stored; no++) {
		test_fill(ips, no, TEST_MAX_DEPTH);
		KUNIT_EXPECT_EQ(test, test_get_id(map, ips, TEST_MAX_DEPTH), id[no]);
		KUNIT_EXPECT_MEMEQ(test, test_record_of(map, id[no])->ips, ips,
				   TEST_MAX_DEPTH * sizeof(*ips));
	}
	KUNIT_EXPECT_EQ(test, test_successes(map), 2 * stored);
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
	} while (!atomic_long_read(&test_record_of(map, first)->ref));

	calls = no + 1;
	for (int i = 0; i < 1000; i++) {
		KUNIT_ASSERT_EQ(test, test_insert(map, 0), first);
		KUNIT_ASSERT_EQ(test, test_insert(map, no), other);
		calls += 2;
		for (int k = 0; k < i % 3; k++, calls++)
			test_insert(map, no);
	}
	/* More than a word of the cache can count. */
	for (int i = 0; i < 20000; i++, calls++)
		test_insert(map, no);
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, first), 1001);
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, other), calls - no - 1000);
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
		KUNIT_EXPECT_EQ(test, stackmap_ref(map, ids[i]), 4);
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
	unsigned long ips[18];
	struct stackmap_stack stack = { .ips = ips, .nr = nr, .type = TRACE_STACK_ID };
	unsigned int first = 0;
	char found[19] = "";
	int nr_parts;

	map->shared->entry_start = 0x1000;
	map->shared->entry_size = 0x200;
	KUNIT_ASSERT_LE(test, nr, ARRAY_SIZE(ips));
	for (int i = 0; i < nr; i++)
		ips[i] = split->frames[i] == 'E' ? 0x1000 + i * 0x11 : i % 2 ? 0xfff : 0x1200;

	scoped_guard(preempt_notrace)
		nr_parts = stackmap_find_parts(map, &stack, parts);
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

	map->shared->entry_size = 0;
	scoped_guard(preempt_notrace)
		nr_parts = stackmap_find_parts(map, &stack, parts);
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
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, irq), 1001);
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, task), 1001);
	KUNIT_EXPECT_EQ(test, test_sum(map, STACKMAP_SPLIT), 1000);
	KUNIT_EXPECT_EQ(test, test_parts(map), 2002);
	test_check_map(test, map, 1002, 8);

	/* Both parts are the same stack, a new one, then a known one. */
	map = test_map(test, STACKMAP_BITS_MIN);
	test_set_entry(map);
	for (int i = 1; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, test_insert_irq(map, i, TEST_IRQ, ids), 0);
		KUNIT_EXPECT_EQ(test, ids[0], ids[1]);
		KUNIT_EXPECT_EQ(test, stackmap_ref(map, ids[0]), 2 * i);
		test_check_map(test, map, i, TEST_IRQ + 1);
	}
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
	KUNIT_EXPECT_EQ(test, test_sum(map, STACKMAP_DROP_ENTRIES), 1);
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, test_insert(map, TEST_IRQ)), 2);
	KUNIT_EXPECT_EQ(test, test_sum(map, STACKMAP_SPLIT), 0);

	KUNIT_EXPECT_EQ(test, test_insert_irq(map, 1, max - 1, ids), 0);
	KUNIT_EXPECT_EQ(test, test_sum(map, STACKMAP_SPLIT), 1);
	test_check_map(test, map, max + 3, max);
}

#define TEST_MAX_WRITERS	8
#define TEST_TIMER_NS		(50 * NSEC_PER_USEC)

/* A thread and, on the same CPU, a timer that interrupts it; both insert. */
struct test_writer {
	struct task_struct	*task;
	atomic_t		*start;	/* number of writers that are not ready yet, or -1: stop */
	struct hrtimer		timer;
	struct completion	done;
	struct ftrace_stackmap	*map;	/* to insert into, or */
	struct trace_array	*tr;	/* the instance whose map to use */
	unsigned int		nr_stacks;
	unsigned int		passes;
	bool			irq;	/* insert each as what an interrupt has hit */
	bool			record;	/* record events of all kinds */
	bool			swap;	/* record events; the timer swaps buffers, as it seems */
	unsigned long		calls;
	unsigned long		irq_calls;
	unsigned long		errors;
};

/* Whether @id leads to stack @no. */
static bool test_leads_to(struct ftrace_stackmap *map, int id, unsigned int no)
{
	const struct stackmap_record *rec = test_record_of(map, id);

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

static atomic_t test_fulls;

/* Takes what has frames. */
static bool test_write_full(struct trace_buffer *buffer, unsigned int trace_ctx,
			    const struct stackmap_stack *stack)
{
	atomic_inc(&test_fulls);
	return stack->nr;
}

/*
 * The event of stack @no, TRACE_STACK_SPLIT for what an interrupt has hit there.
 * The number looks like a preempt count.
 */
static void test_write(struct trace_array *tr, unsigned int no, int type)
{
	/* A snapshot may swap the buffers. */
	struct trace_buffer *buffer = data_race(READ_ONCE(tr->array_buffer.buffer));
	unsigned long ips[2 * TEST_DEPTHS + 1];
	struct stackmap_stack stack = {
		.ips	= ips,
		.nr	= test_depth(no),
		.type	= type,
		.tgid	= TEST_TGID,
		.cookie	= TEST_COOKIE,
	};

	if (type == TRACE_STACK_SPLIT)
		stack.nr = test_fill_irq(ips, ~no, no);
	else
		test_fill(ips, no, stack.nr);

	guard(preempt_notrace)();
	if (type == TRACE_USER_STACK_ID || type == TRACE_USER_UNWIND_STACK_ID)
		ftrace_stackmap_record(tr, buffer, no & 0xff, &stack, test_write_full);
	else
		trace_record_stack(tr, buffer, no & 0xff, ips, stack.nr);
}

static bool test_write_one(struct test_writer *w, unsigned int no)
{
	static const int types[] = {
		TRACE_STACK_ID, TRACE_STACK_SPLIT, TRACE_STACK_ID, TRACE_USER_STACK_ID,
	};
	struct ftrace_stackmap *map = w->map;

	guard(preempt_notrace)();
	if (w->record || w->swap) {
		test_write(w->tr, no, w->record ? types[no % ARRAY_SIZE(types)] : TRACE_STACK_ID);
		return true;
	}
	if (w->tr)
		map = rcu_dereference_sched(w->tr->stackmap);
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

	while (w->calls < w->passes * w->nr_stacks && !atomic_read(w->start)) {
		if (!test_write_one(w, w->calls % w->nr_stacks))
			errors++;
		WRITE_ONCE(w->calls, w->calls + 1);
		if (w->record && w->calls % 64 == 0)
			usleep_range(50, 100);
		else if (w->calls % 4096 == 0)
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

static unsigned int stackmap_test_hits = 24000000;
module_param_named(hits, stackmap_test_hits, uint, 0444);
MODULE_PARM_DESC(hits, "how many stacks each CPU asks for where most are known, at most");

struct test_race {
	const char		*desc;
	unsigned int		nr_stacks;
	unsigned int		rounds;	/* each with a map of its own */
	unsigned int		passes;	/* at most, or 0: what stackmap_test_hits makes of it */
	bool			irq;
	bool			fill;	/* there are too many stacks for the map */
};

static const struct test_race stackmap_races[] = {
	{ "every slot is fought for", 700, 200, 3 },
	{ "the map fills up", 5000, 20, 3, .fill = true },
	{ "interrupted hits", 8, 1, 0 },
	{ "interrupted evictions", 900, 1, 0 },
	{ "split stacks", 700, 100, 3, true },
	{ "split stacks fill the map", 5000, 20, 3, true, .fill = true },
};

KUNIT_ARRAY_PARAM_DESC(stackmap_race, stackmap_races, desc);

static void stackmap_concurrent_inserts(struct kunit *test)
{
	const struct test_race *race = test->param_value;
	struct test_writer model = {
		.nr_stacks	= race->nr_stacks,
		.passes		= race->passes ?: stackmap_test_hits / race->nr_stacks,
		.irq		= race->irq,
	};
	unsigned long calls = 0, irq_calls = 0, drops = 0, round_calls;
	struct test_writer *w = test_writers(test);
	struct ftrace_stackmap *map;
	int rounds = race->rounds;
	atomic_t start;
	int nr;

	for (int round = 0; round < rounds; round++) {
		/* With room for what many CPUs leave in the arena when they lose. */
		map = test_map(test, STACKMAP_BITS_MIN + 2 * !race->fill);
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
		if (!race->fill)
			KUNIT_ASSERT_EQ(test, drops, 0);
		if (race->irq)
			KUNIT_EXPECT_GT(test, test_sum(map, STACKMAP_SPLIT), 0);
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

static void test_restore_bits(void *bits)
{
	ftrace_stackmap_bits = (unsigned long)bits;
}

static struct ftrace_stackmap *test_current(struct trace_array *tr)
{
	return rcu_dereference_protected(tr->stackmap, true);
}

static int test_set_option(struct trace_array *tr, const char *name)
{
	char option[20];

	strscpy(option, name);
	return trace_set_options(tr, option);
}

/* An instance of its own, with the smallest map, the option on and recording off. */
static struct trace_array *test_instance(struct kunit *test, u32 gen)
{
	struct trace_array *tr = trace_array_get_by_name("stackmap_kunit", NULL);

	KUNIT_ASSERT_NOT_NULL(test, tr);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_put_instance, tr), 0);
	KUNIT_EXPECT_NULL(test, rcu_access_pointer(tr->stackmap));

	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_restore_bits,
							(void *)(long)ftrace_stackmap_bits), 0);
	ftrace_stackmap_bits = STACKMAP_BITS_MIN;
	tr->stackmap_gen = gen;
	KUNIT_ASSERT_EQ(test, test_set_option(tr, "stackmap"), 0);
	KUNIT_ASSERT_NOT_NULL(test, test_current(tr));
	tracer_tracing_off(tr);
	return tr;
}

static int test_reset(struct trace_array *tr)
{
	guard(mutex)(&trace_types_lock);
	return stackmap_reset(tr);
}

/* What an insert into a map that is nearly full has begun is over then, without a pause. */
static void test_settle(struct trace_array *tr)
{
	struct stackmap_shared *shared = test_current(tr)->shared;

	irq_work_sync(&shared->nearly_full);
	flush_delayed_work(&shared->work);
	shared->not_before = jiffies;
}

static void test_replace(struct kunit *test, struct trace_array *tr, unsigned int times)
{
	while (times--)
		KUNIT_ASSERT_EQ(test, stackmap_replace(test_current(tr)->shared), 0);
}

static int test_instance_id(struct trace_array *tr, unsigned int no)
{
	return test_insert(test_current(tr), no);
}

/* Whether @id stands for stack @no, which has to be whole then. */
static bool test_resolves(struct kunit *test, struct trace_array *tr, int id, unsigned int no)
{
	const struct stackmap_record *rec;

	guard(rcu)();
	rec = stackmap_lookup(rcu_dereference(tr->stackmap), id);
	if (!rec)
		return false;
	KUNIT_EXPECT_EQ(test, rec->nr, test_depth(no));
	KUNIT_EXPECT_EQ(test, rec->ips[0], test_frame(no, 0));
	return true;
}

static void test_record_frames(struct trace_array *tr, const unsigned long *ips, unsigned int nr)
{
	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		trace_record_stack(tr, tr->array_buffer.buffer, tracing_gen_ctx(), ips, nr);
	tracer_tracing_off(tr);
}

static void test_record(struct trace_array *tr, unsigned int no, int type)
{
	tracer_tracing_on(tr);
	test_write(tr, no, type);
	tracer_tracing_off(tr);
}

static void test_record_event(struct trace_array *tr, unsigned int no)
{
	test_record(tr, no, TRACE_STACK_ID);
}

static struct ring_buffer_event *test_next_event(struct trace_buffer *buffer)
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
	return test_iter(test, tr, test_next_event(tr->array_buffer.buffer));
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

	test_set_entry(test_current(tr));
	test_record(tr, 7, TRACE_STACK_SPLIT);
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
static int test_join(struct ftrace_stackmap *map, struct ring_buffer_event *event,
		     unsigned long *ips, unsigned int *nrs)
{
	const struct stack_split_entry *entry = ring_buffer_event_data(event);
	int parts = stackmap_event_ids(&entry->ent, ring_buffer_event_length(event));
	const struct stackmap_record *rec;

	for (int i = 0; i < parts; i++) {
		if (i)
			*ips++ = i == 1 ? entry->ip : entry->rest[2 * i - 4];
		rec = test_record_of(map, stackmap_event_id(&entry->ent, i));
		memcpy(ips, rec->ips, flex_array_size(rec, ips, rec->nr));
		ips += rec->nr;
		nrs[i] = rec->nr;
	}
	return parts;
}

static void test_record_split(struct kunit *test, struct trace_array *tr,
			      const unsigned long *ips, unsigned int nr, unsigned long entry)
{
	struct ftrace_stackmap *map = test_current(tr);
	unsigned int nrs[STACKMAP_MAX_PARTS], joined_nrs[STACKMAP_MAX_PARTS];
	struct ring_buffer_event *event;
	unsigned long joined[64];
	unsigned int parts;

	test_record_frames(tr, ips, nr);
	KUNIT_ASSERT_EQ(test, test_drops(map), 0);
	parts = test_split_simply(ips, nr, entry, nrs);
	event = test_next_event(tr->array_buffer.buffer);
	KUNIT_ASSERT_NOT_NULL(test, event);
	KUNIT_ASSERT_EQ(test, parts, test_join(map, event, joined, joined_nrs));
	KUNIT_ASSERT_MEMEQ(test, nrs, joined_nrs, parts * sizeof(*nrs));
	KUNIT_ASSERT_MEMEQ(test, ips, joined, nr * sizeof(*ips));
}

/* All stacks of a few frames: whatever the CPU remembers of others, each is split as if alone. */
static void stackmap_split_all(struct kunit *test)
{
	static const unsigned long frames[] = { 0x1000, 1, 2 };
	struct trace_array *tr = test_instance(test, 0);
	unsigned int nr, stacks = 1;
	struct ftrace_stackmap *map;
	unsigned long ips[9];

	/* One that is not replaced. */
	ftrace_stackmap_bits = STACKMAP_BITS_DEFAULT;
	test_replace(test, tr, STACKMAP_BITS_DEFAULT - STACKMAP_BITS_MIN);
	map = test_current(tr);
	map->shared->asked = true;
	map->shared->entry_start = frames[0];
	map->shared->entry_size = 1;
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

	KUNIT_EXPECT_EQ(test, test_refs(map), test_parts(map));
}

/* An event of three parts and more, and a stack that has too many. */
static void stackmap_split_often(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);
	struct trace_iterator *iter;
	unsigned long ips[4 * STACKMAP_MAX_PARTS];
	unsigned int nr;

	map->shared->entry_start = 0x1000;
	map->shared->entry_size = 1;
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
	KUNIT_EXPECT_EQ(test, test_sum(map, STACKMAP_DROP_PARTS), 1);
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
	int old = test_instance_id(tr, 1);

	KUNIT_EXPECT_EQ(test, test_set_option(tr, "nostackmap"), 0);
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, old, 1));
	test_record_event(tr, 1);
	KUNIT_EXPECT_EQ(test, test_consume(test, tr)->ent->type, TRACE_STACK);
	KUNIT_EXPECT_EQ(test, test_successes(test_current(tr)), 1);

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

/* Swap the buffers of all CPUs, and of one. */
static void test_swap_buffers(struct trace_array *tr)
{
	tracing_snapshot_instance(tr);
	if (IS_ENABLED(CONFIG_RING_BUFFER_ALLOW_SWAP)) {
		guard(irqsave)();
		update_max_tr_single(tr, current, smp_processor_id());
	}
}

static struct trace_buffer *test_snapshot_buffer(struct trace_array *tr)
{
	return tr->snapshot_buffer.buffer;
}

static void test_end_snapshot(struct trace_array *tr)
{
	tracing_disarm_snapshot(tr);
	test_wait_for_inotify(tr);
}
#else
static void test_take_snapshot(struct kunit *test, struct trace_array *tr) { }
static void test_swap_buffers(struct trace_array *tr) { }
static struct trace_buffer *test_snapshot_buffer(struct trace_array *tr) { return NULL; }
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
	KUNIT_EXPECT_EQ(test, stackmap_replace(test_current(tr)->shared), 0);
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

/* The references of all stacks, gone ones included, are the parts of all successes. */
static void test_check_recycling(struct kunit *test, struct trace_array *tr)
{
	struct stackmap_shared *shared;
	struct ftrace_stackmap *map;
	struct stackmap_kept *kept;
	unsigned int nr = 0;
	size_t size = 0;

	test_settle(tr);
	map = test_current(tr);
	shared = map->shared;
	KUNIT_EXPECT_EQ(test, test_refs(map), test_parts(map));
	for (u32 i = 0; i < 1U << shared->kept_bits; i++) {
		hlist_for_each_entry(kept, &shared->kept[i], node) {
			KUNIT_EXPECT_FALSE(test, kept->used);
			KUNIT_EXPECT_PTR_EQ(test, stackmap_lookup(map, kept->id), &kept->rec);
			size += ksize(kept);
			nr++;
		}
	}
	KUNIT_EXPECT_EQ(test, nr, shared->past.nr_kept);
	KUNIT_EXPECT_EQ(test, size, shared->past.kept_size);
}

static unsigned long test_rotations(struct trace_array *tr)
{
	return test_current(tr)->shared->past.rotations;
}

static unsigned int test_nr_kept(struct trace_array *tr)
{
	return test_current(tr)->shared->past.nr_kept;
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
	struct trace_entry *ent;
	unsigned int full = 0;
	bool user;
	int nr;

	guard(rcu)();
	while ((event = test_next_event(buffer))) {
		ent = ring_buffer_event_data(event);
		nr = stackmap_event_ids(ent, ring_buffer_event_length(event));
		full += !nr;
		for (int i = 0; i < nr; i++) {
			rec = stackmap_lookup(test_current(tr), stackmap_event_id(ent, i));
			KUNIT_ASSERT_NOT_NULL(test, rec);
			KUNIT_EXPECT_EQ(test, (rec->ips[0] >> 8) & 0xff,
					i + 1 < nr ? TEST_IRQ : ent->preempt_count);
			KUNIT_EXPECT_EQ(test, rec->nr, test_depth(rec->ips[0] >> 8));
			user = ent->type != TRACE_STACK_ID && ent->type != TRACE_STACK_SPLIT;
			KUNIT_EXPECT_EQ(test, rec->user, user);
		}
	}
	return full;
}

static void test_resize(struct kunit *test, struct trace_buffer *buffer, unsigned int pages)
{
	KUNIT_ASSERT_GE(test, ring_buffer_resize(buffer, pages * PAGE_SIZE, RING_BUFFER_ALL_CPUS),
			0);
}

/* Whether the work was asked for. It does not run before test_settle(). */
static bool test_asked(struct trace_array *tr)
{
	irq_work_sync(&test_current(tr)->shared->nearly_full);
	return test_current(tr)->shared->asked;
}

/* Hits, and new stacks in a map that is less than 3/4 full, queue no work. */
static void stackmap_idle(struct kunit *test)
{
	unsigned long *ips = kunit_kcalloc(test, TEST_MAX_DEPTH, sizeof(*ips), GFP_KERNEL);
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);
	struct stackmap_shared *shared = map->shared;
	unsigned int mark = map->max_entries / 4 * 3;

	KUNIT_ASSERT_NOT_NULL(test, ips);
	shared->not_before = jiffies + 1000 * HZ;
	for (int i = 0; i < 10000; i++)
		KUNIT_ASSERT_GE(test, test_instance_id(tr, i % mark), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), mark);
	KUNIT_EXPECT_FALSE(test, test_asked(tr));
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 0);

	shared->not_before = jiffies + 1000 * HZ;
	test_instance_id(tr, mark);
	KUNIT_EXPECT_TRUE(test, test_asked(tr));
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 0);
	test_settle(tr);
	KUNIT_EXPECT_EQ(test, test_rotations(tr), 1);
	KUNIT_EXPECT_FALSE(test, test_asked(tr));

	/* The arena has a mark, too. */
	map = test_current(tr);
	mark = map->arena_units / 4 * 3;
	shared->not_before = jiffies + 1000 * HZ;
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
	struct stackmap_shared *shared = test_current(tr)->shared;
	unsigned int max = 10000, stored = 0;
	struct ftrace_stackmap *map;
	int *ids;

	ids = kunit_kcalloc(test, max, sizeof(*ids), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ids);
	ftrace_stackmap_bits = STACKMAP_BITS_MIN + 3;
	for (int no = 0; no < max; no++) {
		map = test_current(tr);
		ids[no] = test_instance_id(tr, no);
		if (!irq_work_is_busy(&shared->nearly_full) && !shared->asked)
			continue;
		test_settle(tr);
		KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), map->max_entries / 4 * 3 + 1);
		KUNIT_EXPECT_EQ(test, test_current(tr)->max_entries, 2 * map->max_entries);
		KUNIT_EXPECT_NULL(test, map->cache);
		stored += atomic_read(&map->entries);
	}
	KUNIT_EXPECT_EQ(test, test_current(tr)->max_entries, 1U << ftrace_stackmap_bits);
	KUNIT_EXPECT_EQ(test, shared->past.rotations, 3);
	KUNIT_EXPECT_EQ(test, shared->past.nr_kept + shared->past.recycled, 0);
	for (int no = 0; no < max; no++)
		KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, ids[no], no));
	test_check_map(test, test_current(tr), max, max);

	/* The next one is as large as it may be then, and those that it grew from go. */
	map = test_current(tr);
	ftrace_stackmap_bits = STACKMAP_BITS_MIN;
	test_replace(test, tr, 1);
	KUNIT_EXPECT_EQ(test, test_current(tr)->max_entries, 1U << STACKMAP_BITS_MIN);
	KUNIT_EXPECT_PTR_EQ(test, test_current(tr)->prev, map);
	KUNIT_EXPECT_NULL(test, map->prev);
	KUNIT_EXPECT_EQ(test, shared->past.recycled, stored);
	KUNIT_EXPECT_EQ(test, shared->past.recycled_refs, stored);
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, ids[stored - 1], stored - 1));
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, ids[stored], stored));
}

/* Stacks that no event refers to go, with their references. Those that were in caches count. */
static void stackmap_recycles(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct stackmap_shared *shared = test_current(tr)->shared;
	const struct stackmap_record *rec;
	int ids[10];

	for (int no = 0; no < ARRAY_SIZE(ids); no++) {
		for (int i = 0; i <= no; i++)
			ids[no] = test_instance_id(tr, no);
		if (no < 3)
			test_record_event(tr, no);
	}
	test_replace(test, tr, 1);
	KUNIT_EXPECT_EQ(test, shared->past.nr_kept + shared->past.recycled, 0);
	for (int i = 0; i < 2; i++) {
		test_replace(test, tr, 1);
		KUNIT_EXPECT_EQ(test, shared->past.nr_kept, 3);
		KUNIT_EXPECT_EQ(test, shared->past.recycled, 7);
		KUNIT_EXPECT_EQ(test, shared->past.recycled_refs, 4 + 5 + 6 + 7 + 8 + 9 + 10);
		for (int no = 0; no < ARRAY_SIZE(ids); no++)
			KUNIT_EXPECT_EQ(test, test_resolves(test, tr, ids[no], no), no < 3);
		for (int no = 0; no < 3; no++) {
			rec = stackmap_lookup(test_current(tr), ids[no]);
			KUNIT_EXPECT_EQ(test, atomic_long_read(&rec->ref), no + 2);
		}
		test_check_recycling(test, tr);
	}

	ring_buffer_reset(tr->array_buffer.buffer);
	test_replace(test, tr, 1);
	KUNIT_EXPECT_EQ(test, shared->past.nr_kept, 0);
	KUNIT_EXPECT_EQ(test, shared->past.recycled, ARRAY_SIZE(ids));
	test_check_recycling(test, tr);
}

/* A walk that is stopped leaves no copies, and those that were there before stay. */
static void stackmap_stops(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct stackmap_shared *shared = test_current(tr)->shared;
	struct ftrace_stackmap *map;

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	for (int no = 0; no < 100; no++)
		test_record_event(tr, no);
	test_replace(test, tr, 1);
	for (int i = 0; i < 2; i++) {
		map = test_current(tr);
		shared->stop = true;
		KUNIT_EXPECT_EQ(test, stackmap_replace(shared), -EINTR);
		shared->stop = false;
		KUNIT_EXPECT_PTR_EQ(test, test_current(tr), map);
		KUNIT_EXPECT_EQ(test, shared->past.nr_kept, i ? 100 : 0);
		KUNIT_EXPECT_EQ(test, shared->past.rotations, 1 + i);
		test_check_recycling(test, tr);
		test_replace(test, tr, 1);
	}
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, tr->array_buffer.buffer), 0);
}

/* The ids of all events are found, a definition without an event that has its id included. */
static void stackmap_walks_all_types(struct kunit *test)
{
	static const int types[] = {
		TRACE_STACK_ID, TRACE_STACK_DEF, TRACE_USER_STACK_ID, TRACE_USER_STACK_DEF,
		TRACE_USER_UNWIND_STACK_ID, TRACE_PRINT,
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

/* More than may be kept is recorded in full, until the buffer has moved on. */
static void stackmap_keeps_no_more(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct stackmap_shared *shared = test_current(tr)->shared;
	struct ftrace_stackmap *map;
	unsigned long full;
	unsigned int no;
	size_t size;

	/* A buffer that holds them all. */
	test_resize(test, buffer, 128);
	for (no = 0; no < 100000 && !test_full(tr); no++) {
		test_record_event(tr, no);
		if (no % 64 == 0)
			test_settle(tr);
	}
	KUNIT_EXPECT_GT(test, test_full(tr), 0);
	test_check_recycling(test, tr);

	/* The stacks that there would be one more of are not kept. */
	map = test_current(tr);
	size = shared->past.kept_size;
	kunit_info(test, "%u stacks, %u kept, %zu bytes\n", no, shared->past.nr_kept, size);
	KUNIT_EXPECT_GT(test, shared->past.nr_kept, 2 * map->max_entries);
	KUNIT_EXPECT_EQ(test, stackmap_replace(shared), -ENOSPC);
	KUNIT_EXPECT_EQ(test, shared->past.kept_size, size);
	test_check_recycling(test, tr);

	/* An insert asks again, but not at once. */
	test_record_event(tr, ++no);
	irq_work_sync(&shared->nearly_full);
	flush_delayed_work(&shared->work);
	KUNIT_EXPECT_FALSE(test, shared->asked);
	KUNIT_EXPECT_TRUE(test, time_after(shared->not_before, jiffies + HZ / 2));
	test_record_event(tr, ++no);
	irq_work_sync(&shared->nearly_full);
	KUNIT_EXPECT_TRUE(test, shared->asked && delayed_work_pending(&shared->work));
	full = test_full(tr);
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, buffer), full);

	/* The events are gone. */
	test_settle(tr);
	KUNIT_EXPECT_PTR_NE(test, test_current(tr), map);
	test_record_event(tr, ++no);
	KUNIT_EXPECT_EQ(test, test_full(tr), full);
	KUNIT_EXPECT_EQ(test, shared->past.nr_kept, 0);
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

	atomic_set(&test_fulls, 0);
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
	test_check_map(test, test_current(tr), calls, model.nr_stacks);
	KUNIT_EXPECT_GE(test, test_rotations(tr), 12);
	full = test_all_resolve(test, tr, tr->array_buffer.buffer);
	if (load->swap)
		full += test_all_resolve(test, tr, test_snapshot_buffer(tr));
	KUNIT_EXPECT_LE(test, full + atomic_read(&test_fulls), test_drops(test_current(tr)));
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

	KUNIT_EXPECT_EQ(test, stackmap_event_ids(iter->ent, iter->ent_size), 1);
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

static void test_expect_no_event(struct kunit *test, struct trace_array *tr)
{
	KUNIT_EXPECT_EQ(test, ring_buffer_entries(tr->array_buffer.buffer), 0);
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

	KUNIT_EXPECT_EQ(test, test_successes(test_current(tr)), 4);
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

static void stackmap_defines_anew(struct kunit *test)
{
	struct trace_array *tr = test_defining_instance(test);

	test_expect_defined(test, tr);
	/* Set again. */
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
	unsigned int nr = test_current(tr)->nr_slots;
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
			__set_bit(stackmap_event_id(ent, 0) & (nr - 1), known);
			break;
		case TRACE_STACK_ID:
			bad += !test_bit(stackmap_event_id(ent, 0) & (nr - 1), known);
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
	struct ftrace_stackmap *map = test_current(tr);
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
	KUNIT_EXPECT_EQ(test, full, test_sum(map, STACKMAP_DROP_BUFFER));
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
	struct ftrace_stackmap *map = test_current(tr);
	unsigned long ips[2 * TEST_DEPTHS + 1];
	struct stack_entry *entry;
	unsigned int nr;

	test_set_entry(map);
	map->shared->asked = true;
	map->max_entries = 1;
	nr = test_fill_irq(ips, ~7UL, 7);
	test_record_frames(tr, ips, nr);
	/* The first part was stored and defined when the second one failed. */
	test_expect_def(test, tr, TEST_IRQ);
	entry = (void *)test_expect_event(test, tr, TRACE_STACK)->ent;
	KUNIT_ASSERT_EQ(test, entry->size, nr);
	KUNIT_EXPECT_MEMEQ(test, entry->caller, ips, nr * sizeof(*ips));
	test_expect_no_event(test, tr);
	KUNIT_EXPECT_EQ(test, test_successes(map), 0);
	KUNIT_EXPECT_EQ(test, test_drops(map), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 1);
}

static void test_record_user(struct trace_array *tr, const unsigned long *ips, unsigned int nr)
{
	struct stackmap_stack stack = { .ips = ips, .nr = nr, .type = TRACE_USER_STACK_ID };
	struct trace_buffer *buffer = tr->array_buffer.buffer;

	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		ftrace_stackmap_record(tr, buffer, tracing_gen_ctx(), &stack, test_write_full);
	tracer_tracing_off(tr);
}

static bool test_is_user(struct trace_array *tr, int id)
{
	const struct stackmap_record *rec;

	guard(rcu)();
	rec = stackmap_lookup(rcu_dereference(tr->stackmap), id);
	return rec && rec->user;
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
	KUNIT_EXPECT_EQ(test, test_successes(map), 8);
	KUNIT_EXPECT_EQ(test, test_refs(map), 8);

	iter = test_expect_event(test, tr, TRACE_USER_STACK_ID);
	entry = (void *)iter->ent;
	KUNIT_EXPECT_EQ(test, iter->ent_size, sizeof(*entry));
	KUNIT_EXPECT_EQ(test, entry->tgid, TEST_TGID);
	KUNIT_EXPECT_TRUE(test, test_is_user(tr, entry->stack_id));
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, entry->stack_id, 8));
	id = entry->stack_id;
	snprintf(text, sizeof(text), "<user_stack_id %d>\n =>  <", id);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), text));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(8));

	iter = test_expect_event(test, tr, TRACE_STACK_ID);
	kernel = stackmap_event_id(iter->ent, 0);
	KUNIT_EXPECT_NE(test, kernel, id);
	KUNIT_EXPECT_FALSE(test, test_is_user(tr, kernel));
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
	KUNIT_EXPECT_TRUE(test, test_is_user(tr, entry->stack_id));
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
	struct stackmap_stack stack = { .type = TRACE_USER_STACK_ID };
	struct ftrace_stackmap *map = test_current(tr);

	atomic_set(&test_fulls, 0);
	map->shared->asked = true;
	map->max_entries = 0;
	test_record(tr, 9, TRACE_USER_STACK_ID);
	KUNIT_EXPECT_EQ(test, test_sum(map, STACKMAP_DROP_ENTRIES), 1);
	test_record_user(tr, NULL, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&test_fulls), 2);
	KUNIT_EXPECT_EQ(test, test_drops(map), 1);
	KUNIT_EXPECT_EQ(test, test_successes(map), 0);

	KUNIT_EXPECT_EQ(test, test_set_option(tr, "nostackmap"), 0);
	scoped_guard(preempt_notrace)
		KUNIT_EXPECT_FALSE(test, ftrace_stackmap_record(tr, buffer, 0, &stack,
								test_write_full));
	KUNIT_EXPECT_EQ(test, atomic_read(&test_fulls), 2);
	test_expect_no_event(test, tr);
}

static void stackmap_defines_user(struct kunit *test)
{
	struct trace_array *tr = test_defining_instance(test);
	struct stack_def_entry *def;
	struct trace_iterator *iter;

	test_expect_defined(test, tr);
	test_record(tr, 9, TRACE_USER_STACK_ID);
	test_record(tr, 9, TRACE_USER_UNWIND_STACK_ID);
	iter = test_expect_event(test, tr, TRACE_USER_STACK_DEF);
	def = (void *)iter->ent;
	KUNIT_EXPECT_TRUE(test, test_is_user(tr, def->stack_id));
	KUNIT_EXPECT_EQ(test, def->size, test_depth(9));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(9));
	KUNIT_EXPECT_TRUE(test, ftrace_stackmap_hidden(iter));
	iter = test_expect_event(test, tr, TRACE_USER_STACK_ID);
	KUNIT_EXPECT_EQ(test, stackmap_event_id(iter->ent, 0), def->stack_id);
	iter = test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	KUNIT_EXPECT_EQ(test, stackmap_event_id(iter->ent, 0), def->stack_id);
	test_expect_no_event(test, tr);
}

/* The second part fails after the event is reserved: none is counted. */
static void stackmap_store_fails(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	struct stackmap_part parts[STACKMAP_MAX_PARTS];
	unsigned long ips[2 * TEST_DEPTHS + 1];
	struct stackmap_stack stack = {
		.ips	= ips,
		.nr	= test_fill_irq(ips, 1, 7),
		.type	= TRACE_STACK_ID,
	};
	unsigned int nr;

	test_set_entry(map);
	guard(preempt_notrace)();
	KUNIT_ASSERT_EQ(test, stackmap_find_parts(map, &stack, parts), 2);
	map->max_entries = 1;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 2), STACKMAP_DROP_ENTRIES);
	KUNIT_EXPECT_GE(test, parts[0].idx, 0);
	KUNIT_EXPECT_LT(test, parts[1].idx, 0);
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, parts[0].idx), 0);
	KUNIT_EXPECT_EQ(test, test_successes(map), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 1);

	/* Stored meanwhile by another context: no space is taken. */
	map->max_entries = 2;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 2), 0);
	nr = atomic_read(&map->tail);
	parts[0].idx = -ENOENT;
	parts[1].idx = -ENOENT;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 2), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->tail), nr);
	KUNIT_EXPECT_EQ(test, test_refs(map), 0);

	/* Other contexts take the space after the look-up. */
	map->max_entries = 3;
	test_fill(ips, 8, test_depth(8));
	KUNIT_ASSERT_EQ(test, stackmap_find(map, ips, test_depth(8), false, parts), 0);
	nr = map->arena_units;
	map->arena_units = atomic_read(&map->tail) + 1;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 1), STACKMAP_DROP_ARENA);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 2);
	map->arena_units = nr;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 1), 0);
}

static void stackmap_recording_off(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);

	test_write(tr, 1, TRACE_STACK_ID);
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
	struct ftrace_stackmap *map = test_current(tr);
	struct trace_buffer *buffers[2];
	unsigned long ips[TEST_DEPTHS];

	KUNIT_ASSERT_NOT_NULL(test, other);
	test_take_snapshot(test, tr);
	buffers[0] = other->array_buffer.buffer;
	/* It was the instance's when the event was begun. */
	buffers[1] = test_snapshot_buffer(tr);
	test_fill(ips, 1, test_depth(1));
	for (int i = 0; i < 2 && buffers[i]; i++) {
		ring_buffer_record_on(buffers[i]);
		scoped_guard(preempt_notrace)
			trace_record_stack(tr, buffers[i], tracing_gen_ctx(), ips, test_depth(1));
		KUNIT_EXPECT_EQ(test, ring_buffer_entries(buffers[i]), 1);
		KUNIT_EXPECT_EQ(test, test_sum(map, STACKMAP_DROP_BUFFER), i + 1);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 0);
	test_end_snapshot(tr);
	test_put_instance(other);
}

/* Writers must never see memory of a map that a reset has freed. */
static void stackmap_reset_under_load(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct test_writer model = { .tr = tr, .nr_stacks = 700, .passes = 20000 };
	struct test_writer *w = test_writers(test);
	unsigned int resets = 0;
	atomic_t start;
	int nr;

	model.passes = clamp(stackmap_test_hits / model.nr_stacks, 3000U, model.passes);
	nr = test_start_writers(test, w, &model, &start);
	for (; !completion_done(&w[0].done); resets++)
		KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	for (int i = 0; i < nr; i++) {
		wait_for_completion(&w[i].done);
		KUNIT_EXPECT_EQ(test, w[i].errors, 0);
	}
	kunit_info(test, "%u resets\n", resets);
	KUNIT_EXPECT_GT(test, tr->stackmap_gen, 0);
	KUNIT_EXPECT_LE(test, tr->stackmap_gen, resets);
}

static struct kunit_case stackmap_test_cases[] = {
	KUNIT_CASE(stackmap_same_and_different),
	KUNIT_CASE(stackmap_bounded_probes),
	KUNIT_CASE(stackmap_prefixes),
	KUNIT_CASE_PARAM(stackmap_similar_stacks, stackmap_similar_gen_params),
	KUNIT_CASE(stackmap_forged_stacks),
	KUNIT_CASE(stackmap_any_depth),
	KUNIT_CASE(stackmap_full_table),
	KUNIT_CASE(stackmap_full_arena),
	KUNIT_CASE(stackmap_ref_eviction),
	KUNIT_CASE(stackmap_recall),
	KUNIT_CASE_PARAM(stackmap_concurrent_inserts, stackmap_race_gen_params),
	KUNIT_CASE_PARAM(stackmap_parts, stackmap_split_gen_params),
	KUNIT_CASE(stackmap_split_counts),
	KUNIT_CASE(stackmap_split_whole),
	KUNIT_CASE(stackmap_split_event),
	KUNIT_CASE(stackmap_split_all),
	KUNIT_CASE(stackmap_split_often),
	KUNIT_CASE(stackmap_store_fails),
	KUNIT_CASE(stackmap_recording_off),
	KUNIT_CASE(stackmap_foreign_buffer),
	KUNIT_CASE(stackmap_reset_generation),
	KUNIT_CASE(stackmap_reset_frees),
	KUNIT_CASE(stackmap_reset_unused),
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
	KUNIT_CASE(stackmap_keeps_no_more),
	KUNIT_CASE_PARAM(stackmap_replaced_under_load, stackmap_load_gen_params),
	KUNIT_CASE(stackmap_keeps_copy),
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
