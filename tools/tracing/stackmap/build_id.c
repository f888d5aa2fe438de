// SPDX-License-Identifier: GPL-2.0
/* The build id tells one kernel from another, even if both have _text at the same address. */
#include <ctype.h>
#include <elf.h>

#include "symbols.h"

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

/* Returns what follows the hexadecimal digits. */
char *parse_build_id(char *s, struct build_id *id)
{
	while (id->len < MAX_BUILD_ID && isxdigit((unsigned char)s[0]) &&
	       isxdigit((unsigned char)s[1]) && sscanf(s, "%2hhx", &id->bytes[id->len]) == 1) {
		id->len++;
		s += 2;
	}
	return s;
}

#define ALIGN_NOTE(n)	(((n) + 3ULL) & ~3ULL)

void build_id_of_notes(const char *p, size_t len, struct build_id *id)
{
	Elf32_Nhdr head;	/* that of 64 bits is the same */
	u64 value, end;

	for (; len >= sizeof(head); p += end, len -= end) {
		memcpy(&head, p, sizeof(head));
		value = sizeof(head) + ALIGN_NOTE(head.n_namesz);
		end = value + ALIGN_NOTE(head.n_descsz);
		if (end > len)
			return;
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
		    !memcmp(p + sizeof(head), "GNU", 4) && head.n_descsz <= MAX_BUILD_ID) {
			id->len = head.n_descsz;
			memcpy(id->bytes, p + value, id->len);
			return;
		}
	}
}

/* A missing build id is no error: some kernels and files have none. */
int check_build_id(const struct map *m, const struct build_id *id, const char *path,
		   const struct config *cfg)
{
	if (cfg->force || !id->len || !m->build_id.len || same_id(id, &m->build_id))
		return 0;
	return fail("%s: has another build id than the kernel of %s (--force to ignore)", path,
		    m->name);
}
