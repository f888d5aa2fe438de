// SPDX-License-Identifier: GPL-2.0
/*
 * Writes user_maps (see stackmap.h): first what the processes have mapped, from /proc. While they
 * come and go, perf events tell about each mapping and each new task. These count nothing.
 */
#include <fcntl.h>
#include <glob.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record.h"

#define WATCH_PAGES	128		/* for the events of each CPU, a power of 2 */

struct watched {
	int				fd;
	struct perf_event_mmap_page	*ring;
};

static FILE *out;
static struct watched *cpus;
static size_t nr_cpus;

#define PAGE		((size_t)sysconf(_SC_PAGESIZE))
#define RING_SIZE	((WATCH_PAGES + 1) * PAGE)
#define READ_LOST	0x10	/* PERF_FORMAT_LOST, which older headers lack */

static void write_mapping(FILE *f, u32 tgid, const struct mapping *map, const struct build_id *id,
			  const char *path)
{
	char *hex __free(pointer) = build_id_text(id);

	fprintf(f, "map %u %llx-%llx %llx %s%s%s\n", tgid, map->start, map->end, map->offset,
		*hex ? hex : id_lacks[id->lack], *path ? " " : "", path);
}

/*
 * "55d0-55d2 r-xp 00001000 fe:01 1234     /usr/bin/cat". Functions are in executable mappings.
 * Anything may be at the path now. The link in map_files is to the file that is mapped; only root
 * can follow it.
 */
static void scan_mapping(FILE *f, u32 tgid, char *line)
{
	char perms[5], *path __free(pointer) = NULL;
	struct build_id id = {};
	struct mapping map = {};
	int at = 0;
	u64 inode;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %4s %llx %*s %llu %n", &map.start, &map.end, perms,
		   &map.offset, &inode, &at) != 5 || !at || perms[2] != 'x')
		return;
	path = format("/proc/%u/map_files/%llx-%llx", tgid, map.start, map.end);
	id.lack = inode ? ID_UNREADABLE : ID_NOT_FOUND;
	if (inode && HAS_LIBS)
		read_file_id(path, &id);
	write_mapping(f, tgid, &map, &id, line + at);
}

/* Only what is running now. */
void scan_processes(FILE *f)
{
	char *line __free(pointer) = NULL;
	glob_t found = {};
	size_t i, room = 0;
	u32 tgid;

	glob("/proc/[0-9]*/maps", GLOB_NOSORT, NULL, &found);
	for (i = 0; i < found.gl_pathc; i++) {
		FILE *maps __free(file) = fopen(found.gl_pathv[i], "re");

		tgid = strtoul(found.gl_pathv[i] + strlen("/proc/"), NULL, 10);
		while (maps && getline(&line, &room, maps) > 0)
			scan_mapping(f, tgid, line);
	}
	globfree(&found);
}

/* Returns 0, also for a CPU that is off, or an error. */
static int watch_cpu(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME, .sample_id_all = 1, .mmap = 1, .mmap2 = 1,
		.task = 1, .comm = 1, .comm_exec = 1, .use_clockid = 1, .clockid = CLOCK_MONOTONIC,
		.build_id = 1, .read_format = READ_LOST,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	void *ring;

	if (fd < 0)
		return errno == ENODEV ? 0 : -errno;
	ring = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		return -errno;
	cpus[nr_cpus++] = (struct watched) { fd, ring };
	return 0;
}

/* That of a mapping; others have only the first numbers. */
struct watch_record {
	struct perf_event_header	head;
	u32				pid;
	u32				ppid;	/* of a fork */
	uint64_t			addr;
	uint64_t			len;
	uint64_t			pgoff;
	unsigned char			id_len;	/* if there is a build id */
	unsigned char			unused[3];
	unsigned char			id[20];
	u32				prot;
	u32				flags;
	char				path[];
};

/* A path that begins with two slashes is none: "//anon". One of two lines could forge one. */
static void watch_mmap(const struct watch_record *r, u64 time)
{
	struct mapping map = { .start = r->addr, .end = r->addr + r->len, .offset = r->pgoff };
	bool named = strncmp(r->path, "//", 2) && !strchr(r->path, '\n');
	struct build_id id = {};

	if (!(r->prot & PROT_EXEC))
		return;
	if (r->head.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		id.len = r->id_len < sizeof(r->id) ? r->id_len : sizeof(r->id);
		memcpy(id.bytes, r->id, id.len);
	}
	fprintf(out, "@%llu ", time);
	write_mapping(out, r->pid, &map, &id, named ? r->path : "");
}

/* The last 8 bytes are the time. After an exec, nothing that was mapped before is there. */
static void take_change(const struct watch_record *r)
{
	u32 type = r->head.type;
	uint64_t time;

	memcpy(&time, (const char *)r + r->head.size - sizeof(time), sizeof(time));
	if (type == PERF_RECORD_MMAP2)
		watch_mmap(r, time);
	else if (type == PERF_RECORD_FORK && r->pid != r->ppid)
		fprintf(out, "@%llu fork %u %u\n", (u64)time, r->pid, r->ppid);
	else if (type == PERF_RECORD_COMM && r->head.misc & PERF_RECORD_MISC_COMM_EXEC)
		fprintf(out, "@%llu exec %u\n", (u64)time, r->pid);
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

static void drain_ring(struct perf_event_mmap_page *ring)
{
	u64 head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE), at = ring->data_tail;
	static union {
		struct watch_record	r;
		uint64_t		words[0x10000 / 8];
	} record;

	while (at < head) {
		copy_from_ring(&record, ring, at, sizeof(record.r.head));
		copy_from_ring(&record, ring, at, record.r.head.size);
		take_change(&record.r);
		at += record.r.head.size;
	}
	__atomic_store_n(&ring->data_tail, at, __ATOMIC_RELEASE);
}

void watch_drain(void)
{
	size_t i;

	for (i = 0; i < nr_cpus; i++)
		drain_ring(cpus[i].ring);
}

/* What runs already is scanned behind the start of the events, so that nothing is missed. */
void watch_start(FILE *f)
{
	glob_t found = {};
	size_t i;
	int ret;

	out = f;
	/* The numbers may have gaps. */
	ret = glob("/sys/devices/system/cpu/cpu[0-9]*", 0, NULL, &found) ? -ENOENT : 0;
	cpus = check_mem(calloc(found.gl_pathc + 1, sizeof(*cpus)));
	for (i = 0; !ret && i < found.gl_pathc; i++)
		ret = watch_cpu(atoi(basename(found.gl_pathv[i]) + strlen("cpu")));
	globfree(&found);
	if (ret)
		note("perf events: %s; processes that end early will have no names of functions",
		     strerror(-ret));
	scan_processes(out);
}

/* Completes the file. */
void watch_stop(void)
{
	u64 count[2], lost = 0;
	size_t i;

	if (!nr_cpus)
		scan_processes(out);
	watch_drain();
	for (i = 0; i < nr_cpus; i++) {
		if (read(cpus[i].fd, count, sizeof(count)) == sizeof(count))
			lost += count[1];
	}
	if (lost)
		note("%llu changes of mappings were lost", lost);
}
