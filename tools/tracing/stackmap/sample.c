// SPDX-License-Identifier: GPL-2.0
/*
 * Events and their stacks. A stack follows its event on the same CPU and has the same pid, flags
 * and preempt_count, but an interrupt with events and stacks of its own may come between them, and
 * what takes the stack may be traced itself. So the latest event counts that has these and no stack
 * yet. A stack without an event is a sample of its own, but for the second one of an event: a
 * trigger has taken that.
 *
 * The values of samples: a field of the event, time off the CPU or to another event, memory that is
 * not freed.
 */
#include <fnmatch.h>

#include "profile.h"

#define FLAG_HARDIRQ	0x08
#define FLAG_SOFTIRQ	0x10
#define FLAG_NMI	0x40

#define MAX_SKEW	1000000	/* nanoseconds, more than the clocks of two CPUs differ */
#define MAX_LEAVE	10000	/* nanoseconds: a task may be woken on its way from the CPU */

/*
 * In the profile, a task is another one with each name that it has had. The idle tasks are one. A
 * process has the last name of its leader.
 */
static void set_comm(struct profile *p, struct task_state *t, const char *comm)
{
	char *key __free(pointer) = NULL;
	struct pooled *e;

	snprintf(t->id.comm, sizeof(t->id.comm), "%.*s", COMM_LEN, comm);
	if (t->process && t->process->pid == t->id.pid)
		*t->process = t->id;
	key = format("%u %u %s", t->nr, t->id.nth, t->id.pid ? t->id.comm : "");
	t->named = intern(&p->named, key);
	e = pool_at(&p->named, t->named);
	if (!e->ptr)
		e->ptr = check_mem(malloc(sizeof(t->id)));
	memcpy(e->ptr, &t->id, sizeof(t->id));
}

/* "1,5-7" */
static bool number_in(const char *list, u32 n)
{
	unsigned long first, last;
	char *end;

	for (; *list; list = *end ? end + 1 : end) {
		first = strtoul(list, &end, 10);
		last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
		if (n >= first && n <= last)
			return true;
		end += strcspn(end, ",");
	}
	return false;
}

static u32 family_by_number(const struct profile *p, u32 pid)
{
	return p->cfg->pids && number_in(p->cfg->pids, pid) ? FAMILY_PID : 0;
}

static struct task_state *get_task(struct record *r, u32 pid)
{
	struct profile *p = r->profile;
	struct task_state *t = r->cpu->task;

	if (t && t->id.pid == pid)
		return t;
	t = pool_get(&p->tasks, r->in->nr, pid, sizeof(*t));
	r->cpu->task = t;
	if (!t->nr) {
		t->nr = p->tasks.nr;
		t->in = r->in;
		t->id.pid = pid;
		t->family = pool_find(&p->roots, pid, 0)->value | family_by_number(p, pid);
		set_comm(p, t, tep_data_comm_from_pid(p->tep, pid));
	}
	return t;
}

void free_sample(struct sample *s)
{
	free(s->text);
	free(s);
}

/* Those with the same stacks, and maybe of the same task, process or CPU, are one. */
static struct pooled *find_sum(struct profile *p, const struct sample *s)
{
	enum by by = p->cfg->by;
	bool by_task = by >= BY_TASK || p->cfg->for_pprof || p->cfg->off_cpu;
	const u64 key[] = {
		by_task ? s->named : 0, by == BY_PROCESS ? (uintptr_t)s->process : 0,
		by == BY_CPU ? s->cpu : 0, s->kind->event->id, s->kernel, s->user,
		s->waker, s->waker_kernel, s->waker_user,
	};

	return pool_at(&p->sums, pool_add(&p->sums, key, ARRAY_SIZE(key)));
}

static void count_sample(struct profile *p, struct sample *s)
{
	struct pooled *e = p->script ? NULL : find_sum(p, s);
	struct sample *sum = e ? e->ptr : NULL;

	p->counts[COUNT_SAMPLES]++;
	s->val[VAL_LARGEST] = s->val[p->map->main_value];
	if (sum) {
		add_values(sum->val, s->val);
		free_sample(s);
		return;
	}
	if (e)
		e->ptr = s;
	keep_sample(p, s);
}

static bool has_comm(const struct profile *p, const struct sample *s)
{
	return !p->cfg->comm || !fnmatch(p->cfg->comm, task_of(p, s)->comm, 0);
}

/* Who was interrupted has not woken anyone. */
static void tell_waker(struct profile *p, struct sample *s)
{
	char *label __free(pointer) = NULL;
	bool interrupt = s->flags & (FLAG_HARDIRQ | FLAG_SOFTIRQ | FLAG_NMI);

	/* No task has such a long name. */
	label = format("[%s]", interrupt ? "interrupt handler" : task_of(p, s)->comm);
	s->wakes->by_interrupt = interrupt;
	s->wakes->waker = WORD_LABEL + intern(&p->map->labels, label);
	s->wakes->waker_kernel = s->kernel;
	s->wakes->waker_user = interrupt ? 0 : s->user;
	sample_put(p, s->wakes);
}

void sample_put(struct profile *p, struct sample *s)
{
	if (--s->holders)
		return;
	if (s->wakes)
		tell_waker(p, s);
	if (s->unwanted || !has_comm(p, s))
		free_sample(s);
	else
		count_sample(p, s);
}

/* Of what it did since the last time that it was told, that may have been the name @before. */
static void set_name(struct profile *p, struct task_state *t, const char *comm, bool before)
{
	struct sample *s;

	if (strncmp(t->id.comm, comm, COMM_LEN))
		set_comm(p, t, comm);
	while ((s = t->unnamed)) {
		t->unnamed = s->next_unnamed;
		p->nr_unnamed--;
		if (before)
			s->named = t->named;
		sample_put(p, s);
	}
}

static void wait_for_name(struct profile *p, struct sample *s)
{
	if (p->nr_unnamed == MAX_UNNAMED)
		return;
	p->nr_unnamed++;
	s->holders++;
	s->next_unnamed = s->task->unnamed;
	s->task->unnamed = s;
}

/* Says what it leaves out that the user has not named. */
static bool is_wanted(const struct record *r, const struct task_state *t)
{
	const struct config *cfg = r->profile->cfg;
	u64 *counts = r->profile->counts;

	if (!r->kind->wanted || r->rec->ts < cfg->from || (cfg->to && r->rec->ts > cfg->to) ||
	    (cfg->cpus && !number_in(cfg->cpus, r->rec->cpu)) ||
	    (cfg->tids && !number_in(cfg->tids, r->pid)) ||
	    (cfg->pids && !(t->family & FAMILY_PID)))
		return false;
	if (r->kind->is_own || t->family & FAMILY_OWN)
		counts[COUNT_OWN]++;
	else if (r->profile->limited && !(t->family & FAMILY_COMMAND))
		counts[COUNT_OTHERS]++;
	else
		return true;
	return false;
}

static struct sample *new_sample(struct record *r)
{
	struct sample *s = check_mem(malloc(sizeof(*s)));

	*s = (struct sample) {
		.kind = r->kind, .task = get_task(r, r->pid), .ts = r->rec->ts,
		.seq = ++r->profile->last_seq, .cpu = r->rec->cpu, .flags = r->flags,
		.preempt = r->preempt, .holders = 1, .val[VAL_EVENTS] = 1,
	};
	s->named = s->task->named;
	s->process = s->task->process;
	s->task->seen = true;
	s->unwanted = !is_wanted(r, s->task);
	return s;
}

/* The @n oldest ones. */
static void drop_oldest(struct profile *p, struct cpu_state *c, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		sample_put(p, c->waiting[i]);
	c->nr -= n;
	memmove(c->waiting, c->waiting + n, c->nr * sizeof(*c->waiting));
}

/* Another task runs: those before it get no more stacks. */
static void drop_other_tasks(struct record *r, struct cpu_state *c)
{
	u32 i = c->nr;

	if (r->flags & (FLAG_HARDIRQ | FLAG_SOFTIRQ | FLAG_NMI))
		return;
	while (i && c->waiting[i - 1]->task->id.pid == r->pid)
		i--;
	drop_oldest(r->profile, c, i);
}

static void learn_name(struct record *r, u64 pid, enum field which, bool before)
{
	char comm[COMM_LEN + 1];

	get_text(r, which, comm, sizeof(comm));
	set_name(r->profile, get_task(r, pid), comm, before);
}

static void take_weight(struct record *r, struct sample *s)
{
	const struct tep_format_field *f = r->kind->field[FIELD_WEIGHT];
	u64 n;

	if (!get_number(r, FIELD_WEIGHT, &n))
		return;
	if (f->flags & TEP_FIELD_IS_SIGNED && n && (long long)(n << (64 - 8 * f->size)) < 0)
		n = 0;
	s->val[VAL_FIELD] = n;
}

static void drop_sample(struct profile *p, struct sample *s)
{
	s->unwanted = true;
	sample_put(p, s);
}

/*
 * Records were lost, on any CPU: the task may have run, the memory may have been freed. @cpu: where
 * the time ends
 */
static bool is_over_gap(const struct instance *in, u64 since, u32 cpu)
{
	return since < in->complete || is_in_gap(in, cpu);
}

static void put_waker(struct profile *p, struct task_state *t)
{
	if (t->waker)
		sample_put(p, t->waker);
	t->waker = NULL;
}

static bool sleeps_so(const struct kind *k, const struct config *cfg, u64 state)
{
	if (cfg->sleep == SLEEP_PREEMPTED)
		return !(state & k->sleeps);
	return state & (cfg->sleep == SLEEP_UNINTERRUPTIBLE ? k->uninterruptible : k->sleeps);
}

/* A task leaves the CPU: the time counts from here. Its number may be that of another one then. */
static void take_leave(struct record *r, struct sample *s)
{
	struct profile *p = r->profile;
	struct task_state *t = s->task;
	u64 state = 0;
	bool ends;

	get_number(r, FIELD_PREV_STATE, &state);
	ends = state & r->kind->is_dead;
	if (ends) {
		t->family = 0;
		t->process = NULL;
	}
	if (s->unwanted || !p->cfg->off_cpu)
		return;
	s->unwanted = !t->id.pid || ends || !sleeps_so(r->kind, p->cfg, state) || !has_comm(p, s);
	p->counts[COUNT_PREEMPTED] += s->unwanted && t->id.pid && !(state & r->kind->sleeps);
	p->counts[COUNT_CLOCKS] += !s->unwanted && r->late;
	if (s->unwanted || r->late)
		return;
	if (t->away) {
		p->counts[COUNT_OVER_GAP] += is_over_gap(t->in, t->away->ts, s->cpu);
		drop_sample(p, t->away);
	}
	/* Who woke it before has not ended this sleep. */
	if (t->waker && s->ts > t->waker->ts + MAX_LEAVE)
		put_waker(p, t);
	t->away = s;
	s->holders++;
}

/* What was freed is forgotten when there is much of it. */
static struct pooled *find_address(struct profile *p, const u64 *key, u32 nr)
{
	struct pool live = {}, *all = &p->addresses;
	u32 i, n;

	if (all->nr < p->max_addresses)
		return pool_at(all, pool_add(all, key, nr));
	for (i = 1; i <= all->nr; i++) {
		if (!all->list[i].ptr)
			continue;
		n = pool_add(&live, pool_words(all, i), all->list[i].nr);
		live.list[n].ptr = all->list[i].ptr;
	}
	pool_free(all);
	*all = live;
	p->max_addresses = 2 * live.nr + MIN_ADDRESSES;
	return pool_at(all, pool_add(all, key, nr));
}

/*
 * The sums are right to a microsecond, however short the times are. Returns false if the time is
 * not known.
 */
static bool end_time(struct profile *p, struct sample *s, u64 now, u32 cpu)
{
	if (!s->unwanted && is_over_gap(s->task->in, s->ts, cpu)) {
		p->counts[COUNT_OVER_GAP]++;
		drop_sample(p, s);
		return false;
	}
	p->rest += s->unwanted ? 0 : now - s->ts;
	s->val[VAL_DELAY] = p->rest / 1000;
	p->rest %= 1000;
	s->ts = now;
	s->seq = ++p->last_seq;
	s->cpu = cpu;
	sample_put(p, s);
	return true;
}

/*
 * Memory at an address is allocated again, with this sample, or freed, without one; or a time
 * begins or ends. @other: counts what is not as it should be. Returns false if there is no address.
 */
static bool set_owner(struct record *r, struct sample *s, enum count other)
{
	u32 first = s ? FIELD_KEY : FIELD_END_KEY, nr = s ? r->kind->nr_keys : r->kind->nr_end_keys;
	struct tep_format_field **field = r->kind->field;
	u64 key[1 + MAX_KEYS] = { r->in->nr };
	struct profile *p = r->profile;
	struct sample *old;
	struct pooled *e;
	u32 i;

	for (i = 0; i < nr; i++) {
		if (!get_number(r, first + i, &key[1 + i]))
			return false;
		/* Each CPU has an idle task of its own. */
		if (!key[1 + i] && field[first + i] == field[FIELD_PID])
			key[1 + i] = ~(u64)r->rec->cpu;
	}
	if (!p->cfg->latency && !key[1])
		return false;
	e = find_address(p, key, 1 + i);
	old = e->ptr;
	p->counts[other] += s ? !!old : !old;
	e->ptr = s;
	if (s)
		s->holders++;
	if (old && !s && p->cfg->latency)
		end_time(p, old, r->rec->ts, r->rec->cpu);
	else if (old)
		drop_sample(p, old);
	return true;
}

/* A task is woken, maybe a moment before it leaves the CPU. What it does not need is dropped. */
static void take_waking(struct record *r, struct sample *s)
{
	struct task_state *t;
	u64 pid;

	if (!get_number(r, FIELD_TASK, &pid))
		return;
	t = get_task(r, pid);
	put_waker(r->profile, t);
	t->waker = s;
	s->holders++;
	s->is_waker = true;
}

/* Returns false if the time is not known. The stack of who woke it may still come. */
static bool come_back(struct profile *p, struct task_state *t, u64 now, u32 cpu)
{
	struct sample *s = t->away;

	t->away = NULL;
	if (t->waker) {
		t->waker->wakes = s;
		s->holders++;
		put_waker(p, t);
	}
	return end_time(p, s, now, cpu);
}

/*
 * The times of a task would be wrong if not all of its switches are recorded: it comes and never
 * leaves, or the reverse. Most often, tasks were selected by their pids, and only switches from or
 * to one of these are recorded. Then, only tasks count that have switched with one that is not
 * selected: such a task, or the idle task. But that one of these is not selected itself shows that
 * the recording is of all tasks, and lacks a switch.
 */
static void check_chain(struct record *r, struct task_state *prev, struct task_state *next)
{
	struct cpu_state *c = r->cpu;
	struct task_state *last = get_task(r, c->has_next ? c->next_pid : prev->id.pid);

	/* The recorders do not record their own. */
	if (last != prev && !(last->family & prev->family & FAMILY_OWN)) {
		prev->skipped = true;
		last->skipped = true;
		r->in->lacks_switches = true;
	}
	prev->followed |= !next->id.pid || next->skipped;
	next->followed |= !prev->id.pid || prev->skipped;
	r->in->has_all |= (prev->skipped && prev->followed) || (next->skipped && next->followed) ||
			  (last->skipped && last->followed);
	c->has_next = true;
	c->next_pid = next->id.pid;
}

bool is_skipped_task(const struct profile *p, const struct task_state *t)
{
	bool selected = t->in->lacks_switches && !t->in->has_all;

	return !p->limited && (t->skipped || (selected && !t->followed));
}

/*
 * The clocks of CPUs may differ by microseconds. If a task has come to another CPU before it has
 * left this one, it leaves at once before that, whatever the times say.
 */
static void weigh_switch(struct record *r, u32 prev, u32 next)
{
	struct task_state *from = get_task(r, prev), *to = get_task(r, next);
	struct profile *p = r->profile;
	u32 cpu = r->rec->cpu;

	check_chain(r, from, to);
	r->late = prev && from->was == cpu + 1 && from->on != cpu + 1 &&
		  r->rec->ts - from->came < MAX_SKEW;
	from->on = r->late ? from->on : 0;
	from->was = 0;
	from->left = true;
	if (to->away)
		come_back(p, to, r->rec->ts, cpu);
	put_waker(p, to);
	to->was = to->on;
	to->on = cpu + 1;
	to->came = r->rec->ts;
}

static void take_switch(struct record *r)
{
	u64 prev, next;

	if (!get_number(r, FIELD_PREV_PID, &prev) || !get_number(r, FIELD_NEXT_PID, &next))
		return;
	learn_name(r, prev, FIELD_PREV_COMM, true);
	learn_name(r, next, FIELD_NEXT_COMM, false);
	if (r->profile->cfg->off_cpu)
		weigh_switch(r, prev, next);
}

#define THREAD		0x10000		/* the kernel's CLONE_THREAD */

/* Its number may have been that of another task, whose samples keep their name. */
static void begin_task(struct record *r, struct task_state *t, enum field which)
{
	char comm[COMM_LEN + 1];

	set_name(r->profile, t, t->id.comm, false);
	t->id.nth += t->seen && t->id.pid;
	t->seen = false;
	t->process = NULL;
	get_text(r, which, comm, sizeof(comm));
	set_comm(r->profile, t, comm);
}

/* Of which this task is the leader. */
static struct task *process_of(struct profile *p, struct task_state *t)
{
	t->process = pool_get(&p->processes, t->nr, t->id.nth, sizeof(*t->process));
	*t->process = t->id;
	t->seen = true;
	return t->process;
}

/* Tells if it is a thread. */
static void take_newtask(struct record *r)
{
	struct task_state *t;
	u64 pid, flags;

	if (!get_number(r, FIELD_TASK, &pid) || !get_number(r, FIELD_CLONE_FLAGS, &flags))
		return;
	t = get_task(r, pid);
	begin_task(r, t, FIELD_COMM);
	t->process = flags & THREAD ? get_task(r, r->pid)->process : process_of(r->profile, t);
	t->is_new = true;
}

/* Of a process or a thread. */
static void take_fork(struct record *r)
{
	struct task_state *child;
	u64 parent, pid;

	if (!get_number(r, FIELD_PARENT_PID, &parent) || !get_number(r, FIELD_CHILD_PID, &pid))
		return;
	child = get_task(r, pid);
	if (!child->is_new)
		begin_task(r, child, FIELD_CHILD_COMM);
	child->is_new = false;
	child->family = get_task(r, parent)->family | family_by_number(r->profile, pid);
	learn_name(r, pid, FIELD_CHILD_COMM, false);
}

/* A thread gets the number of its process. */
static void take_exec(struct record *r)
{
	struct task_state *t;
	char path[0x1000];
	u64 pid, old;
	bool fd;

	if (!get_number(r, FIELD_TASK, &pid) || !get_number(r, FIELD_OLD_PID, &old))
		return;
	t = get_task(r, pid);
	t->family |= get_task(r, old)->family;
	process_of(r->profile, t);
	get_text(r, FIELD_FILENAME, path, sizeof(path));
	/* That of a file descriptor is no name; task_rename has told it. */
	fd = !strncmp(path, "/dev/fd/", 8) && !strchr(path + 8, '/');
	set_name(r->profile, t, fd ? t->id.comm : basename(path), false);
}

static void take_rename(struct record *r)
{
	u64 pid;

	if (!get_number(r, FIELD_TASK, &pid))
		return;
	learn_name(r, pid, FIELD_OLD_COMM, true);
	learn_name(r, pid, FIELD_NEW_COMM, false);
}

static void take_module(struct record *r)
{
	char name[64];

	get_text(r, FIELD_MODULE, name, sizeof(name));
	note_module(r->profile->map, name, !strcmp(r->kind->name, "module_free"));
}

static char *text_of(struct record *r)
{
	struct trace_seq seq;
	char *text;

	trace_seq_init(&seq);
	tep_print_event(r->profile->tep, &seq, r->rec, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&seq);
	text = copy_string(seq.buffer);
	trace_seq_destroy(&seq);
	return text;
}

/* It waits for its stacks. */
static struct sample *add_sample(struct record *r)
{
	struct cpu_state *c = r->cpu;

	drop_other_tasks(r, c);
	if (c->nr == MAX_WAITING)
		drop_oldest(r->profile, c, 1);
	c->waiting[c->nr++] = new_sample(r);
	return c->waiting[c->nr - 1];
}

static void take_event(struct record *r)
{
	struct profile *p = r->profile;
	struct sample *s;

	if (r->kind->learn)
		r->kind->learn(r);
	if (r->kind->is_free)
		set_owner(r, NULL, p->cfg->latency ? COUNT_NO_BEGIN : COUNT_FREE_UNKNOWN);
	p->counts[COUNT_ALLOCS] += r->kind->is_free || r->kind->is_alloc;
	r->cpu->has_gap = false;
	s = add_sample(r);
	/* Also what does not count has its address. */
	if (r->kind->is_alloc &&
	    !set_owner(r, s, p->cfg->latency ? COUNT_BEGUN_AGAIN : COUNT_REUSED))
		s->unwanted = true;
	if (r->kind->is_waking && p->cfg->wakers)
		take_waking(r, s);
	if (!s->unwanted && r->kind->field[FIELD_WEIGHT])
		take_weight(r, s);
	if (r->kind->is_switch)
		take_leave(r, s);
	else if (!s->unwanted || s->is_waker)
		wait_for_name(p, s);
	if (p->script && !s->unwanted)
		s->text = text_of(r);
}

static bool is_of_sample(const struct record *r, const struct sample *s)
{
	return s->task->id.pid == r->pid && s->flags == r->flags && s->preempt == r->preempt;
}

/* The event that a stack belongs to. Events above it came in an interrupt that has ended. */
static struct sample *find_event(struct record *r, bool kernel)
{
	struct cpu_state *c = r->cpu;
	struct sample *s;
	u32 i = c->nr;

	while (i--) {
		s = c->waiting[i];
		if (!is_of_sample(r, s) || (kernel && s->has_kernel))
			continue;
		while (c->nr > i + 1)
			sample_put(r->profile, c->waiting[--c->nr]);
		s->has_kernel |= kernel;
		s->kind->has_stacks = true;
		return s;
	}
	return NULL;
}

/* Whether the last event of the task has the stack already, but for the tracer's frames. */
static bool is_second(struct record *r, u32 stack)
{
	struct profile *p = r->profile;
	struct words a = {}, b = {};
	u32 i = r->cpu->nr;
	struct sample *s;
	bool same;

	while (i-- && !is_of_sample(r, r->cpu->waiting[i]))
		;
	s = i < r->cpu->nr ? r->cpu->waiting[i] : NULL;
	if (!s || !s->kind->is_event || s->has_second || !s->kernel)
		return false;
	same = s->kernel == stack ||
	       (resolve_kernel(p, s->kernel, &a) && resolve_kernel(p, stack, &b) &&
		a.nr == b.nr && !memcmp(a.w, b.w, a.nr * sizeof(*a.w)));
	s->has_second = same;
	free(a.w);
	free(b.w);
	return same;
}

/* @user: the stack that samples have waited for, 0 if it does not come */
static void end_waiting(struct profile *p, struct task_state *t, u32 user)
{
	struct sample *s;

	while ((s = t->waiting)) {
		t->waiting = s->next;
		s->user = user;
		s->process = user ? t->process : s->process;
		p->counts[COUNT_USER_LOST] += !user;
		sample_put(p, s);
	}
}

static void new_cookie(struct profile *p, struct task_state *t, u64 cookie)
{
	end_waiting(p, t, 0);
	t->cookie = cookie;
	t->unwound = 0;
}

static void take_cookie(struct record *r)
{
	struct sample *s = find_event(r, false);
	struct task_state *t;
	u64 cookie;

	if (!s || (s->unwanted && !s->is_waker) || !get_number(r, FIELD_COOKIE, &cookie))
		return;
	t = s->task;
	if (cookie != t->cookie)
		new_cookie(r->profile, t, cookie);
	s->user = t->unwound;
	/* An event has one cookie, whatever a file says. */
	if (s->user || s->has_cookie)
		return;
	s->has_cookie = true;
	s->next = t->waiting;
	t->waiting = s;
	s->holders++;
}

static u32 stack_of(struct record *r)
{
	struct profile *p = r->profile;
	u64 tgid, epoch = 0;

	if (r->kind->is_user && get_number(r, FIELD_TGID, &tgid))
		epoch = users_epoch(&p->map->users, tgid, p->is_mono ? r->rec->ts : UINT64_MAX);
	return read_stack(r, &p->stacks, r->in->nr, epoch);
}

static void set_process(struct record *r, u64 tgid)
{
	struct task *process = process_of(r->profile, get_task(r, tgid));

	get_task(r, r->pid)->process = process;
}

/* For all events since the task has entered the kernel. */
static void take_unwound(struct record *r)
{
	struct task_state *t = get_task(r, r->pid);
	u64 cookie, tgid;

	if (get_number(r, FIELD_TGID, &tgid))
		set_process(r, tgid);
	if (!get_number(r, FIELD_COOKIE, &cookie))
		return;
	if (cookie != t->cookie)
		new_cookie(r->profile, t, cookie);
	t->unwound = stack_of(r);
	end_waiting(r->profile, t, t->unwound);
}

/* Behind a gap, the event may be lost. */
static void take_lone_stack(struct record *r)
{
	u32 stack = r->kind->wanted && !r->cpu->has_gap ? stack_of(r) : 0;
	struct sample *s;

	r->profile->counts[COUNT_NO_EVENT] += r->cpu->has_gap;
	if (!stack || is_second(r, stack))
		return;
	s = add_sample(r);
	s->kernel = stack;
	s->has_kernel = true;
	s->kind->has_stacks = true;
	s->text = copy_string("");
	if (!s->unwanted)
		wait_for_name(r->profile, s);
}

static void take_stack(struct record *r)
{
	bool user = r->kind->is_user;
	struct sample *s = find_event(r, !user);
	u64 tgid;

	if (user && get_number(r, FIELD_TGID, &tgid)) {
		set_process(r, tgid);
		get_task(r, r->pid)->family |= get_task(r, tgid)->family;
	}
	if (s && user)
		s->process = s->task->process;
	if (!s && !user)
		take_lone_stack(r);
	else if (s && (!s->unwanted || s->is_waker || r->kind->wanted))
		*(user ? &s->user : &s->kernel) = stack_of(r);
}

static void take_definition(struct record *r)
{
	read_definition(r, &r->profile->stacks, r->in->nr);
}

static void take_object(struct record *r)
{
	u32 number;

	read_object(r, &r->profile->stacks, r->in->nr, &number);
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

void set_take(struct kind *k)
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
		{ "user_stack_def", take_definition }, { "user_object_def", take_object },
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

/* At the end. */
void drop_waiting(struct profile *p)
{
	struct instance *in;
	struct task_state *t;
	u32 i;

	for (in = p->instances; in < p->instances + p->nr_instances; in++) {
		for (i = 0; i < in->nr_cpus; i++)
			drop_oldest(p, &in->cpus[i], in->cpus[i].nr);
	}
	for (i = 1; i <= p->tasks.nr; i++) {
		t = p->tasks.list[i].ptr;
		new_cookie(p, t, 0);
		set_name(p, t, t->id.comm, false);
	}
}

/* What sleeps at the end is counted up to there. */
void weigh_end(struct profile *p)
{
	struct task_state *t;
	struct sample *s;
	size_t i;

	for (i = 1; i <= p->tasks.nr; i++) {
		t = p->tasks.list[i].ptr;
		p->counts[COUNT_SKIPPED] += t->left && t->id.pid && is_skipped_task(p, t);
		if (t->away && come_back(p, t, p->last_ts, t->away->cpu))
			p->counts[COUNT_ASLEEP] += !is_skipped_task(p, t);
		put_waker(p, t);
	}
	/* What is not freed. */
	for (i = 1; i <= p->addresses.nr; i++) {
		s = p->addresses.list[i].ptr;
		if (!s)
			continue;
		if (p->cfg->latency)
			p->counts[COUNT_NOT_ENDED] += !s->unwanted;
		else if (!s->unwanted && is_over_gap(s->task->in, s->ts, s->cpu))
			p->counts[COUNT_MAYBE_FREED]++;
		s->unwanted |= p->cfg->latency;
		sample_put(p, s);
	}
}
