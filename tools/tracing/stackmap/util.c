// SPDX-License-Identifier: GPL-2.0
/* Messages, memory, files. */
#include <ctype.h>
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

/* As a word of the shell. */
char *quote(const char *s)
{
	const char *end = s;
	char *buf = NULL;
	size_t len;
	FILE *f;

	while (isascii(*end) && (isalnum(*end) || (*end && strchr("+,-./:=@_%", *end))))
		end++;
	if (*s && *s != '-' && !*end)
		return copy_string(s);
	f = check_mem(open_memstream(&buf, &len));
	fputs(*s == '-' ? "./'" : "'", f);
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\'", f);
		putc(*s, f);
	}
	putc('\'', f);
	fclose(f);
	return check_mem(buf);
}

/* What has been opened to be read. */
static struct stat *inputs;
static size_t nr_inputs;

static bool is_input(const struct stat *st)
{
	size_t i;

	for (i = 0; i < nr_inputs; i++) {
		if (inputs[i].st_dev == st->st_dev && inputs[i].st_ino == st->st_ino)
			return true;
	}
	return false;
}

void note_input(const struct stat *st)
{
	if (S_ISREG(st->st_mode) && !is_input(st))
		*APPEND(inputs, nr_inputs) = *st;
}

/* The plugin of libtraceevent can be unloaded. */
static void __attribute__((destructor)) forget_inputs(void)
{
	free(inputs);
}

/* "-" is stdin. */
FILE *open_input(const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	struct stat st;

	if (f && !fstat(fileno(f), &st))
		note_input(&st);
	return f;
}

/* @path: NULL: stdout stays. It is emptied, so the inputs have to be open. */
int open_output(const char *path)
{
	struct stat st;

	if (path && !stat(path, &st) && is_input(&st))
		return fail("%s: cannot be the output, too", path);
	return path && !freopen(path, "w", stdout) ? fail("%s: %s", path, strerror(errno)) : 0;
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

bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
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
