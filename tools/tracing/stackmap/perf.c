// SPDX-License-Identifier: GPL-2.0
/* The samples of a recording, as "perf script" prints them. */
#include "profile.h"

#define SPACES " \t\n\v\f\r"

/*
 * If a line ends with the name of its event and a colon, some readers show only samples of the
 * first event. So all lines have fields, but for those that have a weight: there, the weight stands
 * before the name, and the name must be the last. Some take " 12:" for the time.
 */
static void print_perf_event(const struct profile *p, const struct sample *s)
{
	int which = p->map->main_value;
	char *word, *rest = s->text;
	bool ends = false;
	size_t n;

	if (which != VAL_EVENTS) {
		printf("%llu %s:\n", s->val[which], s->kind->name);
		return;
	}
	printf("%s:", s->kind->name);
	while ((word = strtok_r(rest, SPACES, &rest))) {
		n = strspn(word, "0123456789.");
		if (n && word[n] == ':')
			word[n] = ';';
		ends = word[strlen(word) - 1] != ':';
		printf(" %s", word);
	}
	puts(ends ? "" : " -");
}

/*
 * With more than one space behind the name: it may have one letter only. A line that begins with
 * "#" is a comment. As in perf, a task without a name has its number.
 */
static void print_context(const struct profile *p, const struct sample *s)
{
	char *comm __free(pointer) = folded_name(copy_string(task_of(p, s)->comm));

	if (*comm == '#')
		*comm = '_';
	if (*comm)
		printf("%s", strcmp(comm, "<idle>") ? comm : "swapper");
	else
		printf(":%u", s->task->id.pid);
	printf(" %8u [%03u] %5llu.%06llu: ", s->task->id.pid, s->cpu, s->ts / 1000000000,
	       s->ts / 1000 % 1000000);
}

static void print_perf_frame(struct map *m, const struct stack *s, u32 i)
{
	char *safe __free(pointer) = NULL, *path __free(pointer) = NULL, *c;
	struct frame *f = frame_get(m, s, i);
	const char *mod, *name = frame_name(f, &mod);

	/* Some readers end a name at the first parenthesis. */
	path = f->object ? folded_name(copy_string(f->object->path)) : NULL;
	for (c = path; c && *c; c++)
		*c = *c == '(' ? '[' : *c == ')' ? ']' : *c;
	safe = folded_name(copy_string(*name ? name : "[unknown]"));
	printf("\t%16llx %s", f->ip, safe);
	if (f->sym)
		printf("+0x%llx", f->addr - f->sym->addr);
	if (f->user)
		printf(" (%s)\n", path && *path ? path : "[unknown]");
	else
		printf(mod ? " ([%s])\n" : " ([kernel.kallsyms])\n", mod);
}

void print_perf_sample(struct profile *p, const struct sample *sample, const struct stack *s)
{
	u32 i;

	if (!stack_matches(p->map, s, p->cfg))
		return;
	print_context(p, sample);
	print_perf_event(p, sample);
	for (i = 0; i < s->nr; i++)
		print_perf_frame(p->map, s, i);
	putchar('\n');
}
