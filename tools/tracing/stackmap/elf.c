// SPDX-License-Identifier: GPL-2.0
/*
 * What ELF files tell: symbols of files of user space, and symbols, source lines and inlined
 * callers of a vmlinux. libdwfl finds a file, or by its build id another copy (also by debuginfod,
 * if DEBUGINFOD_URLS is set), and the debug file; the look-up is our own.
 */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "stackmap.h"

static char debug_dirs[PATH_MAX + 32];
static char *debug_path = debug_dirs;

/* @symfs: below this are the files, or "" */
static Dwfl *elf_begin_files(const char *symfs)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address, .debuginfo_path = &debug_path,
	};

	snprintf(debug_dirs, sizeof(debug_dirs), ":.debug:%s/usr/lib/debug", symfs);
	return check_mem(dwfl_begin(&callbacks));
}

/* @id: that of the file, if it has one */
static Dwfl_Module *elf_report_file(Dwfl *dwfl, const char *name, const char *path,
				    struct build_id *id)
{
	const unsigned char *bytes;
	Dwfl_Module *mod;
	GElf_Addr addr;
	struct stat st;
	int len;

	/* Others might block, or do something when they are read. */
	if (stat(path, &st) || !S_ISREG(st.st_mode) || access(path, R_OK))
		return NULL;
	note_input(&st);
	dwfl_report_begin(dwfl);
	mod = dwfl_report_offline(dwfl, name, path, -1);
	dwfl_report_end(dwfl, NULL, NULL);
	if (!mod)
		return NULL;
	dwfl_module_getelf(mod, &addr);
	len = dwfl_module_build_id(mod, &bytes, &addr);
	id->len = len > 0 && len <= MAX_BUILD_ID ? len : 0;
	if (id->len)
		memcpy(id->bytes, bytes, id->len);
	return mod;
}

#define FIRST_PAGE	4096

/* By the program headers, as the kernel does it. To open a device may have effects. */
void read_file_id(const char *path, struct build_id *id)
{
	Elf *elf = NULL;
	Elf_Data *data;
	GElf_Phdr p;
	struct stat st;
	int fd, i;

	id->lack = ID_UNREADABLE;
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	elf_version(EV_CURRENT);
	if (fd >= 0)
		elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf)
		id->lack = ID_NONE;
	for (i = 0; !id->len && gelf_getphdr(elf, i, &p); i++) {
		data = p.p_type != PT_NOTE ? NULL :
		       elf_getdata_rawchunk(elf, p.p_offset, p.p_filesz, ELF_T_BYTE);
		if (data)
			build_id_of_notes(data->d_buf, data->d_size, id);
		id->is_deep = p.p_offset + p.p_filesz > FIRST_PAGE;
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

/* Of the library of C++, if it is here. */
char *__cxa_demangle(const char *name, char *buf, size_t *len, int *status);
#pragma weak __cxa_demangle

/* Not to be sent to a terminal. */
static bool has_controls(const char *name)
{
	while (*name && !iscntrl((unsigned char)*name))
		name++;
	return *name;
}

/* Functions, and labels of assembler. @size: to the end of the section, if the symbol has none */
static bool is_function(const char *name, const GElf_Sym *sym, Elf *elf, GElf_Word section,
			u64 *size)
{
	Elf_Scn *scn = elf && section < SHN_LORESERVE ? elf_getscn(elf, section) : NULL;
	int type = GELF_ST_TYPE(sym->st_info);
	GElf_Shdr shdr;

	if (!name || !*name || has_controls(name) ||
	    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
	    !scn || !gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR))
		return false;
	*size = sym->st_size ? sym->st_size : shdr.sh_addr + shdr.sh_size - sym->st_value;
	return true;
}

/* From addresses to offsets in the file. The segments of a debug file may be empty. */
static bool to_offsets(struct symbol *s, Elf *elf)
{
	GElf_Phdr phdr;
	u64 end;
	int i;

	for (i = 0; gelf_getphdr(elf, i, &phdr); i++) {
		end = phdr.p_vaddr + phdr.p_filesz;
		if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X) || s->addr < phdr.p_vaddr ||
		    s->addr >= end)
			continue;
		s->end = (s->end < end ? s->end : end) - phdr.p_vaddr + phdr.p_offset;
		s->addr += phdr.p_offset - phdr.p_vaddr;
		return true;
	}
	return false;
}

/* Without local functions, the program is stripped: what follows a label may be one of these. */
static bool has_locals(Dwfl_Module *mod, int nr)
{
	GElf_Addr addr;
	GElf_Sym sym;
	int i;

	for (i = 1; i < nr; i++) {
		if (dwfl_module_getsym_info(mod, i, &sym, &addr, NULL, NULL, NULL) &&
		    GELF_ST_BIND(sym.st_info) == STB_LOCAL && GELF_ST_TYPE(sym.st_info) == STT_FUNC)
			return true;
	}
	return false;
}

/*
 * At one address, functions are preferred to labels, and global names to weak ones, then those with
 * fewer underscores, as in kallsyms. @file: the symbols are by offsets in it, and end where they
 * say; NULL: they end as in kallsyms. Returns how many have no place in it.
 */
static int elf_symbols(struct symtab *t, Dwfl_Module *mod, Elf *file, GElf_Addr bias)
{
	int i, nr = dwfl_module_getsymtab(mod), lost = 0;
	bool last, whole = !file || has_locals(mod, nr);
	struct symbol s = {};
	GElf_Word section;
	GElf_Addr addr;
	GElf_Sym sym;
	char *plain;
	Elf *elf;
	u64 size;

	for (i = 1; i < nr; i++) {
		s.name = dwfl_module_getsym_info(mod, i, &sym, &addr, &section, &elf, NULL);
		if (!is_function(s.name, &sym, elf, section, &size) || (!whole && !sym.st_size))
			continue;
		last = !sym.st_size || GELF_ST_BIND(sym.st_info) == STB_WEAK;
		s.seq = (u32)last << 31 | (u32)strspn(s.name, "_");
		s.is_label = file && !sym.st_size;
		s.addr = addr - bias;
		s.end = file ? s.addr + size : 0;
		if (file && !to_offsets(&s, file)) {
			lost++;
			continue;
		}
		plain = __cxa_demangle && !strncmp(s.name, "_Z", 2) ?
			__cxa_demangle(s.name, NULL, NULL, NULL) : NULL;
		if (plain)
			s.name = symtab_keep(t, plain);
		symtab_add(t, &s);
	}
	symtab_finish(t);
	return lost;
}

/*
 * A file that has a build id is not the one of a mapping that has none. But the kernel may not have
 * found one that is behind the first page.
 */
static enum object_state check_file(const struct object *o, const struct build_id *found,
				    const char *path)
{
	struct build_id seen = {};

	if (o->id.len)
		return same_id(found, &o->id) ? OBJECT_FOUND : OBJECT_OTHER;
	if (!found->len)
		return OBJECT_UNCHECKED;
	if (o->id.lack == ID_UNREADABLE)
		return OBJECT_UNREADABLE;
	read_file_id(path, &seen);
	return o->id.lack == ID_NOT_FOUND && seen.is_deep ? OBJECT_UNCHECKED : OBJECT_OTHER;
}

/* The file that was mapped, or its debug file, which has the same build id. */
static Dwfl_Module *report_path(struct object *o, const char *path)
{
	struct build_id found;
	Dwfl_Module *mod;

	mod = elf_report_file(o->dwfl, o->name, path, &found);
	if (!mod)
		return NULL;
	o->state = check_file(o, &found, path);
	return o->state >= OBJECT_UNCHECKED ? mod : NULL;
}

/* By its build id only. */
static Dwfl_Module *report_id(struct object *o)
{
	GElf_Addr bias;
	Dwfl_Module *mod;

	dwfl_report_begin(o->dwfl);
	mod = dwfl_report_module(o->dwfl, o->name, 0, OFFSET_MASK);
	if (mod && dwfl_module_report_build_id(mod, o->id.bytes, o->id.len, 0))
		mod = NULL;
	dwfl_report_end(o->dwfl, NULL, NULL);
	if (!mod || !dwfl_module_getelf(mod, &bias))
		return NULL;
	o->state = OBJECT_FOUND;
	return mod;
}

#define DELETED	" (deleted)"	/* the kernel's, behind a path */

/*
 * At its path, which some other file may have now; with its build id; or only its debug file.
 * [vdso] is in no file: saved beside the recording, or that of this kernel.
 */
static Dwfl_Module *open_object(struct users *u, const char *symfs, struct object *o)
{
	char *hex __free(pointer) = build_id_text(&o->id), *end;
	FILE *vdso __free(file) = strcmp(o->file, "[vdso]") ? NULL : tmpfile();
	char *path __free(pointer) = vdso ? format("%s/vdso", u->dir ? u->dir : "") :
				     format("%s%s", symfs, o->file);
	char *own __free(pointer) = vdso ? format("/proc/self/fd/%d", fileno(vdso)) :
		format("%s/usr/lib/debug/.build-id/%.2s/%s.debug", symfs, hex, hex + 2);
	Dwfl_Module *mod = NULL;

	o->state = OBJECT_MISSING;
	if (*o->file == '/' || (vdso && *hex))
		mod = report_path(o, path);
	end = path + strlen(path) - strlen(DELETED);
	if (!mod && end > path && !strcmp(end, DELETED)) {
		*end = '\0';
		mod = report_path(o, path);
	}
	if (mod || !*hex)
		return mod;
	if (vdso)
		write_vdso(vdso);
	else
		mod = report_id(o);
	return mod ? mod : report_path(o, own);
}

/* The symbols are by offsets in the file, as stacks are. */
static void load_object(struct users *u, struct object *o)
{
	const char *symfs = u->symfs ? u->symfs : "";
	GElf_Addr bias = 0;
	Dwfl_Module *mod;
	Elf *elf;

	o->dwfl = elf_begin_files(symfs);
	mod = open_object(u, symfs, o);
	elf = mod ? dwfl_module_getelf(mod, &bias) : NULL;
	if (elf && elf_symbols(&o->symtab, mod, elf, bias) && !o->symtab.nr)
		o->state = OBJECT_NO_OFFSETS;
}

const struct symbol *find_in_object(struct users *u, struct object *o, u64 offset)
{
	if (o->state == OBJECT_NEW)
		load_object(u, o);
	return symtab_find(&o->symtab, offset);
}

void object_free_symbols(struct object *o)
{
	symtab_free(&o->symtab);
	dwfl_end(o->dwfl);
}

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

static bool is_scope(Dwarf_Die *die)
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
		if (!is_scope(&scopes[i]))
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
	while (i < nr && !is_scope(&at[i]))
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
	u64 text = m->text ? m->text : m->sym.kallsyms.text;
	const char *path = cfg->vmlinux;
	GElf_Addr bias = 0;
	Dwfl_Module *mod;

	m->sym.vmlinux = v;
	mod = open_vmlinux(v, m, cfg);
	if (!mod)
		return -EINVAL;
	elf_symbols(&m->sym.elfsyms, mod, NULL, 0);
	dwfl_module_getelf(mod, &bias);
	v->delta = text && m->sym.elfsyms.text ? text - m->sym.elfsyms.text : -bias;
	symtab_shift(&m->sym.elfsyms, v->delta);
	if (!text || !m->sym.elfsyms.text)
		note("%s: address of _text unknown, cannot undo KASLR", path);
	v->dwarf = cfg->lines ? dwfl_module_getdwarf(mod, &v->bias) : NULL;
	if (v->dwarf)
		index_units(v);
	if (m->sym.elfsyms.nr && (v->dwarf || !cfg->lines))
		return 0;
	return fail("%s: %s", path, m->sym.elfsyms.nr ? "no debug information (CONFIG_DEBUG_INFO)" :
		    "no symbols, is it stripped?");
}
