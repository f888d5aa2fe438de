/* SPDX-License-Identifier: GPL-2.0 */
/* What processes have mapped: read, scanned in /proc, watched by perf events. */
#ifndef STACKMAP_USER_H
#define STACKMAP_USER_H

#include "stackmap.h"

struct mapping {
	u64			start;
	u64			end;
	u64			offset;
	struct object		*object;	/* NULL: unknown */
	const struct process	*parent;	/* the first so many mappings of it were copied */
	size_t			nr_parent;
};

struct process {
	u32		tgid;
	struct mapping	*maps;
	size_t		nr;
	size_t		room;
};

extern const struct process unknown_process;

struct scan {
	FILE		*out;
	struct intern	files;		/* those whose build ids are known */
	struct build_id	*ids;		/* as many */
	size_t		room_ids;
};

struct watched;
struct change_of_maps;

struct watch {
	struct scan		scan;
	struct watched		*cpus;
	size_t			nr_cpus;
	struct change_of_maps	*changes;
	size_t			nr_changes;
	size_t			room_changes;
	u64			nr_lost;
	char			*text;		/* of the file */
	size_t			len;
};

/* proc.c */
void read_file_id(const char *path, struct build_id *id);
const struct build_id *file_id(struct scan *s, const char *key, const char *path);
void write_mapping(FILE *out, u32 tgid, const struct mapping *map, const struct build_id *id,
		   const char *path);
void scan_processes(struct scan *s);
void scan_free(struct scan *s);
void write_users(FILE *f);
void load_running_users(struct users *u);
/* user.c */
const struct process *find_process(const struct users *u, const struct task *task);
struct object *get_object(struct users *u, const char *path, const struct build_id *id);
bool find_place(const struct process *p, u64 addr, struct place *place);
int parse_users(struct users *u, const char *name, char *buf, size_t len);
int load_users(struct users *u, const char *path);
void users_free(struct users *u);
/* watch.c */
void watch_drain(struct watch *w);
void watch_start(struct watch *w);
void watch_stop(struct watch *w);
void watch_free(struct watch *w);

#endif
