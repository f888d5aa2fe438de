/* SPDX-License-Identifier: GPL-2.0 */
/* Messages, options, memory, files, strings. */
#ifndef STACKMAP_UTIL_H
#define STACKMAP_UTIL_H

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "stackmap.h"

extern const char * const program;	/* of main.c or of the plugin: who complains */
extern bool quiet;

/* Macros, so that the compiler sees the formats. */
#define complain(fmt, ...)							\
do {										\
	fflush(stdout);								\
	fprintf(stderr, "%s: " fmt "\n", program, ##__VA_ARGS__);			\
} while (0)

/* On stderr, so that pipes get only the output. */
#define note(...)								\
do {										\
	if (!quiet)								\
		complain(__VA_ARGS__);						\
} while (0)

enum { EXIT_USAGE = 2 };

/* An allocated string. */
#define format(...)								\
({										\
	char *s_;								\
	int ret_ = asprintf(&s_, __VA_ARGS__);					\
										\
	(char *)check_mem(ret_ < 0 ? NULL : s_);				\
})

/* The place of one more element of an array. */
#define APPEND(array, nr)							\
({										\
	(array) = grow(array, nr, 1, sizeof(*(array)));				\
	&(array)[(nr)++];							\
})

/* What a variable points to goes with the variable. @what: pointer, file or dir */
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

/* Returns 0 if it is such a line. */
typedef int line_fn(void *to, char *line);

/* util.c */
_Noreturn void usage(const char *why, const char *arg);
u64 parse_number(const char *s, u64 max, int base);
_Noreturn void print_and_exit(const char *text);
void *check_mem(void *p);
void *grow(void *array, size_t nr, size_t more, size_t size);
void sort_array(void *array, size_t nr, size_t size, int (*cmp)(const void *, const void *));
char *copy_string(const char *s);
FILE *open_input(const char *path);
char *slurp(const char *path, size_t *len);
int parse_lines(const char *name, const char *what, char *buf, size_t len, line_fn *parse,
		void *to);
int load_lines(const char *path, const char *what, char **buf, line_fn *parse, void *to);
u64 now_ms(void);

#endif
