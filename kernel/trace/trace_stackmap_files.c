// SPDX-License-Identifier: GPL-2.0
/*
 * The files of a stack map in tracefs: stack_map (text, and the reset),
 * stack_map_stat (statistics), stack_map_bin (binary).
 *
 * Readers take no lock. They begin with stackmap_latch(), which fixes the set
 * of stacks that they will see; a reset meanwhile ends them with -ESTALE.
 */
#include <linux/buildid.h>
#include <linux/cleanup.h>
#include <linux/math64.h>
#include <linux/minmax.h>
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

enum stackmap_bin_section {
	STACKMAP_BIN_TEXT	= 1,	/* u64, address of _text */
	STACKMAP_BIN_BUILD_ID	= 2,	/* build id of the kernel */
	STACKMAP_BIN_RELEASE	= 3,	/* kernel release, not terminated */
	STACKMAP_BIN_SPLIT	= 4,	/* u64, number of stacks that were split */
};

struct stackmap_bin_header {
	u32			magic;
	u32			version;
	u32			nr_stacks;
	u32			nr_sections;
};

struct stackmap_bin_record {
	u32			stack_id;
	u32			nr;
	u32			ref_count;
	u32			reserved;
};

struct stackmap_bin_section_header {
	u32			type;
	u32			len;
};

static const char *const stackmap_drop_names[] = {
	[STACKMAP_DROP_ENTRIES]	= "entries",
	[STACKMAP_DROP_ARENA]	= "arena",
	[STACKMAP_DROP_PROBES]	= "probes",
	[STACKMAP_DROP_EMPTY]	= "empty",
};

static_assert(ARRAY_SIZE(stackmap_drop_names) == STACKMAP_NR_DROPS);

/**
 * struct stackmap_iter - a reader of stack_map or stack_map_bin
 * @tr: the instance, of which the open file holds a reference
 * @gen: generation of the map that is read
 * @nr_slots: its size, 0 if there was no map
 * @tail: end of the arena when the read began, later stacks are left out
 * @nr_stacks: number of stacks below @tail
 * @map: the map, between start and stop
 *
 * Positions: 0 is the header, 1 to @nr_slots are the slots, then the trailer.
 */
struct stackmap_iter {
	struct trace_array	*tr;
	u32			gen;
	u32			nr_slots;
	u32			tail;
	u32			nr_stacks;
	struct ftrace_stackmap	*map;
};

/* The map that the read began with; NULL if it is gone. */
static struct ftrace_stackmap *stackmap_iter_map(const struct stackmap_iter *iter)
{
	struct ftrace_stackmap *map = rcu_dereference(iter->tr->stackmap);

	return map && map->gen == iter->gen ? map : NULL;
}

static bool stackmap_iter_has(const struct stackmap_iter *iter,
			      const struct ftrace_stackmap *map, u32 idx)
{
	u32 slot = READ_ONCE(map->slots[idx]);

	return slot && stackmap_offset(map, slot) < iter->tail;
}

/*
 * Fix the set of stacks that is going to be read. Every record below the tail
 * is published after the grace period, or never will be.
 */
static int stackmap_latch(struct stackmap_iter *iter)
{
	struct ftrace_stackmap *map;

	iter->nr_stacks = 0;
	iter->nr_slots = 0;

	scoped_guard(rcu) {
		map = rcu_dereference(iter->tr->stackmap);
		if (!map)
			return 0;
		iter->gen = map->gen;
		iter->nr_slots = map->nr_slots;
		iter->tail = atomic_read(&map->tail);
	}

	synchronize_rcu();	/* stackmap_latch:A */

	guard(rcu)();
	map = stackmap_iter_map(iter);
	if (!map)
		return -ESTALE;

	for (u32 idx = 0; idx < map->nr_slots; idx++)
		iter->nr_stacks += stackmap_iter_has(iter, map, idx);
	return 0;
}

/* The next position from @pos on at which there is something to show. */
static void *stackmap_seek(struct stackmap_iter *iter, loff_t *pos)
{
	while (*pos >= 1 && *pos <= iter->nr_slots &&
	       !stackmap_iter_has(iter, iter->map, *pos - 1))
		++*pos;

	return *pos <= iter->nr_slots + 1 ? pos : NULL;
}

static void *stackmap_seq_start(struct seq_file *m, loff_t *pos)
	__acquires(RCU)
{
	struct stackmap_iter *iter = m->private;
	int err = 0;

	if (!*pos)
		err = stackmap_latch(iter);

	rcu_read_lock();
	if (err)
		return ERR_PTR(err);

	iter->map = stackmap_iter_map(iter);
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

static void stackmap_show_frame(struct seq_file *m, struct trace_array *tr,
				unsigned int i, unsigned long ip)
{
	if (ip == FTRACE_TRAMPOLINE_MARKER)
		seq_printf(m, "  [%u] [FTRACE TRAMPOLINE]\n", i);
	else
		seq_printf(m, "  [%u] %pS\n", i, (void *)trace_adjust_address(tr, ip));
}

static int stackmap_text_show(struct seq_file *m, void *v)
{
	const struct stackmap_record *rec;
	struct stackmap_iter *iter = m->private;
	loff_t pos = *(loff_t *)v;
	u32 idx = pos - 1;

	if (pos < 1 || pos > iter->nr_slots)
		return 0;

	rec = stackmap_record(iter->map, idx);
	seq_printf(m, "stack_id %u [ref %lu, depth %u]\n", stackmap_id(iter->map, idx),
		   ftrace_stackmap_ref(iter->map, idx), rec->nr);
	for (unsigned int i = 0; i < rec->nr; i++)
		stackmap_show_frame(m, iter->tr, i, rec->ips[i]);
	seq_putc(m, '\n');
	return 0;
}

static void stackmap_bin_section(struct seq_file *m, u32 type, const void *data, u32 len)
{
	static const u8 zeroes[STACKMAP_BIN_ALIGN];
	struct stackmap_bin_section_header hdr = { .type = type, .len = len };

	seq_write(m, &hdr, sizeof(hdr));
	seq_write(m, data, len);
	seq_write(m, zeroes, ALIGN(len, STACKMAP_BIN_ALIGN) - len);
}

static int stackmap_build_id(u8 *build_id)
{
	return build_id_parse_buf(__start_notes, build_id, __stop_notes - __start_notes);
}

static void stackmap_bin_header(struct seq_file *m, const struct stackmap_iter *iter)
{
	struct stackmap_bin_header hdr = {
		.magic		= STACKMAP_BIN_MAGIC,
		.version	= STACKMAP_BIN_VERSION,
		.nr_stacks	= iter->nr_stacks,
		.nr_sections	= 3,
	};
	u8 build_id[BUILD_ID_SIZE_MAX];

	hdr.nr_sections += !stackmap_build_id(build_id);
	seq_write(m, &hdr, sizeof(hdr));
}

static void stackmap_bin_trailer(struct seq_file *m, const struct stackmap_iter *iter)
{
	u64 split = iter->nr_slots ? ftrace_stackmap_nr_split(iter->map) : 0;
	const char *release = init_utsname()->release;
	u64 text = (unsigned long)_text;
	u8 build_id[BUILD_ID_SIZE_MAX];

	stackmap_bin_section(m, STACKMAP_BIN_TEXT, &text, sizeof(text));
	if (!stackmap_build_id(build_id))
		stackmap_bin_section(m, STACKMAP_BIN_BUILD_ID, build_id, BUILD_ID_SIZE_MAX);
	stackmap_bin_section(m, STACKMAP_BIN_RELEASE, release, strlen(release));
	stackmap_bin_section(m, STACKMAP_BIN_SPLIT, &split, sizeof(split));
}

static void stackmap_bin_stack(struct seq_file *m, const struct stackmap_iter *iter, u32 idx)
{
	const struct stackmap_record *rec = stackmap_record(iter->map, idx);
	struct stackmap_bin_record bin = {
		.stack_id	= stackmap_id(iter->map, idx),
		.nr		= rec->nr,
		.ref_count	= min(ftrace_stackmap_ref(iter->map, idx), U32_MAX),
	};
	u64 ip;

	seq_write(m, &bin, sizeof(bin));
	for (unsigned int i = 0; i < rec->nr; i++) {
		ip = rec->ips[i];
		if (ip != FTRACE_TRAMPOLINE_MARKER)
			ip = trace_adjust_address(iter->tr, ip);
		seq_write(m, &ip, sizeof(ip));
	}
}

static int stackmap_bin_show(struct seq_file *m, void *v)
{
	struct stackmap_iter *iter = m->private;
	loff_t pos = *(loff_t *)v;

	if (!pos)
		stackmap_bin_header(m, iter);
	else if (pos <= iter->nr_slots)
		stackmap_bin_stack(m, iter, pos - 1);
	else
		stackmap_bin_trailer(m, iter);
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

	iter = __seq_open_private(file, ops, sizeof(*iter));
	if (!iter) {
		trace_array_put(tr);
		return -ENOMEM;
	}
	iter->tr = tr;
	return 0;
}

static int stackmap_text_open(struct inode *inode, struct file *file)
{
	return stackmap_open(inode, file, &stackmap_text_seq_ops);
}

/* To seek is to begin again, with other stacks: what was read would not fit any more. */
static int stackmap_bin_open(struct inode *inode, struct file *file)
{
	int ret = stackmap_open(inode, file, &stackmap_bin_seq_ops);

	return ret ?: nonseekable_open(inode, file);
}

static int stackmap_release(struct inode *inode, struct file *file)
{
	trace_array_put(inode->i_private);
	return seq_release_private(inode, file);
}

static ssize_t stackmap_write(struct file *file, const char __user *ubuf, size_t cnt, loff_t *ppos)
{
	struct trace_array *tr = file_inode(file)->i_private;
	char buf[sizeof("reset\n")];
	int ret;

	if (cnt >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, ubuf, cnt))
		return -EFAULT;
	buf[cnt] = '\0';
	if (strlen(buf) != cnt || (!sysfs_streq(buf, "0") && !sysfs_streq(buf, "reset")))
		return -EINVAL;

	scoped_guard(mutex, &trace_types_lock)
		ret = ftrace_stackmap_reset(tr);
	if (ret)
		return ret;

	*ppos += cnt;
	return cnt;
}

static const struct file_operations stackmap_text_fops = {
	.open		= stackmap_text_open,
	.read		= seq_read,
	.write		= stackmap_write,
	.llseek		= seq_lseek,
	.release	= stackmap_release,
};

static const struct file_operations stackmap_bin_fops = {
	.open		= stackmap_bin_open,
	.read		= seq_read,
	.release	= stackmap_release,
};

struct stackmap_stat {
	unsigned int		entries;
	unsigned int		max_entries;
	unsigned int		nr_slots;
	unsigned int		gen;
	unsigned long		successes;
	unsigned long		split;
	unsigned long		parts;
	unsigned long		drops[STACKMAP_NR_DROPS];
	size_t			memory;
};

static void stackmap_read_stat(struct trace_array *tr, struct stackmap_stat *st)
{
	unsigned int bits = READ_ONCE(ftrace_stackmap_bits);
	struct ftrace_stackmap *map;

	guard(rcu)();
	map = rcu_dereference(tr->stackmap);
	if (!map) {
		st->max_entries = 1U << bits;
		st->nr_slots = stackmap_nr_slots(bits);
		st->gen = READ_ONCE(tr->stackmap_gen);
		return;
	}

	st->entries = atomic_read(&map->entries);
	st->max_entries = map->max_entries;
	st->nr_slots = map->nr_slots;
	st->gen = map->gen;
	st->successes = ftrace_stackmap_successes(map);
	st->split = ftrace_stackmap_nr_split(map);
	st->parts = ftrace_stackmap_nr_parts(map);
	for (int i = 0; i < STACKMAP_NR_DROPS; i++)
		st->drops[i] = ftrace_stackmap_drops(map, i);
	st->memory = ftrace_stackmap_memory(map);
}

static int stackmap_stat_show(struct seq_file *m, void *v)
{
	struct stackmap_stat st = { };
	unsigned long drops = 0;
	u64 asked;

	stackmap_read_stat(m->private, &st);

	for (int i = 0; i < STACKMAP_NR_DROPS; i++)
		drops += st.drops[i];
	asked = (u64)st.successes + drops;

	seq_printf(m, "entries: %u / %u\n", st.entries, st.max_entries);
	seq_printf(m, "table_size: %u\n", st.nr_slots);
	seq_printf(m, "successes: %lu\n", st.successes);
	seq_printf(m, "drops: %lu\n", drops);
	seq_printf(m, "success_rate: %llu%%\n",
		   asked ? div64_u64((u64)st.successes * 100, asked) : 100);
	seq_printf(m, "split: %lu\n", st.split);
	seq_printf(m, "parts: %lu\n", st.parts);
	seq_printf(m, "generation: %u\n", st.gen & STACKMAP_GEN_MASK);
	seq_printf(m, "memory: %zu\n", st.memory);
	for (int i = 0; i < STACKMAP_NR_DROPS; i++)
		seq_printf(m, "drops_%s: %lu\n", stackmap_drop_names[i], st.drops[i]);
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

static int stackmap_stat_release(struct inode *inode, struct file *file)
{
	trace_array_put(inode->i_private);
	return single_release(inode, file);
}

static const struct file_operations stackmap_stat_fops = {
	.open		= stackmap_stat_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= stackmap_stat_release,
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
	trace_create_file("stack_map", TRACE_MODE_WRITE, dir, tr, &stackmap_text_fops);
	trace_create_file("stack_map_stat", TRACE_MODE_READ, dir, tr, &stackmap_stat_fops);
	trace_create_file("stack_map_bin", TRACE_MODE_READ, dir, tr, &stackmap_bin_fops);
}
