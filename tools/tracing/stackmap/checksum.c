// SPDX-License-Identifier: GPL-2.0
#include <sys/stat.h>
#include <unistd.h>

#include "checksum.h"
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

/* The sum of a large file is 0. Returns 0 or an error. */
static int sum_file(const char *path, u32 *crc, u64 *size)
{
	char *buf __free(pointer) = NULL;
	struct stat st;
	size_t len;

	if (stat(path, &st))
		return -errno;
	*crc = 0;
	*size = st.st_size;
	if (*size > MAX_CHECKED)
		return 0;
	buf = slurp(path, &len);
	if (buf)
		*crc = crc32(buf, len, 0);
	return buf ? 0 : -errno;
}

/* Of those files that are there. */
int write_checksums(const char *dir, const char * const *names, size_t nr)
{
	char *path __free(pointer) = format("%s/checksums", dir);
	FILE *f = fopen(path, "we");
	int ret = f ? 0 : -errno;
	u64 size;
	size_t i;
	u32 crc;

	for (i = 0; !ret && i < nr; i++) {
		char *file __free(pointer) = format("%s/%s", dir, names[i]);

		ret = sum_file(file, &crc, &size);
		if (!ret)
			fprintf(f, "%08x %llu %s\n", crc, size, names[i]);
		else if (ret == -ENOENT)
			ret = 0;
	}
	if (f && fclose(f) && !ret)
		ret = -errno;
	if (ret)
		complain("%s: %s", path, strerror(-ret));
	return ret;
}

struct check {
	const char	*dir;
	bool		bad;
};

static int check_line(void *check, char *line)
{
	char *path __free(pointer) = NULL;
	struct check *c = check;
	u64 size, own_size;
	u32 crc, own_crc;
	char name[32];
	int ret;

	if (sscanf(line, "%8x %llu %31[a-z._0-9]", &crc, &size, name) != 3)
		return -EINVAL;
	path = format("%s/%s", c->dir, name);
	ret = sum_file(path, &own_crc, &own_size);
	c->bad |= ret || own_size != size || own_crc != crc;
	if (ret)
		complain("%s: %s", path, strerror(-ret));
	else if (own_size != size)
		complain("%s: has %llu bytes, and had %llu when it was saved", path, own_size,
			 size);
	else if (own_crc != crc)
		complain("%s: is not what was saved", path);
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
