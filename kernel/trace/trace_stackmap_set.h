/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_SET_H
#define _TRACE_STACKMAP_SET_H

#include <linux/kconfig.h>
#include <linux/refcount.h>
#include <linux/types.h>

#include "trace_stackmap_map.h"

struct stackmap_instance;
struct trace_array;
struct trace_buffer;
struct user_objects;

/*
 * The stacks of an instance
 * =========================
 *
 * Stacks are recorded into the current map. When that is nearly full, a work
 * replaces it by an empty one, twice as large up to 2^bits. The stacks of the map that
 * was replaced are packed: each that an event may refer to is copied into one block,
 * and the map is freed. When the map is replaced the next time, the old generations
 * are packed again, and those that no event refers to any more go:
 *
 *	gen	map		old generations
 *	 0	2^12 stacks	-
 *	 1	2^13		all that events have of gen 0
 *	 2	2^14, the most	what they still have of gen 0; all of gen 1
 *	 3	2^14		... of gen 0 (or it is gone), of gen 1; all of gen 2
 *
 * Which stacks does an event refer to? A ring buffer counts the events of a CPU
 * (ring_buffer_position()). Each generation has two marks for each CPU, as the CPU
 * has two buffers, the instance's and the snapshot's: how many events were
 * written when the generation began, and when it ended. As long as the buffer
 * holds an event from in between, the CPU pins the generation. Each record
 * notes which CPUs have used it. A stack is needed while one of these CPUs pins its
 * generation.
 *
 * The begin is read before the map is published. The end is read after the grace
 * period in which it was replaced: then no CPU makes its ids, and all events with
 * one are committed. An event that is not committed yet began after that, since
 * preemption is off from reserve to commit. So did all that is nested in it.
 *
 * All generations are in one set, by which an id leads to its stack. A set never
 * changes. To change the stacks is to publish another set. A reader of the files holds a
 * reference to the set that it began with. A generation that a reset has ended has
 * no stacks, but stays in the set while it is pinned: its ids are not made again.
 *
 * Memory ordering:
 *
 *   stackmap_publish:A  publishes a set, then its map by a release. Pairs with
 *                       stackmap_resolve:A: who has an event with an id of the map
 *                       gets this set, or a later one.
 *   stackmap_publish:B  publishes set and map, then synchronize_rcu(). Pairs with
 *                       stackmap_active() and stackmap_resolve().
 */

/* Log2 of the size of the first map. */
#define STACKMAP_BITS_FIRST	12

/* The buffers of a CPU: the instance's and the snapshot's. */
#define STACKMAP_BUFFERS	2

/**
 * struct stackmap_mark - when a generation was current
 * @epoch: the buffer of a CPU, see struct ring_buffer_position
 * @begin: number of events that it had got before
 * @end: number of events that it had got then
 */
struct stackmap_mark {
	unsigned long		epoch;
	unsigned long		begin;
	unsigned long		end;
};

/* Where a packed record is. */
struct stackmap_place {
	u32			idx;		/* of its slot */
	u32			unit;		/* from the first place on */
};

/**
 * struct stackmap_gen - the stacks of one generation
 * @users: sets that it is in
 * @first_id: its first id
 * @recycle: its map is replaced when it is nearly full, by parameter
 * @objects: the files that user stacks refer to
 * @map: its map, or NULL if the stacks are packed
 * @nr: number of packed stacks
 * @places: where they are, by slot index; the records follow
 * @size: bytes
 * @pins: the CPUs that pinned it when its stacks were looked at
 * @marks: of each CPU; for the work and a reset only
 */
struct stackmap_gen {
	refcount_t		users;
	u32			first_id;
	bool			recycle;
	struct user_objects	*objects;
	struct ftrace_stackmap	*map;
	u32			nr;
	struct stackmap_place	*places;
	size_t			size;
	unsigned long		pins;
	struct stackmap_mark	marks[][STACKMAP_BUFFERS];
};

/* All generations whose ids are in use, by their first ids. */
struct stackmap_set {
	refcount_t		users;
	u32			nr;
	struct stackmap_gen	*gens[] __counted_by(nr);
};

/* What became of older maps since the last reset. */
struct stackmap_past {
	unsigned long		rotations;	/* replacements */
	unsigned long		recycled;	/* stacks that are gone ... */
	unsigned long		recycled_refs;	/* ... and their references */
};

typedef struct stackmap_gen *(*stackmap_gen_fn)(struct stackmap_instance *inst,
						struct stackmap_gen *gen);

/* trace_stackmap_mark.c */
void stackmap_mark_gen(struct stackmap_instance *inst, struct stackmap_gen *gen, bool end);
void stackmap_read_positions(struct stackmap_instance *inst);
unsigned long stackmap_pins(const struct stackmap_instance *inst, const struct stackmap_gen *gen);

/* trace_stackmap_set.c */
struct stackmap_gen *stackmap_gen_alloc(u32 first_id, struct ftrace_stackmap *map);
struct stackmap_gen *stackmap_keep(struct stackmap_instance *inst, struct stackmap_gen *gen);
struct stackmap_gen *stackmap_forget(struct stackmap_instance *inst, struct stackmap_gen *gen);
struct stackmap_set *stackmap_build(struct stackmap_instance *inst, struct stackmap_gen *new,
				    stackmap_gen_fn fn);
void stackmap_put(struct stackmap_set *set);
void stackmap_publish(struct stackmap_instance *inst, struct stackmap_set *set,
		      struct ftrace_stackmap *map);
void stackmap_shrink(struct stackmap_instance *inst);
const struct stackmap_record *stackmap_at(const struct stackmap_gen *gen, u32 i, u32 *idx);
const struct stackmap_record *stackmap_lookup(const struct stackmap_set *set, int id);
struct stackmap_gen *stackmap_gen_of(const struct stackmap_set *set, int id);

/* trace_stackmap_replace.c */
unsigned int stackmap_first_bits(void);
struct stackmap_gen *stackmap_create_first(struct stackmap_instance *inst);
int stackmap_begin_map(struct stackmap_instance *inst, struct stackmap_gen *gen);
void stackmap_init_replacement(struct stackmap_instance *inst);
void stackmap_stop_replacement(struct stackmap_instance *inst);

#if IS_ENABLED(CONFIG_KUNIT)
int stackmap_replace(struct stackmap_instance *inst);
unsigned long stackmap_pause_after(u64 ran, bool failed);
#endif

/* The files that user stacks in @map refer to. */
static inline struct user_objects *stackmap_objects(const struct ftrace_stackmap *map)
{
	return map->gen->objects;
}

/* The files that generation number @i refers to, or NULL if none or those of an earlier one. */
static inline struct user_objects *stackmap_new_objects(const struct stackmap_set *set, u32 i)
{
	struct user_objects *objects = set->gens[i]->objects;

	for (u32 j = 0; objects && j < i; j++) {
		if (set->gens[j]->objects == objects)
			return NULL;
	}
	return IS_ENABLED(CONFIG_TRACE_USER_OBJECTS) ? objects : NULL;
}

#endif /* _TRACE_STACKMAP_SET_H */
