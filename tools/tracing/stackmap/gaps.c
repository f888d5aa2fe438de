// SPDX-License-Identifier: GPL-2.0
/*
 * What a recording lacks at the ends of its CPUs. In its middle, the kernel marks what it has
 * overwritten. "record" and "save" tell it in DIR/lost, a line for each CPU: its number, and how
 * many entries came behind its last record. Any other trace.dat has what the kernel has counted.
 */
#include <trace-cmd.h>

#include "profile.h"

/* Adds up to nothing if the CPU has nothing of all this. */
struct cpu_stats {
	u64	left;		/* in the buffer, maybe read a moment later */
	u64	oldest;		/* of these, in microseconds */
	u64	nr_read;
	u64	dropped;	/* as the buffer was full */
};

static void lacks_end(struct profile *p, struct cpu_state *c, u64 lost)
{
	p->counts[COUNT_GAPS] += !c->lacks_end;
	p->counts[COUNT_LOST] += lost;
	c->lacks_end = true;
}

static void take_lost_file(struct profile *p, char *text)
{
	struct instance *in;
	char *line;
	u64 lost;
	u32 cpu;

	while ((line = strsep(&text, "\n"))) {
		if (sscanf(line, "%u %llu", &cpu, &lost) != 2 || !lost)
			continue;
		for (in = p->instances; in < p->instances + p->nr_instances; in++) {
			if (cpu < in->nr_cpus && has_records(in))
				lacks_end(p, &in->cpus[cpu], lost);
		}
	}
}

/* The records are read again then, from the first one. */
static void check_cpu(struct profile *p, struct instance *in, u32 cpu, const struct cpu_stats *s)
{
	const struct tep_record *first = tracecmd_peek_data(in->handle, cpu);
	u64 nr = 0, last = 0, offset = first ? first->offset : 0;
	struct cpu_state *c = &in->cpus[cpu];
	struct tep_record *rec;

	while ((rec = tracecmd_read_data(in->handle, cpu))) {
		last = rec->ts;
		tracecmd_free_record(rec);
		nr++;
	}
	if (nr)
		tracecmd_set_cursor(in->handle, cpu, offset);
	c->lacks_start = nr < s->nr_read;
	if (nr < s->nr_read + s->left && s->left && last / 1000 < s->oldest)
		lacks_end(p, c, s->left);
	else if (c->lacks_start)
		p->counts[COUNT_LOST] += s->nr_read + s->left - nr;
}

static void take_stats(struct profile *p, struct instance *in, u32 cpu, const struct cpu_stats *s)
{
	if (!in || cpu >= in->nr_cpus)
		return;
	if (s->dropped)
		lacks_end(p, &in->cpus[cpu], s->dropped);
	if (p->needs_gaps && s->nr_read + s->left)
		check_cpu(p, in, cpu, s);
}

static struct instance *named_instance(struct profile *p, const char *name)
{
	u32 i;

	for (i = 0; i < p->nr_instances; i++) {
		if (!strcmp(p->instances[i].name, name))
			return &p->instances[i];
	}
	return NULL;
}

/* "Buffer: NAME" for an instance; for each CPU "CPU: 1", and a line for each count. */
static void read_stats(struct profile *p, char *text)
{
	struct instance *in = named_instance(p, "");
	struct cpu_stats s = {};
	u64 seconds, us;
	u32 cpu = 0, n;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		sscanf(line, "entries: %llu", &s.left);
		sscanf(line, "dropped events: %llu", &s.dropped);
		if (sscanf(line, "oldest event ts: %llu.%llu", &seconds, &us) == 2)
			s.oldest = seconds * 1000000 + us;
		if (sscanf(line, "CPU: %u", &n) == 1) {
			s = (struct cpu_stats) {};
			cpu = n;
		} else if (sscanf(line, "read events: %llu", &s.nr_read) == 1) {
			take_stats(p, in, cpu, &s);
		} else if (!strncmp(line, "Buffer: ", strlen("Buffer: "))) {
			in = named_instance(p, line + strlen("Buffer: "));
		}
	}
}

/* Nothing tells if it was idle or not traced. */
static void count_silent(struct profile *p, const struct instance *in)
{
	u32 cpu;

	for (cpu = 0; has_records(in) && cpu < in->nr_cpus; cpu++)
		p->counts[COUNT_SILENT] += !in->cpus[cpu].lacks_end &&
					   !tracecmd_peek_data(in->handle, cpu);
}

/* @lost: that file, or NULL */
void find_gaps(struct profile *p, char *lost)
{
	const char *stats = tracecmd_get_cpustats(p->top);
	char *text __free(pointer) = copy_string(stats ? stats : "");
	u32 i;

	if (lost) {
		take_lost_file(p, lost);
		return;
	}
	read_stats(p, text);
	for (i = 0; p->needs_gaps && i < p->nr_instances; i++)
		count_silent(p, &p->instances[i]);
}

/* Whether another CPU than @cpu is in a gap now: its next record tells that. */
bool is_in_gap(const struct instance *in, u32 cpu)
{
	const struct tep_record *rec;
	u32 i;

	for (i = 0; i < in->nr_cpus; i++) {
		if (i == cpu)
			continue;
		rec = tracecmd_peek_data(in->handle, i);
		if (rec ? rec->missed_events || in->cpus[i].lacks_start : in->cpus[i].lacks_end)
			return true;
	}
	return false;
}

/* At the end, all that has not ended is over such a gap. */
void close_gaps(struct profile *p)
{
	struct instance *in;
	u32 i;

	for (in = p->instances; in < p->instances + p->nr_instances; in++) {
		for (i = 0; i < in->nr_cpus; i++)
			in->complete = in->cpus[i].lacks_end ? UINT64_MAX : in->complete;
	}
}
