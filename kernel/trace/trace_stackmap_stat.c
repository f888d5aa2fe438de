// SPDX-License-Identifier: GPL-2.0
/*
 * The statistics of a stack map: stack_map_stat in tracefs.
 */
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/seq_file.h>

#include "trace_stackmap_internal.h"

/* What the statistics show, 0 without a map. */
struct stackmap_stats {
	unsigned long		counts[STACKMAP_NR_COUNTS];
	unsigned long		drops;
	struct stackmap_past	past;
	struct user_object_stats objects;
	size_t			memory;
	u32			entries;
};

static void stackmap_get_stats(const struct ftrace_stackmap *map, struct stackmap_stats *stats)
{
	const struct stackmap_shared *shared = map->shared;

	for (int i = 0; i < STACKMAP_NR_COUNTS; i++)
		stats->counts[i] = stackmap_sum(shared, i);
	for (int i = STACKMAP_DROP_ENTRIES; i < STACKMAP_NR_COUNTS; i++)
		stats->drops += stats->counts[i];

	stats->entries = atomic_read(&map->entries);
	stats->memory = num_possible_cpus() * (sizeof(*shared->counts) + sizeof(*map->cache));
	stats->memory += sizeof(*shared) + stackmap_size(ilog2(map->max_entries));
	user_objects_stats(shared->objects, &stats->objects);
	stats->memory += stats->objects.memory;
	/* The work changes it at any time. */
	stats->past = data_race(shared->repl->past);
	stats->memory += stats->past.kept_size;
	stats->memory += struct_size(shared->repl, kept, 1U << shared->repl->kept_bits);
	while ((map = READ_ONCE(map->prev))) {
		stats->past.nr_kept += atomic_read(&map->entries);
		stats->memory += stackmap_size(ilog2(map->max_entries));
	}
}

static int stackmap_stat_show(struct seq_file *m, void *v)
{
	u32 max = 1U << min(READ_ONCE(ftrace_stackmap_bits), STACKMAP_BITS_FIRST);
	struct trace_array *tr = m->private;
	u32 gen = READ_ONCE(tr->stackmap_gen);
	const struct ftrace_stackmap *map;
	struct stackmap_stats stats = { };
	unsigned long successes;
	u64 asked;

	scoped_guard(rcu) {
		map = rcu_dereference(tr->stackmap);
		if (map) {
			stackmap_get_stats(map, &stats);
			max = map->max_entries;
			gen = map->gen;
		}
	}
	successes = stats.counts[STACKMAP_SUCCESSES];
	asked = (u64)successes + stats.drops;

	seq_printf(m, "entries: %u / %u\n", stats.entries, max);
	seq_printf(m, "table_size: %u\n", 2 * max);
	seq_printf(m, "successes: %lu\n", successes);
	seq_printf(m, "drops: %lu\n", stats.drops);
	seq_printf(m, "success_rate: %llu%%\n",
		   asked ? div64_u64((u64)successes * 100, asked) : 100);
	seq_printf(m, "generation: %u\n", gen & STACKMAP_GEN_MASK);
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
	seq_printf(m, "kept: %u\n", stats.past.nr_kept);
	if (IS_ENABLED(CONFIG_TRACE_USER_OBJECTS)) {
		seq_printf(m, "drops_objects: %lu\n", stats.counts[STACKMAP_DROP_OBJECTS]);
		seq_printf(m, "objects: %u\n", stats.objects.objects);
		seq_printf(m, "cut: %lu\n", stats.objects.cut);
		seq_printf(m, "addresses: %lu\n", stats.objects.addresses);
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
