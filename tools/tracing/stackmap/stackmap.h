/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of stackmap_dump share.
 *
 * A map is read whole: an array of stacks, each a run of the array of addresses. Symbols come
 * from up to two tables (kallsyms, then vmlinux) that are searched by address. What an address
 * prints as is kept in a fixed number of slots (frame.c), so memory follows the size of the input
 * whatever the input holds.
 */
#ifndef STACKMAP_H
#define STACKMAP_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Limits of a map. Larger counts are damage, and are not worth the memory they ask for. */
#define MAX_STACKS	0x80000		/* what the slot part of an id can tell apart */
#define MAX_DEPTH	1024		/* what ftrace records at most */
#define MAX_SECTIONS	1024
#define MAX_BUILD_ID	64
#define MAX_RELEASE	256
#define MAX_PARTS	8		/* of a stack that was split */
#define PRINTED_PARTS	4		/* of these, what trace-cmd prints */

#define TRAMPOLINE_MARKER	0x7fffffff	/* the kernel's FTRACE_TRAMPOLINE_MARKER */

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

typedef uint32_t u32;
typedef unsigned long long u64;

struct stack {
	u32		id;
	u32		nr;
	u32		ref;
	bool		named;		/* in place of addresses, indices of map->named */
	size_t		first;		/* index of the leaf in map->ips */
};

struct symbol {
	u64		addr;
	u64		end;
	const char	*name;
	const char	*mod;		/* NULL: the kernel proper */
	u32		seq;		/* line of the source: the first of several aliases wins */
	char		type;		/* as nm prints it, or MODULE_BASE */
};

#define MODULE_BASE	'\n'	/* a module of last_boot_info; no line can have this type */

struct symtab {
	struct symbol	*syms;
	size_t		nr;
	size_t		room;
	u64		text;		/* _text, 0 if the source does not tell */
	u64		kernel_end;	/* _end, likewise */
	char		**bufs;		/* the files that names point into */
	size_t		nr_bufs;
};

struct build_id {
	size_t		len;		/* 0: unknown */
	unsigned char	bytes[MAX_BUILD_ID];
};

struct vmlinux;
struct frame;
struct named;

struct map {
	char		*name;
	char		*dir;		/* what "save" made, NULL for a plain file */
	bool		live;
	struct stack	*stacks;
	size_t		nr_stacks;
	size_t		room_stacks;
	u64		*ips;
	size_t		nr_ips;
	size_t		room_ips;
	u64		split;		/* section 4: how many stacks the kernel has split */
	u64		text;		/* section 1, 0 if there is none */
	struct build_id	build_id;	/* section 2 */
	char		release[MAX_RELEASE];
	struct symtab	kallsyms;
	struct symtab	elfsyms;
	struct vmlinux	*vmlinux;
	struct frame	*frames;	/* FRAME_SLOTS of them */
	struct named	**named;	/* frames that a trace has as text */
	size_t		nr_named;
	size_t		room_named;
	char		*source;	/* says where the symbols came from */
};

enum sort_key { SORT_REF, SORT_DEPTH, SORT_ID };

struct config {
	const char	**kallsyms;
	size_t		nr_kallsyms;
	const char	*vmlinux;
	const char	*instance;
	const char	*old;
	const char	*trace;
	u64		text_base;
	bool		lines;
	bool		force;
	bool		partial;
	bool		quiet;
	enum sort_key	sort;
	size_t		top;
	u32		min_ref;
	bool		has_grep;
	regex_t		grep;
};

#endif
