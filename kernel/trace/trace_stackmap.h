/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_H
#define _TRACE_STACKMAP_H

#include "trace.h"
#include "trace_user_file.h"

/*
 * The stack map of a trace instance
 * =================================
 *
 * A map stores each distinct stack once and names it by an id, which the ring
 * buffer holds in place of the frames. The rest of kernel/trace calls what is
 * declared here. From the bottom up:
 *
 *   trace_stackmap_map.c       the map, a library; trace_stackmap_map.h has its design
 *   trace_stackmap_gens.c      the stacks of all generations; trace_stackmap_gens.h has the design
 *   trace_stackmap_split.c     stacks of interrupts
 *   trace_stackmap_define.c    definitions of stacks in the ring buffer
 *   trace_stackmap_event.c     events with ids: recorded and printed
 *   trace_stackmap_user.c      user stacks: recorded and printed
 *   trace_user_file.c          the files that they refer to
 *   trace_stackmap_replace.c   replacement of the map
 *   trace_stackmap_persist.c   the map of a persistent instance
 *   trace_stackmap.c           option and size
 *   trace_stackmap_tracefs.c   the files in tracefs, and the reset
 *   trace_stackmap_bin.c       stack_map_bin there
 */

/**
 * struct stackmap_user - what makes a stack a user stack
 * @type: the event with its id
 * @size: size of that event
 * @tgid: the process
 * @cookie: of a stack that was taken on the way back to user space
 * @ip: the instruction that was hit, for TRACE_USER_UNWIND_STACK_SPLIT
 * @map: the map with the files that the frames refer to, or NULL
 * @cut: the stack ends outside of code
 * @addresses: frames that were not translated
 * @deep: the stack has more frames than are recorded
 */
struct stackmap_user {
	int			type;
	unsigned int		size;
	unsigned int		tgid;
	u64			cookie;
	unsigned long		ip;
	struct ftrace_stackmap	*map;
	bool			cut;
	unsigned int		addresses;
	bool			deep;
};

/**
 * struct stackmap_stack - a stack to record
 * @ips: its frames, innermost first
 * @nr: number of frames
 * @user: what makes it a user stack, or NULL
 */
struct stackmap_stack {
	const unsigned long	*ips;
	unsigned int		nr;
	struct stackmap_user	*user;
};

/*
 * The frames of a user stack before the 0 that ends it. Some unwinders go on behind that.
 * A word that is no address of a program ends it, too.
 */
static inline unsigned int user_stack_depth(const unsigned long *ips, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		if (!ips[i] || user_word_by_file(ips[i]))
			return i;
	}
	return nr;
}

extern struct trace_event trace_stack_id_event;
extern struct trace_event trace_stack_split_event;
extern struct trace_event trace_stack_split3_event;
extern struct trace_event trace_stack_def_event;

#ifdef CONFIG_FTRACE_STACKMAP
int ftrace_stackmap_set(struct trace_array *tr, bool enable);
void ftrace_stackmap_destroy(struct trace_array *tr);
bool ftrace_stackmap_hidden(const struct trace_iterator *iter);
void ftrace_stackmap_undefine(struct trace_array *tr);
void ftrace_stackmap_reserve(struct trace_array *tr);
size_t ftrace_stackmap_range_size(const struct trace_array *tr);
void ftrace_stackmap_restore(struct trace_array *tr, void *mem, unsigned long text);
void ftrace_stackmap_forget_boot(struct trace_array *tr);
void ftrace_stackmap_next_boot(struct trace_array *tr);
#else
static inline int ftrace_stackmap_set(struct trace_array *tr, bool enable)
{
	return -EOPNOTSUPP;
}

static inline void ftrace_stackmap_destroy(struct trace_array *tr) { }

static inline bool ftrace_stackmap_hidden(const struct trace_iterator *iter)
{
	return false;
}

static inline void ftrace_stackmap_undefine(struct trace_array *tr) { }

static inline void ftrace_stackmap_reserve(struct trace_array *tr) { }

static inline size_t ftrace_stackmap_range_size(const struct trace_array *tr)
{
	return 0;
}

static inline void ftrace_stackmap_restore(struct trace_array *tr, void *mem,
					   unsigned long text) { }

static inline void ftrace_stackmap_forget_boot(struct trace_array *tr) { }

static inline void ftrace_stackmap_next_boot(struct trace_array *tr) { }
#endif /* CONFIG_FTRACE_STACKMAP */

/* Only with options/stackmap on. These are not called without CONFIG_FTRACE_STACKMAP. */
int ftrace_stackmap_record(struct trace_array *tr, struct trace_buffer *buffer,
			   unsigned int trace_ctx, const unsigned long *ips, unsigned int nr);
int ftrace_stackmap_record_stack(struct trace_array *tr, struct trace_buffer *buffer,
				 unsigned int trace_ctx, const struct stackmap_stack *stack);
int ftrace_stackmap_record_user(struct trace_array *tr, struct trace_buffer *buffer,
				unsigned int trace_ctx);
void ftrace_stackmap_drop(struct trace_array *tr, int why);
void ftrace_stackmap_deep(struct trace_array *tr);

/* With options/stackmap off, a stack costs this test. */
static __always_inline bool ftrace_stackmap_enabled(const struct trace_array *tr)
{
	return tr->trace_flags & TRACE_ITER(STACKMAP);
}

#endif /* _TRACE_STACKMAP_H */
