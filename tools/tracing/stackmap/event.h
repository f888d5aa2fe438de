/* SPDX-License-Identifier: GPL-2.0 */
/* What is in a record. */
#ifndef STACKMAP_EVENT_H
#define STACKMAP_EVENT_H

#include <event-parse.h>

#include "stackmap.h"

/* Fields of events; the names are in event.c. */
enum field {
	FIELD_PID, FIELD_FLAGS, FIELD_PREEMPT, FIELD_ID, FIELD_SIZE, FIELD_CALLER, FIELD_IP,
	FIELD_OUTER_ID, FIELD_OUTER2_ID, FIELD_OUTER2_IP, FIELD_COOKIE, FIELD_TGID,
	FIELD_FILE_ID, FIELD_ID_SIZE, FIELD_BUILD_ID, FIELD_PATH,
	FIELD_PREV_PID, FIELD_PREV_STATE, FIELD_PREV_COMM,
	FIELD_NEXT_PID, FIELD_NEXT_COMM, FIELD_PARENT_PID, FIELD_CHILD_PID, FIELD_CHILD_COMM,
	FIELD_TASK, FIELD_OLD_PID, FIELD_FILENAME, FIELD_OLD_COMM, FIELD_NEW_COMM, FIELD_MODULE,
	FIELD_CLONE_FLAGS, FIELD_COMM,
	FIELD_WEIGHT, FIELD_BY, FIELD_KEY, FIELD_END_KEY = FIELD_KEY + MAX_KEYS,
	NR_FIELDS = FIELD_END_KEY + MAX_KEYS,
};

/* Bits of common_flags. */
#define FLAG_HARDIRQ	0x08
#define FLAG_SOFTIRQ	0x10
#define FLAG_NMI	0x40

struct record;

/* An event of the file; fields that it lacks are NULL. */
struct kind {
	struct tep_event		*event;
	const char			*name;		/* of the samples */
	void				(*take)(struct record *r);	/* in a profile */
	void				(*learn)(struct record *r);	/* about tasks; or NULL */
	bool				is_event;
	bool				is_unknown;	/* the file does not describe it */
	bool				is_sample;	/* also without an event */
	bool				is_own;		/* recorded to learn only */
	bool				is_user;	/* a stack of user space */
	bool				defines;	/* what an id is */
	bool				wanted;
	const struct instance		*in;		/* that has had samples first */
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

extern struct tep_format_field cpu_field;	/* which each record has */

void init_kind(struct kind *k, struct tep_event *ev);
void get_text(struct record *r, enum field which, char *text, size_t size);
bool field_number(struct record *r, const struct tep_format_field *f, u64 *n);
long long signed_number(const struct tep_format_field *f, u64 n);
bool field_bytes(struct record *r, const struct tep_format_field *f, const char **bytes, u32 *len);
bool get_number(struct record *r, enum field which, u64 *n);
bool get_bytes(struct record *r, enum field which, const char **bytes, u32 *len);
bool read_parts(struct record *r, struct parts *parts);
int read_frames(struct record *r, u64 *ips);
u32 read_stack(struct record *r, struct ids *k, u32 in, u64 epoch);
int read_definition(struct record *r, struct ids *k, u32 in);
u32 read_file_def(struct record *r, struct ids *k, u32 in, u32 *file_id);

#endif
