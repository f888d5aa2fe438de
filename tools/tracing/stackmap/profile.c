// SPDX-License-Identifier: GPL-2.0
/* Selects and adds up samples, and makes stacks of a map of them. */
#include <fnmatch.h>

#include "frame.h"
#include "map.h"
#include "profile.h"
#include "recording.h"
#include "symbols.h"
#include "util.h"
#include "view.h"

/* Frames that stand for a stack that is not there. */
static const u64 no_stack = WORD_NO_STACK, undefined = WORD_UNDEFINED;

const char *task_comm(struct profile *p, struct task_state *t)
{
	const char *comm;

	if (!*t->comm) {
		comm = t->pid ? tep_data_comm_from_pid(p->tep, t->pid) : "<idle>";
		snprintf(t->comm, sizeof(t->comm), "%s", comm && *comm ? comm : "<...>");
	}
	return t->comm;
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

bool is_wanted(struct record *r)
{
	const struct config *cfg = r->profile->cfg;

	if (!r->kind->wanted || r->rec->ts < cfg->from || (cfg->to && r->rec->ts > cfg->to) ||
	    !number_in(cfg->pids, r->pid) || !number_in(cfg->cpus, r->cpu))
		return false;
	return !cfg->comm ||
	       !fnmatch(cfg->comm, task_comm(r->profile, get_task(r->profile, r->in, r->pid)), 0);
}

void count_sample(struct profile *p, struct sample *s)
{
	bool by_task = p->cfg->by_task || p->cfg->off_cpu;
	const u64 key[] = { s->kind->nr, s->kernel, s->user, by_task ? s->task->nr : 0 };
	u32 entry = pool_add(&p->entries, key, ARRAY_SIZE(key));
	u64 *val;
	int i;

	if (entry > p->nr_values) {
		p->values = grow(p->values, &p->room_values, entry + 1, sizeof(*p->values));
		memset(p->values[entry], 0, sizeof(*p->values));
		p->nr_values = entry;
	}
	val = p->values[entry];
	for (i = 0; i < NR_VALUES; i++)
		val[i] += s->val[i];
	p->stats.samples++;
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
	if (kernel && !resolve_kernel(p, kernel, w)) {
		w->nr = 0;
		w->hits = 0;
		add_word(w, undefined);
		p->stats.undefined++;
	} else if (kernel && !p->cfg->keep_tracer) {
		drop_frames(w, tracer_frames(p->map, w->w, w->nr));
	}
	if (!kernel && !user)
		add_word(w, no_stack);
	nr = w->nr;
	if (user && !resolve_user(p, user, w)) {
		p->stats.user_undefined++;
		if (!kernel)
			add_word(w, undefined);
		nr = w->nr;
	}
	return w->nr - nr;
}

static struct stack *add_stack(struct map *m, const struct words *w, u32 nr_user)
{
	struct stack *s;

	m->stacks = grow(m->stacks, &m->room_stacks, m->nr_stacks + 1, sizeof(*m->stacks));
	m->ips = grow(m->ips, &m->room_ips, m->nr_ips + w->nr, sizeof(*m->ips));
	s = &m->stacks[m->nr_stacks];
	*s = (struct stack) {
		.id = m->nr_stacks++, .nr = w->nr, .nr_user = nr_user, .first = m->nr_ips,
		.by_file = true, .hits = w->hits,
	};
	memcpy(m->ips + m->nr_ips, w->w, w->nr * sizeof(*w->w));
	m->nr_ips += w->nr;
	return s;
}

static void add_task(struct profile *p, const struct stack *s, u32 nr)
{
	struct map *m = p->map;
	struct task *t;

	m->tasks = grow(m->tasks, &m->room_tasks, m->nr_stacks, sizeof(*m->tasks));
	t = &m->tasks[s->id];
	*t = (struct task) {};
	if (!nr)
		return;
	t->pid = p->task_list[nr]->pid;
	snprintf(t->comm, sizeof(t->comm), "%s", task_comm(p, p->task_list[nr]));
}

/* Stacks of one task that consist of the same frames are one. */
static struct stack *find_stack(struct profile *p, struct pool *known, struct words *w, u32 nr_user,
				u32 task)
{
	size_t nr = w->nr;
	struct stack *s;
	u64 *value;

	add_word(w, nr_user);
	add_word(w, p->cfg->by_task ? task : 0);
	value = pool_value(known, pool_add(known, w->w, w->nr));
	w->nr = nr;
	if (*value)
		return &p->map->stacks[*value - 1];
	s = add_stack(p->map, w, nr_user);
	*value = p->map->nr_stacks;
	if (p->cfg->by_task)
		add_task(p, s, task);
	return s;
}

static void add_entry(struct profile *p, struct pool *known, u32 entry, struct words *w)
{
	const u64 *key = pool_words(&p->entries, entry);
	struct stack *s;
	u32 nr_user;
	int i;

	if (p->cfg->off_cpu && is_skipped_task(p, p->task_list[key[3]]))
		return;
	if (!p->kinds[key[0]]->has_stacks) {
		p->stats.never += p->values[entry][VAL_EVENTS];
		return;
	}
	nr_user = resolve(p, key[1], key[2], w);
	s = find_stack(p, known, w, nr_user, key[3]);
	for (i = 0; i < NR_VALUES; i++)
		s->val[i] += p->values[entry][i];
}

static int main_value(const struct config *cfg)
{
	if (cfg->off_cpu)
		return VAL_DELAY;
	return cfg->weight ? VAL_FIELD : VAL_EVENTS;
}

/* From nanoseconds to microseconds. Drops what weighs nothing. */
static void set_weights(struct map *m, const struct config *cfg)
{
	struct stack *s;
	size_t i, n = 0;

	for (i = 0; i < m->nr_stacks; i++) {
		s = &m->stacks[i];
		s->val[VAL_DELAY] = (s->val[VAL_DELAY] + 500) / 1000;
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
	m->main_value = main_value(cfg);
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

static void print_queued(struct profile *p, struct sample *s)
{
	struct words w = {};
	u32 nr_user;

	if (s->unwanted || (p->cfg->off_cpu && is_skipped_task(p, s->task)))
		return;
	if (!s->kernel && !s->user && !s->kind->has_stacks) {
		p->stats.never++;
		return;
	}
	nr_user = resolve(p, s->kernel, s->user, &w);
	p->stats.samples += print_perf_sample(p, s, &w, nr_user);
	free(w.w);
}

static void note_stats(const struct profile *p, const char *path)
{
	const struct profile_stats *s = &p->stats;

	note("%s: %llu records, %llu samples", path, s->records, s->samples);
	if (s->gaps)
		note("%llu gaps, with %llu or more buffer entries lost", s->gaps, s->lost);
	if (s->no_event)
		note("%llu stacks have no event, it was lost", s->no_event);
	if (s->undefined || s->user_undefined)
		note("%llu different stacks have ids that neither the recording nor a map defines",
		     s->undefined + s->user_undefined);
	if (s->user_lost)
		note("%llu user stacks were lost or not yet taken", s->user_lost);
	if (s->never)
		note("left out %llu events of kinds that have no stacks", s->never);
	if (s->asleep)
		note("%llu tasks were away at the end, and count up to there", s->asleep);
	if (s->first_in)
		note("%llu times a task came whose leaving was not recorded", s->first_in);
	if (s->skipped)
		note("left out %llu tasks: not all of their switches are recorded", s->skipped);
	if (p->cfg->off_cpu)
		note("%llu switches were %s (--off-cpu%s counts these)", s->preempted,
		     p->cfg->preempted ? "no preemptions" : "preemptions",
		     p->cfg->preempted ? "" : "=preempted");
	if (s->free_unknown)
		note("%llu frees of what was not seen allocated", s->free_unknown);
	if (s->reused)
		note("%llu allocations at addresses in use: the older ones do not count",
		     s->reused);
}

/* What makes a profile wrong, and not only smaller. */
static int complain_stats(const struct profile *p, const char *path)
{
	if (p->stats.differ)
		complain("%s: %llu ids are other stacks in the map beside it, of another recording",
			 path, p->stats.differ);
	if (p->stats.cut)
		complain("%s: %llu records are shorter than their formats say", path, p->stats.cut);
	if (!p->stats.records)
		complain("%s: has no records", path);
	else if (!p->map->nr_stacks && !p->queue.print)
		complain("%s: has no stacks%s", path, p->stats.samples ? "" : " of such events");
	return p->stats.differ || p->stats.cut || !p->stats.records ||
	       (!p->map->nr_stacks && !p->queue.print) ? -EINVAL : 0;
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

static int use_saved_map(struct profile *p, struct map *saved)
{
	struct instance *in = NULL;
	size_t i;

	if (saved->nr_stacks || p->map->nr_numbers)
		in = recorded_instance(p);
	for (i = 1; in && i < p->map->nr_numbers; i++) {
		if (p->map->numbers[i])
			*pool_find(&p->objects, in->nr, i) = p->map->numbers[i];
	}
	return in ? use_map(p, saved, in) : 0;
}

/* Symbols of another boot would give wrong names. */
static int check_boot(const struct profile *p, const char *path)
{
	const struct symtab *t = &p->map->kallsyms;
	u64 text = t->text ? t->text : p->map->text;

	if (!text || !t->text || tep_find_function_address(p->tep, text) == text ||
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
	u64 *value;

	/* There is always one before the address, but it has an end. */
	if (!name || addr - start > 1 << 20)
		return NULL;
	value = pool_find(&p->symbols, start, 0);
	if (!*value) {
		s = check_mem(calloc(1, sizeof(*s)));
		*s = (struct symbol) { .addr = start, .name = name, .type = 'T' };
		*value = (uintptr_t)s;
	}
	return (struct symbol *)(uintptr_t)*value;
}

void profile_free(struct map *m)
{
	struct profile *p = m->profile;
	struct sample *s;
	size_t i;

	if (!p)
		return;
	stacks_free(p);
	for (i = 1; i <= p->tasks.nr; i++)
		free(p->task_list[i]);
	for (i = 1; i <= p->symbols.nr; i++)
		free((struct symbol *)(uintptr_t)*pool_value(&p->symbols, i));
	while ((s = p->unused)) {
		p->unused = s->next;
		free(s);
	}
	free(p->task_list);
	pool_free(&p->symbols);
	pool_free(&p->tasks);
	pool_free(&p->entries);
	pool_free(&p->addresses);
	free(p->values);
	dat_close(p);
	free(p);
	m->profile = NULL;
}

static int read_all(struct profile *p, const char *path, struct map *saved)
{
	int ret = dat_read(p, path);

	drop_waiting(p);
	weigh_end(p);
	ret = ret ? ret : use_saved_map(p, saved);
	return ret;
}

/* Samples are printed as they come, so all definitions are read before. */
static int read_definitions(struct profile *p, const char *path, struct map *saved)
{
	int ret;

	p->define_only = true;
	ret = dat_read(p, path);
	p->define_only = false;
	if (!ret)
		ret = use_saved_map(p, saved);
	dat_close(p);
	return ret ? ret : dat_open(p, path);
}

static int read_profile(struct profile *p, const char *path, bool script, struct map *saved)
{
	int ret = dat_open(p, path);

	if (!ret)
		ret = check_boot(p, path);
	if (!ret && script) {
		ret = read_definitions(p, path, saved);
		p->queue.print = print_queued;
	}
	if (ret)
		return ret;
	ret = read_all(p, path, saved);
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
	struct map saved = { .stacks = m->stacks, .nr_stacks = m->nr_stacks, .ips = m->ips };
	struct profile *p = check_mem(calloc(1, sizeof(*p)));
	int ret;

	p->map = m;
	p->cfg = cfg;
	p->queue.last = &p->queue.first;
	m->profile = p;
	m->find_symbol = m->kallsyms.nr ? NULL : find_recorded_symbol;
	m->stacks = NULL;
	m->ips = NULL;
	m->nr_stacks = 0;
	m->room_stacks = 0;
	m->nr_ips = 0;
	m->room_ips = 0;
	set_value_types(m, cfg);
	ret = read_profile(p, path, script, &saved);
	free(saved.stacks);
	free(saved.ips);
	return ret;
}
