// SPDX-License-Identifier: GPL-2.0
/*
 * The statistics of a stack map: stack_map_stat in tracefs.
 */
#include <linux/cleanup.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>

#include "trace_stackmap_files.h"

/* What the statistics show, 0 without a map. */
struct stackmap_stats {
	unsigned long		counts[STACKMAP_NR_COUNTS];
	unsigned long		drops;
	struct stackmap_past	past;
	size_t			memory;
	unsigned int		objects;	/* files that user stacks refer to */
	u32			generation;
	u32			entries;
	u32			max_entries;
	u32			kept;		/* stacks of older maps */
};

static void stackmap_get_stats(struct stackmap_instance *inst, struct stackmap_stats *stats)
{
	const struct user_objects *objects;
	const struct ftrace_stackmap *map;
	const struct stackmap_set *set;
	const struct stackmap_gen *gen;

	guard(mutex)(&inst->lock);
	map = stackmap_current(inst);
	set = stackmap_set(inst);
	stats->past = inst->past;
	for (int i = 0; i < STACKMAP_NR_COUNTS; i++)
		stats->counts[i] = stackmap_sum(inst, i);
	for (int i = 0; i < STACKMAP_NR_DROPS; i++)
		stats->drops += stats->counts[i];

	stats->generation = inst->next_gen % STACKMAP_GENS;
	if (map) {
		stats->generation = map->first_id >> STACKMAP_SLOT_BITS;
		stats->entries = atomic_read(&map->entries);
		stats->max_entries = map->max_entries;
	}
	for (u32 i = 0; set && i < set->nr; i++) {
		gen = set->gens[i];
		stats->memory += gen->size;
		objects = stackmap_new_objects(set, i);
		if (objects)
			stats->objects += user_objects_stats(objects, &stats->memory);
		if (!gen->map)
			stats->kept += gen->nr;
		else if (gen->map != map)
			stats->kept += atomic_read(&gen->map->entries);
	}
}

static int stackmap_stat_show(struct seq_file *m, void *v)
{
	struct stackmap_stats stats = {
		.max_entries = 1U << stackmap_first_bits(),
	};
	struct trace_array *tr = m->private;
	struct stackmap_instance *inst = READ_ONCE(tr->stackmap);
	unsigned long successes;
	u64 asked;

	if (inst)
		stackmap_get_stats(inst, &stats);
	successes = stats.counts[STACKMAP_SUCCESSES];
	asked = (u64)successes + stats.drops;

	seq_printf(m, "entries: %u / %u\n", stats.entries, stats.max_entries);
	seq_printf(m, "table_size: %u\n", 2 * stats.max_entries);
	seq_printf(m, "successes: %lu\n", successes);
	seq_printf(m, "drops: %lu\n", stats.drops);
	seq_printf(m, "success_rate: %llu%%\n",
		   asked ? div64_u64((u64)successes * 100, asked) : 100);
	seq_printf(m, "generation: %u\n", stats.generation);
	seq_printf(m, "memory: %zu\n", stats.memory);
	seq_printf(m, "split: %lu\n", stats.counts[STACKMAP_SPLIT]);
	seq_printf(m, "parts: %lu\n", successes + stats.counts[STACKMAP_MORE_PARTS]);
	seq_printf(m, "drops_entries: %lu\n", stats.counts[STACKMAP_DROP_ENTRIES]);
	seq_printf(m, "drops_arena: %lu\n", stats.counts[STACKMAP_DROP_ARENA]);
	seq_printf(m, "drops_probes: %lu\n", stats.counts[STACKMAP_DROP_PROBES]);
	seq_printf(m, "drops_empty: %lu\n", stats.counts[STACKMAP_DROP_EMPTY]);
	seq_printf(m, "drops_parts: %lu\n", stats.counts[STACKMAP_DROP_PARTS]);
	seq_printf(m, "drops_buffer: %lu\n", stats.counts[STACKMAP_DROP_BUFFER]);
	seq_printf(m, "rotations: %lu\n", stats.past.rotations);
	seq_printf(m, "recycled: %lu\n", stats.past.recycled);
	seq_printf(m, "recycled_refs: %lu\n", stats.past.recycled_refs);
	seq_printf(m, "kept: %u\n", stats.kept);
	seq_printf(m, "deep: %lu\n", stats.counts[STACKMAP_DEEP]);
	if (IS_ENABLED(CONFIG_TRACE_USER_OBJECTS)) {
		seq_printf(m, "drops_objects: %lu\n", stats.counts[STACKMAP_DROP_OBJECTS]);
		seq_printf(m, "objects: %u\n", stats.objects);
		seq_printf(m, "cut: %lu\n", stats.counts[STACKMAP_CUT]);
		seq_printf(m, "addresses: %lu\n", stats.counts[STACKMAP_ADDRESSES]);
	}
	return 0;
}

static int stackmap_stat_open(struct inode *inode, struct file *file)
{
	struct trace_array *tr = inode->i_private;
	int ret;

	ret = tracing_check_open_get_tr(tr);
	if (ret)
		return ret;

	ret = single_open(file, stackmap_stat_show, tr);
	if (ret)
		trace_array_put(tr);
	return ret;
}

const struct file_operations stackmap_stat_fops = {
	.open		= stackmap_stat_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= tracing_single_release_tr,
};
