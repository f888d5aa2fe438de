// SPDX-License-Identifier: GPL-2.0
/* Writes user_maps (see user.c): what the processes that are running have mapped, from /proc. */
#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pool.h"
#include "symbols.h"
#include "user.h"
#include "util.h"

#define HEADERS	4096

/*
 * The linker puts the note into the first page of an ELF file. It is found there for each word size,
 * and without elfutils, which test machines may lack.
 */
void read_file_id(const char *path, struct build_id *id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char buf[HEADERS];
	struct stat st;
	ssize_t len, at;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		file_stamp(&st, id->stamp, sizeof(id->stamp));
	len = read(fd, buf, sizeof(buf));
	if (len > SELFMAG && !memcmp(buf, ELFMAG, SELFMAG)) {
		for (at = 0; !id->len && at < len; at += 4)
			build_id_of_notes(buf + at, len - at, id);
	}
	close(fd);
}

/* @key: equal for mappings of the same file */
const struct build_id *file_id(struct scan *s, const char *key, const char *path)
{
	struct pooled *e = pool_at(&s->files, intern(&s->files, key));

	if (!e->ptr) {
		e->ptr = check_mem(calloc(1, sizeof(struct build_id)));
		read_file_id(path, e->ptr);
	}
	return e->ptr;
}

void write_mapping(FILE *out, u32 tgid, const struct mapping *map,
		   const struct build_id *id, const char *path)
{
	char *hex __free(pointer) = build_id_text(id);

	fprintf(out, "map %u %llx-%llx %llx %s", tgid, map->start, map->end, map->offset,
		*hex ? hex : *id->stamp ? id->stamp : "-");
	if (*path)
		fputc(' ', out);
	for (; *path; path++)
		*path == '\n' ? fputs("\\012", out) : fputc(*path, out);
	fputc('\n', out);
}

/* "55d0-55d2 r-xp 00001000 fe:01 1234     /usr/bin/cat". Functions are in executable mappings. */
static void scan_mapping(struct scan *s, u32 tgid, char *line)
{
	struct build_id none = {};
	const struct build_id *id = &none;
	struct mapping map = {};
	char perms[5], *path, *key;
	unsigned long inode;
	int dev, at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %4s %llx %n%*s %lu %n", &map.start, &map.end, perms,
		   &map.offset, &dev, &inode, &at) != 5 || !at || perms[2] != 'x')
		return;
	if (inode) {
		key = format("%.*s", at - dev, line + dev);
		path = format("/proc/%u/root%s", tgid, line + at);
		id = file_id(s, key, path);
		free(path);
		free(key);
	}
	write_mapping(s->out, tgid, &map, id, line + at);
}

static void scan_mappings(struct scan *s, u32 tgid)
{
	char *path __free(pointer) = format("/proc/%u/maps", tgid);
	FILE *f __free(file) = fopen(path, "re");
	char *line __free(pointer) = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0)
		scan_mapping(s, tgid, line);
}

void scan_processes(struct scan *s)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (isdigit((unsigned char)*e->d_name))
			scan_mappings(s, strtoul(e->d_name, NULL, 10));
	}
	if (dir)
		closedir(dir);
}

void write_users(FILE *f)
{
	struct scan s = { .out = f };

	scan_processes(&s);
	pool_free_all(&s.files);
}
