// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters of new stack maps: their size, and whether stacks are split.
 */
#include <linux/moduleparam.h>
#include <linux/processor.h>

#include <asm/sections.h>

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

static bool stackmap_split __read_mostly = true;
unsigned int ftrace_stackmap_bits __read_mostly = STACKMAP_BITS_DEFAULT;

static int stackmap_bits_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, STACKMAP_BITS_MIN, STACKMAP_BITS_MAX);
}

static const struct kernel_param_ops stackmap_bits_ops = {
	.set		= stackmap_bits_set,
	.get		= param_get_uint,
};

module_param_cb(bits, &stackmap_bits_ops, &ftrace_stackmap_bits, 0644);
MODULE_PARM_DESC(bits, "log2 of the number of stacks that a stack map holds at most, 10 to 18");

module_param_named(split, stackmap_split, bool, 0644);
MODULE_PARM_DESC(split, "split stacks where an interrupt has hit");

/**
 * stackmap_set_entry - set where stacks in a map are split
 * @map: the map, which is empty
 *
 * Context: any.
 */
void stackmap_set_entry(struct ftrace_stackmap *map)
{
	if (!READ_ONCE(stackmap_split))
		return;

	map->entry_start = STACKMAP_ENTRY_START;
	map->entry_size = STACKMAP_ENTRY_END - STACKMAP_ENTRY_START;
}
