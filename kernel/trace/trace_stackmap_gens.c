// SPDX-License-Identifier: GPL-2.0
/*
 * The generations of an instance: how an id leads to a stack, and how stacks are freed
 * that no event refers to. trace_stackmap_gens.h has the design.
 */
#include <linux/bits.h>
#include <linux/bsearch.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/ring_buffer.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "trace_stackmap_internal.h"

/*
 * The positions of both buffers of a CPU, the instance's and the snapshot's. If both reads give
 * the same ring, a swap came between them: read again.
 */
static void stackmap_get_position(struct trace_array *tr, int cpu,
				  struct ring_buffer_position *pos)
{
	struct trace_buffer *buffer, *other;

	do {
		/* A snapshot swaps them at any time. */
		buffer = data_race(READ_ONCE(tr->array_buffer.buffer));
		other = stackmap_other_buffer(tr);
		ring_buffer_position(buffer, cpu, &pos[0]);
		pos[1] = (struct ring_buffer_position) { };
		if (other)
			ring_buffer_position(other, cpu, &pos[1]);
	} while (pos[0].ring && pos[0].ring == pos[1].ring);
}

/* Events this buffer had when the generation began; 0 if it was allocated or reset since. */
static unsigned long stackmap_begun(const struct stackmap_range *ranges, unsigned long epoch)
{
	for (int i = 0; i < STACKMAP_BUFFERS; i++) {
		if (ranges[i].epoch == epoch)
			return ranges[i].begin;
	}
	return 0;
}

/**
 * stackmap_set_range - set the begin or the end of a generation
 * @inst: the instance
 * @gen: the generation
 * @end: false before its map is published, true after a grace period in which it was replaced
 */
void stackmap_set_range(struct stackmap_instance *inst, struct stackmap_gen *gen, bool end)
{
	struct ring_buffer_position pos[STACKMAP_BUFFERS];
	struct stackmap_range ranges[STACKMAP_BUFFERS];
	int cpu;

	for_each_possible_cpu(cpu) {
		stackmap_get_position(inst->tr, cpu, pos);
		for (int i = 0; i < STACKMAP_BUFFERS; i++)
			ranges[i] = (struct stackmap_range) {
				.epoch	= pos[i].epoch,
				.begin	= end ? stackmap_begun(gen->ranges[cpu], pos[i].epoch) :
						pos[i].written,
				.end	= pos[i].written,
			};
		memcpy(gen->ranges[cpu], ranges, sizeof(ranges));
	}
}

/* Is @at before @end? Counters wrap. */
static bool stackmap_before(unsigned long at, unsigned long end)
{
	return (long)(at - end) < 0;
}

/* Does a buffer hold an event of the range? */
static bool stackmap_range_in_use(const struct ring_buffer_position *pos,
				  const struct stackmap_range *range)
{
	if (pos->epoch != range->epoch || range->begin == range->end)
		return false;

	return (stackmap_before(pos->oldest, pos->written) &&
		stackmap_before(pos->oldest, range->end)) ||
	       (stackmap_before(pos->page, range->end) &&
		stackmap_before(range->begin, pos->page_end));
}

/*
 * The CPUs that use a generation that has ended, modulo BITS_PER_LONG. The caller has
 * read the positions of the instance.
 */
static unsigned long stackmap_in_use(const struct stackmap_instance *inst,
				     const struct stackmap_gen *gen)
{
	unsigned long cpus = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		for (int i = 0; i < STACKMAP_BUFFERS * STACKMAP_BUFFERS; i++) {
			if (stackmap_range_in_use(&inst->pos[cpu][i / STACKMAP_BUFFERS],
						  &gen->ranges[cpu][i % STACKMAP_BUFFERS]))
				cpus |= BIT(cpu % BITS_PER_LONG);
		}
	}
	return cpus;
}

/* Counts of the stacks of a generation that some CPUs have used, and of the others. */
struct stackmap_gen_counts {
	u32			nr;		/* of records ... */
	u32			files;		/* that are files */
	size_t			units;		/* of their records */
	u32			gone;		/* the other stacks ... */
	unsigned long		gone_refs;	/* ... and their references */
};

static size_t stackmap_gen_size(void)
{
	return struct_size_t(struct stackmap_gen, ranges, nr_cpu_ids);
}

/* Of the records that are counted, with their index. */
static size_t stackmap_packed_size(const struct stackmap_gen_counts *count)
{
	return (count->nr + count->units) * STACKMAP_UNIT;
}

/**
 * stackmap_gen_alloc - allocate a generation
 * @first_id: its first id
 * @map: its map, which passes to it, or NULL
 *
 * Return: the generation, with a reference for the caller, or NULL if an allocation fails.
 */
struct stackmap_gen *stackmap_gen_alloc(u32 first_id, struct ftrace_stackmap *map)
{
	struct stackmap_gen *gen = kvzalloc(stackmap_gen_size(), GFP_KERNEL);

	if (!gen)
		return NULL;

	refcount_set(&gen->users, 1);
	gen->first_id = first_id;
	gen->size = stackmap_gen_size();
	if (map) {
		map->gen = gen;
		gen->map = map;
		gen->size += stackmap_size(ilog2(map->max_entries)) +
			     num_possible_cpus() * sizeof(*map->cache);
	}
	return gen;
}

/* Put a reference. If it is the last one, no RCU reader may be left. */
static void stackmap_gen_put(struct stackmap_gen *gen)
{
	if (!gen || !refcount_dec_and_test(&gen->users))
		return;

	stackmap_free(gen->map);
	kvfree(gen->index);
	kvfree(gen);
}

static struct stackmap_record *stackmap_packed_record(const struct stackmap_gen *gen,
						      const struct stackmap_index *index)
{
	return (void *)gen->index + (size_t)index->unit * STACKMAP_UNIT;
}

/**
 * stackmap_at - one stack or file after the other
 * @gen: the generation
 * @i: 0, and so on
 * @idx: set to the index of its slot
 *
 * With a reference to @gen or under RCU.
 * Return: its record, NULL where there is none, or an error after the last one.
 */
const struct stackmap_record *stackmap_at(const struct stackmap_gen *gen, u32 i, u32 *idx)
{
	if (i >= (gen->map ? gen->map->nr_slots : gen->nr))
		return ERR_PTR(-ENOENT);

	if (gen->map) {
		*idx = i;
		return stackmap_record(gen->map, i);
	}
	*idx = gen->index[i].idx;
	return stackmap_packed_record(gen, &gen->index[i]);
}

static int stackmap_cmp_gen(const void *key, const void *elt)
{
	const struct stackmap_gen *const *gen = elt;

	return *(const int *)key - (int)(*gen)->first_id;
}

static int stackmap_cmp_index(const void *key, const void *elt)
{
	const struct stackmap_index *index = elt;

	return *(const int *)key - (int)index->idx;
}

/**
 * stackmap_gen_of - the generation of an id
 * @gens: the generations, or NULL
 * @id: the id
 *
 * With a reference to @gens or under RCU.
 * Return: the generation, or NULL if it is gone.
 */
struct stackmap_gen *stackmap_gen_of(const struct stackmap_gens *gens, int id)
{
	u32 first_id = id & ~STACKMAP_SLOT_MASK;
	struct stackmap_gen *const *gen;

	if (!gens)
		return NULL;
	gen = bsearch(&first_id, gens->gen, gens->nr, sizeof(*gen), stackmap_cmp_gen);
	return gen ? *gen : NULL;
}

/**
 * stackmap_lookup - the stack or the file that an id stands for
 * @gens: the generations of the instance that recorded the id, or NULL
 * @id: the id
 *
 * With a reference to @gens or under RCU.
 * Return: its record, or NULL if it is gone.
 */
const struct stackmap_record *stackmap_lookup(const struct stackmap_gens *gens, int id)
{
	const struct stackmap_gen *gen = stackmap_gen_of(gens, id);
	const struct stackmap_index *index;
	u32 idx = id & STACKMAP_SLOT_MASK;

	if (!gen)
		return NULL;
	if (gen->map)
		return idx < gen->map->nr_slots ? stackmap_record(gen->map, idx) : NULL;

	index = bsearch(&idx, gen->index, gen->nr, sizeof(*index), stackmap_cmp_index);
	return index ? stackmap_packed_record(gen, index) : NULL;
}

/**
 * stackmap_put - put a reference to all generations
 * @gens: the generations, or NULL
 *
 * If it is the last one, no RCU reader may be left.
 */
void stackmap_put(struct stackmap_gens *gens)
{
	if (!gens || !refcount_dec_and_test(&gens->users))
		return;

	for (u32 i = 0; i < gens->nr; i++)
		stackmap_gen_put(gens->gen[i]);
	kvfree(gens);
}

/* Count the stacks of a generation that one of @cpus has used, and the others. */
static void stackmap_count_gen(const struct stackmap_gen *gen, unsigned long cpus,
			       struct stackmap_gen_counts *count)
{
	const struct stackmap_record *rec;
	u32 idx;

	for (u32 i = 0; !IS_ERR(rec = stackmap_at(gen, i, &idx)); i++) {
		cond_resched();
		if (!rec)
			continue;
		if (rec->cpus & cpus) {
			count->units += stackmap_units(rec->nr);
			count->nr++;
			count->files += rec->file;
		} else if (!rec->file) {
			count->gone_refs += atomic_long_read(&rec->ref);
			count->gone++;
		}
	}
}

/* Copy the stacks that one of @cpus has used. */
static void stackmap_copy(struct stackmap_gen *to, const struct stackmap_gen *from,
			  unsigned long cpus)
{
	struct stackmap_index *index = to->index;
	const struct stackmap_record *rec;
	u32 unit = to->nr, idx;

	BUILD_BUG_ON(sizeof(*index) != STACKMAP_UNIT);
	for (u32 i = 0; !IS_ERR(rec = stackmap_at(from, i, &idx)); i++) {
		cond_resched();
		if (!rec || !(rec->cpus & cpus))
			continue;
		*index = (struct stackmap_index) { .idx = idx, .unit = unit };
		memcpy(stackmap_packed_record(to, index), rec, struct_size(rec, ips, rec->nr));
		unit += stackmap_units(rec->nr);
		index++;
	}
}

/*
 * A copy of a generation with the stacks that one of @cpus has used. Without any, it is
 * stale. Returns NULL if an allocation fails.
 */
static struct stackmap_gen *stackmap_gen_copy(const struct stackmap_gen *gen, unsigned long cpus,
					      const struct stackmap_gen_counts *count)
{
	struct stackmap_gen *new = stackmap_gen_alloc(gen->first_id, NULL);
	size_t size = stackmap_packed_size(count);

	if (!new)
		return NULL;

	memcpy(new->ranges, gen->ranges, array_size(nr_cpu_ids, sizeof(*gen->ranges)));
	if (!count->nr)
		return new;

	new->index = kvmalloc(size, GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!new->index) {
		stackmap_gen_put(new);
		return NULL;
	}
	new->in_use = cpus;
	new->nr = count->nr;
	new->files = count->files;
	new->size += size;
	stackmap_copy(new, gen, cpus);
	return new;
}

/* Are all its stacks freed? */
static bool stackmap_gen_is_stale(const struct stackmap_gen *gen)
{
	return !gen->map && !gen->nr;
}

/* The generation as it is, with one more reference. */
static struct stackmap_gen *stackmap_gen_whole(struct stackmap_gen *gen)
{
	refcount_inc(&gen->users);
	return gen;
}

/*
 * The successor of an old generation: a packed copy if it still has its map, or if that frees
 * half of its memory. Else, or if an allocation fails, the generation as it is. NULL if no event
 * refers to it. Adds the freed stacks to @past.
 */
static struct stackmap_gen *stackmap_gen_packed(struct stackmap_gen *gen, unsigned long in_use,
						struct stackmap_past *past)
{
	struct stackmap_gen_counts count = { };
	struct stackmap_gen *new = NULL;

	if (stackmap_gen_is_stale(gen))
		return in_use ? stackmap_gen_whole(gen) : NULL;
	if (gen->nr && gen->in_use == in_use)
		return stackmap_gen_whole(gen);

	stackmap_count_gen(gen, in_use, &count);
	/* Not by their number: their sizes differ. */
	if (count.nr && !gen->map &&
	    2 * stackmap_packed_size(&count) > gen->size - stackmap_gen_size()) {
		gen->in_use = in_use;
		return stackmap_gen_whole(gen);
	}
	if (count.nr) {
		new = stackmap_gen_copy(gen, in_use, &count);
		if (!new)
			return stackmap_gen_whole(gen);
	}
	past->recycled += count.gone;
	past->recycled_refs += count.gone_refs;
	return new;
}

/* Room for the generations of an instance and one more. */
static struct stackmap_gens *stackmap_gens_alloc(const struct stackmap_instance *inst)
{
	const struct stackmap_gens *old = stackmap_gens(inst);
	u32 nr = old ? old->nr : 0;
	struct stackmap_gens *gens = kvzalloc(struct_size(gens, gen, nr + 1), GFP_KERNEL);

	if (gens)
		refcount_set(&gens->users, 1);
	return gens;
}

/* Add a generation, in the order of first ids. Its reference passes to @gens. */
static void stackmap_add_gen(struct stackmap_gens *gens, struct stackmap_gen *gen)
{
	u32 i = gens->nr++;

	for (; i && gens->gen[i - 1]->first_id > gen->first_id; i--)
		gens->gen[i] = gens->gen[i - 1];
	gens->gen[i] = gen;
}

/**
 * stackmap_gens_with - the generations of an instance and a new one
 * @inst: the instance
 * @new: the new generation; its reference is given away
 *
 * Return: the generations, with a reference for the caller, or NULL if an allocation fails.
 */
struct stackmap_gens *stackmap_gens_with(struct stackmap_instance *inst, struct stackmap_gen *new)
{
	const struct stackmap_gens *old = stackmap_gens(inst);
	struct stackmap_gens *gens = stackmap_gens_alloc(inst);

	if (!gens) {
		stackmap_gen_put(new);
		return NULL;
	}

	for (u32 i = 0; old && i < old->nr; i++)
		stackmap_add_gen(gens, stackmap_gen_whole(old->gen[i]));
	stackmap_add_gen(gens, new);
	return gens;
}

/**
 * stackmap_gens_stale - the generations of an instance without their stacks, and a new one
 * @inst: the instance
 * @new: the new generation, or NULL; its reference is given away
 *
 * Return: the generations, with a reference for the caller, or NULL if an allocation fails.
 */
struct stackmap_gens *stackmap_gens_stale(struct stackmap_instance *inst, struct stackmap_gen *new)
{
	const struct stackmap_gens *old = stackmap_gens(inst);
	struct stackmap_gens *gens = stackmap_gens_alloc(inst);
	const struct stackmap_gen_counts none = { };
	struct stackmap_gen *gen;

	if (!gens)
		goto fail;

	for (u32 i = 0; old && i < old->nr; i++) {
		gen = old->gen[i];
		if (stackmap_gen_is_stale(gen))
			gen = stackmap_gen_whole(gen);
		else
			gen = stackmap_gen_copy(gen, 0, &none);
		if (!gen)
			goto fail;
		stackmap_add_gen(gens, gen);
	}
	if (new)
		stackmap_add_gen(gens, new);
	return gens;

 fail:
	stackmap_gen_put(new);
	stackmap_put(gens);
	return NULL;
}

/**
 * stackmap_publish - replace the generations and the map of an instance
 * @inst: the instance
 * @gens: the generations, whose reference passes to the instance, or NULL
 * @map: the map, which is that of one of them, or NULL
 *
 * Afterwards, only readers that hold a reference use the old ones.
 */
void stackmap_publish(struct stackmap_instance *inst, struct stackmap_gens *gens,
		      struct ftrace_stackmap *map)
{
	struct stackmap_gens *old = stackmap_gens(inst);

	rcu_assign_pointer(inst->gens, gens);
	/* stackmap_publish:A, pairs with stackmap_resolve:A */
	rcu_assign_pointer(inst->map, map);
	/* stackmap_publish:B, pairs with stackmap_active() and stackmap_resolve() */
	synchronize_rcu();
	stackmap_put(old);
}

/**
 * stackmap_free_unused - free the stacks that no event refers to
 * @inst: the instance
 *
 * Does nothing if an allocation fails.
 */
void stackmap_free_unused(struct stackmap_instance *inst)
{
	struct ftrace_stackmap *map = stackmap_current(inst);
	const struct stackmap_gens *old = stackmap_gens(inst);
	struct stackmap_gens *gens = stackmap_gens_alloc(inst);
	struct stackmap_gen *gen;
	int cpu;

	if (!gens)
		return;

	for_each_possible_cpu(cpu)
		stackmap_get_position(inst->tr, cpu, inst->pos[cpu]);
	for (u32 i = 0; old && i < old->nr; i++) {
		gen = old->gen[i];
		if (map && gen == map->gen)
			gen = stackmap_gen_whole(gen);
		else
			gen = stackmap_gen_packed(gen, stackmap_in_use(inst, gen), &inst->past);
		if (gen)
			stackmap_add_gen(gens, gen);
	}
	stackmap_publish(inst, gens, map);
}
