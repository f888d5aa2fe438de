// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests for the files of user stacks: the table of objects, their build ids and
 * definitions, and a reset between translation and recording.
 */
#include <linux/elf.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mman.h>
#include <linux/seq_file.h>
#include <linux/shmem_fs.h>
#include <linux/trace_clock.h>

#include "trace_stackmap_kunit.h"

#define TEST_EXEC	(PROT_READ | PROT_EXEC)

struct test_image {
	struct elf64_hdr	ehdr;
	struct elf64_phdr	phdr;
	struct elf64_note	note;
	char			name[4];
	u8			id[BUILD_ID_SIZE_MAX];
};

static unsigned long test_map(struct kunit *test, struct file *file, unsigned int pages,
			      unsigned long prot, unsigned long offset)
{
	unsigned long flags = file ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS, addr;

	addr = kunit_vm_mmap(test, file, 0, pages * PAGE_SIZE, prot, flags, offset);
	KUNIT_ASSERT_NE(test, addr, 0);
	return addr;
}

/* A file of which no page is in memory. */
static struct file *test_file(struct kunit *test, const char *name)
{
	struct file *file = shmem_file_setup(name, SZ_16K, EMPTY_VMA_FLAGS);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, file);
	kunit_add_action(test, (kunit_action_t *)fput, file);
	set_nlink(file_inode(file), 1);
	return file;
}

/* Bring the file into memory, with a build id of these bytes, or without one. */
static void test_fill_file(struct kunit *test, struct file *file, u8 id, u32 id_size)
{
	struct test_image image = {
		.ehdr.e_ident	= { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
		.ehdr.e_type	= ET_DYN,
		.ehdr.e_phoff	= offsetof(struct test_image, phdr),
		.ehdr.e_phnum	= 1,
		.phdr.p_type	= PT_NOTE,
		.phdr.p_offset	= offsetof(struct test_image, note),
		.phdr.p_filesz	= sizeof(image) - offsetof(struct test_image, note),
		.note		= { .n_namesz = 4, .n_descsz = id_size, .n_type = 3 },
		.name		= "GNU",
	};
	struct page *page = shmem_read_mapping_page(file->f_mapping, 0);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, page);
	memset(image.id, id, id_size);
	memcpy_to_page(page, 0, (const char *)&image, sizeof(image));
	put_page(page);
}

/* A library that is in memory. Returns where it is mapped. */
static unsigned long test_library(struct kunit *test, const char *name, u8 id)
{
	struct file *file = test_file(test, name);

	test_fill_file(test, file, id, BUILD_ID_SIZE_MAX);
	return test_map(test, file, 2, TEST_EXEC, 0);
}

static unsigned long test_word(u32 object, u32 offset)
{
	return BIT(63) | (unsigned long)object << USER_WORD_OFFSET_BITS | offset;
}

/* A new table, or that of the map of @tr. */
static struct user_objects *test_objects(struct kunit *test, struct trace_array *tr)
{
	struct user_objects *objects = tr ? user_objects_hold(user_objects_get(tr)) :
					    user_objects_next(NULL);

	KUNIT_ASSERT_NOT_NULL(test, objects);
	kunit_add_action(test, (kunit_action_t *)user_objects_put, objects);
	return objects;
}

/* Translate a stack that is at @ips, for a test that does not know whether an interrupt has hit. */
static struct stackmap_user test_translate(struct user_objects *objects, unsigned long *ips,
					   unsigned int *nr)
{
	struct stackmap_user user = { .type = TRACE_USER_UNWIND_STACK_ID };
	struct stackmap_stack stack = {
		.ips = ips, .nr = user_stack_depth(ips, *nr), .user = &user,
	};
	unsigned long words[TEST_DEPTHS];
	unsigned int split;

	user_objects_translate(objects, &stack, words);
	split = user.type == TRACE_USER_UNWIND_STACK_SPLIT;
	*nr = stackmap_depth(stack.ips, stack.nr);
	ips[0] = user.ip;
	memmove(ips + split, stack.ips, *nr * sizeof(*ips));
	*nr += split;
	return user;
}

/* The number of the object that is mapped there, 0 for an address. */
static u32 test_nr(struct user_objects *objects, unsigned long addr)
{
	unsigned int one = 1;

	test_translate(objects, &addr, &one);
	return user_word_object(addr);
}

/* Does stack_map_bin show the object with its path, and a build id of @size of these bytes? */
static bool test_shows(struct kunit *test, struct user_objects *objects, u32 nr, u8 byte, u32 size)
{
	const char *path = user_object_path(test_word(nr, 0));
	struct seq_file m = { .size = SZ_16K };
	struct user_object_bin *bin;
	u8 want[24] = { };
	char *at, *id;

	memset(want, byte, size);
	m.buf = kunit_kzalloc(test, SZ_16K, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m.buf);
	user_objects_write(objects, &m);
	for (at = m.buf; at < m.buf + m.count;) {
		bin = (void *)at;
		id = at + sizeof(*bin);
		at = id + ALIGN(bin->id_size, 8) + ALIGN(bin->path_size, 8);
		if (bin->nr == nr)
			return bin->id_size == size && !memcmp(id, want, ALIGN(size, 8)) &&
			       !strncmp(id + ALIGN(size, 8), path, bin->path_size) &&
			       bin->path_size == strlen(path) && !bin->bias;
	}
	return false;
}

static void user_object_words(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, user_word_object(0x8000100000000123UL), 1);
	KUNIT_EXPECT_EQ(test, user_word_object(0xffffefffffffffffUL), USER_WORD_NR - 1);
	KUNIT_EXPECT_EQ(test, user_word_object(0xffffffffff600000UL), 0);
	KUNIT_EXPECT_FALSE(test, user_word_by_file(0x7fffffffffffffffUL));
	KUNIT_EXPECT_TRUE(test, user_word_by_file(0x8000000000000000UL));
	KUNIT_EXPECT_TRUE(test, user_word_by_file(0xffffefffffffffffUL));
	KUNIT_EXPECT_FALSE(test, user_word_by_file(0xfffff00000000000UL));
}

/* Not in memory yet: a number at once, the build id with the next stack that can have it. */
static void user_object_later(struct kunit *test)
{
	struct user_objects *objects = test_objects(test, NULL);
	struct file *file = test_file(test, "later");
	unsigned long addr = test_map(test, file, 2, TEST_EXEC, 0);
	u32 nr = test_nr(objects, addr);

	for (int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, test_nr(objects, addr), nr);
	KUNIT_EXPECT_TRUE(test, test_shows(test, objects, nr, 0, 0));
	KUNIT_EXPECT_EQ(test, file->f_mapping->nrpages, 0);
	test_fill_file(test, file, 7, 8);
	KUNIT_EXPECT_EQ(test, test_nr(objects, addr), nr);
	KUNIT_EXPECT_TRUE(test, test_shows(test, objects, nr, 7, 8));

	/* Perhaps the page of the notes was not there. That is asked once more. */
	for (int asked = 1; asked <= 2; asked++) {
		file = test_file(test, "note");
		test_fill_file(test, file, 1, 0);
		addr = test_map(test, file, 2, TEST_EXEC, 0);
		for (int i = 0; i < asked; i++)
			nr = test_nr(objects, addr);
		test_fill_file(test, file, 1, BUILD_ID_SIZE_MAX);
		KUNIT_EXPECT_EQ(test, test_nr(objects, addr), nr);
		KUNIT_EXPECT_TRUE(test, test_shows(test, objects, nr, 1,
						   asked == 1 ? BUILD_ID_SIZE_MAX : 0));
	}
	/* A deleted file is an object only if its build id is there. */
	file = test_file(test, "deleted");
	clear_nlink(file_inode(file));
	addr = test_map(test, file, 2, TEST_EXEC, 0);
	KUNIT_EXPECT_EQ(test, test_nr(objects, addr), 0);
	test_fill_file(test, file, 1, 0);
	for (int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, test_nr(objects, addr), 0);
	test_fill_file(test, file, 1, BUILD_ID_SIZE_MAX);
	KUNIT_EXPECT_NE(test, test_nr(objects, addr), 0);
}

/* Two files with one build id keep their paths. No other table has their numbers, nor will one. */
static void user_object_numbers(struct kunit *test)
{
	struct user_objects *objects = test_objects(test, NULL), *other = user_objects_next(NULL);
	unsigned long ours = test_library(test, "ours", 1);
	unsigned long strange = test_library(test, "strange", 1);
	const u32 nr[] = {
		test_nr(objects, strange), test_nr(objects, ours), test_nr(other, ours),
	};
	size_t memory = 0;

	KUNIT_EXPECT_NE(test, nr[0], nr[2]);
	KUNIT_EXPECT_NE(test, nr[1], nr[2]);
	KUNIT_EXPECT_EQ(test, test_nr(objects, ours), nr[1]);
	KUNIT_EXPECT_NOT_NULL(test, strstr(user_object_path(test_word(nr[0], 0)), "strange"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(user_object_path(test_word(nr[1], 0)), "ours"));
	KUNIT_EXPECT_EQ(test, user_objects_stats(objects, &memory), 2);

	user_objects_put(other);
	KUNIT_EXPECT_NULL(test, user_object_path(test_word(nr[2], 0)));
	KUNIT_EXPECT_GT(test, test_nr(test_objects(test, NULL), ours), nr[2]);
}

/* A file that was changed is another one, unless that was only its inode. */
static void user_object_changed(struct kunit *test)
{
	struct user_objects *objects = test_objects(test, NULL);
	struct file *file = test_file(test, "changed");
	struct inode *inode = file_inode(file);
	unsigned long addr = test_map(test, file, 2, TEST_EXEC, 0);
	u32 nr, next;

	test_fill_file(test, file, 1, BUILD_ID_SIZE_MAX);
	nr = test_nr(objects, addr);
	/* As after chmod. */
	inode_set_ctime(inode, 1000, 0);
	KUNIT_EXPECT_EQ(test, test_nr(objects, addr), nr);
	KUNIT_EXPECT_EQ(test, test_nr(objects, addr), nr);
	/* Overwritten, with the old mtime. */
	test_fill_file(test, file, 2, BUILD_ID_SIZE_MAX);
	inode_set_ctime(inode, 1001, 0);
	next = test_nr(objects, addr);
	KUNIT_EXPECT_NE(test, next, nr);
	KUNIT_EXPECT_TRUE(test, test_shows(test, objects, next, 2, BUILD_ID_SIZE_MAX));
	inode->i_generation++;
	KUNIT_EXPECT_NE(test, test_nr(objects, addr), next);
	inode->i_generation--;

	/* Enough of them is enough. */
	for (int i = 2; i <= 16; i++) {
		nr = next;
		i_size_write(inode, i_size_read(inode) + 1);
		next = test_nr(objects, addr);
		KUNIT_EXPECT_NE(test, next, nr);
	}
	KUNIT_EXPECT_EQ(test, next, 0);
	i_size_write(inode, i_size_read(inode) - 1);
	KUNIT_EXPECT_EQ(test, test_nr(objects, addr), nr);
	KUNIT_EXPECT_NE(test, test_nr(objects, test_library(test, "other", 2)), 0);
}

/* Frames become words, and a stack ends where there is no code. */
static void user_object_frames(struct kunit *test)
{
	unsigned long near = BIT(USER_WORD_OFFSET_BITS) - 2 * PAGE_SIZE, vsyscall = -10UL << 20;
	struct user_objects *objects = test_objects(test, NULL);
	struct file *file = test_file(test, "code");
	unsigned long text = test_map(test, file, 2, TEST_EXEC, 0);
	unsigned long code = test_map(test, NULL, 1, TEST_EXEC, 0);
	unsigned long far = test_map(test, file, 1, TEST_EXEC, near);
	/* Between the two, which would become one mapping. */
	unsigned long data = test_map(test, NULL, 1, PROT_READ | PROT_WRITE, 0);
	unsigned long farther = test_map(test, file, 1, TEST_EXEC, near + PAGE_SIZE);
	unsigned long file_data = test_map(test, test_file(test, "data"), 1, PROT_READ, 0);
	unsigned long word = test_word(test_nr(objects, text), 0);
	struct {
		unsigned long	ips[4], words[4];
		unsigned int	nr, depth, addresses, cut;
	} stacks[] = {
		{ { text, code + 8, far + 8 }, { word, code + 8, word + near + 8 }, 3, 3, 1, 0 },
		/* A return address may be behind the end of the mapping. */
		{ { code, text + 2 * PAGE_SIZE }, { code, word + 2 * PAGE_SIZE }, 2, 2, 1, 0 },
		{ { text, text + 2 * PAGE_SIZE }, { word, word + 2 * PAGE_SIZE }, 2, 2, 0, 0 },
		/* An offset that is too far. */
		{ { farther + 8, text + 8 }, { farther + 8, word + 8 }, 2, 2, 1, 0 },
		/* No code. A file without code is no object. */
		{ { text + 8, data + 8, text + 8 }, { word + 8 }, 3, 1, 0, 1 },
		{ { text + 8, 8, text + 8 }, { word + 8 }, 3, 1, 0, 1 },
		{ { text + 8, file_data + 8 }, { word + 8 }, 2, 1, 0, 1 },
		{ { file_data + 8, text + 8 }, { file_data + 8, word + 8 }, 2, 2, 1, 0 },
		{ { file_data + 8, file_data + 9 }, { file_data + 8 }, 2, 1, 1, 1 },
		/* Words that a program has made, and an address of [vsyscall]. */
		{ { text + 8, word + 8 }, { word + 8 }, 2, 1, 0, 0 },
		{ { word + 8, text + 8 }, { }, 2, 0, 0, 0 },
		{ { vsyscall, text + 8 }, { vsyscall, word + 8 }, 2, 2, 1, 0 },
	}, *s;
	struct stackmap_user user;

	KUNIT_ASSERT_NE(test, user_word_object(word), 0);
	for (s = stacks; s < stacks + ARRAY_SIZE(stacks); s++) {
		user = test_translate(objects, s->ips, &s->nr);
		KUNIT_ASSERT_EQ_MSG(test, s->nr, s->depth, "stack %zu", s - stacks);
		KUNIT_EXPECT_MEMEQ(test, s->ips, s->words, s->depth * sizeof(long));
		KUNIT_EXPECT_EQ_MSG(test, user.cut, s->cut, "stack %zu", s - stacks);
		KUNIT_EXPECT_EQ_MSG(test, user.addresses, s->addresses, "stack %zu", s - stacks);
	}
}

/* Nobody waits for a program that changes its mappings: such a stack is in full. */
static void user_object_busy(struct kunit *test)
{
	struct user_objects *objects = test_objects(test, NULL);
	unsigned long text = test_library(test, "busy", 1);
	unsigned long ips[] = { text + 8 }, words[1];
	struct stackmap_user user = { };
	struct stackmap_stack stack = { .ips = ips, .nr = 1, .user = &user };

	mmap_write_lock(current->mm);
	vma_start_write(vma_lookup(current->mm, text));
	user_objects_translate(objects, &stack, words);
	mmap_write_unlock(current->mm);
	KUNIT_EXPECT_NULL(test, user.objects);
	KUNIT_EXPECT_EQ(test, stack.nr, 0);

	stack.nr = 1;
	user_objects_translate(objects, &stack, words);
	KUNIT_EXPECT_PTR_EQ(test, user.objects, objects);
}

/* A new file costs the same however many there are, up to a bound. The next table has room. */
static void user_object_many(struct kunit *test)
{
	struct user_objects *objects = test_objects(test, NULL), *next;
	struct file *file = test_file(test, "many");
	unsigned long addr = test_map(test, file, 2, TEST_EXEC, 0), ip;
	u32 first = test_nr(objects, addr), n = 1, half = 0, one = 1;
	struct inode *inode = file_inode(file);
	size_t memory = 0;
	u64 start = ktime_get_ns(), took, early = 0, late = U64_MAX;

	next = user_objects_next(objects);
	KUNIT_EXPECT_PTR_EQ(test, next, objects);
	user_objects_put(next);
	for (inode->i_generation = 1; test_nr(objects, addr); inode->i_generation++) {
		ip = addr;
		test_translate(objects, &ip, &one);
		if (!half && user_objects_half_full(objects))
			half = n;
		if (++n % 1000)
			continue;
		took = ktime_get_ns() - start;
		start += took;
		early = n == 1000 ? took : early;
		late = n > 24000 ? min(late, took) : late;
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, user_objects_stats(objects, &memory), n);
	KUNIT_EXPECT_LE(test, memory, 9U << 20);
	KUNIT_EXPECT_LT(test, late, 5 * early);
	KUNIT_EXPECT_GT(test, half, n * 4 / 10);
	KUNIT_EXPECT_LT(test, half, n * 6 / 10);
	KUNIT_EXPECT_NOT_NULL(test, user_object_path(test_word(first, 0)));

	next = user_objects_next(objects);
	KUNIT_EXPECT_PTR_NE(test, next, objects);
	KUNIT_EXPECT_NE(test, test_nr(next, addr), 0);
	user_objects_put(next);
	KUNIT_EXPECT_EQ(test, test_nr(objects, addr), 0);
	inode->i_generation--;
	KUNIT_EXPECT_NE(test, test_nr(objects, addr), 0);
}

/* Record a stack of @nr frames in an object. The instruction that was hit is in @ip, or 0. */
static void test_record_words(struct trace_array *tr, struct user_objects *objects, u32 object,
			      unsigned int nr, u32 ip)
{
	unsigned long words[TEST_DEPTHS];
	struct stackmap_user user = {
		.type		= ip ? TRACE_USER_UNWIND_STACK_SPLIT : TRACE_USER_UNWIND_STACK_ID,
		.size		= sizeof(struct user_unwind_stack_split_entry),
		.ip		= ip ? test_word(ip, 8) : 0,
		.objects	= objects,
	};
	struct stackmap_stack stack = { .ips = words, .nr = nr, .user = &user };

	for (unsigned int i = 0; i < nr; i++)
		words[i] = test_word(object, i << 4);
	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		test_record_stack(tr, tr->array_buffer.buffer, 0, &stack);
	tracer_tracing_off(tr);
}

/* Words that were made before a reset are not recorded after it. */
static void user_object_reset(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 3);
	struct user_objects *objects = test_objects(test, tr);

	test_record_words(tr, objects, 1, 2, 0);
	KUNIT_EXPECT_EQ(test, test_drops(), 0);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	test_record_words(tr, objects, 1, 2, 0);
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_OBJECTS), 1);
}

/* Tables stay with the stacks that refer to them, up to a limit. That stops no map. */
static void user_object_tables(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 3);
	struct user_objects *objects;
	static char name[1400];
	struct inode *inode;
	unsigned long addr;
	struct file *file;
	u32 nr = 0;

	test_current(tr)->gen->recycle = false;
	memset(name, 'x', sizeof(name) - 1);
	file = test_file(test, name);
	inode = file_inode(file);
	addr = test_map(test, file, 2, TEST_EXEC, 0);
	for (int tables = 0; tables < 4; tables++) {
		objects = user_objects_get(tr);
		for (; !user_objects_half_full(objects); inode->i_generation++)
			nr = test_nr(objects, addr);
		test_record_words(tr, objects, nr, 2, 0);
		if (tables == 3)
			break;
		test_replace(test, tr, 1);
		KUNIT_ASSERT_PTR_NE(test, user_objects_get(tr), objects);
	}

	scoped_guard(mutex, &tr->stackmap->lock)
		KUNIT_EXPECT_EQ(test, stackmap_replace(tr->stackmap), -ENOSPC);
	for (unsigned int no = 0; !stackmap_nearly_full(test_current(tr)); no++)
		test_insert_counted(test_current(tr), no);
	test_replace(test, tr, 1);
	KUNIT_EXPECT_PTR_EQ(test, user_objects_get(tr), objects);

	test_empty_buffers(tr);
	test_replace(test, tr, 1);
	KUNIT_EXPECT_PTR_NE(test, user_objects_get(tr), objects);
}

/* A stack does not read the notes of many files. The next one goes on. */
static void user_object_reads(struct kunit *test)
{
	struct user_objects *objects = test_objects(test, NULL);
	unsigned long ips[24], words[24];
	unsigned int nr = 24;

	for (int i = 0; i < nr; i++)
		ips[i] = test_library(test, "one of many", i) + 8;
	for (int left = 8; left > -16; left -= 16) {
		memcpy(words, ips, sizeof(ips));
		KUNIT_EXPECT_EQ(test, test_translate(objects, words, &nr).addresses, max(left, 0));
		KUNIT_ASSERT_EQ(test, nr, 24);
	}
}

static struct trace_array *test_defining(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 3);

	KUNIT_ASSERT_EQ(test, test_set_option(tr, "stackmap-define"), 0);
	/* Events are consumed in the order in which they were written. */
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	return tr;
}

/* The definition of an object whose build id is of these bytes, or not known if @id is 0. */
static void test_expect_object(struct kunit *test, struct trace_array *tr, u32 object, u8 id)
{
	struct trace_iterator *iter = test_expect_event(test, tr, TRACE_USER_OBJECT_DEF);
	struct user_object_def_entry *entry = (void *)iter->ent;

	KUNIT_EXPECT_EQ(test, entry->object, object);
	KUNIT_EXPECT_EQ(test, entry->id_size, id ? BUILD_ID_SIZE_MAX : 0);
	KUNIT_EXPECT_EQ(test, entry->bias, 0);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(entry->build_id, id, BUILD_ID_SIZE_MAX), NULL);
	KUNIT_EXPECT_STREQ(test, entry->path, user_object_path(test_word(object, 0)));
}

/* An object is defined at its first use, and again when its build id is known. */
static void user_object_defined(struct kunit *test)
{
	struct trace_array *tr = test_defining(test);
	struct user_objects *objects = test_objects(test, tr);
	struct file *file = test_file(test, "slow");
	unsigned long addr = test_map(test, file, 2, TEST_EXEC, 0);
	u32 nr = test_nr(objects, test_library(test, "fast", 1));

	for (int i = 0; i < 2; i++) {
		test_record_words(tr, objects, nr, 3, 0);
		test_expect_event(test, tr, TRACE_USER_STACK_DEF);
		test_expect_object(test, tr, nr, 1);
		test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
		test_record_words(tr, objects, nr, 3, 0);
		test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
		ftrace_stackmap_undefine(tr);
	}

	/* The page with the build id comes late. The stack is defined once. */
	nr = test_nr(objects, addr);
	test_record_words(tr, objects, nr, 2, 0);
	test_expect_event(test, tr, TRACE_USER_STACK_DEF);
	test_expect_object(test, tr, nr, 0);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	test_record_words(tr, objects, nr, 2, 0);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	test_fill_file(test, file, 5, BUILD_ID_SIZE_MAX);
	KUNIT_EXPECT_EQ(test, test_nr(objects, addr), nr);
	test_record_words(tr, objects, nr, 2, 0);
	test_expect_object(test, tr, nr, 5);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	test_record_words(tr, objects, nr, 2, 0);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	test_expect_no_event(test, tr);
}

static struct trace_buffer *test_clock_buffer;
static int test_clock_calls;

/* A reader empties the buffer when the third event is reserved. */
static u64 notrace test_clock(void)
{
	if (test_clock_buffer && ++test_clock_calls == 3)
		while (ring_buffer_consume(test_clock_buffer, 0, NULL, NULL))
			;
	return trace_clock_local();
}

/*
 * A full buffer takes neither the definition of a stack nor that of the object that was
 * hit. Then it gets no event that refers to that, even if there is room again.
 */
static void user_object_refused(struct kunit *test)
{
	struct trace_array *tr = test_defining(test);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct user_objects *objects = test_objects(test, tr);
	u32 nr = test_nr(objects, test_library(test, "stack", 1));
	u32 hit = test_nr(objects, test_library(test, "hit", 2));

	test_resize(test, buffer, 2);
	ring_buffer_change_overwrite(buffer, 0);
	ring_buffer_set_clock(buffer, test_clock);
	while (!ring_buffer_dropped_events_cpu(buffer, 0))
		test_record_event(tr, 9);

	test_clock_calls = 0;
	test_clock_buffer = buffer;
	test_record_words(tr, objects, nr, 3, hit);
	test_clock_buffer = NULL;
	KUNIT_EXPECT_EQ(test, test_clock_calls, 2);
	tracing_reset_online_cpus(&tr->array_buffer);

	test_record_words(tr, objects, nr, 3, hit);
	test_expect_event(test, tr, TRACE_USER_STACK_DEF);
	test_expect_object(test, tr, hit, 2);
	test_expect_object(test, tr, nr, 1);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_SPLIT);
	test_expect_no_event(test, tr);
	ring_buffer_change_overwrite(buffer, 1);
}

static struct kunit_case user_object_test_cases[] = {
	KUNIT_CASE(user_object_words),
	KUNIT_CASE(user_object_later),
	KUNIT_CASE(user_object_numbers),
	KUNIT_CASE(user_object_changed),
	KUNIT_CASE(user_object_frames),
	KUNIT_CASE(user_object_busy),
	KUNIT_CASE_SLOW(user_object_many),
	KUNIT_CASE(user_object_reset),
	KUNIT_CASE_SLOW(user_object_tables),
	KUNIT_CASE(user_object_reads),
	KUNIT_CASE(user_object_defined),
	KUNIT_CASE(user_object_refused),
	{}
};

static struct kunit_suite user_object_test_suite = {
	.name		= "user_object",
	.test_cases	= user_object_test_cases,
};

kunit_test_suite(user_object_test_suite);

MODULE_DESCRIPTION("KUnit tests for the files of user stacks");
MODULE_LICENSE("GPL");
