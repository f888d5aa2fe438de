/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SMP barriers of x86, for User-Mode Linux. It uses the strict barriers, which are
 * meant for devices: its smp_load_acquire() has an mfence, unlike that of x86.
 * scripts/bench includes this first, and asm-generic/barrier.h does not redefine it.
 * From arch/x86/include/asm/barrier.h.
 */
#ifndef __ASSEMBLY__
#define __smp_mb()			asm volatile("lock addl $0,-4(%%rsp)" ::: "memory", "cc")
#define __smp_rmb()			barrier()
#define __smp_wmb()			barrier()
#define __smp_store_mb(var, value)	do { (void)xchg(&var, value); } while (0)
#define __smp_mb__before_atomic()	do { } while (0)
#define __smp_mb__after_atomic()	do { } while (0)

#define __smp_store_release(p, v)					\
do {									\
	compiletime_assert_atomic_type(*p);				\
	barrier();							\
	WRITE_ONCE(*p, v);						\
} while (0)

#define __smp_load_acquire(p)						\
({									\
	typeof(*p) ___p1 = READ_ONCE(*p);				\
									\
	compiletime_assert_atomic_type(*p);				\
	barrier();							\
	___p1;								\
})
#endif
