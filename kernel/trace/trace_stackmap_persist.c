// SPDX-License-Identifier: GPL-2.0
/*
 * The stack map of a persistent instance, whose memory survives a reboot
 * (Documentation/trace/debugging.rst). The map is behind the scratch area there.
 *
 * There is one map, which is not replaced: when it is full, stacks are recorded in
 * full. After a reboot, its stacks are printed and read until the instance records
 * again, or its last event has been read. Then the map is emptied, as the ring buffer is.
 *
 * Whatever a crash has left in the memory, only what is proven is used. The header has a hash
 * of its first id, its size, the build id of the kernel and the address of its text. A record
 * has the sum of its slot index and a hash of its kind and frames. A file also has a hash of its
 * build id and path. A stack is used only if all files that it refers to have passed. The key of
 * the hashes is new each time the map is emptied, so what is left of an older filling proves
 * nothing.
 *
 * Counts are not proven. They are there after a panic that has called its notifiers, else 0.
 */
#include <linux/buildid.h>
#include <linux/cleanup.h>
#include <linux/mutex.h>
#include <linux/panic_notifier.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/siphash.h>
#include <linux/string.h>
#include <linux/timex.h>

#include <kunit/visibility.h>

#include <asm/sections.h>

#include "trace_stackmap_tracefs.h"

/* The map takes no more than this part of the memory of an instance. */
#define STACKMAP_RANGE_PART	8

/**
 * ftrace_stackmap_reserve - give a persistent instance a map, if its memory is large enough
 * @tr: the instance, which has no ring buffer yet
 */
void ftrace_stackmap_reserve(struct trace_array *tr)
{
	unsigned int bits = ftrace_stackmap_bits;
	struct stackmap_instance *inst;

	while (bits >= STACKMAP_BITS_MIN &&
	       stackmap_size(bits) > tr->range_addr_size / STACKMAP_RANGE_PART)
		bits--;
	inst = bits >= STACKMAP_BITS_MIN ? stackmap_alloc_instance(tr) : NULL;
	if (inst)
		inst->range_bits = bits;
	else
		pr_warn("stack map of %s: not enough memory\n", tr->name);
}

/**
 * ftrace_stackmap_range_size - the memory that the map of an instance takes behind the scratch area
 * @tr: the instance, or NULL
 *
 * Return: bytes, 0 without a map there.
 */
size_t ftrace_stackmap_range_size(const struct trace_array *tr)
{
	const struct stackmap_instance *inst = tr ? tr->stackmap : NULL;

	return inst && inst->range_bits ? SMP_CACHE_BYTES + stackmap_size(inst->range_bits) : 0;
}

/* What proves the header of a map of 2^@bits stacks that this kernel has emptied at @text. */
VISIBLE_IF_KUNIT u32 stackmap_header_hash(const struct ftrace_stackmap *map, unsigned int bits,
					  unsigned long text)
{
	struct {
		u64	text;
		u32	bits;
		u32	first_id;
		u8	build_id[ALIGN(BUILD_ID_SIZE_MAX, 8)];
	} header = { .text = text, .bits = bits, .first_id = map->first_id };

	build_id_parse_buf(__start_notes, header.build_id, __stop_notes - __start_notes);
	return hsiphash(&header, sizeof(header), &map->hash_key);
}

/* Does slot number @idx lead to the record that an insert has written for it? */
static bool stackmap_record_intact(const struct ftrace_stackmap *map, u32 idx)
{
	u32 slot = map->slots[idx], offset = slot & map->offset_mask, hash;
	const struct stackmap_record *rec = stackmap_record_at(map, slot);
	unsigned int nr;

	/* First of all: it is in the arena, and of one of the three kinds. */
	if (!offset || offset + stackmap_units(0) > map->arena_units ||
	    offset + stackmap_units(rec->nr) > map->arena_units ||
	    *(const u8 *)&rec->user + *(const u8 *)&rec->file > 1)
		return false;

	nr = rec->file ? user_file_intact(map, rec) : rec->nr;
	if (!nr)
		return false;
	hash = stackmap_hash(map, rec->ips, nr, rec->user, rec->file);
	return rec->proof == hash + idx && stackmap_tag(map, slot) == stackmap_tag(map, hash) &&
	       ((idx - hash) & (map->nr_slots - 1)) < STACKMAP_PROBES;
}

/* Are the files there that a stack refers to? */
static bool stackmap_files_intact(const struct ftrace_stackmap *map,
				  const struct stackmap_record *rec)
{
	u32 nr;

	for (unsigned int i = 0; rec->user && i < rec->nr; i++) {
		nr = user_word_file(rec->ips[i]);
		if (nr && (nr >= map->nr_slots || !stackmap_record_intact(map, nr) ||
			   !stackmap_record(map, nr)->file))
			return false;
	}
	return true;
}

/**
 * stackmap_restore - clear the slots of a map that are not proven
 * @map: the map, whose first id and key are proven; nobody uses it
 * @bits: log2 of the number of stacks
 *
 * Afterwards, it may be read.
 *
 * Return: how many slots were cleared.
 */
VISIBLE_IF_KUNIT unsigned int stackmap_restore(struct ftrace_stackmap *map, unsigned int bits)
{
	hsiphash_key_t key = map->hash_key;
	struct stackmap_record *rec;
	unsigned int cleared = 0;

	stackmap_init(map, bits, map->first_id);
	map->hash_key = key;
	map->persistent = true;
	map->cache = NULL;
	atomic_set(&map->entries, 0);
	atomic_set(&map->files, 0);
	atomic_set(&map->tail, map->arena_units);
	for (u32 idx = 0; idx < map->nr_slots; idx++) {
		rec = stackmap_record(map, idx);
		if (!rec)
			continue;
		if (!stackmap_record_intact(map, idx) || !stackmap_files_intact(map, rec)) {
			map->slots[idx] = 0;
			cleared++;
			continue;
		}
		atomic_inc(&map->entries);
		atomic_add(rec->file, &map->files);
		if (!map->flushed)
			atomic_long_set(&rec->ref, 0);
	}
	return cleared;
}

/* The counts in the caches would not survive. The other CPUs have stopped. */
VISIBLE_IF_KUNIT int stackmap_panic(struct notifier_block *nb, unsigned long event, void *data)
{
	struct stackmap_instance *inst = container_of(nb, struct stackmap_instance, panic_nb);
	struct ftrace_stackmap *map = rcu_dereference_raw(inst->map);
	int cpu;

	if (!map)
		return NOTIFY_DONE;

	for_each_possible_cpu(cpu)
		stackmap_flush_cpu(map, cpu);
	map->flushed = 1;
	return NOTIFY_DONE;
}

/**
 * ftrace_stackmap_restore - find the stacks of the last boot
 * @tr: the instance
 * @mem: the memory of its map, ftrace_stackmap_range_size() bytes
 * @text: the address of _text in the last boot, or 0
 *
 * They are there to be printed and read until ftrace_stackmap_forget_boot().
 */
void ftrace_stackmap_restore(struct trace_array *tr, void *mem, unsigned long text)
{
	struct ftrace_stackmap *map = PTR_ALIGN(mem, SMP_CACHE_BYTES);
	struct stackmap_instance *inst = tr->stackmap;
	struct stackmap_gens *gens;
	struct stackmap_gen *gen;
	unsigned int cleared;

	inst->range = map;
	/* Before that of the ring buffer, which writes the memory back. */
	inst->panic_nb = (struct notifier_block) { .notifier_call = stackmap_panic, .priority = 1 };
	atomic_notifier_chain_register(&panic_notifier_list, &inst->panic_nb);

	guard(mutex)(&inst->lock);
	if (map->check != stackmap_header_hash(map, inst->range_bits, text)) {
		pr_info("stack map of %s: no stacks that this kernel has left\n", tr->name);
		return;
	}

	cleared = stackmap_restore(map, inst->range_bits);
	gen = stackmap_gen_alloc(map->first_id, map);
	gens = gen ? stackmap_gens_with(inst, gen) : NULL;
	if (!gens)
		return;

	inst->next_gen = (map->first_id >> STACKMAP_SLOT_BITS) + 1;
	stackmap_publish(inst, gens, NULL);
	pr_info("stack map of %s: %d stacks of the last boot, %u did not survive\n",
		tr->name, atomic_read(&map->entries) - atomic_read(&map->files), cleared);
}

/**
 * stackmap_range_empty - empty the map of a persistent instance
 * @inst: the instance, nobody uses its map
 * @first_id: the id of slot 0
 *
 * Return: the map, or NULL without memory.
 */
struct ftrace_stackmap *stackmap_range_empty(struct stackmap_instance *inst, u32 first_id)
{
	struct ftrace_stackmap *map = inst->range;
	int cpu;

	if (!inst->range_cache)
		inst->range_cache = alloc_percpu(struct stackmap_cache);
	if (!inst->range_cache)
		return NULL;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(inst->range_cache, cpu), 0, sizeof(struct stackmap_cache));
	/* Not map->persistent: who closes a file now asks for it in stackmap_free(). */
	map->check = 0;
	map->flushed = 0;
	map->irqentry_start = 0;
	map->irqentry_size = 0;
	atomic_set(&map->entries, 0);
	atomic_set(&map->files, 0);
	memset(map->slots, 0, array_size(2U << inst->range_bits, sizeof(*map->slots)));
	stackmap_init(map, inst->range_bits, first_id);
	/* The random number may be that of the last boot, too. */
	map->hash_key.key[0] ^= first_id + random_get_entropy();
	map->persistent = true;
	map->cache = inst->range_cache;
	map->check = stackmap_header_hash(map, inst->range_bits, (unsigned long)_text);
	return map;
}

/**
 * ftrace_stackmap_forget_boot - forget the stacks of the last boot
 * @tr: the instance, whose addresses can still be adjusted
 *
 * The stacks stay in memory until the ring buffer is empty: after a crash in between, the
 * next boot finds both.
 */
void ftrace_stackmap_forget_boot(struct trace_array *tr)
{
	struct stackmap_instance *inst = tr->stackmap;

	if (!inst || !stackmap_persistent(inst))
		return;

	guard(mutex)(&inst->lock);
	WRITE_ONCE(inst->resets, inst->resets + 1);
	stackmap_publish(inst, NULL, NULL);
}

/**
 * ftrace_stackmap_next_boot - begin a map of this boot
 * @tr: the instance, whose ring buffer was emptied
 */
void ftrace_stackmap_next_boot(struct trace_array *tr)
{
	struct stackmap_instance *inst = tr->stackmap;

	if (!inst || !stackmap_persistent(inst))
		return;

	guard(mutex)(&inst->lock);
	inst->range->check = 0;
	if (ftrace_stackmap_enabled(tr) && stackmap_begin(inst))
		pr_warn("stack map of %s: no memory\n", tr->name);
}
