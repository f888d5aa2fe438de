// SPDX-License-Identifier: GPL-2.0
/*
 * Reading the stacks of an instance, for its files in tracefs.
 *
 * stackmap_latch() fixes the set of stacks that a reader sees. After a reset, its next
 * read fails with -ESTALE.
 */
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>

#include <kunit/visibility.h>

#include "trace_stackmap_files.h"

/* The position of a stack: from 1, by its generation's place in the set, then its own. */
#define STACKMAP_POS_GEN	((loff_t)1 << STACKMAP_SLOT_BITS)

/* The next stack from *@pos on, or NULL. */
const struct stackmap_record *stackmap_next(struct stackmap_iter *iter, loff_t *pos)
{
	u64 at = *pos - 1;
	u32 nr = at / STACKMAP_POS_GEN, i = at % STACKMAP_POS_GEN;
	const struct stackmap_record *rec;

	for (; iter->set && nr < iter->set->nr; nr++, i = 0) {
		iter->gen = iter->set->gens[nr];
		for (; !IS_ERR(rec = stackmap_at(iter->gen, i, &iter->idx)); i++) {
			if (!rec)
				continue;
			if (iter->gen->map == iter->map && (void *)rec >= iter->map_end)
				continue;
			*pos = 1 + nr * STACKMAP_POS_GEN + i;
			return rec;
		}
	}
	return NULL;
}

/* Take the set that is going to be read. */
static void stackmap_take_set(struct stackmap_iter *iter)
{
	struct stackmap_instance *inst = READ_ONCE(iter->tr->stackmap);

	stackmap_put(iter->set);
	iter->set = NULL;
	iter->map = NULL;
	if (!inst)
		return;

	guard(mutex)(&inst->lock);
	iter->resets = inst->resets;
	iter->map = stackmap_current(inst);
	if (!iter->map)
		return;
	iter->set = stackmap_set(inst);
	refcount_inc(&iter->set->users);
	iter->map_end = iter->map->arena + (size_t)stackmap_tail(iter->map) * STACKMAP_UNIT;
}

/*
 * Fix the set of stacks that is going to be read. Every record below the tail of the
 * map is published after the grace period, or never will be.
 */
VISIBLE_IF_KUNIT void stackmap_latch(struct stackmap_iter *iter)
{
	stackmap_take_set(iter);
	if (iter->set)
		synchronize_rcu();	/* stackmap_latch:A */
}

void *stackmap_seq_start(struct seq_file *m, loff_t *pos)
{
	struct stackmap_iter *iter = m->private;

	/* A first read that returned nothing is repeated. */
	if (!*pos) {
		stackmap_latch(iter);
		*pos = 1;
	} else if (iter->set && READ_ONCE(iter->tr->stackmap->resets) != iter->resets) {
		return ERR_PTR(-ESTALE);
	}
	return (void *)stackmap_next(iter, pos);
}

void *stackmap_seq_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return (void *)stackmap_next(m->private, pos);
}

void stackmap_seq_stop(struct seq_file *m, void *v)
{
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

	stackmap_put(iter->set);
	trace_array_put(inode->i_private);
	return seq_release_private(inode, file);
}
