/* SPDX-License-Identifier: GPL-2.0 */
/* What a variable points to goes with the variable, as by the kernel's __free(). */
#ifndef STACKMAP_CLEANUP_H
#define STACKMAP_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* @what: pointer, file or dir */
#define __free(what)	__attribute__((cleanup(cleanup_##what)))

static inline void cleanup_pointer(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#endif
