// SPDX-License-Identifier: GPL-2.0
/* The values of samples: a field of the event, time off the CPU, memory that is not freed. */
#include "profile.h"

#define STATE_MASK	0xff	/* more bits only tell that the task was preempted */
#define STATE_DEAD	0x30	/* EXIT_DEAD, EXIT_ZOMBIE */

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

/* A task leaves the CPU: the time counts from here. */
static void take_leave(struct record *r, struct sample *s)
{
	struct profile *p = r->profile;
	struct task_state *t = s->task;
	bool sleeps;
	u64 state = 0;

	get_number(r, FIELD_PREV_STATE, &state);
	sleeps = state & STATE_MASK;
	s->unwanted = !t->id.pid || state & STATE_DEAD || sleeps == p->cfg->preempted;
	if (s->unwanted) {
		p->counts[COUNT_PREEMPTED] += t->id.pid && !sleeps;
		return;
	}
	if (t->away)
		drop_sample(p, t->away);
	t->away = s;
	s->holders++;
}

/*
 * Memory at an address is allocated again, with this sample, or freed, without one. @other: counts
 * what is not as it should be. Returns false if there is no address.
 */
static bool set_owner(struct record *r, struct sample *s, enum count other)
{
	struct profile *p = r->profile;
	struct sample *old;
	struct pooled *e;
	u64 ptr;

	if (!get_number(r, FIELD_PTR, &ptr) || !ptr)
		return false;
	e = pool_find(&p->addresses, r->in->nr, ptr);
	old = e->ptr;
	p->counts[other] += s ? !!old : !old;
	e->ptr = s;
	if (s)
		s->holders++;
	if (old)
		drop_sample(p, old);
	return true;
}

void weigh_event(struct record *r, struct sample *s)
{
	s->val[VAL_EVENTS] = 1;
	if (r->kind->field[FIELD_WEIGHT])
		take_weight(r, s);
	if (r->kind->is_alloc)
		s->unwanted = !set_owner(r, s, COUNT_REUSED);
	else if (r->kind->is_switch && r->profile->cfg->off_cpu)
		take_leave(r, s);
}

void weigh_free(struct record *r)
{
	set_owner(r, NULL, COUNT_FREE_UNKNOWN);
}

static void come_back(struct profile *p, struct task_state *t, u64 now, u32 cpu)
{
	struct sample *s = t->away;

	t->away = NULL;
	s->val[VAL_DELAY] = (now - s->ts + 500) / 1000;
	s->ts = now;
	s->seq = ++p->last_seq;
	s->cpu = cpu;
	sample_put(p, s);
}

/*
 * If only the switches of some tasks are recorded, those between them and others are. The others'
 * times would be wrong. Such a task comes and never leaves, or the reverse. Then, only tasks count
 * that have switched with one of these or with the idle task.
 */
static void check_chain(struct record *r, struct task_state *prev, struct task_state *next)
{
	struct cpu_state *c = r->cpu;
	struct profile *p = r->profile;

	if (c->has_next && c->next_pid != prev->id.pid) {
		prev->skipped = true;
		get_task(p, r->in, c->next_pid)->skipped = true;
		p->filtered = true;
	}
	prev->followed |= !next->id.pid || next->skipped;
	next->followed |= !prev->id.pid || prev->skipped;
	c->has_next = true;
	c->next_pid = next->id.pid;
}

bool is_skipped_task(const struct profile *p, const struct task_state *t)
{
	return t->skipped || (p->filtered && !t->followed);
}

void weigh_switch(struct record *r, u32 prev, u32 next)
{
	struct task_state *from = get_task(r->profile, r->in, prev);
	struct task_state *to = get_task(r->profile, r->in, next);

	check_chain(r, from, to);
	if (to->away)
		come_back(r->profile, to, r->rec->ts, r->rec->cpu);
	else if (next && !to->left)
		r->profile->counts[COUNT_FIRST_IN]++;
	from->left = true;
}

/* What sleeps at the end is counted up to there. */
void weigh_end(struct profile *p)
{
	struct task_state *t;
	size_t i;

	for (i = 1; i <= p->tasks.nr; i++) {
		t = p->tasks.list[i].ptr;
		p->counts[COUNT_SKIPPED] += t->left && t->id.pid && is_skipped_task(p, t);
		if (!t->away)
			continue;
		p->counts[COUNT_ASLEEP] += !is_skipped_task(p, t);
		come_back(p, t, p->last_ts, t->away->cpu);
	}
	/* What is not freed. */
	for (i = 1; i <= p->addresses.nr; i++) {
		if (p->addresses.list[i].ptr)
			sample_put(p, p->addresses.list[i].ptr);
	}
}
