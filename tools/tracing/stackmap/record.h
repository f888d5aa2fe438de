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
	char		*event;
	const char	*filter;	/* or NULL */
};

struct recording {
	struct wanted	*events;
	size_t		nr_events;
	size_t		room_events;
	size_t		last;		/* the first one of the last --event */
	u32		*pids;
	size_t		nr_pids;
	size_t		room_pids;
	const char	*buffer_kb;
	const char	*realtime;
	bool		all;
	enum user_stacks user;
	u64		duration;	/* in seconds; 0: no limit */
	char		**command;	/* NULL: none */
	char		*output;
	char		*instance;
	char		*dir;		/* of the instance */
	sigset_t	old_signals;	/* those that are blocked for programs */
	int		signals;	/* a signalfd */
	pid_t		pid;		/* of the command, until it has ended */
	int		status;		/* of the command */
	int		go;		/* a pipe: a byte starts the command */
	pid_t		keeper;		/* until it has ended */
	int		keeper_status;
	int		stop;		/* a pipe: closing it ends the recording */
	int		ready;		/* a pipe: a byte tells that recording has begun */
	bool		started;
	u64		start;		/* in milliseconds */
	u64		shown;		/* second of the last progress */
	/* The keeper's. */
	struct watch	watch;
	pid_t		recorder;
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
/* keeper.c */
int keep(struct recording *r, int ready, int stop);
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
void free_recording(struct recording *r);
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
int restore(const char *dir, const char *instance, const sigset_t *signals);

#endif
