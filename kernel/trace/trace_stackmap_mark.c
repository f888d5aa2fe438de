// SPDX-License-Identifier: GPL-2.0
/*
 * Which CPUs have events of a generation in their ring buffers. trace_stackmap_set.h has
 * the design.
 */
#include <linux/bits.h>
#include <linux/cpumask.h>
#include <linux/ring_buffer.h>
#include <linux/string.h>

#include "trace_stackmap_internal.h"

/*
 * What both buffers of a CPU hold, the instance's and the snapshot's. They may be
 * swapped at any time, but there are no others: two that differ are these two.
 */
static void stackmap_get_position(struct trace_array *tr, int cpu,
				  struct ring_buffer_position *pos)
{
	struct trace_buffer *buffer, *other;

	do {
		/* As above. */
		buffer = data_race(READ_ONCE(tr->array_buffer.buffer));
		other = stackmap_other_buffer(tr);
		ring_buffer_position(buffer, cpu, &pos[0]);
		pos[1] = (struct ring_buffer_position) { };
		if (other)
			ring_buffer_position(other, cpu, &pos[1]);
	} while (pos[0].ring && pos[0].ring == pos[1].ring);
}

/* When the generation with these marks began, in a buffer of today. */
static unsigned long stackmap_begun(const struct stackmap_mark *marks, unsigned long epoch)
{
	for (int i = 0; i < STACKMAP_BUFFERS; i++) {
		if (marks[i].epoch == epoch)
			return marks[i].begin;
	}
	/* The buffer was reset since, or is a new one. */
	return 0;
}

/**
 * stackmap_mark_gen - set the marks of a generation
 * @inst: the instance
 * @gen: the generation
 * @end: false before its map is published, true after a grace period in which it was replaced
 */
void stackmap_mark_gen(struct stackmap_instance *inst, struct stackmap_gen *gen, bool end)
{
	struct ring_buffer_position pos[STACKMAP_BUFFERS];
	struct stackmap_mark marks[STACKMAP_BUFFERS];
	int cpu;

	for_each_possible_cpu(cpu) {
		stackmap_get_position(inst->tr, cpu, pos);
		for (int i = 0; i < STACKMAP_BUFFERS; i++)
			marks[i] = (struct stackmap_mark) {
				.epoch	= pos[i].epoch,
				.begin	= end ? stackmap_begun(gen->marks[cpu], pos[i].epoch) :
						pos[i].written,
				.end	= pos[i].written,
			};
		memcpy(gen->marks[cpu], marks, sizeof(marks));
	}
}

/* Is @at before @end? Counters wrap. */
static bool stackmap_before(unsigned long at, unsigned long end)
{
	return (long)(at - end) < 0;
}

/* Does a buffer hold an event of the time between the marks? */
static bool stackmap_holds(const struct ring_buffer_position *pos,
			   const struct stackmap_mark *mark)
{
	if (pos->epoch != mark->epoch || mark->begin == mark->end)
		return false;

	return (stackmap_before(pos->oldest, pos->written) &&
		stackmap_before(pos->oldest, mark->end)) ||
	       (stackmap_before(pos->page, mark->end) &&
		stackmap_before(mark->begin, pos->page_end));
}

/**
 * stackmap_read_positions - read what the buffers of each CPU hold
 * @inst: the instance
 */
void stackmap_read_positions(struct stackmap_instance *inst)
{
	int cpu;

	for_each_possible_cpu(cpu)
		stackmap_get_position(inst->tr, cpu, inst->pos[cpu]);
}

/**
 * stackmap_pins - the CPUs that pin a generation
 * @inst: the instance, whose positions were read
 * @gen: the generation, which has ended
 *
 * Return: a bit for each CPU, modulo BITS_PER_LONG.
 */
unsigned long stackmap_pins(const struct stackmap_instance *inst, const struct stackmap_gen *gen)
{
	unsigned long cpus = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		for (int i = 0; i < STACKMAP_BUFFERS * STACKMAP_BUFFERS; i++) {
			if (stackmap_holds(&inst->pos[cpu][i / STACKMAP_BUFFERS],
					   &gen->marks[cpu][i % STACKMAP_BUFFERS]))
				cpus |= BIT(cpu % BITS_PER_LONG);
		}
	}
	return cpus;
}
