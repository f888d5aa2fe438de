// SPDX-License-Identifier: GPL-2.0
/* Makes stacks of a map of the samples of a recording. */
#include "profile.h"

/* The frames of a sample. Returns how many of them are of user space. */
static u32 resolve(struct profile *p, const struct sample *s, struct words *w)
{
	size_t nr;

	*w = (struct words) { w->w };
	if (s->kernel && !resolve_kernel(p, s->kernel, w)) {
		add_word(w, WORD_UNDEFINED);
		p->counts[COUNT_UNDEFINED] += s->val[VAL_EVENTS];
	} else if (s->kernel && s->kind && s->kind->is_switch && p->cfg->off_cpu) {
		drop_words(w, scheduler_frames(&p->map->sym, w->w, w->nr));
	}
	if (!s->kernel && !s->user)
		add_word(w, WORD_NO_STACK);
	nr = w->nr;
	if (s->user && !resolve_stack(&p->ids, s->user, w)) {
		p->counts[COUNT_UNDEFINED] += s->val[VAL_EVENTS];
		if (!s->kernel)
			add_word(w, WORD_UNDEFINED);
		nr = w->nr;
	}
	return w->nr - nr;
}

static void add_hit(struct words *w, size_t i)
{
	w->hits |= i < 64 ? 1ULL << i : 0;
}

/*
 * Above the stack of a task: who woke it, and the stack of that, turned round. That of an interrupt
 * ends where it has hit someone, if that is known. Returns how many of these frames are of user
 * space.
 */
static u32 add_waker(struct profile *p, const struct sample *s, struct words *w)
{
	struct words from = {}, all = {};
	struct sample waker = {
		.kernel = s->waker_kernel, .user = s->waker_user,
		.val[VAL_EVENTS] = s->val[VAL_EVENTS],
	};
	u32 i, nr_user = resolve(p, &waker, &from);
	struct stack turned = { .nr = from.nr, .nr_user = nr_user };

	note_hits(&p->map->sym, &from);
	note_hits(&p->map->sym, w);
	turned.hits = from.hits;
	if (s->by_interrupt && from.hits)
		from.nr = __builtin_ctzll(from.hits);
	for (i = from.nr; i--; add_word(&all, from.w[i])) {
		if (is_exact(&turned, i))
			add_hit(&all, all.nr);
	}
	add_word(&all, s->waker);
	add_word(&all, WORD_WOKEN_BY);
	add_hit(&all, all.nr);
	all.hits |= all.nr < 64 ? w->hits << all.nr : 0;
	add_words(&all, w->w, w->nr);
	free(from.w);
	free(w->w);
	*w = all;
	return nr_user;
}

/* The tool follows mappings by perf events, for which the kernel allocates memory. */
static bool is_own_stack(const struct profile *p, u32 nr)
{
	const struct symbol *s;
	u32 i;

	for (i = 0; p->map->sym.users.watched && i < nr; i++) {
		s = find_symbol(&p->map->sym, p->words.w[i], !i);
		if (s && !strcmp(s->name, "perf_event_mmap"))
			return true;
	}
	return false;
}

/* NULL if it does not count. */
static struct stack *make_stack(struct profile *p, struct sample *sample)
{
	u64 ref = sample->val[p->map->main_value];
	u32 nr_user, waker_user = 0;
	struct stack *s;

	if (is_skipped_task(p, sample->task))
		return NULL;
	if (sample->early && !p->print && sample->early > sample->task->in->max_early) {
		p->counts[COUNT_OVER_GAP] += sample->val[VAL_EVENTS];
		return NULL;
	}
	if (!sample->kind->has_stacks) {
		p->counts[COUNT_NEVER] += sample->val[VAL_EVENTS];
		return NULL;
	}
	p->counts[COUNT_STACKS] += sample->val[VAL_EVENTS];
	if (!ref && p->print)
		return NULL;
	nr_user = resolve(p, sample, &p->words);
	if (is_own_stack(p, p->words.nr - nr_user)) {
		p->counts[COUNT_OWN] += sample->val[VAL_EVENTS];
		return NULL;
	}
	if (sample->waker)
		waker_user = add_waker(p, sample, &p->words);
	else if (p->cfg->wakers && sample->kind->is_switch)
		p->counts[COUNT_NO_WAKER] += sample->val[VAL_EVENTS];
	s = map_add(p->map, p->words.w, p->words.nr);
	s->id = p->map->nr_stacks - 1;
	s->nr_user = nr_user;
	s->woken = sample->waker;
	s->waker_user = waker_user;
	s->hits = p->words.hits;
	s->ref = ref;
	memcpy(s->val, sample->val, sizeof(s->val));
	s->task = p->cfg->for_pprof ? task_of(p, sample) : NULL;
	s->owner = sample->sum;
	s->group = group_of(p, sample);
	return s;
}

static int compare_samples(const void *a, const void *b)
{
	const struct sample *sa = *(struct sample * const *)a, *sb = *(struct sample * const *)b;

	return compare_u64(sa->seq, sb->seq);
}

static void set_value_types(struct map *m, const struct config *cfg)
{
	m->values[VAL_EVENTS] = (struct value_type) {
		cfg->off_cpu && !cfg->weight ? "switches" :
		cfg->allocs && !cfg->latency ? "objects" : "events",
		"count",
	};
	if (cfg->weight)
		m->values[VAL_FIELD] = (struct value_type) {
			cfg->weight, strstr(cfg->weight, "bytes") ? "bytes" : "count",
		};
	if (cfg->off_cpu || cfg->latency)
		m->values[VAL_DELAY] = (struct value_type) { "delay", "microseconds" };
	m->main_value = cfg->off_cpu || cfg->latency ? VAL_DELAY :
			cfg->weight ? VAL_FIELD : VAL_EVENTS;
}

static bool switches_have_stacks(const struct profile *p)
{
	u32 i = 0;

	while (i < MAX_KINDS && !(p->kinds[i] && p->kinds[i]->is_switch && p->kinds[i]->has_stacks))
		i++;
	return i < MAX_KINDS;
}

static const char * const count_texts[NR_COUNTS] = {
	[COUNT_GAPS] = "gaps", [COUNT_LOST] = "buffer entries lost, or more",
	[COUNT_SILENT] =
		"CPUs have no records: if they were not traced, times and frees are missing",
	[COUNT_OTHERS] = "events left out, of other tasks than the command's",
	[COUNT_OWN] = "events left out, which stackmap_dump itself has caused",
	[COUNT_CLOCKS] = "times off the CPU count as 0, as the clocks of the CPUs differ",
	[COUNT_BACK] = "times left out: the clock of a CPU went back meanwhile",
	[COUNT_JUMPS] = "records are earlier than the one before them on their CPU",
	[COUNT_NO_EVENT] = "stacks have no event, it was lost",
	[COUNT_UNDEFINED] =
		"stacks have ids that nothing defines: record with -O stackmap-define (trace-cmd)",
	[COUNT_USER_LOST] = "user stacks were lost or not yet taken",
	[COUNT_NEVER] = "events left out, of kinds that have no stacks",
	[COUNT_ASLEEP] = "tasks were away at the end, and count up to there",
	[COUNT_SKIPPED] = "tasks left out: not all of their switches are recorded",
	[COUNT_FREE_UNKNOWN] = "frees of what was not seen allocated",
	[COUNT_REUSED] = "allocations at addresses in use: the older ones do not count",
	[COUNT_PREEMPTED] = "switches were preemptions (see --weight off-cpu:preempted)",
	[COUNT_OVER_GAP] = "times left out: records were lost meanwhile",
	[COUNT_NO_WAKER] = "times off the CPU, of which nothing tells who ended them",
	[COUNT_NO_PROCESS] =
		"samples of threads whose process is not known, they stand alone",
	[COUNT_NOT_SELECTED] =
		"samples left out, of threads whose process is not known (--pid)",
	[COUNT_NO_BEGIN] = "ends of what was not seen to begin",
	[COUNT_BEGUN_AGAIN] = "times are in others that have begun with the same fields",
	[COUNT_NOT_ENDED] = "times left out: they had not ended",
	[COUNT_MAYBE_FREED] =
		"allocations may have been freed: records were lost after them",
	[COUNT_BELOW_0] = "values are below 0, and count as 0",
	[COUNT_OTHER_INSTANCES] =
		"samples are of events that another instance has, maybe the same (-i NAME, -i '')",
	[COUNT_UNKNOWN] =
		"events left out, of kinds that the recording does not describe (record with -e)",
	[COUNT_DIFFER] = "ids are other stacks in the map beside it, of another recording",
	[COUNT_CUT] = "records are shorter than their formats say",
};

static bool is_usual(enum count count)
{
	return count == COUNT_OTHERS || count == COUNT_OWN || count == COUNT_PREEMPTED ||
	       count == COUNT_FREE_UNKNOWN;
}

/* What each recording may have, in one line. */
static void tell_usual(const struct profile *p, const char *path)
{
	const u64 *n = p->counts;
	char *line = NULL;
	size_t len;
	FILE *f;
	int i;

	f = check_mem(open_memstream(&line, &len));
	fprintf(f, "%llu records, %llu samples", n[COUNT_RECORDS], n[COUNT_SAMPLES]);
	for (i = 0; i < NR_COUNTS; i++) {
		if (n[i] && is_usual(i) && (n[COUNT_SAMPLES] || i != COUNT_PREEMPTED))
			fprintf(f, "; %llu %s", n[i], count_texts[i]);
	}
	fclose(f);
	check_mem(line);
	note("%s: %s", path, line);
	free(line);
}

/* No task was away from the CPU so, but otherwise. */
static void tell_nobody(const struct profile *p)
{
	static const char * const nobody[] = {
		[SLEEP_ANY] = "slept", [SLEEP_PREEMPTED] = "was preempted",
		[SLEEP_UNINTERRUPTIBLE] = "slept in state D",
	};
	u64 preempted = p->counts[COUNT_PREEMPTED];

	if (preempted)
		note("no task %s; %llu %s", nobody[p->cfg->sleep], preempted,
		     count_texts[COUNT_PREEMPTED]);
	else
		note("no task %s", nobody[p->cfg->sleep]);
}

/* What could have been selected. Of very many kinds of events, some. */
static void tell_contents(const struct profile *p, const char *path)
{
	char *events = NULL;
	u32 i, nr = 0;
	size_t len;
	FILE *f;

	if (!p->counts[COUNT_RECORDS])
		return;
	f = check_mem(open_memstream(&events, &len));
	for (i = 0; i < MAX_KINDS; i++) {
		if (p->kinds[i] && p->kinds[i]->has_stacks && nr++ < 100)
			fprintf(f, " %s", p->kinds[i]->name);
	}
	fclose(f);
	note("%s: %.6f to %.6f s, up to CPU %u, stacks of %u kinds of events:%s", path,
	     p->first_ts / 1e9, p->last_ts / 1e9, p->last_cpu, nr,
	     hide_controls(check_mem(events)));
	free(events);
}

/* Why there are no stacks. All memory may have been freed. */
static int tell_empty(const struct profile *p, const char *path)
{
	const u64 *n = p->counts;

	if (p->cfg->allocs && !p->cfg->latency && n[COUNT_ALLOCS])
		return 0;
	if (n[COUNT_OVER_GAP] + n[COUNT_BACK])
		return fail("%s: all times are over lost records, or a clock that went back", path);
	if (n[COUNT_NOT_SO] && !n[COUNT_SKIPPED] && switches_have_stacks(p)) {
		tell_nobody(p);
		return 0;
	}
	complain("%s: has no %s%s", path, !n[COUNT_RECORDS] ? "records" :
		 n[COUNT_SAMPLES] ? "stacks" :
		 p->cfg->comm ? "stacks of such events of tasks with such a name" :
		 "stacks of such events",
		 p->cfg->off_cpu && switches_have_stacks(p) ? "" : advice(p->cfg));
	tell_contents(p, path);
	return -EINVAL;
}

/* What is not as one might expect. From the first error on, the profile is wrong. */
static int tell_counts(const struct profile *p, const char *path)
{
	const u64 *n = p->counts;
	int i, ret = 0;

	tell_usual(p, path);
	for (i = 0; i < NR_COUNTS; i++) {
		if (!count_texts[i] || !n[i] || is_usual(i))
			continue;
		if (i < FIRST_ERROR)
			note("%llu %s", n[i], count_texts[i]);
		else
			ret = fail("%s: %llu %s", path, n[i], count_texts[i]);
	}
	if (p->cfg->allocs && n[COUNT_ALLOCS] && !n[COUNT_FREES])
		note("no event %s was recorded, so all counts as %s", p->cfg->frees,
		     p->cfg->latency ? "not ended" : "not freed");
	if (n[COUNT_UNDEFINED])
		note("or put the stack_map_bin and kallsyms of then beside it, in a directory");
	if (p->is_too_large)
		return fail("%s: the sum of the weights is too large", path);
	return n[COUNT_STACKS] ? ret : tell_empty(p, path) ?: ret;
}

/* It is of the only instance that has records. The stacks of samples take its place. */
static void use_saved_map(struct profile *p)
{
	bool is_empty = !p->map->nr_stacks && !p->map->files.nr;
	u32 i, found = 0, n = 0;

	for (i = 0; !is_empty && i < p->nr_instances; i++) {
		if (has_records(&p->instances[i])) {
			found = i;
			n++;
		}
	}
	if (n == 1)
		use_map(&p->ids, p->map, found);
	else if (n)
		note("the map is not used, as there are several instances (--instance)");
	map_drop_stacks(p->map);
}

/* Of the first @n samples in the order of time. */
static void make_stacks(struct profile *p, size_t n)
{
	struct stack *s;
	size_t i;

	sort_array(p->samples, p->nr_samples, sizeof(*p->samples), compare_samples);
	for (i = 0; i < n; i++) {
		s = make_stack(p, p->samples[i]);
		if (s && p->print) {
			p->print(p, p->samples[i], s);
			map_drop_stacks(p->map);
		}
		free_sample(p->samples[i]);
	}
	p->nr_samples -= n;
	if (p->nr_samples)
		memmove(p->samples, p->samples + n, p->nr_samples * sizeof(*p->samples));
}

/* Samples that are printed are not kept to the end. The later ones may wait for definitions. */
static int take_record(struct tracecmd_input *handle, struct tep_record *rec, int unused,
		       void *profile)
{
	struct profile *p = profile;
	int ret = read_record(handle, rec, unused, p);

	if (p->print && p->nr_samples >= MAX_KEPT)
		make_stacks(p, MAX_KEPT / 2);
	return ret;
}

/* Symbols of another boot would give wrong names. */
static int check_boot(const struct profile *p, const char *path)
{
	u64 text = p->map->sym.kallsyms.text;

	if (!text || tep_find_function_address(p->tep, text) == text ||
	    !tep_find_function(p->tep, text + 1))
		return 0;
	complain("%s: the kallsyms or the map beside it are of another boot", path);
	return p->cfg->force ? 0 : -EINVAL;
}

/* The last section of the copy is its length, and kallsyms as the kernel has it. */
static size_t find_kallsyms(const char *buf, size_t len)
{
	size_t at = len;
	uint32_t size;

	while (at >= sizeof(size)) {
		memcpy(&size, buf + --at + 1 - sizeof(size), sizeof(size));
		if (size == len - at - 1 || __builtin_bswap32(size) == len - at - 1)
			return at + 1;
	}
	return len;
}

/* libtraceevent tells neither the end of a function nor its module. */
static const struct symbol *load_recorded_symbols(struct profile *p, u64 addr)
{
	struct symtab *t = &p->map->sym.kallsyms;
	size_t len = 0, at;
	char *buf;

	p->map->sym.find_symbol = NULL;
	buf = dat_head(p, &len);
	at = find_kallsyms(buf ? buf : "", len);
	if (at < len && !parse_lines(p->map->name, "kallsyms", buf + at, len - at,
				     parse_symbol_line, t)) {
		if (t->nr && !t->syms[t->nr - 1].addr)
			t->nr = 0;
		symtab_finish(t);
	}
	symtab_keep(t, buf);
	return symtab_find(t, addr);
}

static char *read_beside(const struct profile *p, const char *name)
{
	char *path __free(pointer) = format("%s/%s", p->map->dir ? p->map->dir : "", name);
	size_t len;

	return p->map->dir ? slurp(path, &len) : NULL;
}

/* What "record" tells about who and what counts: tasks by their numbers, and events. */
static void read_directory(struct profile *p)
{
	char *command __free(pointer) = read_beside(p, "command"), *rest = command, *line;
	char *own __free(pointer) = read_beside(p, "own_pids");
	char *threads __free(pointer) = read_beside(p, "threads");
	struct thread *t;
	u32 pid, tgid;

	p->own_events = read_beside(p, "own_events");
	p->limited = command;
	while ((line = strsep(&rest, "\n")) && *line)
		pool_find(&p->roots, strtoul(line, NULL, 10), 0)->value = FAMILY_COMMAND;
	for (rest = own; (line = strsep(&rest, "\n")) && *line; )
		pool_find(&p->roots, strtoul(line, NULL, 10), 0)->value = FAMILY_OWN;
	p->needs_threads = !threads;
	for (rest = threads; (line = strsep(&rest, "\n")); ) {
		if (sscanf(line, "%u %u", &pid, &tgid) != 2)
			continue;
		t = pool_get(&p->threads, pid, 0, sizeof(*t));
		t->tgid = tgid;
	}
}

void profile_free(struct map *m)
{
	struct profile *p = m->sym.profile;

	if (!p)
		return;
	free(p->samples);
	free(p->words.w);
	free(p->own_events);
	ids_free(&p->ids);
	pool_free_all(&p->tasks);
	pool_free_all(&p->named);
	pool_free_all(&p->processes);
	pool_free_all(&p->threads);
	pool_free(&p->roots);
	pool_free(&p->sums);
	pool_free(&p->addresses);
	pool_free(&m->labels);
	where_close(p);
	kinds_free(p);
	dat_close(p);
	free(p);
	m->sym.profile = NULL;
}

/*
 * Replaces the stacks of the map in @m by those of the recording, or prints the samples. The
 * recording stays open, as frames may get their names from it.
 */
int make_profile(struct map *m, const char *path, sample_fn *print, see_fn *see,
		 const struct config *cfg)
{
	char *lost __free(pointer) = NULL, *moved __free(pointer) = NULL;
	struct profile *p = check_mem(calloc(1, sizeof(*p)));
	bool wrong;
	int ret;

	free(m->name);
	m->name = copy_string(path);
	p->map = m;
	p->ids.users = &m->sym.users;
	p->cfg = cfg;
	m->sym.profile = p;
	m->sym.find_symbol = m->sym.kallsyms.nr ? NULL : load_recorded_symbols;
	read_directory(p);
	set_value_types(m, cfg);
	p->needs_threads &= cfg->pids || cfg->by == BY_PROCESS || see;
	p->needs_gaps = cfg->off_cpu || cfg->allocs;
	ret = dat_open(p, path) ?: check_boot(p, path);
	if (ret) {
		map_drop_stacks(m);
		return ret;
	}
	wrong = check_events(p, path);
	moved = read_beside(p, "moved");
	lost = read_beside(p, "lost");
	if (print && !wrong && open_output(cfg->output))
		return -EINVAL;
	p->print = wrong ? NULL : print;
	p->see = wrong ? NULL : see;
	use_moved(&p->ids, moved);
	use_saved_map(p);
	find_gaps(p, lost, p->needs_threads ? look_at_record : NULL);
	ret = dat_read(p, path, take_record);
	drop_waiting(p);
	weigh_end(p);
	make_stacks(p, p->nr_samples);
	p->counts[COUNT_DIFFER] = count_differing(&p->ids);
	if (p->is_too_large || wrong)
		map_drop_stacks(m);
	if (wrong)
		tell_contents(p, path);
	return wrong || tell_counts(p, path) ? -EINVAL : ret;
}
