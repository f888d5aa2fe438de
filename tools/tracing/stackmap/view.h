/* SPDX-License-Identifier: GPL-2.0 */
/* Selects, sorts, merges and prints stacks. */
#ifndef STACKMAP_VIEW_H
#define STACKMAP_VIEW_H

#include "pool.h"
#include "stackmap.h"

/* Functions by their names. */
struct paths {
	struct pool	names;
	u64		*uids;		/* numbers of the frames, at their indices in map->ips */
};

/* merge.c */
u32 name_frame(struct map *m, const struct stack *s, u32 i, struct pool *names);
void merge_stacks(struct map *m, struct paths *p, const struct config *cfg);
void paths_free(struct paths *p);
void sort_by_path(struct map *m, const struct paths *p);
/* functions.c */
void print_functions(struct map *m, const struct config *cfg);
/* select.c */
u32 tracer_frames(const struct map *m, const u64 *ips, u32 nr);
void drop_tracers(struct map *m);
/* annotate.c */
int annotate(struct map *m, const struct config *cfg);
/* pprof.c */
void print_pprof(struct map *m);
/* print.c */
void print_frame(struct map *m, const struct stack *s, u32 i, const char *prefix,
		 const struct config *cfg);
void print_stack(struct map *m, const struct stack *s, const struct config *cfg);
void print_text(struct map *m, const struct config *cfg);
char *folded_name(char *name);
void print_folded(const struct map *m, const struct paths *p);
void print_json(struct map *m, const struct config *cfg);
void print_speedscope(struct map *m, const struct paths *p, const struct config *cfg);
/* report.c */
int print_summary(struct map *m);
void print_diff(struct map *m, struct map *old, const struct config *cfg);
/* select.c */
int compare_u64(u64 a, u64 b);
void sort_stacks(struct map *m, enum sort_key key);
bool stack_matches(struct map *m, const struct stack *s, const struct config *cfg);
void select_stacks(struct map *m, const struct config *cfg, size_t top);

#endif
