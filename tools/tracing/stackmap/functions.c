// SPDX-License-Identifier: GPL-2.0
/*
 * Selects and sorts stacks. For flame graphs, they become the names of their functions, and those
 * that differ only in offsets are merged. "report" has the functions, by what they weigh themselves
 * and with what they call.
 */
#include "stackmap.h"

/* The most frequent ones first. */
static int compare_stacks(const void *a, const void *b)
{
	const struct stack *sa = a, *sb = b;

	return compare_u64(sb->ref, sa->ref) ?: compare_u64(sa->id, sb->id);
}

void sort_stacks(struct map *m)
{
	sort_array(m->stacks, m->nr_stacks, sizeof(*m->stacks), compare_stacks);
}

bool stack_matches(struct map *m, const struct stack *s, const struct config *cfg)
{
	struct frame *f;
	u32 i;

	/* It is for addresses: merge_stacks() has done it. */
	if (!cfg->has_grep || m->merged)
		return true;
	for (i = 0; i < s->nr; i++) {
		f = frame_get(m, s, i);
		if (f->matches < 0)
			f->matches = !regexec(&cfg->grep, f->text, 0, NULL, 0);
		if (f->matches)
			return true;
	}
	return false;
}

void select_stacks(struct map *m, const struct config *cfg, size_t top)
{
	struct stack *s;
	size_t n = 0;

	for (s = m->stacks; s != stacks_end(m); s++) {
		if (s->ref >= cfg->min_ref && stack_matches(m, s, cfg))
			m->stacks[n++] = *s;
	}
	m->nr_stacks = n;
	sort_stacks(m);
	if (top && m->nr_stacks > top)
		m->nr_stacks = top;
}

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
static void find_tracer_text(struct map *m, const struct symtab *t)
{
	static const char * const borders[] = {
		"trace_clock_local", "ring_buffer_write", "trace_event_buffer_commit",
		"event_triggers_call", "eprobe_trigger_func", "kprobe_dispatcher",
		"uprobe_dispatcher", "register_fprobe", "fentry_trace_func", "fexit_dispatcher",
	};
	const struct symbol *s;
	size_t i;

	m->tracer_start = 1;
	for (i = 0; i < t->nr; i++) {
		s = &t->syms[i];
		if (s->mod || !is_one_of(s->name, borders, ARRAY_SIZE(borders), true))
			continue;
		if (!m->tracer_end)
			m->tracer_start = s->addr;
		m->tracer_end = s->end;
	}
	/* Else the linker has ordered functions otherwise. */
	if (m->tracer_end - m->tracer_start > 4 << 20)
		m->tracer_end = 0;
}

/* In other places is what macros make for each event, what is written in assembler, and uprobes. */
static bool is_tracer(const struct map *m, const struct symbol *s)
{
	static const char * const names[] = {
		"trace_event_", "perf_trace_", "__bpf_trace_", "__traceiter_", "__probestub_",
		"ftrace_", "arch_ftrace_", "return_to_handler", "arch_rethook_", "kprobe_",
		"kretprobe_", "uprobe_", "handler_chain", "trace_syscall_",
	};

	return is_trampoline(s) || (s->addr >= m->tracer_start && s->addr < m->tracer_end) ||
	       is_one_of(s->name, names, ARRAY_SIZE(names), false);
}

/*
 * How many of the innermost frames are the tracer's; never all of them. What has called it from an
 * address without a name is its trampoline.
 */
u32 tracer_frames(struct map *m, const u64 *ips, u32 nr)
{
	const struct symbol *s, *last = NULL;
	u32 n;

	for (n = 0; n + 1 < nr; n++, last = s) {
		s = find_symbol(m, ips[n], !n);
		if (s && !m->tracer_start)
			find_tracer_text(m, m->kallsyms.nr ? &m->kallsyms : &m->elfsyms);
		if (ips[n] != TRAMPOLINE_MARKER && (s ? !is_tracer(m, s) : !last))
			break;
	}
	return n;
}

/* Those of schedule() and below, which are in each stack of a task that leaves its CPU. */
u32 scheduler_frames(const struct map *m, const u64 *ips, u32 nr)
{
	const struct symbol *s;
	u32 n;

	for (n = 0; n + 1 < nr; n++) {
		s = find_symbol(m, ips[n], !n);
		if (!s || (strcmp(s->name, "schedule") && strcmp(s->name, "__schedule") &&
			   strncmp(s->name, "preempt_schedule", strlen("preempt_schedule"))))
			break;
	}
	return n;
}

void drop_tracers(struct map *m)
{
	struct stack *s;
	u32 n;

	for (s = m->stacks; s != stacks_end(m); s++) {
		n = s->user ? 0 : tracer_frames(m, m->ips + s->first, s->nr - s->nr_user);
		s->first += n;
		s->nr -= n;
	}
}

static u32 name_frame(struct map *m, const struct stack *s, u32 i, struct pool *names)
{
	char *full __free(pointer) = NULL;
	struct frame *f = frame_get(m, s, i);
	const char *mod, *name;

	if (f->uid)
		return f->uid;
	name = frame_name(f, &mod);
	if (mod)
		full = format("%s[%s]", name, mod);
	f->uid = intern(names, full ? full : name);
	return f->uid;
}

/* Without or with its module. */
static bool is_named(const char *name, const char *function)
{
	size_t len = strlen(function);

	return !strncmp(name, function, len) && (!name[len] || name[len] == '[');
}

/*
 * Of the outermost call of a function, leaves what it calls, or turns round what calls it: the
 * function is the root then. Returns false if the stack has no such function.
 */
static bool cut_stack(struct map *m, struct stack *s, const struct pool *names,
		      const struct config *cfg)
{
	u64 *ips = m->ips + s->first, swap;
	u32 i = s->nr, a, b;

	while (i && !is_named(pool_string(names, ips[i - 1]), cfg->function)) {
		/* The stack of who ended a sleep is turned round. */
		if (!strcmp(pool_string(names, ips[--i]), WOKEN_BY))
			return false;
	}
	if (!i)
		return false;
	for (a = i - 1, b = s->nr - 1; cfg->callers && a < b; a++, b--) {
		swap = ips[a];
		ips[a] = ips[b];
		ips[b] = swap;
	}
	s->first += cfg->callers ? i - 1 : 0;
	s->nr = cfg->callers ? s->nr - i + 1 : i;
	if (cfg->direct && s->nr > 2) {
		s->first += s->nr - 2;
		s->nr = 2;
	}
	return true;
}

/*
 * Replaces addresses by the numbers of names, and adds up the stacks of a group that are equal
 * then. The most frequent names have the lowest numbers.
 */
void merge_stacks(struct map *m, struct pool *names, const struct config *cfg)
{
	struct pool known = {};
	struct words w = {};
	struct stack *s;
	u32 frame, nr;
	size_t n = 0;

	sort_stacks(m);
	for (s = m->stacks; s != stacks_end(m); s++) {
		if (!s->nr || !stack_matches(m, s, cfg))
			continue;
		for (frame = 0; frame < s->nr; frame++)
			m->ips[s->first + frame] = name_frame(m, s, frame, names);
		if (cfg->function && !cut_stack(m, s, names, cfg))
			continue;
		w.nr = 0;
		add_words(&w, m->ips + s->first, s->nr);
		add_word(&w, (uintptr_t)s->task);
		add_word(&w, s->group);
		nr = pool_add(&known, w.w, w.nr);
		if (nr > n) {
			m->stacks[n++] = *s;
			continue;
		}
		m->stacks[nr - 1].ref += s->ref;
		add_values(m->stacks[nr - 1].val, s->val);
	}
	m->nr_stacks = n;
	m->merged = true;
	pool_free(&known);
	free(w.w);
}

/* What a function weighs in the stacks of a group, or the group itself. */
struct function {
	const struct function	*group;
	u32			label;	/* of the group, 0 without --by */
	u32			nr;	/* in the order in which they came */
	u32			name;	/* 0: the group */
	u64			self;
	u64			total;
	const struct stack	*last;	/* that counted here: recursion counts once */
};

static struct function *get_function(struct pool *fs, const struct stack *s, u32 name)
{
	struct function *f = pool_get(fs, s->group, name, sizeof(*f));

	if (!f->nr) {
		f->nr = fs->nr;
		f->label = s->group;
		f->name = name;
		f->group = name ? get_function(fs, s, 0) : f;
	}
	return f;
}

static void count_stack(struct pool *fs, const struct map *m, const struct stack *s)
{
	struct function *f;
	u32 i;

	get_function(fs, s, 0)->total += s->ref;
	for (i = 0; i < s->nr; i++) {
		f = get_function(fs, s, m->ips[s->first + i]);
		f->self += i ? 0 : s->ref;
		f->total += f->last == s ? 0 : s->ref;
		f->last = s;
	}
}

/* The groups that weigh most, and behind each its functions. */
static int compare_functions(const void *a, const void *b)
{
	const struct function *fa = ((const struct pooled *)a)->ptr;
	const struct function *fb = ((const struct pooled *)b)->ptr;

	return compare_u64(fb->group->total, fa->group->total) ?:
	       compare_u64(fa->group->nr, fb->group->nr) ?:
	       (fb == fb->group) - (fa == fa->group) ?: compare_u64(fb->self, fa->self) ?:
	       compare_u64(fb->total, fa->total) ?: compare_u64(fa->nr, fb->nr);
}

/* In percent. */
double share(u64 part, u64 all)
{
	return all ? 100.0 * part / all : 0;
}

static void print_list(const struct map *m, const struct pool *fs, const struct pool *names,
		       size_t top)
{
	const struct function *f;
	size_t i, n = 0;

	for (i = 1; i <= fs->nr; i++, n++) {
		f = fs->list[i].ptr;
		n = f->name ? n : 0;
		if (!f->name && f->label)
			printf("\n# %s: %llu (%.1f%%)\n",
			       hide_controls(pool_string(&m->labels, f->label)), f->total,
			       share(f->total, m->sum));
		if (f->name && (!top || n <= top))
			printf("%16llu %5.1f%% %16llu %5.1f%%  %s\n", f->self,
			       share(f->self, m->sum), f->total, share(f->total, m->sum),
			       hide_controls(pool_string(names, f->name)));
	}
}

static void print_json_list(const struct map *m, const struct pool *fs, const struct pool *names,
			    size_t top)
{
	const struct function *f;
	const char *comma = "";
	size_t i, n = 0;

	putchar('[');
	for (i = 1; i <= fs->nr; i++, n++) {
		f = fs->list[i].ptr;
		n = f->name ? n : 0;
		if (!f->name || (top && n > top))
			continue;
		printf("%s\n {\"self\": %llu, \"total\": %llu, \"function\": ", comma, f->self,
		       f->total);
		print_json_string(pool_string(names, f->name));
		if (f->label)
			printf(", \"by\": ");
		if (f->label)
			print_json_string(pool_string(&m->labels, f->label));
		putchar('}');
		comma = ",";
	}
	puts("\n]");
}

static void count_functions(struct pool *fs, const struct map *m)
{
	const struct stack *s;

	for (s = m->stacks; s != stacks_end(m); s++)
		count_stack(fs, m, s);
	pool_sort(fs, compare_functions);
}

void print_functions(struct map *m, struct pool *names, const struct config *cfg)
{
	struct pool fs = {};

	count_functions(&fs, m);
	print_sum(m);
	printf("#%15s %6s %16s %6s  function\n", "self", "", "total", "");
	print_list(m, &fs, names, cfg->top);
	pool_free_all(&fs);
}

void print_json_functions(struct map *m, struct pool *names, const struct config *cfg)
{
	struct pool fs = {};

	count_functions(&fs, m);
	print_json_list(m, &fs, names, cfg->top);
	pool_free_all(&fs);
}
