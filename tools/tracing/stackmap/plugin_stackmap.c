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
#include "user.h"
#include "util.h"

const char * const program = "plugin_stackmap";

#define DEF_BUCKETS	4096
#define SPLIT_MORE	0x80000000	/* in an id of stack_split: one more part follows */

struct def {
	struct def	*next;
	u32		id;
	u32		nr;
	u32		ref;
	bool		user;
	bool		ambiguous;
	u64		ips[];
};

/* What is known of one trace.dat. */
struct session {
	struct session		*next;
	struct tep_handle	*tep;
	struct def		*defs[DEF_BUCKETS];
	struct map		map;
	u32			*numbers;	/* of objects that the trace defines, plus 1 */
	size_t			nr_numbers;
	size_t			room_numbers;
	bool			has_read_map;
	bool			told_missing;
	bool			told_damaged;
};

struct parts {
	u32	nr;
	u32	id[MAX_PARTS];
	u64	ip[MAX_PARTS];		/* ip[i] was hit between parts i - 1 and i */
};

/* What is in a record. Each kind of event has some of it. */
struct fields {
	bool		user;
	u64		cookie;
	struct parts	parts;		/* nr is 0 without an id */
	u64		hit;		/* where an interrupt came in user space, or 0 */
	struct def	*own;		/* the frames, NULL if they are elsewhere */
};

struct ips {
	const u64	*ip;
	u32		nr;
	bool		of_map;		/* objects have our numbers, not the kernel's */
	bool		by_file;
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

static struct def **find_slot(struct session *ses, u32 id)
{
	struct def **slot = &ses->defs[id % DEF_BUCKETS];

	while (*slot && (*slot)->id != id)
		slot = &(*slot)->next;
	return slot;
}

/* Takes @def. */
static void define(struct session *ses, struct def *def)
{
	struct def **slot = find_slot(ses, def->id), *old = *slot;

	if (!old) {
		*slot = def;
		return;
	}
	if (old->user != def->user || old->nr != def->nr ||
	    memcmp(old->ips, def->ips, def->nr * sizeof(*def->ips))) {
		if (!old->ambiguous)
			complain("id %u has two stacks, maybe of two instances: no frames for it",
				 def->id);
		old->ambiguous = true;
	}
	free(def);
}

static u64 lowest_ip(const struct map *m)
{
	const struct stack *st;
	u64 lowest = UINT64_MAX;
	size_t i;

	for (st = m->stacks; st < m->stacks + m->nr_stacks; st++) {
		for (i = st->first; i < st->first + st->nr - st->nr_user; i++) {
			if (m->ips[i] >= m->text && m->ips[i] < lowest)
				lowest = m->ips[i];
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

static int compare_ids(const void *a, const void *b)
{
	const struct stack *sa = a, *sb = b;

	return (sa->id > sb->id) - (sa->id < sb->id);
}

/* A damaged map keeps the stacks before the damage. */
static void read_session_map(struct session *ses)
{
	const char *path = option_map->value;

	ses->has_read_map = true;
	if (!*path)
		path = getenv("STACKMAP");
	if (!path || !*path)
		return;
	load_map(&ses->map, path);
	if (!is_of_this_boot(ses)) {
		complain("%s is not used: it is of another boot, or the trace has no symbols",
			 ses->map.name);
		forget_stacks(&ses->map);
	}
	sort_array(ses->map.stacks, ses->map.nr_stacks, sizeof(*ses->map.stacks), compare_ids);
}

static bool find_in_map(struct session *ses, u32 id, bool user, struct ips *ips)
{
	const struct stack key = { .id = id }, *found = NULL;
	const struct map *m = &ses->map;

	if (!ses->has_read_map)
		read_session_map(ses);
	if (m->nr_stacks)
		found = bsearch(&key, m->stacks, m->nr_stacks, sizeof(key), compare_ids);
	if (!found || found->user != user)
		return false;
	*ips = (struct ips) { m->ips + found->first, found->nr, true, found->by_file };
	return true;
}

/* A user stack is no kernel stack, whatever the id. */
static bool find_ips(struct session *ses, u32 id, bool user, struct ips *ips)
{
	struct def *def = *find_slot(ses, id);

	if (!def)
		return find_in_map(ses, id, user, ips);
	if (def->ambiguous || def->user != user)
		return false;
	def->ref++;
	*ips = (struct ips) { def->ips, def->nr, false, def->user };
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
static u32 find_all(struct session *ses, const struct fields *f, struct ips *ips)
{
	u32 i;

	if (f->own) {
		*ips = (struct ips) { .ip = f->own->ips, .nr = f->own->nr };
		return !!f->own->nr;
	}
	for (i = 0; i < f->parts.nr; i++) {
		if (!find_ips(ses, f->parts.id[i], f->user, &ips[i])) {
			tell_missing(ses, f->parts.id[i]);
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

static bool read_parts(struct tep_event *ev, struct tep_record *rec, struct parts *parts)
{
	u64 ip, id;
	u32 n;

	if (!read_field(ev, rec, "stack_id", &id) || (u32)id > INT32_MAX)
		return false;
	parts->id[0] = id;
	parts->nr = 1;
	if (!tep_find_field(ev, "outer"))
		return true;
	if (!read_field(ev, rec, "ip", &ip) || !read_field(ev, rec, "outer", &id))
		return false;
	for (n = 1; n < MAX_PARTS; n++) {
		parts->ip[n] = ip;
		parts->id[n] = id & INT32_MAX;
		parts->nr = n + 1;
		if (!(id & SPLIT_MORE))
			return true;
		if (!read_array(ev, rec, "rest", 2 * n - 2, &ip) ||
		    !read_array(ev, rec, "rest", 2 * n - 1, &id))
			return false;
	}
	return false;
}

/* A stack of the kernel that has an id has frames. */
static bool read_own(struct tep_event *ev, struct tep_record *rec, struct fields *f)
{
	struct def *def;
	u64 nr;
	u32 i;

	if (!read_field(ev, rec, "size", &nr) || nr > MAX_DEPTH || (!nr && f->parts.nr && !f->user))
		return false;
	def = check_mem(calloc(1, sizeof(*def) + nr * sizeof(*def->ips)));
	def->id = f->parts.id[0];
	def->nr = nr;
	def->user = f->user;
	for (i = 0; i < nr; i++) {
		if (read_array(ev, rec, "caller", i, &def->ips[i]))
			continue;
		free(def);
		return false;
	}
	f->own = def;
	return true;
}

static bool read_fields(struct tep_event *ev, struct tep_record *rec, struct fields *f)
{
	*f = (struct fields) { .user = !strncmp(ev->name, "user_", 5) };
	return (!tep_find_field(ev, "cookie") || read_field(ev, rec, "cookie", &f->cookie)) &&
	       (!tep_find_field(ev, "tgid") || !tep_find_field(ev, "ip") ||
		read_field(ev, rec, "ip", &f->hit)) &&
	       (!tep_find_field(ev, "stack_id") || read_parts(ev, rec, &f->parts)) &&
	       (!tep_find_field(ev, "caller") || read_own(ev, rec, f));
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

static struct object *find_object(const struct session *ses, u64 word, bool of_map)
{
	u32 i = word_object(word);

	if (!of_map)
		i = i < ses->nr_numbers ? ses->numbers[i] : 0;
	return i && i <= ses->map.users.names.nr ? ses->map.users.objects[i - 1] : NULL;
}

/* As the kernel prints it, but for the space that trace-cmd does not have before "=>". */
static void print_user_ip(struct trace_seq *s, struct session *ses, const struct ips *ips, u32 i,
			  bool exact)
{
	u64 word = ips->ip[i], offset = word & OFFSET_MASK, back = !exact && offset, addr;
	struct object *o = ips->by_file ? find_object(ses, word, ips->of_map) : NULL;
	const struct symbol *sym;

	if (!o) {
		trace_seq_printf(s, "=>  <%0*llx>\n", 2 * long_size(ses->tep), word);
		return;
	}
	sym = find_in_object(&ses->map.users, o, offset - back, &addr);
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
	for (i = 0; i < f->parts.nr; i++) {
		if (i)
			trace_seq_printf(s, " @%llx", f->parts.ip[i]);
		trace_seq_printf(s, " %u", f->parts.id[i]);
	}
	trace_seq_putc(s, '>');
}

static void print_frames(struct trace_seq *s, struct session *ses, const struct fields *f)
{
	struct ips ips[MAX_PARTS];
	u32 nr = find_all(ses, f, ips), i, j;
	struct ips hit = { .ip = &f->hit, .nr = 1, .by_file = true };

	if (nr && (ips[0].nr || f->hit))
		trace_seq_putc(s, '\n');
	if (nr && f->hit)
		print_user_ip(s, ses, &hit, 0, true);
	for (i = 0; i < nr; i++) {
		if (i)
			print_ip(s, ses->tep, f->parts.ip[i]);
		for (j = 0; j < ips[i].nr; j++) {
			if (f->user)
				print_user_ip(s, ses, &ips[i], j, !j && !f->hit);
			else
				print_ip(s, ses->tep, ips[i].ip[j]);
		}
	}
}

static int print_event(struct trace_seq *s, struct tep_record *rec, struct tep_event *ev,
		       void *context)
{
	struct session *ses = context;
	struct fields f;

	if (!read_fields(ev, rec, &f)) {
		if (first_time(&ses->told_damaged))
			complain("damaged %s event", ev->name);
		trace_seq_printf(s, "<%s, damaged>", ev->name);
		return 0;
	}
	print_head(s, ev, &f);
	print_frames(s, ses, &f);
	if (f.own && f.parts.nr)
		define(ses, f.own);
	else
		free(f.own);
	return 0;
}

/* user_object_def: a file, by its number in the stacks. */
static int define_object(struct trace_seq *s, struct tep_record *rec, struct tep_event *ev,
			 void *context)
{
	struct tep_format_field *bytes = tep_find_field(ev, "build_id");
	struct tep_format_field *path = tep_find_field(ev, "path");
	struct session *ses = context;
	struct build_id id = {};
	u64 number, len, bias;
	struct object *o;
	u32 i;

	if (!read_field(ev, rec, "object", &number) || !read_field(ev, rec, "id_size", &len) ||
	    !read_field(ev, rec, "bias", &bias) || !bytes || !path || len > MAX_BUILD_ID ||
	    len > (u64)bytes->size || bytes->offset + bytes->size > rec->size ||
	    path->offset > rec->size || number >= OBJECT_LIMIT ||
	    !memchr((char *)rec->data + path->offset, 0, rec->size - path->offset)) {
		trace_seq_printf(s, "<%s, damaged>", ev->name);
		return 0;
	}
	id.len = len;
	memcpy(id.bytes, (char *)rec->data + bytes->offset, len);
	i = get_object(&ses->map.users, (char *)rec->data + path->offset, &id);
	set_number(&ses->numbers, &ses->nr_numbers, &ses->room_numbers, number, i);
	o = i ? ses->map.users.objects[i - 1] : NULL;
	trace_seq_printf(s, "<%s %llu %s>", ev->name, number, o ? o->path : "");
	if (!o)
		return 0;
	o->bias = bias;
	o->has_bias = len;
	return 0;
}

static bool write_padded(FILE *f, const void *data, size_t len)
{
	static const char zeros[8];

	return fwrite(data, 1, len, f) == len && fwrite(zeros, 1, -len % 8, f) == -len % 8;
}

static bool write_object(FILE *f, u32 number, const struct object *o)
{
	const u32 head[] = { number, o->id.len }, tail[] = { strlen(o->file), 0 };
	const u64 bias = o->bias;

	return fwrite(head, sizeof(head), 1, f) && fwrite(&bias, sizeof(bias), 1, f) &&
	       fwrite(tail, sizeof(tail), 1, f) && write_padded(f, o->id.bytes, o->id.len) &&
	       write_padded(f, o->file, tail[0]);
}

/* A section of type 5. */
static bool write_objects(const struct session *ses, FILE *f)
{
	u32 head[] = { 5, 0 };
	bool good = true;
	char *text;
	size_t i, len;
	FILE *mem;

	mem = check_mem(open_memstream(&text, &len));
	for (i = 1; i < ses->nr_numbers; i++) {
		if (ses->numbers[i])
			good &= write_object(mem, i, ses->map.users.objects[ses->numbers[i] - 1]);
	}
	good &= !fclose(mem);
	head[1] = len;
	good = good && fwrite(head, sizeof(head), 1, f) && fwrite(text, 1, len, f) == len;
	free(text);
	return good;
}

static u32 flags_of(const struct def *def)
{
	u32 flags = def->user ? RECORD_USER : 0, i;

	for (i = 0; def->user && i < def->nr; i++)
		flags |= word_object(def->ips[i]) ? RECORD_BY_FILE : 0;
	return flags;
}

static bool save_def(FILE *f, const struct def *def)
{
	const u32 head[] = { def->id, def->nr, def->ref, flags_of(def) };

	return fwrite(head, sizeof(head), 1, f) &&
	       fwrite(def->ips, sizeof(*def->ips), def->nr, f) == def->nr;
}

/* Returns their number. Without @f it only counts. */
static u32 write_defs(const struct session *ses, FILE *f)
{
	const struct def *def;
	u32 nr = 0;
	size_t i;

	for (i = 0; i < DEF_BUCKETS; i++) {
		for (def = ses->defs[i]; def; def = def->next) {
			if (def->ambiguous || (f && !save_def(f, def)))
				continue;
			nr++;
		}
	}
	return nr;
}

static void save_session(const struct session *ses)
{
	const u32 head[] = { 0x464D5342, 2, write_defs(ses, NULL), !!ses->nr_numbers };
	const char *path = option_save->value;
	bool good = false;
	FILE *f;

	if (!*path || !head[2])
		return;
	f = fopen(path, "we");
	if (f) {
		good = fwrite(head, sizeof(head), 1, f) && write_defs(ses, f) == head[2] &&
		       (!head[3] || write_objects(ses, f));
		good &= !fclose(f);
	}
	if (!good)
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

static void free_session(struct session *ses)
{
	struct def *def;
	size_t i;

	for (i = 0; i < DEF_BUCKETS; i++) {
		while ((def = ses->defs[i])) {
			ses->defs[i] = def->next;
			free(def);
		}
	}
	users_free(&ses->map.users);
	free(ses->numbers);
	free(ses->map.numbers);
	free(ses->map.stacks);
	free(ses->map.ips);
	free(ses->map.name);
	free(ses->map.dir);
	free(ses);
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
	free_session(ses);
}
