// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the map of a persistent instance: which stacks are found in memory that a
 * reboot has left, as it was or damaged. No stack may be found that was not stored.
 */
#include <linux/panic_notifier.h>
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include <asm/sections.h>

#include "trace_stackmap_kunit.h"

#define TEST_STACKS	300
#define TEST_TEXT	((unsigned long)_text)

/* What a boot leaves, and a copy that the next one finds. */
struct test_boot {
	struct stackmap_instance inst;
	struct ftrace_stackmap	*map;
	struct ftrace_stackmap	*copy;
	size_t			size;
	int			ids[TEST_STACKS];
};

static void test_free_cache(void *cache)
{
	free_percpu(cache);
}

/* Every third stack is one of user space. */
static bool test_is_user(unsigned int no)
{
	return no % 3 == 0;
}

static int test_persist_id(struct ftrace_stackmap *map, unsigned int no)
{
	struct stackmap_key key = { .user = test_is_user(no) };
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, no, test_depth(no));
	guard(preempt_notrace)();
	return test_store(map, &key, stackmap_find(map, ips, test_depth(no), &key));
}

/* A map in memory of its own, with TEST_STACKS stacks. */
static struct test_boot *test_boot(struct kunit *test)
{
	struct test_boot *boot = kunit_kzalloc(test, sizeof(*boot), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, boot);
	boot->size = stackmap_size(STACKMAP_BITS_MIN);
	boot->inst.range_bits = STACKMAP_BITS_MIN;
	boot->inst.range = kunit_kzalloc(test, boot->size, GFP_KERNEL);
	/* With room for a record that ends one unit behind the map. */
	boot->copy = kunit_kzalloc(test, boot->size + STACKMAP_UNIT, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, boot->inst.range);
	KUNIT_ASSERT_NOT_NULL(test, boot->copy);
	memset(boot->inst.range, 0xa5, boot->size);
	boot->map = stackmap_range_empty(&boot->inst, 5 << STACKMAP_SLOT_BITS);
	KUNIT_ASSERT_NOT_NULL(test, boot->map);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_free_cache,
							boot->inst.range_cache), 0);
	for (unsigned int no = 0; no < TEST_STACKS; no++) {
		boot->ids[no] = test_persist_id(boot->map, no);
		KUNIT_ASSERT_GE(test, boot->ids[no], 0);
	}
	return boot;
}

static struct ftrace_stackmap *test_copy(struct test_boot *boot)
{
	memcpy(boot->copy, boot->map, boot->size);
	boot->copy->arena = &boot->copy->slots[boot->copy->nr_slots];
	return boot->copy;
}

static bool test_header(const struct ftrace_stackmap *map)
{
	return map->check == stackmap_header_hash(map, STACKMAP_BITS_MIN, TEST_TEXT);
}

static unsigned int test_restore(struct ftrace_stackmap *map)
{
	return stackmap_restore(map, STACKMAP_BITS_MIN);
}

static u32 test_idx(const struct test_boot *boot, unsigned int no)
{
	return boot->ids[no] & STACKMAP_SLOT_MASK;
}

/*
 * Each slot of the copy is empty, or has the stack that it had, and what the header counts is
 * right. Returns how many stacks there are.
 */
static unsigned int test_none_is_wrong(struct kunit *test, struct test_boot *boot)
{
	const struct stackmap_record *rec, *had;
	unsigned int nr = 0;

	for (u32 idx = 0; idx < boot->map->nr_slots; idx++) {
		rec = stackmap_record(boot->copy, idx);
		had = stackmap_record(boot->map, idx);
		if (!rec)
			continue;
		nr++;
		KUNIT_ASSERT_NOT_NULL(test, had);
		KUNIT_ASSERT_EQ(test, rec->nr, had->nr);
		KUNIT_ASSERT_EQ(test, rec->user, had->user);
		KUNIT_ASSERT_EQ(test, rec->file, had->file);
		KUNIT_ASSERT_MEMEQ(test, rec->ips, had->ips, flex_array_size(rec, ips, rec->nr));
	}
	KUNIT_EXPECT_EQ(test, nr, atomic_read(&boot->copy->entries));
	return nr;
}

/* All but @nr stacks survive, and @no does not. */
static void test_survive(struct kunit *test, struct test_boot *boot, unsigned int cleared,
			 unsigned int no)
{
	KUNIT_EXPECT_EQ(test, test_restore(boot->copy), cleared);
	KUNIT_EXPECT_EQ(test, test_none_is_wrong(test, boot), TEST_STACKS - cleared);
	if (cleared)
		KUNIT_EXPECT_EQ(test, boot->copy->slots[test_idx(boot, no)], 0);
}

/* Memory that is as it was has all stacks. The references are there after a panic only. */
static void stackmap_survives(struct kunit *test)
{
	struct test_boot *boot = test_boot(test);

	KUNIT_EXPECT_TRUE(test, test_header(test_copy(boot)));
	test_survive(test, boot, 0, 0);
	KUNIT_EXPECT_EQ(test, test_refs(boot->copy), 0);

	for (int i = 0; i < 3; i++)
		test_persist_id(boot->map, 7);
	rcu_assign_pointer(boot->inst.map, boot->map);
	stackmap_panic(&boot->inst.panic_nb, 0, NULL);
	test_copy(boot);
	test_survive(test, boot, 0, 0);
	KUNIT_EXPECT_EQ(test, test_refs(boot->copy), TEST_STACKS + 3);
	KUNIT_EXPECT_EQ(test, stackmap_ref(boot->copy, test_idx(boot, 7)), 4);

	/* The next boot may find it again. */
	test_survive(test, boot, 0, 0);
}

/* A record with any bit flipped but in ref and defined is left out, and no other one. */
static void stackmap_bits_flipped(struct kunit *test)
{
	struct test_boot *boot = test_boot(test);
	u32 slot = boot->map->slots[test_idx(boot, 12)];
	size_t from = offsetof(struct stackmap_record, nr);
	struct stackmap_record *rec;
	size_t size;

	rec = stackmap_record_at(boot->map, slot);
	size = struct_size(rec, ips, rec->nr);
	for (size_t bit = from * 8; bit < size * 8; bit++) {
		rec = stackmap_record_at(test_copy(boot), slot);
		((u8 *)rec)[bit / 8] ^= BIT(bit % 8);
		test_survive(test, boot, 1, 12);
	}
	for (unsigned int bit = 0; bit < 32; bit++) {
		rec = stackmap_record_at(test_copy(boot), slot);
		rec->proof ^= BIT(bit);
		test_survive(test, boot, 1, 12);
		test_copy(boot)->slots[test_idx(boot, 12)] ^= BIT(bit);
		test_survive(test, boot, 1, 12);
	}
}

/* A record has to end in the arena, even if it is as it was. */
static void stackmap_record_too_long(struct kunit *test)
{
	struct test_boot *boot = test_boot(test);
	u32 idx = test_idx(boot, 12), *slot, at;
	struct stackmap_record *rec;
	struct ftrace_stackmap *map;

	for (u32 beyond = 0; beyond < 2; beyond++) {
		map = test_copy(boot);
		slot = &map->slots[idx];
		rec = stackmap_record(map, idx);
		at = map->arena_units - stackmap_units(rec->nr) + beyond;
		memcpy(map->arena + at * STACKMAP_UNIT, rec, struct_size(rec, ips, rec->nr));
		*slot = (*slot & ~map->offset_mask) | at;
		test_survive(test, boot, beyond, 12);
	}
}

/* A user stack does not become a kernel stack, nor a file, even if its bytes are no bool. */
static void stackmap_kinds_flipped(struct kunit *test)
{
	struct test_boot *boot = test_boot(test);
	struct stackmap_record *rec;

	for (unsigned int no = 12; no < 14; no++) {
		for (int kind = 0; kind < 0x10000; kind += kind < 0x200 ? 1 : 0xff) {
			rec = stackmap_record(test_copy(boot), test_idx(boot, no));
			if (kind == (rec->user ? 0x100 : 0))
				continue;
			*(u8 *)&rec->user = kind >> 8;
			*(u8 *)&rec->file = kind & 0xff;
			test_survive(test, boot, 1, no);
		}
	}
}

/* Slots that were swapped or copied, of any two stacks, the next in the chain included. */
static void stackmap_slots_swapped(struct kunit *test)
{
	struct test_boot *boot = test_boot(test);
	struct ftrace_stackmap *map;
	unsigned int neighbours = 0;
	u32 a, b;

	for (unsigned int no = 1; no < TEST_STACKS; no++) {
		for (unsigned int other = 0; other < no; other++) {
			a = test_idx(boot, no);
			b = test_idx(boot, other);
			if (abs((int)(a - b)) > 1 && (no + other) % 97)
				continue;
			neighbours += abs((int)(a - b)) == 1;
			map = test_copy(boot);
			swap(map->slots[a], map->slots[b]);
			test_survive(test, boot, 2, no);
			map = test_copy(boot);
			map->slots[a] = map->slots[b];
			test_survive(test, boot, 1, no);
		}
	}
	KUNIT_EXPECT_GT(test, neighbours, 0);

	/* To an empty slot, which is the next in the chain of some. */
	for (unsigned int no = 0; no < TEST_STACKS; no++) {
		map = test_copy(boot);
		a = test_idx(boot, no);
		b = (a + 1) % map->nr_slots;
		if (map->slots[b])
			continue;
		map->slots[b] = map->slots[a];
		KUNIT_EXPECT_EQ(test, test_restore(map), 1);
		KUNIT_EXPECT_EQ(test, test_none_is_wrong(test, boot), TEST_STACKS);
		KUNIT_EXPECT_EQ(test, map->slots[b], 0);
	}
}

/* A slot was written back, its record was not: there is what was there before. */
static void stackmap_torn(struct kunit *test)
{
	struct test_boot *boot = test_boot(test);
	const struct stackmap_record *old;
	struct stackmap_record *rec;

	for (unsigned int byte = 0; byte < 256; byte += 0x55) {
		rec = stackmap_record(test_copy(boot), test_idx(boot, 12));
		memset(rec, byte, struct_size(rec, ips, rec->nr));
		test_survive(test, boot, 1, 12);
	}

	/* The same stack in the same slot, of an older filling of the map, with another key. */
	test_copy(boot);
	boot->map = stackmap_range_empty(&boot->inst, 6 << STACKMAP_SLOT_BITS);
	KUNIT_ASSERT_NOT_NULL(test, boot->map);
	for (unsigned int no = 0; no < TEST_STACKS; no++) {
		old = stackmap_record(boot->copy, test_idx(boot, no));
		memcpy(boot->map->arena + STACKMAP_UNIT, old, struct_size(old, ips, old->nr));
		boot->map->slots[test_idx(boot, no)] = 1;
		KUNIT_EXPECT_EQ(test, test_restore(boot->map), 1);
	}
}

/* A header with any bit flipped that matters proves nothing. The rest of it is made anew. */
static void stackmap_header_damaged(struct kunit *test)
{
	struct test_boot *boot = test_boot(test);
	struct ftrace_stackmap *map = test_copy(boot);
	static const struct {
		size_t	offset, size;
	} fields[] = {
		{ offsetof(typeof(*map), first_id), sizeof(map->first_id) },
		{ offsetof(typeof(*map), hash_key), sizeof(map->hash_key) },
		{ offsetof(typeof(*map), check), sizeof(map->check) },
	};

	for (int i = 0; i < ARRAY_SIZE(fields); i++) {
		for (unsigned int bit = 0; bit < fields[i].size * 8; bit++) {
			map = test_copy(boot);
			((u8 *)map)[fields[i].offset + bit / 8] ^= BIT(bit % 8);
			KUNIT_EXPECT_FALSE_MSG(test, test_header(map), "field %d, bit %u", i, bit);
		}
	}
	map = test_copy(boot);
	KUNIT_EXPECT_NE(test, map->check, stackmap_header_hash(map, 11, TEST_TEXT));
	KUNIT_EXPECT_NE(test, map->check, stackmap_header_hash(map, 10, TEST_TEXT + PAGE_SIZE));
	memset(map, 0, sizeof(*map));
	KUNIT_EXPECT_FALSE(test, test_header(map));
	memset(map, 0xff, sizeof(*map));
	KUNIT_EXPECT_FALSE(test, test_header(map));

	map = test_copy(boot);
	map->max_entries = -1;
	map->nr_slots = -1;
	map->offset_mask = -1;
	map->arena_units = -1;
	atomic_set(&map->tail, -1);
	KUNIT_EXPECT_TRUE(test, test_header(map));
	test_survive(test, boot, 0, 0);
}

/* Random words in slots and arena, few or many. */
static void stackmap_random_words(struct kunit *test)
{
	struct test_boot *boot = test_boot(test);
	size_t from = offsetof(struct ftrace_stackmap, slots) / sizeof(u32);
	u32 words = boot->size / sizeof(u32) - from;
	struct rnd_state rnd;
	u32 *memory;

	prandom_seed_state(&rnd, 51);
	for (unsigned int round = 0; round < 400; round++) {
		memory = (u32 *)test_copy(boot) + from;
		for (unsigned int i = 0; i < 1U << round % 16; i++) {
			u32 *word = &memory[prandom_u32_state(&rnd) % words];

			switch (prandom_u32_state(&rnd) % 3) {
			case 0:
				*word = prandom_u32_state(&rnd);
				break;
			case 1:
				*word = memory[prandom_u32_state(&rnd) % words];
				break;
			default:
				*word ^= BIT(prandom_u32_state(&rnd) % 32);
			}
		}
		test_restore(boot->copy);
		test_none_is_wrong(test, boot);
	}
}

/* User stacks get in while less than half of the map is in use. Kernel stacks fill it. */
static void stackmap_half_for_users(struct kunit *test)
{
	struct test_boot *boot = test_boot(test);
	u32 half = boot->map->max_entries / 2, users = 0;
	unsigned int no;

	for (no = TEST_STACKS; no < 2 * half; no++) {
		if (test_is_user(no) && test_persist_id(boot->map, no) >= 0)
			users++;
	}
	KUNIT_EXPECT_GT(test, users, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&boot->map->entries), half);
	for (no = TEST_STACKS; no < 3 * half; no++) {
		if (!test_is_user(no))
			test_persist_id(boot->map, no);
	}
	KUNIT_EXPECT_GT(test, atomic_read(&boot->map->entries), half + half / 2);
	/* One that was there before is found. */
	KUNIT_EXPECT_EQ(test, test_persist_id(boot->map, 12), boot->ids[12]);
}

/* A persistent instance, as if its memory were at @mem. */
static struct trace_array *test_persistent(struct kunit *test, void *mem)
{
	struct trace_array *tr = trace_array_get_by_name("stackmap_kunit", NULL);

	KUNIT_ASSERT_NOT_NULL(test, tr);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_put_instance, tr), 0);
	tr->range_addr_size = 8 * SZ_512K;
	ftrace_stackmap_reserve(tr);
	KUNIT_ASSERT_NOT_NULL(test, tr->stackmap);
	KUNIT_ASSERT_LE(test, ftrace_stackmap_range_size(tr), SZ_512K);
	ftrace_stackmap_restore(tr, mem, TEST_TEXT);
	tr->flags |= TRACE_ARRAY_FL_LAST_BOOT;
	KUNIT_ASSERT_EQ(test, test_set_option(tr, "stackmap"), 0);
	test_inst = tr->stackmap;
	return tr;
}

/* The instance records again. */
static void test_next_boot(struct kunit *test, struct trace_array *tr)
{
	ftrace_stackmap_forget_boot(tr);
	tr->flags &= ~TRACE_ARRAY_FL_LAST_BOOT;
	KUNIT_EXPECT_NULL(test, test_gens(tr));
	ftrace_stackmap_next_boot(tr);
	tracer_tracing_off(tr);
}

/* The stacks of the last boot are there until the instance records again, and ids are new then. */
static void stackmap_boots(struct kunit *test)
{
	void *mem = kunit_kzalloc(test, SZ_512K, GFP_KERNEL);
	struct ftrace_stackmap *map = mem;
	int ids[2] = { -1, -1 }, old = -1;
	struct trace_array *tr;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_restore_bits,
							(void *)(long)ftrace_stackmap_bits), 0);
	for (int boot = 0; boot < 3; boot++) {
		tr = test_persistent(test, mem);
		KUNIT_EXPECT_NULL(test, test_current(tr));
		if (boot) {
			KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, ids[0], 1 + boot - 1));
			KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, ids[1], 11 + boot - 1));
		}
		KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, old, 1));
		if (boot == 2)
			break;

		test_next_boot(test, tr);
		KUNIT_ASSERT_NOT_NULL(test, test_current(tr));
		/* The map is empty now, and is that of one generation. */
		KUNIT_EXPECT_EQ(test, test_gens(tr)->nr, 1);
		for (int i = 0; i < 2; i++)
			KUNIT_EXPECT_EQ(test, test_lookup(tr, ids[i]).nr, 0);
		old = ids[0];
		ids[0] = test_instance_id(tr, 1 + boot);
		ids[1] = test_instance_id(tr, 11 + boot);
		/* A reset leaves nothing. */
		KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
		KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, ids[0], 1 + boot));
		ids[0] = test_instance_id(tr, 1 + boot);
		ids[1] = test_instance_id(tr, 11 + boot);
		kunit_release_action(test, test_put_instance, tr);

		/* A header that is not proven leads to no stack. */
		map->check++;
		tr = test_persistent(test, mem);
		KUNIT_EXPECT_NULL(test, test_gens(tr));
		kunit_release_action(test, test_put_instance, tr);
		map->check--;
	}

	/* A reset forgets the stacks of the last boot, too, for this boot and for the next one. */
	KUNIT_EXPECT_EQ(test, (tracer_tracing_off(tr), test_reset(tr)), 0);
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, ids[0], 2));
	/* The counts begin anew, and an open reader fails. */
	KUNIT_EXPECT_EQ(test, tr->stackmap->past.recycled, 0);
	KUNIT_EXPECT_EQ(test, tr->stackmap->resets, 1);
	kunit_release_action(test, test_put_instance, tr);
	tr = test_persistent(test, mem);
	KUNIT_EXPECT_FALSE(test, test_resolves(test, tr, ids[0], 2));
}

/* A reader of the last boot's stacks fails once they are gone. It does not come to an end. */
static void stackmap_read_over_a_boot(struct kunit *test)
{
	void *mem = kunit_kzalloc(test, SZ_512K, GFP_KERNEL);
	struct stackmap_iter iter = {};
	struct seq_file m = { .private = &iter };
	loff_t pos = 0;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	iter.tr = test_persistent(test, mem);
	test_next_boot(test, iter.tr);
	test_instance_id(iter.tr, 1);
	kunit_release_action(test, test_put_instance, iter.tr);

	iter.tr = test_persistent(test, mem);
	KUNIT_EXPECT_FALSE(test, IS_ERR_OR_NULL(stackmap_seq_start(&m, &pos)));
	/* The map can't be emptied before the reader pauses. */
	KUNIT_EXPECT_TRUE(test, mutex_is_locked(&iter.tr->stackmap->lock));
	stackmap_seq_stop(&m, NULL);
	test_next_boot(test, iter.tr);
	KUNIT_EXPECT_EQ(test, PTR_ERR(stackmap_seq_start(&m, &pos)), -ESTALE);
	stackmap_seq_stop(&m, NULL);
	KUNIT_EXPECT_FALSE(test, mutex_is_locked(&iter.tr->stackmap->lock));
	/* Its last reader does not free it. */
	KUNIT_EXPECT_TRUE(test, iter.gens->gen[0]->map->persistent);
	stackmap_put(iter.gens);
}

static struct kunit_case stackmap_persist_test_cases[] = {
	KUNIT_CASE(stackmap_survives),
	KUNIT_CASE(stackmap_bits_flipped),
	KUNIT_CASE(stackmap_record_too_long),
	KUNIT_CASE(stackmap_kinds_flipped),
	KUNIT_CASE(stackmap_slots_swapped),
	KUNIT_CASE(stackmap_torn),
	KUNIT_CASE(stackmap_header_damaged),
	KUNIT_CASE(stackmap_random_words),
	KUNIT_CASE(stackmap_half_for_users),
	KUNIT_CASE(stackmap_boots),
	KUNIT_CASE(stackmap_read_over_a_boot),
	{ }
};

static struct kunit_suite stackmap_persist_test_suite = {
	.name = "ftrace_stackmap_persist",
	.test_cases = stackmap_persist_test_cases,
};

kunit_test_suite(stackmap_persist_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the stack map of a persistent instance");
