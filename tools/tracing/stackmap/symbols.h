/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Build ids, tables of symbols, and the files that they come from.
 *
 * Files that processes have mapped (objects), and where: user_maps of a recording, whose lines are
 * nearly in the order of time. "save" scans /proc, "record" follows perf events, too (watch.c).
 *
 *	@123456789 map 1234 5581c000-5581e000 1000 ID /usr/bin/cat
 *	@123456789 fork 1300 1234	process 1300 begins with what 1234 has mapped so far
 *	@123456789 exec 1234		nothing that was mapped before is there any more
 *
 * The time is in nanoseconds of the clock mono; without it, the line counts from the beginning.
 * ID is the build id in hexadecimal, or "-". Without a path, nothing is known of what is there.
 *
 * A user stack is stored by file: bit 63, the number of the object in 19 bits, and the
 * offset in the file in 44 bits, as the kernel does it (with numbers of its own). What is in no
 * file stays an address. The highest number is not used, because [vsyscall] has such addresses.
 */
#ifndef STACKMAP_SYMBOLS_H
#define STACKMAP_SYMBOLS_H

#include "util.h"

#define OFFSET_BITS	44
#define OFFSET_MASK	((1ULL << OFFSET_BITS) - 1)
#define OBJECT_LIMIT	0x7ffffU

/* Returns 0 for an address. */
static inline u32 word_object(u64 word)
{
	u32 nr = word >> OFFSET_BITS & OBJECT_LIMIT;

	return word >> 63 && nr != OBJECT_LIMIT ? nr : 0;
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

/* source.c */
int load_kallsyms(struct map *m, const struct config *cfg);
int load_symbols(struct map *m, const struct map *sibling, const struct config *cfg);
void map_free(struct map *m);
/* symtab.c */
bool same_id(const struct build_id *a, const struct build_id *b);
char *build_id_text(const struct build_id *id);
char *parse_build_id(char *s, struct build_id *id);
void build_id_of_notes(const char *p, size_t len, struct build_id *id);
int check_build_id(const struct map *m, const struct build_id *id, const char *path,
		   const struct config *cfg);
void symtab_add(struct symtab *t, const struct symbol *s);
void symtab_finish(struct symtab *t);
const struct symbol *symtab_find(const struct symtab *t, u64 addr);
void symtab_shift(struct symtab *t, u64 delta);
const char *symtab_keep(struct symtab *t, char *name);
void symtab_free(struct symtab *t);
int parse_symbol_line(void *t, char *line);
int symtab_load(struct symtab *t, const char *path);
/* user.c */
struct object *object_at(const struct users *u, u32 nr);
u32 get_object(struct users *u, const char *path, const struct build_id *id);
u32 user_object(struct users *u, const char *path, const struct build_id *id, u64 bias);
u64 users_epoch(struct users *u, u32 tgid, u64 time);
u64 place_word(struct users *u, u64 epoch, u64 addr, bool exact);
int parse_user_line(void *users, char *line);
int load_users(struct users *u, const char *path);
void users_free(struct users *u);
/* elf.c */
const struct symbol *find_in_object(struct users *u, struct object *o, u64 offset);
void object_free_symbols(struct object *o);
void note_objects(const struct users *u);
void vmlinux_free(struct vmlinux *v);
char *vmlinux_lines(const struct vmlinux *v, u64 addr);
int vmlinux_load(struct map *m, const struct config *cfg);
/* watch.c */
void read_file_id(const char *path, struct build_id *id);
int save_users(const char *dir);
int watch_start(const char *dir);
void watch_drain(void);
int watch_stop(const char *dir);

#endif
