// SPDX-License-Identifier: GPL-2.0
/*
 * The commands that read a map or a recording: "map", "stacks", "report", "export", "diff",
 * "annotate". The command decides what is read.
 */
#include <unistd.h>

#include "config.h"
#include "record.h"

/* What is read. */
struct input {
	char		*path;
	char		*recording;	/* NULL: the map alone */
	struct map	map;
};

bool is_recording(const char *path)
{
	FILE *f __free(file) = NULL;
	char head[sizeof(DAT_MAGIC) - 1];
	struct stat st;

	if (!stat(path, &st) && S_ISREG(st.st_mode))
		f = fopen(path, "re");
	return f && fread(head, sizeof(head), 1, f) && !memcmp(head, DAT_MAGIC, sizeof(head));
}

static int refuse_recording(const char *path)
{
	FILE *f __free(file) = is_directory(path) ? NULL : fopen(path, "re");
	char *quoted __free(pointer) = quote(path);
	char head[8];
	const char *known = f ? known_file(head, fread(head, 1, sizeof(head), f)) : NULL;

	if (access(path, is_directory(path) ? R_OK | X_OK : R_OK))
		return fail("%s: %s", path, strerror(errno));
	if (known)
		return fail("%s: this is %s", path, known);
	if (!is_directory(path))
		return fail("%s: not a recording; of a map: stackmap_dump map %s, or --map", path,
			    quoted);
	if (is_beside(path, "head.dat"))
		return fail("%s: has no trace.dat. To make it, there: %s", path, RESTORE);
	if (!is_beside(path, "stack_map_bin"))
		return fail("%s: has no trace.dat", path);
	return fail("%s: has no trace.dat; the map in it: stackmap_dump map %s, or --map", path,
		    quoted);
}

#define LAST_RECORDING	"stackmap.data"

/* @path: NULL: the last one */
static int find_recording(struct input *in, const char *path)
{
	in->path = copy_string(path ? path : LAST_RECORDING);
	if (!strcmp(in->path, "-"))
		return fail("stdin can only be a map: stackmap_dump map -");
	if (is_recording(in->path))
		in->recording = copy_string(in->path);
	else if (is_beside(in->path, "trace.dat"))
		in->recording = format("%s/trace.dat", in->path);
	else if (!path && access(in->path, F_OK))
		return fail("there is no ./%s: name a recording, or make one: stackmap_dump record",
			    in->path);
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
	char *quoted __free(pointer) = quote(path ? path : "");

	in->path = path ? copy_string(path) : find_instance(cfg.instance);
	if (path && is_recording(path))
		return fail("%s: a recording, not a map: stackmap_dump stacks %s", path, quoted);
	return path ? 0 : check_instance(in->path);
}

static int find_input(struct input *in, const char *path)
{
	return cfg.of_map ? find_map(in, path) : find_recording(in, path);
}

/*
 * Returns 0, 1 if the map is damaged but has stacks before that, or a negative number. Beside a
 * recording, there may be no map, and a recording that is no directory's has none.
 */
static int load(struct input *in, const struct map *sibling, bool whole)
{
	struct map *m = &in->map;
	int ret = 0;

	if (in->recording && access(in->recording, R_OK))
		return fail("%s: %s", in->recording, strerror(errno));
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
	int ret = load(new, NULL, !!old), old_ret = 0;

	if (ret >= 0 && old)
		old_ret = load(old, cfg.of_map ? &new->map : NULL, true);
	if (ret >= 0 && old && !old_ret && !cfg.of_map &&
	    !new->map.sym.kallsyms.nr != !old->map.sym.kallsyms.nr)
		old_ret = fail("only one of %s and %s has a kallsyms: name the trace.dat of both",
			       old->path, new->path);
	return old_ret ? old_ret : ret;
}

/* Of a map, too: the others print it as it is. */
static bool is_profile(enum form form)
{
	return form == FORM_REPORT || form == FORM_FOLDED || form == FORM_PPROF || form > FORM_DIFF;
}

/* Stacks that become names of functions lose their addresses. */
static void name_stacks(enum form form, struct map *m, struct pool *names)
{
	if (cfg.of_map && !is_profile(form))
		return;
	if (cfg.of_map)
		drop_tracers(m);
	merge_stacks(m, names, &cfg);
}

static void print_form(enum form form, struct map *m, struct map *old, struct pool *names)
{
	static print_fn * const print[] = {
		[FORM_TEXT] = print_text, [FORM_JSON] = print_json, [FORM_FOLDED] = print_folded,
		[FORM_PPROF] = print_pprof, [FORM_REPORT] = print_functions,
	};

	if (form == FORM_DIFF_FUNCTIONS) {
		print_function_diff(m, old, names, &cfg);
	} else if (old) {
		print_diff(m, old, names, &cfg);
	} else {
		select_stacks(m, &cfg, form == FORM_REPORT ? 0 : cfg.top);
		print[form](m, names, &cfg);
	}
}

static int print_stacks(enum form form, struct map *m, struct map *old)
{
	struct pool names = {};
	int ret;

	name_stacks(form, m, &names);
	if (old)
		name_stacks(form, old, &names);
	m->sum = sum_of(m);
	if (cfg.function && !m->nr_stacks && (!old || !old->nr_stacks))
		ret = fail("%s: no stack has a function %s", m->name, cfg.function);
	else
		ret = open_output(cfg.output);
	if (!ret)
		print_form(form, m, old, &names);
	pool_free(&names);
	return ret;
}

static void note_full(const struct map *m)
{
	if (cfg.of_map && m->nr_full)
		note("%s: %u stacks have %u references, or more", m->name, m->nr_full, UINT32_MAX);
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

/* The caller is not found then, or something that is no code. */
static bool lacks_callers(struct map *m, const struct stack *s)
{
	const struct frame *last = frame_get(m, s, s->nr - 1);
	const struct frame *first = frame_get(m, s, s->nr - s->nr_user);

	if (s->nr_user == 1)
		return !last->sym || strcmp(last->sym->name, "_start");
	return first->object && !last->object;
}

static void note_frame_pointers(struct map *m)
{
	const struct stack *s;
	u64 nr = 0, all = 0;

	for (s = m->stacks; s != stacks_end(m); s++) {
		all += s->nr_user ? s->val[VAL_EVENTS] : 0;
		nr += s->nr_user && lacks_callers(m, s) ? s->val[VAL_EVENTS] : 0;
	}
	if (nr && nr >= all - nr)
		note("%llu of %llu user stacks end in code without frame pointers", nr, all);
}

/* Samples replace the stacks of the map beside the recording. */
static int make_profiles(struct input *new, struct input *old)
{
	int ret = 0, old_ret = 0;

	if (HAS_LIBS && new->recording)
		ret = make_profile(&new->map, new->recording, NULL, NULL, &cfg);
	if (HAS_LIBS && old && old->recording)
		old_ret = make_profile(&old->map, old->recording, NULL, NULL, &cfg);
	if ((ret && !new->map.nr_stacks) || (old_ret && !old->map.nr_stacks))
		return -EINVAL;
	return ret || old_ret;
}

/* These print as they read. */
static int show_stream(enum form form, struct input *in)
{
	if (form == FORM_ANNOTATE)
		return annotate(&in->map, &cfg);
	if (!HAS_LIBS)
		return 0;
	return form == FORM_PERFETTO ? print_perfetto(&in->map, in->recording, &cfg) :
	       make_profile(&in->map, in->recording, print_perf_sample, NULL, &cfg);
}

static int show_input(enum form form, struct input *new, struct input *old)
{
	struct map *m = &new->map;
	int ret;

	if (form == FORM_ANNOTATE || form == FORM_PERF || form == FORM_PERFETTO)
		return show_stream(form, new);
	note_full(m);
	if (old)
		note_full(&old->map);
	if (m->split && cfg.of_map)
		note("interrupts split %llu stacks, the parts are separate", m->split);
	ret = make_profiles(new, old);
	if (ret < 0)
		return ret;
	note_deep(m);
	if (!cfg.of_map)
		note_frame_pointers(m);
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

static int load_and_show(enum form form, struct input *new, struct input *old)
{
	int ret = load_both(new, old);
	struct map *m = &new->map;

	if (ret < 0)
		return ret;
	if (m->live && !m->nr_stacks)
		note_empty(m->dir ? m->dir : TRACEFS);
	if (!new->recording)
		note("symbols: %s", m->sym.source);
	if (cfg.of_map && (form == FORM_TEXT || form == FORM_JSON))
		note_summary(m);
	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	ret |= show_input(form, new, old);
	note_objects(&m->sym);
	return ret;
}

/* @path: NULL: the last recording, or the live map; @old_path: with diff, what it is compared to */
static int run(const struct command *cmd, enum form form, const char *path, const char *old_path)
{
	struct input new = {}, old = {};
	int ret;

	check_config(cmd, form);
	if ((form == FORM_PPROF || form == FORM_PERFETTO) && !cfg.output && isatty(STDOUT_FILENO))
		usage(form == FORM_PPROF ? "--format pprof is binary: -o FILE" :
		      "--format perfetto is binary: -o FILE", NULL);
	/* The others do not tell how often there is what weighs nothing. */
	if (!cfg.of_map && !cfg.min_ref && form >= FORM_FOLDED && form != FORM_PPROF)
		cfg.min_ref = 1;
	cfg.direct = form == FORM_REPORT;
	cfg.for_pprof = form == FORM_PPROF;
	if (cfg.of_map && path && cfg.instance)
		usage("--instance is one of the kernel or of a recording, not of", path);
	ret = find_input(&new, path) || (old_path && find_input(&old, old_path)) ||
	      load_and_show(form, &new, old_path ? &old : NULL);
	input_free(&old);
	input_free(&new);
	return ret;
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
	cfg.of_map = true;
	return run(cmd, cfg.json ? FORM_JSON : FORM_TEXT, one_argument(argc, argv), NULL);
}

static int run_stacks(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, cfg.json ? FORM_JSON : FORM_TEXT, one_argument(argc, argv), NULL);
}

static int run_report(const struct command *cmd, int argc, char **argv)
{
	cfg.flat = cfg.histogram;
	return run(cmd, !cfg.flat ? FORM_REPORT : cfg.json ? FORM_JSON : FORM_TEXT,
		   one_argument(argc, argv), NULL);
}

static int run_export(const struct command *cmd, int argc, char **argv)
{
	if (!cfg.format)
		usage("name a --format: folded, pprof, perf or perfetto", NULL);
	return run(cmd, cfg.format, one_argument(argc, argv), NULL);
}

static void check_stdin(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[0], "-") && !strcmp(argv[1], "-"))
		usage("only one of both can be stdin", NULL);
}

/* As perf diff: of the last recording and the one before, if none is named. */
static int run_diff(const struct command *cmd, int argc, char **argv)
{
	if (argc > 2)
		usage("diff compares two", argv[2]);
	if (!argc && cfg.of_map)
		usage("diff --map needs an OLD map", NULL);
	check_stdin(argc, argv);
	return run(cmd, cfg.format ? cfg.format : FORM_DIFF, argc > 1 ? argv[1] : NULL,
		   argc ? argv[0] : LAST_RECORDING ".old");
}

static int run_annotate(const struct command *cmd, int argc, char **argv)
{
	if (!argc)
		usage("name a TEXT, or - for stdin", NULL);
	cfg.of_map = true;
	cfg.trace = argv[0];
	check_stdin(argc, argv);
	return run(cmd, FORM_ANNOTATE, one_argument(argc - 1, argv + 1), NULL);
}

#define INPUT		{ "Input", instance_choices }
#define SYMBOLS		{ "Symbols", symbol_choices }
#define WEIGHT		{ "Weight of the samples", weight_choices }
#define SAMPLES		{ "Selection of samples", sample_choices }
#define STACKS		{ "Selection of stacks", top_choices }
#define OUTPUT		{ "Output", output_choices }
#define OTHER		{ "Other", common_choices }
#define OLD		{ "", old_choices }

const struct command map_command = {
	.name = "map", .run = run_map, .args = "[OPTIONS] [FILE | DIR | -]",
	.summary = "the stacks of a map",
	.text =
"Print the stacks of a stack map: of a copy of stack_map_bin (FILE), of stdin (-), of a directory\n"
"that \"record\" or \"save\" made (DIR), or of the running kernel.\n",
	.groups = {
		INPUT, SYMBOLS, { "", line_choices }, STACKS, { "", min_choices },
		{ "", grep_choices }, OUTPUT, { "", json_choices }, OTHER, OLD,
	},
	.examples = "Example, the three most frequent stacks of the running kernel:\n"
		    "  stackmap_dump map --top 3\n",
};

#define OF_A_RECORDING \
	"of a recording:\n" \
	"of a directory that \"record\" or \"save\" made (DIR), by default ./stackmap.data, or\n" \
	"of a trace.dat (FILE).\n"

const struct command stacks_command = {
	.name = "stacks", .run = run_stacks, .args = "[OPTIONS] [FILE | DIR]",
	.summary = "the stacks of a recording, those that weigh most first",
	.text = "Print the stacks with what they weigh, " OF_A_RECORDING,
	.groups = {
		INPUT, SYMBOLS, WEIGHT, SAMPLES, STACKS, { "", min_choices }, { "", grep_choices },
		{ "", function_choices }, OUTPUT, { "", json_choices }, { "", by_choices },
		OTHER, OLD,
	},
	.examples = "Example, where tasks waited longest, and who woke them:\n"
		    "  stackmap_dump stacks --weight off-cpu --wakers --top 5\n",
};

const struct command report_command = {
	.name = "report", .run = run_report, .args = "[OPTIONS] [FILE | DIR | -]",
	.summary = "the functions of a recording, by self and total",
	.text = "Print the functions by what they weigh themselves and with what they call, "
		OF_A_RECORDING,
	.groups = {
		INPUT, { "", map_choices }, SYMBOLS, WEIGHT, SAMPLES, STACKS, { "", grep_choices },
		{ "", function_choices }, OUTPUT, { "", json_choices }, { "", by_choices },
		OTHER, OLD,
	},
	.examples = "Example, where tasks waited:\n"
		    "  stackmap_dump report --weight off-cpu stackmap.data\n",
};

const struct command export_command = {
	.name = "export", .run = run_export, .args = "--format FORMAT [OPTIONS] [FILE | DIR | -]",
	.summary = "a recording for flame graphs, pprof, speedscope, Perfetto",
	.text = "Print a profile for other programs, " OF_A_RECORDING,
	.groups = {
		{ "Output", format_choices }, { "", output_choices }, INPUT, { "", map_choices },
		SYMBOLS, WEIGHT, SAMPLES, STACKS, { "", min_choices }, { "", grep_choices },
		{ "", function_choices }, OTHER, OLD,
	},
	.examples = "Example, a flame graph of where tasks waited:\n"
		    "  stackmap_dump export --format folded --weight off-cpu > folded\n",
};

const struct command diff_command = {
	.name = "diff", .run = run_diff, .args = "[OPTIONS] [OLD [NEW]]",
	.summary = "what changed from one recording to another",
	.text =
"Print the stacks that weigh more or less in NEW (./stackmap.data) than in OLD\n"
"(./stackmap.data.old). With --map, of maps; then NEW is the map of the running kernel.\n",
	.groups = {
		INPUT, { "", map_choices }, SYMBOLS, { "", line_choices }, WEIGHT, SAMPLES, STACKS,
		{ "", min_choices }, { "", grep_choices }, { "", function_choices }, OUTPUT,
		{ "", diff_format_choices }, OTHER, OLD,
	},
	.examples = "Example, what a change has cost:\n"
		    "  stackmap_dump diff --weight off-cpu stackmap.data.old stackmap.data\n",
};

const struct command annotate_command = {
	.name = "annotate", .run = run_annotate, .args = "[OPTIONS] TEXT [FILE | DIR]",
	.summary = "a text of trace or trace-cmd report, with frames below ids",
	.text =
"Print TEXT (or stdin, -), what trace, trace_pipe or trace-cmd report have printed, with the\n"
"frames below each line that has the id of a stack: by a map (FILE), that of a directory (DIR),\n"
"or of the running kernel.\n",
	.groups = { INPUT, SYMBOLS, { "", line_choices }, OUTPUT, OTHER, OLD },
	.examples = "Example:\n"
		    "  trace-cmd report | stackmap_dump annotate - DIR\n",
};
