/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_H
#define _TRACE_STACKMAP_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/cache.h>
#include <linux/gfp_types.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <asm/local.h>

#include "trace.h"

/*
 * The stack map of a trace instance
 * =================================
 *
 * A map stores every distinct kernel stack of its instance once and names it
 * by a small integer, so that the ring buffer holds 4 bytes in place of the
 * frames. It is written from any context, NMI included, and takes no lock.
 *
 *   slots  2^(bits + 1) words, open addressing with linear probing. 0 is an
 *          empty slot, anything else holds hash bits (the tag) above the
 *          offset of a record in the arena.
 *   arena  the records, one behind the other, each as long as its stack. Its
 *          addresses are there from the start, its memory comes as it fills up.
 *
 * To insert a stack, space is taken from the arena, the record is filled, and
 * one cmpxchg of an empty slot publishes it. So a slot is either empty or leads
 * to a complete record, and it never changes again: there is nothing to wait
 * for, whoever was interrupted wherever. A context that loses the race for a
 * slot looks at that slot again; if the winner stored the same stack, it uses
 * the winner's id. Hence a stack has exactly one id: both would have to pass
 * the slot that the other one filled. What the loser leaves behind is unused
 * arena space, which no look-up ever visits.
 *
 * Memory ordering:
 *
 *   stackmap_publish:A  fills a record, then cmpxchg_release() of its slot.
 *   stackmap_record:A   READ_ONCE() of a slot; the address of the record
 *                       depends on its value. Pairs with stackmap_publish:A.
 *   ftrace_stackmap_swap:A  unpublishes the map, then synchronize_rcu(). Waits
 *                       for every user of ftrace_stackmap_active(), which runs
 *                       with preemption off, and for rcu_read_lock() readers.
 *   stackmap_latch:A    reads the arena's tail, then synchronize_rcu(): every
 *                       record below that tail is published by then, or never.
 *   stackmap_back:A     maps a page, then smp_store_release() of arena_units.
 *   stackmap_reserve:A  smp_load_acquire() of arena_units, then writes the
 *                       page. Pairs with stackmap_back:A.
 *
 * Memory: the arena begins with room for the smallest map. While the option is
 * on, a work looks every STACKMAP_GROW_MS whether the room for half of that, and
 * a quarter of what is in use, is still free, and adds it if not, up to what the
 * map's size allows. Nobody tells that work, since who inserts may be anywhere,
 * in the scheduler and in an NMI. What comes too fast for it finds no room, is
 * recorded in full and counted as a drop. Before there are workqueues, a map
 * gets all its memory at once.
 *
 * Life time: tr->stackmap is replaced as a whole, under trace_types_lock, and
 * freed after a grace period. A reset publishes a new, empty map with the next
 * generation. The generation is part of each id, belongs to the instance and
 * survives the memory, so an id of an earlier map is recognised as stale.
 *
 * Interrupts: where an interrupt has hit, the stack of whatever it hit goes on
 * with the exact instruction, which makes nearly every such stack a new one.
 * Hence a stack is split behind each frame in the entry code. The parts go into
 * the map, each a stack of its own; the addresses of the instructions, which
 * belong to no part, go into the event, between the ids:
 *
 *	frames			part	event (TRACE_STACK_SPLIT)
 *	timer_fn		 0	stack_id
 *	 ...			 0
 *	asm_timer_interrupt	 0
 *	memcpy			 -	ip[0]
 *	vfs_read		 1	outer[0]
 *	 ...			 1
 *
 * That depends on nothing but the frames, so that a stack is always split the
 * same way, and what is printed are its frames as they were. An interrupt that
 * came from user space has nothing behind it and does not split. A softirq does
 * not either: it runs on the way out of an interrupt, or is called, and what is
 * behind it are return addresses, which repeat.
 *
 * Counts: every stack asked for, in one part or several, is one success or one
 * drop; it is a success when all its parts are in the map, and only then are
 * they referenced. Each CPU counts its own, and collects references in a small
 * write-back cache of (slot, count) pairs; what is evicted is added to the
 * record. Once nobody inserts, the references of all records add up to the
 * parts of all successes: the successes, and one more for each split. All of it
 * is modulo the machine's word: 64 bits can't be used up, 32 bits can.
 *
 * The same cache is a memory: a few of its frames tell the word of a stack, and
 * if that still leads to it, which a comparison shows, neither a hash nor a look
 * for the entry code is needed. Whatever a word leads to, as part or as a whole,
 * has been looked through. A stack that is split is mostly new as a whole, so its
 * first part, unless it is very short, has a word of another kind, which its first
 * frames tell. Such words lead to parts alone that end in the entry code, hence to
 * where a stack that begins like one of them is split.
 */

/* An id: 12 bits of generation above 19 bits of slot index, never negative. */
#define STACKMAP_SLOT_BITS	19
#define STACKMAP_GEN_BITS	12
#define STACKMAP_GEN_MASK	((1U << STACKMAP_GEN_BITS) - 1)

/* Bounds and default of the parameter ftrace_stackmap.bits. */
#define STACKMAP_BITS_MIN	10
#define STACKMAP_BITS_MAX	(STACKMAP_SLOT_BITS - 1)
#define STACKMAP_BITS_DEFAULT	14

/*
 * How far a look-up probes. At most half of the slots are in use, so that runs
 * of this length do not occur with a hash that is worth its name.
 */
#define STACKMAP_PROBES		128

/* A stack has at most this many parts: those of a task, a softirq, an interrupt and an NMI. */
#define STACKMAP_PARTS		4

/* Log2 of the stacks whose references a CPU collects before it has to write to their records. */
#define STACKMAP_REF_BITS	9

/* The same for the first parts of stacks that are split. */
#define STACKMAP_INNER_BITS	7

/* Only those have words of that kind that are at least this long. */
#define STACKMAP_INNER_MIN	5

/* How often the arena is looked at whether it should grow, in milliseconds. */
#define STACKMAP_GROW_MS	100

/* Records start at multiples of this many bytes. */
#define STACKMAP_UNIT		sizeof(u64)

/* Why a stack was not stored. */
enum stackmap_drop {
	STACKMAP_DROP_ENTRIES,	/* as many stacks as the map may hold */
	STACKMAP_DROP_ARENA,	/* no space for the frames */
	STACKMAP_DROP_PROBES,	/* no slot within STACKMAP_PROBES */
	STACKMAP_DROP_EMPTY,	/* no frames, there is nothing to store */
	STACKMAP_NR_DROPS,
};

/**
 * struct stackmap_record - a stack in the arena
 * @ref: references that have left the per-CPU caches
 * @hash: hash of @ips
 * @nr: number of frames
 * @ips: the frames, innermost first
 */
struct stackmap_record {
	atomic_long_t		ref;
	u32			hash;
	u32			nr;
	unsigned long		ips[] __counted_by(nr);
};

/**
 * struct stackmap_cpu - what a CPU writes on a hit
 * @successes: stacks that are in the map, by the number of their parts, less one
 * @drops: stacks that are not, by reason
 * @refs: write-back cache, each word a slot index above a count
 * @inner: the same for the first parts of stacks that are split
 */
struct stackmap_cpu {
	local_t			successes[STACKMAP_PARTS];
	local_t			drops[STACKMAP_NR_DROPS];
	local_t			refs[1 << STACKMAP_REF_BITS];
	local_t			inner[1 << STACKMAP_INNER_BITS];
};

/**
 * struct ftrace_stackmap - the map of one instance in one generation
 * @gen: generation, of which an id holds the low STACKMAP_GEN_BITS
 * @max_entries: number of stacks that may be stored
 * @nr_slots: size of @slots, twice @max_entries
 * @offset_mask: the bits of a slot that are the arena offset, the others are the tag
 * @arena_units: how much of @arena has memory, in STACKMAP_UNITs
 * @arena_limit: how much of it may have
 * @entry_start: entry code of the kernel, behind whose frames stacks are split
 * @entry_size: its size, 0 to keep all stacks in one part
 * @slots: the hash table
 * @arena: the records; unit 0 is not used, so that no slot in use is 0
 * @area: the addresses of @arena
 * @pages: the pages that @arena is made of
 * @grow: makes @arena larger in time
 * @cpu: counters
 * @entries: stacks stored, or just being stored
 * @tail: first free unit of @arena
 */
struct ftrace_stackmap {
	u32			gen;
	u32			max_entries;
	u32			nr_slots;
	u32			offset_mask;
	u32			arena_units;
	u32			arena_limit;
	unsigned long		entry_start;
	unsigned long		entry_size;
	u32			*slots;
	void			*arena;
	struct stackmap_cpu __percpu *cpu;
	struct vm_struct	*area;
	struct list_head	pages;
	struct delayed_work	grow;
	/* Written by inserts only; keep them off the line that hits read. */
	atomic_t		entries ____cacheline_aligned_in_smp;
	atomic_t		tail;
};

/**
 * struct stackmap_part - a part of a stack, or all of it
 * @word: the word of this CPU that counts it, NULL if none may lead to it
 * @nr: number of frames
 * @idx: index of its slot, negative as long as that is not known
 */
struct stackmap_part {
	local_t			*word;
	unsigned int		nr;
	int			idx;
};

/**
 * struct stackmap_parts - how a stack is split
 * @nr: number of parts
 * @part: the parts. The frame between two of them belongs to neither.
 */
struct stackmap_parts {
	unsigned int		nr;
	struct stackmap_part	part[STACKMAP_PARTS];
};

#ifdef CONFIG_FTRACE_STACKMAP
/* ELF notes of the kernel, from the linker script. */
extern const char __start_notes[];
extern const char __stop_notes[];

extern unsigned int ftrace_stackmap_bits;

struct ftrace_stackmap *ftrace_stackmap_alloc(unsigned int bits, u32 gen);
int ftrace_stackmap_grow(struct ftrace_stackmap *map, u32 units, gfp_t gfp);
void ftrace_stackmap_free(struct ftrace_stackmap *map);
int ftrace_stackmap_get_id(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr);
void ftrace_stackmap_find_parts(struct ftrace_stackmap *map, const unsigned long *ips,
				unsigned int nr, struct stackmap_parts *parts);
int ftrace_stackmap_get_ids(struct ftrace_stackmap *map, const unsigned long *ips,
			    struct stackmap_parts *parts, int *ids);
bool ftrace_stackmap_record(struct ftrace_stackmap *map, struct trace_buffer *buffer,
			    unsigned int trace_ctx, const unsigned long *ips, unsigned int nr);
int __ftrace_stackmap_get_id(struct ftrace_stackmap *map, const unsigned long *ips,
			     unsigned int nr, u32 hash);
const struct stackmap_record *ftrace_stackmap_lookup(struct trace_array *tr, int id);
unsigned long ftrace_stackmap_ref(struct ftrace_stackmap *map, u32 slot);
unsigned long ftrace_stackmap_successes(struct ftrace_stackmap *map);
unsigned long ftrace_stackmap_nr_split(struct ftrace_stackmap *map);
unsigned long ftrace_stackmap_nr_parts(struct ftrace_stackmap *map);
unsigned long ftrace_stackmap_drops(struct ftrace_stackmap *map, enum stackmap_drop why);
size_t ftrace_stackmap_memory(const struct ftrace_stackmap *map);

int ftrace_stackmap_set(struct trace_array *tr, bool enable);
int ftrace_stackmap_reset(struct trace_array *tr);
void ftrace_stackmap_destroy(struct trace_array *tr);
void ftrace_stackmap_create_files(struct trace_array *tr, struct dentry *dir);
void ftrace_stackmap_init_events(void);

static inline u32 stackmap_nr_slots(unsigned int bits)
{
	return 2U << bits;
}

static inline u32 stackmap_id(const struct ftrace_stackmap *map, u32 idx)
{
	return ((map->gen & STACKMAP_GEN_MASK) << STACKMAP_SLOT_BITS) | idx;
}

static inline u32 stackmap_offset(const struct ftrace_stackmap *map, u32 slot)
{
	return slot & map->offset_mask;
}

static inline struct stackmap_record *
stackmap_record_at(const struct ftrace_stackmap *map, u32 offset)
{
	return map->arena + (size_t)offset * STACKMAP_UNIT;
}

/* The record of slot number @idx, or NULL. The map must not go away meanwhile. */
static inline struct stackmap_record *stackmap_record(const struct ftrace_stackmap *map, u32 idx)
{
	/* stackmap_record:A, pairs with stackmap_publish:A */
	u32 slot = READ_ONCE(map->slots[idx]);

	return slot ? stackmap_record_at(map, stackmap_offset(map, slot)) : NULL;
}

/**
 * ftrace_stackmap_active - the map that stacks of an instance go through
 * @tr: the instance
 *
 * Context: any. The map may be used until preemption is enabled again.
 * Return: the map, or NULL when options/stackmap is off, or where RCU ignores
 * this CPU and a grace period would not wait for it.
 */
static __always_inline struct ftrace_stackmap *ftrace_stackmap_active(struct trace_array *tr)
{
	if (!(tr->trace_flags & TRACE_ITER(STACKMAP)) || !rcu_is_watching())
		return NULL;

	/* The checking variants call functions that could be traced. */
	return rcu_dereference_raw_check(tr->stackmap);
}
#else
static inline bool
ftrace_stackmap_record(struct ftrace_stackmap *map, struct trace_buffer *buffer,
		       unsigned int trace_ctx, const unsigned long *ips, unsigned int nr)
{
	return false;
}

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
#endif /* CONFIG_FTRACE_STACKMAP */

#endif /* _TRACE_STACKMAP_H */
