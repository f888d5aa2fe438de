/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types and limits of stackmap_dump.
 *
 * A map is read whole, into an array of stacks and an array of addresses. An address is looked up
 * in up to two tables of symbols, first kallsyms, then vmlinux. The text of each address is kept
 * (frame.c). So memory is proportional to the size of the input.
 */
#ifndef STACKMAP_H
#define STACKMAP_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Limits of a map. A larger count means that the map is damaged. */
#define MAX_DEPTH	1024		/* the most frames that ftrace records */
#define MAX_BUILD_ID	64
#define MAX_RELEASE	256
#define MAX_PARTS	8		/* of a stack that was split */
#define COMM_LEN	15		/* the longest name of a task */

#define TRAMPOLINE_MARKER	0x7fffffff	/* the kernel's FTRACE_TRAMPOLINE_MARKER */

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

typedef uint32_t u32;
typedef unsigned long long u64;

/* What a sample weighs. */
enum { VAL_EVENTS, VAL_FIELD, VAL_DELAY, NR_VALUES };

struct value_type {
	const char	*type;		/* NULL: not there */
	const char	*unit;
};

struct stack {
	u32		id;
	u32		nr;
	u32		nr_user;	/* so many of them, the outermost ones, are of user space */
	bool		user;		/* a user stack of a map, which may have no frames */
	size_t		first;		/* index of the leaf in map->ips */
	u64		hits;		/* bit i: frame i was hit by an interrupt, it is no call */
	u64		ref;		/* what it weighs */
	u64		val[NR_VALUES];	/* in a profile */
	const struct task *task;	/* in one by task */
};

/* A stack in parts, innermost first. A stack of user space has one part. */
struct stack_ids {
	u32		nr;
	u32		id[MAX_PARTS];
	u64		ip[MAX_PARTS];	/* what an interrupt hit, before the part; or 0 */
};

struct symbol {
	u64		addr;
	u64		end;
	const char	*name;
	const char	*mod;		/* NULL: the kernel proper */
	u32		seq;		/* line in the source; the first of several aliases wins */
	char		type;		/* as nm prints it */
};

struct symtab {
	struct symbol	*syms;
	size_t		nr;
	u64		text;		/* _text, 0 if unknown */
	u64		kernel_end;	/* _end, 0 if unknown */
	char		**bufs;		/* the files; names point into them */
	size_t		nr_bufs;
};

struct build_id {
	size_t		len;		/* 0: unknown */
	unsigned char	bytes[MAX_BUILD_ID];
};

struct words {
	u64	*w;
	size_t	nr;
	u64	hits;		/* as in struct stack */
};

/*
 * Arrays of words, each stored once. The first one has the number 1. A value that belongs to it is
 * 0 at first, or it is a structure. So a pool is a set of stacks, or a table from a key to a value.
 */
struct pooled {
	u64	hash;
	union {
		u64	value;
		void	*ptr;
	};
	size_t	first;		/* index of the first word */
	u32	nr;
};

struct pool {
	struct pooled	*list;		/* list[0] is not used */
	size_t		nr;		/* the highest number */
	struct words	words;
	u32		*slots;		/* numbers, by hash; 0: free */
	size_t		mask;
};

struct task {
	char	comm[COMM_LEN + 1];
	u32	pid;
};

enum object_state {
	OBJECT_NEW, OBJECT_MISSING, OBJECT_OTHER, OBJECT_UNCHECKED, OBJECT_FOUND,
};

/* A file that a process has mapped, or "[vdso]". */
struct object {
	char		*file;		/* its path */
	char		*path;		/* that can be printed */
	char		*name;		/* without directories or brackets */
	struct build_id	id;
	u64		bias;		/* p_vaddr - p_offset of its text */
	bool		has_bias;
	enum object_state state;
	struct symtab	symtab;		/* by offsets in the file */
	struct Dwfl	*dwfl;
};

/* What user space has mapped (user.c). */
struct users {
	struct pool	processes;	/* of {tgid, 0} to a process, see user.c */
	struct pool	objects;	/* of a string to an object */
	const char	*symfs;
};

/* Stacks of a trace by their ids, see stacks.c. */
struct stacks {
	struct users	*users;
	struct pool	ids;		/* of {instance, id} to the index of a ref, plus 1 */
	struct ref	*refs;
	size_t		nr_refs;
	struct pool	contents;	/* frames */
	struct pool	objects;	/* of {instance, number} to that of an object */
	struct pool	stacks;
};

struct profile;

struct map {
	char		*name;
	char		*dir;		/* made by "save"; NULL for a plain file */
	bool		live;
	u64		saved;		/* seconds since 1970, 0 if not known */
	struct stack	*stacks;
	size_t		nr_stacks;
	size_t		nr_user_stacks;	/* of them, when they were read */
	u64		*ips;
	size_t		nr_ips;
	u64		split;		/* section 4: number of stacks that were split */
	u64		text;		/* section 1, 0 if there is none */
	struct build_id	build_id;	/* section 2 */
	char		release[MAX_RELEASE];
	struct symtab	kallsyms;
	struct symtab	elfsyms;
	struct vmlinux	*vmlinux;
	struct pool	frames;		/* of an address to a frame, see frame.c */
	struct users	users;
	struct value_type values[NR_VALUES]; /* of a profile */
	int		main_value;	/* which of them ref is */
	struct profile	*profile;	/* the recording, if the stacks are from one */
	const struct symbol *(*find_symbol)(struct profile *p, u64 addr);
	struct pool	numbers;	/* of {the kernel's number} to that of an object */
	char		*source;	/* description of where the symbols came from */
};

#define for_each_stack(s, m)	\
	for (s = (m)->stacks; (size_t)(s - (m)->stacks) < (m)->nr_stacks; s++)

enum sort_key { SORT_REF, SORT_DEPTH, SORT_ID };

struct config {
	const char	*kallsyms;
	const char	*vmlinux;
	const char	*symfs;
	const char	*instance;
	const char	*old;
	const char	*trace;		/* --annotate */
	bool		lines;
	bool		force;
	bool		partial;
	bool		map_only;
	enum sort_key	sort;
	u64		top;
	u64		min_ref;
	bool		has_grep;
	regex_t		grep;
	/* Of a recording: what counts, and how much. */
	const char	*events;	/* with commas between them */
	const char	*pids;
	const char	*comm;		/* a pattern of the shell */
	const char	*cpus;
	u64		from;		/* nanoseconds */
	u64		to;
	const char	*weight;	/* a field */
	bool		off_cpu;
	bool		preempted;
	const char	*allocs;	/* events */
	const char	*frees;
	const char	*pointer;	/* their field */
	bool		keep_tracer;	/* the tracer's own frames, in a recording */
	bool		drop_tracer;	/* in a map */
	bool		by_task;
	bool		all_values;	/* also of what weighs nothing */
};

#define MAX_READS	5	/* of a file that the kernel may replace meanwhile */

/* map.c */
char *slurp_map(const char *path, size_t *len);
struct stack *map_add(struct map *m, const u64 *ips, u32 nr);
int read_map(struct map *m, const char *buf, size_t len);
int load_map(struct map *m, const char *path);
int reload_map(struct map *m);
void map_free_stacks(struct map *m);
/* stacks.c */
bool define_stack(struct stacks *k, u32 in, bool user, u32 id, const u64 *ips, u32 nr);
size_t use_map(struct stacks *k, const struct map *m, u32 in);
u32 stack_of_ids(struct stacks *k, u32 in, bool user, u64 epoch, const struct stack_ids *ids);
u32 stack_of_frames(struct stacks *k, bool user, u64 epoch, const u64 *ips, u32 nr);
bool resolve_stack(struct stacks *k, u32 stack, struct words *w);
void stacks_free(struct stacks *k);

#endif
