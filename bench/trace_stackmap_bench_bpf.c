// SPDX-License-Identifier: GPL-2.0
/*
 * The stack map of BPF, for comparison. User-Mode Linux does not build
 * bpf_get_stackid(), because it has no perf events. So this includes its source
 * file (bpf_stackmap.inc, made by scripts/bench), with stubs for the unwinder.
 */
#include <linux/perf_event.h>

#include "bench.h"

static int sysctl_perf_event_max_stack = 127;

static inline int get_callchain_buffers(int max_stack)
{
	return 0;
}

static inline void put_callchain_buffers(void) { }

static inline struct perf_callchain_entry *
get_perf_callchain(struct pt_regs *regs, bool kernel, bool user, u32 max_stack,
		   bool crosstask, bool add_mark, u64 defer_cookie)
{
	return NULL;
}

static inline struct perf_callchain_entry *get_callchain_entry(int *rctx)
{
	return NULL;
}

static inline void put_callchain_entry(int rctx) { }

#include "bpf_stackmap.inc"

/* bpf_get_stackid() after unwinding. */
static __always_inline unsigned long bench_bpf_get(struct bench *b, const unsigned long *ips,
						   unsigned int depth)
{
	const struct perf_callchain_entry *trace = (void *)&b->nr;
	struct stack_map_bucket *new_bucket;
	struct stackid stackid;
	int err;

	scoped_guard(preempt) {
		err = stackid_fastpath(&stackid, b->map, trace, depth, 0);
		if (err != -ENOENT)
			return err;
		new_bucket = stackid_new_bucket(&stackid, b->map);
		if (!new_bucket)
			return -ENOMEM;
	}
	return stackid_install(&stackid, b->map, new_bucket, 0);
}

BENCH_LOOPS(bench_bpf, bench_bpf_get)

static int bench_bpf_setup(struct bench *b)
{
	union bpf_attr attr = {
		.map_type	= BPF_MAP_TYPE_STACK_TRACE,
		.key_size	= sizeof(u32),
		.value_size	= b->depth * sizeof(u64),
		.max_entries	= roundup_pow_of_two(2 * b->set),
	};

	b->nr = b->depth;
	b->map = stack_map_alloc(&attr);
	return PTR_ERR_OR_ZERO(b->map);
}

static void bench_bpf_clear(struct bench *b)
{
	struct bpf_stack_map *smap = container_of(b->map, struct bpf_stack_map, map);

	for (u32 id = 0; id < smap->n_buckets; id++)
		stack_map_delete_elem(b->map, &id);
}

static void bench_bpf_teardown(struct bench *b)
{
	stack_map_free(b->map);
}

const struct bench_peer bench_bpf = {
	.name		= "BPF stack map",
	.setup		= bench_bpf_setup,
	.run		= bench_bpf_run,
	.insert		= bench_bpf_insert,
	.clear		= bench_bpf_clear,
	.teardown	= bench_bpf_teardown,
};
