// SPDX-License-Identifier: GPL-2.0
/* "report": the functions of all stacks, by what they weigh themselves and with what they call. */
#include "frame.h"
#include "pool.h"
#include "util.h"
#include "view.h"

struct function {
	u32	task;		/* a number of task_names, 0 without --by task */
	u32	name;
	u64	self;
	u64	total;
	size_t	last;		/* the stack that counted last, plus 1: recursion counts once */
};

struct functions {
	struct intern	names;
	struct intern	task_names;
	struct pool	index;		/* of {task, name} */
	struct function	*list;		/* at the numbers of the index */
	size_t		room;
	u64		*sums;		/* of the tasks */
	size_t		room_sums;
};

static const struct functions *sorted;

static u32 name_of(struct functions *fs, struct frame *f)
{
	const char *mod, *name = frame_name(f, &mod);
	char *full;

	if (f->uid)
		return f->uid - 1;
	full = mod ? format("%s[%s]", name, mod) : copy_string(name);
	f->uid = intern(&fs->names, full) + 1;
	free(full);
	return f->uid - 1;
}

static struct function *get_function(struct functions *fs, u32 task, u32 name)
{
	const u64 key[] = { task, name };
	size_t known = fs->index.nr;
	u32 i = pool_add(&fs->index, key, ARRAY_SIZE(key));

	if (i > known) {
		fs->list = grow(fs->list, &fs->room, i + 1, sizeof(*fs->list));
		fs->list[i] = (struct function) { .task = task, .name = name };
	}
	return &fs->list[i];
}

static u32 task_of(struct functions *fs, const struct map *m, const struct stack *s)
{
	size_t known = fs->task_names.nr, i;
	char *name = m->tasks ? format("%s-%u", m->tasks[s->id].comm, m->tasks[s->id].pid) :
		     copy_string("");

	i = intern(&fs->task_names, name);
	free(name);
	fs->sums = grow(fs->sums, &fs->room_sums, i + 1, sizeof(*fs->sums));
	if (i == known)
		fs->sums[i] = 0;
	fs->sums[i] += s->ref;
	return i;
}

static void add_stack(struct functions *fs, struct map *m, size_t nr)
{
	const struct stack *s = &m->stacks[nr];
	u32 task = task_of(fs, m, s), i;
	struct function *f;

	for (i = 0; i < s->nr; i++) {
		f = get_function(fs, task, name_of(fs, frame_get(m, s, i)));
		f->self += i ? 0 : s->ref;
		f->total += f->last == nr + 1 ? 0 : s->ref;
		f->last = nr + 1;
	}
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *fa = a, *fb = b;
	int ret = 0;

	if (fa->task != fb->task)
		ret = compare_u64(sorted->sums[fb->task], sorted->sums[fa->task]);
	if (!ret && fa->task != fb->task)
		ret = compare_u64(fa->task, fb->task);
	if (!ret)
		ret = compare_u64(fb->self, fa->self);
	if (!ret)
		ret = compare_u64(fb->total, fa->total);
	return ret ? ret : strcmp(sorted->names.list[fa->name]->s, sorted->names.list[fb->name]->s);
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
	const struct function *f, *end = fs->list + 1 + fs->index.nr;
	u32 task = UINT32_MAX;
	size_t n = 0;

	for (f = fs->list + 1; f < end; f++, n++) {
		if (f->task != task && *fs->task_names.list[f->task]->s)
			printf("\n# %s: %llu (%.1f%%)\n", fs->task_names.list[f->task]->s,
			       fs->sums[f->task], share(fs->sums[f->task], all));
		n = f->task == task ? n : 0;
		task = f->task;
		if (!top || n < top)
			printf("%16llu %5.1f%% %16llu %5.1f%%  %s\n", f->self, share(f->self, all),
			       f->total, share(f->total, all), fs->names.list[f->name]->s);
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
	if (fs.index.nr)
		sort_array(fs.list + 1, fs.index.nr, sizeof(*fs.list), compare_functions);
	print_head(m, sum);
	if (fs.index.nr)
		print_list(&fs, sum, cfg->top);
	intern_free(&fs.names);
	intern_free(&fs.task_names);
	pool_free(&fs.index);
	free(fs.list);
	free(fs.sums);
}
