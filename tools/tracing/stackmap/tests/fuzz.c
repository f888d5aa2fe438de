// SPDX-License-Identifier: GPL-2.0
/*
 * Entry of libFuzzer. The first byte of an input tells what the rest is: a map, a kallsyms, a
 * trace, a build id, what user space has mapped, or an ELF file. It goes through all code that uses
 * such input. The output is discarded.
 * See fuzzer in ../Makefile.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "../frame.h"
#include "../map.h"
#include "../symbols.h"
#include "../trace.h"
#include "../user.h"
#include "../util.h"
#include "../view.h"

const char program[] = "fuzzer";

static const u64 text = 0xffffffff81000000ULL;

/* Discard the messages about damaged inputs. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	quiet = true;
	stdout = check_mem(fopen("/dev/null", "w"));
	stderr = check_mem(fopen("/dev/null", "w"));
	return 0;
}

static void fixed_map(struct map *m)
{
	const u64 ips[] = { text, text + 0x100, TRAMPOLINE_MARKER, 0, UINT64_MAX, 0x1234, 0x5500 };

	m->ips = check_mem(malloc(sizeof(ips)));
	memcpy(m->ips, ips, sizeof(ips));
	m->nr_ips = ARRAY_SIZE(ips);
	m->stacks = check_mem(calloc(3, sizeof(*m->stacks)));
	m->stacks[0] = (struct stack) { .id = 7, .nr = 4, .ref = 100 };
	m->stacks[1] = (struct stack) { .id = 4, .nr = 2, .ref = 1, .first = 4 };
	m->stacks[2] = (struct stack) { .id = 3, .nr = 3, .nr_user = 3, .ref = 5, .first = 4 };
	m->nr_stacks = 3;
}

static FILE *open_bytes(const void *data, size_t size)
{
	return check_mem(fmemopen((void *)data, size, "r"));
}

static void print_all(struct map *m)
{
	struct map fixed = { .name = copy_string("fixed"), .source = copy_string("fuzz") };
	struct config cfg = {};

	fixed_map(&fixed);
	print_diff(m, &fixed, &cfg);
	map_free(&fixed);
	print_diff(m, m, &cfg);
	print_summary(m);
	select_stacks(m, &cfg);
	print_text(m, &cfg);
	print_json(m, &cfg);
}

/* A frame holds one number, because one run of the tool has one table of names. */
static void print_names(struct map *m)
{
	struct config cfg = {};
	struct paths paths = {};

	frames_free(m);
	m->frames = NULL;
	merge_stacks(m, &paths, &cfg);
	select_stacks(m, &cfg);
	print_folded(m, &paths);
	print_speedscope(m, &paths, &cfg);
	paths_free(&paths);
	frames_free(m);
	m->frames = NULL;
	print_pprof(m);
}

/* Annotates first, because counting changes @m. */
static void print_trace(struct map *m, const void *trace, size_t size)
{
	struct config cfg = { .trace = "trace", .trace_file = open_bytes(trace, size) };

	has_definitions(cfg.trace_file);
	annotate(m, &cfg);
	rewind(cfg.trace_file);
	print_perf_script(m, &cfg);
	rewind(cfg.trace_file);
	count_stacks(m, true, &cfg);
	fclose(cfg.trace_file);
	print_names(m);
}

static const char fixed_trace[] =
	"     bash-1       [000]    12.345678: stack_id:             <stack_id 7>\n"
	"     bash-1       [000] d..2.   12.345678: <stack_split 7 @ffffffff81000148 4>\n"
	"     bash-1       [000]    12.345678: kernel_stack:         <stack trace >\n"
	"=> _text (ffffffff81000000)\n"
	"=> last (ffffffff81000110)\n"
	"     bash-1       [000]    12.345678: stack_def:            <stack_def 9> {0x1,0x7fffffff}\n"
	"     bash-1       [000]    12.345678: stack_def:            <stack_def 7> 1 2\n"
	"     bash-1       [000] d..2.   12.345678: <stack_def 8>\n"
	" => schedule+0x48/0xc0 [mod]\n"
	"     bash-1       [000] d..2.   12.345678: <stack_split 8 @ffffffff81000148 4>\n"
	"     bash-1       [000] d..2.   12.345678: <stack trace>\n"
	" => schedule+0x48/0xc0 [mod]\n"
	"     bash-1       [000] d..2.   12.345678: sched_switch: x\n"
	"     bash-1       [000] d..2.   12.345678: <stack_id 7>\n"
	"     bash-1       [000] d..2.   12.345678: <user_stack_id 3>\n"
	"     bash-2       [000] d..2.   12.345678: <stack_id 7>\n"
	"     bash-2       [000] d..2.   12.345678: <user_unwind_cookie 30>\n"
	"     bash-2       [000] d..2.   12.345678: <user_unwind_cookie 31>\n"
	"     bash-2       [001] d..2.   12.345678: <user_unwind_stack_id 30 3>\n"
	"     bash-2       [001] d..2.   12.345678: user_unwind_stack: <user_unwind_stack 31> {0x5500}\n"
	"     bash-3       [001] d..2.   12.345678: <user_stack_def 10>\n"
	" => /bin/cat[+0x12] <0000000000005500>\n"
	"     bash-3       [001] d..2.   12.345678: <user stack trace>\n"
	" =>  <0000000000005500>\n";

static void fuzz_map(const uint8_t *data, size_t size)
{
	struct map m = { .name = copy_string("map"), .source = copy_string("fuzz") };
	FILE *f = open_bytes(data, size);

	read_map(&m, f);
	fclose(f);
	print_all(&m);
	print_names(&m);
	print_trace(&m, fixed_trace, strlen(fixed_trace));
	map_free(&m);
}

static void fuzz_kallsyms(const uint8_t *data, size_t size)
{
	struct map m = { .name = copy_string("map"), .source = copy_string("fuzz") };
	char *buf = check_mem(malloc(size + 1));

	memcpy(buf, data, size);
	buf[size] = '\0';
	fixed_map(&m);
	parse_kallsyms(&m.kallsyms, "kallsyms", buf, size);
	symtab_finish(&m.kallsyms);
	print_all(&m);
	print_names(&m);
	print_trace(&m, fixed_trace, strlen(fixed_trace));
	symtab_shift(&m.kallsyms, 0x1000);
	map_free(&m);
	free(buf);
}

static void fuzz_trace(const uint8_t *data, size_t size)
{
	struct map m = { .name = copy_string("map") };
	char syms[] = "ffffffff81000000 T _text\nffffffff81000100 T last\n";
	char users[] = "map 1 5000-6000 0 - /x/cat\ntask 2 1\nfork 3 1\n";

	fixed_map(&m);
	if (data[0] & 1)
		parse_kallsyms(&m.kallsyms, "kallsyms", syms, strlen(syms));
	if (data[0] & 2)
		parse_users(&m.users, "user_maps", users, strlen(users));
	symtab_finish(&m.kallsyms);
	print_trace(&m, data, size);
	map_free(&m);
}

static void fuzz_users(const uint8_t *data, size_t size)
{
	struct map m = { .name = copy_string("map") };
	char *buf = check_mem(malloc(size + 1));

	memcpy(buf, data, size);
	buf[size] = '\0';
	fixed_map(&m);
	parse_users(&m.users, "user_maps", buf, size);
	print_trace(&m, fixed_trace, strlen(fixed_trace));
	map_free(&m);
	free(buf);
}

static void fuzz_elf(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", 0);
	char *path = format("/proc/self/fd/%d", fd);
	struct build_id id = {};

	if (write(fd, data, size) == (ssize_t)size)
		read_file_id(path, &id);
	close(fd);
	free(path);
}

static void fuzz_build_id(const uint8_t *data, size_t size)
{
	struct build_id saved = {}, running = {};
	FILE *f = open_bytes(data, size);
	struct config cfg = {};
	struct map m = {};

	read_build_id(f, &saved);
	fclose(f);
	build_id_of_notes((const char *)data, size, &running);
	m.build_id = saved;
	check_build_id(&m, &running, "notes", &cfg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	switch (data[0]) {
	case 'M':
		fuzz_map(data + 1, size - 1);
		break;
	case 'K':
		fuzz_kallsyms(data + 1, size - 1);
		break;
	case 'T':
		fuzz_trace(data + 1, size - 1);
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
	default:
		break;
	}
	return 0;
}
