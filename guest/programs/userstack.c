// SPDX-License-Identifier: GPL-2.0
/*
 * A program whose user stacks are known. For each depth it calls down so many levels, each a function
 * of its own, and calls close(1000 + depth) there. It prints the depth and the addresses that an unwinder
 * finds, innermost first. It has frame pointers, and a frame pointer of 0 at the outer end. On s390x it
 * has back chains (-mbackchain).
 * Usage: userstack [options] depth...
 *   -z       with a return address of 0 at the outer end, and frames behind that
 *   -l       close() again and again, without a word, until it is killed
 *   -n N     N times; prints depth and nanoseconds for each close()
 * And with -DFILES, for x86_64:
 *   -f       print the file and the offset in it, as /proc/self/maps has it, where there is one
 *   -r WORD  as -z, with this return address; nothing is printed of what is behind it
 *   -m FILE  through code that is mapped from FILE, which is written; anon, memfd: from such memory
 *   -o N     at this offset of FILE
 *   -k       FILE has the code, and is not written
 *   -u       the code is unmapped before close()
 *   -d FILE  through a shared library that is loaded for that, and unloaded (with -DLIBRARY)
 *   -t       each depth in a thread of its own
 *   -p PID   in a child with this pid
 *   -x FILE  execute FILE -f 3 in the end
 *   -s       return from a signal to no address, instead of calling anything
 *   -c       clock_gettime() in the vDSO, instead of close()
 *   -b N     through N files in the current directory, which are written
 *   -y       a page fault at 0x10000000000 + 4096 * depth, in place of close()
 *   -e N     the Nth allocation of the kernel for close() fails; what is left of N goes to stderr
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef LIBRARY
#include <dlfcn.h>
#endif

#define MAX_DEPTH	150

static __thread void *stack[MAX_DEPTH + 5];	/* as it is unwound */
static __thread int levels;			/* of the stack */
static __thread double took;			/* nanoseconds for each close() */
static long repeats = 1;

/* Calls fn(arg) where the chain of frame pointers ends. */
int call_at_end(int (*fn)(int arg), int arg);
/* Calls fn(arg) from a function that returns to 0, as it seems. The chain of frame pointers goes on. */
int call_from_0(int (*fn)(int arg), int arg);

#if defined(__x86_64__)
unsigned long forged_word;
asm(".text\n.globl call_at_end\n.type call_at_end, @function\ncall_at_end:\n"
    "	push	%rbp\n	xor	%ebp, %ebp\n	mov	%rdi, %rax\n	mov	%esi, %edi\n"
    "	call	*%rax\n	pop	%rbp\n	ret\n"
    ".size call_at_end, .-call_at_end\n");

asm(".text\n.globl call_from_0\n.type call_from_0, @function\ncall_from_0:\n"
    "	push	%rbp\n	push	forged_word(%rip)\n	push	%rbp\n	mov	%rsp, %rbp\n	mov	%rdi, %rax\n"
    "	mov	%esi, %edi\n	call	*%rax\n	add	$16, %rsp\n	pop	%rbp\n	ret\n"
    ".size call_from_0, .-call_from_0\n");

static inline __attribute__((always_inline)) long close_at(long fd, void **ip)
{
	long ret;

	asm volatile("lea 1f(%%rip), %1\n\tsyscall\n1:"
		     : "=&a" (ret), "=&r" (*ip)
		     : "0" ((long)SYS_close), "D" (fd) : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
asm(".text\n.globl call_at_end\n.type call_at_end, @function\ncall_at_end:\n"
    "	stp	x29, x30, [sp, #-16]!\n	mov	x29, #0\n	mov	x2, x0\n	mov	w0, w1\n"
    "	blr	x2\n	ldp	x29, x30, [sp], #16\n	ret\n"
    ".size call_at_end, .-call_at_end\n");

asm(".text\n.globl call_from_0\n.type call_from_0, @function\ncall_from_0:\n"
    "	stp	x29, x30, [sp, #-32]!\n	stp	x29, xzr, [sp, #16]\n	add	x29, sp, #16\n"
    "	mov	x2, x0\n	mov	w0, w1\n	blr	x2\n	ldp	x29, x30, [sp], #32\n	ret\n"
    ".size call_from_0, .-call_from_0\n");

static inline __attribute__((always_inline)) long close_at(long fd, void **ip)
{
	register long nr asm("x8") = SYS_close;
	register long x0 asm("x0") = fd;

	asm volatile("adr %1, 1f\n\tsvc #0\n1:"
		     : "+r" (x0), "=&r" (*ip) : "r" (nr) : "memory");
	return x0;
}
#elif defined(__s390x__)
asm(".text\n.globl call_at_end\n.type call_at_end, @function\ncall_at_end:\n"
    "	stmg	%r14, %r15, 112(%r15)\n	aghi	%r15, -160\n	xc	0(8, %r15), 0(%r15)\n"
    "	lgr	%r1, %r2\n	lgfr	%r2, %r3\n	basr	%r14, %r1\n"
    "	lmg	%r14, %r15, 272(%r15)\n	br	%r14\n"
    ".size call_at_end, .-call_at_end\n");

asm(".text\n.globl call_from_0\n.type call_from_0, @function\ncall_from_0:\n"
    "	stmg	%r14, %r15, 112(%r15)\n	lgr	%r0, %r15\n	aghi	%r15, -160\n"
    "	stg	%r0, 0(%r15)\n	xc	112(8, %r15), 112(%r15)\n"
    "	lgr	%r0, %r15\n	aghi	%r15, -160\n	stg	%r0, 0(%r15)\n"
    "	lgr	%r1, %r2\n	lgfr	%r2, %r3\n	basr	%r14, %r1\n"
    "	lmg	%r14, %r15, 432(%r15)\n	br	%r14\n"
    ".size call_from_0, .-call_from_0\n");

static inline __attribute__((always_inline)) long close_at(long fd, void **ip)
{
	register long nr asm("1") = SYS_close;
	register long r2 asm("2") = fd;

	asm volatile("larl %1, 1f\n\tsvc 0\n1:"
		     : "+d" (r2), "=&a" (*ip) : "d" (nr) : "memory");
	return r2;
}
#endif

#ifdef FILES
/* push %rbp; mov %rsp, %rbp; mov %rdi, %rax; mov %esi, %edi; call *%rax; pop %rbp; ret */
static const char code[] = "\x55\x48\x89\xe5\x48\x89\xf8\x89\xf7\xff\xd0\x5d\xc3";
static int (*outside)(int (*fn)(int depth), int depth);	/* that code */
static int files, unmapped, fail_nth, faults, keep;
static char maps[1 << 16];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void read_maps(void)
{
	int fd = open("/proc/self/maps", O_RDONLY), n = 0, got;

	while ((got = read(fd, maps + n, sizeof(maps) - 1 - n)) > 0)
		n += got;
	maps[n] = 0;
	close(fd);
}

/* The file and the offset, for code of a file that can be found again. */
static void print_place(unsigned long ip, int exact)
{
	unsigned long start, end, offset;
	char *line = maps, *path;
	char perms[5];

	for (; *line; line = strchr(line, '\n') + 1) {
		if (sscanf(line, "%lx-%lx %4s %lx", &start, &end, perms, &offset) != 4)
			break;
		if (ip - !exact < start || ip - !exact >= end)
			continue;
		path = strpbrk(line, "/[\n");
		if ((*path == '/' && strncmp(path, "/memfd", 6)) || !strncmp(path, "[vdso]", 6)) {
			printf(" %.*s[+0x%lx]", (int)strcspn(path, "\n"), path, ip - start + offset);
			return;
		}
	}
	printf(" 0x%lx", ip);
}

static inline __attribute__((always_inline)) void fault_at(int depth, void **ip)
{
	char *page = mmap((void *)(0x10000000000 + 4096L * depth), 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (page == MAP_FAILED)
		die("page");
	asm volatile("lea 1f(%%rip), %0\n1:\tmovb $1, (%1)" : "=&r" (*ip) : "r" (page) : "memory");
}

/* Have the Nth allocation fail from now on. Returns what was left of the last N. */
static int fail_allocation(int n)
{
	static char text[16];
	static int fd = -1;
	int left;

	if (fd < 0)
		fd = open("/proc/thread-self/fail-nth", O_RDWR);
	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		die("fail-nth");
	left = atoi(text);
	sprintf(text, "%d", n);
	if (pwrite(fd, text, strlen(text), 0) < 0)
		die("fail-nth");
	return left;
}

/* Map code that is there. Its page is in memory then, and the file closed. */
static void *keep_code(const char *name, off_t offset)
{
	int fd = open(name, O_RDONLY);
	void *mem = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, offset);

	if (mem == MAP_FAILED || memcmp(mem, code, sizeof(code)))
		die(name);
	close(fd);
	return mem;
}

static void *map_code(const char *name, off_t offset)
{
	int fd = -1, flags = MAP_SHARED;
	void *mem;

	if (!strcmp(name, "anon"))
		flags = MAP_PRIVATE | MAP_ANONYMOUS;
	else if (!strcmp(name, "memfd"))
		fd = memfd_create("code", 0);
	else
		fd = open(name, O_RDWR | O_CREAT, 0755);
	if (fd >= 0 && ftruncate(fd, offset + (strstr(name, "huge") ? 1 << 21 : 4096)))
		die(name);
	mem = mmap(NULL, strstr(name, "huge") ? 1 << 21 : 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags,
		   fd, offset);
	if (mem == MAP_FAILED)
		die(name);
	memcpy(mem, code, sizeof(code));
	if (fd >= 0)
		close(fd);
	return mem;
}
#endif

/* Print what is known of the stack. */
static void print_stack(int depth)
{
	printf("%d", depth);
#ifdef FILES
	if (files) {
		print_place((unsigned long)stack[MAX_DEPTH + 4], 1);
		/* The code is the third frame from the outer end. */
		while (levels-- > (unmapped ? 3 : 0))
			print_place((unsigned long)stack[levels], 0);
		putchar('\n');
		fflush(stdout);
		return;
	}
#endif
	printf(" %p", stack[MAX_DEPTH + 4]);
	while (levels)
		printf(" %p", stack[--levels]);
	putchar('\n');
}

static __attribute__((noinline)) int leaf(int depth)
{
	long ret = 0, fd = 1000 + depth;
	struct timespec from, to;

	stack[levels++] = __builtin_return_address(0);
#ifdef FILES
	read_maps();
	if (unmapped)
		munmap((void *)((unsigned long)outside & ~4095UL), 4096);
	if (fail_nth)
		fail_allocation(fail_nth);
#endif
#ifdef FILES
	if (faults) {
		fault_at(depth, &stack[MAX_DEPTH + 4]);
		return 0;
	}
#endif
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (long i = 0; i < repeats; i++)
		ret = close_at(fd, &stack[MAX_DEPTH + 4]);
#ifdef FILES
	if (fail_nth)
		fprintf(stderr, "%d\n", fail_allocation(0));
	if (unmapped) {
		print_stack(depth);
		_exit(0);
	}
#endif
	clock_gettime(CLOCK_MONOTONIC, &to);
	took = ((to.tv_sec - from.tv_sec) * 1e9 + to.tv_nsec - from.tv_nsec) / repeats;
	return ret;
}

#define LEVEL(n, next)						\
static __attribute__((noinline)) int level##n(int depth)	\
{								\
	int ret;						\
								\
	stack[levels++] = __builtin_return_address(0);		\
	ret = depth > n ? next(depth) : leaf(depth);		\
	asm volatile("" : "+r" (ret));				\
	return ret;						\
}
#define TEN(t, next)									\
	LEVEL(t##9, next) LEVEL(t##8, level##t##9) LEVEL(t##7, level##t##8)		\
	LEVEL(t##6, level##t##7) LEVEL(t##5, level##t##6) LEVEL(t##4, level##t##5)	\
	LEVEL(t##3, level##t##4) LEVEL(t##2, level##t##3) LEVEL(t##1, level##t##2)	\
	LEVEL(t##0, level##t##1)

TEN(14, leaf)
TEN(13, level140)
TEN(12, level130)
TEN(11, level120)
TEN(10, level110)
TEN(9, level100)
TEN(8, level90)
TEN(7, level80)
TEN(6, level70)
TEN(5, level60)
TEN(4, level50)
TEN(3, level40)
TEN(2, level30)
TEN(1, level20)
LEVEL(9, level10) LEVEL(8, level9) LEVEL(7, level8) LEVEL(6, level7) LEVEL(5, level6) LEVEL(4, level5)
LEVEL(3, level4) LEVEL(2, level3) LEVEL(1, level2)

static int (*call)(int (*fn)(int arg), int arg) = call_at_end;

/* Call down, and print the stack. */
static void run(int (*fn)(int depth), int depth)
{
	levels = 0;
	call(fn, depth);
	print_stack(depth);
}

#ifdef FILES
/* Called from that code, which has a frame. */
static __attribute__((noinline)) int inside(int depth)
{
	void **frame = *(void ***)__builtin_frame_address(0);
	int ret;

	stack[levels++] = frame[1];
	stack[levels++] = __builtin_return_address(0);
	ret = level1(depth);
	asm volatile("" : "+r" (ret));
	return ret;
}

static __attribute__((noinline)) int through_code(int depth)
{
	int ret;

	stack[levels++] = __builtin_return_address(0);
	ret = outside(inside, depth);
	asm volatile("" : "+r" (ret));
	return ret;
}

static void *thread(void *arg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	run(level1, (long)arg);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void to_nowhere(int sig, siginfo_t *info, void *context)
{
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = forged_word;
}

static void many_files(int n)
{
	char name[16];

	for (int i = 0; i < n; i++) {
		sprintf(name, "%d", i);
		outside = map_code(name, 0);
		levels = 0;
		call(through_code, 1);
		munmap(outside, 4096);
	}
}

static int child_with_pid(int pid)
{
	struct { unsigned long long flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls,
		 set_tid, set_tid_size, cgroup; } args = { .exit_signal = SIGCHLD, .set_tid = (unsigned long)&pid,
							   .set_tid_size = 1 };
	int ret = syscall(SYS_clone3, &args, sizeof(args)), status;

	if (ret < 0)
		die("clone3");
	if (!ret)
		return 0;
	waitpid(ret, &status, 0);
	exit(WEXITSTATUS(status));
}
#endif

int main(int argc, char **argv)
{
#ifdef FILES
	int threads = 0, clock_only = 0;
	const char *mapped = NULL;
	off_t offset = 0;
#endif
	int (*fn)(int depth) = level1;
	const char *exec = NULL;
	int opt, only_time = 0;

	while ((opt = getopt(argc, argv, "zln:fr:m:o:kud:tp:x:scb:ye:")) != -1) {
		switch (opt) {
		case 'z':
			call = call_from_0;
			break;
		case 'l':
			repeats = -1UL >> 1;
			break;
		case 'n':
			repeats = atol(optarg);
			only_time = 1;
			break;
#ifdef FILES
		case 'f':
			files = 1;
			break;
		case 'r':
			forged_word = strtoul(optarg, NULL, 0);
			call = call_from_0;
			break;
		case 'm':
			mapped = optarg;
			break;
		case 'o':
			offset = strtoll(optarg, NULL, 0);
			break;
		case 'k':
			keep = 1;
			break;
		case 'u':
			unmapped = 1;
			break;
#ifdef LIBRARY
		case 'd': {
			void *lib = dlopen(optarg, RTLD_NOW);

			outside = lib ? dlsym(lib, "call_from_library") : NULL;
			if (!outside)
				die(dlerror());
			run(through_code, 7);
			dlclose(lib);
			break;
		}
#endif
		case 't':
			threads = 1;
			break;
		case 'p':
			child_with_pid(atoi(optarg));
			break;
		case 'x':
			exec = optarg;
			break;
		case 's': {
			struct sigaction act = { .sa_sigaction = to_nowhere, .sa_flags = SA_SIGINFO };

			sigaction(SIGUSR1, &act, NULL);
			raise(SIGUSR1);
			return 1;
		}
		case 'c':
			clock_only = 1;
			break;
		case 'y':
			faults = 1;
			break;
		case 'e':
			fail_nth = atoi(optarg);
			break;
		case 'b':
			many_files(atoi(optarg));
			break;
#endif
		default:
			return 2;
		}
	}
	if (repeats < 1)
		return 2;

#ifdef FILES
	if (clock_only) {
		struct timespec ts;

		for (int i = 0; i < 10; i++)
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	}
	if (mapped) {
		outside = keep ? keep_code(mapped, offset) : map_code(mapped, offset);
		fn = through_code;
	}
#endif

	for (int i = optind; i < argc; i++) {
		int depth = atoi(argv[i]);

		if (depth < 1 || depth >= MAX_DEPTH)
			return 2;
#ifdef FILES
		if (threads) {
			pthread_t t;

			if (pthread_create(&t, NULL, thread, (void *)(long)depth))
				die("pthread_create");
			pthread_join(t, NULL);
			continue;
		}
#endif
		if (only_time) {
			levels = 0;
			call(fn, depth);
			printf("%d %.0f\n", depth, took);
			continue;
		}
		run(fn, depth);
	}
	if (exec)
		execl(exec, exec, "-f", "3", NULL);
	return 0;
}
