// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <getopt.h>

#include "options.h"

#define FIRST_LONG	0x100	/* the value of the first option without a letter */
#define MAX_CHOICES	64	/* of a command */
#define HELP_COLUMN	25

void set_flag(const struct choice *c, char *arg)
{
	*(bool *)c->to = true;
}

void set_text(const struct choice *c, char *arg)
{
	*(const char **)c->to = arg;
}

/* 1 or more */
static u64 parse_number(const char *arg, u64 max)
{
	char *end;
	u64 n = strtoull(arg, &end, 10);

	if (!isdigit((unsigned char)*arg) || *end || !n || n > max)
		usage("not a valid number", arg);
	return n;
}

void set_number(const struct choice *c, char *arg)
{
	*(u64 *)c->to = parse_number(arg, 10000000000ULL);
}

void set_weight_number(const struct choice *c, char *arg)
{
	*(u64 *)c->to = parse_number(arg, INT64_MAX);
}

/* In nanoseconds. */
u64 parse_seconds(const char *text)
{
	char *end;
	double n = strtod(text, &end);

	if (end == text || *end || !(n >= 0 && n <= 1e10))
		usage("not a number of seconds", text);
	return n * 1e9;
}

void set_seconds(const struct choice *c, char *arg)
{
	*(u64 *)c->to = parse_seconds(arg);
}

/* Files of an instance are found by patterns. */
void set_instance(const struct choice *c, char *arg)
{
	if (!*arg || *arg == '.' || strpbrk(arg, "/*?[]{}\\"))
		usage("not the name of an instance", arg);
	set_text(c, arg);
}

void refuse(bool bad, const struct choice *c, const char *why)
{
	if (bad)
		usage(format("--%s: %s", c->name, why), NULL);
}

/* An option of another command, or of before there were commands. */
void refuse_choice(const struct choice *c, char *arg)
{
	refuse(true, c, c->to);
}

static bool wants_help;

struct choice common_choices[] = {
	{ "quiet", 'q', NULL, set_flag, &quiet, "print no notes on stderr, only errors" },
	{ "help", 'h', NULL, set_flag, &wants_help, "print this text" },
	{}
};

/* Lines behind the first one have the same column. */
static void print_choice(const struct choice *c)
{
	char *left __free(pointer) = NULL, letter[] = "    ";
	const char *line = c->help;
	int len;

	if (c->letter)
		snprintf(letter, sizeof(letter), "-%c, ", c->letter);
	left = format("  %s--%s%s%s", letter, c->name, c->arg && *c->arg != '[' ? " " : "",
		      c->arg ? c->arg : "");
	printf("%-*s", HELP_COLUMN, left);
	if (strlen(left) > HELP_COLUMN - 2)
		printf("\n%*s", HELP_COLUMN, "");
	for (; *line; line += len + !!line[len]) {
		len = strcspn(line, "\n");
		printf("%*s%.*s\n", line == c->help ? 0 : HELP_COLUMN, "", len, line);
	}
}

static _Noreturn void print_help(const struct command *cmd)
{
	const struct choice *c;
	const struct group *g;

	printf("Usage: %s %s %s\n\n%s", program, cmd->name, cmd->args, cmd->text);
	for (g = cmd->groups; g->choices; g++) {
		if (*g->title)
			printf("\n%s:\n", g->title);
		for (c = g->choices; c->name; c++) {
			if (c->help)
				print_choice(c);
		}
	}
	printf("\n%s", cmd->examples);
	if (!fflush(stdout) && !ferror(stdout))
		exit(0);
	complain("stdout: %s", strerror(errno));
	exit(1);
}

/* As getopt_long() has it. */
static int takes(const struct choice *c)
{
	return !c->arg ? no_argument : *c->arg == '[' ? optional_argument : required_argument;
}

/* @first: of the options. Returns the index of the first argument. */
int parse_choices(const struct command *cmd, int argc, char **argv, int first)
{
	char letters[3 * MAX_CHOICES + 2] = "", *p = letters;
	struct option options[MAX_CHOICES + 1] = {};
	struct choice *all[MAX_CHOICES], *c;
	const struct group *g;
	int opt, i, nr = 0;

	if (cmd->ends_at_word)
		*p++ = '+';
	for (g = cmd->groups; g->choices; g++) {
		for (c = g->choices; c->name; c++) {
			opt = c->letter ? c->letter : FIRST_LONG + nr;
			if (c->letter)
				p += sprintf(p, "%c%.*s", c->letter, takes(c), "::");
			options[nr] = (struct option) { c->name, takes(c), NULL, opt };
			all[nr++] = c;
		}
	}
	optind = first;
	while ((opt = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		/* getopt_long() has printed the error. */
		if (opt == '?')
			exit(2);
		for (i = 0; options[i].val != opt; i++)
			;
		c = all[i];
		refuse(c->given && c->arg && !c->repeatable, c, "given twice");
		c->set(c, optarg);
		c->given = true;
		if (wants_help)
			print_help(cmd);
	}
	return optind;
}
