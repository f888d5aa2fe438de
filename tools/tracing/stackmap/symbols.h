/* SPDX-License-Identifier: GPL-2.0 */
/* Names of addresses, whatever has them. */
#ifndef STACKMAP_SYMBOLS_H
#define STACKMAP_SYMBOLS_H

#include "user.h"

/* Without the libraries, elf.c and what reads recordings are not there, and not called. */
#ifdef HAVE_LIBS
#define HAS_LIBS	true
#else
#define HAS_LIBS	false
#endif
#define WITHOUT_LIBS	"built without elfutils and libtracecmd"

#define TRAMPOLINE_MARKER	0x7fffffff	/* the kernel's FTRACE_TRAMPOLINE_MARKER */

struct profile;

/* What is known of the names of addresses. */
struct symbols {
	struct symtab	kallsyms;
	struct symtab	elfsyms;
	struct vmlinux	*vmlinux;
	u64		tracer_start;	/* of its text; 0: not searched */
	u64		tracer_end;
	struct pool	modules;	/* of a name: 1 if it is there, as far as it is known */
	bool		unsure;		/* text was there that no kallsyms tells */
	size_t		nr_replaced;	/* addresses that have no name for that */
	struct pool	frames;		/* of an address to a frame, see frame.c */
	struct users	users;
	struct profile	*profile;	/* the recording, if the stacks are from one */
	const struct symbol *(*find_symbol)(struct profile *p, u64 addr);
	char		*source;	/* description of where the symbols came from */
};

/*
 * If a call is the last instruction of its function, the return address is in the next function, or
 * behind the end of the mapping. So look one byte back.
 */
static inline u64 lookup_addr(u64 ip, bool exact)
{
	return exact || !ip ? ip : ip - 1;
}

struct frame {
	u64			ip;
	u64			addr;		/* the same, or the offset in the object */
	const struct symbol	*sym;		/* NULL: no symbol */
	struct object		*object;	/* the file of a frame of user space, or NULL */
	char			*text;		/* schedule+0x48/0xc0 [mod] */
	char			*lines;		/* for --lines, made on first use */
	u32			uid;		/* number in a pool of names */
	bool			exact;		/* not a return address */
	bool			user;		/* a frame of user space */
	signed char		matches;	/* --grep, -1: not tried yet */
};

void note_module(struct symbols *k, const char *name, bool leaves);
/* elf.c */
void read_file_id(const char *path, struct build_id *id);
const struct symbol *find_in_object(struct users *u, struct object *o, u64 offset);
void object_free_symbols(struct object *o);
void vmlinux_free(struct vmlinux *v);
char *vmlinux_lines(const struct vmlinux *v, u64 addr);
/* frame.c */
bool is_gone(const struct symbols *k, const struct symbol *s);
const struct symbol *find_symbol(const struct symbols *k, u64 ip, bool exact);
void note_hits(const struct symbols *k, struct words *w);
const char *frame_name(struct frame *f, const char **mod);
const char *frame_lines(const struct symbols *k, struct frame *f);
void note_objects(const struct symbols *k);
void frames_free(struct symbols *k);
/* tracer.c */
u32 tracer_frames(struct symbols *k, const u64 *ips, u32 nr);
u32 scheduler_frames(const struct symbols *k, const u64 *ips, u32 nr);

#endif
