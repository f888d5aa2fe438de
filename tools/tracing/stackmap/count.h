/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A sample lives as long as someone holds it: its CPU, as stacks may follow; its task, as the user
 * stack comes on the way back, or until it runs again; the address that it has allocated. Who drops
 * it last makes it count.
 */
#ifndef STACKMAP_COUNT_H
#define STACKMAP_COUNT_H

#include "event.h"

struct sample {
	struct sample	*next;		/* that waits for the same user stack */
	struct sample	*next_unnamed;
	struct sample	*wakes;		/* the time that it has ended */
	struct sample	*outer;		/* begin with the same keys, before it */
	struct kind	*kind;
	struct task_state *task;
	u32		sum;		/* number of what it was added to */
	u32		named;		/* the task, as it was named then */
	const struct task *process;	/* as far as it is known */
	u64		ts;
	u64		since;		/* when its time began; 0: it has none */
	u64		by;		/* the field, or the label of its text */
	u64		seq;		/* they are printed in this order */
	u64		val[NR_VALUES];
	u32		kernel;		/* stacks; 0: none */
	u32		user;
	u32		waker_kernel;	/* the same of who has ended it */
	u32		waker_user;
	u64		waker;		/* the label with its name; 0: unknown */
	u32		cpu;
	u32		flags;
	u32		preempt;
	u32		jumps;		/* of the instance */
	u32		early;		/* when the time began, so many CPUs had no record */
	u32		holders;
	bool		unwanted;
	bool		has_kernel;	/* its stack has been seen */
	bool		has_second;	/* and that of a trigger */
	bool		has_cookie;
	bool		is_waker;
	bool		by_interrupt;	/* what has ended it */
	char		*text;		/* the fields, if they are printed */
};

/* What they mean is in profile.c, which tells them in the end. */
enum count {
	COUNT_RECORDS, COUNT_SAMPLES, COUNT_STACKS, COUNT_ALLOCS, COUNT_FREES,
	COUNT_GAPS,
	COUNT_LOST,		/* in the gaps, as far as it is known */
	COUNT_SILENT, COUNT_OTHERS, COUNT_OWN, COUNT_CLOCKS, COUNT_BACK, COUNT_JUMPS,
	COUNT_NO_EVENT, COUNT_UNDEFINED, COUNT_USER_LOST, COUNT_NEVER, COUNT_ASLEEP,
	COUNT_SKIPPED, COUNT_FREE_UNKNOWN, COUNT_REUSED, COUNT_PREEMPTED, COUNT_OVER_GAP,
	COUNT_MAYBE_FREED, COUNT_NO_WAKER, COUNT_NO_PROCESS, COUNT_NOT_SELECTED,
	COUNT_NO_BEGIN,
	COUNT_BEGUN_AGAIN, COUNT_NOT_ENDED, COUNT_BELOW_0, COUNT_OTHER_INSTANCES,
	COUNT_UNKNOWN,
	COUNT_NOT_SO,		/* switches that are not of the wanted kind */
	FIRST_ERROR, COUNT_DIFFER = FIRST_ERROR, COUNT_CUT, NR_COUNTS,
};

void free_sample(struct sample *s);
bool has_comm(const struct profile *p, const struct sample *s);
void sample_put(struct profile *p, struct sample *s);
void drop_sample(struct profile *p, struct sample *s);

#endif
