// SPDX-License-Identifier: GPL-2.0
/*
 * User stacks that are the same for every process: frames in mapped files are stored as
 * the number of the file and the offset in it.
 *
 * A file is a record of the map that has the stack: what tells it, then its build id and
 * its path. It holds no reference to the file.
 *
 * Stacks are translated on the way back to user space, and then recorded, all under RCU,
 * which keeps the map. Nothing here waits. The build id is read from pages that are in
 * memory, under the lock of the mapping. If they are not there, the next stacks ask again,
 * up to USER_FILE_ASKS times.
 *
 * Memory ordering:
 *
 *   user_file_ask:A     writes the build id, then makes it known by a release of its size.
 *   user_file_id_size:A acquires the size, then the build id is read. Pairs with
 *                       user_file_ask:A.
 *   user_file_define:A  commits a definition, then marks the file by a release.
 *   user_file_define:B  acquires the mark, then the caller writes an event that refers to
 *                       the file. Pairs with user_file_define:A.
 */
#include <linux/buildid.h>
#include <linux/dcache.h>
#include <linux/elf.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/mmap_lock.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include <asm/syscall.h>
#ifdef CONFIG_X86
#include <asm/vdso.h>
#endif

#include "trace_output.h"
#include "trace_stackmap_internal.h"

/* How often a file is asked for its build id. The page may come into memory later. */
#define USER_FILE_ASKS	16

/* Added to the number of asks when the build id is known. */
#define USER_FILE_KNOWN	0x10000

/*
 * Limits of a stack, as a program chooses its files: build ids to look for, and characters in the
 * paths of files to add. A file counts as USER_FILE_COST at least.
 */
#define USER_STACK_ASKS		4
#define USER_STACK_PATHS	4096
#define USER_FILE_COST		256

/* Room for a path. Longer ones would let a few files fill a map. */
#define USER_FILE_PATH	1536

/* Zeroes behind a path, up to the end of its record at least. */
#define USER_FILE_PAD	(2 * sizeof(long))

/**
 * struct user_file_key - what tells a file
 * @inode: the inode (on overlayfs that of the layer), or the image of a vDSO; not dereferenced
 * @ino: number of the inode
 * @generation: of the inode
 * @dev: of the file system, as one that is mounted later may have an equal inode
 * @size: of the file
 * @ctime: time of the last change of the file or the inode, which only a FUSE server can set
 */
struct user_file_key {
	const void	*inode;
	u64		ino;
	u32		generation;
	u32		dev;
	u64		size;
	s64		ctime;
};

/**
 * struct user_file - a file with code: a record has it where a stack has its frames
 * @key: tells the file
 * @asked: how often it was asked for its build id
 * @check: see user_file_hash()
 * @id_size: size of the build id, 0 if it is not known
 * @id: the build id
 * @deleted: its frames stay addresses as long as it has no build id
 * @path: as /proc/PID/maps shows it, padded with zeroes
 */
struct user_file {
	struct user_file_key	key;
	atomic_t		asked;
	u32			check;
	u32			id_size;
	u8			id[BUILD_ID_SIZE_MAX];
	bool			deleted;
	char			path[];
};

/* The words that tell a file. */
#define USER_FILE_KEY	(sizeof(struct user_file_key) / sizeof(long))

static_assert(USER_WORD_NR == STACKMAP_SLOT_MASK);

/**
 * struct user_mapping - an executable mapping of the current process
 * @tr: the instance
 * @map: its map
 * @first: the lowest return address to it, behind a call
 * @size: its size, 0 if there is none
 * @add: is added to an address to make a word, 0 if it stays an address
 * @asks: how many build ids the stack has looked for
 * @paths: characters in the paths of the files it has added
 */
struct user_mapping {
	struct trace_array	*tr;
	struct ftrace_stackmap	*map;
	unsigned long		first;
	unsigned long		size;
	unsigned long		add;
	unsigned int		asks;
	unsigned int		paths;
};

static struct user_file *user_file_of(const struct stackmap_record *rec)
{
	return (struct user_file *)rec->ips;
}

/*
 * What proves a file that survived a reboot: a hash of all that follows the size of its build id,
 * and of what tells it. @nr is the number of words of its record. Other maps need no proof.
 */
static u32 user_file_hash(const struct ftrace_stackmap *map, const struct user_file *file,
			  unsigned int nr, u32 id_size)
{
	if (!map->persistent)
		return 0;

	return hsiphash(file->id, nr * sizeof(long) - offsetof(struct user_file, id),
			&map->hash_key) +
	       hsiphash(&file->key, sizeof(file->key), &map->hash_key) + id_size;
}

static u32 user_file_id_size(const struct user_file *file)
{
	/* user_file_id_size:A, pairs with user_file_ask:A */
	return smp_load_acquire(&file->id_size);
}

#ifdef CONFIG_X86
/* The image of the vDSO, if that is what is mapped. It has no file, but operations. */
static const void *user_vdso(struct vm_area_struct *vma)
{
	const mm_context_t *context = &vma->vm_mm->context;

	return vma->vm_ops && vma->vm_start == (unsigned long)context->vdso ?
	       context->vdso_image->data : NULL;
}
#else
static inline const void *user_vdso(struct vm_area_struct *vma) { return NULL; }
#endif

/* The image is the kernel's own, so its headers are right. */
static int user_vdso_build_id(const void *image, u8 *id)
{
	const struct elf64_hdr *ehdr = image;
	const struct elf64_phdr *phdr = image + ehdr->e_phoff;

	for (int i = 0; ehdr->e_ident[EI_CLASS] == ELFCLASS64 && i < ehdr->e_phnum; i++) {
		if (phdr[i].p_type == PT_NOTE)
			return build_id_parse_buf(image + phdr[i].p_offset, id, phdr[i].p_filesz);
	}
	return -EINVAL;
}

/* Read the build id of what is mapped at @vma. Returns -EFAULT if its pages are not there. */
static int user_build_id(struct vm_area_struct *vma, const void *image, u8 *id, u32 *size)
{
	*size = BUILD_ID_SIZE_MAX;
	return vma->vm_file ? build_id_parse_nofault(vma, id, size) : user_vdso_build_id(image, id);
}

/* Look for the build id of a file, which is mapped at @vma. */
static noinline void user_file_ask(const struct ftrace_stackmap *map,
				   struct stackmap_record *rec, struct vm_area_struct *vma)
{
	struct user_file *file = user_file_of(rec);
	u8 id[BUILD_ID_SIZE_MAX];
	u32 size;

	atomic_inc(&file->asked);
	if (user_build_id(vma, file->key.inode, id, &size))
		return;
	/* Of several that have found one, the first one writes it. */
	if (atomic_fetch_add(USER_FILE_KNOWN, &file->asked) >= USER_FILE_KNOWN)
		return;
	memcpy(file->id, id, sizeof(id));
	file->check = user_file_hash(map, file, rec->nr, size);
	/* user_file_ask:A, pairs with user_file_id_size:A */
	smp_store_release(&file->id_size, size);
}

/*
 * The path of a file, as /proc/PID/maps shows it outside of a chroot, or "?" if there is no room.
 * Returns its length.
 */
static size_t user_file_name(const struct file *file, char *buf)
{
	const struct path *path = file ? file_user_path(file) : NULL;
	static const char deleted[] = " (deleted)";
	size_t room = USER_FILE_PATH;
	char *name, *end = NULL;

	if (!path)
		return strscpy(buf, "[vdso]", USER_FILE_PATH);
	if (d_unlinked(path->dentry))
		room -= strlen(deleted);
	name = d_absolute_path(path, buf, room);
	if (!IS_ERR(name) && room < USER_FILE_PATH)
		memcpy(buf + room - 1, deleted, sizeof(deleted));
	/* Memory has a name but no path. */
	if (IS_ERR(name) && PTR_ERR(name) != -ENAMETOOLONG)
		name = d_path(path, buf, USER_FILE_PATH);
	if (!IS_ERR(name))
		end = seq_mangle_path(buf, name, "\n");
	return end ? end - buf : strscpy(buf, "?", USER_FILE_PATH);
}

/* Store a file that is not in the map. Does not wait for memory: the mapping is locked. */
static noinline void user_file_store(struct user_mapping *m, struct stackmap_key *key,
				     const struct vm_area_struct *vma)
{
	struct user_file *file __free(kfree) = NULL;
	size_t len;

	file = kzalloc(struct_size(file, path, USER_FILE_PATH + USER_FILE_PAD), GFP_NOWAIT);
	if (!file)
		return;

	memcpy(&file->key, key->ips, sizeof(file->key));
	/* It may be the memory of a JIT. */
	file->deleted = vma->vm_file && !file_inode(vma->vm_file)->i_nlink;
	len = user_file_name(vma->vm_file, file->path);
	/* One that has no room was walked as far as there is room. */
	m->paths += len > 1 ? max(len, USER_FILE_COST) : USER_FILE_PATH;
	memset(file->path + len, 0, USER_FILE_PAD);
	key->ips = (unsigned long *)file;
	key->more = DIV_ROUND_UP(struct_size(file, path, len + 1), sizeof(long)) - key->nr;
	file->check = user_file_hash(m->map, file, key->nr + key->more, 0);
	stackmap_insert(m->map, key);
}

/* Fill in the key of the file at @vma. Returns false if frames there stay addresses. */
static bool user_file_key(struct vm_area_struct *vma, struct user_file_key *key)
{
	struct inode *inode;

	if (!vma->vm_file) {
		*key = (struct user_file_key) { .inode = user_vdso(vma) };
		return key->inode;
	}

	/* That of the pages: two overlays of a file are one file, with the path of the first. */
	inode = file_inode(vma->vm_file);
	key->inode = inode;
	key->ino = inode->i_ino;
	key->generation = inode->i_generation;
	key->dev = inode->i_sb->s_dev;
	key->size = i_size_read(inode);
	key->ctime = inode_get_ctime_sec(inode) * NSEC_PER_SEC + inode_get_ctime_nsec(inode);
	return S_ISREG(inode->i_mode);
}

/* The difference between an address at @vma and its word, 0 if it stays an address. */
static unsigned long user_file_add(struct user_mapping *m, struct vm_area_struct *vma)
{
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct user_file_key file_key __uninitialized;
	struct stackmap_key key __uninitialized;
	struct stackmap_record *rec;
	struct user_file *file;
	int ret;

	if (offset + vma->vm_end - vma->vm_start > USER_WORD_OFFSET ||
	    !user_file_key(vma, &file_key))
		return 0;

	ret = stackmap_find_file(m->map, (unsigned long *)&file_key, USER_FILE_KEY, &key);
	if (key.idx < 0) {
		if (!ret && m->paths < USER_STACK_PATHS)
			user_file_store(m, &key, vma);
		stackmap_request_replace(m->tr->stackmap, m->map);
	}
	if (key.idx < 0)
		return 0;

	rec = stackmap_record(m->map, key.idx);
	file = user_file_of(rec);
	if (!user_file_id_size(file) && atomic_read(&file->asked) < USER_FILE_ASKS &&
	    m->asks++ < USER_STACK_ASKS)
		user_file_ask(m->map, rec, vma);
	if (file->deleted && !user_file_id_size(file))
		return 0;
	return BIT_ULL(63) + ((u64)key.idx << USER_WORD_OFFSET_BITS) + offset - vma->vm_start;
}

/* Find the mapping of an address of the current process. Returns false if it is being changed. */
static bool user_mapping_find(struct user_mapping *m, unsigned long addr)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma = lock_vma_under_rcu(mm, addr);
	bool locked = false;

	if (!vma && mtree_load(&mm->mm_mt, addr)) {
		/* A program may hold it for long. The removal of instances waits for this. */
		locked = mmap_read_trylock(mm);
		if (!locked)
			return false;
		vma = vma_lookup(mm, addr);
	}

	m->size = 0;
	m->add = 0;
	if (vma && vma->vm_flags & VM_EXEC) {
		m->first = vma->vm_start + 1;
		m->size = vma->vm_end - vma->vm_start;
		m->add = user_file_add(m, vma);
	}
	if (locked)
		mmap_read_unlock(mm);
	else if (vma)
		vma_end_read(vma);
	return true;
}

/* An interrupt has hit: the instruction is not a part of the stack. */
static void user_stack_split(struct stackmap_stack *stack, unsigned long *words)
{
	stack->user->type = TRACE_USER_UNWIND_STACK_SPLIT;
	stack->user->size = sizeof(struct user_unwind_stack_split_entry);
	stack->user->ip = words[0];
	if (stack->nr > 1) {
		stack->ips++;
		stack->nr--;
	} else {
		/* A map holds no empty stacks, but 0 ends a stack. */
		words[0] = 0;
	}
}

/**
 * user_files_translate - make a user stack the same in every process
 * @tr: the instance
 * @stack: the stack of the current task, whose frames are set to @words
 * @words: room for as many words
 *
 * The stack ends at a 0 and at the first frame outside of executable memory, but the innermost
 * one is kept as an address. The instruction that an interrupt has hit is not a part of it.
 * Without a map, or with a mapping that is just being changed, it gets no frames, so that no map
 * takes it.
 *
 * To be called on the way back to user space, under RCU until ftrace_stackmap_record_stack()
 * has returned.
 */
void user_files_translate(struct trace_array *tr, struct stackmap_stack *stack,
			  unsigned long *words)
{
	struct user_mapping m = { .tr = tr, .map = stackmap_active(tr) };
	unsigned int i = 0, from, nr = stack->nr;
	const unsigned long *ips = stack->ips;

	stack->nr = 0;
	if (!m.map)
		return;

	while (i < nr && ips[i]) {
		/* A return address may be behind the end of its function, and of the mapping. */
		if (!user_mapping_find(&m, ips[i] - !!i))
			return;
		/* Code without frame pointers leads to data, and a program can forge words. */
		stack->user->cut = !m.size && (i || user_word_by_file(ips[i]));
		if (stack->user->cut)
			break;
		from = i;
		do {
			words[i] = ips[i] + m.add;
		} while (++i < nr && ips[i] - m.first < m.size);
		stack->user->addresses += m.add ? 0 : i - from;
	}
	/* What follows is no frame. */
	if (i < nr)
		stack->user->deep = false;
	stack->nr = i;
	stack->ips = words;
	stack->user->map = m.map;
	if (stack->nr && syscall_get_nr(current, task_pt_regs(current)) == -1)
		user_stack_split(stack, words);
}

/**
 * user_file_intact - whether a file is as it was stored
 * @map: its map
 * @rec: its record, as a reboot has left it
 *
 * Return: the number of words that tell it, which the caller has to check, or 0.
 */
unsigned int user_file_intact(const struct ftrace_stackmap *map, const struct stackmap_record *rec)
{
	const struct user_file *file = user_file_of(rec);

	/* A zero ends the path, whatever else there is. */
	if (rec->nr * sizeof(long) <= offsetof(struct user_file, path) ||
	    ((char *)&rec->ips[rec->nr])[-1] || file->id_size > BUILD_ID_SIZE_MAX)
		return 0;
	return file->check == user_file_hash(map, file, rec->nr, file->id_size) ? USER_FILE_KEY : 0;
}

/**
 * user_file_path - the path of a file
 * @rec: its record, or NULL
 *
 * Under RCU or with a reference to the generation.
 * Return: the path, or NULL if there is no such file.
 */
const char *user_file_path(const struct stackmap_record *rec)
{
	return rec && rec->file ? user_file_of(rec)->path : NULL;
}

/* Word number @i of a stack. The instruction that was hit is ahead of the frames, at -1. */
static unsigned long user_word_at(const struct stackmap_stack *stack, int i)
{
	return i < 0 ? stack->user->ip : stack->ips[i];
}

/**
 * user_files_use - keep the files of a user stack as long as the stack
 * @stack: the stack
 * @idx: index of its slot, negative if it is not in the map
 *
 * Once the stack's record has the bit of this CPU, its files have it, too.
 *
 * Preemption is off.
 */
void user_files_use(const struct stackmap_stack *stack, int idx)
{
	struct ftrace_stackmap *map = stack->user->map;
	bool used = idx >= 0 && stackmap_has_cpu(stackmap_record(map, idx));
	u32 nr, last = 0;

	for (int i = -1; i < (used ? 0 : (int)stack->nr); i++) {
		nr = user_word_file(user_word_at(stack, i));
		if (nr && nr != last)
			stackmap_set_cpu(map, stackmap_record(map, nr));
		last = nr;
	}
}

/* Define a file, if it is not defined yet. Returns false if the buffer does not take that. */
static bool user_file_define(struct trace_buffer *buffer, unsigned int trace_ctx,
			     const struct ftrace_stackmap *map, u32 nr, u32 define)
{
	struct stackmap_record *rec = stackmap_record(map, nr);
	const struct user_file *file = user_file_of(rec);
	u32 size, id_size = user_file_id_size(file);
	struct user_file_def_entry *entry;
	struct ring_buffer_event *event;

	/* Not the mark of a definition without the build id. */
	define |= !!id_size;
	/* user_file_define:B, pairs with user_file_define:A */
	if (smp_load_acquire(&rec->defined) == define)
		return true;

	size = strlen(file->path) + 1;
	event = trace_buffer_lock_reserve(buffer, TRACE_USER_FILE_DEF,
					  offsetof(typeof(*entry), path) + size, trace_ctx);
	if (!event)
		return false;

	entry = ring_buffer_event_data(event);
	entry->file_id = stackmap_id(map, nr);
	entry->id_size = id_size;
	memset(entry->build_id, 0, sizeof(entry->build_id));
	memcpy(entry->build_id, file->id, id_size);
	memcpy(entry->path, file->path, size);
	trace_buffer_unlock_commit_nostack(buffer, event);
	/* user_file_define:A, pairs with user_file_define:B */
	smp_store_release(&rec->defined, define);
	return true;
}

/**
 * user_files_define - define the files of a user stack in the ring buffer
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 * @stack: the stack, whose map stays, under RCU
 * @define: the value of tr->stackmap_define, which is even
 *
 * To be called at each use: a file is defined again when its build id is known.
 *
 * Preemption is off.
 * Return: false if the buffer does not take a definition, without which the stack is
 * of no use.
 */
bool user_files_define(struct trace_buffer *buffer, unsigned int trace_ctx,
		       const struct stackmap_stack *stack, u32 define)
{
	u32 nr, last = 0;

	for (int i = -1; i < (int)stack->nr; i++) {
		nr = user_word_file(user_word_at(stack, i));
		if (nr && nr != last &&
		    !user_file_define(buffer, trace_ctx, stack->user->map, nr, define))
			return false;
		last = nr;
	}
	return true;
}

static enum print_line_t user_file_def_print(struct trace_iterator *iter, int flags,
					     struct trace_event *event)
{
	struct user_file_def_entry *def = (void *)iter->ent;

	trace_seq_printf(&iter->seq, "<user_file_def %d build id %*phN %s>\n", def->file_id,
			 min(def->id_size, BUILD_ID_SIZE_MAX), def->build_id, def->path);
	return trace_handle_return(&iter->seq);
}

static struct trace_event_functions user_file_def_funcs = {
	.trace		= user_file_def_print,
};

static struct trace_event user_file_def_event = {
	.type		= TRACE_USER_FILE_DEF,
	.funcs		= &user_file_def_funcs,
};

static int __init user_file_init_event(void)
{
	WARN_ON_ONCE(!register_trace_event(&user_file_def_event));
	return 0;
}
early_initcall(user_file_init_event);

/**
 * user_file_write - write a file for stack_map_bin
 * @m: where to, or NULL
 * @rec: the record of the file
 * @file_id: its id
 *
 * With a reference to the generation.
 * Return: how many bytes it takes.
 */
size_t user_file_write(struct seq_file *m, const struct stackmap_record *rec, u32 file_id)
{
	const struct user_file *file = user_file_of(rec);
	struct user_file_bin bin = {
		.file_id	= file_id,
		.id_size	= min(user_file_id_size(file), BUILD_ID_SIZE_MAX),
		.path_size	= strlen(file->path),
	};
	size_t size = ALIGN(bin.path_size, 8);

	memcpy(bin.id, file->id, bin.id_size);
	if (m) {
		seq_write(m, &bin, sizeof(bin));
		seq_write(m, file->path, size);
	}
	return sizeof(bin) + size;
}
