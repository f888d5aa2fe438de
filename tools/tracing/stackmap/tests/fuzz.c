// SPDX-License-Identifier: GPL-2.0
/*
 * Entry of libFuzzer. The first byte of an input tells what the rest is: a map, a kallsyms, a text,
 * a build id, what user space has mapped, an ELF file, or the records of a recording. It goes
 * through all code that uses such input. The output is discarded. See fuzzer in ../Makefile.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "../profile.h"

const char * const program = "fuzzer";

static const u64 text = 0xffffffff81000000ULL;

/* Discard the messages about damaged inputs. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	quiet = true;
	stdout = check_mem(fopen("/dev/null", "w"));
	stderr = check_mem(fopen("/dev/null", "w"));
	return 0;
}

/* In the place of gzip. */
FILE *__wrap_popen(const char *command, const char *type)
{
	return fopen("/dev/null", type);
}

int __wrap_pclose(FILE *f)
{
	return fclose(f);
}

static void fixed_map(struct map *m)
{
	const u64 ips[] = {
		text, text + 0x100, TRAMPOLINE_MARKER, 0, UINT64_MAX, 0x1234, 0x5500,
		make_word(1, 0x123),
	};

	m->ips = grow(NULL, 0, ARRAY_SIZE(ips), sizeof(*ips));
	memcpy(m->ips, ips, sizeof(ips));
	m->nr_ips = ARRAY_SIZE(ips);
	m->stacks = grow(NULL, 0, 4, sizeof(*m->stacks));
	m->stacks[0] = (struct stack) { .id = 7, .nr = 4, .ref = 100 };
	m->stacks[1] = (struct stack) { .id = 4, .nr = 2, .ref = 1, .first = 4 };
	m->stacks[2] = (struct stack) {
		.id = 3, .nr = 4, .nr_user = 4, .user = true, .ref = 5, .first = 4,
	};
	m->nr_stacks = 3;
	m->values[VAL_EVENTS] = (struct value_type) { "events", "count" };
}

/* A text ends with a newline. */
static char *copy_lines(const void *data, size_t size)
{
	char *buf = check_mem(malloc(size + 2));

	memcpy(buf, data, size);
	memcpy(buf + size, "\n", sizeof("\n"));
	return buf;
}

static void print_all(struct map *m)
{
	struct map fixed = { .name = copy_string("fixed"), .sym.source = copy_string("fuzz") };
	struct config cfg = {};

	fixed_map(&fixed);
	print_diff(m, &fixed, NULL, &cfg);
	map_free(&fixed);
	print_diff(m, m, NULL, &cfg);
	note_summary(m);
	select_stacks(m, &cfg, 0);
	print_text(m, NULL, &cfg);
	print_json(m, NULL, &cfg);
}

/* A frame holds one number, of a text or of a name, which takes the place of the address. */
static void print_names(struct map *m, const char *function)
{
	struct config cfg = { .function = function, .callers = true };
	struct pool names = {};

	frames_free(&m->sym);
	drop_tracers(m);
	merge_stacks(m, &names, &cfg);
	select_stacks(m, &cfg, 0);
	print_functions(m, &names, &cfg);
	print_function_diff(m, m, &names, &cfg);
	print_text(m, &names, &cfg);
	print_json(m, &names, &cfg);
	print_diff(m, m, &names, &cfg);
	print_folded(m, &names, &cfg);
	cfg.json = true;
	print_functions(m, &names, &cfg);
	print_pprof(m, &names, &cfg);
	pool_free(&names);
}

static void filter_text(struct map *m, const void *bytes, size_t size)
{
	int fd = memfd_create("text", 0);
	char *path = format("/proc/self/fd/%d", fd);
	struct config cfg = { .trace = path };

	if (write(fd, bytes, size) == (ssize_t)size)
		annotate(m, &cfg);
	close(fd);
	free(path);
}

static const char fixed_text[] =
	"     bash-1       [000]    12.345678: stack_id:             <stack_id 7>\n"
	"     bash-1       [000] d..2.   12.345678: <stack_split 7 @ffffffff81000148 4>\n"
	"     bash-1       [000] d..2.   12.345678: <user_stack_id 3>\n"
	"     bash-2       [000] d..2.   12.345678: <stack_id 9>\n"
	" => schedule+0x48/0xc0 [mod]\n"
	"     bash-2       [001] d..2.   12.345678: <user_unwind_stack_id 30 3>\n"
	"     bash-2       [001] d..2.   12.345678: <user_unwind_stack_split 30 @5500 3>\n";

static void fuzz_map(const uint8_t *data, size_t size)
{
	struct map m = { .name = copy_string("map"), .sym.source = copy_string("fuzz") };

	read_map(&m, (const char *)data, size);
	print_all(&m);
	filter_text(&m, fixed_text, strlen(fixed_text));
	print_names(&m, NULL);
	map_free(&m);
}

static void fuzz_kallsyms(const uint8_t *data, size_t size)
{
	struct map m = { .name = copy_string("map"), .sym.source = copy_string("fuzz") };
	char *buf = copy_lines(data, size);

	fixed_map(&m);
	parse_lines("kallsyms", "kallsyms", buf, size + 1, parse_symbol_line, &m.sym.kallsyms);
	symtab_finish(&m.sym.kallsyms);
	print_all(&m);
	filter_text(&m, fixed_text, strlen(fixed_text));
	print_names(&m, NULL);
	symtab_shift(&m.sym.kallsyms, 0x1000);
	map_free(&m);
	free(buf);
}

static void fuzz_text(const uint8_t *data, size_t size)
{
	struct map m = { .name = copy_string("map") };

	fixed_map(&m);
	filter_text(&m, data, size);
	map_free(&m);
}

static void fuzz_users(const uint8_t *data, size_t size)
{
	struct map m = { .name = copy_string("map") };
	char *buf = copy_lines(data, size);
	struct users *u = &m.sym.users;
	u64 addr, time;
	u32 tgid;

	parse_lines("user_maps", "user_maps", buf, size + 1, parse_user_line, u);
	for (tgid = 0; tgid < 10; tgid++) {
		for (time = 0; time < 8; time++) {
			for (addr = 0; addr < 0x8000; addr += 0x800)
				place_word(u, users_epoch(u, tgid, time), addr, time & 1);
		}
	}
	map_free(&m);
	free(buf);
}

/* As a file of a stack, and as one that is scanned. */
static void fuzz_elf(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", 0);
	char *path = format("/proc/self/fd/%d", fd);
	struct map m = { .name = copy_string("map") };
	struct build_id id = {};
	struct config cfg = {};

	if (write(fd, data, size) == (ssize_t)size)
		read_file_id(path, &id);
	fixed_map(&m);
	get_object(&m.sym.users, path, &(struct build_id) {});
	print_text(&m, NULL, &cfg);
	map_free(&m);
	close(fd);
	free(path);
}

static void fuzz_build_id(const uint8_t *data, size_t size)
{
	struct build_id saved = {}, running = {};
	char *buf = copy_lines(data, size);
	struct config cfg = {};
	struct map m = {};

	parse_build_id(buf, &saved);
	free(buf);
	build_id_of_notes((const char *)data, size, &running);
	m.build_id = saved;
	check_build_id(&m, &running, "notes", &cfg);
}

/*
 * Takes the place of what reads the file $DAT, which has the formats of the events: the records are
 * those of the input. Each begins with its length.
 */
static const uint8_t *records;
static size_t records_size;

int __wrap_dat_read(struct profile *p, const char *path, record_fn *take)
{
	const uint8_t *data = records, *end = records + records_size;
	struct tep_record rec = {};
	char *copy;

	for (; end - data > 2 && end - data > data[0]; data += 1 + data[0], rec.ts += 100) {
		rec.size = data[0];
		copy = check_mem(malloc(rec.size + 1));
		memcpy(copy, data + 1, rec.size);
		rec.data = copy;
		rec.cpu = rec.size > 5 ? copy[5] & 1 : 0;
		rec.missed_events = rec.size > 6 && copy[6] == 77;
		rec.ts -= rec.size > 6 && copy[6] == 78 ? 1000 : 0;
		if (rec.size >= 8)
			take(p->instances[0].handle, &rec, rec.cpu, p);
		free(copy);
	}
	return 0;
}

static void fuzz_records(const uint8_t *data, size_t size)
{
	struct config cfg = { .by = data[0] % (BY_FIELD + 1), .for_pprof = data[0] & 1 };
	struct map m = { .name = copy_string("map") };
	char users[] = "map 1 5000-6000 0 - /x/cat";

	cfg.by_field = cfg.by == BY_FIELD ? data[0] & 32 ? "name" : "vec" : NULL;
	cfg.histogram = data[0] & 64;
	cfg.weight = data[0] & 2 ? "bytes_alloc" : NULL;
	cfg.off_cpu = data[0] & 4;
	cfg.wakers = cfg.off_cpu && data[0] & 64;
	if (!cfg.off_cpu && data[0] & 8) {
		cfg.allocs = "kmalloc";
		cfg.frees = "kfree";
		cfg.keys = "ptr";
		cfg.latency = data[0] & 64;
	}
	fixed_map(&m);
	parse_user_line(&m.sym.users, users);
	records = data + 1;
	records_size = size - 1;
	if (data[0] & 16 && data[0] & 1)
		print_perfetto(&m, getenv("DAT"), &cfg);
	else
		make_profile(&m, getenv("DAT"), data[0] & 16 ? print_perf_sample : NULL, NULL,
			     &cfg);
	print_names(&m, data[0] & 32 ? "[no stack]" : NULL);
	profile_free(&m);
	map_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3)
		return 0;
	switch (data[0]) {
	case 'M':
		fuzz_map(data + 1, size - 1);
		break;
	case 'K':
		fuzz_kallsyms(data + 1, size - 1);
		break;
	case 'T':
		fuzz_text(data + 1, size - 1);
		break;
	case 'B':
		fuzz_build_id(data + 1, size - 1);
		break;
	case 'U':
		fuzz_users(data + 1, size - 1);
		break;
	case 'E':
		fuzz_elf(data + 1, size - 1);
		break;
	case 'R':
		fuzz_records(data + 1, size - 1);
		break;
	default:
		break;
	}
	return 0;
}
