// SPDX-License-Identifier: GPL-2.0
/*
 * The text of an address.
 *
 * A map repeats few addresses many times, so their texts are cached in slots, chosen by a hash of
 * the address. Two addresses with the same slot evict each other: this costs time, not memory.
 */
#include <stdarg.h>

#include "frame.h"
#include "symbols.h"
#include "user.h"
#include "util.h"

#ifndef FRAME_SLOTS
#define FRAME_SLOTS	0x20000
#endif

/*
 * If a call is the last instruction of its function, the return address is in the next function.
 * So look one byte back.
 */
u64 lookup_addr(u64 ip, bool exact)
{
	return exact || !ip ? ip : ip - 1;
}

bool is_user_stack(const struct stack *s)
{
	return s->user;
}

static bool is_user_frame(const struct stack *s, u32 i)
{
	return i >= s->nr - s->nr_user;
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

bool is_trampoline(u64 ip)
{
	return ip == TRAMPOLINE_MARKER;
}

/* %pS shows no module for BPF programs. */
static bool is_bpf(const struct symbol *s)
{
	return s->mod && !strcmp(s->mod, "bpf");
}

static void set_text(struct frame *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	f->len = vsnprintf(f->buf, sizeof(f->buf), fmt, ap);
	va_end(ap);
	f->text = f->buf;
	if (f->len < sizeof(f->buf))
		return;
	va_start(ap, fmt);
	f->text = vasprintf(&f->text, fmt, ap) < 0 ? check_mem(NULL) : f->text;
	va_end(ap);
}

/* As %pS prints it. */
static void set_kernel_text(struct frame *f, const struct symbol *s)
{
	u64 offset = f->addr - s->addr, size = s->end - s->addr;

	if (s->type == MODULE_BASE)
		set_text(f, "[%s]+0x%llx", s->mod, offset);
	else if (is_bpf(s) || !s->end)
		set_text(f, "%s+0x%llx", s->name, offset);
	else if (s->mod)
		set_text(f, "%s+0x%llx/0x%llx [%s]", s->name, offset, size, s->mod);
	else
		set_text(f, "%s+0x%llx/0x%llx", s->name, offset, size);
}

/* As the kernel prints it, and the function. Another demangler may make a name longer. */
const char *frame_text(struct frame *f)
{
	if (f->text)
		return f->text;
	if (f->object && f->sym)
		set_text(f, "%s+0x%llx (%s+0x%llx)", f->object->path, f->offset, f->sym->name,
			 f->addr - f->sym->addr);
	else if (f->object)
		set_text(f, "%s+0x%llx", f->object->path, f->offset);
	else if (f->sym)
		set_kernel_text(f, f->sym);
	else if (!f->user && is_trampoline(f->ip))
		set_text(f, "[FTRACE TRAMPOLINE]");
	else if (!f->user && f->ip == WORD_NO_STACK)
		set_text(f, "[no stack]");
	else if (!f->user && f->ip == WORD_UNDEFINED)
		set_text(f, "[stack not defined]");
	else
		set_text(f, "0x%llx", f->ip);
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
	if (s->type == MODULE_BASE) {
		*mod = s->mod;
		return "";
	}
	if (!is_bpf(s))
		*mod = s->mod;
	return s->name;
}

const char *frame_lines(const struct map *m, struct frame *f)
{
	if (!f->lines)
		f->lines = m->vmlinux && !f->user && !is_trampoline(f->ip) ?
			   vmlinux_lines(m->vmlinux, lookup_addr(f->ip, f->exact)) :
			   copy_string("");
	return f->lines;
}

static void frame_clear(struct frame *f)
{
	if (f->text != f->buf)
		free(f->text);
	free(f->lines);
	f->text = NULL;
	f->lines = NULL;
}

static struct frame *frame_slot(struct map *m, enum frame_kind kind, u64 ip, bool exact)
{
	u64 key = (ip + exact) ^ kind * 0x5555ULL;

	if (!m->frames)
		m->frames = check_mem(calloc(FRAME_SLOTS, sizeof(*m->frames)));
	return &m->frames[((key * 0x9E3779B97F4A7C15ULL) >> 32) % FRAME_SLOTS];
}

/* No return addresses: the innermost frame, of the kernel and of user space, and what was hit. */
static bool is_exact(const struct stack *s, u32 i)
{
	return !i || i == s->nr - s->nr_user || (i < 64 && s->hits >> i & 1);
}

static enum frame_kind kind_of(const struct stack *s, u32 i)
{
	if (!is_user_frame(s, i))
		return FRAME_KERNEL;
	return s->by_file ? FRAME_FILE : FRAME_USER;
}

/* Slots are scattered in memory. Prefetching those of a stack halves the time of a dump. */
void frames_prefetch(struct map *m, const struct stack *s)
{
	struct frame *f;
	u32 i;

	for (i = 0; i < s->nr; i++) {
		f = frame_slot(m, kind_of(s, i), m->ips[s->first + i], is_exact(s, i));
		__builtin_prefetch(f);
		__builtin_prefetch(f->buf + 16);
	}
}

static void find_user_symbol(struct map *m, struct frame *f)
{
	u32 i = f->kind == FRAME_FILE ? word_object(f->ip) : 0;
	u64 back = !f->exact;

	f->sym = NULL;
	f->object = i && i <= m->users.names.nr ? m->users.objects[i - 1] : NULL;
	if (!f->object)
		return;
	f->offset = f->ip & OFFSET_MASK;
	if (!f->offset)
		back = 0;
	f->sym = find_in_object(&m->users, f->object, f->offset - back, &f->addr);
	f->addr += back;
}

static void find_kernel_symbol(struct map *m, struct frame *f)
{
	f->sym = is_trampoline(f->ip) ? NULL : find_symbol(m, f->ip, f->exact);
	f->object = NULL;
	f->addr = f->ip;
}

static struct frame *frame_fill(struct map *m, enum frame_kind kind, u64 ip, bool exact)
{
	struct frame *f = frame_slot(m, kind, ip, exact);

	if (f->used && f->ip == ip && f->exact == exact && f->kind == kind)
		return f;

	frame_clear(f);
	f->used = true;
	f->ip = ip;
	f->exact = exact;
	f->kind = kind;
	f->user = kind != FRAME_KERNEL;
	f->uid = 0;
	f->matches = -1;
	if (f->user)
		find_user_symbol(m, f);
	else
		find_kernel_symbol(m, f);
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
	struct frame *f = frame_fill(m, kind_of(s, i), ip, is_exact(s, i));

	if (i && !f->user && f->sym && f->sym->end == ip && was_interrupted(m, s, i))
		f = frame_fill(m, FRAME_KERNEL, ip, true);
	return f;
}

void frames_free(struct map *m)
{
	size_t i;

	for (i = 0; m->frames && i < FRAME_SLOTS; i++)
		frame_clear(&m->frames[i]);
	free(m->frames);
	m->frames = NULL;
}
