/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_USER_OBJECT_H
#define _TRACE_USER_OBJECT_H

#include <linux/types.h>

/*
 * A word of a user stack is an address, or for a frame in a mapped file (an object)
 * bit 63, 19 bits of the object's number and 44 bits of the offset in the file, which
 * are the same in every process. The highest number stays unused, because [vsyscall]
 * has such addresses.
 */
#define USER_WORD_OFFSET_BITS	44
#define USER_WORD_OFFSET	((1ULL << USER_WORD_OFFSET_BITS) - 1)
#define USER_WORD_NR		((1U << 19) - 1)

struct seq_file;
struct stackmap_stack;
struct trace_array;
struct trace_buffer;
struct trace_iterator;
struct user_objects;

/* The depth of a stack that is stored. One without frames has a 0 in their place. */
static inline unsigned int stackmap_depth(const unsigned long *ips, unsigned int nr)
{
	return nr == 1 && !ips[0] ? 0 : nr;
}

/* Does a word refer to an object? No address that a program may execute does, but a forged one. */
static inline bool user_word_by_file(unsigned long word)
{
	return IS_ENABLED(CONFIG_TRACE_USER_OBJECTS) && (long)word < -(s64)(USER_WORD_OFFSET + 1);
}

/* The number of the object that a word refers to, 0 for an address. */
static inline u32 user_word_object(unsigned long word)
{
	return user_word_by_file(word) ? (u64)word >> USER_WORD_OFFSET_BITS & USER_WORD_NR : 0;
}

/* How stack_map_bin describes an object. Build id and path follow, both padded to 8 bytes. */
struct user_object_bin {
	u32			nr;
	u32			id_size;
	u64			bias;		/* 0 */
	u32			path_size;
	u32			zero;
};

#ifdef CONFIG_TRACE_USER_OBJECTS
struct user_objects *user_objects_next(struct user_objects *objects);
struct user_objects *user_objects_hold(struct user_objects *objects);
void user_objects_put(struct user_objects *objects);
bool user_objects_half_full(const struct user_objects *objects);
#else
static inline struct user_objects *user_objects_next(struct user_objects *objects) { return NULL; }
static inline struct user_objects *user_objects_hold(struct user_objects *objects) { return NULL; }
static inline bool user_objects_half_full(const struct user_objects *objects) { return false; }
static inline void user_objects_put(struct user_objects *objects) { }
#endif

/* Not to be called without CONFIG_TRACE_USER_OBJECTS. */
void user_objects_translate(struct user_objects *objects, struct stackmap_stack *stack,
			    unsigned long *words);
const char *user_object_path(unsigned long word);
bool user_objects_define(struct trace_buffer *buffer, unsigned int trace_ctx,
			 const struct stackmap_stack *stack, u32 define);
void user_objects_write(struct user_objects *objects, struct seq_file *m);
unsigned int user_objects_stats(const struct user_objects *objects, size_t *memory);

/* trace_stackmap_user.c */
struct user_objects *user_objects_get(struct trace_array *tr);
bool user_object_print(struct trace_iterator *iter, unsigned long word);

#endif /* _TRACE_USER_OBJECT_H */
