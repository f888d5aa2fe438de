/* SPDX-License-Identifier: GPL-2.0 */
/* Values that are known later. */
#ifndef STACKMAP_WEIGHTS_H
#define STACKMAP_WEIGHTS_H

#include "count.h"
#include "tasks.h"

#define MIN_ADDRESSES	20000	/* before those that were freed are forgotten */

void take_weight(struct record *r, struct sample *s);
void take_leave(struct record *r, struct sample *s);
bool set_owner(struct record *r, struct sample *s, enum count other);
void end_latency(struct record *r);
void take_waking(struct record *r, struct sample *s);
bool is_skipped_task(const struct profile *p, const struct task_state *t);
void take_switch(struct record *r);
void weigh_end(struct profile *p);

#endif
