// SPDX-License-Identifier: GPL-2.0
/* A shared library with one function, which calls back. With other NAMEs, it has other build ids. */
const char name[] = NAME;

__attribute__((noinline)) int call_from_library(int (*fn)(int depth), int depth)
{
	int ret = fn(depth);

	asm volatile("" : "+r" (ret));
	return ret;
}
