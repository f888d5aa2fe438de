// SPDX-License-Identifier: GPL-2.0
/* The build id tells one kernel from another, even if both have _text at the same address. */
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "symbols.h"
#include "util.h"

bool same_id(const struct build_id *a, const struct build_id *b)
{
	return a->len && a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

char *build_id_text(const struct build_id *id)
{
	char *text = check_mem(calloc(MAX_BUILD_ID, 2 + 1));
	size_t i;

	for (i = 0; i < id->len; i++)
		sprintf(text + 2 * i, "%02x", id->bytes[i]);
	return text;
}

/* Of a file without a build id: tells whether it is the same, and was not changed. */
void file_stamp(const struct stat *st, char *stamp, size_t size)
{
	snprintf(stamp, size, "=%x:%x,%llu,%llu,%llu.%09lu", major(st->st_dev), minor(st->st_dev),
		 (u64)st->st_ino, (u64)st->st_size, (u64)st->st_mtim.tv_sec,
		 (unsigned long)st->st_mtim.tv_nsec);
}

/* Reads the file that "save" wrote. */
void read_build_id(FILE *f, struct build_id *id)
{
	while (id->len < MAX_BUILD_ID && fscanf(f, "%2hhx", &id->bytes[id->len]) == 1)
		id->len++;
}

void load_build_id(const char *path, struct build_id *id)
{
	FILE *f = fopen(path, "re");

	if (!f)
		return;
	read_build_id(f, id);
	fclose(f);
}

static u64 align4(u64 n)
{
	return (n + 3) & ~3ULL;
}

#define NOTE_BUILD_ID	3	/* NT_GNU_BUILD_ID */

/* An ELF note: sizes of name and value, a type, the name, the value, padded to 4 bytes each. */
void build_id_of_notes(const char *p, size_t len, struct build_id *id)
{
	const char *end = p + len;
	u64 name, value;
	u32 head[3];

	while ((size_t)(end - p) >= sizeof(head)) {
		memcpy(head, p, sizeof(head));
		p += sizeof(head);
		name = align4(head[0]);
		value = align4(head[1]);
		if (name + value > (u64)(end - p))
			return;
		if (head[2] == NOTE_BUILD_ID && head[0] == 4 && !memcmp(p, "GNU", 4) &&
		    head[1] <= MAX_BUILD_ID) {
			id->len = head[1];
			memcpy(id->bytes, p + name, id->len);
			return;
		}
		p += name + value;
	}
}

void running_build_id(struct build_id *id)
{
	static const char path[] = "/sys/kernel/notes";
	char *buf;
	size_t len;

	if (access(path, R_OK))
		return;
	buf = slurp_file(path, &len);
	if (buf)
		build_id_of_notes(buf, len, id);
	free(buf);
}

/* A missing build id is no error: some kernels and files have none. */
int check_build_id(const struct map *m, const struct build_id *id, const char *path,
		   const struct config *cfg)
{
	if (!id->len || !m->build_id.len || same_id(id, &m->build_id))
		return 0;
	if (cfg->force) {
		note("%s: has another build id than the kernel of %s", path, m->name);
		return 0;
	}
	complain("%s: has another build id than the kernel of %s (--force to ignore)",
		 path, m->name);
	return -EINVAL;
}
