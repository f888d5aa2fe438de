/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_H
#define _TRACE_STACKMAP_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/cache.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <asm/local.h>

#include "trace.h"

/*
 * The stack map of a trace instance
 * =================================
 *
 * A map stores each distinct stack once and names it by an id, so that
 * the ring buffer holds 4 bytes in place of the frames.
 *
 *   slots  2^(bits + 1) words, open addressing with linear probing. 0 is an
 *          empty slot. Any other value is the offset of a record in the arena,
 *          and above that some bits of its hash (the tag).
 *   arena  the records, each as long as its stack. The addresses are reserved
 *          when the map is allocated, the pages are added as stacks come.
 *
 * To insert a stack, the CPU reserves arena space, fills the record and
 * publishes it by one cmpxchg of an empty slot. A slot never changes after
 * that. So there is no half-inserted state, and nothing to wait for, no matter
 * which context was interrupted. If the slot was taken meanwhile, the look-up is
 * repeated. It finds the same stack, or the next empty slot. Hence a stack is
 * stored once and has one id. The arena space of the loser stays unused.
 *
 * Memory ordering:
 *
 *   stackmap_insert:A   fills a record, then cmpxchg_release() of its slot.
 *   stackmap_probe:A    READ_ONCE() of a slot, then the record by its address.
 *   stackmap_record:A   The same. Both pair with stackmap_insert:A.
 *   stackmap_add_page:A maps a page, then smp_store_release() of arena_units.
 *   stackmap_reserve:A  smp_load_acquire() of arena_units, then writes the
 *                       page. Pairs with stackmap_add_page:A.
 *   stackmap_swap:A     unpublishes a map, then synchronize_rcu(). Pairs with
 *                       ftrace_stackmap_active() and rcu_dereference().
 *   stackmap_publish:A  The same, in a rotation.
 *   stackmap_latch:A    reads the arena's tail, then synchronize_rcu(). A
 *                       record below that tail is published by then, or never.
 *
 * Interrupts: the stack of an interrupted task contains the address of the
 * instruction that was hit, which makes nearly every such stack a new one. So a
 * stack is split behind each frame in the entry code. The parts are stored like
 * stacks. The instruction is in no part, it goes into the event:
 *
 *	frames			part	event (TRACE_STACK_SPLIT)
 *	timer_fn		 0	stack_id
 *	 ...			 0
 *	asm_timer_interrupt	 0
 *	memcpy			 -	ip
 *	vfs_read		 1	outer
 *	 ...			 1
 *
 * Each CPU remembers the stacks and parts that it had last in a small cache, by
 * a sample of their frames. One that is still there is found by comparing it,
 * without a hash. The same cache collects the references: what leaves it is added
 * to the record.
 *
 * Recycling: a map that is nearly full is replaced by an empty one of the next
 * generation. That one leads to the map before it (prev), which stays as it is,
 * and to the stacks that are kept of all older maps:
 *
 *	rotation	current		prev	kept
 *	   0		map 0		-	-
 *	   1		map 1		map 0	-
 *	   2		map 2		map 1	of map 0
 *	   3		map 3		map 2	of maps 0 and 1
 *
 * A rotation walks the ring buffers, keeps the stacks of prev and kept that an
 * event still refers to, and then publishes the new map with one pointer. No
 * CPU has used prev since the grace period of the rotation before, so that what
 * refers to it can only vanish. Readers get the current map and all that belongs
 * to it by the same pointer.
 *
 * User stacks: they have ids of the same map, and events of their own. They are
 * never split. A user stack and a kernel stack with equal frames are two stacks.
 */

/* An id: 12 bits of generation above 19 bits of slot index, never negative. */
#define STACKMAP_SLOT_BITS	19
#define STACKMAP_GEN_BITS	12
#define STACKMAP_GEN_MASK	((1U << STACKMAP_GEN_BITS) - 1)

/* Bounds and default of the parameter ftrace_stackmap.bits. */
#define STACKMAP_BITS_MIN	10
#define STACKMAP_BITS_MAX	(STACKMAP_SLOT_BITS - 1)
#define STACKMAP_BITS_DEFAULT	14

/* Half of the slots stay empty, so that only a bad hash probes this far. */
#define STACKMAP_PROBES		128

/* Task, page fault, softirq, interrupt and NMI, and some to spare. */
#define STACKMAP_MAX_PARTS	8

/* Log2 of the size of each CPU's cache. */
#define STACKMAP_CACHE_BITS	9

/* Records start at multiples of this many bytes. */
#define STACKMAP_UNIT		sizeof(u64)

enum stackmap_count {
	STACKMAP_SUCCESSES,	/* stacks recorded by their ids */
	STACKMAP_SPLIT,		/* those that have more than one part */
	STACKMAP_PARTS,		/* the parts of all successes */
	STACKMAP_DROP_ENTRIES,	/* the map holds as many stacks as it may */
	STACKMAP_DROP_ARENA,	/* no arena space */
	STACKMAP_DROP_PROBES,	/* no slot within STACKMAP_PROBES */
	STACKMAP_DROP_EMPTY,	/* no frames */
	STACKMAP_DROP_PARTS,	/* more than STACKMAP_MAX_PARTS parts */
	STACKMAP_DROP_BUFFER,	/* the event is not in the buffer of the instance */
	STACKMAP_NR_COUNTS,
};

struct stackmap_record {
	atomic_long_t		ref;	/* references that have left the caches */
	u16			nr;
	bool			user;	/* a stack of user space */
	u32			defined;	/* stackmap_define at its definition, or odd */
	unsigned long		ips[] __counted_by(nr);
};

struct stackmap_cpu {
	local_t			counts[STACKMAP_NR_COUNTS];
	local_t			cache[1 << STACKMAP_CACHE_BITS]; /* slot index above a count */
};

/* A kept stack. */
struct stackmap_kept_id {
	int			id;
	u32			offset;		/* of its record, in units from the table's start */
};

/* The stacks that are kept of older maps, sorted by id. Their records follow. */
struct stackmap_kept {
	size_t			used;		/* bytes, with the records */
	unsigned long		refs;		/* references to all of them */
	u32			nr;
	struct stackmap_kept_id	ids[];
};

struct ftrace_stackmap {
	u32			gen;		/* ids hold the low STACKMAP_GEN_BITS of it */
	u32			max_entries;
	u32			nr_slots;	/* a power of two */
	u32			offset_mask;	/* bits of a slot that are the arena offset */
	u32			arena_units;	/* units that have memory, release/acquire */
	u32			arena_limit;	/* units that may have memory */
	u32			low_water;	/* an insert beyond either ... */
	u32			high_entries;	/* ... queues the work */
	unsigned long		entry_start;	/* stacks are split behind frames in here */
	unsigned long		entry_size;
	u32			*slots;
	void			*arena;		/* unit 0 is unused, so that 0 is an empty slot */
	struct stackmap_cpu __percpu *cpu;
	struct vm_struct	*area;		/* the addresses of the arena */
	struct list_head	pages;		/* its memory, changed by the grow work only */
	struct irq_work		low;		/* queues the work, from any context */
	struct delayed_work	work;		/* lets the arena grow, or calls @rotate */
	unsigned long		backoff;	/* jiffies to wait, after a failure */
	int			(*rotate)(struct ftrace_stackmap *map);	/* nearly full */
	struct trace_array	*tr;		/* for @rotate */
	/* Valid while the map is the current one. Readers do not use those of @prev. */
	struct ftrace_stackmap	*prev;		/* the map before this one */
	struct stackmap_kept	*kept;		/* what is left of the maps before that one */
	/* Set before the map is published. */
	unsigned long		before[STACKMAP_NR_COUNTS]; /* counts of the maps before @prev */
	unsigned long		rotations;	/* since the last reset */
	unsigned long		recycled;	/* stacks that are gone ... */
	unsigned long		recycled_refs;	/* ... and their references */
	/* Set after the grace period, for the next rotation. */
	u32			settled;	/* the tail when nobody used older maps any more */
	/* Written by inserts; hits read the lines above. */
	atomic_t		entries ____cacheline_aligned_in_smp;
	atomic_t		tail;		/* first free unit of the arena */
};

/**
 * struct stackmap_stack - a stack to record
 * @ips: its frames, innermost first
 * @nr: number of frames
 * @type: the event for it: TRACE_STACK_ID, which becomes TRACE_STACK_SPLIT for a
 *	stack of several parts, TRACE_USER_STACK_ID or TRACE_USER_UNWIND_STACK_ID
 * @tgid: the process, for a user stack
 * @cookie: for TRACE_USER_UNWIND_STACK_ID
 */
struct stackmap_stack {
	const unsigned long	*ips;
	unsigned int		nr;
	int			type;
	unsigned int		tgid;
	u64			cookie;
};

/* The frames of a user stack before the 0 that ends it. Some unwinders go on behind it. */
static inline unsigned int user_stack_depth(const unsigned long *ips, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		if (!ips[i])
			return i;
	}
	return nr;
}

/**
 * struct stackmap_part - the part of a stack that ftrace_stackmap_find() found
 * @ips: its frames
 * @nr: number of frames
 * @user: a stack of user space
 * @hash: hash of the frames, unless the CPU remembered the stack
 * @idx: index of its slot, negative if it is not in the map
 */
struct stackmap_part {
	const unsigned long	*ips;
	unsigned int		nr;
	bool			user;
	u32			hash;
	int			idx;
};

#if IS_ENABLED(CONFIG_KUNIT)
u32 *stackmap_probe(struct ftrace_stackmap *map, struct stackmap_part *part);
int stackmap_find_parts(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
			struct stackmap_part *parts);
#endif

int ftrace_stackmap_record(struct trace_array *tr, struct ftrace_stackmap *map,
			   struct trace_buffer *buffer, unsigned int trace_ctx,
			   const struct stackmap_stack *stack);
int ftrace_stackmap_record_user(struct trace_array *tr, struct ftrace_stackmap *map,
				struct trace_buffer *buffer, unsigned int trace_ctx);
void ftrace_stackmap_count(struct ftrace_stackmap *map, enum stackmap_count what);

#ifdef CONFIG_FTRACE_STACKMAP
/* ELF notes of the kernel, from the linker script. */
extern const char __start_notes[];
extern const char __stop_notes[];

extern unsigned int ftrace_stackmap_bits;

struct ftrace_stackmap *ftrace_stackmap_alloc(unsigned int bits, u32 gen, bool whole);
void ftrace_stackmap_free(struct ftrace_stackmap *map);
int ftrace_stackmap_find(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
			 struct stackmap_part *part);
int ftrace_stackmap_find_user(struct ftrace_stackmap *map, const unsigned long *ips,
			      unsigned int nr, struct stackmap_part *part);
int ftrace_stackmap_insert(struct ftrace_stackmap *map, struct stackmap_part *parts,
			   unsigned int nr);
int ftrace_stackmap_store(struct ftrace_stackmap *map, struct stackmap_part *parts,
			  unsigned int nr);
unsigned long ftrace_stackmap_sum(const struct ftrace_stackmap *map, enum stackmap_count what);
unsigned long ftrace_stackmap_total(const struct ftrace_stackmap *map, enum stackmap_count what);
unsigned long ftrace_stackmap_ref(const struct ftrace_stackmap *map, u32 idx);
size_t ftrace_stackmap_memory(const struct ftrace_stackmap *map);
void ftrace_stackmap_set_rotate(struct ftrace_stackmap *map, struct trace_array *tr,
				int (*rotate)(struct ftrace_stackmap *map));

u32 ftrace_stackmap_nr_old(const struct ftrace_stackmap *map);
const struct stackmap_record *ftrace_stackmap_old(const struct ftrace_stackmap *map, u32 pos,
						  int *id);
unsigned long ftrace_stackmap_old_ref(const struct ftrace_stackmap *map, u32 pos);
int ftrace_stackmap_old_pos(const struct ftrace_stackmap *map, int id);
u32 ftrace_stackmap_nr_kept(const struct ftrace_stackmap *map);
struct stackmap_kept *ftrace_stackmap_keep(const struct ftrace_stackmap *map,
					   const unsigned long *marks, size_t limit);
const struct stackmap_record *ftrace_stackmap_lookup(const struct ftrace_stackmap *map, int id);

void ftrace_stackmap_init_define(void);
int ftrace_stackmap_define(struct trace_array *tr, struct ftrace_stackmap *map,
			   struct trace_buffer *buffer, unsigned int trace_ctx,
			   struct stackmap_part *parts, unsigned int nr, u32 *define);

void ftrace_stackmap_init_events(void);
int ftrace_stackmap_event_ids(const struct trace_entry *ent, int size);
int ftrace_stackmap_event_id(const struct trace_entry *ent, int i);
bool ftrace_stackmap_resolves(struct trace_iterator *iter, const struct ftrace_stackmap *map);
void ftrace_stackmap_init_user(void);

struct ftrace_stackmap *ftrace_stackmap_new(struct trace_array *tr, u32 gen);
int ftrace_stackmap_rotate(struct ftrace_stackmap *map);
int ftrace_stackmap_unused_gen(struct trace_array *tr, u32 *gen);

int ftrace_stackmap_set(struct trace_array *tr, bool enable);
int ftrace_stackmap_reset(struct trace_array *tr);
void ftrace_stackmap_destroy(struct trace_array *tr);
void ftrace_stackmap_create_files(struct trace_array *tr, struct dentry *dir);

/* Units that a stack of @nr frames takes. */
static inline u32 stackmap_units(unsigned int nr)
{
	return DIV_ROUND_UP(struct_size_t(struct stackmap_record, ips, nr), STACKMAP_UNIT);
}

/* Make @rec the record of a stack without references. */
static inline void stackmap_fill(struct stackmap_record *rec, const unsigned long *ips, u32 nr,
				 bool user)
{
	atomic_long_set(&rec->ref, 0);
	rec->nr = nr;
	rec->user = user;
	rec->defined = 1;	/* undefined, as it is odd */
	memcpy(rec->ips, ips, flex_array_size(rec, ips, nr));
}

static inline u32 stackmap_id(const struct ftrace_stackmap *map, u32 idx)
{
	return ((map->gen & STACKMAP_GEN_MASK) << STACKMAP_SLOT_BITS) | idx;
}

/* The record that @slot, which is not empty, leads to. */
static inline struct stackmap_record *
stackmap_record_at(const struct ftrace_stackmap *map, u32 slot)
{
	return map->arena + (size_t)(slot & map->offset_mask) * STACKMAP_UNIT;
}

/* The record of slot number @idx, or NULL. */
static inline struct stackmap_record *stackmap_record(const struct ftrace_stackmap *map, u32 idx)
{
	/* stackmap_record:A, pairs with stackmap_insert:A */
	u32 slot = READ_ONCE(map->slots[idx]);

	return slot ? stackmap_record_at(map, slot) : NULL;
}

/**
 * ftrace_stackmap_active - the map that stacks of an instance go through
 * @tr: the instance
 *
 * A CPU that RCU ignores, or that is not online, has no map: a grace period
 * would not wait for it.
 *
 * Context: any. The map may be used until preemption is enabled again.
 * Return: the map, or NULL if there is none or options/stackmap is off.
 */
static __always_inline struct ftrace_stackmap *ftrace_stackmap_active(struct trace_array *tr)
{
	if (!(tr->trace_flags & TRACE_ITER(STACKMAP)))
		return NULL;

	if (!rcu_is_watching() || !cpu_online(raw_smp_processor_id()))
		return NULL;

	/* The checking variants call functions that could be traced. */
	return rcu_dereference_raw_check(tr->stackmap);
}

/**
 * ftrace_stackmap_undefine - have all stacks of an instance defined again
 * @tr: the instance
 *
 * Context: any.
 */
static inline void ftrace_stackmap_undefine(struct trace_array *tr)
{
	atomic_add(2, &tr->stackmap_define);
}

/**
 * ftrace_stackmap_swap_begin - buffers of an instance are going to be swapped
 * @tr: the instance
 *
 * Until ftrace_stackmap_swap_end(), every use of a stack is defined.
 *
 * Context: any, under tr->max_lock.
 */
static inline void ftrace_stackmap_swap_begin(struct trace_array *tr)
{
	atomic_inc(&tr->stackmap_define);
	/* ftrace_stackmap_swap_begin:A, pairs with ftrace_stackmap_define:B */
	smp_mb__after_atomic();
}

/**
 * ftrace_stackmap_swap_end - the buffers are swapped
 * @tr: the instance
 *
 * Context: any, under tr->max_lock.
 */
static inline void ftrace_stackmap_swap_end(struct trace_array *tr)
{
	/* ftrace_stackmap_swap_end:A, pairs with ftrace_stackmap_define:C */
	atomic_fetch_inc_release(&tr->stackmap_define);
}

/**
 * ftrace_stackmap_hidden - whether an event is not to be printed
 * @iter: the event
 *
 * Context: any.
 * Return: true for a definition whose frames are printed below each use.
 */
static inline bool ftrace_stackmap_hidden(const struct trace_iterator *iter)
{
	return (iter->ent->type == TRACE_STACK_DEF || iter->ent->type == TRACE_USER_STACK_DEF) &&
	       (iter->tr->trace_flags & TRACE_ITER(STACKMAP_FRAMES));
}
#else
static inline int ftrace_stackmap_set(struct trace_array *tr, bool enable)
{
	return -EOPNOTSUPP;
}

static inline void ftrace_stackmap_destroy(struct trace_array *tr) { }

static inline void ftrace_stackmap_create_files(struct trace_array *tr, struct dentry *dir) { }

static inline void ftrace_stackmap_init_events(void) { }

static inline struct ftrace_stackmap *ftrace_stackmap_active(struct trace_array *tr)
{
	return NULL;
}

static inline void ftrace_stackmap_undefine(struct trace_array *tr) { }

static inline void ftrace_stackmap_swap_begin(struct trace_array *tr) { }

static inline void ftrace_stackmap_swap_end(struct trace_array *tr) { }

static inline bool ftrace_stackmap_hidden(const struct trace_iterator *iter)
{
	return false;
}
#endif /* CONFIG_FTRACE_STACKMAP */

#endif /* _TRACE_STACKMAP_H */
