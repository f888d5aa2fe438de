// SPDX-License-Identifier: GPL-2.0
/* What a stack of a recording consists of: ids of the stack map, or frames in full. */
#include "profile.h"
#include "util.h"

enum { STACK_IDS, STACK_FRAMES, STACK_USER_ID, STACK_USER_FRAMES };

#define SPLIT_MORE	0x80000000	/* in an id of stack_split: one more part follows */
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

/* With an address if an interrupt hit it, before the stack of the id. */
static u32 read_user_id(struct record *r, u64 id)
{
	u64 w[] = { STACK_USER_ID, epoch_of(r), find_ref(r->profile, r->in, id, true, 0), 0 };
	u32 nr = 3 + get_number(r, FIELD_IP, &w[3]);

	return pool_add(&r->profile->stacks, w, nr);
}

/* Between two parts of a stack is the address that an interrupt has hit. */
static bool read_part(struct record *r, u32 i, u64 *ip, u64 *id)
{
	if (!i)
		return get_number(r, FIELD_IP, ip) && get_number(r, FIELD_OUTER, id);
	return get_long(r, FIELD_REST, 2 * i - 2, ip) && get_long(r, FIELD_REST, 2 * i - 1, id);
}

static u32 read_ids(struct record *r, u64 id)
{
	u64 w[2 * MAX_PARTS] = { STACK_IDS, find_ref(r->profile, r->in, id, false, 0) };
	bool more = r->kind->field[FIELD_OUTER];
	u32 nr = 2;
	u64 ip;

	for (; more && nr < 2 * MAX_PARTS; more = id & SPLIT_MORE) {
		if (!read_part(r, nr / 2 - 1, &ip, &id))
			return 0;
		w[nr++] = ip;
		w[nr++] = find_ref(r->profile, r->in, id, false, 0);
	}
	return pool_add(&r->profile->stacks, w, nr);
}

/* Returns their number, or -1. user_stack has no size, and ends with a 0. */
static int read_frames(struct record *r, u64 *ips)
{
	struct tep_format_field *f = r->kind->field[FIELD_CALLER];
	bool sized = r->kind->field[FIELD_SIZE];
	u64 nr;
	u32 i;

	if (!f || f->offset > r->rec->size)
		return -1;
	nr = (r->rec->size - f->offset) / r->profile->long_size;
	if (sized && !get_number(r, FIELD_SIZE, &nr))
		return -1;
	for (i = 0; i < nr && i < MAX_DEPTH; i++) {
		if (!get_long(r, FIELD_CALLER, i, &ips[i]))
			return -1;
		if (!sized && !ips[i])
			break;
	}
	return i;
}

/* Returns 0 if there is none. */
u32 read_stack(struct record *r)
{
	bool user = r->kind->is_user;
	u64 w[2 + MAX_DEPTH], id;
	int nr;

	if (r->kind->field[FIELD_ID]) {
		if (!get_number(r, FIELD_ID, &id))
			return 0;
		return user ? read_user_id(r, id) : read_ids(r, id);
	}
	nr = read_frames(r, w + 2);
	w[0] = user ? STACK_USER_FRAMES : STACK_FRAMES;
	w[1] = user ? epoch_of(r) : 0;
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
	struct build_id id = {};
	const char *bytes, *path;
	u64 number, bias, id_size;
	u32 len, i;

	if (!get_number(r, FIELD_OBJECT, &number) || !get_number(r, FIELD_BIAS, &bias) ||
	    !get_number(r, FIELD_ID_SIZE, &id_size) ||
	    !get_bytes(r, FIELD_BUILD_ID, &bytes, &len) || id_size > len || len > MAX_BUILD_ID)
		return;
	id.len = id_size;
	memcpy(id.bytes, bytes, id.len);
	if (!get_bytes(r, FIELD_PATH, &path, &len) || !memchr(path, 0, len))
		return;
	i = user_object(&r->profile->map->users, path, &id, bias);
	if (i)
		pool_find(&r->profile->objects, r->in->nr, (u32)number)->value = i;
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

static const u64 *content_of(struct profile *p, u64 ref, u32 *nr)
{
	const struct ref *f = &p->refs[ref];

	*nr = f->content ? p->contents.list[f->content].nr : 0;
	return f->content ? pool_words(&p->contents, f->content) : NULL;
}

/* False if an id is not defined. */
bool resolve_kernel(struct profile *p, u32 stack, struct words *w)
{
	const u64 *s = pool_words(&p->stacks, stack), *ips;
	u32 i, n, nr = p->stacks.list[stack].nr;

	if (s[0] == STACK_FRAMES) {
		add_words(w, s + 2, nr - 2);
		return true;
	}
	for (i = 1; i < nr; i += 2) {
		ips = content_of(p, s[i], &n);
		if (!ips)
			return false;
		add_words(w, ips, n);
		if (i + 1 >= nr)
			break;
		w->hits |= w->nr < 64 ? 1ULL << w->nr : 0;
		add_word(w, s[i + 1]);
	}
	return true;
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

bool resolve_user(struct profile *p, u32 stack, struct words *w)
{
	const u64 *s = pool_words(&p->stacks, stack), *ips = s + 2;
	u32 nr = p->stacks.list[stack].nr - 2;
	size_t first = w->nr, i, hit = 0;
	struct ref *ref = NULL;

	if (s[0] == STACK_USER_ID) {
		ref = &p->refs[s[2]];
		hit = nr - 1;
		ips = content_of(p, s[2], &nr);
		if (!ips)
			return false;
		add_words(w, s + 3, hit);
	}
	add_words(w, ips, nr);
	for (i = first; i < w->nr; i++) {
		/* What the map has was translated when it was read. */
		if (ref && ref->from_map && i >= first + hit && word_object(w->w[i]))
			continue;
		w->w[i] = user_word(p, ref, s[1], w->w[i], i == first);
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
