// SPDX-License-Identifier: GPL-2.0
/*
 * A program whose stack goes through code in FILES files that cost as much as a file can: 256 note segments
 * without a build id, the last one in a hole. Of every second file, each note begins in one page and ends in
 * the next one. close(1001) is called there CALLS times, each time with other files if there is a letter:
 * c(hanged, by their sizes) or n(ew). Prints the CPU time of the call that took longest, in ns.
 * Usage: costly CALLS [c|n]
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FILES	16
#define SEGMENTS	256
#define PAGE	4096
#define NOTES	(4 * PAGE)	/* two pages of zeroes behind the headers */
#define CODE	(6 * PAGE)
#define HOLE	(7 * PAGE)

/* As in userstack.c. */
static const char code[] = "\x55\x48\x89\xe5\x48\x89\xf8\x89\xf7\xff\xd0\x5d\xc3";
static int (*through[FILES])(int (*fn)(int i), int i);
static int fds[FILES];
static long longest;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void make(int i, int generation)
{
	static struct {
		Elf64_Ehdr ehdr;
		Elf64_Phdr phdr[SEGMENTS];
	} image;
	static const char zeroes[2 * PAGE];
	char name[40];

	snprintf(name, sizeof(name), "costly.%d.%d", i, generation);
	memset(&image, 0, sizeof(image));
	memcpy(image.ehdr.e_ident, ELFMAG, SELFMAG);
	image.ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	image.ehdr.e_type = ET_DYN;
	image.ehdr.e_phoff = sizeof(image.ehdr);
	image.ehdr.e_phnum = SEGMENTS;
	for (int j = 0; j < SEGMENTS; j++) {
		image.phdr[j].p_type = PT_NOTE;
		image.phdr[j].p_offset = i % 2 ? NOTES + PAGE - 8 : NOTES;
		image.phdr[j].p_filesz = i % 2 ? 17 : PAGE;
		if (j == SEGMENTS - 1)
			image.phdr[j].p_offset = HOLE;
	}
	fds[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0755);
	if (fds[i] < 0 || ftruncate(fds[i], HOLE + PAGE) ||
	    pwrite(fds[i], &image, sizeof(image), 0) != sizeof(image) ||
	    pwrite(fds[i], zeroes, sizeof(zeroes), NOTES) != sizeof(zeroes) ||
	    pwrite(fds[i], code, sizeof(code), CODE) != sizeof(code))
		die(name);
	through[i] = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fds[i], CODE);
	if (through[i] == MAP_FAILED)
		die(name);
}

static long cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Each frame but this one is left by a call from one of the files. */
static __attribute__((noinline)) int next(int i)
{
	long from, took;
	int ret;

	if (i < FILES) {
		ret = through[i](next, i + 1);
	} else {
		from = cpu_time();
		ret = syscall(SYS_close, 1001);
		took = cpu_time() - from;
		longest = took > longest ? took : longest;
	}
	asm volatile("" : "+r" (ret));
	return ret;
}

int main(int argc, char **argv)
{
	int calls = argc > 1 ? atoi(argv[1]) : 0;
	char how = argc > 2 ? *argv[2] : 0;

	for (int i = 0; i < FILES; i++)
		make(i, 0);
	for (int n = 1; n <= calls; n++) {
		next(0);
		for (int i = 0; i < FILES && how == 'c'; i++) {
			if (ftruncate(fds[i], HOLE + PAGE + n))
				die("ftruncate");
		}
		for (int i = 0; i < FILES && how == 'n'; i++) {
			munmap(through[i], PAGE);
			close(fds[i]);
			make(i, n);
		}
	}
	printf("%ld\n", longest);
	return 0;
}
