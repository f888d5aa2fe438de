// SPDX-License-Identifier: GPL-2.0
/*
 * Events and their stacks. A stack follows its event on the same CPU and has the same pid, flags
 * and preempt_count, but an interrupt with events and stacks of its own may come between them, and
 * what takes the stack may be traced itself. So the latest event counts that has these and no stack
 * yet.
 *
 * The values of samples: a field of the event, time off the CPU, memory that is not freed.
 */
#include <fnmatch.h>

#include "profile.h"

#define FLAG_HARDIRQ	0x08
#define FLAG_SOFTIRQ	0x10
#define FLAG_NMI	0x40

#define STATE_MASK	0xff	/* more bits only tell that the task was preempted */
#define STATE_DEAD	0x30	/* EXIT_DEAD, EXIT_ZOMBIE */

/* In the profile, a task is another one with each name that it has had. The idle tasks are one. */
static void set_comm(struct profile *p, struct task_state *t, const char *comm)
{
	char *key __free(pointer) = NULL;
	struct pooled *e;

	snprintf(t->id.comm, sizeof(t->id.comm), "%.*s", COMM_LEN, comm);
	key = format("%u %s", t->nr, t->id.pid ? t->id.comm : "");
	t->named = intern(&p->named, key);
	e = pool_at(&p->named, t->named);
	if (!e->ptr)
		e->ptr = check_mem(malloc(sizeof(t->id)));
	memcpy(e->ptr, &t->id, sizeof(t->id));
}

static struct task_state *get_task(struct profile *p, const struct instance *in, u32 pid)
{
	struct task_state *t = pool_get(&p->tasks, in->nr, pid, sizeof(*t));

	if (!t->nr) {
		t->nr = p->tasks.nr;
		t->in = in;
		t->id.pid = pid;
		set_comm(p, t, tep_data_comm_from_pid(p->tep, pid));
	}
	return t;
}

void free_sample(struct sample *s)
{
	free(s->text);
	free(s);
}

/* Those with the same stacks, and maybe of the same task, are one. */
static void count_sample(struct profile *p, struct sample *s)
{
	u64 task = p->cfg->by_task || p->cfg->off_cpu ? s->named : 0;
	struct pooled *e = p->script ? NULL : pool_find(&p->sums, task << 32 | s->kind->event->id,
							(u64)s->kernel << 32 | s->user);
	struct sample *sum = e ? e->ptr : NULL;

	p->counts[COUNT_SAMPLES]++;
	if (sum) {
		add_values(sum->val, s->val);
		free_sample(s);
		return;
	}
	if (e)
		e->ptr = s;
	keep_sample(p, s);
}

void sample_put(struct profile *p, struct sample *s)
{
	if (--s->holders)
		return;
	if (s->unwanted)
		free_sample(s);
	else
		count_sample(p, s);
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

static bool is_wanted(const struct record *r, struct task_state *t)
{
	const struct config *cfg = r->profile->cfg;

	return r->kind->wanted && r->rec->ts >= cfg->from && (!cfg->to || r->rec->ts <= cfg->to) &&
	       number_in(cfg->pids, r->pid) && number_in(cfg->cpus, r->rec->cpu) &&
	       (!cfg->comm || !fnmatch(cfg->comm, t->id.comm, 0));
}

static struct sample *new_sample(const struct record *r)
{
	struct sample *s = check_mem(malloc(sizeof(*s)));

	*s = (struct sample) {
		.kind = r->kind, .task = get_task(r->profile, r->in, r->pid), .ts = r->rec->ts,
		.seq = ++r->profile->last_seq, .cpu = r->rec->cpu, .flags = r->flags,
		.preempt = r->preempt, .holders = 1,
	};
	s->named = s->task->named;
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

static void learn_comm(struct record *r, u64 pid, enum field which)
{
	struct task_state *t = get_task(r->profile, r->in, pid);
	const char *comm;
	u32 len;

	if (get_bytes(r, which, &comm, &len) && len > COMM_LEN &&
	    strncmp(t->id.comm, comm, COMM_LEN))
		set_comm(r->profile, t, comm);
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
 * Records were lost since the sample, on any CPU: the task may have run, the memory may have been
 * freed. @cpu: where the time ends
 */
static bool is_over_gap(const struct sample *s, u32 cpu)
{
	return s->ts < s->task->in->complete || is_in_gap(s->task->in, cpu);
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
	if (t->away) {
		p->counts[COUNT_OVER_GAP] += is_over_gap(t->away, s->cpu);
		drop_sample(p, t->away);
	}
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

/* Returns false if the time is not known. */
static bool come_back(struct profile *p, struct task_state *t, u64 now, u32 cpu)
{
	struct sample *s = t->away;

	t->away = NULL;
	if (is_over_gap(s, cpu)) {
		p->counts[COUNT_OVER_GAP]++;
		drop_sample(p, s);
		return false;
	}
	s->val[VAL_DELAY] = (now - s->ts + 500) / 1000;
	s->ts = now;
	s->seq = ++p->last_seq;
	s->cpu = cpu;
	sample_put(p, s);
	return true;
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

static void weigh_switch(struct record *r, u32 prev, u32 next)
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

static void take_switch(struct record *r)
{
	u64 prev, next;

	if (!get_number(r, FIELD_PREV_PID, &prev) || !get_number(r, FIELD_NEXT_PID, &next))
		return;
	learn_comm(r, prev, FIELD_PREV_COMM);
	learn_comm(r, next, FIELD_NEXT_COMM);
	if (r->profile->cfg->off_cpu)
		weigh_switch(r, prev, next);
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

static void take_event(struct record *r)
{
	struct cpu_state *c = r->cpu;
	struct profile *p = r->profile;
	struct sample *s;

	if (r->kind->is_switch)
		take_switch(r);
	if (r->kind->is_free)
		set_owner(r, NULL, COUNT_FREE_UNKNOWN);
	drop_other_tasks(r, c);
	if (c->nr == MAX_WAITING)
		drop_oldest(p, c, 1);
	s = new_sample(r);
	c->waiting[c->nr++] = s;
	/* Also what does not count has its address. */
	if (r->kind->is_alloc && !set_owner(r, s, COUNT_REUSED))
		s->unwanted = true;
	if (s->unwanted)
		return;
	s->val[VAL_EVENTS] = 1;
	if (r->kind->field[FIELD_WEIGHT])
		take_weight(r, s);
	if (r->kind->is_switch && p->cfg->off_cpu)
		take_leave(r, s);
	if (p->script && !s->unwanted)
		s->text = text_of(r);
}

/*
 * The event that a stack belongs to; NULL if that does not count. Events above it came in an
 * interrupt that has ended.
 */
static struct sample *find_event(struct record *r, bool kernel)
{
	struct cpu_state *c = r->cpu;
	struct sample *s;
	u32 i = c->nr;

	while (i--) {
		s = c->waiting[i];
		if (s->task->id.pid != r->pid || s->flags != r->flags || s->preempt != r->preempt ||
		    (kernel && s->has_kernel))
			continue;
		while (c->nr > i + 1)
			sample_put(r->profile, c->waiting[--c->nr]);
		s->has_kernel |= kernel;
		s->kind->has_stacks = true;
		return s->unwanted ? NULL : s;
	}
	r->profile->counts[COUNT_NO_EVENT] += kernel;
	return NULL;
}

/* @user: the stack that samples have waited for, 0 if it does not come */
static void end_waiting(struct profile *p, struct task_state *t, u32 user)
{
	struct sample *s;

	while ((s = t->waiting)) {
		t->waiting = s->next;
		s->user = user;
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

	if (!s || !get_number(r, FIELD_COOKIE, &cookie))
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
	bool mono = !strcmp(p->clock, "mono");	/* as the times of user_maps */
	u64 tgid, epoch = 0;

	if (r->kind->is_user && get_number(r, FIELD_TGID, &tgid))
		epoch = users_epoch(&p->map->users, tgid, mono ? r->rec->ts : UINT64_MAX);
	return read_stack(r, &p->stacks, r->in->nr, epoch);
}

/* For all events since the task has entered the kernel. */
static void take_unwound(struct record *r)
{
	struct task_state *t = get_task(r->profile, r->in, r->pid);
	u64 cookie;

	if (!get_number(r, FIELD_COOKIE, &cookie))
		return;
	if (cookie != t->cookie)
		new_cookie(r->profile, t, cookie);
	t->unwound = stack_of(r);
	end_waiting(r->profile, t, t->unwound);
}

static void take_stack(struct record *r)
{
	struct sample *s = find_event(r, !r->kind->is_user);

	if (s)
		*(r->kind->is_user ? &s->user : &s->kernel) = stack_of(r);
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

void set_take(struct kind *k)
{
	static const struct {
		const char	*name;
		void		(*take)(struct record *r);
	} types[] = {
		{ "stack_id", take_stack }, { "stack_split", take_stack },
		{ "kernel_stack", take_stack }, { "user_stack_id", take_stack },
		{ "user_stack", take_stack }, { "user_unwind_cookie", take_cookie },
		{ "user_unwind_stack_id", take_unwound },
		{ "user_unwind_stack_split", take_unwound },
		{ "user_unwind_stack", take_unwound }, { "stack_def", take_definition },
		{ "user_stack_def", take_definition }, { "user_object_def", take_object },
	};
	size_t i;

	k->take = take_event;
	for (i = 0; !strcmp(k->event->system, "ftrace") && i < ARRAY_SIZE(types); i++) {
		if (!strcmp(k->event->name, types[i].name))
			k->take = types[i].take;
	}
	k->is_event = k->take == take_event;
}

/* At the end. */
void drop_waiting(struct profile *p)
{
	struct cpu_state *c;
	u32 i;

	for (i = 1; i <= p->cpus.nr; i++) {
		c = p->cpus.list[i].ptr;
		drop_oldest(p, c, c->nr);
	}
	for (i = 1; i <= p->tasks.nr; i++)
		new_cookie(p, p->tasks.list[i].ptr, 0);
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
	}
	/* What is not freed. */
	for (i = 1; i <= p->addresses.nr; i++) {
		s = p->addresses.list[i].ptr;
		if (!s)
			continue;
		p->counts[COUNT_MAYBE_FREED] += !s->unwanted && is_over_gap(s, s->cpu);
		sample_put(p, s);
	}
}
