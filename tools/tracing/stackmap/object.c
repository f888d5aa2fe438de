// SPDX-License-Identifier: GPL-2.0
/*
 * The symbols of files of user space. libdwfl finds the file, or by its build id another copy (also
 * by debuginfod, if DEBUGINFOD_URLS is set), and the debug file; the look-up is our own.
 */
#include <ctype.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols.h"
#include "user.h"
#include "util.h"

static void note_list(const struct users *u, bool (*which)(const struct object *o), const char *why)
{
	size_t i, n = 0;
	char *list = copy_string(""), *old;

	for (i = 0; i < u->names.nr; i++) {
		if (!which(u->objects[i]) || n++ >= 8)
			continue;
		old = list;
		list = format("%s%s%s", old, *old ? ", " : "", u->objects[i]->path);
		free(old);
	}
	if (n > 8)
		note("%s: %s and %zu more", why, list, n - 8);
	else if (n)
		note("%s: %s", why, list);
	free(list);
}

static bool is_missing(const struct object *o)
{
	return o->state == OBJECT_MISSING;
}

#ifdef HAVE_LIBDW
static bool is_other(const struct object *o)
{
	return o->state == OBJECT_OTHER;
}

static bool is_unchecked(const struct object *o)
{
	return o->state == OBJECT_UNCHECKED;
}
#endif

void note_objects(const struct users *u)
{
#ifdef HAVE_LIBDW
	note_list(u, is_missing, "not here, so without names of functions (--symfs DIR)");
	note_list(u, is_other, "not used, as it is another file than the one that was mapped");
	note_list(u, is_unchecked, "used, but nothing tells if it is the file that was mapped");
#else
	note_list(u, is_missing, "built without elfutils (libdw), no names of functions of");
#endif
}

#ifdef HAVE_LIBDW
#include <elfutils/libdwfl.h>

static const Dwfl_Callbacks *callbacks(const struct users *u)
{
	static char buf[PATH_MAX], *path = buf;
	static const Dwfl_Callbacks calls = {
		.find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address, .debuginfo_path = &path,
	};

	snprintf(buf, sizeof(buf), ":.debug:%s/usr/lib/debug", u->symfs ? u->symfs : "");
	return &calls;
}

static bool is_plain_file(const char *path, struct build_id *id)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || access(path, R_OK))
		return false;
	file_stamp(&st, id->stamp, sizeof(id->stamp));
	return true;
}

static Dwfl_Module *report_file(struct object *o, const char *path)
{
	Dwfl_Module *mod;

	dwfl_report_begin(o->dwfl);
	mod = dwfl_report_offline(o->dwfl, o->name, path, -1);
	dwfl_report_end(o->dwfl, NULL, NULL);
	return mod;
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
	return mod && dwfl_module_getelf(mod, &bias) ? mod : NULL;
}

/* A debug file without its program has lost where the text is in the file; the kernel knows it. */
static Dwfl_Module *report_debug(const struct users *u, struct object *o)
{
	char *hex = build_id_text(&o->id), *path;
	Dwfl_Module *mod;

	path = format("%s/usr/lib/debug/.build-id/%.2s/%s.debug", u->symfs ? u->symfs : "", hex,
		      hex + 2);
	mod = access(path, R_OK) ? NULL : report_file(o, path);
	free(path);
	free(hex);
	return mod;
}

static bool has_id(Dwfl_Module *mod, const struct build_id *id)
{
	const unsigned char *bytes;
	GElf_Addr addr;
	int len;

	dwfl_module_getelf(mod, &addr);
	len = dwfl_module_build_id(mod, &bytes, &addr);
	return len > 0 && (size_t)len == id->len && !memcmp(bytes, id->bytes, len);
}

static Dwfl_Module *open_object(const struct users *u, struct object *o)
{
	char *path = format("%s%s", u->symfs ? u->symfs : "", o->file);
	struct build_id found = {};
	Dwfl_Module *mod = NULL;

	o->state = OBJECT_MISSING;
	if (*o->file == '/' && is_plain_file(path, &found))
		mod = report_file(o, path);
	free(path);
	if (mod && o->id.len && !has_id(mod, &o->id)) {
		o->state = OBJECT_OTHER;
		mod = NULL;
	} else if (mod && !o->id.len && *o->id.stamp && !u->symfs &&
		   strcmp(o->id.stamp, found.stamp)) {
		o->state = OBJECT_OTHER;
		return NULL;
	}
	if (mod) {
		o->state = o->id.len || *o->id.stamp ? OBJECT_FOUND : OBJECT_UNCHECKED;
		return mod;
	}
	if (o->id.len >= 2)
		mod = report_id(o);
	if (!mod && o->id.len >= 2 && o->has_bias)
		mod = report_debug(u, o);
	if (mod)
		o->state = OBJECT_FOUND;
	return mod;
}

/* Not to be sent to a terminal. */
static bool has_controls(const char *name)
{
	while (*name && !iscntrl((unsigned char)*name))
		name++;
	return *name;
}

/* Functions, and labels of assembler. */
static bool is_code(Elf *elf, const char *name, const GElf_Sym *sym, GElf_Word section)
{
	int type = GELF_ST_TYPE(sym->st_info);
	Elf_Scn *scn = elf ? elf_getscn(elf, section) : NULL;
	GElf_Shdr shdr;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (!name || !*name || *name == '$' || !strncmp(name, ".L", 2) || has_controls(name) ||
	    section == SHN_UNDEF || section >= SHN_LORESERVE)
		return false;
	return !scn || !gelf_getshdr(scn, &shdr) || shdr.sh_flags & SHF_EXECINSTR;
}

/* At one address, functions are preferred to labels, and global names to weak and local ones. */
static char rank(const GElf_Sym *sym)
{
	int bind = GELF_ST_BIND(sym->st_info);

	if (!sym->st_size)
		return 'W';
	return bind == STB_WEAK ? 'W' : bind == STB_GLOBAL ? 'T' : 't';
}

static void add_symbols(struct symtab *t, Dwfl_Module *mod)
{
	int i, nr = dwfl_module_getsymtab(mod);
	GElf_Word section;
	const char *name;
	GElf_Addr addr;
	GElf_Sym sym;
	Elf *elf;

	for (i = 1; i < nr; i++) {
		name = dwfl_module_getsym_info(mod, i, &sym, &addr, &section, &elf, NULL);
		if (!name || !is_code(elf, name, &sym, section))
			continue;
		*symtab_add(t) = (struct symbol) {
			.addr = addr, .end = addr + sym.st_size, .name = name, .type = rank(&sym),
		};
	}
	sort_elf_symbols(t);
	drop_aliases(t);
}

/* A label in a function does not end it. */
static void drop_inner_labels(struct symtab *t)
{
	size_t i, n = 0;
	u64 end = 0;

	for (i = 0; i < t->nr; i++) {
		if (t->syms[i].end == t->syms[i].addr && t->syms[i].addr < end)
			continue;
		end = t->syms[i].end > end ? t->syms[i].end : end;
		t->syms[n++] = t->syms[i];
	}
	t->nr = n;
}

/* A symbol without a size goes on until the next one. */
static void set_ends(struct symtab *t)
{
	u64 next = UINT64_MAX;
	struct symbol *s;
	size_t i;

	for (i = t->nr; i--; next = s->addr) {
		s = &t->syms[i];
		if (s->end <= s->addr || s->end > next)
			s->end = next;
	}
}

static void demangle_symbols(struct symtab *t)
{
	char *name;
	size_t i;

	for (i = 0; i < t->nr; i++) {
		name = demangle(t->syms[i].name);
		if (name)
			t->syms[i].name = symtab_keep(t, name);
	}
}

static void load_object(struct users *u, struct object *o)
{
	Dwfl_Module *mod;

	o->dwfl = dwfl_begin(callbacks(u));
	mod = o->dwfl ? open_object(u, o) : NULL;
	if (!mod)
		return;
	add_symbols(&o->symtab, mod);
	drop_inner_labels(&o->symtab);
	set_ends(&o->symtab);
	demangle_symbols(&o->symtab);
	o->elf = dwfl_module_getelf(mod, &o->load_bias);
}

/* False if the file has nothing at the offset. */
static bool set_addr(const struct object *o, u64 offset, u64 *addr)
{
	GElf_Phdr phdr;
	size_t i, nr;

	if (o->has_bias) {
		*addr = offset + o->bias + o->load_bias;
		return true;
	}
	if (elf_getphdrnum(o->elf, &nr))
		return false;
	for (i = 0; i < nr && gelf_getphdr(o->elf, i, &phdr); i++) {
		if (phdr.p_type != PT_LOAD || offset < phdr.p_offset ||
		    offset - phdr.p_offset >= phdr.p_filesz)
			continue;
		*addr = offset - phdr.p_offset + phdr.p_vaddr + o->load_bias;
		return true;
	}
	return false;
}

const struct symbol *find_in_object(struct users *u, struct object *o, u64 offset, u64 *addr)
{
	if (o->state == OBJECT_NEW)
		load_object(u, o);
	if (!o->elf || !set_addr(o, offset, addr))
		return NULL;
	return symtab_find(&o->symtab, *addr);
}

void object_free_symbols(struct object *o)
{
	symtab_free(&o->symtab);
	if (o->dwfl)
		dwfl_end(o->dwfl);
}

#else /* !HAVE_LIBDW */

const struct symbol *find_in_object(struct users *u, struct object *o, u64 offset, u64 *addr)
{
	o->state = OBJECT_MISSING;
	return NULL;
}

void object_free_symbols(struct object *o)
{
}

#endif /* HAVE_LIBDW */
