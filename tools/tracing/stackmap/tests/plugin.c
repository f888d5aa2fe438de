// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of plugin_stackmap.so: loads it as trace-cmd does, hands it records, and compares what it
 * prints. TRACEEVENT_PLUGIN_DIR is the directory of the plugin. Files are made in the current
 * directory. With "-v", prints also what passes.
 *
 *	cc -o test plugin.c $(pkg-config --cflags --libs libtraceevent)
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event-parse.h>
#include <trace-seq.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define MARKER		0x7fffffffU
#define SCHEDULE	0x81000100U
#define KTHREAD		0x81000200U
#define COOKIE		0x300000001ULL

enum {
	STACK = 4,
	ID = 21,
	SPLIT,
	SPLIT3,
	DEF,
	USER_ID,
	USER_DEF,
	UNWIND_COOKIE,
	UNWIND_ID,
	UNWIND_STACK,
	UNWIND_SPLIT,
	FILE_DEF,
	NR_EVENTS = FILE_DEF + 1 - ID,
};

typedef uint32_t u32;
typedef uint64_t u64;

static bool verbose;
static int passed, failed;

/* The kind of machine that the trace is from. */
struct machine {
	int	word;
	bool	big;
};

static const struct machine machines[] = { { 8, false }, { 8, true }, { 4, false }, { 4, true } };

struct trace {
	struct tep_handle	*tep;
	struct tep_plugin_list	*plugins;
	struct machine		on;
	unsigned char		data[16384];	/* of the record that is built */
	int			len;
};

static void expect(const char *what, const char *got, const char *want)
{
	bool good = !strcmp(got, want);

	passed += good;
	failed += !good;
	if (!good)
		printf("FAIL: %s\n--- printed:\n%s\n--- expected:\n%s\n", what, got, want);
	else if (verbose)
		printf("pass: %s\n", what);
}

static void put(struct trace *t, u64 n, int size)
{
	int i;

	for (i = 0; i < size; i++)
		t->data[t->len++] = n >> 8 * (t->on.big ? size - 1 - i : i);
}

static void begin(struct trace *t, int type)
{
	t->len = 0;
	put(t, type, 2);
	put(t, 0, 2);
	put(t, 1, 4);
}

/* Writes a number of the record anew. */
static void overwrite(struct trace *t, int at, u32 n, int size)
{
	int len = t->len;

	t->len = at;
	put(t, n, size);
	t->len = len;
}

/* A copy of its own, so that the sanitizer sees what is read behind the end. */
static char *print_bytes(struct trace *t, int len)
{
	struct tep_record record = { .size = len, .data = malloc(len) };
	struct trace_seq s;
	char *text;

	memcpy(record.data, t->data, len);
	trace_seq_init(&s);
	tep_print_event(t->tep, &s, &record, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&s);
	text = strdup(s.buffer);
	trace_seq_destroy(&s);
	free(record.data);
	return text;
}

static void prints(struct trace *t, const char *what, const char *want)
{
	char *got = print_bytes(t, t->len);

	expect(what, got, want);
	free(got);
}

static void discard(struct trace *t)
{
	free(print_bytes(t, t->len));
}

static void build_id(struct trace *t, u32 id)
{
	begin(t, ID);
	put(t, id, 4);
}

static void build_def(struct trace *t, u32 id, int nr, ...)
{
	va_list ap;
	int i;

	begin(t, DEF);
	put(t, id, 4);
	put(t, nr, 4);
	va_start(ap, nr);
	for (i = 0; i < nr; i++)
		put(t, va_arg(ap, u32), t->on.word);
	va_end(ap);
}

/* No symbol may be used for one of these, nor may the last one be taken for a kernel address. */
static const u64 user_ips[] = { 0x7f12a4b3c4d5, SCHEDULE + 0x40, MARKER, 0x80fff800 };

#define USER_FRAMES_64							\
	"=>  <00007f12a4b3c4d5>\n=>  <0000000081000140>\n"		\
	"=>  <000000007fffffff>\n=>  <0000000080fff800>\n"
#define USER_FRAMES_32							\
	"=>  <a4b3c4d5>\n=>  <81000140>\n=>  <7fffffff>\n=>  <80fff800>\n"

static void put_user_frames(struct trace *t, u32 nr)
{
	u32 i;

	put(t, nr, 4);
	for (i = 0; i < nr; i++)
		put(t, user_ips[i], t->on.word);
}

static void build_user_id(struct trace *t, u32 id)
{
	begin(t, USER_ID);
	put(t, 99, 4);
	put(t, id, 4);
}

static void build_user_def(struct trace *t, u32 id)
{
	begin(t, USER_DEF);
	put(t, id, 4);
	put_user_frames(t, ARRAY_SIZE(user_ips));
}

static void build_cookie(struct trace *t, u64 cookie)
{
	begin(t, UNWIND_COOKIE);
	put(t, cookie, 8);
}

static void build_unwind_id(struct trace *t, u32 id)
{
	begin(t, UNWIND_ID);
	put(t, COOKIE, 8);
	put(t, 99, 4);
	put(t, id, 4);
}

static void build_unwind_stack(struct trace *t, u32 nr)
{
	begin(t, UNWIND_STACK);
	put(t, COOKIE, 8);
	put(t, 99, 4);
	put_user_frames(t, nr);
}

static void prints_user(struct trace *t, const char *what, const char *head)
{
	char want[256];

	sprintf(want, "%s\n%s", head, t->on.word == 8 ? USER_FRAMES_64 : USER_FRAMES_32);
	prints(t, what, want);
}

/* Two or three parts, first, first + 1, ..., with SCHEDULE + 1, + 2 between them. */
static void build_split(struct trace *t, u32 first, int nr)
{
	begin(t, nr > 2 ? SPLIT3 : SPLIT);
	put(t, first, 4);
	put(t, first + 1, 4);
	put(t, SCHEDULE + 1, t->on.word);
	if (nr < 3)
		return;
	put(t, SCHEDULE + 2, t->on.word);
	put(t, first + 2, 4);
	if (t->on.word == 8)
		put(t, 0, 4);
}

static void add_field(char *text, const char *field, int offset, int size)
{
	sprintf(text + strlen(text), "\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:0;\n",
		field, offset, size);
}

static void begin_format(char *text, const char *name, int id)
{
	sprintf(text, "name: %s\nID: %d\nformat:\n", name, id);
	add_field(text, "unsigned short common_type", 0, 2);
	add_field(text, "unsigned char common_flags", 2, 1);
	add_field(text, "unsigned char common_preempt_count", 3, 1);
	add_field(text, "int common_pid", 4, 4);
	strcat(text, "\n");
}

/* Without the plugin, the events would print as this. */
static void end_format(struct trace *t, char *text)
{
	strcat(text, "\nprint fmt: \"by the format\"\n");
	if (tep_parse_event(t->tep, text, strlen(text), "ftrace"))
		abort();
}

static void add_events(struct trace *t)
{
	int word = t->on.word;
	char text[2048];

	begin_format(text, "kernel_stack", STACK);
	add_field(text, "int size", 8, 4);
	add_field(text, "unsigned long caller[8]", 16, 8 * word);
	end_format(t, text);

	begin_format(text, "stack_id", ID);
	add_field(text, "int stack_id", 8, 4);
	end_format(t, text);

	begin_format(text, "stack_split", SPLIT);
	add_field(text, "int stack_id", 8, 4);
	add_field(text, "int outer_id", 12, 4);
	add_field(text, "unsigned long ip", 16, word);
	end_format(t, text);

	begin_format(text, "stack_split3", SPLIT3);
	add_field(text, "int stack_id", 8, 4);
	add_field(text, "int outer_id", 12, 4);
	add_field(text, "unsigned long ip", 16, word);
	add_field(text, "unsigned long outer2_ip", 16 + word, word);
	add_field(text, "int outer2_id", 16 + 2 * word, 4);
	end_format(t, text);

	begin_format(text, "stack_def", DEF);
	add_field(text, "int stack_id", 8, 4);
	add_field(text, "int size", 12, 4);
	add_field(text, "unsigned long caller[8]", 16, 8 * word);
	end_format(t, text);
}

static void add_user_events(struct trace *t)
{
	char text[2048];

	begin_format(text, "user_stack_id", USER_ID);
	add_field(text, "unsigned int tgid", 8, 4);
	add_field(text, "int stack_id", 12, 4);
	end_format(t, text);

	begin_format(text, "user_stack_def", USER_DEF);
	add_field(text, "int stack_id", 8, 4);
	add_field(text, "int size", 12, 4);
	add_field(text, "unsigned long caller[8]", 16, 8 * t->on.word);
	end_format(t, text);

	begin_format(text, "user_unwind_cookie", UNWIND_COOKIE);
	add_field(text, "u64 cookie", 8, 8);
	end_format(t, text);

	begin_format(text, "user_unwind_stack_id", UNWIND_ID);
	add_field(text, "u64 cookie", 8, 8);
	add_field(text, "unsigned int tgid", 16, 4);
	add_field(text, "int stack_id", 20, 4);
	end_format(t, text);

	begin_format(text, "user_unwind_stack", UNWIND_STACK);
	add_field(text, "u64 cookie", 8, 8);
	add_field(text, "unsigned int tgid", 16, 4);
	add_field(text, "int size", 20, 4);
	add_field(text, "unsigned long caller[8]", 24, 8 * t->on.word);
	end_format(t, text);

	begin_format(text, "user_unwind_stack_split", UNWIND_SPLIT);
	add_field(text, "int stack_id", 8, 4);
	add_field(text, "unsigned int tgid", 12, 4);
	add_field(text, "u64 cookie", 16, 8);
	add_field(text, "unsigned long ip", 24, t->on.word);
	end_format(t, text);

	begin_format(text, "user_file_def", FILE_DEF);
	add_field(text, "int file_id", 8, 4);
	add_field(text, "unsigned int id_size", 12, 4);
	add_field(text, "unsigned char build_id[20]", 16, 20);
	add_field(text, "char path[]", 36, 0);
	end_format(t, text);
}

static void open_trace(struct trace *t, const struct machine *on)
{
	t->on = *on;
	t->tep = tep_alloc();
	t->plugins = tep_load_plugins(t->tep);
	tep_set_file_bigendian(t->tep, on->big ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_local_bigendian(t->tep, TEP_LITTLE_ENDIAN);
	tep_set_long_size(t->tep, on->word);
	tep_register_function(t->tep, (char *)"_text", 0x81000000, NULL);
	tep_register_function(t->tep, (char *)"schedule", SCHEDULE, NULL);
	tep_register_function(t->tep, (char *)"kthread", KTHREAD, NULL);
	tep_register_function(t->tep, (char *)"_end", KTHREAD + 0x100, NULL);
	add_events(t);
	add_user_events(t);
}

static void close_trace(struct trace *t)
{
	tep_unload_plugins(t->plugins, t->tep);
	tep_free(t->tep);
}

/* What was said on stderr since the last call; a file takes its place. */
static const char *said(void)
{
	static char text[4096];
	static long seen;
	FILE *f = fopen("said", "r");
	size_t n;

	fseek(f, seen, SEEK_SET);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fseek(f, 0, SEEK_END);
	seen = ftell(f);
	fclose(f);
	return text;
}

static void expect_said(const char *what, const char *part)
{
	const char *text = said();

	expect(what, *part ? strstr(text, part) ? part : text : text, part);
}

static void set_option(const char *name, const char *value)
{
	tep_plugin_add_option(name, value);
}

#define FRAMES_7 "=> schedule (81000140)\n=> kthread (81000210)\n"
#define FRAMES_8 "=> kthread (81000220)\n"
#define SPLIT_7_8 "<stack_split 7 @81000101 8>\n" FRAMES_7 "=> schedule (81000101)\n" FRAMES_8

static void define_some(struct trace *t)
{
	build_def(t, 7, 2, SCHEDULE + 0x40, KTHREAD + 0x10);
	prints(t, "a definition", "<stack_def 7>\n" FRAMES_7);
	build_def(t, 8, 1, KTHREAD + 0x20);
	prints(t, "another definition", "<stack_def 8>\n" FRAMES_8);
}

static void test_ids(const struct machine *on)
{
	struct trace t;

	open_trace(&t, on);
	build_id(&t, 7);
	prints(&t, "an id that nothing has defined", "<stack_id 7>");
	expect_said("the first such id is told", "no frames for id 7");
	define_some(&t);
	build_id(&t, 7);
	prints(&t, "an id", "<stack_id 7>\n" FRAMES_7);
	build_id(&t, 9);
	prints(&t, "another id that nothing has defined", "<stack_id 9>");
	build_def(&t, 7, 2, SCHEDULE + 0x40, KTHREAD + 0x10);
	discard(&t);
	build_id(&t, 7);
	prints(&t, "an id that was defined twice", "<stack_id 7>\n" FRAMES_7);
	expect_said("nothing more is told", "");
	build_def(&t, 9, 3, MARKER, 0x1234, SCHEDULE);
	prints(&t, "frames without a name",
	       "<stack_def 9>\n=> [FTRACE TRAMPOLINE]\n=> 1234\n=> schedule (81000100)\n");
	close_trace(&t);
}

/* The plugin that trace-cmd has for full stacks prints the same lines. */
static void test_form(const struct machine *on)
{
	struct trace t;

	open_trace(&t, on);
	begin(&t, STACK);
	put(&t, 2, 8);
	put(&t, SCHEDULE + 0x40, on->word);
	put(&t, KTHREAD + 0x10, on->word);
	prints(&t, "the form of a full stack", "<stack trace >\n" FRAMES_7);
	close_trace(&t);
}

static void test_split(const struct machine *on)
{
	struct trace t;

	open_trace(&t, on);
	define_some(&t);
	build_split(&t, 7, 2);
	prints(&t, "two parts", SPLIT_7_8);
	build_split(&t, 7, 3);
	prints(&t, "one of the parts has no frames", "<stack_split 7 @81000101 8 @81000102 9>");
	build_split(&t, 6, 2);
	prints(&t, "the first one has no frames", "<stack_split 6 @81000101 7>");
	build_def(&t, 9, 1, 0x1000);
	discard(&t);
	build_split(&t, 7, 3);
	prints(&t, "three parts", "<stack_split 7 @81000101 8 @81000102 9>\n" FRAMES_7
	       "=> schedule (81000101)\n" FRAMES_8 "=> schedule (81000102)\n=> 1000\n");
	overwrite(&t, 16 + 2 * on->word, 0x80000009, 4);
	prints(&t, "a negative third part", "<stack_split3, damaged>");
	build_split(&t, 7, 2);
	overwrite(&t, 12, UINT32_MAX, 4);
	prints(&t, "no second part", "<stack_split, damaged>");
	close_trace(&t);
	said();
}

static void test_user(const struct machine *on)
{
	struct trace t;

	open_trace(&t, on);
	build_user_id(&t, 9);
	prints(&t, "a user id that nothing has defined", "<user_stack_id 9>");
	expect_said("the first such user id is told", "no frames for id 9");
	build_user_def(&t, 9);
	prints_user(&t, "a definition of a user stack", "<user_stack_def 9>");
	build_user_id(&t, 9);
	prints_user(&t, "a user id", "<user_stack_id 9>");
	build_unwind_id(&t, 9);
	prints_user(&t, "a user id with a cookie", "<user_unwind_stack_id 300000001 9>");
	build_unwind_id(&t, 8);
	prints(&t, "no frames for a user id with a cookie", "<user_unwind_stack_id 300000001 8>");
	expect_said("nothing more is told of user ids", "");
	close_trace(&t);
}

/* A file has the generation of the stack. */
#define GEN	(3 << 19)

static u64 file_word(u32 number, u64 offset)
{
	return 1ULL << 63 | (u64)number << 44 | offset;
}

static void build_file(struct trace *t, u32 id, const char *path)
{
	size_t i;

	begin(t, FILE_DEF);
	put(t, id, 4);
	put(t, 20, 4);
	for (i = 0; i < 20; i++)
		put(t, 0xab, 1);
	for (i = 0; i <= strlen(path); i++)
		put(t, path[i], 1);
}

/* Frames by file, of which one is not defined. */
static void test_files(void)
{
	static const char frames[] = "=> /x/li?b.so[+0x10]\n=> /x/cat[+0x123]\n"
		"=>  <8000000000000005>\n=>  <0000000000000077>\n";
	char want[256];
	struct trace t;

	open_trace(&t, machines);
	build_file(&t, 1, "/x/older");
	prints(&t, "a file of an older generation", "<user_file_def 1 /x/older>");
	build_file(&t, GEN + 1, "/x/cat");
	prints(&t, "a file", "<user_file_def 1572865 /x/cat>");
	build_file(&t, GEN + 2, "/x/li\\012b.so");
	prints(&t, "a file with an escape", "<user_file_def 1572866 /x/li?b.so>");
	while (--t.len >= 8)
		prints(&t, "a file that is cut off", "<user_file_def, damaged>");
	begin(&t, USER_DEF);
	put(&t, GEN + 9, 4);
	put(&t, 3, 4);
	put(&t, file_word(1, 0x123), 8);
	put(&t, file_word(3, 5), 8);
	put(&t, 0x77, 8);
	discard(&t);
	begin(&t, UNWIND_SPLIT);
	put(&t, GEN + 9, 4);
	put(&t, 1, 4);
	put(&t, COOKIE, 8);
	put(&t, file_word(2, 0x10), 8);
	snprintf(want, sizeof(want),
		 "<user_unwind_stack_split 300000001 @8000200000000010 1572873>\n%s", frames);
	prints(&t, "a user stack by file, and what an interrupt has hit", want);
	build_file(&t, GEN + 1, "/x/of_another_instance");
	discard(&t);
	begin(&t, UNWIND_SPLIT);
	put(&t, GEN + 9, 4);
	put(&t, 1, 4);
	put(&t, COOKIE, 8);
	put(&t, file_word(1, 0x10), 8);
	prints(&t, "a file of two meanings",
	       "<user_unwind_stack_split 300000001 @8000100000000010 1572873>\n"
	       "=>  <8000000000000010>\n=>  <8000000000000123>\n"
	       "=>  <8000000000000005>\n=>  <0000000000000077>\n");
	close_trace(&t);
}

static void test_cookie(const struct machine *on)
{
	struct trace t;

	open_trace(&t, on);
	build_cookie(&t, COOKIE);
	prints(&t, "a cookie", "<user_unwind_cookie 300000001>");
	build_cookie(&t, 0x8000000000000001);
	prints(&t, "a cookie of 64 bits", "<user_unwind_cookie 8000000000000001>");
	build_unwind_stack(&t, ARRAY_SIZE(user_ips));
	prints_user(&t, "a full user stack", "<user_unwind_stack 300000001>");
	build_user_id(&t, 0);
	prints(&t, "a full user stack defines nothing", "<user_stack_id 0>");
	expect_said("that is told", "no frames for id 0");
	build_unwind_stack(&t, 0);
	prints(&t, "a full user stack without frames", "<user_unwind_stack 300000001>");
	expect_said("nothing is told of cookies", "");
	close_trace(&t);
	said();
}

/* 7 and 8 are kernel stacks, 9 is a user stack. */
static void test_kinds(const struct machine *on)
{
	struct trace t;

	open_trace(&t, on);
	define_some(&t);
	build_user_def(&t, 9);
	discard(&t);
	build_id(&t, 9);
	prints(&t, "the id of a user stack, as that of a kernel stack", "<stack_id 9>");
	expect_said("the other kind is told", "no frames for id 9");
	build_split(&t, 8, 2);
	prints(&t, "a user stack as a part", "<stack_split 8 @81000101 9>");
	build_user_id(&t, 7);
	prints(&t, "the id of a kernel stack, as that of a user stack", "<user_stack_id 7>");
	build_unwind_id(&t, 7);
	prints(&t, "the same with a cookie", "<user_unwind_stack_id 300000001 7>");
	build_user_id(&t, 9);
	prints_user(&t, "the user stack is still there", "<user_stack_id 9>");
	build_id(&t, 7);
	prints(&t, "the kernel stack is still there", "<stack_id 7>\n" FRAMES_7);

	/* In another instance, the id may be a kernel stack. */
	build_def(&t, 9, 1, KTHREAD + 0x20);
	discard(&t);
	expect_said("an id of both kinds has one stack of each", "");
	build_user_id(&t, 9);
	prints_user(&t, "an id of both kinds, as that of a user stack", "<user_stack_id 9>");
	build_id(&t, 9);
	prints(&t, "an id of both kinds, as that of a kernel stack", "<stack_id 9>\n" FRAMES_8);
	close_trace(&t);
}

static void test_traces(void)
{
	struct trace t, other;

	open_trace(&t, machines);
	define_some(&t);
	open_trace(&other, machines);
	build_id(&other, 7);
	prints(&other, "an id of another trace", "<stack_id 7>");
	build_def(&other, 7, 1, KTHREAD + 0x20);
	discard(&other);
	build_id(&t, 7);
	prints(&t, "the same id in this trace", "<stack_id 7>\n" FRAMES_7);
	close_trace(&t);
	build_id(&other, 7);
	prints(&other, "one trace is closed", "<stack_id 7>\n" FRAMES_8);
	close_trace(&other);
	said();
}

static void test_instances(void)
{
	struct trace t;

	open_trace(&t, machines);
	define_some(&t);
	build_def(&t, 7 + (1 << 19), 1, KTHREAD + 0x20);
	discard(&t);
	build_id(&t, 7 + (1 << 19));
	prints(&t, "an id of another generation", "<stack_id 524295>\n" FRAMES_8);
	build_id(&t, 7);
	prints(&t, "the id of the first generation", "<stack_id 7>\n" FRAMES_7);
	build_def(&t, 7, 1, KTHREAD);
	prints(&t, "a second meaning of an id", "<stack_def 7>\n=> kthread (81000200)\n");
	expect_said("it is told", "id 7 has two stacks");
	build_id(&t, 7);
	prints(&t, "an id of two meanings", "<stack_id 7>");
	close_trace(&t);
	said();
}

static void test_deep(void)
{
	char *want = malloc(20000), *p;
	struct trace t;
	int i;

	open_trace(&t, machines);
	begin(&t, DEF);
	put(&t, 7, 4);
	put(&t, 1024, 4);
	p = want + sprintf(want, "<stack_id 7>\n");
	for (i = 1; i <= 1024; i++) {
		put(&t, i, 8);
		p += sprintf(p, "=> %x\n", i);
	}
	discard(&t);
	build_id(&t, 7);
	prints(&t, "1024 frames", want);
	close_trace(&t);
	free(want);
}

static const u32 bad_sizes[] = { 5, 1025, 0x40000000, 0x7fffffff, 0x80000000, 0xffffffff };

static void test_damaged_user(const struct machine *on)
{
	struct trace t;
	size_t i;

	open_trace(&t, on);
	for (i = 0; i < ARRAY_SIZE(bad_sizes); i++) {
		build_user_def(&t, 9);
		overwrite(&t, 12, bad_sizes[i], 4);
		prints(&t, "a wrong number of user frames", "<user_stack_def, damaged>");
		build_unwind_stack(&t, ARRAY_SIZE(user_ips));
		overwrite(&t, 20, bad_sizes[i], 4);
		prints(&t, "a wrong number of frames of a full user stack",
		       "<user_unwind_stack, damaged>");
	}
	expect_said("a damaged user stack is told", "damaged user_stack_def event");
	build_user_def(&t, 8);
	overwrite(&t, 12, 0, 4);
	prints(&t, "a definition without user frames", "<user_stack_def 8>");
	build_user_id(&t, 8);
	prints(&t, "an id without user frames", "<user_stack_id 8>");
	build_user_def(&t, 9);
	while (--t.len >= 8)
		prints(&t, "a user definition that is cut off", "<user_stack_def, damaged>");
	build_unwind_stack(&t, ARRAY_SIZE(user_ips));
	while (--t.len >= 8)
		prints(&t, "a full user stack that is cut off", "<user_unwind_stack, damaged>");
	build_cookie(&t, COOKIE);
	while (--t.len >= 8)
		prints(&t, "a cookie that is cut off", "<user_unwind_cookie, damaged>");
	build_user_id(&t, 9);
	prints(&t, "nothing of this has defined a user stack", "<user_stack_id 9>");
	while (--t.len >= 8)
		prints(&t, "a user id that is cut off", "<user_stack_id, damaged>");
	build_unwind_id(&t, 9);
	while (--t.len >= 8)
		prints(&t, "a user id with a cookie, cut off", "<user_unwind_stack_id, damaged>");
	build_user_id(&t, 0x80000009);
	prints(&t, "a negative user id", "<user_stack_id, damaged>");
	build_unwind_id(&t, 0x80000009);
	prints(&t, "a negative user id with a cookie", "<user_unwind_stack_id, damaged>");
	build_user_def(&t, 0x80000009);
	prints(&t, "a definition of a negative user id", "<user_stack_def, damaged>");
	close_trace(&t);
	said();
}

static void test_damaged(const struct machine *on)
{
	struct trace t;
	char *text;
	size_t i;
	int len;

	open_trace(&t, on);
	for (i = 0; i < ARRAY_SIZE(bad_sizes); i++) {
		build_def(&t, 7, 2, SCHEDULE, KTHREAD);
		overwrite(&t, 12, bad_sizes[i], 4);
		prints(&t, "a wrong number of frames", "<stack_def, damaged>");
	}
	expect_said("it is told", "damaged stack_def event");
	build_def(&t, 7, 0);
	prints(&t, "a definition without frames", "<stack_def, damaged>");
	build_def(&t, 7, 2, SCHEDULE, KTHREAD);
	while (--t.len >= 8)
		prints(&t, "a definition that is cut off", "<stack_def, damaged>");
	build_split(&t, 7, 2);
	while (--t.len >= 8)
		prints(&t, "a split stack that is cut off", "<stack_split, damaged>");
	build_split(&t, 7, 3);
	t.len = 16 + 2 * on->word + 4;
	while (--t.len >= 8)
		prints(&t, "three parts that are cut off", "<stack_split3, damaged>");
	build_id(&t, 7);
	prints(&t, "nothing of this has defined it", "<stack_id 7>");
	while (--t.len >= 8)
		prints(&t, "an id that is cut off", "<stack_id, damaged>");
	build_id(&t, 0x80000007);
	prints(&t, "a negative id", "<stack_id, damaged>");

	srand(1);
	for (i = 0; i < 100000; i++) {
		begin(&t, ID + i % NR_EVENTS);
		len = rand() % 64;
		while (t.len < 8 + len)
			put(&t, rand() % 4 ? rand() % 9 : rand(), 1);
		text = print_bytes(&t, t.len);
		if (strncmp(text, "<stack_", 7) && strncmp(text, "<user_", 6))
			expect("random bytes", text, "<stack_... or <user_...");
		free(text);
	}
	close_trace(&t);
	said();
}

static u32 swapped(u32 n, bool swap)
{
	return swap ? __builtin_bswap32(n) : n;
}

static void write_words(FILE *f, bool swap, int nr, ...)
{
	va_list ap;
	u32 n;

	va_start(ap, nr);
	while (nr--) {
		n = swapped(va_arg(ap, u32), swap);
		fwrite(&n, 4, 1, f);
	}
	va_end(ap);
}

static void write_long(FILE *f, bool swap, u64 n)
{
	n = swap ? __builtin_bswap64(n) : n;
	fwrite(&n, 8, 1, f);
}

#define MAP_SIZE	(16 + 24 + 24 + 48 + 16)

/* Ids 8 and 5, and the user stack 3; @text: the address of _text. */
static void write_flagged(u32 text, bool swap, int word, u32 flags)
{
	FILE *f = fopen("map", "w");
	size_t i;

	write_words(f, swap, 4, 0x464D5342, 2, 3, 1);
	write_words(f, swap, 4, 8, 1, 100, 0);
	write_long(f, swap, KTHREAD + 0x20);
	write_words(f, swap, 4, 5, 1, 1, 0);
	write_long(f, swap, SCHEDULE + 8);
	write_words(f, swap, 4, 3, (u32)ARRAY_SIZE(user_ips), 1, flags);
	for (i = 0; i < ARRAY_SIZE(user_ips); i++)
		write_long(f, swap, word == 8 ? user_ips[i] : (u32)user_ips[i]);
	write_words(f, swap, 2, 1, 8);
	write_long(f, swap, text);
	fclose(f);
}

static void write_map(u32 text, bool swap)
{
	write_flagged(text, swap, 8, 1);
}

#define FRAMES_5 "=> schedule (81000108)\n"

static void test_map(const struct machine *on, u32 text, bool swap)
{
	struct trace t;

	write_flagged(text, swap, on->word, 1);
	open_trace(&t, on);
	build_id(&t, 5);
	prints(&t, "an id of the map", "<stack_id 5>\n" FRAMES_5);
	build_id(&t, 8);
	prints(&t, "another id of the map", "<stack_id 8>\n" FRAMES_8);
	build_id(&t, 6);
	prints(&t, "an id that the map does not have", "<stack_id 6>");
	expect_said("it is told", "no frames for id 6");
	build_def(&t, 8, 1, KTHREAD);
	discard(&t);
	build_id(&t, 8);
	prints(&t, "a definition goes before the map", "<stack_id 8>\n=> kthread (81000200)\n");
	build_user_id(&t, 3);
	prints_user(&t, "a user id of the map", "<user_stack_id 3>");
	build_unwind_id(&t, 3);
	prints_user(&t, "with a cookie", "<user_unwind_stack_id 300000001 3>");
	build_id(&t, 3);
	prints(&t, "a user stack of the map is no kernel stack", "<stack_id 3>");
	build_user_id(&t, 5);
	prints(&t, "a kernel stack of the map is no user stack", "<user_stack_id 5>");
	expect_said("nothing is told", "");
	close_trace(&t);
}

static void test_maps(void)
{
	size_t i;

	set_option("stackmap:map", "map");
	for (i = 0; i < ARRAY_SIZE(machines); i++) {
		test_map(&machines[i], 0x81000000, false);
		test_map(&machines[i], 0x81000000, true);
		/* A trace whose symbols lack _text. */
		test_map(&machines[i], 0x80fff000, false);
	}
	set_option("stackmap:map", "");
	setenv("STACKMAP", ".", 1);
	rename("map", "stack_map_bin");
	symlink("stack_map_bin", "map");
	test_map(machines, 0x81000000, false);
	unlink("map");
	unlink("stack_map_bin");
	setenv("STACKMAP", "map", 1);
	test_map(machines, 0x81000000, false);
	unsetenv("STACKMAP");
}

static void test_bad_map(const char *what, const char *told, bool has_first)
{
	struct trace t;

	open_trace(&t, machines);
	build_id(&t, 8);
	prints(&t, what, has_first ? "<stack_id 8>\n" FRAMES_8 : "<stack_id 8>");
	expect_said(what, told);
	close_trace(&t);
	said();
}

/* Overwrites a byte behind the magic. */
static void spoil_map(void)
{
	FILE *f = fopen("map", "r+");

	fseek(f, 4 + rand() % (MAP_SIZE - 4), SEEK_SET);
	putc(rand(), f);
	fclose(f);
}

static void test_bad_maps(void)
{
	struct trace t;
	char *text;
	long len;
	int i;

	set_option("stackmap:map", "map");
	unlink("map");
	test_bad_map("no map", "map: No such file", false);
	write_map(0x82000000, false);
	test_bad_map("a map of another boot", "another boot", false);
	write_map(0x81000050, false);
	test_bad_map("a map of another boot, with _text in a function", "another boot", false);
	write_map(0x81000000, false);
	for (len = MAP_SIZE; len--;) {
		truncate("map", len);
		test_bad_map("the map is cut off", "truncated in", len >= 16 + 24);
	}
	write_flagged(0x81000000, false, 8, 4);
	test_bad_map("a flag that nothing has", "unknown flags 0x4", true);
	for (i = 0; i < 400; i++) {
		write_map(0x81000000, false);
		spoil_map();
		open_trace(&t, machines);
		build_split(&t, 7, 2);
		text = print_bytes(&t, t.len);
		if (strncmp(text, "<stack_split 7 @81000101 8>", 27))
			expect("a spoiled map", text, "<stack_split 7 @81000101 8>...");
		free(text);
		close_trace(&t);
	}
	said();
	set_option("stackmap:map", "");
}

int main(int argc, char **argv)
{
	size_t i;

	verbose = argc > 1 && !strcmp(argv[1], "-v");
	unsetenv("STACKMAP");
	if (!freopen("said", "w", stderr))
		return 1;
	setvbuf(stderr, NULL, _IONBF, 0);
	for (i = 0; i < ARRAY_SIZE(machines); i++) {
		test_ids(&machines[i]);
		test_form(&machines[i]);
		test_split(&machines[i]);
		test_damaged(&machines[i]);
		test_user(&machines[i]);
		test_cookie(&machines[i]);
		test_kinds(&machines[i]);
		test_damaged_user(&machines[i]);
	}
	test_traces();
	test_instances();
	test_files();
	test_deep();
	test_maps();
	test_bad_maps();
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return !!failed;
}
