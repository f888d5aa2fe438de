// SPDX-License-Identifier: GPL-2.0
/*
 * The text of an address. A map repeats few addresses many times, so each is looked up and printed
 * once.
 */
#include "stackmap.h"

/* kallsyms goes first: it is from the kernel that ran, vmlinux is from one that should match. */
const struct symbol *find_symbol(const struct symbols *k, u64 ip, bool exact)
{
	u64 addr = lookup_addr(ip, exact);
	const struct symbol *s = symtab_find(&k->kallsyms, addr);

	if (!s)
		s = symtab_find(&k->elfsyms, addr);
	return s || !k->find_symbol ? s : k->find_symbol(k->profile, addr);
}

/* Something else may have been there. */
bool is_gone(const struct symbols *k, const struct symbol *s)
{
	return s->replaced || (s->passes && k->unsure);
}

static char *address_text(const struct frame *f)
{
	if (!f->user && f->ip == TRAMPOLINE_MARKER)
		return copy_string("[FTRACE TRAMPOLINE]");
	if (!f->user && f->ip == WORD_NO_STACK)
		return copy_string("[no stack]");
	if (!f->user && f->ip == WORD_UNDEFINED)
		return copy_string("[stack not defined]");
	if (!f->user && f->ip == WORD_NOT_LOADED)
		return copy_string("[not loaded]");
	if (!f->user && f->ip == WORD_WOKEN_BY)
		return copy_string(WOKEN_BY);
	return format("0x%llx", f->ip);
}

/* As the kernel prints it. Another demangler may make a name of user space longer. */
static char *make_text(const struct frame *f)
{
	const struct symbol *s = f->sym;
	u64 offset = s ? f->addr - s->addr : 0;

	if (f->object && !s)
		return format("%s+0x%llx", f->object->path, f->addr);
	if (f->object)
		return format("%s+0x%llx (%s+0x%llx)", f->object->path, f->addr, s->name, offset);
	if (!s || is_trampoline(s))
		return address_text(f);
	if (is_bpf(s) || !s->end)
		return format("%s+0x%llx", s->name, offset);
	return format("%s+0x%llx/0x%llx%s%s%s", s->name, offset, s->end - s->addr,
		      s->mod ? " [" : "", s->mod ? s->mod : "", s->mod ? "]" : "");
}

/*
 * The function without offset, and its module or object. A frame of user space has one even if
 * nothing is mapped there, so that it is told from a frame of the kernel.
 */
const char *frame_name(struct frame *f, const char **mod)
{
	const struct symbol *s = f->sym;

	*mod = s && !is_bpf(s) && !is_trampoline(s) ? s->mod : NULL;
	if (f->user)
		*mod = f->object ? f->object->name : "user";
	if (s)
		return s->name;
	return f->object ? "" : f->text;
}

const char *frame_lines(const struct symbols *k, struct frame *f)
{
	if (HAS_LIBS && !f->lines && k->vmlinux && !f->user && f->ip != TRAMPOLINE_MARKER)
		f->lines = vmlinux_lines(k->vmlinux, lookup_addr(f->ip, f->exact));
	return f->lines ? f->lines : "";
}

/* No return addresses: the innermost frame, of the kernel and of user space, and what was hit. */
bool is_exact(const struct stack *s, u32 i)
{
	return (!i && !s->woken) || i == s->nr - s->nr_user || (i < 64 && s->hits >> i & 1);
}

/* The code where interrupts enter the kernel. It has called nobody: the next frame was hit. */
static bool is_entry(const struct symbols *k, u64 ip)
{
	const struct symtab *t = k->kallsyms.entry_end ? &k->kallsyms : &k->elfsyms;

	return ip >= t->entry_start && ip < t->entry_end;
}

/* For a stack that is turned round, or has another one before it. */
void note_hits(const struct symbols *k, struct words *w)
{
	u32 i;

	for (i = 1; i < w->nr && i < 64; i++)
		w->hits |= (u64)is_entry(k, w->w[i - 1]) << i;
}

static void find_user_symbol(struct symbols *k, struct frame *f)
{
	f->object = object_at(&k->users, word_object(f->ip));
	if (!f->object)
		return;
	f->addr = f->ip & OFFSET_MASK;
	if (HAS_LIBS)
		f->sym = find_in_object(&k->users, f->object, lookup_addr(f->addr, f->exact));
	else
		f->object->state = OBJECT_NO_LIBS;
}

void frames_free(struct symbols *k)
{
	struct frame *f;
	u32 i;

	for (i = 1; i <= k->frames.nr; i++) {
		f = k->frames.list[i].ptr;
		free(f->text);
		free(f->lines);
	}
	pool_free_all(&k->frames);
}

struct frame *frame_get(struct map *m, const struct stack *s, u32 i)
{
	bool user = i >= s->nr - s->nr_user || i < s->waker_user;
	u64 ip = m->ips[s->first + i], label = ip - WORD_LABEL;
	bool exact = is_exact(s, i) ||
		     (i && !s->woken && is_entry(&m->sym, m->ips[s->first + i - 1]));
	struct frame *f = pool_get(&m->sym.frames, ip, user << 1 | exact, sizeof(*f));

	if (f->text)
		return f;
	*f = (struct frame) { .ip = ip, .addr = ip, .exact = exact, .user = user, .matches = -1 };
	if (user)
		find_user_symbol(&m->sym, f);
	else if (ip != TRAMPOLINE_MARKER)
		f->sym = find_symbol(&m->sym, ip, exact);
	if (f->sym && is_gone(&m->sym, f->sym)) {
		f->sym = NULL;
		m->sym.nr_replaced++;
	}
	f->text = !user && label && label <= m->labels.nr ?
		  copy_string(pool_string(&m->labels, label)) : make_text(f);
	return f;
}

/* Behind a prefix. */
void print_frame(struct map *m, const struct stack *s, u32 i, bool with_lines)
{
	struct frame *f = frame_get(m, s, i);
	const char *lines = with_lines ? frame_lines(&m->sym, f) : "";
	int len;

	puts(hide_controls(f->text));
	for (; *lines; lines += len + 1) {
		len = strcspn(lines, "\n");
		printf("        %.*s\n", len, lines);
	}
}

#define MAX_NOTES	8

/* What has no names, and why. */
void note_objects(const struct symbols *k)
{
	static const char * const why[] = {
		[OBJECT_NO_LIBS] = WITHOUT_LIBS ", so without names of functions",
		[OBJECT_MISSING] = "not here, so without names of functions (--symfs DIR)",
		[OBJECT_OTHER] = "not used, as it is another file than the one that was mapped",
		[OBJECT_UNREADABLE] =
			"not used, as the build id of the file that was mapped could not be read",
		[OBJECT_NO_OFFSETS] =
			"only its debug file is here, without offsets; the file is needed (--symfs)",
		[OBJECT_UNCHECKED] = "used, but nothing tells if it is the file that was mapped",
		[OBJECT_FOUND] = NULL,
	};
	const struct object *o;
	size_t i, n = 0;

	if (k->nr_replaced)
		note("%zu addresses have no name: their text was replaced meanwhile",
		     k->nr_replaced);
	for (i = 1; (o = object_at(&k->users, i)); i++) {
		if (why[o->state] && n++ < MAX_NOTES)
			note("%s: %s", o->path, why[o->state]);
	}
	if (n > MAX_NOTES)
		note("the same for %zu more files", n - MAX_NOTES);
}
