// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that sleep known times in known functions, each on one of two CPUs. It prints the functions and the
 * microseconds that all threads were in them without a CPU, as it measures them itself.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>

#define NR_THREADS	4

static long us[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static inline __attribute__((always_inline)) long now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000L + ts.tv_nsec / 1000;
}

/* How long this thread had no CPU. */
static inline __attribute__((always_inline)) long waited(void)
{
	return now(CLOCK_MONOTONIC) - now(CLOCK_THREAD_CPUTIME_ID);
}

/* libc's function has no frame. */
static inline __attribute__((always_inline)) long nap(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };
	long ret, start = waited();

	asm volatile("syscall" : "=a" (ret)
		     : "0" ((long)SYS_nanosleep), "D" (&ts), "S" (NULL) : "rcx", "r11", "memory");
	return waited() - start;
}

__attribute__((noinline)) static long doze(void)
{
	return nap(300);
}

__attribute__((noinline)) static long slumber(void)
{
	return nap(1000);
}

static void *work(void *arg)
{
	long short_us = 0, long_us = 0;
	cpu_set_t cpu;
	int i;

	CPU_ZERO(&cpu);
	CPU_SET((long)arg % 2, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	for (i = 0; i < 3; i++) {
		short_us += doze();
		long_us += slumber();
	}
	/* perf does not know what a thread did last. */
	nap(1);
	pthread_mutex_lock(&lock);
	us[0] += short_us;
	us[1] += long_us;
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	pthread_t threads[NR_THREADS];
	long i;

	for (i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("doze %ld\nslumber %ld\n", us[0], us[1]);
	return 0;
}
