// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks that are split where an interrupt has hit: where that is, what their event has,
 * and how it is printed.
 */
#include <linux/cleanup.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>

#include <asm/sections.h>

#include "trace_output.h"
#include "trace_stackmap_internal.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "ftrace_stackmap."

/* Where interrupts enter the kernel. No stack is split where this is not known to be assembly. */
#if defined(CONFIG_X86) || defined(CONFIG_ARM64) || defined(CONFIG_ARM)
#define STACKMAP_ENTRY_START	((unsigned long)__entry_text_start)
#define STACKMAP_ENTRY_END	((unsigned long)__entry_text_end)
#elif defined(CONFIG_S390) || defined(CONFIG_RISCV)
#define STACKMAP_ENTRY_START	((unsigned long)__irqentry_text_start)
#define STACKMAP_ENTRY_END	((unsigned long)__irqentry_text_end)
#else
#define STACKMAP_ENTRY_START	0UL
#define STACKMAP_ENTRY_END	0UL
#endif

/* The sign bit of an id in stack_split_entry: another instruction and id follow in @rest. */
#define STACK_SPLIT_MORE	INT_MIN

static bool stackmap_split __read_mostly = true;

module_param_named(split, stackmap_split, bool, 0644);
MODULE_PARM_DESC(split, "split stacks where an interrupt has hit");

/**
 * stackmap_set_entry - set where stacks in a map are split
 * @map: the map, which is empty
 */
void stackmap_set_entry(struct ftrace_stackmap *map)
{
	if (!READ_ONCE(stackmap_split))
		return;

	map->entry_start = STACKMAP_ENTRY_START;
	map->entry_size = STACKMAP_ENTRY_END - STACKMAP_ENTRY_START;
}

/* Fill in what follows the first id of a split stack. */
void stackmap_fill_split(struct ftrace_stackmap *map, struct stack_split_entry *entry,
			 const struct stackmap_key *parts, int nr)
{
	unsigned long *rest = entry->rest;
	int id;

	for (int i = 1; i < nr; i++) {
		id = stackmap_id(map, parts[i].idx);
		if (i + 1 < nr)
			id |= STACK_SPLIT_MORE;
		if (i == 1) {
			entry->ip = parts[0].ips[parts[0].nr];
			entry->outer = id;
		} else {
			*rest++ = parts[i - 1].ips[parts[i - 1].nr];
			*rest++ = (u32)id;
		}
	}
}

/* The number of stack ids that an event of @size bytes holds, 0 if it is of another type. */
int stackmap_event_ids(const struct trace_entry *ent, int size)
{
	int rest = size - (int)sizeof(struct stack_split_entry);

	if (size < (int)sizeof(struct stack_id_entry))
		return 0;

	switch (ent->type) {
	case TRACE_STACK_ID:
	case TRACE_STACK_DEF:
	case TRACE_USER_STACK_ID:
	case TRACE_USER_STACK_DEF:
	case TRACE_USER_UNWIND_STACK_ID:
	case TRACE_USER_UNWIND_STACK_SPLIT:
		return 1;
	case TRACE_STACK_SPLIT:
		return rest < 0 ? 0 : min(2 + rest / (2 * (int)sizeof(long)), STACKMAP_MAX_PARTS);
	default:
		return 0;
	}
}

/* Id number @i of an event, innermost part first. */
int stackmap_event_id(const struct trace_entry *ent, int i)
{
	const struct stack_split_entry *field = (const void *)ent;

	if (!i)
		return field->stack_id;
	return (i == 1 ? field->outer : field->rest[2 * i - 3]) & ~STACK_SPLIT_MORE;
}

/* The instruction before part number @i. */
static const unsigned long *stack_split_ip(const struct trace_entry *ent, int i)
{
	const struct stack_split_entry *field = (const void *)ent;

	return i == 1 ? &field->ip : &field->rest[2 * i - 4];
}

static enum print_line_t trace_stack_split_print(struct trace_iterator *iter,
						 int flags, struct trace_event *event)
{
	const struct stackmap_record *recs[STACKMAP_MAX_PARTS];
	int nr = stackmap_event_ids(iter->ent, iter->ent_size);
	struct trace_seq *s = &iter->seq;
	bool resolved = nr;
	int id;

	guard(rcu)();
	/* All before any is printed: the frames are those of the whole stack, or none. */
	for (int i = 0; i < nr; i++) {
		id = stackmap_event_id(iter->ent, i);
		recs[i] = stackmap_resolve(iter->tr, id);
		resolved &= !!recs[i];
		if (i)
			trace_seq_printf(s, " @%lx %d", *stack_split_ip(iter->ent, i), id);
		else
			trace_seq_printf(s, "<stack_split %d", id);
	}
	trace_seq_puts(s, resolved ? ">\n" : "> (stale)\n");

	for (int i = 0; resolved && stackmap_frames(iter) && i < nr; i++) {
		if (i)
			trace_print_stack_frames(iter, flags, stack_split_ip(iter->ent, i),
						 stack_split_ip(iter->ent, i) + 1);
		trace_print_stack_frames(iter, flags, recs[i]->ips, recs[i]->ips + recs[i]->nr);
	}
	return trace_handle_return(s);
}

static struct trace_event_functions trace_stack_split_funcs = {
	.trace		= trace_stack_split_print,
};

struct trace_event trace_stack_split_event = {
	.type		= TRACE_STACK_SPLIT,
	.funcs		= &trace_stack_split_funcs,
};
