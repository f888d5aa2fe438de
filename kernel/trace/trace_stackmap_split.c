// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks that are split where an interrupt has hit: where that is, what their event has,
 * and how it is printed.
 */
#include <linux/cleanup.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>

#include <asm/sections.h>

#include "trace_output.h"
#include "trace_stackmap_internal.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "ftrace_stackmap."

/* Where interrupts enter the kernel. No stack is split where this is not known to be assembly. */
#if defined(CONFIG_X86) || defined(CONFIG_ARM64) || defined(CONFIG_ARM)
#define STACKMAP_IRQENTRY_START	((unsigned long)__entry_text_start)
#define STACKMAP_IRQENTRY_END	((unsigned long)__entry_text_end)
#elif defined(CONFIG_S390) || defined(CONFIG_RISCV)
#define STACKMAP_IRQENTRY_START	((unsigned long)__irqentry_text_start)
#define STACKMAP_IRQENTRY_END	((unsigned long)__irqentry_text_end)
#else
#define STACKMAP_IRQENTRY_START	0UL
#define STACKMAP_IRQENTRY_END	0UL
#endif

static bool stackmap_split __read_mostly = true;

module_param_named(split, stackmap_split, bool, 0644);
MODULE_PARM_DESC(split, "split stacks where an interrupt has hit");

/**
 * stackmap_set_irqentry - set where stacks in a map are split
 * @map: the map, which is empty
 */
void stackmap_set_irqentry(struct ftrace_stackmap *map)
{
	if (!READ_ONCE(stackmap_split))
		return;

	map->irqentry_start = STACKMAP_IRQENTRY_START;
	map->irqentry_size = STACKMAP_IRQENTRY_END - STACKMAP_IRQENTRY_START;
}

/* Fill in what follows the first id of a split stack. */
void stackmap_fill_split(struct ftrace_stackmap *map, struct stack_split_entry *entry,
			 const struct stackmap_key *parts, int nr)
{
	struct stack_split3_entry *entry3 = (void *)entry;

	BUILD_BUG_ON(offsetof(typeof(*entry), ip) != offsetof(typeof(*entry3), ip));
	entry->outer_id = stackmap_id(map, parts[1].idx);
	entry->ip = parts[0].ips[parts[0].nr];
	if (nr < 3)
		return;
	entry3->outer2_id = stackmap_id(map, parts[2].idx);
	entry3->outer2_ip = parts[1].ips[parts[1].nr];
}

/* The number of stack ids that an event holds, 0 if it is of another type. */
int stackmap_event_ids(const struct trace_entry *ent)
{
	switch (ent->type) {
	case TRACE_STACK_ID:
	case TRACE_STACK_DEF:
	case TRACE_USER_STACK_ID:
	case TRACE_USER_STACK_DEF:
	case TRACE_USER_UNWIND_STACK_ID:
	case TRACE_USER_UNWIND_STACK_SPLIT:
		return 1;
	case TRACE_STACK_SPLIT:
		return 2;
	case TRACE_STACK_SPLIT3:
		return 3;
	default:
		return 0;
	}
}

/* Id number @i of an event, innermost part first. */
int stackmap_event_id(const struct trace_entry *ent, int i)
{
	const struct stack_split3_entry *split = (const void *)ent;

	if (!i)
		return split->stack_id;
	return i == 1 ? split->outer_id : split->outer2_id;
}

static enum print_line_t trace_stack_split_print(struct trace_iterator *iter,
						 int flags, struct trace_event *event)
{
	const struct stack_split3_entry *field = (const void *)iter->ent;
	const struct stackmap_record *recs[STACKMAP_MAX_PARTS];
	int nr = stackmap_event_ids(iter->ent);
	const unsigned long hits[] = { 0, field->ip, nr > 2 ? field->outer2_ip : 0 };
	struct trace_seq *s = &iter->seq;
	bool resolved = true;
	int id;

	guard(rcu)();
	/* All before any is printed: the frames are those of the whole stack, or none. */
	for (int i = 0; i < nr; i++) {
		id = stackmap_event_id(iter->ent, i);
		recs[i] = stackmap_resolve(iter->tr, id);
		resolved &= !!recs[i];
		if (i)
			trace_seq_printf(s, " @%lx %d",
					 trace_adjust_address(iter->tr, hits[i]), id);
		else
			trace_seq_printf(s, "<stack_split %d", id);
	}
	trace_seq_puts(s, resolved ? ">\n" : "> (stale)\n");

	for (int i = 0; resolved && stackmap_frames(iter) && i < nr; i++) {
		if (i)
			trace_print_stack_frames(iter, flags, &hits[i], &hits[i + 1]);
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

struct trace_event trace_stack_split3_event = {
	.type		= TRACE_STACK_SPLIT3,
	.funcs		= &trace_stack_split_funcs,
};
