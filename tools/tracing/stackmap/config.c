// SPDX-License-Identifier: GPL-2.0
/* The options of the commands that read, in groups that several of them have. */
#include "config.h"

struct config cfg;

static bool has_form(const char *text, const char *form)
{
	regex_t regex;
	bool has;

	regcomp(&regex, form, REG_EXTENDED | REG_NOSUB);
	has = !regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return has;
}

static void set_numbers(const struct choice *c, char *arg)
{
	unsigned long first;
	char *p;

	if (!has_form(arg, "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"))
		usage("not a list of numbers", arg);
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

/* Of "EVENTS:" before a filter. A text in it may have a colon, too. */
size_t events_length(const char *where)
{
	size_t len = strcspn(where, ":\"'=<>!~&|()");

	return where[len] == ':' ? len + 1 : 0;
}

/* @quote: in which a character is, 0: in none. Returns the same of the next one. */
char quote_behind(char quote, char c)
{
	if (quote)
		return c == quote ? 0 : quote;
	return c == '"' || c == '\'' ? c : 0;
}

#define OPERATOR "[=~<>&|+*/%^]"

/* Without the names of events before it, and with "0" for each text in quotes. */
static char *bare_filter(const char *where)
{
	const char *p = where + events_length(where);
	char *bare = copy_string(p), *end = bare;
	char quote = 0, before;
	bool is_escaped = false;

	for (; *p; p++) {
		before = quote;
		quote = quote_behind(quote, *p);
		if (!before)
			*end++ = quote ? '0' : *p;
		/* libtraceevent does not end a text here. */
		is_escaped |= before && !quote && p[-1] == '\\';
	}
	*end = 0;
	if (quote || is_escaped)
		usage("not a filter, a quote is not closed", where);
	return bare;
}

/* libtraceevent crashes without an operand or a quote. It ignores what it does not expect. */
static void set_where(const struct choice *c, char *arg)
{
	char *bare __free(pointer) = bare_filter(arg);

	if (has_form(bare, OPERATOR "[[:space:]]*($|[)])|" OPERATOR "[[:space:]]+" OPERATOR "|-$"))
		usage("not a filter, an operand is missing", arg);
	if (has_form(bare, "[[:alnum:]_)][[:space:]]+[[:alnum:]_(]"))
		usage("not a filter, an operator is missing", arg);
	if (has_form(bare, "(^|[^[:alnum:]_])([1-9][0-9]*[[:alpha:]_]|0[0-9]*[A-WYZa-wyz_])"))
		usage("not a filter, a number has no unit", arg);
	set_text(c, arg);
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
	static const char * const names[BY_FIELD] = { "", "cpu", "event", "task", "process" };

	if (!*arg || strpbrk(arg, ",:= "))
		usage("--by knows cpu, event, task, process and FIELD, not", arg);
	for (cfg.by = 1; cfg.by < BY_FIELD && strcmp(arg, names[cfg.by]); cfg.by++)
		;
	cfg.by_field = cfg.by == BY_FIELD ? arg : NULL;
}

/* The top level has an empty name. */
static void set_source(const struct choice *c, char *arg)
{
	if (*arg)
		set_instance(c, arg);
	else
		set_text(c, arg);
}

static bool is_diff(enum form form)
{
	return form >= FORM_DIFF;
}

static void set_format(const struct choice *c, char *arg)
{
	static const struct {
		const char	*name;
		enum form	form;
	} formats[] = {
		{ "folded", FORM_FOLDED }, { "pprof", FORM_PPROF }, { "perf", FORM_PERF },
		{ "perfetto", FORM_PERFETTO }, { "stacks", FORM_DIFF },
		{ "functions", FORM_DIFF_FUNCTIONS }, { "folded", FORM_DIFF_FOLDED },
	};
	bool of_diff = c == diff_format_choices;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		if (!strcmp(arg, formats[i].name) && of_diff == is_diff(formats[i].form))
			cfg.format = formats[i].form;
	}
	if (!cfg.format)
		usage(of_diff ? "--format of diff knows stacks, functions and folded, not" :
		      "--format knows folded, pprof, perf and perfetto, not", arg);
}

/* Either one may be missing. */
static void set_time(const struct choice *c, char *arg)
{
	const char *from = strsep(&arg, ",");

	if (!arg)
		usage("--time is FROM,TO", from);
	cfg.from = *from ? parse_seconds(from) : 0;
	cfg.end = *arg ? parse_seconds(arg) + 1 : 0;
	if (cfg.end && cfg.end <= cfg.from)
		usage("--time ends before it begins, at", arg);
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

static void set_pair(const char *name, char *arg)
{
	unsigned int nr = 0;
	const char *p;

	cfg.allocs = take_list(&arg);
	cfg.frees = take_list(&arg);
	cfg.latency = !strcmp(name, "latency");
	for (p = arg; p && *p; p++)
		nr += *p == ',';
	if (nr >= MAX_KEYS)
		usage("--weight takes four KEYs at most, not", arg);
	if (!arg || !*cfg.allocs || !*cfg.frees || !*arg)
		usage(cfg.latency ? "--weight latency=BEGIN,END,KEY" :
		      "--weight outstanding=ALLOC,FREE,KEY", NULL);
	cfg.keys = arg;
}

#define LEAKS \
	"kmalloc+kmalloc_node+kmem_cache_alloc+kmem_cache_alloc_node,kfree+kmem_cache_free,ptr"

static void set_field(const char *name)
{
	if (strpbrk(name, ",:=") || !*name)
		usage(WEIGHTS ", not", name);
	if (cfg.weight)
		usage("--weight is one field", name);
	cfg.weight = name;
}

/* With a field, it may be what is counted of another weight. */
static void set_weight(const struct choice *c, char *arg)
{
	char *name __free(pointer) = NULL;
	bool is_leaks = !strcmp(arg, "leaks"), is_off_cpu, is_pair;
	size_t len = strcspn(arg, ":=");

	name = format("%.*s", (int)len, arg);
	is_pair = !strcmp(name, "latency") || !strcmp(name, "outstanding");
	is_off_cpu = !strcmp(name, "off-cpu");
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

struct choice instance_choices[] = {
	{ "instance", 'i', "NAME", set_source, &cfg.instance,
	  "this trace instance, of the kernel or in the recording" },
	{}
};

struct choice map_choices[] = {
	{ "map", 0, NULL, set_flag, &cfg.of_map,
	  "read the map, not the recording: of FILE, DIR, stdin (-), or\n"
	  "of the running kernel" },
	{}
};

struct choice symbol_choices[] = {
	{ "kallsyms", 'k', "FILE", set_text, &cfg.kallsyms,
	  "a copy of the target's /proc/kallsyms" },
	{ "vmlinux", 'v', "FILE", set_text, &cfg.vmlinux,
	  "the target's vmlinux, for addresses that are not in kallsyms" },
	{ "force", 0, NULL, set_flag, &cfg.force,
	  "accept symbols of another kernel or another boot" },
	{ "symfs", 0, "DIR", set_text, &cfg.symfs, "look for programs and libraries below DIR" },
	{}
};

struct choice line_choices[] = {
	{ "lines", 'l', NULL, set_flag, &cfg.lines,
	  "source lines and inlined callers, from the vmlinux, of maps" },
	{}
};

struct choice weight_choices[] = {
	{ "weight", 'w', "WEIGHT", set_weight, NULL,
	  "events: each counts 1 (the default)\n"
	  "FIELD: this field of the events (bytes_alloc)\n"
	  "off-cpu: microseconds that tasks sleep\n"
	  "off-cpu:uninterruptible: in state D\n"
	  "off-cpu:preempted: that they wait for a CPU\n"
	  "latency=BEGIN,END,KEY[=KEY][,KEY...]: microseconds from one event\n"
	  "to another with equal fields (sched_waking,sched_switch,pid=next_pid),\n"
	  "or on one cpu\n"
	  "outstanding=ALLOC,FREE,KEY: what was not freed (kmalloc,kfree,ptr)\n"
	  "leaks: bytes of kmalloc and kmem_cache_alloc that were not freed", true },
	{ "wakers", 0, NULL, set_flag, &cfg.wakers,
	  "with off-cpu: above the stack of a task that sleeps, who woke it" },
	{}
};

struct choice sample_choices[] = {
	{ "event", 'e', "EVENTS", set_text, &cfg.events,
	  "these events (sched_switch,kmem:kfree) or systems (kmem)" },
	{ "pid", 0, "LIST", set_numbers, &cfg.pids, "of these processes (1,4-7)" },
	{ "tid", 0, "LIST", set_numbers, &cfg.tids, "of these threads" },
	{ "cpu", 0, "LIST", set_numbers, &cfg.cpus, "on these CPUs" },
	{ "comm", 0, "PATTERN", set_text, &cfg.comm,
	  "of tasks with such a name (a pattern of the shell)" },
	{ "where", 0, "FILTER", set_where, &cfg.where,
	  "only such events (bytes_alloc > 4096, kmalloc: ptr != 0)" },
	{ "time", 0, "FROM,TO", set_time, NULL,
	  "between these seconds of the recording's clock; one may be missing" },
	{}
};

struct choice top_choices[] = {
	{ "top", 't', "N", set_number, &cfg.top, "only the first N" },
	{}
};

struct choice min_choices[] = {
	{ "min-ref", 'm', "N", set_weight_number, &cfg.min_ref,
	  "only stacks that weigh at least N" },
	{}
};

struct choice grep_choices[] = {
	{ "grep", 'g', "REGEX", set_grep, NULL,
	  "only stacks with a frame that matches the extended regex" },
	{}
};

struct choice function_choices[] = {
	{ "callers", 0, "NAME", set_function, NULL, "only what calls the function NAME" },
	{ "callees", 0, "NAME", set_function, NULL, "only what it calls" },
	{}
};

struct choice output_choices[] = {
	{ "output", 'o', "FILE", set_text, &cfg.output, "into FILE, not to stdout" },
	{}
};

struct choice json_choices[] = {
	{ "json", 'j', NULL, set_flag, &cfg.json, "an array with one object for each" },
	{}
};

struct choice by_choices[] = {
	{ "by", 0, "WHAT", set_by, NULL,
	  "one for each cpu, event, task, process, or value of a FIELD of\n"
	  "the events (vec)" },
	{ "histogram", 0, NULL, set_flag, &cfg.histogram,
	  "how the single weights spread; of a report, for each --by" },
	{}
};

struct choice format_choices[] = {
	{ "format", 0, "FORMAT", set_format, NULL,
	  "folded   root;...;leaf count, for flame graphs\n"
	  "pprof    for pprof, speedscope, Pyroscope, Parca (binary)\n"
	  "perf     the samples, as perf script prints them\n"
	  "perfetto a timeline of the scheduler and the samples, for Perfetto (binary)" },
	{}
};

struct choice diff_format_choices[] = {
	{ "format", 0, "FORMAT", set_format, NULL,
	  "stacks      with frames, the default\n"
	  "functions   self and total\n"
	  "folded      root;...;leaf old new, for red and blue flame graphs" },
	{}
};

#define TRACERS	"gone, profiles are printed without the tracer's frames, a map with them"

/* Spellings of before there were commands, and the filter of another command. */
struct choice old_choices[] = {
	REFUSED("filter", 'f', "of record; events of a recording are selected by --where"),
	REFUSED("map-only", 'M', "now stackmap_dump map DIR, or --map of report, export and diff"),
	REFUSED("partial", 0, "gone, map prints the good stacks of a damaged map"),
	REFUSED("folded", 'F', "now stackmap_dump export --format folded"),
	REFUSED("speedscope", 'S', "now stackmap_dump export --format pprof, speedscope reads it"),
	REFUSED("pprof", 0, "now stackmap_dump export --format pprof"),
	REFUSED("perf-script", 0, "now stackmap_dump export --format perf"),
	REFUSED("annotate", 0, "now stackmap_dump annotate TEXT [MAP]"),
	REFUSED("diff", 0, "now stackmap_dump diff OLD NEW"),
	REFUSED("summary", 's', "now a note of stackmap_dump map"),
	REFUSED("sort", 0, "gone, those that weigh most are first"),
	REFUSED("off-cpu", 0, "now --weight off-cpu, off-cpu:preempted, off-cpu:uninterruptible"),
	REFUSED("latency", 0, "now --weight latency=BEGIN,END,KEY"),
	REFUSED("outstanding", 0, "now --weight outstanding=ALLOC,FREE,KEY"),
	REFUSED("leaks", 0, "now --weight leaks"),
	REFUSED("from", 0, "now --time FROM,"),
	REFUSED("to", 0, "now --time ,TO"),
	REFUSED("tracer", 0, TRACERS),
	REFUSED("no-tracer", 0, TRACERS),
	{}
};

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

	refuse(c->to == &cfg.symfs && !HAS_LIBS, c, WITHOUT_LIBS);
	refuse(c->to == &cfg.lines && !cfg.vmlinux, c, "needs --vmlinux FILE");
	refuse(c->to == &cfg.lines && !cfg.of_map, c, "is for maps (--map)");
	refuse((form == FORM_PERF || form == FORM_PERFETTO) && (selects || c->to == &cfg.of_map), c,
	       "does not go with --format perf and perfetto");
	refuse(cfg.of_map && (is_among(c, weight_choices) || is_among(c, sample_choices) ||
			      c->set == set_by), c, "needs a recording, a map has no events");
	refuse(cfg.of_map && is_diff(form) && c->set == set_function, c,
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
	if (cfg.histogram && !cfg.weight && !cfg.off_cpu && !cfg.latency)
		usage("--histogram is of a --weight, events count 1", NULL);
}

void check_config(const struct command *cmd, enum form form)
{
	const struct choice *c;
	const struct group *g;

	for (g = cmd->groups; g->choices; g++) {
		for (c = g->choices; c->name; c++) {
			if (c->given)
				check_choice(c, form);
		}
	}
	check_weights(form);
}
