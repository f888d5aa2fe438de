// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols by address. As in the kernel's %pS, the first of several aliases is used, and a symbol
 * ends where the next one starts.
 *
 * The source is a copy of /proc/kallsyms. elf.c fills the same table from an ELF file. The build id
 * tells one kernel from another, even if both have _text at the same address.
 */
#include <ctype.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "stackmap.h"

#define SYM_PAGE	4096ULL

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *sa = a, *sb = b;

	return compare_u64(sa->addr, sb->addr) ?: compare_u64(sa->seq, sb->seq) ?:
	       strcmp(sa->name, sb->name);
}

static bool is_text(const struct symbol *s)
{
	return strchr("tTwW", s->type);
}

static bool same_module(const struct symbol *a, const struct symbol *b)
{
	return a->mod && b->mod ? !strcmp(a->mod, b->mod) : a->mod == b->mod;
}

/*
 * For the kernel, a symbol ends at the next symbol, and the last one of a module's text at the end
 * of the allocation. kallsyms does not have that address. It is at the end of a page. No address
 * beyond _end belongs to it.
 */
static u64 kernel_end_of(const struct symtab *t, const struct symbol *s, const struct symbol *next)
{
	u64 limit = (s->addr | (SYM_PAGE - 1)) + 1;
	bool adjoins = false;

	if (!s->mod && s->addr == t->kernel_end)
		return s->addr;
	if (next && !is_trampoline(s))
		adjoins = same_module(s, next) && (!s->mod || is_text(s) == is_text(next));
	if (adjoins || (next && next->addr < limit))
		return next->addr;
	return limit > s->addr ? limit : UINT64_MAX;
}

/* By another name of the same address, or as a label inside of a function. */
static bool is_hidden(const struct symbol *before, const struct symbol *s)
{
	return s->addr == before->addr ||
	       (s->is_label && !before->is_label && s->addr < before->end);
}

/* Sorts the symbols, and sets the ends that are not known. */
void symtab_finish(struct symtab *t)
{
	const struct symbol *next = NULL;
	struct symbol *s;
	size_t i, n = 0;

	sort_array(t->syms, t->nr, sizeof(*t->syms), compare_symbols);
	for (i = 0; i < t->nr; i++) {
		if (!n || !is_hidden(&t->syms[n - 1], &t->syms[i]))
			t->syms[n++] = t->syms[i];
	}
	t->nr = n;
	for (i = t->nr; i--; next = s) {
		s = &t->syms[i];
		if (!s->end)
			s->end = kernel_end_of(t, s, next);
		else if (next && s->end > next->addr)
			s->end = next->addr;
	}
}

static int compare_addr(const void *key, const void *elem)
{
	const struct symbol *s = elem;
	u64 addr = *(const u64 *)key;

	return addr < s->addr ? -1 : addr >= s->end;
}

const struct symbol *symtab_find(const struct symtab *t, u64 addr)
{
	return t->nr ? bsearch(&addr, t->syms, t->nr, sizeof(*t->syms), compare_addr) : NULL;
}

/* Moves the kernel's own symbols. Those of modules cannot be moved: their place is unknown. */
void symtab_shift(struct symtab *t, u64 delta)
{
	size_t i, n = 0;

	for (i = 0; i < t->nr; i++) {
		if (t->syms[i].mod)
			continue;
		t->syms[n] = t->syms[i];
		t->syms[n].addr += delta;
		t->syms[n++].end += delta;
	}
	t->nr = n;
	t->text += t->text ? delta : 0;
	t->kernel_end += t->kernel_end ? delta : 0;
	t->entry_start += t->entry_start ? delta : 0;
	t->entry_end += t->entry_end ? delta : 0;
}

/* Takes @name. */
const char *symtab_keep(struct symtab *t, char *name)
{
	*APPEND(t->bufs, t->nr_bufs) = name;
	return name;
}

void symtab_free(struct symtab *t)
{
	size_t i;

	for (i = 0; i < t->nr_bufs; i++)
		free(t->bufs[i]);
	free(t->bufs);
	free(t->syms);
	*t = (struct symtab) {};
}

/* Mapping symbols mark code and data, no functions. An absolute symbol has no address. */
static bool is_skipped(const struct symbol *s)
{
	return s->name[0] == '$' || !strncmp(s->name, ".L", 2) ||
	       (s->type && !strncmp(s->name, "L0", 2)) ||
	       s->type == 'a' || s->type == 'A';
}

/* A page of ftrace or kprobes, which %pS does not know. */
bool is_trampoline(const struct symbol *s)
{
	return s->mod && !strncmp(s->mod, "__builtin__", strlen("__builtin__"));
}

/* %pS shows no module for these. */
bool is_bpf(const struct symbol *s)
{
	return s->mod && !strcmp(s->mod, "bpf");
}

/* What is the same in every boot: "bpf_prog" of "bpf_prog_6deef7357e7b4530_name". */
static void keep_kind(struct symbol *s)
{
	char *end = strchr(s->name, '_');

	end = end ? strchr(end + 1, '_') : NULL;
	if (end)
		*end = '\0';
}

void symtab_add(struct symtab *t, const struct symbol *s)
{
	const struct {
		const char	*name;
		u64		*addr;
	} borders[] = {
		{ "_text", &t->text }, { "_end", &t->kernel_end },
		{ "__entry_text_start", &t->entry_start }, { "__entry_text_end", &t->entry_end },
	};
	size_t i;

	for (i = 0; !s->mod && *s->name == '_' && i < ARRAY_SIZE(borders); i++) {
		if (!strcmp(s->name, borders[i].name))
			*borders[i].addr = s->addr;
	}
	if (!is_skipped(s))
		*APPEND(t->syms, t->nr) = *s;
}

/*
 * "ffffffffc0000000 t nft_do_chain\t[nf_tables]". A copy may have come through a program that ends
 * lines by "\r\n".
 */
int parse_symbol_line(void *table, char *line)
{
	struct symtab *t = table;
	struct symbol s = { .seq = t->nr };
	char *tab, *end;
	int at = 0;

	line[strcspn(line, "\r")] = '\0';
	if (!*line || *line == '#')
		return 0;
	if (sscanf(line, "%llx%*1[ ]%c%*1[ ]%n", &s.addr, &s.type, &at) != 2 || !at || !line[at])
		return -EINVAL;
	s.name = line + at;
	tab = strchr(s.name, '\t');
	if (tab) {
		*tab = '\0';
		s.mod = tab + 2;
		end = strchr(tab + 1, ']');
		if (tab[1] != '[' || !end || end == s.mod || end[1])
			return -EINVAL;
		*end = '\0';
	}
	/* The number differs. */
	if (is_bpf(&s) && !strncmp(s.name, "bpf_trampoline_", strlen("bpf_trampoline_")))
		keep_kind(&s);
	symtab_add(t, &s);
	return 0;
}

int symtab_load(struct symtab *t, const char *path)
{
	char *buf;
	int ret = load_lines(path, "kallsyms", &buf, parse_symbol_line, t);

	symtab_keep(t, buf);
	/* Then all are 0, and else only the first ones. */
	if (!ret && t->nr && !t->syms[t->nr - 1].addr)
		ret = fail(HIDDEN, path);
	symtab_finish(t);
	return ret;
}

/* At the address of @s, there was @other at the other end of the recording; NULL: nothing */
static void compare_copies(struct symbol *s, const struct symbol *other)
{
	if (other && s->addr == other->addr && !strcmp(s->name, other->name))
		return;
	s->passes = true;
	s->replaced |= other && !(is_bpf(s) && is_bpf(other));
	if (is_bpf(s))
		keep_kind(s);
}

/*
 * Modules, BPF programs and trampolines come and go, and kallsyms is a copy of the end. Beside it
 * may be one of the start. What only that has is added.
 */
int load_first_symbols(struct map *m)
{
	char *path __free(pointer) = format("%s/kallsyms.start", m->dir ? m->dir : "");
	struct symtab first = {}, *last = &m->sym.kallsyms;
	struct symbol *s, *other;
	size_t i, nr = last->nr;
	int ret;

	if (!nr || access(path, R_OK))
		return 0;
	ret = symtab_load(&first, path);
	for (i = 0; i < nr; i++) {
		s = &last->syms[i];
		if (s->mod)
			compare_copies(s, symtab_find(&first, s->addr));
	}
	for (i = 0; i < first.nr; i++) {
		s = &first.syms[i];
		if (!s->mod)
			continue;
		pool_at(&m->sym.modules, intern(&m->sym.modules, s->mod))->value = 1;
		other = bsearch(&s->addr, last->syms, nr, sizeof(*s), compare_addr);
		compare_copies(other ? other : s, other ? s : NULL);
		if (!other)
			*APPEND(last->syms, last->nr) = *s;
	}
	symtab_finish(last);
	for (i = 0; i < first.nr_bufs; i++)
		symtab_keep(last, first.bufs[i]);
	first.nr_bufs = 0;
	symtab_free(&first);
	return ret;
}

/*
 * A module comes or @leaves. If that is in no copy of kallsyms, it may have been where one of these
 * has something that was not there all the time.
 */
void note_module(struct symbols *k, const char *name, bool leaves)
{
	struct pooled *known = pool_at(&k->modules, intern(&k->modules, name));
	struct symtab *t = &k->kallsyms;
	size_t i;

	if (leaves) {
		k->unsure |= !known->value;
		known->value = 0;
		return;
	}
	for (i = 0; i < t->nr; i++)
		t->syms[i].passes |= t->syms[i].mod && !strcmp(t->syms[i].mod, name);
}

bool same_id(const struct build_id *a, const struct build_id *b)
{
	return a->len && a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

const char * const id_lacks[] = { "-", "none", "?" };

char *build_id_text(const struct build_id *id)
{
	char *text = check_mem(calloc(MAX_BUILD_ID, 2 + 1));
	size_t i;

	for (i = 0; i < id->len; i++)
		sprintf(text + 2 * i, "%02x", id->bytes[i]);
	return text;
}

/* Returns what follows the hexadecimal digits, or the word that stands for none. */
char *parse_build_id(char *s, struct build_id *id)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(id_lacks); i++) {
		if (strncmp(s, id_lacks[i], strlen(id_lacks[i])))
			continue;
		id->lack = i;
		return s + strlen(id_lacks[i]);
	}
	while (id->len < MAX_BUILD_ID && isxdigit((unsigned char)s[0]) &&
	       isxdigit((unsigned char)s[1]) && sscanf(s, "%2hhx", &id->bytes[id->len]) == 1) {
		id->len++;
		s += 2;
	}
	return s;
}

#define ALIGN_NOTE(n)	(((n) + 3ULL) & ~3ULL)

void build_id_of_notes(const char *p, size_t len, struct build_id *id)
{
	Elf32_Nhdr head;	/* that of 64 bits is the same */
	u64 value, end;

	for (; len >= sizeof(head); p += end, len -= end) {
		memcpy(&head, p, sizeof(head));
		value = sizeof(head) + ALIGN_NOTE(head.n_namesz);
		end = value + ALIGN_NOTE(head.n_descsz);
		if (end > len)
			return;
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
		    !memcmp(p + sizeof(head), "GNU", 4) && head.n_descsz <= MAX_BUILD_ID) {
			id->len = head.n_descsz;
			memcpy(id->bytes, p + value, id->len);
			return;
		}
	}
}

/* The one that the kernel has mapped into this program. Its file ends with its section headers. */
void write_vdso(FILE *f)
{
	ElfW(Ehdr) v;
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);

	if (!image)
		return;
	memcpy(&v, image, sizeof(v));
	fwrite(image, v.e_shoff + v.e_shnum * v.e_shentsize, 1, f);
	fflush(f);
}

/* A missing build id is no error: some kernels and files have none. */
int check_build_id(const struct map *m, const struct build_id *id, const char *path,
		   const struct config *cfg)
{
	if (cfg->force || !id->len || !m->build_id.len || same_id(id, &m->build_id))
		return 0;
	return fail("%s: has another build id than the kernel of %s (--force to ignore)", path,
		    m->name);
}
