// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols by address. As in the kernel's %pS, the first of several aliases is used, and a symbol
 * ends where the next one starts.
 *
 * The source is a copy of /proc/kallsyms. vmlinux.c fills the same table from an ELF file.
 */
#include <ctype.h>

#include "symbols.h"
#include "util.h"

#define SYM_PAGE	4096ULL

struct symbol *symtab_add(struct symtab *t)
{
	struct symbol *s = APPEND(t->syms, t->nr);

	*s = (struct symbol) { .seq = t->nr - 1 };
	return s;
}

/* scripts/kallsyms.c sorts such aliases last. */
static bool looks_like_bound(const char *name)
{
	size_t len = strlen(name);

	if (strncmp(name, "__", 2) || len < 8)
		return false;
	return !strncmp(name, "__start_", 8) || !strncmp(name, "__stop_", 7) ||
	       !strncmp(name, "__end_", 6) || !strcmp(name + len - 6, "_start") ||
	       !strcmp(name + len - 4, "_end");
}

/* Its order of aliases. */
u32 alias_rank(const struct symbol *s)
{
	return (s->type == 'W' ? 1U << 31 : 0) | looks_like_bound(s->name) << 30 |
	       (u32)strspn(s->name, "_");
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *sa = a, *sb = b;

	if (sa->addr != sb->addr)
		return sa->addr < sb->addr ? -1 : 1;
	if (sa->seq != sb->seq)
		return sa->seq < sb->seq ? -1 : 1;
	return strcmp(sa->name, sb->name);
}

void symtab_sort(struct symtab *t)
{
	sort_array(t->syms, t->nr, sizeof(*t->syms), compare_symbols);
}

bool is_text(const struct symbol *s)
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
static void set_end(const struct symtab *t, struct symbol *s, const struct symbol *next)
{
	u64 limit = (s->addr | (SYM_PAGE - 1)) + 1;
	bool adjoins = false;

	if (next)
		adjoins = same_module(s, next) && (!s->mod || is_text(s) == is_text(next));
	s->end = adjoins || (next && next->addr < limit) ? next->addr : limit;
	if (s->end < s->addr)
		s->end = UINT64_MAX;
	if (!s->mod && s->addr == t->kernel_end)
		s->end = s->addr;
}

void drop_aliases(struct symtab *t)
{
	size_t i, n = 0;

	for (i = 0; i < t->nr; i++) {
		if (!n || t->syms[i].addr != t->syms[n - 1].addr)
			t->syms[n++] = t->syms[i];
	}
	t->nr = n;
}

void symtab_finish(struct symtab *t)
{
	const struct symbol *next = NULL;
	size_t i;

	symtab_sort(t);
	drop_aliases(t);
	for (i = t->nr; i--; next = &t->syms[i])
		set_end(t, &t->syms[i], next);
}

static int compare_addr(const void *key, const void *elem)
{
	const struct symbol *s = elem;
	u64 addr = *(const u64 *)key;

	if (addr < s->addr)
		return -1;
	return addr >= s->end;
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
	t->text += delta;
	t->kernel_end += t->kernel_end ? delta : 0;
}

/* Takes @name. */
const char *symtab_keep(struct symtab *t, char *name)
{
	*APPEND(t->bufs, t->nr_bufs) = name;
	return name;
}

#ifdef HAVE_DEMANGLE
char *__cxa_demangle(const char *name, char *buf, size_t *len, int *status);
#endif

/* NULL if it is no mangled name. */
char *demangle(const char *name)
{
#ifdef HAVE_DEMANGLE
	int status;

	return strncmp(name, "_Z", 2) ? NULL : __cxa_demangle(name, NULL, NULL, &status);
#else
	return NULL;
#endif
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
bool is_skipped(const struct symbol *s)
{
	if (s->name[0] == '$' || !strncmp(s->name, ".L", 2))
		return true;
	if (s->type == 'a' || s->type == 'A')
		return true;
	return s->mod && !strncmp(s->mod, "__builtin__", strlen("__builtin__"));
}

/* _text and _end, the bounds of the kernel. */
void symtab_mark(struct symtab *t, const struct symbol *s)
{
	if (s->mod)
		return;
	if (!strcmp(s->name, "_text"))
		t->text = s->addr;
	if (!strcmp(s->name, "_end"))
		t->kernel_end = s->addr;
}

static char *strip_brackets(char *s)
{
	size_t len = strlen(s);

	if (len < 3 || s[0] != '[' || s[len - 1] != ']')
		return NULL;
	s[len - 1] = '\0';
	return s + 1;
}

/* "t nft_do_chain\t[nf_tables]", the rest of a line after the address */
static int parse_symbol(struct symtab *t, u64 addr, char *rest)
{
	struct symbol s = { .addr = addr, .type = rest[0] };
	struct symbol *new;
	char *tab;

	if (!rest[0] || rest[1] != ' ' || !rest[2])
		return -EINVAL;
	s.name = rest + 2;
	tab = strchr(s.name, '\t');
	if (tab) {
		*tab = '\0';
		s.mod = strip_brackets(tab + 1);
		if (!s.mod)
			return -EINVAL;
	}
	symtab_mark(t, &s);
	if (is_skipped(&s))
		return 0;

	new = symtab_add(t);
	s.seq = new->seq;
	*new = s;
	return 0;
}

/* A copy may have come through a program that ends lines by "\r\n". */
int parse_symbol_line(void *t, char *line)
{
	u64 addr;
	char *end;

	line[strcspn(line, "\r")] = '\0';
	if (!*line || *line == '#')
		return 0;
	if (!isxdigit((unsigned char)*line))
		return -EINVAL;
	addr = strtoull(line, &end, 16);
	return *end == ' ' ? parse_symbol(t, addr, end + 1) : -EINVAL;
}

/* With kptr_restrict, the file can be read, but every address is 0. */
static bool all_zero(const struct symtab *t)
{
	size_t i;

	for (i = 0; i < t->nr; i++) {
		if (t->syms[i].addr)
			return false;
	}
	return t->nr;
}

int symtab_load(struct symtab *t, const char *path)
{
	char *buf;
	int ret = load_lines(path, "kallsyms", &buf, parse_symbol_line, t);

	symtab_keep(t, buf);
	if (!ret && all_zero(t)) {
		complain("%s: kptr_restrict hides all addresses (root sees them, unless it is 2)",
			 path);
		ret = -EPERM;
	}
	return ret;
}
