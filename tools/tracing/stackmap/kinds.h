/* SPDX-License-Identifier: GPL-2.0 */
/* What kind of event a record is. */
#ifndef STACKMAP_KINDS_H
#define STACKMAP_KINDS_H

#include "event.h"

#define MAX_KINDS	0x10000

void kinds_free(struct profile *p);
int look_at_record(struct tracecmd_input *handle, struct tep_record *rec, int unused, void *data);
int read_record(struct tracecmd_input *handle, struct tep_record *rec, int unused, void *data);
int check_events(struct profile *p, const char *path);
const char *advice(const struct config *cfg);

#endif
