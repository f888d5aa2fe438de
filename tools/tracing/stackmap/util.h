/* SPDX-License-Identifier: GPL-2.0 */
/* What knows nothing of stacks: messages, memory, files, strings. */
#ifndef STACKMAP_UTIL_H
#define STACKMAP_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(sizeof(off_t) == 8, "-D_FILE_OFFSET_BITS=64 is missing");

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

typedef uint32_t u32;
typedef unsigned long long u64;

extern const char * const program;	/* of stackmap_dump.c or of the plugin: who complains */
extern bool quiet;

/* Macros, so that the compiler sees the formats. */
#define complain(fmt, ...)							\
do {										\
	fflush(stdout);								\
	fprintf(stderr, "%s: " fmt "\n", program, ##__VA_ARGS__);			\
} while (0)

/* For the return of a function that has failed. */
#define fail(...)								\
({										\
	complain(__VA_ARGS__);							\
	-EINVAL;								\
})

/* On stderr, so that pipes get only the output. */
#define note(...)								\
do {										\
	if (!quiet)								\
		complain(__VA_ARGS__);						\
} while (0)

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
	typeof(array) *a_ = &(array);						\
	typeof(nr) *n_ = &(nr);							\
										\
	*a_ = grow(*a_, *n_, 1, sizeof(**a_));					\
	&(*a_)[(*n_)++];							\
})

/* What a variable points to goes with the variable. @what: pointer or file */
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

/* Returns 0 if it is such a line. */
typedef int line_fn(void *to, char *line);

_Noreturn void usage(const char *why, const char *arg);
void *check_mem(void *p);
void *grow(void *array, size_t nr, size_t more, size_t size);
void sort_array(void *array, size_t nr, size_t size, int (*cmp)(const void *, const void *));
char *copy_string(const char *s);
char *quote(const char *s);
FILE *open_input(const char *path);
void note_input(const struct stat *st);
int open_output(const char *path);
char *slurp(const char *path, size_t *len);
int parse_lines(const char *name, const char *what, char *buf, size_t len, line_fn *parse,
		void *to);
int load_lines(const char *path, const char *what, char **buf, line_fn *parse, void *to);
FILE *open_in(const char *dir, const char *name, const char *mode);
bool is_directory(const char *path);
bool is_beside(const char *dir, const char *name);
u64 now_ms(void);

static inline int compare_u64(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

#endif
