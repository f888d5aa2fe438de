/* SPDX-License-Identifier: GPL-2.0 */
/* Files of user space that processes have mapped. */
#ifndef STACKMAP_USER_H
#define STACKMAP_USER_H

#include "symtab.h"

enum object_state {
	OBJECT_NEW, OBJECT_NO_LIBS, OBJECT_MISSING, OBJECT_OTHER, OBJECT_UNREADABLE,
	OBJECT_NO_OFFSETS, OBJECT_UNCHECKED, OBJECT_FOUND,
};

/* A file that a process has mapped, or "[vdso]". */
struct object {
	char		*file;		/* its path */
	char		*path;		/* that can be printed */
	char		*name;		/* without directories or brackets */
	struct build_id	id;
	enum object_state state;
	struct symtab	symtab;		/* by offsets in the file */
	struct Dwfl	*dwfl;
};

/* What user space has mapped (user.c). */
struct users {
	struct pool	processes;	/* of {tgid, 0} to a process, see user.c */
	struct pool	objects;	/* of a string to an object */
	const char	*symfs;
	const char	*dir;		/* of the recording, or NULL */
	bool		watched;	/* by perf events */
};

/*
 * Files that processes have mapped (objects), and where: user_maps of a recording, whose lines are
 * nearly in the order of time. "save" scans /proc, "record" follows perf events, too (watch.c).
 *
 *	@123456789 map 1234 5581c000-5581e000 1000 ID /usr/bin/cat
 *	@123456789 fork 1300 1234	process 1300 begins with what 1234 has mapped so far
 *	@123456789 exec 1234		nothing that was mapped before is there any more
 *
 * The time is in nanoseconds of the clock mono; without it, the line counts from the beginning.
 * ID is the build id in hexadecimal, or why there is none: "-", it was not found where the kernel
 * looks, "none", the file has none, "?", the file could not be read. Without a path, nothing is
 * known of what is there.
 *
 * A user stack is stored by file: bit 63, the number of the object in 19 bits, and the
 * offset in the file in 44 bits, as the kernel does it (with numbers of its own). What is in no
 * file stays an address. The highest number is not used, because [vsyscall] has such addresses.
 */
#define OFFSET_BITS	44
#define OFFSET_MASK	((1ULL << OFFSET_BITS) - 1)
#define OBJECT_LIMIT	0x7ffffU

/* Returns 0 for an address. */
static inline u32 word_object(u64 word)
{
	u32 nr = word >> OFFSET_BITS & OBJECT_LIMIT;

	return word >> 63 && nr != OBJECT_LIMIT ? nr : 0;
}

/* In the kernel's words, the number is that of a file in the generation of the stack. */
static inline u32 word_file_id(u64 word, u32 stack_id)
{
	return (stack_id & ~OBJECT_LIMIT) | word_object(word);
}

/* 0 and the highest number are none. */
static inline bool is_file_id(u64 id)
{
	return id <= INT32_MAX && ((id + 1) & OBJECT_LIMIT) > 1;
}

static inline u64 make_word(u32 object, u64 offset)
{
	return 1ULL << 63 | (u64)object << OFFSET_BITS | offset;
}

/* A program can put any word on its stack. An address never looks as a place in a file. */
static inline u64 address_word(u64 addr)
{
	return word_object(addr) ? addr | make_word(OBJECT_LIMIT, 0) : addr;
}

struct mapping {
	u64			time;
	u64			start;
	u64			end;
	u64			offset;
	u32			object;		/* 0: unknown */
	bool			exec;		/* nothing before it counts */
	const struct process	*parent;	/* what it had mapped then was copied */
};

char *hide_controls(char *text);
struct object *object_at(const struct users *u, u32 nr);
u32 get_object(struct users *u, const char *path, const struct build_id *id);
u64 users_epoch(struct users *u, u32 tgid, u64 time);
u64 place_word(struct users *u, u64 epoch, u64 addr, bool exact);
int parse_user_line(void *users, char *line);
void users_free(struct users *u);
/* watch.c */
void scan_processes(FILE *f);
void watch_start(FILE *f);
void watch_drain(void);
void watch_stop(void);

#endif
