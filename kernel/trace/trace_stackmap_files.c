// SPDX-License-Identifier: GPL-2.0
/*
 * The files of a stack map in tracefs: stack_map (text, and the reset) and
 * stack_map_bin (binary). trace_stackmap_stat.c has the statistics.
 *
 * stackmap_latch() fixes the set of stacks that a reader sees. After a reset, its next
 * read fails with -ESTALE.
 */
#include <linux/buildid.h>
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>

#include <kunit/visibility.h>

#include <asm/sections.h>

#include "trace_stackmap_internal.h"

/* Binary export: "FMSB", read as a native word. */
#define STACKMAP_BIN_MAGIC	0x464D5342
#define STACKMAP_BIN_VERSION	2
#define STACKMAP_BIN_ALIGN	8

enum stackmap_bin_section {
	STACKMAP_BIN_TEXT	= 1,	/* u64, address of _text */
	STACKMAP_BIN_BUILD_ID	= 2,	/* build id of the kernel */
	STACKMAP_BIN_RELEASE	= 3,	/* kernel release, not terminated */
	STACKMAP_BIN_SPLIT	= 4,	/* u64, number of stacks that were split */
	STACKMAP_BIN_SECTIONS	= IS_ENABLED(CONFIG_TRACE_USER_OBJECTS) ? STACKMAP_BIN_FILES : 4,
};

/*
 * Positions of a reader: 0 is the header. Then come the stacks, by the number of the
 * generation in the set and that in the generation, and the trailer.
 */
#define STACKMAP_POS_GEN	((loff_t)1 << STACKMAP_SLOT_BITS)
#define STACKMAP_POS_END	((loff_t)1 << 53)

/* The next stack from *@pos on, or NULL. */
VISIBLE_IF_KUNIT const struct stackmap_record *
stackmap_next(struct stackmap_iter *iter, loff_t *pos)
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
	iter->split = 0;
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
	iter->split = stackmap_sum(inst, STACKMAP_SPLIT);
}

/*
 * Fix the set of stacks that is going to be read. Every record below the tail of the
 * map is published after the grace period, or never will be.
 */
VISIBLE_IF_KUNIT void stackmap_latch(struct stackmap_iter *iter)
{
	stackmap_take_set(iter);
	synchronize_rcu();	/* stackmap_latch:A */

	iter->nr_stacks = 0;
	for (loff_t pos = 1; stackmap_next(iter, &pos); pos++)
		iter->nr_stacks++;
}

/* What is at *@pos, or next: the header, a stack, or the trailer, which is @iter. */
static void *stackmap_seek(struct stackmap_iter *iter, loff_t *pos)
{
	const struct stackmap_record *rec = NULL;

	if (!*pos)
		return SEQ_START_TOKEN;
	if (*pos > STACKMAP_POS_END)
		return NULL;

	if (*pos < STACKMAP_POS_END)
		rec = stackmap_next(iter, pos);
	if (!rec)
		*pos = STACKMAP_POS_END;
	return rec ? (void *)rec : iter;
}

static void *stackmap_seq_start(struct seq_file *m, loff_t *pos)
{
	struct stackmap_iter *iter = m->private;

	/* A first read that returned nothing is repeated. */
	if (!*pos)
		stackmap_latch(iter);
	else if (iter->set && READ_ONCE(iter->tr->stackmap->resets) != iter->resets)
		return ERR_PTR(-ESTALE);

	return stackmap_seek(iter, pos);
}

static void *stackmap_seq_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return stackmap_seek(m->private, pos);
}

static void stackmap_seq_stop(struct seq_file *m, void *v)
{
}

static unsigned long stackmap_iter_ref(const struct stackmap_iter *iter,
				       const struct stackmap_record *rec)
{
	return iter->gen->map ? stackmap_ref(iter->gen->map, iter->idx) :
				atomic_long_read(&rec->ref);
}

static int stackmap_text_show(struct seq_file *m, void *v)
{
	struct stackmap_iter *iter = m->private;
	const struct stackmap_record *rec = v;
	const char *path;
	unsigned long ip;
	unsigned int nr;

	if (v == SEQ_START_TOKEN || v == iter)
		return 0;

	nr = stackmap_depth(rec->ips, rec->nr);
	if (rec->user)
		seq_puts(m, "user_");
	seq_printf(m, "stack_id %d [ref %lu, depth %u]\n", iter->gen->first_id | iter->idx,
		   stackmap_iter_ref(iter, rec), nr);
	for (unsigned int i = 0; i < nr; i++) {
		ip = rec->ips[i];
		path = rec->user && user_word_object(ip) ? user_object_path(ip) : NULL;
		if (path)
			seq_printf(m, "  [%u] %s+0x%llx\n", i, path, ip & USER_WORD_OFFSET);
		else if (rec->user)
			seq_printf(m, "  [%u] 0x%lx\n", i, ip);
		else if (ip == FTRACE_TRAMPOLINE_MARKER)
			seq_printf(m, "  [%u] [FTRACE TRAMPOLINE]\n", i);
		else
			seq_printf(m, "  [%u] %pS\n", i, (void *)ip);
	}
	seq_putc(m, '\n');
	return 0;
}

static void stackmap_bin_section(struct seq_file *m, u32 type, const void *data, u32 len)
{
	static const u8 zeroes[STACKMAP_BIN_ALIGN];
	u32 hdr[] = { type, len };

	seq_write(m, hdr, sizeof(hdr));
	seq_write(m, data, len);
	seq_write(m, zeroes, ALIGN(len, STACKMAP_BIN_ALIGN) - len);
}

/* The tables of all generations. How long the section is turns out when it is written. */
static void stackmap_bin_files(struct seq_file *m, const struct stackmap_iter *iter)
{
	struct user_objects *objects;
	size_t start;
	u32 len;

	stackmap_bin_section(m, STACKMAP_BIN_FILES, NULL, 0);
	start = m->count;
	for (u32 i = 0; iter->set && i < iter->set->nr; i++) {
		objects = stackmap_new_objects(iter->set, i);
		if (objects)
			user_objects_write(objects, m);
	}
	len = m->count - start;
	if (!seq_has_overflowed(m))
		memcpy(m->buf + start - sizeof(len), &len, sizeof(len));
}

static void stackmap_bin_trailer(struct seq_file *m, const struct stackmap_iter *iter)
{
	const char *release = init_utsname()->release;
	u64 text = (unsigned long)_text;
	u8 id[BUILD_ID_SIZE_MAX] = { };

	build_id_parse_buf(__start_notes, id, __stop_notes - __start_notes);
	stackmap_bin_section(m, STACKMAP_BIN_TEXT, &text, sizeof(text));
	stackmap_bin_section(m, STACKMAP_BIN_BUILD_ID, id, sizeof(id));
	stackmap_bin_section(m, STACKMAP_BIN_RELEASE, release, strlen(release));
	stackmap_bin_section(m, STACKMAP_BIN_SPLIT, &iter->split, sizeof(iter->split));
	if (IS_ENABLED(CONFIG_TRACE_USER_OBJECTS))
		stackmap_bin_files(m, iter);
}

static void stackmap_bin_stack(struct seq_file *m, const struct stackmap_iter *iter,
			       const struct stackmap_record *rec)
{
	u32 ref = min(stackmap_iter_ref(iter, rec), U32_MAX);
	unsigned int nr = stackmap_depth(rec->ips, rec->nr);
	u32 hdr[] = { iter->gen->first_id | iter->idx, nr, ref, stackmap_bin_flags(rec) };
	u64 ip;

	seq_write(m, hdr, sizeof(hdr));
	for (unsigned int i = 0; i < nr; i++) {
		ip = rec->ips[i];
		seq_write(m, &ip, sizeof(ip));
	}
}

VISIBLE_IF_KUNIT int stackmap_bin_show(struct seq_file *m, void *v)
{
	struct stackmap_iter *iter = m->private;
	u32 hdr[] = {
		STACKMAP_BIN_MAGIC, STACKMAP_BIN_VERSION, iter->nr_stacks, STACKMAP_BIN_SECTIONS,
	};

	if (v == SEQ_START_TOKEN)
		seq_write(m, hdr, sizeof(hdr));
	else if (v == iter)
		stackmap_bin_trailer(m, iter);
	else
		stackmap_bin_stack(m, iter, v);
	return 0;
}

static const struct seq_operations stackmap_text_seq_ops = {
	.start		= stackmap_seq_start,
	.next		= stackmap_seq_next,
	.stop		= stackmap_seq_stop,
	.show		= stackmap_text_show,
};

static const struct seq_operations stackmap_bin_seq_ops = {
	.start		= stackmap_seq_start,
	.next		= stackmap_seq_next,
	.stop		= stackmap_seq_stop,
	.show		= stackmap_bin_show,
};

static int stackmap_open(struct inode *inode, struct file *file, const struct seq_operations *ops)
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

static int stackmap_text_open(struct inode *inode, struct file *file)
{
	return stackmap_open(inode, file, &stackmap_text_seq_ops);
}

static int stackmap_bin_open(struct inode *inode, struct file *file)
{
	return stackmap_open(inode, file, &stackmap_bin_seq_ops);
}

static int stackmap_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;
	struct stackmap_iter *iter = m->private;

	stackmap_put(iter->set);
	trace_array_put(inode->i_private);
	return seq_release_private(inode, file);
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

static const struct file_operations stackmap_bin_fops = {
	.open		= stackmap_bin_open,
	.read		= seq_read,
	.release	= stackmap_release,
};

/**
 * ftrace_stackmap_create_files - create the files of an instance's stack map
 * @tr: the instance
 * @dir: its directory in tracefs
 *
 * Context: may sleep.
 */
void ftrace_stackmap_create_files(struct trace_array *tr, struct dentry *dir)
{
	umode_t mode = trace_array_is_readonly(tr) ? TRACE_MODE_READ : TRACE_MODE_WRITE;

	trace_create_file("stack_map", mode, dir, tr, &stackmap_text_fops);
	trace_create_file("stack_map_stat", TRACE_MODE_READ, dir, tr, &stackmap_stat_fops);
	trace_create_file("stack_map_bin", TRACE_MODE_READ, dir, tr, &stackmap_bin_fops);
}
