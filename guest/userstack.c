// SPDX-License-Identifier: GPL-2.0
/*
 * A program whose user stacks are known. For each depth it calls down so many levels, each a function
 * of its own, and calls close(1000 + depth) there. It prints the depth and the addresses that an unwinder
 * finds, innermost first. It has frame pointers, and a frame pointer of 0 at the outer end. On s390x it
 * has back chains (-mbackchain).
 * Usage: userstack depth...
 *        userstack -z depth...     with a return address of 0 at the outer end, and frames behind that
 *        userstack -l depth        close() again and again, without a word, until it is killed
 *        userstack -n N depth...   N times; prints depth and nanoseconds for each close()
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEPTH	150

static void *stack[MAX_DEPTH + 3];	/* as it is unwound */
static int levels;			/* of the stack */
static long repeats = 1;
static double took;			/* nanoseconds for each close() */

/* Calls fn(arg) where the chain of frame pointers ends. */
int call_at_end(int (*fn)(int arg), int arg);
/* Calls fn(arg) from a function that returns to 0, as it seems. The chain of frame pointers goes on. */
int call_from_0(int (*fn)(int arg), int arg);

#if defined(__x86_64__)
asm(".text\n.globl call_at_end\n.type call_at_end, @function\ncall_at_end:\n"
    "	push	%rbp\n	xor	%ebp, %ebp\n	mov	%rdi, %rax\n	mov	%esi, %edi\n"
    "	sub	$8, %rsp\n	call	*%rax\n	add	$8, %rsp\n	pop	%rbp\n	ret\n"
    ".size call_at_end, .-call_at_end\n");

asm(".text\n.globl call_from_0\n.type call_from_0, @function\ncall_from_0:\n"
    "	push	%rbp\n	push	$0\n	push	%rbp\n	mov	%rsp, %rbp\n	mov	%rdi, %rax\n"
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

static __attribute__((noinline)) int leaf(int depth)
{
	long ret = 0, fd = 1000 + depth;
	struct timespec from, to;

	stack[levels++] = __builtin_return_address(0);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (long i = 0; i < repeats; i++)
		ret = close_at(fd, &stack[MAX_DEPTH + 2]);
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

int main(int argc, char **argv)
{
	int (*call)(int (*fn)(int arg), int arg) = call_at_end;
	int first = 1;

	if (argc > 2 && !strcmp(argv[1], "-l")) {
		repeats = -1UL >> 1;
		first = 2;
	} else if (argc > 3 && !strcmp(argv[1], "-n")) {
		repeats = atol(argv[2]);
		first = 3;
	} else if (argc > 2 && !strcmp(argv[1], "-z")) {
		call = call_from_0;
		first = 2;
	}
	if (repeats < 1)
		return 2;

	for (int i = first; i < argc; i++) {
		int depth = atoi(argv[i]);

		if (depth < 1 || depth >= MAX_DEPTH)
			return 2;
		levels = 0;
		call(level1, depth);
		if (first == 3) {
			printf("%d %.0f\n", depth, took);
			continue;
		}
		printf("%d %p", depth, stack[MAX_DEPTH + 2]);
		while (levels)
			printf(" %p", stack[--levels]);
		putchar('\n');
	}
	return 0;
}
