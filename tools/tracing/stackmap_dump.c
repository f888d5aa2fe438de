// SPDX-License-Identifier: GPL-2.0
/*
 * stackmap_dump - show the stacks of an ftrace stack map, and profiles of recordings with stacks
 *
 * The binary export (stack_map_bin) has ids, counts and addresses. This finds the names of the
 * addresses in kallsyms or in a vmlinux, and prints the stacks for people or for other tools. The
 * format is described in Documentation/trace/ftrace-stackmap.rst.
 *
 * It is built of what is in stackmap/:
 *   map.c, user.c	read a map, and what processes have mapped
 *   symtab.c, elf.c, source.c	names of addresses
 *   frame.c		texts of addresses
 *   functions.c		selects stacks, and merges those with the same functions
 *   print.c, report.c, pprof.c	output
 *   annotate.c		a filter for text
 *   profile.h		tells how a recording (trace.dat) becomes stacks with weights
 *   record.h		names the files of what works on the running kernel
 */
#include <sys/stat.h>
#include <unistd.h>

#include "stackmap/record.h"

const char * const program = "stackmap_dump";

enum mode {
	MODE_TEXT, MODE_FOLDED, MODE_JSON, MODE_SPEEDSCOPE, MODE_ANNOTATE, MODE_DIFF, MODE_SUMMARY,
	MODE_PERF_SCRIPT, MODE_PPROF, MODE_REPORT,
};

static const char help_text[] =
"Usage: stackmap_dump [OPTIONS] [FILE | DIR | -]\n"
"       stackmap_dump report | record | save | top ...\n"
"\n"
"Print the stacks of an ftrace stack map: of a copy of stack_map_bin (FILE), of stdin (-), of a\n"
"directory that \"record\" or \"save\" made (DIR), or of the running kernel. Each command has a\n"
"--help: report (profiles of recordings), record, save (what is in the buffer), top (live).\n"
"\n"
"Input:\n"
"  -i, --instance NAME    use this trace instance, of the kernel or in the recording\n"
"      --partial          print the good stacks of a damaged map\n"
"  -M, --map-only         of a directory, use the map and not the recording\n"
"Symbols:\n"
"  -k, --kallsyms FILE    a copy of the target's /proc/kallsyms\n"
"  -v, --vmlinux FILE     the target's vmlinux, for addresses that are not in kallsyms\n"
"  -l, --lines            print source lines and inlined callers, from the vmlinux\n"
"      --force            accept symbols of another kernel or another boot\n"
"      --symfs DIR        look for programs and libraries below DIR\n"
"Output (default: the stacks as text, those that weigh most first):\n"
"  -o, --output FILE      into FILE, not to stdout\n"
"  -j, --json             an array with one object for each stack\n"
"      --annotate TEXT    print trace, trace_pipe or trace-cmd report with frames below ids\n"
"      --diff OLD         print what changed since OLD (a file or a directory)\n"
"  -s, --summary          print counts, depths, and the share of the most frequent stacks\n"
"  -F, --folded           root;...;leaf count, for flame graphs\n"
"  -S, --speedscope       a profile for speedscope\n"
"      --pprof            a profile for pprof, Pyroscope, Parca (binary)\n"
"Selection of stacks:\n"
"      --sort KEY         sort by ref (the default, most frequent first), depth or id\n"
"  -t, --top N            print the first N stacks (or functions) only\n"
"  -m, --min-ref N        print stacks that weigh at least N\n"
"  -g, --grep REGEX       print stacks with a frame that matches the extended regex\n"
"      --callers FUNCTION, --callees FUNCTION  print what calls it, or what it calls\n"
"      --tracer, --no-tracer  keep (in recordings) or drop (in maps) the tracer's own frames\n"
"Other:\n"
"  -q, --quiet            print no notes on stderr\n"
"  -V, --version          print the version\n"
"  -h, --help             print this text\n"
"\n"
"Exit status: 0 on success, 1 on bad input or failure, 2 on wrong usage.\n"
"\n"
"Example, the three most frequent stacks of the running kernel: stackmap_dump --top 3\n";

static const char report_help[] =
"Usage: stackmap_dump report [OPTIONS] [FILE | DIR]\n"
"\n"
"Print the functions of a recording, a trace.dat or a directory with one (./stackmap.data), by\n"
"their own weight and with what they call. These options also go with other forms in place of\n"
"\"report\": none of them (the stacks as text), --folded, --json, --diff, --speedscope, --pprof,\n"
"--perf-script (the samples, as perf script has them).\n"
"\n"
"Weight of the samples (default: each event counts 1):\n"
"  -w, --weight FIELD     this field of the events (bytes_alloc)\n"
"      --off-cpu          microseconds that tasks sleep; --off-cpu=uninterruptible, in state D;\n"
"                         --off-cpu=preempted, wait for a CPU\n"
"      --wakers           above the stack of a task that sleeps, who woke it, and its stack\n"
"      --latency BEGIN:END:FIELDS  microseconds from one event to another with equal fields\n"
"                         (block_rq_issue:block_rq_complete:dev,sector)\n"
"      --outstanding ALLOC:FREE:FIELD  what was not freed (kmalloc:kfree:ptr)\n"
"      --leaks            the bytes of kmalloc and kmem_cache_alloc that were not freed\n"
"Selection of samples:\n"
"  -e, --event EVENTS     these events (sched_switch,syscalls:sys_enter_close) or systems (kmem)\n"
"      --pid LIST, --tid LIST, --cpu LIST  of these processes or threads, on these CPUs (1,4-7)\n"
"      --comm PATTERN     of tasks with such a name (a pattern of the shell)\n"
"      --from SECONDS, --to SECONDS  between these times of the recording's clock\n"
"Output: all options of stackmap_dump --help, and\n"
"      --by WHAT          cpu, event, task or process: a report for each, or so told in the stacks\n"
"\n"
"Examples: where tasks waited, in all and as a flame graph\n"
"  stackmap_dump report --off-cpu stackmap.data\n"
"  stackmap_dump --folded --off-cpu stackmap.data > folded\n";

#define BIT(n)		(1U << (n))
#define SAMPLES		BIT(31)		/* only a recording has what it selects */
#define ALL		(SAMPLES - 1)
#define FLAMES		(BIT(MODE_FOLDED) | BIT(MODE_SPEEDSCOPE))
#define PROFILES	(FLAMES | BIT(MODE_PPROF) | BIT(MODE_PERF_SCRIPT) | BIT(MODE_REPORT))
#define LISTS		(BIT(MODE_TEXT) | BIT(MODE_JSON))
#define COUNTED		(LISTS | BIT(MODE_PPROF))
#define TEXTS		(LISTS | BIT(MODE_ANNOTATE) | BIT(MODE_DIFF))
#define BOTH		(PROFILES | LISTS | BIT(MODE_DIFF))	/* of maps and recordings */
#define RECORDED	(BOTH | SAMPLES)
#define MAPS		(LISTS | FLAMES | BIT(MODE_PPROF) | BIT(MODE_REPORT))

static struct config cfg;
static enum mode mode;
static const char *output_file;

static void set_form(const struct choice *c, char *arg)
{
	if (mode)
		usage("one form of output at a time", NULL);
	mode = c->form;
	if (arg)
		set_text(c, arg);
}

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

static void set_sort(const struct choice *c, char *arg)
{
	if (!strcmp(arg, "depth"))
		cfg.sort = SORT_DEPTH;
	else if (!strcmp(arg, "id"))
		cfg.sort = SORT_ID;
	else if (strcmp(arg, "ref"))
		usage("--sort knows ref, depth and id, not", arg);
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

static void set_off_cpu(const struct choice *c, char *arg)
{
	if (arg && strcmp(arg, "preempted") && strcmp(arg, "uninterruptible"))
		usage("--off-cpu knows preempted and uninterruptible, not", arg);
	cfg.off_cpu = true;
	cfg.sleep = !arg ? SLEEP_ANY : *arg == 'p' ? SLEEP_PREEMPTED : SLEEP_UNINTERRUPTIBLE;
}

static void set_outstanding(const struct choice *c, char *arg)
{
	if (cfg.allocs)
		usage("--outstanding, --leaks or --latency, once", NULL);
	cfg.allocs = strsep(&arg, ":");
	cfg.frees = strsep(&arg, ":");
	cfg.keys = strsep(&arg, ":");
	cfg.latency = !strcmp(c->name, "latency");
	if (!cfg.keys || arg || !*cfg.allocs || !*cfg.frees || !*cfg.keys)
		usage(format("--%s is %s", c->name, cfg.latency ? "BEGIN:END:FIELDS" :
			     "ALLOC:FREE:FIELD"), NULL);
}

#define LEAKS \
	"kmalloc,kmalloc_node,kmem_cache_alloc,kmem_cache_alloc_node:kfree,kmem_cache_free:ptr"

static void set_leaks(const struct choice *c, char *arg)
{
	set_outstanding(c, copy_string(LEAKS));
	cfg.leaks = true;
	if (!cfg.weight)
		cfg.weight = "bytes_alloc";
}

static struct choice choices[] = {
	{ "instance", 'i', ARG, set_instance, &cfg.instance, ALL },
	{ "partial", 0, NO_ARG, set_flag, &cfg.partial, ALL },
	{ "map-only", 'M', NO_ARG, set_flag, &cfg.map_only, MAPS | BIT(MODE_DIFF) },
	{ "kallsyms", 'k', ARG, set_text, &cfg.kallsyms, ALL },
	{ "vmlinux", 'v', ARG, set_text, &cfg.vmlinux, ALL },
	{ "lines", 'l', NO_ARG, set_flag, &cfg.lines, TEXTS },
	{ "force", 0, NO_ARG, set_flag, &cfg.force, ALL },
	{ "symfs", 0, ARG, set_text, &cfg.symfs, ALL & ~BIT(MODE_SUMMARY) },
	{ "output", 'o', ARG, set_text, &output_file, ALL },
	{ "folded", 'F', NO_ARG, set_form, NULL, ALL, MODE_FOLDED },
	{ "json", 'j', NO_ARG, set_form, NULL, ALL, MODE_JSON },
	{ "speedscope", 'S', NO_ARG, set_form, NULL, ALL, MODE_SPEEDSCOPE },
	{ "pprof", 0, NO_ARG, set_form, NULL, ALL, MODE_PPROF },
	{ "perf-script", 0, NO_ARG, set_form, NULL, ALL | SAMPLES, MODE_PERF_SCRIPT },
	{ "annotate", 0, ARG, set_form, &cfg.trace, ALL, MODE_ANNOTATE },
	{ "diff", 0, ARG, set_form, &cfg.old, ALL, MODE_DIFF },
	{ "summary", 's', NO_ARG, set_form, NULL, ALL, MODE_SUMMARY },
	{ "weight", 'w', ARG, set_text, &cfg.weight, RECORDED },
	{ "off-cpu", 0, MAY_ARG, set_off_cpu, NULL, RECORDED },
	{ "outstanding", 0, ARG, set_outstanding, NULL, RECORDED },
	{ "leaks", 0, NO_ARG, set_leaks, NULL, RECORDED },
	{ "latency", 0, ARG, set_outstanding, NULL, RECORDED },
	{ "wakers", 0, NO_ARG, set_flag, &cfg.wakers, RECORDED },
	{ "event", 'e', ARG, set_text, &cfg.events, RECORDED },
	{ "pid", 0, ARG, set_numbers, &cfg.pids, RECORDED },
	{ "tid", 0, ARG, set_numbers, &cfg.tids, RECORDED },
	{ "cpu", 0, ARG, set_numbers, &cfg.cpus, RECORDED },
	{ "comm", 0, ARG, set_text, &cfg.comm, RECORDED },
	{ "from", 0, ARG, set_seconds, &cfg.from, RECORDED },
	{ "to", 0, ARG, set_seconds, &cfg.to, RECORDED },
	{ "tracer", 0, NO_ARG, set_flag, &cfg.keep_tracer, RECORDED },
	{ "no-tracer", 0, NO_ARG, set_flag, &cfg.drop_tracer, MAPS },
	{ "sort", 0, ARG, set_sort, NULL, MAPS & ~BIT(MODE_REPORT) },
	{ "top", 't', ARG, set_number, &cfg.top, MAPS | BIT(MODE_DIFF) },
	{ "min-ref", 'm', ARG, set_number, &cfg.min_ref, MAPS | BIT(MODE_DIFF) },
	{ "grep", 'g', ARG, set_grep, NULL, MAPS | BIT(MODE_DIFF) | BIT(MODE_PERF_SCRIPT) },
	{ "callers", 0, ARG, set_function, NULL, MAPS | BIT(MODE_DIFF) },
	{ "callees", 0, ARG, set_function, NULL, MAPS | BIT(MODE_DIFF) },
	{ "by", 0, ARG, set_by, NULL, LISTS | BIT(MODE_REPORT) | SAMPLES },
	{ "quiet", 'q', NO_ARG, set_flag, &quiet, ALL },
	{ "version", 'V', NO_ARG, print_help, (char *)"stackmap_dump 2.0\n", ALL },
	{ "help", 'h', NO_ARG, print_help, (char *)help_text, ALL },
};

#define NR_CHOICES	ARRAY_SIZE(choices)

static void refuse(bool bad, const struct choice *c, const char *why)
{
	if (bad)
		usage(format("--%s: %s", c->name, why), NULL);
}

/* Names the forms of output that use it. */
static void check_form(const struct choice *c)
{
	static const char * const names[] = {
		"the text", "--folded", "--json", "--speedscope", "--annotate", "--diff",
		"--summary", "--perf-script", "--pprof", "report",
	};
	size_t i;

	if (c->modes & BIT(mode))
		return;
	fprintf(stderr, "%s: --%s goes with", program, c->name);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		fprintf(stderr, "%s%s", c->modes & BIT(i) ? " " : "",
			c->modes & BIT(i) ? names[i] : "");
	fputs(" (see --help)\n", stderr);
	exit(2);
}

/* Refuses options that would be ignored. Only a recording has samples. */
static void check_options(const char *path, const char *recording)
{
	bool merged = recording || BIT(mode) & PROFILES;
	const struct choice *c;

	for (c = choices; c < choices + NR_CHOICES; c++) {
		if (!c->given)
			continue;
		check_form(c);
		refuse((c->val == 'l' || c->to == &cfg.drop_tracer) && recording, c,
		       "is for maps (--map-only)");
		refuse(c->to == &cfg.partial && recording && !cfg.old &&
		       !is_beside(path, "stack_map_bin"), c, "there is no map");
		refuse(c->to == &cfg.symfs && !HAS_LIBS, c, WITHOUT_LIBS);
		refuse(c->val == 'l' && !cfg.vmlinux, c, "needs --vmlinux FILE");
		refuse(c->set == set_function && !merged, c,
		       "of a map, goes with report, --folded, --speedscope and --pprof");
		refuse(c->given > 1 && c->arg, c, "given twice");
		refuse(!recording && c->modes & SAMPLES, c,
		       "needs a recording (stackmap_dump record -- COMMAND), or a trace.dat");
	}
	if (cfg.off_cpu && cfg.allocs)
		usage("one weight: --off-cpu, --outstanding, --leaks or --latency", NULL);
	if (cfg.wakers && (!cfg.off_cpu || cfg.sleep == SLEEP_PREEMPTED))
		usage("--wakers tells who ends a sleep: --off-cpu --wakers", NULL);
	if (cfg.weight && strchr(cfg.weight, ','))
		usage("--weight is one field", cfg.weight);
	if (cfg.weight && (cfg.off_cpu || cfg.latency) && mode != MODE_PPROF)
		usage("two weights only go into --pprof", NULL);
	if (mode == MODE_PPROF && !output_file && isatty(STDOUT_FILENO))
		usage("--pprof is binary: -o FILE", NULL);
}

/* Stacks that become names of functions lose their addresses. */
static int print_stacks(struct map *m, struct map *old, bool merge)
{
	static print_fn * const print[] = {
		[MODE_TEXT] = print_text, [MODE_FOLDED] = print_folded, [MODE_JSON] = print_json,
		[MODE_SPEEDSCOPE] = print_speedscope, [MODE_PPROF] = print_pprof,
		[MODE_REPORT] = print_functions,
	};
	struct pool names = {};
	int ret = 0;

	if (merge)
		merge_stacks(m, &names, &cfg);
	if (merge && mode == MODE_DIFF)
		merge_stacks(old, &names, &cfg);
	m->sum = sum_of(m);
	if (cfg.function && !m->nr_stacks && !old->nr_stacks)
		ret = fail("%s: no stack has a function %s", m->name, cfg.function);
	if (mode == MODE_DIFF) {
		print_diff(m, old, &names, &cfg);
	} else if (!ret) {
		select_stacks(m, &cfg, mode == MODE_REPORT ? 0 : cfg.top);
		print[mode](m, &names, &cfg);
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

static int show(struct map *m, struct map *old, const char *recording, const char *old_recording)
{
	bool streams = mode == MODE_ANNOTATE || mode == MODE_PERF_SCRIPT;
	int ret = 0, old_ret = 0;

	if (streams && open_output())
		return -EINVAL;
	if (m->split && !recording && mode != MODE_ANNOTATE && mode != MODE_SUMMARY)
		note("interrupts split %llu stacks, the parts are separate", m->split);
	if (mode == MODE_ANNOTATE)
		return annotate(m, &cfg);
	if (HAS_LIBS && recording)
		ret = make_profile(m, recording, mode == MODE_PERF_SCRIPT, &cfg);
	else if (cfg.drop_tracer)
		drop_tracers(m);
	if (HAS_LIBS && old_recording)
		old_ret = make_profile(old, old_recording, false, &cfg);
	if ((ret && !m->nr_stacks) || (old_ret && !old->nr_stacks))
		return -EINVAL;
	if (!streams && open_output())
		return -EINVAL;
	note_deep(m);
	ret |= old_ret;
	if (mode == MODE_SUMMARY)
		print_summary(m);
	else if (mode != MODE_PERF_SCRIPT)
		ret |= print_stacks(m, old, recording || BIT(mode) & PROFILES);
	return ret;
}

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

/* In a directory, or the file itself; NULL if there is none. */
static char *recording_of(const char *path)
{
	if (is_recording(path))
		return copy_string(path);
	return is_beside(path, "trace.dat") ? format("%s/trace.dat", path) : NULL;
}

/*
 * Returns 0, 1 if the map is damaged but can be used (--partial), or a negative number. Beside a
 * recording, there may be no map, and a recording that is no directory's has none.
 */
static int load(struct map *m, const char *path, const char *recording, const struct map *sibling)
{
	int ret = 0;

	if (recording && !HAS_LIBS)
		return fail("%s: " WITHOUT_LIBS ", which read recordings", recording);
	if (recording && !is_recording(recording))
		return fail("%s: not a trace.dat", recording);
	if (!recording || is_beside(path, "stack_map_bin"))
		ret = load_map(m, path);
	else if (strcmp(path, recording))
		m->dir = copy_string(path);
	if (recording && !m->name)
		m->name = copy_string(recording);
	if (ret && (ret != -EINVAL || !cfg.partial))
		return ret;
	return load_symbols(m, sibling, &cfg) ? -EINVAL : !!ret;
}

static int dump(const char *path, const char *recording)
{
	char *old_recording __free(pointer) = NULL;
	struct map m = {}, old = {};
	int ret, old_ret = 0;

	if (recording && cfg.old) {
		old_recording = recording_of(cfg.old);
		if (!old_recording)
			usage("--diff compares two recordings, or two maps (--map-only)", cfg.old);
	}
	ret = load(&m, path, recording, NULL);
	if (ret >= 0 && cfg.old)
		old_ret = load(&old, cfg.old, old_recording, recording ? NULL : &m);
	if (old_recording && ret >= 0 && old_ret >= 0 && !m.kallsyms.nr != !old.kallsyms.nr)
		old_ret = fail("only one of %s and %s has a kallsyms: name the trace.dat of both",
			       path, cfg.old);
	if (ret >= 0 && m.live && !m.nr_stacks)
		note_empty(m.dir ? m.dir : TRACEFS);
	if (ret >= 0 && old_ret >= 0) {
		if (mode != MODE_SUMMARY)
			note("symbols: %s", recording && !m.kallsyms.nr ? recording : m.source);
		setvbuf(stdout, NULL, _IOFBF, 1 << 20);
		ret |= show(&m, &old, recording, old_recording);
		note_objects(&m);
	}
	if (HAS_LIBS) {
		profile_free(&old);
		profile_free(&m);
	}
	map_free(&old);
	map_free(&m);
	return ret || old_ret;
}

/* Not only a form of output that a map has as well. */
static bool wants_profile(void)
{
	bool wants = BIT(mode) & PROFILES;
	const struct choice *c;

	for (c = choices; c < choices + NR_CHOICES; c++)
		wants |= c->given && c->modes & SAMPLES;
	return wants;
}

/* Of a directory, the map has what its instance has counted, the recording has whole stacks. */
static char *find_recording(const char *path)
{
	char *recording = cfg.map_only ? NULL : recording_of(path);
	bool is_dir = recording && strcmp(path, recording);

	/* Without the libraries, there is the map. */
	if (recording && BIT(mode) & BOTH && (HAS_LIBS || !is_dir || wants_profile())) {
		if (is_dir)
			note("the stacks are those of %s (--map-only: of the map)", recording);
		return recording;
	}
	if (recording && !is_dir)
		usage("this form of output is for maps, not for recordings", path);
	free(recording);
	return NULL;
}

/* A profile is of the last recording, if there is one here. */
static int run(int argc, char **argv)
{
	char *recording __free(pointer) = NULL, *live __free(pointer) = NULL;
	const char *path = argc ? argv[0] : NULL;

	if (!argc && wants_profile() && !cfg.instance && !cfg.map_only &&
	    is_beside("stackmap.data", "trace.dat"))
		path = "stackmap.data";
	if (argc && !strchr(path, '/') && strcmp(path, "-") && access(path, F_OK))
		usage("no such command or file (options come behind the command)", path);
	if (argc > 1)
		usage("one input at a time", argv[argc - 1]);
	if (path)
		recording = find_recording(path);
	else
		live = find_instance(cfg.instance);
	if (live && BIT(mode) & PROFILES && !cfg.instance && !cfg.map_only)
		note("there is no stackmap.data here; the profile is of the running kernel's map");
	if (path && cfg.instance && !recording)
		usage("--instance is one of the kernel or of a recording, not of", path);
	check_options(path, recording);
	/* The others do not tell how often there is what weighs nothing. */
	if (recording && !cfg.min_ref && !(BIT(mode) & COUNTED))
		cfg.min_ref = 1;
	cfg.direct = mode == MODE_REPORT;
	cfg.for_pprof = mode == MODE_PPROF;
	return live && check_instance(live) ? 1 : dump(path ? path : live, recording);
}

/* A full disk or a closed pipe is a failure. */
static int finish_output(int ret)
{
	if (!fflush(stdout) && !ferror(stdout))
		return ret;
	complain("%s: %s", output_file ? output_file : "stdout", strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	char *help = (char *)"--help";

	/* While it is ignored, programs have no status. */
	signal(SIGCHLD, SIG_DFL);
	if (!strcmp(command, "help")) {
		argv[1] = argc > 2 ? argv[2] : help;
		argv[2] = argc > 2 ? help : NULL;
		command = argv[1];
	}
	if (!strcmp(command, "record"))
		return record(argc, argv);
	if (!strcmp(command, "save"))
		return save(argc, argv);
	if (!strcmp(command, "top"))
		return finish_output(top(argc, argv));
	if (!strcmp(command, "report")) {
		mode = MODE_REPORT;
		choices[NR_CHOICES - 1].to = (char *)report_help;
		optind = 2;
	}
	parse_choices(argc, argv, choices, NR_CHOICES, false);
	return finish_output(run(argc - optind, argv + optind));
}
