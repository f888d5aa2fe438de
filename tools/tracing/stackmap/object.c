// SPDX-License-Identifier: GPL-2.0
/*
 * The symbols of what processes have mapped, by elfutils: those of .symtab, of .symtab in the
 * separate debug file, or of .dynsym. Without HAVE_LIBDW, there are none.
 */
#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols.h"
#include "user.h"
#include "util.h"

#ifdef HAVE_LIBDW
#include "elf_symbols.h"

struct elf_file {
	Elf	*elf;
	Elf	*debug;		/* NULL, or the one that has the names of the symbols */
};

void elf_file_free(struct elf_file *e)
{
	if (!e)
		return;
	elf_end(e->debug);
	elf_end(e->elf);
	free(e);
}

/*
 * Not mapped: if someone cuts off a file that is mapped, looking at it is deadly. NULL if there is
 * no such file.
 */
static Elf *open_elf(const char *path, int *fd)
{
	struct stat st;
	Elf *elf;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0)
		return NULL;
	elf_version(EV_CURRENT);
	elf = !fstat(*fd, &st) && S_ISREG(st.st_mode) ? elf_begin(*fd, ELF_C_READ, NULL) : NULL;
	if (elf && elf_kind(elf) == ELF_K_ELF)
		return elf;
	elf_end(elf);
	close(*fd);
	return NULL;
}

/* Keeps what has been read, and the segments. */
static void finish_elf(Elf *elf, int fd)
{
	GElf_Phdr phdr;

	gelf_getphdr(elf, 0, &phdr);
	elf_cntl(elf, ELF_C_FDDONE);
	close(fd);
}

static bool has_id(Elf *elf, const struct build_id *id)
{
	struct build_id own = {};

	elf_build_id(elf, &own);
	return same_id(&own, id);
}

static Elf *open_debug(const struct users *u, Elf *elf, int *fd)
{
	struct build_id id = {};
	char *hex, *path;
	Elf *debug;

	elf_build_id(elf, &id);
	if (id.len < 2)
		return NULL;
	hex = build_id_text(&id);
	path = format("%s/usr/lib/debug/.build-id/%.2s/%s.debug", u->symfs ? u->symfs : "", hex,
		      hex + 2);
	debug = open_elf(path, fd);
	free(path);
	free(hex);
	if (!debug || has_id(debug, &id))
		return debug;
	elf_end(debug);
	close(*fd);
	return NULL;
}

/* Not to be sent to a terminal. */
static bool has_controls(const char *name)
{
	while (*name && !iscntrl((unsigned char)*name))
		name++;
	return *name;
}

/* Functions, and labels of assembler. */
static void add_user_symbol(struct symtab *t, Elf *elf, const char *name, const GElf_Sym *sym)
{
	int type = GELF_ST_TYPE(sym->st_info);
	struct symbol s = {
		.addr = sym->st_value, .end = sym->st_value + sym->st_size, .name = name,
		.type = symbol_type(elf, sym),
	};

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return;
	/* So that a function at the same address is preferred. */
	if (!sym->st_size)
		s.type = is_text(&s) ? 'W' : s.type;
	if (!*name || has_controls(name) || sym->st_shndx == SHN_UNDEF || !is_text(&s) ||
	    is_skipped(&s))
		return;
	*symtab_add(t) = s;
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
static void set_user_ends(struct symtab *t)
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

static void load_object_symbols(const struct users *u, struct object *o)
{
	struct elf_file *e = o->elf;
	int ret, fd;

	ret = add_elf_symbols(&o->symtab, e->elf, SHT_SYMTAB, add_user_symbol);
	if (ret)
		e->debug = open_debug(u, e->elf, &fd);
	if (e->debug) {
		ret = add_elf_symbols(&o->symtab, e->debug, SHT_SYMTAB, add_user_symbol);
		finish_elf(e->debug, fd);
	}
	if (ret)
		add_elf_symbols(&o->symtab, e->elf, SHT_DYNSYM, add_user_symbol);
	drop_aliases(&o->symtab);
	drop_inner_labels(&o->symtab);
	set_user_ends(&o->symtab);
}

static void load_object(struct users *u, struct object *o)
{
	char *path;
	Elf *elf;
	int fd;

	o->tried = true;
	if (*o->path != '/')
		return;
	path = format("%s%s", u->symfs ? u->symfs : "", o->path);
	elf = open_elf(path, &fd);
	if (elf && o->id.len && !has_id(elf, &o->id)) {
		note("%s: has another build id than the file that was mapped", path);
		elf_end(elf);
		close(fd);
	} else if (elf) {
		o->elf = check_mem(calloc(1, sizeof(*o->elf)));
		o->elf->elf = elf;
		load_object_symbols(u, o);
		finish_elf(elf, fd);
	} else {
		u->nr_missing++;
	}
	free(path);
}

/* False if the file has nothing at the offset. */
static bool set_elf_addr(Elf *elf, struct place *place)
{
	GElf_Phdr phdr;
	size_t i, nr;

	if (elf_getphdrnum(elf, &nr))
		return false;
	for (i = 0; i < nr && gelf_getphdr(elf, i, &phdr); i++) {
		if (phdr.p_type != PT_LOAD || place->offset < phdr.p_offset ||
		    place->offset - phdr.p_offset >= phdr.p_filesz)
			continue;
		place->addr = place->offset - phdr.p_offset + phdr.p_vaddr;
		return true;
	}
	return false;
}

const struct symbol *find_in_object(struct users *u, struct place *place)
{
	struct object *o = place->object;

	if (!o->tried)
		load_object(u, o);
	if (!o->elf || !set_elf_addr(o->elf->elf, place))
		return NULL;
	return symtab_find(&o->symtab, place->addr);
}

void note_missing_objects(const struct users *u)
{
	if (u->nr_missing)
		note("%zu files with functions of user space are not here (--symfs DIR)",
		     u->nr_missing);
}

#else /* !HAVE_LIBDW */

void elf_file_free(struct elf_file *e)
{
}

const struct symbol *find_in_object(struct users *u, struct place *place)
{
	u->nr_missing += !place->object->tried;
	place->object->tried = true;
	return NULL;
}

void note_missing_objects(const struct users *u)
{
	if (u->nr_missing)
		note("built without elfutils (libelf), no names of functions of user space");
}

#endif /* HAVE_LIBDW */
