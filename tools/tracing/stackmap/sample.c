// SPDX-License-Identifier: GPL-2.0
/*
 * The samples of a trace: an event with its stacks. An event is followed by the stack of the
 * kernel, and then by that of user space, or by a cookie in its place. On the same CPU, an
 * interrupt may come between them, with events and stacks of its own, and other CPUs write
 * meanwhile. All that belongs to one event has the same task and flags.
 */
#include "frame.h"
#include "trace.h"
#include "user.h"
#include "util.h"

/* Goes through a trace. */
static struct cpu *this_cpu(struct walk *w)
{
	u32 cpu = w->context.cpu;

	if (!w->has_context)
		return &w->no_cpu;
	w->cpus = grow(w->cpus, &w->room_cpus, cpu + 1, sizeof(*w->cpus));
	if (cpu >= w->nr_cpus) {
		memset(w->cpus + w->nr_cpus, 0, (cpu + 1 - w->nr_cpus) * sizeof(*w->cpus));
		w->nr_cpus = cpu + 1;
	}
	return &w->cpus[cpu];
}

static void queue_event(struct walk *w, struct cpu *c)
{
	if (c->nr_waiting == MAX_WAITING) {
		free(c->waiting[0].text);
		memmove(c->waiting, c->waiting + 1, --c->nr_waiting * sizeof(*c->waiting));
	}
	c->waiting[c->nr_waiting++] = (struct event) {
		.context = w->context, .text = copy_string(skip_diff(w->t.event)),
	};
}

/* The event of a stack. */
static struct event take_event(struct walk *w, struct cpu *c)
{
	struct event e = { .context = w->context };

	if (c->nr_waiting &&
	    c->waiting[c->nr_waiting - 1].context.task.pid == w->context.task.pid)
		e = c->waiting[--c->nr_waiting];
	else
		e.text = copy_string("unknown:");
	return e;
}

static void free_sample(struct sample *s)
{
	free(s->event.text);
	free(s->kernel.text);
	free(s->user.text);
}

const struct process *sample_process(const struct walk *w, const struct sample *s)
{
	if (!s->has_context || s->user.kind == LINE_OTHER)
		return NULL;
	return find_process(&w->map->users, &s->context.task);
}

/* The frames are those behind the map's, until someone keeps them by raising nr_ips. */
const struct stack *sample_frames(struct walk *w, const struct sample *s)
{
	w->whole = (struct stack) { .first = w->map->nr_ips };
	add_kernel_half(w->map, &w->whole, &s->kernel);
	add_user_half(w->map, &w->whole, &s->user, sample_process(w, s));
	return &w->whole;
}

/* Samples of a CPU never go back in time: some readers refuse that. */
static void set_time(struct cpu *c, struct sample *s)
{
	u64 *usec = &s->event.context.usec;

	if (*usec < c->last)
		*usec = s->context.usec;
	if (*usec < c->last)
		*usec = c->last;
	c->last = *usec;
}

static void finish_sample(struct walk *w, struct cpu *c, struct sample *s)
{
	set_time(c, s);
	if (s->kernel.kind != LINE_OTHER || s->user.kind != LINE_OTHER)
		w->take(w, s);
	free_sample(s);
}

static struct sample new_sample(struct walk *w, struct cpu *c)
{
	struct sample s = { .has_context = w->has_context, .context = w->context };

	if (w->by_event && w->has_context)
		s.event = take_event(w, c);
	return s;
}

static void close_from(struct walk *w, struct cpu *c, u32 first)
{
	u32 i;

	for (i = first; i < c->nr_open; i++)
		finish_sample(w, c, &c->open[i]);
	c->nr_open = first;
}

static bool same_event(const struct sample *s, const struct walk *w)
{
	return s->context.task.pid == w->context.task.pid &&
	       !strcmp(s->context.flags, w->context.flags);
}

/*
 * What another event of the same context follows, or another task, gets no more stacks. Nor does
 * what came later: its interrupt has ended.
 */
static void close_samples(struct walk *w, struct cpu *c)
{
	u32 i;

	for (i = 0; i < c->nr_open; i++) {
		if (c->open[i].context.task.pid != w->context.task.pid ||
		    same_event(&c->open[i], w))
			close_from(w, c, i);
	}
}

static struct sample *open_sample(struct walk *w, struct cpu *c)
{
	if (!c->open)
		c->open = check_mem(calloc(MAX_OPEN, sizeof(*c->open)));
	if (c->nr_open == MAX_OPEN) {
		finish_sample(w, c, &c->open[0]);
		memmove(c->open, c->open + 1, --c->nr_open * sizeof(*c->open));
	}
	c->open[c->nr_open] = new_sample(w, c);
	return &c->open[c->nr_open++];
}

/* The sample to which a stack of user space belongs. */
static struct sample *find_open(struct walk *w, struct cpu *c)
{
	u32 i;

	for (i = c->nr_open; i--; ) {
		if (same_event(&c->open[i], w))
			return &c->open[i];
	}
	return open_sample(w, c);
}

static bool has_parts(struct walk *w, const struct stack_ids *ids)
{
	u32 i;

	if (ids->more) {
		w->nr_more++;
		return false;
	}
	for (i = 0; i < ids->nr; i++) {
		if (!find_stack(w->map, ids->id[i], w->t.user)) {
			w->nr_missing++;
			return false;
		}
	}
	return true;
}

/* Sets the kind of the line after the stack. Returns false at the end of the trace. */
static bool read_half(struct walk *w, struct half *h)
{
	bool more, user = w->t.user;

	if (w->kind == LINE_FULL) {
		more = read_full(h, &w->t, &w->kind, &w->lines);
		/* A stack of user space may have no frames. */
		w->nr_cut += h->kind == LINE_OTHER && (!user || w->lines.cut);
		return more;
	}
	if (has_parts(w, &w->t.ids))
		half_of_ids(h, &w->t);
	return read_line(&w->t, &w->kind);
}

static bool walk_kernel(struct walk *w, struct cpu *c)
{
	struct half half = {};
	bool more;

	close_samples(w, c);
	more = read_half(w, &half);
	if (half.kind == LINE_OTHER && !w->map->has_user)
		return more;
	open_sample(w, c)->kernel = half;
	if (!w->map->has_user)
		close_from(w, c, 0);
	return more;
}

static void join_user(struct walk *w, struct cpu *c, const struct half *half)
{
	struct sample *s = find_open(w, c);

	s->user = *half;
	close_from(w, c, s - c->open);
}

static bool walk_user(struct walk *w, struct cpu *c)
{
	struct half half = {};
	bool more = read_half(w, &half);

	if (half.kind != LINE_OTHER)
		join_user(w, c, &half);
	return more;
}

/* The stack comes later in the trace. It was read in the first pass. */
static void walk_cookie(struct walk *w, struct cpu *c)
{
	const struct half *h = find_cookie_stack(w->map, w->t.cookie);
	struct half half = {};

	if (!h) {
		w->nr_lost++;
	} else if (h->kind == LINE_FULL || has_parts(w, &h->ids)) {
		half = *h;
		half.text = copy_string(h->text);
	}
	join_user(w, c, &half);
}

/* "<stack_def 42>" belongs to an event, and is none. */
static bool is_event(struct walk *w)
{
	if (w->kind != LINE_OTHER || !w->t.event || (!w->by_event && !w->map->has_user))
		return false;
	return *skip_diff(w->t.event) != '<';
}

/* False at the end of the trace. */
static bool walk_line(struct walk *w)
{
	bool of_event = w->kind == LINE_IDS || w->kind == LINE_FULL || w->kind == LINE_COOKIE;
	bool event = is_event(w);
	struct cpu *c;

	if (!event && (!of_event || (w->kind != LINE_COOKIE && w->t.has_cookie)))
		return read_line(&w->t, &w->kind);
	w->has_context = parse_context(&w->t, &w->context);
	if (!w->has_context)
		w->context = (struct context) {};
	c = this_cpu(w);
	if (of_event && w->kind != LINE_COOKIE)
		return w->t.user ? walk_user(w, c) : walk_kernel(w, c);
	if (of_event)
		walk_cookie(w, c);
	else
		close_samples(w, c);
	if (event && w->by_event && w->has_context)
		queue_event(w, c);
	return read_line(&w->t, &w->kind);
}

static void finish_cpu(struct walk *w, struct cpu *c)
{
	close_from(w, c, 0);
	while (c->nr_waiting)
		free(c->waiting[--c->nr_waiting].text);
	free(c->open);
}

static void walk_end(struct walk *w)
{
	note_missing(w->nr_missing, w->map, w->cfg);
	note_more(w->nr_more, w->cfg);
	note_lost(w->nr_lost, w->cfg);
	if (w->nr_cut)
		note("%s: left out %zu stacks that are cut off", w->cfg->trace, w->nr_cut);
	if (w->nr_unplaced)
		note("%s: left out %zu stacks without a task, CPU and time", w->cfg->trace,
		     w->nr_unplaced);
	free(w->cpus);
	free(w->lines.text);
	free(w->t.line);
}

void walk_trace(struct walk *w)
{
	bool more;
	size_t i;

	w->t.f = w->cfg->trace_file;
	for (more = read_line(&w->t, &w->kind); more; )
		more = walk_line(w);
	for (i = 0; i < w->nr_cpus; i++)
		finish_cpu(w, &w->cpus[i]);
	finish_cpu(w, &w->no_cpu);
	walk_end(w);
}
