/* SPDX-License-Identifier: GPL-2.0 */
/* The text of an address. */
#ifndef STACKMAP_FRAME_H
#define STACKMAP_FRAME_H

#include "stackmap.h"

/* In the place of the kernel's frames: there is no stack, or its id has no definition. */
#define WORD_NO_STACK	(UINT64_MAX - 1)
#define WORD_UNDEFINED	(UINT64_MAX - 2)

enum frame_kind { FRAME_KERNEL, FRAME_USER, FRAME_FILE };

struct frame {
	u64			ip;
	u64			addr;		/* the same in the file that has the symbols */
	const struct symbol	*sym;		/* NULL: no symbol */
	struct object		*object;	/* the file of a frame of user space, or NULL */
	u64			offset;		/* in the object */
	char			*text;		/* schedule+0x48/0xc0 [mod], made on first use */
	char			*lines;		/* for --lines, made on first use */
	u32			len;		/* of text */
	u32			uid;		/* number in a pool of names */
	bool			exact;		/* not a return address */
	bool			user;		/* a frame of user space */
	enum frame_kind		kind;
	signed char		matches;	/* --grep, -1: not tried yet */
};

/* frame.c */
u64 lookup_addr(u64 ip, bool exact);
const struct symbol *find_symbol(const struct map *m, u64 ip, bool exact);
bool is_trampoline(u64 ip);
const char *frame_text(struct frame *f);
const char *frame_name(struct frame *f, const char **mod);
const char *frame_lines(const struct map *m, struct frame *f);
struct frame *frame_get(struct map *m, const struct stack *s, u32 i);
void frames_free(struct map *m);

#endif
