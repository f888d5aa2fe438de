// SPDX-License-Identifier: GPL-2.0
/* "report": the functions, by what they weigh themselves and with what they call. */
#include "stackmap.h"

/* What a function weighs in the stacks of a group, or the group itself. */
struct function {
	const struct function	*group;
	u32			label;	/* of the group, 0 without --by */
	u32			nr;	/* in the order in which they came */
	u32			name;	/* 0: the group */
	u64			self;
	u64			total;
	u64			old_self;	/* in a diff */
	u64			old_total;
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
}

void print_functions(struct map *m, struct pool *names, const struct config *cfg)
{
	struct pool fs = {};

	count_functions(&fs, m);
	pool_sort(&fs, compare_functions);
	if (cfg->json) {
		print_json_list(m, &fs, names, cfg->top);
	} else {
		print_sum(m);
		printf("#%15s %6s %16s %6s  function\n", "self", "", "total", "");
		print_list(m, &fs, names, cfg->top);
	}
	pool_free_all(&fs);
}

static long long grown(u64 now, u64 before)
{
	return now - before;
}

/* What weighs more or less itself is first. */
static int compare_growth(const void *a, const void *b)
{
	const struct function *fa = ((const struct pooled *)a)->ptr;
	const struct function *fb = ((const struct pooled *)b)->ptr;

	return compare_u64(llabs(grown(fb->self, fb->old_self)),
			   llabs(grown(fa->self, fa->old_self))) ?:
	       compare_u64(llabs(grown(fb->total, fb->old_total)),
			   llabs(grown(fa->total, fa->old_total))) ?: compare_u64(fa->nr, fb->nr);
}

/* What was counted so far is of the old map. */
static void make_old(struct pool *fs)
{
	struct function *f;
	u32 i;

	for (i = 1; i <= fs->nr; i++) {
		f = fs->list[i].ptr;
		f->old_self = f->self;
		f->old_total = f->total;
		f->self = 0;
		f->total = 0;
		f->last = NULL;
	}
}

static void print_growth(const struct function *f, const char *name)
{
	printf("%+16lld %16llu %+16lld %16llu  %s\n", grown(f->self, f->old_self), f->self,
	       grown(f->total, f->old_total), f->total, name);
}

static bool is_small(long long growth, const struct config *cfg)
{
	return (u64)llabs(growth) < cfg->min_ref;
}

void print_function_diff(const struct map *m, const struct map *old, const struct pool *names,
			 const struct config *cfg)
{
	const struct function *f;
	struct pool fs = {};
	u64 i, n = 0;

	count_functions(&fs, old);
	make_old(&fs);
	count_functions(&fs, m);
	pool_sort(&fs, compare_growth);
	for (i = 1; i <= fs.nr && (!cfg->top || n < cfg->top); i++) {
		f = fs.list[i].ptr;
		if (!f->name || (f->self == f->old_self && f->total == f->old_total) ||
		    (is_small(grown(f->self, f->old_self), cfg) &&
		     is_small(grown(f->total, f->old_total), cfg)))
			continue;
		if (!n++)
			printf("#%15s %16s %16s %16s  function\n", "self", "now", "total", "now");
		print_growth(f, hide_controls(pool_string(names, f->name)));
	}
	pool_free_all(&fs);
}
