// SPDX-License-Identifier: GPL-2.0
/* The kinds of events: what each has and what it is for. Hands on a record by its kind. */
#include <trace-cmd.h>

#include "profile.h"

/* A stack that has no event is a sample as well. */
static const char *name_of(const struct tep_event *ev)
{
	return strcmp(ev->system, "ftrace") || !strstr(ev->name, "stack") ? ev->name : "stacktrace";
}

/* @list: names of events, of systems, or both as system:event, with commas between them */
static bool in_list(const char *list, const struct tep_event *ev)
{
	char *full __free(pointer) = format("%s:%s", ev->system, name_of(ev));
	char *words __free(pointer) = copy_string(list ? list : "");
	char *rest = words, *word;
	bool found = false;

	while ((word = strsep(&rest, ",\n")))
		found |= !strcmp(word, name_of(ev)) || !strcmp(word, ev->system) ||
			 !strcmp(word, full);
	return found;
}

/* NULL if the event has no such field, or it is an array. @text: it may be a text */
static struct tep_format_field *find_field(struct tep_event *ev, const char *name, bool text)
{
	const int others = TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_DYNAMIC | TEP_FIELD_IS_STRING;
	struct tep_format_field *f = name ? tep_find_any_field(ev, name) : NULL;

	if (f && text && f->flags & TEP_FIELD_IS_STRING)
		return f;
	return f && !(f->flags & others) ? f : NULL;
}

/*
 * @keys: with commas between them; @which: "pid=next_pid" is next_pid for FIELD_END_KEY, else pid.
 * Returns their number; 0 if the event lacks one.
 */
static u32 find_keys(struct tep_event *ev, const char *keys, enum field which,
		     struct tep_format_field **fields)
{
	char *words __free(pointer) = copy_string(keys ? keys : "");
	char *rest = words, *key, *name;
	u32 nr = 0;

	while ((key = strsep(&rest, ","))) {
		name = strsep(&key, "=");
		name = key && which == FIELD_END_KEY ? key : name;
		fields[nr] = which >= FIELD_KEY && !strcmp(name, cpu_field.name) ? &cpu_field :
			     find_field(ev, name, which == FIELD_BY);
		if (!fields[nr++])
			return 0;
	}
	return nr;
}

/* With a weight or a field to group by, only what has it is counted. */
static bool kind_is_wanted(const struct kind *k, const struct config *cfg)
{
	if (!k->is_sample || (cfg->events && !in_list(cfg->events, k->event)) ||
	    (cfg->by_field && !k->field[FIELD_BY]))
		return false;
	if (cfg->allocs)
		return k->is_alloc;
	if (cfg->off_cpu || cfg->weight)
		return (cfg->off_cpu && k->is_switch) || k->field[FIELD_WEIGHT];
	return true;
}

static void take_module(struct record *r)
{
	char name[64];

	get_text(r, FIELD_MODULE, name, sizeof(name));
	note_module(&r->profile->map->sym, name, !strcmp(r->kind->name, "module_free"));
}

static void take_definition(struct record *r)
{
	read_definition(r, &r->profile->ids, r->in->nr);
}

static void take_file(struct record *r)
{
	u32 file_id;

	read_file_def(r, &r->profile->ids, r->in->nr, &file_id);
}

/* The letters of a task's states are in the print format. Their bits differ between kernels. */
static void read_states(struct kind *k, const struct tep_print_arg *arg)
{
	const struct tep_print_flag_sym *flag;

	for (; arg; arg = arg->next) {
		flag = arg->type == TEP_PRINT_FLAGS ? arg->flags.flags : NULL;
		for (; flag; flag = flag->next) {
			k->sleeps |= strtoull(flag->value, NULL, 0);
			if (strpbrk(flag->str, "XxZ"))
				k->is_dead |= strtoull(flag->value, NULL, 0);
			if (!strcmp(flag->str, "D"))
				k->uninterruptible |= strtoull(flag->value, NULL, 0);
		}
		if (arg->type == TEP_PRINT_OP) {
			read_states(k, arg->op.left);
			read_states(k, arg->op.right);
		}
	}
}

static void set_take(struct kind *k)
{
	static const struct {
		const char	*name;
		void		(*take)(struct record *r);
		void		(*learn)(struct record *r);
	} types[] = {
		{ "stack_id", take_stack }, { "stack_split", take_stack },
		{ "stack_split3", take_stack }, { "kernel_stack", take_stack },
		{ "user_stack_id", take_stack }, { "user_stack", take_stack },
		{ "user_unwind_cookie", take_cookie },
		{ "user_unwind_stack_id", take_unwound },
		{ "user_unwind_stack_split", take_unwound },
		{ "user_unwind_stack", take_unwound }, { "stack_def", take_definition },
		{ "user_stack_def", take_definition }, { "user_file_def", take_file },
		{ "sched_switch", NULL, take_switch }, { "sched_process_fork", NULL, take_fork },
		{ "sched_process_exec", NULL, take_exec }, { "task_newtask", NULL, take_newtask },
		{ "task_rename", NULL, take_rename },
		{ "module_load", NULL, take_module }, { "module_free", NULL, take_module },
	};
	bool own = !strcmp(k->event->system, "ftrace");
	size_t i;

	k->take = take_event;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		if (strcmp(k->event->name, types[i].name) || own == !types[i].take)
			continue;
		k->take = own ? types[i].take : take_event;
		k->learn = types[i].learn;
	}
	k->is_event = k->take == take_event;
	k->is_sample = k->is_event || (k->take == take_stack && !k->is_user);
	k->is_switch = k->learn == take_switch;
	k->is_waking = !own && !strcmp(k->event->name, "sched_waking");
	if (k->is_switch)
		read_states(k, k->event->print_fmt.args);
	if (!k->sleeps) {
		k->sleeps = 0xff;
		k->is_dead = 0x30;
		k->uninterruptible = 0x02;
	}
}

static struct kind *new_kind(const struct profile *p, struct tep_event *ev)
{
	struct kind *k = check_mem(calloc(1, sizeof(*k)));
	const struct config *cfg = p->cfg;

	init_kind(k, ev);
	set_take(k);
	k->name = name_of(ev);
	k->is_own = !cfg->events && in_list(p->own_events, ev);
	k->field[FIELD_WEIGHT] = find_field(ev, cfg->weight, false);
	k->field[FIELD_BY] = find_field(ev, cfg->by_field, true);
	k->nr_keys = find_keys(ev, cfg->keys, FIELD_KEY, &k->field[FIELD_KEY]);
	k->nr_end_keys = find_keys(ev, cfg->keys, FIELD_END_KEY, &k->field[FIELD_END_KEY]);
	k->is_alloc = k->is_event && k->nr_keys && in_list(cfg->allocs, ev);
	k->is_free = k->is_event && k->nr_end_keys && in_list(cfg->frees, ev);
	k->wanted = kind_is_wanted(k, cfg);
	return k;
}

/* One that the file does not describe. What all events have is in the same place. */
static struct kind *new_unknown_kind(const struct profile *p)
{
	struct tep_event **ev = tep_list_events(p->tep, TEP_EVENT_SORT_ID);
	struct kind *k = check_mem(calloc(1, sizeof(*k)));

	while (ev && *ev && !tep_find_common_field(*ev, "common_pid"))
		ev++;
	if (ev && *ev)
		init_kind(k, *ev);
	k->name = "[unknown]";
	k->take = take_event;
	k->is_user = false;
	k->is_event = true;
	k->is_unknown = true;
	return k;
}

static struct kind *find_kind(struct profile *p, u32 id)
{
	struct tep_event *ev;

	if (id >= MAX_KINDS || p->kinds[id])
		return id < MAX_KINDS ? p->kinds[id] : NULL;
	ev = tep_find_event(p->tep, id);
	p->kinds[id] = ev ? new_kind(p, ev) : new_unknown_kind(p);
	return p->kinds[id];
}

void kinds_free(struct profile *p)
{
	u32 i;

	for (i = 0; i < MAX_KINDS; i++)
		free(p->kinds[i]);
}

/* The clock went back. Nothing is known of times over that, or up to times before it. */
static void take_jump(struct record *r)
{
	r->profile->counts[COUNT_JUMPS]++;
	r->profile->last_ts = r->rec->ts;
	r->in->complete = 0;
	r->in->jumps++;
}

/* What each record has. False if it has not. */
static bool read_head(struct record *r)
{
	r->kind = find_kind(r->profile, tep_data_type(r->profile->tep, r->rec));
	return r->kind && get_number(r, FIELD_PID, &r->pid) &&
	       get_number(r, FIELD_FLAGS, &r->flags);
}

/* Of a CPU, before any record is taken. */
int look_at_record(struct tracecmd_input *handle, struct tep_record *rec, int unused, void *data)
{
	struct record r = { .profile = data, .rec = rec };

	r.kind = find_kind(data, tep_data_type(r.profile->tep, rec));
	if (r.kind && (r.kind->is_user || r.kind->learn))
		look_ahead(&r);
	return 0;
}

/* The argument for the CPU counts over all instances. */
int read_record(struct tracecmd_input *handle, struct tep_record *rec, int unused, void *data)
{
	struct instance *in = tracecmd_get_private(handle);
	struct profile *p = data;
	struct record r = { .profile = p, .rec = rec, .in = in };

	p->first_ts = p->counts[COUNT_RECORDS]++ ? p->first_ts : rec->ts;
	p->last_cpu = (u32)rec->cpu > p->last_cpu ? (u32)rec->cpu : p->last_cpu;
	p->last_ts = rec->ts > p->last_ts ? rec->ts : p->last_ts;
	r.cpu = &in->cpus[rec->cpu % in->nr_cpus];
	if (rec->ts < r.cpu->ts)
		take_jump(&r);
	r.cpu->ts = rec->ts;
	r.cpu->nr_records++;
	if (rec->missed_events || r.cpu->lacks_start)
		take_gap(&r);
	if (read_head(&r)) {
		get_number(&r, FIELD_PREEMPT, &r.preempt);
		p->counts[COUNT_UNKNOWN] += r.kind->is_unknown;
		r.kind->take(&r);
		if (p->see)
			p->see(&r);
	}
	p->counts[COUNT_CUT] += r.cut;
	return 0;
}

const char *advice(const struct config *cfg)
{
	return cfg->leaks ? " (record with -e kmem)" :
	       cfg->wakers ? " (record with -e sched_switch,sched_waking)" :
	       cfg->off_cpu ? " (record with -e sched_switch)" : "";
}

/*
 * Events that the file does not describe were not recorded. One of the list is enough. @list: NULL:
 * any event; @field: what it needs, or NULL; @which: for FIELD_BY, it may be a text
 */
static int check_any(struct profile *p, const char *path, const char *list, const char *field,
		     enum field which)
{
	struct tep_event **ev = tep_list_events(p->tep, TEP_EVENT_SORT_ID);
	struct tep_format_field *fields[MAX_KEYS];
	const char *hint = advice(p->cfg);
	bool known = !list;

	for (; ev && *ev; ev++) {
		/* A stack without an event has no numbers. Any file has libtracecmd's blktrace. */
		if (field && in_list("stacktrace,blktrace", *ev))
			continue;
		if (list && !in_list(list, *ev))
			continue;
		if (!field || find_keys(*ev, field, which, fields))
			return 0;
		known = true;
	}
	if (!*hint && which == FIELD_WEIGHT)
		hint = " (" WEIGHTS ")";
	if (!field || !known)
		return fail("%s: has no event %s%s", path, list, hint);
	return fail("%s: has no event%s%s with a field %s%s%s", path, list ? " " : "",
		    list ? list : "", field, which == FIELD_BY ? "" : " that is a number", hint);
}

static int check_each(struct profile *p, const char *path, const char *list, const char *field,
		      enum field which)
{
	char *words __free(pointer) = list ? copy_string(list) : NULL;
	char *rest = words, *word;
	int ret = 0;

	while (!ret && (word = strsep(&rest, ",")))
		ret = check_any(p, path, word, field, which);
	return ret;
}

int check_events(struct profile *p, const char *path)
{
	const struct config *cfg = p->cfg;
	const char *list = cfg->allocs ? cfg->allocs : cfg->events;
	int (*check)(struct profile *p, const char *path, const char *list, const char *field,
		     enum field which) = cfg->leaks ? check_any : check_each;
	int ret;

	ret = check_each(p, path, cfg->events, NULL, 0) ?:
	      check_each(p, path, cfg->wakers ? "sched:sched_waking" : NULL, NULL, 0) ?:
	      check(p, path, cfg->allocs, cfg->keys, FIELD_KEY) ?:
	      check(p, path, cfg->frees, cfg->keys, FIELD_END_KEY) ?:
	      (cfg->weight ? check_any(p, path, list, cfg->weight, FIELD_WEIGHT) : 0) ?:
	      (cfg->by_field ? check_any(p, path, list, cfg->by_field, FIELD_BY) : 0);
	return ret ?: where_open(p, path);
}
