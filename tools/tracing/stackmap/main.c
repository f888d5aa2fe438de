// SPDX-License-Identifier: GPL-2.0
/*
 * stackmap_dump - show the stacks of an ftrace stack map, and profiles of recordings with stacks
 *
 * The binary export (stack_map_bin) has ids, counts and addresses. This finds the names of the
 * addresses in kallsyms or in a vmlinux, and prints the stacks for people or for other tools. The
 * format is described in Documentation/trace/ftrace-stackmap.rst.
 *
 *   map.c, user.c	read a map, and what processes have mapped
 *   symtab.c, vmlinux.c, object.c, build_id.c, source.c	names of addresses
 *   frame.c, select.c, merge.c	texts of addresses, and stacks by their functions
 *   print.c, report.c, functions.c, perf.c, pprof.c	output
 *   annotate.c		a filter for text
 *   profile.h		tells how a recording (trace.dat) becomes stacks with weights
 *   record.h		names the files of what works on the running kernel
 */
#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checksum.h"
#include "frame.h"
#include "map.h"
#include "record.h"
#include "recording.h"
#include "symbols.h"
#include "user.h"
#include "util.h"
#include "view.h"

const char * const program = "stackmap_dump";

enum mode {
	MODE_TEXT, MODE_FOLDED, MODE_JSON, MODE_SPEEDSCOPE, MODE_ANNOTATE, MODE_DIFF, MODE_SUMMARY,
	MODE_PERF_SCRIPT, MODE_PPROF, MODE_REPORT,
};

static const char help_text[] =
"Usage: stackmap_dump [OPTIONS] [FILE | DIR | -]\n"
"       stackmap_dump report [OPTIONS] [FILE | DIR | -]\n"
"       stackmap_dump [-i NAME] save DIR\n"
"       stackmap_dump record [OPTIONS] [--] [COMMAND [ARGS]]\n"
"       stackmap_dump top [OPTIONS]\n"
"\n"
"Print the stacks of an ftrace stack map, or a profile of a recording with stacks. The map is a\n"
"copy of stack_map_bin (FILE), stdin (-), or that of the running kernel. A recording is a\n"
"trace.dat (FILE), or a directory that \"record\" or \"save\" made (DIR); of a directory, the forms\n"
"of output that are profiles (-F, -S, --pprof, --perf-script, report) take the recording, the\n"
"others the map. \"record --help\" tells how to record, \"top --help\" how to watch the live map.\n"
"\n"
"Input:\n"
"  -i, --instance NAME    use this trace instance, of the kernel or in the recording\n"
"  -p, --partial          print the good stacks of a damaged map\n"
"  -M, --map-only         of a directory, use the map and not the recording\n"
"Symbols:\n"
"  -k, --kallsyms FILE    a copy of the target's /proc/kallsyms or last_boot_info (repeatable)\n"
"  -v, --vmlinux FILE     the target's vmlinux, for addresses that are not in kallsyms\n"
"  -l, --lines            print source lines and inlined callers, from the vmlinux\n"
"  -b, --text-base ADDR   address of _text on the target, if the map does not have it\n"
"  -f, --force            accept symbols of another kernel or another boot\n"
"      --symfs DIR        look for programs and libraries below DIR\n"
"Output (default: the text of stack_map; of a trace.dat, the report):\n"
"      report             functions, by their own weight and with what they call\n"
"  -F, --folded           root;...;leaf count, for flame graphs\n"
"  -j, --json             an array with one object for each stack\n"
"  -S, --speedscope       a profile for speedscope\n"
"      --pprof            a profile for pprof, Pyroscope, Parca (binary, for a file or a pipe)\n"
"      --perf-script      the samples of a recording as the text of perf script\n"
"  -a, --annotate TEXT    print trace, trace_pipe or trace-cmd report with the frames below each\n"
"                         stack id (- is stdin)\n"
"  -d, --diff OLD         print what changed since OLD (a file or a directory)\n"
"  -s, --summary          print counts, depths, and the share of the most frequent stacks\n"
"Weight of a recording's samples (default: each event counts 1):\n"
"  -w, --weight FIELD     this field of the events (bytes_alloc)\n"
"      --off-cpu[=preempted]  microseconds from a sched_switch away from a task until it runs\n"
"                         again, if it sleeps (or if it was preempted)\n"
"      --outstanding ALLOC:FREE:FIELD  what was allocated and not freed: events (with commas),\n"
"                         and the field with the address, for example kmalloc:kfree:ptr\n"
"      --leaks            the bytes of kmalloc and kmem_cache_alloc that were not freed\n"
"Selection of a recording's samples:\n"
"  -e, --event EVENTS     these events (sched_switch,syscalls:sys_enter_close) or systems (kmem)\n"
"      --pid LIST, --cpu LIST  of these threads, on these CPUs (1,4-7)\n"
"      --comm PATTERN     of tasks with such a name (a pattern of the shell)\n"
"      --from SECONDS, --to SECONDS  between these times of the recording's clock\n"
"      --tracer           keep the tracer's own frames\n"
"Selection of stacks:\n"
"  -o, --sort KEY         sort by ref (the default, most frequent first), depth or id\n"
"  -t, --top N            print the first N stacks (or functions) only\n"
"  -m, --min-ref N        print stacks that weigh at least N\n"
"  -g, --grep REGEX       print stacks with a frame that matches the extended regex\n"
"      --by task          of report: for each task\n"
"      --no-tracer        drop the tracer's own frames; recordings need no option for that\n"
"Other:\n"
"  -q, --quiet            print no notes on stderr\n"
"  -V, --version          print the version\n"
"  -h, --help             print this text\n"
"\n"
"Examples:\n"
"  stackmap_dump --top 3                          the most frequent stacks of this kernel\n"
"  stackmap_dump record -u -- make                record a command, into stackmap.data\n"
"  stackmap_dump report --off-cpu stackmap.data   where its tasks wait\n"
"  stackmap_dump --folded stackmap.data | flamegraph.pl > one.svg\n"
"  stackmap_dump --pprof --weight bytes_alloc trace.dat > one.pb.gz\n"
"  stackmap_dump save /tmp/map                    copy all that another machine needs\n"
"  stackmap_dump --grep 'mutex|rwsem' /tmp/map    stacks that wait for a lock\n"
"  cat /sys/kernel/tracing/trace_pipe | stackmap_dump --annotate -\n"
"  stackmap_dump --vmlinux vmlinux --lines map.bin\n"
"\n"
"Exit status: 0 on success, 1 on bad input or failure, 2 on wrong usage.\n";

/* Options without a letter. */
enum {
	OPT_PERF_SCRIPT = 0x101, OPT_PPROF, OPT_SYMFS, OPT_OFF_CPU, OPT_OUTSTANDING, OPT_LEAKS,
	OPT_PID, OPT_CPU, OPT_COMM, OPT_FROM, OPT_TO, OPT_BY, OPT_TRACER, OPT_NO_TRACER, NR_OPTIONS,
};

#define VERSION	"2.0"

#define BIT(n)		(1U << (n))
#define ALL		(~0U)
#define FLAMES		(BIT(MODE_FOLDED) | BIT(MODE_SPEEDSCOPE))
#define PROFILES	(FLAMES | BIT(MODE_PPROF) | BIT(MODE_PERF_SCRIPT) | BIT(MODE_REPORT))
#define LISTS		(BIT(MODE_TEXT) | BIT(MODE_JSON))
#define MAPS		(LISTS | FLAMES | BIT(MODE_PPROF) | BIT(MODE_REPORT))

static const struct option options[] = {
	{ "instance",	required_argument, NULL, 'i' },
	{ "partial",	no_argument,	   NULL, 'p' },
	{ "map-only",	no_argument,	   NULL, 'M' },
	{ "kallsyms",	required_argument, NULL, 'k' },
	{ "vmlinux",	required_argument, NULL, 'v' },
	{ "lines",	no_argument,	   NULL, 'l' },
	{ "text-base",	required_argument, NULL, 'b' },
	{ "force",	no_argument,	   NULL, 'f' },
	{ "symfs",	required_argument, NULL, OPT_SYMFS },
	{ "folded",	no_argument,	   NULL, 'F' },
	{ "json",	no_argument,	   NULL, 'j' },
	{ "speedscope",	no_argument,	   NULL, 'S' },
	{ "pprof",	no_argument,	   NULL, OPT_PPROF },
	{ "perf-script", no_argument,	   NULL, OPT_PERF_SCRIPT },
	{ "annotate",	required_argument, NULL, 'a' },
	{ "diff",	required_argument, NULL, 'd' },
	{ "summary",	no_argument,	   NULL, 's' },
	{ "weight",	required_argument, NULL, 'w' },
	{ "off-cpu",	optional_argument, NULL, OPT_OFF_CPU },
	{ "outstanding", required_argument, NULL, OPT_OUTSTANDING },
	{ "leaks",	no_argument,	   NULL, OPT_LEAKS },
	{ "event",	required_argument, NULL, 'e' },
	{ "pid",	required_argument, NULL, OPT_PID },
	{ "cpu",	required_argument, NULL, OPT_CPU },
	{ "comm",	required_argument, NULL, OPT_COMM },
	{ "from",	required_argument, NULL, OPT_FROM },
	{ "to",		required_argument, NULL, OPT_TO },
	{ "tracer",	no_argument,	   NULL, OPT_TRACER },
	{ "no-tracer",	no_argument,	   NULL, OPT_NO_TRACER },
	{ "sort",	required_argument, NULL, 'o' },
	{ "top",	required_argument, NULL, 't' },
	{ "min-ref",	required_argument, NULL, 'm' },
	{ "grep",	required_argument, NULL, 'g' },
	{ "by",		required_argument, NULL, OPT_BY },
	{ "quiet",	no_argument,	   NULL, 'q' },
	{ "version",	no_argument,	   NULL, 'V' },
	{ "help",	no_argument,	   NULL, 'h' },
	{}
};

/* Options that not all forms of output use, and those that do. */
static const struct {
	int		val;
	unsigned int	modes;
} uses[] = {
	{ 'M', PROFILES & ~BIT(MODE_PERF_SCRIPT) },
	{ 'l', LISTS | BIT(MODE_ANNOTATE) | BIT(MODE_DIFF) },
	{ 'w', PROFILES }, { OPT_OFF_CPU, PROFILES }, { OPT_OUTSTANDING, PROFILES },
	{ OPT_LEAKS, PROFILES }, { 'e', PROFILES }, { OPT_PID, PROFILES }, { OPT_CPU, PROFILES },
	{ OPT_COMM, PROFILES }, { OPT_FROM, PROFILES }, { OPT_TO, PROFILES },
	{ OPT_TRACER, PROFILES }, { OPT_NO_TRACER, PROFILES | LISTS },
	{ 'o', MAPS & ~BIT(MODE_REPORT) },
	{ 't', MAPS | BIT(MODE_DIFF) },
	{ 'm', MAPS | BIT(MODE_DIFF) },
	{ 'g', MAPS | BIT(MODE_DIFF) | BIT(MODE_PERF_SCRIPT) },
	{ OPT_BY, BIT(MODE_REPORT) },
};

/* Only a recording has what these select. */
static const int of_recordings[] = {
	'w', OPT_OFF_CPU, OPT_OUTSTANDING, OPT_LEAKS, 'e', OPT_PID, OPT_CPU, OPT_COMM, OPT_FROM,
	OPT_TO, OPT_TRACER, OPT_BY,
};

/* Times that each option was given. */
static unsigned int given[NR_OPTIONS];

static enum sort_key parse_sort(const char *s)
{
	static const char * const names[] = {
		[SORT_REF] = "ref", [SORT_DEPTH] = "depth", [SORT_ID] = "id",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(s, names[i]))
			return i;
	}
	usage("--sort knows ref, depth and id, not", s);
}

static void add_kallsyms(struct config *cfg, const char *path)
{
	size_t size = (cfg->nr_kallsyms + 1) * sizeof(*cfg->kallsyms);

	cfg->kallsyms = check_mem(realloc(cfg->kallsyms, size));
	cfg->kallsyms[cfg->nr_kallsyms++] = path;
}

static void set_grep(struct config *cfg, const char *regex)
{
	char why[128];
	int ret;

	if (cfg->has_grep)
		usage("--grep twice", NULL);
	ret = regcomp(&cfg->grep, regex, REG_EXTENDED | REG_NOSUB);
	if (ret) {
		regerror(ret, &cfg->grep, why, sizeof(why));
		usage(why, regex);
	}
	cfg->has_grep = true;
}

static void set_mode(enum mode *mode, enum mode new)
{
	if (*mode != MODE_TEXT && *mode != new)
		usage("one form of output at a time", NULL);
	*mode = new;
}

/* Options that may be given several times. */
static void add_list(char **list, const char *more)
{
	char *old = *list;

	if (!*more || *more == ',')
		usage("an empty list", more);
	*list = format("%s%s%s", old ? old : "", old ? "," : "", more);
	free(old);
}

static void add_numbers(char **list, const char *more)
{
	if (more[strspn(more, "0123456789,-")] || *more == '-')
		usage("not a list of numbers", more);
	add_list(list, more);
}

/* In nanoseconds. */
static u64 parse_seconds(const char *s)
{
	char *end;
	double n = strtod(s, &end);

	if (end == s || *end || !(n >= 0 && n < 1e10))
		usage("not a number of seconds", s);
	return n * 1e9;
}

static void set_outstanding(struct config *cfg, char *how)
{
	cfg->allocs = strsep(&how, ":");
	cfg->frees = strsep(&how, ":");
	cfg->pointer = strsep(&how, ":");
	if (!cfg->pointer || how || !*cfg->allocs || !*cfg->frees || !*cfg->pointer)
		usage("--outstanding is ALLOC:FREE:FIELD, not", optarg);
}

static void set_leaks(struct config *cfg)
{
	cfg->allocs = "kmalloc,kmalloc_node,kmem_cache_alloc,kmem_cache_alloc_node";
	cfg->frees = "kfree,kmem_cache_free";
	cfg->pointer = "ptr";
	cfg->weight = "bytes_alloc";
}

/* Of recordings. */
static void set_sampling(int opt, struct config *cfg)
{
	switch (opt) {
	case 'w':
		cfg->weight = optarg;
		break;
	case OPT_OFF_CPU:
		cfg->off_cpu = true;
		if (optarg && strcmp(optarg, "preempted"))
			usage("--off-cpu knows preempted, not", optarg);
		cfg->preempted = optarg;
		break;
	case OPT_OUTSTANDING:
		set_outstanding(cfg, optarg);
		break;
	case OPT_LEAKS:
		set_leaks(cfg);
		break;
	case 'e':
		add_list(&cfg->events, optarg);
		break;
	case OPT_PID:
		add_numbers(&cfg->pids, optarg);
		break;
	case OPT_CPU:
		add_numbers(&cfg->cpus, optarg);
		break;
	case OPT_COMM:
		cfg->comm = optarg;
		break;
	case OPT_FROM:
		cfg->from = parse_seconds(optarg);
		break;
	case OPT_TO:
		cfg->to = parse_seconds(optarg);
		break;
	case OPT_TRACER:
		cfg->keep_tracer = true;
		break;
	default:
		/* getopt_long() has printed the error. */
		exit(EXIT_USAGE);
	}
}

static void set_form(int opt, struct config *cfg, enum mode *mode)
{
	switch (opt) {
	case 'F':
		set_mode(mode, MODE_FOLDED);
		break;
	case 'j':
		set_mode(mode, MODE_JSON);
		break;
	case 'S':
		set_mode(mode, MODE_SPEEDSCOPE);
		break;
	case 'a':
		set_mode(mode, MODE_ANNOTATE);
		cfg->trace = optarg;
		break;
	case OPT_PERF_SCRIPT:
		set_mode(mode, MODE_PERF_SCRIPT);
		break;
	case OPT_PPROF:
		set_mode(mode, MODE_PPROF);
		break;
	case 'd':
		set_mode(mode, MODE_DIFF);
		cfg->old = optarg;
		break;
	case 's':
		set_mode(mode, MODE_SUMMARY);
		break;
	default:
		set_sampling(opt, cfg);
	}
}

static void set_option(int opt, struct config *cfg, enum mode *mode)
{
	switch (opt) {
	case 'i':
		cfg->instance = instance_name(optarg);
		break;
	case 'p':
		cfg->partial = true;
		break;
	case 'M':
		cfg->map_only = true;
		break;
	case 'k':
		add_kallsyms(cfg, optarg);
		break;
	case 'v':
		cfg->vmlinux = optarg;
		break;
	case 'l':
		cfg->lines = true;
		break;
	case 'b':
		cfg->text_base = parse_number(optarg, UINT64_MAX, 16);
		break;
	case OPT_SYMFS:
		cfg->symfs = optarg;
		break;
	case 'f':
		cfg->force = true;
		break;
	case 'o':
		cfg->sort = parse_sort(optarg);
		break;
	case 't':
		cfg->top = parse_number(optarg, SIZE_MAX, 10);
		if (!cfg->top)
			usage("not a number of stacks", optarg);
		break;
	case 'm':
		cfg->min_ref = parse_number(optarg, UINT64_MAX, 10);
		break;
	case 'g':
		set_grep(cfg, optarg);
		break;
	case OPT_BY:
		if (strcmp(optarg, "task"))
			usage("--by knows task, not", optarg);
		cfg->by_task = true;
		break;
	case OPT_NO_TRACER:
		cfg->drop_tracer = true;
		break;
	case 'q':
		quiet = true;
		break;
	case 'h':
		print_and_exit(help_text);
	case 'V':
		print_and_exit("stackmap_dump " VERSION "\n");
	default:
		set_form(opt, cfg, mode);
	}
}

static _Noreturn void refuse(int val, const char *why)
{
	const struct option *o;

	for (o = options; o->name && o->val != val; o++)
		;
	complain("--%s: %s (see --help)", o->name, why);
	exit(EXIT_USAGE);
}

/* Refuses options that would be ignored. */
static void check_options(enum mode mode, bool saves)
{
	const struct option *o;
	size_t i;

	for (o = options; saves && o->name; o++) {
		if (given[o->val] && !strchr("iq", o->val))
			refuse(o->val, "save does not use it");
	}
	for (i = 0; i < ARRAY_SIZE(uses); i++) {
		if (given[uses[i].val] && !(uses[i].modes & BIT(mode)))
			refuse(uses[i].val, "this form of output does not use it");
	}
	for (o = options; o->name; o++) {
		if (given[o->val] && strchr("lb", o->val) && !given['v'])
			refuse(o->val, "needs --vmlinux");
		if (given[o->val] > 1 && strchr("iavdw", o->val))
			refuse(o->val, "given twice");
	}
	if (given[OPT_OFF_CPU] && (given[OPT_OUTSTANDING] || given[OPT_LEAKS]))
		usage("--off-cpu is no weight of what is outstanding", NULL);
	if (given[OPT_LEAKS] && (given[OPT_OUTSTANDING] || given['w']))
		usage("--leaks has its own --outstanding and --weight", NULL);
	if (given['w'] && given[OPT_OFF_CPU] && mode != MODE_PPROF)
		usage("two weights only go into --pprof", NULL);
}

static enum mode parse_options(int argc, char **argv, struct config *cfg, enum mode mode)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "i:pMk:v:lb:fFjSa:d:sw:e:o:t:m:g:qVh", options,
				  NULL)) != -1) {
		set_option(opt, cfg, &mode);
		given[opt < NR_OPTIONS ? opt : 0]++;
	}
	if (mode == MODE_PPROF && isatty(STDOUT_FILENO))
		usage("--pprof is binary, please redirect it to a file", NULL);
	check_options(mode, optind < argc && !strcmp(argv[optind], "save"));
	return mode;
}

static bool is_stdin(const char *path)
{
	return path && !strcmp(path, "-");
}

static void print_stacks(struct map *m, enum mode form, const struct config *cfg)
{
	struct paths paths = {};

	if (form == MODE_FOLDED || form == MODE_SPEEDSCOPE)
		merge_stacks(m, &paths, cfg);
	select_stacks(m, cfg, form == MODE_REPORT ? 0 : cfg->top);
	if (form == MODE_FOLDED)
		print_folded(m, &paths);
	else if (form == MODE_JSON)
		print_json(m, cfg);
	else if (form == MODE_PPROF)
		print_pprof(m);
	else if (form == MODE_SPEEDSCOPE)
		print_speedscope(m, &paths, cfg);
	else if (form == MODE_REPORT)
		print_functions(m, cfg);
	else
		print_text(m, cfg);
	paths_free(&paths);
}

static int show(struct map *m, struct map *old, const char *recording, enum mode mode,
		const struct config *cfg)
{
	int ret;

	if (m->split && !recording && mode != MODE_ANNOTATE && mode != MODE_SUMMARY)
		note("interrupts split %llu stacks, the parts are separate", m->split);
	switch (mode) {
	case MODE_ANNOTATE:
		return annotate(m, cfg);
	case MODE_DIFF:
		print_diff(m, old, cfg);
		return 0;
	case MODE_SUMMARY:
		return print_summary(m);
	default:
		break;
	}
	ret = recording ? make_profile(m, recording, mode == MODE_PERF_SCRIPT, cfg) : 0;
	if (mode != MODE_PERF_SCRIPT) {
		if (!recording && cfg->drop_tracer)
			drop_tracers(m);
		print_stacks(m, mode, cfg);
	}
	return ret;
}

/* A full disk or a closed pipe is a failure. */
static int close_stdout(void)
{
	bool bad = ferror(stdout);

	if (!fclose(stdout) && !bad)
		return 0;
	fprintf(stderr, "stackmap_dump: stdout: %s\n", strerror(errno));
	return 1;
}

/* In a directory that "record" or "save" made. */
static int check_files(const char *dir)
{
	struct stat st;

	return dir && !stat(dir, &st) && S_ISDIR(st.st_mode) ? check_directory(dir) : 0;
}

/*
 * Returns 1 if the map is damaged or missing. With --partial, a damaged map is usable.
 * @path: NULL if none is needed.
 */
static int load(struct map *m, const char *path, const struct map *sibling,
		const struct config *cfg, bool *usable)
{
	int damage = check_files(path), ret = path ? load_map(m, path) : 0;

	*usable = (!damage || cfg->partial) && (!ret || (cfg->partial && ret == -EINVAL));
	ret = ret ? ret : damage;
	if (*usable && load_symbols(m, sibling, cfg)) {
		*usable = false;
		ret = -EINVAL;
	}
	return ret ? 1 : 0;
}

/* The map beside a recording, and the kallsyms; both may be missing. */
static int load_beside(struct map *m, const char *dir, const struct config *cfg, bool *usable)
{
	char *path = dir ? format("%s/stack_map_bin", dir) : NULL;
	int ret;

	if (path && !access(path, F_OK)) {
		ret = load(m, dir, NULL, cfg, usable);
	} else {
		m->dir = dir ? copy_string(dir) : NULL;
		ret = check_files(dir) || load_symbols(m, NULL, cfg) ? 1 : 0;
		*usable = !ret;
	}
	free(path);
	return ret;
}

/* @recording: a trace.dat or NULL; its directory is @path, if it has one. */
static int dump(const char *path, const char *recording, enum mode mode, const struct config *cfg)
{
	struct map m = {}, old = {};
	bool usable, old_usable = true;
	int ret;

	if (recording)
		ret = load_beside(&m, path, cfg, &usable);
	else
		ret = load(&m, path, NULL, cfg, &usable);
	if (recording && !m.name)
		m.name = copy_string(recording);
	if (usable && cfg->old)
		ret |= load(&old, cfg->old, &m, cfg, &old_usable);
	if (usable && m.live && !m.nr_stacks)
		note_empty(cfg->instance);
	if (usable && old_usable) {
		if (mode != MODE_SUMMARY)
			note("symbols: %s", recording && !m.kallsyms.nr ? recording : m.source);
		setvbuf(stdout, NULL, _IOFBF, 1 << 20);
		ret |= show(&m, &old, recording, mode, cfg) ? 1 : 0;
		note_objects(&m.users);
	}
	profile_free(&m);
	map_free(&old);
	map_free(&m);
	return ret;
}

static bool is_recording(const char *path)
{
	static const char magic[] = "\x17\x08\x44tracing";
	char buf[sizeof(magic) - 1];
	struct stat st;
	bool is;
	int fd;

	if (!path || stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	is = fd >= 0 && read(fd, buf, sizeof(buf)) == sizeof(buf) &&
	     !memcmp(buf, magic, sizeof(buf));
	if (fd >= 0)
		close(fd);
	return is;
}

/* Only a recording has samples. */
static void check_samples(enum mode mode)
{
	static const char why[] = "needs a recording: a trace.dat, or a directory with one";
	size_t i;

	if (mode == MODE_PERF_SCRIPT)
		refuse(OPT_PERF_SCRIPT, why);
	for (i = 0; i < ARRAY_SIZE(of_recordings); i++) {
		if (given[of_recordings[i]])
			refuse(of_recordings[i], why);
	}
}

/* Of a directory, the map has what its instance has counted, the recording has whole stacks. */
static int dump_input(const char *path, enum mode mode, const struct config *cfg)
{
	char *recording = path ? format("%s/trace.dat", path) : NULL;
	bool profile = BIT(mode) & PROFILES && !cfg->map_only;
	int ret;

	if (is_recording(path) && !cfg->map_only) {
		if (!(BIT(mode) & (PROFILES | BIT(MODE_TEXT))))
			usage("this form of output is for maps, not for recordings", path);
		ret = dump(NULL, path, mode == MODE_TEXT ? MODE_REPORT : mode, cfg);
	} else if (profile && recording && !access(recording, F_OK)) {
		note("the stacks are those of %s (--map-only: of the map)", recording);
		ret = dump(path, recording, mode, cfg);
	} else {
		check_samples(mode);
		ret = dump(path, NULL, mode, cfg);
	}
	free(recording);
	return ret;
}

static bool looks_like_command(const char *word)
{
	struct stat st;

	return !strchr(word, '/') && strcmp(word, "-") && stat(word, &st);
}

static int run(int argc, char **argv, enum mode mode, struct config *cfg)
{
	char *live = NULL;
	int ret;

	if (argc && !strcmp(argv[0], "save")) {
		if (argc != 2)
			usage("save needs one directory", NULL);
		return save(argv[1], cfg->instance) ? 1 : 0;
	}
	if (argc && (!strcmp(argv[0], "record") || !strcmp(argv[0], "report")))
		usage(!strcmp(argv[0], "record") ? "record comes before its options" :
		      "report comes before its options", NULL);
	if (argc && looks_like_command(argv[0]))
		usage("no such command or file", argv[0]);
	if (argc > 1 || (argc && cfg->instance && !(BIT(mode) & PROFILES)))
		usage("one input at a time", argv[argc - 1]);
	if (is_stdin(argv[0]) && (is_stdin(cfg->trace) || is_stdin(cfg->old)))
		usage("stdin cannot be two inputs", NULL);
	/* Text may define its stacks. */
	if (!argc && (!cfg->trace || cfg->instance || has_live_map()))
		live = find_live_map(cfg->instance);
	if (live && check_instance(cfg->instance))
		ret = 1;
	else
		ret = dump_input(argc ? argv[0] : live, mode, cfg);
	free(live);
	return ret;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	struct config cfg = {};
	enum mode mode = MODE_TEXT;
	int ret;

	if (!strcmp(command, "record"))
		return record(argc, argv);
	if (!strcmp(command, "top"))
		return top(argc, argv);
	if (!strcmp(command, "help"))
		print_and_exit(help_text);
	if (!strcmp(command, "report")) {
		mode = MODE_REPORT;
		optind = 2;
	}
	mode = parse_options(argc, argv, &cfg, mode);
	cfg.by_task |= mode == MODE_PPROF;
	cfg.all_values = mode == MODE_PPROF;
	ret = run(argc - optind, argv + optind, mode, &cfg);
	if (cfg.has_grep)
		regfree(&cfg.grep);
	free(cfg.kallsyms);
	free(cfg.events);
	free(cfg.pids);
	free(cfg.cpus);
	return close_stdout() || ret;
}
