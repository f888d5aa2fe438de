// SPDX-License-Identifier: GPL-2.0
#include <sys/stat.h>

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

/* The sum of a large file is 0. */
static int sum_file(const char *dir, const char *name, u32 *crc, u64 *size)
{
	char *path = format("%s/%s", dir, name), buf[1 << 16];
	FILE *f = fopen(path, "re");
	struct stat st;
	int ret = 0;
	size_t n;

	*crc = 0;
	if (!f || fstat(fileno(f), &st))
		ret = -errno;
	*size = ret ? 0 : st.st_size;
	while (!ret && *size <= MAX_CHECKED && (n = fread(buf, 1, sizeof(buf), f)))
		*crc = crc32(buf, n, *crc);
	if (!ret && ferror(f))
		ret = -EIO;
	if (ret)
		complain("%s: %s", path, strerror(-ret));
	if (f)
		fclose(f);
	free(path);
	return ret;
}

/* Of those files that are there. */
int write_checksums(const char *dir, const char * const *names, size_t nr)
{
	char *path = format("%s/checksums", dir), *file;
	FILE *f = fopen(path, "we");
	int ret = f ? 0 : -errno;
	struct stat st;
	u64 size;
	size_t i;
	u32 crc;

	for (i = 0; !ret && i < nr; i++) {
		file = format("%s/%s", dir, names[i]);
		if (!stat(file, &st)) {
			ret = sum_file(dir, names[i], &crc, &size);
			fprintf(f, "%08x %llu %s\n", crc, size, names[i]);
		}
		free(file);
	}
	if (f && fclose(f) && !ret)
		ret = -errno;
	if (ret)
		complain("%s: %s", path, strerror(-ret));
	free(path);
	return ret;
}

static int check_line(const char *dir, const char *line)
{
	u32 crc, own_crc;
	u64 size, own_size;
	char name[32];
	int ret;

	if (sscanf(line, "%8x %llu %31[a-z._0-9]", &crc, &size, name) != 3) {
		complain("%s/checksums: not a line of it: %.60s", dir, line);
		return -EINVAL;
	}
	ret = sum_file(dir, name, &own_crc, &own_size);
	if (!ret && own_size != size)
		complain("%s/%s: has %llu bytes, and had %llu when it was saved", dir, name,
			 own_size, size);
	else if (!ret && own_crc != crc)
		complain("%s/%s: is not what was saved", dir, name);
	return ret || own_size != size || own_crc != crc ? -EINVAL : 0;
}

/* A directory may have no checksums. */
int check_directory(const char *dir)
{
	char *path = format("%s/checksums", dir), line[256];
	FILE *f = fopen(path, "re");
	int ret = 0;

	while (f && !ret && fgets(line, sizeof(line), f))
		ret = check_line(dir, line);
	if (f)
		fclose(f);
	free(path);
	return ret;
}
