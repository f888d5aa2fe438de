// SPDX-License-Identifier: GPL-2.0
/*
 * A program that knows what it does, in functions whose names tell that. It prints the number that a profile
 * must show.
 * Usage:
 *   known where     where malloc() and free() are in its file
 *   known heap      leaky() allocates 1000 times and keeps 300, tidy() frees all
 *   known read N    reads() reads N times from /dev/zero
 *   known pipe N    takes() reads N times from a pipe that is written 50 ms later; microseconds
 *   known vfork N   spawns() waits N times for a child, in state D; microseconds
 *   known wake N    waits() sleeps N times until another thread is in wakes(); microseconds
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define noinline __attribute__((noinline))
#define inlined static inline __attribute__((always_inline))

static void *kept[1000];
static int word, pipes[2];
static long rounds;

inlined long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000L + ts.tv_nsec / 1000;
}

/* libc's functions have no frame, nor has a function that calls nothing, but for its address here. */
inlined long call(long nr, long a, long b, long c, long d)
{
	register long d_in_r10 asm("r10") = d;
	long ret;

	asm volatile("syscall" : "=a" (ret)
		     : "0" (nr), "D" (a), "S" (b), "d" (c), "r" (d_in_r10),
		       "r" (__builtin_frame_address(0))
		     : "rcx", "r11", "memory");
	return ret;
}

inlined void nap(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	call(SYS_nanosleep, (long)&ts, 0, 0, 0);
}

noinline static void leaky(void)
{
	int i;

	for (i = 0; i < 1000; i++)
		kept[i] = malloc(100 + i);
	for (i = 300; i < 1000; i++)
		free(kept[i]);
}

noinline static void tidy(void)
{
	int i;

	for (i = 0; i < 500; i++)
		kept[500 + i] = malloc(100);
	for (i = 0; i < 500; i++)
		free(kept[500 + i]);
}

noinline static void reads(int fd)
{
	long i;
	char c;

	for (i = 0; i < rounds; i++)
		call(SYS_read, fd, (long)&c, 1, 0);
}

noinline static void takes(void)
{
	char c;

	call(SYS_read, pipes[0], (long)&c, 1, 0);
}

noinline static void waits(void)
{
	while (!__atomic_exchange_n(&word, 0, __ATOMIC_SEQ_CST))
		call(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 0, 0);
}

noinline static void wakes(void)
{
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	call(SYS_futex, (long)&word, FUTEX_WAKE_PRIVATE, 1, 0);
}

noinline static void spawns(void)
{
	pid_t pid = vfork();

	if (!pid) {
		nap(50);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void *helper(void *is_pipe)
{
	long i;

	prctl(PR_SET_NAME, "helper");
	for (i = 0; i < rounds; i++) {
		nap(50);
		if (!is_pipe)
			wakes();
		else if (write(pipes[1], "", 1) != 1)
			abort();
	}
	return NULL;
}

static long timed(void (*fn)(void))
{
	long i, start, us = 0;

	for (i = 0; i < rounds; i++) {
		start = now();
		fn();
		us += now() - start;
	}
	return us;
}

static long with_helper(void (*fn)(void), int is_pipe)
{
	pthread_t thread;
	long us;

	if (pipe(pipes) || pthread_create(&thread, NULL, helper, is_pipe ? pipes : NULL))
		exit(1);
	us = timed(fn);
	pthread_join(thread, NULL);
	return us;
}

int main(int argc, char **argv)
{
	extern char __executable_start[];
	const char *what = argc > 1 ? argv[1] : "";

	rounds = argc > 2 ? atol(argv[2]) : 0;
	if (!strcmp(what, "where")) {
		printf("0x%lx 0x%lx\n", (char *)malloc - __executable_start,
		       (char *)free - __executable_start);
	} else if (!strcmp(what, "heap")) {
		leaky();
		tidy();
		printf("300\n");
	} else if (!strcmp(what, "read")) {
		reads(open("/dev/zero", O_RDONLY));
		printf("%ld\n", rounds);
	} else if (!strcmp(what, "pipe")) {
		printf("%ld\n", with_helper(takes, 1));
	} else if (!strcmp(what, "wake")) {
		printf("%ld\n", with_helper(waits, 0));
	} else if (!strcmp(what, "vfork")) {
		printf("%ld\n", timed(spawns));
	}
	return 0;
}
