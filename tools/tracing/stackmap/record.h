/* SPDX-License-Identifier: GPL-2.0 */
/* "record" and "save". */
#ifndef STACKMAP_RECORD_H
#define STACKMAP_RECORD_H

#include "stackmap.h"

/* record.c */
int record(int argc, char **argv);
/* save.c */
char *find_tracefs(void);
const char *instance_name(const char *name);
bool has_live_map(void);
char *find_live_map(const char *instance);
int save_files(const char *from, const char *dir, const char *user_maps, size_t *nr_stacks);
int save(const char *dir, const char *instance);

#endif
