/* SPDX-License-Identifier: GPL-2.0 */
/* The texts of addresses; selects, sorts, merges and prints stacks. */
#ifndef STACKMAP_VIEW_H
#define STACKMAP_VIEW_H

#include "util.h"

/* In the place of the kernel's frames: there is no stack, or its id has no definition. */
#define WORD_NO_STACK	(UINT64_MAX - 1)
#define WORD_UNDEFINED	(UINT64_MAX - 2)

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

/* frame.c */
const struct symbol *find_symbol(const struct map *m, u64 ip, bool exact);
const char *frame_name(struct frame *f, const char **mod);
const char *frame_lines(const struct map *m, struct frame *f);
struct frame *frame_get(struct map *m, const struct stack *s, u32 i);
void frames_free(struct map *m);
/* functions.c */
void merge_stacks(struct map *m, struct pool *names, struct config *cfg);
double share(u64 part, u64 all);
void print_functions(const struct map *m, const struct pool *names, const struct config *cfg);
void sort_stacks(struct map *m, enum sort_key key);
bool stack_matches(struct map *m, const struct stack *s, const struct config *cfg);
void select_stacks(struct map *m, const struct config *cfg, size_t top);
u32 tracer_frames(const struct map *m, const u64 *ips, u32 nr);
void drop_tracers(struct map *m);
/* annotate.c */
int annotate(struct map *m, const struct config *cfg);
/* pprof.c */
void print_pprof(const struct map *m, struct pool *names);
/* print.c */
void print_frame(struct map *m, const struct stack *s, u32 i, const struct config *cfg);
void print_stack(struct map *m, const struct stack *s, const struct config *cfg);
void print_text(struct map *m, const struct config *cfg);
char *folded_name(char *name);
void print_folded(const struct map *m, struct pool *names);
void print_json(struct map *m, const struct config *cfg);
void print_speedscope(struct map *m, const struct pool *names);
/* report.c */
int print_summary(struct map *m);
void print_diff(struct map *m, struct map *old, const struct config *cfg);

/* profile.c and dat.c */
#ifdef HAVE_LIBTRACECMD
int make_profile(struct map *m, const char *path, bool script, const struct config *cfg);
void profile_free(struct map *m);
u64 count_events(const char *path);
#else
static inline int make_profile(struct map *m, const char *path, bool script,
			       const struct config *cfg)
{
	return fail("%s: built without libtracecmd, which reads recordings", path);
}

static inline void profile_free(struct map *m)
{
}

static inline u64 count_events(const char *path)
{
	return 0;
}
#endif

#endif
