/* SPDX-License-Identifier: GPL-2.0 */
/* What ids stand for. */
#ifndef STACKMAP_IDS_H
#define STACKMAP_IDS_H

#include "map.h"

/* A stack in parts, innermost first. A stack of user space has one part. */
struct parts {
	u32		nr;
	u32		id[MAX_PARTS];
	u64		ip[MAX_PARTS];	/* what an interrupt hit, before the part; or 0 */
};

/* Memory with code in the last boot, and where that is now. */
struct moved {
	u64		start;
	u64		end;
	u64		now;
};

/* The ids of a trace, and the stacks that were recorded by them, see ids.c. */
struct ids {
	struct users	*users;
	struct pool	by_id;		/* of {instance, id} to the index of a ref, plus 1 */
	struct ref	*refs;
	size_t		nr_refs;
	struct pool	contents;	/* frames */
	struct pool	objects;	/* of {instance, id of a file} to the number of an object */
	struct pool	recorded;	/* stacks, as parts or in full */
	struct moved	*moved;		/* NULL: the addresses are those of this boot */
	size_t		nr_moved;
};

bool define_id(struct ids *k, u32 in, bool user, u32 id, u32 content);
void define_file(struct ids *k, u32 in, u32 id, u32 object);
size_t count_differing(const struct ids *k);
void use_moved(struct ids *k, char *list);
u32 add_frames(struct ids *k, bool user, u64 *ips, u32 nr);
void use_map(struct ids *k, const struct map *m, u32 in);
u32 stack_of_parts(struct ids *k, u32 in, bool user, u64 epoch, const struct parts *parts);
u32 stack_of_frames(struct ids *k, bool user, u64 epoch, u64 *ips, u32 nr);
bool resolve_stack(struct ids *k, u32 stack, struct words *w);
void ids_free(struct ids *k);

#endif
