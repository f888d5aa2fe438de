/* SPDX-License-Identifier: GPL-2.0 */
/* The symbols of an ELF file, for a build with elfutils. */
#ifndef STACKMAP_ELF_SYMBOLS_H
#define STACKMAP_ELF_SYMBOLS_H

#include <gelf.h>

#include "stackmap.h"

typedef void add_symbol_fn(struct symtab *t, Elf *elf, const char *name, const GElf_Sym *sym);

char symbol_type(Elf *elf, const GElf_Sym *sym);
int add_elf_symbols(struct symtab *t, Elf *elf, GElf_Word type, add_symbol_fn *add);
void elf_build_id(Elf *elf, struct build_id *id);

#endif
