// SPDX-License-Identifier: GPL-2.0
/*
 * stack_map_bin in tracefs: the stacks in binary form, for tools, and what is needed to
 * find their symbols later. Documentation/trace/ftrace-stackmap.rst has the format.
 */
#include <linux/buildid.h>
#include <linux/err.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/utsname.h>

#include <kunit/visibility.h>

#include <asm/sections.h>

#include "trace_stackmap_tracefs.h"

/* "FMSB", read as a native word. */
#define STACKMAP_BIN_MAGIC	0x464D5342
#define STACKMAP_BIN_VERSION	2
#define STACKMAP_BIN_ALIGN	8

enum stackmap_bin_section {
	STACKMAP_BIN_TEXT	= 1,	/* u64, address of _text */
	STACKMAP_BIN_BUILD_ID	= 2,	/* build id of the kernel */
	STACKMAP_BIN_RELEASE	= 3,	/* kernel release, not terminated */
	STACKMAP_BIN_SPLIT	= 4,	/* u64, number of stacks that were split */
	STACKMAP_BIN_FILES	= 5,	/* files, see struct user_file_bin */
	STACKMAP_BIN_SECTIONS	= IS_ENABLED(CONFIG_TRACE_USER_FILES) ?
				  STACKMAP_BIN_FILES : STACKMAP_BIN_SPLIT,
};

/* The position of the trailer. The header is at 0, the stacks are between them, files behind it. */
#define STACKMAP_BIN_END	((loff_t)1 << 50)

/**
 * stackmap_bin_flags - the flags of a stack in stack_map_bin
 * @rec: the stack
 *
 * Return: the flags.
 */
VISIBLE_IF_KUNIT u32 stackmap_bin_flags(const struct stackmap_record *rec)
{
	u32 flags = rec->user ? STACKMAP_BIN_USER : 0;

	for (unsigned int i = 0; rec->user && i < rec->nr; i++) {
		if (user_word_file(rec->ips[i]))
			flags |= STACKMAP_BIN_BY_FILE;
	}
	return flags;
}

static void stackmap_bin_section(struct seq_file *m, u32 type, const void *data, u32 len)
{
	static const u8 zeroes[STACKMAP_BIN_ALIGN];
	u32 hdr[] = { type, len };

	seq_write(m, hdr, sizeof(hdr));
	/* The caller writes the rest. */
	if (!data)
		return;
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
	if (IS_ENABLED(CONFIG_TRACE_USER_FILES))
		stackmap_bin_section(m, STACKMAP_BIN_FILES, NULL, iter->files_size);
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
		ip = stackmap_iter_ip(iter, rec, i);
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
	else if (IS_ENABLED(CONFIG_TRACE_USER_FILES) && iter->files)
		user_file_write(m, v, iter->gen->first_id | iter->idx);
	else
		stackmap_bin_stack(m, iter, v);
	return 0;
}

/* The next file from *@pos on, or NULL. */
static const struct stackmap_record *stackmap_bin_file(struct stackmap_iter *iter, loff_t *pos)
{
	loff_t at = *pos - STACKMAP_BIN_END;
	const struct stackmap_record *rec;

	if (!IS_ENABLED(CONFIG_TRACE_USER_FILES))
		return NULL;

	iter->files = true;
	rec = stackmap_next(iter, &at);
	*pos = STACKMAP_BIN_END + at;
	return rec;
}

/*
 * The item at *@pos: the stack @v if there is one, else the trailer, for which the iterator
 * stands, else a file.
 */
static void *stackmap_bin_at(struct seq_file *m, void *v, loff_t *pos)
{
	if (v)
		return v;
	if (*pos > STACKMAP_BIN_END)
		return (void *)stackmap_bin_file(m->private, pos);

	*pos = STACKMAP_BIN_END;
	return m->private;
}

VISIBLE_IF_KUNIT void *stackmap_bin_start(struct seq_file *m, loff_t *pos)
{
	struct stackmap_iter *iter = m->private;
	const struct stackmap_record *file;
	bool first = !*pos;
	void *v = stackmap_seq_start(m, pos);

	if (IS_ERR(v) || !first)
		return stackmap_bin_at(m, v, pos);

	iter->nr_stacks = 0;
	while (stackmap_next(iter, pos)) {
		iter->nr_stacks++;
		++*pos;
	}
	iter->files_size = 0;
	for (*pos = STACKMAP_BIN_END + 1; (file = stackmap_bin_file(iter, pos)); ++*pos)
		iter->files_size += user_file_write(NULL, file, 0);
	iter->files = false;
	iter->split = iter->gens ? stackmap_sum(iter->tr->stackmap, STACKMAP_SPLIT) : 0;
	*pos = 0;
	return SEQ_START_TOKEN;
}

static void *stackmap_bin_next(struct seq_file *m, void *v, loff_t *pos)
{
	return stackmap_bin_at(m, stackmap_seq_next(m, v, pos), pos);
}

static const struct seq_operations stackmap_bin_seq_ops = {
	.start		= stackmap_bin_start,
	.next		= stackmap_bin_next,
	.stop		= stackmap_seq_stop,
	.show		= stackmap_bin_show,
};

static int stackmap_bin_open(struct inode *inode, struct file *file)
{
	return stackmap_open(inode, file, &stackmap_bin_seq_ops);
}

const struct file_operations stackmap_bin_fops = {
	.open		= stackmap_bin_open,
	.read		= seq_read,
	.release	= stackmap_release,
};
