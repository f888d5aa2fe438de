// SPDX-License-Identifier: GPL-2.0
/* For scripts/test-restore, which puts functions of the kernel into parts.c: damages maps. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/align.h>
#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/kconfig.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/overflow.h>

typedef struct { long n; } local_t;
typedef struct { u64 key[2]; } hsiphash_key_t;

#define __percpu
#define __counted_by(member)
#define ____cacheline_aligned		__aligned(64)
#define ____cacheline_aligned_in_smp	____cacheline_aligned
#define VISIBLE_IF_KUNIT		static
#define BUILD_ID_SIZE_MAX		20
#define sizeof_field(type, member)	sizeof(((type *)0)->member)
#define struct_size_t(type, member, n)	struct_size((type *)0, member, n)
#define flex_array_size(p, member, n)	((n) * sizeof(*(p)->member))
#define raw_smp_processor_id()		0
#define atomic_long_set(v, i)		((v)->counter = (i))
#define atomic_add(i, v)		((v)->counter += (i))
#define atomic_dec(v)			((v)->counter--)
#define atomic_inc_return(v)		(++(v)->counter)
#define atomic_fetch_add(i, v)		__sync_fetch_and_add(&(v)->counter, i)
#define cmpxchg_release(p, old, new)	__sync_val_compare_and_swap(p, old, new)

static u32 rnd(u32 n)
{
	static u64 state;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 32) % n;
}

static void get_random_bytes(void *p, size_t size)
{
	while (size--)
		((u8 *)p)[size] = rnd(256);
}

static u32 hsiphash(const void *p, size_t size, const hsiphash_key_t *key)
{
	u64 hash = key->key[0];

	while (size--)
		hash = (hash ^ ((const u8 *)p)[size]) * 0x100000001b3ULL;
	return (hash ^ hash >> 29 ^ key->key[1]) * 0xbf58476d1ce4e5b9ULL >> 32;
}

#include "parts.c"

#define BITS	STACKMAP_BITS_MIN
#define FILES	20
#define DEPTH	60

static int store(struct ftrace_stackmap *map, struct stackmap_key key, unsigned int more)
{
	key.idx = -ENOENT;
	if (!stackmap_hash_find(map, &key) && key.idx < 0) {
		key.more = more;
		stackmap_insert(map, &key);
	}
	return key.idx;
}

static void fill(struct ftrace_stackmap *map)
{
	unsigned long words[DEPTH], file[FILES], nr;
	struct user_file *f = (void *)words;

	memset(map, 0, stackmap_size(BITS));
	stackmap_init(map, BITS, 5 << STACKMAP_SLOT_BITS);
	map->persistent = true;
	for (int i = 0; i < FILES; i++) {
		memset(words, 0, sizeof(words));
		f->key.ino = i;
		f->id_size = i % 3 ? BUILD_ID_SIZE_MAX : 0;
		memset(f->path, 'a' + i, 10 * i);
		nr = DIV_ROUND_UP(sizeof(*f) + 10 * i + 1, sizeof(long));
		f->check = user_file_hash(map, f, nr, f->id_size);
		file[i] = store(map, (struct stackmap_key) { words, USER_FILE_KEY, .file = true },
				nr - USER_FILE_KEY);
	}
	for (int i = 0; i < 700; i++) {
		struct stackmap_key key = { words, 1 + rnd(DEPTH), .user = i % 3 == 0 };

		for (unsigned int j = 0; j < key.nr; j++) {
			/* A program can forge any number. */
			nr = rnd(100) ? file[rnd(FILES)] : rnd(USER_WORD_NR);
			words[j] = rnd(100000);
			if (key.user && rnd(2))
				words[j] |= 1UL << 63 | nr << USER_WORD_OFFSET_BITS;
		}
		store(map, key, 0);
	}
}

/* Anything in the header but what is proven, and in some words of the slots or of all. */
static void damage(struct ftrace_stackmap *map)
{
	u32 range = map->nr_slots + rnd(2) * map->arena_units * STACKMAP_UNIT / sizeof(u32);
	u32 mask = map->offset_mask, first_id = map->first_id, *word;
	hsiphash_key_t key = map->hash_key;

	get_random_bytes(map, offsetof(struct ftrace_stackmap, slots));
	map->first_id = first_id;
	map->hash_key = key;
	for (u32 i = 1U << rnd(16); i; i--) {
		word = &map->slots[rnd(range)];
		switch (rnd(4)) {
		case 0:
			*word = rnd(UINT_MAX);
			break;
		case 1:
			*word ^= 1U << rnd(32);
			break;
		case 2:
			*word = (*word & ~mask) | rnd(mask + 1);
			break;
		default:
			*word = map->slots[rnd(range)];
		}
	}
}

/* Is a record what was stored? How often a file was asked is not proven. */
static bool same(struct stackmap_record *rec, const struct stackmap_record *had)
{
	if (!had || rec->nr != had->nr || rec->user != had->user || rec->file != had->file)
		return false;
	if (rec->file)
		user_file_of(rec)->asked = user_file_of(had)->asked;
	return !memcmp(rec->ips, had->ips, flex_array_size(rec, ips, rec->nr));
}

int main(int argc, char **argv)
{
	struct ftrace_stackmap *left, *map = aligned_alloc(64, ALIGN(stackmap_size(BITS), 64));
	size_t found = 0, cleared = 0, wrong = 0;
	struct stackmap_record *rec;

	for (int round = 0; round < atoi(argv[argc - 1]); round++) {
		if (round % 100 == 0)
			fill(map);
		/* Nothing is behind it. */
		if (posix_memalign((void **)&left, 64, stackmap_size(BITS)))
			abort();
		memcpy(left, map, stackmap_size(BITS));
		damage(left);
		cleared += stackmap_restore(left, BITS);
		for (u32 i = 0; i < left->nr_slots; i++) {
			rec = stackmap_record(left, i);
			found += !!rec;
			wrong += rec && !same(rec, stackmap_record(map, i));
		}
		free(left);
	}
	free(map);
	printf("%zu records found, %zu cleared, %zu wrong\n", found, cleared, wrong);
	return wrong || !found || !cleared;
}
