/* SPDX-License-Identifier: GPL-2.0 */
/* ELF files by libdwfl, for object.c and vmlinux.c. */
#ifndef STACKMAP_ELF_FILE_H
#define STACKMAP_ELF_FILE_H

#ifdef HAVE_LIBDW
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "stackmap.h"

/* As nm prints it, or 0 if the symbol is not wanted. @flags: of its section */
typedef char elf_type_fn(const struct symbol *s, int info, u64 flags);

Dwfl *elf_begin_files(const char *symfs);
Dwfl_Module *elf_report_file(Dwfl *dwfl, const char *name, const char *path);
void elf_build_id(Dwfl_Module *mod, struct build_id *id);
void elf_symbols(struct symtab *t, Dwfl_Module *mod, elf_type_fn *type);
#endif

#endif
