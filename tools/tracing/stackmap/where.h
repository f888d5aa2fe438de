/* SPDX-License-Identifier: GPL-2.0 */
/* Which records a filter takes. */
#ifndef STACKMAP_WHERE_H
#define STACKMAP_WHERE_H

#include "event.h"

int where_open(struct profile *p, const char *path);
bool where_matches(struct record *r);
void where_close(struct profile *p);

#endif
