// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols, source lines and inlined callers from a vmlinux, by elfutils.
 *
 * Without HAVE_LIBDW, the only function reports that.
 */
#include <unistd.h>

#include "symbols.h"

#ifdef HAVE_LIBDW

#include <dwarf.h>

struct vmlinux {
	Dwfl		*dwfl;
	Dwarf		*dwarf;
	u64		delta;		/* run time minus the addresses that libdwfl uses */
	Dwarf_Addr	bias;		/* these minus those of dwarf */
	struct symtab	units;		/* seq: the offset of the DIE */
};

void vmlinux_free(struct vmlinux *v)
{
	if (!v)
		return;
	dwfl_end(v->dwfl);
	symtab_free(&v->units);
	free(v);
}

/* The addresses of compile units. Not every compiler writes .debug_aranges. */
static void index_units(struct vmlinux *v)
{
	struct symbol unit = { .name = "" };
	Dwarf_Addr base, lo, hi;
	Dwarf_CU *cu = NULL;
	ptrdiff_t off;
	Dwarf_Die die;

	while (!dwarf_get_units(v->dwarf, cu, &cu, NULL, NULL, &die, NULL)) {
		off = 0;
		while ((off = dwarf_ranges(&die, off, &base, &lo, &hi)) > 0) {
			unit.addr = lo;
			unit.end = hi;
			unit.seq = dwarf_dieoffset(&die);
			symtab_add(&v->units, &unit);
		}
	}
	symtab_finish(&v->units);
}

/* Paths relative to the top of the kernel tree. */
static const char *source_path(Dwarf_Die *cu, const char *path)
{
	Dwarf_Attribute attr;
	const char *dir = dwarf_formstring(dwarf_attr(cu, DW_AT_comp_dir, &attr));
	size_t len = dir ? strlen(dir) : 0;

	if (len && !strncmp(path, dir, len) && path[len] == '/')
		return path + len + 1;
	return strncmp(path, "./", 2) ? path : path + 2;
}

/* Of the inlined function @die. */
static const char *call_site(Dwarf_Die *cu, Dwarf_Die *die, int *line)
{
	Dwarf_Word file = 0, number = 0;
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	size_t nr;

	dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attr), &file);
	dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attr), &number);
	*line = number;
	if (dwarf_getsrcfiles(cu, &files, &nr) || file >= nr)
		return NULL;
	return dwarf_filesrc(files, file, NULL, NULL);
}

static bool is_function(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram;
}

/* Innermost first, up to the function that has a symbol. */
static void print_scopes(FILE *f, Dwarf_Die *cu, Dwarf_Die *scopes, int nr, Dwarf_Addr addr)
{
	Dwarf_Line *at = dwarf_getsrc_die(cu, addr);
	const char *file = at ? dwarf_linesrc(at, NULL, NULL) : NULL, *name;
	int i, line = 0;
	bool inlined;

	dwarf_lineno(at, &line);
	for (i = 0; i < nr; i++) {
		if (!is_function(&scopes[i]))
			continue;
		inlined = dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;
		name = dwarf_diename(&scopes[i]);
		fprintf(f, "%s%s at %s:%d\n", name ? name : "?", inlined ? " (inlined)" : "",
			file ? source_path(cu, file) : "?", line);
		if (!inlined)
			return;
		file = call_site(cu, &scopes[i], &line);
	}
}

static void print_lines(FILE *f, Dwarf_Die *cu, Dwarf_Addr addr)
{
	Dwarf_Die *at = NULL, *chain = NULL;
	int nr, i = 0;

	/* Outside of an inlined function, these are the scopes of its definition. */
	nr = dwarf_getscopes(cu, addr, &at);
	while (i < nr && !is_function(&at[i]))
		i++;
	if (i < nr) {
		nr = dwarf_getscopes_die(&at[i], &chain);
		print_scopes(f, cu, chain, nr, addr);
	}
	free(chain);
	free(at);
}

/* Returns the lines "function at file:line" of a run-time address, "" if unknown. */
char *vmlinux_lines(const struct vmlinux *v, u64 addr)
{
	const struct symbol *unit;
	char *buf = NULL;
	Dwarf_Die cu;
	size_t len;
	FILE *f;

	addr -= v->delta + v->bias;
	f = check_mem(open_memstream(&buf, &len));
	unit = symtab_find(&v->units, addr);
	if (unit && dwarf_offdie(v->dwarf, unit->seq, &cu))
		print_lines(f, &cu, addr);
	fclose(f);
	return check_mem(buf);
}

static Dwfl_Module *open_vmlinux(struct vmlinux *v, const struct map *m, const struct config *cfg)
{
	const char *path = cfg->vmlinux;
	struct build_id id;
	Dwfl_Module *mod;

	v->dwfl = elf_begin_files("");
	mod = elf_report_file(v->dwfl, "kernel", path, &id);
	if (!mod) {
		complain("%s: %s", path, access(path, R_OK) ? strerror(errno) : "not an ELF file");
		return NULL;
	}
	if (!id.len || !m->build_id.len)
		note("%s: no build id in the %s, cannot check that it fits", path,
		     id.len ? "map" : "file");
	return check_build_id(m, &id, path, cfg) ? NULL : mod;
}

/* The sizes of symbols are as in kallsyms, up to the next one. */
int vmlinux_load(struct map *m, const struct config *cfg)
{
	struct vmlinux *v = check_mem(calloc(1, sizeof(*v)));
	u64 text = m->text ? m->text : m->kallsyms.text;
	const char *path = cfg->vmlinux;
	GElf_Addr bias = 0;
	Dwfl_Module *mod;

	m->vmlinux = v;
	mod = open_vmlinux(v, m, cfg);
	if (!mod)
		return -EINVAL;
	elf_symbols(&m->elfsyms, mod, false);
	dwfl_module_getelf(mod, &bias);
	v->delta = text && m->elfsyms.text ? text - m->elfsyms.text : -bias;
	symtab_shift(&m->elfsyms, v->delta);
	if (!text || !m->elfsyms.text)
		note("%s: address of _text unknown, cannot undo KASLR", path);
	v->dwarf = cfg->lines ? dwfl_module_getdwarf(mod, &v->bias) : NULL;
	if (v->dwarf)
		index_units(v);
	if (m->elfsyms.nr && (v->dwarf || !cfg->lines))
		return 0;
	return fail("%s: %s", path, m->elfsyms.nr ? "no debug information (CONFIG_DEBUG_INFO)" :
		    "no symbols, is it stripped?");
}

#else /* !HAVE_LIBDW */

void vmlinux_free(struct vmlinux *v)
{
}

char *vmlinux_lines(const struct vmlinux *v, u64 addr)
{
	return copy_string("");
}

int vmlinux_load(struct map *m, const struct config *cfg)
{
	return fail("%s: built without elfutils (libdw), cannot use --vmlinux", cfg->vmlinux);
}

#endif /* HAVE_LIBDW */
