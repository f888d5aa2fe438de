/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Profiles of recordings (trace.dat), in one pass. What is kept does not grow with the number of
 * events, but with that of different stacks, of tasks, and of allocations that were not freed.
 *
 *   dat.c	opens the file by libtracecmd, and reads its records
 *   event.c	reads what is in a record
 *   stacks.c	definitions, the map beside the recording, and what an id stands for
 *   count.c	adds a finished sample to an equal one
 *   tasks.c	names and processes at a time
 *   weights.c	values that are known later: time off the CPU, memory that is not freed
 *   match.c	an event is a sample; selects it, and finds its stacks among the next records
 *   kinds.c	tells for each record what kind of event it is, and hands it on
 *   profile.c	turns samples into the stacks of a map
 *   perf.c	prints them as they are
 *
 * A sample lives as long as someone holds it: its CPU, as stacks may follow; its task, as the user
 * stack comes on the way back, or until it runs again; the address that it has allocated. Who drops
 * it last makes it count.
 */
#ifndef STACKMAP_PROFILE_H
#define STACKMAP_PROFILE_H

#include <event-parse.h>

#include "stackmap.h"

#define MAX_KEYS	4	/* fields by which two events belong together */

/* Fields of events; the names are in event.c. */
enum field {
	FIELD_PID, FIELD_FLAGS, FIELD_PREEMPT, FIELD_ID, FIELD_SIZE, FIELD_CALLER, FIELD_IP,
	FIELD_OUTER_ID, FIELD_OUTER2_ID, FIELD_OUTER2_IP, FIELD_COOKIE, FIELD_TGID,
	FIELD_OBJECT, FIELD_ID_SIZE, FIELD_BUILD_ID, FIELD_PATH,
	FIELD_PREV_PID, FIELD_PREV_STATE, FIELD_PREV_COMM,
	FIELD_NEXT_PID, FIELD_NEXT_COMM, FIELD_PARENT_PID, FIELD_CHILD_PID, FIELD_CHILD_COMM,
	FIELD_TASK, FIELD_OLD_PID, FIELD_FILENAME, FIELD_OLD_COMM, FIELD_NEW_COMM, FIELD_MODULE,
	FIELD_CLONE_FLAGS, FIELD_COMM,
	FIELD_WEIGHT, FIELD_KEY, FIELD_END_KEY = FIELD_KEY + MAX_KEYS,
	NR_FIELDS = FIELD_END_KEY + MAX_KEYS,
};

struct record;
struct tracecmd_input;

/* Bits of common_flags. */
#define FLAG_HARDIRQ	0x08
#define FLAG_SOFTIRQ	0x10
#define FLAG_NMI	0x40

/* Exported by libtracecmd, but not declared. */
const char *tracecmd_get_trace_clock(struct tracecmd_input *handle);
struct tep_record *tracecmd_peek_data(struct tracecmd_input *handle, int cpu);
int tracecmd_cpus(struct tracecmd_input *handle);

/* An event of the file; fields that it lacks are NULL. */
struct kind {
	struct tep_event		*event;
	const char			*name;		/* of the samples */
	void				(*take)(struct record *r);	/* in a profile */
	void				(*learn)(struct record *r);	/* about tasks; or NULL */
	bool				is_event;
	bool				is_sample;	/* also without an event */
	bool				is_own;		/* recorded to learn only */
	bool				is_user;	/* a stack of user space */
	bool				defines;	/* what an id is */
	bool				wanted;
	bool				has_stacks;	/* some sample has */
	bool				is_switch;
	bool				is_waking;
	bool				is_alloc;
	bool				is_free;
	u32				nr_keys;	/* 0: it lacks some */
	u32				nr_end_keys;
	u64				sleeps;		/* bits of prev_state */
	u64				uninterruptible;
	u64				is_dead;
	struct tep_format_field		*field[NR_FIELDS];
};

/* A record, with what each has in a profile. */
struct record {
	struct kind		*kind;
	struct tep_record	*rec;
	bool			cut;		/* it is shorter than its format says */
	bool			late;		/* its task was seen elsewhere after it */
	struct profile		*profile;
	struct instance		*in;
	struct cpu_state	*cpu;
	u64			pid;
	u64			flags;
	u64			preempt;
};

#define MAX_INSTANCES	64
#define MAX_KINDS	0x10000
#define MAX_WAITING	256	/* events of a CPU */
#define MAX_KEPT	200000	/* samples that are printed */
#define MAX_UNNAMED	20000	/* samples that wait for a name */
#define MIN_ADDRESSES	20000	/* before those that were freed are forgotten */

/* Whose child a task is. */
enum { FAMILY_COMMAND = 1, FAMILY_OWN = 2, FAMILY_PID = 4 };

struct task_state {
	struct task	id;
	const struct instance *in;
	u32		nr;		/* in profile->tasks */
	u32		family;
	u32		named;		/* as it is named now, in profile->named */
	struct task	*process;	/* with the name of its leader; NULL: not known */
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

struct cpu_state {
	struct sample	*waiting[MAX_WAITING];	/* for their stacks, the latest is the last */
	u32		nr;
	bool		has_gap;		/* no event has come behind it */
	bool		has_next;
	u32		next_pid;		/* of the last switch */
	struct task_state *task;		/* that was looked up last */
};

struct instance {
	struct tracecmd_input	*handle;
	u32			nr;
	u64			complete;	/* no CPU has a gap that ends later, so far */
	bool			lacks_switches;
	bool			has_all;	/* tasks, but for what it lacks */
	struct cpu_state	*cpus;
	u32			nr_cpus;
};

struct sample {
	struct sample	*next;		/* that waits for the same user stack */
	struct sample	*next_unnamed;
	struct sample	*wakes;		/* the time that it has ended */
	struct kind	*kind;
	struct task_state *task;
	u32		named;		/* the task, as it was named then */
	const struct task *process;	/* as far as it is known */
	u64		ts;
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
	COUNT_RECORDS, COUNT_SAMPLES, COUNT_STACKS, COUNT_ALLOCS, COUNT_GAPS,
	COUNT_LOST,		/* in the gaps, as far as it is known */
	COUNT_OTHERS, COUNT_OWN, COUNT_CLOCKS,
	COUNT_NO_EVENT, COUNT_UNDEFINED, COUNT_USER_LOST, COUNT_NEVER, COUNT_ASLEEP,
	COUNT_SKIPPED, COUNT_FREE_UNKNOWN, COUNT_REUSED, COUNT_PREEMPTED, COUNT_OVER_GAP,
	COUNT_MAYBE_FREED, COUNT_NO_WAKER, COUNT_NO_PROCESS, COUNT_NO_BEGIN,
	COUNT_BEGUN_AGAIN, COUNT_NOT_ENDED,
	FIRST_ERROR, COUNT_DIFFER = FIRST_ERROR, COUNT_CUT, NR_COUNTS,
};

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
	struct pool		roots;		/* of {pid} to its family */
	bool			limited;	/* to a command */
	struct stacks		stacks;
	struct pool		sums;		/* of {named task and kind, stacks} to a sample */
	struct pool		tasks;		/* of {instance, pid} to a task_state */
	u32			nr_unnamed;
	struct pool		named;		/* of a task's number and its name to a task */
	struct pool		processes;	/* of a task's number and which it is to a task */
	struct pool		addresses;	/* of {instance, address} to a sample */
	size_t			max_addresses;
	bool			script;		/* samples are printed, so they are not added up */
	struct sample		**samples;	/* that count */
	size_t			nr_samples;
	struct words		words;		/* of one stack */
	u64			rest;		/* nanoseconds that no time has counted */
	u64			last_seq;
	u64			last_ts;
	u64			counts[NR_COUNTS];
};

static inline const struct task *task_of(const struct profile *p, const struct sample *s)
{
	return p->named.list[s->named].ptr;
}

/* event.c */
void init_kind(struct kind *k, struct tep_event *ev);
void get_text(struct record *r, enum field which, char *text, size_t size);
bool get_number(struct record *r, enum field which, u64 *n);
bool get_bytes(struct record *r, enum field which, const char **bytes, u32 *len);
bool read_ids(struct record *r, struct stack_ids *ids);
int read_frames(struct record *r, u64 *ips);
u32 read_stack(struct record *r, struct stacks *k, u32 in, u64 epoch);
int read_definition(struct record *r, struct stacks *k, u32 in);
u32 read_object(struct record *r, struct stacks *k, u32 in, u32 *number);
/* dat.c */
int dat_open(struct profile *p, const char *path);
bool has_records(const struct instance *in);
bool is_in_gap(const struct instance *in, u32 cpu);
int dat_read(struct profile *p, const char *path);
void dat_close(struct profile *p);
/* count.c */
void free_sample(struct sample *s);
void keep_sample(struct profile *p, struct sample *s);
bool has_comm(const struct profile *p, const struct sample *s);
void sample_put(struct profile *p, struct sample *s);
void drop_sample(struct profile *p, struct sample *s);
/* tasks.c */
bool number_in(const char *list, u32 n);
struct task_state *get_task(struct record *r, u32 pid);
void set_name(struct profile *p, struct task_state *t, const char *comm, bool before);
void wait_for_name(struct profile *p, struct sample *s);
void learn_name(struct record *r, u64 pid, enum field which, bool before);
void set_process(struct record *r, u64 tgid);
void take_newtask(struct record *r);
void take_fork(struct record *r);
void take_exec(struct record *r);
void take_rename(struct record *r);
/* weights.c */
void take_weight(struct record *r, struct sample *s);
void take_leave(struct record *r, struct sample *s);
bool set_owner(struct record *r, struct sample *s, enum count other);
void take_waking(struct record *r, struct sample *s);
bool is_skipped_task(const struct profile *p, const struct task_state *t);
void take_switch(struct record *r);
void weigh_end(struct profile *p);
/* match.c */
bool resolve_kernel(struct profile *p, u32 stack, struct words *w);
void take_gap(struct record *r);
void take_event(struct record *r);
void take_cookie(struct record *r);
void take_unwound(struct record *r);
void take_stack(struct record *r);
void drop_waiting(struct profile *p);
/* kinds.c */
int read_record(struct tracecmd_input *handle, struct tep_record *rec, int unused, void *data);
int check_events(struct profile *p, const char *path);
const char *advice(const struct config *cfg);
/* profile.c */
void drop_frames(struct words *w, u32 n);
void make_stacks(struct profile *p, size_t n);
/* perf.c */
void print_perf_sample(struct profile *p, struct sample *sample, const struct stack *s);

#endif
