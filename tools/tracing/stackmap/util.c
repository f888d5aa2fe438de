// SPDX-License-Identifier: GPL-2.0
/* Messages, memory, files, options. */
#include <ctype.h>
#include <getopt.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

bool quiet;

_Noreturn void usage(const char *why, const char *arg)
{
	complain("%s%s%s (see --help)", why, arg ? ": " : "", arg ? arg : "");
	exit(2);
}

void *check_mem(void *p)
{
	if (!p) {
		complain("out of memory");
		exit(1);
	}
	return p;
}

/* The elements that there is room for, if there are so many. */
static size_t room_of(size_t nr)
{
	return nr <= 64 ? 64 : (UINT64_MAX >> __builtin_clzll(nr - 1)) + 1;
}

/* Makes room for @more elements. An overflow counts as out of memory. */
void *grow(void *array, size_t nr, size_t more, size_t size)
{
	size_t room = room_of(nr + more);

	if (array && room == room_of(nr))
		return array;
	return check_mem(room > SIZE_MAX / 2 / size ? NULL : realloc(array, room * size));
}

/* qsort() may not be given the NULL of an empty array. */
void sort_array(void *array, size_t nr, size_t size, int (*cmp)(const void *, const void *))
{
	if (nr)
		qsort(array, nr, size, cmp);
}

char *copy_string(const char *s)
{
	return check_mem(strdup(s));
}

/* "-" is stdin. */
FILE *open_input(const char *path)
{
	return strcmp(path, "-") ? fopen(path, "re") : stdin;
}

#define CHUNK	0x10000

/* Returns all of a file with a NUL behind it; NULL and errno if it cannot be read. */
char *slurp(const char *path, size_t *len)
{
	FILE *f = open_input(path);
	size_t n = 0, got;
	char *buf = NULL;

	if (!f)
		return NULL;
	do {
		buf = grow(buf, n, CHUNK + 1, 1);
		got = fread(buf + n, 1, CHUNK, f);
		n += got;
	} while (got);
	buf[n] = '\0';
	*len = n;
	if (ferror(f)) {
		free(buf);
		buf = NULL;
	}
	if (f != stdin)
		fclose(f);
	return buf;
}

/* The kernel ends each line, so a copy without a newline at its end was cut off. */
int parse_lines(const char *name, const char *what, char *buf, size_t len, line_fn *parse, void *to)
{
	char *line, *end;

	if (!len)
		return fail("%s: empty", name);
	if (buf[len - 1] != '\n')
		return fail("%s: byte %zu: cut off in a line", name, len);
	for (line = buf; line < buf + len; line = end + 1) {
		end = memchr(line, '\n', buf + len - line);
		*end = '\0';
		if (line + strlen(line) != end || parse(to, line))
			return fail("%s: byte %td: not a line of %s", name, line - buf, what);
	}
	return 0;
}

/* The caller frees @buf, into which the parsed lines may point. */
int load_lines(const char *path, const char *what, char **buf, line_fn *parse, void *to)
{
	size_t len;

	*buf = slurp(path, &len);
	return *buf ? parse_lines(path, what, *buf, len, parse, to) :
		      fail("%s: %s", path, strerror(errno));
}

FILE *open_in(const char *dir, const char *name, const char *mode)
{
	char *path __free(pointer) = format("%s/%s", dir, name);

	return fopen(path, mode);
}

bool is_beside(const char *dir, const char *name)
{
	char *path __free(pointer) = format("%s/%s", dir, name);

	return !access(path, F_OK);
}

u64 now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ULL + t.tv_nsec / 1000000;
}

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
	char *end;
	u64 n = strtoull(arg, &end, 10);

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

/* Files of an instance are found by patterns. */
void set_instance(const struct choice *c, char *arg)
{
	if (!*arg || *arg == '.' || strpbrk(arg, "/*?[]{}\\"))
		usage("not the name of an instance", arg);
	set_text(c, arg);
}

void print_help(const struct choice *c, char *arg)
{
	fputs(c->to, stdout);
	exit(fflush(stdout) ? 1 : 0);
}

/* @command: the options come behind it, and end with the first word that is none */
void parse_choices(int argc, char **argv, struct choice *choices, size_t nr, bool command)
{
	struct option *options = check_mem(calloc(nr + 1, sizeof(*options)));
	char *letters = check_mem(calloc(nr + 1, 3)), *p = letters;
	struct choice *c;
	size_t i;
	int opt;

	if (command) {
		optind = 2;
		*p++ = '+';
	}
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
