// SPDX-License-Identifier: GPL-2.0
/*
 * The stacks of all generations of an instance: how an id leads to one, and how those are
 * forgotten that no event refers to. trace_stackmap_set.h has the design.
 */
#include <linux/bsearch.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "trace_stackmap_internal.h"

/* What a generation has of the stacks that some CPUs have used, and of the others. */
struct stackmap_tally {
	u32			nr;
	bool			user;		/* stacks of user space are among them */
	size_t			units;		/* of their records */
	u32			gone;		/* the others ... */
	unsigned long		gone_refs;	/* ... and their references */
};

static size_t stackmap_marks_size(void)
{
	return struct_size_t(struct stackmap_gen, marks, nr_cpu_ids);
}

/**
 * stackmap_gen_alloc - allocate a generation
 * @first_id: its first id
 * @map: its map, which passes to it, or NULL
 *
 * Return: the generation, with a reference for the caller, or NULL without memory.
 */
struct stackmap_gen *stackmap_gen_alloc(u32 first_id, struct ftrace_stackmap *map)
{
	struct stackmap_gen *gen = kvzalloc(stackmap_marks_size(), GFP_KERNEL);

	if (!gen)
		return NULL;

	refcount_set(&gen->users, 1);
	gen->first_id = first_id;
	gen->size = stackmap_marks_size();
	if (map) {
		map->gen = gen;
		gen->map = map;
		gen->size += stackmap_size(ilog2(map->max_entries)) +
			     num_possible_cpus() * sizeof(*map->cache);
	}
	return gen;
}

/* Give back a reference. If it is the last one, nobody reads the generation under RCU. */
static void stackmap_gen_put(struct stackmap_gen *gen)
{
	if (!gen || !refcount_dec_and_test(&gen->users))
		return;

	user_objects_put(gen->objects);
	stackmap_free(gen->map);
	kvfree(gen->places);
	kvfree(gen);
}

/* The stack at @place. */
static struct stackmap_record *stackmap_packed(const struct stackmap_gen *gen,
					       const struct stackmap_place *place)
{
	return (void *)gen->places + (size_t)place->unit * STACKMAP_UNIT;
}

/**
 * stackmap_at - one stack after the other
 * @gen: the generation
 * @i: 0, and so on
 * @idx: set to the index of its slot
 *
 * With a reference to @gen or under RCU.
 * Return: the stack, NULL where there is none, or an error after the last one.
 */
const struct stackmap_record *stackmap_at(const struct stackmap_gen *gen, u32 i, u32 *idx)
{
	if (i >= (gen->map ? gen->map->nr_slots : gen->nr))
		return ERR_PTR(-ENOENT);

	*idx = gen->map ? i : gen->places[i].idx;
	return gen->map ? stackmap_record(gen->map, i) : stackmap_packed(gen, &gen->places[i]);
}

static int stackmap_cmp_gen(const void *key, const void *elt)
{
	const struct stackmap_gen *const *gen = elt;

	return *(const int *)key - (int)(*gen)->first_id;
}

static int stackmap_cmp_place(const void *key, const void *elt)
{
	const struct stackmap_place *place = elt;

	return *(const int *)key - (int)place->idx;
}

/**
 * stackmap_gen_of - the generation of an id
 * @set: the generations, or NULL
 * @id: the id
 *
 * With a reference to @set or under RCU.
 * Return: the generation, or NULL if it is gone.
 */
struct stackmap_gen *stackmap_gen_of(const struct stackmap_set *set, int id)
{
	u32 first_id = id & ~STACKMAP_SLOT_MASK;
	struct stackmap_gen *const *gen;

	if (!set)
		return NULL;
	gen = bsearch(&first_id, set->gens, set->nr, sizeof(*gen), stackmap_cmp_gen);
	return gen ? *gen : NULL;
}

/**
 * stackmap_lookup - the stack that an id stands for
 * @set: the generations of the instance that recorded the id, or NULL
 * @id: the id
 *
 * With a reference to @set or under RCU.
 * Return: the stack, or NULL if it is gone.
 */
const struct stackmap_record *stackmap_lookup(const struct stackmap_set *set, int id)
{
	const struct stackmap_gen *gen = stackmap_gen_of(set, id);
	const struct stackmap_place *place;
	u32 idx = id & STACKMAP_SLOT_MASK;

	if (!gen)
		return NULL;
	if (gen->map)
		return idx < gen->map->nr_slots ? stackmap_record(gen->map, idx) : NULL;

	place = bsearch(&idx, gen->places, gen->nr, sizeof(*place), stackmap_cmp_place);
	return place ? stackmap_packed(gen, place) : NULL;
}

/* Append a generation, whose reference passes to the set. There is room for it. */
static void stackmap_append(struct stackmap_set *set, struct stackmap_gen *gen)
{
	set->nr++;
	set->gens[set->nr - 1] = gen;
}

/**
 * stackmap_put - give back a reference to a set
 * @set: the set, or NULL
 *
 * If it is the last one, nobody reads the set under RCU.
 */
void stackmap_put(struct stackmap_set *set)
{
	if (!set || !refcount_dec_and_test(&set->users))
		return;

	for (u32 i = 0; i < set->nr; i++)
		stackmap_gen_put(set->gens[i]);
	kvfree(set);
}

/* What a generation has of the stacks that one of @cpus has used, and of the others. */
static void stackmap_tally(const struct stackmap_gen *gen, unsigned long cpus,
			   struct stackmap_tally *tally)
{
	const struct stackmap_record *rec;
	u32 idx;

	for (u32 i = 0; !IS_ERR(rec = stackmap_at(gen, i, &idx)); i++) {
		cond_resched();
		if (!rec)
			continue;
		if (rec->cpus & cpus) {
			tally->units += stackmap_units(rec->nr);
			tally->nr++;
			tally->user |= rec->user;
		} else {
			tally->gone_refs += atomic_long_read(&rec->ref);
			tally->gone++;
		}
	}
}

/* Copy the stacks that one of @cpus has used. */
static void stackmap_copy(struct stackmap_gen *to, const struct stackmap_gen *from,
			  unsigned long cpus)
{
	struct stackmap_place *place = to->places;
	const struct stackmap_record *rec;
	u32 unit = to->nr, idx;

	BUILD_BUG_ON(sizeof(*place) != STACKMAP_UNIT);
	for (u32 i = 0; !IS_ERR(rec = stackmap_at(from, i, &idx)); i++) {
		cond_resched();
		if (!rec || !(rec->cpus & cpus))
			continue;
		*place = (struct stackmap_place) { .idx = idx, .unit = unit };
		memcpy(stackmap_packed(to, place), rec, struct_size(rec, ips, rec->nr));
		unit += stackmap_units(rec->nr);
		place++;
	}
}

/*
 * A generation with those stacks that one of @cpus has used. Without any, it is stale.
 * Returns NULL without memory.
 */
static struct stackmap_gen *stackmap_pack(const struct stackmap_gen *gen, unsigned long cpus,
					  const struct stackmap_tally *tally)
{
	struct stackmap_gen *new = stackmap_gen_alloc(gen->first_id, NULL);
	size_t size = (tally->nr + tally->units) * STACKMAP_UNIT;

	if (!new)
		return NULL;

	memcpy(new->marks, gen->marks, array_size(nr_cpu_ids, sizeof(*gen->marks)));
	if (!tally->nr)
		return new;

	if (tally->user)
		new->objects = user_objects_hold(gen->objects);
	new->places = kvmalloc(size, GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!new->places) {
		stackmap_gen_put(new);
		return NULL;
	}
	new->pins = cpus;
	new->nr = tally->nr;
	new->size += size;
	stackmap_copy(new, gen, cpus);
	return new;
}

/* For stackmap_build(): the generation as it is. */
struct stackmap_gen *stackmap_keep(struct stackmap_instance *inst, struct stackmap_gen *gen)
{
	refcount_inc(&gen->users);
	return gen;
}

/* For stackmap_build(): the generation without its stacks. */
struct stackmap_gen *stackmap_forget(struct stackmap_instance *inst, struct stackmap_gen *gen)
{
	const struct stackmap_tally none = { };

	return stackmap_pack(gen, 0, &none) ?: ERR_PTR(-ENOMEM);
}

/*
 * For stackmap_build(): the stacks that events refer to. They are packed if they are still in
 * their map, or if that saves half of them. Without memory, all stay.
 */
static struct stackmap_gen *stackmap_shrink_gen(struct stackmap_instance *inst,
						struct stackmap_gen *gen)
{
	bool stale = !gen->map && !gen->nr;
	struct stackmap_tally tally = { };
	struct stackmap_gen *new = NULL;
	unsigned long pins;

	if (gen->map && gen->map == stackmap_current(inst))
		return stackmap_keep(inst, gen);

	pins = stackmap_pins(inst, gen);
	if (gen->nr && gen->pins == pins)
		return stackmap_keep(inst, gen);

	stackmap_tally(gen, pins, &tally);
	if (tally.nr && (gen->map || tally.gone >= tally.nr))
		new = stackmap_pack(gen, pins, &tally);
	else
		gen->pins = pins;
	if (!new && (tally.nr || (stale && pins)))
		return stackmap_keep(inst, gen);

	inst->past.recycled += tally.gone;
	inst->past.recycled_refs += tally.gone_refs;
	return new;
}

/**
 * stackmap_build - make a set of the current one
 * @inst: the instance
 * @new: a generation that is to be in it, too, or NULL; its reference is given away
 * @fn: returns what each generation of the current set becomes: NULL to leave it out
 *
 * Return: the set, with a reference for the caller, or NULL without memory.
 */
struct stackmap_set *stackmap_build(struct stackmap_instance *inst, struct stackmap_gen *new,
				    stackmap_gen_fn fn)
{
	const struct stackmap_set *old = stackmap_set(inst);
	u32 nr = old ? old->nr : 0;
	struct stackmap_set *set = kvzalloc(struct_size(set, gens, nr + 1), GFP_KERNEL);
	struct stackmap_gen *gen;

	if (!set)
		goto fail;

	refcount_set(&set->users, 1);
	for (u32 i = 0; i < nr; i++) {
		if (new && new->first_id < old->gens[i]->first_id) {
			stackmap_append(set, new);
			new = NULL;
		}
		gen = fn(inst, old->gens[i]);
		if (IS_ERR(gen))
			goto fail;
		if (gen)
			stackmap_append(set, gen);
	}
	if (new)
		stackmap_append(set, new);
	return set;

 fail:
	stackmap_gen_put(new);
	stackmap_put(set);
	return NULL;
}

/**
 * stackmap_publish - replace the set and the map of an instance
 * @inst: the instance
 * @set: the new set, whose reference passes to the instance, or NULL
 * @map: the new map, which is in @set, or NULL
 *
 * Nobody uses the set and the map before them afterwards, but for readers that hold
 * a reference.
 */
void stackmap_publish(struct stackmap_instance *inst, struct stackmap_set *set,
		      struct ftrace_stackmap *map)
{
	struct stackmap_set *old = stackmap_set(inst);

	rcu_assign_pointer(inst->set, set);
	/* stackmap_publish:A, pairs with stackmap_resolve:A */
	rcu_assign_pointer(inst->map, map);
	/* stackmap_publish:B, pairs with stackmap_active() and stackmap_resolve() */
	synchronize_rcu();
	stackmap_put(old);
}

/**
 * stackmap_shrink - forget the stacks that no event refers to
 * @inst: the instance
 *
 * Does nothing without memory.
 */
void stackmap_shrink(struct stackmap_instance *inst)
{
	struct stackmap_set *set;

	stackmap_read_positions(inst);
	set = stackmap_build(inst, NULL, stackmap_shrink_gen);
	if (set)
		stackmap_publish(inst, set, stackmap_current(inst));
}
