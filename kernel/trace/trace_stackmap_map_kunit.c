// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the map, a library: what it stores and finds, and how it counts, with one
 * context and with many at a time.
 */
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "trace_stackmap_map_kunit.h"

#define TEST_MAX_DEPTH	1024
#define TEST_HASH	0x12345678

static long test_nr_asked(int what)
{
	return atomic_long_read(&test_counted[what]);
}

/* What holds whenever nobody inserts: @calls are accounted for, the references, and the stacks. */
static void test_check_map(struct kunit *test, struct ftrace_stackmap *map, unsigned long calls,
			   unsigned int nr_stacks)
{
	long asked = 0;

	for (int i = 0; i < STACKMAP_NR_DROPS; i++)
		asked += test_nr_asked(i);
	KUNIT_EXPECT_EQ(test, asked, calls);
	KUNIT_EXPECT_EQ(test, test_refs(map), test_nr_asked(0));
	test_check_stacks(test, map, nr_stacks);
}

/* Insert with a forced hash; 0 means the real one. */
static int test_get_id_hash(struct ftrace_stackmap *map, const unsigned long *ips,
			    unsigned int nr, u32 hash)
{
	struct stackmap_key key = { };

	if (!hash)
		return test_get_id(map, ips, nr);

	guard(preempt_notrace)();
	/* It may meet a pile of stacks where its own hash leads. */
	stackmap_find(map, ips, nr, &key);
	key.hash = hash;
	key.idx = -ENOENT;
	return test_store(map, &key, stackmap_probe(map, &key) ? 0 : -STACKMAP_DROP_PROBES);
}

static int test_insert_hash(struct ftrace_stackmap *map, unsigned int no, u32 hash)
{
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, no, test_depth(no));
	return test_get_id_hash(map, ips, test_depth(no), hash);
}

static void stackmap_same_and_different(struct kunit *test)
{
	struct ftrace_stackmap *map;
	int id[STACKMAP_PROBES];

	for (int hash = 0; hash <= TEST_HASH; hash += TEST_HASH) {
		map = test_alloc_map(test, STACKMAP_BITS_MIN);
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
	struct ftrace_stackmap *map = test_alloc_map(test, STACKMAP_BITS_MIN);

	for (int no = 0; no < STACKMAP_PROBES; no++)
		KUNIT_ASSERT_GE(test, test_insert_hash(map, no, TEST_HASH), 0);

	KUNIT_EXPECT_EQ(test, test_insert_hash(map, STACKMAP_PROBES, TEST_HASH), -ENOSPC);
	KUNIT_EXPECT_EQ(test, test_nr_asked(STACKMAP_DROP_PROBES), 1);

	/* Nothing is left of the one that failed, and the others are found. */
	for (int no = 0; no < STACKMAP_PROBES; no++)
		KUNIT_EXPECT_GE(test, test_insert_hash(map, no, TEST_HASH), 0);
	test_check_map(test, map, 2 * STACKMAP_PROBES + 1, STACKMAP_PROBES);
}

static void stackmap_prefixes(struct kunit *test)
{
	struct ftrace_stackmap *map = test_alloc_map(test, STACKMAP_BITS_MIN);
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

static void stackmap_full_table(struct kunit *test)
{
	struct ftrace_stackmap *map = test_alloc_map(test, STACKMAP_BITS_MIN);
	unsigned int max = map->max_entries;
	int *id = kunit_kcalloc(test, max, sizeof(*id), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, id);
	for (int no = 0; no < max; no++) {
		id[no] = test_insert(map, no);
		KUNIT_ASSERT_GE(test, id[no], 0);
	}

	for (int no = max; no < max + 100; no++)
		KUNIT_EXPECT_EQ(test, test_insert(map, no), -ENOSPC);
	KUNIT_EXPECT_EQ(test, test_nr_asked(STACKMAP_DROP_ENTRIES), 100);

	for (int no = 0; no < max; no++)
		KUNIT_EXPECT_EQ(test, test_insert(map, no), id[no]);
	test_check_map(test, map, 2 * max + 100, max);
}

static void stackmap_full_arena(struct kunit *test)
{
	struct ftrace_stackmap *map = test_alloc_map(test, STACKMAP_BITS_MIN);
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
	KUNIT_EXPECT_EQ(test, test_nr_asked(STACKMAP_DROP_ARENA), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), stored);

	for (int no = 0; no < stored; no++) {
		test_fill(ips, no, TEST_MAX_DEPTH);
		KUNIT_EXPECT_EQ(test, test_get_id(map, ips, TEST_MAX_DEPTH), id[no]);
		KUNIT_EXPECT_MEMEQ(test, test_record_of(map, id[no])->ips, ips,
				   TEST_MAX_DEPTH * sizeof(*ips));
	}
	KUNIT_EXPECT_EQ(test, test_nr_asked(0), 2 * stored);
}

/* Stacks that share a cache slot, in turn and in a row. */
static void stackmap_ref_eviction(struct kunit *test)
{
	struct ftrace_stackmap *map = test_alloc_map(test, 14);
	int first, other;
	unsigned long calls;
	unsigned int no = 0;

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	first = test_insert(map, 0);
	/* The reference of the first moves to its record when another one takes the cache slot. */
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
	/* More than a cache slot can count. */
	for (int i = 0; i < 20000; i++, calls++)
		test_insert(map, no);
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, first), 1001);
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, other), calls - no - 1000);
	test_check_map(test, map, calls, no + 1);
}

static int test_insert_key(struct ftrace_stackmap *map, struct stackmap_key *key)
{
	guard(preempt_notrace)();
	return stackmap_insert(map, key);
}

/* Other contexts store a stack, or take the place for it, after it was looked up. */
static void stackmap_late_insert(struct kunit *test)
{
	struct ftrace_stackmap *map = test_alloc_map(test, STACKMAP_BITS_MIN);
	struct stackmap_key key = { };
	unsigned long ips[TEST_DEPTHS];
	int ret, tail;

	test_fill(ips, 7, test_depth(7));
	scoped_guard(preempt_notrace)
		ret = stackmap_find(map, ips, test_depth(7), &key);
	KUNIT_ASSERT_EQ(test, ret, 0);
	map->max_entries = 0;
	KUNIT_EXPECT_EQ(test, test_insert_key(map, &key), -STACKMAP_DROP_ENTRIES);
	map->max_entries = 1;
	tail = map->arena_units;
	map->arena_units = atomic_read(&map->tail) + 1;
	KUNIT_EXPECT_EQ(test, test_insert_key(map, &key), -STACKMAP_DROP_ARENA);
	map->arena_units = tail;
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 0);
	KUNIT_EXPECT_EQ(test, test_insert_key(map, &key), 0);

	/* The same stack takes no space twice. */
	tail = atomic_read(&map->tail);
	key.idx = -ENOENT;
	KUNIT_EXPECT_EQ(test, test_insert_key(map, &key), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->tail), tail);
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, key.idx), 0);
}

unsigned int stackmap_test_hits = 100000;
module_param_named(hits, stackmap_test_hits, uint, 0444);
MODULE_PARM_DESC(hits, "how many stacks each CPU asks for where most are known, at most");

struct test_race {
	const char		*desc;
	unsigned int		nr_stacks;
	unsigned int		rounds;	/* each with a map of its own */
	unsigned int		passes;	/* at most, or 0: what stackmap_test_hits makes of it */
	bool			fill;	/* there are too many stacks for the map */
};

static const struct test_race stackmap_races[] = {
	{ "every slot is fought for", 700, 200, 3 },
	{ "the map fills up", 5000, 20, 3, true },
	{ "interrupted hits", 8, 1, 0 },
	{ "interrupted evictions", 900, 1, 0 },
};

KUNIT_ARRAY_PARAM_DESC(stackmap_race, stackmap_races, desc);

/* Inserts a stack, and checks that the id leads back to it. */
static bool test_insert_checked(struct test_writer *w, unsigned int no)
{
	int id = test_insert(w->data, no);

	return id < 0 || test_leads_to(w->data, id, no);
}

static void stackmap_concurrent_inserts(struct kunit *test)
{
	const struct test_race *race = test->param_value;
	struct test_writer model = {
		.insert		= test_insert_checked,
		.nr_stacks	= race->nr_stacks,
		.passes		= race->passes ?: stackmap_test_hits / race->nr_stacks,
	};
	unsigned long calls = 0, irq_calls = 0, drops = 0, round_calls;
	struct test_writer *w = test_writers(test);
	struct ftrace_stackmap *map;
	int rounds = race->rounds;
	atomic_t start;
	int nr;

	for (int round = 0; round < rounds; round++) {
		/* With room for what many CPUs leave in the arena when they lose. */
		map = test_alloc_map(test, STACKMAP_BITS_MIN + 2 * !race->fill);
		model.data = map;
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
		drops += round_calls - test_nr_asked(0);
		if (!race->fill)
			KUNIT_ASSERT_EQ(test, drops, 0);
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

static struct kunit_case stackmap_map_test_cases[] = {
	KUNIT_CASE(stackmap_same_and_different),
	KUNIT_CASE(stackmap_bounded_probes),
	KUNIT_CASE(stackmap_prefixes),
	KUNIT_CASE(stackmap_full_table),
	KUNIT_CASE(stackmap_full_arena),
	KUNIT_CASE(stackmap_ref_eviction),
	KUNIT_CASE(stackmap_late_insert),
	KUNIT_CASE_PARAM_ATTR(stackmap_concurrent_inserts, stackmap_race_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	{ }
};

static struct kunit_suite stackmap_map_test_suite = {
	.name = "ftrace_stackmap_map",
	.test_cases = stackmap_map_test_cases,
};

kunit_test_suite(stackmap_map_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of a map of stacks");
