/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_KUNIT_H
#define _TRACE_STACKMAP_KUNIT_H

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
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/ring_buffer.h>
#include <linux/slab.h>

#include "trace_output.h"
#include "trace_stackmap_internal.h"
#include "trace_stackmap_user_kunit.h"

#define TEST_MAX_DEPTH	1024
#define TEST_GARBAGE	0xa5
#define TEST_DEPTHS	24	/* depths of numbered stacks: 1 to this */
#define TEST_HASH	0x12345678
#define TEST_SIMILAR_BITS	14
#define TEST_IRQ	5	/* the stack that ends in entry code, where there is any */

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

/* What counts the stacks: of the instance under test, or of a map alone. */
static struct stackmap_instance *test_inst;

/* The id of @parts, of which there are @nr, after stackmap_find(). */
static inline int test_store(struct ftrace_stackmap *map, struct stackmap_part *parts, int nr)
{
	int ret = nr < 0 ? nr : stackmap_store(map, parts, nr);

	if (ret && test_inst->tr)
		stackmap_ask(test_inst, map);
	if (ret < 0) {
		stackmap_count(test_inst, -ret, 1);
		return -ENOSPC;
	}
	stackmap_success(test_inst, map, parts, nr);
	return stackmap_id(map, parts->idx);
}

static inline int test_get_parts(struct ftrace_stackmap *map, const unsigned long *ips,
				 unsigned int nr, struct stackmap_part *parts)
{
	guard(preempt_notrace)();
	return test_store(map, parts, stackmap_find(map, ips, nr, false, parts));
}

static inline int test_get_id(struct ftrace_stackmap *map, const unsigned long *ips,
			      unsigned int nr)
{
	struct stackmap_part parts[STACKMAP_MAX_PARTS];

	return test_get_parts(map, ips, nr, parts);
}

/* The id of test stack @no. */
static inline int test_insert(struct ftrace_stackmap *map, unsigned int no)
{
	unsigned long ips[TEST_DEPTHS];

	test_fill(ips, no, test_depth(no));
	return test_get_id(map, ips, test_depth(no));
}

/* Makes the last frame of test stack TEST_IRQ all of the entry code. */
static inline void test_set_entry(struct ftrace_stackmap *map)
{
	map->entry_start = test_frame(TEST_IRQ, test_depth(TEST_IRQ) - 1);
	map->entry_size = 1;
}

/* Test stack TEST_IRQ, then @ip, then test stack @no. Returns the number of frames. */
static inline unsigned int test_fill_irq(unsigned long *ips, unsigned long ip, unsigned int no)
{
	unsigned int nr = test_depth(TEST_IRQ);

	test_fill(ips, TEST_IRQ, nr);
	ips[nr++] = ip;
	test_fill(ips + nr, no, test_depth(no));
	return nr + test_depth(no);
}

static inline int test_insert_irq(struct ftrace_stackmap *map, unsigned long ip, unsigned int no,
				  int *ids)
{
	struct stackmap_part parts[STACKMAP_MAX_PARTS];
	unsigned long ips[2 * TEST_DEPTHS + 1];
	unsigned int nr = test_fill_irq(ips, ip, no);
	int nr_parts;

	guard(preempt_notrace)();
	nr_parts = stackmap_find(map, ips, nr, false, parts);
	if (test_store(map, parts, nr_parts) < 0)
		return -ENOSPC;
	for (int i = 0; i < nr_parts; i++)
		ids[i] = stackmap_id(map, parts[i].idx);
	return 0;
}

/* The record of @id, which @map has made. */
static inline const struct stackmap_record *test_record_of(struct ftrace_stackmap *map, int id)
{
	return stackmap_record(map, id & STACKMAP_SLOT_MASK);
}

static inline unsigned long test_sum(int what)
{
	return stackmap_sum(test_inst, what);
}

static inline unsigned long test_successes(void)
{
	return test_sum(STACKMAP_SUCCESSES);
}

static inline unsigned long test_parts(void)
{
	return test_successes() + test_sum(STACKMAP_MORE_PARTS);
}

static inline unsigned long test_drops(void)
{
	unsigned long sum = 0;

	for (int why = 0; why < STACKMAP_NR_DROPS; why++)
		sum += test_sum(why);
	return sum;
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

/*
 * What holds whenever nobody inserts: @calls are accounted for, references and
 * the parts of the successes agree, and the stacks.
 */
static inline void test_check_map(struct kunit *test, struct ftrace_stackmap *map,
				  unsigned long calls, unsigned int nr_stacks)
{
	KUNIT_EXPECT_EQ(test, test_refs(map), test_parts());
	KUNIT_EXPECT_EQ(test, test_successes() + test_drops(), calls);
	test_check_stacks(test, map, nr_stacks);
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
	/* Record events, and have the timer do this. */
	void			(*interrupt)(struct test_writer *w);
	unsigned long		calls;
	unsigned long		irq_calls;
	unsigned long		errors;
};

/* Whether @id leads to stack @no. */
static inline bool test_leads_to(struct ftrace_stackmap *map, int id, unsigned int no)
{
	const struct stackmap_record *rec = test_record_of(map, id);

	return rec->nr == test_depth(no) && rec->ips[0] == test_frame(no, 0) &&
	       rec->ips[rec->nr - 1] == test_frame(no, rec->nr - 1);
}

/* Inserts a stack, and checks that the id leads back to it. */
static inline bool test_insert_checked(struct ftrace_stackmap *map, unsigned int no)
{
	int id = test_insert(map, no);

	return id < 0 || test_leads_to(map, id, no);
}

static inline bool test_insert_irq_checked(struct ftrace_stackmap *map, unsigned int no)
{
	int ids[STACKMAP_MAX_PARTS];

	return test_insert_irq(map, ~no, no, ids) ||
	       (test_leads_to(map, ids[0], TEST_IRQ) && test_leads_to(map, ids[1], no));
}

/*
 * The event of stack @no, TRACE_STACK_SPLIT for what an interrupt has hit there.
 * The number looks like a preempt count.
 */
static inline void test_write(struct trace_array *tr, unsigned int no, int type)
{
	/* A snapshot may swap the buffers. */
	struct trace_buffer *buffer = data_race(READ_ONCE(tr->array_buffer.buffer));
	unsigned long ips[2 * TEST_DEPTHS + 1];
	unsigned int nr = test_depth(no);

	if (type == TRACE_STACK_SPLIT)
		nr = test_fill_irq(ips, ~no, no);
	else
		test_fill(ips, no, nr);

	guard(preempt_notrace)();
	if (test_write_user(tr, buffer, no & 0xff, ips, nr, type))
		return;
	trace_record_stack(tr, buffer, no & 0xff, ips, nr);
}

static inline bool test_write_one(struct test_writer *w, unsigned int no)
{
	static const int types[] = {
		TRACE_STACK_ID, TRACE_STACK_SPLIT, TRACE_STACK_ID, TRACE_USER_STACK_ID,
	};
	struct ftrace_stackmap *map = w->map;

	guard(preempt_notrace)();
	if (w->record || w->interrupt) {
		test_write(w->tr, no, w->record ? types[no % ARRAY_SIZE(types)] : TRACE_STACK_ID);
		return true;
	}
	if (w->tr)
		map = rcu_dereference_sched(w->tr->stackmap->map);
	if (map && w->irq)
		return test_insert_irq_checked(map, no);
	return !map || test_insert_checked(map, no);
}

static inline enum hrtimer_restart test_timer(struct hrtimer *timer)
{
	struct test_writer *w = container_of(timer, struct test_writer, timer);

	if (w->interrupt)
		w->interrupt(w);
	/* What the thread is at, or will be soon. */
	for (int i = 0; !w->interrupt && i < 8; i++, w->irq_calls++) {
		if (!test_write_one(w, (READ_ONCE(w->calls) + i) % w->nr_stacks))
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
static inline bool test_create_writer(struct test_writer *w, const struct test_writer *model,
				      int cpu,
				      atomic_t *start)
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

static inline struct test_writer *test_writers(struct kunit *test)
{
	struct test_writer *w = kunit_kcalloc(test, TEST_MAX_WRITERS, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	return w;
}

static inline void test_put_instance(void *data)
{
	struct trace_array *tr = data;

	trace_array_put(tr);
	trace_array_destroy(tr);
}

static inline void test_restore_bits(void *bits)
{
	ftrace_stackmap_bits = (unsigned long)bits;
}

static inline struct ftrace_stackmap *test_current(struct trace_array *tr)
{
	return rcu_dereference_check(tr->stackmap->map, true);
}

static inline struct stackmap_set *test_set(struct trace_array *tr)
{
	return rcu_dereference_check(tr->stackmap->set, true);
}

static inline int test_set_option(struct trace_array *tr, const char *name)
{
	char option[20];

	strscpy(option, name);
	return trace_set_options(tr, option);
}

static inline int test_reset(struct trace_array *tr)
{
	guard(mutex)(&trace_types_lock);
	return stackmap_reset(tr);
}

/* Have the next map be of generation @gen. */
static inline void test_next_gen(struct trace_array *tr, u32 gen)
{
	tr->stackmap->next_gen = gen;
}

static inline void test_set_gen(struct kunit *test, struct trace_array *tr, u32 gen)
{
	if (gen) {
		test_next_gen(tr, gen);
		KUNIT_ASSERT_EQ(test, test_reset(tr), 0);
	}
	KUNIT_ASSERT_EQ(test, test_current(tr)->first_id, gen << STACKMAP_SLOT_BITS);
}

/* An instance of its own, with the smallest map, the option on and recording off. */
static inline struct trace_array *test_instance(struct kunit *test, u32 gen)
{
	struct trace_array *tr = trace_array_get_by_name("stackmap_kunit", NULL);

	KUNIT_ASSERT_NOT_NULL(test, tr);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_put_instance, tr), 0);
	KUNIT_EXPECT_NULL(test, tr->stackmap);

	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, test_restore_bits,
							(void *)(long)ftrace_stackmap_bits), 0);
	ftrace_stackmap_bits = STACKMAP_BITS_MIN;
	KUNIT_ASSERT_EQ(test, test_set_option(tr, "stackmap"), 0);
	test_inst = tr->stackmap;
	KUNIT_ASSERT_NOT_NULL(test, test_current(tr));
	tracer_tracing_off(tr);
	test_set_gen(test, tr, gen);
	return tr;
}

static inline void test_replace(struct kunit *test, struct trace_array *tr, unsigned int times)
{
	guard(mutex)(&tr->stackmap->lock);
	while (times--)
		KUNIT_ASSERT_EQ(test, stackmap_replace(tr->stackmap), 0);
}

static inline int test_instance_id(struct trace_array *tr, unsigned int no)
{
	return test_insert(test_current(tr), no);
}

/* Whether @id stands for stack @no, which has to be whole then. */
static inline bool test_resolves(struct kunit *test, struct trace_array *tr, int id,
				 unsigned int no)
{
	const struct stackmap_record *rec;

	guard(rcu)();
	rec = stackmap_lookup(rcu_dereference(tr->stackmap->set), id);
	if (!rec)
		return false;
	KUNIT_EXPECT_EQ(test, rec->nr, test_depth(no));
	KUNIT_EXPECT_EQ(test, rec->ips[0], test_frame(no, 0));
	return true;
}

static inline void test_record_frames(struct trace_array *tr, const unsigned long *ips,
				      unsigned int nr)
{
	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		trace_record_stack(tr, tr->array_buffer.buffer, tracing_gen_ctx(), ips, nr);
	tracer_tracing_off(tr);
}

static inline void test_record(struct trace_array *tr, unsigned int no, int type)
{
	tracer_tracing_on(tr);
	test_write(tr, no, type);
	tracer_tracing_off(tr);
}

static inline void test_record_event(struct trace_array *tr, unsigned int no)
{
	test_record(tr, no, TRACE_STACK_ID);
}

static inline struct ring_buffer_event *test_next_event(struct trace_buffer *buffer)
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
static inline struct trace_iterator *test_iter(struct kunit *test, struct trace_array *tr,
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
static inline struct trace_iterator *test_consume(struct kunit *test, struct trace_array *tr)
{
	return test_iter(test, tr, test_next_event(tr->array_buffer.buffer));
}

/* What `trace` shows for an event. */
static inline const char *test_print(struct trace_iterator *iter)
{
	struct trace_event *event = ftrace_find_event(iter->ent->type);

	trace_seq_init(&iter->seq);
	event->funcs->trace(iter, TRACE_ITER(SYM_ADDR), event);
	return trace_seq_buffer_ptr(&iter->seq) - trace_seq_used(&iter->seq);
}

static inline unsigned int test_printed_frames(struct trace_iterator *iter)
{
	unsigned int frames = 0;

	for (const char *s = test_print(iter); (s = strstr(s, "\n => ")); s++)
		frames++;
	return frames;
}

#ifdef LATENCY_FS_NOTIFY
/* What tells inotify of a snapshot of @tr; nobody waits for it when the instance goes. */
static inline void test_wait_for_inotify(struct trace_array *tr)
{
	irq_work_sync(&tr->fsnotify_irqwork);
	flush_work(&tr->fsnotify_work);
}
#else
static inline void test_wait_for_inotify(struct trace_array *tr) { }
#endif

#ifdef CONFIG_TRACER_SNAPSHOT
/* Moves the events of @tr into its snapshot. */
static inline void test_take_snapshot(struct kunit *test, struct trace_array *tr)
{
	KUNIT_ASSERT_EQ(test, tracing_arm_snapshot(tr), 0);
	tracing_snapshot_instance(tr);
	KUNIT_EXPECT_EQ(test, ring_buffer_entries(tr->array_buffer.buffer), 0);
}

static inline void test_empty_buffers(struct trace_array *tr)
{
	ring_buffer_reset(tr->snapshot_buffer.buffer);
	ring_buffer_reset(tr->array_buffer.buffer);
}

/* Swap the buffers of all CPUs, and of one. */
static inline void test_swap_buffers(struct trace_array *tr)
{
	tracing_snapshot_instance(tr);
	if (IS_ENABLED(CONFIG_RING_BUFFER_ALLOW_SWAP)) {
		guard(irqsave)();
		update_max_tr_single(tr, current, smp_processor_id());
	}
}

static inline struct trace_buffer *test_snapshot_buffer(struct trace_array *tr)
{
	return tr->snapshot_buffer.buffer;
}

static inline void test_end_snapshot(struct trace_array *tr)
{
	tracing_disarm_snapshot(tr);
	test_wait_for_inotify(tr);
}
#else
static inline void test_take_snapshot(struct kunit *test, struct trace_array *tr) { }
static inline void test_swap_buffers(struct trace_array *tr) { }
static inline struct trace_buffer *test_snapshot_buffer(struct trace_array *tr) { return NULL; }
static inline void test_end_snapshot(struct trace_array *tr) { }

static inline void test_empty_buffers(struct trace_array *tr)
{
	ring_buffer_reset(tr->array_buffer.buffer);
}
#endif

/*
 * Take all events out of @buffer. Each has to resolve, to the stack that it was
 * recorded with. Returns the number of those that were recorded in full.
 */
static inline unsigned int test_all_resolve(struct kunit *test, struct trace_array *tr,
					    struct trace_buffer *buffer)
{
	const struct stackmap_record *rec;
	struct ring_buffer_event *event;
	struct trace_entry *ent;
	unsigned int full = 0;
	int nr;

	guard(rcu)();
	while ((event = test_next_event(buffer))) {
		ent = ring_buffer_event_data(event);
		nr = stackmap_event_ids(ent, ring_buffer_event_length(event));
		full += !nr;
		for (int i = 0; i < nr; i++) {
			rec = stackmap_lookup(test_set(tr), stackmap_event_id(ent, i));
			KUNIT_ASSERT_NOT_NULL(test, rec);
			KUNIT_EXPECT_EQ(test, (rec->ips[0] >> 8) & 0xff,
					i + 1 < nr ? TEST_IRQ : ent->preempt_count);
			KUNIT_EXPECT_EQ(test, rec->nr, test_depth(rec->ips[0] >> 8));
			KUNIT_EXPECT_EQ(test, rec->user, ent->type != TRACE_STACK_ID &&
					ent->type != TRACE_STACK_SPLIT);
		}
	}
	return full;
}

static inline void test_resize(struct kunit *test, struct trace_buffer *buffer, unsigned int pages)
{
	KUNIT_ASSERT_GE(test, ring_buffer_resize(buffer, pages * PAGE_SIZE, RING_BUFFER_ALL_CPUS),
			0);
}

/* The oldest event, which has to be of this type. It is removed. */
static inline struct trace_iterator *test_expect_event(struct kunit *test, struct trace_array *tr,
						       int type)
{
	struct trace_iterator *iter = test_consume(test, tr);

	KUNIT_ASSERT_EQ(test, iter->ent->type, type);
	return iter;
}

static inline void test_expect_no_event(struct kunit *test, struct trace_array *tr)
{
	KUNIT_EXPECT_EQ(test, ring_buffer_entries(tr->array_buffer.buffer), 0);
}

#endif /* _TRACE_STACKMAP_KUNIT_H */
