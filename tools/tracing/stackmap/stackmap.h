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

#include "util.h"

/* Without the libraries, elf.c and what reads recordings are not there, and not called. */
#ifdef HAVE_LIBS
#define HAS_LIBS	true
#else
#define HAS_LIBS	false
#endif
#define WITHOUT_LIBS	"built without elfutils and libtracecmd"

/* Limits of a map. A larger count means that the map is damaged. */
#define MAX_DEPTH	1024		/* the most frames that ftrace records */
#define USER_MAX_DEPTH	127U		/* and of user space */
#define MAX_BUILD_ID	64
#define MAX_RELEASE	256
#define MAX_PARTS	3		/* of a stack that was split */
#define COMM_LEN	15		/* the longest name of a task */

#define TRAMPOLINE_MARKER	0x7fffffff	/* the kernel's FTRACE_TRAMPOLINE_MARKER */

/* What a sample weighs. The largest single weight is no sum. */
enum { VAL_EVENTS, VAL_FIELD, VAL_DELAY, VAL_LARGEST, NR_VALUES };

static inline void add_values(u64 *to, const u64 *from)
{
	int i;

	for (i = 0; i < VAL_LARGEST; i++)
		to[i] += from[i];
	if (to[VAL_LARGEST] < from[VAL_LARGEST])
		to[VAL_LARGEST] = from[VAL_LARGEST];
}

struct value_type {
	const char	*type;		/* NULL: not there */
	const char	*unit;
};

struct stack {
	u32		id;
	u32		nr;
	u32		nr_user;	/* so many of them, the outermost ones, are of user space */
	bool		woken;		/* the first ones are of who woke the task, turned round */
	u32		waker_user;	/* so many of these are of user space */
	bool		user;		/* a user stack of a map, which may have no frames */
	size_t		first;		/* index of the leaf in map->ips */
	u64		hits;		/* bit i: frame i was hit by an interrupt, it is no call */
	u64		ref;		/* what it weighs */
	u64		val[NR_VALUES];	/* in a profile */
	const struct task *task;	/* in one for pprof */
	u32		group;		/* the label of what it is counted by; 0: none */
};

/* A stack in parts, innermost first. A stack of user space has one part. */
struct stack_ids {
	u32		nr;
	u32		id[MAX_PARTS];
	u64		ip[MAX_PARTS];	/* what an interrupt hit, before the part; or 0 */
};

struct symbol {
	u64		addr;
	u64		end;
	const char	*name;
	const char	*mod;		/* NULL: the kernel proper */
	u32		seq;		/* line in the source; the first of several aliases wins */
	char		type;		/* as nm prints it */
	bool		is_label;	/* nothing tells where it ends */
	bool		passes;		/* it was not there all the time */
	bool		replaced;	/* and something else was */
};

struct symtab {
	struct symbol	*syms;
	size_t		nr;
	u64		text;		/* _text, 0 if unknown */
	u64		kernel_end;	/* _end, 0 if unknown */
	char		**bufs;		/* the files; names point into them */
	size_t		nr_bufs;
};

/* Why there is none; in user_maps: -, none, ?. Older kernels read one page. */
enum id_lack { ID_NOT_FOUND, ID_NONE, ID_UNREADABLE };

struct build_id {
	size_t		len;		/* 0: unknown */
	enum id_lack	lack;
	bool		is_deep;	/* behind the first page */
	unsigned char	bytes[MAX_BUILD_ID];
};

struct task {
	char	comm[COMM_LEN + 1];
	u32	pid;
	u32	nth;		/* of those that have had this number, from 0 */
};

enum object_state {
	OBJECT_NEW, OBJECT_NO_LIBS, OBJECT_MISSING, OBJECT_OTHER, OBJECT_UNREADABLE,
	OBJECT_NO_OFFSETS, OBJECT_UNCHECKED, OBJECT_FOUND,
};

/* A file that a process has mapped, or "[vdso]". */
struct object {
	char		*file;		/* its path */
	char		*path;		/* that can be printed */
	char		*name;		/* without directories or brackets */
	struct build_id	id;
	enum object_state state;
	struct symtab	symtab;		/* by offsets in the file */
	struct Dwfl	*dwfl;
};

/* What user space has mapped (user.c). */
struct users {
	struct pool	processes;	/* of {tgid, 0} to a process, see user.c */
	struct pool	objects;	/* of a string to an object */
	const char	*symfs;
	const char	*dir;		/* of the recording, or NULL */
	bool		watched;	/* by perf events */
};

/* Stacks of a trace by their ids, see stacks.c. */
struct stacks {
	struct users	*users;
	struct pool	ids;		/* of {instance, id} to the index of a ref, plus 1 */
	struct ref	*refs;
	size_t		nr_refs;
	struct pool	contents;	/* frames */
	struct pool	objects;	/* of {instance, number} to that of an object */
	struct pool	stacks;
};

struct profile;
struct sample;

struct map {
	char		*name;
	char		*dir;		/* made by "save"; NULL for a plain file */
	bool		live;
	u64		saved;		/* seconds since 1970, 0 if not known */
	struct stack	*stacks;
	size_t		nr_stacks;
	size_t		nr_user_stacks;	/* of them, when they were read */
	u64		*ips;
	size_t		nr_ips;
	bool		merged;		/* they are numbers of names */
	u64		sum;		/* of all, also of those that are not selected */
	u64		split;		/* section 4: number of stacks that were split */
	u64		text;		/* section 1, 0 if there is none */
	struct build_id	build_id;	/* section 2 */
	char		release[MAX_RELEASE];
	struct symtab	kallsyms;
	struct symtab	elfsyms;
	struct vmlinux	*vmlinux;
	u64		tracer_start;	/* of its text; 0: not searched */
	u64		tracer_end;
	struct pool	modules;	/* of a name: 1 if it is there, as far as it is known */
	bool		unsure;		/* text was there that no kallsyms tells */
	size_t		nr_replaced;	/* addresses that have no name for that */
	struct pool	frames;		/* of an address to a frame, see frame.c */
	struct users	users;
	struct value_type values[NR_VALUES]; /* of a profile */
	int		main_value;	/* which of them ref is */
	struct profile	*profile;	/* the recording, if the stacks are from one */
	const struct symbol *(*find_symbol)(struct profile *p, u64 addr);
	struct pool	numbers;	/* of {the kernel's number} to that of an object */
	struct pool	labels;		/* texts that are no functions */
	char		*source;	/* description of where the symbols came from */
};

static inline struct stack *stacks_end(const struct map *m)
{
	return m->nr_stacks ? m->stacks + m->nr_stacks : m->stacks;
}

enum sleep { SLEEP_ANY, SLEEP_PREEMPTED, SLEEP_UNINTERRUPTIBLE };
enum by { BY_NOTHING, BY_CPU, BY_EVENT, BY_TASK, BY_PROCESS, NR_BY };

struct config {
	const char	*kallsyms;
	const char	*vmlinux;
	const char	*symfs;
	const char	*instance;
	const char	*trace;		/* that is annotated */
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
	u64		from;		/* nanoseconds */
	u64		to;
	const char	*weight;	/* a field */
	bool		off_cpu;
	enum sleep	sleep;
	bool		wakers;
	const char	*allocs;	/* events */
	const char	*frees;
	const char	*keys;		/* their fields, */
	const char	*end_keys;	/* which are called so in the latter */
	bool		latency;	/* the time from the ones to the others */
	bool		leaks;		/* not all of these are in each kernel */
	enum by		by;
	bool		for_pprof;	/* by task */
};

#define MAX_READS	5	/* of a file that the kernel may replace meanwhile */

/*
 * Files that processes have mapped (objects), and where: user_maps of a recording, whose lines are
 * nearly in the order of time. "save" scans /proc, "record" follows perf events, too (watch.c).
 *
 *	@123456789 map 1234 5581c000-5581e000 1000 ID /usr/bin/cat
 *	@123456789 fork 1300 1234	process 1300 begins with what 1234 has mapped so far
 *	@123456789 exec 1234		nothing that was mapped before is there any more
 *
 * The time is in nanoseconds of the clock mono; without it, the line counts from the beginning.
 * ID is the build id in hexadecimal, or why there is none: "-", it was not found where the kernel
 * looks, "none", the file has none, "?", the file could not be read. Without a path, nothing is
 * known of what is there.
 *
 * A user stack is stored by file: bit 63, the number of the object in 19 bits, and the
 * offset in the file in 44 bits, as the kernel does it (with numbers of its own). What is in no
 * file stays an address. The highest number is not used, because [vsyscall] has such addresses.
 */
#define OFFSET_BITS	44
#define OFFSET_MASK	((1ULL << OFFSET_BITS) - 1)
#define OBJECT_LIMIT	0x7ffffU

/* Returns 0 for an address. */
static inline u32 word_object(u64 word)
{
	u32 nr = word >> OFFSET_BITS & OBJECT_LIMIT;

	return word >> 63 && nr != OBJECT_LIMIT ? nr : 0;
}

static inline u64 make_word(u32 object, u64 offset)
{
	return 1ULL << 63 | (u64)object << OFFSET_BITS | offset;
}

/* A program can put any word on its stack. An address never looks as a place in a file. */
static inline u64 address_word(u64 addr)
{
	return word_object(addr) ? addr | make_word(OBJECT_LIMIT, 0) : addr;
}

/*
 * If a call is the last instruction of its function, the return address is in the next function, or
 * behind the end of the mapping. So look one byte back.
 */
static inline u64 lookup_addr(u64 ip, bool exact)
{
	return exact || !ip ? ip : ip - 1;
}

struct mapping {
	u64			time;
	u64			start;
	u64			end;
	u64			offset;
	u32			object;		/* 0: unknown */
	bool			exec;		/* nothing before it counts */
	const struct process	*parent;	/* what it had mapped then was copied */
};

/* In the place of the kernel's frames: there is no stack, or its id has no definition. */
#define WORD_NO_STACK	(UINT64_MAX - 1)
#define WORD_UNDEFINED	(UINT64_MAX - 2)
/* Before the stack of who woke the task, and the label with its name: no address is there. */
#define WORD_WOKEN_BY	(UINT64_MAX - 3)
#define WOKEN_BY	"[woken by]"
#define WORD_LABEL	0x7ffe000000000000ULL

struct frame {
	u64			ip;
	u64			addr;		/* the same, or the offset in the object */
	const struct symbol	*sym;		/* NULL: no symbol */
	struct object		*object;	/* the file of a frame of user space, or NULL */
	char			*text;		/* schedule+0x48/0xc0 [mod] */
	char			*lines;		/* for --lines, made on first use */
	u32			uid;		/* number in a pool of names */
	bool			exact;		/* not a return address */
	bool			user;		/* a frame of user space */
	signed char		matches;	/* --grep, -1: not tried yet */
};

/* map.c */
const char *read_error(void);
struct stack *map_add(struct map *m, const u64 *ips, u32 nr);
int read_map(struct map *m, const char *buf, size_t len);
int load_map(struct map *m, const char *path);
void map_drop_stacks(struct map *m);
int reload_map(struct map *m);
void map_free_stacks(struct map *m);
/* stacks.c */
bool define_stack(struct stacks *k, u32 in, bool user, u32 id, u32 content);
size_t count_differing(const struct stacks *k);
void use_map(struct stacks *k, const struct map *m, u32 in);
u32 stack_of_ids(struct stacks *k, u32 in, bool user, u64 epoch, const struct stack_ids *ids);
u32 stack_of_frames(struct stacks *k, bool user, u64 epoch, const u64 *ips, u32 nr);
bool resolve_stack(struct stacks *k, u32 stack, struct words *w);
void stacks_free(struct stacks *k);
/* source.c */
int load_kallsyms(struct map *m, const struct map *sibling, const struct config *cfg);
int load_symbols(struct map *m, const struct map *sibling, const struct config *cfg);
void map_free(struct map *m);
/* symtab.c */
extern const char * const id_lacks[];
bool same_id(const struct build_id *a, const struct build_id *b);
char *build_id_text(const struct build_id *id);
char *parse_build_id(char *s, struct build_id *id);
void build_id_of_notes(const char *p, size_t len, struct build_id *id);
void read_file_id(const char *path, struct build_id *id);
void write_vdso(FILE *f);
int check_build_id(const struct map *m, const struct build_id *id, const char *path,
		   const struct config *cfg);
void symtab_add(struct symtab *t, const struct symbol *s);
void symtab_finish(struct symtab *t);
const struct symbol *symtab_find(const struct symtab *t, u64 addr);
void symtab_shift(struct symtab *t, u64 delta);
const char *symtab_keep(struct symtab *t, char *name);
void symtab_free(struct symtab *t);
int parse_symbol_line(void *t, char *line);
int symtab_load(struct symtab *t, const char *path);
int load_first_symbols(struct map *m);
void note_module(struct map *m, const char *name, bool leaves);
bool is_trampoline(const struct symbol *s);
bool is_bpf(const struct symbol *s);
/* user.c */
char *hide_controls(char *text);
struct object *object_at(const struct users *u, u32 nr);
u32 get_object(struct users *u, const char *path, const struct build_id *id);
u64 users_epoch(struct users *u, u32 tgid, u64 time);
u64 place_word(struct users *u, u64 epoch, u64 addr, bool exact);
int parse_user_line(void *users, char *line);
void users_free(struct users *u);
/* elf.c */
const struct symbol *find_in_object(struct users *u, struct object *o, u64 offset);
void object_free_symbols(struct object *o);
void vmlinux_free(struct vmlinux *v);
char *vmlinux_lines(const struct vmlinux *v, u64 addr);
int vmlinux_load(struct map *m, const struct config *cfg);
/* watch.c */
void scan_processes(FILE *f);
void watch_start(FILE *f);
void watch_drain(void);
void watch_stop(void);
/* frame.c */
const struct symbol *find_symbol(const struct map *m, u64 ip, bool exact);
bool is_exact(const struct stack *s, u32 i);
const char *frame_name(struct frame *f, const char **mod);
const char *frame_lines(const struct map *m, struct frame *f);
struct frame *frame_get(struct map *m, const struct stack *s, u32 i);
void note_objects(const struct map *m);
void frames_free(struct map *m);
/* tracer.c */
u32 tracer_frames(struct map *m, const u64 *ips, u32 nr);
u32 scheduler_frames(const struct map *m, const u64 *ips, u32 nr);
void drop_tracers(struct map *m);
/* select.c */
u64 sum_of(const struct map *m);
void merge_stacks(struct map *m, struct pool *names, const struct config *cfg);
double share(u64 part, u64 all);
void sort_stacks(struct map *m);
bool stack_matches(struct map *m, const struct stack *s, const struct config *cfg);
void select_stacks(struct map *m, const struct config *cfg, size_t top);
/* annotate.c */
int annotate(struct map *m, const struct config *cfg);
/* print.c, pprof.c, report.c; @names: those of merged stacks */
typedef void print_fn(struct map *m, struct pool *names, const struct config *cfg);
print_fn print_text, print_folded, print_json, print_pprof, print_functions, print_json_functions;
void print_json_string(const char *s);
void print_frame(struct map *m, const struct stack *s, u32 i, const struct config *cfg);
void print_stack(struct map *m, const struct stack *s, const struct config *cfg);
void print_merged(struct map *m, const struct stack *s, struct pool *names);
void print_sum(const struct map *m);
char *folded_name(char *name);
void note_summary(struct map *m);
/* diff.c */
void print_diff(struct map *m, struct map *old, struct pool *names, const struct config *cfg);

/* profile.c */
typedef void sample_fn(struct profile *p, const struct sample *sample, const struct stack *s);
int make_profile(struct map *m, const char *path, sample_fn *print, const struct config *cfg);
void profile_free(struct map *m);
/* perf.c */
sample_fn print_perf_sample;
int print_perf(struct map *m, const char *path, const struct config *cfg);

#endif
