/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _STACKMAP_BENCH_H
#define _STACKMAP_BENCH_H

#include <linux/cache.h>
#include <linux/jhash.h>
#include <linux/string.h>
#include <linux/types.h>

#define BENCH_MAX_DEPTH		64
#define BENCH_NR_DEPTHS		5
#define BENCH_MAX_REPS		99
#define BENCH_TEXT		0xffffffff81000000UL

/**
 * struct bench - one thread at work on one kind of map
 * @depth: frames of each stack
 * @set: number of distinct stacks, recorded in random order
 * @first: number of the first one
 * @no: number of the current one
 * @stored: all stacks in one array, for benchmarks without a map
 * @map: the map under test
 * @nr: @depth, at the place of perf_callchain_entry's
 * @ips: the current stack
 */
struct bench {
	unsigned int	depth;
	unsigned int	set;
	unsigned int	first;
	unsigned int	no;
	unsigned long	*stored;
	void		*map;
	u64		nr ____cacheline_aligned;
	unsigned long	ips[BENCH_MAX_DEPTH];
};

struct bench_peer {
	const char	*name;
	int		(*setup)(struct bench *b);
	unsigned long	(*run)(struct bench *b, unsigned int calls);
	/* The same in order: inserts new stacks. */
	unsigned long	(*insert)(struct bench *b, unsigned int calls);
	void		(*clear)(struct bench *b);
	void		(*teardown)(struct bench *b);
};

extern const struct bench_peer bench_bpf;
extern const unsigned int bench_depths[BENCH_NR_DEPTHS];

u64 bench_now(void);
void bench_maps(unsigned int reps);
void bench_load(unsigned int reps);
void bench_split(unsigned int reps);
void bench_rotate(unsigned int reps);
void bench_one_event(unsigned int reps);

/* @took: hundredths of a nanosecond a call, for each repetition. */
void bench_report(const char *section, const char *what, unsigned int depth, unsigned int set,
		  unsigned int cpus, u64 *took, unsigned int reps);

/* Most frames are common to all stacks, as in a real kernel. */
static __always_inline void bench_stack(struct bench *b, unsigned int no)
{
	b->no = no;
	no += b->first;
	b->ips[1] = BENCH_TEXT + 16 * (no & 1023);
	b->ips[b->depth / 2] = BENCH_TEXT + 0x400000 + 16 * (no >> 10);
}

static __always_inline u32 bench_random(u32 *seed, unsigned int below)
{
	*seed = *seed * 1664525 + 1013904223;
	return ((u64)*seed * below) >> 32;
}

/*
 * Defines prefix_run() and prefix_insert(). Each peer has its own loops with a
 * direct call, as in a kernel. With one stack, the loop has only the call.
 */
#define BENCH_LOOPS(prefix, op)							\
static unsigned long prefix##_run(struct bench *b, unsigned int calls)		\
{										\
	unsigned long sum = 0;							\
	u32 seed = 1;								\
										\
	if (b->set == 1) {							\
		while (calls--) {						\
			sum += op(b, b->ips, b->depth);				\
			barrier();						\
		}								\
		return sum;							\
	}									\
	while (calls--) {							\
		bench_stack(b, bench_random(&seed, b->set));			\
		sum += op(b, b->ips, b->depth);					\
		barrier();							\
	}									\
	return sum;								\
}										\
										\
static unsigned long prefix##_insert(struct bench *b, unsigned int calls)	\
{										\
	unsigned long sum = 0;							\
										\
	for (unsigned int no = 0; no < calls; no++) {				\
		bench_stack(b, no);						\
		sum += op(b, b->ips, b->depth);					\
		barrier();							\
	}									\
	return sum;								\
}

#endif /* _STACKMAP_BENCH_H */
