// SPDX-License-Identifier: GPL-2.0
/*
 * Stack map - stores each distinct stack once.
 *
 * A lock-free hash table that is read and written from any context, NMI
 * included. trace_stackmap_map.h has the design.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/siphash.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include <kunit/visibility.h>

#include "trace_stackmap_map.h"

/* The arena has room for the stacks of a full map if they are this deep on average. */
#define STACKMAP_MEAN_DEPTH	24

/* A cache slot holds a table index above a count, in 32 bits, so that it fits a 32-bit long. */
#define STACKMAP_COUNT_BITS	(32 - STACKMAP_SLOT_BITS)
#define STACKMAP_COUNT_MASK	((1UL << STACKMAP_COUNT_BITS) - 1)

/* Units for 2^@bits stacks, unit 0 included. */
static u32 stackmap_arena_units(unsigned int bits)
{
	return stackmap_units(STACKMAP_MEAN_DEPTH) << bits;
}

/**
 * stackmap_size - memory of a map, without its caches
 * @bits: log2 of the number of stacks
 *
 * Return: bytes.
 */
size_t stackmap_size(unsigned int bits)
{
	return struct_size_t(struct ftrace_stackmap, slots, 2U << bits) +
	       array_size(stackmap_arena_units(bits), STACKMAP_UNIT);
}

/*
 * Number of frames up to the first one in the entry code, or all. Two frames must
 * follow a split, the instruction that was hit and its caller.
 */
static unsigned int stackmap_first_nr(const struct ftrace_stackmap *map,
				      const unsigned long *ips, unsigned int nr)
{
	for (unsigned int i = 0; i + 2 < nr; i++) {
		if (ips[i] - map->irqentry_start < map->irqentry_size)
			return i + 1;
	}
	return nr;
}

static bool stackmap_same(const struct stackmap_record *rec, const struct stackmap_key *key)
{
	if (rec->nr != key->nr && !key->file)
		return false;
	if (rec->user != key->user || rec->file != key->file)
		return false;

	for (unsigned int i = 0; i < key->nr; i++) {
		if (rec->ips[i] != key->ips[i])
			return false;
	}
	return true;
}

/*
 * Look @key up. Returns its slot and sets @key->idx if it is in the map, else
 * the empty slot where it belongs, or NULL where that is too far away.
 */
VISIBLE_IF_KUNIT u32 *stackmap_probe(struct ftrace_stackmap *map, struct stackmap_key *key)
{
	u32 tag = stackmap_tag(map, key->hash);
	u32 idx, slot;

	for (u32 probe = 0; probe < STACKMAP_PROBES; probe++) {
		idx = (key->hash + probe) & (map->nr_slots - 1);
		/* In a frame, the lowest and the highest number do not stand for a file. */
		if (key->file && ((idx + 1) & STACKMAP_SLOT_MASK) < 2)
			continue;
		/* stackmap_probe:A, pairs with stackmap_insert:A */
		slot = READ_ONCE(map->slots[idx]);
		if (!slot)
			return &map->slots[idx];
		if (stackmap_tag(map, slot) != tag)
			continue;
		if (stackmap_same(stackmap_record_at(map, slot), key)) {
			key->idx = idx;
			return &map->slots[idx];
		}
	}
	return NULL;
}

/* The cache slot of a stack. A sample of its frames is enough to spread the stacks. */
static __always_inline local_t *
stackmap_cache_slot(struct stackmap_cache *cache, const unsigned long *ips, unsigned int nr)
{
	unsigned long sample = ips[0] + 3 * ips[nr / 8] + 5 * ips[nr / 4] + 7 * ips[3 * nr / 8] +
			       9 * ips[nr / 2] + 11 * ips[5 * nr / 8] + 13 * ips[3 * nr / 4] +
			       15 * ips[7 * nr / 8];

	return &cache->slots[hash_long(sample + nr, STACKMAP_CACHE_BITS)];
}

/* Look @key up among the stacks that this CPU had last. */
static __always_inline bool
stackmap_cache_lookup(struct ftrace_stackmap *map, struct stackmap_key *key)
{
	u32 idx;

	key->cache_slot = stackmap_cache_slot(this_cpu_ptr(map->cache), key->ips, key->nr);
	key->seen = local_read(key->cache_slot);
	idx = key->seen >> STACKMAP_COUNT_BITS;
	/* Never NULL: this CPU saw the slot filled before it wrote @seen. */
	if (!key->seen || !stackmap_same(stackmap_record(map, idx), key))
		return false;

	key->idx = idx;
	return true;
}

/* Is there room for @key and more words? Returns 0 or why not. */
static int stackmap_check_room(const struct ftrace_stackmap *map, const struct stackmap_key *key)
{
	/* A program must not fill a map that is not replaced. */
	bool half = map->persistent && (key->user || key->file);

	if (atomic_read(&map->entries) >= map->max_entries >> half)
		return -STACKMAP_DROP_ENTRIES;

	return atomic_read(&map->tail) + stackmap_units(key->nr + key->more) >
	       map->arena_units >> half ? -STACKMAP_DROP_ARENA : 0;
}

static __always_inline void
stackmap_key_init(struct stackmap_key *key, const unsigned long *ips, unsigned int nr, bool file)
{
	key->ips = ips;
	key->nr = nr;
	key->more = 0;
	key->file = file;
	key->idx = -ENOENT;
}

/* Look @key up in the table. Returns as stackmap_find(). */
static __always_inline int
stackmap_hash_find(struct ftrace_stackmap *map, struct stackmap_key *key)
{
	key->hash = stackmap_hash(map, key->ips, key->nr, key->user, key->file);
	if (!stackmap_probe(map, key))
		return -STACKMAP_DROP_PROBES;

	return key->idx < 0 ? stackmap_check_room(map, key) : 0;
}

/**
 * stackmap_find - look up a stack
 * @map: the map
 * @ips: the frames, innermost first
 * @nr: number of frames
 * @key: filled in; its @user is set
 *
 * Where the stack is split, @key is its first part. Writes nothing to the map, so that
 * it can be called before an event is reserved.
 *
 * Context: any, NMI included, with preemption off, under RCU since the map was obtained.
 * Return: 0, with a negative @idx in @key if the stack is not in the map. Else why it
 * can't be stored (enum stackmap_drop, negated).
 */
int stackmap_find(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
		  struct stackmap_key *key)
{
	stackmap_key_init(key, ips, nr, false);
	if (!nr)
		return -STACKMAP_DROP_EMPTY;

	if (stackmap_cache_lookup(map, key))
		return 0;

	if (!key->user)
		key->nr = stackmap_first_nr(map, ips, nr);
	if (key->nr < nr && stackmap_cache_lookup(map, key))
		return 0;

	return stackmap_hash_find(map, key);
}

/**
 * stackmap_find_file - look up a file
 * @map: the map
 * @ips: the words that identify it, the same number for each file
 * @nr: their number
 * @key: filled in, with a negative @idx if the file is not in the map
 *
 * Before stackmap_insert(), the caller sets @more.
 *
 * Context: any, under RCU since the map was obtained.
 * Return: as stackmap_find().
 */
int stackmap_find_file(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
		       struct stackmap_key *key)
{
	stackmap_key_init(key, ips, nr, true);
	key->user = false;
	return stackmap_hash_find(map, key);
}

/*
 * Count an entry and reserve arena space. A lost race returns the entry count but not
 * the arena space: a reader may already have read a tail beyond it.
 */
static int stackmap_reserve(struct ftrace_stackmap *map, unsigned int nr, u32 *offset)
{
	u32 units = stackmap_units(nr);

	if (atomic_inc_return(&map->entries) > map->max_entries) {
		atomic_dec(&map->entries);
		return -STACKMAP_DROP_ENTRIES;
	}

	*offset = atomic_fetch_add(units, &map->tail);
	if (*offset + units > map->arena_units) {
		atomic_dec(&map->entries);
		return -STACKMAP_DROP_ARENA;
	}
	return 0;
}

/* Make @rec a record without references. */
static void stackmap_fill(struct stackmap_record *rec, const struct stackmap_key *key)
{
	atomic_long_set(&rec->ref, 0);
	rec->cpus = 0;
	rec->nr = key->nr + key->more;
	rec->user = key->user;
	rec->file = key->file;
	rec->defined = 1;	/* not defined: stackmap_define is even */
	memcpy(rec->ips, key->ips, flex_array_size(rec, ips, rec->nr));
}

/**
 * stackmap_insert - store a stack or a file that was not in the map
 * @map: the map
 * @key: from stackmap_find() or stackmap_find_file(). On success its @idx is the index of
 *       its slot.
 *
 * Takes no lock, waits for no other context and ends after a bounded number of
 * steps. The stack gets no reference.
 *
 * Context: any, NMI included, under RCU since the map was obtained. For a stack, preemption
 * is off.
 * Return: 0, or why it does not fit (enum stackmap_drop, negated).
 */
int stackmap_insert(struct ftrace_stackmap *map, struct stackmap_key *key)
{
	u32 offset = 0, *slot;
	int ret;

	/* Each repetition means that another context has filled a slot. */
	while ((slot = stackmap_probe(map, key)) && key->idx < 0) {
		if (!offset) {
			ret = stackmap_reserve(map, key->nr + key->more, &offset);
			if (ret)
				return ret;
			stackmap_fill(stackmap_record_at(map, offset), key);
		}
		if (map->persistent)
			stackmap_record_at(map, offset)->proof = key->hash + (slot - map->slots);

		/* stackmap_insert:A, pairs with stackmap_probe:A and stackmap_record:A */
		if (!cmpxchg_release(slot, 0, stackmap_tag(map, key->hash) | offset)) {
			key->idx = slot - map->slots;
			if (key->file)
				atomic_inc(&map->files);
			return 0;
		}
	}

	if (offset)
		atomic_dec(&map->entries);
	return slot ? 0 : -STACKMAP_DROP_PROBES;
}

/* Add the references in a cache slot to the record. */
static void stackmap_flush_slot(struct ftrace_stackmap *map, unsigned long value)
{
	if (value)
		atomic_long_add(value & STACKMAP_COUNT_MASK,
				&stackmap_record(map, value >> STACKMAP_COUNT_BITS)->ref);
}

/* Empty the cache of a CPU that does not record into the map. */
void stackmap_flush_cpu(struct ftrace_stackmap *map, int cpu)
{
	struct stackmap_cache *cache = per_cpu_ptr(map->cache, cpu);

	for (int i = 0; i < ARRAY_SIZE(cache->slots); i++) {
		if (local_read(&cache->slots[i]))
			stackmap_flush_slot(map, local_xchg(&cache->slots[i], 0));
	}
}

/**
 * stackmap_flush - empty the caches of a map that nobody records into any more
 * @map: the map
 *
 * The records have all references then.
 */
void stackmap_flush(struct ftrace_stackmap *map)
{
	int cpu;

	/* A CPU that is offline now has its references, too. */
	for_each_possible_cpu(cpu) {
		stackmap_flush_cpu(map, cpu);
		cond_resched();
	}
}

/**
 * stackmap_set_cpu - set the bit of this CPU in a record: its events may have the id
 * @map: the map
 * @rec: the record
 */
void stackmap_set_cpu(const struct ftrace_stackmap *map, struct stackmap_record *rec)
{
	if (!map->persistent && !stackmap_has_cpu(rec))
		set_bit(raw_smp_processor_id() % BITS_PER_LONG, &rec->cpus);
}

/**
 * stackmap_add_ref - count one more reference to a stack
 * @map: the map
 * @key: the stack, which is stored; preemption is off since stackmap_find()
 */
void stackmap_add_ref(struct ftrace_stackmap *map, const struct stackmap_key *key)
{
	unsigned long seen = key->seen;

	/* 0 is an empty cache slot, not the stack of slot 0. */
	if (seen && seen >> STACKMAP_COUNT_BITS == key->idx &&
	    (seen & STACKMAP_COUNT_MASK) < STACKMAP_COUNT_MASK &&
	    local_cmpxchg(key->cache_slot, seen, seen + 1) == seen)
		return;

	/* Another stack has the cache slot, the count is full, or an interrupt changed it. */
	stackmap_set_cpu(map, stackmap_record(map, key->idx));
	seen = local_xchg(key->cache_slot, ((unsigned long)key->idx << STACKMAP_COUNT_BITS) + 1);
	stackmap_flush_slot(map, seen);
}

/**
 * stackmap_ref - the references to a stack
 * @map: the map
 * @idx: index of its slot, which is in use
 *
 * The map must not be freed meanwhile.
 * Return: their number, exact while nobody records.
 */
unsigned long stackmap_ref(const struct ftrace_stackmap *map, u32 idx)
{
	const struct stackmap_record *rec = stackmap_record(map, idx);
	unsigned long value, ref = atomic_long_read(&rec->ref);
	struct stackmap_cache *cache;
	int cpu;

	/* A map of the last boot has no caches. */
	if (!map->cache)
		return ref;

	for_each_possible_cpu(cpu) {
		cache = per_cpu_ptr(map->cache, cpu);
		value = local_read(stackmap_cache_slot(cache, rec->ips, rec->nr));
		if (value >> STACKMAP_COUNT_BITS == idx)
			ref += value & STACKMAP_COUNT_MASK;
	}
	return ref;
}

/**
 * stackmap_init - set up an empty map
 * @map: its memory; what is not set here is 0, or of the last boot
 * @bits: log2 of the number of stacks
 * @first_id: the id of slot 0
 */
void stackmap_init(struct ftrace_stackmap *map, unsigned int bits, u32 first_id)
{
	map->first_id = first_id;
	map->max_entries = 1U << bits;
	map->nr_slots = 2U << bits;
	map->arena_units = stackmap_arena_units(bits);
	map->offset_mask = roundup_pow_of_two(map->arena_units) - 1;
	map->arena = &map->slots[map->nr_slots];
	atomic_set(&map->tail, 1);
	/* Early during boot this is not random yet. */
	get_random_bytes(&map->hash_key, sizeof(map->hash_key));
}

/**
 * stackmap_alloc - allocate an empty map
 * @bits: log2 of the number of stacks, STACKMAP_BITS_MIN to STACKMAP_BITS_MAX
 * @first_id: the id of slot 0
 *
 * Return: the map, or NULL when there is not enough memory.
 */
struct ftrace_stackmap *stackmap_alloc(unsigned int bits, u32 first_id)
{
	struct ftrace_stackmap *map;

	map = __vmalloc(stackmap_size(bits),
			GFP_KERNEL | __GFP_ZERO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!map)
		return NULL;

	map->cache = alloc_percpu_gfp(struct stackmap_cache, GFP_KERNEL | __GFP_NOWARN);
	if (!map->cache) {
		stackmap_free(map);
		return NULL;
	}

	stackmap_init(map, bits, first_id);
	return map;
}

/**
 * stackmap_free - free a map
 * @map: a map without users, or NULL
 *
 * That of a persistent instance stays.
 */
void stackmap_free(struct ftrace_stackmap *map)
{
	if (!map || map->persistent)
		return;

	free_percpu(map->cache);
	vfree(map);
}
