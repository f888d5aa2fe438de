// SPDX-License-Identifier: GPL-2.0
/* The build id tells one kernel from another, even if both have _text at the same address. */
#include <ctype.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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

/* Returns what follows the hexadecimal digits. */
char *parse_build_id(char *s, struct build_id *id)
{
	char pair[3] = {};

	for (; id->len < MAX_BUILD_ID; s += 2) {
		if (!isxdigit((unsigned char)s[0]) || !isxdigit((unsigned char)s[1]))
			break;
		memcpy(pair, s, 2);
		id->bytes[id->len++] = strtoul(pair, NULL, 16);
	}
	return s;
}

/* The file that "save" wrote. */
void load_build_id(const char *path, struct build_id *id)
{
	char *buf __free(pointer) = NULL;
	size_t len;

	buf = slurp(path, &len);
	if (buf)
		parse_build_id(buf, id);
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
	char *buf __free(pointer) = NULL;
	size_t len;

	buf = slurp("/sys/kernel/notes", &len);
	if (buf)
		build_id_of_notes(buf, len, id);
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
