// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <getopt.h>

#include "util.h"

void set_flag(const struct choice *c, char *arg)
{
	*(bool *)c->to = true;
}

void set_text(const struct choice *c, char *arg)
{
	*(const char **)c->to = arg;
}

#define MAX_NUMBER	10000000000ULL

/* 1 or more */
void set_number(const struct choice *c, char *arg)
{
	u64 n;
	char *end;

	n = strtoull(arg, &end, 10);
	if (!isdigit((unsigned char)*arg) || *end || !n || n > MAX_NUMBER)
		usage("not a valid number", arg);
	*(u64 *)c->to = n;
}

/* In nanoseconds. */
void set_seconds(const struct choice *c, char *arg)
{
	char *end;
	double n = strtod(arg, &end);

	if (end == arg || *end || !(n >= 0 && n <= 1e10))
		usage("not a number of seconds", arg);
	*(u64 *)c->to = n * 1e9;
}

void set_instance(const struct choice *c, char *arg)
{
	if (!*arg || *arg == '.' || strchr(arg, '/'))
		usage("not the name of an instance", arg);
	set_text(c, arg);
}

void print_help(const struct choice *c, char *arg)
{
	fputs(c->to, stdout);
	exit(fflush(stdout) ? 1 : 0);
}

/* @first_ends: the first word that is no option ends them */
void parse_choices(int argc, char **argv, struct choice *choices, size_t nr, bool first_ends)
{
	struct option *options = check_mem(calloc(nr + 1, sizeof(*options)));
	char *letters = check_mem(calloc(nr + 1, 3)), *p = letters;
	struct choice *c;
	size_t i;
	int opt;

	if (first_ends)
		*p++ = '+';
	for (i = 0; i < nr; i++) {
		c = &choices[i];
		if (c->val)
			p += sprintf(p, "%c%.*s", c->val, c->arg, "::");
		else
			c->val = FIRST_LONG + i;
		options[i] = (struct option) { c->name, c->arg, NULL, c->val };
	}
	while ((opt = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		/* getopt_long() has printed the error. */
		if (opt == '?')
			exit(2);
		for (c = choices; c->val != opt; c++)
			;
		c->set(c, optarg);
		c->given++;
	}
	free(options);
	free(letters);
}
