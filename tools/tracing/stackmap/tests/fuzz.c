// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer's entry to stackmap_dump. The first byte of an input says what the rest is: a map, a
 * kallsyms, or a trace to annotate. Whatever is read is printed in all forms, to nowhere.
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -o fuzzer fuzz.c
 */
#define main stackmap_main
#define FRAME_SLOTS 8
#include "../../stackmap_dump.c"
#undef main

static const u64 text = 0xffffffff81000000ULL;

/* The messages of a million damaged inputs are not to be read. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	quiet = true;
	stdout = check_mem(fopen("/dev/null", "w"));
	stderr = check_mem(fopen("/dev/null", "w"));
	return 0;
}

static void fixed_map(struct map *m)
{
	const u64 ips[] = { text, text + 0x100, TRAMPOLINE_MARKER, 0, UINT64_MAX, 0x1234 };

	m->ips = check_mem(malloc(sizeof(ips)));
	memcpy(m->ips, ips, sizeof(ips));
	m->nr_ips = ARRAY_SIZE(ips);
	m->stacks = check_mem(calloc(2, sizeof(*m->stacks)));
	m->stacks[0] = (struct stack) { .id = 7, .nr = 4, .ref = 100 };
	m->stacks[1] = (struct stack) { .id = 8, .nr = 2, .ref = 1, .first = 4 };
	m->nr_stacks = 2;
}

static void print_all(struct map *m)
{
	struct config cfg = {};

	m->source = copy_string("fuzz");
	print_diff(m, m, &cfg);
	print_summary(m);
	select_stacks(m, &cfg);
	print_text(m, &cfg);
	print_folded(m, &cfg);
	print_json(m, &cfg);
}

static void print_names(struct map *m)
{
	struct config cfg = {};

	frames_free(m);
	m->frames = NULL;
	print_speedscope(m, &cfg);
}

static void fuzz_map(const uint8_t *data, size_t size)
{
	struct map m = { .name = copy_string("map") };
	FILE *f = check_mem(fmemopen((void *)data, size, "r"));

	read_map(&m, f);
	fclose(f);
	print_all(&m);
	print_names(&m);
	map_free(&m);
}

static void fuzz_kallsyms(const uint8_t *data, size_t size)
{
	struct map m = { .name = copy_string("map") };
	char *buf = check_mem(malloc(size + 1));

	memcpy(buf, data, size);
	buf[size] = '\0';
	fixed_map(&m);
	parse_kallsyms(&m.kallsyms, "kallsyms", buf, size);
	symtab_finish(&m.kallsyms);
	print_all(&m);
	print_names(&m);
	symtab_shift(&m.kallsyms, 0x1000);
	map_free(&m);
	free(buf);
}

static void fuzz_trace(const uint8_t *data, size_t size, bool count)
{
	struct map m = { .name = copy_string("map"), .source = copy_string("fuzz") };
	FILE *f = check_mem(fmemopen((void *)data, size, "r"));
	struct config cfg = { .trace = "trace" };

	fixed_map(&m);
	if (count) {
		count_stacks(&m, f, &cfg);
		select_stacks(&m, &cfg);
		print_folded(&m, &cfg);
		print_names(&m);
	} else {
		annotate_lines(&m, f, &cfg);
	}
	fclose(f);
	map_free(&m);
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
		fuzz_trace(data + 1, size - 1, false);
		fuzz_trace(data + 1, size - 1, true);
		break;
	default:
		break;
	}
	return 0;
}
