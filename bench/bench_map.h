/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _STACKMAP_BENCH_MAP_H
#define _STACKMAP_BENCH_MAP_H

#include "trace.h"
#include "trace_stackmap.h"

/* The part of ftrace_stackmap_record() that uses the map, for a stack that is not split. */
static __always_inline unsigned long bench_look_up(struct ftrace_stackmap *map,
						   const unsigned long *ips, unsigned int nr)
{
	struct stackmap_part part;
	enum stackmap_count why;

	why = ftrace_stackmap_find(map, ips, nr, &part);
	if (!why)
		why = ftrace_stackmap_store(map, &part, 1);
	if (!why)
		return stackmap_id(map, part.idx);
	ftrace_stackmap_count(map, why);
	return 0;
}

struct trace_array *bench_instance(const char *name);
struct ftrace_stackmap *bench_enable_map(struct trace_array *tr, unsigned int bits);
void bench_instance_free(struct trace_array *tr);

#endif /* _STACKMAP_BENCH_MAP_H */
