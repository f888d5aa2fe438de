// SPDX-License-Identifier: GPL-2.0
/* Selects and sorts the stacks. */
#include "view.h"

static enum sort_key sort_key;

static int compare_stacks(const void *a, const void *b)
{
	const struct stack *sa = a, *sb = b;
	int ret = 0;

	if (sort_key == SORT_REF)
		ret = compare_u64(sb->ref, sa->ref);
	else if (sort_key == SORT_DEPTH)
		ret = compare_u64(sb->nr, sa->nr);
	return ret ?: compare_u64(sa->id, sb->id);
}

void sort_stacks(struct map *m, enum sort_key key)
{
	sort_key = key;
	sort_array(m->stacks, m->nr_stacks, sizeof(*m->stacks), compare_stacks);
}

bool stack_matches(struct map *m, const struct stack *s, const struct config *cfg)
{
	struct frame *f;
	u32 i;

	for (i = 0; cfg->has_grep && i < s->nr; i++) {
		f = frame_get(m, s, i);
		if (f->matches < 0)
			f->matches = !regexec(&cfg->grep, f->text, 0, NULL, 0);
		if (f->matches)
			return true;
	}
	return !cfg->has_grep;
}

void select_stacks(struct map *m, const struct config *cfg, size_t top)
{
	struct stack *s;
	size_t n = 0;

	for_each_stack(s, m) {
		if (s->ref >= cfg->min_ref && stack_matches(m, s, cfg))
			m->stacks[n++] = *s;
	}
	m->nr_stacks = n;
	sort_stacks(m, cfg->sort);
	if (top && m->nr_stacks > top)
		m->nr_stacks = top;
}

static bool is_tracer(const struct map *m, u64 ip, bool exact)
{
	static const char * const names[] = {
		"trace_event_", "__traceiter_", "__bpf_trace_", "perf_trace_", "ftrace_call",
		"ftrace_regs_caller", "ftrace_graph_", "function_trace_call",
		"function_stack_trace_call", "kprobe_ftrace_handler", "kprobe_trace_func",
		"kprobe_dispatcher", "kretprobe_", "aggr_pre_handler", "arch_ftrace_ops_list_func",
		"ftrace_ops_list_func", "ftrace_syscall_", "trace_syscall_", "event_triggers_",
		"__ftrace_trace_stack",
	};
	const struct symbol *s;
	const char *name;
	size_t i;

	if (ip == TRAMPOLINE_MARKER)
		return true;
	s = find_symbol(m, ip, exact);
	name = s && !s->mod ? s->name : "";
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

/* How many of the innermost frames are the tracer's; never all of them. */
u32 tracer_frames(const struct map *m, const u64 *ips, u32 nr)
{
	u32 n = 0;

	while (n + 1 < nr && is_tracer(m, ips[n], !n))
		n++;
	return n;
}

void drop_tracers(struct map *m)
{
	struct stack *s;
	u32 n;

	for_each_stack(s, m) {
		n = s->user ? 0 : tracer_frames(m, m->ips + s->first, s->nr - s->nr_user);
		s->first += n;
		s->nr -= n;
	}
}
