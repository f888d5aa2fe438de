// SPDX-License-Identifier: GPL-2.0
/*
 * Stack map - stores each distinct stack once.
 *
 * A lock-free hash table that is read and written from any context, NMI
 * included. It knows nothing of events and files. trace_stackmap.h has the
 * design.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <kunit/visibility.h>

#include "trace_stackmap.h"

/* The arena has room for the stacks of a full map if they are this deep on average. */
#define STACKMAP_MEAN_DEPTH	24

/* The least of arena space that is kept ahead, in units: half of the smallest map. */
#define STACKMAP_HEADROOM	(stackmap_arena_units(STACKMAP_BITS_MIN) / 2)

/* A word of the cache: a slot index above a count. It fits the 32 bits of a small long. */
#define STACKMAP_COUNT_BITS	(32 - STACKMAP_SLOT_BITS)
#define STACKMAP_COUNT_MASK	((1UL << STACKMAP_COUNT_BITS) - 1)

/* Units for 2^@bits stacks, unit 0 included. */
static u32 stackmap_arena_units(unsigned int bits)
{
	return stackmap_units(STACKMAP_MEAN_DEPTH) << bits;
}

/* Bijective in either argument. The rotation mixes the high bits into the low ones. */
static unsigned long stackmap_mix(unsigned long hash, unsigned long ip)
{
	hash = (hash << (BITS_PER_LONG / 2)) | (hash >> (BITS_PER_LONG / 2));
	return (hash ^ ip) * GOLDEN_RATIO_PRIME;
}

/*
 * Number of frames up to the first one in the entry code, or all. Two frames must
 * follow a split, the instruction that was hit and its caller.
 */
static unsigned int stackmap_first_nr(const struct ftrace_stackmap *map, const unsigned long *ips,
				      unsigned int nr)
{
	for (unsigned int i = 0; i + 2 < nr; i++) {
		if (ips[i] - map->entry_start < map->entry_size)
			return i + 1;
	}
	return nr;
}

/*
 * jhash2() takes several times as long. This hash only has to spread the stacks,
 * since they are compared. It has two chains because a CPU can work on both at
 * once.
 */
static u32 stackmap_hash(const unsigned long *ips, unsigned int nr)
{
	unsigned long chain = 0, other = 0, mixed;

	for (unsigned int i = 0; i < nr; i++) {
		mixed = stackmap_mix(chain, ips[i]);
		chain = other;
		other = mixed;
	}

	mixed = stackmap_mix(chain + nr, other);
	return mixed ^ (mixed >> (BITS_PER_LONG / 2));
}

static bool stackmap_same(const struct stackmap_record *rec, const struct stackmap_part *part)
{
	if (rec->nr != part->nr || rec->user != part->user)
		return false;

	for (unsigned int i = 0; i < part->nr; i++) {
		if (rec->ips[i] != part->ips[i])
			return false;
	}
	return true;
}

/* Bits of the hash, as a slot has them above the offset. */
static u32 stackmap_tag(const struct ftrace_stackmap *map, u32 hash_or_slot)
{
	return hash_or_slot & ~map->offset_mask;
}

/*
 * Look @part up. Returns its slot and sets @part->idx if it is in the map, else
 * the empty slot where it belongs, or NULL where that is too far away.
 */
VISIBLE_IF_KUNIT u32 *stackmap_probe(struct ftrace_stackmap *map, struct stackmap_part *part)
{
	u32 tag = stackmap_tag(map, part->hash);
	u32 idx, slot;

	for (u32 probe = 0; probe < STACKMAP_PROBES; probe++) {
		idx = (part->hash + probe) & (map->nr_slots - 1);
		/* stackmap_probe:A, pairs with stackmap_insert:A */
		slot = READ_ONCE(map->slots[idx]);
		if (!slot)
			return &map->slots[idx];
		if (stackmap_tag(map, slot) != tag)
			continue;
		if (stackmap_same(stackmap_record_at(map, slot), part)) {
			part->idx = idx;
			return &map->slots[idx];
		}
	}
	return NULL;
}

/* The word of the cache for a stack. A sample of its frames is enough to spread the stacks. */
static local_t *stackmap_word(struct stackmap_cpu *cpu, const unsigned long *ips, unsigned int nr)
{
	unsigned long sample = ips[0] + 3 * ips[nr / 4] + 5 * ips[nr / 2] + 9 * ips[3 * nr / 4];

	return &cpu->cache[hash_long(sample + nr, STACKMAP_CACHE_BITS)];
}

/* Look @part up among the stacks that this CPU had last. */
static bool stackmap_recall(struct ftrace_stackmap *map, struct stackmap_part *part)
{
	struct stackmap_cpu *cpu = this_cpu_ptr(map->cpu);
	unsigned long used = local_read(stackmap_word(cpu, part->ips, part->nr));
	u32 idx = used >> STACKMAP_COUNT_BITS;

	if (!used || !stackmap_same(stackmap_record(map, idx), part))
		return false;

	part->idx = idx;
	return true;
}

/* Is there room for one more stack of @nr frames? Returns 0 or the drop. */
static int stackmap_check_room(struct ftrace_stackmap *map, unsigned int nr)
{
	u32 end = atomic_read(&map->tail) + stackmap_units(nr);
	u32 entries = atomic_read(&map->entries);

	if (end > READ_ONCE(map->low_water) || entries >= READ_ONCE(map->high_entries))
		irq_work_queue(&map->low);

	if (entries >= map->max_entries)
		return STACKMAP_DROP_ENTRIES;

	return end > READ_ONCE(map->arena_units) ? STACKMAP_DROP_ARENA : 0;
}

/* Look @part up that this CPU does not remember. Returns 0 or the drop. */
static int stackmap_find(struct ftrace_stackmap *map, struct stackmap_part *part)
{
	part->hash = stackmap_hash(part->ips, part->nr);
	if (!stackmap_probe(map, part))
		return STACKMAP_DROP_PROBES;

	return part->idx < 0 ? stackmap_check_room(map, part->nr) : 0;
}

/**
 * ftrace_stackmap_find - look up the first part of a kernel stack
 * @map: the map, from ftrace_stackmap_active()
 * @ips: the frames, innermost first
 * @nr: number of frames
 * @part: filled in; @part->nr is less than @nr if the stack is split
 *
 * Writes nothing to the map, so that it can be called before an event is
 * reserved.
 *
 * Context: any, with preemption off since the map was obtained.
 * Return: 0, or the drop to count if the part is not in the map and can't be.
 */
int ftrace_stackmap_find(struct ftrace_stackmap *map, const unsigned long *ips, unsigned int nr,
			 struct stackmap_part *part)
{
	part->ips = ips;
	part->nr = nr;
	part->user = false;
	part->idx = -ENOENT;

	if (!nr)
		return STACKMAP_DROP_EMPTY;

	if (stackmap_recall(map, part))
		return 0;

	part->nr = stackmap_first_nr(map, ips, nr);
	if (part->nr < nr && stackmap_recall(map, part))
		return 0;

	return stackmap_find(map, part);
}

/**
 * ftrace_stackmap_find_user - look up a user stack
 * @map: the map, from ftrace_stackmap_active()
 * @ips: the frames, innermost first
 * @nr: number of frames
 * @part: filled in
 *
 * Context: any, with preemption off since the map was obtained.
 * Return: 0, or the drop to count if the stack is not in the map and can't be.
 */
int ftrace_stackmap_find_user(struct ftrace_stackmap *map, const unsigned long *ips,
			      unsigned int nr, struct stackmap_part *part)
{
	part->ips = ips;
	part->nr = nr;
	part->user = true;
	part->idx = -ENOENT;

	if (!nr)
		return STACKMAP_DROP_EMPTY;

	return stackmap_recall(map, part) ? 0 : stackmap_find(map, part);
}

/*
 * Take a place among the entries, and arena space. A record that is not
 * published gives back its place, not its space: that would let a record appear
 * below the tail that stackmap_latch() has read.
 */
static int stackmap_reserve(struct ftrace_stackmap *map, unsigned int nr, u32 *offset)
{
	u32 units = stackmap_units(nr);

	if (atomic_inc_return(&map->entries) > map->max_entries) {
		atomic_dec(&map->entries);
		return STACKMAP_DROP_ENTRIES;
	}

	*offset = atomic_fetch_add(units, &map->tail);
	/* stackmap_reserve:A, pairs with stackmap_add_page:A */
	if (*offset + units > smp_load_acquire(&map->arena_units)) {
		atomic_dec(&map->entries);
		return STACKMAP_DROP_ARENA;
	}
	return 0;
}

/* Store @part unless it is there by now, and set @part->idx. Returns 0 or the drop. */
static noinline int stackmap_insert(struct ftrace_stackmap *map, struct stackmap_part *part)
{
	u32 offset = 0, *slot;
	int drop;

	/* Each repetition means that another context has filled a slot. */
	while ((slot = stackmap_probe(map, part)) && part->idx < 0) {
		if (!offset) {
			drop = stackmap_reserve(map, part->nr, &offset);
			if (drop)
				return drop;
			stackmap_fill(stackmap_record_at(map, offset), part->ips, part->nr,
				      part->user);
		}

		/* stackmap_insert:A, pairs with stackmap_probe:A and stackmap_record:A */
		if (!cmpxchg_release(slot, 0, stackmap_tag(map, part->hash) | offset)) {
			part->idx = slot - map->slots;
			return 0;
		}
	}

	if (offset)
		atomic_dec(&map->entries);
	return slot ? 0 : STACKMAP_DROP_PROBES;
}

/* One more reference to the stack of @part, in this CPU's cache. */
static void stackmap_add_ref(struct ftrace_stackmap *map, const struct stackmap_part *part)
{
	local_t *word = stackmap_word(this_cpu_ptr(map->cpu), part->ips, part->nr);
	unsigned long old = local_read(word);

	if (old >> STACKMAP_COUNT_BITS == part->idx &&
	    (old & STACKMAP_COUNT_MASK) < STACKMAP_COUNT_MASK &&
	    local_cmpxchg(word, old, old + 1) == old)
		return;

	/* Another stack has the word, the count is full, or an interrupt changed it. */
	old = local_xchg(word, ((unsigned long)part->idx << STACKMAP_COUNT_BITS) + 1);
	if (old)
		atomic_long_add(old & STACKMAP_COUNT_MASK,
				&stackmap_record(map, old >> STACKMAP_COUNT_BITS)->ref);
}

/**
 * ftrace_stackmap_insert - store those parts of a stack that are not in the map
 * @map: the map
 * @parts: the parts, from ftrace_stackmap_find(); @idx is set in those that were new
 * @nr: number of parts
 *
 * Takes no lock, waits for no other context and ends after a bounded number of
 * steps. The parts get no references.
 *
 * Context: any, with preemption off since the map was obtained.
 * Return: 0, or the drop to count.
 */
int ftrace_stackmap_insert(struct ftrace_stackmap *map, struct stackmap_part *parts,
			   unsigned int nr)
{
	int drop = 0;

	for (unsigned int i = 0; !drop && i < nr; i++) {
		if (parts[i].idx < 0)
			drop = stackmap_insert(map, &parts[i]);
	}
	return drop;
}

/**
 * ftrace_stackmap_store - store the parts of a stack and count them
 * @map: the map
 * @parts: the parts, from ftrace_stackmap_find(); @idx is set in those that were new
 * @nr: number of parts
 *
 * All parts are referenced, or none: one that was stored before another one
 * failed stays without references.
 *
 * Context: any, with preemption off since the map was obtained.
 * Return: 0, or the drop to count.
 */
int ftrace_stackmap_store(struct ftrace_stackmap *map, struct stackmap_part *parts,
			  unsigned int nr)
{
	struct stackmap_cpu *cpu = this_cpu_ptr(map->cpu);
	int drop;

	drop = ftrace_stackmap_insert(map, parts, nr);
	if (drop)
		return drop;

	for (unsigned int i = 0; i < nr; i++)
		stackmap_add_ref(map, &parts[i]);
	local_add(nr, &cpu->counts[STACKMAP_PARTS]);
	if (nr > 1)
		local_inc(&cpu->counts[STACKMAP_SPLIT]);
	local_inc(&cpu->counts[STACKMAP_SUCCESSES]);
	return 0;
}

/**
 * ftrace_stackmap_count - count a stack that was recorded in full
 * @map: the map
 * @what: why the map did not take it
 *
 * Context: any, with preemption off since the map was obtained.
 */
void ftrace_stackmap_count(struct ftrace_stackmap *map, enum stackmap_count what)
{
	local_inc(&this_cpu_ptr(map->cpu)->counts[what]);
}

/**
 * ftrace_stackmap_sum - a count of all CPUs
 * @map: the map
 * @what: which one
 *
 * Context: any, while the map can't be freed.
 * Return: the sum, exact while nobody records.
 */
unsigned long ftrace_stackmap_sum(const struct ftrace_stackmap *map, enum stackmap_count what)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += local_read(&per_cpu_ptr(map->cpu, cpu)->counts[what]);
	return sum;
}

/**
 * ftrace_stackmap_total - a count since the last reset
 * @map: the map
 * @what: which one
 *
 * Context: any, while the map can't be freed.
 * Return: the sum over all CPUs, of this map and those before it.
 */
unsigned long ftrace_stackmap_total(const struct ftrace_stackmap *map, enum stackmap_count what)
{
	unsigned long total = map->before[what] + ftrace_stackmap_sum(map, what);

	return map->prev ? total + ftrace_stackmap_sum(map->prev, what) : total;
}

/**
 * ftrace_stackmap_ref - the references to a stack
 * @map: the map
 * @idx: index of its slot, which is in use
 *
 * Context: any, while the map can't be freed.
 * Return: their number, exact while nobody records.
 */
unsigned long ftrace_stackmap_ref(const struct ftrace_stackmap *map, u32 idx)
{
	const struct stackmap_record *rec = stackmap_record(map, idx);
	unsigned long word, ref = atomic_long_read(&rec->ref);
	int cpu;

	for_each_possible_cpu(cpu) {
		word = local_read(stackmap_word(per_cpu_ptr(map->cpu, cpu), rec->ips, rec->nr));
		if (word >> STACKMAP_COUNT_BITS == idx)
			ref += word & STACKMAP_COUNT_MASK;
	}
	return ref;
}

/* Arena space to keep ahead of the inserts. */
static u32 stackmap_headroom(u32 tail)
{
	return max(STACKMAP_HEADROOM, tail / 4);
}

static size_t stackmap_arena_size(u32 units)
{
	return PAGE_ALIGN(array_size(units, STACKMAP_UNIT));
}

/* Bytes of @map alone. */
static size_t stackmap_size(const struct ftrace_stackmap *map)
{
	return sizeof(*map) + array_size(map->nr_slots, sizeof(*map->slots)) +
	       stackmap_arena_size(READ_ONCE(map->arena_units)) +
	       array_size(num_possible_cpus(), sizeof(*map->cpu));
}

/**
 * ftrace_stackmap_memory - memory that a map takes, with what it has of older maps
 * @map: the map
 *
 * Context: any, while the map can't be freed.
 * Return: bytes.
 */
size_t ftrace_stackmap_memory(const struct ftrace_stackmap *map)
{
	size_t size = stackmap_size(map);

	if (map->prev)
		size += stackmap_size(map->prev);
	return map->kept ? size + map->kept->used : size;
}

/* Add a page to the arena. */
static int stackmap_add_page(struct ftrace_stackmap *map)
{
	size_t size = stackmap_arena_size(map->arena_units);
	unsigned long addr = (unsigned long)map->arena + size;
	struct page *page;
	u32 units;
	int ret;

	page = alloc_page(GFP_KERNEL | __GFP_HIGHMEM | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!page)
		return -ENOMEM;

	ret = vm_area_map_pages(map->area, addr, addr + PAGE_SIZE, &page);
	if (ret) {
		__free_page(page);
		return ret;
	}

	list_add(&page->lru, &map->pages);
	units = (size + PAGE_SIZE) / STACKMAP_UNIT;
	/* stackmap_add_page:A, pairs with stackmap_reserve:A */
	smp_store_release(&map->arena_units, min(units, map->arena_limit));
	return 0;
}

/* Let the arena have twice the headroom behind @tail. */
static int stackmap_grow(struct ftrace_stackmap *map, u32 tail)
{
	u32 units = min(tail + 2 * stackmap_headroom(tail), map->arena_limit);
	int ret = 0;

	while (!ret && map->arena_units < units)
		ret = stackmap_add_page(map);
	return ret;
}

/* What a map takes before it is replaced. The rest is for the time that this takes. */
static u32 stackmap_most(u32 all)
{
	return all - all / 4;
}

/* Say which inserts queue the work: those that leave half of the headroom, or fill the map. */
static void stackmap_set_marks(struct ftrace_stackmap *map, u32 tail)
{
	u32 low_water = U32_MAX, high_entries = U32_MAX;

	if (map->rotate) {
		low_water = stackmap_most(map->arena_limit);
		high_entries = stackmap_most(map->max_entries);
	}
	if (map->arena_units < map->arena_limit)
		low_water = tail + stackmap_headroom(tail);

	WRITE_ONCE(map->low_water, low_water);
	WRITE_ONCE(map->high_entries, high_entries);
}

static bool stackmap_nearly_full(const struct ftrace_stackmap *map)
{
	return atomic_read(&map->entries) >= stackmap_most(map->max_entries) ||
	       atomic_read(&map->tail) >= stackmap_most(map->arena_limit);
}

static void stackmap_work(struct work_struct *work)
{
	struct ftrace_stackmap *map = container_of(to_delayed_work(work), struct ftrace_stackmap,
						   work);
	unsigned long backoff = 0;
	int ret = 0, grown;
	u32 tail;

	if (map->rotate && stackmap_nearly_full(map)) {
		ret = map->rotate(map);
		/* Nobody inserts into this map any more. */
		if (!ret)
			return;
	}

	tail = atomic_read(&map->tail);
	grown = stackmap_grow(map, tail);
	if (grown || ret)
		backoff = !grown && ret == -EAGAIN ? 1 : HZ;
	WRITE_ONCE(map->backoff, backoff);
	stackmap_set_marks(map, tail);
	/* After a failure, the next insert asks again. */
	if (backoff)
		WRITE_ONCE(map->low_water, 0);
}

/* An insert may happen in the scheduler or in an NMI, and can't queue a work. */
static void stackmap_low_irq(struct irq_work *low)
{
	struct ftrace_stackmap *map = container_of(low, struct ftrace_stackmap, low);

	/* Too early during boot. */
	if (!system_dfl_wq)
		return;

	/* Not again before the work has run. */
	WRITE_ONCE(map->low_water, U32_MAX);
	WRITE_ONCE(map->high_entries, U32_MAX);
	queue_delayed_work(system_dfl_wq, &map->work, READ_ONCE(map->backoff));
}

/**
 * ftrace_stackmap_set_rotate - have a map replaced when it is nearly full
 * @map: the map, not published yet
 * @tr: its instance
 * @rotate: called from a work. It returns 0 if @map is not the current one any
 *	more. After -EAGAIN it is called again soon, after any other error later.
 *
 * Context: any.
 */
void ftrace_stackmap_set_rotate(struct ftrace_stackmap *map, struct trace_array *tr,
				int (*rotate)(struct ftrace_stackmap *map))
{
	map->tr = tr;
	map->rotate = rotate;
	stackmap_set_marks(map, atomic_read(&map->tail));
}

static void stackmap_free_memory(struct ftrace_stackmap *map)
{
	struct page *page, *next;

	free_percpu(map->cpu);
	if (map->area)
		free_vm_area(map->area);
	list_for_each_entry_safe(page, next, &map->pages, lru)
		__free_page(page);
	vfree(map->slots);
	kfree(map);
}

/**
 * ftrace_stackmap_alloc - allocate an empty map
 * @bits: log2 of the number of stacks, STACKMAP_BITS_MIN to STACKMAP_BITS_MAX
 * @gen: its generation
 * @whole: allocate the whole arena, because there are no workqueues yet
 *
 * The map does not split stacks unless the caller sets @entry_start and @entry_size.
 *
 * Context: may sleep.
 * Return: the map, or NULL when there is not enough memory.
 */
struct ftrace_stackmap *ftrace_stackmap_alloc(unsigned int bits, u32 gen, bool whole)
{
	struct ftrace_stackmap *map;

	map = kzalloc_obj(*map);
	if (!map)
		return NULL;

	INIT_LIST_HEAD(&map->pages);
	map->low = IRQ_WORK_INIT_HARD(stackmap_low_irq);
	INIT_DELAYED_WORK(&map->work, stackmap_work);

	map->gen = gen;
	map->max_entries = 1U << bits;
	map->nr_slots = 2U << bits;
	map->arena_limit = stackmap_arena_units(bits);
	map->offset_mask = roundup_pow_of_two(map->arena_limit) - 1;
	atomic_set(&map->tail, 1);

	map->slots = vcalloc(map->nr_slots, sizeof(*map->slots));
	map->area = get_vm_area(stackmap_arena_size(map->arena_limit), VM_SPARSE);
	map->cpu = alloc_percpu(struct stackmap_cpu);
	if (!map->slots || !map->area || !map->cpu)
		goto fail;

	map->arena = map->area->addr;
	if (stackmap_grow(map, whole ? map->arena_limit : 0))
		goto fail;

	stackmap_set_marks(map, 0);
	return map;

 fail:
	stackmap_free_memory(map);
	return NULL;
}

/**
 * ftrace_stackmap_free - free a map, with what it has of older maps
 * @map: a map without users
 *
 * Context: may sleep.
 */
void ftrace_stackmap_free(struct ftrace_stackmap *map)
{
	irq_work_sync(&map->low);
	cancel_delayed_work_sync(&map->work);
	if (map->prev)
		ftrace_stackmap_free(map->prev);
	kvfree(map->kept);
	stackmap_free_memory(map);
}
