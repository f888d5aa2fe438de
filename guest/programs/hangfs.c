// SPDX-License-Identifier: GPL-2.0
/*
 * A file system that never answers: FUSE with one file, "code", of two pages. The second one has the
 * code of userstack -m. After the Nth close() of the file, the server does nothing any more.
 * Usage: hangfs DIR N
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	4096
#define CODE_INO	2

/* As in userstack.c. */
static const char code[] = "\x55\x48\x89\xe5\x48\x89\xf8\x89\xf7\xff\xd0\x5d\xc3";
static char request[1 << 17] __attribute__((aligned(8)));
static int fuse, closes;

static void answer(int error, const void *data, size_t size)
{
	const struct fuse_in_header *in = (void *)request;
	static struct { struct fuse_out_header header; char data[PAGE]; } out;

	out.header.len = sizeof(out.header) + size;
	out.header.error = error;
	out.header.unique = in->unique;
	if (size)
		memcpy(out.data, data, size);
	if (write(fuse, &out, out.header.len) < 0)
		perror("answer");
}

static struct fuse_attr attr_of(unsigned long ino)
{
	struct fuse_attr attr = { .ino = ino, .nlink = 1, .blksize = PAGE };

	attr.mode = ino == CODE_INO ? S_IFREG | 0755 : S_IFDIR | 0755;
	attr.size = ino == CODE_INO ? 2 * PAGE : 0;
	return attr;
}

static void serve(const struct fuse_in_header *in, const void *arg)
{
	struct fuse_entry_out entry = { .nodeid = CODE_INO, .entry_valid = 1000, .attr_valid = 1000 };
	struct fuse_init_out init = { .major = 7, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = PAGE };
	struct fuse_attr_out attr = { .attr_valid = 1000, .attr = attr_of(in->nodeid) };
	const struct fuse_read_in *read = arg;
	/* The page stays in memory. */
	struct fuse_open_out open = { .open_flags = FOPEN_KEEP_CACHE };
	char data[PAGE] = { };

	switch (in->opcode) {
	case FUSE_INIT:
		/* No read-ahead, which would bring the first page. */
		answer(0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		entry.attr = attr_of(CODE_INO);
		answer(strcmp(arg, "code") ? -ENOENT : 0, &entry, strcmp(arg, "code") ? 0 : sizeof(entry));
		break;
	case FUSE_GETATTR:
		answer(0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		answer(0, &open, sizeof(open));
		break;
	case FUSE_READ:
		if (read->offset == PAGE)
			memcpy(data, code, sizeof(code));
		printf("page %d\n", (int)read->offset / PAGE);
		fflush(stdout);
		answer(0, data, read->size < PAGE ? read->size : PAGE);
		break;
	case FUSE_FLUSH:
		answer(0, NULL, 0);
		if (--closes)
			break;
		puts("hangs");
		fflush(stdout);
		while (1)
			pause();
	default:
		answer(-ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	char options[80];

	fuse = open("/dev/fuse", O_RDWR);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (argc != 3 || fuse < 0 || mount("hangfs", argv[1], "fuse", 0, options)) {
		perror("hangfs");
		return 1;
	}
	closes = atoi(argv[2]);
	while (read(fuse, request, sizeof(request)) > 0)
		serve((void *)request, request + sizeof(struct fuse_in_header));
	return 1;
}
