// SPDX-License-Identifier: GPL-2.0
/*
 * --perf-script: the stacks of a trace as "perf script" prints its samples. A stack follows its
 * event on the same CPU. An interrupt between them may have events and stacks of its own.
 */

#define MAX_WAITING	8	/* more are dropped: they have no stack */

struct event {
	struct context	context;
	char		*text;		/* "sched_switch: prev_comm=bash ..." */
};

struct cpu_events {
	struct event	waiting[MAX_WAITING];
	u32		nr;
	u64		last;		/* time of the last sample */
};

struct samples {
	struct walk		walk;
	struct cpu_events	*cpus;
	size_t			nr_cpus;
	size_t			room_cpus;
	size_t			nr_lost;	/* stacks without a context */
};

static struct cpu_events *events_of(struct samples *s, u32 cpu)
{
	s->cpus = grow(s->cpus, &s->room_cpus, cpu + 1, sizeof(*s->cpus));
	if (cpu >= s->nr_cpus) {
		memset(s->cpus + s->nr_cpus, 0, (cpu + 1 - s->nr_cpus) * sizeof(*s->cpus));
		s->nr_cpus = cpu + 1;
	}
	return &s->cpus[cpu];
}

/* "<user stack trace>" belongs to an event, and is none. */
static void queue_event(struct samples *s, const struct trace *t)
{
	struct event e = {};
	struct cpu_events *c;

	if (!parse_context(t, &e.context))
		return;
	e.text = skip_diff(t->event);
	if (*e.text == '<')
		return;
	e.text = copy_string(e.text);
	c = events_of(s, e.context.cpu);
	if (c->nr == MAX_WAITING) {
		free(c->waiting[0].text);
		memmove(c->waiting, c->waiting + 1, --c->nr * sizeof(*c->waiting));
	}
	c->waiting[c->nr++] = e;
}

/* The event of a stack. Samples of a CPU never go back in time: some readers refuse that. */
static struct event take_event(struct samples *s, const struct context *of)
{
	struct cpu_events *c = events_of(s, of->cpu);
	struct event e = { .context = *of };

	if (c->nr && c->waiting[c->nr - 1].context.task.pid == of->task.pid)
		e = c->waiting[--c->nr];
	else
		e.text = copy_string("unknown:");
	if (e.context.usec < c->last)
		e.context.usec = of->usec;
	c->last = e.context.usec;
	return e;
}

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define SPACES " \t\n\v\f\r"

/* The name of an event, followed by its fields. "f <-parent" comes from the function tracer. */
static const char *name_event(char **text)
{
	char *fields = *text + strspn(*text, NAME_CHARS);
	const char *name = *text;

	if (fields == name || *fields != ':')
		return strstr(name, " <-") ? "function" : "trace";
	*fields++ = '\0';
	*text = fields + strspn(fields, " ");
	return name;
}

static void trim(char *s)
{
	size_t len = strlen(s);

	while (len && strchr(SPACES, s[len - 1]))
		s[--len] = '\0';
}

/* Some readers take " 12:" for the time. */
static void hide_times(char *p)
{
	size_t n;

	for (p += strspn(p, SPACES); *p; p += strspn(p, SPACES)) {
		n = strspn(p, "0123456789.");
		if (n && p[n] == ':')
			p[n] = ';';
		p += strcspn(p, SPACES);
	}
}

/*
 * If a line ends with the name of its event and a colon, some readers show only samples of the
 * first event. So all lines have fields.
 */
static void print_event(char *text)
{
	const char *name = name_event(&text);
	size_t len;

	trim(text);
	hide_times(text);
	len = strlen(text);
	printf("%s: %s%s\n", name, text, !len ? "-" : text[len - 1] == ':' ? " -" : "");
}

/* With more than one space behind the name: it may have one letter only. */
static void print_context(struct context *c)
{
	const char *comm = folded_name(c->task.comm);

	if (*comm)
		printf("%s", strcmp(comm, "<idle>") ? comm : "swapper");
	else
		printf(":%u", c->task.pid);
	printf(" %8u [%03u] %5llu.%06llu: ", c->task.pid, c->cpu, c->usec / 1000000,
	       c->usec % 1000000);
}

static void print_perf_frame(struct map *m, const struct stack *s, u32 i)
{
	struct frame *f = frame_get(m, s, i);
	const char *mod, *name = frame_name(f, &mod);
	char *safe = folded_name(copy_string(*name ? name : "[unknown]"));

	printf("\t%16llx %s", s->named ? 0 : f->ip, safe);
	if (f->sym && !s->named)
		printf("+0x%llx", f->ip - f->sym->addr);
	printf(mod ? " ([%s])\n" : " ([kernel.kallsyms])\n", mod);
	free(safe);
}

static void print_sample(struct samples *p, const struct config *cfg)
{
	struct walk *w = &p->walk;
	const struct stack *s;
	struct event e;
	u32 i;

	if (!w->has_context) {
		p->nr_lost++;
		return;
	}
	e = take_event(p, &w->context);
	s = walk_frames(w);
	if (stack_matches(w->map, s, cfg)) {
		print_context(&e.context);
		print_event(e.text);
		for (i = 0; i < s->nr; i++)
			print_perf_frame(w->map, s, i);
		putchar('\n');
	}
	free(e.text);
}

static void free_events(struct samples *s)
{
	size_t i;
	u32 n;

	for (i = 0; i < s->nr_cpus; i++) {
		for (n = 0; n < s->cpus[i].nr; n++)
			free(s->cpus[i].waiting[n].text);
	}
	free(s->cpus);
}

static int print_perf_script(struct map *m, const struct config *cfg)
{
	int ret = read_definitions(m, cfg);
	struct samples s = {};

	walk_start(&s.walk, m, cfg);
	while (next_line(&s.walk)) {
		if (s.walk.found)
			print_sample(&s, cfg);
		else if (s.walk.other)
			queue_event(&s, &s.walk.t);
	}
	walk_end(&s.walk);
	if (s.nr_lost)
		note("%s: left out %zu stacks without a task, CPU and time", cfg->trace, s.nr_lost);
	free_events(&s);
	return ret;
}
