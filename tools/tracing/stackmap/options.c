// SPDX-License-Identifier: GPL-2.0
#include <getopt.h>

#include "util.h"

unsigned int given[FIRST_LONG + 32];

void set_flag(void *to, char *arg)
{
	*(bool *)to = true;
}

void set_text(void *to, char *arg)
{
	*(const char **)to = arg;
}

void set_count(void *to, char *arg)
{
	*(u64 *)to = parse_number(arg, UINT64_MAX, 10);
}

void set_positive(void *to, char *arg)
{
	*(u64 *)to = parse_number(arg, INT32_MAX, 10);
	if (!*(u64 *)to)
		usage("not a valid number", arg);
}

/* In nanoseconds. */
void set_seconds(void *to, char *arg)
{
	char *end;
	double n = strtod(arg, &end);

	if (end == arg || *end || !(n >= 0 && n <= 1e10))
		usage("not a number of seconds", arg);
	*(u64 *)to = n * 1e9;
}

void set_instance(void *to, char *arg)
{
	if (!*arg || *arg == '.' || strchr(arg, '/'))
		usage("not the name of an instance", arg);
	*(const char **)to = arg;
}

void print_help(void *to, char *arg)
{
	print_and_exit(to);
}

/* @first_ends: the first word that is no option ends them */
void parse_choices(int argc, char **argv, const struct choice *choices, size_t nr, bool first_ends)
{
	struct option *options = check_mem(calloc(nr + 1, sizeof(*options)));
	char *letters = check_mem(calloc(nr + 1, 3)), *p = letters;
	size_t i;
	int opt;

	if (first_ends)
		*p++ = '+';
	for (i = 0; i < nr; i++) {
		options[i] = (struct option) { choices[i].name, choices[i].arg, NULL,
					       choices[i].val };
		if (choices[i].val < FIRST_LONG)
			p += sprintf(p, "%c%.*s", choices[i].val, choices[i].arg, "::");
	}
	while ((opt = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		for (i = 0; i < nr && choices[i].val != opt; i++)
			;
		/* getopt_long() has printed the error. */
		if (i == nr)
			exit(EXIT_USAGE);
		if (choices[i].set)
			choices[i].set(choices[i].to, optarg);
		given[opt]++;
	}
	free(options);
	free(letters);
}
