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

/* Flags of a record in stack_map_bin: a stack of user space, one that refers to objects. */
#define STACKMAP_BIN_USER	1
#define STACKMAP_BIN_OBJECTS	2

/* The section of stack_map_bin with the objects, see struct user_object_bin. */
#define STACKMAP_BIN_FILES	5

struct seq_file;
struct stackmap_stack;
struct trace_array;
struct trace_buffer;
struct trace_iterator;
struct user_objects;

/**
 * struct stackmap_user - what makes a stack a user stack
 * @type: the event with its id: TRACE_USER_STACK_ID, TRACE_USER_UNWIND_STACK_ID or
 *	TRACE_USER_UNWIND_STACK_SPLIT
 * @size: size of that event
 * @tgid: the process
 * @cookie: of a stack that was taken on the way back to user space
 * @ip: the instruction that was hit, for TRACE_USER_UNWIND_STACK_SPLIT
 * @objects: the table that the frames refer to, or NULL
 * @cut: the stack ends outside of code
 * @addresses: frames that were not translated
 */
struct stackmap_user {
	int			type;
	unsigned int		size;
	unsigned int		tgid;
	u64			cookie;
	unsigned long		ip;
	struct user_objects	*objects;
	bool			cut;
	unsigned int		addresses;
};

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

/*
 * The frames of a user stack before the 0 that ends it, or before what is no address of a
 * program. Some unwinders go on behind that.
 */
static inline unsigned int user_stack_depth(const unsigned long *ips, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		/* Nearly all are above 0. */
		if ((long)ips[i] <= 0 && (!ips[i] || user_word_by_file(ips[i])))
			return i;
	}
	return nr;
}

/* How stack_map_bin describes an object. Build id and path follow, both padded to 8 bytes. */
struct user_object_bin {
	u32			nr;
	u32			id_size;
	u64			bias;		/* 0 */
	u32			path_size;
	u32			zero;
};

/* Are the frames those of a table of objects? */
static inline bool user_by_file(const struct stackmap_user *user)
{
	return IS_ENABLED(CONFIG_TRACE_USER_OBJECTS) && user && user->objects;
}

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
