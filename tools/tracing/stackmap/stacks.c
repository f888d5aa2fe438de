// SPDX-License-Identifier: GPL-2.0
/* What a stack of a recording consists of: ids of the stack map, or frames in full. */
#include "profile.h"
#include "util.h"

/* {flags, epoch, address, id, address, id...} or {flags, epoch, frames} */
enum { STACK_USER = 1, STACK_FRAMES = 2 };

#define OF_USER		0x100000000ULL	/* in the first word of the key of an id */

/* An id as long as it means one stack. */
struct ref {
	u32	instance;
	u32	content;	/* 0: not defined so far */
	bool	from_map;
};

/*
 * @content: what the id is from now on; 0: what it is. A generation is used again after some
 * thousand others: then the id means another stack.
 */
static u32 find_ref(struct profile *p, const struct instance *in, u32 id, bool user, u32 content)
{
	const u64 of = in->nr | (user ? OF_USER : 0);
	u64 *nr = &pool_find(&p->ids, of, id & INT32_MAX)->value;
	u32 known = *nr ? p->refs[*nr - 1].content : 0;

	if (!*nr || (known && content && known != content)) {
		*APPEND(p->refs, p->nr_refs) = (struct ref) { .instance = in->nr };
		*nr = p->nr_refs;
	}
	if (content)
		p->refs[*nr - 1].content = content;
	return *nr - 1;
}

static u64 epoch_of(struct record *r)
{
	struct profile *p = r->profile;
	u64 tgid;

	if (!get_number(r, FIELD_TGID, &tgid))
		return 0;
	return users_epoch(&p->map->users, tgid, p->mono ? r->rec->ts : UINT64_MAX);
}

static u32 add_ids(struct record *r, u64 flags, u64 epoch)
{
	u64 w[2 + 2 * MAX_PARTS] = { flags, epoch };
	struct stack_ids ids;
	u32 i, nr = 2;

	if (!read_ids(r, &ids))
		return 0;
	for (i = 0; i < ids.nr; i++) {
		w[nr++] = ids.ip[i];
		w[nr++] = find_ref(r->profile, r->in, ids.id[i], flags, 0);
	}
	return pool_add(&r->profile->stacks, w, nr);
}

/* Returns 0 if there is none. */
u32 read_stack(struct record *r)
{
	u64 flags = r->kind->is_user ? STACK_USER : 0, epoch = flags ? epoch_of(r) : 0;
	u64 w[2 + MAX_DEPTH];
	int nr;

	if (r->kind->field[FIELD_ID])
		return add_ids(r, flags, epoch);
	w[0] = flags | STACK_FRAMES;
	w[1] = epoch;
	nr = read_frames(r, w + 2);
	return nr > 0 ? pool_add(&r->profile->stacks, w, 2 + nr) : 0;
}

void define_stack(struct record *r)
{
	u64 ips[MAX_DEPTH], id;
	int nr = read_frames(r, ips);

	/* Below what an interrupt has hit, there may be no more frames of user space. */
	if (nr < !r->kind->is_user || !get_number(r, FIELD_ID, &id))
		return;
	find_ref(r->profile, r->in, id, r->kind->is_user,
		 pool_add(&r->profile->contents, ips, nr));
}

void define_object(struct record *r)
{
	u32 number, object;

	if (read_object(r, &r->profile->map->users, &number, &object) && object)
		pool_find(&r->profile->objects, r->in->nr, number)->value = object;
}

/* The ids that the file does not define. */
void use_map(struct profile *p, const struct map *m, const struct instance *in)
{
	const struct stack *s;
	struct ref *ref;
	u32 nr, content;
	size_t i;

	for (i = 0; i < m->nr_stacks; i++) {
		s = &m->stacks[i];
		nr = find_ref(p, in, s->id, s->user, 0);
		ref = &p->refs[nr];
		content = pool_add(&p->contents, m->ips + s->first, s->nr);
		if (!ref->content) {
			ref->content = content;
			ref->from_map = true;
		} else if (!s->user && ref->content != content) {
			p->counts[COUNT_DIFFER]++;
		}
	}
}

/* The kernel's number of a file, or an address of the process. */
static u64 user_word(struct profile *p, const struct ref *ref, u64 epoch, u64 word, bool exact)
{
	u64 object;

	if (!ref || !word_object(word))
		return place_word(&p->map->users, epoch, word, exact);
	object = pool_find(&p->objects, ref->instance, word_object(word))->value;
	return make_word(object, word & OFFSET_MASK);
}

/* @s: the stack; @exact: the first frame is no call. What the map has was translated before. */
static void add_frames(struct profile *p, const struct ref *ref, const u64 *s, const u64 *ips,
		       u32 nr, bool exact, struct words *w)
{
	size_t i, first = w->nr;

	add_words(w, ips, nr);
	for (i = first; s[0] & STACK_USER && i < w->nr; i++) {
		if (!ref || !ref->from_map || !word_object(w->w[i]))
			w->w[i] = user_word(p, ref, s[1], w->w[i], exact && i == first);
	}
}

/* False if the id is not defined. */
static bool add_part(struct profile *p, const u64 *s, u64 ip, const struct ref *ref,
		     struct words *w)
{
	if (!ref->content)
		return false;
	if (ip) {
		w->hits |= w->nr < 64 ? 1ULL << w->nr : 0;
		add_word(w, s[0] & STACK_USER ? user_word(p, ref, s[1], ip, true) : ip);
	}
	add_frames(p, ref, s, pool_words(&p->contents, ref->content),
		   p->contents.list[ref->content].nr, !ip, w);
	return true;
}

bool resolve_stack(struct profile *p, u32 stack, struct words *w)
{
	const u64 *s = pool_words(&p->stacks, stack);
	u32 i, nr = p->stacks.list[stack].nr;

	if (s[0] & STACK_FRAMES) {
		add_frames(p, NULL, s, s + 2, nr - 2, true, w);
		return true;
	}
	for (i = 2; i < nr; i += 2) {
		if (!add_part(p, s, s[i], &p->refs[s[i + 1]], w))
			return false;
	}
	return true;
}

void stacks_free(struct profile *p)
{
	pool_free(&p->stacks);
	pool_free(&p->ids);
	pool_free(&p->contents);
	pool_free(&p->objects);
	free(p->refs);
}
