/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_MAP_H
#define _TRACE_STACKMAP_MAP_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/siphash.h>
#include <linux/smp.h>
#include <linux/types.h>

#include <asm/local.h>

/*
 * The map: a library that stores each distinct stack once and gives it an id. It
 * knows nothing of events, trace instances and files in tracefs.
 *
 *   slots  2^(bits + 1) words, open addressing with linear probing. 0 is an
 *          empty slot. Any other value is the offset of a record in the arena,
 *          and above that some bits of its hash (the tag).
 *   arena  the records, each as long as its stack.
 *
 * To insert a stack, the CPU reserves arena space, fills the record and
 * publishes it by one cmpxchg of an empty slot. A slot never changes after
 * that. So there is no half-inserted state, and nothing to wait for, no matter
 * which context was interrupted. If the slot was taken meanwhile, the look-up is
 * repeated. It finds the same stack, or the next empty slot. Hence a stack is
 * stored once and has one id. The arena space of the loser stays unused.
 *
 * Each CPU has a small cache of the stacks that it recorded last, by a sample of
 * their frames. A stack that is still there is found by comparing it, without a
 * hash. The cache also counts references. When another stack takes a cache slot,
 * the count is added to the record of the stack that leaves. When a stack takes a
 * cache slot, its record notes the CPU.
 *
 * A file that user stacks refer to is a record, too. It begins with the words that
 * identify the file, by which it is found. Its content follows.
 *
 * Memory ordering:
 *
 *   stackmap_insert:A   fills a record, then cmpxchg_release() of its slot.
 *   stackmap_probe:A    READ_ONCE() of a slot, then the record by its address.
 *   stackmap_record:A   The same. Both pair with stackmap_insert:A.
 */

/* An id: 12 bits of generation above 19 bits of slot index, never negative. */
#define STACKMAP_SLOT_BITS	19
#define STACKMAP_SLOT_MASK	((1U << STACKMAP_SLOT_BITS) - 1)
#define STACKMAP_GENS		(1U << (31 - STACKMAP_SLOT_BITS))

/* Log2 of the number of stacks that a map can hold. */
#define STACKMAP_BITS_MIN	10
#define STACKMAP_BITS_MAX	(STACKMAP_SLOT_BITS - 1)

/* Half of the slots stay empty, so that only a bad hash probes this far. */
#define STACKMAP_PROBES		128

/* Log2 of the size of each CPU's cache. */
#define STACKMAP_CACHE_BITS	11

/* Records start at multiples of this many bytes. */
#define STACKMAP_UNIT		sizeof(u64)

/* Why a stack is recorded in full. Functions return it negated. */
enum stackmap_drop {
	STACKMAP_DROP_ENTRIES = 1,	/* the map holds as many stacks as it may */
	STACKMAP_DROP_ARENA,		/* no arena space */
	STACKMAP_DROP_PROBES,		/* no slot within STACKMAP_PROBES */
	STACKMAP_DROP_EMPTY,		/* no frames */
	STACKMAP_DROP_PARTS,		/* more than STACKMAP_MAX_PARTS parts */
	STACKMAP_DROP_BUFFER,		/* a definition would go to the snapshot */
	STACKMAP_NR_DROPS,
};

/**
 * struct stackmap_record - a stack, or a file
 * @ref: references that have left the caches
 * @cpus: the CPUs that had it in their caches, defined it, or used a stack that refers to it,
 *	  modulo BITS_PER_LONG
 * @proof: takes the place of @cpus in persistent memory, see trace_stackmap_persist.c
 * @defined: value of stackmap_define, which is even, at its definition; 1: not defined; of a file,
 *	     1 more if it was defined with its build id
 * @nr: number of frames
 * @user: a stack of user space
 * @file: a file
 * @ips: the frames, innermost first; of a file its key and its content
 */
struct stackmap_record {
	atomic_long_t		ref;
	union {
		unsigned long	cpus;
		u32		proof;
	};
	u32			defined;
	u16			nr;
	bool			user;
	bool			file;
	unsigned long		ips[] __counted_by(nr);
};

struct stackmap_cache {
	local_t			slots[1 << STACKMAP_CACHE_BITS]; /* slot index above a count */
};

struct stackmap_gen;

struct ftrace_stackmap {
	u32			first_id;	/* the id of slot 0 */
	u32			max_entries;
	u32			nr_slots;	/* a power of two */
	u32			offset_mask;	/* bits of a slot that are the arena offset */
	u32			arena_units;
	hsiphash_key_t		hash_key;
	unsigned long		irqentry_start;	/* stacks are split behind frames in here; */
	unsigned long		irqentry_size;	/* set by the caller of stackmap_alloc() */
	struct stackmap_gen	*gen;		/* the caller's */
	void			*arena;		/* unit 0 is unused, so that 0 is an empty slot */
	struct stackmap_cache __percpu *cache;
	/* Of the map of a persistent instance. */
	bool			persistent;
	u8			flushed;	/* not 0: the references in the caches were saved */
	u32			check;		/* see stackmap_header_hash() */
	/* Written by inserts; hits read the lines above and below. */
	atomic_t		entries ____cacheline_aligned_in_smp;
	atomic_t		files;		/* of the entries */
	atomic_t		tail;		/* first free unit of the arena */
	u32			slots[] ____cacheline_aligned; /* the arena follows */
};

/**
 * struct stackmap_key - a stack that is looked up, or a file
 * @ips: its frames
 * @nr: number of frames
 * @more: number of words behind those, the content of a file that is stored
 * @user: a stack of user space
 * @file: a file
 * @hash: hash of the frames; not set if the stack is in the cache
 * @idx: index of its slot, negative if it is not in the map
 * @cache_slot: its slot in the cache of this CPU
 * @seen: what was there
 */
struct stackmap_key {
	const unsigned long	*ips;
	unsigned int		nr;
	unsigned int		more;
	bool			user;
	bool			file;
	u32			hash;
	int			idx;
	local_t			*cache_slot;
	unsigned long		seen;
};

struct ftrace_stackmap *stackmap_alloc(unsigned int bits, u32 first_id);
void stackmap_init(struct ftrace_stackmap *map, unsigned int bits, u32 first_id);
void stackmap_free(struct ftrace_stackmap *map);
size_t stackmap_size(unsigned int bits);
int stackmap_find(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
		  struct stackmap_key *key);
int stackmap_find_file(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
		       struct stackmap_key *key);
int stackmap_insert(struct ftrace_stackmap *map, struct stackmap_key *key);
void stackmap_add_ref(struct ftrace_stackmap *map, const struct stackmap_key *key);
void stackmap_set_cpu(const struct ftrace_stackmap *map, struct stackmap_record *rec);
unsigned long stackmap_ref(const struct ftrace_stackmap *map, u32 idx);
void stackmap_flush_cpu(struct ftrace_stackmap *map, int cpu);
void stackmap_flush(struct ftrace_stackmap *map);

#if IS_ENABLED(CONFIG_KUNIT)
u32 *stackmap_probe(struct ftrace_stackmap *map, struct stackmap_key *key);
#endif

/* The two highest bits, which are in the tag, tell kernel stacks, user stacks and files apart. */
static inline u32 stackmap_hash(const struct ftrace_stackmap *map, const unsigned long *ips,
				unsigned int nr, bool user, bool file)
{
	return hsiphash(ips, nr * sizeof(*ips), &map->hash_key) ^ (u32)user << 31 ^ (u32)file << 30;
}

/* Bits of the hash, as a slot has them above the offset. */
static inline u32 stackmap_tag(const struct ftrace_stackmap *map, u32 hash_or_slot)
{
	return hash_or_slot & ~map->offset_mask;
}

/* Is the bit of this CPU set in a record? */
static inline bool stackmap_has_cpu(const struct stackmap_record *rec)
{
	return test_bit(raw_smp_processor_id() % BITS_PER_LONG, &rec->cpus);
}

/* Units that a stack of @nr frames takes. */
static inline u32 stackmap_units(unsigned int nr)
{
	return DIV_ROUND_UP(struct_size_t(struct stackmap_record, ips, nr), STACKMAP_UNIT);
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

/* The units in use. A stack that did not fit has taken some, too. */
static inline u32 stackmap_tail(const struct ftrace_stackmap *map)
{
	return min_t(u32, atomic_read(&map->tail), map->arena_units);
}

/* Are 3/4 of the entries or of the arena in use? */
static inline bool stackmap_nearly_full(const struct ftrace_stackmap *map)
{
	return atomic_read(&map->entries) >= map->max_entries - map->max_entries / 4 ||
	       stackmap_tail(map) >= map->arena_units - map->arena_units / 4;
}

#endif /* _TRACE_STACKMAP_MAP_H */
