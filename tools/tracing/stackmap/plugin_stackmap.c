// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of libtraceevent. With it, trace-cmd report and KernelShark print the frames below each
 * stack id, as they print a full stack. Those of user stacks are places in files, with the function
 * if the file is here, or addresses.
 *
 * A stack is looked up in the stack_def and user_stack_def events that were printed so far, then in
 * a map: a copy of stack_map_bin, named by the option stackmap:map or by STACKMAP in the
 * environment.
 *
 * Two instances in one recording may use an id for two stacks. Then it is printed without frames.
 */
#include "event.h"

const char * const program = "plugin_stackmap";

/* What is known of one trace.dat. */
struct session {
	struct session		*next;
	struct tep_handle	*tep;
	struct kind		kind;		/* of the last event */
	struct map		map;		/* a copy of stack_map_bin; has all files */
	struct ids		ids;
	struct pool		ambiguous;	/* {id, user}: how often it got another stack */
	struct words		words;		/* of the last stack */
	bool			has_read_map;
	size_t			nr_missing;
	size_t			nr_damaged;
};

static struct session *sessions;

static struct tep_plugin_option options[] = {
	{
		.name = "map",
		.plugin_alias = "stackmap",
		.description = "A copy of stack_map_bin, for the frames of stack ids",
		.value = "",
	},
	{}
};

/*
 * With KASLR, hardly any symbol begins where _text of another boot was. kallsyms may lack _text;
 * then, the lowest address of the kernel must be in a function.
 */
static bool is_of_this_boot(const struct session *ses)
{
	const struct map *m = &ses->map;
	u64 symbol = tep_find_function_address(ses->tep, m->text), lowest = UINT64_MAX;
	const struct stack *st;
	size_t i;

	if (!m->text || symbol)
		return !m->text || symbol == m->text;
	for (st = m->stacks; st != stacks_end(m); st++) {
		for (i = st->first; !st->user && i < st->first + st->nr; i++) {
			if (m->ips[i] >= m->text && m->ips[i] < lowest)
				lowest = m->ips[i];
		}
	}
	return tep_find_function(ses->tep, lowest);
}

/* False if there is none to read. A damaged map keeps the stacks before the damage. */
static bool read_session_map(struct session *ses)
{
	const char *path = *options->value ? options->value : getenv("STACKMAP");

	if (ses->has_read_map || !path || !*path)
		return false;
	ses->has_read_map = true;
	load_map(&ses->map, path);
	if (is_of_this_boot(ses)) {
		use_map(&ses->ids, &ses->map, 0);
		return true;
	}
	complain("%s is not used: it is of another boot, or the trace has no symbols",
		 ses->map.name);
	return false;
}

static bool is_ambiguous(struct session *ses, const struct parts *parts, bool user)
{
	u32 i;

	for (i = 0; i < parts->nr; i++) {
		if (pool_find(&ses->ambiguous, parts->id[i], user)->value)
			return true;
	}
	return false;
}

/* The frames of the event's stack; false if they are not known. */
static bool find_frames(struct session *ses, struct record *r, const struct parts *parts)
{
	u32 stack = read_stack(r, &ses->ids, 0, 0);

	ses->words = (struct words) { ses->words.w };
	if (!stack || (!r->kind->defines && is_ambiguous(ses, parts, r->kind->is_user)))
		return false;
	if (resolve_stack(&ses->ids, stack, &ses->words) ||
	    (read_session_map(ses) && resolve_stack(&ses->ids, stack, &ses->words)))
		return true;
	if (!ses->nr_missing++)
		complain("no frames for id %u; -O stackmap:map=FILE or STACKMAP=FILE names a map",
			 parts->id[0]);
	return false;
}

static void print_ip(struct trace_seq *s, struct tep_handle *tep, u64 ip)
{
	const char *name = tep_find_function(tep, ip);

	if (ip == TRAMPOLINE_MARKER)
		trace_seq_puts(s, "=> [FTRACE TRAMPOLINE]\n");
	else if (!name)
		trace_seq_printf(s, "=> %llx\n", ip);
	else
		trace_seq_printf(s, "=> %s (%llx)\n", name, ip);
}

/* As the kernel prints it, but for the space that trace-cmd does not have before "=>". */
static void print_user_ip(struct trace_seq *s, struct session *ses, u64 word, bool exact)
{
	struct users *users = &ses->map.sym.users;
	struct object *o = object_at(users, word_object(word));
	u64 offset = word & OFFSET_MASK;
	const struct symbol *sym;

	if (!o) {
		trace_seq_printf(s, "=>  <%0*llx>\n", 2 * tep_get_long_size(ses->tep), word);
		return;
	}
	sym = find_in_object(users, o, lookup_addr(offset, exact));
	trace_seq_printf(s, "=> %s[+0x%llx]", o->path, offset);
	if (sym)
		trace_seq_printf(s, " (%s+0x%llx)", sym->name, offset - sym->addr);
	trace_seq_putc(s, '\n');
}

static void print_frames(struct trace_seq *s, struct session *ses, bool user)
{
	const struct words *w = &ses->words;
	size_t i;

	if (w->nr)
		trace_seq_putc(s, '\n');
	for (i = 0; i < w->nr; i++) {
		if (user)
			print_user_ip(s, ses, w->w[i], !i);
		else
			print_ip(s, ses->tep, w->w[i]);
	}
}

static void print_head(struct trace_seq *s, const struct kind *k, u64 cookie,
		       const struct parts *parts)
{
	u32 i;

	/* As the kernel prints it: stack_split3 is a stack_split of three parts. */
	trace_seq_printf(s, "<%s", k->field[FIELD_OUTER2_ID] ? "stack_split" : k->event->name);
	if (k->field[FIELD_COOKIE])
		trace_seq_printf(s, " %llx", cookie);
	for (i = 0; i < parts->nr; i++) {
		if (i || parts->ip[0])
			trace_seq_printf(s, " @%llx", parts->ip[i]);
		trace_seq_printf(s, " %u", parts->id[i]);
	}
	trace_seq_putc(s, '>');
}

/* False if the record is damaged. */
static bool read_head(struct session *ses, struct record *r, u64 *cookie, struct parts *parts)
{
	struct tep_format_field **field = r->kind->field;
	u64 ips[MAX_DEPTH];
	int ret = 0;

	if ((field[FIELD_COOKIE] && !get_number(r, FIELD_COOKIE, cookie)) ||
	    (field[FIELD_ID] && !read_parts(r, parts)))
		return false;
	if (r->kind->defines)
		ret = read_definition(r, &ses->ids, 0);
	else if (field[FIELD_CALLER])
		ret = read_frames(r, ips) < 0 ? -EINVAL : 0;
	if (ret > 0 && !pool_find(&ses->ambiguous, parts->id[0], r->kind->is_user)->value++)
		complain("id %u has two stacks, maybe of two instances: no frames for it",
			 parts->id[0]);
	return ret >= 0;
}

static int print_event(struct trace_seq *s, struct tep_record *rec, struct tep_event *ev,
		       void *context)
{
	struct session *ses = context;
	struct record r = { .kind = &ses->kind, .rec = rec };
	struct parts parts = {};
	u32 file_id, object = 0;
	u64 cookie;

	if (r.kind->event != ev)
		init_kind(r.kind, ev);
	if (r.kind->field[FIELD_FILE_ID])
		object = read_file_def(&r, &ses->ids, 0, &file_id);
	if (object) {
		trace_seq_printf(s, "<%s %u %s>", ev->name, file_id,
				 object_at(&ses->map.sym.users, object)->path);
	} else if (r.kind->field[FIELD_FILE_ID] || !read_head(ses, &r, &cookie, &parts)) {
		if (!ses->nr_damaged++)
			complain("damaged %s event", ev->name);
		trace_seq_printf(s, "<%s, damaged>", ev->name);
	} else {
		print_head(s, r.kind, cookie, &parts);
		if (find_frames(ses, &r, &parts))
			print_frames(s, ses, r.kind->is_user);
	}
	return 0;
}

static char *const events[] = {
	"stack_id", "stack_split", "stack_split3", "stack_def", "user_stack_id", "user_stack_def",
	"user_unwind_cookie", "user_unwind_stack_id", "user_unwind_stack_split",
	"user_unwind_stack", "user_file_def",
};

#define EXPORTED	__attribute__((visibility("default")))

EXPORTED int TEP_PLUGIN_LOADER(struct tep_handle *tep)
{
	struct session *ses = check_mem(calloc(1, sizeof(*ses)));
	size_t i;

	ses->tep = tep;
	ses->ids.users = &ses->map.sym.users;
	ses->next = sessions;
	sessions = ses;
	for (i = 0; i < ARRAY_SIZE(events); i++)
		tep_register_event_handler(tep, -1, "ftrace", events[i], print_event, ses);
	tep_plugin_add_options("stackmap", options);
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
	tep_plugin_remove_options(options);
	*last = ses->next;
	ids_free(&ses->ids);
	map_free_stacks(&ses->map);
	pool_free(&ses->ambiguous);
	free(ses->words.w);
	free(ses);
}
