/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_USER_FILE_H
#define _TRACE_USER_FILE_H

#include <linux/buildid.h>
#include <linux/types.h>

/*
 * A word of a user stack is an address, or for a frame in a mapped file bit 63, 19 bits of
 * the file's number and 44 bits of the offset in the file, which are the same in every
 * process. The number is the slot index of the file's record, in the generation of the
 * stack. 0 and the highest number stay unused: 0 means an address, and [vsyscall] has
 * addresses with the highest one.
 */
#define USER_WORD_OFFSET_BITS	44
#define USER_WORD_OFFSET	((1ULL << USER_WORD_OFFSET_BITS) - 1)
#define USER_WORD_NR		((1U << 19) - 1)

struct ftrace_stackmap;
struct seq_file;
struct stackmap_record;
struct stackmap_stack;
struct trace_array;
struct trace_buffer;
struct trace_iterator;

/* The depth of a stack that is stored. One without frames has a 0 in their place. */
static inline unsigned int stackmap_depth(const unsigned long *ips, unsigned int nr)
{
	return nr == 1 && !ips[0] ? 0 : nr;
}

/* Does a word refer to a file? No address that a program can execute does; a forged one may. */
static inline bool user_word_by_file(unsigned long word)
{
	return IS_ENABLED(CONFIG_TRACE_USER_FILES) && (long)word < -(s64)(USER_WORD_OFFSET + 1);
}

/* The number of the file that a word refers to, 0 for an address. */
static inline u32 user_word_file(unsigned long word)
{
	return user_word_by_file(word) ? (u64)word >> USER_WORD_OFFSET_BITS & USER_WORD_NR : 0;
}

/* The id of the file that a word of stack @id refers to. */
static inline int user_word_file_id(unsigned long word, int id)
{
	return (id & ~USER_WORD_NR) | user_word_file(word);
}

/* How stack_map_bin describes a file. The path follows, padded to a multiple of 8 bytes. */
struct user_file_bin {
	u32			file_id;
	u32			id_size;
	u8			id[BUILD_ID_SIZE_MAX];
	u32			path_size;
};

/* Not to be called without CONFIG_TRACE_USER_FILES. */
void user_files_translate(struct trace_array *tr, struct stackmap_stack *stack,
			  unsigned long *words);
void user_files_use(const struct stackmap_stack *stack, int idx);
bool user_files_define(struct trace_buffer *buffer, unsigned int trace_ctx,
		       const struct stackmap_stack *stack, u32 define);
size_t user_file_write(struct seq_file *m, const struct stackmap_record *rec, u32 file_id);

#ifdef CONFIG_TRACE_USER_FILES
unsigned int user_file_intact(const struct ftrace_stackmap *map, const struct stackmap_record *rec);
const char *user_file_path(const struct stackmap_record *rec);
#else
static inline unsigned int user_file_intact(const struct ftrace_stackmap *map,
					    const struct stackmap_record *rec)
{
	return 0;
}

static inline const char *user_file_path(const struct stackmap_record *rec) { return NULL; }
#endif

/* trace_stackmap_user.c */
bool user_file_print(struct trace_iterator *iter, unsigned long word);

#endif /* _TRACE_USER_FILE_H */
