// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a sample: who drops it last makes it count, in an equal one if there is one. Samples
 * that are printed are kept.
 */
#include <fnmatch.h>

#include "profile.h"

/* Those with the same stacks, and maybe of the same task or group, are one. */
static struct pooled *find_sum(struct profile *p, const struct sample *s)
{
	enum by by = p->cfg->by;
	bool by_task = by == BY_TASK || by == BY_PROCESS || p->cfg->for_pprof || p->cfg->off_cpu;
	const u64 key[] = {
		by_task ? s->named : 0, group_key(p, s), s->kind->event->id, s->kernel, s->user,
		s->waker, s->waker_kernel, s->waker_user, s->early,
	};

	return pool_at(&p->sums, pool_add(&p->sums, key, ARRAY_SIZE(key)));
}

void free_sample(struct sample *s)
{
	free(s->text);
	free(s);
}

/* Of all samples. So no sum of some can be too large, if that is not. */
static void add_to_total(struct profile *p, const struct sample *s)
{
	int i;

	for (i = 0; i < VAL_LARGEST; i++) {
		p->total[i] += s->val[i];
		p->is_too_large |= p->total[i] > INT64_MAX;
	}
}

static void count_sample(struct profile *p, struct sample *s)
{
	struct pooled *e = p->print ? NULL : find_sum(p, s);
	struct sample *sum = e ? e->ptr : NULL;

	p->counts[COUNT_SAMPLES]++;
	add_to_total(p, s);
	s->kind->in = s->kind->in ? s->kind->in : s->task->in;
	p->counts[COUNT_OTHER_INSTANCES] += s->kind->in != s->task->in;
	s->val[VAL_LARGEST] = s->val[p->map->main_value];
	s->sum = e ? e - p->sums.list : 0;
	if (p->cfg->histogram)
		spread_add(p->map, s->sum, s->val[VAL_LARGEST]);
	if (sum) {
		add_values(sum->val, s->val);
		free_sample(s);
		return;
	}
	if (e)
		e->ptr = s;
	*APPEND(p->samples, p->nr_samples) = s;
}

bool has_comm(const struct profile *p, const struct sample *s)
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

void drop_sample(struct profile *p, struct sample *s)
{
	s->unwanted = true;
	sample_put(p, s);
}
