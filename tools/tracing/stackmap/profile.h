/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Profiles of recordings (trace.dat), in one pass. What is kept does not grow with the number of
 * events, but with that of different stacks, of tasks, and of allocations that were not freed.
 *
 *   dat.c	opens the file by libtracecmd, and reads its records
 *   event.c	reads what is in a record
 *   gaps.c	knows what is missing at the ends of CPUs
 *   ids.c	definitions, the map beside the recording, and what an id stands for
 *   where.c	a filter of libtraceevent
 *   group.c	what samples are grouped by: a task, a field
 *   count.c	adds a finished sample to an equal one
 *   tasks.c	names and processes at a time
 *   weights.c	values that are known later: time off the CPU, memory that is not freed
 *   match.c	an event is a sample; selects it, and finds its stacks among the next records
 *   kinds.c	tells for each record what kind of event it is, and hands it on
 *   profile.c	turns samples into the stacks of a map
 *   perf.c	prints them as they are
 *
 * Each of them calls only those above it.
 */
#ifndef STACKMAP_PROFILE_H
#define STACKMAP_PROFILE_H

#include "count.h"
#include "dat.h"
#include "gaps.h"
#include "group.h"
#include "kinds.h"
#include "match.h"
#include "tasks.h"
#include "weights.h"
#include "where.h"

#define MAX_KEPT	200000	/* samples that are printed */

struct profile {
	struct map		*map;
	const struct config	*cfg;
	struct tracecmd_input	*top;
	struct tep_handle	*tep;
	struct kind		*kinds[MAX_KINDS];	/* by their ids */
	struct instance		instances[MAX_INSTANCES];
	u32			nr_instances;
	const char		*clock;
	bool			is_mono;	/* as the times of user_maps */
	char			*own_events;	/* a list of what is recorded to learn only */
	struct pool		threads;	/* of {pid} to a thread */
	struct pool		roots;		/* of {pid} to its family */
	bool			limited;	/* to a command */
	struct ids		ids;
	struct pool		sums;		/* of {named task and kind, stacks} to a sample */
	struct pool		tasks;		/* of {instance, pid} to a task_state */
	u32			nr_unnamed;
	struct pool		named;		/* of a task's number and its name to a task */
	struct pool		processes;	/* of a task's number and which it is to a task */
	struct pool		addresses;	/* of {instance, address} to a sample */
	size_t			max_addresses;
	struct tep_event_filter	*where;		/* NULL: all */
	bool			needs_threads;	/* which process they belong to */
	bool			needs_gaps;	/* for times, and for what is not freed */
	sample_fn		*print;		/* samples are printed, not added up; or NULL */
	see_fn			*see;		/* all records pass, too; or NULL */
	struct sample		**samples;	/* that count */
	size_t			nr_samples;
	struct words		words;		/* of one stack */
	u64			rest;		/* nanoseconds that no time has counted */
	u64			total[NR_VALUES];
	bool			is_too_large;	/* one of these */
	u64			last_seq;
	u64			first_ts;
	u64			last_ts;
	u32			last_cpu;	/* the highest number */
	u64			counts[NR_COUNTS];
};

static inline const struct task *task_of(const struct profile *p, const struct sample *s)
{
	return p->named.list[s->named].ptr;
}

#endif
