// SPDX-License-Identifier: GPL-2.0
/*
 * Writes user_maps (see user.c) while processes come and go: perf events tell about each mapping
 * and each new task. They count nothing.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "user.h"
#include "util.h"

#define WATCH_PAGES	128		/* for the events of each CPU, a power of 2 */

struct watched {
	int				fd;
	struct perf_event_mmap_page	*ring;
};

/* A line of the file. */
struct change_of_maps {
	u64	time;
	size_t	seq;
	char	*line;
};

#define PAGE		((size_t)sysconf(_SC_PAGESIZE))
#define RING_SIZE	((WATCH_PAGES + 1) * PAGE)
#define READ_LOST	0x10	/* PERF_FORMAT_LOST, which older headers lack */

/* Returns 0, also for a CPU that is off, or an error. */
static int watch_cpu(struct watch *w, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME, .sample_id_all = 1, .mmap = 1, .mmap2 = 1,
		.task = 1, .comm = 1, .comm_exec = 1, .use_clockid = 1, .clockid = CLOCK_MONOTONIC,
		.build_id = 1, .read_format = READ_LOST,
	};
	int ret, fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	void *ring;

	if (fd < 0)
		return errno == ENODEV ? 0 : -errno;
	ring = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		ret = -errno;
		close(fd);
		return ret;
	}
	w->cpus[w->nr_cpus++] = (struct watched) { fd, ring };
	return 0;
}

static void add_change(struct watch *w, u64 time, char *line)
{
	const struct change_of_maps c = { time, w->nr_changes, line };

	*APPEND(w->changes, w->nr_changes) = c;
}

/* That of a mapping; others have only the first numbers. */
struct watch_record {
	struct perf_event_header	head;
	u32				pid;
	u32				ppid;	/* of a fork */
	uint64_t			addr;
	uint64_t			len;
	uint64_t			pgoff;
	union {
		struct {
			u32		maj;
			u32		min;
			uint64_t	ino;
			uint64_t	generation;
		};
		struct {			/* if there is a build id */
			unsigned char	id_len;
			unsigned char	unused[3];
			unsigned char	id[20];
		};
	};
	u32				prot;
	u32				flags;
	char				path[];
};

/* That of the path, if the kernel does not tell it. Another file may be there now. */
static void record_id(const struct watch_record *r, struct build_id *id)
{
	struct stat st;

	if (r->head.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		id->len = r->id_len < sizeof(r->id) ? r->id_len : sizeof(r->id);
		memcpy(id->bytes, r->id, id->len);
	} else if (*r->path == '/' && !stat(r->path, &st) && st.st_ino == r->ino) {
		read_file_id(r->path, id);
	}
}

/* A path that begins with two slashes is none: "//anon" */
static void watch_mmap(struct watch *w, const struct watch_record *r, u64 time)
{
	struct mapping map = { .start = r->addr, .end = r->addr + r->len, .offset = r->pgoff };
	const char *path = strncmp(r->path, "//", 2) ? r->path : "";
	struct build_id id = {};
	char *line;
	size_t len;
	FILE *f;

	if (!(r->prot & PROT_EXEC))
		return;
	f = check_mem(open_memstream(&line, &len));
	record_id(r, &id);
	write_mapping(f, r->pid, &map, &id, path);
	fclose(f);
	add_change(w, time, check_mem(line));
}

/* The last 8 bytes are the time. After an exec, nothing that was mapped before is there. */
static void take_change(struct watch *w, const struct watch_record *r)
{
	u32 type = r->head.type;
	uint64_t time;

	memcpy(&time, (const char *)r + r->head.size - sizeof(time), sizeof(time));
	if (type == PERF_RECORD_MMAP2)
		watch_mmap(w, r, time);
	else if (type == PERF_RECORD_FORK && r->pid != r->ppid)
		add_change(w, time, format("fork %u %u\n", r->pid, r->ppid));
	else if (type == PERF_RECORD_COMM && r->head.misc & PERF_RECORD_MISC_COMM_EXEC)
		add_change(w, time, format("exec %u\n", r->pid));
}

/* The ring may end inside of what is copied. */
static void copy_from_ring(void *to, const struct perf_event_mmap_page *ring, u64 at, size_t len)
{
	const char *data = (const char *)ring + PAGE;
	size_t size = WATCH_PAGES * PAGE, off = at % size;
	size_t first = len < size - off ? len : size - off;

	memcpy(to, data + off, first);
	memcpy((char *)to + first, data, len - first);
}

static void drain_ring(struct watch *w, struct perf_event_mmap_page *ring)
{
	u64 head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE), at = ring->data_tail;
	static union {
		struct watch_record	r;
		uint64_t		words[0x10000 / 8];
	} record;

	while (at < head) {
		copy_from_ring(&record, ring, at, sizeof(record.r.head));
		copy_from_ring(&record, ring, at, record.r.head.size);
		take_change(w, &record.r);
		at += record.r.head.size;
	}
	__atomic_store_n(&ring->data_tail, at, __ATOMIC_RELEASE);
}

void watch_drain(struct watch *w)
{
	size_t i;

	for (i = 0; i < w->nr_cpus; i++)
		drain_ring(w, w->cpus[i].ring);
}

static void watch_close(struct watch *w)
{
	u64 count[2], lost = 0;
	size_t i;

	for (i = 0; i < w->nr_cpus; i++) {
		if (read(w->cpus[i].fd, count, sizeof(count)) == sizeof(count))
			lost += count[1];
		munmap(w->cpus[i].ring, RING_SIZE);
		close(w->cpus[i].fd);
	}
	w->nr_cpus = 0;
	if (lost)
		note("%llu changes of mappings were lost", lost);
}

/* What runs already is scanned behind the start of the events, so that nothing is missed. */
void watch_start(struct watch *w)
{
	long i, nr = sysconf(_SC_NPROCESSORS_CONF);
	int ret = 0;

	w->cpus = check_mem(calloc(nr, sizeof(*w->cpus)));
	for (i = 0; !ret && i < nr; i++)
		ret = watch_cpu(w, i);
	if (ret) {
		watch_close(w);
		note("perf events: %s; processes that end early will have no names of functions",
		     strerror(-ret));
	}
	w->out = check_mem(open_memstream(&w->text, &w->len));
	scan_processes(w->out);
}

static int compare_maps_changes(const void *a, const void *b)
{
	const struct change_of_maps *ca = a, *cb = b;
	int ret = compare_u64(ca->time, cb->time);

	return ret ? ret : compare_u64(ca->seq, cb->seq);
}

/* Completes the text. */
void watch_stop(struct watch *w)
{
	size_t i;

	if (!w->nr_cpus)
		scan_processes(w->out);
	watch_drain(w);
	watch_close(w);
	sort_array(w->changes, w->nr_changes, sizeof(*w->changes), compare_maps_changes);
	for (i = 0; i < w->nr_changes; i++)
		fprintf(w->out, "@%llu %s", w->changes[i].time, w->changes[i].line);
	fclose(w->out);
	w->out = NULL;
	check_mem(w->text);
}

void watch_free(struct watch *w)
{
	size_t i;

	watch_close(w);
	if (w->out)
		fclose(w->out);
	for (i = 0; i < w->nr_changes; i++)
		free(w->changes[i].line);
	free(w->changes);
	free(w->cpus);
	free(w->text);
}
