/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types and limits of stackmap_dump.
 *
 * A map is read whole, into an array of stacks and an array of addresses. An address is looked up
 * in up to two tables of symbols, first kallsyms, then vmlinux. The texts of addresses are cached
 * in a fixed number of slots (frame.c), so memory is proportional to the size of the input.
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
#define MAX_SECTIONS	1024
#define MAX_BUILD_ID	64
#define MAX_RELEASE	256
#define MAX_PARTS	8		/* of a stack that was split */
#define PRINTED_PARTS	4		/* parts that trace-cmd prints */
#define COMM_LEN	15		/* the longest name of a task */

#define TRAMPOLINE_MARKER	0x7fffffff	/* the kernel's FTRACE_TRAMPOLINE_MARKER */

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

typedef uint32_t u32;
typedef unsigned long long u64;

struct stack {
	u32		id;
	u32		nr;
	u32		nr_user;	/* so many of them, the outermost ones, are of user space */
	bool		named;		/* has indices of map->named instead of addresses */
	bool		user_named;	/* the frames of user space have */
	bool		defined;	/* by the trace */
	bool		ambiguous;	/* the trace has two definitions of the id */
	size_t		first;		/* index of the leaf in map->ips */
	u64		ref;
	const struct process *process;	/* of the frames of user space; NULL: unknown */
};

struct symbol {
	u64		addr;
	u64		end;
	const char	*name;
	const char	*mod;		/* NULL: the kernel proper */
	u32		seq;		/* line in the source; the first of several aliases wins */
	char		type;		/* as nm prints it, or MODULE_BASE */
};

#define MODULE_BASE	'\n'	/* a module of last_boot_info; no line can have this type */

struct symtab {
	struct symbol	*syms;
	size_t		nr;
	size_t		room;
	u64		text;		/* _text, 0 if unknown */
	u64		kernel_end;	/* _end, 0 if unknown */
	char		**bufs;		/* the files; names point into them */
	size_t		nr_bufs;
};

struct build_id {
	size_t		len;		/* 0: unknown */
	unsigned char	bytes[MAX_BUILD_ID];
};

/* Strings, numbered in the order in which they were first seen. */
struct intern {
	void		*tree;
	struct interned	**list;
	size_t		nr;
	size_t		room;
};

struct task {
	char	comm[COMM_LEN + 1];
	u32	pid;
	u32	tgid;		/* 0: the trace does not have it */
};

struct process;

/* A file that a process has mapped, or "[vdso]". */
struct object {
	char		*path;
	char		*name;		/* without directories or brackets */
	struct build_id	id;
	u64		limit;		/* the end of what was mapped of it */
	bool		tried;		/* to load its symbols */
	struct symtab	symtab;
	struct elf_file	*elf;		/* NULL: not here */
};

/* An address of a process, found in an object. */
struct place {
	struct object	*object;
	u64		offset;
	u64		addr;		/* in its symbols */
};

/* What user space has mapped (user.c). */
struct users {
	void		*processes;	/* a tree, by tgid */
	void		*tasks;		/* a tree of threads, by tid */
	struct intern	names;		/* keys of the objects */
	struct object	**objects;
	size_t		room_objects;
	const char	*symfs;
	size_t		nr_missing;	/* objects that are not here */
};

struct cookie;
struct vmlinux;
struct frame;
struct named;

struct map {
	char		*name;
	char		*dir;		/* made by "save"; NULL for a plain file */
	bool		live;
	u64		saved;		/* seconds since 1970, 0 if not known */
	bool		no_file;	/* the trace defines the stacks */
	struct stack	*stacks;
	size_t		nr_stacks;
	size_t		room_stacks;
	u64		*ips;
	size_t		nr_ips;
	size_t		room_ips;
	u64		split;		/* section 4: number of stacks that were split */
	u64		text;		/* section 1, 0 if there is none */
	struct build_id	build_id;	/* section 2 */
	char		release[MAX_RELEASE];
	struct symtab	kallsyms;
	struct symtab	elfsyms;
	struct vmlinux	*vmlinux;
	struct frame	*frames;	/* FRAME_SLOTS of them */
	struct intern	names;		/* frames of a trace that are text only */
	struct named	**named;	/* as many as names */
	size_t		room_named;
	struct users	users;
	bool		has_user;	/* the trace has stacks of user space */
	struct cookie	*cookies;	/* of the trace, sorted */
	size_t		nr_cookies;
	size_t		room_cookies;
	struct task	*tasks;		/* of stacks counted by task, at their ids */
	char		*source;	/* description of where the symbols came from */
};

enum sort_key { SORT_REF, SORT_DEPTH, SORT_ID };

struct config {
	const char	**kallsyms;
	size_t		nr_kallsyms;
	const char	*vmlinux;
	const char	*symfs;
	const char	*instance;
	const char	*old;
	const char	*trace;
	FILE		*trace_file;
	char		*saved_trace;	/* trace, if it is that of "save" */
	u64		text_base;
	bool		lines;
	bool		force;
	bool		partial;
	bool		map_only;
	bool		quiet;
	enum sort_key	sort;
	size_t		top;
	u32		min_ref;
	bool		has_grep;
	regex_t		grep;
};

#endif
