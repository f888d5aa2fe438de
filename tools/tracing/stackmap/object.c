// SPDX-License-Identifier: GPL-2.0
/*
 * The symbols of files of user space. libdwfl finds the file, or by its build id another copy (also
 * by debuginfod, if DEBUGINFOD_URLS is set), and the debug file; the look-up is our own.
 */
#include <ctype.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols.h"
#include "user.h"
#include "util.h"

static void note_list(const struct users *u, enum object_state state, const char *why)
{
	const struct object *o;
	size_t i, len, n = 0;
	char *list;
	FILE *f;

	f = check_mem(open_memstream(&list, &len));
	for (i = 1; (o = object_at(u, i)); i++) {
		if (o->state == state && n++ < 8)
			fprintf(f, "%s%s", n > 1 ? ", " : "", o->path);
	}
	if (n > 8)
		fprintf(f, " and %zu more", n - 8);
	fclose(f);
	if (n)
		note("%s: %s", why, list);
	free(list);
}

void note_objects(const struct users *u)
{
#ifdef HAVE_LIBDW
	note_list(u, OBJECT_MISSING, "not here, so without names of functions (--symfs DIR)");
	note_list(u, OBJECT_OTHER, "not used, as it is another file than the one that was mapped");
	note_list(u, OBJECT_UNCHECKED, "used, but nothing tells if it is the file that was mapped");
#else
	note_list(u, OBJECT_MISSING, "built without elfutils (libdw), no names of functions of");
#endif
}

#ifdef HAVE_LIBDW

static char *debug_path;

/* At the end, or when the plugin is unloaded. */
static void __attribute__((destructor)) free_debug_path(void)
{
	free(debug_path);
}

/* @symfs: below this are the files, or NULL */
Dwfl *elf_begin_files(const char *symfs)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address, .debuginfo_path = &debug_path,
	};

	free(debug_path);
	debug_path = format(":.debug:%s/usr/lib/debug", symfs ? symfs : "");
	return check_mem(dwfl_begin(&callbacks));
}

Dwfl_Module *elf_report_file(Dwfl *dwfl, const char *name, const char *path)
{
	Dwfl_Module *mod;

	dwfl_report_begin(dwfl);
	mod = dwfl_report_offline(dwfl, name, path, -1);
	dwfl_report_end(dwfl, NULL, NULL);
	return mod;
}

void elf_build_id(Dwfl_Module *mod, struct build_id *id)
{
	const unsigned char *bytes;
	GElf_Addr addr;
	int len;

	dwfl_module_getelf(mod, &addr);
	len = dwfl_module_build_id(mod, &bytes, &addr);
	if (len <= 0 || len > MAX_BUILD_ID)
		return;
	id->len = len;
	memcpy(id->bytes, bytes, len);
}

void elf_symbols(struct symtab *t, Dwfl_Module *mod, elf_type_fn *type)
{
	int i, nr = dwfl_module_getsymtab(mod);
	GElf_Word section;
	struct symbol s;
	GElf_Shdr shdr;
	GElf_Addr addr;
	GElf_Sym sym;
	Elf_Scn *scn;
	Elf *elf;

	for (i = 1; i < nr; i++) {
		s.name = dwfl_module_getsym_info(mod, i, &sym, &addr, &section, &elf, NULL);
		if (!s.name)
			continue;
		scn = elf && section < SHN_LORESERVE ? elf_getscn(elf, section) : NULL;
		s = (struct symbol) { .name = s.name, .addr = addr, .end = addr + sym.st_size };
		s.type = type(&s, sym.st_info, scn && gelf_getshdr(scn, &shdr) ? shdr.sh_flags : 0);
		if (!s.type)
			continue;
		symtab_mark(t, &s);
		s.seq = alias_rank(&s);
		if (!is_skipped(&s))
			*symtab_add(t) = s;
	}
	symtab_sort(t);
}

static bool is_plain_file(const char *path, struct build_id *id)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || access(path, R_OK))
		return false;
	file_stamp(&st, id->stamp, sizeof(id->stamp));
	return true;
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
	char *hex __free(pointer) = build_id_text(&o->id);
	char *path __free(pointer) = format("%s/usr/lib/debug/.build-id/%.2s/%s.debug",
				   u->symfs ? u->symfs : "", hex, hex + 2);

	return access(path, R_OK) ? NULL : elf_report_file(o->dwfl, o->name, path);
}

static Dwfl_Module *report_mapped(const struct users *u, struct object *o)
{
	char *path __free(pointer) = format("%s%s", u->symfs ? u->symfs : "", o->file);
	struct build_id found = {};
	Dwfl_Module *mod = NULL;
	bool same = true;

	if (*o->file == '/' && is_plain_file(path, &found))
		mod = elf_report_file(o->dwfl, o->name, path);
	if (!mod)
		return NULL;
	if (o->id.len) {
		elf_build_id(mod, &found);
		same = same_id(&found, &o->id);
	} else if (*o->id.stamp && !u->symfs) {
		same = !strcmp(o->id.stamp, found.stamp);
	}
	if (!same)
		o->state = OBJECT_OTHER;
	else if (!o->id.len && !*o->id.stamp)
		o->state = OBJECT_UNCHECKED;
	return same ? mod : NULL;
}

static Dwfl_Module *open_object(const struct users *u, struct object *o)
{
	Dwfl_Module *mod;

	o->state = OBJECT_MISSING;
	mod = report_mapped(u, o);
	if (!mod && o->id.len >= 2)
		mod = report_id(o);
	if (!mod && o->id.len >= 2 && o->has_bias)
		mod = report_debug(u, o);
	if (mod && o->state != OBJECT_UNCHECKED)
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

/*
 * Functions, and labels of assembler. At one address, functions are preferred to labels, and global
 * names to weak ones.
 */
static char type_of_function(const struct symbol *s, int info, u64 flags)
{
	int type = GELF_ST_TYPE(info);

	if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) || !*s->name ||
	    !(flags & SHF_EXECINSTR) || has_controls(s->name))
		return 0;
	return s->addr == s->end || GELF_ST_BIND(info) == STB_WEAK ? 'W' : 'T';
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

	o->dwfl = elf_begin_files(u->symfs);
	mod = open_object(u, o);
	if (!mod)
		return;
	elf_symbols(&o->symtab, mod, type_of_function);
	drop_aliases(&o->symtab);
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
