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
#define AMBIGUOUS	0x100000000ULL	/* for the number of an object: the id was two files */

/* An id as long as it means one stack. A definition goes before the map. */
struct ref {
	u32	instance;
	u32	id;
	u32	content;	/* 0: not defined so far */
	u32	in_map;		/* 0: the map lacks it; files have our numbers */
	u32	stack;		/* that it is alone, 0: none so far */
	bool	in_full;	/* without an id: there are no files */
};

static u64 *ref_of_id(struct ids *k, u32 in, bool user, u32 id)
{
	return &pool_find(&k->by_id, in | (user ? OF_USER : 0), id)->value;
}

static struct ref *new_ref(struct ids *k, u32 in, u32 id, u32 in_map, u64 *nr)
{
	struct ref *ref = APPEND(k->refs, k->nr_refs);

	*ref = (struct ref) { .instance = in, .id = id, .in_map = in_map };
	*nr = k->nr_refs;
	return ref;
}

static struct ref *get_ref(struct ids *k, u32 in, bool user, u32 id)
{
	u64 *nr = ref_of_id(k, in, user, id);

	return *nr ? &k->refs[*nr - 1] : new_ref(k, in, id, 0, nr);
}

/* Returns false if the id was another stack before. */
bool define_id(struct ids *k, u32 in, bool user, u32 id, u32 content)
{
	struct ref *ref = get_ref(k, in, user, id);
	bool same = !ref->content || ref->content == content;

	/* A generation is used again after some thousand others. The map has the last one. */
	if (!same)
		ref = new_ref(k, in, id, ref->in_map, ref_of_id(k, in, user, id));
	ref->content = content;
	return same;
}

/*
 * A file may be defined again with its build id, or by another CPU without it. An id of two files,
 * of generations some thousand apart or of two instances, is none: which one is meant is not known.
 */
void define_file(struct ids *k, u32 in, u32 id, u32 object)
{
	u64 *value = &pool_find(&k->objects, in, id)->value;
	const struct object *old = object_at(k->users, *value);
	const struct object *new = object_at(k->users, object);

	if (*value == AMBIGUOUS || !new)
		return;
	if (old && (strcmp(old->file, new->file) ||
		    (old->id.len && new->id.len && !same_id(&old->id, &new->id))))
		*value = AMBIGUOUS;
	else if (!old || new->id.len)
		*value = object;
}

/* The ids whose last definition is another stack than the map has. */
size_t count_differing(const struct ids *k)
{
	const struct ref *ref;
	size_t n = 0;
	bool user;
	u32 i;

	for (i = 1; i <= k->by_id.nr; i++) {
		user = *pool_words(&k->by_id, i) & OF_USER;
		ref = &k->refs[k->by_id.list[i].value - 1];
		n += !user && ref->content && ref->in_map && ref->content != ref->in_map;
	}
	return n;
}

void use_map(struct ids *k, const struct map *m, u32 in)
{
	const struct stack *s;
	u32 content;
	size_t i;

	for (i = 1; i <= m->files.nr; i++)
		define_file(k, in, *pool_words(&m->files, i), m->files.list[i].value);
	for (s = m->stacks; s != stacks_end(m); s++) {
		content = pool_add(&k->contents, m->ips + s->first, s->nr);
		get_ref(k, in, s->user, s->id)->in_map = content;
	}
}

/* @list: what "save" has written down, or NULL */
void use_moved(struct ids *k, char *list)
{
	struct moved m;
	char *line;

	while ((line = strsep(&list, "\n"))) {
		if (sscanf(line, "%llx %llx %llx", &m.start, &m.end, &m.now) == 3)
			*APPEND(k->moved, k->nr_moved) = m;
	}
}

/* Where that is now. What is not there any more has no name, and not another one. */
static u64 moved(const struct ids *k, u64 ip)
{
	const struct moved *m;

	if (!k->nr_moved || !ip || ip == TRAMPOLINE_MARKER)
		return ip;
	for (m = k->moved; m < k->moved + k->nr_moved; m++) {
		if (ip >= m->start && ip < m->end)
			return ip - m->start + m->now;
	}
	return WORD_NOT_LOADED;
}

/* @ips: as they were recorded */
u32 add_frames(struct ids *k, bool user, u64 *ips, u32 nr)
{
	u32 i;

	for (i = 0; !user && i < nr; i++)
		ips[i] = moved(k, ips[i]);
	return pool_add(&k->contents, ips, nr);
}

u32 stack_of_parts(struct ids *k, u32 in, bool user, u64 epoch, const struct parts *parts)
{
	u64 w[2 + 2 * MAX_PARTS] = { user ? STACK_USER : 0, epoch };
	bool alone = parts->nr == 1 && !parts->ip[0] && !epoch;
	struct ref *ref;
	u32 i, nr = 2;

	for (i = 0; i < parts->nr; i++) {
		ref = get_ref(k, in, user, parts->id[i]);
		if (alone && ref->stack)
			return ref->stack;
		w[nr++] = user ? parts->ip[i] : moved(k, parts->ip[i]);
		w[nr++] = ref - k->refs;
	}
	nr = pool_add(&k->recorded, w, nr);
	if (alone)
		ref->stack = nr;
	return nr;
}

u32 stack_of_frames(struct ids *k, bool user, u64 epoch, u64 *ips, u32 nr)
{
	const u64 w[] = {
		STACK_FRAMES | (user ? STACK_USER : 0), epoch, 0, add_frames(k, user, ips, nr),
	};

	return pool_add(&k->recorded, w, ARRAY_SIZE(w));
}

/* The kernel's number of a file, or an address. */
static u64 user_word(struct ids *k, const struct ref *ref, u64 epoch, u64 word, bool exact)
{
	u64 object = ref->in_full ? 0 : word_object(word);

	if (!object)
		return place_word(k->users, epoch, word, exact);
	object = pool_find(&k->objects, ref->instance, word_file_id(word, ref->id))->value;
	return make_word(object, word & OFFSET_MASK);
}

/*
 * @s: the stack; @ip: what an interrupt has hit, before the part, or 0. False if the id is not
 * defined. What is from a map was translated before.
 */
static bool add_part(struct ids *k, const u64 *s, u64 ip, const struct ref *ref,
		     struct words *w)
{
	u32 content = ref->content ? ref->content : ref->in_map;
	size_t i, first;

	if (!content)
		return false;
	if (ip) {
		w->hits |= w->nr < 64 ? 1ULL << w->nr : 0;
		add_word(w, s[0] & STACK_USER ? user_word(k, ref, s[1], ip, true) : ip);
	}
	first = w->nr;
	add_words(w, pool_words(&k->contents, content), k->contents.list[content].nr);
	for (i = first; s[0] & STACK_USER && i < w->nr; i++) {
		if (ref->content || !word_object(w->w[i]))
			w->w[i] = user_word(k, ref, s[1], w->w[i], !ip && i == first);
	}
	return true;
}

/* Adds the frames to @w; false and none if an id is not defined. */
bool resolve_stack(struct ids *k, u32 stack, struct words *w)
{
	const u64 *s = pool_words(&k->recorded, stack);
	const struct ref in_full = { .content = s[3], .in_full = true };
	u32 i, nr = k->recorded.list[stack].nr;
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

void ids_free(struct ids *k)
{
	pool_free(&k->by_id);
	pool_free(&k->contents);
	pool_free(&k->objects);
	pool_free(&k->recorded);
	free(k->refs);
	free(k->moved);
}
