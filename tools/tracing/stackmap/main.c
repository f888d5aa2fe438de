// SPDX-License-Identifier: GPL-2.0
/*
 * stackmap_dump - show the stacks of an ftrace stack map, on this machine or another one
 *
 * The binary export (stack_map_bin) has ids, counts and addresses. This finds the names of the
 * addresses in kallsyms or in a vmlinux, and prints the stacks for people or for other tools.
 * The format is described in Documentation/trace/ftrace-stackmap.rst.
 */
#include <getopt.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "frame.h"
#include "map.h"
#include "record.h"
#include "symbols.h"
#include "trace.h"
#include "user.h"
#include "util.h"
#include "view.h"

const char program[] = "stackmap_dump";

enum mode {
	MODE_TEXT, MODE_FOLDED, MODE_JSON, MODE_SPEEDSCOPE, MODE_ANNOTATE, MODE_DIFF, MODE_SUMMARY,
	MODE_PERF_SCRIPT, MODE_PPROF,
};

static bool is_flame_graph(enum mode mode)
{
	return mode == MODE_FOLDED || mode == MODE_SPEEDSCOPE;
}

static bool is_profile(enum mode mode)
{
	return is_flame_graph(mode) || mode == MODE_PERF_SCRIPT || mode == MODE_PPROF;
}

static const char help_text[] =
"Usage: stackmap_dump [OPTIONS] [FILE | DIR | -]\n"
"       stackmap_dump [-i NAME] save DIR\n"
"       stackmap_dump record [-o DIR] [-e EVENT]... [--] [COMMAND [ARGS]]\n"
"\n"
"Print the stacks of an ftrace stack map. The map is a copy of stack_map_bin (FILE), a\n"
"directory that \"save\" or \"record\" made (DIR), stdin (-), or that of the running kernel.\n"
"\"record --help\" tells how to record a command.\n"
"\n"
"Input:\n"
"  -i, --instance NAME    read the map of this trace instance\n"
"  -p, --partial          print the good stacks of a damaged map\n"
"Symbols:\n"
"  -k, --kallsyms FILE    a copy of the target's /proc/kallsyms or last_boot_info (repeatable)\n"
"  -v, --vmlinux FILE     the target's vmlinux, for addresses that are not in kallsyms\n"
"  -l, --lines            print source lines and inlined callers, from the vmlinux\n"
"  -b, --text-base ADDR   address of _text on the target, if the map does not have it\n"
"  -f, --force            accept symbols of another kernel or another boot\n"
"      --symfs DIR        look for programs and libraries below DIR\n"
"Output (default: the text of stack_map):\n"
"  -F, --folded           root;...;leaf count, for flame graphs\n"
"  -j, --json             an array with one object for each stack\n"
"  -S, --speedscope       a profile for speedscope\n"
"  -M, --map-only         of a directory of \"save\", use the map and not the trace\n"
"      --pprof            a profile for pprof, Pyroscope, Parca (binary, for a file or a pipe)\n"
"      --perf-script      the samples of a trace as the text of perf script\n"
"  -a, --annotate TRACE   print a trace with the frames below each stack id (- is stdin);\n"
"                         with -F or -S, print the stacks of the trace in that form.\n"
"                         A trace with stack_def events needs no map.\n"
"  -d, --diff OLD         print what changed since OLD (a file or a directory)\n"
"  -s, --summary          print counts, depths, and the share of the most frequent stacks\n"
"Selection:\n"
"  -o, --sort KEY         sort by ref (the default, most frequent first), depth or id\n"
"  -t, --top N            print the first N stacks only\n"
"  -m, --min-ref N        print stacks that were seen at least N times\n"
"  -g, --grep REGEX       print stacks with a frame that matches the extended regex\n"
"Other:\n"
"  -q, --quiet            print no notes on stderr\n"
"  -V, --version          print the version\n"
"  -h, --help             print this text\n"
"\n"
"Examples:\n"
"  stackmap_dump --top 3                          the most frequent stacks of this kernel\n"
"  stackmap_dump record -e kmem_cache_alloc -- ls the stacks of a command, in stackmap.data\n"
"  stackmap_dump record -u -- make                the same, and the callers in user space\n"
"  stackmap_dump save /tmp/map                    copy all that another machine needs\n"
"  stackmap_dump --grep 'mutex|rwsem' /tmp/map    stacks that wait for a lock\n"
"  stackmap_dump --annotate /tmp/map/trace /tmp/map\n"
"  trace-cmd report | stackmap_dump --annotate - map.bin\n"
"  stackmap_dump --folded /tmp/map | flamegraph.pl > map.svg\n"
"  stackmap_dump --vmlinux vmlinux --lines map.bin\n"
"\n"
"Exit status: 0 on success, 1 on bad input or failure, 2 on wrong usage.\n";

/* Options without a letter. */
enum { OPT_PERF_SCRIPT = 0x101, OPT_PPROF, OPT_SYMFS };

#define VERSION	"1.0"

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

static void set_option(int opt, struct config *cfg, enum mode *mode)
{
	switch (opt) {
	case 'i':
		cfg->instance = instance_name(optarg);
		break;
	case 'p':
		cfg->partial = true;
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
		cfg->trace = optarg;
		break;
	case OPT_PERF_SCRIPT:
		set_mode(mode, MODE_PERF_SCRIPT);
		break;
	case OPT_PPROF:
		set_mode(mode, MODE_PPROF);
		break;
	case 'M':
		cfg->map_only = true;
		break;
	case 'd':
		set_mode(mode, MODE_DIFF);
		cfg->old = optarg;
		break;
	case 's':
		set_mode(mode, MODE_SUMMARY);
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
		cfg->min_ref = parse_number(optarg, UINT32_MAX, 10);
		break;
	case 'g':
		set_grep(cfg, optarg);
		break;
	case 'q':
		quiet = true;
		break;
	case 'h':
		print_and_exit(help_text);
	case 'V':
		print_and_exit("stackmap_dump " VERSION "\n");
	default:
		/* getopt_long() has printed the error. */
		exit(EXIT_USAGE);
	}
}

#define BIT(n)	(1U << (n))

/* Options, and the forms of output on which they have no effect. */
static const struct {
	int		val;
	unsigned int	modes;
} ignored[] = {
	{ 'M', ~(BIT(MODE_FOLDED) | BIT(MODE_SPEEDSCOPE) | BIT(MODE_PPROF)) },
	{ 'l', BIT(MODE_FOLDED) | BIT(MODE_SPEEDSCOPE) | BIT(MODE_SUMMARY) |
	       BIT(MODE_PERF_SCRIPT) | BIT(MODE_PPROF) },
	{ 'o', BIT(MODE_ANNOTATE) | BIT(MODE_DIFF) | BIT(MODE_SUMMARY) | BIT(MODE_PERF_SCRIPT) },
	{ 't', BIT(MODE_ANNOTATE) | BIT(MODE_SUMMARY) | BIT(MODE_PERF_SCRIPT) },
	{ 'm', BIT(MODE_ANNOTATE) | BIT(MODE_SUMMARY) | BIT(MODE_PERF_SCRIPT) },
	{ 'g', BIT(MODE_ANNOTATE) | BIT(MODE_SUMMARY) },
};

static bool is_ignored(int val, enum mode mode)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ignored); i++) {
		if (ignored[i].val == val && ignored[i].modes & BIT(mode))
			return true;
	}
	return false;
}

#define MAX_OPTION	511

static _Noreturn void refuse(const struct option *o, const char *why)
{
	complain("--%s: %s (see --help)", o->name, why);
	exit(EXIT_USAGE);
}

/* Refuses options that would be ignored. @given: how many times each one was given. */
static void check_options(const struct option *options, const unsigned int *given, enum mode mode,
			  bool saves)
{
	const struct option *o;

	for (o = options; o->name; o++) {
		if (!given[o->val])
			continue;
		if (saves && !strchr("iq", o->val))
			refuse(o, "save does not use it");
		if (is_ignored(o->val, mode))
			refuse(o, "this form of output does not use it");
		if (strchr("lb", o->val) && !given['v'])
			refuse(o, "needs --vmlinux");
		if (strchr("iavd", o->val) && given[o->val] > 1)
			refuse(o, "given twice");
	}
}

static enum mode parse_options(int argc, char **argv, struct config *cfg)
{
	static const struct option options[] = {
		{ "instance",	required_argument, NULL, 'i' },
		{ "partial",	no_argument,	   NULL, 'p' },
		{ "kallsyms",	required_argument, NULL, 'k' },
		{ "vmlinux",	required_argument, NULL, 'v' },
		{ "lines",	no_argument,	   NULL, 'l' },
		{ "text-base",	required_argument, NULL, 'b' },
		{ "symfs",	required_argument, NULL, OPT_SYMFS },
		{ "force",	no_argument,	   NULL, 'f' },
		{ "folded",	no_argument,	   NULL, 'F' },
		{ "json",	no_argument,	   NULL, 'j' },
		{ "speedscope",	no_argument,	   NULL, 'S' },
		{ "map-only",	no_argument,	   NULL, 'M' },
		{ "perf-script", no_argument,	   NULL, OPT_PERF_SCRIPT },
		{ "pprof",	no_argument,	   NULL, OPT_PPROF },
		{ "annotate",	required_argument, NULL, 'a' },
		{ "diff",	required_argument, NULL, 'd' },
		{ "summary",	no_argument,	   NULL, 's' },
		{ "sort",	required_argument, NULL, 'o' },
		{ "top",	required_argument, NULL, 't' },
		{ "min-ref",	required_argument, NULL, 'm' },
		{ "grep",	required_argument, NULL, 'g' },
		{ "quiet",	no_argument,	   NULL, 'q' },
		{ "version",	no_argument,	   NULL, 'V' },
		{ "help",	no_argument,	   NULL, 'h' },
		{}
	};
	static const char letters[] = "i:pk:v:lb:fFjSMa:d:so:t:m:g:qVh";
	unsigned int given[MAX_OPTION + 1] = {};
	enum mode mode = MODE_TEXT;
	int opt;

	while ((opt = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		set_option(opt, cfg, &mode);
		given[opt]++;
	}
	if (cfg->trace && !is_profile(mode))
		set_mode(&mode, MODE_ANNOTATE);
	if (cfg->trace && cfg->map_only)
		usage("--map-only does not go with --annotate", NULL);
	if (mode == MODE_PPROF && isatty(STDOUT_FILENO))
		usage("--pprof is binary, please redirect it to a file", NULL);
	check_options(options, given, mode, optind < argc && !strcmp(argv[optind], "save"));
	return mode;
}

static bool is_stdin(const char *path)
{
	return path && !strcmp(path, "-");
}

static int show(struct map *m, struct map *old, enum mode mode, const struct config *cfg)
{
	struct paths paths = {};
	int ret = 0;

	if (m->split && !cfg->trace && mode != MODE_SUMMARY)
		note("interrupts split %llu stacks, the parts are separate (see --annotate)",
		     m->split);
	switch (mode) {
	case MODE_ANNOTATE:
		return annotate(m, cfg) ? 1 : 0;
	case MODE_PERF_SCRIPT:
		return print_perf_script(m, cfg) ? 1 : 0;
	case MODE_DIFF:
		print_diff(m, old, cfg);
		return 0;
	case MODE_SUMMARY:
		return print_summary(m);
	default:
		break;
	}

	if (cfg->trace)
		ret = count_stacks(m, mode == MODE_PPROF, cfg) ? 1 : 0;
	if (is_flame_graph(mode))
		merge_stacks(m, &paths, cfg);
	select_stacks(m, cfg);
	if (mode == MODE_FOLDED)
		print_folded(m, &paths);
	else if (mode == MODE_JSON)
		print_json(m, cfg);
	else if (mode == MODE_PPROF)
		print_pprof(m);
	else if (mode == MODE_SPEEDSCOPE)
		print_speedscope(m, &paths, cfg);
	else
		print_text(m, cfg);
	paths_free(&paths);
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

/*
 * Returns 1 if the map is damaged or missing. With --partial, a damaged map is usable.
 * @path: NULL if the trace defines its stacks.
 */
static int load(struct map *m, const char *path, const struct map *sibling,
		const struct config *cfg, bool *usable)
{
	int ret = path ? load_map(m, path) : 0;

	if (!path) {
		m->no_file = true;
		m->name = copy_string(cfg->trace);
	}
	*usable = !ret || (cfg->partial && ret == -EINVAL);
	if (*usable && load_symbols(m, sibling, cfg)) {
		*usable = false;
		ret = -EINVAL;
	}
	if (*usable && !cfg->trace)
		find_owners(m);
	return ret ? 1 : 0;
}

static int dump(const char *path, enum mode mode, const struct config *cfg)
{
	struct map m = {}, old = {};
	bool usable, old_usable = true;
	int ret;

	ret = load(&m, path, NULL, cfg, &usable);
	if (usable && cfg->old)
		ret |= load(&old, cfg->old, &m, cfg, &old_usable);
	if (usable && old_usable) {
		if (mode != MODE_SUMMARY)
			note("symbols: %s", m.source);
		setvbuf(stdout, NULL, _IOFBF, 1 << 20);
		ret |= show(&m, &old, mode, cfg);
		note_missing_objects(&m.users);
	}
	map_free(&old);
	map_free(&m);
	return ret;
}

/* A saved trace has whole stacks and their numbers, the map beside it has the parts. */
static void use_saved_trace(struct config *cfg, const char *dir)
{
	char *path = format("%s/trace", dir);
	struct statfs fs;

	if (statfs(path, &fs) || fs.f_type == TRACEFS_MAGIC) {
		free(path);
		return;
	}
	note("the stacks are those of %s (--map-only: of the map)", path);
	cfg->trace = path;
	cfg->saved_trace = path;
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
	if (argc && !strcmp(argv[0], "record"))
		usage("record comes before its options", NULL);
	if (argc > 1 || (argc && cfg->instance))
		usage("one input at a time", argv[argc - 1]);
	if (is_stdin(argv[0]) && (is_stdin(cfg->trace) || is_stdin(cfg->old)))
		usage("stdin cannot be two inputs", NULL);
	if (argc && is_profile(mode) && !cfg->trace && !cfg->map_only)
		use_saved_trace(cfg, argv[0]);
	if (mode == MODE_PERF_SCRIPT && !cfg->trace)
		usage("--perf-script needs --annotate TRACE, or a directory with a trace", NULL);
	if (cfg->trace) {
		cfg->trace_file = open_trace(cfg->trace);
		if (!cfg->trace_file)
			return 1;
	}
	if (!argc && (!cfg->trace || cfg->instance || !has_definitions(cfg->trace_file)))
		live = find_live_map(cfg->instance);
	ret = dump(live ? live : argv[0], mode, cfg);
	free(live);
	if (cfg->trace)
		ret |= close_trace(cfg);
	return ret;
}

int main(int argc, char **argv)
{
	struct config cfg = {};
	enum mode mode;
	int ret;

	if (argc > 1 && !strcmp(argv[1], "record"))
		return record(argc, argv);
	mode = parse_options(argc, argv, &cfg);
	ret = run(argc - optind, argv + optind, mode, &cfg);
	if (cfg.has_grep)
		regfree(&cfg.grep);
	free(cfg.kallsyms);
	free(cfg.saved_trace);
	return close_stdout() || ret;
}
