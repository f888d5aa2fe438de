// SPDX-License-Identifier: GPL-2.0
/* Selects and adds up samples, and makes stacks of a map of them. */
#include <fnmatch.h>

#include "profile.h"
#include "symbols.h"
#include "util.h"
#include "view.h"

const char *task_comm(struct profile *p, struct task_state *t)
{
	const char *comm;

	if (!*t->id.comm) {
		comm = t->id.pid ? tep_data_comm_from_pid(p->tep, t->id.pid) : "<idle>";
		snprintf(t->id.comm, sizeof(t->id.comm), "%s", comm && *comm ? comm : "<...>");
	}
	return t->id.comm;
}

/* "1,5-7": without a list, every number is in it. */
static bool number_in(const char *list, u32 n)
{
	unsigned long first, last;
	char *end;

	if (!list)
		return true;
	for (; *list; list = *end ? end + 1 : end) {
		first = strtoul(list, &end, 10);
		last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
		if (n >= first && n <= last)
			return true;
		end += strcspn(end, ",");
	}
	return false;
}

bool is_wanted(const struct record *r, struct task_state *t)
{
	const struct config *cfg = r->profile->cfg;

	return r->kind->wanted && r->rec->ts >= cfg->from && (!cfg->to || r->rec->ts <= cfg->to) &&
	       number_in(cfg->pids, r->pid) && number_in(cfg->cpus, r->cpu) &&
	       (!cfg->comm || !fnmatch(cfg->comm, task_comm(r->profile, t), 0));
}

/* Samples are added up by {kind and value, stacks, task}: few words, as this is done for each. */
static u64 *find_sum(struct profile *p, const struct sample *s, u32 value)
{
	bool by_task = p->cfg->by_task || p->cfg->off_cpu;
	const u64 key[] = {
		(u64)s->kind->event->id * NR_VALUES + value, (u64)s->kernel << 32 | s->user,
		by_task ? s->task->nr : 0,
	};

	return &pool_at(&p->entries, pool_add(&p->entries, key, ARRAY_SIZE(key)))->value;
}

void count_sample(struct profile *p, const struct sample *s)
{
	u32 i;

	p->counts[COUNT_SAMPLES]++;
	for (i = 0; i < NR_VALUES; i++) {
		if (s->val[i])
			*find_sum(p, s, i) += s->val[i];
	}
}

static void drop_frames(struct words *w, u32 n)
{
	w->nr -= n;
	memmove(w->w, w->w + n, w->nr * sizeof(*w->w));
	w->hits = n < 64 ? w->hits >> n : 0;
}

/* The frames of a sample. Returns how many of them are of user space. */
static u32 resolve(struct profile *p, u32 kernel, u32 user, struct words *w)
{
	size_t nr;

	w->nr = 0;
	w->hits = 0;
	if (kernel && !resolve_stack(&p->stacks, kernel, w)) {
		add_word(w, WORD_UNDEFINED);
		p->counts[COUNT_UNDEFINED]++;
	} else if (kernel && !p->cfg->keep_tracer) {
		drop_frames(w, tracer_frames(p->map, w->w, w->nr));
	}
	if (!kernel && !user)
		add_word(w, WORD_NO_STACK);
	nr = w->nr;
	if (user && !resolve_stack(&p->stacks, user, w)) {
		p->counts[COUNT_UNDEFINED]++;
		if (!kernel)
			add_word(w, WORD_UNDEFINED);
		nr = w->nr;
	}
	return w->nr - nr;
}

static struct stack *add_stack(struct map *m, const struct words *w, u32 nr_user)
{
	struct stack *s = map_add(m, w->w, w->nr);

	s->id = m->nr_stacks - 1;
	s->nr_user = nr_user;
	s->hits = w->hits;
	return s;
}

/* Stacks of one task that consist of the same frames are one. @task: 0 for all. */
static struct stack *find_stack(struct profile *p, struct pool *known, struct words *w, u32 nr_user,
				u32 task)
{
	struct task_state *t = task ? p->tasks.list[task].ptr : NULL;
	struct stack *s;
	u32 i;

	add_word(w, nr_user);
	add_word(w, task);
	i = pool_add(known, w->w, w->nr);
	w->nr -= 2;
	if (i <= p->map->nr_stacks)
		return &p->map->stacks[i - 1];
	s = add_stack(p->map, w, nr_user);
	if (t && *task_comm(p, t))
		s->task = &t->id;
	return s;
}

static void add_entry(struct profile *p, struct pool *known, u32 entry, struct words *w)
{
	const u64 *key = pool_words(&p->entries, entry);
	u32 which = key[0] % NR_VALUES, task = key[2], nr_user;
	u64 value = p->entries.list[entry].value;

	if (p->cfg->off_cpu && is_skipped_task(p, p->tasks.list[task].ptr))
		return;
	if (!p->kinds[key[0] / NR_VALUES]->has_stacks) {
		p->counts[COUNT_NEVER] += which == VAL_EVENTS ? value : 0;
		return;
	}
	nr_user = resolve(p, key[1] >> 32, key[1], w);
	find_stack(p, known, w, nr_user, p->cfg->by_task ? task : 0)->val[which] += value;
}

/* Nanoseconds as microseconds. */
u64 weight_of(const u64 *values, int which)
{
	return which == VAL_DELAY ? (values[which] + 500) / 1000 : values[which];
}

/* Drops what weighs nothing. */
static void set_weights(struct map *m, const struct config *cfg)
{
	struct stack *s;
	size_t i, n = 0;

	for (i = 0; i < m->nr_stacks; i++) {
		s = &m->stacks[i];
		s->val[VAL_DELAY] = weight_of(s->val, VAL_DELAY);
		s->ref = s->val[m->main_value];
		if (s->ref || cfg->all_values)
			m->stacks[n++] = *s;
	}
	m->nr_stacks = n;
}

static void set_value_types(struct map *m, const struct config *cfg)
{
	m->values[VAL_EVENTS] = (struct value_type) { cfg->allocs ? "objects" : "events", "count" };
	if (cfg->off_cpu)
		m->values[VAL_EVENTS].type = "switches";
	if (cfg->weight)
		m->values[VAL_FIELD] = (struct value_type) {
			cfg->weight, strstr(cfg->weight, "bytes") ? "bytes" : "count",
		};
	if (cfg->off_cpu)
		m->values[VAL_DELAY] = (struct value_type) { "delay", "microseconds" };
	m->main_value = cfg->off_cpu ? VAL_DELAY : cfg->weight ? VAL_FIELD : VAL_EVENTS;
}

static void make_stacks(struct profile *p)
{
	struct pool known = {};
	struct words w = {};
	u32 i;

	for (i = 1; i <= p->entries.nr; i++)
		add_entry(p, &known, i, &w);
	set_weights(p->map, p->cfg);
	pool_free(&known);
	free(w.w);
}

void print_sample(struct profile *p, struct sample *s)
{
	struct words w = {};
	u32 nr_user;

	if (s->unwanted || (p->cfg->off_cpu && is_skipped_task(p, s->task)))
		return;
	if (!s->kernel && !s->user && !s->kind->has_stacks) {
		p->counts[COUNT_NEVER]++;
		return;
	}
	nr_user = resolve(p, s->kernel, s->user, &w);
	p->counts[COUNT_SAMPLES] += print_perf_sample(p, s, add_stack(p->map, &w, nr_user));
	p->map->nr_stacks = 0;
	p->map->nr_ips = 0;
	free(w.w);
}

static void note_stats(const struct profile *p, const char *path)
{
	static const struct {
		enum count	count;
		const char	*before;
		const char	*behind;
	} notes[] = {
		{ COUNT_NO_EVENT, "", "stacks have no event, it was lost" },
		{ COUNT_UNDEFINED, "",
		  "different stacks have ids that neither the recording nor a map defines" },
		{ COUNT_USER_LOST, "", "user stacks were lost or not yet taken" },
		{ COUNT_NEVER, "left out ", "events of kinds that have no stacks" },
		{ COUNT_ASLEEP, "", "tasks were away at the end, and count up to there" },
		{ COUNT_FIRST_IN, "", "times a task came whose leaving was not recorded" },
		{ COUNT_SKIPPED, "left out ", "tasks: not all of their switches are recorded" },
		{ COUNT_FREE_UNKNOWN, "", "frees of what was not seen allocated" },
		{ COUNT_REUSED, "",
		  "allocations at addresses in use: the older ones do not count" },
	};
	const u64 *n = p->counts;
	size_t i;

	note("%s: %llu records, %llu samples", path, n[COUNT_RECORDS], n[COUNT_SAMPLES]);
	if (n[COUNT_GAPS])
		note("%llu gaps, with %llu or more buffer entries lost", n[COUNT_GAPS],
		     n[COUNT_LOST]);
	for (i = 0; i < ARRAY_SIZE(notes); i++) {
		if (n[notes[i].count])
			note("%s%llu %s", notes[i].before, n[notes[i].count], notes[i].behind);
	}
	if (p->cfg->off_cpu)
		note("%llu switches were %s (--off-cpu%s counts these)", n[COUNT_PREEMPTED],
		     p->cfg->preempted ? "no preemptions" : "preemptions",
		     p->cfg->preempted ? "" : "=preempted");
}

/* What makes a profile wrong, and not only smaller. */
static int complain_stats(const struct profile *p, const char *path)
{
	bool none = !p->map->nr_stacks && !p->script;
	const u64 *n = p->counts;

	if (n[COUNT_DIFFER])
		complain("%s: %llu ids are other stacks in the map beside it, of another recording",
			 path, n[COUNT_DIFFER]);
	if (n[COUNT_CUT])
		complain("%s: %llu records are shorter than their formats say", path, n[COUNT_CUT]);
	if (!n[COUNT_RECORDS])
		complain("%s: has no records", path);
	else if (none)
		complain("%s: has no stacks%s", path, n[COUNT_SAMPLES] ? "" : " of such events");
	return n[COUNT_DIFFER] || n[COUNT_CUT] || !n[COUNT_RECORDS] || none ? -EINVAL : 0;
}

/* The one that the map beside the file is of. */
static struct instance *recorded_instance(struct profile *p)
{
	struct instance *found = NULL, *in;

	for (in = p->instances; in < p->instances + p->nr_instances; in++) {
		if (in->nr_records && found) {
			note("the map is not used, as there are several instances (--instance)");
			return NULL;
		}
		found = in->nr_records ? in : found;
	}
	return found;
}

static void use_saved_map(struct profile *p, const struct map *saved)
{
	struct instance *in = NULL;

	if (saved->nr_stacks || saved->numbers.nr)
		in = recorded_instance(p);
	if (in)
		p->counts[COUNT_DIFFER] += use_map(&p->stacks, saved, in->nr);
}

/* Symbols of another boot would give wrong names. */
static int check_boot(const struct profile *p, const char *path)
{
	u64 text = p->map->kallsyms.text;

	if (!text || tep_find_function_address(p->tep, text) == text ||
	    !tep_find_function(p->tep, text + 1))
		return 0;
	complain("%s: the kallsyms or the map beside it are of another boot", path);
	return p->cfg->force ? 0 : -EINVAL;
}

static const struct symbol *find_recorded_symbol(struct profile *p, u64 addr)
{
	u64 start = tep_find_function_address(p->tep, addr);
	const char *name = start ? tep_find_function(p->tep, addr) : NULL;
	struct symbol *s;

	/* There is always one before the address, but it has an end. */
	if (!name || addr - start > 1 << 20)
		return NULL;
	/* libtraceevent takes any of several aliases. */
	s = pool_get(&p->symbols, start, 0, sizeof(*s));
	if (!s->name)
		*s = (struct symbol) { .addr = start, .name = name, .type = 'T' };
	return s;
}

void profile_free(struct map *m)
{
	struct profile *p = m->profile;
	struct sample *s;

	if (!p)
		return;
	while ((s = p->unused)) {
		p->unused = s->next;
		free(s);
	}
	stacks_free(&p->stacks);
	pool_free_all(&p->tasks);
	pool_free_all(&p->symbols);
	pool_free(&p->entries);
	pool_free(&p->addresses);
	dat_close(p);
	free(p);
	m->profile = NULL;
}

/* Samples are printed as they come, so all definitions are read before. */
static int read_definitions(struct profile *p, const char *path, const struct map *saved)
{
	int ret;

	p->define_only = true;
	ret = dat_read(p, path);
	p->define_only = false;
	p->script = true;
	if (!ret)
		use_saved_map(p, saved);
	dat_close(p);
	return ret ? ret : dat_open(p, path);
}

static int read_profile(struct profile *p, const char *path, bool script, const struct map *saved)
{
	int ret = dat_open(p, path);

	if (!ret)
		ret = check_boot(p, path);
	if (!ret && script)
		ret = read_definitions(p, path, saved);
	if (ret)
		return ret;
	ret = dat_read(p, path);
	drop_waiting(p);
	weigh_end(p);
	use_saved_map(p, saved);
	make_stacks(p);
	note_stats(p, path);
	return complain_stats(p, path) ? -EINVAL : ret;
}

/*
 * Replaces the stacks of the map in @m by those of the recording, or prints the samples. The
 * recording stays open, as frames may get their names from it.
 */
int make_profile(struct map *m, const char *path, bool script, const struct config *cfg)
{
	struct map saved = {
		.stacks = m->stacks, .nr_stacks = m->nr_stacks, .ips = m->ips,
		.numbers = m->numbers,
	};
	struct profile *p = check_mem(calloc(1, sizeof(*p)));
	int ret;

	p->map = m;
	p->stacks.users = &m->users;
	p->cfg = cfg;
	m->profile = p;
	m->find_symbol = m->kallsyms.nr ? NULL : find_recorded_symbol;
	m->stacks = NULL;
	m->ips = NULL;
	m->nr_stacks = 0;
	m->nr_ips = 0;
	set_value_types(m, cfg);
	ret = read_profile(p, path, script, &saved);
	free(saved.stacks);
	free(saved.ips);
	return ret;
}
