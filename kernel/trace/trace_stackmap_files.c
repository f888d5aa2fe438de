// SPDX-License-Identifier: GPL-2.0
/*
 * The files of the stack map in tracefs. stack_map is here: the stacks as text, and the reset.
 */
#include <linux/cleanup.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "trace_stackmap_files.h"

static void stackmap_show_user_frame(struct seq_file *m, unsigned int i, unsigned long ip)
{
	const char *path = user_word_object(ip) ? user_object_path(ip) : NULL;

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
		ip = rec->ips[i];
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
