// SPDX-License-Identifier: GPL-2.0
/* --perf-script: the stacks of a trace as "perf script" prints its samples. */
#include "frame.h"
#include "trace.h"
#include "util.h"
#include "view.h"

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

	printf("\t%16llx %s", f->ip, safe);
	if (f->sym && !f->named)
		printf("+0x%llx", f->addr - f->sym->addr);
	if (f->process)
		printf(" (%s)\n", f->object ? f->object->path : "[unknown]");
	else
		printf(mod ? " ([%s])\n" : " ([kernel.kallsyms])\n", mod);
	free(safe);
}

static void print_perf_sample(struct walk *w, struct sample *sample)
{
	const struct stack *s;
	u32 i;

	if (!sample->has_context) {
		w->nr_unplaced++;
		return;
	}
	s = sample_frames(w, sample);
	if (!stack_matches(w->map, s, w->cfg))
		return;
	print_context(&sample->event.context);
	print_event(sample->event.text);
	for (i = 0; i < s->nr; i++)
		print_perf_frame(w->map, s, i);
	putchar('\n');
}

int print_perf_script(struct map *m, const struct config *cfg)
{
	int ret = read_definitions(m, cfg);
	struct walk w = { .map = m, .cfg = cfg, .by_event = true, .take = print_perf_sample };

	walk_trace(&w);
	return ret;
}
