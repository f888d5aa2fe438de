// SPDX-License-Identifier: GPL-2.0
/*
 * What a recording lacks at the ends of its CPUs. In its middle, the kernel marks what it has
 * overwritten. "record" and "save" tell it in DIR/lost, a line for each CPU: its number, and how
 * many entries came behind its last record. Any other trace.dat has what the kernel has counted.
 */
#include <kbuffer.h>
#include <trace-cmd.h>

#include "profile.h"

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

/* Of a sub-buffer, where libtracecmd need not copy them, with the times of the ring buffer. */
static void look_at_page(struct profile *p, struct tracecmd_input *handle,
			 struct tep_record *first, record_fn *look)
{
	struct kbuffer *page = tracecmd_record_kbuf(handle, first);
	struct tep_record rec = *first;

	kbuffer_load_subbuffer(page, tracecmd_record_page(handle, first));
	while ((rec.data = kbuffer_read_event(page, &rec.ts))) {
		rec.size = kbuffer_event_size(page);
		look(handle, &rec, rec.cpu, p);
		kbuffer_next_event(page, NULL);
	}
}

/*
 * Reads all records of a CPU, or one of each sub-buffer if only @look wants them. They begin with
 * the first one again then.
 */
static u64 scan_cpu(struct profile *p, struct instance *in, u32 cpu, record_fn *look, u64 *last)
{
	struct tep_record *rec = tracecmd_peek_data(in->handle, cpu);
	u64 nr = 0, offset = rec ? rec->offset : 0;

	while ((rec = tracecmd_peek_data(in->handle, cpu))) {
		*last = rec->ts;
		nr++;
		if (look)
			look_at_page(p, in->handle, rec, look);
		tracecmd_free_record(tracecmd_read_data(in->handle, cpu));
	}
	if (nr)
		tracecmd_set_cursor(in->handle, cpu, offset);
	return nr;
}

static bool lacks_start(const struct cpu_state *c, u64 nr)
{
	return nr < c->nr_read;
}

/* "left" were read a moment later, but of a recorder that had ended. @last: time of the last one */
static bool lacks_left(const struct cpu_state *c, u64 nr, u64 last)
{
	return c->left && nr < c->nr_read + c->left && last / 1000 < c->oldest;
}

/* What libtracecmd adds to the times of the ring buffer: trace-cmd record --date, --ts-offset. */
static long long added_time(struct tracecmd_input *handle, struct tep_record *rec)
{
	return rec->ts - kbuffer_timestamp(tracecmd_record_kbuf(handle, rec));
}

/*
 * Samples that are printed cannot be taken back. Else what began early is summed up by itself, as
 * the number of records is known in the end.
 */
static void check_cpu(struct profile *p, struct instance *in, u32 cpu, record_fn *look)
{
	struct tep_record *rec = tracecmd_peek_data(in->handle, cpu);
	struct cpu_state *c = &in->cpus[cpu];
	u64 nr, last = 0;

	c->first = rec ? rec->ts : 0;
	if (rec && c->oldest)
		c->oldest += added_time(in->handle, rec) / 1000;
	if (look)
		scan_cpu(p, in, cpu, look, &last);
	if (!(p->needs_gaps && p->print && c->nr_read)) {
		if (rec && c->nr_read && c->first > in->last_first)
			in->last_first = c->first;
		return;
	}
	nr = scan_cpu(p, in, cpu, NULL, &last);
	c->lacks_start = lacks_start(c, nr);
	if (lacks_left(c, nr, last))
		lacks_end(p, c, c->left);
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
	struct cpu_state *c = NULL;
	u64 seconds, us, n;
	char *line;
	u32 cpu;

	while ((line = strsep(&text, "\n"))) {
		if (!strncmp(line, "Buffer: ", strlen("Buffer: ")))
			in = named_instance(p, line + strlen("Buffer: "));
		if (sscanf(line, "CPU: %u", &cpu) == 1)
			c = in && cpu < in->nr_cpus ? &in->cpus[cpu] : NULL;
		if (!c)
			continue;
		if (sscanf(line, "entries: %llu", &n) == 1)
			c->left = n;
		if (sscanf(line, "read events: %llu", &n) == 1)
			c->nr_read = n;
		if (sscanf(line, "oldest event ts: %llu.%llu", &seconds, &us) == 2)
			c->oldest = seconds * 1000000 + us;
		if (sscanf(line, "dropped events: %llu", &n) == 1 && n)
			lacks_end(p, c, n);
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

/* Before any record is taken. @lost: that file, or NULL; @look: for all records, or NULL */
void find_gaps(struct profile *p, char *lost, record_fn look)
{
	char *text __free(pointer) = copy_string(tracecmd_get_cpustats(p->top) ?: "");
	struct instance *in;
	u32 cpu;

	if (lost)
		take_lost_file(p, lost);
	else
		read_stats(p, text);
	for (in = p->instances; in < p->instances + p->nr_instances; in++) {
		for (cpu = 0; cpu < in->nr_cpus; cpu++)
			check_cpu(p, in, cpu, look);
		if (!lost && p->needs_gaps)
			count_silent(p, in);
	}
}

/* How many CPUs have no record so far, at that time. */
u32 count_later(const struct instance *in, u64 ts)
{
	u32 i, nr = 0;

	for (i = 0; ts < in->last_first && i < in->nr_cpus; i++)
		nr += in->cpus[i].first > ts;
	return nr;
}

/* Whether another CPU than @cpu is in a gap now: its next record tells that. */
bool is_in_gap(const struct instance *in, u32 cpu)
{
	const struct tep_record *rec;
	const struct cpu_state *c;
	u32 i;

	for (i = 0; i < in->nr_cpus; i++) {
		if (i == cpu)
			continue;
		c = &in->cpus[i];
		rec = tracecmd_peek_data(in->handle, i);
		if (rec ? rec->missed_events || c->lacks_start :
		    c->lacks_end || lacks_left(c, c->nr_records, c->ts))
			return true;
	}
	return false;
}

/* The latest time at which a CPU begins that lacks its start. */
static u64 close_starts(struct profile *p, struct instance *in)
{
	struct cpu_state *c;
	u64 begin = 0;

	for (c = in->cpus; c < in->cpus + in->nr_cpus; c++) {
		if (!lacks_start(c, c->nr_records))
			continue;
		p->counts[COUNT_GAPS]++;
		p->counts[COUNT_LOST] += c->nr_read + c->left - c->nr_records;
		if (c->first > begin)
			begin = c->first;
	}
	return begin;
}

/* At the end, all that has not ended is over such a gap. */
void close_gaps(struct profile *p)
{
	struct instance *in;
	struct cpu_state *c;
	u64 begin;

	for (in = p->instances; in < p->instances + p->nr_instances; in++) {
		begin = close_starts(p, in);
		in->max_early = begin ? count_later(in, begin) : in->nr_cpus;
		in->complete = in->complete > begin ? in->complete : begin;
		for (c = in->cpus; c < in->cpus + in->nr_cpus; c++) {
			if (!c->lacks_end && lacks_left(c, c->nr_records, c->ts))
				lacks_end(p, c, c->left);
			in->complete = c->lacks_end ? UINT64_MAX : in->complete;
		}
	}
}
