// SPDX-License-Identifier: GPL-2.0
/*
 * User stacks that are the same for every process: frames in mapped files are stored
 * as the number of the file (an object) and the offset in it.
 *
 * The table of objects belongs to all maps of an instance between two resets. It only
 * grows, up to USER_OBJECTS_SIZE. It holds no reference to a file: a file is told by
 * its key, and the path is a copy. No number is used twice, in no instance, until all
 * are used. Stacks are translated on the way back to user
 * space, where one may sleep, and recorded later, with a reference to the table.
 *
 * A file gets its number at once. Its build id is taken from the page cache. If it is
 * not there, a work reads it, which may take long.
 *
 * Memory ordering:
 *
 *   user_object_learn:A   writes the headers, then makes them known by a release.
 *   user_object_headers:A acquires whether they are known, then reads them. Pairs with
 *                         user_object_learn:A.
 *   user_object_define:A  commits a definition, then marks the object by a release.
 *   user_objects_define:A acquires the mark, then the caller writes an event that refers
 *                         to the object. Pairs with user_object_define:A.
 */
#include <linux/buildid.h>
#include <linux/cleanup.h>
#include <linux/dcache.h>
#include <linux/elf.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/refcount.h>
#include <linux/seq_file.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <kunit/visibility.h>

#include <asm/syscall.h>
#ifdef CONFIG_X86
#include <asm/vdso.h>
#endif

#include "trace_output.h"
#include "trace_stackmap_internal.h"

/* What the objects of a table take at most. */
#define USER_OBJECTS_SIZE	(8U << 20)

/* Log2 of the lists of objects, and of the places for files without an object. */
#define USER_OBJECT_HASH_BITS	10
#define USER_OBJECT_NONE_BITS	6

/* Mappings that a translation remembers. */
#define USER_MAPPINGS		4

/* NT_GNU_BUILD_ID */
#define USER_OBJECT_BUILD_ID	3

/* Room for a path. It has to fit an event. */
#define USER_OBJECT_PATH	3072

/* The notes and program headers of a file that are looked at. */
#define USER_OBJECT_NOTES	((u64)SZ_64K)
#define USER_OBJECT_HEADERS	256U

/* No allocation for a stack is worth to kill a process. */
#define USER_OBJECT_GFP		(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN)

/**
 * struct user_object_headers - what the headers of a file say
 * @bias: p_vaddr - p_offset of the text
 * @id_size: size of the build id, 0 if there is none
 * @id: the build id
 */
struct user_object_headers {
	u64			bias;
	u32			id_size;
	u8			id[BUILD_ID_SIZE_MAX];
};

/**
 * struct user_object - a file with code
 * @node: in the lists of its table
 * @key: tells the file
 * @nr: the number for new words; that of another object if it has the same build id
 * @asked: the headers were read, or a work reads them
 * @known: the headers were read, and stay as they are
 * @headers: what they say
 * @defined: marks of its definitions without and with @headers, or odd
 * @path: as /proc/PID/maps shows it
 */
struct user_object {
	struct hlist_node	node;
	struct user_object_key	key;
	u32			nr;
	bool			asked;
	bool			known;
	struct user_object_headers headers;
	u64			defined[2];
	char			path[];
};

struct user_objects {
	refcount_t		ref;
	u32			nr;		/* objects */
	size_t			size;		/* bytes */
	bool			full;
	struct xarray		by_nr;
	hsiphash_key_t		hash_key;
	atomic_long_t		addresses;
	atomic_long_t		cut;
	struct user_object_key	none[1 << USER_OBJECT_NONE_BITS]; /* files without an object */
	DECLARE_HASHTABLE(by_key, USER_OBJECT_HASH_BITS);
};

/*
 * Of what all tables have but the counts. A leaf. No memory is reclaimed under it: a
 * process that serves a disk takes it, too.
 */
static DEFINE_MUTEX(user_object_lock);
static u32 user_object_next = 1;		/* number */
static LIST_HEAD(user_object_works);
VISIBLE_IF_KUNIT unsigned int user_object_nr_works;

/* The number of objects is bounded by their memory. */
static_assert(USER_OBJECTS_SIZE / sizeof(struct user_object) < USER_WORD_NR);

/**
 * struct user_object_work - a file whose headers a work reads
 * @work: the work
 * @list: in user_object_works
 * @objects: the table, or NULL if it has gone meanwhile
 * @object: the object, which has no number and is not in the table if the file was deleted
 * @file: the file, with a reference
 */
struct user_object_work {
	struct work_struct	work;
	struct list_head	list;
	struct user_objects	*objects;
	struct user_object	*object;
	struct file		*file;
};

/**
 * struct user_mapping - a mapping of the current process
 * @start: its address
 * @size: its size
 * @add: makes a word of an address, 0 if it stays an address
 * @exec: whether it is executable
 */
struct user_mapping {
	unsigned long		start;
	unsigned long		size;
	unsigned long		add;
	bool			exec;
};

/**
 * user_objects_alloc - allocate a table of objects
 *
 * Context: may sleep.
 * Return: the table with one reference, or -ENOMEM.
 */
struct user_objects *user_objects_alloc(void)
{
	struct user_objects *objects = kvzalloc_obj(*objects);

	if (!objects)
		return ERR_PTR(-ENOMEM);

	refcount_set(&objects->ref, 1);
	xa_init_flags(&objects->by_nr, XA_FLAGS_ALLOC);
	get_random_bytes(&objects->hash_key, sizeof(objects->hash_key));
	return objects;
}

/**
 * user_objects_hold - take one more reference to a table of objects
 * @objects: the table, or NULL
 *
 * Context: any.
 * Return: @objects.
 */
struct user_objects *user_objects_hold(struct user_objects *objects)
{
	if (objects)
		refcount_inc(&objects->ref);
	return objects;
}

/**
 * user_objects_get - get the table of objects that goes with the map of an instance
 * @tr: the instance
 *
 * Context: any.
 * Return: the table with a reference, or NULL if no stack goes through a map.
 */
struct user_objects *user_objects_get(struct trace_array *tr)
{
	struct stackmap_instance *inst = READ_ONCE(tr->stackmap);
	struct ftrace_stackmap *map;

	if (!ftrace_stackmap_enabled(tr) || !inst)
		return NULL;

	guard(rcu)();
	map = rcu_dereference(inst->map);
	return map ? user_objects_hold(stackmap_objects(map)) : NULL;
}

/* A read that hangs does not keep the table. */
static void user_objects_orphan_works(struct user_objects *objects)
{
	struct user_object_work *w;

	guard(mutex)(&user_object_lock);
	list_for_each_entry(w, &user_object_works, list) {
		if (w->objects != objects)
			continue;
		if (!w->object->nr)
			kfree(w->object);
		w->objects = NULL;
	}
}

/**
 * user_objects_put - give back a reference to a table of objects
 * @objects: the table, NULL or an error
 *
 * Context: may sleep. Nobody may find the table under RCU when the last reference goes.
 */
void user_objects_put(struct user_objects *objects)
{
	struct user_object *object;
	struct hlist_node *next;
	int i;

	if (IS_ERR_OR_NULL(objects) || !refcount_dec_and_test(&objects->ref))
		return;

	user_objects_orphan_works(objects);
	hash_for_each_safe(objects->by_key, i, next, object, node)
		kfree(object);
	xa_destroy(&objects->by_nr);
	kvfree(objects);
}

static u32 user_object_hash(const struct user_objects *objects, const struct user_object_key *key)
{
	return hsiphash(key, sizeof(*key), &objects->hash_key);
}

static struct user_object_key *user_object_none(struct user_objects *objects,
						const struct user_object_key *key)
{
	return &objects->none[hash_32(user_object_hash(objects, key), USER_OBJECT_NONE_BITS)];
}

static struct user_object *user_object_find(struct user_objects *objects,
					    const struct user_object_key *key)
{
	struct user_object *object;

	/* Objects stay as long as the table. */
	hash_for_each_possible_rcu(objects->by_key, object, node, user_object_hash(objects, key),
				   true) {
		if (!memcmp(&object->key, key, sizeof(*key)))
			return object;
	}
	return NULL;
}

static void user_object_set_none(struct user_objects *objects, const struct user_object_key *key)
{
	struct user_object_key *none = user_object_none(objects, key);

	guard(mutex)(&user_object_lock);
	*none = *key;
}

/* Is this a file without an object, as far as it is remembered? */
static bool user_object_is_none(struct user_objects *objects, const struct user_object_key *key)
{
	/* What is written meanwhile is equal to no key. */
	return data_race(!memcmp(user_object_none(objects, key), key, sizeof(*key)));
}

/* What is known of the headers of an object. */
static const struct user_object_headers *user_object_headers(const struct user_object *object)
{
	static const struct user_object_headers none;

	/* user_object_headers:A, pairs with user_object_learn:A */
	return smp_load_acquire(&object->known) ? &object->headers : &none;
}

/* Some file systems would take a negative offset. */
static const void *user_object_fetch(struct freader *r, u64 off, size_t size)
{
	return off <= USER_WORD_OFFSET ? freader_fetch(r, off, size) : NULL;
}

static bool user_object_read_phdr(struct freader *r, bool is64, u64 off, struct elf64_phdr *phdr)
{
	const struct elf32_phdr *phdr32;

	phdr32 = user_object_fetch(r, off, is64 ? sizeof(*phdr) : sizeof(*phdr32));
	if (!phdr32)
		return false;
	if (is64)
		memcpy(phdr, phdr32, sizeof(*phdr));
	else
		*phdr = (struct elf64_phdr) {
			.p_type		= phdr32->p_type,
			.p_flags	= phdr32->p_flags,
			.p_offset	= phdr32->p_offset,
			.p_vaddr	= phdr32->p_vaddr,
			.p_filesz	= phdr32->p_filesz,
		};
	return true;
}

/* Look for the build id in the notes of a file. */
static int user_object_read_notes(struct freader *r, u64 off, u64 size,
				  struct user_object_headers *headers)
{
	u64 end = off + size, desc;
	const struct elf32_note *note;
	const void *data;
	u32 desc_size;
	bool found;

	while (off + sizeof(*note) + sizeof("GNU") < end) {
		note = user_object_fetch(r, off, sizeof(*note) + sizeof("GNU"));
		if (!note)
			return r->err;

		/* It may be written meanwhile. */
		desc = off + sizeof(*note) + ALIGN((u64)READ_ONCE(note->n_namesz), 4);
		desc_size = READ_ONCE(note->n_descsz);
		found = note->n_type == USER_OBJECT_BUILD_ID && note->n_namesz == sizeof("GNU") &&
			!memcmp(note + 1, "GNU", sizeof("GNU"));
		if (found && desc_size && desc_size <= BUILD_ID_SIZE_MAX) {
			data = user_object_fetch(r, desc, desc_size);
			if (!data)
				return r->err;
			memcpy(headers->id, data, desc_size);
			headers->id_size = desc_size;
			return 0;
		}
		off = desc + ALIGN((u64)desc_size, 4);
	}
	return 0;
}

/*
 * Take build id and bias from the headers of a file. Returns 0, also if it is no ELF
 * file, or why they can't be read.
 */
static int user_object_read(struct user_object_headers *headers, struct freader *r)
{
	bool is64, text = false;
	const struct elf64_hdr *ehdr;
	const struct elf32_hdr *ehdr32;
	u64 phoff, size, room = USER_OBJECT_NOTES;
	struct elf64_phdr phdr;
	int ret = 0;
	u32 phnum;

	ehdr = freader_fetch(r, 0, sizeof(*ehdr));
	if (!ehdr)
		return r->err;
	if (memcmp(ehdr->e_ident, ELFMAG, SELFMAG))
		return 0;

	ehdr32 = (const void *)ehdr;
	is64 = ehdr->e_ident[EI_CLASS] == ELFCLASS64;
	phoff = is64 ? READ_ONCE(ehdr->e_phoff) : READ_ONCE(ehdr32->e_phoff);
	phnum = is64 ? READ_ONCE(ehdr->e_phnum) : READ_ONCE(ehdr32->e_phnum);
	for (u32 i = 0; i < min(phnum, USER_OBJECT_HEADERS) && !ret; i++) {
		if (!user_object_read_phdr(r, is64, phoff, &phdr))
			return r->err;
		phoff += is64 ? sizeof(struct elf64_phdr) : sizeof(struct elf32_phdr);
		if (phdr.p_type == PT_LOAD && phdr.p_flags & PF_X && !text) {
			headers->bias = phdr.p_vaddr - phdr.p_offset;
			text = true;
		}
		if (phdr.p_type == PT_NOTE && !headers->id_size) {
			size = min(phdr.p_filesz, room);
			room -= size;
			ret = user_object_read_notes(r, phdr.p_offset, size, headers);
		}
	}
	return ret;
}

static int user_object_read_file(struct user_object_headers *headers, struct file *file,
				 bool may_fault)
{
	char buf[sizeof(struct elf64_hdr)];
	struct freader r;
	int ret;

	freader_init_from_file(&r, buf, sizeof(buf), file, may_fault);
	ret = user_object_read(headers, &r);
	freader_cleanup(&r);
	return ret;
}

/* The first object that is known to have the same build id and layout, or NULL. */
static struct user_object *user_object_twin(struct user_objects *objects,
					    const struct user_object *object)
{
	const struct user_object_headers *headers = &object->headers;
	struct user_object *other;
	unsigned long nr;

	if (!headers->id_size)
		return NULL;

	xa_for_each(&objects->by_nr, nr, other) {
		if (!memcmp(user_object_headers(other), headers, sizeof(*headers)))
			return other;
	}
	return NULL;
}

/* Not xa_alloc_cyclic(), which begins again at 1 when there is no memory, too. */
static bool user_object_take_nr(struct user_objects *objects, struct user_object *object)
{
	int ret = xa_alloc(&objects->by_nr, &object->nr, object,
			   XA_LIMIT(user_object_next, USER_WORD_NR - 1), GFP_NOWAIT);

	if (ret == -EBUSY)
		ret = xa_alloc(&objects->by_nr, &object->nr, object,
			       XA_LIMIT(1, USER_WORD_NR - 1), GFP_NOWAIT);
	if (ret)
		return false;

	user_object_next = object->nr % (USER_WORD_NR - 1) + 1;
	return true;
}

/* Give @object a number, and put it into the table. Returns false if that does not work. */
static bool user_object_insert(struct user_objects *objects, struct user_object *object)
{
	struct user_object *twin = user_object_twin(objects, object);
	size_t size = kmalloc_size_roundup(struct_size(object, path, strlen(object->path) + 1));

	lockdep_assert_held(&user_object_lock);

	if (objects->size + size > USER_OBJECTS_SIZE) {
		WRITE_ONCE(objects->full, true);
		return false;
	}

	if (twin) {
		object->nr = twin->nr;
	} else {
		if (!user_object_take_nr(objects, object))
			return false;
		WRITE_ONCE(objects->nr, objects->nr + 1);
	}
	objects->size += size;
	hash_add_rcu(objects->by_key, &object->node, user_object_hash(objects, &object->key));
	return true;
}

/* Put @object into the table, or free it. Returns the one with its key, or NULL. */
static struct user_object *user_object_add(struct user_objects *objects,
					   struct user_object *object)
{
	struct user_object *other = user_object_find(objects, &object->key);

	if (!other && user_object_insert(objects, object))
		return object;
	kfree(object);
	return other;
}

/* The headers of @object were read. A deleted file gets into the table only now. */
static void user_object_learn(struct user_objects *objects, struct user_object *object,
			      const struct user_object_headers *headers)
{
	struct user_object *twin;

	if (!object->nr && !headers->id_size) {
		kfree(object);
		return;
	}

	object->headers = *headers;
	twin = user_object_twin(objects, object);
	if (object->nr && twin)
		WRITE_ONCE(object->nr, twin->nr);
	/* user_object_learn:A, pairs with user_object_headers:A */
	smp_store_release(&object->known, true);
	if (!object->nr)
		user_object_add(objects, object);
}

static void user_object_work(struct work_struct *work)
{
	struct user_object_work *w = container_of(work, struct user_object_work, work);
	struct user_object_headers headers = { };

	user_object_read_file(&headers, w->file, true);
	fput(w->file);
	scoped_guard(mutex, &user_object_lock) {
		if (w->objects)
			user_object_learn(w->objects, w->object, &headers);
		list_del(&w->list);
		WRITE_ONCE(user_object_nr_works, user_object_nr_works - 1);
	}
	kfree(w);
}

/*
 * Have a work read the headers of @file. It frees an object that does not get into the
 * table. Returns false if there is no work. The next look-up tries again.
 */
static bool user_object_queue(struct user_objects *objects, struct user_object *object,
			      struct file *file)
{
	struct user_object_work *w __free(kfree) = NULL;

	if (READ_ONCE(object->asked))
		return true;
	if (READ_ONCE(user_object_nr_works) < USER_OBJECT_WORKS)
		w = kmalloc_obj(*w, USER_OBJECT_GFP);
	if (!w)
		return false;

	guard(mutex)(&user_object_lock);
	if (object->asked || user_object_nr_works == USER_OBJECT_WORKS)
		return object->asked;

	WRITE_ONCE(object->asked, true);
	INIT_WORK(&w->work, user_object_work);
	w->objects = objects;
	w->object = object;
	w->file = get_file(file);
	list_add(&w->list, &user_object_works);
	WRITE_ONCE(user_object_nr_works, user_object_nr_works + 1);
	queue_work(system_dfl_wq, &no_free_ptr(w)->work);
	return true;
}

/* The path of a file, as /proc/PID/maps shows it outside of a chroot. Returns its size. */
static int user_object_name(struct file *file, char *buf)
{
	const struct path *path = file_user_path(file);
	char *name = ERR_PTR(-ENOENT), *end;

	if (!d_unlinked(path->dentry))
		name = d_absolute_path(path, buf, USER_OBJECT_PATH);
	if (IS_ERR(name))
		name = d_path(path, buf, USER_OBJECT_PATH);
	if (IS_ERR(name))
		return PTR_ERR(name);

	end = seq_mangle_path(buf, name, "\n");
	return end ? end - buf : -ENAMETOOLONG;
}

/* An object that is not in the table yet. @headers: NULL if they are to be read */
static struct user_object *user_object_alloc(const struct user_file *f,
					     const struct user_object_headers *headers)
{
	char *buf __free(kfree) = kmalloc(USER_OBJECT_PATH, USER_OBJECT_GFP);
	struct user_object *object;
	int size;

	if (!buf)
		return NULL;

	size = f->file ? user_object_name(f->file, buf) : strscpy(buf, "[vdso]", USER_OBJECT_PATH);
	if (size < 0)
		size = strscpy(buf, "?", USER_OBJECT_PATH);

	object = kzalloc_flex(*object, path, size + 1, USER_OBJECT_GFP);
	if (!object)
		return NULL;
	object->key = f->key;
	object->known = headers;
	object->asked = headers;
	if (headers)
		object->headers = *headers;
	/* Odd, so undefined. */
	memset64(object->defined, 1, ARRAY_SIZE(object->defined));
	memcpy(object->path, buf, size);
	return object;
}

/* Read the headers of what is mapped, if no disk is needed. Returns false if one is. */
static bool user_object_read_now(struct user_object_headers *headers, const struct user_file *f)
{
	struct freader r;

	if (f->file)
		return !user_object_read_file(headers, f->file, false);

	freader_init_from_mem(&r, f->image, f->image_size);
	user_object_read(headers, &r);
	return true;
}

/* Read the headers of an object in the table, by a work if a disk is needed. */
static void user_object_ask(struct user_objects *objects, struct user_object *object,
			    const struct user_file *f)
{
	struct user_object_headers headers = { };

	if (READ_ONCE(object->asked))
		return;
	if (!user_object_read_now(&headers, f)) {
		user_object_queue(objects, object, f->file);
		return;
	}

	guard(mutex)(&user_object_lock);
	if (!object->asked)
		user_object_learn(objects, object, &headers);
	WRITE_ONCE(object->asked, true);
}

/*
 * The table has no object for this file, or one whose headers nobody reads. Returns the
 * number, or 0.
 */
VISIBLE_IF_KUNIT u32 user_object_new(struct user_objects *objects, const struct user_file *f)
{
	bool known, deleted = f->file && !file_inode(f->file)->i_nlink;
	struct user_object_headers headers = { };
	struct user_object *object;

	object = user_object_find(objects, &f->key);
	if (object) {
		user_object_ask(objects, object, f);
		return READ_ONCE(object->nr);
	}
	if (READ_ONCE(objects->full) || user_object_is_none(objects, &f->key))
		return 0;

	known = user_object_read_now(&headers, f);
	/* The memory of a JIT, unless it has a build id. */
	if (deleted && known && !headers.id_size) {
		user_object_set_none(objects, &f->key);
		return 0;
	}

	object = user_object_alloc(f, known ? &headers : NULL);
	if (!object)
		return 0;

	if (deleted && !known) {
		if (user_object_queue(objects, object, f->file))
			user_object_set_none(objects, &f->key);
		else
			kfree(object);
		return 0;
	}

	scoped_guard(mutex, &user_object_lock)
		object = user_object_add(objects, object);
	if (!object)
		return 0;

	user_object_queue(objects, object, f->file);
	return READ_ONCE(object->nr);
}

#ifdef CONFIG_X86
static const void *user_vdso_image(size_t *size)
{
	const struct vdso_image *image = current->mm->context.vdso_image;

	*size = image->size;
	return image->data;
}
#else
static const void *user_vdso_image(size_t *size)
{
	return NULL;
}
#endif

/* What is mapped at @vma, which is locked. Returns false if frames there stay addresses. */
static bool user_file_of(struct vm_area_struct *vma, struct user_file *f)
{
	struct timespec64 mtime;
	const char *name = NULL;
	struct inode *inode;

	if (((u64)vma->vm_pgoff << PAGE_SHIFT) + vma->vm_end - vma->vm_start > USER_WORD_OFFSET)
		return false;

	if (!vma->vm_file) {
		if (vma->vm_ops && vma->vm_ops->name)
			name = vma->vm_ops->name(vma);
		if (!name || strcmp(name, "[vdso]"))
			return false;
		f->image = user_vdso_image(&f->image_size);
		f->key.inode = f->image;
		return f->image;
	}

	/* That of the pages: two overlays of a file are one object, with the path of the first. */
	inode = file_inode(vma->vm_file);
	if (!S_ISREG(inode->i_mode))
		return false;
	mtime = inode_get_mtime(inode);
	f->key = (struct user_object_key) {
		.inode		= inode,
		.ino		= inode->i_ino,
		.dev		= inode->i_sb->s_dev,
		.size		= i_size_read(inode),
		.mtime		= timespec64_to_ns(&mtime),
		.generation	= inode->i_generation,
	};
	f->file = vma->vm_file;
	return true;
}

/* Find the mapping of an address of the current process. Returns false if it is being changed. */
static bool user_mapping_find(struct user_objects *objects, unsigned long addr,
			      struct user_mapping *m)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma = lock_vma_under_rcu(mm, addr);
	struct user_object *object = NULL;
	struct user_file f = { };
	bool locked = false;
	u64 offset = 0;
	u32 nr = 0;

	if (!vma && mtree_load(&mm->mm_mt, addr)) {
		/* A program may hold it for long. The removal of instances waits for this. */
		locked = mmap_read_trylock(mm);
		if (!locked)
			return false;
		vma = vma_lookup(mm, addr);
	}
	*m = (struct user_mapping) { .start = addr, .size = 1 };
	if (vma) {
		m->start = vma->vm_start;
		m->size = vma->vm_end - vma->vm_start;
		m->exec = vma->vm_flags & VM_EXEC;
		offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
		if (m->exec && user_file_of(vma, &f)) {
			object = user_object_find(objects, &f.key);
			nr = object && READ_ONCE(object->asked) ? READ_ONCE(object->nr) : 0;
		}
		if (!nr && f.file)
			get_file(f.file);
	}
	if (locked)
		mmap_read_unlock(mm);
	else if (vma)
		vma_end_read(vma);

	if (!nr && (f.file || f.image)) {
		nr = user_object_new(objects, &f);
		if (f.file)
			fput(f.file);
	}
	if (nr)
		m->add = (BIT_ULL(63) | (u64)nr << USER_WORD_OFFSET_BITS) + offset - m->start;
	return true;
}

/* The mapping of an address, from those that are remembered if possible, or NULL. */
static struct user_mapping *user_mapping(struct user_objects *objects,
					 struct user_mapping *mappings, unsigned int *next,
					 unsigned long addr)
{
	struct user_mapping *m;

	for (m = mappings; m < mappings + USER_MAPPINGS; m++) {
		if (addr - m->start < m->size)
			return m;
	}
	m = &mappings[(*next)++ % USER_MAPPINGS];
	return user_mapping_find(objects, addr, m) ? m : NULL;
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
 * @stack: the stack of the current task, whose frames are set to @words
 * @words: room for as many words
 *
 * The stack ends at the first frame outside of executable memory. The instruction that
 * an interrupt has hit is not a part of it. A stack with a mapping that is just being
 * changed stays as it is, and no map takes it.
 *
 * Context: the way back to user space, where page faults are possible.
 */
void user_objects_translate(struct user_objects *objects, struct stackmap_stack *stack,
			    unsigned long *words)
{
	struct user_mapping mappings[USER_MAPPINGS] = { }, *m;
	unsigned long ip, start = 0, size = 0, add = 0;
	unsigned int i, addresses = 0, next = 0;

	if (!objects || !current->mm) {
		/* There may be a map by the time that the stack is recorded. */
		stack->nr = user_addresses(stack->ips, stack->nr);
		return;
	}

	for (i = 0; i < stack->nr; i++) {
		ip = stack->ips[i];
		/* A return address may be behind the end of its function, and of the mapping. */
		if (unlikely(ip - 1 - start >= size)) {
			m = user_mapping(objects, mappings, &next, i ? ip - 1 : ip);
			if (!m) {
				stack->user->objects = ERR_PTR(-EBUSY);
				return;
			}
			/* Code without frame pointers leads to data. */
			if (i && !m->exec) {
				atomic_long_inc(&objects->cut);
				break;
			}
			if (!m->add && user_word_forged(ip))
				break;
			start = m->start;
			/* Come here again for each address that stays one. */
			size = m->add && m->exec ? m->size : 0;
			add = m->add;
			addresses += !add;
		}
		words[i] = ip + add;
	}
	stack->nr = i;
	if (addresses)
		atomic_long_add(addresses, &objects->addresses);
	stack->ips = words;
	stack->user->objects = objects;
	if (stack->nr && syscall_get_nr(current, task_pt_regs(current)) == -1)
		user_stack_split(stack, words);
}

/**
 * user_object_path - the path of the object that a word refers to
 * @objects: the table of objects
 * @word: the word, from a stack of a map that goes with @objects
 *
 * Context: any, under RCU or with a reference to the table.
 * Return: the path, or NULL if the word is an address.
 */
const char *user_object_path(struct user_objects *objects, unsigned long word)
{
	u32 nr = user_word_object(word);
	struct user_object *object = nr ? xa_load(&objects->by_nr, nr) : NULL;

	return object ? object->path : NULL;
}

/* Write the definition of an object. Returns whether the buffer took it. */
static bool user_object_define(const struct user_object *object,
			       const struct user_object_headers *headers, u32 nr,
			       struct trace_buffer *buffer, unsigned int trace_ctx)
{
	size_t size = strlen(object->path) + 1;
	struct user_object_def_entry *entry;
	struct ring_buffer_event *event;

	event = trace_buffer_lock_reserve(buffer, TRACE_USER_OBJECT_DEF,
					  offsetof(typeof(*entry), path) + size, trace_ctx);
	if (!event)
		return false;

	entry = ring_buffer_event_data(event);
	entry->object = nr;
	entry->id_size = headers->id_size;
	entry->bias = headers->bias;
	memcpy(entry->build_id, headers->id, sizeof(headers->id));
	memcpy(entry->path, object->path, size);
	trace_buffer_unlock_commit_nostack(buffer, event);
	return true;
}

/**
 * user_objects_define - define the objects that words refer to in the ring buffer
 * @map: the map of the stack
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 * @words: the words of a user stack
 * @nr: their number
 * @define: the value of tr->stackmap_define; if it is odd, all are defined again
 *
 * They are defined again with each map, as its stacks are.
 *
 * Context: any, with preemption off.
 * Return: false if the buffer did not take a definition, or if headers are still to be
 * read, so that there is going to be another one.
 */
bool user_objects_define(const struct ftrace_stackmap *map, struct trace_buffer *buffer,
			 unsigned int trace_ctx, const unsigned long *words, unsigned int nr,
			 u32 define)
{
	u64 *defined, mark = (u64)map->first_id << 32 | define;
	const struct user_object_headers *headers;
	struct user_object *object;
	u32 object_nr, last = 0;
	bool complete = true;

	for (unsigned int i = 0; i < nr; i++) {
		object_nr = user_word_object(words[i]);
		if (!object_nr || object_nr == last)
			continue;
		last = object_nr;
		object = xa_load(&stackmap_objects(map)->by_nr, object_nr);
		if (WARN_ON_ONCE(!object))
			continue;
		headers = user_object_headers(object);
		complete &= headers == &object->headers;
		defined = &object->defined[headers == &object->headers];
		/* user_objects_define:A, pairs with user_object_define:A */
		if (!(define & 1) && smp_load_acquire(defined) == mark)
			continue;
		if (!user_object_define(object, headers, object_nr, buffer, trace_ctx))
			return false;
		if (define & 1)
			continue;
		/* user_object_define:A, pairs with user_objects_define:A */
		smp_store_release(defined, mark);
	}
	return complete;
}

static enum print_line_t user_object_def_print(struct trace_iterator *iter, int flags,
					       struct trace_event *event)
{
	struct user_object_def_entry *field = (void *)iter->ent;

	trace_seq_printf(&iter->seq, "<user_object_def %d bias %llx build id %*phN %s>\n",
			 field->object, field->bias, min(field->id_size, BUILD_ID_SIZE_MAX),
			 field->build_id, field->path);
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
 * user_object_print - print a frame of a user stack by its file
 * @iter: the event, whose id or definition the frame is from
 * @word: the frame
 *
 * Context: any.
 * Return: false if it is an address, and nothing was printed.
 */
bool user_object_print(struct trace_iterator *iter, unsigned long word)
{
	struct stackmap_instance *inst = iter->tr->stackmap;
	const struct stackmap_gen *gen;
	const char *path = NULL;
	int id;

	/* A full stack has addresses only, whatever its program made of them. */
	if (!user_word_object(word) || !stackmap_event_ids(iter->ent, iter->ent_size))
		return false;

	id = stackmap_event_id(iter->ent, 0);
	guard(rcu)();
	gen = inst ? stackmap_gen_of(rcu_dereference(inst->set), id) : NULL;
	if (gen && gen->objects)
		path = user_object_path(gen->objects, word);
	trace_seq_printf(&iter->seq, "%s[+0x%llx]", path ?: "?", word & USER_WORD_OFFSET);
	return true;
}

/**
 * user_objects_write - write the section of stack_map_bin with the objects
 * @objects: the table of objects, or NULL
 * @m: the file
 *
 * Context: any, under RCU.
 */
void user_objects_write(struct user_objects *objects, struct seq_file *m)
{
	const struct user_object_headers *headers;
	u32 section[] = { STACKMAP_BIN_FILES, 0 };
	struct user_object_bin bin = { };
	static const u8 zeroes[8];
	struct user_object *object;
	size_t start = m->count;
	unsigned long nr;

	seq_write(m, section, sizeof(section));
	if (!objects)
		return;

	xa_for_each(&objects->by_nr, nr, object) {
		if (seq_has_overflowed(m))
			break;
		headers = user_object_headers(object);
		bin.nr = nr;
		bin.id_size = headers->id_size;
		bin.bias = headers->bias;
		bin.path_size = strlen(object->path);
		seq_write(m, &bin, sizeof(bin));
		seq_write(m, headers->id, bin.id_size);
		seq_write(m, zeroes, ALIGN(bin.id_size, 8) - bin.id_size);
		seq_write(m, object->path, bin.path_size);
		seq_write(m, zeroes, ALIGN(bin.path_size, 8) - bin.path_size);
	}

	/* How long it is turns out when it is written. */
	section[1] = m->count - start - sizeof(section);
	if (!seq_has_overflowed(m))
		memcpy(m->buf + start, section, sizeof(section));
}

/**
 * user_objects_stats - what the statistics of a map show of its objects
 * @objects: the table of objects
 * @stats: filled in
 *
 * Context: any, under RCU.
 */
void user_objects_stats(struct user_objects *objects, struct user_object_stats *stats)
{
	stats->objects = READ_ONCE(objects->nr);
	stats->cut = atomic_long_read(&objects->cut);
	stats->addresses = atomic_long_read(&objects->addresses);
	stats->memory = sizeof(*objects) + READ_ONCE(objects->size);
}
