// SPDX-License-Identifier: GPL-2.0
/*
 * Benchmark of the stack map and its peers on User-Mode Linux, where the kernel's
 * code runs at native speed. Prints lines of
 *
 *   BENCH section,what,depth,stacks,cpus,minimum,median
 *
 * in hundredths of a nanosecond of the thread's CPU time for each call. Each
 * repetition runs all peers, one after the other.
 */
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/stackdepot.h>
#include <linux/trace.h>
#include <linux/vmalloc.h>
#include <linux/xxhash.h>

#include "bench.h"
#include "bench_map.h"
#include "tracing_map.h"

#define BENCH_MAX_PEERS		13

static unsigned int bench_reps;

static bool bench_small;	/* for a quick look: fewer depths and stacks */
module_param_named(small, bench_small, bool, 0444);

static bool bench_hot;		/* for a quicker one: hits of one stack only */
module_param_named(hot, bench_hot, bool, 0444);

/* Takes all results, so that no call is optimized away. */
static unsigned long bench_sink;

/* The empty loop. */
static __always_inline unsigned long bench_none(struct bench *b, const unsigned long *ips,
						unsigned int depth)
{
	return ips[0];
}

BENCH_LOOPS(bench_none, bench_none)

/* The floor of every map that hashes with jhash2(). */
static __always_inline unsigned long bench_jhash2(struct bench *b, const unsigned long *ips,
						  unsigned int depth)
{
	const unsigned long *stored = b->stored + (b->set > 1 ? b->no * b->depth : 0);
	u32 hash = jhash2((const u32 *)ips, depth * (sizeof(*ips) / sizeof(u32)), depth);

	return hash + memcmp(ips, stored, depth * sizeof(*ips));
}

BENCH_LOOPS(bench_jhash2, bench_jhash2)

static __always_inline unsigned long bench_xxhash(struct bench *b, const unsigned long *ips,
						  unsigned int depth)
{
	const unsigned long *stored = b->stored + (b->set > 1 ? b->no * b->depth : 0);

	return xxhash(ips, depth * sizeof(*ips), depth) +
	       memcmp(ips, stored, depth * sizeof(*ips));
}

BENCH_LOOPS(bench_xxhash, bench_xxhash)

static int bench_stored_setup(struct bench *b)
{
	b->stored = vmalloc_array(b->set, b->depth * sizeof(*b->stored));
	if (!b->stored)
		return -ENOMEM;
	for (unsigned int no = 0; no < b->set; no++) {
		bench_stack(b, no);
		memcpy(b->stored + no * b->depth, b->ips, b->depth * sizeof(*b->ips));
	}
	return 0;
}

static void bench_stored_teardown(struct bench *b)
{
	vfree(b->stored);
}

static __always_inline unsigned long bench_stackmap(struct bench *b, const unsigned long *ips,
						    unsigned int depth)
{
	return bench_look_up(b->map, ips, depth);
}

BENCH_LOOPS(bench_stackmap, bench_stackmap)

/* The same map without the cache of each CPU: always hash, and count in the record. */
static __always_inline unsigned long bench_uncached(struct bench *b, const unsigned long *ips,
						    unsigned int depth)
{
	struct stackmap_key key = { .ips = ips, .nr = depth, .idx = -ENOENT };
	struct ftrace_stackmap *map = b->map;
	struct stackmap_record *rec;
	int ret;

	key.hash = stackmap_hash(map, ips, depth, false, false);
	ret = stackmap_insert(map, &key);
	if (ret) {
		local_inc(&this_cpu_ptr(&bench_counts)->of[-ret]);
		return 0;
	}
	rec = stackmap_record(map, key.idx);
	stackmap_set_cpu(map, rec);
	atomic_long_inc(&rec->ref);
	local_inc(&this_cpu_ptr(&bench_counts)->of[STACKMAP_SUCCESSES]);
	return stackmap_id(map, key.idx);
}

BENCH_LOOPS(bench_uncached, bench_uncached)

/* Log2 of a map with room for @nr stacks of @depth frames, entries and arena. */
static unsigned int bench_bits(unsigned int nr, unsigned int depth)
{
	u64 size = (u64)nr * (sizeof(struct stackmap_record) + depth * sizeof(long));
	u64 mean = sizeof(struct stackmap_record) + 24 * sizeof(long);
	unsigned int bits = STACKMAP_BITS_MIN;

	while (bits < STACKMAP_BITS_MAX && (1U << bits < nr || mean << bits < size))
		bits++;
	return bits;
}

DEFINE_PER_CPU(struct stackmap_counts, bench_counts);

/* A map without an instance, which is never replaced. */
struct ftrace_stackmap *bench_alloc_map(unsigned int bits)
{
	return stackmap_alloc(bits, 0);
}

void bench_free_map(struct ftrace_stackmap *map)
{
	stackmap_free(map);
}

static int bench_stackmap_setup(struct bench *b)
{
	b->map = bench_alloc_map(bench_bits(b->set, b->depth));
	return b->map ? 0 : -ENOMEM;
}

/* Uses the same memory again, because the first access to new memory is slow. */
static void bench_stackmap_clear(struct bench *b)
{
	struct ftrace_stackmap *map = b->map;
	int cpu;

	memset(map->slots, 0, array_size(map->nr_slots, sizeof(*map->slots)));
	atomic_set(&map->entries, 0);
	atomic_set(&map->tail, 1);
	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(map->cache, cpu), 0, sizeof(*map->cache));
}

static void bench_stackmap_teardown(struct bench *b)
{
	bench_free_map(b->map);
}

static __always_inline unsigned long bench_depot(struct bench *b, unsigned long *ips,
						 unsigned int depth)
{
	return stack_depot_save(ips, depth, GFP_NOWAIT);
}

BENCH_LOOPS(bench_depot, bench_depot)

/* The depot cannot be emptied, so use new stacks each time. */
static void bench_depot_clear(struct bench *b)
{
	static unsigned int next = 1 << 20;

	b->first = next;
	next += b->set;
}

static __always_inline unsigned long bench_tracing_map(struct bench *b, unsigned long *ips,
						       unsigned int depth)
{
	struct tracing_map_elt *elt = tracing_map_insert(b->map, ips);

	if (!elt)
		return 0;
	tracing_map_update_sum(elt, 0, 1);
	return elt->map->key_size;
}

BENCH_LOOPS(bench_tracing_map, bench_tracing_map)

static int bench_tracing_map_setup(struct bench *b)
{
	unsigned int bits = max(order_base_2(b->set), TRACING_MAP_BITS_MIN);
	struct tracing_map *map = tracing_map_create(bits, b->depth * sizeof(long), NULL, NULL);

	if (IS_ERR(map))
		return PTR_ERR(map);
	tracing_map_add_sum_field(map);
	tracing_map_add_key_field(map, 0, tracing_map_cmp_none);
	b->map = map;
	return tracing_map_init(map);
}

static void bench_tracing_map_clear(struct bench *b)
{
	tracing_map_clear(b->map);
}

static void bench_tracing_map_teardown(struct bench *b)
{
	tracing_map_destroy(b->map);
}

/* Records the event of a stack in the ring buffer of an instance, in full or as an id. */
static __always_inline unsigned long bench_event(struct bench *b, unsigned long *ips,
						 unsigned int depth)
{
	struct trace_array *tr = b->map;

	trace_record_stack(tr, tr->array_buffer.buffer, 0, ips, depth);
	return 0;
}

BENCH_LOOPS(bench_event, bench_event)

/* @size: bytes for each CPU, 0: the default, which fits into the cache. */
struct trace_array *bench_instance(const char *name, unsigned long size)
{
	struct trace_array *tr = trace_array_get_by_name(name, NULL);

	/* This clock costs as much as that of x86. The local clock is a system call here. */
	if (!tr || tracing_set_clock(tr, "counter"))
		return NULL;
	if (size && tracing_resize_ring_buffer(tr, size, RING_BUFFER_ALL_CPUS) < 0)
		return NULL;
	return tr;
}

/* Not the small map that an instance begins with, and one that is not replaced. */
struct ftrace_stackmap *bench_enable_map(struct trace_array *tr, unsigned int bits)
{
	char option[] = "stackmap";
	struct stackmap_instance *inst;
	struct ftrace_stackmap *map;
	struct stackmap_gen *gen;

	if (trace_set_options(tr, option))
		return NULL;

	inst = tr->stackmap;
	guard(mutex)(&inst->lock);
	map = stackmap_alloc(bits, 2048 << STACKMAP_SLOT_BITS);
	gen = map ? stackmap_gen_alloc(map->first_id, map) : NULL;
	return gen && !stackmap_begin_map(inst, gen) ? map : NULL;
}

void bench_instance_free(struct trace_array *tr)
{
	trace_array_put(tr);
	trace_array_destroy(tr);
}

static int bench_event_setup(struct bench *b, const char *name, unsigned long size)
{
	b->map = bench_instance(name, size);
	return b->map ? 0 : -ENOMEM;
}

static int bench_id_setup_size(struct bench *b, const char *name, unsigned long size)
{
	int ret = bench_event_setup(b, name, size);

	if (ret)
		return ret;
	return bench_enable_map(b->map, bench_bits(b->set, b->depth)) ? 0 : -ENOMEM;
}

static int bench_full_setup(struct bench *b)
{
	return bench_event_setup(b, "bench_full", 0);
}

static int bench_id_setup(struct bench *b)
{
	return bench_id_setup_size(b, "bench_id", 0);
}

static int bench_define_setup(struct bench *b)
{
	char option[] = "stackmap-define";
	int ret = bench_id_setup_size(b, "bench_define", 0);

	return ret ?: trace_set_options(b->map, option);
}

static int bench_full_large_setup(struct bench *b)
{
	return bench_event_setup(b, "bench_full_large", SZ_64M);
}

static int bench_id_large_setup(struct bench *b)
{
	return bench_id_setup_size(b, "bench_id_large", SZ_64M);
}

static void bench_event_teardown(struct bench *b)
{
	bench_instance_free(b->map);
}

static const struct bench_peer bench_peer_none = {
	.name		= "empty loop",
	.run		= bench_none_run,
	.insert		= bench_none_insert,
};

static const struct bench_peer bench_peer_jhash2 = {
	.name		= "jhash2 + memcmp",
	.setup		= bench_stored_setup,
	.run		= bench_jhash2_run,
	.insert		= bench_jhash2_insert,
	.teardown	= bench_stored_teardown,
};

static const struct bench_peer bench_peer_xxhash = {
	.name		= "xxhash + memcmp",
	.setup		= bench_stored_setup,
	.run		= bench_xxhash_run,
	.insert		= bench_xxhash_insert,
	.teardown	= bench_stored_teardown,
};

static const struct bench_peer bench_peer_stackmap = {
	.name		= "stack map",
	.setup		= bench_stackmap_setup,
	.run		= bench_stackmap_run,
	.insert		= bench_stackmap_insert,
	.clear		= bench_stackmap_clear,
	.teardown	= bench_stackmap_teardown,
};

static const struct bench_peer bench_peer_uncached = {
	.name		= "stack map, no cache",
	.setup		= bench_stackmap_setup,
	.run		= bench_uncached_run,
	.insert		= bench_uncached_insert,
	.clear		= bench_stackmap_clear,
	.teardown	= bench_stackmap_teardown,
};

static const struct bench_peer bench_peer_depot = {
	.name		= "stack_depot_save",
	.run		= bench_depot_run,
	.insert		= bench_depot_insert,
	.clear		= bench_depot_clear,
};

static const struct bench_peer bench_peer_tracing_map = {
	.name		= "tracing_map",
	.setup		= bench_tracing_map_setup,
	.run		= bench_tracing_map_run,
	.insert		= bench_tracing_map_insert,
	.clear		= bench_tracing_map_clear,
	.teardown	= bench_tracing_map_teardown,
};

static const struct bench_peer bench_peer_full = {
	.name		= "event, full stack",
	.setup		= bench_full_setup,
	.run		= bench_event_run,
	.insert		= bench_event_insert,
	.teardown	= bench_event_teardown,
};

static const struct bench_peer bench_peer_id = {
	.name		= "event, stack map",
	.setup		= bench_id_setup,
	.run		= bench_event_run,
	.insert		= bench_event_insert,
	.teardown	= bench_event_teardown,
};

static const struct bench_peer bench_peer_define = {
	.name		= "event, defined",
	.setup		= bench_define_setup,
	.run		= bench_event_run,
	.insert		= bench_event_insert,
	.teardown	= bench_event_teardown,
};

static const struct bench_peer bench_peer_full_large = {
	.name		= "event, full stack, 64 MB",
	.setup		= bench_full_large_setup,
	.run		= bench_event_run,
	.insert		= bench_event_insert,
	.teardown	= bench_event_teardown,
};

static const struct bench_peer bench_peer_id_large = {
	.name		= "event, stack map, 64 MB",
	.setup		= bench_id_large_setup,
	.run		= bench_event_run,
	.insert		= bench_event_insert,
	.teardown	= bench_event_teardown,
};

static const struct bench_peer *const bench_hit_peers[] = {
	&bench_peer_none, &bench_peer_jhash2, &bench_peer_xxhash, &bench_peer_stackmap,
	&bench_peer_uncached, &bench_peer_depot, &bench_bpf, &bench_peer_tracing_map,
	&bench_peer_full, &bench_peer_id, &bench_peer_define, &bench_peer_full_large,
	&bench_peer_id_large,
};

static const struct bench_peer *const bench_insert_peers[] = {
	&bench_peer_stackmap, &bench_peer_depot, &bench_bpf, &bench_peer_tracing_map,
};

static int bench_cmp(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

void bench_report(const char *section, const char *what, unsigned int depth, unsigned int set,
		  unsigned int cpus, u64 *took, unsigned int reps)
{
	sort(took, reps, sizeof(*took), bench_cmp, NULL);
	pr_info("BENCH %s,\"%s\",%u,%u,%u,%llu,%llu\n", section, what, depth, set, cpus,
		took[0], took[reps / 2]);
}

static u64 bench_time(unsigned long (*run)(struct bench *b, unsigned int calls), struct bench *b,
		      unsigned int calls)
{
	unsigned long sum;
	u64 start;

	preempt_disable();
	start = bench_now();
	sum = run(b, calls);
	start = bench_now() - start;
	preempt_enable();

	WRITE_ONCE(bench_sink, bench_sink + sum);
	cond_resched();
	return start * 100 / calls;
}

static void bench_init(struct bench *b, unsigned int depth, unsigned int set)
{
	u32 seed = 7;

	memset(b, 0, sizeof(*b));
	b->depth = depth;
	b->set = set;
	b->nr = depth;
	for (int i = 0; i < BENCH_MAX_DEPTH; i++)
		b->ips[i] = BENCH_TEXT + bench_random(&seed, 0x1000000);
	bench_stack(b, 0);
}

struct bench_run {
	struct bench	b[BENCH_MAX_PEERS];
	u64		took[BENCH_MAX_PEERS][BENCH_MAX_REPS];
};

static struct bench_run *bench_run;

static int bench_setup(const struct bench_peer *const *peers, int nr, unsigned int depth,
		       unsigned int set)
{
	struct bench *b = bench_run->b;
	int ret;

	for (int i = 0; i < nr; i++) {
		bench_init(&b[i], depth, set);
		ret = peers[i]->setup ? peers[i]->setup(&b[i]) : 0;
		if (ret) {
			pr_err("bench: no %s for %u stacks of depth %u: %d\n", peers[i]->name, set,
			       depth, ret);
			return ret;
		}
	}
	return 0;
}

static void bench_teardown(const struct bench_peer *const *peers, int nr)
{
	for (int i = 0; i < nr; i++)
		if (peers[i]->teardown)
			peers[i]->teardown(&bench_run->b[i]);
}

static int bench_hits(unsigned int depth, unsigned int set)
{
	const int nr = ARRAY_SIZE(bench_hit_peers);
	struct bench *b = bench_run->b;
	unsigned int calls = clamp(set, 20000U, 100000U);

	if (bench_setup(bench_hit_peers, nr, depth, set))
		return -ENOMEM;

	for (int i = 0; i < nr; i++) {
		bench_time(bench_hit_peers[i]->insert, &b[i], set);
		bench_stack(&b[i], 0);
	}
	for (int rep = 0; rep < bench_reps; rep++)
		for (int i = 0; i < nr; i++)
			bench_run->took[i][rep] = bench_time(bench_hit_peers[i]->run, &b[i], calls);

	for (int i = 0; i < nr; i++)
		bench_report("hit", bench_hit_peers[i]->name, depth, set, 1, bench_run->took[i],
			     bench_reps);
	bench_teardown(bench_hit_peers, nr);
	return 0;
}

static int bench_inserts(unsigned int depth, unsigned int set)
{
	const int nr = ARRAY_SIZE(bench_insert_peers);
	struct bench *b = bench_run->b;

	if (bench_setup(bench_insert_peers, nr, depth, set))
		return -ENOMEM;

	/* Skip the first repetition, in which the memory is new. */
	for (int rep = -1; rep < (int)bench_reps; rep++) {
		for (int i = 0; i < nr; i++) {
			bench_insert_peers[i]->clear(&b[i]);
			bench_run->took[i][max(rep, 0)] =
				bench_time(bench_insert_peers[i]->insert, &b[i], set);
		}
	}

	for (int i = 0; i < nr; i++)
		bench_report("insert", bench_insert_peers[i]->name, depth, set, 1,
			     bench_run->took[i], bench_reps);
	bench_teardown(bench_insert_peers, nr);
	return 0;
}

/*
 * Hits and refused stacks of two maps with the same size and load: one is full,
 * one has room for one more stack.
 */
static int bench_full_map(unsigned int depth, unsigned int set)
{
	static const char * const what[] = {
		"stored, before", "stored, full", "not stored, full"
	};
	unsigned int bits = 14, nr = 1 << bits;
	static struct bench b[ARRAY_SIZE(what)];
	struct ftrace_stackmap *map[2];

	for (int i = 0; i < ARRAY_SIZE(map); i++) {
		map[i] = bench_alloc_map(bits);
		if (!map[i])
			return -ENOMEM;
	}
	for (int i = 0; i < ARRAY_SIZE(what); i++) {
		bench_init(&b[i], depth, nr);
		b[i].map = map[i > 0];
	}
	bench_time(bench_stackmap_insert, &b[0], nr - 1);
	bench_time(bench_stackmap_insert, &b[1], nr + nr / 2);
	b[2].first = nr * 2;
	for (int i = 0; i < ARRAY_SIZE(what); i++) {
		b[i].set = set;
		bench_stack(&b[i], 0);
	}

	for (int rep = 0; rep < bench_reps; rep++)
		for (int i = 0; i < ARRAY_SIZE(what); i++)
			bench_run->took[i][rep] = bench_time(bench_stackmap_run, &b[i], 20000);
	for (int i = 0; i < ARRAY_SIZE(what); i++)
		bench_report("full", what[i], depth, set, 1, bench_run->took[i], bench_reps);

	for (int i = 0; i < ARRAY_SIZE(map); i++)
		bench_free_map(map[i]);
	return 0;
}

/* The event of a stack that a full map refuses, and the same with the option off. */
static int bench_refused(unsigned int depth)
{
	static const struct bench_peer *const peers[] = { &bench_peer_full, &bench_peer_id };
	static const char * const what[] = { "option off", "refused by a full map" };
	struct bench *b = bench_run->b;
	struct ftrace_stackmap *map;
	static struct bench fill;
	struct trace_array *tr;
	unsigned long drops;

	if (bench_setup(peers, ARRAY_SIZE(peers), depth, 1))
		return -ENOMEM;
	tr = b[1].map;
	map = bench_enable_map(tr, ftrace_stackmap_bits);
	if (!map)
		return -ENOMEM;

	/* Stacks of the same depth, so that frames must be compared. */
	bench_init(&fill, depth, 1000);
	fill.first = 1;
	fill.map = map;
	bench_time(bench_stackmap_insert, &fill, fill.set);
	bench_init(&fill, 8, map->max_entries);
	fill.first = 1 << 10;
	fill.map = map;
	bench_time(bench_stackmap_insert, &fill, fill.set);

	drops = stackmap_sum(tr->stackmap, STACKMAP_DROP_ENTRIES);
	for (int rep = 0; rep < bench_reps; rep++)
		for (int i = 0; i < ARRAY_SIZE(what); i++)
			bench_run->took[i][rep] = bench_time(bench_event_run, &b[i], 20000);
	drops = stackmap_sum(tr->stackmap, STACKMAP_DROP_ENTRIES) - drops;
	if (drops != bench_reps * 20000)
		pr_err("bench: %lu stacks were refused\n", drops);

	for (int i = 0; i < ARRAY_SIZE(what); i++)
		bench_report("refused", what[i], depth, 1, 1, bench_run->took[i], bench_reps);
	bench_teardown(peers, ARRAY_SIZE(peers));
	return 0;
}

/* Threads on different CPUs. */
struct bench_thread {
	struct bench		b;
	struct task_struct	*task;
	struct completion	done;
	unsigned long		(*run)(struct bench *b, unsigned int calls);
	unsigned int		calls;
	u64			took;
};

static struct bench_thread *bench_threads;
static atomic_t bench_not_ready, bench_not_done;

static int bench_thread_fn(void *data)
{
	struct bench_thread *t = data;

	bench_time(t->run, &t->b, 1);
	preempt_disable();
	atomic_dec(&bench_not_ready);
	while (atomic_read(&bench_not_ready) > 0)
		cpu_relax();
	t->took = bench_time(t->run, &t->b, t->calls);
	preempt_enable();

	/* Go on until the last thread is done, so that it is under load as well. */
	atomic_dec(&bench_not_done);
	while (t->run != bench_stackmap_insert && atomic_read(&bench_not_done) > 0)
		bench_time(t->run, &t->b, 1000);
	complete(&t->done);
	return 0;
}

/* Returns the mean time of a call in all threads. */
static u64 bench_together(unsigned int cpus)
{
	u64 sum = 0;

	atomic_set(&bench_not_ready, cpus);
	atomic_set(&bench_not_done, cpus);
	for (int i = 0; i < cpus; i++) {
		struct bench_thread *t = &bench_threads[i];

		init_completion(&t->done);
		t->task = kthread_create_on_cpu(bench_thread_fn, t, i, "bench/%u");
		if (WARN_ON(IS_ERR(t->task)))
			return 0;
	}
	for (int i = 0; i < cpus; i++)
		wake_up_process(bench_threads[i].task);
	for (int i = 0; i < cpus; i++) {
		wait_for_completion(&bench_threads[i].done);
		sum += bench_threads[i].took;
	}
	return sum / cpus;
}

enum bench_sharing {
	BENCH_PRIVATE,		/* a map for each CPU: the limit of the machine */
	BENCH_SHARED,		/* the same stacks of the same map */
	BENCH_UNCACHED,		/* the same without the CPUs' caches */
	BENCH_INSERT,		/* different stacks into the same map */
	BENCH_DEPOT,
};

static const char * const bench_sharing_names[] = {
	"hit, a map each", "hit, one map", "hit, no cache", "insert, one map", "stack_depot_save"
};

static int bench_cpus(enum bench_sharing how, unsigned int depth, unsigned int set,
		      unsigned int cpus)
{
	static struct bench first;

	bench_init(&first, depth, how == BENCH_INSERT ? set * cpus : set);
	if (bench_stackmap_setup(&first))
		return -ENOMEM;
	if (how == BENCH_SHARED || how == BENCH_UNCACHED)
		bench_time(bench_stackmap_insert, &first, set);

	for (int i = 0; i < cpus; i++) {
		struct bench_thread *t = &bench_threads[i];

		bench_init(&t->b, depth, set);
		t->run = how == BENCH_INSERT ? bench_stackmap_insert :
			 how == BENCH_UNCACHED ? bench_uncached_run :
			 how == BENCH_DEPOT ? bench_depot_run : bench_stackmap_run;
		t->calls = how == BENCH_INSERT ? set : 200000;
		t->b.map = first.map;
		if (how == BENCH_PRIVATE && bench_stackmap_setup(&t->b))
			return -ENOMEM;
		if (how == BENCH_PRIVATE || how == BENCH_DEPOT)
			bench_time(how == BENCH_DEPOT ? bench_depot_insert : bench_stackmap_insert,
				   &t->b, set);
		if (how == BENCH_INSERT)
			t->b.first = i * set;
		bench_stack(&t->b, 0);
	}

	for (int rep = -1; rep < (int)bench_reps; rep++) {
		if (how == BENCH_INSERT)
			bench_stackmap_clear(&first);
		bench_run->took[0][max(rep, 0)] = bench_together(cpus);
	}
	bench_report("cpus", bench_sharing_names[how], depth, set, cpus, bench_run->took[0],
		     bench_reps);

	for (int i = 0; how == BENCH_PRIVATE && i < cpus; i++)
		bench_stackmap_teardown(&bench_threads[i].b);
	bench_stackmap_teardown(&first);
	return 0;
}

static void bench_all_cpus(void)
{
	for (unsigned int cpus = 1; cpus <= num_online_cpus(); cpus++) {
		for (int how = 0; how < ARRAY_SIZE(bench_sharing_names); how++) {
			if (how != BENCH_INSERT && bench_cpus(how, 16, 1, cpus))
				return;
			if (bench_cpus(how, 16, 1000, cpus))
				return;
		}
		if (bench_cpus(BENCH_INSERT, 16, 8192, cpus))
			return;
	}
}

const unsigned int bench_depths[BENCH_NR_DEPTHS] = { 4, 8, 16, 32, BENCH_MAX_DEPTH };
static const unsigned int bench_sets[] = { 1, 100, 1000, 10000, 100000 };

void bench_maps(unsigned int reps)
{
	int sets = bench_hot ? 1 : bench_small ? 3 : ARRAY_SIZE(bench_sets);

	bench_reps = reps;
	bench_run = vzalloc(sizeof(*bench_run));
	bench_threads = vcalloc(num_possible_cpus(), sizeof(*bench_threads));
	if (!bench_run || !bench_threads)
		return;

	for (int s = 0; s < sets; s++)
		for (int d = 0; d < BENCH_NR_DEPTHS; d++)
			if (bench_hits(bench_depths[d], bench_sets[s]))
				return;
	if (bench_hot)
		return;
	for (int d = 0; d < BENCH_NR_DEPTHS; d++)
		if (bench_inserts(bench_depths[d], 1 << 14))
			return;
	for (int d = 0; d < BENCH_NR_DEPTHS; d++)
		if (bench_full_map(bench_depths[d], 1) || bench_full_map(bench_depths[d], 1000))
			return;
	for (int d = 0; d < BENCH_NR_DEPTHS; d++)
		if (bench_refused(bench_depths[d]))
			return;
	bench_all_cpus();
}
