// SPDX-License-Identifier: GPL-2.0
/*
 * stackmap_dump - show the stacks of an ftrace stack map, and profiles of recordings with stacks
 *
 * The binary export (stack_map_bin) has ids, counts and addresses. This finds the names of the
 * addresses in kallsyms or in a vmlinux, and prints the stacks for people or for other tools. The
 * format is described in Documentation/trace/ftrace-stackmap.rst.
 *
 * The command decides what is read: a map, or a recording. What is in stackmap/:
 *   map.c, user.c	read a map, and what processes have mapped
 *   symtab.c, elf.c, source.c	names of addresses
 *   frame.c, tracer.c	texts of addresses
 *   select.c		selects stacks, and merges those with the same functions
 *   print.c, report.c, diff.c, pprof.c	output
 *   annotate.c		a filter for text
 *   profile.h		tells how a recording (trace.dat) becomes stacks with weights
 *   record.h		names the files of what works on the running kernel
 */
#include <ctype.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stackmap/record.h"

const char * const program = "stackmap_dump";

enum form {
	FORM_TEXT, FORM_JSON, FORM_FOLDED, FORM_PPROF, FORM_PERF, FORM_REPORT, FORM_REPORT_JSON,
	FORM_DIFF, FORM_ANNOTATE,
};

static struct config cfg;
static const char *output_file;
static enum form format_choice;
static bool json;
static bool of_map;

static void set_numbers(const struct choice *c, char *arg)
{
	unsigned long first;
	regex_t form;
	char *p;

	regcomp(&form, "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$", REG_EXTENDED | REG_NOSUB);
	if (regexec(&form, arg, 0, NULL, 0))
		usage("not a list of numbers", arg);
	regfree(&form);
	for (p = arg; *p; p += *p == ',') {
		first = strtoul(p, &p, 10);
		if (*p == '-' && strtoul(p + 1, &p, 10) < first)
			usage("a range begins with the smaller number", arg);
	}
	set_text(c, arg);
}

static void set_grep(const struct choice *c, char *arg)
{
	if (regcomp(&cfg.grep, arg, REG_EXTENDED | REG_NOSUB))
		usage("not an extended regular expression", arg);
	cfg.has_grep = true;
}

static void set_function(const struct choice *c, char *arg)
{
	if (cfg.function || !*arg)
		usage("--callers or --callees of one function", NULL);
	cfg.function = arg;
	cfg.callers = !strcmp(c->name, "callers");
}

static void set_by(const struct choice *c, char *arg)
{
	static const char * const names[NR_BY] = { "", "cpu", "event", "task", "process" };

	for (cfg.by = NR_BY - 1; cfg.by && strcmp(arg, names[cfg.by]); cfg.by--)
		;
	if (!cfg.by)
		usage("--by knows cpu, event, task and process, not", arg);
}

static void set_format(const struct choice *c, char *arg)
{
	static const char * const names[] = {
		[FORM_FOLDED] = "folded", [FORM_PPROF] = "pprof", [FORM_PERF] = "perf",
	};

	for (format_choice = FORM_PERF; format_choice >= FORM_FOLDED; format_choice--) {
		if (!strcmp(arg, names[format_choice]))
			return;
	}
	usage("--format knows folded, pprof and perf, not", arg);
}

/* Either one may be missing. */
static void set_time(const struct choice *c, char *arg)
{
	char *from = strsep(&arg, ",");

	if (!arg)
		usage("--time is FROM,TO", from);
	cfg.from = *from ? parse_seconds(from) : 0;
	cfg.to = *arg ? parse_seconds(arg) : 0;
}

static void set_sleep(const char *which)
{
	if (*which && strcmp(which, ":preempted") && strcmp(which, ":uninterruptible"))
		usage("--weight off-cpu knows :preempted and :uninterruptible, not", which);
	cfg.off_cpu = true;
	cfg.sleep = !*which ? SLEEP_ANY : which[1] == 'p' ? SLEEP_PREEMPTED : SLEEP_UNINTERRUPTIBLE;
}

/* "kmalloc+kmem_cache_alloc": inside, lists have commas. */
static char *take_list(char **arg)
{
	char *list = strsep(arg, ","), *p;

	for (p = list; p && *p; p++)
		*p = *p == '+' ? ',' : *p;
	return list;
}

/* "pid=next_pid,dev": the fields of the one, and of the other */
static void set_keys(char *arg)
{
	char *first = check_mem(calloc(1, strlen(arg) + 1)), *key;
	char *second = check_mem(calloc(1, strlen(arg) + 1));
	const char *comma = "", *other;

	while ((key = strsep(&arg, ","))) {
		other = strchr(key, '=') ? strchr(key, '=') + 1 : key;
		key[strcspn(key, "=")] = '\0';
		sprintf(first + strlen(first), "%s%s", comma, key);
		sprintf(second + strlen(second), "%s%s", comma, other);
		comma = ",";
	}
	cfg.keys = first;
	cfg.end_keys = second;
}

static void set_pair(const char *name, char *arg)
{
	cfg.allocs = take_list(&arg);
	cfg.frees = take_list(&arg);
	cfg.latency = !strcmp(name, "latency");
	if (!arg || !*cfg.allocs || !*cfg.frees || !*arg)
		usage(cfg.latency ? "--weight latency=BEGIN,END,KEY" :
		      "--weight outstanding=ALLOC,FREE,KEY", NULL);
	set_keys(arg);
}

#define LEAKS \
	"kmalloc+kmalloc_node+kmem_cache_alloc+kmem_cache_alloc_node,kfree+kmem_cache_free,ptr"

static void set_field(const char *name)
{
	if (strpbrk(name, ",:=") || !*name)
		usage("--weight knows events, FIELD, off-cpu, latency=, outstanding=, leaks, not",
		      name);
	if (cfg.weight)
		usage("--weight is one field", name);
	cfg.weight = name;
}

/* With a field, it may be what is counted of another weight. */
static void set_weight(const struct choice *c, char *arg)
{
	size_t len = strcspn(arg, ":=");
	char *name __free(pointer) = format("%.*s", (int)len, arg);
	bool is_pair = !strcmp(name, "latency") || !strcmp(name, "outstanding");
	bool is_leaks = !strcmp(arg, "leaks"), is_off_cpu = !strcmp(name, "off-cpu");

	if ((is_pair || is_leaks || is_off_cpu) && (cfg.off_cpu || cfg.allocs))
		usage("one weight at a time", arg);
	if (is_off_cpu)
		set_sleep(arg + len);
	else if (is_pair)
		set_pair(name, arg + len + !!arg[len]);
	else if (is_leaks)
		set_pair(arg, copy_string(LEAKS));
	else if (strcmp(arg, "events"))
		set_field(arg);
	cfg.leaks |= is_leaks;
}

static struct choice instance_choices[] = {
	{ "instance", 'i', "NAME", set_instance, &cfg.instance,
	  "this trace instance, of the kernel or in the recording" },
	{}
};

static struct choice map_choices[] = {
	{ "map", 0, NULL, set_flag, &of_map,
	  "read the map, not the recording: of FILE, DIR, stdin (-), or\n"
	  "of the running kernel" },
	{}
};

static struct choice symbol_choices[] = {
	{ "kallsyms", 'k', "FILE", set_text, &cfg.kallsyms,
	  "a copy of the target's /proc/kallsyms" },
	{ "vmlinux", 'v', "FILE", set_text, &cfg.vmlinux,
	  "the target's vmlinux, for addresses that are not in kallsyms" },
	{ "force", 0, NULL, set_flag, &cfg.force,
	  "accept symbols of another kernel or another boot" },
	{ "symfs", 0, "DIR", set_text, &cfg.symfs, "look for programs and libraries below DIR" },
	{}
};

static struct choice line_choices[] = {
	{ "lines", 'l', NULL, set_flag, &cfg.lines,
	  "source lines and inlined callers, from the vmlinux, of maps" },
	{}
};

static struct choice weight_choices[] = {
	{ "weight", 'w', "WEIGHT", set_weight, NULL,
	  "events: each counts 1 (the default)\n"
	  "FIELD: this field of the events (bytes_alloc)\n"
	  "off-cpu: microseconds that tasks sleep\n"
	  "off-cpu:uninterruptible: in state D\n"
	  "off-cpu:preempted: that they wait for a CPU\n"
	  "latency=BEGIN,END,KEY[=KEY][,KEY...]: microseconds from one event\n"
	  "to another with equal fields (sched_waking,sched_switch,pid=next_pid)\n"
	  "outstanding=ALLOC,FREE,KEY: what was not freed (kmalloc,kfree,ptr)\n"
	  "leaks: bytes of kmalloc and kmem_cache_alloc that were not freed" },
	{ "wakers", 0, NULL, set_flag, &cfg.wakers,
	  "with off-cpu: above the stack of a task that sleeps, who woke it" },
	{}
};

static struct choice sample_choices[] = {
	{ "event", 'e', "EVENTS", set_text, &cfg.events,
	  "these events (sched_switch,kmem:kfree) or systems (kmem)" },
	{ "pid", 0, "LIST", set_numbers, &cfg.pids, "of these processes (1,4-7)" },
	{ "tid", 0, "LIST", set_numbers, &cfg.tids, "of these threads" },
	{ "cpu", 0, "LIST", set_numbers, &cfg.cpus, "on these CPUs" },
	{ "comm", 0, "PATTERN", set_text, &cfg.comm,
	  "of tasks with such a name (a pattern of the shell)" },
	{ "time", 0, "FROM,TO", set_time, NULL,
	  "between these seconds of the recording's clock; one may be missing" },
	{}
};

static struct choice top_choices[] = {
	{ "top", 't', "N", set_number, &cfg.top, "only the first N" },
	{}
};

static struct choice min_choices[] = {
	{ "min-ref", 'm', "N", set_number, &cfg.min_ref, "only stacks that weigh at least N" },
	{}
};

static struct choice grep_choices[] = {
	{ "grep", 'g', "REGEX", set_grep, NULL,
	  "only stacks with a frame that matches the extended regex" },
	{}
};

static struct choice function_choices[] = {
	{ "callers", 0, "NAME", set_function, NULL, "only what calls the function NAME" },
	{ "callees", 0, "NAME", set_function, NULL, "only what it calls" },
	{}
};

static struct choice output_choices[] = {
	{ "output", 'o', "FILE", set_text, &output_file, "into FILE, not to stdout" },
	{}
};

static struct choice json_choices[] = {
	{ "json", 'j', NULL, set_flag, &json, "an array with one object for each" },
	{}
};

static struct choice by_choices[] = {
	{ "by", 0, "WHAT", set_by, NULL, "cpu, event, task or process: one for each of them" },
	{}
};

static struct choice format_choices[] = {
	{ "format", 0, "FORMAT", set_format, NULL,
	  "folded   root;...;leaf count, for flame graphs\n"
	  "pprof    for pprof, speedscope, Pyroscope, Parca (binary)\n"
	  "perf     the samples, as perf script prints them" },
	{}
};

static void refuse_old(const struct choice *c, char *arg)
{
	usage(format("--%s: %s", c->name, (char *)c->to), NULL);
}

#define OLD(name, letter, what)	{ name, letter, "[=]", refuse_old, (char *)what }

/* Spellings of before there were commands. */
static struct choice old_choices[] = {
	OLD("map-only", 'M', "now stackmap_dump map DIR, or --map of report, export and diff"),
	OLD("partial", 0, "gone, map prints the good stacks of a damaged map"),
	OLD("folded", 'F', "now stackmap_dump export --format folded"),
	OLD("speedscope", 'S', "now stackmap_dump export --format pprof, which speedscope reads"),
	OLD("pprof", 0, "now stackmap_dump export --format pprof"),
	OLD("perf-script", 0, "now stackmap_dump export --format perf"),
	OLD("annotate", 0, "now stackmap_dump annotate TEXT [MAP]"),
	OLD("diff", 0, "now stackmap_dump diff OLD NEW"),
	OLD("summary", 's', "now a note of stackmap_dump map"),
	OLD("sort", 0, "gone, those that weigh most are first"),
	OLD("off-cpu", 0, "now --weight off-cpu, off-cpu:preempted, off-cpu:uninterruptible"),
	OLD("latency", 0, "now --weight latency=BEGIN,END,KEY"),
	OLD("outstanding", 0, "now --weight outstanding=ALLOC,FREE,KEY"),
	OLD("leaks", 0, "now --weight leaks"),
	OLD("from", 0, "now --time FROM,"),
	OLD("to", 0, "now --time ,TO"),
	OLD("tracer", 0, "gone, recordings are printed without the tracer's frames, maps with them"),
	OLD("no-tracer", 0, "gone, recordings are printed without the tracer's frames, maps with them"),
	{}
};

/* What is read. */
struct input {
	char		*path;
	char		*recording;	/* NULL: the map alone */
	struct map	map;
};

#define DAT_MAGIC	"\027\010Dtracing"

static bool is_recording(const char *path)
{
	FILE *f __free(file) = NULL;
	char head[sizeof(DAT_MAGIC) - 1];
	struct stat st;

	if (!stat(path, &st) && S_ISREG(st.st_mode))
		f = fopen(path, "re");
	return f && fread(head, sizeof(head), 1, f) && !memcmp(head, DAT_MAGIC, sizeof(head));
}

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int refuse_recording(const char *path)
{
	if (!is_directory(path))
		return fail("%s: not a recording; of a map: stackmap_dump map %s", path, path);
	if (is_beside(path, "head.dat"))
		return fail("%s: has no trace.dat. To make it, there: %s", path, RESTORE);
	return fail("%s: has no trace.dat; the map in it: stackmap_dump map %s", path, path);
}

#define LAST_RECORDING	"stackmap.data"

/* @path: NULL: the last one */
static int find_recording(struct input *in, const char *path)
{
	in->path = copy_string(path ? path : LAST_RECORDING);
	if (is_recording(in->path))
		in->recording = copy_string(in->path);
	else if (is_beside(in->path, "trace.dat"))
		in->recording = format("%s/trace.dat", in->path);
	else if (!path && access(in->path, F_OK))
		return fail("there is no ./%s: name a recording, or make one "
			    "(stackmap_dump record -- COMMAND)", in->path);
	else if (access(in->path, F_OK))
		return fail("%s: %s", in->path, strerror(errno));
	else
		return refuse_recording(in->path);
	if (!HAS_LIBS)
		return fail("%s: " WITHOUT_LIBS ", which read recordings", in->recording);
	return 0;
}

/* @path: NULL: that of the running kernel */
static int find_map(struct input *in, const char *path)
{
	in->path = path ? copy_string(path) : find_instance(cfg.instance);
	if (path && cfg.instance)
		usage("--instance is one of the kernel or of a recording, not of", path);
	if (path && is_recording(path))
		return fail("%s: a recording, not a map: stackmap_dump stacks %s", path, path);
	return path ? 0 : check_instance(in->path);
}

static int find_input(struct input *in, const char *path)
{
	return of_map ? find_map(in, path) : find_recording(in, path);
}

/*
 * Returns 0, 1 if the map is damaged but has stacks before that, or a negative number. Beside a
 * recording, there may be no map, and a recording that is no directory's has none.
 */
static int load(struct input *in, const struct map *sibling, bool whole)
{
	struct map *m = &in->map;
	int ret = 0;

	if (in->recording && !is_recording(in->recording))
		return fail("%s: not a trace.dat", in->recording);
	if (!in->recording || is_beside(in->path, "stack_map_bin"))
		ret = load_map(m, in->path);
	else if (strcmp(in->path, in->recording))
		m->dir = copy_string(in->path);
	if (in->recording && !m->name)
		m->name = copy_string(in->recording);
	if (ret && (ret != -EINVAL || in->recording || whole || !m->nr_stacks))
		return ret;
	return load_symbols(m, sibling, &cfg) ? -EINVAL : !!ret;
}

static int load_both(struct input *new, struct input *old)
{
	int ret = load(new, NULL, old != NULL), old_ret = 0;

	if (ret >= 0 && old)
		old_ret = load(old, of_map ? &new->map : NULL, true);
	if (ret >= 0 && old && !old_ret && !of_map &&
	    !new->map.sym.kallsyms.nr != !old->map.sym.kallsyms.nr)
		old_ret = fail("only one of %s and %s has a kallsyms: name the trace.dat of both",
			       old->path, new->path);
	return old_ret ? old_ret : ret;
}

/* Stacks that become names of functions lose their addresses. */
static int print_stacks(enum form form, struct map *m, struct map *old)
{
	static print_fn * const print[] = {
		[FORM_TEXT] = print_text, [FORM_JSON] = print_json, [FORM_FOLDED] = print_folded,
		[FORM_PPROF] = print_pprof, [FORM_REPORT] = print_functions,
		[FORM_REPORT_JSON] = print_json_functions,
	};
	bool reports = form == FORM_REPORT || form == FORM_REPORT_JSON;
	struct pool names = {};
	int ret = 0;

	if (!of_map || reports || form == FORM_FOLDED || form == FORM_PPROF) {
		merge_stacks(m, &names, &cfg);
		if (old)
			merge_stacks(old, &names, &cfg);
	}
	m->sum = sum_of(m);
	if (cfg.function && !m->nr_stacks && (!old || !old->nr_stacks))
		ret = fail("%s: no stack has a function %s", m->name, cfg.function);
	if (old) {
		print_diff(m, old, &names, &cfg);
	} else if (!ret) {
		select_stacks(m, &cfg, reports ? 0 : cfg.top);
		print[form](m, &names, &cfg);
	}
	pool_free(&names);
	return ret;
}

static int open_output(void)
{
	if (output_file && !freopen(output_file, "w", stdout))
		return fail("%s: %s", output_file, strerror(errno));
	return 0;
}

/* The kernel records no more frames of a user stack than these. */
static void note_deep(const struct map *m)
{
	u32 i, nr = 0;

	for (i = 0; i < m->nr_stacks; i++)
		nr += m->stacks[i].nr_user == USER_MAX_DEPTH;
	if (nr)
		note("%u stacks have %u frames of user space; outer ones may be missing", nr,
		     USER_MAX_DEPTH);
}

/* Samples replace the stacks of the map beside the recording. */
static int make_profiles(struct input *new, struct input *old)
{
	int ret = 0, old_ret = 0;

	if (HAS_LIBS && new->recording)
		ret = make_profile(&new->map, new->recording, NULL, &cfg);
	if (HAS_LIBS && old && old->recording)
		old_ret = make_profile(&old->map, old->recording, NULL, &cfg);
	if ((ret && !new->map.nr_stacks) || (old_ret && !old->map.nr_stacks))
		return -EINVAL;
	return ret || old_ret;
}

/* These print as they read. */
static int show_stream(enum form form, struct input *in)
{
	if (open_output())
		return -EINVAL;
	if (form == FORM_ANNOTATE)
		return annotate(&in->map, &cfg);
	return HAS_LIBS ? print_perf(&in->map, in->recording, &cfg) : 0;
}

static int show(enum form form, struct input *new, struct input *old)
{
	struct map *m = &new->map;
	int ret;

	if (form == FORM_ANNOTATE || form == FORM_PERF)
		return show_stream(form, new);
	if (m->split && of_map)
		note("interrupts split %llu stacks, the parts are separate", m->split);
	ret = make_profiles(new, old);
	if (ret < 0 || open_output())
		return -EINVAL;
	note_deep(m);
	return ret | print_stacks(form, m, old ? &old->map : NULL);
}

static void input_free(struct input *in)
{
	if (HAS_LIBS)
		profile_free(&in->map);
	map_free(&in->map);
	free(in->recording);
	free(in->path);
}

static bool find_both(struct input *new, const char *path, struct input *old, const char *old_path)
{
	return !find_input(new, path) && (!old_path || !find_input(old, old_path));
}

static int load_and_show(enum form form, struct input *new, struct input *old)
{
	int ret = load_both(new, old);
	struct map *m = &new->map;

	if (ret < 0)
		return ret;
	if (m->live && !m->nr_stacks)
		note_empty(m->dir ? m->dir : TRACEFS);
	note("symbols: %s", new->recording && !m->sym.kallsyms.nr ? new->recording : m->sym.source);
	if (of_map && (form == FORM_TEXT || form == FORM_JSON))
		note_summary(m);
	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	ret |= show(form, new, old);
	note_objects(&m->sym);
	return ret;
}

/* @path: NULL: the last recording, or the live map; @old_path: with diff, what it is compared to */
static int dump(enum form form, const char *path, const char *old_path)
{
	struct input new = {}, old = {};
	int ret = 1;

	if (find_both(&new, path, &old, old_path))
		ret = load_and_show(form, &new, old_path ? &old : NULL);
	input_free(&old);
	input_free(&new);
	return !!ret;
}

static void refuse(bool bad, const struct choice *c, const char *why)
{
	if (bad)
		usage(format("--%s: %s", c->name, why), NULL);
}

static bool is_among(const struct choice *c, const struct choice *choices)
{
	while (choices->name && choices != c)
		choices++;
	return choices->name;
}

/* Refuses what would be ignored. */
static void check_choice(const struct choice *c, enum form form)
{
	bool selects = c->to == &cfg.top || c->to == &cfg.min_ref || c->set == set_function;

	refuse(c->given > 1 && c->arg && c->set != set_weight, c, "given twice");
	refuse(c->to == &cfg.symfs && !HAS_LIBS, c, WITHOUT_LIBS);
	refuse(c->to == &cfg.lines && !cfg.vmlinux, c, "needs --vmlinux FILE");
	refuse(c->to == &cfg.lines && !of_map, c, "is for maps (--map)");
	refuse(form == FORM_PERF && (selects || of_map), c, "does not go with --format perf");
	refuse(of_map && (is_among(c, weight_choices) || is_among(c, sample_choices) ||
			  c->set == set_by), c, "needs a recording, a map has no events");
	refuse(of_map && form == FORM_DIFF && c->set == set_function, c,
	       "of maps, goes with report and export");
}

static void check_weights(enum form form)
{
	if (cfg.leaks && !cfg.weight)
		cfg.weight = "bytes_alloc";
	if (cfg.wakers && (!cfg.off_cpu || cfg.sleep == SLEEP_PREEMPTED))
		usage("--wakers tells who ends a sleep: --weight off-cpu --wakers", NULL);
	if (cfg.weight && (cfg.off_cpu || cfg.latency) && form != FORM_PPROF)
		usage("two weights only go into export --format pprof", NULL);
}

static int run(const struct command *cmd, enum form form, const char *path, const char *old_path)
{
	const struct choice *c;

	for (c = next_given(cmd, NULL); c; c = next_given(cmd, c))
		check_choice(c, form);
	check_weights(form);
	if (form == FORM_PPROF && !output_file && isatty(STDOUT_FILENO))
		usage("--format pprof is binary: -o FILE", NULL);
	/* The others do not tell how often there is what weighs nothing. */
	if (!of_map && !cfg.min_ref && form >= FORM_FOLDED && form != FORM_PPROF)
		cfg.min_ref = 1;
	cfg.direct = form == FORM_REPORT || form == FORM_REPORT_JSON;
	cfg.for_pprof = form == FORM_PPROF;
	return dump(form, path, old_path);
}

/* NULL if there is none. */
static const char *one_argument(int argc, char **argv)
{
	if (argc > 1)
		usage("one input at a time", argv[argc - 1]);
	return argc ? argv[0] : NULL;
}

static int run_map(const struct command *cmd, int argc, char **argv)
{
	of_map = true;
	return run(cmd, json ? FORM_JSON : FORM_TEXT, one_argument(argc, argv), NULL);
}

static int run_stacks(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, json ? FORM_JSON : FORM_TEXT, one_argument(argc, argv), NULL);
}

static int run_report(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, json ? FORM_REPORT_JSON : FORM_REPORT, one_argument(argc, argv), NULL);
}

static int run_export(const struct command *cmd, int argc, char **argv)
{
	if (!format_choice)
		usage("name a --format: folded, pprof or perf", NULL);
	return run(cmd, format_choice, one_argument(argc, argv), NULL);
}

/* As perf diff: of the last recording and the one before, if none is named. */
static int run_diff(const struct command *cmd, int argc, char **argv)
{
	if (argc > 2)
		usage("diff compares two", argv[2]);
	if (!argc && of_map)
		usage("diff --map needs an OLD map", NULL);
	return run(cmd, FORM_DIFF, argc > 1 ? argv[1] : NULL, argc ? argv[0] : LAST_RECORDING ".old");
}

static int run_annotate(const struct command *cmd, int argc, char **argv)
{
	if (!argc)
		usage("name a TEXT, or - for stdin", NULL);
	of_map = true;
	cfg.trace = argv[0];
	return run(cmd, FORM_ANNOTATE, one_argument(argc - 1, argv + 1), NULL);
}

#define INPUT		{ "Input", instance_choices }
#define SYMBOLS		{ "Symbols", symbol_choices }
#define SAMPLES		{ "Weight of the samples", weight_choices }, \
			{ "Selection of samples", sample_choices }
#define STACKS		{ "Selection of stacks", top_choices }
#define OUTPUT		{ "Output", output_choices }
#define OTHER		{ "Other", common_choices }, { NULL, old_choices }

static const struct command map_command = {
	.name = "map", .run = run_map, .args = "[OPTIONS] [FILE | DIR | -]",
	.summary = "the stacks of a map",
	.text =
"Print the stacks of a stack map: of a copy of stack_map_bin (FILE), of stdin (-), of a directory\n"
"that \"record\" or \"save\" made (DIR), or of the running kernel.\n",
	.groups = {
		INPUT, SYMBOLS, { "", line_choices }, STACKS, { "", min_choices },
		{ "", grep_choices }, OUTPUT, { "", json_choices }, OTHER,
	},
	.examples = "Example, the three most frequent stacks of the running kernel:\n"
		    "  stackmap_dump map --top 3\n",
};

#define OF_A_RECORDING \
	"of a recording:\n" \
	"of a directory that \"record\" or \"save\" made (DIR), by default ./stackmap.data, or of a\n" \
	"trace.dat (FILE).\n"

static const struct command stacks_command = {
	.name = "stacks", .run = run_stacks, .args = "[OPTIONS] [FILE | DIR]",
	.summary = "the stacks of a recording, those that weigh most first",
	.text = "Print the stacks with what they weigh, " OF_A_RECORDING,
	.groups = {
		INPUT, SYMBOLS, SAMPLES, STACKS, { "", min_choices }, { "", grep_choices },
		{ "", function_choices }, OUTPUT, { "", json_choices }, { "", by_choices }, OTHER,
	},
	.examples = "Example, where tasks waited longest, and who woke them:\n"
		    "  stackmap_dump stacks --weight off-cpu --wakers --top 5\n",
};

static const struct command report_command = {
	.name = "report", .run = run_report, .args = "[OPTIONS] [FILE | DIR]",
	.summary = "the functions of a recording, by self and total",
	.text = "Print the functions by what they weigh themselves and with what they call, "
		OF_A_RECORDING,
	.groups = {
		INPUT, { "", map_choices }, SYMBOLS, SAMPLES, STACKS, { "", grep_choices },
		{ "", function_choices }, OUTPUT, { "", json_choices }, { "", by_choices }, OTHER,
	},
	.examples = "Example, where tasks waited:\n"
		    "  stackmap_dump report --weight off-cpu stackmap.data\n",
};

static const struct command export_command = {
	.name = "export", .run = run_export, .args = "--format FORMAT [OPTIONS] [FILE | DIR]",
	.summary = "a recording for flame graphs, pprof, speedscope, perf's readers",
	.text = "Print a profile for other programs, " OF_A_RECORDING,
	.groups = {
		{ "Output", format_choices }, { "", output_choices }, INPUT, { "", map_choices },
		SYMBOLS, SAMPLES, STACKS, { "", min_choices }, { "", grep_choices },
		{ "", function_choices }, OTHER,
	},
	.examples = "Example, a flame graph of where tasks waited:\n"
		    "  stackmap_dump export --format folded --weight off-cpu > folded\n",
};

static const struct command diff_command = {
	.name = "diff", .run = run_diff, .args = "[OPTIONS] [OLD [NEW]]",
	.summary = "what changed from one recording to another",
	.text =
"Print the stacks that weigh more or less in NEW (./stackmap.data) than in OLD\n"
"(./stackmap.data.old). With --map, of maps; then NEW is the map of the running kernel.\n",
	.groups = {
		INPUT, { "", map_choices }, SYMBOLS, { "", line_choices }, SAMPLES, STACKS,
		{ "", min_choices }, { "", grep_choices }, { "", function_choices }, OUTPUT, OTHER,
	},
	.examples = "Example, what a change has cost:\n"
		    "  stackmap_dump diff --weight off-cpu stackmap.data.old stackmap.data\n",
};

static const struct command annotate_command = {
	.name = "annotate", .run = run_annotate, .args = "[OPTIONS] TEXT [FILE | DIR]",
	.summary = "a text of trace or trace-cmd report, with frames below ids",
	.text =
"Print TEXT (or stdin, -), what trace, trace_pipe or trace-cmd report have printed, with the\n"
"frames below each line that has the id of a stack: by a map (FILE), that of a directory (DIR),\n"
"or of the running kernel.\n",
	.groups = { INPUT, SYMBOLS, { "", line_choices }, OUTPUT, OTHER },
	.examples = "Example:\n"
		    "  trace-cmd report | stackmap_dump annotate - DIR\n",
};

static const struct command * const commands[] = {
	&record_command, &save_command, &stacks_command, &report_command, &export_command,
	&diff_command, &map_command, &top_command, &annotate_command,
};

static void print_commands(FILE *f)
{
	size_t i;

	fputs("Usage: stackmap_dump COMMAND [OPTIONS] ...\n"
	      "       stackmap_dump FILE | DIR [OPTIONS]\n"
	      "\n"
	      "Show the stacks of ftrace stack maps, and profiles of recordings with stacks. Without a\n"
	      "COMMAND, it is \"stacks\" of a recording or a directory, and \"map\" of a map.\n"
	      "\n"
	      "Commands:\n", f);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(f, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n"
	      "Options:\n"
	      "  -V, --version          print the version\n"
	      "  -h, --help             print this text; behind a COMMAND: what it does, its options\n"
	      "\n"
	      "Exit status: 0 on success, 1 on bad input or failure, 2 on wrong usage.\n"
	      "\n"
	      "Example, the functions where make waits:\n"
	      "  stackmap_dump record -- make && stackmap_dump report --weight off-cpu\n", f);
}

/* A full disk or a closed pipe is a failure. */
static int finish_output(int ret)
{
	if (!fflush(stdout) && !ferror(stdout))
		return ret;
	complain("%s: %s", output_file ? output_file : "stdout", strerror(errno));
	return 1;
}

static bool is_word(const char *arg)
{
	return *arg != '-' || !arg[1];
}

/* What the file is decides. It may stand before the options, or behind them. */
static const struct command *command_of_file(int argc, char **argv)
{
	const char *path = is_word(argv[1]) ? argv[1] : argv[argc - 1];

	return is_recording(path) || is_directory(path) ? &stacks_command : &map_command;
}

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(name, commands[i]->name))
			return commands[i];
	}
	return NULL;
}

static int run_file(int argc, char **argv)
{
	const struct command *cmd = command_of_file(argc, argv);
	int first = parse_choices(cmd, argc, argv, 1);
	const char *path = argv[first];

	if (!path)
		usage("name a command, or a file", NULL);
	if (!strchr(path, '/') && strcmp(path, "-") && access(path, F_OK))
		usage("no such command or file (options come behind the command)", path);
	return cmd->run(cmd, argc - first, argv + first);
}

static bool is_one_of(const char *arg, const char *a, const char *b, const char *c)
{
	return !strcmp(arg, a) || !strcmp(arg, b) || !strcmp(arg, c);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *cmd;
	int first;

	/* While it is ignored, programs have no status. */
	signal(SIGCHLD, SIG_DFL);
	if (!strcmp(name, "help") && argc > 2) {
		name = argv[2];
		argv[2] = (char *)"--help";
	}
	cmd = find_command(name);
	if (argc < 2) {
		print_commands(stderr);
		return 2;
	}
	if (is_one_of(name, "-h", "--help", "help")) {
		print_commands(stdout);
		return finish_output(0);
	}
	if (is_one_of(name, "-V", "--version", "version")) {
		puts("stackmap_dump 3.0");
		return finish_output(0);
	}
	if (!cmd)
		return finish_output(run_file(argc, argv));
	first = parse_choices(cmd, argc, argv, 2);
	return finish_output(cmd->run(cmd, argc - first, argv + first));
}
