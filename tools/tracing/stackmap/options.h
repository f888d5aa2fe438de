/* SPDX-License-Identifier: GPL-2.0 */
/* A table tells what each option takes and what it sets. */
#ifndef STACKMAP_OPTIONS_H
#define STACKMAP_OPTIONS_H

#include "stackmap.h"

enum { NO_ARG, ARG, MAY_ARG };	/* as getopt_long() has them */

#define FIRST_LONG	0x101	/* the value of the first option without a letter */

struct choice {
	const char	*name;
	int		val;		/* the letter */
	int		arg;
	void		(*set)(void *to, char *arg);
	void		*to;
	unsigned int	modes;		/* of main.c: those that use it */
	int		form;		/* that it chooses */
};

extern unsigned int given[FIRST_LONG + 32];	/* times that each option was given */

void set_flag(void *to, char *arg);
void set_text(void *to, char *arg);
void set_count(void *to, char *arg);
void set_positive(void *to, char *arg);
void set_seconds(void *to, char *arg);
void set_instance(void *to, char *arg);
void print_help(void *to, char *arg);
void parse_choices(int argc, char **argv, const struct choice *choices, size_t nr,
		   bool first_ends);

#endif
