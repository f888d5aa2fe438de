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
#include <linux/buildid.h>
#include <linux/cleanup.h>
#include <linux/jhash.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>

#include <asm/sections.h>

#include "trace_stackmap.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "ftrace_stackmap."

/* Records start at multiples of this many bytes. */
#define STACKMAP_UNIT		sizeof(u64)

/* The arena has room for the stacks of a full map if they are this deep on average. */
#define STACKMAP_MEAN_DEPTH	24

/* A word of the reference cache: a slot index above a count. */
#define STACKMAP_COUNT_BITS	(BITS_PER_LONG - STACKMAP_SLOT_BITS)
#define STACKMAP_COUNT_MASK	((1UL << STACKMAP_COUNT_BITS) - 1)

/* How often a cached count is tried again after a nested context has changed it. */
#define STACKMAP_COUNT_TRIES	4

/* Binary export: "FMSB", read as a native word. */
#define STACKMAP_BIN_MAGIC	0x464D5342
#define STACKMAP_BIN_VERSION	2
#define STACKMAP_BIN_ALIGN	8

enum stackmap_bin_section {
	STACKMAP_BIN_TEXT	= 1,	/* u64, address of _text */
	STACKMAP_BIN_BUILD_ID	= 2,	/* build id of the kernel */
	STACKMAP_BIN_RELEASE	= 3,	/* kernel release, not terminated */
};

struct stackmap_bin_header {
	u32			magic;
	u32			version;
	u32			nr_stacks;
	u32			nr_sections;
};

struct stackmap_bin_record {
	u32			stack_id;
	u32			nr;
	u32			ref_count;
	u32			reserved;
};

struct stackmap_bin_section_header {
	u32			type;
	u32			len;
};

static const char *const stackmap_drop_names[] = {
	[STACKMAP_DROP_ENTRIES]	= "entries",
	[STACKMAP_DROP_ARENA]	= "arena",
	[STACKMAP_DROP_PROBES]	= "probes",
	[STACKMAP_DROP_EMPTY]	= "empty",
};

static_assert(ARRAY_SIZE(stackmap_drop_names) == STACKMAP_NR_DROPS);

/* Size of maps that are allocated from now on, log2 of the stacks; see stackmap_bits_set(). */
static unsigned int stackmap_bits = STACKMAP_BITS_DEFAULT;

static u32 stackmap_hash(const unsigned long *ips, unsigned int nr)
{
	return jhash2((const u32 *)ips, nr * (sizeof(*ips) / sizeof(u32)), nr);
}

static u32 stackmap_offset(const struct ftrace_stackmap *map, u32 slot)
{
	return slot & (BIT(map->offset_bits) - 1);
}

/* Of a slot, or of a hash: what a slot holds above the offset. */
static u32 stackmap_tag(const struct ftrace_stackmap *map, u32 val)
{
	return val & ~(BIT(map->offset_bits) - 1);
}

static u32 stackmap_id(const struct ftrace_stackmap *map, u32 idx)
{
	return ((map->gen & STACKMAP_GEN_MASK) << STACKMAP_SLOT_BITS) | idx;
}

static struct stackmap_record *stackmap_record_at(const struct ftrace_stackmap *map, u32 offset)
{
	return map->arena + (size_t)offset * STACKMAP_UNIT;
}

/* The record of slot number @idx, or NULL. The map must not go away meanwhile. */
static struct stackmap_record *stackmap_record(const struct ftrace_stackmap *map, u32 idx)
{
	/* stackmap_record:A, pairs with stackmap_publish:A */
	u32 slot = READ_ONCE(map->slots[idx]);

	return slot ? stackmap_record_at(map, stackmap_offset(map, slot)) : NULL;
}

static bool stackmap_match(const struct stackmap_record *rec, const unsigned long *ips,
			   unsigned int nr, u32 hash)
{
	return rec->hash == hash && rec->nr == nr &&
	       !memcmp(rec->ips, ips, flex_array_size(rec, ips, nr));
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

	units = DIV_ROUND_UP(struct_size(rec, ips, nr), STACKMAP_UNIT);

	/* Look before writing: a full map should not bounce these lines. */
	*why = STACKMAP_DROP_ENTRIES;
	if (atomic_read(&map->entries) >= map->max_entries)
		return NULL;

	*why = STACKMAP_DROP_ARENA;
	if (atomic_read(&map->tail) + units > map->arena_units)
		return NULL;

	*why = STACKMAP_DROP_ENTRIES;
	if (atomic_inc_return(&map->entries) > map->max_entries)
		goto fail;

	*why = STACKMAP_DROP_ARENA;
	offset = atomic_fetch_add(units, &map->tail);
	if (offset + units > map->arena_units)
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
 * Look @ips up, and insert it where it is missing. Returns the slot index, or
 * -ENOSPC and the reason in @why.
 */
static int stackmap_find_slot(struct ftrace_stackmap *map, const unsigned long *ips,
			      unsigned int nr, u32 hash, enum stackmap_drop *why)
{
	u32 tag = stackmap_tag(map, hash);
	u32 idx = hash & (map->nr_slots - 1);
	struct stackmap_record *new = NULL;
	unsigned int probes = 0;
	int ret = -ENOSPC;
	u32 slot;

	while (probes < STACKMAP_PROBES) {
		/* stackmap_record:A, pairs with stackmap_publish:A */
		slot = READ_ONCE(map->slots[idx]);

		if (!slot) {
			if (!new) {
				new = stackmap_reserve(map, nr, why);
				if (!new)
					return -ENOSPC;
				stackmap_fill(new, ips, nr, hash);
			}
			if (stackmap_publish(map, idx, new))
				return idx;
			/* Lost the race, and the winner may have stored this very stack. */
			continue;
		}

		if (stackmap_tag(map, slot) == tag &&
		    stackmap_match(stackmap_record_at(map, stackmap_offset(map, slot)),
				   ips, nr, hash)) {
			ret = idx;
			break;
		}

		idx = (idx + 1) & (map->nr_slots - 1);
		probes++;
	}

	if (new)
		atomic_dec(&map->entries);
	*why = STACKMAP_DROP_PROBES;
	return ret;
}

/*
 * One more reference to slot @idx. The cache word is changed by one local
 * cmpxchg, so that a nested context sees it before or after, and what it held
 * for another slot is added to that one's record by whoever replaced it.
 */
static void stackmap_count_ref(struct ftrace_stackmap *map, struct stackmap_cpu *cpu, u32 idx)
{
	local_t *word = &cpu->refs[idx % STACKMAP_REF_CACHE];
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
	enum stackmap_drop why;
	int idx = -ENOSPC;

	if (likely(nr))
		idx = stackmap_find_slot(map, ips, nr, hash, &why);
	else
		why = STACKMAP_DROP_EMPTY;

	if (idx < 0) {
		local_inc(&cpu->drops[why]);
		return idx;
	}

	stackmap_count_ref(map, cpu, idx);
	local_inc(&cpu->successes);

	return stackmap_id(map, idx);
}

/**
 * ftrace_stackmap_get_id - the id of a stack, which is stored when it is new
 * @map: the map, from ftrace_stackmap_active()
 * @ips: the frames, innermost first
 * @nr: number of frames; a stack without frames is not stored
 *
 * Takes no lock, waits for nobody and ends after a bounded number of steps.
 * Each call counts as one success or one drop.
 *
 * Context: any, NMI included, with preemption off since the map was obtained.
 * Return: an id, 0 or greater; -ENOSPC when the map can't take the stack.
 */
int ftrace_stackmap_get_id(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr)
{
	return __ftrace_stackmap_get_id(map, ips, nr, stackmap_hash(ips, nr));
}

/**
 * ftrace_stackmap_record - write the id of a stack into a ring buffer
 * @map: the map, from ftrace_stackmap_active()
 * @buffer: the ring buffer
 * @trace_ctx: context of the event
 * @ips: the frames, innermost first
 * @nr: number of frames
 *
 * The event is reserved before the map is asked, so that what the buffer does
 * not take does not enter the map either.
 *
 * Context: any, NMI included, with preemption off since the map was obtained.
 * Return: false if the map can't take the stack and the frames are to be
 * recorded instead; true if there is nothing left to do.
 */
bool ftrace_stackmap_record(struct ftrace_stackmap *map, struct trace_buffer *buffer,
			    unsigned int trace_ctx, const unsigned long *ips, unsigned int nr)
{
	struct ring_buffer_event *event;
	struct stack_id_entry *entry;
	int id;

	event = trace_buffer_lock_reserve(buffer, TRACE_STACK_ID, sizeof(*entry), trace_ctx);
	if (!event)
		return true;

	id = ftrace_stackmap_get_id(map, ips, nr);
	if (id < 0) {
		ring_buffer_discard_commit(buffer, event);
		return false;
	}

	entry = ring_buffer_event_data(event);
	entry->stack_id = id;
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
	unsigned long ref, word;
	int cpu;

	ref = atomic_long_read(&stackmap_record(map, slot)->ref);
	for_each_possible_cpu(cpu) {
		word = local_read(&per_cpu_ptr(map->cpu, cpu)->refs[slot % STACKMAP_REF_CACHE]);
		if (word >> STACKMAP_COUNT_BITS == slot)
			ref += word & STACKMAP_COUNT_MASK;
	}
	return ref;
}

/**
 * ftrace_stackmap_successes - how many stacks got an id
 * @map: the map
 *
 * Context: any, while the map can't go away.
 * Return: the sum over all CPUs, exact while nobody inserts.
 */
unsigned long ftrace_stackmap_successes(struct ftrace_stackmap *map)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += local_read(&per_cpu_ptr(map->cpu, cpu)->successes);
	return sum;
}

/**
 * ftrace_stackmap_drops - how many stacks got no id
 * @map: the map
 * @why: the reason to count
 *
 * Context: any, while the map can't go away.
 * Return: the sum over all CPUs, exact while nobody inserts.
 */
unsigned long ftrace_stackmap_drops(struct ftrace_stackmap *map, enum stackmap_drop why)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += local_read(&per_cpu_ptr(map->cpu, cpu)->drops[why]);
	return sum;
}

static u32 stackmap_nr_slots(unsigned int bits)
{
	return 2U << bits;
}

static size_t stackmap_memory(const struct ftrace_stackmap *map)
{
	return sizeof(*map) + array_size(map->nr_slots, sizeof(*map->slots)) +
	       array_size(map->arena_units, STACKMAP_UNIT) +
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
	if (!map)
		return;

	free_percpu(map->cpu);
	vfree(map->arena);
	vfree(map->slots);
	kfree(map);
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
	struct stackmap_record *rec;
	size_t record_size;

	map = kzalloc_obj(*map);
	if (!map)
		return NULL;

	record_size = struct_size(rec, ips, STACKMAP_MEAN_DEPTH);
	map->gen = gen;
	map->max_entries = 1U << bits;
	map->nr_slots = stackmap_nr_slots(bits);
	map->arena_units = 1 + DIV_ROUND_UP(record_size, STACKMAP_UNIT) * map->max_entries;
	map->offset_bits = order_base_2(map->arena_units);
	atomic_set(&map->tail, 1);

	map->slots = vcalloc(map->nr_slots, sizeof(*map->slots));
	map->arena = vmalloc_array(map->arena_units, STACKMAP_UNIT);
	map->cpu = alloc_percpu(struct stackmap_cpu);
	if (!map->slots || !map->arena || !map->cpu)
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

/**
 * ftrace_stackmap_enable - get an instance ready for options/stackmap
 * @tr: the instance
 *
 * Allocates the map unless there is one already. Only an instance whose buffer
 * does not outlive the kernel can have a map: ids in any other buffer would be
 * without their stacks after the reboot.
 *
 * Context: may sleep, under trace_types_lock.
 * Return: 0, -EOPNOTSUPP for a persistent or read-only instance, -ENOMEM.
 */
int ftrace_stackmap_enable(struct trace_array *tr)
{
	struct ftrace_stackmap *map;

	lockdep_assert_held(&trace_types_lock);

	/* TRACE_ARRAY_FL_BOOT, _LAST_BOOT and _RDONLY go with a range of memory. */
	if (tr->range_addr_start)
		return -EOPNOTSUPP;

	if (stackmap_protected(tr))
		return 0;

	map = ftrace_stackmap_alloc(READ_ONCE(stackmap_bits), tr->stackmap_gen);
	if (!map)
		return -ENOMEM;

	ftrace_stackmap_swap(tr, map);
	return 0;
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
		new = ftrace_stackmap_alloc(READ_ONCE(stackmap_bits), tr->stackmap_gen + 1);
		if (!new)
			return -ENOMEM;
	}

	WRITE_ONCE(tr->stackmap_gen, tr->stackmap_gen + 1);
	if (!(tr->stackmap_gen & STACKMAP_GEN_MASK)) {
		/* Without a map, no id enters the buffers behind the emptying. */
		ftrace_stackmap_swap(tr, NULL);
		tracing_empty_buffers(tr);
	}

	ftrace_stackmap_swap(tr, new);
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

/**
 * struct stackmap_iter - a reader of stack_map or stack_map_bin
 * @tr: the instance, of which the open file holds a reference
 * @gen: generation of the map that is read
 * @nr_slots: its size, 0 if there was no map
 * @tail: end of the arena when the read began, later stacks are left out
 * @nr_stacks: number of stacks below @tail
 * @map: the map, between start and stop
 *
 * Positions: 0 is the header, 1 to @nr_slots are the slots, then the trailer.
 */
struct stackmap_iter {
	struct trace_array	*tr;
	u32			gen;
	u32			nr_slots;
	u32			tail;
	u32			nr_stacks;
	struct ftrace_stackmap	*map;
};

/* The map that the read began with; NULL if it is gone. */
static struct ftrace_stackmap *stackmap_iter_map(const struct stackmap_iter *iter)
{
	struct ftrace_stackmap *map = rcu_dereference(iter->tr->stackmap);

	return map && map->gen == iter->gen ? map : NULL;
}

static bool stackmap_iter_has(const struct stackmap_iter *iter,
			      const struct ftrace_stackmap *map, u32 idx)
{
	u32 slot = READ_ONCE(map->slots[idx]);

	return slot && stackmap_offset(map, slot) < iter->tail;
}

/*
 * Fix the set of stacks that is going to be read. Every record below the tail
 * is published after the grace period, or never will be.
 */
static int stackmap_latch(struct stackmap_iter *iter)
{
	struct ftrace_stackmap *map;

	iter->nr_stacks = 0;
	iter->nr_slots = 0;

	scoped_guard(rcu) {
		map = rcu_dereference(iter->tr->stackmap);
		if (!map)
			return 0;
		iter->gen = map->gen;
		iter->nr_slots = map->nr_slots;
		iter->tail = atomic_read(&map->tail);
	}

	synchronize_rcu();	/* stackmap_latch:A */

	guard(rcu)();
	map = stackmap_iter_map(iter);
	if (!map)
		return -ESTALE;

	for (u32 idx = 0; idx < map->nr_slots; idx++)
		iter->nr_stacks += stackmap_iter_has(iter, map, idx);
	return 0;
}

/* The next position from @pos on at which there is something to show. */
static void *stackmap_seek(struct stackmap_iter *iter, loff_t *pos)
{
	while (*pos >= 1 && *pos <= iter->nr_slots &&
	       !stackmap_iter_has(iter, iter->map, *pos - 1))
		++*pos;

	return *pos <= iter->nr_slots + 1 ? pos : NULL;
}

static void *stackmap_seq_start(struct seq_file *m, loff_t *pos)
	__acquires(RCU)
{
	struct stackmap_iter *iter = m->private;
	int err = 0;

	if (!*pos)
		err = stackmap_latch(iter);

	rcu_read_lock();
	if (err)
		return ERR_PTR(err);

	iter->map = stackmap_iter_map(iter);
	if (iter->nr_slots && !iter->map)
		return ERR_PTR(-ESTALE);

	return stackmap_seek(iter, pos);
}

static void *stackmap_seq_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return stackmap_seek(m->private, pos);
}

static void stackmap_seq_stop(struct seq_file *m, void *v)
	__releases(RCU)
{
	rcu_read_unlock();
}

static void stackmap_show_frame(struct seq_file *m, struct trace_array *tr,
				unsigned int i, unsigned long ip)
{
	if (ip == FTRACE_TRAMPOLINE_MARKER)
		seq_printf(m, "  [%u] [FTRACE TRAMPOLINE]\n", i);
	else
		seq_printf(m, "  [%u] %pS\n", i, (void *)trace_adjust_address(tr, ip));
}

static int stackmap_text_show(struct seq_file *m, void *v)
{
	const struct stackmap_record *rec;
	struct stackmap_iter *iter = m->private;
	loff_t pos = *(loff_t *)v;
	u32 idx = pos - 1;

	if (pos < 1 || pos > iter->nr_slots)
		return 0;

	rec = stackmap_record(iter->map, idx);
	seq_printf(m, "stack_id %u [ref %lu, depth %u]\n", stackmap_id(iter->map, idx),
		   ftrace_stackmap_ref(iter->map, idx), rec->nr);
	for (unsigned int i = 0; i < rec->nr; i++)
		stackmap_show_frame(m, iter->tr, i, rec->ips[i]);
	seq_putc(m, '\n');
	return 0;
}

static void stackmap_bin_section(struct seq_file *m, u32 type, const void *data, u32 len)
{
	static const u8 zeroes[STACKMAP_BIN_ALIGN];
	struct stackmap_bin_section_header hdr = { .type = type, .len = len };

	seq_write(m, &hdr, sizeof(hdr));
	seq_write(m, data, len);
	seq_write(m, zeroes, ALIGN(len, STACKMAP_BIN_ALIGN) - len);
}

static int stackmap_build_id(u8 *build_id)
{
	return build_id_parse_buf(__start_notes, build_id, __stop_notes - __start_notes);
}

static void stackmap_bin_header(struct seq_file *m, const struct stackmap_iter *iter)
{
	struct stackmap_bin_header hdr = {
		.magic		= STACKMAP_BIN_MAGIC,
		.version	= STACKMAP_BIN_VERSION,
		.nr_stacks	= iter->nr_stacks,
		.nr_sections	= 2,
	};
	u8 build_id[BUILD_ID_SIZE_MAX];

	hdr.nr_sections += !stackmap_build_id(build_id);
	seq_write(m, &hdr, sizeof(hdr));
}

static void stackmap_bin_trailer(struct seq_file *m)
{
	const char *release = init_utsname()->release;
	u64 text = (unsigned long)_text;
	u8 build_id[BUILD_ID_SIZE_MAX];

	stackmap_bin_section(m, STACKMAP_BIN_TEXT, &text, sizeof(text));
	if (!stackmap_build_id(build_id))
		stackmap_bin_section(m, STACKMAP_BIN_BUILD_ID, build_id, BUILD_ID_SIZE_MAX);
	stackmap_bin_section(m, STACKMAP_BIN_RELEASE, release, strlen(release));
}

static void stackmap_bin_stack(struct seq_file *m, const struct stackmap_iter *iter, u32 idx)
{
	const struct stackmap_record *rec = stackmap_record(iter->map, idx);
	struct stackmap_bin_record bin = {
		.stack_id	= stackmap_id(iter->map, idx),
		.nr		= rec->nr,
		.ref_count	= min(ftrace_stackmap_ref(iter->map, idx), U32_MAX),
	};
	u64 ip;

	seq_write(m, &bin, sizeof(bin));
	for (unsigned int i = 0; i < rec->nr; i++) {
		ip = rec->ips[i];
		if (ip != FTRACE_TRAMPOLINE_MARKER)
			ip = trace_adjust_address(iter->tr, ip);
		seq_write(m, &ip, sizeof(ip));
	}
}

static int stackmap_bin_show(struct seq_file *m, void *v)
{
	struct stackmap_iter *iter = m->private;
	loff_t pos = *(loff_t *)v;

	if (!pos)
		stackmap_bin_header(m, iter);
	else if (pos <= iter->nr_slots)
		stackmap_bin_stack(m, iter, pos - 1);
	else
		stackmap_bin_trailer(m);
	return 0;
}

static const struct seq_operations stackmap_text_seq_ops = {
	.start		= stackmap_seq_start,
	.next		= stackmap_seq_next,
	.stop		= stackmap_seq_stop,
	.show		= stackmap_text_show,
};

static const struct seq_operations stackmap_bin_seq_ops = {
	.start		= stackmap_seq_start,
	.next		= stackmap_seq_next,
	.stop		= stackmap_seq_stop,
	.show		= stackmap_bin_show,
};

static int stackmap_open(struct inode *inode, struct file *file, const struct seq_operations *ops)
{
	struct trace_array *tr = inode->i_private;
	struct stackmap_iter *iter;
	int ret;

	ret = tracing_check_open_get_tr(tr);
	if (ret)
		return ret;

	iter = __seq_open_private(file, ops, sizeof(*iter));
	if (!iter) {
		trace_array_put(tr);
		return -ENOMEM;
	}
	iter->tr = tr;
	return 0;
}

static int stackmap_text_open(struct inode *inode, struct file *file)
{
	return stackmap_open(inode, file, &stackmap_text_seq_ops);
}

/* To seek is to begin again, with other stacks: what was read would not fit any more. */
static int stackmap_bin_open(struct inode *inode, struct file *file)
{
	int ret = stackmap_open(inode, file, &stackmap_bin_seq_ops);

	return ret ?: nonseekable_open(inode, file);
}

static int stackmap_release(struct inode *inode, struct file *file)
{
	trace_array_put(inode->i_private);
	return seq_release_private(inode, file);
}

static ssize_t stackmap_write(struct file *file, const char __user *ubuf, size_t cnt, loff_t *ppos)
{
	struct trace_array *tr = file_inode(file)->i_private;
	char buf[sizeof("reset\n")];
	int ret;

	if (cnt >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, ubuf, cnt))
		return -EFAULT;
	buf[cnt] = '\0';
	if (strlen(buf) != cnt || (!sysfs_streq(buf, "0") && !sysfs_streq(buf, "reset")))
		return -EINVAL;

	scoped_guard(mutex, &trace_types_lock)
		ret = ftrace_stackmap_reset(tr);
	if (ret)
		return ret;

	*ppos += cnt;
	return cnt;
}

static const struct file_operations stackmap_text_fops = {
	.open		= stackmap_text_open,
	.read		= seq_read,
	.write		= stackmap_write,
	.llseek		= seq_lseek,
	.release	= stackmap_release,
};

static const struct file_operations stackmap_bin_fops = {
	.open		= stackmap_bin_open,
	.read		= seq_read,
	.release	= stackmap_release,
};

struct stackmap_stat {
	unsigned int		entries;
	unsigned int		max_entries;
	unsigned int		nr_slots;
	unsigned int		gen;
	unsigned long		successes;
	unsigned long		drops[STACKMAP_NR_DROPS];
	size_t			memory;
};

static void stackmap_read_stat(struct trace_array *tr, struct stackmap_stat *st)
{
	unsigned int bits = READ_ONCE(stackmap_bits);
	struct ftrace_stackmap *map;

	guard(rcu)();
	map = rcu_dereference(tr->stackmap);
	if (!map) {
		st->max_entries = 1U << bits;
		st->nr_slots = stackmap_nr_slots(bits);
		st->gen = READ_ONCE(tr->stackmap_gen);
		return;
	}

	st->entries = atomic_read(&map->entries);
	st->max_entries = map->max_entries;
	st->nr_slots = map->nr_slots;
	st->gen = map->gen;
	st->successes = ftrace_stackmap_successes(map);
	for (int i = 0; i < STACKMAP_NR_DROPS; i++)
		st->drops[i] = ftrace_stackmap_drops(map, i);
	st->memory = stackmap_memory(map);
}

static int stackmap_stat_show(struct seq_file *m, void *v)
{
	struct stackmap_stat st = { };
	unsigned long drops = 0;
	u64 asked;

	stackmap_read_stat(m->private, &st);

	for (int i = 0; i < STACKMAP_NR_DROPS; i++)
		drops += st.drops[i];
	asked = (u64)st.successes + drops;

	seq_printf(m, "entries: %u / %u\n", st.entries, st.max_entries);
	seq_printf(m, "table_size: %u\n", st.nr_slots);
	seq_printf(m, "successes: %lu\n", st.successes);
	seq_printf(m, "drops: %lu\n", drops);
	seq_printf(m, "success_rate: %llu%%\n",
		   asked ? div64_u64((u64)st.successes * 100, asked) : 100);
	seq_printf(m, "generation: %u\n", st.gen & STACKMAP_GEN_MASK);
	seq_printf(m, "memory: %zu\n", st.memory);
	for (int i = 0; i < STACKMAP_NR_DROPS; i++)
		seq_printf(m, "drops_%s: %lu\n", stackmap_drop_names[i], st.drops[i]);
	return 0;
}

static int stackmap_stat_open(struct inode *inode, struct file *file)
{
	struct trace_array *tr = inode->i_private;
	int ret;

	ret = tracing_check_open_get_tr(tr);
	if (ret)
		return ret;

	ret = single_open(file, stackmap_stat_show, tr);
	if (ret)
		trace_array_put(tr);
	return ret;
}

static int stackmap_stat_release(struct inode *inode, struct file *file)
{
	trace_array_put(inode->i_private);
	return single_release(inode, file);
}

static const struct file_operations stackmap_stat_fops = {
	.open		= stackmap_stat_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= stackmap_stat_release,
};

/**
 * ftrace_stackmap_create_files - create the files of an instance's stack map
 * @tr: the instance
 * @dir: its directory in tracefs
 *
 * Context: may sleep.
 */
void ftrace_stackmap_create_files(struct trace_array *tr, struct dentry *dir)
{
	trace_create_file("stack_map", TRACE_MODE_WRITE, dir, tr, &stackmap_text_fops);
	trace_create_file("stack_map_stat", TRACE_MODE_READ, dir, tr, &stackmap_stat_fops);
	trace_create_file("stack_map_bin", TRACE_MODE_READ, dir, tr, &stackmap_bin_fops);
}

/* On the command line any number will do, so that a typo does not cost the trace. */
static int stackmap_bits_boot(long bits)
{
	stackmap_bits = clamp(bits, STACKMAP_BITS_MIN, STACKMAP_BITS_MAX);
	if (stackmap_bits != bits)
		pr_warn("bits is out of range, using %u\n", stackmap_bits);
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

	WRITE_ONCE(stackmap_bits, bits);
	return 0;
}

static const struct kernel_param_ops stackmap_bits_ops = {
	.set		= stackmap_bits_set,
	.get		= param_get_uint,
};

module_param_cb(bits, &stackmap_bits_ops, &stackmap_bits, 0644);
MODULE_PARM_DESC(bits, "log2 of the number of stacks that a stack map holds, 10 to 18");
