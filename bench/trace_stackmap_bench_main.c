// SPDX-License-Identifier: GPL-2.0
/* Runs the benchmarks after boot, then powers off. */
#include <linux/init.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/reboot.h>
#include <linux/time64.h>

#include "bench.h"

static unsigned int bench_reps = 9;
module_param_named(reps, bench_reps, uint, 0444);

static bool bench_with_maps = true;
module_param_named(maps, bench_with_maps, bool, 0444);

static unsigned int bench_load_reps;
module_param_named(load_reps, bench_load_reps, uint, 0444);

/* From libc: User-Mode Linux is linked with it. */
struct bench_timespec {
	long tv_sec;
	long tv_nsec;
};

#define BENCH_CLOCK_THREAD_CPUTIME	3
extern int clock_gettime(int clock, struct bench_timespec *ts);

u64 bench_now(void)
{
	struct bench_timespec ts;

	clock_gettime(BENCH_CLOCK_THREAD_CPUTIME, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static int __init bench_start(void)
{
	/* With several CPUs, User-Mode Linux calls a function where x86 reads a per-CPU variable. */
	if (!IS_ENABLED(CONFIG_SMP)) {
		bench_one_event(clamp(bench_reps, 1U, BENCH_MAX_REPS));
	} else if (IS_ENABLED(CONFIG_FTRACE_STACKMAP) && bench_with_maps) {
		bench_split(clamp(bench_reps, 1U, BENCH_MAX_REPS));
		bench_rotate(clamp(bench_reps, 1U, BENCH_MAX_REPS));
		bench_maps(clamp(bench_reps, 1U, BENCH_MAX_REPS));
	}
	bench_load(bench_load_reps);
	pr_info("BENCH end\n");
	kernel_power_off();
	return 0;
}
late_initcall_sync(bench_start);
