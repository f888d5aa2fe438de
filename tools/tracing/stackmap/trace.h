/* SPDX-License-Identifier: GPL-2.0 */
/* The text of a trace. */
#ifndef STACKMAP_TRACE_H
#define STACKMAP_TRACE_H

#include "stackmap.h"

#define MAX_WAITING	8	/* of a CPU; more are dropped: they have no stack */
#define MAX_OPEN	32	/* of a CPU; more get no stack of user space */

struct stack_ids {
	u32	nr;
	u32	id[MAX_PARTS];
	u64	ip[MAX_PARTS];
	bool	more;		/* trace-cmd printed only some of the parts */
};

enum line_kind {
	LINE_OTHER,
	LINE_FRAME,
	LINE_IDS,
	LINE_FULL,		/* a stack's frames, in this line or in those that follow */
	LINE_DEF,		/* the frames of an id, likewise */
	LINE_COOKIE,		/* tells which stack of user space belongs to the event */
};

struct trace {
	FILE			*f;
	char			*line;
	size_t			room;
	size_t			len;
	bool			has_context;	/* task, CPU and time before the event */
	char			*event;		/* what follows the context; NULL if nothing does */
	char			*text;		/* LINE_IDS: "<stack_id 42>" */
	bool			user;		/* a stack of user space */
	bool			has_cookie;
	u64			cookie;
	u32			def;		/* LINE_DEF: the id */
	const char		*words;		/* the addresses; NULL: frames follow */
	char			*first;		/* the first frame, if it is in this line */
	struct stack_ids	ids;
};

struct printed_frame {
	char	*text;		/* without the address; NULL if the line has only that */
	u64	ip;
	bool	has_ip;
};

struct context {
	struct task	task;
	u32		cpu;
	u64		usec;
	char		flags[16];	/* "d..2.": the same in all lines of an event */
};

struct frame_lines {
	char	*text;
	size_t	room;
	size_t	len;
	bool	cut;		/* the last one is cut off */
};

struct half {
	enum line_kind		kind;	/* LINE_IDS, LINE_FULL, or LINE_OTHER if there is none */
	struct stack_ids	ids;
	bool			words;	/* the text has addresses, not the lines of frames */
	char			*text;	/* two halves with the same text are equal */
};

struct event {
	struct context	context;
	char		*text;		/* "sched_switch: prev_comm=bash ..." */
};

struct sample {
	bool		has_context;
	struct context	context;	/* of its first stack */
	struct event	event;		/* only if the walk is by event */
	struct half	kernel;
	struct half	user;
};

struct cpu {
	struct event	waiting[MAX_WAITING];	/* for their stacks */
	u32		nr_waiting;
	struct sample	*open;			/* MAX_OPEN; may get a stack of user space */
	u32		nr_open;
	u64		last;			/* time of the last sample */
};

struct walk {
	struct map		*map;
	const struct config	*cfg;
	bool			by_event;
	void			(*take)(struct walk *w, struct sample *s);
	struct count		*count;		/* for take() */
	struct trace		t;
	enum line_kind		kind;
	bool			has_context;	/* the line */
	struct context		context;
	struct frame_lines	lines;
	struct stack		whole;		/* frames of a sample */
	struct cpu		*cpus;
	size_t			nr_cpus;
	size_t			room_cpus;
	struct cpu		no_cpu;		/* lines without a context */
	size_t			nr_missing;
	size_t			nr_more;
	size_t			nr_cut;
	size_t			nr_lost;
	size_t			nr_unplaced;	/* stacks without a context */
};

/* annotate.c */
void note_missing(size_t nr, const struct map *m, const struct config *cfg);
void note_more(size_t nr, const struct config *cfg);
struct stack *find_stack(const struct map *m, u32 id, bool user);
void add_kernel_half(struct map *m, struct stack *whole, const struct half *h);
void add_user_half(struct map *m, struct stack *whole, const struct half *h,
		   const struct process *p);
void find_owners(struct map *m);
int annotate(struct map *m, const struct config *cfg);
/* context.c */
bool parse_context(const struct trace *t, struct context *c);
/* count.c */
int count_stacks(struct map *m, bool by_task, const struct config *cfg);
/* define.c */
void take_frame_lines(struct map *m, struct stack *s, const char *lines);
void take_words(struct map *m, struct stack *s, const char *p);
void take_user_lines(struct map *m, struct stack *s, const char *lines, bool mapped);
void half_of_ids(struct half *h, const struct trace *t);
bool read_full(struct half *h, struct trace *t, enum line_kind *kind, struct frame_lines *l);
const struct half *find_cookie_stack(const struct map *m, u64 cookie);
void note_lost(size_t nr, const struct config *cfg);
void map_free(struct map *m);
int read_definitions(struct map *m, const struct config *cfg);
int close_trace(const struct config *cfg);
bool has_definitions(FILE *f);
FILE *open_trace(const char *path);
/* sample.c */
const struct process *sample_process(const struct walk *w, const struct sample *s);
const struct stack *sample_frames(struct walk *w, const struct sample *s);
void walk_trace(struct walk *w);
/* trace.c */
char *skip_diff(char *p);
bool parse_word(const char **p, u64 *word);
const char *skip_separator(const char *p);
bool read_line(struct trace *t, enum line_kind *kind);
void parse_user_frame(char *line, struct printed_frame *f);
void parse_frame(char *line, struct printed_frame *f);

#endif
