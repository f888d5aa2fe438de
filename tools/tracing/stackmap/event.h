/* SPDX-License-Identifier: GPL-2.0 */
/* The records of events that have stacks or define them, for profiles and for the plugin. */
#ifndef STACKMAP_EVENT_H
#define STACKMAP_EVENT_H

#include <event-parse.h>

#include "util.h"

#define SPLIT_MORE	0x80000000	/* in an id of stack_split: one more part follows */

/* Fields of events; the names are in event.c. */
enum field {
	FIELD_PID, FIELD_FLAGS, FIELD_PREEMPT, FIELD_ID, FIELD_SIZE, FIELD_CALLER, FIELD_IP,
	FIELD_OUTER, FIELD_REST, FIELD_COOKIE, FIELD_TGID, FIELD_OBJECT, FIELD_BIAS, FIELD_ID_SIZE,
	FIELD_BUILD_ID, FIELD_PATH, FIELD_PREV_PID, FIELD_PREV_STATE, FIELD_PREV_COMM,
	FIELD_NEXT_PID, FIELD_NEXT_COMM, FIELD_WEIGHT, FIELD_PTR, NR_FIELDS,
};

struct record;

/* An event of the file; fields that it lacks are NULL. */
struct kind {
	struct tep_event		*event;
	void				(*take)(struct record *r);	/* in a profile */
	bool				is_event;
	bool				is_user;	/* a stack of user space */
	bool				defines;	/* what an id is */
	bool				wanted;
	bool				has_stacks;	/* some sample has */
	bool				is_switch;
	bool				is_alloc;
	bool				is_free;
	struct tep_format_field		*field[NR_FIELDS];
};

/* A record, with what each has in a profile. */
struct record {
	struct kind		*kind;
	struct tep_record	*rec;
	bool			cut;		/* it is shorter than its format says */
	struct profile		*profile;
	struct instance		*in;
	struct cpu_state	*cpu;
	u64			pid;
	u64			flags;
	u64			preempt;
};

void init_kind(struct kind *k, struct tep_event *ev);
bool get_number(struct record *r, enum field which, u64 *n);
bool get_bytes(struct record *r, enum field which, const char **bytes, u32 *len);
bool read_ids(struct record *r, struct stack_ids *ids);
int read_frames(struct record *r, u64 *ips);
u32 read_stack(struct record *r, struct stacks *k, u32 in, u64 epoch);
int read_definition(struct record *r, struct stacks *k, u32 in);
u32 read_object(struct record *r, struct stacks *k, u32 in, u32 *number);

#endif
