// SPDX-License-Identifier: GPL-2.0
/*
 * The files of a stack map in tracefs: stack_map (text, and the reset),
 * stack_map_stat (statistics), stack_map_bin (binary).
 *
 * Readers take no lock. stackmap_latch() fixes the set of stacks that a reader
 * sees. A reset ends it with -ESTALE.
 */
#include <linux/buildid.h>
#include <linux/math64.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>

#include <asm/sections.h>

#include "trace_stackmap.h"

/* Binary export: "FMSB", read as a native word. */
#define STACKMAP_BIN_MAGIC	0x464D5342
#define STACKMAP_BIN_VERSION	2
#define STACKMAP_BIN_ALIGN	8

/* Flag in the last word of a record: a stack of user space. */
#define STACKMAP_BIN_USER	1

enum stackmap_bin_section {
	STACKMAP_BIN_TEXT	= 1,	/* u64, address of _text */
	STACKMAP_BIN_BUILD_ID	= 2,	/* build id of the kernel */
	STACKMAP_BIN_RELEASE	= 3,	/* kernel release, not terminated */
	STACKMAP_BIN_SPLIT	= 4,	/* u64, number of stacks that were split */
	STACKMAP_BIN_SECTIONS	= 4,
};

/*
 * A reader. Position 0 is the header, then come the stacks of older maps, the
 * slots and the trailer.
 */
struct stackmap_iter {
	struct trace_array	*tr;		/* the open file holds a reference */
	struct ftrace_stackmap	*map;		/* between start and stop */
	u32			gen;		/* of the map that the read began with */
	u32			nr_old;		/* places for stacks of older maps */
	u32			nr_slots;	/* 0 if there was no map */
	u32			tail;		/* records behind it are left out */
	u32			nr_stacks;	/* that the reader gets */
	u64			split;		/* STACKMAP_SPLIT */
};

/*
 * The map that the read began with, or NULL if it is gone. After one rotation
 * it still has its own stacks, but no older ones.
 */
static struct ftrace_stackmap *stackmap_iter_map(const struct stackmap_iter *iter, loff_t pos)
{
	struct ftrace_stackmap *map = rcu_dereference(iter->tr->stackmap);

	if (map && map->gen != iter->gen)
		map = pos > iter->nr_old ? map->prev : NULL;

	return map && map->gen == iter->gen ? map : NULL;
}

/* The stack at @pos, or NULL if there is none or it is left out. */
static const struct stackmap_record *stackmap_iter_get(const struct stackmap_iter *iter,
						       const struct ftrace_stackmap *map,
						       loff_t pos, int *id)
{
	u32 slot;

	if (--pos < iter->nr_old)
		return ftrace_stackmap_old(map, pos, id);

	pos -= iter->nr_old;
	*id = stackmap_id(map, pos);
	slot = READ_ONCE(map->slots[pos]);
	if (!slot || (slot & map->offset_mask) >= iter->tail)
		return NULL;
	return stackmap_record_at(map, slot);
}

static unsigned long stackmap_iter_ref(const struct stackmap_iter *iter, loff_t pos)
{
	if (--pos < iter->nr_old)
		return ftrace_stackmap_old_ref(iter->map, pos);
	return ftrace_stackmap_ref(iter->map, pos - iter->nr_old);
}

/* The position of the trailer. */
static loff_t stackmap_iter_end(const struct stackmap_iter *iter)
{
	return (loff_t)iter->nr_old + iter->nr_slots + 1;
}

/*
 * Fix the set of stacks that is going to be read. Every record below the tail
 * is published after the grace period, or never will be.
 */
static int stackmap_latch(struct stackmap_iter *iter)
{
	struct ftrace_stackmap *map;
	int id;

	/* A first read that returned nothing is repeated. */
	iter->nr_old = 0;
	iter->nr_slots = 0;
	iter->nr_stacks = 0;
	iter->split = 0;

	scoped_guard(rcu) {
		map = rcu_dereference(iter->tr->stackmap);
		if (!map)
			return 0;
		iter->gen = map->gen;
		iter->nr_old = ftrace_stackmap_nr_old(map);
		iter->nr_slots = map->nr_slots;
		iter->tail = atomic_read(&map->tail);
	}

	synchronize_rcu();	/* stackmap_latch:A */

	guard(rcu)();
	map = stackmap_iter_map(iter, 0);
	if (!map)
		return -ESTALE;

	iter->split = ftrace_stackmap_total(map, STACKMAP_SPLIT);

	for (loff_t pos = 1; pos < stackmap_iter_end(iter); pos++)
		iter->nr_stacks += !!stackmap_iter_get(iter, map, pos, &id);
	return 0;
}

/* The next position from @pos on at which there is something to show. */
static void *stackmap_seek(struct stackmap_iter *iter, loff_t *pos)
{
	loff_t end = stackmap_iter_end(iter);
	int id;

	while (*pos >= 1 && *pos < end && !stackmap_iter_get(iter, iter->map, *pos, &id))
		++*pos;

	return *pos <= end ? pos : NULL;
}

static void *stackmap_seq_start(struct seq_file *m, loff_t *pos)
	__acquires(RCU)
{
	struct stackmap_iter *iter = m->private;
	int err = *pos ? 0 : stackmap_latch(iter);

	rcu_read_lock();
	if (err)
		return ERR_PTR(err);

	iter->map = stackmap_iter_map(iter, *pos);
	if (iter->nr_slots && !iter->map)
		return ERR_PTR(-ESTALE);

	return stackmap_seek(iter, pos);
}

static void *stackmap_seq_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return stackmap_seek(m->private, pos);
}

static void stackmap_seq_stop(struct seq_file *m, void *v)
	__releases(RCU)
{
	rcu_read_unlock();
}

static int stackmap_text_show(struct seq_file *m, void *v)
{
	struct stackmap_iter *iter = m->private;
	const struct stackmap_record *rec;
	loff_t pos = *(loff_t *)v;
	unsigned long ip;
	int id;

	if (pos < 1 || pos >= stackmap_iter_end(iter))
		return 0;

	rec = stackmap_iter_get(iter, iter->map, pos, &id);
	seq_printf(m, "%sstack_id %d [ref %lu, depth %u]\n", rec->user ? "user_" : "", id,
		   stackmap_iter_ref(iter, pos), rec->nr);
	for (unsigned int i = 0; i < rec->nr; i++) {
		ip = rec->ips[i];
		if (rec->user)
			seq_printf(m, "  [%u] 0x%lx\n", i, ip);
		else if (ip == FTRACE_TRAMPOLINE_MARKER)
			seq_printf(m, "  [%u] [FTRACE TRAMPOLINE]\n", i);
		else
			seq_printf(m, "  [%u] %pS\n", i,
				   (void *)trace_adjust_address(iter->tr, ip));
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
}

static void stackmap_bin_stack(struct seq_file *m, const struct stackmap_iter *iter, loff_t pos)
{
	unsigned long ref = stackmap_iter_ref(iter, pos);
	const struct stackmap_record *rec;
	u32 hdr[4] = { };
	u64 ip;
	int id;

	rec = stackmap_iter_get(iter, iter->map, pos, &id);
	hdr[0] = id;
	hdr[1] = rec->nr;
	hdr[2] = min(ref, U32_MAX);
	hdr[3] = rec->user ? STACKMAP_BIN_USER : 0;

	seq_write(m, hdr, sizeof(hdr));
	for (unsigned int i = 0; i < rec->nr; i++) {
		ip = rec->ips[i];
		if (!rec->user && ip != FTRACE_TRAMPOLINE_MARKER)
			ip = trace_adjust_address(iter->tr, ip);
		seq_write(m, &ip, sizeof(ip));
	}
}

static int stackmap_bin_show(struct seq_file *m, void *v)
{
	struct stackmap_iter *iter = m->private;
	u32 hdr[] = {
		STACKMAP_BIN_MAGIC, STACKMAP_BIN_VERSION, iter->nr_stacks, STACKMAP_BIN_SECTIONS,
	};
	loff_t pos = *(loff_t *)v;

	if (!pos)
		seq_write(m, hdr, sizeof(hdr));
	else if (pos < stackmap_iter_end(iter))
		stackmap_bin_stack(m, iter, pos);
	else
		stackmap_bin_trailer(m, iter);
	return 0;
}

static const char *const stackmap_count_names[STACKMAP_NR_COUNTS] = {
	[STACKMAP_SPLIT]	= "split",
	[STACKMAP_PARTS]	= "parts",
	[STACKMAP_DROP_ENTRIES]	= "drops_entries",
	[STACKMAP_DROP_ARENA]	= "drops_arena",
	[STACKMAP_DROP_PROBES]	= "drops_probes",
	[STACKMAP_DROP_EMPTY]	= "drops_empty",
	[STACKMAP_DROP_PARTS]	= "drops_parts",
	[STACKMAP_DROP_BUFFER]	= "drops_buffer",
};

static int stackmap_stat_show(struct seq_file *m, void *v)
{
	unsigned long counts[STACKMAP_NR_COUNTS] = { }, drops = 0;
	const struct ftrace_stackmap *map;
	struct trace_array *tr = m->private;
	u32 max, gen;
	u64 asked;

	guard(rcu)();
	map = rcu_dereference(tr->stackmap);
	gen = map ? map->gen : READ_ONCE(tr->stackmap_gen);
	for (int i = 0; map && i < STACKMAP_NR_COUNTS; i++)
		counts[i] = ftrace_stackmap_total(map, i);
	for (int i = STACKMAP_DROP_ENTRIES; i < STACKMAP_NR_COUNTS; i++)
		drops += counts[i];
	asked = (u64)counts[STACKMAP_SUCCESSES] + drops;
	max = map ? map->max_entries : 1U << READ_ONCE(ftrace_stackmap_bits);

	seq_printf(m, "entries: %u / %u\n", map ? atomic_read(&map->entries) : 0, max);
	seq_printf(m, "table_size: %u\n", 2 * max);
	seq_printf(m, "successes: %lu\n", counts[STACKMAP_SUCCESSES]);
	seq_printf(m, "drops: %lu\n", drops);
	seq_printf(m, "success_rate: %llu%%\n",
		   asked ? div64_u64((u64)counts[STACKMAP_SUCCESSES] * 100, asked) : 100);
	seq_printf(m, "generation: %u\n", gen & STACKMAP_GEN_MASK);
	seq_printf(m, "memory: %zu\n", map ? ftrace_stackmap_memory(map) : 0);
	for (int i = STACKMAP_SPLIT; i < STACKMAP_NR_COUNTS; i++)
		seq_printf(m, "%s: %lu\n", stackmap_count_names[i], counts[i]);
	seq_printf(m, "rotations: %lu\n", map ? map->rotations : 0);
	seq_printf(m, "recycled: %lu\n", map ? map->recycled : 0);
	seq_printf(m, "recycled_refs: %lu\n", map ? map->recycled_refs : 0);
	seq_printf(m, "kept: %u\n", map ? ftrace_stackmap_nr_kept(map) : 0);
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

static int stackmap_locked_reset(struct trace_array *tr)
{
	guard(mutex)(&trace_types_lock);
	return ftrace_stackmap_reset(tr);
}

static int stackmap_open(struct inode *inode, struct file *file, const struct seq_operations *ops)
{
	struct trace_array *tr = inode->i_private;
	struct stackmap_iter *iter;
	int ret;

	ret = tracing_check_open_get_tr(tr);
	if (ret)
		return ret;

	if (file->f_mode & FMODE_WRITE) {
		ret = -EACCES;
		if (trace_array_is_readonly(tr))
			goto fail;
		ret = file->f_flags & O_TRUNC ? stackmap_locked_reset(tr) : 0;
		if (ret)
			goto fail;
	}

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

static int stackmap_release(struct inode *inode, struct file *file)
{
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
	ret = stackmap_locked_reset(file_inode(file)->i_private);
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

static const struct file_operations stackmap_stat_fops = {
	.open		= stackmap_stat_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= tracing_single_release_tr,
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
