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
	if (next)
		adjoins = same_module(s, next) && (!s->mod || is_text(s) == is_text(next));
	if (adjoins || (next && next->addr < limit))
		return next->addr;
	return limit > s->addr ? limit : UINT64_MAX;
}

/* By another name of the same address, or as a label inside of a function. */
static bool is_hidden(const struct symbol *before, const struct symbol *s)
{
	return s->addr == before->addr || (!s->end && s->addr < before->end);
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

/*
 * Mapping symbols mark code and data, not functions. The value of an absolute symbol is no address.
 * The __builtin__ ones are pages of ftrace and kprobes, which %pS does not know.
 */
static bool is_skipped(const struct symbol *s)
{
	return s->name[0] == '$' || !strncmp(s->name, ".L", 2) ||
	       s->type == 'a' || s->type == 'A' ||
	       (s->mod && !strncmp(s->mod, "__builtin__", strlen("__builtin__")));
}

void symtab_add(struct symtab *t, const struct symbol *s)
{
	if (!s->mod && !strcmp(s->name, "_text"))
		t->text = s->addr;
	if (!s->mod && !strcmp(s->name, "_end"))
		t->kernel_end = s->addr;
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
		ret = fail("%s: kptr_restrict hides all addresses (root sees them, unless it is 2)",
			   path);
	symtab_finish(t);
	return ret;
}

bool same_id(const struct build_id *a, const struct build_id *b)
{
	return a->len && a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

char *build_id_text(const struct build_id *id)
{
	char *text = check_mem(calloc(MAX_BUILD_ID, 2 + 1));
	size_t i;

	for (i = 0; i < id->len; i++)
		sprintf(text + 2 * i, "%02x", id->bytes[i]);
	return text;
}

/* Returns what follows the hexadecimal digits. */
char *parse_build_id(char *s, struct build_id *id)
{
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

/* A missing build id is no error: some kernels and files have none. */
int check_build_id(const struct map *m, const struct build_id *id, const char *path,
		   const struct config *cfg)
{
	if (cfg->force || !id->len || !m->build_id.len || same_id(id, &m->build_id))
		return 0;
	return fail("%s: has another build id than the kernel of %s (--force to ignore)", path,
		    m->name);
}
