// SPDX-License-Identifier: GPL-2.0
/*
 * Events and their stacks. A stack follows its event on the same CPU and has the same pid, flags
 * and preempt_count, but an interrupt with events and stacks of its own may come between them, and
 * what takes the stack may be traced itself. So the latest event counts that has these and no stack
 * yet. A stack without an event is a sample of its own, but for the second one of an event: a
 * trigger has taken that.
 */
#include "profile.h"

/* Without the tracer's frames. Returns false if the stack is not defined. */
bool resolve_kernel(struct profile *p, u32 stack, struct words *w)
{
	if (!resolve_stack(&p->ids, stack, w))
		return false;
	drop_words(w, tracer_frames(&p->map->sym, w->w, w->nr));
	return true;
}

/* Says what it leaves out that the user has not named. */
static bool is_wanted(struct record *r, const struct task_state *t)
{
	const struct config *cfg = r->profile->cfg;
	u64 *counts = r->profile->counts;

	if (!r->kind->wanted || r->rec->ts < cfg->from || (cfg->end && r->rec->ts >= cfg->end) ||
	    (cfg->cpus && !number_in(cfg->cpus, r->rec->cpu)) ||
	    (cfg->tids && !number_in(cfg->tids, r->pid)) || !where_matches(r))
		return false;
	if (cfg->pids && !(t->family & FAMILY_PID))
		counts[COUNT_NOT_SELECTED] += !t->process && !t->is_child && t->id.pid &&
			(t->family & FAMILY_COMMAND || !(r->profile->limited || t->family));
	else if (r->kind->is_own || t->family & FAMILY_OWN)
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
		.preempt = r->preempt, .jumps = r->in->jumps, .holders = 1, .val[VAL_EVENTS] = 1,
	};
	s->named = s->task->named;
	s->process = s->task->process;
	s->task->seen = true;
	s->unwanted = !is_wanted(r, s->task);
	if (!s->unwanted)
		take_value(r, s);
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

/* Behind a gap, the stacks of the events before it do not come. */
void take_gap(struct record *r)
{
	struct profile *p = r->profile;

	p->counts[COUNT_GAPS] += !r->cpu->lacks_start;
	p->counts[COUNT_LOST] += r->rec->missed_events > 0 ? r->rec->missed_events : 0;
	while (r->cpu->nr)
		sample_put(p, r->cpu->waiting[--r->cpu->nr]);
	r->cpu->has_gap = true;
	r->cpu->lacks_start = false;
	r->cpu->has_next = false;
	r->in->complete = r->rec->ts;
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

void take_event(struct record *r)
{
	struct profile *p = r->profile;
	struct sample *s;

	if (r->kind->learn)
		r->kind->learn(r);
	if (r->kind->is_free)
		end_latency(r);
	p->counts[COUNT_ALLOCS] += r->kind->is_free || r->kind->is_alloc;
	p->counts[COUNT_FREES] += r->kind->is_free;
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
	if (p->print && !s->unwanted)
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

void take_cookie(struct record *r)
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
		epoch = users_epoch(&p->map->sym.users, tgid, p->is_mono ? r->rec->ts : UINT64_MAX);
	return read_stack(r, &p->ids, r->in->nr, epoch);
}

/* For all events since the task has entered the kernel. */
void take_unwound(struct record *r)
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

void take_stack(struct record *r)
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
