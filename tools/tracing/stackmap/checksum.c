// SPDX-License-Identifier: GPL-2.0
/*
 * The file "checksums" of a directory: a line for each file, with its CRC-32, its size and its
 * name. It tells if a file was cut off, damaged, or is of another recording.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

/* A recording may be large, and reading it finds most damage. So only its size is checked. */
#define MAX_CHECKED	(64 << 20)

static void make_table(u32 *table)
{
	u32 i;
	int bit;

	for (i = 0; i < 256; i++) {
		table[i] = i;
		for (bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
	}
}

/* @crc: of the bytes before, 0 at first. */
u32 crc32(const void *data, size_t len, u32 crc)
{
	const unsigned char *p = data;
	static u32 table[256];

	if (!table[1])
		make_table(table);
	for (crc = ~crc; len--; p++)
		crc = table[(crc ^ *p) & 0xff] ^ crc >> 8;
	return ~crc;
}

/* The line of a file; the sum of a large one is 0. NULL and errno if it cannot be read. */
char *sum_file(const char *dir, const char *name)
{
	char *path __free(pointer) = format("%s/%s", dir, name), *buf __free(pointer) = NULL;
	struct stat st;
	size_t len;

	if (stat(path, &st))
		return NULL;
	if (st.st_size > MAX_CHECKED)
		return format("%08x %llu %s", 0, (u64)st.st_size, name);
	buf = slurp(path, &len);
	return buf ? format("%08x %zu %s", crc32(buf, len, 0), len, name) : NULL;
}

struct check {
	const char	*dir;
	bool		bad;
};

static int check_line(void *check, char *line)
{
	char *own __free(pointer) = NULL;
	struct check *c = check;
	char name[32];

	if (sscanf(line, "%*x %*u %31[a-z._0-9]", name) != 1)
		return -EINVAL;
	own = sum_file(c->dir, name);
	if (own && !strcmp(own, line))
		return 0;
	if (own)
		complain("%s/%s: is not what was saved: now %s, %s when it was saved", c->dir, name,
			 own, line);
	else
		complain("%s/%s: %s", c->dir, name, strerror(errno));
	c->bad = true;
	return 0;
}

/* A directory may have no checksums. */
int check_directory(const char *dir)
{
	char *path __free(pointer) = format("%s/checksums", dir), *buf __free(pointer) = NULL;
	struct check c = { .dir = dir };

	if (access(path, F_OK))
		return 0;
	return load_lines(path, "checksums", &buf, check_line, &c) || c.bad ? -EINVAL : 0;
}
