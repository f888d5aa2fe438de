// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols, source lines and inlined callers from a vmlinux, by elfutils.
 *
 * Without HAVE_LIBDW, the only function reports that.
 */
#include <fcntl.h>
#include <unistd.h>

#include "symbols.h"
#include "util.h"

#ifdef HAVE_LIBDW

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <libelf.h>

/* The addresses of one compile unit. Not every compiler writes .debug_aranges. */
struct unit_range {
	Dwarf_Addr	lo;
	Dwarf_Addr	hi;
	Dwarf_Off	die;
};

struct vmlinux {
	int			fd;
	Elf			*elf;
	Dwarf			*dwarf;
	u64		delta;		/* run time minus link time */
	struct unit_range	*units;
	size_t			nr_units;
	size_t			room_units;
};

void vmlinux_free(struct vmlinux *v)
{
	if (!v)
		return;
	dwarf_end(v->dwarf);
	elf_end(v->elf);
	if (v->fd >= 0)
		close(v->fd);
	free(v->units);
	free(v);
}

/*
 * The kernel's build leaves these out of kallsyms (scripts/mksysmap). With them, sizes and aliases
 * would differ from kallsyms.
 */
static bool not_in_kallsyms(const char *name)
{
	static const char * const prefix[] = {
		"$", ".L", "__efistub_", "__pi_$", "__pi_.L", "__kvm_nvhe_$", "__kvm_nvhe_.L",
		"__kcfi_typeid_", "__kvm_nvhe___kcfi_typeid_", "__pi___kcfi_typeid_", "__crc_",
		"__kstrtab_", "__kstrtabns_", "__mod_device_table__", "__UNIQUE_ID_modinfo_",
	};
	static const char * const suffix[] = { "_from_arm", "_from_thumb", "_veneer" };
	size_t i, len = strlen(name);

	for (i = 0; i < ARRAY_SIZE(prefix); i++) {
		if (!strncmp(name, prefix[i], strlen(prefix[i])))
			return true;
	}
	for (i = 0; i < ARRAY_SIZE(suffix); i++) {
		size_t n = strlen(suffix[i]);

		if (len >= n && !strcmp(name + len - n, suffix[i]))
			return true;
	}
	return !len;
}

/* Only the types that matter: weak symbols lose against aliases, text ends where data begins. */
static char symbol_type(Elf *elf, const GElf_Sym *sym)
{
	Elf_Scn *scn = elf_getscn(elf, sym->st_shndx);
	GElf_Shdr shdr;

	if (sym->st_shndx >= SHN_LORESERVE || !scn || !gelf_getshdr(scn, &shdr))
		return 'A';
	if (!(shdr.sh_flags & SHF_ALLOC))
		return 'A';
	if (GELF_ST_BIND(sym->st_info) == STB_WEAK)
		return 'W';
	return shdr.sh_flags & SHF_EXECINSTR ? 'T' : 'D';
}

static bool is_named_address(const GElf_Sym *sym)
{
	int type = GELF_ST_TYPE(sym->st_info);

	return sym->st_shndx != SHN_UNDEF && type != STT_FILE && type != STT_SECTION;
}

static void add_kernel_symbol(struct symtab *t, Elf *elf, const char *name, const GElf_Sym *sym)
{
	struct symbol s = { .addr = sym->st_value, .name = name };

	if (!is_named_address(sym) || not_in_kallsyms(name))
		return;
	s.type = symbol_type(elf, sym);
	symtab_mark(t, &s);
	if (!is_skipped(&s))
		*symtab_add(t) = s;
}

static int add_elf_symbols(struct symtab *t, Elf *elf)
{
	Elf_Scn *scn = NULL;
	const char *name;
	Elf_Data *data;
	GElf_Shdr shdr;
	GElf_Sym sym;
	size_t i;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(scn, NULL);
		for (i = 0; data && gelf_getsym(data, i, &sym); i++) {
			name = elf_strptr(elf, shdr.sh_link, sym.st_name);
			if (name)
				add_kernel_symbol(t, elf, name, &sym);
		}
	}
	sort_elf_symbols(t);
	return t->nr ? 0 : -ENOENT;
}

static void elf_build_id(Elf *elf, struct build_id *id)
{
	const void *bytes;
	ssize_t len;

	len = dwelf_elf_gnu_build_id(elf, &bytes);
	if (len <= 0 || len > MAX_BUILD_ID)
		return;
	id->len = len;
	memcpy(id->bytes, bytes, len);
}

static int check_vmlinux(const struct vmlinux *v, const struct map *m, const struct config *cfg)
{
	const char *path = cfg->vmlinux;
	struct build_id id = {};

	elf_build_id(v->elf, &id);
	if (!id.len || !m->build_id.len)
		note("%s: no build id in the %s, cannot check that it fits", path,
		     id.len ? "map" : "file");
	return check_build_id(m, &id, path, cfg);
}

static void add_unit_range(struct vmlinux *v, Dwarf_Addr lo, Dwarf_Addr hi, Dwarf_Die *die)
{
	v->units = grow(v->units, &v->room_units, v->nr_units + 1, sizeof(*v->units));
	v->units[v->nr_units++] = (struct unit_range) { lo, hi, dwarf_dieoffset(die) };
}

static int compare_units(const void *a, const void *b)
{
	const struct unit_range *ua = a, *ub = b;

	return ua->lo < ub->lo ? -1 : ua->lo > ub->lo;
}

static void index_units(struct vmlinux *v)
{
	Dwarf_Addr base, lo, hi;
	Dwarf_CU *cu = NULL;
	ptrdiff_t off;
	Dwarf_Die die;

	while (!dwarf_get_units(v->dwarf, cu, &cu, NULL, NULL, &die, NULL)) {
		off = 0;
		while ((off = dwarf_ranges(&die, off, &base, &lo, &hi)) > 0)
			add_unit_range(v, lo, hi, &die);
	}
	sort_array(v->units, v->nr_units, sizeof(*v->units), compare_units);
}

static int compare_unit_addr(const void *key, const void *elem)
{
	const struct unit_range *u = elem;
	Dwarf_Addr addr = *(const Dwarf_Addr *)key;

	if (addr < u->lo)
		return -1;
	return addr >= u->hi;
}

static bool find_unit(const struct vmlinux *v, Dwarf_Addr addr, Dwarf_Die *cu)
{
	const struct unit_range *u;

	if (!v->nr_units)
		return false;
	u = bsearch(&addr, v->units, v->nr_units, sizeof(*u), compare_unit_addr);
	return u && dwarf_offdie(v->dwarf, u->die, cu);
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

struct source_line {
	const char	*file;
	int		line;
};

static struct source_line line_of(Dwarf_Die *cu, Dwarf_Addr addr)
{
	Dwarf_Line *line = dwarf_getsrc_die(cu, addr);
	struct source_line l = { "?", 0 };
	const char *file;

	file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	if (file) {
		l.file = source_path(cu, file);
		dwarf_lineno(line, &l.line);
	}
	return l;
}

/* The call site of the inlined function @die. */
static struct source_line line_of_call(Dwarf_Die *cu, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word file = 0, line = 0;
	Dwarf_Files *files;
	const char *path;
	size_t nr;

	dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attr), &file);
	dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attr), &line);
	if (dwarf_getsrcfiles(cu, &files, &nr) || file >= nr)
		return (struct source_line) { "?", 0 };
	path = dwarf_filesrc(files, file, NULL, NULL);
	return (struct source_line) { path ? source_path(cu, path) : "?", line };
}

static bool is_function(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram;
}

/* Innermost first, up to the function that has a symbol. */
static void print_scopes(FILE *f, Dwarf_Die *cu, Dwarf_Die *scopes, int nr, struct source_line l)
{
	const char *name;
	bool inlined;
	int i;

	for (i = 0; i < nr; i++) {
		if (!is_function(&scopes[i]))
			continue;
		inlined = dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;
		name = dwarf_diename(&scopes[i]);
		fprintf(f, "%s%s at %s:%d\n", name ? name : "?", inlined ? " (inlined)" : "",
			l.file, l.line);
		if (!inlined)
			return;
		l = line_of_call(cu, &scopes[i]);
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
		print_scopes(f, cu, chain, nr, line_of(cu, addr));
	}
	free(chain);
	free(at);
}

/* Returns the lines "function at file:line" of a run-time address, "" if unknown. */
char *vmlinux_lines(const struct vmlinux *v, u64 addr)
{
	char *buf = NULL;
	Dwarf_Die cu;
	size_t len;
	FILE *f;

	addr -= v->delta;
	f = check_mem(open_memstream(&buf, &len));
	if (find_unit(v, addr, &cu))
		print_lines(f, &cu, addr);
	fclose(f);
	return check_mem(buf);
}

static int vmlinux_open_elf(struct vmlinux *v, const char *path)
{
	elf_version(EV_CURRENT);
	v->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (v->fd < 0) {
		complain("%s: %s", path, strerror(errno));
		return -errno;
	}
	v->elf = elf_begin(v->fd, ELF_C_READ, NULL);
	if (!v->elf || elf_kind(v->elf) != ELF_K_ELF) {
		complain("%s: not an ELF file", path);
		return -EINVAL;
	}
	return 0;
}

static int vmlinux_open_dwarf(struct vmlinux *v, const char *path)
{
	v->dwarf = dwarf_begin_elf(v->elf, DWARF_C_READ, NULL);
	if (!v->dwarf) {
		complain("%s: no debug information for --lines (CONFIG_DEBUG_INFO)", path);
		return -ENOENT;
	}
	index_units(v);
	return 0;
}

static int vmlinux_load_symbols(struct vmlinux *v, struct map *m, const char *path,
				u64 text)
{
	if (add_elf_symbols(&m->elfsyms, v->elf)) {
		complain("%s: no symbols, is it stripped?", path);
		return -ENOENT;
	}
	symtab_finish(&m->elfsyms);
	if (text && m->elfsyms.text)
		v->delta = text - m->elfsyms.text;
	else
		note("%s: address of _text unknown, cannot undo KASLR (--text-base ADDR)", path);
	symtab_shift(&m->elfsyms, v->delta);
	return 0;
}

int vmlinux_load(struct map *m, const struct config *cfg, u64 text)
{
	const char *path = cfg->vmlinux;
	struct vmlinux *v;
	int ret;

	v = check_mem(calloc(1, sizeof(*v)));
	m->vmlinux = v;
	ret = vmlinux_open_elf(v, path);
	if (!ret)
		ret = check_vmlinux(v, m, cfg);
	if (!ret)
		ret = vmlinux_load_symbols(v, m, path, text);
	if (!ret && cfg->lines)
		ret = vmlinux_open_dwarf(v, path);
	return ret;
}

#else /* !HAVE_LIBDW */

void vmlinux_free(struct vmlinux *v)
{
}

char *vmlinux_lines(const struct vmlinux *v, u64 addr)
{
	return copy_string("");
}

int vmlinux_load(struct map *m, const struct config *cfg, u64 text)
{
	complain("%s: built without elfutils (libdw), cannot use --vmlinux", cfg->vmlinux);
	return -EOPNOTSUPP;
}

#endif /* HAVE_LIBDW */
