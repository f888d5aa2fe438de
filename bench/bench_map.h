/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _STACKMAP_BENCH_MAP_H
#define _STACKMAP_BENCH_MAP_H

#include <linux/sizes.h>

#include "trace.h"
#include "trace_stackmap_tracefs.h"

DECLARE_PER_CPU(struct stackmap_counts, bench_counts);

/* The part of ftrace_stackmap_record() that uses the map, for a stack that is not split. */
static __always_inline unsigned long bench_look_up(struct ftrace_stackmap *map,
						   const unsigned long *ips, unsigned int nr)
{
	struct stackmap_key parts[STACKMAP_MAX_PARTS] __uninitialized;
	int ret;

	parts[0].user = false;
	ret = stackmap_find_parts(map, ips, nr, parts);
	if (ret > 0)
		ret = stackmap_store(map, parts, 1);
	if (ret < 0) {
		local_inc(&this_cpu_ptr(&bench_counts)->of[-ret]);
		return 0;
	}
	stackmap_add_ref(map, parts);
	local_inc(&this_cpu_ptr(&bench_counts)->of[STACKMAP_SUCCESSES]);
	return stackmap_id(map, parts->idx);
}

struct ftrace_stackmap *bench_alloc_map(unsigned int bits);
void bench_free_map(struct ftrace_stackmap *map);
struct trace_array *bench_instance(const char *name, unsigned long size);
struct ftrace_stackmap *bench_enable_map(struct trace_array *tr, unsigned int bits);
void bench_instance_free(struct trace_array *tr);

#endif /* _STACKMAP_BENCH_MAP_H */
