// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of stacks that differ in little, by chance or on purpose: the hash spreads them,
 * and they are told apart.
 */
#include <linux/slab.h>

#include "trace_stackmap_map_kunit.h"

#define TEST_SIMILAR_BITS	14
#define TEST_MAX_DEPTH		1024

/* Return address number @i, where x86_64 has its kernel text (cut off on 32 bits). */
static unsigned long test_kernel_text(unsigned int i)
{
	return -0x7f000000UL + 0x4d5c3 * (i + 1);
}

static int test_get_key(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
			struct stackmap_key *key)
{
	*key = (struct stackmap_key){ };

	guard(preempt_notrace)();
	return test_store(map, key, stackmap_find(map, ips, nr, key));
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
	struct stackmap_key key;
	u32 distance, sum, worst;

	for (int d = 0; d < ARRAY_SIZE(depths); d++) {
		map = test_alloc_map(test, TEST_SIMILAR_BITS);
		sum = 0;
		worst = 0;
		for (unsigned int no = 0; no < map->max_entries; no++) {
			for (unsigned int i = 0; i < depths[d]; i++)
				ips[i] = test_kernel_text(i);
			similar->change(ips, depths[d], no);
			KUNIT_ASSERT_GE(test, test_get_key(map, ips, depths[d], &key), 0);
			/* How far from its place it is. */
			distance = (key.idx - key.hash) & (map->nr_slots - 1);
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
	struct ftrace_stackmap *map = test_alloc_map(test, STACKMAP_BITS_MIN + 2);
	struct ftrace_stackmap *other = test_alloc_map(test, STACKMAP_BITS_MIN + 2);
	unsigned long ips[TEST_DEPTHS];
	struct stackmap_key key;
	u32 hash;

	for (unsigned int no = 0; no < 2000; no++) {
		test_fill(ips, 1, TEST_DEPTHS);
		for (unsigned int i = 0; i < 11; i++) {
			if (!(no & BIT(i)))
				continue;
			ips[2 * i] ^= BIT(BITS_PER_LONG - 1);
			ips[2 * i + 2] ^= BIT(BITS_PER_LONG / 2 - 1);
		}
		KUNIT_ASSERT_GE(test, test_get_key(map, ips, TEST_DEPTHS, &key), 0);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 2000);

	/* A program can't find out in one map what to do in another one. */
	hash = key.hash;
	KUNIT_EXPECT_GE(test, test_get_key(other, ips, TEST_DEPTHS, &key), 0);
	KUNIT_EXPECT_NE(test, key.hash, hash);
}

/* Stacks that differ in one frame are not taken for one another, in whatever order they come. */
static void stackmap_cache_lookup(struct kunit *test)
{
	struct ftrace_stackmap *map = test_alloc_map(test, STACKMAP_BITS_MIN);
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

static void stackmap_any_depth(struct kunit *test)
{
	static const unsigned int depths[] = { 1, 64, 65, TEST_MAX_DEPTH };
	unsigned long *ips = kunit_kcalloc(test, TEST_MAX_DEPTH, sizeof(*ips), GFP_KERNEL);
	struct ftrace_stackmap *map = test_alloc_map(test, STACKMAP_BITS_MIN);
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
	KUNIT_EXPECT_EQ(test, atomic_long_read(&test_counted[STACKMAP_DROP_EMPTY]), 1);
}

static struct kunit_case stackmap_hash_test_cases[] = {
	KUNIT_CASE_PARAM(stackmap_similar_stacks, stackmap_similar_gen_params),
	KUNIT_CASE(stackmap_forged_stacks),
	KUNIT_CASE(stackmap_cache_lookup),
	KUNIT_CASE(stackmap_any_depth),
	{ }
};

static struct kunit_suite stackmap_hash_test_suite = {
	.name = "ftrace_stackmap_hash",
	.test_cases = stackmap_hash_test_cases,
};

kunit_test_suite(stackmap_hash_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the hash of the ftrace stack map");
