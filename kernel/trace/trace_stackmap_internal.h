/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRACE_STACKMAP_INTERNAL_H
#define _TRACE_STACKMAP_INTERNAL_H

#include <linux/irq_work.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/ring_buffer.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <asm/local.h>

#include "trace_stackmap.h"
#include "trace_stackmap_map.h"

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
 *   stackmap_latch:A    reads the tail of the arena, then synchronize_rcu(). A
 *                       record below that tail is published by then, or never.
 *   stackmap_instance:A publishes an instance's state by a release. Pairs with
 *                       READ_ONCE(tr->stackmap).
 */

struct seq_file;

#define STACKMAP_BITS_DEFAULT	14

/* Log2 of the size of the first map. */
#define STACKMAP_BITS_FIRST	12

/* The sign bit of an id in stack_split_entry: another instruction and id follow in @rest. */
#define STACK_SPLIT_MORE	INT_MIN

/* Beside the drops: what is counted. */
enum stackmap_count {
	STACKMAP_SUCCESSES = STACKMAP_NR_DROPS,	/* stacks recorded by their ids */
	STACKMAP_SPLIT,		/* those that have more than one part */
	STACKMAP_MORE_PARTS,	/* their parts but the first */
	STACKMAP_NR_COUNTS,
};

struct stackmap_counts {
	local_t			of[STACKMAP_NR_COUNTS];
};

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
 * @objects: the files that user stacks refer to
 * @map: its map, or NULL if the stacks are packed
 * @nr: number of packed stacks
 * @places: where they are, by slot index; the records follow
 * @size: bytes
 * @marks: of each CPU; for the work and a reset only
 */
struct stackmap_gen {
	refcount_t		users;
	u32			first_id;
	struct user_objects	*objects;
	struct ftrace_stackmap	*map;
	u32			nr;
	struct stackmap_place	*places;
	size_t			size;
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

/**
 * struct stackmap_instance - the stack map of a trace instance
 * @map: stacks are recorded into it; NULL after a reset with the option off
 * @counts: since the last reset
 * @set: all generations
 * @tr: the instance
 * @lock: serializes what changes @map and @set; taken under trace_types_lock
 * @next_gen: generation of the next map
 * @resets: number of resets
 * @past: what became of older maps
 * @pos: what the buffers of each CPU hold
 * @recycle: replace the map, by parameter
 * @not_before: jiffies; the next replacement
 * @nearly_full: queues the work, from any context
 * @work: replaces the map
 */
struct stackmap_instance {
	struct ftrace_stackmap	__rcu *map;
	struct stackmap_counts	__percpu *counts;
	struct stackmap_set	__rcu *set;
	struct trace_array	*tr;
	struct mutex		lock;		/* replacement, option and reset */
	u32			next_gen;
	unsigned int		resets;
	struct stackmap_past	past;
	struct ring_buffer_position (*pos)[STACKMAP_BUFFERS];
	bool			recycle;
	unsigned long		not_before;
	struct irq_work		nearly_full;
	struct delayed_work	work;
};

/* A reader of the files, and the stack that it is at. */
struct stackmap_iter {
	struct trace_array	*tr;		/* the open file holds a reference */
	struct stackmap_set	*set;		/* with a reference, or NULL if there is no map */
	unsigned int		resets;		/* of the instance when it began */
	const struct ftrace_stackmap *map;	/* the newest one */
	const void		*map_end;	/* newer records of the map are left out */
	u32			nr_stacks;	/* that the reader gets */
	u64			split;		/* STACKMAP_SPLIT */
	const struct stackmap_gen *gen;		/* of the stack */
	u32			idx;		/* index of its slot */
};

/* ELF notes of the kernel, from the linker script. */
extern const char __start_notes[];
extern const char __stop_notes[];

typedef struct stackmap_gen *(*stackmap_gen_fn)(struct stackmap_instance *inst,
						struct stackmap_gen *gen);

/* trace_stackmap_set.c */
struct stackmap_gen *stackmap_gen_alloc(u32 first_id, struct ftrace_stackmap *map,
					struct user_objects *objects);
void stackmap_gen_put(struct stackmap_gen *gen);
void stackmap_mark_gen(struct stackmap_instance *inst, struct stackmap_gen *gen, bool end);
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
extern unsigned int ftrace_stackmap_bits;
struct stackmap_gen *stackmap_create_first(struct stackmap_instance *inst);
int stackmap_begin_map(struct stackmap_instance *inst, struct stackmap_gen *gen);
void stackmap_init_replacement(struct stackmap_instance *inst);
void stackmap_stop_replacement(struct stackmap_instance *inst);

/* trace_stackmap_define.c */
int stackmap_define(struct trace_array *tr, struct ftrace_stackmap *map,
		    struct trace_buffer *buffer, unsigned int trace_ctx,
		    struct stackmap_part *parts, int nr, u32 *define);

/* trace_stackmap_user.c */
u32 stackmap_bin_flags(const struct stackmap_record *rec);

/* trace_stackmap_print.c */
int stackmap_event_ids(const struct trace_entry *ent, int size);
int stackmap_event_id(const struct trace_entry *ent, int i);
bool stackmap_resolve(struct trace_iterator *iter, const struct stackmap_record **recs);

/* trace_stackmap_instance.c */
int stackmap_reset(struct trace_array *tr);

/* trace_stackmap_stat.c */
extern const struct file_operations stackmap_stat_fops;

#if IS_ENABLED(CONFIG_KUNIT)
void stackmap_success(struct stackmap_instance *inst, struct ftrace_stackmap *map,
		      const struct stackmap_part *parts, int nr);
int stackmap_replace(struct stackmap_instance *inst);
void stackmap_latch(struct stackmap_iter *iter);
const struct stackmap_record *stackmap_next(struct stackmap_iter *iter, loff_t *pos);
int stackmap_bin_show(struct seq_file *m, void *v);
#endif

static inline u32 stackmap_id(const struct ftrace_stackmap *map, u32 idx)
{
	return map->first_id | idx;
}

/* The current map. */
static inline struct ftrace_stackmap *stackmap_current(const struct stackmap_instance *inst)
{
	return rcu_dereference_protected(inst->map, lockdep_is_held(&inst->lock));
}

/* The current set. */
static inline struct stackmap_set *stackmap_set(const struct stackmap_instance *inst)
{
	return rcu_dereference_protected(inst->set, lockdep_is_held(&inst->lock));
}

/* The files that user stacks in @map refer to. */
static inline struct user_objects *stackmap_objects(const struct ftrace_stackmap *map)
{
	const struct stackmap_gen *gen = map->owner;

	return gen->objects;
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
	/* Pairs with stackmap_instance:A */
	struct stackmap_instance *inst = READ_ONCE(tr->stackmap);

	if (!inst || !rcu_is_watching() || !cpu_online(raw_smp_processor_id()))
		return NULL;

	/* The checking variants call functions that could be traced. */
	return rcu_dereference_raw_check(inst->map);
}

/*
 * Have a map replaced if it is nearly full. To be called when a stack was not in it. An
 * insert may happen in the scheduler or in an NMI, and can't queue a work. Early during
 * boot, there is no irq_work either.
 */
static inline void stackmap_ask(struct stackmap_instance *inst, const struct ftrace_stackmap *map)
{
	if (stackmap_nearly_full(map) && inst->recycle && system_state >= SYSTEM_SCHEDULING &&
	    !delayed_work_pending(&inst->work))
		irq_work_queue(&inst->nearly_full);
}

/* Add to a count. Context: any, with preemption off. */
static inline void stackmap_count(struct stackmap_instance *inst, int what, long nr)
{
	local_add(nr, &this_cpu_ptr(inst->counts)->of[what]);
}

/* A count of all CPUs, exact while nobody records. */
static inline unsigned long stackmap_sum(const struct stackmap_instance *inst, int what)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += local_read(&per_cpu_ptr(inst->counts, cpu)->of[what]);
	return sum;
}

#endif /* _TRACE_STACKMAP_INTERNAL_H */
