/* SPDX-License-Identifier: GPL-2.0 */
/* Commands, and the options of each: a table tells what they take and set, and what --help says. */
#ifndef STACKMAP_OPTIONS_H
#define STACKMAP_OPTIONS_H

#include "util.h"

struct choice {
	const char	*name;
	int		letter;		/* 0: none */
	const char	*arg;		/* NULL: it takes none; "[=HOW]": it may be missing */
	void		(*set)(const struct choice *c, char *arg);
	void		*to;
	const char	*help;		/* a line, or several; NULL: it is not in the help */
	bool		repeatable;
	bool		given;
};

/* Options that several commands have are one group. The last choice has no name. */
struct group {
	const char	*title;		/* "": as before */
	struct choice	*choices;
};

#define MAX_GROUPS	16

struct command {
	const char	*name;
	const char	*args;
	const char	*summary;	/* a line in the list of commands */
	const char	*text;		/* what it does */
	struct group	groups[MAX_GROUPS];
	const char	*examples;
	bool		ends_at_word;	/* what follows that is another program's */
	/* With the arguments; returns the status. */
	int		(*run)(const struct command *cmd, int argc, char **argv);
};

void set_flag(const struct choice *c, char *arg);
void set_text(const struct choice *c, char *arg);
void set_number(const struct choice *c, char *arg);
void set_weight_number(const struct choice *c, char *arg);
u64 parse_seconds(const char *text);
void set_seconds(const struct choice *c, char *arg);
void set_instance(const struct choice *c, char *arg);
void refuse(bool bad, const struct choice *c, const char *why);
void refuse_choice(const struct choice *c, char *arg);
int parse_choices(const struct command *cmd, int argc, char **argv, int first);

#define REFUSED(name, letter, why)	{ name, letter, "[=]", refuse_choice, (char *)why }

extern struct choice common_choices[];	/* --quiet and --help */

#endif
