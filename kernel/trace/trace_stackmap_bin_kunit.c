// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of stack_map_bin.
 */
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "trace_stackmap_tracefs.h"
#include "trace_stackmap_kunit.h"

/* More references than 32 bits count. */
static void stackmap_bin_saturates(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 0);
	int id = test_instance_id(tr, 1);
	struct stackmap_iter iter = {
		.tr	= tr,
		.gen	= test_current(tr)->gen,
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

/* A reader whose first read failed begins again, and counts stacks and files anew. */
static void stackmap_counts_again(struct kunit *test)
{
	struct stackmap_iter iter = { .tr = test_instance(test, 0) };
	struct seq_file m = { .private = &iter };
	loff_t pos;

	test_instance_id(iter.tr, 1);
	for (int i = 0; i < 2; i++) {
		pos = 0;
		iter.files_size = i;
		KUNIT_EXPECT_PTR_EQ(test, stackmap_bin_start(&m, &pos), SEQ_START_TOKEN);
		KUNIT_EXPECT_EQ(test, pos, 0);
		KUNIT_EXPECT_EQ(test, iter.nr_stacks, 1);
		KUNIT_EXPECT_EQ(test, iter.files_size, 0);
	}
	iter.split = 1;
	KUNIT_EXPECT_EQ(test, test_set_option(iter.tr, "nostackmap"), 0);
	KUNIT_EXPECT_EQ(test, test_reset(iter.tr), 0);
	stackmap_bin_start(&m, &pos);
	KUNIT_EXPECT_EQ(test, iter.nr_stacks + iter.split, 0);
	KUNIT_EXPECT_NULL(test, iter.gens);
}

/* A stack is by file in stack_map_bin if any of its frames is. */
static void stackmap_bin_user(struct kunit *test)
{
	struct stackmap_record *rec = kunit_kzalloc(test, struct_size(rec, ips, 2), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rec);
	if (!IS_ENABLED(CONFIG_TRACE_USER_FILES))
		kunit_skip(test, "no user stacks by file");
	rec->nr = 2;
	rec->ips[1] = BIT_ULL(63) | 1ULL << USER_WORD_OFFSET_BITS;
	KUNIT_EXPECT_EQ(test, stackmap_bin_flags(rec), 0);
	rec->user = true;
	KUNIT_EXPECT_EQ(test, stackmap_bin_flags(rec), STACKMAP_BIN_USER | STACKMAP_BIN_BY_FILE);
	rec->ips[1] = 1;
	KUNIT_EXPECT_EQ(test, stackmap_bin_flags(rec), STACKMAP_BIN_USER);
}

static struct kunit_case stackmap_bin_test_cases[] = {
	KUNIT_CASE(stackmap_bin_saturates),
	KUNIT_CASE(stackmap_counts_again),
	KUNIT_CASE(stackmap_bin_user),
	{ }
};

static struct kunit_suite stackmap_bin_test_suite = {
	.name = "ftrace_stackmap_bin",
	.test_cases = stackmap_bin_test_cases,
};

kunit_test_suite(stackmap_bin_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of stack_map_bin");
