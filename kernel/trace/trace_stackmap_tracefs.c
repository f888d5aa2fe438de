// SPDX-License-Identifier: GPL-2.0
/*
 * The files of the stack map in tracefs: stack_map, which has the stacks as text and takes
 * a reset, and stack_map_stat.
 *
 * stackmap_snapshot_tail() fixes which stacks a reader sees. After a reset, its next read
 * fails with -ESTALE.
 */
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include <kunit/visibility.h>

#include "trace_stackmap_tracefs.h"

/* The position of a stack: from 1, by the index of its generation, then its own. */
#define STACKMAP_POS_GEN	((loff_t)1 << STACKMAP_SLOT_BITS)

/* The next stack, or with iter->files the next file, from *@pos on, or NULL. */
const struct stackmap_record *stackmap_next(struct stackmap_iter *iter, loff_t *pos)
{
	u64 at = *pos - 1;
	u32 nr = at / STACKMAP_POS_GEN, i = at % STACKMAP_POS_GEN;
	const struct stackmap_record *rec;

	for (; iter->gens && nr < iter->gens->nr; nr++, i = 0) {
		iter->gen = iter->gens->gen[nr];
		for (; !IS_ERR(rec = stackmap_at(iter->gen, i, &iter->idx)); i++) {
			if (!rec || rec->file != iter->files)
				continue;
			if (iter->gen->map == iter->map && (void *)rec >= iter->map_end)
				continue;
			*pos = 1 + nr * STACKMAP_POS_GEN + i;
			return rec;
		}
	}
	return NULL;
}

/* Take the generations that are going to be read. */
static void stackmap_take_gens(struct stackmap_iter *iter)
{
	struct stackmap_instance *inst = READ_ONCE(iter->tr->stackmap);

	stackmap_put(iter->gens);
	iter->gens = NULL;
	iter->map = NULL;
	if (!inst)
		return;

	guard(mutex)(&inst->lock);
	iter->resets = inst->resets;
	iter->map = stackmap_current(inst);
	/* The stacks of the last boot are no map to record into. */
	if (iter->map || stackmap_persistent(inst))
		iter->gens = stackmap_gens(inst);
	if (iter->gens)
		refcount_inc(&iter->gens->users);
	if (iter->map)
		iter->map_end = iter->map->arena + (size_t)stackmap_tail(iter->map) * STACKMAP_UNIT;
}

/*
 * Fix which stacks are going to be read. Every record below the tail of the
 * map is published after the grace period, or never will be.
 */
VISIBLE_IF_KUNIT void stackmap_snapshot_tail(struct stackmap_iter *iter)
{
	stackmap_take_gens(iter);
	if (iter->gens)
		synchronize_rcu();	/* stackmap_snapshot_tail:A */
}

/* A map in persistent memory is emptied under the lock of its instance, so it is read under it. */
static struct mutex *stackmap_read_lock(const struct stackmap_iter *iter)
{
	struct stackmap_instance *inst = READ_ONCE(iter->tr->stackmap);

	return inst && stackmap_persistent(inst) ? &inst->lock : NULL;
}

void *stackmap_seq_start(struct seq_file *m, loff_t *pos)
{
	struct stackmap_iter *iter = m->private;
	struct mutex *lock = stackmap_read_lock(iter);

	/* A first read that returned nothing is repeated. */
	if (!*pos) {
		stackmap_snapshot_tail(iter);
		*pos = 1;
	}
	if (lock)
		mutex_lock(lock);
	if (iter->gens && READ_ONCE(iter->tr->stackmap->resets) != iter->resets)
		return ERR_PTR(-ESTALE);
	return (void *)stackmap_next(iter, pos);
}

void *stackmap_seq_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return (void *)stackmap_next(m->private, pos);
}

void stackmap_seq_stop(struct seq_file *m, void *v)
{
	struct mutex *lock = stackmap_read_lock(m->private);

	if (lock)
		mutex_unlock(lock);
}

/* Frame number @i of a stack. One of the last boot gets its address in this one. */
unsigned long stackmap_iter_ip(const struct stackmap_iter *iter,
			       const struct stackmap_record *rec, unsigned int i)
{
	unsigned long ip = rec->ips[i];

	if (rec->user || ip == FTRACE_TRAMPOLINE_MARKER)
		return ip;
	return trace_adjust_address(iter->tr, ip);
}

unsigned long stackmap_iter_ref(const struct stackmap_iter *iter,
				const struct stackmap_record *rec)
{
	return iter->gen->map ? stackmap_ref(iter->gen->map, iter->idx) :
				atomic_long_read(&rec->ref);
}

int stackmap_open(struct inode *inode, struct file *file, const struct seq_operations *ops)
{
	struct trace_array *tr = inode->i_private;
	struct stackmap_iter *iter;
	int ret;

	ret = tracing_check_open_get_tr(tr);
	if (ret)
		return ret;

	ret = -EACCES;
	if ((file->f_mode & FMODE_WRITE) && trace_array_is_readonly(tr))
		goto fail;

	ret = -ENOMEM;
	iter = __seq_open_private(file, ops, sizeof(*iter));
	if (!iter)
		goto fail;
	iter->tr = tr;
	/* To seek would be to begin again, with other stacks. */
	return nonseekable_open(inode, file);

 fail:
	trace_array_put(tr);
	return ret;
}

int stackmap_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;
	struct stackmap_iter *iter = m->private;

	stackmap_put(iter->gens);
	trace_array_put(inode->i_private);
	return seq_release_private(inode, file);
}

/* The statistics. Without a map, generation and size are those of the next one. */
struct stackmap_stats {
	unsigned long		counts[STACKMAP_NR_COUNTS];
	unsigned long		drops;
	struct stackmap_past	past;
	size_t			memory;
	u32			generation;
	u32			entries;
	u32			files;		/* of the entries */
	u32			max_entries;
	u32			kept;		/* stacks of older maps */
};

static void stackmap_get_stats(struct stackmap_instance *inst, struct stackmap_stats *stats)
{
	const struct ftrace_stackmap *map;
	const struct stackmap_gens *gens;
	const struct stackmap_gen *gen;

	guard(mutex)(&inst->lock);
	map = stackmap_current(inst);
	gens = stackmap_gens(inst);
	stats->past = inst->past;
	for (int i = 0; i < STACKMAP_NR_COUNTS; i++)
		stats->counts[i] = stackmap_sum(inst, i);
	for (int i = 0; i < STACKMAP_NR_DROPS; i++)
		stats->drops += stats->counts[i];

	/* The stacks of the last boot. */
	if (stackmap_persistent(inst) && !map && gens && gens->nr)
		map = gens->gen[0]->map;
	stats->generation = inst->next_gen % STACKMAP_GENS;
	if (map) {
		stats->generation = map->first_id >> STACKMAP_SLOT_BITS;
		stats->entries = atomic_read(&map->entries);
		stats->files = atomic_read(&map->files);
		stats->max_entries = map->max_entries;
	}
	for (u32 i = 0; gens && i < gens->nr; i++) {
		gen = gens->gen[i];
		stats->memory += gen->size;
		if (!gen->map)
			stats->kept += gen->nr - gen->files;
		else if (gen->map != map)
			stats->kept += atomic_read(&gen->map->entries) -
				       atomic_read(&gen->map->files);
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
	if (IS_ENABLED(CONFIG_TRACE_USER_FILES)) {
		seq_printf(m, "files: %u\n", stats.files);
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

static const struct file_operations stackmap_stat_fops = {
	.open		= stackmap_stat_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= tracing_single_release_tr,
};

static void stackmap_show_user_frame(struct seq_file *m, unsigned int i, unsigned long ip)
{
	const struct stackmap_iter *iter = m->private;
	int id = user_word_file_id(ip, iter->gen->first_id);
	const char *path = NULL;

	if (user_word_file(ip))
		path = user_file_path(stackmap_lookup(iter->gens, id));
	if (path)
		seq_printf(m, "  [%u] %s+0x%llx\n", i, path, ip & USER_WORD_OFFSET);
	else
		seq_printf(m, "  [%u] 0x%lx\n", i, ip);
}

static int stackmap_text_show(struct seq_file *m, void *v)
{
	struct stackmap_iter *iter = m->private;
	const struct stackmap_record *rec = v;
	unsigned long ip;
	unsigned int nr;

	nr = stackmap_depth(rec->ips, rec->nr);
	if (rec->user)
		seq_puts(m, "user_");
	seq_printf(m, "stack_id %d [ref %lu, depth %u]\n", iter->gen->first_id | iter->idx,
		   stackmap_iter_ref(iter, rec), nr);
	for (unsigned int i = 0; i < nr; i++) {
		ip = stackmap_iter_ip(iter, rec, i);
		if (rec->user)
			stackmap_show_user_frame(m, i, ip);
		else if (ip == FTRACE_TRAMPOLINE_MARKER)
			seq_printf(m, "  [%u] [FTRACE TRAMPOLINE]\n", i);
		else
			seq_printf(m, "  [%u] %pS\n", i, (void *)ip);
	}
	seq_putc(m, '\n');
	return 0;
}

static const struct seq_operations stackmap_text_seq_ops = {
	.start		= stackmap_seq_start,
	.next		= stackmap_seq_next,
	.stop		= stackmap_seq_stop,
	.show		= stackmap_text_show,
};

static int stackmap_text_open(struct inode *inode, struct file *file)
{
	return stackmap_open(inode, file, &stackmap_text_seq_ops);
}

/* Clear all counts. No map is published, so nobody counts. */
static void stackmap_clear_counts(struct stackmap_instance *inst)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(inst->counts, cpu), 0, sizeof(*inst->counts));
	memset(&inst->past, 0, sizeof(inst->past));
}

/**
 * stackmap_reset - remove all stacks of an instance
 * @tr: the instance
 *
 * With options/stackmap on, an empty map replaces the current one. With the
 * option off, the memory is freed. The ids in the buffer are stale afterwards. Without memory,
 * a persistent instance, which has one map, records full stacks until the next reset.
 *
 * Return: 0, -ENOMEM, or with the option on: -EBUSY while tracing is on in @tr, or if
 * events hold ids of all generations.
 */
int stackmap_reset(struct trace_array *tr)
{
	bool on = tr->trace_flags & TRACE_ITER(STACKMAP);
	struct stackmap_instance *inst = tr->stackmap;
	struct ftrace_stackmap *map;
	struct stackmap_gens *gens;
	struct stackmap_gen *gen;
	u32 first_id;
	int ret = 0;

	lockdep_assert_held(&trace_types_lock);

	if (!inst)
		return 0;

	guard(mutex)(&inst->lock);
	map = stackmap_current(inst);
	if (on && tracer_tracing_is_on(tr))
		return -EBUSY;
	if (!map) {
		/* Stale generations may be unused now. The last boot's is not wanted any more. */
		stackmap_free_unused(inst);
		if (stackmap_persistent(inst)) {
			WRITE_ONCE(inst->resets, inst->resets + 1);
			stackmap_clear_counts(inst);
			inst->range->check = 0;
		}
		return 0;
	}

	gen = on && !stackmap_persistent(inst) ? stackmap_create_first(inst) : NULL;
	if (IS_ERR(gen))
		return PTR_ERR(gen);

	gens = stackmap_gens_stale(inst, gen);
	if (!gens)
		return -ENOMEM;

	first_id = map->first_id;
	WRITE_ONCE(inst->resets, inst->resets + 1);
	stackmap_publish(inst, gens, NULL);
	stackmap_set_range(inst, stackmap_gen_of(gens, first_id), true);
	stackmap_clear_counts(inst);
	inst->pause = 0;
	if (stackmap_persistent(inst)) {
		inst->range->check = 0;
		ret = on ? stackmap_begin(inst) : 0;
	} else if (gen) {
		stackmap_set_range(inst, gen, false);
		rcu_assign_pointer(inst->map, gen->map);
	}
	stackmap_free_unused(inst);
	return ret;
}

static ssize_t stackmap_write(struct file *file, const char __user *ubuf, size_t cnt, loff_t *ppos)
{
	char buf[sizeof("reset\n")];
	int ret;

	if (cnt >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, ubuf, cnt))
		return -EFAULT;
	buf[cnt] = '\0';
	if (strlen(buf) != cnt || (!sysfs_streq(buf, "0") && !sysfs_streq(buf, "reset")))
		return -EINVAL;

	/* Leave *ppos alone, it is the position of the reader. */
	guard(mutex)(&trace_types_lock);
	ret = stackmap_reset(file_inode(file)->i_private);
	return ret ?: cnt;
}

static const struct file_operations stackmap_text_fops = {
	.open		= stackmap_text_open,
	.read		= seq_read,
	.write		= stackmap_write,
	.release	= stackmap_release,
};

/**
 * ftrace_stackmap_create_files - create the files of an instance's stack map
 * @tr: the instance
 * @dir: its directory in tracefs
 */
void ftrace_stackmap_create_files(struct trace_array *tr, struct dentry *dir)
{
	umode_t mode = trace_array_is_readonly(tr) ? TRACE_MODE_READ : TRACE_MODE_WRITE;

	trace_create_file("stack_map", mode, dir, tr, &stackmap_text_fops);
	trace_create_file("stack_map_stat", TRACE_MODE_READ, dir, tr, &stackmap_stat_fops);
	trace_create_file("stack_map_bin", TRACE_MODE_READ, dir, tr, &stackmap_bin_fops);
}
