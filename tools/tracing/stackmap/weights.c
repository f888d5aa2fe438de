// SPDX-License-Identifier: GPL-2.0
/*
 * What a sample weighs: a field of the event, time off the CPU or to another event, memory that is
 * not freed. The sample is held until that is known.
 */
#include "profile.h"

#define MAX_SKEW	1000000	/* nanoseconds, more than the clocks of two CPUs differ */
#define MAX_LEAVE	10000	/* nanoseconds: a task may be woken on its way from the CPU */

void take_weight(struct record *r, struct sample *s)
{
	const struct tep_format_field *f = r->kind->field[FIELD_WEIGHT];
	bool below;
	u64 n;

	if (!get_number(r, FIELD_WEIGHT, &n))
		return;
	/* A kernel has no such large numbers but those below 0. */
	below = signed_number(f, n) < 0;
	r->profile->counts[COUNT_BELOW_0] += below;
	s->val[VAL_FIELD] = below ? 0 : n;
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
void take_leave(struct record *r, struct sample *s)
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
		t->is_child = false;
	}
	if (s->unwanted || !p->cfg->off_cpu)
		return;
	s->unwanted = !t->id.pid || ends || !has_comm(p, s);
	if (!s->unwanted && !sleeps_so(r->kind, p->cfg, state)) {
		s->unwanted = true;
		p->counts[COUNT_NOT_SO]++;
		p->counts[COUNT_PREEMPTED] += !(state & r->kind->sleeps);
	}
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
	bool back = now < s->ts || s->jumps != s->task->in->jumps;

	if (!s->unwanted && (back || is_over_gap(s->task->in, s->ts, cpu))) {
		p->counts[back ? COUNT_BACK : COUNT_OVER_GAP]++;
		drop_sample(p, s);
		return false;
	}
	p->rest += s->unwanted ? 0 : now - s->ts;
	s->early = count_later(s->task->in, s->ts);
	s->since = s->ts;
	s->val[VAL_DELAY] = p->rest / 1000;
	p->rest %= 1000;
	s->ts = now;
	s->seq = ++p->last_seq;
	s->cpu = cpu;
	sample_put(p, s);
	return true;
}

#define MAX_NESTED	64	/* the oldest begin is dropped then */

/* What has begun last ends first. */
static struct sample *nest(struct profile *p, struct sample *s, struct sample *outer)
{
	struct sample *at = s;
	u32 depth = 0;

	s->outer = outer;
	while (at->outer && ++depth < MAX_NESTED)
		at = at->outer;
	if (at->outer) {
		p->counts[COUNT_NOT_ENDED] += !at->outer->unwanted;
		drop_sample(p, at->outer);
		at->outer = NULL;
	}
	return s;
}

/*
 * Memory at an address is allocated again, with this sample, or freed, without one; or a time
 * begins or ends. @other: counts what is not as it should be. Returns false if there is no address.
 */
bool set_owner(struct record *r, struct sample *s, enum count other)
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
	if (p->cfg->latency) {
		e->ptr = s ? nest(p, s, old) : old ? old->outer : NULL;
		if (old && !s)
			end_time(p, old, r->rec->ts, r->rec->cpu);
	} else if (old) {
		drop_sample(p, old);
	}
	return true;
}

/*
 * A time that ends when a task comes to a CPU. If the task leaves one meanwhile, it was woken while
 * it ran, and did not wait; or it was woken on its way from the CPU.
 */
static void drop_running(struct record *r)
{
	u64 key[] = { r->in->nr, 0 };
	struct sample *s;
	struct pooled *e;

	if (r->kind->nr_end_keys != 1 ||
	    r->kind->field[FIELD_END_KEY] != r->kind->field[FIELD_NEXT_PID] ||
	    !get_number(r, FIELD_PREV_PID, &key[1]))
		return;
	e = find_address(r->profile, key, ARRAY_SIZE(key));
	s = e->ptr;
	if (!s || r->rec->ts < s->ts + MAX_LEAVE)
		return;
	r->profile->counts[COUNT_NOT_ENDED] += !s->unwanted;
	e->ptr = s->outer;
	drop_sample(r->profile, s);
}

void end_latency(struct record *r)
{
	if (r->kind->is_switch && r->profile->cfg->latency)
		drop_running(r);
	set_owner(r, NULL, r->profile->cfg->latency ? COUNT_NO_BEGIN : COUNT_FREE_UNKNOWN);
}

/* A task is woken, maybe a moment before it leaves the CPU. What it does not need is dropped. */
void take_waking(struct record *r, struct sample *s)
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

	/* A named process has those times of which both ends are seen. */
	if (p->limited || (p->cfg->pids && t->in->has_all))
		return false;
	return t->skipped || (selected && !t->followed);
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

void take_switch(struct record *r)
{
	u64 prev, next;

	if (!get_number(r, FIELD_PREV_PID, &prev) || !get_number(r, FIELD_NEXT_PID, &next))
		return;
	learn_name(r, prev, FIELD_PREV_COMM, true);
	learn_name(r, next, FIELD_NEXT_COMM, false);
	if (r->profile->cfg->off_cpu)
		weigh_switch(r, prev, next);
}

/* What sleeps at the end is counted up to there. */
void weigh_end(struct profile *p)
{
	struct sample *s, *outer;
	struct task_state *t;
	size_t i;

	close_gaps(p);
	for (i = 1; i <= p->tasks.nr; i++) {
		t = p->tasks.list[i].ptr;
		p->counts[COUNT_SKIPPED] += t->left && t->id.pid && is_skipped_task(p, t);
		if (t->away && come_back(p, t, p->last_ts, t->away->cpu))
			p->counts[COUNT_ASLEEP] += !is_skipped_task(p, t);
		put_waker(p, t);
	}
	/* What is not freed. */
	for (i = 1; i <= p->addresses.nr; i++) {
		for (s = p->addresses.list[i].ptr; s; s = outer) {
			outer = s->outer;
			if (p->cfg->latency)
				p->counts[COUNT_NOT_ENDED] += !s->unwanted;
			else if (!s->unwanted && is_over_gap(s->task->in, s->ts, s->cpu))
				p->counts[COUNT_MAYBE_FREED]++;
			s->unwanted |= p->cfg->latency;
			sample_put(p, s);
		}
	}
}
