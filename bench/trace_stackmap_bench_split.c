// SPDX-License-Identifier: GPL-2.0
/*
 * What it costs to look where a stack is to be split, and to split it: the event
 * by its id without the look, with it, and by two ids. Of one hot stack, which is
 * recalled without a look, and of two in turn that displace one another.
 */
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sort.h>

#include "bench.h"
#include "trace.h"
#include "trace_stackmap.h"

#define BENCH_CALLS	20000

static const char *const bench_split_names[] = {
	"event, not looked at", "event, one part", "event, split in two",
};

#define BENCH_VARIANTS	ARRAY_SIZE(bench_split_names)

/* Beside all frames, but as near to them as the real one. */
#define BENCH_ENTRY	(BENCH_TEXT - 0x1000)
#define BENCH_ENTRY_SIZE 0x1000

static u64 bench_took[BENCH_VARIANTS][BENCH_MAX_REPS];
static struct trace_array *bench_tr[BENCH_VARIANTS];
static unsigned long bench_ips[BENCH_VARIANTS][2][BENCH_MAX_DEPTH];

static int bench_cmp_took(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static int bench_split_setup(unsigned int variant)
{
	static const char *const names[] = { "split_none", "split_one", "split_two" };
	struct ftrace_stackmap *map;
	struct trace_array *tr;
	char option[] = "stackmap";
	u32 seed = 7;
	int ret;

	tr = trace_array_get_by_name(names[variant], NULL);
	if (!tr)
		return -ENOMEM;
	bench_tr[variant] = tr;
	ret = tracing_set_clock(tr, "counter") ?: trace_set_options(tr, option);
	if (ret)
		return ret;

	map = rcu_access_pointer(tr->stackmap);
	map->entry_start = BENCH_ENTRY;
	map->entry_size = BENCH_ENTRY_SIZE;
	for (int i = 0; i < BENCH_MAX_DEPTH; i++)
		bench_ips[variant][0][i] = BENCH_TEXT + bench_random(&seed, 0x1000000);
	/* They differ near their ends, in frames that do not tell the word of a stack. */
	memcpy(bench_ips[variant][1], bench_ips[variant][0], sizeof(bench_ips[variant][0]));
	for (int depth = 4; depth <= BENCH_MAX_DEPTH; depth *= 2)
		bench_ips[variant][1][depth - 1]++;
	return 0;
}

/* What ftrace_stackmap_record() would be if no stack were split. */
static noinline bool bench_record_plain(struct ftrace_stackmap *map, struct trace_buffer *buffer,
					const unsigned long *ips, unsigned int nr)
{
	struct ring_buffer_event *event;
	struct stack_id_entry *entry;

	event = trace_buffer_lock_reserve(buffer, TRACE_STACK_ID, sizeof(*entry), 0);
	if (!event)
		return true;
	entry = ring_buffer_event_data(event);
	entry->stack_id = ftrace_stackmap_get_id(map, ips, nr);
	trace_buffer_unlock_commit_nostack(buffer, event);
	return true;
}

/* trace_record_stack() with that. */
static noinline void bench_record(struct trace_array *tr, struct trace_buffer *buffer,
				  const unsigned long *ips, unsigned int nr)
{
	struct ftrace_stackmap *map = ftrace_stackmap_active(tr);

	if (map && buffer == tr->array_buffer.buffer && bench_record_plain(map, buffer, ips, nr))
		return;
	pr_err("not recorded\n");
}

static u64 bench_split_time(unsigned int variant, unsigned int depth, bool in_turn)
{
	struct trace_array *tr = bench_tr[variant];
	const unsigned long *ips;
	u64 start;

	preempt_disable();
	start = bench_now();
	for (int i = 0; i < BENCH_CALLS; i++) {
		ips = bench_ips[variant][in_turn & i];
		if (variant)
			trace_record_stack(tr, tr->array_buffer.buffer, 0, ips, depth);
		else
			bench_record(tr, tr->array_buffer.buffer, ips, depth);
		barrier();
	}
	start = bench_now() - start;
	preempt_enable();
	cond_resched();
	return start * 100 / BENCH_CALLS;
}

static void bench_split_depth(unsigned int reps, unsigned int depth, bool in_turn)
{
	unsigned long (*split)[BENCH_MAX_DEPTH] = bench_ips[BENCH_VARIANTS - 1];
	/* Hardly an interrupt (15 of 3 million) comes to an event with fewer frames than 5. */
	unsigned int last = (depth < 8 ? depth / 2 : max(depth / 2, 5U)) - 1;
	unsigned long kept[] = { split[0][last], split[1][last] };
	u64 *took;

	split[0][last] = BENCH_ENTRY;
	split[1][last] = BENCH_ENTRY;
	for (int rep = 0; rep < reps; rep++)
		for (int i = 0; i < BENCH_VARIANTS; i++)
			bench_took[i][rep] = bench_split_time(i, depth, in_turn);
	split[0][last] = kept[0];
	split[1][last] = kept[1];

	for (int i = 0; i < BENCH_VARIANTS; i++) {
		took = bench_took[i];
		sort(took, reps, sizeof(*took), bench_cmp_took, NULL);
		pr_info("BENCH split,\"%s%s\",%u,%u,1,%llu,%llu\n", bench_split_names[i],
			in_turn ? ", in turn" : "", depth, in_turn + 1, took[0], took[reps / 2]);
	}
}

void bench_split(unsigned int reps)
{
	for (int i = 0; i < BENCH_VARIANTS; i++)
		if (bench_split_setup(i))
			return;
	for (unsigned int depth = 4; depth <= BENCH_MAX_DEPTH; depth *= 2) {
		bench_split_depth(reps, depth, false);
		bench_split_depth(reps, depth, true);
	}
	for (int i = 0; i < BENCH_VARIANTS; i++) {
		trace_array_put(bench_tr[i]);
		trace_array_destroy(bench_tr[i]);
	}
}
