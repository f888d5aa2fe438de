/* SPDX-License-Identifier: GPL-2.0 */
/* What main.c needs of profile.h, which wants the headers of libtracecmd. */
#ifndef STACKMAP_RECORDING_H
#define STACKMAP_RECORDING_H

#include "stackmap.h"
#include "util.h"

#ifdef HAVE_LIBTRACECMD
int make_profile(struct map *m, const char *path, bool script, const struct config *cfg);
void profile_free(struct map *m);
u64 count_events(const char *path);
#else
static inline int make_profile(struct map *m, const char *path, bool script,
			       const struct config *cfg)
{
	complain("%s: built without libtracecmd, which reads recordings", path);
	return -EOPNOTSUPP;
}

static inline void profile_free(struct map *m)
{
}

static inline u64 count_events(const char *path)
{
	return 0;
}
#endif

#endif
