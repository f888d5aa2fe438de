// SPDX-License-Identifier: GPL-2.0
/*
 * User stacks that are the same for every process: frames in mapped files are stored
 * as the number of the file (an object) and the offset in it.
 *
 * An object is a number, the build id and the path. A table of objects belongs to one
 * or more generations of a map, each of which has a reference, and only grows. It holds
 * no reference to a file.
 *
 * Stacks are translated on the way back to user space, and then recorded, all under RCU,
 * which keeps the map and its table. Nothing here waits. The build id is read from pages
 * that are in memory, under the lock of the mapping. If they are not there, the next stack
 * asks again.
 *
 * A number is used again only when its table is gone and all others were used.
 *
 * Memory ordering:
 *
 *   user_object_ask:A     writes the build id, then makes it known by a release of its
 *                         size.
 *   user_object_id_size:A acquires the size, then the build id is read. Pairs with
 *                         user_object_ask:A.
 *   user_object_define:A  commits a definition, then marks the object by a release.
 *   user_object_define:B  acquires the mark, then the caller writes an event that refers
 *                         to the object. Pairs with user_object_define:A.
 */
#include <linux/buildid.h>
#include <linux/dcache.h>
#include <linux/elf.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/init.h>
#include <linux/mmap_lock.h>
#include <linux/random.h>
#include <linux/refcount.h>
#include <linux/seq_file.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include <asm/syscall.h>
#ifdef CONFIG_X86
#include <asm/vdso.h>
#endif

#include "trace_output.h"
#include "trace_stackmap.h"

/* A table whose objects take as much is full. */
#define USER_OBJECTS_SIZE	(8U << 20)

#define USER_OBJECT_HASH_BITS	10

/* Objects of one inode. A program may change its file again and again. */
#define USER_OBJECT_VERSIONS	16

/* A file without a build id is asked twice: the page with its notes may have been missing. */
#define USER_OBJECT_ASK		2

/* A stack looks for so many build ids at most. A file can make one take a millisecond. */
#define USER_OBJECT_READS	16

/* Room for a path. Longer ones would let a few files fill a table. */
#define USER_OBJECT_PATH	1536

/**
 * struct user_object - a file with code
 * @node: in the list of its inode
 * @key: tells the inode
 * @key.inode: the inode (on overlayfs that of the layer), or the image of a vDSO; not dereferenced
 * @key.ino: number of the inode
 * @key.generation: of the inode
 * @key.dev: of the file system, as one that is mounted later may have an equal inode
 * @size: of the file
 * @ctime: time of the last change of the file or the inode, which only a FUSE server can set
 * @nr: the number in words
 * @defined: marks of its definitions without and with build id, or odd
 * @versions: objects that the inode had before
 * @none: how often it had no build id
 * @id_size: size of the build id, 0 if it is not known
 * @id: the build id, padded with zeroes to a multiple of 8
 * @path: as /proc/PID/maps shows it, padded, too
 */
struct user_object {
	struct hlist_node	node;
	struct {
		const void	*inode;
		u64		ino;
		u32		generation;
		u32		dev;
	} key;
	u64			size;
	s64			ctime;
	u32			nr;
	u32			defined[2];
	u8			versions;
	u8			none;
	u8			id_size;
	u8			id[ALIGN(BUILD_ID_SIZE_MAX, 8)];
	char			path[];
};

/* A table of objects. They stay as long as the table, and are found under RCU. */
struct user_objects {
	refcount_t		ref;
	spinlock_t		lock;		/* of all below, to change it */
	u32			nr;
	size_t			size;		/* bytes */
	char			path[USER_OBJECT_PATH];	/* of the object that is being made */
	hsiphash_key_t		hash_key;
	DECLARE_HASHTABLE(by_inode, USER_OBJECT_HASH_BITS);
};

/* The objects of all tables, and the next number. */
static DEFINE_XARRAY_ALLOC1(user_objects_by_nr);
static u32 user_object_next;

/* The number of objects is bounded by their memory. */
static_assert(USER_OBJECTS_SIZE / sizeof(struct user_object) < USER_WORD_NR);

/**
 * struct user_mapping - an executable mapping of the current process
 * @first: the lowest return address to it, behind a call
 * @size: its size, 0 if there is none
 * @add: makes a word of an address, 0 if it stays an address
 * @reads: how many build ids the stack has looked for
 */
struct user_mapping {
	unsigned long		first;
	unsigned long		size;
	unsigned long		add;
	unsigned int		reads;
};

/**
 * user_objects_half_full - whether the next generation of a map has another table
 * @objects: the table, or NULL
 *
 * Return: true if the map should be replaced.
 */
bool user_objects_half_full(const struct user_objects *objects)
{
	return objects && READ_ONCE(objects->size) >= USER_OBJECTS_SIZE / 2;
}

/**
 * user_objects_hold - take another reference to a table of objects
 * @objects: the table, or NULL
 *
 * Return: @objects.
 */
struct user_objects *user_objects_hold(struct user_objects *objects)
{
	if (objects)
		refcount_inc(&objects->ref);
	return objects;
}

/**
 * user_objects_next - the table of objects for the next generation of a map
 * @objects: that of the last generation, or NULL
 *
 * Return: the same table with another reference, or a new one if it is half full, or NULL
 * without memory for that.
 */
struct user_objects *user_objects_next(struct user_objects *objects)
{
	struct user_objects *next;

	if (objects && !user_objects_half_full(objects))
		return user_objects_hold(objects);

	next = kvzalloc_obj(*next);
	if (next) {
		refcount_set(&next->ref, 1);
		spin_lock_init(&next->lock);
		get_random_bytes(&next->hash_key, sizeof(next->hash_key));
	}
	return next;
}

/**
 * user_objects_put - give back a reference to a table of objects
 * @objects: the table, or NULL
 *
 * If it is the last one, nobody reads the table under RCU.
 */
void user_objects_put(struct user_objects *objects)
{
	struct user_object *object;
	struct hlist_node *next;
	int i;

	if (!objects || !refcount_dec_and_test(&objects->ref))
		return;

	hash_for_each_safe(objects->by_inode, i, next, object, node) {
		xa_erase(&user_objects_by_nr, object->nr);
		kfree(object);
		cond_resched();
	}
	kvfree(objects);
}

static u32 user_object_hash(const struct user_objects *objects, const struct user_object *object)
{
	return hsiphash(&object->key, sizeof(object->key), &objects->hash_key);
}

/*
 * Find the object that is the same file as @like. Where only ctime differs, the build id
 * tells that. If there is none, sets @like->versions.
 */
static struct user_object *user_object_find(struct user_objects *objects, struct user_object *like)
{
	struct user_object *object;

	like->versions = 0;
	hash_for_each_possible_rcu(objects->by_inode, object, node,
				   user_object_hash(objects, like), true) {
		if (memcmp(&object->key, &like->key, sizeof(like->key)))
			continue;
		if (object->size == like->size &&
		    (READ_ONCE(object->ctime) == like->ctime ||
		     (like->id_size && like->id_size == object->id_size &&
		      !memcmp(like->id, object->id, sizeof(like->id)))))
			return object;
		like->versions++;
	}
	return NULL;
}

static u32 user_object_id_size(const struct user_object *object)
{
	/* user_object_id_size:A, pairs with user_object_ask:A */
	return smp_load_acquire(&object->id_size);
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

/* Look for the build id of an object in a table, which is mapped at @vma. */
static noinline void user_object_ask(struct user_objects *objects, struct user_object *object,
				     struct vm_area_struct *vma)
{
	u8 id[BUILD_ID_SIZE_MAX];
	u32 size;
	int err;

	err = user_build_id(vma, object->key.inode, id, &size);
	if (err == -EFAULT)
		return;

	guard(spinlock)(&objects->lock);
	if (err) {
		WRITE_ONCE(object->none, object->none + 1);
	} else if (!object->id_size) {
		memcpy(object->id, id, sizeof(id));
		/* user_object_ask:A, pairs with user_object_id_size:A */
		smp_store_release(&object->id_size, size);
	}
}

/* The path of a file, as /proc/PID/maps shows it outside of a chroot. Returns its length. */
static size_t user_object_name(const struct file *file, char *buf)
{
	const struct path *path = file ? file_user_path(file) : NULL;
	char *name = ERR_PTR(-ENOENT), *end = NULL;

	if (!path)
		return strscpy(buf, "[vdso]", USER_OBJECT_PATH);
	if (!d_unlinked(path->dentry))
		name = d_absolute_path(path, buf, USER_OBJECT_PATH);
	if (IS_ERR(name))
		name = d_path(path, buf, USER_OBJECT_PATH);
	if (!IS_ERR(name))
		end = seq_mangle_path(buf, name, "\n");
	return end ? end - buf : strscpy(buf, "?", USER_OBJECT_PATH);
}

/*
 * Make an object of @like, a file that has none. Does not wait for memory, under the lock
 * of the mapping. Returns NULL if frames there stay addresses.
 */
static noinline struct user_object *user_object_new(struct user_objects *objects,
						    struct user_object *like,
						    struct vm_area_struct *vma)
{
	struct user_object *new __free(kfree) = NULL, *object;
	size_t len, size;
	u32 id_size;
	int err;

	/* Nobody else sees it yet. */
	err = user_build_id(vma, like->key.inode, like->id, &id_size);
	like->id_size = err ? 0 : id_size;
	like->none = err && err != -EFAULT;
	/* A deleted file may be the memory of a JIT, unless it has a build id. */
	if (!like->id_size && vma->vm_file && !file_inode(vma->vm_file)->i_nlink)
		return NULL;

	guard(spinlock)(&objects->lock);
	object = user_object_find(objects, like);
	if (object) {
		WRITE_ONCE(object->ctime, like->ctime);
		return object;
	}

	len = user_object_name(vma->vm_file, objects->path);
	size = struct_size(new, path, ALIGN(len + 1, 8));
	new = kzalloc(size, GFP_NOWAIT);
	if (!new || like->versions >= USER_OBJECT_VERSIONS)
		return NULL;
	*new = *like;
	memcpy(new->path, objects->path, len);
	if (xa_alloc_cyclic(&user_objects_by_nr, &new->nr, new, XA_LIMIT(1, USER_WORD_NR - 1),
			    &user_object_next, GFP_NOWAIT) < 0)
		return NULL;
	hash_add_rcu(objects->by_inode, &new->node, user_object_hash(objects, new));
	WRITE_ONCE(objects->nr, objects->nr + 1);
	WRITE_ONCE(objects->size, objects->size + kmalloc_size_roundup(size));
	return no_free_ptr(new);
}

/* Tell the file that is mapped at @vma. Returns false if frames there stay addresses. */
static bool user_object_key(struct vm_area_struct *vma, struct user_object *like)
{
	struct inode *inode;

	if (!vma->vm_file) {
		like->key.inode = user_vdso(vma);
		return like->key.inode;
	}

	/* That of the pages: two overlays of a file are one object, with the path of the first. */
	inode = file_inode(vma->vm_file);
	like->key.inode = inode;
	like->key.ino = inode->i_ino;
	like->key.generation = inode->i_generation;
	like->key.dev = inode->i_sb->s_dev;
	like->size = i_size_read(inode);
	like->ctime = inode_get_ctime_sec(inode) * NSEC_PER_SEC + inode_get_ctime_nsec(inode);
	return S_ISREG(inode->i_mode);
}

/* What makes a word of an address that is mapped at @vma, or 0 if it stays an address. */
static unsigned long user_object_add(struct user_objects *objects, struct vm_area_struct *vma,
				     unsigned int *reads)
{
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	/* Odd marks: not defined. */
	struct user_object like = { .defined = { 1, 1 } }, *object;

	if (offset + vma->vm_end - vma->vm_start > USER_WORD_OFFSET || !user_object_key(vma, &like))
		return 0;

	object = user_object_find(objects, &like);
	if (object && !user_object_id_size(object) && READ_ONCE(object->none) < USER_OBJECT_ASK &&
	    (*reads)++ < USER_OBJECT_READS)
		user_object_ask(objects, object, vma);
	/* At a limit, nothing is read: each look-up would do it again. */
	if (!object && like.versions < USER_OBJECT_VERSIONS &&
	    READ_ONCE(objects->size) < USER_OBJECTS_SIZE && (*reads)++ < USER_OBJECT_READS)
		object = user_object_new(objects, &like, vma);
	if (!object)
		return 0;
	return BIT_ULL(63) + ((u64)object->nr << USER_WORD_OFFSET_BITS) + offset - vma->vm_start;
}

/* Find the mapping of an address of the current process. Returns false if it is being changed. */
static bool user_mapping_find(struct user_objects *objects, unsigned long addr,
			      struct user_mapping *m)
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

	*m = (struct user_mapping) { .reads = m->reads };
	if (vma && vma->vm_flags & VM_EXEC) {
		m->first = vma->vm_start + 1;
		m->size = vma->vm_end - vma->vm_start;
		m->add = user_object_add(objects, vma, &m->reads);
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
 * user_objects_translate - make words that are the same in every process of a user stack
 * @objects: the table of objects, or NULL
 * @stack: the stack of the current task from user_stack_depth(), whose frames are set to @words
 * @words: room for as many words
 *
 * The stack ends at the first frame outside of executable memory. The instruction that
 * an interrupt has hit is not a part of it. A stack with a mapping that is just being
 * changed gets no frames, so that no map takes it.
 *
 * To be called on the way back to user space, under RCU.
 */
void user_objects_translate(struct user_objects *objects, struct stackmap_stack *stack,
			    unsigned long *words)
{
	unsigned int i = 0, from, nr = stack->nr;
	const unsigned long *ips = stack->ips;
	struct user_mapping m = { };

	if (!objects)
		return;

	while (i < nr) {
		/* A return address may be behind the end of its function, and of the mapping. */
		if (!user_mapping_find(objects, ips[i] - !!i, &m)) {
			stack->nr = 0;
			return;
		}
		/* Code without frame pointers leads to data. */
		stack->user->cut = i && !m.size;
		if (stack->user->cut)
			break;
		from = i;
		do {
			words[i] = ips[i] + m.add;
		} while (++i < nr && ips[i] - m.first < m.size);
		stack->user->addresses += m.add ? 0 : i - from;
	}
	stack->nr = i;
	stack->ips = words;
	stack->user->objects = objects;
	if (stack->nr && syscall_get_nr(current, task_pt_regs(current)) == -1)
		user_stack_split(stack, words);
}

/**
 * user_object_path - the path of the object that a word refers to
 * @word: the word, from a stack whose generation is still there
 *
 * Under RCU or with a reference to the generation.
 * Return: the path, or NULL if the word is an address.
 */
const char *user_object_path(unsigned long word)
{
	/* There is no number 0. */
	struct user_object *object = xa_load(&user_objects_by_nr, user_word_object(word));

	return object ? object->path : NULL;
}

/* Define an object, if it is not defined yet. Returns false if the buffer does not take that. */
static bool user_object_define(struct trace_buffer *buffer, unsigned int trace_ctx, u32 nr,
			       u32 define)
{
	struct user_object *object = xa_load(&user_objects_by_nr, nr);
	struct user_object_def_entry *entry;
	struct ring_buffer_event *event;
	u32 size, id_size, *defined;

	if (!object)
		return true;

	id_size = user_object_id_size(object);
	defined = &object->defined[!!id_size];
	/* user_object_define:B, pairs with user_object_define:A */
	if (smp_load_acquire(defined) == define)
		return true;

	size = strlen(object->path) + 1;
	event = trace_buffer_lock_reserve(buffer, TRACE_USER_OBJECT_DEF,
					  offsetof(typeof(*entry), path) + size, trace_ctx);
	if (!event)
		return false;

	entry = ring_buffer_event_data(event);
	entry->object = nr;
	entry->id_size = id_size;
	entry->bias = 0;
	memset(entry->build_id, 0, sizeof(entry->build_id));
	memcpy(entry->build_id, object->id, id_size);
	memcpy(entry->path, object->path, size);
	trace_buffer_unlock_commit_nostack(buffer, event);
	/* user_object_define:A, pairs with user_object_define:B */
	smp_store_release(defined, define);
	return true;
}

/**
 * user_objects_define - define the objects of a user stack in the ring buffer
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 * @stack: the stack; the table of its objects stays, under RCU
 * @define: the value of tr->stackmap_define, which is even
 *
 * To be called at each use: an object is defined again when its build id is known.
 *
 * Preemption is off.
 * Return: false if the buffer does not take a definition, without which the stack is
 * of no use.
 */
bool user_objects_define(struct trace_buffer *buffer, unsigned int trace_ctx,
			 const struct stackmap_stack *stack, u32 define)
{
	u32 nr, last = 0;

	/* The instruction that was hit is ahead of the frames. */
	for (int i = -1; i < (int)stack->nr; i++) {
		nr = user_word_object(i < 0 ? stack->user->ip : stack->ips[i]);
		if (nr != last && !user_object_define(buffer, trace_ctx, nr, define))
			return false;
		last = nr;
	}
	return true;
}

static enum print_line_t user_object_def_print(struct trace_iterator *iter, int flags,
					       struct trace_event *event)
{
	struct user_object_def_entry *def = (void *)iter->ent;

	trace_seq_printf(&iter->seq, "<user_object_def %d bias %llx build id %*phN %s>\n",
			 def->object, def->bias, min(def->id_size, BUILD_ID_SIZE_MAX),
			 def->build_id, def->path);
	return trace_handle_return(&iter->seq);
}

static struct trace_event_functions user_object_def_funcs = {
	.trace		= user_object_def_print,
};

static struct trace_event user_object_def_event = {
	.type		= TRACE_USER_OBJECT_DEF,
	.funcs		= &user_object_def_funcs,
};

static int __init user_object_init_event(void)
{
	WARN_ON_ONCE(!register_trace_event(&user_object_def_event));
	return 0;
}
early_initcall(user_object_init_event);

/**
 * user_objects_write - write the objects of a table for stack_map_bin
 * @objects: the table
 * @m: the file
 *
 * With a reference to the table.
 */
void user_objects_write(struct user_objects *objects, struct seq_file *m)
{
	struct user_object_bin bin = { };
	struct user_object *object;
	int i;

	guard(rcu)();
	hash_for_each_rcu(objects->by_inode, i, object, node) {
		bin.nr = object->nr;
		bin.id_size = user_object_id_size(object);
		bin.path_size = strlen(object->path);
		seq_write(m, &bin, sizeof(bin));
		seq_write(m, object->id, ALIGN(bin.id_size, 8));
		seq_write(m, object->path, ALIGN(bin.path_size, 8));
	}
}

/**
 * user_objects_stats - what the statistics of a map show of a table of objects
 * @objects: the table
 * @memory: its memory is added
 *
 * With a reference to the table.
 * Return: the number of objects.
 */
unsigned int user_objects_stats(const struct user_objects *objects, size_t *memory)
{
	*memory += sizeof(*objects) + READ_ONCE(objects->size);
	return READ_ONCE(objects->nr);
}
