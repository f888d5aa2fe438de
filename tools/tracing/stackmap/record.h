/* SPDX-License-Identifier: GPL-2.0 */
/* What works on the running kernel: "record", "save", "top". */
#ifndef STACKMAP_RECORD_H
#define STACKMAP_RECORD_H

#include <signal.h>
#include <sys/types.h>

#include "options.h"
#include "stackmap.h"

#define NO_COMMAND	127
#define TRACEFS		"/sys/kernel/tracing"
#define CPU_FILES	"trace.dat.*cpu[0-9]*"	/* of a recording that has not ended */

/* The number of a CPU is its place among the arguments. */
#define RESTORE \
	"trace-cmd restore -c -o head.dat; trace-cmd restore -o trace.dat -i head.dat $(ls -v *.cpu*)"

/* For count_of(). The entries of the ring buffer are events, stacks and definitions. */
#define MAP_STAT	"stack_map_stat"
#define CPU_STATS	"per_cpu/cpu*/stats"

/* instance.c */
char *find_instance(const char *instance);
int check_instance(const char *dir);
void note_empty(const char *dir);
int write_file(const char *dir, const char *file, const char *text);
int set(const char *dir, const char *file, const char *text);
bool is_set(const char *dir, const char *file);
int trace_error(const char *dir, const char *file, int err);
void remove_instance(const char *dir);
int enable_event(const char *dir, const char *event, const char *filter);
u64 count_of(const char *dir, const char *files, const char *key);
u64 count_lost(const char *dir);
/* output.c */
char *output_name(const char *dir);
int output_make(const char *dir);
void output_discard(void);
extern int output_fd;
extern const char *output_dir;
extern char output_path[32];
u64 output_bytes(const char *pattern);
void output_remove(const char *pattern);
bool output_has_room(u64 bytes);
FILE *output_open(const char *name);
int output_check(FILE *f, const char *name);
int save_file(const char *from_dir, const char *name, const char *to_name);
/* program.c */
void block_signals(sigset_t *set);
void unblock_signals(void);
bool find_program(const char *name);
_Noreturn void exec_program(char * const *args);
pid_t start_program(const char * const *args);
int run_script(const char *script, const char *arg);
/* record.c */
extern const struct command record_command;
/* save.c */
int save_lost(const char *from);
int save_map(const char *from, bool users, size_t *nr_stacks);
extern const struct command save_command;
/* top.c */
extern const struct command top_command;

#endif
