/* SPDX-License-Identifier: GPL-2.0 */
/* What ids stand for. */
#ifndef STACKMAP_IDS_H
#define STACKMAP_IDS_H

#include "map.h"

/* A stack in parts, innermost first. A stack of user space has one part. */
struct stack_ids {
	u32		nr;
	u32		id[MAX_PARTS];
	u64		ip[MAX_PARTS];	/* what an interrupt hit, before the part; or 0 */
};

/* Stacks of a trace by their ids, see stacks.c. */
struct stacks {
	struct users	*users;
	struct pool	ids;		/* of {instance, id} to the index of a ref, plus 1 */
	struct ref	*refs;
	size_t		nr_refs;
	struct pool	contents;	/* frames */
	struct pool	objects;	/* of {instance, number} to that of an object */
	struct pool	stacks;
};

bool define_stack(struct stacks *k, u32 in, bool user, u32 id, u32 content);
size_t count_differing(const struct stacks *k);
void use_map(struct stacks *k, const struct map *m, u32 in);
u32 stack_of_ids(struct stacks *k, u32 in, bool user, u64 epoch, const struct stack_ids *ids);
u32 stack_of_frames(struct stacks *k, bool user, u64 epoch, const u64 *ips, u32 nr);
bool resolve_stack(struct stacks *k, u32 stack, struct words *w);
void stacks_free(struct stacks *k);

#endif
