// SPDX-License-Identifier: GPL-2.0
/* --annotate with --folded or another form: count the distinct stacks of a trace. */
#include "trace.h"
#include "user.h"
#include "util.h"

struct count {
	bool		by_task;
	struct map	whole;		/* the stacks of the trace */
	struct task	*tasks;
	size_t		room_tasks;
	struct intern	seen;		/* the stacks' keys */
};

/* Returns the stack of @key. A new one has no frames yet. */
static struct stack *count_key(struct count *c, const char *key)
{
	size_t i = intern(&c->seen, key);
	struct map *w = &c->whole;

	if (i == w->nr_stacks) {
		w->stacks = grow(w->stacks, &w->room_stacks, i + 1, sizeof(*w->stacks));
		w->stacks[w->nr_stacks++] = (struct stack) { .id = i };
	}
	w->stacks[i].ref++;
	return &w->stacks[i];
}

/* Stacks of several tasks are told apart by what precedes the key. */
static struct stack *count_by_task(struct count *c, struct sample *sample, const char *key)
{
	struct task *task = &sample->context.task;
	char *longer;
	struct stack *s;

	if (!sample->has_context)
		*task = (struct task) {};
	longer = format("%s\n%u\n%s", task->comm, task->pid, key);
	s = count_key(c, longer);
	free(longer);
	c->tasks = grow(c->tasks, &c->room_tasks, c->whole.nr_stacks, sizeof(*c->tasks));
	c->tasks[s->id] = *task;
	return s;
}

/* One address in two processes can be two functions. */
static char *sample_key(const struct walk *w, const struct sample *s)
{
	const struct process *p = sample_process(w, s);
	const char *kernel = s->kernel.text ? s->kernel.text : "";

	if (!s->user.text)
		return copy_string(kernel);
	return format("%s\nuser %u\n%s", kernel, p ? p->tgid : 0, s->user.text);
}

static void count_sample(struct walk *w, struct sample *sample)
{
	struct count *c = w->count;
	char *key = sample_key(w, sample);
	struct stack *s = c->by_task ? count_by_task(c, sample, key) : count_key(c, key);
	const struct stack *new;

	free(key);
	if (s->nr)
		return;
	new = sample_frames(w, sample);
	s->first = new->first;
	s->nr = new->nr;
	s->nr_user = new->nr_user;
	s->named = new->named;
	s->user_named = new->user_named;
	s->process = new->process;
	w->map->nr_ips += new->nr;
}

/* Replaces the stacks of the map by those of the trace. */
int count_stacks(struct map *m, bool by_task, const struct config *cfg)
{
	int ret = read_definitions(m, cfg);
	struct count c = { .by_task = by_task };
	struct walk w = { .map = m, .cfg = cfg, .take = count_sample, .count = &c };

	walk_trace(&w);
	free(m->stacks);
	m->stacks = c.whole.stacks;
	m->tasks = c.tasks;
	m->nr_stacks = c.whole.nr_stacks;
	m->room_stacks = c.whole.room_stacks;
	if (!m->nr_stacks && cfg->saved_trace)
		note("%s has no stacks (--map-only prints those of the map)", cfg->trace);
	intern_free(&c.seen);
	return ret;
}
