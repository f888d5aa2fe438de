// SPDX-License-Identifier: GPL-2.0
/* Writes user_maps (see user.c): what the processes that are running have mapped, from /proc. */
#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols.h"
#include "user.h"
#include "util.h"

#define HEADERS	4096

/*
 * The linker puts the note into the first page of an ELF file. It is found there for each word
 * size, and without elfutils, which test machines may lack.
 */
void read_file_id(const char *path, struct build_id *id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char buf[HEADERS];
	struct stat st;
	ssize_t len, at;

	if (fd < 0)
		return;
	len = fstat(fd, &st) || !S_ISREG(st.st_mode) ? 0 : read(fd, buf, sizeof(buf));
	if (len > SELFMAG && !memcmp(buf, ELFMAG, SELFMAG)) {
		for (at = 0; !id->len && at < len; at += 4)
			build_id_of_notes(buf + at, len - at, id);
	}
	close(fd);
}

void write_mapping(FILE *out, u32 tgid, const struct mapping *map,
		   const struct build_id *id, const char *path)
{
	char *hex __free(pointer) = build_id_text(id);

	fprintf(out, "map %u %llx-%llx %llx %s", tgid, map->start, map->end, map->offset,
		*hex ? hex : "-");
	if (*path)
		fputc(' ', out);
	for (; *path; path++)
		*path == '\n' ? fputs("\\012", out) : fputc(*path, out);
	fputc('\n', out);
}

/*
 * "55d0-55d2 r-xp 00001000 fe:01 1234     /usr/bin/cat". Functions are in executable mappings.
 * @files: of {device, inode} to a build id, as many processes map the same files
 */
static void scan_mapping(FILE *out, struct pool *files, u32 tgid, char *line)
{
	char perms[5], *path __free(pointer) = NULL;
	const struct build_id none = {};
	struct build_id *id = NULL;
	struct mapping map = {};
	size_t known = files->nr;
	u32 major, minor;
	int at = 0;
	u64 inode;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &map.start, &map.end, perms,
		   &map.offset, &major, &minor, &inode, &at) != 7 || !at || perms[2] != 'x')
		return;
	path = format("/proc/%u/root%s", tgid, line + at);
	if (inode)
		id = pool_get(files, (u64)major << 32 | minor, inode, sizeof(*id));
	if (files->nr > known)
		read_file_id(path, id);
	write_mapping(out, tgid, &map, id ? id : &none, line + at);
}

static void scan_mappings(FILE *out, struct pool *files, u32 tgid)
{
	char *path __free(pointer) = format("/proc/%u/maps", tgid);
	FILE *f __free(file) = fopen(path, "re");
	char *line __free(pointer) = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0)
		scan_mapping(out, files, tgid, line);
}

void scan_processes(FILE *out)
{
	DIR *dir = opendir("/proc");
	struct pool files = {};
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (isdigit((unsigned char)*e->d_name))
			scan_mappings(out, &files, strtoul(e->d_name, NULL, 10));
	}
	if (dir)
		closedir(dir);
	pool_free_all(&files);
}

/* Returns the text. */
char *scan_users(void)
{
	size_t len;
	char *text;
	FILE *out;

	out = check_mem(open_memstream(&text, &len));
	scan_processes(out);
	fclose(out);
	return check_mem(text);
}
