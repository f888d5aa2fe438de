/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_INTERNAL_H
#define _TRACE_STACKMAP_INTERNAL_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/cache.h>
#include <linux/cpumask.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

#include <asm/local.h>

#include "trace_stackmap.h"

struct seq_file;

/* An id: 12 bits of generation above 19 bits of slot index, never negative. */
#define STACKMAP_SLOT_BITS	19
#define STACKMAP_SLOT_MASK	((1U << STACKMAP_SLOT_BITS) - 1)
#define STACKMAP_GENS		(1U << (31 - STACKMAP_SLOT_BITS))
#define STACKMAP_GEN_MASK	(STACKMAP_GENS - 1)

/* Bounds and default of the parameter ftrace_stackmap.bits. */
#define STACKMAP_BITS_MIN	10
#define STACKMAP_BITS_MAX	(STACKMAP_SLOT_BITS - 1)
#define STACKMAP_BITS_DEFAULT	14

/* Half of the slots stay empty, so that only a bad hash probes this far. */
#define STACKMAP_PROBES		128

/* Task, page fault, softirq, interrupt and NMI, and some to spare. */
#define STACKMAP_MAX_PARTS	8

/* The sign bit of an id in stack_split_entry: another instruction and id follow in @rest. */
#define STACK_SPLIT_MORE	INT_MIN

/* Log2 of the size of each CPU's cache. */
#define STACKMAP_CACHE_BITS	9

/* Records start at multiples of this many bytes. */
#define STACKMAP_UNIT		sizeof(u64)

enum stackmap_count {
	STACKMAP_SUCCESSES,	/* stacks recorded by their ids */
	STACKMAP_SPLIT,		/* those that have more than one part */
	STACKMAP_MORE_PARTS,	/* their parts but the first */
	STACKMAP_DROP_ENTRIES,	/* the map holds as many stacks as it may */
	STACKMAP_DROP_ARENA,	/* no arena space */
	STACKMAP_DROP_PROBES,	/* no slot within STACKMAP_PROBES */
	STACKMAP_DROP_EMPTY,	/* no frames */
	STACKMAP_DROP_PARTS,	/* more than STACKMAP_MAX_PARTS parts */
	STACKMAP_DROP_BUFFER,	/* the event is not in the buffer of the instance */
	STACKMAP_DROP_OBJECTS,	/* not by file: a reset, or its mappings were changed */
	STACKMAP_NR_COUNTS,
};

struct stackmap_record {
	atomic_long_t		ref;	/* references that have left the caches */
	u16			nr;
	bool			user;	/* a stack of user space */
	u32			defined;	/* stackmap_define at its definition, or odd */
	unsigned long		ips[] __counted_by(nr);
};

struct stackmap_cache {
	local_t			words[1 << STACKMAP_CACHE_BITS]; /* slot index above a count */
};

struct stackmap_counts {
	local_t			of[STACKMAP_NR_COUNTS];
};

/* What all maps of an instance share, from the first one to the next reset. */
struct stackmap_shared {
	struct stackmap_counts __percpu *counts;
	struct user_objects	*objects;	/* that frames of user stacks refer to */
	unsigned long		entry_start;	/* stacks are split behind frames in here */
	unsigned long		entry_size;
	struct stackmap_replacement *repl;
};

/* The stacks of one generation. */
struct ftrace_stackmap {
	u32			gen;		/* ids hold the low bits of it */
	u32			max_entries;
	u32			nr_slots;	/* a power of two */
	u32			offset_mask;	/* bits of a slot that are the arena offset */
	u32			arena_units;
	unsigned long		key[2];		/* of the hash */
	void			*arena;		/* unit 0 is unused, so that 0 is an empty slot */
	struct stackmap_cache __percpu *cache;
	struct stackmap_shared	*shared;
	struct ftrace_stackmap	*prev;		/* see struct stackmap_replacement */
	/* Written by inserts; hits read the lines above and below. */
	atomic_t		entries ____cacheline_aligned_in_smp;
	atomic_t		tail;		/* first free unit of the arena */
	u32			slots[] ____cacheline_aligned_in_smp; /* the arena follows */
};

/**
 * struct stackmap_part - the part of a stack that stackmap_find() found
 * @ips: its frames
 * @nr: number of frames
 * @user: a stack of user space, set by the caller
 * @hash: hash of the frames, unless the CPU remembered the stack
 * @idx: index of its slot, negative if it is not in the map
 * @word: its place in this CPU's cache
 * @seen: what was there
 */
struct stackmap_part {
	const unsigned long	*ips;
	unsigned int		nr;
	bool			user;
	u32			hash;
	int			idx;
	local_t			*word;
	unsigned long		seen;
};

/* A reader, and the stack that it is at. */
struct stackmap_iter {
	struct trace_array	*tr;		/* the open file holds a reference */
	struct ftrace_stackmap	*map;		/* from start to stop: the newest one it reads */
	u32			gen;		/* of that map */
	u32			tail;		/* newer records of the map are left out */
	bool			empty;		/* there was no map */
	u32			nr_stacks;	/* that the reader gets */
	u64			split;		/* STACKMAP_SPLIT */
	int			id;		/* of the stack */
	struct ftrace_stackmap	*owner;		/* of the stack, NULL if it is a kept one */
	u32			forgotten;	/* how often stacks had gone when it began */
};

/* The position of a reader behind the last stack. */
#define STACKMAP_POS_END	((loff_t)1 << 53)

/* ELF notes of the kernel, from the linker script. */
extern const char __start_notes[];
extern const char __stop_notes[];

/* trace_stackmap.c */
struct ftrace_stackmap *stackmap_alloc(struct stackmap_shared *shared, unsigned int bits, u32 gen);
void stackmap_free(struct ftrace_stackmap *map);
int stackmap_find(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
		  struct stackmap_part *part);
int stackmap_insert(struct ftrace_stackmap *map, struct stackmap_part *part);
void stackmap_flush(struct ftrace_stackmap *map, unsigned long word);
void stackmap_add_ref(struct ftrace_stackmap *map, const struct stackmap_part *part);
unsigned long stackmap_ref(const struct ftrace_stackmap *map, u32 idx);
size_t stackmap_size(unsigned int bits);

#include "trace_stackmap_old.h"

/* trace_stackmap_record.c */
int stackmap_store(struct ftrace_stackmap *map, struct stackmap_part *parts, int nr);

/* trace_stackmap_define.c */
int stackmap_define(struct trace_array *tr, struct ftrace_stackmap *map,
		    struct trace_buffer *buffer, unsigned int trace_ctx,
		    struct stackmap_part *parts, int nr, u32 *define);

/* trace_stackmap_user.c */
void stackmap_fill_user(struct stack_id_entry *entry, const struct stackmap_user *user);
u32 stackmap_bin_flags(const struct stackmap_record *rec);

/* trace_stackmap_print.c */
int stackmap_event_ids(const struct trace_entry *ent, int size);
int stackmap_event_id(const struct trace_entry *ent, int i);
bool stackmap_resolve(struct trace_iterator *iter, const struct stackmap_record **recs);

/* trace_stackmap_instance.c */
extern unsigned int ftrace_stackmap_bits;
void stackmap_publish(struct trace_array *tr, struct ftrace_stackmap *map);
int stackmap_reset(struct trace_array *tr);

/* trace_stackmap_stat.c */
extern const struct file_operations stackmap_stat_fops;

#if IS_ENABLED(CONFIG_KUNIT)
u32 *stackmap_probe(struct ftrace_stackmap *map, struct stackmap_part *part);
int stackmap_find_parts(struct ftrace_stackmap *map, const struct stackmap_stack *stack,
			struct stackmap_part *parts);
void stackmap_success(struct ftrace_stackmap *map, const struct stackmap_part *parts, int nr);
struct ftrace_stackmap *stackmap_new(unsigned int bits, u32 gen);
void stackmap_free_all(struct ftrace_stackmap *map);
int stackmap_replace(struct stackmap_replacement *repl);
int stackmap_latch(struct stackmap_iter *iter);
int stackmap_bin_show(struct seq_file *m, void *v);
#endif

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

static inline struct ftrace_stackmap *stackmap_current(struct trace_array *tr)
{
	/* Under trace_types_lock, or in the work that replaces it. */
	return rcu_dereference_protected(tr->stackmap, true);
}

/* Is @buffer another one than that of the instance? */
static inline bool stackmap_foreign(struct trace_array *tr, struct trace_buffer *buffer)
{
	/* A snapshot swaps the buffers at any time. */
	return buffer != data_race(READ_ONCE(tr->array_buffer.buffer));
}

/* Are the frames to be printed below an id? */
static inline bool stackmap_frames(const struct trace_iterator *iter)
{
	return iter->tr->trace_flags & TRACE_ITER(STACKMAP_FRAMES);
}

/*
 * The map that stacks go through, or NULL. A CPU that RCU ignores, or that is not
 * online, has none: a grace period would not wait for it. Preemption is off.
 */
static __always_inline struct ftrace_stackmap *stackmap_active(struct trace_array *tr)
{
	if (!(tr->trace_flags & TRACE_ITER(STACKMAP)))
		return NULL;

	if (!rcu_is_watching() || !cpu_online(raw_smp_processor_id()))
		return NULL;

	/* The checking variants call functions that could be traced. */
	return rcu_dereference_raw_check(tr->stackmap);
}

/* Add to a count. Context: any, with preemption off. */
static inline void stackmap_count(struct stackmap_shared *shared, enum stackmap_count what,
				  long nr)
{
	local_add(nr, &this_cpu_ptr(shared->counts)->of[what]);
}

/* A count of all CPUs, exact while nobody records. */
static inline unsigned long stackmap_sum(const struct stackmap_shared *shared,
					 enum stackmap_count what)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += local_read(&per_cpu_ptr(shared->counts, cpu)->of[what]);
	return sum;
}

#endif /* _TRACE_STACKMAP_INTERNAL_H */
