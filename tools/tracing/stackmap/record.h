/* SPDX-License-Identifier: GPL-2.0 */
/* What works on the running kernel: "record", "save", "top". */
#ifndef STACKMAP_RECORD_H
#define STACKMAP_RECORD_H

#include <signal.h>
#include <sys/types.h>

#include "stackmap.h"

/* What stack_map_stat and per_cpu/cpuN/stats have counted. */
struct instance_stat {
	u64	stacks;		/* asked for */
	u64	different;
	u64	recycled;
	u64	read;		/* entries of the ring buffer: events, stacks, definitions */
	u64	left;		/* entries that are in the buffer now */
	u64	bytes;		/* of these */
	u64	lost;		/* entries that were overwritten, or found no room */
};

struct args {
	char	**v;
	size_t	nr;
	size_t	room;
};

/* instance.c */
char *find_tracefs(void);
const char *instance_name(const char *name);
char *find_instance(const char *instance);
bool has_live_map(void);
char *find_live_map(const char *instance);
int check_instance(const char *instance);
void note_empty(const char *instance);
int write_file(const char *dir, const char *file, const char *text);
int set(const char *dir, const char *file, const char *text);
bool is_set(const char *dir, const char *file);
int make_instance(const char *dir);
int remove_instance(const char *dir);
int enable_event(const char *dir, const char *event, const char *filter);
void read_instance_stat(const char *dir, struct instance_stat *s);
/* output.c */
char *output_name(const char *dir);
int output_check(const char *dir);
int output_make(const char *dir);
void output_discard(const char *dir);
bool has_file(const char *dir, const char *name);
u64 file_sizes(const char *dir, const char *pattern);
bool has_room(const char *dir, u64 bytes);
void remove_file(const char *dir, const char *name);
int copy_file(const char *from_dir, const char *from, const char *dir);
int save_map(const char *from, const char *dir, const char *user_maps, size_t *nr_stacks);
int save_checksums(const char *dir);
/* record.c */
int record(int argc, char **argv);
/* save.c */
int save(const char *dir, const char *instance);
/* top.c */
int top(int argc, char **argv);
/* tracecmd.c */
bool find_program(const char *name);
pid_t start_program(const struct args *args, const char *dir, bool silent,
		    const sigset_t *signals);
int wait_for_program(pid_t pid);
int run_program(const struct args *args, const char *dir, bool silent, const sigset_t *signals);
void add_args(struct args *a, ...);
void free_args(struct args *a);
int make_head(const char *dir, const sigset_t *signals);
u64 count_events(const char *dir);
int restore(const char *dir, const char *instance, const sigset_t *signals);

#endif
