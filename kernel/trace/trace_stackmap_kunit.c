// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the stack map: what it stores and finds, how it counts, and what a
 * reset does, with one context and with many at a time.
 */
#include <linux/completion.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/ring_buffer.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "trace_stackmap_kunit.h"

/* Return address number @i, where x86_64 has its kernel text (cut off on 32 bits). */
static unsigned long test_kernel_text(unsigned int i)
{
	return -0x7f000000UL + 0x4d5c3 * (i + 1);
}

/* As if @hash were that of the stack. */
static int test_get_id_hash(struct ftrace_stackmap *map, const unsigned long *ips,
			    unsigned int nr, u32 hash)
{
	struct stackmap_part parts[STACKMAP_MAX_PARTS];

	guard(preempt_notrace)();
	/* It may meet a pile of stacks where its own hash leads. */
	stackmap_find(map, ips, nr, false, parts);
	parts->hash = hash;
	parts->idx = -ENOENT;
	return test_store(map, parts, stackmap_probe(map, parts) ? 1 : -STACKMAP_DROP_PROBES);
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

static void test_free_map(void *map)
{
	stackmap_free(map);
}

/* Counts the stacks of maps that belong to no instance. */
static struct stackmap_instance test_no_instance;
static DEFINE_PER_CPU(struct stackmap_counts, test_counts);

/* A map of 2^@bits stacks that belongs to no instance. */
static struct ftrace_stackmap *test_map(struct kunit *test, unsigned int bits)
{
	struct ftrace_stackmap *map = stackmap_alloc(bits, 0);
	int cpu;

	KUNIT_ASSERT_NOT_NULL(test, map);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_free_map, map), 0);
	/* Not what is left of the map of an earlier test: a record that is read too early shows. */
	memset(map->arena, TEST_GARBAGE, array_size(map->arena_units, STACKMAP_UNIT));
	test_inst = &test_no_instance;
	test_inst->counts = &test_counts;
	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(&test_counts, cpu), 0, sizeof(test_counts));
	return map;
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
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_PROBES), 1);

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
	struct stackmap_part parts[STACKMAP_MAX_PARTS];
	u32 distance, sum, worst;

	for (int d = 0; d < ARRAY_SIZE(depths); d++) {
		map = test_map(test, TEST_SIMILAR_BITS);
		sum = 0;
		worst = 0;
		for (unsigned int no = 0; no < map->max_entries; no++) {
			for (unsigned int i = 0; i < depths[d]; i++)
				ips[i] = test_kernel_text(i);
			similar->change(ips, depths[d], no);
			KUNIT_ASSERT_GE(test, test_get_parts(map, ips, depths[d], parts), 0);
			/* How far from its place it is. */
			distance = (parts->idx - parts->hash) & (map->nr_slots - 1);
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
	struct stackmap_part parts[STACKMAP_MAX_PARTS];
	u32 hash;

	for (unsigned int no = 0; no < 2000; no++) {
		test_fill(ips, 1, TEST_DEPTHS);
		for (unsigned int i = 0; i < 11; i++) {
			if (!(no & BIT(i)))
				continue;
			ips[2 * i] ^= BIT(BITS_PER_LONG - 1);
			ips[2 * i + 2] ^= BIT(BITS_PER_LONG / 2 - 1);
		}
		KUNIT_ASSERT_GE(test, test_get_parts(map, ips, TEST_DEPTHS, parts), 0);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 2000);

	/* A program can't find out in one map what to do in another one. */
	hash = parts->hash;
	KUNIT_EXPECT_GE(test, test_get_parts(other, ips, TEST_DEPTHS, parts), 0);
	KUNIT_EXPECT_NE(test, parts->hash, hash);
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
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_EMPTY), 1);
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
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_ENTRIES), 100);

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
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_ARENA), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), stored);

	for (int no = 0; no < stored; no++) {
		test_fill(ips, no, TEST_MAX_DEPTH);
		KUNIT_EXPECT_EQ(test, test_get_id(map, ips, TEST_MAX_DEPTH), id[no]);
		KUNIT_EXPECT_MEMEQ(test, test_record_of(map, id[no])->ips, ips,
				   TEST_MAX_DEPTH * sizeof(*ips));
	}
	KUNIT_EXPECT_EQ(test, test_successes(), 2 * stored);
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
	unsigned int first = 0;
	char found[19] = "";
	int nr_parts;

	map->entry_start = 0x1000;
	map->entry_size = 0x200;
	KUNIT_ASSERT_LE(test, nr, ARRAY_SIZE(ips));
	for (int i = 0; i < nr; i++)
		ips[i] = split->frames[i] == 'E' ? 0x1000 + i * 0x11 : i % 2 ? 0xfff : 0x1200;

	scoped_guard(preempt_notrace)
		nr_parts = stackmap_find(map, ips, nr, false, parts);
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
		nr_parts = stackmap_find(map, ips, nr, false, parts);
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
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_SPLIT), 1000);
	KUNIT_EXPECT_EQ(test, test_parts(), 2002);
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
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_ENTRIES), 1);
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, test_insert(map, TEST_IRQ)), 2);
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_SPLIT), 0);

	KUNIT_EXPECT_EQ(test, test_insert_irq(map, 1, max - 1, ids), 0);
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_SPLIT), 1);
	test_check_map(test, map, max + 3, max);
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
		drops += test_drops();
		if (!race->fill)
			KUNIT_ASSERT_EQ(test, drops, 0);
		if (race->irq)
			KUNIT_EXPECT_GT(test, test_sum(STACKMAP_SPLIT), 0);
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

/*
 * The frames of an event, and how many each of its parts has. Returns the number of parts, or
 * -1 if the words don't say how many there are.
 */
static int test_join(struct ftrace_stackmap *map, struct ring_buffer_event *event,
		     unsigned long *ips, unsigned int *nrs)
{
	const struct stack_split_entry *entry = ring_buffer_event_data(event);
	int parts = stackmap_event_ids(&entry->ent, ring_buffer_event_length(event)), id;
	const struct stackmap_record *rec;
	bool more;

	for (int i = 0; i < parts; i++) {
		id = i < 2 ? entry->outer : entry->rest[2 * i - 3];
		more = id < 0;
		if (i && more != (i + 1 < parts))
			return -1;
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
	KUNIT_ASSERT_EQ(test, test_drops(), 0);
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

	/* A larger one. */
	ftrace_stackmap_bits = 12;
	KUNIT_ASSERT_EQ(test, test_reset(tr), 0);
	map = test_current(tr);
	tr->stackmap->recycle = false;
	map->entry_start = frames[0];
	map->entry_size = 1;
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

	KUNIT_EXPECT_EQ(test, test_refs(map), test_parts());
}

/* An event of three parts and more, and a stack that has too many. */
static void stackmap_split_often(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);
	struct trace_iterator *iter;
	unsigned long ips[4 * STACKMAP_MAX_PARTS];
	unsigned int nr;

	map->entry_start = 0x1000;
	map->entry_size = 1;
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
	KUNIT_EXPECT_EQ(test, test_drops(), 0);
	test_record_frames(tr, ips, ARRAY_SIZE(ips));
	iter = test_consume(test, tr);
	KUNIT_EXPECT_EQ(test, iter->ent->type, TRACE_STACK);
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_PARTS), 1);
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

/* The second part fails after the event is reserved: none is counted. */
static void stackmap_store_fails(struct kunit *test)
{
	struct ftrace_stackmap *map = test_map(test, STACKMAP_BITS_MIN);
	struct stackmap_part parts[STACKMAP_MAX_PARTS];
	unsigned long ips[2 * TEST_DEPTHS + 1];
	unsigned int nr = test_fill_irq(ips, 1, 7);

	test_set_entry(map);
	guard(preempt_notrace)();
	KUNIT_ASSERT_EQ(test, stackmap_find(map, ips, nr, false, parts), 2);
	map->max_entries = 1;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 2), -STACKMAP_DROP_ENTRIES);
	KUNIT_EXPECT_GE(test, parts[0].idx, 0);
	KUNIT_EXPECT_LT(test, parts[1].idx, 0);
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, parts[0].idx), 0);
	KUNIT_EXPECT_EQ(test, test_successes(), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 1);

	/* Stored meanwhile by another context: no space is taken. */
	map->max_entries = 2;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 2), 1);
	nr = atomic_read(&map->tail);
	parts[0].idx = -ENOENT;
	parts[1].idx = -ENOENT;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 2), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->tail), nr);
	KUNIT_EXPECT_EQ(test, test_refs(map), 0);

	/* Other contexts take the space after the look-up. */
	map->max_entries = 3;
	test_fill(ips, 8, test_depth(8));
	KUNIT_ASSERT_EQ(test, stackmap_find(map, ips, test_depth(8), false, parts), 1);
	nr = map->arena_units;
	map->arena_units = atomic_read(&map->tail) + 1;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 1), -STACKMAP_DROP_ARENA);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 2);
	map->arena_units = nr;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 1), 1);
}

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
		KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_BUFFER), i + 1);
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

/* More references than 32 bits count. */
static void stackmap_bin_saturates(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	int id = test_instance_id(tr, 1);
	struct stackmap_iter iter = {
		.tr	= tr,
		.gen	= test_current(tr)->owner,
		.idx	= id & STACKMAP_SLOT_MASK,
	};
	struct stackmap_record *rec = stackmap_record(test_current(tr), iter.idx);
	struct seq_file m = { .size = 1024, .private = &iter };
	u32 *words;

	m.buf = kunit_kzalloc(test, m.size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m.buf);
	words = (u32 *)m.buf;
	atomic_long_set(&rec->ref, BIT(BITS_PER_LONG - 1));
	KUNIT_EXPECT_EQ(test, stackmap_bin_show(&m, rec), 0);
	KUNIT_EXPECT_EQ(test, words[0], id);
	KUNIT_EXPECT_EQ(test, words[1], test_depth(1));
	KUNIT_EXPECT_EQ(test, words[2], min(BIT(BITS_PER_LONG - 1) + 1, U32_MAX));
	KUNIT_EXPECT_EQ(test, m.count, 4 * sizeof(u32) + test_depth(1) * sizeof(u64));
}

/* A reader whose first read failed begins again, and counts the stacks anew. */
static void stackmap_latches_again(struct kunit *test)
{
	struct stackmap_iter iter = { .tr = test_instance(test, 0) };

	test_instance_id(iter.tr, 1);
	for (int i = 0; i < 2; i++) {
		stackmap_latch(&iter);
		KUNIT_EXPECT_EQ(test, iter.nr_stacks, 1);
	}
	iter.split = 1;
	KUNIT_EXPECT_EQ(test, test_set_option(iter.tr, "nostackmap"), 0);
	KUNIT_EXPECT_EQ(test, test_reset(iter.tr), 0);
	stackmap_latch(&iter);
	KUNIT_EXPECT_EQ(test, iter.nr_stacks + iter.split, 0);
	KUNIT_EXPECT_NULL(test, iter.set);
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
	KUNIT_CASE(stackmap_reset_under_load),
	KUNIT_CASE(stackmap_bin_saturates),
	KUNIT_CASE(stackmap_latches_again),
	{ }
};

static struct kunit_suite stackmap_test_suite = {
	.name = "ftrace_stackmap",
	.test_cases = stackmap_test_cases,
};

kunit_test_suite(stackmap_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the ftrace stack map");
