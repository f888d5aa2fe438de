/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_MAP_KUNIT_H
#define _TRACE_STACKMAP_MAP_KUNIT_H

/*
 * What the KUnit tests of the stack map have in common.
 *
 * A test stack describes itself: from its number follow its depth and each of
 * its frames, so that a torn or mixed up record shows.
 */
#include <kunit/test.h>

#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/preempt.h>

#include "trace.h"
#include "trace_stackmap_map.h"

#define TEST_DEPTHS	24	/* depths of numbered stacks: 1 to this */

static inline unsigned int test_depth(unsigned int no)
{
	return 1 + no % TEST_DEPTHS;
}

static inline unsigned long test_frame(unsigned int no, unsigned int i)
{
	return ((unsigned long)no << 8) + i;
}

static inline void test_fill(unsigned long *ips, unsigned int no, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		ips[i] = test_frame(no, i);
}

/* How many stacks were asked for: those that got an id at 0, else by the reason. */
static atomic_long_t test_counted[STACKMAP_NR_DROPS];

/* The id of @key, after stackmap_find() has returned @ret. */
static inline int test_store(struct ftrace_stackmap *map, struct stackmap_key *key, int ret)
{
	if (!ret && key->idx < 0)
		ret = stackmap_insert(map, key);
	atomic_long_inc(&test_counted[-ret]);
	if (ret)
		return -ENOSPC;
	stackmap_add_ref(map, key);
	return map->first_id | key->idx;
}

static inline int test_get_id(struct ftrace_stackmap *map, const unsigned long *ips,
			      unsigned int nr)
{
	struct stackmap_key key = { };

	guard(preempt_notrace)();
	return test_store(map, &key, stackmap_find(map, ips, nr, &key));
}

/* The id of test stack @no. */
static inline int test_insert(struct ftrace_stackmap *map, unsigned int no)
{
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, no, test_depth(no));
	return test_get_id(map, ips, test_depth(no));
}

/* The record of @id, which @map has made. */
static inline const struct stackmap_record *test_record_of(struct ftrace_stackmap *map, int id)
{
	return stackmap_record(map, id & STACKMAP_SLOT_MASK);
}

/* Whether @id leads to stack @no. */
static inline bool test_leads_to(struct ftrace_stackmap *map, int id, unsigned int no)
{
	const struct stackmap_record *rec = test_record_of(map, id);

	return rec->nr == test_depth(no) && rec->ips[0] == test_frame(no, 0) &&
	       rec->ips[rec->nr - 1] == test_frame(no, rec->nr - 1);
}

/* The references of all stacks. */
static inline unsigned long test_refs(struct ftrace_stackmap *map)
{
	unsigned long sum = 0;

	for (u32 idx = 0; idx < map->nr_slots; idx++)
		sum += map->slots[idx] ? stackmap_ref(map, idx) : 0;
	return sum;
}

/* Every stack is whole, and stored once in the map. */
static inline void test_check_stacks(struct kunit *test, struct ftrace_stackmap *map,
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
	kunit_kfree(test, seen);
}

static inline void test_free_map(void *map)
{
	stackmap_free(map);
}

/* A map of 2^@bits stacks. */
static inline struct ftrace_stackmap *test_alloc_map(struct kunit *test, unsigned int bits)
{
	struct ftrace_stackmap *map = stackmap_alloc(bits, 0);

	KUNIT_ASSERT_NOT_NULL(test, map);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_free_map, map), 0);
	/* Not what is left of the map of an earlier test: a record that is read too early shows. */
	memset(map->arena, 0xa5, array_size(map->arena_units, STACKMAP_UNIT));
	memset(test_counted, 0, sizeof(test_counted));
	return map;
}

#define TEST_MAX_WRITERS	8
#define TEST_TIMER_NS		(50 * NSEC_PER_USEC)

/* A thread and, on the same CPU, a timer that interrupts it; both insert. */
struct test_writer {
	struct task_struct	*task;
	atomic_t		*start;	/* number of writers that are not ready yet, or -1: stop */
	struct hrtimer		timer;
	struct completion	done;
	bool			(*insert)(struct test_writer *w, unsigned int no);
	void			(*interrupt)(struct test_writer *w); /* the timer does this */
	void			*data;	/* where to insert */
	unsigned int		nr_stacks;
	unsigned int		passes;
	unsigned long		calls;
	unsigned long		irq_calls;
	unsigned long		errors;
};

static inline enum hrtimer_restart test_timer(struct hrtimer *timer)
{
	struct test_writer *w = container_of(timer, struct test_writer, timer);

	if (w->interrupt)
		w->interrupt(w);
	/* What the thread is at, or will be soon. */
	for (int i = 0; !w->interrupt && i < 8; i++, w->irq_calls++) {
		if (!w->insert(w, (READ_ONCE(w->calls) + i) % w->nr_stacks))
			w->errors++;
	}
	/* Counted from now, so that the thread gets on where all this takes long. */
	hrtimer_set_expires(timer, ktime_add_ns(ktime_get(), TEST_TIMER_NS));
	return HRTIMER_RESTART;
}

static inline int test_writer_fn(void *data)
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
		if (!w->insert(w, w->calls % w->nr_stacks))
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
static inline bool test_create_writer(struct test_writer *w, const struct test_writer *model,
				      int cpu, atomic_t *start)
{
	*w = *model;
	w->start = start;
	init_completion(&w->done);
	w->task = kthread_create_on_cpu(test_writer_fn, w, cpu, "stackmap_test/%u");
	return !IS_ERR(w->task);
}

/* Starts a copy of @model on each CPU; returns how many there are. */
static inline int test_start_writers(struct kunit *test, struct test_writer *w,
				     const struct test_writer *model, atomic_t *start)
{
	int nr = 0;
	int cpu;

	for_each_online_cpu(cpu) {
		if (nr == TEST_MAX_WRITERS || !test_create_writer(&w[nr], model, cpu, start))
			break;
		nr++;
	}

	atomic_set(start, nr);
	for (int i = 0; i < nr; i++)
		wake_up_process(w[i].task);
	KUNIT_ASSERT_GT(test, nr, 0);
	return nr;
}

/* How many stacks each CPU asks for where most are known, at most. */
extern unsigned int stackmap_test_hits;

static inline struct test_writer *test_writers(struct kunit *test)
{
	struct test_writer *w = kunit_kcalloc(test, TEST_MAX_WRITERS, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	return w;
}

#endif /* _TRACE_STACKMAP_MAP_KUNIT_H */
