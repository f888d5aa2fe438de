// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of splitting a stack: an event with one id and with two. For one hot stack, and for two
 * stacks in turn that evict each other from the cache.
 */
#include <linux/preempt.h>
#include <linux/sched.h>

#include "bench.h"
#include "bench_map.h"

#define BENCH_CALLS	20000

static const char *const bench_split_names[] = { "event, one part", "event, split in two" };

#define BENCH_VARIANTS	ARRAY_SIZE(bench_split_names)

/* Outside of all frames, but as near to them as the real entry code. */
#define BENCH_ENTRY	(BENCH_TEXT - 0x1000)
#define BENCH_ENTRY_SIZE 0x1000

static u64 bench_took[BENCH_VARIANTS][BENCH_MAX_REPS];
static struct trace_array *bench_tr[BENCH_VARIANTS];
static unsigned long bench_ips[BENCH_VARIANTS][2][BENCH_MAX_DEPTH];

static int bench_split_setup(unsigned int variant)
{
	static const char *const names[] = { "split_one", "split_two" };
	struct ftrace_stackmap *map;
	u32 seed = 7;

	bench_tr[variant] = bench_instance(names[variant], 0);
	if (!bench_tr[variant])
		return -ENOMEM;
	map = bench_enable_map(bench_tr[variant], ftrace_stackmap_bits);
	if (!map)
		return -ENOMEM;

	map->irqentry_start = BENCH_ENTRY;
	map->irqentry_size = BENCH_ENTRY_SIZE;
	for (int i = 0; i < BENCH_MAX_DEPTH; i++)
		bench_ips[variant][0][i] = BENCH_TEXT + bench_random(&seed, 0x1000000);
	/* They differ near their ends, in frames outside of the sample, so they share a cache slot. */
	memcpy(bench_ips[variant][1], bench_ips[variant][0], sizeof(bench_ips[variant][0]));
	for (int depth = 4; depth <= BENCH_MAX_DEPTH; depth *= 2)
		bench_ips[variant][1][depth - 1]++;
	return 0;
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
		trace_record_stack(tr, tr->array_buffer.buffer, 0, ips, depth);
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
	/* Events in interrupts have 5 frames or more; 15 of 3 million had fewer. */
	unsigned int last = (depth < 8 ? depth / 2 : max(depth / 2, 5U)) - 1;
	unsigned long kept[] = { split[0][last], split[1][last] };
	char name[40];

	split[0][last] = BENCH_ENTRY;
	split[1][last] = BENCH_ENTRY;
	for (int rep = 0; rep < reps; rep++)
		for (int i = 0; i < BENCH_VARIANTS; i++)
			bench_took[i][rep] = bench_split_time(i, depth, in_turn);
	split[0][last] = kept[0];
	split[1][last] = kept[1];

	for (int i = 0; i < BENCH_VARIANTS; i++) {
		snprintf(name, sizeof(name), "%s%s", bench_split_names[i],
			 in_turn ? ", in turn" : "");
		bench_report("split", name, depth, in_turn + 1, 1, bench_took[i], reps);
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
	for (int i = 0; i < BENCH_VARIANTS; i++)
		bench_instance_free(bench_tr[i]);
}
