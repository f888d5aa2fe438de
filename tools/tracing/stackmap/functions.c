// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks as the names of their functions. For flame graphs, those that differ only in offsets are
 * merged. "report" has the functions, by what they weigh themselves and with what they call.
 */
#include "util.h"
#include "view.h"

static u32 name_frame(struct map *m, const struct stack *s, u32 i, struct pool *names)
{
	struct frame *f = frame_get(m, s, i);
	char *full __free(pointer) = NULL;
	const char *mod, *name;

	if (f->uid)
		return f->uid;
	name = frame_name(f, &mod);
	if (mod)
		full = format("%s[%s]", name, mod);
	f->uid = intern(names, full ? full : name);
	return f->uid;
}

/* The most frequent first, so that they have the lowest numbers in @p. */
void merge_stacks(struct map *m, struct paths *p, const struct config *cfg)
{
	struct pool known = {};
	struct stack *s;
	size_t i, n = 0;
	u32 frame, nr;

	p->uids = check_mem(calloc(m->nr_ips + 1, sizeof(*p->uids)));
	sort_stacks(m, SORT_REF);
	for (i = 0; i < m->nr_stacks; i++) {
		s = &m->stacks[i];
		if (!s->nr || !stack_matches(m, s, cfg))
			continue;
		for (frame = 0; frame < s->nr; frame++)
			p->uids[s->first + frame] = name_frame(m, s, frame, &p->names);
		nr = pool_add(&known, p->uids + s->first, s->nr);
		if (nr > n)
			m->stacks[n++] = *s;
		else
			m->stacks[nr - 1].ref += s->ref;
	}
	m->nr_stacks = n;
	pool_free(&known);
}

void paths_free(struct paths *p)
{
	pool_free(&p->names);
	free(p->uids);
}

static const struct paths *sorted_paths;

static int compare_paths(const void *a, const void *b)
{
	const struct stack *sa = a, *sb = b;
	const u64 *ua = sorted_paths->uids + sa->first, *ub = sorted_paths->uids + sb->first;
	u32 ia = sa->nr, ib = sb->nr;

	while (ia && ib) {
		if (ua[--ia] != ub[--ib])
			return compare_u64(ua[ia], ub[ib]);
	}
	return compare_u64(ia, ib);
}

/* Callers side by side, the most frequent first. */
void sort_by_path(struct map *m, const struct paths *p)
{
	sorted_paths = p;
	sort_array(m->stacks, m->nr_stacks, sizeof(*m->stacks), compare_paths);
}

struct function {
	u32	task;		/* a number of tasks; without --by task, of "" */
	u32	name;
	u64	self;
	u64	total;
	size_t	last;		/* the stack that counted last, plus 1: recursion counts once */
};

struct functions {
	struct pool	names;
	struct pool	tasks;		/* of a name to the sum */
	struct pool	index;		/* of {task, name} */
	struct function	*list;		/* at the numbers of the index minus 1 */
};

static struct functions *sorted;

static struct function *get_function(struct functions *fs, u32 task, u32 name)
{
	const u64 key[] = { task, name };
	size_t known = fs->index.nr;
	u32 i = pool_add(&fs->index, key, ARRAY_SIZE(key));

	if (i > known) {
		fs->list = grow(fs->list, known, 1, sizeof(*fs->list));
		fs->list[i - 1] = (struct function) { .task = task, .name = name };
	}
	return &fs->list[i - 1];
}

static u32 task_of(struct functions *fs, const struct stack *s)
{
	char *name __free(pointer) = s->task ? format("%s-%u", s->task->comm, s->task->pid) :
				      copy_string("");
	u32 task = intern(&fs->tasks, name);

	fs->tasks.list[task].value += s->ref;
	return task;
}

static void add_stack(struct functions *fs, struct map *m, size_t nr)
{
	const struct stack *s = &m->stacks[nr];
	u32 task = task_of(fs, s), i;
	struct function *f;

	for (i = 0; i < s->nr; i++) {
		f = get_function(fs, task, name_frame(m, s, i, &fs->names));
		f->self += i ? 0 : s->ref;
		f->total += f->last == nr + 1 ? 0 : s->ref;
		f->last = nr + 1;
	}
}

static u64 task_sum(const struct function *f)
{
	return sorted->tasks.list[f->task].value;
}

static const char *function_name(const struct function *f)
{
	return pool_string(&sorted->names, f->name);
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *fa = a, *fb = b;
	int ret = compare_u64(task_sum(fb), task_sum(fa));

	if (!ret)
		ret = compare_u64(fa->task, fb->task);
	if (!ret)
		ret = compare_u64(fb->self, fa->self);
	if (!ret)
		ret = compare_u64(fb->total, fa->total);
	return ret ? ret : strcmp(function_name(fa), function_name(fb));
}

static double share(u64 part, u64 all)
{
	return all ? 100.0 * part / all : 0;
}

static void print_head(const struct map *m, u64 sum)
{
	const struct value_type *v = &m->values[m->main_value];

	printf("# %llu %s", sum, v->type ? v->type : "references");
	if (v->type && strcmp(v->unit, "count") && strcmp(v->unit, v->type))
		printf(" (%s)", v->unit);
	printf("\n#%15s %6s %16s %6s  function\n", "self", "", "total", "");
}

static void print_list(const struct functions *fs, u64 all, size_t top)
{
	const struct function *f;
	u32 task = UINT32_MAX;
	const char *name;
	size_t i, n = 0;

	for (i = 0; i < fs->index.nr; i++, n++) {
		f = &fs->list[i];
		name = pool_string(&fs->tasks, f->task);
		if (f->task != task && *name)
			printf("\n# %s: %llu (%.1f%%)\n", name, task_sum(f),
			       share(task_sum(f), all));
		n = f->task == task ? n : 0;
		task = f->task;
		if (!top || n < top)
			printf("%16llu %5.1f%% %16llu %5.1f%%  %s\n", f->self, share(f->self, all),
			       f->total, share(f->total, all), function_name(f));
	}
}

void print_functions(struct map *m, const struct config *cfg)
{
	struct functions fs = {};
	u64 sum = 0;
	size_t i;

	for (i = 0; i < m->nr_stacks; i++) {
		add_stack(&fs, m, i);
		sum += m->stacks[i].ref;
	}
	sorted = &fs;
	sort_array(fs.list, fs.index.nr, sizeof(*fs.list), compare_functions);
	print_head(m, sum);
	print_list(&fs, sum, cfg->top);
	pool_free(&fs.names);
	pool_free(&fs.tasks);
	pool_free(&fs.index);
	free(fs.list);
}
