// SPDX-License-Identifier: GPL-2.0
/* Which frames are the tracer's own, and the scheduler's. */
#include "symbols.h"

/* @whole: the name, not only the begin of it */
static bool is_one_of(const char *name, const char * const *names, size_t nr, bool whole)
{
	while (nr && strncmp(name, names[nr - 1], strlen(names[nr - 1]) + whole))
		nr--;
	return nr;
}

/*
 * The text of the tracer, kernel/trace/: from the first to the last of these, at its borders and in
 * its middle. A kernel may lack some.
 */
static void find_tracer_text(struct symbols *k, const struct symtab *t)
{
	static const char * const borders[] = {
		"trace_clock_local", "ring_buffer_write", "trace_event_buffer_commit",
		"event_triggers_call", "eprobe_trigger_func", "kprobe_dispatcher",
		"uprobe_dispatcher", "register_fprobe", "fentry_trace_func", "fexit_dispatcher",
	};
	const struct symbol *s;
	size_t i;

	k->tracer_start = 1;
	for (i = 0; i < t->nr; i++) {
		s = &t->syms[i];
		if (s->mod || !is_one_of(s->name, borders, ARRAY_SIZE(borders), true))
			continue;
		if (!k->tracer_end)
			k->tracer_start = s->addr;
		k->tracer_end = s->end;
	}
	/* Else the linker has ordered functions otherwise. */
	if (k->tracer_end - k->tracer_start > 4 << 20)
		k->tracer_end = 0;
}

/* In other places is what macros make for each event, what is written in assembler, and uprobes. */
static bool is_tracer(const struct symbols *k, const struct symbol *s)
{
	static const char * const names[] = {
		"trace_event_", "perf_trace_", "__bpf_trace_", "__traceiter_", "__probestub_",
		"ftrace_", "arch_ftrace_", "return_to_handler", "arch_rethook_", "kprobe_",
		"kretprobe_", "uprobe_", "handler_chain", "trace_syscall_",
	};

	return is_trampoline(s) || (s->addr >= k->tracer_start && s->addr < k->tracer_end) ||
	       is_one_of(s->name, names, ARRAY_SIZE(names), false);
}

/*
 * How many of the innermost frames are the tracer's; never all of them. What has called it from an
 * address without a name is its trampoline.
 */
u32 tracer_frames(struct symbols *k, const u64 *ips, u32 nr)
{
	const struct symbol *s, *last = NULL;
	u32 n;

	for (n = 0; n + 1 < nr; n++, last = s) {
		s = find_symbol(k, ips[n], !n);
		if (s && !k->tracer_start)
			find_tracer_text(k, k->kallsyms.nr ? &k->kallsyms : &k->elfsyms);
		if (ips[n] != TRAMPOLINE_MARKER && (s ? !is_tracer(k, s) : !last))
			break;
	}
	return n;
}

/* Those of schedule() and below, which are in each stack of a task that leaves its CPU. */
u32 scheduler_frames(const struct symbols *k, const u64 *ips, u32 nr)
{
	const struct symbol *s;
	u32 n;

	for (n = 0; n + 1 < nr; n++) {
		s = find_symbol(k, ips[n], !n);
		if (!s || (strcmp(s->name, "schedule") && strcmp(s->name, "__schedule") &&
			   strncmp(s->name, "preempt_schedule", strlen("preempt_schedule"))))
			break;
	}
	return n;
}
