/* SPDX-License-Identifier: GPL-2.0 */
/* A map that was read: stacks, and what is known of them. */
#ifndef STACKMAP_MAP_H
#define STACKMAP_MAP_H

#include "symbols.h"

/* Limits of a map. A larger count means that the map is damaged. */
#define MAX_DEPTH	1024		/* the most frames that ftrace records */
#define USER_MAX_DEPTH	127U		/* and of user space */
#define MAX_RELEASE	256
#define MAX_PARTS	3		/* of a stack that was split */
#define COMM_LEN	15		/* the longest name of a task */

#define MAX_READS	5	/* of a file that the kernel may replace meanwhile */

/* What a sample weighs. The largest single weight is no sum. */
enum { VAL_EVENTS, VAL_FIELD, VAL_DELAY, VAL_LARGEST, NR_VALUES };

static inline void add_values(u64 *to, const u64 *from)
{
	int i;

	for (i = 0; i < VAL_LARGEST; i++)
		to[i] += from[i];
	if (to[VAL_LARGEST] < from[VAL_LARGEST])
		to[VAL_LARGEST] = from[VAL_LARGEST];
}

struct value_type {
	const char	*type;		/* NULL: not there */
	const char	*unit;
};

struct task {
	char	comm[COMM_LEN + 1];
	u32	pid;
	u32	nth;		/* of those that have had this number, from 0 */
};

struct stack {
	u32		id;
	u32		nr;
	u32		nr_user;	/* so many of them, the outermost ones, are of user space */
	bool		woken;		/* the first ones are of who woke the task, turned round */
	u32		waker_user;	/* so many of these are of user space */
	bool		user;		/* a user stack of a map, which may have no frames */
	size_t		first;		/* index of the leaf in map->ips */
	u64		hits;		/* bit i: frame i was hit by an interrupt, it is no call */
	u64		ref;		/* what it weighs */
	u64		val[NR_VALUES];	/* in a profile */
	const struct task *task;	/* in one for pprof */
	u32		owner;		/* of single weights, see spread.c */
	u32		group;		/* the label of what it is counted by; 0: none */
};

/* In the place of the kernel's frames: there is no stack, or its id has no definition. */
#define WORD_NO_STACK	(UINT64_MAX - 1)
#define WORD_UNDEFINED	(UINT64_MAX - 2)
/* Before the stack of who woke the task, and the label with its name: no address is there. */
#define WORD_WOKEN_BY	(UINT64_MAX - 3)
/* In the place of an address of the last boot: that of a module which is not there now. */
#define WORD_NOT_LOADED	(UINT64_MAX - 4)
#define WOKEN_BY	"[woken by]"
#define WORD_LABEL	0x7ffe000000000000ULL

struct map {
	char		*name;
	char		*dir;		/* made by "save"; NULL for a plain file */
	bool		live;
	u64		saved;		/* seconds since 1970, 0 if not known */
	struct stack	*stacks;
	size_t		nr_stacks;
	size_t		nr_user_stacks;	/* of them, when they were read */
	u32		nr_full;	/* of them, whose counts cannot grow any more */
	u64		*ips;
	size_t		nr_ips;
	bool		merged;		/* they are numbers of names */
	u64		sum;		/* of all, also of those that are not selected */
	u64		split;		/* section 4: number of stacks that were split */
	u64		text;		/* section 1, 0 if there is none */
	struct build_id	build_id;	/* section 2 */
	char		release[MAX_RELEASE];
	struct value_type values[NR_VALUES]; /* of a profile */
	int		main_value;	/* which of them ref is */
	struct pool	files;		/* of {id of a file} to the number of an object */
	struct pool	labels;		/* texts that are no functions */
	struct pool	weights;	/* of {owner, weight} to so many samples */
	struct pool	owners;		/* of {owner, 0} to that of the stack it was merged with, */
					/* of {owner, 1} to its first share */
	struct share	*shares;	/* of the owners that are left */
	struct symbols	sym;
};

static inline struct stack *stacks_end(const struct map *m)
{
	return m->nr_stacks ? m->stacks + m->nr_stacks : m->stacks;
}

const char *read_error(void);
struct stack *map_add(struct map *m, const u64 *ips, u32 nr);
int read_map(struct map *m, const char *buf, size_t len);
#define DAT_MAGIC	"\027\010Dtracing"	/* a trace.dat begins so */

const char *known_file(const char *buf, u64 len);
int load_map(struct map *m, const char *path);
void map_drop_stacks(struct map *m);
int reload_map(struct map *m);
void map_free_stacks(struct map *m);
/* frame.c */
bool is_exact(const struct stack *s, u32 i);
struct frame *frame_get(struct map *m, const struct stack *s, u32 i);
void print_frame(struct map *m, const struct stack *s, u32 i, bool with_lines);

#endif
