/* SPDX-License-Identifier: GPL-2.0 */
/* An event is a sample, and the stacks behind it are its own. */
#ifndef STACKMAP_MATCH_H
#define STACKMAP_MATCH_H

#include "event.h"

#define MAX_WAITING	256	/* events of a CPU */

struct sample;
struct task_state;

struct cpu_state {
	struct sample	*waiting[MAX_WAITING];	/* for their stacks, the latest is the last */
	u32		nr;
	bool		has_gap;		/* no event has come behind it */
	bool		lacks_start;		/* no record has come, the first ones are missing */
	bool		lacks_end;		/* behind its last record */
	u64		nr_records;		/* that have come */
	u64		first;			/* time of the first one */
	u64		nr_read;		/* so many records, as the kernel has counted */
	u64		ts;			/* of the last record */
	u64		left;			/* in the buffer, most often read a moment later */
	u64		oldest;			/* of these, in microseconds */
	bool		has_next;
	u32		next_pid;		/* of the last switch */
	struct task_state *task;		/* that was looked up last */
};

bool resolve_kernel(struct profile *p, u32 stack, struct words *w);
void take_gap(struct record *r);
void take_event(struct record *r);
void take_cookie(struct record *r);
void take_unwound(struct record *r);
void take_stack(struct record *r);
void drop_waiting(struct profile *p);

#endif
