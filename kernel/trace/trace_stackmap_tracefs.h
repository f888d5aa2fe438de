/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_TRACEFS_H
#define _TRACE_STACKMAP_TRACEFS_H

#include <linux/fs.h>
#include <linux/seq_file.h>
#include <linux/types.h>

#include "trace_stackmap_internal.h"

/* A reader of the files, and the stack that it is at. */
struct stackmap_iter {
	struct trace_array	*tr;		/* the open file holds a reference */
	struct stackmap_gens	*gens;		/* with a reference, or NULL if there is no map */
	const struct ftrace_stackmap *map;	/* the newest one */
	const void		*map_end;	/* newer records of the map are left out */
	const struct stackmap_gen *gen;		/* of the stack */
	unsigned int		resets;		/* of the instance when it began */
	u32			idx;		/* index of its slot */
	bool			files;		/* it is at files, not at stacks */
	/* In the header and the trailer of stack_map_bin. */
	u32			nr_stacks;
	u32			files_size;
	u64			split;
};

/* trace_stackmap_tracefs.c */
int stackmap_open(struct inode *inode, struct file *file, const struct seq_operations *ops);
int stackmap_release(struct inode *inode, struct file *file);
void *stackmap_seq_start(struct seq_file *m, loff_t *pos);
void *stackmap_seq_next(struct seq_file *m, void *v, loff_t *pos);
void stackmap_seq_stop(struct seq_file *m, void *v);
const struct stackmap_record *stackmap_next(struct stackmap_iter *iter, loff_t *pos);
unsigned long stackmap_iter_ref(const struct stackmap_iter *iter,
				const struct stackmap_record *rec);
int stackmap_reset(struct trace_array *tr);
unsigned long stackmap_iter_ip(const struct stackmap_iter *iter,
			       const struct stackmap_record *rec, unsigned int i);
#if IS_ENABLED(CONFIG_KUNIT)
void stackmap_snapshot_tail(struct stackmap_iter *iter);
#endif

/* A count of all CPUs, exact while nobody records. */
static inline unsigned long stackmap_sum(const struct stackmap_instance *inst, int what)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += local_read(&per_cpu_ptr(inst->counts, cpu)->of[what]);
	return sum;
}

/* ELF notes of the kernel, from the linker script. */
extern const char __start_notes[];
extern const char __stop_notes[];

/* trace_stackmap_bin.c */
#define STACKMAP_BIN_USER	1	/* flag: a stack of user space */
#define STACKMAP_BIN_BY_FILE	2	/* flag: refers to files */

extern const struct file_operations stackmap_bin_fops;
#if IS_ENABLED(CONFIG_KUNIT)
u32 stackmap_bin_flags(const struct stackmap_record *rec);
int stackmap_bin_show(struct seq_file *m, void *v);
void *stackmap_bin_start(struct seq_file *m, loff_t *pos);
#endif

#endif /* _TRACE_STACKMAP_TRACEFS_H */
