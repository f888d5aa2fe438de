/* SPDX-License-Identifier: GPL-2.0 */
/* What samples are grouped by. */
#ifndef STACKMAP_GROUP_H
#define STACKMAP_GROUP_H

#include "count.h"

void take_value(struct record *r, struct sample *s);
u64 group_key(const struct profile *p, const struct sample *s);
u32 group_of(struct profile *p, const struct sample *s);

#endif
