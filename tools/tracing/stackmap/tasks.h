/* SPDX-License-Identifier: GPL-2.0 */
/* Names and processes at a time. */
#ifndef STACKMAP_TASKS_H
#define STACKMAP_TASKS_H

#include "event.h"

#define MAX_UNNAMED	20000	/* samples that wait for a name */

struct sample;

/* Whose child a task is. */
enum { FAMILY_COMMAND = 1, FAMILY_OWN = 2, FAMILY_PID = 4 };

/* Who it was at first. */
struct thread {
	u64		first;		/* when this is seen */
	u32		tgid;		/* 0: it begins there */
};

struct task_state {
	struct task	id;
	const struct instance *in;
	u32		nr;		/* in profile->tasks */
	u32		family;
	u32		named;		/* as it is named now, in profile->named */
	struct task	*process;	/* with the name of its leader; NULL: not known */
	bool		is_child;	/* of one whose process is known */
	bool		is_new;		/* this was told before its fork */
	bool		seen;		/* it has samples, or a process */
	struct sample	*unnamed;	/* they may get the name that is told next */
	u64		cookie;		/* the last one */
	u32		unwound;	/* the stack of that, if it has come */
	struct sample	*waiting;	/* for that stack */
	struct sample	*away;		/* the switch with which it left the CPU */
	struct sample	*waker;		/* the last one since it came to one */
	u64		came;		/* then it came last, */
	u32		on;		/* to this CPU + 1; 0: it has left again */
	u32		was;		/* that CPU + 1 which it has not left before */
	bool		skipped;	/* some of its switches are not recorded */
	bool		followed;	/* has switched with one that is not */
	bool		left;		/* a CPU, once */
};

bool number_in(const char *list, u32 n);
struct task_state *get_task(struct record *r, u32 pid);
void set_name(struct profile *p, struct task_state *t, const char *comm, bool before);
void wait_for_name(struct profile *p, struct sample *s);
void learn_name(struct record *r, u64 pid, enum field which, bool before);
void set_process(struct record *r, u64 tgid);
void look_ahead(struct record *r);
void take_newtask(struct record *r);
void take_fork(struct record *r);
void take_exec(struct record *r);
void take_rename(struct record *r);

#endif
