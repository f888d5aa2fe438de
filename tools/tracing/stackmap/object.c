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

#ifdef HAVE_LIBDW
#define WHY_MISSING	"not here, so without names of functions (--symfs DIR)"
#else
#define WHY_MISSING	"built without elfutils (libdw), so without names of functions"
#endif

#define MAX_NOTES	8

void note_objects(const struct users *u)
{
	static const char * const why[] = {
		[OBJECT_MISSING] = WHY_MISSING,
		[OBJECT_OTHER] = "not used, as it is another file than the one that was mapped",
		[OBJECT_UNCHECKED] = "used, but nothing tells if it is the file that was mapped",
		[OBJECT_FOUND] = NULL,
	};
	const struct object *o;
	size_t i, n = 0;

	for (i = 1; (o = object_at(u, i)); i++) {
		if (why[o->state] && n++ < MAX_NOTES)
			note("%s: %s", o->path, why[o->state]);
	}
	if (n > MAX_NOTES)
		note("the same for %zu more files", n - MAX_NOTES);
}

#ifdef HAVE_LIBDW

static char debug_dirs[PATH_MAX + 32];
static char *debug_path = debug_dirs;

/* @symfs: below this are the files, or "" */
Dwfl *elf_begin_files(const char *symfs)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address, .debuginfo_path = &debug_path,
	};

	snprintf(debug_dirs, sizeof(debug_dirs), ":.debug:%s/usr/lib/debug", symfs);
	return check_mem(dwfl_begin(&callbacks));
}

/* @id: that of the file, if it has one */
Dwfl_Module *elf_report_file(Dwfl *dwfl, const char *name, const char *path, struct build_id *id)
{
	const unsigned char *bytes;
	Dwfl_Module *mod;
	GElf_Addr addr;
	struct stat st;
	int len;

	/* Others might block, or do something when they are read. */
	if (stat(path, &st) || !S_ISREG(st.st_mode) || access(path, R_OK))
		return NULL;
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

#ifdef HAVE_DEMANGLE
char *__cxa_demangle(const char *name, char *buf, size_t *len, int *status);
#else
static char *__cxa_demangle(const char *name, char *buf, size_t *len, int *status)
{
	return NULL;
}
#endif

/* Not to be sent to a terminal. */
static bool has_controls(const char *name)
{
	while (*name && !iscntrl((unsigned char)*name))
		name++;
	return *name;
}

/* Functions, and labels of assembler. */
static bool is_function(const char *name, const GElf_Sym *sym, Elf *elf, GElf_Word section)
{
	Elf_Scn *scn = elf && section < SHN_LORESERVE ? elf_getscn(elf, section) : NULL;
	int type = GELF_ST_TYPE(sym->st_info);
	GElf_Shdr shdr;

	return name && *name && !has_controls(name) &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
	       scn && gelf_getshdr(scn, &shdr) && shdr.sh_flags & SHF_EXECINSTR;
}

/*
 * At one address, functions are preferred to labels, and global names to weak ones, then those with
 * fewer underscores, as in kallsyms. @sizes: a function ends where its symbol says
 */
void elf_symbols(struct symtab *t, Dwfl_Module *mod, bool sizes)
{
	int i, nr = dwfl_module_getsymtab(mod);
	struct symbol s = {};
	GElf_Word section;
	GElf_Addr addr;
	GElf_Sym sym;
	char *plain;
	bool last;
	Elf *elf;

	for (i = 1; i < nr; i++) {
		s.name = dwfl_module_getsym_info(mod, i, &sym, &addr, &section, &elf, NULL);
		if (!is_function(s.name, &sym, elf, section))
			continue;
		last = !sym.st_size || GELF_ST_BIND(sym.st_info) == STB_WEAK;
		s.seq = (u32)last << 31 | (u32)strspn(s.name, "_");
		s.addr = addr;
		s.end = sizes && sym.st_size ? addr + sym.st_size : 0;
		plain = strncmp(s.name, "_Z", 2) ? NULL :
			__cxa_demangle(s.name, NULL, NULL, NULL);
		if (plain)
			s.name = symtab_keep(t, plain);
		symtab_add(t, &s);
	}
	symtab_finish(t);
}

/* The file that was mapped, or its debug file, which has the same build id. */
static Dwfl_Module *report_path(struct object *o, const char *path)
{
	struct build_id found;
	Dwfl_Module *mod;

	mod = elf_report_file(o->dwfl, o->name, path, &found);
	if (!mod)
		return NULL;
	o->state = !o->id.len ? OBJECT_UNCHECKED :
		   same_id(&found, &o->id) ? OBJECT_FOUND : OBJECT_OTHER;
	return o->state != OBJECT_OTHER ? mod : NULL;
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

/* A debug file without its program has lost where the text is in the file; the kernel knows it. */
static Dwfl_Module *open_object(const char *symfs, struct object *o)
{
	char *path __free(pointer) = format("%s%s", symfs, o->file);
	char *hex __free(pointer) = build_id_text(&o->id);
	char *debug __free(pointer) = NULL;
	Dwfl_Module *mod = NULL;

	o->state = OBJECT_MISSING;
	if (*o->file == '/')
		mod = report_path(o, path);
	if (mod || o->id.len < 2)
		return mod;
	mod = report_id(o);
	if (mod || !o->has_bias)
		return mod;
	debug = format("%s/usr/lib/debug/.build-id/%.2s/%s.debug", symfs, hex, hex + 2);
	return report_path(o, debug);
}

/* p_vaddr - p_offset of the text; 0 if there is none. */
static u64 text_bias(Elf *elf)
{
	GElf_Phdr phdr;
	int i;

	for (i = 0; gelf_getphdr(elf, i, &phdr); i++) {
		if (phdr.p_type == PT_LOAD && phdr.p_flags & PF_X)
			return phdr.p_vaddr - phdr.p_offset;
	}
	return 0;
}

/* The symbols are by offsets in the file, as stacks are. */
static void load_object(struct users *u, struct object *o)
{
	const char *symfs = u->symfs ? u->symfs : "";
	GElf_Addr load_bias = 0;
	Dwfl_Module *mod;
	Elf *elf;

	o->dwfl = elf_begin_files(symfs);
	mod = open_object(symfs, o);
	elf = mod ? dwfl_module_getelf(mod, &load_bias) : NULL;
	if (!elf)
		return;
	elf_symbols(&o->symtab, mod, true);
	symtab_shift(&o->symtab, -(load_bias + (o->has_bias ? o->bias : text_bias(elf))));
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

#else /* !HAVE_LIBDW */

const struct symbol *find_in_object(struct users *u, struct object *o, u64 offset)
{
	o->state = OBJECT_MISSING;
	return NULL;
}

void object_free_symbols(struct object *o)
{
}

#endif /* HAVE_LIBDW */
