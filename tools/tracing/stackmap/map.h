/* SPDX-License-Identifier: GPL-2.0 */
/* Reads stack_map_bin. */
#ifndef STACKMAP_MAP_H
#define STACKMAP_MAP_H

#include "stackmap.h"

#define MAP_MAGIC	0x464D5342
#define MAP_VERSION	2
#define SECTION_OBJECTS	5
#define MAX_READS	5
#define RECORD_USER	1U
#define RECORD_BY_FILE	2U
#define MAX_PATH	65536	/* of an object, with escapes */

/* map.c */
void complain_stale(const char *name);
struct stack *new_stack(struct map *m, u32 nr);
int read_map(struct map *m, const char *buf, size_t len);
int load_more(struct map *m);
int load_map(struct map *m, const char *path);
int reload_map(struct map *m);
void map_free_stacks(struct map *m);

#endif
