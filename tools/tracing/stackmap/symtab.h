/* SPDX-License-Identifier: GPL-2.0 */
/* Tables of symbols, and build ids. */
#ifndef STACKMAP_SYMTAB_H
#define STACKMAP_SYMTAB_H

#include "pool.h"

#define MAX_BUILD_ID	64

struct symbol {
	u64		addr;
	u64		end;
	const char	*name;
	const char	*mod;		/* NULL: the kernel proper */
	u32		seq;		/* line in the source; the first of several aliases wins */
	char		type;		/* as nm prints it */
	bool		is_label;	/* nothing tells where it ends */
	bool		passes;		/* it was not there all the time */
	bool		replaced;	/* and something else was */
};

struct symtab {
	struct symbol	*syms;
	size_t		nr;
	u64		text;		/* _text, 0 if unknown */
	u64		kernel_end;	/* _end, 0 if unknown */
	u64		entry_start;	/* where interrupts enter the kernel */
	u64		entry_end;	/* 0 if unknown */
	char		**bufs;		/* the files; names point into them */
	size_t		nr_bufs;
};

/* Why there is none; in user_maps: -, none, ?. Older kernels read one page. */
enum id_lack { ID_NOT_FOUND, ID_NONE, ID_UNREADABLE };

struct build_id {
	size_t		len;		/* 0: unknown */
	enum id_lack	lack;
	bool		is_deep;	/* behind the first page */
	unsigned char	bytes[MAX_BUILD_ID];
};

#define HIDDEN	"%s: kptr_restrict hides all addresses (root sees them, unless it is 2)"

extern const char * const id_lacks[];
bool same_id(const struct build_id *a, const struct build_id *b);
char *build_id_text(const struct build_id *id);
char *parse_build_id(char *s, struct build_id *id);
void build_id_of_notes(const char *p, size_t len, struct build_id *id);
void write_vdso(FILE *f);
void symtab_add(struct symtab *t, const struct symbol *s);
void symtab_finish(struct symtab *t);
const struct symbol *symtab_find(const struct symtab *t, u64 addr);
void symtab_shift(struct symtab *t, u64 delta);
const char *symtab_keep(struct symtab *t, char *name);
void symtab_free(struct symtab *t);
int parse_symbol_line(void *t, char *line);
int symtab_load(struct symtab *t, const char *path);
bool is_trampoline(const struct symbol *s);
bool is_bpf(const struct symbol *s);

#endif
