/* SPDX-License-Identifier: GPL-2.0 */
/* What is missing at the ends of CPUs. */
#ifndef STACKMAP_GAPS_H
#define STACKMAP_GAPS_H

#include "dat.h"

void find_gaps(struct profile *p, char *lost, record_fn look);
u32 count_later(const struct instance *in, u64 ts);
bool is_in_gap(const struct instance *in, u32 cpu);
void close_gaps(struct profile *p);

#endif
