// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the CPU time of a replacement, for sizes of the ring buffer and of the map. The map is 7/8
 * full, and the buffer full of events of its stacks: this is the worst case, since all of them are copied.
 */
#include <linux/trace.h>

#include "bench.h"
#include "bench_map.h"

#define BENCH_FRAMES	16

static u64 bench_took[BENCH_MAX_REPS];

/* Fill the buffer of this CPU anew. Returns the number of events. */
static unsigned long bench_fill(struct trace_array *tr, struct bench *b)
{
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	unsigned long overrun;
	int cpu;

	ring_buffer_reset(buffer);
	preempt_disable();
	cpu = smp_processor_id();
	do {
		overrun = ring_buffer_overrun_cpu(buffer, cpu);
		for (unsigned int no = 0; no < b->set; no++) {
			bench_stack(b, no);
			trace_record_stack(tr, buffer, 0, b->ips, b->depth);
		}
	} while (!overrun);
	preempt_enable();
	return ring_buffer_entries(buffer);
}

/* Let the work that replaces the map run here. */
static int bench_rotate_once(struct trace_array *tr, u64 *took)
{
	struct stackmap_instance *inst = tr->stackmap;
	struct ftrace_stackmap *map = rcu_access_pointer(inst->map), *new;
	struct work_struct *work = &inst->work.work;
	u64 start;

	map->gen->recycle = true;
	inst->pause = 0;
	start = bench_now();
	work->func(work);
	*took = (bench_now() - start) * 100;
	new = rcu_access_pointer(inst->map);
	new->gen->recycle = false;
	return new == map ? -EAGAIN : 0;
}

static int bench_rotations(unsigned int reps, unsigned int megabytes, unsigned int bits)
{
	struct bench b = { .depth = BENCH_FRAMES, .set = (1U << bits) * 7 / 8 };
	struct trace_array *tr = bench_instance("rotate", (unsigned long)megabytes << 20);
	unsigned long events;
	char what[16];
	int ret;

	if (!tr)
		return -ENOMEM;

	for (unsigned int i = 0; i < b.depth; i++)
		b.ips[i] = BENCH_TEXT + 64 * i;
	ftrace_stackmap_bits = bits;
	ret = bench_enable_map(tr, bits) ? 0 : -ENOMEM;
	for (unsigned int rep = 0; !ret && rep < reps; rep++) {
		events = bench_fill(tr, &b);
		ret = bench_rotate_once(tr, &bench_took[rep]);
	}

	if (!ret) {
		pr_info("bench: %u MB hold %lu events\n", megabytes, events);
		snprintf(what, sizeof(what), "%u MB", megabytes);
		bench_report("rotate", what, bits, b.set, 1, bench_took, reps);
	}
	bench_instance_free(tr);
	return ret;
}

void bench_rotate(unsigned int reps)
{
	static const unsigned int megabytes[] = { 1, 8, 64 };
	static const unsigned int bits[] = { 10, 14, 18 };
	unsigned int old_bits = ftrace_stackmap_bits;
	int ret;

	/* On User-Mode Linux, each CPU has a clock of its own. */
	set_cpus_allowed_ptr(current, cpumask_of(0));
	for (int i = 0; i < ARRAY_SIZE(megabytes); i++) {
		for (int k = 0; k < ARRAY_SIZE(bits); k++) {
			ret = bench_rotations(reps, megabytes[i], bits[k]);
			if (ret)
				pr_err("bench: rotation with %u MB, %u bits: %d\n", megabytes[i],
				       bits[k], ret);
		}
	}
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	ftrace_stackmap_bits = old_bits;
}
