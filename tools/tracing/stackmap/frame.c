// SPDX-License-Identifier: GPL-2.0
/*
 * The text of an address. A map repeats few addresses many times, so each is looked up and printed
 * once. If there are too many, all are forgotten: this costs time, not memory.
 */
#include "view.h"
#include "pool.h"
#include "symbols.h"
#include "user.h"
#include "util.h"

#ifndef MAX_FRAMES
#define MAX_FRAMES	0x40000
#endif

/*
 * If a call is the last instruction of its function, the return address is in the next function.
 * So look one byte back.
 */
u64 lookup_addr(u64 ip, bool exact)
{
	return exact || !ip ? ip : ip - 1;
}

/* kallsyms goes first: it is from the kernel that ran, vmlinux is from one that should match. */
const struct symbol *find_symbol(const struct map *m, u64 ip, bool exact)
{
	u64 addr = lookup_addr(ip, exact);
	const struct symbol *s = symtab_find(&m->kallsyms, addr);

	if (!s)
		s = symtab_find(&m->elfsyms, addr);
	return s || !m->find_symbol ? s : m->find_symbol(m->profile, addr);
}

/* %pS shows no module for BPF programs. */
static bool is_bpf(const struct symbol *s)
{
	return s->mod && !strcmp(s->mod, "bpf");
}

/* As %pS prints it. */
static char *kernel_text(const struct frame *f, const struct symbol *s)
{
	u64 offset = f->addr - s->addr, size = s->end - s->addr;

	if (is_bpf(s) || !s->end)
		return format("%s+0x%llx", s->name, offset);
	if (s->mod)
		return format("%s+0x%llx/0x%llx [%s]", s->name, offset, size, s->mod);
	return format("%s+0x%llx/0x%llx", s->name, offset, size);
}

static char *address_text(const struct frame *f)
{
	if (!f->user && f->ip == TRAMPOLINE_MARKER)
		return copy_string("[FTRACE TRAMPOLINE]");
	if (!f->user && f->ip == WORD_NO_STACK)
		return copy_string("[no stack]");
	if (!f->user && f->ip == WORD_UNDEFINED)
		return copy_string("[stack not defined]");
	return format("0x%llx", f->ip);
}

/* As the kernel prints it, and the function. Another demangler may make a name longer. */
static char *object_text(const struct frame *f)
{
	if (!f->sym)
		return format("%s+0x%llx", f->object->path, f->offset);
	return format("%s+0x%llx (%s+0x%llx)", f->object->path, f->offset, f->sym->name,
		      f->addr - f->sym->addr);
}

const char *frame_text(struct frame *f)
{
	if (f->text)
		return f->text;
	if (f->object)
		f->text = object_text(f);
	else
		f->text = f->sym ? kernel_text(f, f->sym) : address_text(f);
	f->len = strlen(f->text);
	return f->text;
}

/* So that it is told from a frame of the kernel, even if nothing is mapped there. */
static const char *user_frame_name(struct frame *f, const char **mod)
{
	*mod = f->object ? f->object->name : "user";
	if (f->sym)
		return f->sym->name;
	return f->object ? "" : frame_text(f);
}

/* The function without offset, and its module or object. */
const char *frame_name(struct frame *f, const char **mod)
{
	const struct symbol *s = f->sym;

	if (f->user)
		return user_frame_name(f, mod);
	*mod = NULL;
	if (!s)
		return frame_text(f);
	if (!is_bpf(s))
		*mod = s->mod;
	return s->name;
}

const char *frame_lines(const struct map *m, struct frame *f)
{
	if (!f->lines && m->vmlinux && !f->user && f->ip != TRAMPOLINE_MARKER)
		f->lines = vmlinux_lines(m->vmlinux, lookup_addr(f->ip, f->exact));
	return f->lines ? f->lines : "";
}

/* No return addresses: the innermost frame, of the kernel and of user space, and what was hit. */
static bool is_exact(const struct stack *s, u32 i)
{
	return !i || i == s->nr - s->nr_user || (i < 64 && s->hits >> i & 1);
}

static enum frame_kind kind_of(const struct stack *s, u32 i)
{
	if (i < s->nr - s->nr_user)
		return FRAME_KERNEL;
	return s->by_file ? FRAME_FILE : FRAME_USER;
}

static void find_user_symbol(struct map *m, struct frame *f)
{
	u32 i = f->kind == FRAME_FILE ? word_object(f->ip) : 0;
	u64 back = !f->exact;

	f->object = object_at(&m->users, i);
	if (!f->object)
		return;
	f->offset = f->ip & OFFSET_MASK;
	if (!f->offset)
		back = 0;
	f->sym = find_in_object(&m->users, f->object, f->offset - back, &f->addr);
	f->addr += back;
}

void frames_free(struct map *m)
{
	struct frame *f;
	u32 i;

	for (i = 1; i <= m->frames.nr; i++) {
		f = m->frames.list[i].ptr;
		free(f->text);
		free(f->lines);
	}
	pool_free_all(&m->frames);
}

static struct frame *find_frame(struct map *m, enum frame_kind kind, u64 ip, bool exact)
{
	struct frame *f;
	u32 known;

	if (m->frames.nr >= MAX_FRAMES)
		frames_free(m);
	known = m->frames.nr;
	f = pool_get(&m->frames, ip, kind << 1 | exact, sizeof(*f));
	if (m->frames.nr == known)
		return f;
	f->ip = ip;
	f->addr = ip;
	f->exact = exact;
	f->kind = kind;
	f->user = kind != FRAME_KERNEL;
	f->matches = -1;
	if (f->user)
		find_user_symbol(m, f);
	else if (ip != TRAMPOLINE_MARKER)
		f->sym = find_symbol(m, ip, exact);
	return f;
}

/* Names of interrupt entries on x86, arm64, arm, riscv or loongarch, and s390. */
static bool is_interrupt_entry(const struct symbol *s)
{
	static const char * const names[] = {
		"end_repeat_nmi", "ext_int_handler", "io_int_handler", "mcck_int_handler",
		"pgm_check_handler",
	};
	size_t i, len = s ? strlen(s->name) : 0;

	if (!len || s->mod)
		return false;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(s->name, names[i]))
			return true;
	}
	return !strncmp(s->name, "asm_", 4) || !strncmp(s->name, "el1", 3) ||
	       (len > 6 && !strncmp(s->name, "__", 2) && !strcmp(s->name + len - 4, "_svc")) ||
	       !strncmp(s->name, "handle_exception", 16);
}

/*
 * The frame below an interrupt entry is the interrupted instruction, not a return address. This
 * matters only at the first byte of a function.
 */
static bool was_interrupted(const struct map *m, const struct stack *s, u32 i)
{
	return is_interrupt_entry(find_symbol(m, m->ips[s->first + i - 1], false));
}

/* Valid until the next call. */
struct frame *frame_get(struct map *m, const struct stack *s, u32 i)
{
	u64 ip = m->ips[s->first + i];
	struct frame *f = find_frame(m, kind_of(s, i), ip, is_exact(s, i));

	if (i && !f->user && f->sym && f->sym->end == ip && was_interrupted(m, s, i))
		f = find_frame(m, FRAME_KERNEL, ip, true);
	return f;
}
