// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of libtraceevent. With it, trace-cmd report and KernelShark print the frames below each
 * stack id, as they print a full stack. Those of user stacks are places in files, with the function
 * if the file is here, or addresses.
 *
 * A stack is looked up in the stack_def and user_stack_def events that were printed so far, then in
 * a map: a copy of stack_map_bin, named by the option stackmap:map or by STACKMAP in the
 * environment. The option stackmap:save writes such a map from the definitions, for later runs that
 * do not print them all.
 *
 * Two instances in one recording may use an id for two stacks. Then it is printed without frames.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <event-parse.h>
#include <trace-seq.h>

#include "map.h"
#include "pool.h"
#include "user.h"
#include "util.h"

const char * const program = "plugin_stackmap";

#define SPLIT_MORE	0x80000000	/* in an id of stack_split: one more part follows */
#define AMBIGUOUS	UINT64_MAX

/* What is known of one trace.dat. */
struct session {
	struct session		*next;
	struct tep_handle	*tep;
	struct map		defs;		/* by the trace; files have the kernel's numbers */
	struct map		map;		/* a copy of stack_map_bin */
	struct pool		known;		/* {id, in map}: the index of the stack, plus 1 */
	bool			has_read_map;
	bool			told_missing;
	bool			told_damaged;
};

/* What is in a record. Each kind of event has some of it. */
struct fields {
	bool		user;
	u64		cookie;
	u32		nr;			/* of the ids */
	u32		id[MAX_PARTS];
	u64		ip[MAX_PARTS];		/* ip[i] was hit between parts i - 1 and i */
	u64		hit;			/* where an interrupt came in user space, or 0 */
	struct stack	*own;			/* the frames, NULL if they are elsewhere */
};

/* A stack of one of the maps. */
struct part {
	const struct map	*map;
	const struct stack	*stack;
};

static struct session *sessions;

static struct tep_plugin_option options[] = {
	{
		.name = "map",
		.plugin_alias = "stackmap",
		.description = "A copy of stack_map_bin, for the frames of stack ids",
		.value = "",
	},
	{
		.name = "save",
		.plugin_alias = "stackmap",
		.description = "Write the stacks that the trace defines to this file",
		.value = "",
	},
	{
		.name = "offset",
		.plugin_alias = "stackmap",
		.description = "Show function names as well as their offsets",
	},
	{}
};

static const struct tep_plugin_option *const option_map = &options[0];
static const struct tep_plugin_option *const option_save = &options[1];
static const struct tep_plugin_option *const option_offset = &options[2];

static bool first_time(bool *told)
{
	bool first = !*told;

	*told = true;
	return first;
}

/* Returns false if the last stack of the definitions is not needed there. */
static bool define(struct session *ses, const struct stack *s)
{
	u64 *i = &pool_find(&ses->known, s->id, false)->value;
	const struct map *m = &ses->defs;
	const struct stack *old;

	if (!*i) {
		*i = m->nr_stacks;
		return true;
	}
	if (*i == AMBIGUOUS)
		return false;
	old = &m->stacks[*i - 1];
	if (old->user == s->user && old->nr == s->nr &&
	    !memcmp(m->ips + old->first, m->ips + s->first, s->nr * sizeof(*m->ips)))
		return false;
	complain("id %u has two stacks, maybe of two instances: no frames for it", s->id);
	*i = AMBIGUOUS;
	return false;
}

static void drop_last(struct map *m)
{
	m->nr_ips = m->stacks[--m->nr_stacks].first;
}

static u64 lowest_ip(const struct map *m)
{
	const struct stack *st;
	u64 lowest = UINT64_MAX;
	size_t i, ip;

	for (i = 0; i < m->nr_stacks; i++) {
		st = &m->stacks[i];
		for (ip = st->first; ip < st->first + st->nr - st->nr_user; ip++) {
			if (m->ips[ip] >= m->text && m->ips[ip] < lowest)
				lowest = m->ips[ip];
		}
	}
	return lowest;
}

/* With KASLR, hardly any symbol begins where _text of another boot was. kallsyms may lack _text. */
static bool is_of_this_boot(const struct session *ses)
{
	u64 symbol = tep_find_function_address(ses->tep, ses->map.text);

	if (!ses->map.text || symbol == ses->map.text)
		return true;
	return !symbol && tep_find_function(ses->tep, lowest_ip(&ses->map));
}

/* A damaged map keeps the stacks before the damage. */
static void read_session_map(struct session *ses)
{
	const char *path = *option_map->value ? option_map->value : getenv("STACKMAP");
	struct map *m = &ses->map;
	size_t i;

	if (ses->has_read_map || !path || !*path)
		return;
	ses->has_read_map = true;
	load_map(m, path);
	if (!is_of_this_boot(ses)) {
		complain("%s is not used: it is of another boot, or the trace has no symbols",
			 m->name);
		return;
	}
	for (i = 0; i < m->nr_stacks; i++)
		pool_find(&ses->known, m->stacks[i].id, true)->value = i + 1;
}

/* A user stack is no kernel stack, whatever the id. */
static bool find_part(struct session *ses, u32 id, bool user, struct part *part)
{
	struct map *m = &ses->defs;
	u64 i = pool_find(&ses->known, id, false)->value;

	if (!i) {
		read_session_map(ses);
		m = &ses->map;
		i = pool_find(&ses->known, id, true)->value;
	}
	if (!i || i == AMBIGUOUS || m->stacks[i - 1].user != user)
		return false;
	m->stacks[i - 1].ref++;
	*part = (struct part) { m, &m->stacks[i - 1] };
	return true;
}

static void tell_missing(struct session *ses, u32 id)
{
	if (!first_time(&ses->told_missing))
		return;
	if (ses->map.name)
		complain("no frames for id %u: it is not in %s", id, ses->map.name);
	else
		complain("no frames for id %u; -O stackmap:map=FILE or STACKMAP=FILE names a map",
			 id);
}

/* Returns the number of parts, 0 if there are no frames or not all of them. */
static u32 find_parts(struct session *ses, const struct fields *f, struct part *parts)
{
	u32 i;

	if (f->own) {
		*parts = (struct part) { &ses->defs, f->own };
		return 1;
	}
	for (i = 0; i < f->nr; i++) {
		if (!find_part(ses, f->id[i], f->user, &parts[i])) {
			tell_missing(ses, f->id[i]);
			return 0;
		}
	}
	return i;
}

static int long_size(struct tep_handle *tep)
{
	return tep_get_long_size(tep) == 4 ? 4 : 8;
}

/* False if the record ends before that. */
static bool read_at(struct tep_event *ev, struct tep_record *rec, int offset, int size, u64 *val)
{
	if (offset < 0 || size < 0 || offset > rec->size - size)
		return false;
	*val = tep_read_number(ev->tep, rec->data + offset, size);
	return true;
}

static bool read_field(struct tep_event *ev, struct tep_record *rec, const char *name, u64 *val)
{
	struct tep_format_field *field = tep_find_field(ev, name);

	return field && read_at(ev, rec, field->offset, field->size, val);
}

static bool read_array(struct tep_event *ev, struct tep_record *rec, const char *name, u32 i,
		       u64 *val)
{
	struct tep_format_field *field = tep_find_field(ev, name);
	int size = long_size(ev->tep);

	return field && read_at(ev, rec, field->offset + i * size, size, val);
}

static bool read_ids(struct tep_event *ev, struct tep_record *rec, struct fields *f)
{
	u64 ip, id;

	if (!read_field(ev, rec, "stack_id", &id) || (u32)id > INT32_MAX)
		return false;
	f->id[f->nr++] = id;
	if (!tep_find_field(ev, "outer"))
		return true;
	if (!read_field(ev, rec, "ip", &ip) || !read_field(ev, rec, "outer", &id))
		return false;
	for (; f->nr < MAX_PARTS; f->nr++) {
		f->ip[f->nr] = ip;
		f->id[f->nr] = id & INT32_MAX;
		if (!(id & SPLIT_MORE)) {
			f->nr++;
			return true;
		}
		if (!read_array(ev, rec, "rest", 2 * f->nr - 2, &ip) ||
		    !read_array(ev, rec, "rest", 2 * f->nr - 1, &id))
			return false;
	}
	return false;
}

/* A stack of the kernel that has an id has frames. */
static bool read_own(struct map *m, struct tep_event *ev, struct tep_record *rec, struct fields *f)
{
	struct stack *s;
	u64 nr;
	u32 i;

	if (!read_field(ev, rec, "size", &nr) || nr > MAX_DEPTH || (!nr && f->nr && !f->user))
		return false;
	s = new_stack(m, nr);
	s->id = f->id[0];
	s->user = f->user;
	s->by_file = f->user && f->nr;
	f->own = s;
	for (i = 0; i < nr; i++) {
		if (!read_array(ev, rec, "caller", i, &m->ips[s->first + i]))
			return false;
	}
	return true;
}

static bool read_fields(struct session *ses, struct tep_event *ev, struct tep_record *rec,
			struct fields *f)
{
	*f = (struct fields) { .user = !strncmp(ev->name, "user_", 5) };
	return (!tep_find_field(ev, "cookie") || read_field(ev, rec, "cookie", &f->cookie)) &&
	       (!tep_find_field(ev, "tgid") || !tep_find_field(ev, "ip") ||
		read_field(ev, rec, "ip", &f->hit)) &&
	       (!tep_find_field(ev, "stack_id") || read_ids(ev, rec, f)) &&
	       (!tep_find_field(ev, "caller") || read_own(&ses->defs, ev, rec, f));
}

static void print_ip(struct trace_seq *s, struct tep_handle *tep, u64 ip)
{
	const char *name = tep_find_function(tep, ip);

	if (ip == TRAMPOLINE_MARKER)
		trace_seq_puts(s, "=> [FTRACE TRAMPOLINE]\n");
	else if (!name)
		trace_seq_printf(s, "=> %llx\n", ip);
	else if (option_offset->set)
		trace_seq_printf(s, "=> %s+0x%llx  (%llx)\n", name,
				 ip - tep_find_function_address(tep, ip), ip);
	else
		trace_seq_printf(s, "=> %s (%llx)\n", name, ip);
}

static struct object *find_object(struct session *ses, const struct map *m, u64 word)
{
	u32 i = word_object(word);

	if (i && m == &ses->defs)
		i = pool_find(&ses->defs.numbers, i, 0)->value;
	return object_at(&m->users, i);
}

/* As the kernel prints it, but for the space that trace-cmd does not have before "=>". */
static void print_user_ip(struct trace_seq *s, struct session *ses, const struct map *m, u64 word,
			  bool by_file, bool exact)
{
	struct object *o = by_file ? find_object(ses, m, word) : NULL;
	u64 offset = word & OFFSET_MASK, back = !exact && offset, addr;
	const struct symbol *sym;

	if (!o) {
		trace_seq_printf(s, "=>  <%0*llx>\n", 2 * long_size(ses->tep), word);
		return;
	}
	sym = find_in_object(&ses->defs.users, o, offset - back, &addr);
	trace_seq_printf(s, "=> %s[+0x%llx]", o->path, offset);
	if (sym)
		trace_seq_printf(s, " (%s+0x%llx)", sym->name, addr + back - sym->addr);
	trace_seq_putc(s, '\n');
}

static void print_head(struct trace_seq *s, struct tep_event *ev, const struct fields *f)
{
	u32 i;

	trace_seq_printf(s, "<%s", ev->name);
	if (tep_find_field(ev, "cookie"))
		trace_seq_printf(s, " %llx", f->cookie);
	if (f->hit)
		trace_seq_printf(s, " @%llx", f->hit);
	for (i = 0; i < f->nr; i++) {
		if (i)
			trace_seq_printf(s, " @%llx", f->ip[i]);
		trace_seq_printf(s, " %u", f->id[i]);
	}
	trace_seq_putc(s, '>');
}

static void print_part(struct trace_seq *s, struct session *ses, const struct part *p, bool exact)
{
	const u64 *ips = p->map->ips + p->stack->first;
	u32 i;

	for (i = 0; i < p->stack->nr; i++) {
		if (p->stack->user)
			print_user_ip(s, ses, p->map, ips[i], p->stack->by_file, exact && !i);
		else
			print_ip(s, ses->tep, ips[i]);
	}
}

static void print_frames(struct trace_seq *s, struct session *ses, const struct fields *f)
{
	struct part parts[MAX_PARTS];
	u32 i, nr = find_parts(ses, f, parts);

	if (nr && (parts[0].stack->nr || f->hit))
		trace_seq_putc(s, '\n');
	if (nr && f->hit)
		print_user_ip(s, ses, &ses->defs, f->hit, true, true);
	for (i = 0; i < nr; i++) {
		if (i)
			print_ip(s, ses->tep, f->ip[i]);
		print_part(s, ses, &parts[i], !f->hit);
	}
}

static int print_event(struct trace_seq *s, struct tep_record *rec, struct tep_event *ev,
		       void *context)
{
	struct session *ses = context;
	struct fields f;
	bool good = read_fields(ses, ev, rec, &f);

	if (good) {
		print_head(s, ev, &f);
		print_frames(s, ses, &f);
	} else {
		if (first_time(&ses->told_damaged))
			complain("damaged %s event", ev->name);
		trace_seq_printf(s, "<%s, damaged>", ev->name);
	}
	if (f.own && (!good || !f.nr || !define(ses, f.own)))
		drop_last(&ses->defs);
	return 0;
}

/* The bytes of a field; one without a size goes on to the end of the record. */
static const char *read_bytes(struct tep_event *ev, struct tep_record *rec, const char *name,
			      size_t *len)
{
	struct tep_format_field *f = tep_find_field(ev, name);

	if (!f || f->offset > rec->size || f->size > rec->size - f->offset)
		return NULL;
	*len = f->size ? f->size : rec->size - f->offset;
	return (const char *)rec->data + f->offset;
}

/* user_object_def: a file, by its number in the stacks. */
static int define_object(struct trace_seq *s, struct tep_record *rec, struct tep_event *ev,
			 void *context)
{
	struct map *m = &((struct session *)context)->defs;
	size_t room = 0, len = 0;
	const char *bytes = read_bytes(ev, rec, "build_id", &room);
	const char *path = read_bytes(ev, rec, "path", &len);
	struct build_id id = {};
	u64 number, id_len, bias;
	u32 i;

	if (!read_field(ev, rec, "object", &number) || !read_field(ev, rec, "id_size", &id_len) ||
	    !read_field(ev, rec, "bias", &bias) || !bytes || !path || id_len > MAX_BUILD_ID ||
	    id_len > room || number >= OBJECT_LIMIT || !memchr(path, 0, len)) {
		trace_seq_printf(s, "<%s, damaged>", ev->name);
		return 0;
	}
	id.len = id_len;
	memcpy(id.bytes, bytes, id_len);
	i = user_object(&m->users, path, &id, bias);
	pool_find(&m->numbers, number, 0)->value = i;
	trace_seq_printf(s, "<%s %llu %s>", ev->name, number,
			 i ? object_at(&m->users, i)->path : "");
	return 0;
}

static void write_padded(FILE *f, const void *data, size_t len)
{
	static const char zeros[8];

	fwrite(data, 1, len, f);
	fwrite(zeros, 1, -len % 8, f);
}

static void write_object(FILE *f, u32 number, const struct object *o)
{
	const u32 head[] = { number, o->id.len }, tail[] = { strlen(o->file), 0 };

	fwrite(head, sizeof(head), 1, f);
	fwrite(&o->bias, sizeof(o->bias), 1, f);
	fwrite(tail, sizeof(tail), 1, f);
	write_padded(f, o->id.bytes, o->id.len);
	write_padded(f, o->file, tail[0]);
}

static void write_objects(struct map *m, FILE *f)
{
	u32 head[] = { SECTION_OBJECTS, 0 }, object;
	size_t i, len;
	char *text;
	FILE *mem;

	mem = check_mem(open_memstream(&text, &len));
	for (i = 1; i <= m->numbers.nr; i++) {
		object = m->numbers.list[i].value;
		if (object)
			write_object(mem, *pool_words(&m->numbers, i),
				     object_at(&m->users, object));
	}
	fclose(mem);
	head[1] = len;
	fwrite(head, sizeof(head), 1, f);
	fwrite(text, 1, len, f);
	free(text);
}

static void write_stack(const struct map *m, const struct stack *s, FILE *f)
{
	const u32 flags = (s->user ? RECORD_USER : 0) | (s->by_file ? RECORD_BY_FILE : 0);
	const u32 head[] = { s->id, s->nr, s->ref, flags };

	fwrite(head, sizeof(head), 1, f);
	fwrite(m->ips + s->first, sizeof(*m->ips), s->nr, f);
}

static void drop_ambiguous(struct session *ses)
{
	struct map *m = &ses->defs;
	size_t i, n = 0;

	for (i = 0; i < m->nr_stacks; i++) {
		if (pool_find(&ses->known, m->stacks[i].id, false)->value != AMBIGUOUS)
			m->stacks[n++] = m->stacks[i];
	}
	m->nr_stacks = n;
}

static void save_session(struct session *ses)
{
	const char *path = option_save->value;
	struct map *m = &ses->defs;
	u32 head[] = { MAP_MAGIC, MAP_VERSION, 0, !!m->numbers.nr };
	bool bad = true;
	size_t i;
	FILE *f;

	drop_ambiguous(ses);
	if (!*path || !m->nr_stacks)
		return;
	head[2] = m->nr_stacks;
	f = fopen(path, "we");
	if (f) {
		fwrite(head, sizeof(head), 1, f);
		for (i = 0; i < m->nr_stacks; i++)
			write_stack(m, &m->stacks[i], f);
		if (m->numbers.nr)
			write_objects(m, f);
		bad = ferror(f);
		bad |= !!fclose(f);
	}
	if (bad)
		complain("%s: %s", path, strerror(errno));
}

static char *const events[] = {
	"stack_id", "stack_split", "stack_def", "user_stack_id", "user_stack_def",
	"user_unwind_cookie", "user_unwind_stack_id", "user_unwind_stack_split",
	"user_unwind_stack",
};

#define EXPORTED	__attribute__((visibility("default")))

EXPORTED int TEP_PLUGIN_LOADER(struct tep_handle *tep)
{
	struct session *ses = check_mem(calloc(1, sizeof(*ses)));
	size_t i;

	ses->tep = tep;
	ses->next = sessions;
	sessions = ses;
	for (i = 0; i < ARRAY_SIZE(events); i++)
		tep_register_event_handler(tep, -1, "ftrace", events[i], print_event, ses);
	tep_register_event_handler(tep, -1, "ftrace", "user_object_def", define_object, ses);
	tep_plugin_add_options("stackmap", options);
	if (*option_map->value && access(option_map->value, R_OK))
		complain("%s: %s", option_map->value, strerror(errno));
	return 0;
}

EXPORTED void TEP_PLUGIN_UNLOADER(struct tep_handle *tep)
{
	struct session **last = &sessions, *ses;
	size_t i;

	while ((ses = *last) && ses->tep != tep)
		last = &ses->next;
	if (!ses)
		return;
	for (i = 0; i < ARRAY_SIZE(events); i++)
		tep_unregister_event_handler(tep, -1, "ftrace", events[i], print_event, ses);
	tep_unregister_event_handler(tep, -1, "ftrace", "user_object_def", define_object, ses);
	save_session(ses);
	tep_plugin_remove_options(options);
	*last = ses->next;
	map_free_stacks(&ses->defs);
	map_free_stacks(&ses->map);
	pool_free(&ses->known);
	free(ses);
}
