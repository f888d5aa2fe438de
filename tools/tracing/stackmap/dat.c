// SPDX-License-Identifier: GPL-2.0
/* Opens and reads trace.dat. */
#include <sys/mman.h>
#include <unistd.h>

#include <trace-cmd.h>

#include "profile.h"

static const char *clock_of(struct tracecmd_input *handle)
{
	const char *clock = tracecmd_get_trace_clock(handle);

	return clock && *clock ? clock : "local";
}

/* Times of two clocks cannot be compared. */
static int check_clock(struct profile *p, const char *path, const char *clock)
{
	static const char * const others[] = { "counter", "x86-tsc", "uptime", "ppc-tb" };
	size_t i;

	if (p->clock && strcmp(clock, p->clock))
		return fail("%s: instances have the clocks %s and %s (choose one: -i NAME, -i '')",
			    path, p->clock, clock);
	p->clock = clock;
	p->is_mono = !strcmp(clock, "mono");
	for (i = 0; (p->cfg->off_cpu || p->cfg->latency) && i < ARRAY_SIZE(others); i++) {
		if (!strncmp(clock, others[i], strlen(others[i])))
			return fail("%s: the clock %s does not count time, needed by --weight %s",
				    path, clock, p->cfg->off_cpu ? "off-cpu" : "latency");
	}
	return 0;
}

/* The top level, or the instance with that number. */
static int add_instance(struct profile *p, const char *path, int i)
{
	const char *name = i < 0 ? "" : tracecmd_buffer_instance_name(p->top, i);
	struct instance *in = &p->instances[p->nr_instances];
	struct tracecmd_input *handle;

	if (!name || (i >= 0 && !*name) || (p->cfg->instance && strcmp(p->cfg->instance, name)))
		return 0;
	if (p->nr_instances == MAX_INSTANCES)
		return fail("%s: has more than %u instances (--instance)", path, MAX_INSTANCES);
	handle = i < 0 ? p->top : tracecmd_buffer_instance_handle(p->top, i);
	if (!handle)
		return 0;
	in->handle = handle;
	in->name = name;
	in->nr = p->nr_instances++;
	in->nr_cpus = tracecmd_cpus(handle) ?: 1;
	in->cpus = check_mem(calloc(in->nr_cpus, sizeof(*in->cpus)));
	tracecmd_set_private(handle, in);
	return check_clock(p, path, clock_of(handle));
}

/* What libtracecmd prints to stdout goes to stderr: it is no output. */
static struct tracecmd_input *open_head(const char *path, int *ret)
{
	struct tracecmd_input *in;
	int out = dup(STDOUT_FILENO);

	dup2(STDERR_FILENO, STDOUT_FILENO);
	in = tracecmd_open_head(path, TRACECMD_FL_LOAD_NO_PLUGINS);
	*ret = in ? tracecmd_init_data(in) : 0;
	fflush(stdout);
	close(STDOUT_FILENO);
	if (out >= 0) {
		dup2(out, STDOUT_FILENO);
		close(out);
	}
	return in;
}

/* tracecmd_open() crashes if data is missing, and so does tracecmd_close(). So it stays open. */
static struct tracecmd_input *open_file(const char *path)
{
	static struct tracecmd_input *broken[2];	/* diff has two */
	struct tracecmd_input *in;
	int ret;

	in = open_head(path, &ret);
	if (in && !ret)
		return in;
	broken[!!broken[0]] = in;
	complain("%s: %s", path, !in ? "not a trace.dat that can be read" : ret < 0 ? "is cut off" :
		 "is of a latency tracer, a text without events (trace-cmd report)");
	return NULL;
}

int dat_open(struct profile *p, const char *path)
{
	struct stat st;
	int i, ret = 0;

	if (!stat(path, &st))
		note_input(&st);
	tracecmd_set_loglevel(TEP_LOG_NONE);
	p->top = open_file(path);
	if (!p->top)
		return -EINVAL;
	p->tep = tracecmd_get_tep(p->top);
	for (i = -1; !ret && i < tracecmd_buffer_instances(p->top); i++)
		ret = add_instance(p, path, i);
	if (!p->nr_instances)
		return fail("%s: has no instance %s", path, p->cfg->instance);
	return ret;
}

#define HEAD_TO_KALLSYMS	5	/* of the states that libtracecmd has */

/* What the file has before its records, up to kallsyms, not compressed. NULL if it fails. */
char *dat_head(struct profile *p, size_t *len)
{
	char *path __free(pointer) = NULL, *buf = NULL;
	int fd = memfd_create("head", MFD_CLOEXEC);
	struct tracecmd_output *out;

	path = format("/proc/self/fd/%d", fd);
	out = tracecmd_copy(p->top, path, HEAD_TO_KALLSYMS, 6, "none");
	if (out) {
		buf = slurp(path, len);
		tracecmd_output_close(out);
	}
	close(fd);
	return buf;
}

bool has_records(const struct instance *in)
{
	u32 i = 0;

	while (i < in->nr_cpus && !tracecmd_peek_data(in->handle, i))
		i++;
	return i < in->nr_cpus;
}

int dat_read(struct profile *p, const char *path, record_fn *take)
{
	struct tracecmd_input *handles[MAX_INSTANCES];
	int ret;
	u32 i;

	for (i = 0; i < p->nr_instances; i++)
		handles[i] = p->instances[i].handle;
	ret = tracecmd_iterate_events_multi(handles, p->nr_instances, take, p);
	return ret ? fail("%s: cannot be read to its end", path) : 0;
}

/* The names of events and symbols are gone then. */
void dat_close(struct profile *p)
{
	u32 i;

	for (i = 0; i < p->nr_instances; i++) {
		free(p->instances[i].cpus);
		if (p->instances[i].handle != p->top)
			tracecmd_close(p->instances[i].handle);
	}
	if (p->top)
		tracecmd_close(p->top);
}
