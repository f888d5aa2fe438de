// SPDX-License-Identifier: GPL-2.0
/*
 * Who recorded an event, where and when: "  bash-123  [000] d..2.  143.250001: ". A task can have
 * any name, so this is parsed from its end.
 */
#include <ctype.h>

#include "trace.h"
#include "util.h"

static const char *back_over(const char *start, const char *p, const char *set)
{
	while (p > start && p[-1] && strchr(set, p[-1]))
		p--;
	return p;
}

/* "143.250001", or more digits from trace-cmd. Some clocks have no point. */
static bool parse_time(const char *p, const char *end, u64 *usec)
{
	char *point;
	int i;

	if (!isdigit((unsigned char)*p))
		return false;
	errno = 0;
	*usec = strtoull(p, &point, 10);
	if (errno || point == end)
		return !errno;
	if (*usec > UINT64_MAX / 1000000 - 1 ||
	    point + 1 + strspn(point + 1, "0123456789") != end)
		return false;
	for (i = 0; i < 6; i++)
		*usec = *usec * 10 + (++point < end ? *point - '0' : 0);
	return true;
}

#define MAX_CPU	0x10000

static bool parse_cpu(const char *p, u32 *cpu)
{
	unsigned long n;
	char *end;

	if (!p || !isdigit((unsigned char)p[1]))
		return false;
	n = strtoul(p + 1, &end, 10);
	*cpu = n;
	return *end == ']' && n < MAX_CPU;
}

/* Up to @p, which may follow "(  120) ", the id of the process. */
static bool parse_task(const char *line, const char *p, struct task *task)
{
	const char *pid;

	task->tgid = 0;
	p = back_over(line, p, " ");
	if (p > line && p[-1] == ')') {
		p = memrchr(line, '(', p - line);
		if (!p)
			return false;
		task->tgid = strtoul(p + 1, NULL, 10);
		p = back_over(line, p, " ");
	}
	pid = back_over(line, p, "0123456789");
	if (pid == p || pid == line || pid[-1] != '-')
		return false;
	task->pid = strtoul(pid, NULL, 10);

	p = pid - 1;
	line = p - line > COMM_LEN ? p - COMM_LEN : line;
	line += strspn(line, " ");
	snprintf(task->comm, sizeof(task->comm), "%.*s", p > line ? (int)(p - line) : 0, line);
	return true;
}

/* From behind the CPU up to the time. */
static void parse_flags(const char *p, const char *time, char *flags, size_t size)
{
	p += strcspn(p, " ");
	p += strspn(p, " ");
	snprintf(flags, size, "%.*s", p < time ? (int)strcspn(p, " ") : 0, p);
}

bool parse_context(const struct trace *t, struct context *c)
{
	const char *time, *cpu, *end;

	if (!t->event || t->event == t->line)
		return false;
	end = t->event - strlen(": ");
	time = back_over(t->line, end, "0123456789.");
	cpu = memrchr(t->line, '[', time - t->line);
	if (!parse_time(time, end, &c->usec) || !parse_cpu(cpu, &c->cpu) ||
	    !parse_task(t->line, cpu, &c->task))
		return false;
	parse_flags(cpu, time, c->flags, sizeof(c->flags));
	return true;
}
