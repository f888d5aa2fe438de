/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of stackmap_dump share.
 *
 * A map is read whole, into an array of stacks and an array of addresses. An address is looked up
 * in up to two tables of symbols, first kallsyms, then vmlinux. The text of each address is kept
 * (frame.c). So memory is proportional to the size of the input.
 */
#ifndef STACKMAP_H
#define STACKMAP_H

#include <regex.h>

#include "ids.h"

struct profile;
struct record;
struct sample;

enum form {
	FORM_TEXT, FORM_JSON, FORM_FOLDED, FORM_PPROF, FORM_PERF, FORM_PERFETTO,
	FORM_REPORT, FORM_ANNOTATE, FORM_DIFF, FORM_DIFF_FUNCTIONS, FORM_DIFF_FOLDED,
};

#define WEIGHTS "--weight knows events, FIELD, off-cpu, latency=, outstanding=, leaks"

enum sleep { SLEEP_ANY, SLEEP_PREEMPTED, SLEEP_UNINTERRUPTIBLE };
enum by { BY_NOTHING, BY_CPU, BY_EVENT, BY_TASK, BY_PROCESS, BY_FIELD };

#define MAX_KEYS	4	/* fields by which two events belong together */

struct config {
	const char	*kallsyms;
	const char	*vmlinux;
	const char	*symfs;
	const char	*instance;
	const char	*trace;		/* that is annotated */
	const char	*output;	/* a file, or NULL */
	enum form	format;		/* of export */
	bool		json;
	bool		of_map;		/* a map is read, not a recording */
	bool		lines;
	bool		force;
	u64		top;
	u64		min_ref;
	bool		has_grep;
	regex_t		grep;
	const char	*function;	/* whose callers or callees are wanted, or NULL */
	bool		callers;
	bool		direct;		/* only what calls it, or what it calls, itself */
	/* Of a recording: what counts, and how much. */
	const char	*events;	/* with commas between them */
	const char	*pids;		/* of processes */
	const char	*tids;		/* of threads */
	const char	*comm;		/* a pattern of the shell */
	const char	*cpus;
	const char	*where;		/* a filter */
	u64		from;		/* nanoseconds */
	u64		end;		/* not included; 0: none */
	const char	*weight;	/* a field */
	bool		off_cpu;
	enum sleep	sleep;
	bool		wakers;
	const char	*allocs;	/* events */
	const char	*frees;
	const char	*keys;		/* their fields: pid=next_pid,dev */
	bool		latency;	/* the time from the ones to the others */
	bool		leaks;		/* not all of these are in each kernel */
	enum by		by;
	const char	*by_field;
	bool		histogram;	/* of single weights */
	bool		flat;		/* of groups, without their stacks */
	bool		for_pprof;	/* by task */
};

/* source.c */
int load_symbols(struct map *m, const struct map *sibling, const struct config *cfg);
void map_free(struct map *m);
/* symtab.c, elf.c */
int check_build_id(const struct map *m, const struct build_id *id, const char *path,
		   const struct config *cfg);
int load_first_symbols(struct map *m);
int vmlinux_load(struct map *m, const struct config *cfg);
/* select.c */
u64 sum_of(const struct map *m);
void merge_stacks(struct map *m, struct pool *names, const struct config *cfg);
double share(u64 part, u64 all);
void sort_stacks(struct map *m);
bool stack_matches(struct map *m, const struct stack *s, const struct config *cfg);
void select_stacks(struct map *m, const struct config *cfg, size_t top);
void drop_tracers(struct map *m);
/* spread.c */
void spread_add(struct map *m, u32 owner, u64 weight);
void spread_join(struct map *m, u32 to, u32 from);
u64 spread_percentile(struct map *m, const struct stack *s, u32 percent);
void print_histogram(struct map *m, const struct stack *s);
void print_json_histogram(struct map *m, const struct stack *s);
/* config.c */
size_t events_length(const char *where);
char quote_behind(char quote, char c);
/* annotate.c */
int annotate(struct map *m, const struct config *cfg);
/* print.c, pprof.c, report.c; @names: those of merged stacks */
typedef void print_fn(struct map *m, struct pool *names, const struct config *cfg);
print_fn print_text, print_folded, print_json, print_pprof, print_functions;
void print_json_string(const char *s);
void print_stack(struct map *m, const struct stack *s, const struct config *cfg);
void print_merged(struct map *m, const struct stack *s, struct pool *names,
		  const struct config *cfg);
void print_sum(const struct map *m);
char *folded_name(char *name);
void print_path(const struct map *m, const struct stack *s, const struct pool *names);
void note_summary(struct map *m);
/* diff.c */
void print_diff(struct map *m, struct map *old, struct pool *names, const struct config *cfg);
/* report.c */
void print_function_diff(const struct map *m, const struct map *old, const struct pool *names,
			 const struct config *cfg);

/* profile.c */
typedef void sample_fn(struct profile *p, const struct sample *sample, const struct stack *s);
typedef void see_fn(struct record *r);
int make_profile(struct map *m, const char *path, sample_fn *print, see_fn *see,
		 const struct config *cfg);
void profile_free(struct map *m);
/* perf.c */
sample_fn print_perf_sample;
/* perfetto.c */
int print_perfetto(struct map *m, const char *path, const struct config *cfg);

#endif
