// SPDX-License-Identifier: GPL-2.0
/*
 * --pprof: a profile.proto of pprof, compressed as gzip requires, but with stored blocks. Its
 * messages have numbered fields; a string is an index in the profile's table of strings.
 */
#include <time.h>
#include <unistd.h>

#include "checksum.h"
#include "symbols.h"
#include "util.h"
#include "view.h"

struct bytes {
	char	*data;
	size_t	len;
};

static void put_raw(struct bytes *b, const void *data, size_t len)
{
	if (!len)
		return;
	b->data = grow(b->data, b->len, len, 1);
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

static void put_varint(struct bytes *b, u64 n)
{
	char buf[10];
	int len = 0;

	for (; n > 0x7f; n >>= 7)
		buf[len++] = n | 0x80;
	buf[len++] = n;
	put_raw(b, buf, len);
}

/* 0 is what a reader takes for a field that is not there. */
static void put_number(struct bytes *b, u32 field, u64 n)
{
	if (!n)
		return;
	put_varint(b, field << 3);
	put_varint(b, n);
}

static void put_bytes(struct bytes *b, u32 field, const void *data, size_t len)
{
	put_varint(b, field << 3 | 2);
	put_varint(b, len);
	put_raw(b, data, len);
}

/* Empties @message, so that the next one can be made in it. */
static void put_message(struct bytes *b, u32 field, struct bytes *message)
{
	put_bytes(b, field, message->data, message->len);
	message->len = 0;
}

/* Strings are UTF-8. Bytes outside of ASCII are written as the character with that number. */
static void put_string(struct bytes *b, u32 field, const char *s)
{
	struct bytes utf8 = {};
	char pair[2];

	for (; *s; s++) {
		pair[0] = 0xc0 | (unsigned char)*s >> 6;
		pair[1] = 0x80 | (*s & 0x3f);
		if (*s & 0x80)
			put_raw(&utf8, pair, 2);
		else
			put_raw(&utf8, s, 1);
	}
	put_bytes(b, field, utf8.data, utf8.len);
	free(utf8.data);
}

/* Numbers of fields, by message. */
enum {
	PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3, PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5, PROFILE_STRING = 6, PROFILE_TIME = 9, PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	TYPE_TYPE = 1, TYPE_UNIT = 2,
	SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3,
	LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3,
	MAPPING_ID = 1, MAPPING_START = 2, MAPPING_LIMIT = 3, MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6, MAPPING_HAS_FUNCTIONS = 7,
	LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3,
};

struct pprof {
	struct map	*map;
	struct bytes	out;
	struct bytes	message;
	struct bytes	part;		/* of message */
	struct pool	strings;
	struct pool	functions;	/* of the indices of their names */
	struct pool	locations;	/* of {address, object, is_user} */
	struct pool	modules;	/* of {name, 0} or {0, object} */
	bool		has_functions;
};

static u32 string_index(struct pprof *p, const char *s)
{
	return intern(&p->strings, s) - 1;
}

static void put_type(struct pprof *p, u32 field, const char *type, const char *unit)
{
	put_number(&p->message, TYPE_TYPE, string_index(p, type));
	put_number(&p->message, TYPE_UNIT, string_index(p, unit));
	put_message(&p->out, field, &p->message);
}

/* The last one is what pprof shows. */
static void put_types(struct pprof *p)
{
	const struct value_type *v = p->map->values;
	int i;

	for (i = 0; i < NR_VALUES; i++) {
		if (v[i].type)
			put_type(p, PROFILE_SAMPLE_TYPE, v[i].type, v[i].unit);
	}
	if (!v->type)
		put_type(p, PROFILE_SAMPLE_TYPE, "events", "count");
	put_type(p, PROFILE_PERIOD_TYPE, "events", "count");
}

static void put_values(const struct pprof *p, const struct stack *s, struct bytes *b)
{
	const struct value_type *v = p->map->values;
	int i;

	for (i = 0; i < NR_VALUES; i++) {
		if (v[i].type)
			put_varint(b, s->val[i]);
	}
	if (!v->type)
		put_varint(b, s->ref);
}

#define KERNEL_MAPPING	1

static u64 kernel_start(const struct map *m)
{
	return m->text ? m->text : m->kallsyms.text;
}

static u64 kernel_limit(const struct map *m)
{
	if (m->kallsyms.kernel_end || !kernel_start(m))
		return m->kallsyms.kernel_end;
	return UINT64_MAX;
}

/* 0: in no mapping. */
static u32 mapping_of(struct pprof *p, const struct frame *f, u64 addr, const char *mod)
{
	const struct map *m = p->map;
	u64 key[2] = {};

	if (f->user)
		key[1] = (uintptr_t)f->object;
	else if (mod)
		key[0] = string_index(p, mod);
	else if (addr >= kernel_start(m) && addr < kernel_limit(m))
		return KERNEL_MAPPING;
	return key[0] || key[1] ? KERNEL_MAPPING + pool_add(&p->modules, key, 2) : 0;
}

static void put_function(struct pprof *p, const char *name)
{
	u64 str = string_index(p, name);
	size_t known = p->functions.nr;
	u32 id = pool_add(&p->functions, &str, 1);

	put_number(&p->part, LINE_FUNCTION, id);
	put_message(&p->message, LOCATION_LINE, &p->part);
	if (id <= known)
		return;
	put_number(&p->part, FUNCTION_ID, id);
	put_number(&p->part, FUNCTION_NAME, str);
	put_number(&p->part, FUNCTION_SYSTEM_NAME, str);
	put_message(&p->out, PROFILE_FUNCTION, &p->part);
}

static void put_location(struct pprof *p, struct frame *f, u64 addr, u32 id)
{
	const char *mod, *name = frame_name(f, &mod);

	put_number(&p->message, LOCATION_ID, id);
	put_number(&p->message, LOCATION_MAPPING, mapping_of(p, f, addr, mod));
	put_number(&p->message, LOCATION_ADDRESS, addr);
	put_function(p, *name ? name : mod);
	p->has_functions |= f->sym && !f->user;
	put_message(&p->out, PROFILE_LOCATION, &p->message);
}

/* In user space, processes have an object at different addresses, so take the offset in it. */
static u64 location_addr(const struct frame *f)
{
	if (!f->user && (f->ip == TRAMPOLINE_MARKER || f->ip >= WORD_UNDEFINED))
		return f->ip;
	return lookup_addr(f->object ? f->offset : f->ip, f->exact);
}

/* As pprof expects, the address of a call is inside of it, not behind it. */
static u32 location_id(struct pprof *p, struct frame *f)
{
	const u64 key[] = { location_addr(f), (uintptr_t)f->object, f->user };
	size_t known = p->locations.nr;

	if (f->uid)
		return f->uid;
	f->uid = pool_add(&p->locations, key, ARRAY_SIZE(key));
	if (f->uid > known)
		put_location(p, f, key[0], f->uid);
	return f->uid;
}

static void put_label(struct pprof *p, const char *key, const char *str, u64 num)
{
	put_number(&p->part, LABEL_KEY, string_index(p, key));
	if (str)
		put_number(&p->part, LABEL_STR, string_index(p, str));
	put_number(&p->part, LABEL_NUM, num);
	put_message(&p->message, SAMPLE_LABEL, &p->part);
}

/* Locations may get into the profile meanwhile, so the sample is made in a buffer of its own. */
static void put_sample(struct pprof *p, const struct stack *s)
{
	struct bytes ids = {};
	u32 i;

	for (i = 0; i < s->nr; i++)
		put_varint(&ids, location_id(p, frame_get(p->map, s, i)));
	put_bytes(&p->message, SAMPLE_LOCATION, ids.data, ids.len);
	ids.len = 0;
	put_values(p, s, &ids);
	put_bytes(&p->message, SAMPLE_VALUE, ids.data, ids.len);
	free(ids.data);
	if (s->task) {
		put_label(p, "comm", s->task->comm, 0);
		put_label(p, "pid", NULL, s->task->pid);
	}
	put_message(&p->out, PROFILE_SAMPLE, &p->message);
}

static void put_mapping(struct pprof *p, u32 id, u64 start, u64 limit, const char *file,
			const struct build_id *build_id, bool has_functions)
{
	char *text __free(pointer) = build_id ? build_id_text(build_id) : copy_string("");

	put_number(&p->message, MAPPING_ID, id);
	put_number(&p->message, MAPPING_START, start);
	put_number(&p->message, MAPPING_LIMIT, limit);
	put_number(&p->message, MAPPING_FILE, string_index(p, file));
	put_number(&p->message, MAPPING_BUILD_ID, string_index(p, text));
	put_number(&p->message, MAPPING_HAS_FUNCTIONS, has_functions);
	put_message(&p->out, PROFILE_MAPPING, &p->message);
}

/* From the first function to the end of the last one. */
static void put_module(struct pprof *p, const char *mod, u32 id)
{
	char *file __free(pointer) = format("[%s]", mod);
	const struct symtab *t = &p->map->kallsyms;
	u64 start = 0, limit = 0;
	const struct symbol *s;

	for (s = t->syms; s < t->syms + t->nr; s++) {
		if (!s->mod || strcmp(s->mod, mod) || !is_text(s))
			continue;
		start = start ? start : s->addr;
		limit = s->end;
	}
	put_mapping(p, id, start, limit, file, NULL, true);
}

/*
 * The kernel is mapped at _text, with offset 0. pprof finds out where KASLR put it. Addresses in an
 * object are offsets.
 */
static void put_mappings(struct pprof *p)
{
	const struct map *m = p->map;
	const struct object *o;
	const u64 *key;
	u32 i;

	put_mapping(p, KERNEL_MAPPING, kernel_start(m), kernel_limit(m), "[kernel.kallsyms]",
		    &m->build_id, p->has_functions);
	for (i = 1; i <= p->modules.nr; i++) {
		key = pool_words(&p->modules, i);
		o = (const struct object *)(uintptr_t)key[1];
		if (o)
			put_mapping(p, KERNEL_MAPPING + i, 0, o->limit, o->path, &o->id,
				    o->symtab.nr);
		else
			put_module(p, pool_string(&p->strings, key[0] + 1), KERNEL_MAPPING + i);
	}
}

static void write_little_endian(u32 n, int bytes)
{
	for (; bytes--; n >>= 8)
		putchar_unlocked(n & 0xff);
}

/* gzip, with blocks that are stored as they are. */
static void write_gzip(const char *data, size_t len)
{
	static const char head[10] = { 0x1f, (char)0x8b, 8, [9] = (char)255 };
	const char *end = data + len;
	u32 crc = crc32(data, len, 0);
	u32 n;

	fwrite(head, 1, sizeof(head), stdout);
	do {
		n = end - data < 0xffff ? end - data : 0xffff;
		putchar_unlocked(data + n == end);
		write_little_endian(n, 2);
		write_little_endian(~n, 2);
		fwrite(data, 1, n, stdout);
		data += n;
	} while (data < end);
	write_little_endian(crc, 4);
	write_little_endian(len, 4);
}

static void pprof_free(struct pprof *p)
{
	pool_free(&p->strings);
	pool_free(&p->functions);
	pool_free(&p->locations);
	pool_free(&p->modules);
	free(p->out.data);
	free(p->message.data);
	free(p->part.data);
}

void print_pprof(struct map *m)
{
	struct pprof p = { .map = m };
	size_t i;

	string_index(&p, "");
	put_types(&p);
	/* Parca shows a profile by its time. */
	put_number(&p.out, PROFILE_TIME, (m->saved ? m->saved : (u64)time(NULL)) * 1000000000);
	put_number(&p.out, PROFILE_PERIOD, 1);
	for (i = 0; i < m->nr_stacks; i++)
		put_sample(&p, &m->stacks[i]);
	put_mappings(&p);
	for (i = 1; i <= p.strings.nr; i++)
		put_string(&p.out, PROFILE_STRING, pool_string(&p.strings, i));
	write_gzip(p.out.data, p.out.len);
	pprof_free(&p);
}
