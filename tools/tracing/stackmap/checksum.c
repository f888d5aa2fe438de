// SPDX-License-Identifier: GPL-2.0
/*
 * The file "checksums" of a directory: a line for each file, with its CRC-32, its size and its
 * name. It tells if a file was cut off, damaged, or is of another recording.
 */
#include <sys/stat.h>

#include "util.h"

/* A recording may be large, and reading it finds most damage. So only its size is checked. */
#define MAX_CHECKED	(64 << 20)

/* @crc: of the bytes before, 0 at first. */
u32 crc32(const void *data, size_t len, u32 crc)
{
	/* For four bits. */
	static const u32 table[] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158,
		0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4,
		0xa00ae278, 0xbdbdf21c,
	};
	const unsigned char *p = data;

	for (crc = ~crc; len--; p++) {
		crc = table[(crc ^ *p) & 0xf] ^ crc >> 4;
		crc = table[(crc ^ *p >> 4) & 0xf] ^ crc >> 4;
	}
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

static int check_line(const char *dir, const char *line)
{
	char *own __free(pointer) = NULL;
	char name[32];

	if (sscanf(line, "%*x %*u %31[a-z._0-9]", name) != 1)
		return fail("%s/checksums: not such a line: %s", dir, line);
	own = sum_file(dir, name);
	if (own && !strcmp(own, line))
		return 0;
	return fail("%s/%s: is not what was saved: now %s, %s when it was saved", dir, name,
		    own ? own : strerror(errno), line);
}

/* A directory may have no checksums. */
int check_directory(const char *dir)
{
	FILE *f __free(file) = open_in(dir, "checksums", "re");
	char *line __free(pointer) = NULL;
	size_t room = 0;
	int ret = 0;

	while (f && getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		ret |= check_line(dir, line);
	}
	return ret;
}
