// SPDX-License-Identifier: GPL-2.0
/*
 * Stack map - each distinct kernel stack of a trace instance, stored once.
 *
 * With options/stackmap on, __ftrace_trace_stack() writes the id of a stack
 * into the ring buffer instead of its frames. The stacks are kept in a
 * lock-free hash table, and exported as stack_map (text), stack_map_stat
 * (statistics) and stack_map_bin (binary). trace_stackmap.h has the design.
 */
#define pr_fmt(fmt) "ftrace_stackmap: " fmt

#include <linux/bits.h>
#include <linux/gfp.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include <asm/sections.h>

#include "trace_output.h"
#include "trace_stackmap.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "ftrace_stackmap."

/* The arena has room for the stacks of a full map if they are this deep on average. */
#define STACKMAP_MEAN_DEPTH	24

/* A word of the reference cache: a slot index above a count. */
#define STACKMAP_COUNT_BITS	(BITS_PER_LONG - STACKMAP_SLOT_BITS)
#define STACKMAP_COUNT_MASK	((1UL << STACKMAP_COUNT_BITS) - 1)

/* How often a cached count is tried again after a nested context has changed it. */
#define STACKMAP_COUNT_TRIES	4

/*
 * Log2 of the stacks in maps that are allocated from now on; see
 * stackmap_bits_set().
 */
unsigned int ftrace_stackmap_bits __read_mostly = STACKMAP_BITS_DEFAULT;

/* Whether the stacks of maps that are allocated from now on are split. */
static bool stackmap_split __read_mostly = true;

/*
 * Where interrupts enter the kernel. ARM keeps C functions in irqentry.text, called by the code
 * that enters. Elsewhere the assembly is in irqentry.text, or that is empty and no stack is split.
 */
#if defined(CONFIG_X86) || defined(CONFIG_ARM64) || defined(CONFIG_ARM)
#define STACKMAP_ENTRY_START	((unsigned long)__entry_text_start)
#define STACKMAP_ENTRY_END	((unsigned long)__entry_text_end)
#else
#define STACKMAP_ENTRY_START	((unsigned long)__irqentry_text_start)
#define STACKMAP_ENTRY_END	((unsigned long)__irqentry_text_end)
#endif

/* Bijective in either argument. The rotation lets the high bits, the good ones, count on. */
static unsigned long stackmap_mix(unsigned long hash, unsigned long ip)
{
	hash = (hash << (BITS_PER_LONG / 2)) | (hash >> (BITS_PER_LONG / 2));
	return (hash ^ ip) * GOLDEN_RATIO_PRIME;
}

/*
 * A look-up would spend most of its time in jhash2(). What collides is compared,
 * so this one only has to spread: one multiplication a frame, in two independent
 * chains, since a CPU can start one before the other is done.
 */
static __always_inline u32 stackmap_hash(const unsigned long *ips, unsigned int nr)
{
	unsigned long even = 0, odd = 0;
	unsigned int i;

	for (i = 0; i + 1 < nr; i += 2) {
		even = stackmap_mix(even, ips[i]);
		odd = stackmap_mix(odd, ips[i + 1]);
	}
	if (i < nr)
		even = stackmap_mix(even, ips[i]);

	even = stackmap_mix(even + nr, odd);
	return even ^ (even >> (BITS_PER_LONG / 2));
}

/* Of a slot, or of a hash: what a slot holds above the offset. */
static u32 stackmap_tag(const struct ftrace_stackmap *map, u32 val)
{
	return val & ~map->offset_mask;
}

/* Twice as fast as memcmp(), which compares a word at a time, too. */
static __always_inline bool stackmap_same(const struct stackmap_record *rec,
					  const unsigned long *ips, unsigned int nr)
{
	unsigned int i;

	if (rec->nr != nr)
		return false;

	for (i = 0; i + 1 < nr; i += 2) {
		if ((rec->ips[i] ^ ips[i]) | (rec->ips[i + 1] ^ ips[i + 1]))
			return false;
	}
	return i == nr || rec->ips[i] == ips[i];
}

/*
 * Takes a place among the entries and space for @nr frames. A record that is
 * not published in the end keeps its space, but not its place: giving space
 * back would let a record appear below the tail that stackmap_latch() has read.
 */
static struct stackmap_record *stackmap_reserve(struct ftrace_stackmap *map, unsigned int nr,
						enum stackmap_drop *why)
{
	struct stackmap_record *rec;
	u32 units, offset;

	*why = STACKMAP_DROP_EMPTY;
	if (!nr)
		return NULL;

	units = DIV_ROUND_UP(struct_size(rec, ips, nr), STACKMAP_UNIT);

	/* Look before writing: a full map should not bounce these lines. */
	*why = STACKMAP_DROP_ENTRIES;
	if (atomic_read(&map->entries) >= map->max_entries)
		return NULL;

	*why = STACKMAP_DROP_ARENA;
	if (atomic_read(&map->tail) + units > READ_ONCE(map->arena_units))
		return NULL;

	*why = STACKMAP_DROP_ENTRIES;
	if (atomic_inc_return(&map->entries) > map->max_entries)
		goto fail;

	*why = STACKMAP_DROP_ARENA;
	offset = atomic_fetch_add(units, &map->tail);
	/* stackmap_reserve:A, pairs with stackmap_back:A */
	if (offset + units > smp_load_acquire(&map->arena_units))
		goto fail;

	return stackmap_record_at(map, offset);

 fail:
	atomic_dec(&map->entries);
	return NULL;
}

static void stackmap_fill(struct stackmap_record *rec, const unsigned long *ips,
			  unsigned int nr, u32 hash)
{
	atomic_long_set(&rec->ref, 0);
	rec->hash = hash;
	rec->nr = nr;
	memcpy(rec->ips, ips, flex_array_size(rec, ips, nr));
}

static bool stackmap_publish(struct ftrace_stackmap *map, u32 idx, struct stackmap_record *rec)
{
	u32 tag = stackmap_tag(map, rec->hash);
	u32 offset = ((void *)rec - map->arena) / STACKMAP_UNIT;

	/* stackmap_publish:A, pairs with stackmap_record:A */
	return cmpxchg_release(&map->slots[idx], 0, tag | offset) == 0;
}

/*
 * Look @ips up, from probe number @from on. Returns the index of its slot, that
 * of the empty slot where it belongs, or -ENOSPC where that would be too far
 * away. *@slot is 0 if the slot is empty.
 */
static __always_inline int stackmap_find(struct ftrace_stackmap *map, u32 from,
					 const unsigned long *ips, unsigned int nr, u32 hash,
					 u32 *slot)
{
	u32 tag = stackmap_tag(map, hash);
	struct stackmap_record *rec;
	u32 idx;

	for (u32 probe = from; probe < STACKMAP_PROBES; probe++) {
		idx = (hash + probe) & (map->nr_slots - 1);
		/* stackmap_record:A, pairs with stackmap_publish:A */
		*slot = READ_ONCE(map->slots[idx]);
		if (!*slot)
			return idx;
		if (stackmap_tag(map, *slot) != tag)
			continue;
		rec = stackmap_record_at(map, stackmap_offset(map, *slot));
		if (rec->hash == hash && stackmap_same(rec, ips, nr))
			return idx;
	}
	return -ENOSPC;
}

/*
 * Store @ips in the empty slot @idx or, where other contexts are faster, behind
 * it. Returns the slot index, or -ENOSPC and the reason in @why.
 */
static noinline int stackmap_insert(struct ftrace_stackmap *map, int idx,
				    const unsigned long *ips, unsigned int nr, u32 hash,
				    enum stackmap_drop *why)
{
	struct stackmap_record *new = stackmap_reserve(map, nr, why);
	u32 slot;

	if (!new)
		return -ENOSPC;
	stackmap_fill(new, ips, nr, hash);

	do {
		if (stackmap_publish(map, idx, new))
			return idx;
		/* Lost the race, and the winner may have stored this very stack. */
		idx = stackmap_find(map, (idx - hash) & (map->nr_slots - 1), ips, nr, hash, &slot);
	} while (idx >= 0 && !slot);

	atomic_dec(&map->entries);
	*why = STACKMAP_DROP_PROBES;
	return idx;
}

/* The slot index of @ips; -ENOSPC, and a drop, when the map can't take it. */
static __always_inline int stackmap_find_or_insert(struct ftrace_stackmap *map,
						   struct stackmap_cpu *cpu,
						   const unsigned long *ips, unsigned int nr,
						   u32 hash)
{
	enum stackmap_drop why = STACKMAP_DROP_PROBES;
	u32 slot;
	int idx;

	idx = stackmap_find(map, 0, ips, nr, hash, &slot);
	if (unlikely(idx >= 0 && !slot))
		idx = stackmap_insert(map, idx, ips, nr, hash, &why);
	if (unlikely(idx < 0))
		local_inc(&cpu->drops[why]);
	return idx;
}

/*
 * The word of the reference cache for the stack @ips. To tell from a few of its
 * frames is fast, and many stacks that are in use together have different words.
 */
static __always_inline local_t *stackmap_word(struct stackmap_cpu *cpu, const unsigned long *ips,
					      unsigned int nr)
{
	unsigned long sample = ips[0] + 3 * ips[nr / 4] + 5 * ips[nr / 2] + 9 * ips[3 * nr / 4];

	return &cpu->refs[hash_long(sample + nr, STACKMAP_REF_BITS)];
}

/*
 * The same for the first part of a stack that is split, of which it is not known
 * yet where it ends, but that it has at least STACKMAP_INNER_MIN frames. The first
 * two are the same for all stacks of a tracepoint, and of the others more than two
 * do not tell more parts apart.
 */
static __always_inline local_t *stackmap_inner_word(struct stackmap_cpu *cpu,
						    const unsigned long *ips)
{
	return &cpu->inner[hash_long(ips[2] + 3 * ips[STACKMAP_INNER_MIN - 1],
				     STACKMAP_INNER_BITS)];
}

/* The slot index that a word leads to. One that was never used leads nowhere, not to slot 0. */
static __always_inline int stackmap_leads_to(const local_t *word)
{
	unsigned long used = local_read(word);

	return used ? used >> STACKMAP_COUNT_BITS : -ENOENT;
}

/*
 * Most stacks are those that this CPU has just had: their word still leads to
 * them, and a comparison is all that is needed, no hash and no look for the
 * entry code.
 */
static __always_inline struct stackmap_part stackmap_recall(struct ftrace_stackmap *map,
							    struct stackmap_cpu *cpu,
							    const unsigned long *ips,
							    unsigned int nr)
{
	struct stackmap_part part = { .word = stackmap_word(cpu, ips, nr), .nr = nr };

	part.idx = stackmap_leads_to(part.word);
	if (part.idx >= 0 && !stackmap_same(stackmap_record(map, part.idx), ips, nr))
		part.idx = -ENOENT;
	return part;
}

/* Has @part stored unless it is. -ENOSPC, and a drop, when the map can't take it. */
static __always_inline int stackmap_store(struct ftrace_stackmap *map, struct stackmap_cpu *cpu,
					  const unsigned long *ips, struct stackmap_part *part)
{
	if (part->idx < 0)
		part->idx = stackmap_find_or_insert(map, cpu, ips, part->nr,
						    stackmap_hash(ips, part->nr));
	return part->idx;
}

/*
 * One more reference to slot @idx. The cache word is changed by one local
 * cmpxchg, so that a nested context sees it before or after, and what it held
 * for another slot is added to that one's record by whoever replaced it.
 */
static __always_inline void stackmap_count_ref(struct ftrace_stackmap *map, local_t *word, u32 idx)
{
	unsigned long first = ((unsigned long)idx << STACKMAP_COUNT_BITS) + 1;
	unsigned long count, new;
	long old = local_read(word);

	for (int i = 0; i < STACKMAP_COUNT_TRIES; i++) {
		count = old & STACKMAP_COUNT_MASK;
		if (((unsigned long)old >> STACKMAP_COUNT_BITS) == idx &&
		    count < STACKMAP_COUNT_MASK) {
			new = old + 1;
			count = 0;
		} else {
			new = first;
		}
		if (!local_try_cmpxchg(word, &old, new))
			continue;
		if (count)
			atomic_long_add(count, &stackmap_record(map, (unsigned long)old >>
								STACKMAP_COUNT_BITS)->ref);
		return;
	}

	atomic_long_inc(&stackmap_record(map, idx)->ref);
}

/* Counts a stack that is in slot @idx as a whole. Returns its id. */
static __always_inline int stackmap_success(struct ftrace_stackmap *map, struct stackmap_cpu *cpu,
					    local_t *word, u32 idx)
{
	stackmap_count_ref(map, word, idx);
	local_inc(&cpu->successes[0]);
	return stackmap_id(map, idx);
}

/**
 * __ftrace_stackmap_get_id - ftrace_stackmap_get_id() with a hash of the caller's choice
 * @map: the map
 * @ips: the frames, innermost first
 * @nr: number of frames
 * @hash: hash of the frames; equal stacks must come with equal hashes
 *
 * Tests force collisions with it.
 *
 * Context: any, with preemption off.
 * Return: as ftrace_stackmap_get_id().
 */
int __ftrace_stackmap_get_id(struct ftrace_stackmap *map, const unsigned long *ips,
			     unsigned int nr, u32 hash)
{
	struct stackmap_cpu *cpu = this_cpu_ptr(map->cpu);
	int idx = stackmap_find_or_insert(map, cpu, ips, nr, hash);

	return idx < 0 ? idx : stackmap_success(map, cpu, stackmap_word(cpu, ips, nr), idx);
}

/**
 * ftrace_stackmap_get_id - the id of a stack, which is stored when it is new
 * @map: the map, from ftrace_stackmap_active()
 * @ips: the frames, innermost first
 * @nr: number of frames; a stack without frames is not stored
 *
 * For a stack that is not to be split, which is not looked at here. Takes no
 * lock, waits for nobody and ends after a bounded number of steps. Each call
 * counts as one success or one drop.
 *
 * Context: any, NMI included, with preemption off since the map was obtained.
 * Return: an id, 0 or greater; -ENOSPC when the map can't take the stack.
 */
int ftrace_stackmap_get_id(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr)
{
	struct stackmap_cpu *cpu = this_cpu_ptr(map->cpu);
	struct stackmap_part all = stackmap_recall(map, cpu, ips, nr);
	int idx = stackmap_store(map, cpu, ips, &all);

	return idx < 0 ? idx : stackmap_success(map, cpu, all.word, idx);
}

/* Number of frames of the first part of @ips, which may be all @nr. */
static unsigned int stackmap_first_nr(const struct ftrace_stackmap *map, const unsigned long *ips,
				      unsigned int nr)
{
	/* Two frames must follow, the instruction that was hit and its caller. */
	for (unsigned int i = 0; i + 2 < nr; i++) {
		if (ips[i] - map->entry_start < map->entry_size)
			return i + 1;
	}
	return nr;
}

/* Looks where the first part of @part ends, which is not remembered as a whole. */
static struct stackmap_part stackmap_look(struct ftrace_stackmap *map, struct stackmap_cpu *cpu,
					  const unsigned long *ips, struct stackmap_part part)
{
	unsigned int nr = stackmap_first_nr(map, ips, part.nr);

	if (nr == part.nr)
		return part;
	if (nr < STACKMAP_INNER_MIN)
		return stackmap_recall(map, cpu, ips, nr);
	part.word = stackmap_inner_word(cpu, ips);
	part.nr = nr;
	return part;
}

/*
 * The first part of @ips, which may be all @nr frames. A word of cpu->inner leads
 * to parts alone that end in the entry code. If one of them is how a stack begins,
 * that is where it is to be split.
 */
static __always_inline struct stackmap_part stackmap_first_part(struct ftrace_stackmap *map,
								struct stackmap_cpu *cpu,
								const unsigned long *ips,
								unsigned int nr)
{
	const struct stackmap_record *rec;
	struct stackmap_part part;

	if (nr > STACKMAP_INNER_MIN + 1) {
		part.word = stackmap_inner_word(cpu, ips);
		part.idx = stackmap_leads_to(part.word);
		if (part.idx >= 0) {
			rec = stackmap_record(map, part.idx);
			part.nr = rec->nr;
			if (part.nr + 1 < nr && stackmap_same(rec, ips, part.nr))
				return part;
		}
	}

	part = stackmap_recall(map, cpu, ips, nr);
	return part.idx < 0 ? stackmap_look(map, cpu, ips, part) : part;
}

/* Finds the parts behind the first one. @parts has that, and all behind it as a second one. */
static void stackmap_find_outer(struct ftrace_stackmap *map, struct stackmap_cpu *cpu,
				const unsigned long *ips, unsigned int nr,
				struct stackmap_parts *parts)
{
	/* The instruction that was hit may be one of the entry code, and is in no part. */
	unsigned int first = parts->part[0].nr + 1;
	struct stackmap_part *part;

	for (parts->nr = 1; first < nr; parts->nr++) {
		part = &parts->part[parts->nr];
		if (parts->nr > 1)
			*part = stackmap_recall(map, cpu, ips + first, nr - first);
		if (parts->nr == STACKMAP_PARTS - 1)
			/* It may be one that is split elsewhere: no word may lead to it. */
			part->word = NULL;
		else if (part->idx < 0)
			*part = stackmap_look(map, cpu, ips + first, *part);
		first += part->nr + 1;
	}
}

/**
 * ftrace_stackmap_find_parts - look where a stack is to be split
 * @map: the map
 * @ips: the frames, innermost first
 * @nr: number of frames
 * @parts: filled in
 *
 * What is behind the last place that @parts has room for stays in one part.
 *
 * Context: any, with preemption off since the map was obtained, and for as long
 * as @parts, which belongs to this CPU, is used.
 */
void ftrace_stackmap_find_parts(struct ftrace_stackmap *map, const unsigned long *ips,
				unsigned int nr, struct stackmap_parts *parts)
{
	struct stackmap_cpu *cpu = this_cpu_ptr(map->cpu);
	struct stackmap_part first = stackmap_first_part(map, cpu, ips, nr);
	unsigned int next = first.nr + 1;

	parts->part[0] = first;
	if (next < nr)
		parts->part[1] = stackmap_recall(map, cpu, ips + next, nr - next);
	stackmap_find_outer(map, cpu, ips, nr, parts);
}

/**
 * ftrace_stackmap_get_ids - the ids of the parts of a stack
 * @map: the map, from ftrace_stackmap_active()
 * @ips: the frames, innermost first
 * @parts: where the stack is split, from ftrace_stackmap_find_parts(); the slots
 *	that are not known yet are filled in
 * @ids: filled in, one for each part
 *
 * As ftrace_stackmap_get_id(). All parts get an id and a reference, or none.
 * A part that was stored when another one did not fit stays without references.
 *
 * Context: any, NMI included, with preemption off since the map was obtained.
 * Return: 0; -ENOSPC when the map can't take one of the parts.
 */
int ftrace_stackmap_get_ids(struct ftrace_stackmap *map, const unsigned long *ips,
			    struct stackmap_parts *parts, int *ids)
{
	struct stackmap_cpu *cpu = this_cpu_ptr(map->cpu);
	struct stackmap_part *part;

	for (unsigned int i = 0; i < parts->nr; i++) {
		part = &parts->part[i];
		if (stackmap_store(map, cpu, ips, part) < 0)
			return -ENOSPC;
		ips += part->nr + 1;
	}

	for (unsigned int i = 0; i < parts->nr; i++) {
		part = &parts->part[i];
		if (part->word)
			stackmap_count_ref(map, part->word, part->idx);
		else
			atomic_long_inc(&stackmap_record(map, part->idx)->ref);
		ids[i] = stackmap_id(map, part->idx);
	}
	local_inc(&cpu->successes[parts->nr - 1]);
	return 0;
}

/* As ftrace_stackmap_record(), for a stack of @first and, behind an instruction, @outer. */
static noinline bool stackmap_record_parts(struct ftrace_stackmap *map, struct stackmap_cpu *cpu,
					   struct trace_buffer *buffer, unsigned int trace_ctx,
					   const unsigned long *ips, struct stackmap_part first,
					   struct stackmap_part outer)
{
	struct ring_buffer_event *event;
	struct stack_split_entry *entry;
	struct stackmap_parts parts;
	int ids[STACKMAP_PARTS];

	parts.part[0] = first;
	parts.part[1] = outer;
	stackmap_find_outer(map, cpu, ips, first.nr + 1 + outer.nr, &parts);

	event = trace_buffer_lock_reserve(buffer, TRACE_STACK_SPLIT,
					  struct_size(entry, ip, parts.nr - 1), trace_ctx);
	if (!event)
		return true;

	if (ftrace_stackmap_get_ids(map, ips, &parts, ids)) {
		ring_buffer_discard_commit(buffer, event);
		return false;
	}

	entry = ring_buffer_event_data(event);
	entry->stack_id = ids[0];
	for (unsigned int i = 1; i < STACKMAP_PARTS; i++)
		entry->outer[i - 1] = i < parts.nr ? ids[i] : -1;
	for (unsigned int i = 1; i < parts.nr; i++) {
		ips += parts.part[i - 1].nr;
		entry->ip[i - 1] = *ips++;
	}
	trace_buffer_unlock_commit_nostack(buffer, event);
	return true;
}

/* The short way, for two parts that this CPU has just had. */
static noinline bool stackmap_record_split(struct ftrace_stackmap *map, struct stackmap_cpu *cpu,
					   struct trace_buffer *buffer, unsigned int trace_ctx,
					   const unsigned long *ips, unsigned int nr,
					   struct stackmap_part first)
{
	struct stackmap_part outer = stackmap_recall(map, cpu, ips + first.nr + 1,
						     nr - first.nr - 1);
	struct ring_buffer_event *event;
	struct stack_split_entry *entry;

	if (first.idx < 0 || outer.idx < 0)
		return stackmap_record_parts(map, cpu, buffer, trace_ctx, ips, first, outer);

	event = trace_buffer_lock_reserve(buffer, TRACE_STACK_SPLIT, struct_size(entry, ip, 1),
					  trace_ctx);
	if (!event)
		return true;

	stackmap_count_ref(map, first.word, first.idx);
	stackmap_count_ref(map, outer.word, outer.idx);
	local_inc(&cpu->successes[1]);

	entry = ring_buffer_event_data(event);
	entry->stack_id = stackmap_id(map, first.idx);
	entry->outer[0] = stackmap_id(map, outer.idx);
	entry->outer[1] = -1;
	entry->outer[2] = -1;
	entry->ip[0] = ips[first.nr];
	trace_buffer_unlock_commit_nostack(buffer, event);
	return true;
}

/**
 * ftrace_stackmap_record - write the id of a stack into a ring buffer
 * @map: the map, from ftrace_stackmap_active()
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 * @ips: the frames, innermost first
 * @nr: number of frames
 *
 * Writes the ids of its parts where it is to be split. The event is reserved
 * before the map is asked, so that what the buffer does not take does not enter
 * the map either.
 *
 * Context: any, NMI included, with preemption off since the map was obtained.
 * Return: false if the map can't take the stack and the frames are to be
 * recorded instead; true if there is nothing left to do.
 */
bool ftrace_stackmap_record(struct ftrace_stackmap *map, struct trace_buffer *buffer,
			    unsigned int trace_ctx, const unsigned long *ips, unsigned int nr)
{
	struct stackmap_cpu *cpu = this_cpu_ptr(map->cpu);
	struct stackmap_part part = stackmap_first_part(map, cpu, ips, nr);
	struct ring_buffer_event *event;
	struct stack_id_entry *entry;

	if (part.nr < nr)
		return stackmap_record_split(map, cpu, buffer, trace_ctx, ips, nr, part);

	event = trace_buffer_lock_reserve(buffer, TRACE_STACK_ID, sizeof(*entry), trace_ctx);
	if (!event)
		return true;

	if (stackmap_store(map, cpu, ips, &part) < 0) {
		ring_buffer_discard_commit(buffer, event);
		return false;
	}

	entry = ring_buffer_event_data(event);
	entry->stack_id = stackmap_success(map, cpu, part.word, part.idx);
	trace_buffer_unlock_commit_nostack(buffer, event);
	return true;
}

/**
 * ftrace_stackmap_lookup - the stack that an id stands for
 * @tr: the instance whose buffer holds the id
 * @id: the id
 *
 * Context: any, under rcu_read_lock(), which also bounds the use of the result.
 * Return: the record, or NULL if the map has been reset since or there is none.
 */
const struct stackmap_record *ftrace_stackmap_lookup(struct trace_array *tr, int id)
{
	struct ftrace_stackmap *map = rcu_dereference(tr->stackmap);
	u32 idx = id & (BIT(STACKMAP_SLOT_BITS) - 1);

	if (!map || id < 0 || idx >= map->nr_slots)
		return NULL;
	if (id >> STACKMAP_SLOT_BITS != (map->gen & STACKMAP_GEN_MASK))
		return NULL;

	return stackmap_record(map, idx);
}

/* The references to @slot that @word has collected. */
static unsigned long stackmap_cached(const local_t *word, u32 slot)
{
	unsigned long cached = local_read(word);

	return cached >> STACKMAP_COUNT_BITS == slot ? cached & STACKMAP_COUNT_MASK : 0;
}

/**
 * ftrace_stackmap_ref - how often the id of a slot was returned
 * @map: the map
 * @slot: index of a slot in use
 *
 * Exact while nobody inserts; else off by what is just leaving a CPU's cache.
 *
 * Context: any, while the map can't go away.
 * Return: the number of references.
 */
unsigned long ftrace_stackmap_ref(struct ftrace_stackmap *map, u32 slot)
{
	struct stackmap_record *rec = stackmap_record(map, slot);
	unsigned long ref = atomic_long_read(&rec->ref);
	struct stackmap_cpu *cpu;
	int i;

	for_each_possible_cpu(i) {
		cpu = per_cpu_ptr(map->cpu, i);
		ref += stackmap_cached(stackmap_word(cpu, rec->ips, rec->nr), slot);
		if (rec->nr >= STACKMAP_INNER_MIN)
			ref += stackmap_cached(stackmap_inner_word(cpu, rec->ips), slot);
	}
	return ref;
}

/* A count that each CPU keeps for itself, at @offset in struct stackmap_cpu. */
static unsigned long stackmap_sum(struct ftrace_stackmap *map, size_t offset)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += local_read((local_t *)((void *)per_cpu_ptr(map->cpu, cpu) + offset));
	return sum;
}

/* Of the stacks that are recorded by their ids, those of @parts parts. */
static unsigned long stackmap_successes(struct ftrace_stackmap *map, unsigned int parts)
{
	return stackmap_sum(map, offsetof(struct stackmap_cpu, successes[parts - 1]));
}

/**
 * ftrace_stackmap_successes - how many stacks are recorded by their ids
 * @map: the map
 *
 * Context: any, while the map can't go away.
 * Return: the sum over all CPUs, exact while nobody inserts.
 */
unsigned long ftrace_stackmap_successes(struct ftrace_stackmap *map)
{
	return stackmap_successes(map, 1) + ftrace_stackmap_nr_split(map);
}

/**
 * ftrace_stackmap_nr_split - how many of the successes have several parts
 * @map: the map
 *
 * Context: any, while the map can't go away.
 * Return: the sum over all CPUs, exact while nobody inserts.
 */
unsigned long ftrace_stackmap_nr_split(struct ftrace_stackmap *map)
{
	unsigned long split = 0;

	for (unsigned int parts = 2; parts <= STACKMAP_PARTS; parts++)
		split += stackmap_successes(map, parts);
	return split;
}

/**
 * ftrace_stackmap_nr_parts - how many parts all successes have
 * @map: the map
 *
 * Context: any, while the map can't go away.
 * Return: the sum over all CPUs, exact while nobody inserts.
 */
unsigned long ftrace_stackmap_nr_parts(struct ftrace_stackmap *map)
{
	unsigned long nr = 0;

	for (unsigned int parts = 1; parts <= STACKMAP_PARTS; parts++)
		nr += parts * stackmap_successes(map, parts);
	return nr;
}

/**
 * ftrace_stackmap_drops - how many stacks the map did not take
 * @map: the map
 * @why: the reason to count
 *
 * Context: any, while the map can't go away.
 * Return: the sum over all CPUs, exact while nobody inserts.
 */
unsigned long ftrace_stackmap_drops(struct ftrace_stackmap *map, enum stackmap_drop why)
{
	return stackmap_sum(map, offsetof(struct stackmap_cpu, drops[why]));
}

/**
 * ftrace_stackmap_memory - what a map takes
 * @map: the map
 *
 * Context: any, while the map can't go away.
 * Return: bytes.
 */
size_t ftrace_stackmap_memory(const struct ftrace_stackmap *map)
{
	return sizeof(*map) + array_size(map->nr_slots, sizeof(*map->slots)) +
	       PAGE_ALIGN(array_size(READ_ONCE(map->arena_units), STACKMAP_UNIT)) +
	       array_size(num_possible_cpus(), sizeof(*map->cpu));
}

/**
 * ftrace_stackmap_free - give the memory of a map back
 * @map: a map that nobody uses, or NULL
 *
 * Context: may sleep.
 */
void ftrace_stackmap_free(struct ftrace_stackmap *map)
{
	struct page *page, *next;

	if (!map)
		return;

	cancel_delayed_work_sync(&map->grow);
	free_percpu(map->cpu);
	if (map->area)
		free_vm_area(map->area);
	list_for_each_entry_safe(page, next, &map->pages, lru)
		__free_page(page);
	vfree(map->slots);
	kfree(map);
}

/* One more page for the arena. */
static int stackmap_back(struct ftrace_stackmap *map, gfp_t gfp)
{
	size_t end = PAGE_ALIGN(array_size(map->arena_units, STACKMAP_UNIT));
	unsigned long addr = (unsigned long)map->arena + end;
	struct page *page;
	u32 units;
	int ret;

	page = alloc_page(gfp | __GFP_HIGHMEM | __GFP_NOWARN);
	if (!page)
		return -ENOMEM;

	ret = vm_area_map_pages(map->area, addr, addr + PAGE_SIZE, &page);
	if (ret) {
		__free_page(page);
		return ret;
	}

	list_add(&page->lru, &map->pages);
	units = (end + PAGE_SIZE) / STACKMAP_UNIT;
	/* stackmap_back:A, pairs with stackmap_reserve:A */
	smp_store_release(&map->arena_units, min(units, map->arena_limit));
	return 0;
}

/**
 * ftrace_stackmap_grow - give the arena of a map more memory
 * @map: the map, which nobody else grows at the same time
 * @units: how much it shall have in all, in STACKMAP_UNITs
 * @gfp: how hard to try
 *
 * Never goes beyond map->arena_limit. What was got before a failure stays.
 *
 * Context: may sleep.
 * Return: 0, or a negative error code, mostly -ENOMEM.
 */
int ftrace_stackmap_grow(struct ftrace_stackmap *map, u32 units, gfp_t gfp)
{
	int ret = 0;

	units = min(units, map->arena_limit);
	while (!ret && map->arena_units < units)
		ret = stackmap_back(map, gfp);

	return ret;
}

/* What the arena has for 2^@bits stacks, unit 0 included: whole pages. */
static u32 stackmap_arena_units(unsigned int bits)
{
	struct stackmap_record *rec;
	size_t size = struct_size(rec, ips, STACKMAP_MEAN_DEPTH);

	return DIV_ROUND_UP(size, STACKMAP_UNIT) << bits;
}

static void stackmap_start_growing(struct ftrace_stackmap *map)
{
	if (READ_ONCE(map->arena_units) < map->arena_limit)
		queue_delayed_work(system_dfl_wq, &map->grow, msecs_to_jiffies(STACKMAP_GROW_MS));
}

static void stackmap_grow_work(struct work_struct *work)
{
	struct ftrace_stackmap *map = container_of(to_delayed_work(work), struct ftrace_stackmap,
						   grow);
	u32 room = stackmap_arena_units(STACKMAP_BITS_MIN) / 2;
	u32 tail = atomic_read(&map->tail);

	/* Without memory there is another chance next time. */
	ftrace_stackmap_grow(map, tail + max(room, tail / 4), GFP_KERNEL | __GFP_NORETRY);
	stackmap_start_growing(map);
}

/**
 * ftrace_stackmap_alloc - an empty map
 * @bits: log2 of the number of stacks, STACKMAP_BITS_MIN to STACKMAP_BITS_MAX
 * @gen: its generation
 *
 * Context: may sleep.
 * Return: the map, or NULL when there is not enough memory.
 */
struct ftrace_stackmap *ftrace_stackmap_alloc(unsigned int bits, u32 gen)
{
	struct ftrace_stackmap *map;
	bool early;

	map = kzalloc_obj(*map);
	if (!map)
		return NULL;

	INIT_LIST_HEAD(&map->pages);
	INIT_DELAYED_WORK(&map->grow, stackmap_grow_work);

	map->gen = gen;
	map->max_entries = 1U << bits;
	map->nr_slots = stackmap_nr_slots(bits);
	map->arena_limit = stackmap_arena_units(bits);
	map->offset_mask = roundup_pow_of_two(map->arena_limit) - 1;
	map->entry_start = STACKMAP_ENTRY_START;
	map->entry_size = READ_ONCE(stackmap_split) ?
			  STACKMAP_ENTRY_END - STACKMAP_ENTRY_START : 0;
	atomic_set(&map->tail, 1);

	map->slots = vcalloc(map->nr_slots, sizeof(*map->slots));
	map->area = get_vm_area(PAGE_ALIGN(array_size(map->arena_limit, STACKMAP_UNIT)),
				VM_SPARSE);
	map->cpu = alloc_percpu(struct stackmap_cpu);
	if (!map->slots || !map->area || !map->cpu)
		goto fail;

	map->arena = map->area->addr;
	/* Before there are workqueues there is nobody to grow it. */
	early = system_state < SYSTEM_SCHEDULING;
	if (ftrace_stackmap_grow(map, stackmap_arena_units(early ? bits : STACKMAP_BITS_MIN),
				 GFP_KERNEL | __GFP_RETRY_MAYFAIL))
		goto fail;

	return map;

 fail:
	ftrace_stackmap_free(map);
	return NULL;
}

/* Replaces the map of @tr, by none where @new is NULL. */
static void ftrace_stackmap_swap(struct trace_array *tr, struct ftrace_stackmap *new)
{
	struct ftrace_stackmap *old;

	old = rcu_replace_pointer(tr->stackmap, new, lockdep_is_held(&trace_types_lock));
	if (!old)
		return;

	/* ftrace_stackmap_swap:A, pairs with ftrace_stackmap_active() and the readers */
	synchronize_rcu();
	ftrace_stackmap_free(old);
}

static struct ftrace_stackmap *stackmap_protected(struct trace_array *tr)
{
	return rcu_dereference_protected(tr->stackmap, lockdep_is_held(&trace_types_lock));
}

static int stackmap_enable(struct trace_array *tr)
{
	struct ftrace_stackmap *map;

	/*
	 * TRACE_ARRAY_FL_BOOT, _LAST_BOOT and _RDONLY go with a range of memory,
	 * whose ids would be without their stacks after the reboot.
	 */
	if (tr->range_addr_start)
		return -EOPNOTSUPP;

	if (!stackmap_protected(tr)) {
		map = ftrace_stackmap_alloc(READ_ONCE(ftrace_stackmap_bits), tr->stackmap_gen);
		if (!map)
			return -ENOMEM;
		ftrace_stackmap_swap(tr, map);
	}

	stackmap_start_growing(stackmap_protected(tr));
	tr->trace_flags |= TRACE_ITER(STACKMAP);
	return 0;
}

/**
 * ftrace_stackmap_set - set or clear options/stackmap
 * @tr: the instance
 * @enable: whether stacks are to go through the map
 *
 * Allocates the map unless there is one already, and changes tr->trace_flags.
 * The map outlives the option, for the ids in the buffer.
 *
 * Context: may sleep, under trace_types_lock.
 * Return: 0, -EOPNOTSUPP for a persistent or read-only instance, -ENOMEM.
 */
int ftrace_stackmap_set(struct trace_array *tr, bool enable)
{
	struct ftrace_stackmap *map;

	lockdep_assert_held(&trace_types_lock);

	if (enable)
		return stackmap_enable(tr);

	tr->trace_flags &= ~TRACE_ITER(STACKMAP);
	map = stackmap_protected(tr);
	if (map)
		cancel_delayed_work_sync(&map->grow);
	return 0;
}

#ifdef CONFIG_TRACER_SNAPSHOT
static void stackmap_empty_snapshot(struct trace_array *tr)
{
	tracing_reset_all_cpus(&tr->snapshot_buffer);
}
#else
static inline void stackmap_empty_snapshot(struct trace_array *tr) { }
#endif

/* Remove all events of an instance, those of offline CPUs and the snapshot's too. */
static void stackmap_empty_buffers(struct trace_array *tr)
{
	/* Whoever prints events holds it for reading, from finding one to its end. */
	guard(rwsem_write)(&trace_event_sem);

	tracing_reset_all_cpus(&tr->array_buffer);
	stackmap_empty_snapshot(tr);
}

/**
 * ftrace_stackmap_reset - forget all stacks of an instance
 * @tr: the instance
 *
 * With options/stackmap on, a new map takes the old one's place at once, so
 * that no stack goes uncounted. With the option off the memory is given back.
 * Ids in the buffer are stale afterwards. When the generation in the ids starts
 * again from 0 they could come to mean something else, so the buffers of the
 * instance are emptied then. There is nothing to reset without a map.
 *
 * Context: may sleep, under trace_types_lock.
 * Return: 0, -EBUSY while tracing is on in @tr, -ENOMEM (nothing has changed).
 */
int ftrace_stackmap_reset(struct trace_array *tr)
{
	struct ftrace_stackmap *new = NULL;

	lockdep_assert_held(&trace_types_lock);

	if (!stackmap_protected(tr))
		return 0;

	if (tracer_tracing_is_on(tr))
		return -EBUSY;

	if (tr->trace_flags & TRACE_ITER(STACKMAP)) {
		new = ftrace_stackmap_alloc(READ_ONCE(ftrace_stackmap_bits), tr->stackmap_gen + 1);
		if (!new)
			return -ENOMEM;
	}

	WRITE_ONCE(tr->stackmap_gen, tr->stackmap_gen + 1);
	if (!(tr->stackmap_gen & STACKMAP_GEN_MASK)) {
		/* Without a map, no id enters the buffers behind the emptying. */
		ftrace_stackmap_swap(tr, NULL);
		stackmap_empty_buffers(tr);
	}

	ftrace_stackmap_swap(tr, new);
	if (new)
		stackmap_start_growing(new);
	return 0;
}

/**
 * ftrace_stackmap_destroy - free the map of an instance that goes away
 * @tr: the instance, which has no users
 *
 * Context: may sleep, under trace_types_lock.
 */
void ftrace_stackmap_destroy(struct trace_array *tr)
{
	ftrace_stackmap_swap(tr, NULL);
}

/* On the command line any number will do, so that a typo does not cost the trace. */
static int stackmap_bits_boot(long bits)
{
	ftrace_stackmap_bits = clamp(bits, STACKMAP_BITS_MIN, STACKMAP_BITS_MAX);
	if (ftrace_stackmap_bits != bits)
		pr_warn("bits is out of range, using %u\n", ftrace_stackmap_bits);
	return 0;
}

static int stackmap_bits_set(const char *val, const struct kernel_param *kp)
{
	bool boot = system_state < SYSTEM_RUNNING;
	long bits;
	int ret;

	ret = kstrtol(val, 0, &bits);
	if (ret == -ERANGE && boot)
		return stackmap_bits_boot(*val == '-' ? LONG_MIN : LONG_MAX);
	if (ret)
		return ret;
	if (boot)
		return stackmap_bits_boot(bits);

	if (bits < STACKMAP_BITS_MIN || bits > STACKMAP_BITS_MAX)
		return -EINVAL;

	WRITE_ONCE(ftrace_stackmap_bits, bits);
	return 0;
}

static const struct kernel_param_ops stackmap_bits_ops = {
	.set		= stackmap_bits_set,
	.get		= param_get_uint,
};

module_param_cb(bits, &stackmap_bits_ops, &ftrace_stackmap_bits, 0644);
MODULE_PARM_DESC(bits, "log2 of the number of stacks that a stack map holds, 10 to 18");

module_param_named(split, stackmap_split, bool, 0644);
MODULE_PARM_DESC(split, "split stacks where an interrupt has hit");
