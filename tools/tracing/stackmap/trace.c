// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the text of trace, trace_pipe or trace-cmd report, and finds the stacks in it. Names of
 * tasks and the text of trace_marker are not mistaken for stacks.
 */
#include <ctype.h>

#include "trace.h"
#include "util.h"

/*
 * The ids of a stack's parts, innermost first, and between two parts the address that an interrupt
 * has hit. Most stacks have one part.
 */
static bool parse_id(const char **p, long long *n)
{
	char *end;

	if (!isdigit((unsigned char)(*p)[**p == '-']))
		return false;
	errno = 0;
	*n = strtoll(*p, &end, 10);
	*p = end;
	return !errno;
}

/* The address in " @ffffffff81000000 ". */
static bool parse_hit(const char **p, u64 *ip)
{
	char *end;

	if (strncmp(*p, " @", 2) || !isxdigit((unsigned char)(*p)[2]))
		return false;
	errno = 0;
	*ip = strtoull(*p + 2, &end, 16);
	if (*end != ' ' || errno)
		return false;
	*p = end + 1;
	return true;
}

/*
 * The last id that trace-cmd prints may have the sign bit: more parts follow. As the field is 32 or
 * 64 bits wide, it prints as a number below 0 or above INT32_MAX.
 */
static bool means_more(long long id)
{
	return (id >= INT32_MIN && id < -1) || (id > INT32_MAX && id <= UINT32_MAX);
}

static bool add_part(struct stack_ids *ids, u64 ip, long long id)
{
	if (ids->nr == MAX_PARTS || id < 0 || id > INT32_MAX)
		return false;
	if (ids->nr)
		ids->ip[ids->nr - 1] = ip;
	ids->id[ids->nr++] = id;
	return true;
}

/*
 * "42>" or "42 @ffffffff81000000 43>". trace-cmd always prints four parts, unused ones as "@0 -1".
 */
static bool parse_parts(const char **p, struct stack_ids *ids)
{
	bool ended = false;
	long long id;
	u64 ip = 0;

	ids->nr = 0;
	ids->more = false;
	do {
		if (!parse_id(p, &id) || ids->more || (ended && id != -1))
			return false;
		ended = ids->nr > 1 && id == -1;
		ids->more = ids->nr == PRINTED_PARTS - 1 && means_more(id);
		if (!ended && !ids->more && !add_part(ids, ip, id))
			return false;
	} while (parse_hit(p, &ip));
	return *(*p)++ == '>';
}

/* Up to the end of the line; "(stale)" follows an id of before a reset. */
static bool is_end(const char *p, const char *end)
{
	if (!strncmp(p, " (stale)", 8))
		p += 8;
	return p + (*p == '\n') == end;
}

static bool parse_ids(struct trace *t, const char *p, const char *name, bool split)
{
	size_t len = strlen(name);

	if (strncmp(p, name, len))
		return false;
	p += len;
	return parse_parts(&p, &t->ids) && (t->ids.nr > 1) == split && is_end(p, t->line + t->len);
}

/* " 143.250001", and in the latency format "   12us+" or "(+0.001ms)" */
static bool is_timestamp(const char *end)
{
	if (isdigit((unsigned char)end[-1]) || end[-1] == ')')
		return true;
	return end[-2] == 's' && memchr(" !+#*@$", end[-1], 7);
}

/* "-123     [000]", "-123     (    120) [000]", in the latency formats "-123     0", " 123   0" */
static char *find_pid(char *p, const char *end)
{
	char *next;

	for (; p < end; p++) {
		if (*p != '-' && *p != ' ')
			continue;
		next = p + 1 + strspn(p + 1, "0123456789");
		if (next == p + 1 || *next != ' ')
			continue;
		next += strspn(next, " ");
		if (*next == '[' || *next == '(' || isdigit((unsigned char)*next))
			return next;
	}
	return NULL;
}

/*
 * "          <idle>-0     [001] d..2.   143.250001: ". A task can have any name, but the text from
 * its name to the timestamp is longer than the longest name.
 */
static char *skip_context(char *line, const char *end)
{
	char *name = line + strspn(line, " "), *p = find_pid(name, end);

	if (!p || end - name < COMM_LEN)
		return NULL;
	for (p = p < name + COMM_LEN ? name + COMM_LEN : p; p + 1 < end; p++) {
		if (p[0] == ':' && p[1] == ' ' && is_timestamp(p))
			return p + 2;
	}
	return NULL;
}

/* " (+12) ": trace-cmd --ts-diff prints the time passed. */
char *skip_diff(char *p)
{
	p += strspn(p, " ");
	if (!strncmp(p, "(+", 2))
		p += strcspn(p, " ");
	return p + strspn(p, " ");
}

/* trace-cmd names the event: "stack_id:    " */
static char *skip_event(char *p, const char *event)
{
	size_t len = strlen(event);

	p = skip_diff(p);
	if (strncmp(p, event, len))
		return NULL;
	return p + len + strspn(p + len, " ");
}

static bool find_ids(struct trace *t, char *text, const char *event, const char *name, bool split)
{
	char *behind = skip_event(text, event);

	t->text = behind ? behind : text;
	return parse_ids(t, t->text, name, split);
}

/* "0xffffffff81000148", or from libtraceevent "18446744071578845512" */
bool parse_word(const char **p, u64 *word)
{
	char *end;

	if (!isdigit((unsigned char)**p))
		return false;
	errno = 0;
	*word = strtoull(*p, &end, 0);
	*p = end;
	return !errno;
}

const char *skip_separator(const char *p)
{
	return p + strspn(p, " ,");
}

/* "{0x1,0x2}" or "1 2"; nothing may be cut off. */
static bool are_words(const char *p, const char *end)
{
	bool braces = *p == '{';
	u32 nr = 0;
	u64 word;

	for (p += braces; parse_word(&p, &word); p = skip_separator(p))
		nr++;
	if (braces && *p++ != '}')
		return false;
	return nr && nr <= MAX_DEPTH && *p == '\n' && p + 1 == end;
}

/* The text behind "<name ", which may follow the name of the event. */
static const char *skip_name(char *text, const char *event, const char *name)
{
	char *behind = skip_event(text, event);

	text = behind ? behind : text;
	return strncmp(text, name, strlen(name)) ? NULL : text + strlen(name);
}

/* Behind ">": the addresses, or the end of the line. */
static bool find_words(struct trace *t, const char *p)
{
	const char *end = t->line + t->len;

	t->words = *p == ' ' && p[1] != '(' ? p + 1 : NULL;
	return t->words ? are_words(t->words, end) : is_end(p, end);
}

/* "<stack_def 42>", or from trace-cmd "stack_def:            <stack_def 42> 1 2" */
static bool find_def(struct trace *t, char *text, const char *event, const char *name)
{
	const char *p = skip_name(text, event, name);
	long long id;

	if (!p || !parse_id(&p, &id) || id < 0 || id > INT32_MAX || *p++ != '>')
		return false;
	t->def = id;
	return find_words(t, p) && (t->words || *p == '\n');
}

/* "300000001>" or "300000001 " */
static bool parse_cookie(struct trace *t, const char **p, char sep)
{
	char *end;

	if (!*p || !isxdigit((unsigned char)**p))
		return false;
	errno = 0;
	t->cookie = strtoull(*p, &end, 16);
	*p = end + 1;
	return !errno && *end == sep;
}

static bool find_cookie(struct trace *t, char *text)
{
	const char *p = skip_name(text, "user_unwind_cookie:", "<user_unwind_cookie ");

	return parse_cookie(t, &p, '>') && is_end(p, t->line + t->len);
}

/* "<user_unwind_stack_id 300000001 42>" */
static bool find_unwound_id(struct trace *t, char *text)
{
	const char *p = skip_name(text, "user_unwind_stack_id:", "<user_unwind_stack_id ");

	return parse_cookie(t, &p, ' ') && parse_parts(&p, &t->ids) && t->ids.nr == 1 &&
	       is_end(p, t->line + t->len);
}

static bool find_unwound(struct trace *t, char *text)
{
	const char *p = skip_name(text, "user_unwind_stack:", "<user_unwind_stack ");

	return parse_cookie(t, &p, '>') && find_words(t, p);
}

/* From trace-cmd "user_stack:           \t=> 0x5581c0a0d123", and more such frames. */
static bool find_user_full(struct trace *t, char *text)
{
	const char *p = skip_name(text, "user_stack:", "<user stack trace>");

	t->first = skip_event(text, "user_stack:");
	if (t->first && !strncmp(t->first, "\t=> 0x", 6))
		return true;
	t->first = NULL;
	return p && is_end(p, t->line + t->len);
}

/* trace-cmd prints "kernel_stack:         <stack trace >". */
static bool is_full(const struct trace *t, char *text)
{
	char *behind = skip_event(text, "kernel_stack:");
	const char *name = behind ? "<stack trace >" : "<stack trace>";

	text = behind ? behind : text;
	return !strncmp(text, name, strlen(name)) && is_end(text + strlen(name), t->line + t->len);
}

/* trace-cmd prints no space before "=>", or a tab. The last line of a trace may be cut off. */
static bool is_frame_line(const struct trace *t)
{
	static const char arrow[] = " => ";
	size_t len = t->line[t->len - 1] == '\n' ? sizeof(arrow) : t->len;

	if (!strncmp(t->line, "\t=> ", 4))
		return true;
	return !strncmp(t->line, arrow, len < 4 ? len : 4) ||
	       !strncmp(t->line, arrow + 1, len < 3 ? len : 3);
}

static enum line_kind classify_user(struct trace *t, char *text)
{
	const char *p = skip_diff(text);

	if (strncmp(p + (*p == '<'), "user", 4))
		return LINE_OTHER;
	t->user = true;
	if (find_ids(t, text, "user_stack_id:", "<user_stack_id ", false))
		return LINE_IDS;
	if (find_def(t, text, "user_stack_def:", "<user_stack_def "))
		return LINE_DEF;
	if (find_user_full(t, text))
		return LINE_FULL;
	t->has_cookie = true;
	if (find_cookie(t, text))
		return LINE_COOKIE;
	if (find_unwound_id(t, text))
		return LINE_IDS;
	if (find_unwound(t, text))
		return LINE_FULL;
	t->user = false;
	t->has_cookie = false;
	return LINE_OTHER;
}

/* Without options/context-info, a line has only the text of the event. */
static enum line_kind classify_line(struct trace *t)
{
	char *text = skip_context(t->line, t->line + t->len);
	bool has_context = text;

	t->has_context |= has_context;
	if (!text && !t->has_context)
		text = t->line;
	t->event = text;
	t->user = false;
	t->has_cookie = false;
	t->words = NULL;
	t->first = NULL;
	/* A task may be named "=> x". */
	if (is_frame_line(t) && !has_context)
		return LINE_FRAME;
	if (!text)
		return LINE_OTHER;
	if (find_ids(t, text, "stack_id:", "<stack_id ", false) ||
	    find_ids(t, text, "stack_split:", "<stack_split ", true))
		return LINE_IDS;
	if (find_def(t, text, "stack_def:", "<stack_def "))
		return LINE_DEF;
	if (is_full(t, text))
		return LINE_FULL;
	return classify_user(t, text);
}

/* False at the end of the trace. Other systems end a line with "\r\n". */
bool read_line(struct trace *t, enum line_kind *kind)
{
	ssize_t len = getline(&t->line, &t->room, t->f);

	if (len < 0)
		return false;
	if (len > 1 && t->line[len - 2] == '\r' && t->line[len - 1] == '\n') {
		t->line[--len - 1] = '\n';
		t->line[len] = '\0';
	}
	t->len = len;
	*kind = classify_line(t);
	return true;
}

/*
 * " => /usr/bin/cat[+0x123] <00005581c0a0d123>", where one of both may be missing, or from
 * trace-cmd "\t=> 0x5581c0a0d123"
 */
void parse_user_frame(char *line, struct printed_frame *f)
{
	char *text = line + (*line == '=' ? 3 : 4);
	char *addr = strrstr(text, " <");
	char *end;

	*f = (struct printed_frame) { .text = text };
	if (*line == '\t') {
		f->ip = strtoull(text, NULL, 16);
		f->has_ip = true;
		f->text = NULL;
		return;
	}
	if (!addr || !isxdigit((unsigned char)addr[2]))
		return;
	f->ip = strtoull(addr + 2, &end, 16);
	if (strcmp(end, ">"))
		return;
	f->has_ip = true;
	*addr = '\0';
	if (addr == text)
		f->text = NULL;
}

/*
 * " => schedule+0x48/0xc0 [mod] <ffffffff81000148>", where offset and address depend on trace
 * options, or from trace-cmd "=> schedule (ffffffff81000148)", "=> ffffffffc0001000".
 */
void parse_frame(char *line, struct printed_frame *f)
{
	bool kernel = *line == ' ';
	char *addr;

	*f = (struct printed_frame) { .text = line + (kernel ? 4 : 3) };
	addr = strstr(f->text, kernel ? " <" : " (");
	if (addr) {
		*addr = '\0';
		addr += 2;
	} else if (!kernel) {
		addr = f->text;
	}
	if (!addr || !isxdigit((unsigned char)*addr))
		return;
	f->has_ip = true;
	f->ip = strtoull(addr, NULL, 16);
	if (addr == f->text)
		f->text = NULL;
}
