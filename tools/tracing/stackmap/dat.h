/* SPDX-License-Identifier: GPL-2.0 */
/* Opens and reads trace.dat. */
#ifndef STACKMAP_DAT_H
#define STACKMAP_DAT_H

#include "stackmap.h"

struct kbuffer;
struct profile;
struct tep_record;
struct tracecmd_input;
struct tracecmd_output;

/* Exported by libtracecmd, but not declared. */
const char *tracecmd_get_trace_clock(struct tracecmd_input *handle);
struct tep_record *tracecmd_peek_data(struct tracecmd_input *handle, int cpu);
int tracecmd_cpus(struct tracecmd_input *handle);
const char *tracecmd_get_cpustats(struct tracecmd_input *handle);
const char *tracecmd_get_uname(struct tracecmd_input *handle);
struct kbuffer *tracecmd_record_kbuf(struct tracecmd_input *handle, struct tep_record *record);
void *tracecmd_record_page(struct tracecmd_input *handle, struct tep_record *record);
int tracecmd_set_cursor(struct tracecmd_input *handle, int cpu, size_t offset);
struct tracecmd_output *tracecmd_copy(struct tracecmd_input *from, const char *file, int state,
				      int version, const char *compression);
void tracecmd_output_close(struct tracecmd_output *out);

#define MAX_INSTANCES	64

struct instance {
	struct tracecmd_input	*handle;
	const char		*name;		/* "" for the top level */
	u32			nr;
	u64			complete;	/* no CPU has a gap that ends later, so far */
	u64			last_first;	/* the latest first record of a CPU */
	u32			max_early;	/* for samples, known in the end */
	u32			jumps;		/* so many times, a clock went back */
	bool			lacks_switches;
	bool			has_all;	/* tasks, but for what it lacks */
	struct cpu_state	*cpus;
	u32			nr_cpus;
};

typedef int record_fn(struct tracecmd_input *handle, struct tep_record *rec, int unused,
		      void *profile);

int dat_open(struct profile *p, const char *path);
char *dat_head(struct profile *p, size_t *len);
bool has_records(const struct instance *in);
int dat_read(struct profile *p, const char *path, record_fn *take);
void dat_close(struct profile *p);

#endif
