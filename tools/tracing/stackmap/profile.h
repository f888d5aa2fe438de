/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Profiles of recordings (trace.dat), in one pass. What is kept does not grow with the number of
 * events, but with that of different stacks, of tasks, and of what is allocated at one time.
 *
 *   dat.c	opens the file by libtracecmd, and tells for each record what kind of event it is
 *   sample.c	an event is a sample; finds its stacks among the records that follow
 *   stacks.c	ids, definitions, the map beside the recording, and what an id stands for
 *   weigh.c	values that are known later: time off the CPU, memory that is not freed
 *   profile.c	selects samples, adds them up, and turns them into the stacks of a map
 *
 * A sample lives as long as someone holds it: its CPU, as stacks may follow; its task, as the user
 * stack comes on the way back, or until it runs again; the address that it has allocated; the queue
 * of samples to print. Who drops it last makes it count.
 *
 * A stack is a number in a pool: {kind, ...}, of ids or of addresses. It is resolved in the end,
 * because a definition may come behind the first use, and some are in the map only.
 */
#ifndef STACKMAP_PROFILE_H
#define STACKMAP_PROFILE_H

#include <event-parse.h>
#include <trace-cmd.h>

#include "pool.h"
#include "stackmap.h"
#include "user.h"

#define MAX_INSTANCES	64
#define MAX_CPUS	4096
#define MAX_WAITING	256	/* events of a CPU */

struct profile;
struct sample;

enum kind_type {
	KIND_EVENT, KIND_ID, KIND_SPLIT, KIND_FULL, KIND_DEF, KIND_USER_ID, KIND_USER_FULL,
	KIND_USER_DEF, KIND_COOKIE, KIND_UNWIND_ID, KIND_UNWIND_SPLIT, KIND_UNWIND_FULL,
	KIND_OBJECT,
};

/* An event of the file; fields that it lacks are NULL. */
struct kind {
	enum kind_type			type;
	struct tep_event		*event;
	const char			*name;
	u32				nr;		/* of the event in the file */
	bool				wanted;
	bool				has_stacks;	/* some sample has */
	bool				is_switch;
	bool				is_alloc;
	bool				is_free;
	struct tep_format_field		*id;
	struct tep_format_field		*size;
	struct tep_format_field		*frames;
	struct tep_format_field		*ip;
	struct tep_format_field		*outer;
	struct tep_format_field		*cookie;
	struct tep_format_field		*tgid;
	struct tep_format_field		*weight;
	struct tep_format_field		*ptr;
	struct tep_format_field		*prev_pid;
	struct tep_format_field		*prev_state;
	struct tep_format_field		*prev_comm;
	struct tep_format_field		*next_pid;
	struct tep_format_field		*next_comm;
};

struct task_state {
	u32		pid;
	u32		nr;		/* its number */
	char		comm[COMM_LEN + 1];
	u64		cookie;		/* the last one */
	u32		unwound;	/* the stack of that, if it has come */
	struct sample	*waiting;	/* for that stack */
	struct sample	*away;		/* the switch with which it left the CPU */
	bool		skipped;	/* some of its switches are not recorded */
	bool		followed;	/* has switched with one that is not */
	bool		left;		/* a CPU, once */
};

struct cpu_state {
	struct sample	*waiting[MAX_WAITING];	/* for their stacks, the latest is the last */
	u32		nr;
	bool		has_next;
	u32		next_pid;		/* of the last switch */
};

struct instance {
	struct tracecmd_input	*handle;
	const char		*name;
	u32			nr;
	u64			nr_records;
	struct cpu_state	*cpus[MAX_CPUS];
};

/* A record, with what each has. */
struct record {
	struct profile		*profile;
	struct instance		*in;
	struct kind		*kind;
	struct tep_record	*rec;
	u32			pid;
	u32			cpu;
	u32			flags;
	u32			preempt;
};

struct sample {
	struct sample	*next;		/* that waits for the same user stack */
	struct sample	*printed_next;
	struct kind	*kind;
	struct task_state *task;
	u64		ts;
	u64		cookie;
	u64		val[NR_VALUES];
	u32		kernel;		/* stacks; 0: none */
	u32		user;
	u32		cpu;
	u32		flags;
	u32		preempt;
	u32		holders;
	bool		unwanted;
	bool		has_kernel;	/* its stack has been seen */
	bool		has_cookie;
	bool		done;		/* nobody holds it */
	bool		queued;
	char		*text;		/* the fields, if they are printed */
};

/* What is not as one might expect, told in the end. */
struct profile_stats {
	u64	records;
	u64	samples;
	u64	gaps;
	u64	lost;		/* in the gaps, as far as it is known */
	u64	no_event;	/* stacks */
	u64	undefined;	/* samples whose ids have no stack */
	u64	user_undefined;
	u64	user_lost;	/* samples whose user stack has not come */
	u64	differ;		/* ids with another stack in the map than in the file */
	u64	cut;		/* records that are too short */
	u64	never;		/* samples of events that never have stacks */
	u64	asleep;		/* tasks at the end */
	u64	first_in;	/* switches to tasks whose leave was not seen */
	u64	skipped;	/* tasks */
	u64	preempted;	/* samples that are no sleep, or the reverse */
	u64	free_unknown;
	u64	reused;		/* addresses that were allocated twice */
};

struct queue {
	struct sample	*first;
	struct sample	**last;
	size_t		nr;
	void		(*print)(struct profile *p, struct sample *s);
};

struct profile {
	struct map		*map;
	const struct config	*cfg;
	struct tracecmd_input	*top;
	struct tep_handle	*tep;
	struct kind		**kinds;	/* by id */
	size_t			nr_kinds;
	struct instance		instances[MAX_INSTANCES];
	u32			nr_instances;
	struct tep_format_field	*common_pid;
	struct tep_format_field	*common_flags;
	struct tep_format_field	*common_preempt;
	int			long_size;
	bool			mono;		/* the times are those of user_maps */
	bool			filtered;	/* not all switches are recorded */
	bool			define_only;	/* the first of two passes */
	struct pool		stacks;		/* {STACK_IDS, ...} and so on */
	struct pool		ids;		/* of {instance, id} to the index of a ref */
	struct pool		contents;	/* frames */
	struct ref		*refs;
	size_t			nr_refs;
	size_t			room_refs;
	struct pool		objects;	/* of {instance, number} to an object, plus 1 */
	struct pool		entries;	/* {kind, kernel, user, task}, for values */
	u64			(*values)[NR_VALUES];
	size_t			nr_values;
	size_t			room_values;
	struct pool		tasks;		/* of {instance, pid} to a task_state */
	struct task_state	**task_list;
	size_t			room_tasks;
	struct pool		symbols;	/* of {address}, if there is no kallsyms */
	struct pool		addresses;	/* of {instance, address} to a sample */
	struct sample		*unused;
	struct queue		queue;
	u64			last_ts;
	struct profile_stats	stats;
};

/* dat.c */
int dat_open(struct profile *p, const char *path);
int dat_read(struct profile *p, const char *path);
void dat_close(struct profile *p);
int read_record(struct tracecmd_input *handle, struct tep_record *rec, int unused, void *data);
bool get_number(const struct record *r, const struct tep_format_field *f, u64 *n);
bool get_long(const struct record *r, const struct tep_format_field *f, u32 i, u64 *n);

/* sample.c */
void take_record(struct record *r);
void drop_waiting(struct profile *p);
struct sample *new_sample(struct record *r);
void sample_hold(struct sample *s);
void sample_put(struct profile *p, struct sample *s);
struct task_state *get_task(struct profile *p, const struct instance *in, u32 pid);

/* stacks.c */
u32 stack_of_ids(struct record *r);
u32 stack_of_frames(struct record *r);
void define_stack(struct record *r);
void define_object(struct record *r);
int use_map(struct profile *p, const struct map *m, const struct instance *in);
bool resolve_kernel(struct profile *p, u32 stack, struct words *w);
bool resolve_user(struct profile *p, u32 stack, struct words *w);
void stacks_free(struct profile *p);

/* weigh.c */
void weigh_event(struct record *r, struct sample *s);
void weigh_switch(struct record *r, u32 prev, u32 next);
void weigh_free(struct record *r);
void weigh_end(struct profile *p);
bool is_skipped_task(const struct profile *p, const struct task_state *t);

/* perf.c */
bool print_perf_sample(struct profile *p, struct sample *sample, const struct words *w,
		       u32 nr_user);

/* profile.c */
bool is_wanted(struct record *r);
const char *task_comm(struct profile *p, struct task_state *t);
void count_sample(struct profile *p, struct sample *s);
void queue_sample(struct profile *p, struct sample *s);

#endif
