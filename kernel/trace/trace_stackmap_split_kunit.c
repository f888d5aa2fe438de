// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of stacks that are split where an interrupt has hit.
 */
#include <linux/string.h>

#include "trace_stackmap_kunit.h"

/* Frames of the longest stack of which all variants are tried. */
#define TEST_SPLIT_DEPTH	9

/* Counts the stacks of maps that belong to no instance. */
static struct stackmap_instance test_no_instance;
static DEFINE_PER_CPU(struct stackmap_counts, test_counts);

/* A map of 2^@bits stacks that belongs to no instance, and splits test stack TEST_IRQ off. */
static struct ftrace_stackmap *test_split_map(struct kunit *test, unsigned int bits)
{
	struct ftrace_stackmap *map = test_alloc_map(test, bits);
	int cpu;

	test_set_entry(map);
	test_inst = &test_no_instance;
	test_inst->counts = &test_counts;
	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(&test_counts, cpu), 0, sizeof(test_counts));
	return map;
}

static int test_insert_irq(struct ftrace_stackmap *map, unsigned long ip, unsigned int no,
			   int *ids)
{
	struct stackmap_key parts[STACKMAP_MAX_PARTS] = { };
	unsigned long ips[2 * TEST_DEPTHS + 1];
	unsigned int nr = test_fill_irq(ips, ip, no);
	int nr_parts;

	guard(preempt_notrace)();
	nr_parts = stackmap_find_parts(map, ips, nr, parts);
	if (test_store_parts(map, parts, nr_parts) < 0)
		return -ENOSPC;
	for (int i = 0; i < nr_parts; i++)
		ids[i] = stackmap_id(map, parts[i].idx);
	return 0;
}

static bool test_insert_irq_checked(struct test_writer *w, unsigned int no)
{
	int ids[STACKMAP_MAX_PARTS];

	guard(preempt_notrace)();
	return test_insert_irq(w->data, ~no, no, ids) ||
	       (test_leads_to(w->data, ids[0], TEST_IRQ) && test_leads_to(w->data, ids[1], no));
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
	{ ".E..E..E",		"00-11-22" },
	{ ".E.E.E.",		"00-1-22" },
	{ ".E.E.E..",		NULL },			/* more than STACKMAP_MAX_PARTS */
};

static void test_describe_split(const struct test_split *split, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "'%s'", split->frames);
}

KUNIT_ARRAY_PARAM(stackmap_split, stackmap_splits, test_describe_split);

static void stackmap_parts(struct kunit *test)
{
	struct ftrace_stackmap *map = test_alloc_map(test, STACKMAP_BITS_MIN);
	const struct test_split *split = test->param_value;
	struct stackmap_key parts[STACKMAP_MAX_PARTS] = { };
	unsigned int nr = strlen(split->frames);
	unsigned int first = 0;
	unsigned long ips[9];
	char found[10] = "";
	int nr_parts;

	map->irqentry_start = 0x1000;
	map->irqentry_size = 0x200;
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

	map->irqentry_size = 0;
	scoped_guard(preempt_notrace)
		nr_parts = stackmap_find_parts(map, ips, nr, parts);
	KUNIT_EXPECT_EQ(test, nr_parts, 1);
	KUNIT_EXPECT_EQ(test, parts[0].nr, nr);
}

/* The instruction that was hit is not in the map, however many there are. */
static void stackmap_split_counts(struct kunit *test)
{
	struct ftrace_stackmap *map = test_split_map(test, STACKMAP_BITS_MIN);
	int irq, task, ids[STACKMAP_MAX_PARTS];

	irq = test_insert_counted(map, TEST_IRQ);
	task = test_insert_counted(map, 7);
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
	map = test_split_map(test, STACKMAP_BITS_MIN);
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
	struct ftrace_stackmap *map = test_split_map(test, STACKMAP_BITS_MIN);
	unsigned int max = map->max_entries;
	int ids[STACKMAP_MAX_PARTS];

	for (int no = 0; no < max; no++)
		KUNIT_ASSERT_GE(test, test_insert_counted(map, no), 0);

	KUNIT_EXPECT_EQ(test, test_insert_irq(map, 1, max, ids), -ENOSPC);
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_ENTRIES), 1);
	KUNIT_EXPECT_EQ(test, stackmap_ref(map, test_insert_counted(map, TEST_IRQ)), 2);
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_SPLIT), 0);

	KUNIT_EXPECT_EQ(test, test_insert_irq(map, 1, max - 1, ids), 0);
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_SPLIT), 1);
	test_check_map(test, map, max + 3, max);
}

/* Writers and interrupts on all CPUs, with more rounds where the map has room for all stacks. */
static void stackmap_split_races(struct kunit *test)
{
	struct test_writer model = { .insert = test_insert_irq_checked, .passes = 3 };
	struct test_writer *w = test_writers(test);
	unsigned long irq_calls = 0, calls;
	struct ftrace_stackmap *map;
	int rounds = 120;
	atomic_t start;
	bool fill;
	int nr;

	for (int round = 0; round < rounds; round++) {
		fill = round % 6 == 0;
		model.nr_stacks = fill ? 5000 : 700;
		map = test_split_map(test, STACKMAP_BITS_MIN + 2 * !fill);
		model.data = map;
		calls = 0;

		nr = test_start_writers(test, w, &model, &start);
		for (int i = 0; i < nr; i++) {
			wait_for_completion(&w[i].done);
			KUNIT_EXPECT_EQ(test, w[i].errors, 0);
			calls += w[i].calls + w[i].irq_calls;
			irq_calls += w[i].irq_calls;
		}
		if (!fill)
			KUNIT_ASSERT_EQ(test, test_drops(), 0);
		KUNIT_EXPECT_GT(test, test_sum(STACKMAP_SPLIT), 0);
		test_check_map(test, map, calls, model.nr_stacks);
		kunit_release_action(test, test_free_map, map);

		/* Timers that expire with the tick may need more rounds to hit a writer. */
		if (!irq_calls && round + 1 == rounds && rounds < 12000)
			rounds++;
	}
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
	KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, entry->outer_id, 7));

	snprintf(ids, sizeof(ids), "<stack_split %d @%lx %d>\n", entry->stack_id, entry->ip,
		 entry->outer_id);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), ids));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), test_depth(TEST_IRQ) + 1 + test_depth(7));
}

/* How many frames each part of a stack is to have. Returns the number of parts. */
static unsigned int test_split_simply(const unsigned long *ips, unsigned int nr,
				      unsigned long entry, unsigned int *nrs)
{
	unsigned int first = 0, parts = 0;

	for (unsigned int i = 0; i + 2 < nr; i++) {
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
	const struct stack_split3_entry *entry = ring_buffer_event_data(event);
	int parts = stackmap_event_ids(&entry->ent);
	const struct stackmap_record *rec;

	for (int i = 0; i < parts; i++) {
		if (i)
			*ips++ = i == 1 ? entry->ip : entry->outer2_ip;
		rec = test_record_of(map, stackmap_event_id(&entry->ent, i));
		memcpy(ips, rec->ips, flex_array_size(rec, ips, rec->nr));
		ips += rec->nr;
		nrs[i] = rec->nr;
	}
	return parts;
}

/* Returns 1 if the stack has too many parts for an event with ids. */
static int test_record_split(struct kunit *test, struct trace_array *tr,
			     const unsigned long *ips, unsigned int nr, unsigned long entry)
{
	unsigned int nrs[TEST_SPLIT_DEPTH], joined_nrs[STACKMAP_MAX_PARTS];
	unsigned int parts = test_split_simply(ips, nr, entry, nrs);
	bool full = parts > STACKMAP_MAX_PARTS;
	unsigned long joined[TEST_SPLIT_DEPTH];
	struct ring_buffer_event *event;

	test_record_frames(tr, ips, nr);
	event = test_next_event(tr->array_buffer.buffer);
	KUNIT_ASSERT_NOT_NULL(test, event);
	KUNIT_ASSERT_EQ(test, full ? 0 : parts,
			test_join(test_current(tr), event, joined, joined_nrs));
	if (full)
		return 1;

	KUNIT_ASSERT_MEMEQ(test, nrs, joined_nrs, parts * sizeof(*nrs));
	KUNIT_ASSERT_MEMEQ(test, ips, joined, nr * sizeof(*ips));
	return 0;
}

/* All stacks of a few frames: whatever the CPU remembers of others, each is split as if alone. */
static void stackmap_split_all(struct kunit *test)
{
	static const unsigned long frames[] = { 0x1000, 1, 2 };
	struct trace_array *tr = test_instance(test, 0);
	unsigned int nr, stacks = 1, asked = 0, full = 0;
	unsigned long ips[TEST_SPLIT_DEPTH];
	struct ftrace_stackmap *map;

	/* A larger one. */
	ftrace_stackmap_bits = 12;
	KUNIT_ASSERT_EQ(test, test_reset(tr), 0);
	map = test_current(tr);
	test_current(tr)->gen->recycle = false;
	map->irqentry_start = frames[0];
	map->irqentry_size = 1;
	for (unsigned int pass = 0; pass < 2 * ARRAY_SIZE(ips); pass++) {
		nr = pass % ARRAY_SIZE(ips) + 1;
		stacks = nr == 1 ? ARRAY_SIZE(frames) : stacks * ARRAY_SIZE(frames);
		for (unsigned int i = 0; i < stacks; i++) {
			/* In no order that would suit one that guesses, and then again. */
			for (unsigned int k = 0, no = i * 7919 % stacks; k < nr; k++, no /= 3)
				ips[k] = frames[no % 3];
			full += test_record_split(test, tr, ips, nr, frames[0]);
			full += test_record_split(test, tr, ips, nr, frames[0]);
			asked += 2;
		}
	}

	KUNIT_EXPECT_GT(test, full, 0);
	KUNIT_EXPECT_EQ(test, test_drops(), full);
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_PARTS), full);
	KUNIT_EXPECT_EQ(test, test_successes() + test_drops(), asked);
	KUNIT_EXPECT_EQ(test, test_refs(map), test_parts());
}

/* The event has room for three parts. A stack of four is recorded in full, and counted. */
static void stackmap_split_limit(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	struct ftrace_stackmap *map = test_current(tr);
	struct stack_split3_entry *entry;
	struct trace_iterator *iter;
	unsigned long ips[12];
	char ids[64];

	map->irqentry_start = 0x1000;
	map->irqentry_size = 1;
	for (int i = 0; i < ARRAY_SIZE(ips); i++)
		ips[i] = i % 4 == 1 ? 0x1000 : i;

	test_record_frames(tr, ips, 8);
	iter = test_consume(test, tr);
	entry = (void *)iter->ent;
	KUNIT_ASSERT_EQ(test, entry->ent.type, TRACE_STACK_SPLIT3);
	KUNIT_EXPECT_EQ(test, iter->ent_size, sizeof(*entry));
	KUNIT_EXPECT_EQ(test, entry->ip, ips[2]);
	KUNIT_EXPECT_EQ(test, entry->outer2_ip, ips[6]);
	snprintf(ids, sizeof(ids), "<stack_split %d @2 %d @6 %d>\n", entry->stack_id,
		 entry->outer_id, entry->outer2_id);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), ids));
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), 8);
	KUNIT_EXPECT_EQ(test, test_drops(), 0);

	test_record_frames(tr, ips, ARRAY_SIZE(ips));
	iter = test_consume(test, tr);
	KUNIT_EXPECT_EQ(test, iter->ent->type, TRACE_STACK);
	KUNIT_EXPECT_EQ(test, test_printed_frames(iter), ARRAY_SIZE(ips));
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_PARTS), 1);

	/* Two stacks were asked for. Nothing of the second one is in the map. */
	KUNIT_EXPECT_EQ(test, test_successes() + test_drops(), 2);
	KUNIT_EXPECT_EQ(test, test_refs(map), 3);
	KUNIT_EXPECT_EQ(test, test_parts(), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 3);
}

/* The second part fails after the event is reserved: none is counted. */
static void stackmap_store_fails(struct kunit *test)
{
	struct ftrace_stackmap *map = test_split_map(test, STACKMAP_BITS_MIN);
	struct stackmap_key parts[STACKMAP_MAX_PARTS] = { };
	unsigned long ips[2 * TEST_DEPTHS + 1];
	unsigned int nr = test_fill_irq(ips, 1, 7);
	int ret;

	scoped_guard(preempt_notrace)
		ret = stackmap_find_parts(map, ips, nr, parts);
	KUNIT_ASSERT_EQ(test, ret, 2);
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
	scoped_guard(preempt_notrace)
		ret = stackmap_find_parts(map, ips, test_depth(8), parts);
	KUNIT_ASSERT_EQ(test, ret, 1);
	nr = map->arena_units;
	map->arena_units = atomic_read(&map->tail) + 1;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 1), -STACKMAP_DROP_ARENA);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 2);
	map->arena_units = nr;
	KUNIT_EXPECT_EQ(test, stackmap_store(map, parts, 1), 1);
}

static struct kunit_case stackmap_split_test_cases[] = {
	KUNIT_CASE_PARAM(stackmap_parts, stackmap_split_gen_params),
	KUNIT_CASE(stackmap_split_counts),
	KUNIT_CASE(stackmap_split_whole),
	KUNIT_CASE(stackmap_split_races),
	KUNIT_CASE(stackmap_split_event),
	KUNIT_CASE(stackmap_split_all),
	KUNIT_CASE(stackmap_split_limit),
	KUNIT_CASE(stackmap_store_fails),
	{ }
};

static struct kunit_suite stackmap_split_test_suite = {
	.name = "ftrace_stackmap_split",
	.test_cases = stackmap_split_test_cases,
};

kunit_test_suite(stackmap_split_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the split stacks of the ftrace stack map");
