// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests for the files of user stacks: their records, build ids and definitions, and
 * what becomes of them when the map is replaced or reset.
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

/* The length of a name that is more than half of the room for a path. */
#define TEST_LONG_NAME	1000

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

static unsigned long test_word(u32 file, u32 offset)
{
	return BIT(63) | (unsigned long)file << USER_WORD_OFFSET_BITS | offset;
}

/* An instance whose map stays as it is. */
static struct trace_array *test_file_instance(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 3);

	test_current(tr)->gen->recycle = false;
	return tr;
}

/* Translate a stack that is at @ips, for a test that does not know whether an interrupt has hit. */
static struct stackmap_user test_translate(struct trace_array *tr, unsigned long *ips,
					   unsigned int *nr)
{
	struct stackmap_user user = { .type = TRACE_USER_UNWIND_STACK_ID, .deep = true };
	struct stackmap_stack stack = {
		.ips = ips, .nr = *nr, .user = &user,
	};
	unsigned long words[TEST_DEPTHS];
	unsigned int split;

	scoped_guard(rcu)
		user_files_translate(tr, &stack, words);
	split = user.type == TRACE_USER_UNWIND_STACK_SPLIT;
	*nr = stackmap_depth(stack.ips, stack.nr);
	ips[0] = user.ip;
	memmove(ips + split, stack.ips, *nr * sizeof(*ips));
	*nr += split;
	return user;
}

/* The number of the file that is mapped there, 0 for an address. */
static u32 test_nr(struct trace_array *tr, unsigned long addr)
{
	unsigned int one = 1;

	test_translate(tr, &addr, &one);
	return user_word_file(addr);
}

static u32 test_files(struct trace_array *tr)
{
	return atomic_read(&test_current(tr)->files);
}

/* The path of file @nr in the current map. It stays as long as the map. */
static const char *test_path(struct trace_array *tr, u32 nr)
{
	return user_file_path(stackmap_record(test_current(tr), nr));
}

/* Does stack_map_bin show the file with its path, and a build id of @size of these bytes? */
static bool test_shows(struct kunit *test, struct trace_array *tr, u32 nr, u8 byte, u32 size)
{
	const struct stackmap_record *rec = stackmap_record(test_current(tr), nr);
	struct seq_file m = { .size = SZ_4K };
	const struct user_file_bin *bin;
	u8 want[BUILD_ID_SIZE_MAX] = { };
	const char *path;

	memset(want, byte, size);
	m.buf = kunit_kzalloc(test, m.size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m.buf);
	bin = (void *)m.buf;
	path = (void *)(bin + 1);
	KUNIT_EXPECT_EQ(test, user_file_write(&m, rec, nr), m.count);
	KUNIT_EXPECT_EQ(test, user_file_write(NULL, rec, nr), m.count);
	KUNIT_EXPECT_EQ(test, m.count, sizeof(*bin) + ALIGN(strlen(path), 8));
	KUNIT_EXPECT_NULL(test, memchr_inv(path + bin->path_size, 0,
					   ALIGN(bin->path_size, 8) - bin->path_size));
	return bin->file_id == nr && bin->id_size == size && !memcmp(bin->id, want, sizeof(want)) &&
	       bin->path_size == strlen(path) && !strcmp(path, user_file_path(rec));
}

static void user_file_words(struct kunit *test)
{
	static const unsigned long forged[] = { 1, 0xffffffffff600000UL, 0x8000100000000123UL };

	KUNIT_EXPECT_EQ(test, user_word_file(0x8000100000000123UL), 1);
	KUNIT_EXPECT_EQ(test, user_word_file(0xffffefffffffffffUL), USER_WORD_NR - 1);
	KUNIT_EXPECT_EQ(test, user_word_file(0xffffffffff600000UL), 0);
	KUNIT_EXPECT_FALSE(test, user_word_by_file(0x7fffffffffffffffUL));
	KUNIT_EXPECT_TRUE(test, user_word_by_file(0x8000000000000000UL));
	KUNIT_EXPECT_TRUE(test, user_word_by_file(0xffffefffffffffffUL));
	KUNIT_EXPECT_FALSE(test, user_word_by_file(0xfffff00000000000UL));
	KUNIT_EXPECT_EQ(test, user_word_file_id(0x8000100000000123UL, 5 << 19 | 7), 5 << 19 | 1);
	KUNIT_EXPECT_EQ(test, user_stack_depth(forged, ARRAY_SIZE(forged)), 2);
}

/* A file is found by its first words, and never in a slot that words can't name. */
static void user_file_slots(struct kunit *test)
{
	struct ftrace_stackmap *map = test_alloc_map(test, STACKMAP_BITS_MAX);
	static const u32 hashes[][2] = {
		{ 0, 1 }, { STACKMAP_SLOT_MASK, 2 },
		{ STACKMAP_SLOT_MASK - 1, STACKMAP_SLOT_MASK - 1 },
	};
	unsigned long words[3] = { 1, 2, 3 };
	struct stackmap_key key, stack = { .ips = words, .nr = 3, .idx = -ENOENT };

	for (int i = 0; i < ARRAY_SIZE(hashes); i++) {
		words[0] = i;
		KUNIT_EXPECT_EQ(test, stackmap_find_file(map, words, 2, &key), 0);
		KUNIT_EXPECT_LT(test, key.idx, 0);
		key.hash = hashes[i][0];
		key.more = 1;
		KUNIT_EXPECT_EQ(test, stackmap_insert(map, &key), 0);
		KUNIT_EXPECT_EQ(test, key.idx, hashes[i][1]);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&map->files), 3);

	/* The same words are no stack. Other content is no other file. */
	KUNIT_EXPECT_EQ(test, test_get_id(map, words, 3), test_get_id(map, words, 3));
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 4);
	words[0] = 5;
	for (int i = 0; i < 2; i++) {
		words[2] = i;
		KUNIT_EXPECT_EQ(test, stackmap_find_file(map, words, 2, &key), 0);
		KUNIT_EXPECT_EQ(test, key.idx < 0, !i);
		key.more = 1;
		KUNIT_EXPECT_EQ(test, stackmap_insert(map, &key), 0);
		KUNIT_EXPECT_EQ(test, stackmap_record(map, key.idx)->nr, 3);
		KUNIT_EXPECT_EQ(test, stackmap_record(map, key.idx)->ips[2], 0);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&map->files), 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 5);

	/* Nor is a stack a file that begins like it, should they have one hash. */
	words[0] = 6;
	KUNIT_EXPECT_EQ(test, stackmap_find_file(map, words, 2, &key), 0);
	stack.hash = key.hash;
	KUNIT_EXPECT_EQ(test, stackmap_insert(map, &stack), 0);
	KUNIT_EXPECT_EQ(test, stackmap_find_file(map, words, 2, &key), 0);
	KUNIT_EXPECT_LT(test, key.idx, 0);
}

/* Not in memory yet: a number at once, the build id with a later stack that can have it. */
static void user_file_later(struct kunit *test)
{
	struct trace_array *tr = test_file_instance(test);
	struct file *file = test_file(test, "later");
	unsigned long addr = test_map(test, file, 2, TEST_EXEC, 0);
	u32 nr = test_nr(tr, addr);

	for (int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, test_nr(tr, addr), nr);
	KUNIT_EXPECT_TRUE(test, test_shows(test, tr, nr, 0, 0));
	KUNIT_EXPECT_EQ(test, file->f_mapping->nrpages, 0);
	test_fill_file(test, file, 7, 8);
	KUNIT_EXPECT_EQ(test, test_nr(tr, addr), nr);
	KUNIT_EXPECT_TRUE(test, test_shows(test, tr, nr, 7, 8));

	/* A file without one is not asked for ever. */
	for (int asked = 15; asked <= 16; asked++) {
		file = test_file(test, "note");
		test_fill_file(test, file, 1, 0);
		addr = test_map(test, file, 2, TEST_EXEC, 0);
		for (int i = 0; i < asked; i++)
			nr = test_nr(tr, addr);
		test_fill_file(test, file, 1, BUILD_ID_SIZE_MAX);
		KUNIT_EXPECT_EQ(test, test_nr(tr, addr), nr);
		KUNIT_EXPECT_TRUE(test, test_shows(test, tr, nr, 1,
						   asked == 15 ? BUILD_ID_SIZE_MAX : 0));
	}

	/* Frames in a deleted file are addresses, unless its build id is known. */
	file = test_file(test, "deleted");
	clear_nlink(file_inode(file));
	addr = test_map(test, file, 2, TEST_EXEC, 0);
	KUNIT_EXPECT_EQ(test, test_nr(tr, addr), 0);
	test_fill_file(test, file, 1, 0);
	for (int i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, test_nr(tr, addr), 0);
	test_fill_file(test, file, 1, BUILD_ID_SIZE_MAX);
	KUNIT_EXPECT_NE(test, test_nr(tr, addr), 0);
	KUNIT_EXPECT_EQ(test, test_files(tr), 4);
}

/* Two files with one build id keep their paths. */
static void user_file_numbers(struct kunit *test)
{
	struct trace_array *tr = test_file_instance(test);
	unsigned long ours = test_library(test, "ours", 1);
	unsigned long strange = test_library(test, "strange", 1);
	const u32 nr[] = { test_nr(tr, strange), test_nr(tr, ours) };

	KUNIT_EXPECT_NE(test, nr[0], nr[1]);
	KUNIT_EXPECT_EQ(test, test_nr(tr, ours), nr[1]);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_path(tr, nr[0]), "strange"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_path(tr, nr[1]), "ours"));
	KUNIT_EXPECT_EQ(test, test_files(tr), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&test_current(tr)->entries), 2);
}

/* A file that was changed is another one, as is one of which a single thing differs. */
static void user_file_changed(struct kunit *test)
{
	struct super_block *sb, *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct file *file = test_file(test, "changed"), *file2 = test_file(test, "twin");
	struct inode *inode = file_inode(file), *twin = file_inode(file2);
	unsigned long addr = test_map(test, file, 2, TEST_EXEC, 0);
	struct trace_array *tr = test_file_instance(test);
	u32 nr[9];

	test_fill_file(test, file, 1, BUILD_ID_SIZE_MAX);
	nr[0] = test_nr(tr, addr);
	KUNIT_EXPECT_EQ(test, test_nr(tr, addr), nr[0]);
	/* Overwritten, with the old mtime. */
	test_fill_file(test, file, 2, BUILD_ID_SIZE_MAX);
	inode_set_ctime(inode, 1001, 0);
	nr[1] = test_nr(tr, addr);
	KUNIT_EXPECT_TRUE(test, test_shows(test, tr, nr[1], 2, BUILD_ID_SIZE_MAX));
	inode_set_ctime(inode, 1001, 1);
	nr[2] = test_nr(tr, addr);
	inode_set_ctime(inode, 1002, 1);
	nr[8] = test_nr(tr, addr);
	i_size_write(inode, i_size_read(inode) + 1);
	nr[3] = test_nr(tr, addr);
	inode->i_generation++;
	nr[4] = test_nr(tr, addr);
	inode->i_generation--;
	inode->i_ino++;
	nr[5] = test_nr(tr, addr);
	inode->i_ino--;
	KUNIT_ASSERT_NOT_NULL(test, other);
	sb = inode->i_sb;
	other->s_dev = sb->s_dev + 1;
	inode->i_sb = other;
	nr[6] = test_nr(tr, addr);
	inode->i_sb = sb;
	KUNIT_EXPECT_EQ(test, test_nr(tr, addr), nr[3]);

	twin->i_ino = inode->i_ino;
	twin->i_generation = inode->i_generation;
	inode_set_ctime(twin, 1002, 1);
	i_size_write(twin, i_size_read(inode));
	nr[7] = test_nr(tr, test_map(test, file2, 2, TEST_EXEC, 0));
	for (int i = 0; i < ARRAY_SIZE(nr); i++) {
		for (int j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, nr[i], nr[j]);
	}
}

/* Frames become words, and a stack ends where there is no code. */
static void user_file_frames(struct kunit *test)
{
	unsigned long near = BIT(USER_WORD_OFFSET_BITS) - 2 * PAGE_SIZE, vsyscall = -10UL << 20;
	struct trace_array *tr = test_file_instance(test);
	struct file *file = test_file(test, "code");
	unsigned long text = test_map(test, file, 2, TEST_EXEC, 0);
	unsigned long code = test_map(test, NULL, 1, TEST_EXEC, 0);
	unsigned long far = test_map(test, file, 1, TEST_EXEC, near);
	/* Between the two, which would become one mapping. */
	unsigned long data = test_map(test, NULL, 1, PROT_READ | PROT_WRITE, 0);
	unsigned long farther = test_map(test, file, 1, TEST_EXEC, near + PAGE_SIZE);
	unsigned long file_data = test_map(test, test_file(test, "data"), 1, PROT_READ, 0);
	/* The file follows other code. */
	unsigned long edge = test_map(test, NULL, 2, TEST_EXEC, 0) + PAGE_SIZE;
	unsigned long word = test_word(test_nr(tr, text), 0);
	struct {
		unsigned long	ips[4], words[4];
		unsigned int	nr, depth, addresses, cut;
	} stacks[] = {
		{ { text, code + 8, far + 8 }, { word, code + 8, word + near + 8 }, 3, 3, 1, 0 },
		/* A return address may be behind the end of the mapping. */
		{ { code, text + 2 * PAGE_SIZE }, { code, word + 2 * PAGE_SIZE }, 2, 2, 1, 0 },
		{ { text, text + 2 * PAGE_SIZE }, { word, word + 2 * PAGE_SIZE }, 2, 2, 0, 0 },
		{ { edge, edge, edge + 1 }, { word, edge, word + 1 }, 3, 3, 1, 0 },
		/* An offset that is too far. */
		{ { farther + 8, text + 8 }, { farther + 8, word + 8 }, 2, 2, 1, 0 },
		/* No code. A file without code is none of ours. */
		{ { text + 8, data + 8, text + 8 }, { word + 8 }, 3, 1, 0, 1 },
		{ { text + 8, 8, text + 8 }, { word + 8 }, 3, 1, 0, 1 },
		{ { text + 8, file_data + 8 }, { word + 8 }, 2, 1, 0, 1 },
		{ { file_data + 8, text + 8 }, { file_data + 8, word + 8 }, 2, 2, 1, 0 },
		{ { file_data + 8, file_data + 9 }, { file_data + 8 }, 2, 1, 1, 1 },
		/* Words that a program has made, and an address of [vsyscall]. */
		{ { text + 8, word + 8 }, { word + 8 }, 2, 1, 0, 1 },
		{ { word + 8, text + 8 }, { }, 2, 0, 0, 1 },
		{ { vsyscall, text + 8 }, { vsyscall, word + 8 }, 2, 2, 1, 0 },
		/* The end. */
		{ { text + 8, 0, text + 8 }, { word + 8 }, 3, 1, 0, 0 },
		{ { 0, text + 8 }, { }, 2, 0, 0, 0 },
	}, *s;
	struct stackmap_user user;
	unsigned int nr;

	KUNIT_ASSERT_NE(test, user_word_file(word), 0);
	KUNIT_ASSERT_EQ(test, kunit_vm_mmap(test, file, edge, PAGE_SIZE, TEST_EXEC,
					    MAP_PRIVATE | MAP_FIXED, 0), edge);
	for (s = stacks; s < stacks + ARRAY_SIZE(stacks); s++) {
		nr = s->nr;
		user = test_translate(tr, s->ips, &s->nr);
		KUNIT_ASSERT_EQ_MSG(test, s->nr, s->depth, "stack %zu", s - stacks);
		KUNIT_EXPECT_MEMEQ(test, s->ips, s->words, s->depth * sizeof(long));
		KUNIT_EXPECT_EQ_MSG(test, user.cut, s->cut, "stack %zu", s - stacks);
		KUNIT_EXPECT_EQ_MSG(test, user.deep, s->depth == nr, "stack %zu", s - stacks);
		KUNIT_EXPECT_EQ_MSG(test, user.addresses, s->addresses, "stack %zu", s - stacks);
	}
}

/* Nobody waits for a program that changes its mappings: its stack is in full, as without a map. */
static void user_file_busy(struct kunit *test)
{
	struct trace_array *tr = test_file_instance(test);
	unsigned long text = test_library(test, "busy", 1);
	unsigned long ips[] = { text + 8 }, words[1];
	struct stackmap_user user = { };
	struct stackmap_stack stack = { .ips = ips, .nr = 1, .user = &user };

	mmap_write_lock(current->mm);
	vma_start_write(vma_lookup(current->mm, text));
	scoped_guard(rcu)
		user_files_translate(tr, &stack, words);
	mmap_write_unlock(current->mm);
	KUNIT_EXPECT_NULL(test, user.map);
	KUNIT_EXPECT_EQ(test, stack.nr, 0);

	stack.nr = 1;
	scoped_guard(rcu)
		user_files_translate(tr, &stack, words);
	KUNIT_EXPECT_PTR_EQ(test, user.map, test_current(tr));

	KUNIT_EXPECT_EQ(test, test_set_option(tr, "nostackmap"), 0);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	stack = (struct stackmap_stack) { .ips = ips, .nr = 1, .user = &user };
	user.map = NULL;
	scoped_guard(rcu)
		user_files_translate(tr, &stack, words);
	KUNIT_EXPECT_NULL(test, user.map);
	KUNIT_EXPECT_EQ(test, stack.nr, 0);
}

/* A path ends where it does, even if it is so long that it was moved onto itself. */
static void user_file_long_path(struct kunit *test)
{
	char *name = kunit_kzalloc(test, TEST_LONG_NAME + sizeof(long) + 1, GFP_KERNEL);
	struct trace_array *tr = test_file_instance(test);
	struct ftrace_stackmap *map = test_current(tr);
	u32 nr;

	KUNIT_ASSERT_NOT_NULL(test, name);
	map->persistent = true;
	memset(name, 'x', TEST_LONG_NAME);
	for (int len = TEST_LONG_NAME; len < TEST_LONG_NAME + sizeof(long); len++) {
		nr = test_nr(tr, test_library(test, name, 1));
		KUNIT_ASSERT_NE(test, nr, 0);
		KUNIT_EXPECT_EQ(test, strlen(test_path(tr, nr)), len + strlen("/ (deleted)"));
		KUNIT_EXPECT_TRUE(test, test_shows(test, tr, nr, 1, BUILD_ID_SIZE_MAX));
		KUNIT_EXPECT_NE(test, user_file_intact(map, stackmap_record(map, nr)), 0);
		name[len] = 'x';
	}
	map->persistent = false;
}

/* Files fill a map. Then new ones stay addresses, and those that are there are found. */
static void user_file_many(struct kunit *test)
{
	struct trace_array *tr = test_file_instance(test);
	struct ftrace_stackmap *map = test_current(tr);
	struct file *file = test_file(test, "many");
	unsigned long addr = test_map(test, file, 2, TEST_EXEC, 0);
	struct inode *inode = file_inode(file);
	u32 tail;

	test_fill_file(test, file, 1, BUILD_ID_SIZE_MAX);
	for (inode->i_generation = 1; test_nr(tr, addr); inode->i_generation++)
		;
	KUNIT_EXPECT_EQ(test, inode->i_generation - 1, map->max_entries);
	KUNIT_EXPECT_EQ(test, test_files(tr), map->max_entries);
	/* Nothing is tried that can't succeed. */
	tail = atomic_read(&map->tail);
	KUNIT_EXPECT_EQ(test, test_nr(tr, addr), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->tail), tail);
	inode->i_generation--;
	KUNIT_EXPECT_NE(test, test_nr(tr, addr), 0);
	test_replace(test, tr, 1);
	KUNIT_EXPECT_NE(test, test_nr(tr, addr), 0);
	KUNIT_EXPECT_EQ(test, test_files(tr), 1);
}

/* A map that files fill is replaced. */
static void user_file_replaces(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 3);
	struct file *file = test_file(test, "more");
	unsigned long addr = test_map(test, file, 2, TEST_EXEC, 0);

	for (u32 i = 0; i < 800; i++) {
		file_inode(file)->i_generation++;
		test_nr(tr, addr);
	}
	irq_work_sync(&tr->stackmap->nearly_full);
	flush_delayed_work(&tr->stackmap->work);
	KUNIT_EXPECT_EQ(test, tr->stackmap->past.rotations, 1);
	KUNIT_EXPECT_EQ(test, tr->stackmap->past.recycled, 0);
	KUNIT_EXPECT_LT(test, test_files(tr), 800 / 2);
}

/* Record a stack of @nr frames in a file of @map. The file that was hit is @ip, or 0. */
static void test_record_words(struct trace_array *tr, struct ftrace_stackmap *map, u32 file,
			      unsigned int nr, u32 ip)
{
	unsigned long words[TEST_DEPTHS];
	struct stackmap_user user = {
		.type	= ip ? TRACE_USER_UNWIND_STACK_SPLIT : TRACE_USER_UNWIND_STACK_ID,
		.size	= sizeof(struct user_unwind_stack_split_entry),
		.ip	= ip ? test_word(ip, 8) : 0,
		.map	= map,
	};
	struct stackmap_stack stack = { .ips = words, .nr = nr, .user = &user };

	for (unsigned int i = 0; i < nr; i++)
		words[i] = test_word(file, i << 4);
	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		test_record_stack(tr, tr->array_buffer.buffer, 0, &stack);
	tracer_tracing_off(tr);
}

struct test_change {
	struct work_struct	work;
	struct kunit		*test;
	struct trace_array	*tr;
	bool			reset;
};

static void test_change(struct work_struct *work)
{
	struct test_change *change = container_of(work, struct test_change, work);

	if (change->reset)
		KUNIT_EXPECT_EQ(change->test, test_reset(change->tr), 0);
	else
		test_replace(change->test, change->tr, 1);
}

/* A stack goes to the map that has its files, even if that is replaced or reset meanwhile. */
static void user_file_replaced(struct kunit *test)
{
	struct test_change change = { .test = test };
	struct trace_array *tr = test_instance(test, 3);
	unsigned long text = test_library(test, "meanwhile", 1);
	unsigned long ips[] = { text + 8, text + 16 }, words[2], timeout;
	struct ftrace_stackmap *map;
	struct trace_iterator *iter;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	INIT_WORK_ONSTACK(&change.work, test_change);
	change.tr = tr;
	for (int i = 0; i < 2; i++) {
		struct stackmap_user user = {
			.type	= TRACE_USER_UNWIND_STACK_ID,
			.size	= sizeof(struct user_unwind_stack_id_entry),
		};
		struct stackmap_stack stack = { .ips = ips, .nr = 2, .user = &user };

		map = test_current(tr);
		change.reset = i;
		timeout = jiffies + 10 * HZ;
		scoped_guard(rcu) {
			user_files_translate(tr, &stack, words);
			schedule_work_on(1, &change.work);
			while (test_current(tr) == map && time_before(jiffies, timeout))
				cpu_relax();
			KUNIT_EXPECT_PTR_NE(test, test_current(tr), map);
			tracer_tracing_on(tr);
			scoped_guard(preempt_notrace)
				test_record_stack(tr, tr->array_buffer.buffer, 0, &stack);
			tracer_tracing_off(tr);
		}
		flush_work(&change.work);
		iter = test_expect_event(test, tr, user.type);
		KUNIT_EXPECT_EQ(test, stackmap_event_id(iter->ent, 0) >> STACKMAP_SLOT_BITS, 3 + i);
		if (i)
			KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), "> (stale)\n"));
		else
			KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter),
							   "meanwhile (deleted)[+0x10]\n"));
		KUNIT_EXPECT_EQ(test, test_successes(), !i);
		KUNIT_EXPECT_EQ(test, test_drops(), 0);
	}
	destroy_work_on_stack(&change.work);
}

/* Make the map as if it were new, with another hash. */
static void test_clear_map(struct ftrace_stackmap *map)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(map->cache, cpu), 0, sizeof(*map->cache));
	memset(map->slots, 0, array_size(map->nr_slots, sizeof(*map->slots)));
	atomic_set(&map->entries, 0);
	atomic_set(&map->files, 0);
	atomic_set(&map->tail, 1);
	get_random_bytes(&map->hash_key, sizeof(map->hash_key));
}

static struct trace_iterator *test_peek(struct kunit *test, struct trace_array *tr)
{
	return test_iter(test, tr, ring_buffer_peek(tr->array_buffer.buffer, 0, NULL, NULL));
}

/*
 * A packed generation has the files of its user stacks and of what was hit, whatever is in
 * its first slot and its last one.
 */
static void user_file_packed(struct kunit *test)
{
	unsigned long lib = test_library(test, "packed", 1), other = test_library(test, "gone", 2);
	struct trace_array *tr = test_instance(test, 3);
	unsigned long hit = test_library(test, "hit", 3);
	struct ftrace_stackmap *map;
	struct trace_iterator *iter;
	unsigned int order, seen = 0;
	int kernel, user, file;
	u32 nr, ip;

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	for (int tries = 0; hweight32(seen) < 6 && tries < 200; tries++) {
		map = test_current(tr);
		test_clear_map(map);
		test_empty_buffers(tr);
		kernel = test_instance_id(tr, 5);
		nr = test_nr(tr, lib);
		ip = test_nr(tr, hit);
		test_nr(tr, other);
		test_record_words(tr, map, nr, 3, ip);
		iter = test_peek(test, tr);
		user = stackmap_event_id(iter->ent, 0);
		file = map->first_id | nr;
		order = (kernel < file) + 2 * (file < user) + 4 * (kernel < user);
		if (seen & BIT(order))
			continue;
		seen |= BIT(order);

		test_replace(test, tr, 2);
		KUNIT_EXPECT_EQ(test, test_gens(tr)->gen[0]->nr, 4);
		KUNIT_EXPECT_EQ(test, test_gens(tr)->gen[0]->files, 2);
		KUNIT_EXPECT_TRUE(test, test_resolves(test, tr, kernel, 5));
		KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), "hit (deleted)[+0x8]\n => "));
		KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), "packed (deleted)[+0x20]\n"));
		KUNIT_EXPECT_EQ(test, test_printed_frames(iter), 4);
	}
	KUNIT_EXPECT_EQ(test, hweight32(seen), 6);
}

/* A file stays for each CPU that has a stack with it, and for no other. */
static void user_file_cpus(struct kunit *test)
{
	unsigned long lib = test_library(test, "cpus", 1);
	struct trace_array *tr = test_instance(test, 3);
	struct ftrace_stackmap *map = test_current(tr);
	u32 nr = test_nr(tr, lib);
	struct trace_iterator *iter;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	for (int cpu = 0; cpu < 2; cpu++) {
		KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)), 0);
		test_record_words(tr, map, nr, 3, 0);
	}
	/* The CPU that had it first has no event of it any more. */
	ring_buffer_consume(tr->array_buffer.buffer, 0, NULL, NULL);
	iter = test_iter(test, tr, ring_buffer_peek(tr->array_buffer.buffer, 1, NULL, NULL));
	test_replace(test, tr, 2);
	KUNIT_EXPECT_NOT_NULL(test, strstr(test_print(iter), "cpus (deleted)[+0x20]\n"));
	ring_buffer_consume(tr->array_buffer.buffer, 1, NULL, NULL);
	test_empty_buffers(tr);
	test_replace(test, tr, 1);
	KUNIT_EXPECT_NULL(test, stackmap_gen_of(test_gens(tr), stackmap_event_id(iter->ent, 0)));
}

/* Many files of few stacks go with the CPU that had them. Another one keeps its own stacks. */
static void user_file_gone(struct kunit *test)
{
	struct trace_array *tr = test_instance(test, 3);
	struct ftrace_stackmap *map = test_current(tr);
	unsigned long words[TEST_DEPTHS];
	struct stackmap_user user = {
		.type	= TRACE_USER_UNWIND_STACK_ID,
		.size	= sizeof(struct user_unwind_stack_id_entry),
		.map	= map,
	};
	struct stackmap_stack stack = { .ips = words, .nr = 12, .user = &user };

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(1)), 0);
	for (int no = 1; no <= 3; no++)
		test_record_event(tr, no);

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	for (int i = 0; i < stack.nr; i++)
		words[i] = test_word(test_nr(tr, test_library(test, "one of many", 1)), 8);
	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		test_record_stack(tr, tr->array_buffer.buffer, 0, &stack);
	tracer_tracing_off(tr);
	test_replace(test, tr, 1);
	KUNIT_EXPECT_EQ(test, test_gens(tr)->gen[0]->nr, 3 + 1 + 12);
	KUNIT_EXPECT_EQ(test, test_gens(tr)->gen[0]->files, 12);

	tracing_reset_cpu(&tr->array_buffer, 0);
	test_replace(test, tr, 1);
	KUNIT_EXPECT_EQ(test, test_gens(tr)->gen[0]->nr, 3);
	KUNIT_EXPECT_EQ(test, test_gens(tr)->gen[0]->files, 0);
	KUNIT_EXPECT_EQ(test, tr->stackmap->past.recycled, 1);
	KUNIT_EXPECT_EQ(test, test_all_resolve(test, tr, tr->array_buffer.buffer), 0);
}

/* A stack looks for few build ids, and stores few files. The next one goes on. */
static void user_file_reads(struct kunit *test)
{
	static const unsigned int addresses[] = { 8, 0, 0, 0, 0, 0, 0 };
	struct trace_array *tr = test_file_instance(test);
	unsigned long ips[24], words[24];
	unsigned int nr = 24, known;

	for (int i = 0; i < nr; i++)
		ips[i] = test_library(test, "one of many", 1) + 8;
	for (int i = 0; i < ARRAY_SIZE(addresses); i++) {
		memcpy(words, ips, sizeof(ips));
		KUNIT_EXPECT_EQ(test, test_translate(tr, words, &nr).addresses, addresses[i]);
		KUNIT_ASSERT_EQ(test, nr, 24);
		known = 0;
		for (int j = 0; j < nr; j++)
			known += user_word_file(words[j]) &&
				 test_shows(test, tr, user_word_file(words[j]), 1,
					    BUILD_ID_SIZE_MAX);
		KUNIT_EXPECT_EQ(test, known, min(4 * (i + 1), 24));
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

/* The definition of a file whose build id is of these bytes, or not known if @id is 0. */
static void test_expect_file(struct kunit *test, struct trace_array *tr, u32 nr, u8 id)
{
	struct trace_iterator *iter = test_expect_event(test, tr, TRACE_USER_FILE_DEF);
	struct user_file_def_entry *entry = (void *)iter->ent;

	KUNIT_EXPECT_EQ(test, entry->file_id, test_current(tr)->first_id | nr);
	KUNIT_EXPECT_EQ(test, entry->id_size, id ? BUILD_ID_SIZE_MAX : 0);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(entry->build_id, id, BUILD_ID_SIZE_MAX), NULL);
	KUNIT_EXPECT_STREQ(test, entry->path, test_path(tr, nr));
}

/* A file is defined at its first use, and again when its build id is known. */
static void user_file_defined(struct kunit *test)
{
	struct trace_array *tr = test_defining(test);
	struct file *file = test_file(test, "slow");
	unsigned long addr = test_map(test, file, 2, TEST_EXEC, 0);
	u32 nr = test_nr(tr, test_library(test, "fast", 1));

	for (int i = 0; i < 2; i++) {
		test_record_words(tr, test_current(tr), nr, 3, 0);
		test_expect_event(test, tr, TRACE_USER_STACK_DEF);
		test_expect_file(test, tr, nr, 1);
		test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
		test_record_words(tr, test_current(tr), nr, 3, 0);
		test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
		ftrace_stackmap_undefine(tr);
	}

	/* The page with the build id comes late. The stack is defined once. */
	nr = test_nr(tr, addr);
	test_record_words(tr, test_current(tr), nr, 2, 0);
	test_expect_event(test, tr, TRACE_USER_STACK_DEF);
	test_expect_file(test, tr, nr, 0);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	test_record_words(tr, test_current(tr), nr, 2, 0);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	test_fill_file(test, file, 5, BUILD_ID_SIZE_MAX);
	KUNIT_EXPECT_EQ(test, test_nr(tr, addr), nr);
	test_record_words(tr, test_current(tr), nr, 2, 0);
	test_expect_file(test, tr, nr, 5);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	test_record_words(tr, test_current(tr), nr, 2, 0);
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
 * A full buffer takes neither the definition of a stack nor that of the file that was
 * hit. Then it gets no event that refers to that, even if there is room again.
 */
static void user_file_refused(struct kunit *test)
{
	struct trace_array *tr = test_defining(test);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	u32 nr = test_nr(tr, test_library(test, "stack", 1));
	u32 hit = test_nr(tr, test_library(test, "hit", 2));

	test_resize(test, buffer, 2);
	ring_buffer_change_overwrite(buffer, 0);
	ring_buffer_set_clock(buffer, test_clock);
	while (!ring_buffer_dropped_events_cpu(buffer, 0))
		test_record_event(tr, 9);

	test_clock_calls = 0;
	test_clock_buffer = buffer;
	test_record_words(tr, test_current(tr), nr, 3, hit);
	test_clock_buffer = NULL;
	KUNIT_EXPECT_EQ(test, test_clock_calls, 2);
	tracing_reset_online_cpus(&tr->array_buffer);

	test_record_words(tr, test_current(tr), nr, 3, hit);
	test_expect_event(test, tr, TRACE_USER_STACK_DEF);
	test_expect_file(test, tr, hit, 2);
	test_expect_file(test, tr, nr, 1);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_SPLIT);
	test_expect_no_event(test, tr);
	ring_buffer_change_overwrite(buffer, 1);
}

/* How many slots a reboot clears when a byte of a file's record is another one. */
static unsigned int test_reboot(struct ftrace_stackmap *copy, const struct ftrace_stackmap *map,
				u32 nr, int byte)
{
	memcpy(copy, map, stackmap_size(STACKMAP_BITS_MIN));
	copy->arena = &copy->slots[copy->nr_slots];
	if (byte >= 0)
		((u8 *)stackmap_record(copy, nr)->ips)[byte] ^= 0x10;
	return stackmap_restore(copy, STACKMAP_BITS_MIN);
}

/* After a reboot, a stack is there with all files that it refers to, or is not there. */
static void user_file_reboot(struct kunit *test)
{
	struct ftrace_stackmap *copy = kunit_kzalloc(test, stackmap_size(STACKMAP_BITS_MIN),
						     GFP_KERNEL);
	struct trace_array *tr = test_file_instance(test);
	struct ftrace_stackmap *map = test_current(tr);
	unsigned int kept = 0, bytes, cleared, files;
	struct file *file = test_file(test, "later");
	u32 nr[3];

	KUNIT_ASSERT_NOT_NULL(test, copy);
	map->persistent = true;
	nr[0] = test_nr(tr, test_library(test, "a path of several words", 1));
	/* It gets its build id after it was stored. */
	nr[1] = test_nr(tr, test_map(test, file, 2, TEST_EXEC, 0));
	test_fill_file(test, file, 7, BUILD_ID_SIZE_MAX);
	KUNIT_EXPECT_EQ(test, test_nr(tr, test_map(test, file, 2, TEST_EXEC, 0)), nr[1]);
	KUNIT_EXPECT_TRUE(test, test_shows(test, tr, nr[1], 7, BUILD_ID_SIZE_MAX));
	/* And one that has none. */
	nr[2] = test_nr(tr, test_map(test, test_file(test, "none"), 2, TEST_EXEC, 0));
	for (int i = 0; i < ARRAY_SIZE(nr); i++) {
		KUNIT_ASSERT_NE(test, nr[i], 0);
		test_record_words(tr, map, nr[i], 3 + i, 0);
	}

	KUNIT_EXPECT_EQ(test, test_reboot(copy, map, 0, -1), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&copy->files), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&copy->entries), 6);
	for (int i = 0; i < ARRAY_SIZE(nr); i++) {
		KUNIT_EXPECT_STREQ(test, user_file_path(stackmap_record(copy, nr[i])),
				   test_path(tr, nr[i]));
		kept = 0;
		bytes = stackmap_record(map, nr[i])->nr * sizeof(long);
		for (int byte = 0; byte < bytes; byte++) {
			cleared = test_reboot(copy, map, nr[i], byte);
			files = atomic_read(&copy->files);
			KUNIT_EXPECT_TRUE(test, cleared == 2 * (3 - files));
			KUNIT_EXPECT_EQ(test, atomic_read(&copy->entries), 2 * files);
			kept += !cleared;
		}
		/* What counts the asks for the build id does not matter. */
		KUNIT_EXPECT_EQ(test, kept, sizeof(atomic_t));
	}

	/* A stack of a file whose slot leads to another record now. */
	test_reboot(copy, map, 0, -1);
	copy->slots[nr[0]] = copy->slots[nr[1]];
	KUNIT_EXPECT_EQ(test, stackmap_restore(copy, STACKMAP_BITS_MIN), 2);
	map->persistent = false;
}

static struct kunit_case user_file_test_cases[] = {
	KUNIT_CASE(user_file_words),
	KUNIT_CASE(user_file_slots),
	KUNIT_CASE(user_file_later),
	KUNIT_CASE(user_file_numbers),
	KUNIT_CASE(user_file_changed),
	KUNIT_CASE(user_file_frames),
	KUNIT_CASE(user_file_busy),
	KUNIT_CASE(user_file_long_path),
	KUNIT_CASE(user_file_many),
	KUNIT_CASE(user_file_replaces),
	KUNIT_CASE(user_file_replaced),
	KUNIT_CASE(user_file_packed),
	KUNIT_CASE(user_file_cpus),
	KUNIT_CASE(user_file_gone),
	KUNIT_CASE(user_file_reads),
	KUNIT_CASE(user_file_defined),
	KUNIT_CASE(user_file_refused),
	KUNIT_CASE(user_file_reboot),
	{}
};

static struct kunit_suite user_file_test_suite = {
	.name		= "user_file",
	.test_cases	= user_file_test_cases,
};

kunit_test_suite(user_file_test_suite);

MODULE_DESCRIPTION("KUnit tests for the files of user stacks");
MODULE_LICENSE("GPL");
