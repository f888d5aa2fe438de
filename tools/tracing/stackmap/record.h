/* SPDX-License-Identifier: GPL-2.0 */
/* What works on the running kernel: "record", "save", "top". */
#ifndef STACKMAP_RECORD_H
#define STACKMAP_RECORD_H

#include <signal.h>
#include <sys/types.h>

#include "stackmap.h"
#include "user.h"

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

enum user_stacks { USER_NONE, USER_ANY, USER_NOW, USER_DELAY };

struct wanted {
	const char	*event;
	const char	*filter;	/* or NULL */
};

struct recording {
	struct wanted	*events;
	size_t		nr_events;
	size_t		last;		/* the first one of the last --event */
	u32		*pids;
	size_t		nr_pids;
	u64		buffer_kb;	/* 0: as it is */
	u64		realtime;	/* 0: no */
	bool		all;
	enum user_stacks user;
	u64		duration;	/* in seconds; 0: no limit */
	char		**command;	/* NULL: none */
	char		*output;
	const char	*instance;
	char		*dir;		/* of the instance */
	sigset_t	signals;	/* those that are blocked, but for programs */
	pid_t		tool;
	pid_t		group;		/* of the tool and of the command */
	/* The keeper's. */
	int		signal_fd;
	pid_t		pid;		/* of the command, until it has ended */
	int		status;		/* of the command */
	int		go;		/* a pipe: a byte starts the command */
	pid_t		recorder;
	bool		stopped;
	u64		start;		/* in milliseconds */
	u64		last_look;	/* in half seconds */
	struct watch	watch;
};

#define NO_COMMAND	127

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
FILE *open_in(const char *dir, const char *name, const char *mode);
void read_instance_stat(const char *dir, struct instance_stat *s);
/* keeper.c */
int keep(struct recording *r);
/* output.c */
char *output_name(const char *dir);
int output_check(const char *dir);
int output_make(const char *dir);
void output_discard(const char *dir);
u64 file_sizes(const char *dir, const char *pattern);
void remove_files(const char *dir, const char *pattern);
bool has_room(const char *dir, u64 bytes);
int copy_file(const char *from_dir, const char *name, const char *dir);
int save_map(const char *from, const char *dir, const char *user_maps, size_t *nr_stacks);
int save_checksums(const char *dir);
/* program.c */
void block_signals(sigset_t *set);
void unblock_signals(void);
bool find_program(const char *name);
pid_t start_program(const char * const *args, const char *dir, bool silent);
int wait_for_program(pid_t pid);
int run_program(const char * const *args, const char *dir, bool silent);
/* record.c */
int record(int argc, char **argv);
/* save.c */
int save(const char *dir, const char *instance);
/* top.c */
int top(int argc, char **argv);

#endif
