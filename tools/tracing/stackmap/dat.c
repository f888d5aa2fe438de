// SPDX-License-Identifier: GPL-2.0
/* Opens and reads trace.dat. */
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

/* NULL if the event has no such field, or it is a text or an array. */
static struct tep_format_field *find_number(struct tep_event *ev, const char *name)
{
	const int others = TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_DYNAMIC | TEP_FIELD_IS_STRING;
	struct tep_format_field *f = name ? tep_find_any_field(ev, name) : NULL;

	return f && !(f->flags & others) ? f : NULL;
}

/* @names: with commas between them. Returns their number; 0 if the event lacks one. */
static u32 find_keys(struct tep_event *ev, const char *names, struct tep_format_field **fields)
{
	char *words __free(pointer) = copy_string(names ? names : "");
	char *rest = words, *name;
	u32 nr = 0;

	while ((name = strsep(&rest, ","))) {
		if (nr == MAX_KEYS)
			return 0;
		fields[nr] = find_number(ev, name);
		if (!fields[nr++])
			return 0;
	}
	return nr;
}

/* With a weight, only what has it is counted. */
static bool kind_is_wanted(const struct kind *k, const struct config *cfg)
{
	if (!k->is_sample || (cfg->events && !in_list(cfg->events, k->event)))
		return false;
	if (cfg->allocs)
		return k->is_alloc;
	if (cfg->off_cpu || cfg->weight)
		return (cfg->off_cpu && k->is_switch) || k->field[FIELD_WEIGHT];
	return true;
}

static struct kind *new_kind(const struct profile *p, struct tep_event *ev)
{
	struct kind *k = check_mem(calloc(1, sizeof(*k)));
	const struct config *cfg = p->cfg;

	init_kind(k, ev);
	set_take(k);
	k->name = name_of(ev);
	k->is_own = !cfg->events && in_list(p->own_events, ev);
	k->field[FIELD_WEIGHT] = find_number(ev, cfg->weight);
	k->nr_keys = find_keys(ev, cfg->keys, &k->field[FIELD_KEY]);
	k->nr_end_keys = find_keys(ev, cfg->end_keys, &k->field[FIELD_END_KEY]);
	k->is_alloc = k->is_event && k->nr_keys && in_list(cfg->allocs, ev);
	k->is_free = k->is_event && k->nr_end_keys && in_list(cfg->frees, ev);
	k->wanted = kind_is_wanted(k, cfg);
	return k;
}

/* NULL if the file does not describe it. */
static struct kind *find_kind(struct profile *p, u32 id)
{
	struct tep_event *ev;

	if (id >= MAX_KINDS || p->kinds[id])
		return id < MAX_KINDS ? p->kinds[id] : NULL;
	ev = tep_find_event(p->tep, id);
	p->kinds[id] = ev ? new_kind(p, ev) : NULL;
	return p->kinds[id];
}

/* Behind a gap, the stacks of the events before it do not come. */
static void take_gap(struct record *r)
{
	struct profile *p = r->profile;

	p->counts[COUNT_GAPS]++;
	p->counts[COUNT_LOST] += r->rec->missed_events > 0 ? r->rec->missed_events : 0;
	while (r->cpu->nr)
		sample_put(p, r->cpu->waiting[--r->cpu->nr]);
	r->cpu->has_gap = true;
	r->cpu->has_next = false;
	r->in->complete = r->rec->ts;
}

/* The argument for the CPU counts over all instances. */
int read_record(struct tracecmd_input *handle, struct tep_record *rec, int unused, void *data)
{
	struct instance *in = tracecmd_get_private(handle);
	struct profile *p = data;
	struct record r = { .profile = p, .rec = rec, .in = in };

	p->counts[COUNT_RECORDS]++;
	p->last_ts = rec->ts > p->last_ts ? rec->ts : p->last_ts;
	r.cpu = &in->cpus[rec->cpu % in->nr_cpus];
	if (rec->missed_events)
		take_gap(&r);
	r.kind = find_kind(p, tep_data_type(p->tep, rec));
	if (!r.kind)
		return 0;
	if (get_number(&r, FIELD_PID, &r.pid) && get_number(&r, FIELD_FLAGS, &r.flags)) {
		get_number(&r, FIELD_PREEMPT, &r.preempt);
		r.kind->take(&r);
	}
	p->counts[COUNT_CUT] += r.cut;
	return 0;
}

static const char *clock_of(struct tracecmd_input *handle)
{
	const char *clock = tracecmd_get_trace_clock(handle);

	return clock && *clock ? clock : "local";
}

/* Times of two clocks cannot be compared. */
static int check_clock(struct profile *p, const char *path, const char *clock)
{
	static const char * const others[] = { "counter", "x86-tsc", "uptime", "ppc-tb" };
	size_t i;

	if (p->clock && strcmp(clock, p->clock))
		return fail("%s: instances have the clocks %s and %s (choose one: --instance)",
			    path, p->clock, clock);
	p->clock = clock;
	p->is_mono = !strcmp(clock, "mono");
	for (i = 0; (p->cfg->off_cpu || p->cfg->latency) && i < ARRAY_SIZE(others); i++) {
		if (!strncmp(clock, others[i], strlen(others[i])))
			return fail("%s: the clock %s does not count time, needed by --weight %s",
				    path, clock, p->cfg->off_cpu ? "off-cpu" : "latency");
	}
	return 0;
}

/*
 * Events that the file does not describe were not recorded. One of the list is enough. @list: NULL:
 * any event; @field: numbers that it needs, or NULL
 */
static int check_any(struct profile *p, const char *path, const char *list, const char *field)
{
	struct tep_event **ev = tep_list_events(p->tep, TEP_EVENT_SORT_ID);
	struct tep_format_field *fields[MAX_KEYS];

	for (; ev && *ev; ev++) {
		/* A stack without an event has no numbers. */
		if (field && !strcmp(name_of(*ev), "stacktrace"))
			continue;
		if ((!list || in_list(list, *ev)) && (!field || find_keys(*ev, field, fields)))
			return 0;
	}
	if (!field)
		return fail("%s: has no event %s%s", path, list, advice(p->cfg));
	return fail("%s: has no event%s%s with a field %s that is a number%s", path,
		    list ? " " : "", list ? list : "", field, advice(p->cfg));
}

static int check_each(struct profile *p, const char *path, const char *list, const char *field)
{
	char *words __free(pointer) = list ? copy_string(list) : NULL;
	char *rest = words, *word;
	int ret = 0;

	while (!ret && (word = strsep(&rest, ",")))
		ret = check_any(p, path, word, field);
	return ret;
}

static int check_events(struct profile *p, const char *path)
{
	const struct config *cfg = p->cfg;
	const char *list = cfg->allocs ? cfg->allocs : cfg->events;
	int (*check)(struct profile *p, const char *path, const char *list, const char *field) =
		cfg->leaks ? check_any : check_each;
	int ret;

	ret = check_each(p, path, cfg->events, NULL) ?:
	      check_each(p, path, cfg->wakers ? "sched:sched_waking" : NULL, NULL) ?:
	      check(p, path, cfg->allocs, cfg->keys) ?:
	      check(p, path, cfg->frees, cfg->end_keys);
	return ret || !cfg->weight ? ret : check_any(p, path, list, cfg->weight);
}

/* The top level, or the instance with that number. */
static int add_instance(struct profile *p, const char *path, int i)
{
	const char *name = i < 0 ? "" : tracecmd_buffer_instance_name(p->top, i);
	struct instance *in = &p->instances[p->nr_instances];
	struct tracecmd_input *handle;

	if (!name || (i >= 0 && !*name) || (p->cfg->instance && strcmp(p->cfg->instance, name)))
		return 0;
	if (p->nr_instances == MAX_INSTANCES)
		return fail("%s: has more than %u instances (--instance)", path, MAX_INSTANCES);
	handle = i < 0 ? p->top : tracecmd_buffer_instance_handle(p->top, i);
	if (!handle)
		return 0;
	in->handle = handle;
	in->nr = p->nr_instances++;
	in->nr_cpus = tracecmd_cpus(handle) ?: 1;
	in->cpus = check_mem(calloc(in->nr_cpus, sizeof(*in->cpus)));
	tracecmd_set_private(handle, in);
	return check_clock(p, path, clock_of(handle));
}

/* tracecmd_open() crashes if data is missing, and so does tracecmd_close(). So it stays open. */
static struct tracecmd_input *open_file(const char *path)
{
	static struct tracecmd_input *in;

	in = tracecmd_open_head(path, TRACECMD_FL_LOAD_NO_PLUGINS);
	if (in && !tracecmd_init_data(in))
		return in;
	complain("%s: %s", path, in ? "is cut off" : "not a trace.dat that can be read");
	return NULL;
}

int dat_open(struct profile *p, const char *path)
{
	int i, ret = 0;

	tracecmd_set_loglevel(TEP_LOG_NONE);
	p->top = open_file(path);
	if (!p->top)
		return -EINVAL;
	p->tep = tracecmd_get_tep(p->top);
	for (i = -1; !ret && i < tracecmd_buffer_instances(p->top); i++)
		ret = add_instance(p, path, i);
	if (!p->nr_instances)
		return fail("%s: has no instance %s", path, p->cfg->instance);
	return ret ?: check_events(p, path);
}

bool has_records(const struct instance *in)
{
	u32 i = 0;

	while (i < in->nr_cpus && !tracecmd_peek_data(in->handle, i))
		i++;
	return i < in->nr_cpus;
}

/* Whether another CPU than @cpu is in a gap now: its next record tells that. */
bool is_in_gap(const struct instance *in, u32 cpu)
{
	const struct tep_record *rec;
	u32 i;

	for (i = 0; i < in->nr_cpus; i++) {
		rec = i == cpu ? NULL : tracecmd_peek_data(in->handle, i);
		if (rec && rec->missed_events)
			return true;
	}
	return false;
}

int dat_read(struct profile *p, const char *path)
{
	struct tracecmd_input *handles[MAX_INSTANCES];
	int ret;
	u32 i;

	for (i = 0; i < p->nr_instances; i++)
		handles[i] = p->instances[i].handle;
	ret = tracecmd_iterate_events_multi(handles, p->nr_instances, read_record, p);
	return ret ? fail("%s: cannot be read to its end", path) : 0;
}

/* The names of events and symbols are gone then. */
void dat_close(struct profile *p)
{
	u32 i;

	for (i = 0; i < p->nr_instances; i++) {
		free(p->instances[i].cpus);
		if (p->instances[i].handle != p->top)
			tracecmd_close(p->instances[i].handle);
	}
	for (i = 0; i < MAX_KINDS; i++)
		free(p->kinds[i]);
	if (p->top)
		tracecmd_close(p->top);
}
