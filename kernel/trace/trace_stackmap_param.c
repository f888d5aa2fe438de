// SPDX-License-Identifier: GPL-2.0
/*
 * The size of new stack maps.
 */
#include <linux/moduleparam.h>

#include "trace_stackmap_internal.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "ftrace_stackmap."

unsigned int ftrace_stackmap_bits __read_mostly = 14;

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
