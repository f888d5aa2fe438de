// SPDX-License-Identifier: GPL-2.0
/*
 * Events and their stacks. A stack follows its event on the same CPU and has the same pid, flags
 * and preempt_count, but an interrupt with events and stacks of its own may come between them, and
 * what takes the stack may be traced itself. So the latest event counts that has these and no stack
 * yet.
 */
#include "profile.h"
#include "util.h"

#define FLAG_HARDIRQ	0x08
#define FLAG_SOFTIRQ	0x10
#define FLAG_NMI	0x40

struct task_state *get_task(struct profile *p, const struct instance *in, u32 pid)
{
	u64 *value = pool_find(&p->tasks, in->nr, pid);
	struct task_state *t;

	if (*value)
		return p->task_list[*value];
	t = check_mem(calloc(1, sizeof(*t)));
	t->pid = pid;
	t->nr = p->tasks.nr;
	p->task_list = grow(p->task_list, &p->room_tasks, t->nr + 1, sizeof(*p->task_list));
	p->task_list[t->nr] = t;
	*value = t->nr;
	return t;
}

void sample_hold(struct sample *s)
{
	s->holders++;
}

static void recycle(struct profile *p, struct sample *s)
{
	free(s->text);
	s->next = p->unused;
	p->unused = s;
}

/* A sample that is printed waits for those before it, but not for more than a million. */
static void print_queue(struct profile *p)
{
	struct sample *s;

	while ((s = p->queue.first) && (s->done || p->queue.nr > 1 << 20)) {
		p->queue.first = s->printed_next;
		p->queue.nr--;
		if (!p->queue.first)
			p->queue.last = &p->queue.first;
		p->stats.user_lost += !s->done;
		p->queue.print(p, s);
		s->queued = false;
		if (s->done)
			recycle(p, s);
	}
}

void queue_sample(struct profile *p, struct sample *s)
{
	s->printed_next = NULL;
	s->queued = true;
	*p->queue.last = s;
	p->queue.last = &s->printed_next;
	p->queue.nr++;
}

void sample_put(struct profile *p, struct sample *s)
{
	if (--s->holders)
		return;
	s->done = true;
	if (!p->queue.print && !s->unwanted)
		count_sample(p, s);
	if (!s->queued)
		recycle(p, s);
	if (p->queue.print)
		print_queue(p);
}

struct sample *new_sample(struct record *r)
{
	struct profile *p = r->profile;
	struct sample *s = p->unused;

	if (s)
		p->unused = s->next;
	else
		s = check_mem(malloc(sizeof(*s)));
	*s = (struct sample) {
		.kind = r->kind, .task = get_task(p, r->in, r->pid), .ts = r->rec->ts,
		.cpu = r->cpu, .flags = r->flags, .preempt = r->preempt, .holders = 1,
		.unwanted = !is_wanted(r),
	};
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
	while (i && c->waiting[i - 1]->task->pid == r->pid)
		i--;
	drop_oldest(r->profile, c, i);
}

static void learn_comm(struct record *r, u64 pid, const struct tep_format_field *f)
{
	struct task_state *t = get_task(r->profile, r->in, pid);

	if (!f || f->size < COMM_LEN + 1 || f->offset + f->size > r->rec->size)
		return;
	memcpy(t->comm, (char *)r->rec->data + f->offset, COMM_LEN);
}

static void take_switch(struct record *r)
{
	u64 prev, next;

	if (!get_number(r, r->kind->prev_pid, &prev) || !get_number(r, r->kind->next_pid, &next))
		return;
	learn_comm(r, prev, r->kind->prev_comm);
	learn_comm(r, next, r->kind->next_comm);
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
	struct cpu_state *c = r->in->cpus[r->cpu];
	struct profile *p = r->profile;
	struct sample *s;

	if (r->kind->is_switch)
		take_switch(r);
	if (r->kind->is_free)
		weigh_free(r);
	drop_other_tasks(r, c);
	if (c->nr == MAX_WAITING)
		drop_oldest(p, c, 1);
	s = new_sample(r);
	c->waiting[c->nr++] = s;
	if (s->unwanted)
		return;
	weigh_event(r, s);
	if (p->queue.print && !s->unwanted)
		s->text = text_of(r);
	if (p->queue.print && !s->unwanted && !p->cfg->off_cpu && !p->cfg->allocs)
		queue_sample(p, s);
}

/* The event that a stack belongs to. Events above it came in an interrupt that has ended. */
static struct sample *find_event(struct record *r, bool kernel)
{
	struct cpu_state *c = r->in->cpus[r->cpu];
	struct sample *s;
	u32 i = c->nr;

	while (i--) {
		s = c->waiting[i];
		if (s->task->pid != r->pid || s->flags != r->flags || s->preempt != r->preempt ||
		    (kernel && s->has_kernel))
			continue;
		while (c->nr > i + 1)
			sample_put(r->profile, c->waiting[--c->nr]);
		return s;
	}
	r->profile->stats.no_event += kernel;
	return NULL;
}

/* Those that waited for the last stack of the task do not get it. */
static void new_cookie(struct profile *p, struct task_state *t, u64 cookie)
{
	struct sample *s;

	while ((s = t->waiting)) {
		t->waiting = s->next;
		p->stats.user_lost++;
		sample_put(p, s);
	}
	t->cookie = cookie;
	t->unwound = 0;
}

static void take_cookie(struct record *r, struct sample *s)
{
	struct task_state *t = s->task;
	u64 cookie;

	if (!get_number(r, r->kind->cookie, &cookie))
		return;
	if (cookie != t->cookie)
		new_cookie(r->profile, t, cookie);
	s->user = t->unwound;
	/* An event has one cookie, whatever a file says. */
	if (s->user || s->has_cookie)
		return;
	s->has_cookie = true;
	s->next = t->waiting;
	t->waiting = s;
	sample_hold(s);
}

/* For all events since the task has entered the kernel. */
static void take_unwound(struct record *r)
{
	struct task_state *t = get_task(r->profile, r->in, r->pid);
	u32 stack = r->kind->type == KIND_UNWIND_FULL ? stack_of_frames(r) : stack_of_ids(r);
	struct sample *s;
	u64 cookie;

	if (!get_number(r, r->kind->cookie, &cookie))
		return;
	if (cookie != t->cookie)
		new_cookie(r->profile, t, cookie);
	t->unwound = stack;
	while ((s = t->waiting)) {
		t->waiting = s->next;
		s->user = stack;
		sample_put(r->profile, s);
	}
}

static void take_stack(struct record *r)
{
	bool ids = r->kind->type == KIND_ID || r->kind->type == KIND_SPLIT ||
		   r->kind->type == KIND_USER_ID;
	bool kernel = r->kind->type < KIND_DEF;
	struct sample *s = find_event(r, kernel);

	if (!s)
		return;
	s->has_kernel |= kernel;
	s->kind->has_stacks = true;
	if (s->unwanted)
		return;
	if (r->kind->type == KIND_COOKIE)
		take_cookie(r, s);
	else if (kernel)
		s->kernel = ids ? stack_of_ids(r) : stack_of_frames(r);
	else
		s->user = ids ? stack_of_ids(r) : stack_of_frames(r);
}

void take_record(struct record *r)
{
	switch (r->kind->type) {
	case KIND_DEF:
	case KIND_USER_DEF:
		define_stack(r);
		break;
	case KIND_OBJECT:
		define_object(r);
		break;
	default:
		break;
	}
	if (r->profile->define_only)
		return;
	switch (r->kind->type) {
	case KIND_EVENT:
		take_event(r);
		break;
	case KIND_DEF:
	case KIND_USER_DEF:
	case KIND_OBJECT:
		break;
	case KIND_UNWIND_ID:
	case KIND_UNWIND_SPLIT:
	case KIND_UNWIND_FULL:
		take_unwound(r);
		break;
	default:
		take_stack(r);
	}
}

/* At the end. */
void drop_waiting(struct profile *p)
{
	struct instance *in;
	u32 cpu, i;

	for (in = p->instances; in < p->instances + p->nr_instances; in++) {
		for (cpu = 0; cpu < MAX_CPUS; cpu++) {
			if (in->cpus[cpu])
				drop_oldest(p, in->cpus[cpu], in->cpus[cpu]->nr);
		}
	}
	for (i = 1; i <= p->tasks.nr; i++)
		new_cookie(p, p->task_list[i], 0);
}
