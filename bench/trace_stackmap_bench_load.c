// SPDX-License-Identifier: GPL-2.0
/*
 * The stack map under load: pairs of threads on one CPU wake each other, like
 * hackbench without pipes, while sched_switch is traced with stacks. This is also
 * built into the kernel without the stack map.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/trace.h>
#include <linux/trace_events.h>

#include "bench.h"
#include "trace.h"

#define LOAD_PAIRS	8
#define LOAD_ROUNDS	1000

struct load_thread {
	struct task_struct	*task;
	struct completion	wake;
	struct completion	done;
	struct load_thread	*other;
};

static struct load_thread load_threads[2 * LOAD_PAIRS];

static int load_thread_fn(void *data)
{
	struct load_thread *t = data;

	for (int i = 0; i < LOAD_ROUNDS; i++) {
		wait_for_completion(&t->wake);
		complete(&t->other->wake);
	}
	complete(&t->done);
	return 0;
}

/* Returns hundredths of a nanosecond for each message. */
static u64 load_once(void)
{
	u64 start;

	for (int i = 0; i < ARRAY_SIZE(load_threads); i++) {
		struct load_thread *t = &load_threads[i];

		init_completion(&t->wake);
		init_completion(&t->done);
		t->other = &load_threads[i ^ 1];
		t->task = kthread_create_on_cpu(load_thread_fn, t, 0, "load/%u");
		if (WARN_ON(IS_ERR(t->task)))
			return 0;
	}
	for (int i = 0; i < ARRAY_SIZE(load_threads); i++)
		wake_up_process(load_threads[i].task);

	start = bench_now();
	for (int i = 0; i < ARRAY_SIZE(load_threads); i += 2)
		complete(&load_threads[i].wake);
	for (int i = 0; i < ARRAY_SIZE(load_threads); i++)
		wait_for_completion(&load_threads[i].done);
	return (bench_now() - start) * 100 / (ARRAY_SIZE(load_threads) * LOAD_ROUNDS);
}

static const char * const load_names[] = {
	"not traced", "sched_switch", "sched_switch, full stacks", "sched_switch, stack map",
};

static struct trace_array *load_instance(int how)
{
	struct trace_array *tr = trace_array_get_by_name("bench_load", NULL);
	char stacktrace[] = "stacktrace", stackmap[] = "stackmap";
	int ret;

	if (!tr)
		return NULL;
	ret = tracing_set_clock(tr, "counter");
	if (!ret && how >= 1)
		ret = trace_array_set_clr_event(tr, "sched", "sched_switch", true);
	if (!ret && how >= 2)
		ret = trace_set_options(tr, stacktrace);
	if (!ret && how >= 3)
		ret = trace_set_options(tr, stackmap);
	if (ret)
		pr_err("bench: no \"%s\": %d\n", load_names[how], ret);
	return tr;
}

void bench_load(unsigned int reps)
{
	int nr = ARRAY_SIZE(load_names) - !IS_ENABLED(CONFIG_FTRACE_STACKMAP);
	struct trace_array *tr;

	/* The load runs on CPU 0, and the clock belongs to the CPU. */
	set_cpus_allowed_ptr(current, cpumask_of(0));
	for (unsigned int rep = 0; rep < reps; rep++) {
		for (int how = 0; how < nr; how++) {
			tr = load_instance(how);
			if (!tr)
				return;
			load_once();
			pr_info("BENCH_LOAD \"%s\",%llu\n", load_names[how], load_once());
			trace_array_set_clr_event(tr, "sched", "sched_switch", false);
			trace_array_put(tr);
			trace_array_destroy(tr);
		}
	}
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}
