// SPDX-License-Identifier: GPL-2.0
/*
 * What the stacks of a trace consist of: ids, which definitions or a map tell, or frames in full. A
 * stack is a number in a pool. It is resolved as late as possible, because a definition may come
 * behind the first use, and some are in the map only.
 */
#include "stackmap.h"

/* {flags, epoch, address, id, address, id...} or {flags, epoch, 0, content} */
enum { STACK_USER = 1, STACK_FRAMES = 2 };

#define OF_USER		0x100000000ULL	/* in the first word of the key of an id */

/* An id as long as it means one stack. */
struct ref {
	u32	instance;
	u32	content;	/* 0: not defined so far */
	bool	from_map;	/* files have our numbers */
	bool	in_full;	/* without an id: there are no files */
};

static u64 *ref_of_id(struct stacks *k, u32 in, bool user, u32 id)
{
	return &pool_find(&k->ids, in | (user ? OF_USER : 0), id)->value;
}

static struct ref *new_ref(struct stacks *k, u32 in, u64 *nr)
{
	struct ref *ref = APPEND(k->refs, k->nr_refs);

	*ref = (struct ref) { .instance = in };
	*nr = k->nr_refs;
	return ref;
}

static struct ref *get_ref(struct stacks *k, u32 in, bool user, u32 id)
{
	u64 *nr = ref_of_id(k, in, user, id);

	return *nr ? &k->refs[*nr - 1] : new_ref(k, in, nr);
}

/* A definition goes before the map. Returns false if the id was another stack before. */
bool define_stack(struct stacks *k, u32 in, bool user, u32 id, u32 content, bool from_map)
{
	struct ref *ref = get_ref(k, in, user, id);
	bool defined = ref->content && !ref->from_map;
	bool same = !defined || ref->content == content;

	if (from_map && defined)
		return same;
	/* A generation is used again after some thousand others. */
	if (!same)
		ref = new_ref(k, in, ref_of_id(k, in, user, id));
	ref->content = content;
	ref->from_map = from_map;
	return same;
}

/* What no event defines. Returns how many ids are other stacks in the map than in the events. */
size_t use_map(struct stacks *k, const struct map *m, u32 in)
{
	size_t differ = 0, i;
	const struct stack *s;
	u32 content;

	for (i = 1; i <= m->numbers.nr; i++) {
		if (m->numbers.list[i].value)
			pool_find(&k->objects, in, *pool_words(&m->numbers, i))->value =
				m->numbers.list[i].value;
	}
	for (s = m->stacks; s != stacks_end(m); s++) {
		content = pool_add(&k->contents, m->ips + s->first, s->nr);
		differ += !define_stack(k, in, s->user, s->id, content, true) && !s->user;
	}
	return differ;
}

u32 stack_of_ids(struct stacks *k, u32 in, bool user, u64 epoch, const struct stack_ids *ids)
{
	u64 w[2 + 2 * MAX_PARTS] = { user ? STACK_USER : 0, epoch };
	u32 i, nr = 2;

	for (i = 0; i < ids->nr; i++) {
		w[nr++] = ids->ip[i];
		w[nr++] = get_ref(k, in, user, ids->id[i]) - k->refs;
	}
	return pool_add(&k->stacks, w, nr);
}

u32 stack_of_frames(struct stacks *k, bool user, u64 epoch, const u64 *ips, u32 nr)
{
	const u64 w[] = {
		STACK_FRAMES | (user ? STACK_USER : 0), epoch, 0, pool_add(&k->contents, ips, nr),
	};

	return pool_add(&k->stacks, w, ARRAY_SIZE(w));
}

/* The kernel's number of a file, or an address. */
static u64 user_word(struct stacks *k, const struct ref *ref, u64 epoch, u64 word, bool exact)
{
	u64 object = ref->in_full ? 0 : word_object(word);

	if (!object)
		return place_word(k->users, epoch, word, exact);
	object = pool_find(&k->objects, ref->instance, object)->value;
	return make_word(object, word & OFFSET_MASK);
}

/*
 * @s: the stack; @ip: what an interrupt has hit, before the part, or 0. False if the id is not
 * defined. What is from a map was translated before.
 */
static bool add_part(struct stacks *k, const u64 *s, u64 ip, const struct ref *ref,
		     struct words *w)
{
	size_t i, first;

	if (!ref->content)
		return false;
	if (ip) {
		w->hits |= w->nr < 64 ? 1ULL << w->nr : 0;
		add_word(w, s[0] & STACK_USER ? user_word(k, ref, s[1], ip, true) : ip);
	}
	first = w->nr;
	add_words(w, pool_words(&k->contents, ref->content), k->contents.list[ref->content].nr);
	for (i = first; s[0] & STACK_USER && i < w->nr; i++) {
		if (!ref->from_map || !word_object(w->w[i]))
			w->w[i] = user_word(k, ref, s[1], w->w[i], !ip && i == first);
	}
	return true;
}

/* Adds the frames to @w; false and none if an id is not defined. */
bool resolve_stack(struct stacks *k, u32 stack, struct words *w)
{
	const u64 *s = pool_words(&k->stacks, stack);
	const struct ref in_full = { .content = s[3], .in_full = true };
	u32 i, nr = k->stacks.list[stack].nr;
	const struct words before = *w;

	for (i = 2; i < nr; i += 2) {
		if (add_part(k, s, s[i], s[0] & STACK_FRAMES ? &in_full : &k->refs[s[i + 1]], w))
			continue;
		w->nr = before.nr;
		w->hits = before.hits;
		return false;
	}
	return true;
}

void stacks_free(struct stacks *k)
{
	pool_free(&k->ids);
	pool_free(&k->contents);
	pool_free(&k->objects);
	pool_free(&k->stacks);
	free(k->refs);
}
