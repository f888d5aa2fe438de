/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _STACKMAP_BENCH_MAP_H
#define _STACKMAP_BENCH_MAP_H

#include <linux/sizes.h>

#include "trace.h"
#include "trace_stackmap_internal.h"

/* The part of ftrace_stackmap_record() that uses the map, for a stack that is not split. */
static __always_inline unsigned long bench_look_up(struct ftrace_stackmap *map,
						   const unsigned long *ips, unsigned int nr)
{
	struct stackmap_part part = { .user = false };
	enum stackmap_count why;

	why = stackmap_find(map, ips, nr, &part);
	if (!why && part.idx < 0)
		why = stackmap_insert(map, &part);
	if (why) {
		stackmap_count(map->shared, why, 1);
		return 0;
	}
	stackmap_add_ref(map, &part);
	stackmap_count(map->shared, STACKMAP_SUCCESSES, 1);
	return stackmap_id(map, part.idx);
}

struct ftrace_stackmap *bench_alloc_map(unsigned int bits);
void bench_free_map(struct ftrace_stackmap *map);
struct trace_array *bench_instance(const char *name, unsigned long size);
struct ftrace_stackmap *bench_enable_map(struct trace_array *tr, unsigned int bits);
void bench_instance_free(struct trace_array *tr);

#endif /* _STACKMAP_BENCH_MAP_H */
