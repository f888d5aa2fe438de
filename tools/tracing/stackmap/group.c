// SPDX-License-Identifier: GPL-2.0
/* What samples are grouped by: a CPU, an event, a task, a process, or any field of the event. */
#include "profile.h"

static bool is_text(const struct kind *k)
{
	return k->field[FIELD_BY] && k->field[FIELD_BY]->flags & TEP_FIELD_IS_STRING;
}

/* Frees @label. */
static u32 intern_label(const struct profile *p, char *label)
{
	u32 nr = intern(&p->map->labels, label);

	free(label);
	return nr;
}

static u32 text_label(struct record *r)
{
	const char *text = "";
	u32 len = 0;

	get_bytes(r, FIELD_BY, &text, &len);
	return intern_label(r->profile, format("%s=%.*s", r->profile->cfg->by_field, (int)len,
					       text));
}

/* A number becomes a label in the end, when all symbols are known. */
void take_value(struct record *r, struct sample *s)
{
	if (is_text(r->kind))
		s->by = text_label(r);
	else
		get_number(r, FIELD_BY, &s->by);
}

/* What samples with the same stacks may differ in, and do not count together then. */
u64 group_key(const struct profile *p, const struct sample *s)
{
	return p->cfg->by == BY_PROCESS ? (uintptr_t)s->process : p->cfg->by == BY_CPU ? s->cpu :
	       s->by;
}

/* As the event prints it: "RCU"; NULL if it has no name for that. */
static const char *name_of_value(const struct tep_print_arg *arg, const char *field, u64 n)
{
	const struct tep_print_flag_sym *s;

	for (; arg; arg = arg->next) {
		if (arg->type != TEP_PRINT_SYMBOL || arg->symbol.field->type != TEP_PRINT_FIELD ||
		    strcmp(arg->symbol.field->field.name, field))
			continue;
		for (s = arg->symbol.symbols; s; s = s->next) {
			if (strtoull(s->value, NULL, 0) == n)
				return s->str;
		}
	}
	return NULL;
}

static char *number_text(const struct kind *k, u64 n)
{
	const struct tep_format_field *f = k->field[FIELD_BY];
	const char *name = name_of_value(k->event->print_fmt.args, f->name, n);

	if (name)
		return format("%llu (%s)", n, name);
	if (!strcmp(f->type, "dev_t"))
		return format("%llu,%llu", n >> 20, n & 0xfffff);
	if (f->flags & TEP_FIELD_IS_POINTER)
		return format("%#llx", n);
	return f->flags & TEP_FIELD_IS_SIGNED ? format("%lld", signed_number(f, n)) :
	       format("%llu", n);
}

/* An address of the kernel is a number with the highest bit. */
static char *value_text(const struct profile *p, const struct kind *k, u64 n)
{
	const struct tep_format_field *f = k->field[FIELD_BY];
	bool is_address = f->size == tep_get_long_size(p->tep) && n >> (8 * f->size - 1);
	const struct symbol *s = is_address ? find_symbol(&p->map->sym, n, true) : NULL;

	if (!s || is_gone(&p->map->sym, s))
		return number_text(k, n);
	return s->addr == n ? copy_string(s->name) : format("%s+0x%llx", s->name, n - s->addr);
}

static u32 number_label(const struct profile *p, const struct sample *s)
{
	char *value __free(pointer) = value_text(p, s->kind, s->by);

	return intern_label(p, format("%s=%s", p->cfg->by_field, value));
}

static u32 task_label(const struct profile *p, const struct task *task)
{
	char nth[16] = "";

	if (task->nth)
		snprintf(nth, sizeof(nth), " (%u)", task->nth + 1);
	return intern_label(p, format("%s-%u%s", task->comm, task->pid, nth));
}

/* The label of the group of a sample. A process has the name that it had last. */
u32 group_of(struct profile *p, const struct sample *s)
{
	switch (p->cfg->by) {
	case BY_NOTHING:
		break;
	case BY_FIELD:
		return is_text(s->kind) ? s->by : number_label(p, s);
	case BY_TASK:
		return task_label(p, task_of(p, s));
	case BY_PROCESS:
		p->counts[COUNT_NO_PROCESS] += !s->process && task_of(p, s)->pid ?
					       s->val[VAL_EVENTS] : 0;
		return task_label(p, s->process ? s->process : task_of(p, s));
	case BY_CPU:
		return intern_label(p, format("CPU %u", s->cpu));
	case BY_EVENT:
		return intern_label(p, format("%s:%s", s->kind->event->system, s->kind->name));
	}
	return 0;
}
