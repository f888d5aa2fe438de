// SPDX-License-Identifier: GPL-2.0
/*
 * Does one kind of operation again and again, in batches. Tracing is on during the batches only, and the buffer is
 * empty before each. Prints nanoseconds and entries in the buffer for each operation, the mean of the middle half of
 * the batches. What the last batch has left in the buffer stays there.
 * Usage: events fault            touch a page that is not there
 *        events close            close(-1)
 *        events switch           a byte goes to another process, and comes back
 *        events open FILE        open and close the file
 *        events write FILE       write the next page of a file that was empty
 *        events sendfile FILE    the same, by sendfile() from another file
 *        events timers           a timer expires, while read() fills memory with zeroes
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define OPS		128	/* in a batch */
#define BATCHES		32
#define WARM_UP		4	/* batches that do not count */
#define PAGE		4096
#define TRACING		"/sys/kernel/tracing/"
#define TIMERS_START	2000000	/* ns, time to arm them */
#define TIMERS_APART	50000
#define READ_SIZE	(16 * PAGE)

static const char *name;
static char *mem;
static int fd, source, to[2], fro[2], timers[OPS];
static long reads;

static __attribute__((noreturn)) void die(const char *what)
{
	perror(what);
	exit(1);
}

static void check(int good, const char *what)
{
	if (!good)
		die(what);
}

static long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static void set_mem(void)
{
	mem = mmap(NULL, OPS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(mem != MAP_FAILED, "mmap");
	madvise(mem, OPS * PAGE, MADV_NOHUGEPAGE);
}

static void drop_pages(void)
{
	check(!madvise(mem, OPS * PAGE, MADV_DONTNEED), "madvise");
}

static void fault(void)
{
	for (int i = 0; i < OPS; i++)
		((volatile char *)mem)[i * PAGE] = 1;
}

static void close_nothing(void)
{
	for (int i = 0; i < OPS; i++)
		close(-1);
}

static void set_switch(void)
{
	char c;

	check(!pipe(to) && !pipe(fro), "pipe");
	switch (fork()) {
	case -1:
		die("fork");
	case 0:
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to[1]);
		while (read(to[0], &c, 1) == 1 && write(fro[1], &c, 1) == 1)
			;
		_exit(0);
	}
}

static void to_and_fro(void)
{
	char c = 0;

	for (int i = 0; i < OPS; i++)
		check(write(to[1], &c, 1) == 1 && read(fro[0], &c, 1) == 1, "pipe");
}

static void set_file(void)
{
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	check(fd >= 0, name);
}

static void open_file(void)
{
	for (int i = 0; i < OPS; i++) {
		int n = open(name, O_RDONLY);

		check(n >= 0, name);
		close(n);
	}
}

static void set_write(void)
{
	set_mem();
	memset(mem, 1, OPS * PAGE);
	set_file();
}

static void empty_file(void)
{
	check(!ftruncate(fd, 0) && !lseek(fd, 0, SEEK_SET), name);
}

static void write_pages(void)
{
	for (int i = 0; i < OPS; i++)
		check(write(fd, mem, PAGE) == PAGE, "write");
}

static void set_sendfile(void)
{
	set_write();
	source = memfd_create("source", 0);
	check(write(source, mem, OPS * PAGE) == OPS * PAGE, "source");
}

static void send_pages(void)
{
	off_t offset = 0;

	while (offset < OPS * PAGE)
		check(sendfile(fd, source, &offset, OPS * PAGE - offset) > 0, "sendfile");
}

static void read_zeroes(void)
{
	for (long i = 0; i < reads; i++)
		check(read(source, mem, READ_SIZE) == READ_SIZE, "read");
}

/* The reads must take longer than the timers. A power of 2 is the same each time. */
static void set_timers(void)
{
	long begin;

	set_mem();
	source = open("/dev/zero", O_RDONLY);
	for (int i = 0; i < OPS; i++) {
		timers[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
		check(timers[i] >= 0, "timerfd_create");
	}
	reads = 1;
	do {
		reads *= 2;
		begin = now();
		read_zeroes();
	} while (now() - begin < TIMERS_START + OPS * TIMERS_APART);
}

static void arm_timers(void)
{
	long at = now() + TIMERS_START;

	for (int i = 0; i < OPS; i++, at += TIMERS_APART) {
		struct itimerspec when = { .it_value = { at / 1000000000, at % 1000000000 } };

		check(!timerfd_settime(timers[i], TFD_TIMER_ABSTIME, &when, NULL), "timerfd_settime");
	}
}

static void while_timers_expire(void)
{
	unsigned long n;

	read_zeroes();
	for (int i = 0; i < OPS; i++)
		check(read(timers[i], &n, sizeof(n)) == sizeof(n), "a timer has not expired");
}

static void nothing(void) { }

static const struct kind {
	const char *name;
	void (*setup)(void);		/* once */
	void (*prepare)(void);		/* before each batch */
	void (*batch)(void);
} kinds[] = {
	{ "fault", set_mem, drop_pages, fault },
	{ "close", nothing, nothing, close_nothing },
	{ "switch", set_switch, nothing, to_and_fro },
	{ "open", set_file, nothing, open_file },
	{ "write", set_write, empty_file, write_pages },
	{ "sendfile", set_sendfile, empty_file, send_pages },
	{ "timers", set_timers, arm_timers, while_timers_expire },
};

static long entries(void)
{
	FILE *stats = fopen(TRACING "per_cpu/cpu0/stats", "r");
	long n, overrun;

	check(stats && fscanf(stats, "entries: %ld overrun: %ld", &n, &overrun) == 2, "stats");
	fclose(stats);
	return n + overrun;
}

static int compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

/* For one operation, without the batches that a tick or another task has made longer. */
static double middle(long *values)
{
	double sum = 0;

	qsort(values, BATCHES, sizeof(*values), compare);
	for (int i = BATCHES / 4; i < BATCHES * 3 / 4; i++)
		sum += values[i];
	return sum / (BATCHES / 2) / OPS;
}

int main(int argc, char **argv)
{
	long took[BATCHES], left[BATCHES];
	const struct kind *kind = kinds, *end = kinds + sizeof(kinds) / sizeof(kinds[0]);
	cpu_set_t cpu;
	int on;

	while (argc > 1 && kind < end && strcmp(kind->name, argv[1]))
		kind++;
	if (argc < 2 || kind == end)
		return 2;
	name = argv[2];
	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	check(!sched_setaffinity(0, sizeof(cpu), &cpu), "sched_setaffinity");
	on = open(TRACING "tracing_on", O_WRONLY);
	check(on >= 0 && write(on, "0", 1) == 1, "tracing_on");
	kind->setup();
	for (int i = -WARM_UP; i < BATCHES; i++) {
		int trace = open(TRACING "trace", O_WRONLY | O_TRUNC);
		long begin, ns;

		check(trace >= 0, "trace");
		close(trace);
		kind->prepare();
		check(write(on, "1", 1) == 1, "tracing_on");
		begin = now();
		kind->batch();
		ns = now() - begin;
		check(write(on, "0", 1) == 1, "tracing_on");
		if (i < 0)
			continue;
		took[i] = ns;
		left[i] = entries();
	}
	printf("%.2f %.3f\n", middle(took), middle(left));
	return 0;
}
