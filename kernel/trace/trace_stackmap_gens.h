/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_GENS_H
#define _TRACE_STACKMAP_GENS_H

#include <linux/kconfig.h>
#include <linux/refcount.h>
#include <linux/types.h>

#include "trace_stackmap_map.h"

struct stackmap_instance;

/*
 * The stacks of an instance
 * =========================
 *
 * Stacks are recorded into the current map. When that is nearly full, a work
 * replaces it by an empty one, twice as large up to 2^bits. The old map is packed: each
 * stack that an event may refer to is copied into one block, and the map is freed. With
 * the next replacement, each old generation is packed again if that frees half of it, and
 * those that no event refers to any more are freed:
 *
 *	gen	map		old generations
 *	 0	2^12 stacks	-
 *	 1	2^13		gen 0, packed
 *	 2	2^14, the most	gen 0, packed again; gen 1, packed
 *	 3	2^14		gen 0 (or it is gone) and gen 1, packed again; gen 2, packed
 *
 * Which stacks does an event refer to? A ring buffer counts the events of a CPU
 * (ring_buffer_position()). A CPU has two buffers, the instance's and the snapshot's.
 * For each of the two, a generation has a range: the events that were written from
 * its begin to its end. While a buffer of the CPU holds an event of the range,
 * the generation is in use by the CPU. Each record notes which CPUs have used it. A stack
 * is needed while its generation is in use by one of these CPUs. A file that user stacks
 * refer to notes the CPUs of these stacks, and so is kept with them.
 *
 * The begin is read before the map is published. The end is read after the grace
 * period in which it was replaced: then no CPU makes its ids, and all events with
 * one are committed. An event that is not committed yet began after that, since
 * preemption is off from reserve to commit. So did all events nested in it.
 *
 * struct stackmap_gens has all generations of an instance. It leads from an id to its
 * stack, and is replaced as a whole. A reader of the files holds a reference to the one
 * that it began with. A generation that a reset has ended has no stacks. It stays while
 * it is in use: its ids are not made again.
 *
 * Memory ordering:
 *
 *   stackmap_publish:A  publishes the generations, then the map by a release. Pairs with
 *                       stackmap_resolve:A. A reader that sees an id of this map also
 *                       sees these generations, or later ones.
 *   stackmap_publish:B  publishes generations and map, then synchronize_rcu(). Pairs
 *                       with stackmap_active() and stackmap_resolve().
 */

/* Log2 of the size of the first map. */
#define STACKMAP_BITS_FIRST	12

/* The buffers of a CPU: the instance's and the snapshot's. */
#define STACKMAP_BUFFERS	2

/**
 * struct stackmap_range - the events written to a ring buffer while a generation was current
 * @epoch: the buffer of a CPU, see struct ring_buffer_position
 * @begin: number of events written before
 * @end: number of events written up to its end
 */
struct stackmap_range {
	unsigned long		epoch;
	unsigned long		begin;
	unsigned long		end;
};

/* Where a packed record is. */
struct stackmap_index {
	u32			idx;		/* of its slot */
	u32			unit;		/* from the start of the index on */
};

/**
 * struct stackmap_gen - the stacks of one generation
 * @users: references: each struct stackmap_gens that has it
 * @first_id: its first id
 * @recycle: its map may be replaced (parameter recycle)
 * @map: its map, or NULL if the stacks are packed
 * @nr: number of packed records
 * @files: of them, those that are files
 * @index: where they are, by slot index; the records follow
 * @size: bytes
 * @in_use: the CPUs by which it was in use when its stacks were counted; under inst->lock
 * @ranges: of each CPU and buffer; under inst->lock
 */
struct stackmap_gen {
	refcount_t		users;
	u32			first_id;
	bool			recycle;
	struct ftrace_stackmap	*map;
	u32			nr;
	u32			files;
	struct stackmap_index	*index;
	size_t			size;
	unsigned long		in_use;
	struct stackmap_range	ranges[][STACKMAP_BUFFERS];
};

/* All generations, by their first ids. */
struct stackmap_gens {
	refcount_t		users;
	u32			nr;
	struct stackmap_gen	*gen[] __counted_by(nr);
};

/* Counts of older maps since the last reset. */
struct stackmap_past {
	unsigned long		rotations;	/* replacements */
	unsigned long		recycled;	/* stacks that are gone ... */
	unsigned long		recycled_refs;	/* ... and their references */
};

/* trace_stackmap_gens.c */
struct stackmap_gen *stackmap_gen_alloc(u32 first_id, struct ftrace_stackmap *map);
void stackmap_set_range(struct stackmap_instance *inst, struct stackmap_gen *gen, bool end);
struct stackmap_gens *stackmap_gens_with(struct stackmap_instance *inst,
					 struct stackmap_gen *new);
struct stackmap_gens *stackmap_gens_stale(struct stackmap_instance *inst,
					  struct stackmap_gen *new);
void stackmap_put(struct stackmap_gens *gens);
void stackmap_publish(struct stackmap_instance *inst, struct stackmap_gens *gens,
		      struct ftrace_stackmap *map);
void stackmap_free_unused(struct stackmap_instance *inst);
const struct stackmap_record *stackmap_at(const struct stackmap_gen *gen, u32 i, u32 *idx);
const struct stackmap_record *stackmap_lookup(const struct stackmap_gens *gens, int id);
struct stackmap_gen *stackmap_gen_of(const struct stackmap_gens *gens, int id);

/* trace_stackmap_replace.c */
unsigned int stackmap_first_bits(void);
struct stackmap_gen *stackmap_create_first(struct stackmap_instance *inst);
int stackmap_begin_map(struct stackmap_instance *inst, struct stackmap_gen *gen);
void stackmap_request_replace(struct stackmap_instance *inst, const struct ftrace_stackmap *map);
void stackmap_init_replacement(struct stackmap_instance *inst);
void stackmap_stop_replacement(struct stackmap_instance *inst);

#if IS_ENABLED(CONFIG_KUNIT)
int stackmap_replace(struct stackmap_instance *inst);
#endif

#endif /* _TRACE_STACKMAP_GENS_H */
