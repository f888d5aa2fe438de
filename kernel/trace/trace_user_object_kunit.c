// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests for the files of user stacks: the table of objects, what is read of their
 * headers, and a reset between translation and recording. The files are images in memory,
 * as that of a vDSO, or on a disk that is slow.
 */
#include <linux/anon_inodes.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/elf.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/seq_file.h>
#include <linux/shmem_fs.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/trace_clock.h>
#include <linux/uio.h>

#include "trace_stackmap_kunit.h"

#define TEST_BIAS	0x400000UL
#define TEST_ROOM	SZ_16K

/* A program with a segment of code, and with a build id of @id_size bytes. */
struct test_image {
	union {
		struct elf64_hdr	ehdr;
		struct elf32_hdr	ehdr32;
	};
	union {
		struct elf64_phdr	phdr[3];
		struct elf32_phdr	phdr32[3];
	};
	struct elf64_note		other;
	char				other_name[8];
	struct elf64_note		note;
	char				name[4];
	u8				id[32];
};

static void test_fill_image(struct test_image *image, bool is64, u8 id, u32 id_size)
{
	u32 notes = offsetof(struct test_image, other), size = sizeof(*image) - notes;

	memset(image, 0, sizeof(*image));
	memcpy(image->ehdr.e_ident, ELFMAG, SELFMAG);
	image->ehdr.e_ident[EI_CLASS] = is64 ? ELFCLASS64 : ELFCLASS32;
	if (is64) {
		image->ehdr.e_phoff = offsetof(struct test_image, phdr);
		image->ehdr.e_phnum = 3;
		image->phdr[0] = (struct elf64_phdr) { .p_type = PT_LOAD, .p_vaddr = 4096 };
		image->phdr[1] = (struct elf64_phdr) { .p_type = PT_LOAD, .p_flags = PF_X,
			.p_vaddr = TEST_BIAS + 4096, .p_offset = 4096 };
		image->phdr[2] = (struct elf64_phdr) { .p_type = PT_NOTE, .p_offset = notes,
			.p_filesz = size };
	} else {
		image->ehdr32.e_phoff = offsetof(struct test_image, phdr32);
		image->ehdr32.e_phnum = 3;
		image->phdr32[0] = (struct elf32_phdr) { .p_type = PT_LOAD, .p_vaddr = 4096 };
		image->phdr32[1] = (struct elf32_phdr) { .p_type = PT_LOAD, .p_flags = PF_X,
			.p_vaddr = TEST_BIAS + 4096, .p_offset = 4096 };
		image->phdr32[2] = (struct elf32_phdr) { .p_type = PT_NOTE, .p_offset = notes,
			.p_filesz = size };
	}
	image->other = (struct elf64_note) { .n_namesz = 6, .n_type = 3 };
	strscpy(image->other_name, "Other", sizeof(image->other_name));
	image->note = (struct elf64_note) { .n_namesz = 4, .n_descsz = id_size, .n_type = 3 };
	memcpy(image->name, "GNU", 4);
	memset(image->id, id, id_size);
}

/* A disk with a file that is not in the page cache. It can be read once @ready is complete. */
struct test_disk {
	struct test_image	image;
	struct completion	ready;
};

static struct test_disk test_disks[2];

static ssize_t test_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct test_disk *disk = iocb->ki_filp->private_data;
	size_t got;

	wait_for_completion(&disk->ready);
	if (iocb->ki_pos >= sizeof(disk->image))
		return 0;
	got = copy_to_iter((void *)&disk->image + iocb->ki_pos,
			   sizeof(disk->image) - iocb->ki_pos, to);
	iocb->ki_pos += got;
	return got;
}

static const struct file_operations test_disk_fops = {
	.read_iter	= test_read_iter,
};

/* Nothing is read any more when a test ends. */
static void test_end_disk(void *data)
{
	struct test_disk *disk = data;

	complete_all(&disk->ready);
	while (READ_ONCE(user_object_nr_works))
		msleep(20);
}

static struct test_disk *test_disk(struct kunit *test, int i, u8 id)
{
	struct test_disk *disk = &test_disks[i];

	test_fill_image(&disk->image, true, id, BUILD_ID_SIZE_MAX);
	init_completion(&disk->ready);
	KUNIT_ASSERT_EQ(test, kunit_add_action(test, test_end_disk, disk), 0);
	return disk;
}

/* Look up a file of @disk. */
static u32 test_add_file(struct kunit *test, struct user_objects *objects, struct test_disk *disk,
			 u64 ino, bool deleted)
{
	struct user_file f = { .key.ino = ino + 1 };
	u32 nr;

	f.file = anon_inode_create_getfile("[test]", &test_disk_fops, disk, O_RDONLY, NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f.file);
	if (deleted)
		clear_nlink(file_inode(f.file));
	nr = user_object_new(objects, &f);
	fput(f.file);
	return nr;
}

static unsigned long test_word(u32 object, u32 offset)
{
	return BIT(63) | (unsigned long)object << USER_WORD_OFFSET_BITS | offset;
}

static u32 test_add(struct user_objects *objects, const struct test_image *image, u64 ino)
{
	struct user_file f = {
		.key.ino	= ino + 1,
		.image		= image,
		.image_size	= sizeof(*image),
	};

	return user_object_new(objects, &f);
}

static struct user_objects *test_objects(struct kunit *test)
{
	struct user_objects *objects = user_objects_alloc();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, objects);
	kunit_add_action(test, (kunit_action_t *)user_objects_put, objects);
	return objects;
}

/* The last object, as stack_map_bin has it. Returns how many there are. */
static int test_last(struct kunit *test, struct user_objects *objects, struct user_object_bin *bin,
		     u8 *id)
{
	struct seq_file m = { .size = TEST_ROOM };
	size_t at = 2 * sizeof(u32);
	u32 section[2];
	int n = 0;

	m.buf = kunit_kzalloc(test, TEST_ROOM, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m.buf);
	user_objects_write(objects, &m);
	KUNIT_ASSERT_FALSE(test, seq_has_overflowed(&m));
	memcpy(section, m.buf, sizeof(section));
	KUNIT_EXPECT_EQ(test, section[0], STACKMAP_BIN_FILES);
	KUNIT_EXPECT_EQ(test, section[1], m.count - at);
	for (; at < m.count; n++) {
		memcpy(bin, m.buf + at, sizeof(*bin));
		at += sizeof(*bin);
		memcpy(id, m.buf + at, bin->id_size);
		at += ALIGN(bin->id_size, 8);
		if (bin->path_size == strlen("[vdso]"))
			KUNIT_EXPECT_MEMEQ(test, m.buf + at, "[vdso]", bin->path_size);
		at += ALIGN(bin->path_size, 8);
	}
	KUNIT_EXPECT_EQ(test, at, m.count);
	return n;
}

static void user_object_words(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, user_word_object(0x7fffffffffffffffUL), 0);
	KUNIT_EXPECT_EQ(test, user_word_object(0x8000100000000123UL), 1);
	KUNIT_EXPECT_EQ(test, user_word_object(0xffffefffffffffffUL), USER_WORD_NR - 1);
	KUNIT_EXPECT_EQ(test, user_word_object(0xffffffffff600000UL), 0);
	KUNIT_EXPECT_FALSE(test, user_word_forged(0x7fffffffffffffffUL));
	KUNIT_EXPECT_TRUE(test, user_word_forged(0x8000000000000000UL));
	KUNIT_EXPECT_TRUE(test, user_word_forged(0xffffefffffffffffUL));
	KUNIT_EXPECT_FALSE(test, user_word_forged(0xfffff00000000000UL));
	KUNIT_EXPECT_FALSE(test, user_word_forged(0xffffffffff600000UL));
}

/* A stack is by file in stack_map_bin if any of its frames is. */
static void user_object_flags(struct kunit *test)
{
	const unsigned long by_file = 0x8000100000000123UL, address = 0x123;
	const unsigned long words[][2] = {
		{ address, address }, { by_file, address }, { address, by_file },
	};
	struct stackmap_record *rec;

	rec = kunit_kzalloc(test, struct_size(rec, ips, 2), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rec);
	rec->nr = 2;
	for (int i = 0; i < ARRAY_SIZE(words); i++) {
		memcpy(rec->ips, words[i], sizeof(words[i]));
		rec->user = true;
		KUNIT_EXPECT_EQ(test, stackmap_bin_flags(rec),
				STACKMAP_BIN_USER | (i ? STACKMAP_BIN_OBJECTS : 0));
		rec->user = false;
		KUNIT_EXPECT_EQ(test, stackmap_bin_flags(rec), 0);
	}
}

static void user_object_headers(struct kunit *test)
{
	struct user_objects *objects = test_objects(test);
	u8 id[BUILD_ID_SIZE_MAX], want[BUILD_ID_SIZE_MAX];
	struct user_object_bin bin = { };
	struct test_image image;
	u32 nr, first = 0, n = 0;

	for (int is64 = 0; is64 < 2; is64++) {
		for (u32 size = 8; size <= BUILD_ID_SIZE_MAX; size += 12) {
			test_fill_image(&image, is64, size + is64, size);
			nr = test_add(objects, &image, n);
			if (!n)
				first = nr;
			KUNIT_EXPECT_NE(test, nr, 0);
			KUNIT_EXPECT_EQ(test, nr, first + n);
			n++;
			KUNIT_ASSERT_EQ(test, test_last(test, objects, &bin, id), n);
			KUNIT_EXPECT_EQ(test, bin.nr, nr);
			KUNIT_EXPECT_EQ(test, bin.id_size, size);
			KUNIT_EXPECT_EQ(test, bin.bias, TEST_BIAS);
			memset(want, size + is64, sizeof(want));
			KUNIT_EXPECT_MEMEQ(test, id, want, size);
		}
	}
}

/* Headers that lead nowhere: no build id, and nothing is read outside of the image. */
static void user_object_bad_headers(struct kunit *test)
{
	struct user_objects *objects = test_objects(test);
	struct user_object_bin bin = { };
	u8 id[BUILD_ID_SIZE_MAX];
	struct test_image image;

	for (int i = 0; i < 8; i++) {
		test_fill_image(&image, true, i, i ? BUILD_ID_SIZE_MAX : BUILD_ID_SIZE_MAX + 1);
		if (i == 1)
			image.ehdr.e_ident[0] = 0;
		else if (i == 2)
			image.ehdr.e_phoff = -8;
		else if (i == 3)
			image.ehdr.e_phoff = sizeof(image) - 8;
		else if (i == 4)
			image.phdr[2].p_offset = -16UL;
		else if (i == 5)
			image.phdr[2].p_filesz = sizeof(image.other);
		else if (i == 6)
			image.other.n_descsz = -1;
		else if (i == 7)
			image.note.n_namesz = -1;
		KUNIT_EXPECT_NE(test, test_add(objects, &image, i), 0);
		KUNIT_ASSERT_EQ(test, test_last(test, objects, &bin, id), i + 1);
		KUNIT_EXPECT_EQ_MSG(test, bin.id_size, 0, "image %d", i);
	}
}

/* Has the last object a build id of these bytes? Waits for that, if there is a reason to. */
static bool test_last_id(struct kunit *test, struct user_objects *objects, u8 byte, bool wait)
{
	struct user_object_bin bin = { };
	u8 id[BUILD_ID_SIZE_MAX] = { };

	for (int i = 0; i < (wait ? 500 : 5); i++) {
		if (test_last(test, objects, &bin, id) && bin.id_size && id[0] == byte) {
			KUNIT_EXPECT_EQ(test, bin.bias, TEST_BIAS);
			return bin.id_size == BUILD_ID_SIZE_MAX;
		}
		msleep(20);
	}
	return false;
}

/* The headers are not in the page cache: a number at once, the build id later. */
static void user_object_later(struct kunit *test)
{
	struct user_objects *objects = test_objects(test);
	struct test_disk *disk = test_disk(test, 0, 1);
	u32 nr = test_add_file(test, objects, disk, 0, false);

	KUNIT_EXPECT_NE(test, nr, 0);
	KUNIT_EXPECT_FALSE(test, test_last_id(test, objects, 1, false));
	complete_all(&disk->ready);
	KUNIT_EXPECT_TRUE(test, test_last_id(test, objects, 1, true));
	KUNIT_EXPECT_EQ(test, test_add_file(test, objects, disk, 0, false), nr);
}

/* Files with one build id get one number, whichever of them was read first. */
static void user_object_later_twin(struct kunit *test)
{
	struct user_objects *objects = test_objects(test);
	struct test_disk *first = test_disk(test, 0, 1), *second = test_disk(test, 1, 1);
	u32 nr = test_add_file(test, objects, first, 0, false), other, n = 0;

	other = test_add_file(test, objects, second, 1, false);
	KUNIT_EXPECT_NE(test, other, nr);
	complete_all(&second->ready);
	KUNIT_EXPECT_TRUE(test, test_last_id(test, objects, 1, true));
	complete_all(&first->ready);
	while (test_add_file(test, objects, first, 0, false) != other && n++ < 100)
		msleep(20);
	KUNIT_EXPECT_EQ(test, test_add_file(test, objects, first, 0, false), other);
	KUNIT_EXPECT_EQ(test, test_add_file(test, objects, second, 1, false), other);
}

/* As many files as can be read at once, none of which can be read. */
static void test_hang(struct kunit *test, struct user_objects *objects, struct test_disk *hung)
{
	for (u32 i = 0; i < USER_OBJECT_WORKS; i++)
		KUNIT_ASSERT_NE(test, test_add_file(test, objects, hung, i, false), 0);
	KUNIT_ASSERT_EQ(test, READ_ONCE(user_object_nr_works), USER_OBJECT_WORKS);
}

/* Look up a file until its build id, which is of these bytes, is known. */
static void test_learn(struct kunit *test, struct user_objects *objects, struct test_disk *disk,
		       u64 ino, u8 id)
{
	for (int i = 0; i < 100 && !test_last_id(test, objects, id, false); i++)
		KUNIT_EXPECT_NE(test, test_add_file(test, objects, disk, ino, false), 0);
	KUNIT_EXPECT_TRUE(test, test_last_id(test, objects, id, false));
}

/* The table goes while files are read: what is read goes nowhere. */
static void user_object_gone(struct kunit *test)
{
	struct user_objects *objects = user_objects_alloc();
	struct test_disk *hung = test_disk(test, 0, 1), *fast = test_disk(test, 1, 2);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, objects);
	complete_all(&fast->ready);
	KUNIT_EXPECT_EQ(test, test_add_file(test, objects, hung, USER_OBJECT_WORKS, true), 0);
	test_hang(test, objects, hung);
	user_objects_put(objects);
	complete_all(&hung->ready);
	test_learn(test, test_objects(test), fast, 1, 2);
}

/* Nothing can be read for a long time, and then again. */
static void user_object_hung(struct kunit *test)
{
	struct user_objects *objects = test_objects(test);
	struct test_disk *hung = test_disk(test, 0, 1), *fast = test_disk(test, 1, 2);
	u32 nr, n = USER_OBJECT_WORKS;

	complete_all(&fast->ready);
	test_hang(test, objects, hung);
	/* There is no work for this one ... */
	nr = test_add_file(test, objects, fast, n, false);
	KUNIT_EXPECT_NE(test, nr, 0);
	KUNIT_EXPECT_EQ(test, test_add_file(test, objects, fast, n + 1, true), 0);
	KUNIT_EXPECT_FALSE(test, test_last_id(test, objects, 2, false));
	KUNIT_EXPECT_EQ(test, test_add_file(test, objects, fast, n, false), nr);
	KUNIT_EXPECT_FALSE(test, test_last_id(test, objects, 2, false));
	/* ... until one of the others is done, and it is looked up again. */
	complete_all(&hung->ready);
	test_learn(test, objects, fast, n, 2);
	/* And so is the deleted one, which has the same build id. */
	for (int i = 0; i < 100 && !test_add_file(test, objects, fast, n + 1, true); i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, test_add_file(test, objects, fast, n + 1, true), nr);
}

/* A deleted file: an object once its build id is known, never one without. */
static void user_object_deleted(struct kunit *test)
{
	struct user_objects *objects = test_objects(test);
	struct test_disk *disk = test_disk(test, 0, 1), *none = test_disk(test, 1, 2);
	struct user_object_stats stats = { };

	none->image.note.n_descsz = 0;
	complete_all(&none->ready);
	KUNIT_EXPECT_EQ(test, test_add_file(test, objects, none, 0, true), 0);
	KUNIT_EXPECT_EQ(test, test_add_file(test, objects, disk, 1, true), 0);
	KUNIT_EXPECT_EQ(test, test_add_file(test, objects, disk, 1, true), 0);
	complete_all(&disk->ready);
	KUNIT_EXPECT_TRUE(test, test_last_id(test, objects, 1, true));
	KUNIT_EXPECT_NE(test, test_add_file(test, objects, disk, 1, true), 0);
	msleep(50);
	KUNIT_EXPECT_EQ(test, test_add_file(test, objects, none, 0, true), 0);
	user_objects_stats(objects, &stats);
	KUNIT_EXPECT_EQ(test, stats.objects, 1);
}

/* One file has one number, and so have files with one build id. */
static void user_object_numbers(struct kunit *test)
{
	struct user_objects *objects = test_objects(test);
	struct user_object_stats stats = { };
	struct test_image image;
	u32 nr;

	test_fill_image(&image, true, 1, BUILD_ID_SIZE_MAX);
	nr = test_add(objects, &image, 1);
	KUNIT_EXPECT_NE(test, nr, 0);
	KUNIT_EXPECT_EQ(test, test_add(objects, &image, 1), nr);
	KUNIT_EXPECT_EQ(test, test_add(objects, &image, 2), nr);
	image.id[19]++;
	KUNIT_EXPECT_EQ(test, test_add(objects, &image, 1), nr);
	KUNIT_EXPECT_EQ(test, test_add(objects, &image, 3), nr + 1);
	/* Without a build id, each file is one. */
	test_fill_image(&image, true, 1, 0);
	KUNIT_EXPECT_EQ(test, test_add(objects, &image, 4), nr + 2);
	KUNIT_EXPECT_EQ(test, test_add(objects, &image, 5), nr + 3);
	user_objects_stats(objects, &stats);
	KUNIT_EXPECT_EQ(test, stats.objects, 4);
	KUNIT_EXPECT_NOT_NULL(test, user_object_path(objects, test_word(nr + 3, 0)));
	KUNIT_EXPECT_NULL(test, user_object_path(objects, test_word(nr + 4, 0)));
	KUNIT_EXPECT_NULL(test, user_object_path(objects, 0x400000UL));
	/* Another table has other numbers. */
	KUNIT_EXPECT_EQ(test, test_add(test_objects(test), &image, 5), nr + 4);
}

static unsigned long test_map(struct kunit *test, struct file *file, unsigned int pages,
			      unsigned long prot, unsigned long offset)
{
	unsigned long flags = file ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS, addr;

	addr = kunit_vm_mmap(test, file, 0, pages * PAGE_SIZE, prot, flags, offset);
	KUNIT_ASSERT_NE(test, addr, 0);
	return addr;
}

/* A file without a build id, which is in the page cache. */
static struct file *test_shmem_file(struct kunit *test)
{
	struct file *file = shmem_file_setup("kunit", SZ_16K, EMPTY_VMA_FLAGS);
	struct page *page;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, file);
	kunit_add_action(test, (kunit_action_t *)fput, file);
	page = shmem_read_mapping_page(file->f_mapping, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, page);
	put_page(page);
	set_nlink(file_inode(file), 1);
	return file;
}

/* Translate a stack that is at @ips, for a test that does not know whether an interrupt has hit. */
static unsigned int test_translate(struct user_objects *objects, unsigned long *ips,
				   unsigned int nr)
{
	struct stackmap_user user = { .type = TRACE_USER_UNWIND_STACK_ID };
	struct stackmap_stack stack = { .ips = ips, .nr = nr, .user = &user };
	unsigned long words[TEST_DEPTHS];
	unsigned int split;

	user_objects_translate(objects, &stack, words);
	split = user.type == TRACE_USER_UNWIND_STACK_SPLIT;
	nr = stackmap_depth(stack.ips, stack.nr);
	ips[0] = user.ip;
	memcpy(ips + split, stack.ips, nr * sizeof(*ips));
	return split + nr;
}

/* The number of the object for the first page of @file. */
static u32 test_object_at(struct user_objects *objects, unsigned long addr)
{
	unsigned long ips[] = { addr + 8, addr + 16 };

	if (test_translate(objects, ips, 2) != 2)
		return 0;
	return user_word_object(ips[0]);
}

/* Frames become words, and a stack ends where there is no code. */
static void user_object_frames(struct kunit *test)
{
	unsigned long text, code, data, file_data, far, farther, near = BIT(USER_WORD_OFFSET_BITS);
	struct user_objects *objects = test_objects(test);
	struct file *file = test_shmem_file(test);
	struct user_object_stats stats = { };
	unsigned long ips[5];
	u32 nr;

	KUNIT_ASSERT_EQ(test, kunit_attach_mm(), 0);
	text = test_map(test, file, 2, PROT_READ | PROT_EXEC, 0);
	code = test_map(test, NULL, 1, PROT_READ | PROT_EXEC, 0);
	far = test_map(test, file, 1, PROT_READ | PROT_EXEC, near - 2 * PAGE_SIZE);
	/* Between the two, which would become one mapping. */
	data = test_map(test, NULL, 1, PROT_READ | PROT_WRITE, 0);
	farther = test_map(test, file, 1, PROT_READ | PROT_EXEC, near - PAGE_SIZE);
	file_data = test_map(test, test_shmem_file(test), 1, PROT_READ, 0);
	nr = test_object_at(objects, text);
	KUNIT_ASSERT_NE(test, nr, 0);

	/* A return address may be behind the end of the mapping. */
	ips[0] = text + 8;
	ips[1] = code + 8;
	ips[2] = text + 2 * PAGE_SIZE;
	ips[3] = text + PAGE_SIZE;
	ips[4] = far + 8;
	KUNIT_EXPECT_EQ(test, test_translate(objects, ips, 5), 5);
	KUNIT_EXPECT_EQ(test, ips[0], test_word(nr, 8));
	KUNIT_EXPECT_EQ(test, ips[1], code + 8);
	KUNIT_EXPECT_EQ(test, ips[2], test_word(nr, 2 * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, ips[3], test_word(nr, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, ips[4], test_word(nr, 0) + near - 2 * PAGE_SIZE + 8);

	ips[0] = farther + 8;
	ips[1] = text + 8;
	KUNIT_EXPECT_EQ(test, test_translate(objects, ips, 2), 2);
	KUNIT_EXPECT_EQ(test, ips[0], farther + 8);
	KUNIT_EXPECT_EQ(test, ips[1], test_word(nr, 8));

	ips[0] = text + 8;
	ips[1] = data + 8;
	ips[2] = text + 8;
	KUNIT_EXPECT_EQ(test, test_translate(objects, ips, 3), 1);
	/* A file without code is no object. */
	ips[0] = text + 8;
	ips[1] = file_data + 8;
	KUNIT_EXPECT_EQ(test, test_translate(objects, ips, 3), 1);
	ips[0] = file_data + 8;
	ips[1] = text + 8;
	KUNIT_EXPECT_EQ(test, test_translate(objects, ips, 2), 2);
	KUNIT_EXPECT_EQ(test, ips[0], file_data + 8);
	/* Words that a program has made, and an address of [vsyscall]. */
	ips[0] = text + 8;
	ips[1] = test_word(nr, 8);
	KUNIT_EXPECT_EQ(test, test_translate(objects, ips, 2), 1);
	ips[0] = test_word(nr, 8);
	ips[1] = text + 8;
	KUNIT_EXPECT_EQ(test, test_translate(objects, ips, 2), 0);
	ips[0] = -10UL << 20;
	ips[1] = text + 8;
	KUNIT_EXPECT_EQ(test, test_translate(objects, ips, 2), 2);
	KUNIT_EXPECT_EQ(test, ips[0], -10UL << 20);

	user_objects_stats(objects, &stats);
	KUNIT_EXPECT_EQ(test, stats.objects, 1);
	KUNIT_EXPECT_EQ(test, stats.cut, 3);
	KUNIT_EXPECT_EQ(test, stats.addresses, 4);
}

/* Nobody waits for a program that changes its mappings. */
static void user_object_busy(struct kunit *test)
{
	struct user_objects *objects = test_objects(test);
	struct stackmap_user user = { };
	struct stackmap_stack stack = { .nr = 2, .user = &user };
	unsigned long text, words[2];
	struct mm_struct *mm;

	KUNIT_ASSERT_EQ(test, kunit_attach_mm(), 0);
	mm = current->mm;
	text = test_map(test, test_shmem_file(test), 1, PROT_READ | PROT_EXEC, 0);
	stack.ips = (unsigned long[]) { text + 8, text + 16 };
	mmap_write_lock(mm);
	vma_start_write(vma_lookup(mm, text));
	user_objects_translate(objects, &stack, words);
	mmap_write_unlock(mm);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(user.objects), -EBUSY);
	KUNIT_EXPECT_EQ(test, stack.nr, 2);
	KUNIT_EXPECT_EQ(test, stack.ips[0], text + 8);

	user_objects_translate(objects, &stack, words);
	KUNIT_EXPECT_PTR_EQ(test, user.objects, objects);
}

/* A file that has changed is another one. */
static void user_object_changed(struct kunit *test)
{
	struct user_objects *objects = test_objects(test);
	struct file *file = test_shmem_file(test);
	struct inode *inode = file_inode(file);
	unsigned long text;
	u32 nr;

	KUNIT_ASSERT_EQ(test, kunit_attach_mm(), 0);
	text = test_map(test, file, 2, PROT_READ | PROT_EXEC, 0);
	nr = test_object_at(objects, text);
	KUNIT_EXPECT_NE(test, nr, 0);
	KUNIT_EXPECT_EQ(test, test_object_at(objects, text), nr);
	i_size_write(inode, i_size_read(inode) + 1);
	KUNIT_EXPECT_EQ(test, test_object_at(objects, text), nr + 1);
	inode_set_mtime(inode, inode_get_mtime_sec(inode), 1);
	KUNIT_EXPECT_EQ(test, test_object_at(objects, text), nr + 2);
	inode->i_generation++;
	KUNIT_EXPECT_EQ(test, test_object_at(objects, text), nr + 3);
	KUNIT_EXPECT_EQ(test, test_object_at(objects, text), nr + 3);
}

/* Where there is no table yet, there may be one when the stack is recorded. */
static void user_object_no_table(struct kunit *test)
{
	unsigned long ips[] = { 0x401000UL, 0x8000100000001000UL, 0x402000UL }, words[3];
	struct stackmap_user user = { };
	struct stackmap_stack stack = { .ips = ips, .nr = ARRAY_SIZE(ips), .user = &user };

	user_objects_translate(NULL, &stack, words);
	KUNIT_EXPECT_EQ(test, stack.nr, 1);
	KUNIT_EXPECT_NULL(test, user.objects);
}

static void user_object_bound(struct kunit *test)
{
	struct user_objects *objects = test_objects(test);
	struct user_object_stats stats = { };
	struct test_image image;
	u32 first, n = 1;

	test_fill_image(&image, true, 1, 0);
	first = test_add(objects, &image, 0);
	while (test_add(objects, &image, n) == first + n)
		n++;
	user_objects_stats(objects, &stats);
	KUNIT_EXPECT_EQ(test, stats.objects, n);
	KUNIT_EXPECT_GE(test, n, 10000);
	KUNIT_EXPECT_LE(test, stats.memory, 9U << 20);
	KUNIT_EXPECT_EQ(test, test_add(objects, &image, n + 1), 0);
	KUNIT_EXPECT_NOT_NULL(test, user_object_path(objects, test_word(first, 0)));
}

static int test_addresses;

static bool test_write_bare(struct trace_buffer *buffer, unsigned int trace_ctx,
			    const struct stackmap_stack *stack)
{
	test_addresses += stack->user->full->ips[0] == 0x1000;
	return true;
}

/* Words that were made before a reset are not recorded after it. */
static void user_object_reset(struct kunit *test)
{
	unsigned long words[] = { 0x8000100000001000, 0x8000100000002000 };
	unsigned long ips[] = { 0x1000, 0x2000 };
	struct stackmap_stack full = { .ips = ips, .nr = 2 };
	struct trace_array *tr = test_instance(test, 3);
	struct stackmap_user user = {
		.type		= TRACE_USER_UNWIND_STACK_ID,
		.size		= sizeof(struct user_unwind_stack_id_entry),
		.objects	= user_objects_get(tr),
		.full		= &full,
	};
	struct stackmap_stack stack = { .ips = words, .nr = 2, .user = &user };
	struct ftrace_stackmap *map;

	KUNIT_EXPECT_NOT_NULL(test, user.objects);

	test_addresses = 0;
	scoped_guard(preempt_notrace)
		ftrace_stackmap_record(tr, tr->array_buffer.buffer, 0, &stack, test_write_bare);
	KUNIT_EXPECT_EQ(test, test_addresses, 0);

	/* So that there is something to reset. */
	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		ftrace_stackmap_record(tr, tr->array_buffer.buffer, 0, &stack, test_write_bare);
	tracer_tracing_off(tr);
	KUNIT_EXPECT_EQ(test, test_reset(tr), 0);
	scoped_guard(preempt_notrace)
		ftrace_stackmap_record(tr, tr->array_buffer.buffer, 0, &stack, test_write_bare);
	KUNIT_EXPECT_EQ(test, test_addresses, 1);
	map = test_current(tr);
	KUNIT_EXPECT_EQ(test, test_sum(STACKMAP_DROP_OBJECTS), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&map->entries), 0);
	user_objects_put(user.objects);
}

/* Record a stack of @nr frames in an object. The instruction that was hit is in @ip, or 0. */
static void test_record_words(struct trace_array *tr, u32 object, unsigned int nr, u32 ip)
{
	unsigned long words[TEST_DEPTHS];
	struct stackmap_user user = {
		.type		= ip ? TRACE_USER_UNWIND_STACK_SPLIT : TRACE_USER_UNWIND_STACK_ID,
		.size		= ip ? sizeof(struct user_unwind_stack_split_entry) :
				       sizeof(struct user_unwind_stack_id_entry),
		.ip		= ip ? test_word(ip, 8) : 0,
		.objects	= stackmap_objects(test_current(tr)),
	};
	struct stackmap_stack stack = { .ips = words, .nr = nr, .user = &user };

	for (unsigned int i = 0; i < nr; i++)
		words[i] = test_word(object, i << 4);
	tracer_tracing_on(tr);
	scoped_guard(preempt_notrace)
		ftrace_stackmap_record(tr, tr->array_buffer.buffer, 0, &stack, test_write_full);
	tracer_tracing_off(tr);
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
	u8 want[BUILD_ID_SIZE_MAX];

	memset(want, id, sizeof(want));
	KUNIT_EXPECT_EQ(test, entry->object, object);
	KUNIT_EXPECT_EQ(test, entry->id_size, id ? BUILD_ID_SIZE_MAX : 0);
	KUNIT_EXPECT_EQ(test, entry->bias, id ? TEST_BIAS : 0);
	KUNIT_EXPECT_MEMEQ(test, entry->build_id, want, sizeof(want));
	KUNIT_EXPECT_TRUE(test, strends(entry->path, "[vdso]") || strends(entry->path, "[test]"));
}

/* The stack, which is of an object that is defined already, is defined once. */
static void test_expect_stack(struct kunit *test, struct trace_array *tr, u32 object,
			      unsigned int nr)
{
	test_expect_event(test, tr, TRACE_USER_STACK_DEF);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	test_record_words(tr, object, nr, 0);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	test_expect_no_event(test, tr);
}

/* An object is defined ahead of the first stack that refers to it, and again with the stacks. */
static void user_object_defined(struct kunit *test)
{
	struct trace_array *tr = test_defining(test);
	struct user_objects *objects = stackmap_objects(test_current(tr));
	struct test_disk *disk = test_disk(test, 0, 5);
	struct test_image image;
	u32 nr, other, slow;

	test_fill_image(&image, true, 1, BUILD_ID_SIZE_MAX);
	nr = test_add(objects, &image, 1);
	test_fill_image(&image, true, 2, BUILD_ID_SIZE_MAX);
	other = test_add(objects, &image, 2);

	for (int i = 0; i < 3; i++) {
		test_record_words(tr, nr, 3, 0);
		test_expect_object(test, tr, nr, 1);
		test_expect_stack(test, tr, nr, 3);
		test_record_words(tr, nr, 2, 0);
		test_expect_stack(test, tr, nr, 2);
		if (i)
			ftrace_stackmap_undefine(tr);
		else
			test_replace(test, tr, 1);
	}
	test_record_words(tr, nr, 2, other);
	test_expect_object(test, tr, nr, 1);
	test_expect_event(test, tr, TRACE_USER_STACK_DEF);
	test_expect_object(test, tr, other, 2);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_SPLIT);
	test_expect_no_event(test, tr);

	/* The build id is not known yet. Once it is, the next use of a stack defines it. */
	slow = test_add_file(test, objects, disk, 3, false);
	test_record_words(tr, slow, 2, 0);
	test_expect_object(test, tr, slow, 0);
	test_record_words(tr, slow, 2, 0);
	for (int i = 0; i < 2; i++) {
		test_expect_event(test, tr, TRACE_USER_STACK_DEF);
		test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	}
	complete_all(&disk->ready);
	KUNIT_EXPECT_TRUE(test, test_last_id(test, objects, 5, true));
	test_record_words(tr, slow, 2, 0);
	test_expect_object(test, tr, slow, 5);
	test_expect_stack(test, tr, slow, 2);
}

/* No work could read the build id at first. */
static void user_object_defined_late(struct kunit *test)
{
	struct trace_array *tr = test_defining(test);
	struct user_objects *objects = stackmap_objects(test_current(tr));
	struct test_disk *hung = test_disk(test, 0, 1), *fast = test_disk(test, 1, 2);
	u32 nr;

	complete_all(&fast->ready);
	test_hang(test, objects, hung);
	nr = test_add_file(test, objects, fast, USER_OBJECT_WORKS, false);
	test_record_words(tr, nr, 2, 0);
	test_expect_object(test, tr, nr, 0);
	test_expect_event(test, tr, TRACE_USER_STACK_DEF);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	complete_all(&hung->ready);
	test_learn(test, objects, fast, USER_OBJECT_WORKS, 2);
	test_record_words(tr, nr, 2, 0);
	test_expect_object(test, tr, nr, 2);
	test_expect_stack(test, tr, nr, 2);
}

static struct trace_buffer *test_clock_buffer;
static int test_clock_calls;

/* A reader empties the buffer when the second event is reserved. */
static u64 notrace test_clock(void)
{
	if (test_clock_buffer && ++test_clock_calls == 2) {
		while (ring_buffer_consume(test_clock_buffer, 0, NULL, NULL))
			;
	}
	return trace_clock_local();
}

/* A full buffer does not take the definition of an object, but then that of the stack. */
static void user_object_refused(struct kunit *test)
{
	struct trace_array *tr = test_defining(test);
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct test_image image;
	u32 nr;

	test_fill_image(&image, true, 1, BUILD_ID_SIZE_MAX);
	nr = test_add(stackmap_objects(test_current(tr)), &image, 1);
	test_resize(test, buffer, 2);
	ring_buffer_change_overwrite(buffer, 0);
	ring_buffer_set_clock(buffer, test_clock);
	while (!ring_buffer_dropped_events_cpu(buffer, 0))
		test_record_event(tr, 9);

	test_clock_calls = 0;
	test_clock_buffer = buffer;
	test_record_words(tr, nr, 3, 0);
	test_clock_buffer = NULL;
	test_expect_event(test, tr, TRACE_USER_STACK_DEF);
	test_expect_event(test, tr, TRACE_USER_UNWIND_STACK_ID);
	test_expect_no_event(test, tr);

	test_record_words(tr, nr, 3, 0);
	test_expect_object(test, tr, nr, 1);
	test_expect_stack(test, tr, nr, 3);
	ring_buffer_change_overwrite(buffer, 1);
}

static struct kunit_case user_object_test_cases[] = {
	KUNIT_CASE(user_object_words),
	KUNIT_CASE(user_object_flags),
	KUNIT_CASE(user_object_headers),
	KUNIT_CASE(user_object_bad_headers),
	KUNIT_CASE(user_object_later),
	KUNIT_CASE(user_object_later_twin),
	KUNIT_CASE(user_object_gone),
	KUNIT_CASE(user_object_hung),
	KUNIT_CASE(user_object_deleted),
	KUNIT_CASE(user_object_numbers),
	KUNIT_CASE(user_object_frames),
	KUNIT_CASE(user_object_busy),
	KUNIT_CASE(user_object_changed),
	KUNIT_CASE(user_object_no_table),
	KUNIT_CASE_SLOW(user_object_bound),
	KUNIT_CASE(user_object_reset),
	KUNIT_CASE(user_object_defined),
	KUNIT_CASE(user_object_defined_late),
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
