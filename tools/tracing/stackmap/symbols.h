/* SPDX-License-Identifier: GPL-2.0 */
/* Build ids, tables of symbols, and the files that they come from. */
#ifndef STACKMAP_SYMBOLS_H
#define STACKMAP_SYMBOLS_H

#include "util.h"

/* build_id.c */
bool same_id(const struct build_id *a, const struct build_id *b);
char *build_id_text(const struct build_id *id);
char *parse_build_id(char *s, struct build_id *id);
void build_id_of_notes(const char *p, size_t len, struct build_id *id);
int check_build_id(const struct map *m, const struct build_id *id, const char *path,
		   const struct config *cfg);
/* source.c */
int load_kallsyms(struct map *m, const struct config *cfg);
int load_symbols(struct map *m, const struct map *sibling, const struct config *cfg);
void map_free(struct map *m);
/* symtab.c */
void symtab_add(struct symtab *t, const struct symbol *s);
void symtab_finish(struct symtab *t);
const struct symbol *symtab_find(const struct symtab *t, u64 addr);
void symtab_shift(struct symtab *t, u64 delta);
const char *symtab_keep(struct symtab *t, char *name);
void symtab_free(struct symtab *t);
int parse_symbol_line(void *t, char *line);
int symtab_load(struct symtab *t, const char *path);
/* object.c: ELF files by libdwfl */
#ifdef HAVE_LIBDW
#include <elfutils/libdwfl.h>
#include <gelf.h>

struct Dwfl *elf_begin_files(const char *symfs);
Dwfl_Module *elf_report_file(Dwfl *dwfl, const char *name, const char *path, struct build_id *id);
void elf_symbols(struct symtab *t, Dwfl_Module *mod, bool sizes);
#endif
/* vmlinux.c */
void vmlinux_free(struct vmlinux *v);
char *vmlinux_lines(const struct vmlinux *v, u64 addr);
int vmlinux_load(struct map *m, const struct config *cfg);

#endif
