// SPDX-License-Identifier: GPL-2.0
/*
 * A profile.proto of pprof, compressed by gzip. A string is an index in the profile's table of
 * strings.
 */
#include <signal.h>
#include <time.h>

#include "proto.h"
#include "stackmap.h"

/* Numbers of fields, by message. */
enum {
	PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6, PROFILE_TIME = 9, PROFILE_PERIOD_TYPE = 11, PROFILE_PERIOD = 12,
	TYPE_TYPE = 1, TYPE_UNIT = 2,
	SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3,
	LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3,
	LOCATION_ID = 1, LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3,
};

struct pprof {
	struct bytes	out;
	struct bytes	message;
	struct bytes	part;		/* of message */
	struct pool	*names;		/* of functions; other strings follow */
};

static void put_type(struct pprof *p, u32 field, const struct value_type *v)
{
	if (!v->type)
		return;
	put_number(&p->message, TYPE_TYPE, intern(p->names, v->type));
	put_number(&p->message, TYPE_UNIT, intern(p->names, v->unit));
	put_message(&p->out, field, &p->message);
}

/* A function is its own location. Its number is that of its name, too. */
static void put_function(struct pprof *p, u32 id)
{
	put_number(&p->part, LINE_FUNCTION, id);
	put_number(&p->message, LOCATION_ID, id);
	put_message(&p->message, LOCATION_LINE, &p->part);
	put_message(&p->out, PROFILE_LOCATION, &p->message);
	put_number(&p->message, FUNCTION_ID, id);
	put_number(&p->message, FUNCTION_NAME, id);
	put_number(&p->message, FUNCTION_SYSTEM_NAME, id);
	put_message(&p->out, PROFILE_FUNCTION, &p->message);
}

static void put_label(struct pprof *p, const char *key, const char *str, u64 num)
{
	put_number(&p->part, LABEL_KEY, intern(p->names, key));
	if (str)
		put_number(&p->part, LABEL_STR, intern(p->names, str));
	put_number(&p->part, LABEL_NUM, num);
	put_message(&p->message, SAMPLE_LABEL, &p->part);
}

static void put_sample(struct pprof *p, const struct map *m, const struct stack *s)
{
	u32 i;

	for (i = 0; i < s->nr; i++)
		put_varint(&p->part, m->ips[s->first + i]);
	put_message(&p->message, SAMPLE_LOCATION, &p->part);
	for (i = 0; i < NR_VALUES; i++) {
		if (m->values[i].type)
			put_varint(&p->part, s->val[i]);
	}
	put_message(&p->message, SAMPLE_VALUE, &p->part);
	if (s->task) {
		put_label(p, "comm", s->task->comm, 0);
		put_label(p, "pid", NULL, s->task->pid);
	}
	put_message(&p->out, PROFILE_SAMPLE, &p->message);
}

static void write_gzip(const char *data, size_t len)
{
	FILE *f = popen("exec gzip", "w");

	/* If gzip ends early, that is told here. */
	signal(SIGPIPE, SIG_IGN);
	if (f)
		fwrite(data, 1, len, f);
	if (f && !pclose(f))
		return;
	complain("gzip could not write the profile");
	exit(1);
}

/* @names: of the functions of merged stacks */
void print_pprof(struct map *m, struct pool *names, const struct config *cfg)
{
	static const struct value_type period = { "events", "count" };
	struct pprof p = { .names = names };
	const struct stack *s;
	size_t i;

	for (i = 1; i <= names->nr; i++)
		put_function(&p, i);
	/* The last one is what pprof shows. */
	for (i = 0; i < NR_VALUES; i++)
		put_type(&p, PROFILE_SAMPLE_TYPE, &m->values[i]);
	put_type(&p, PROFILE_PERIOD_TYPE, &period);
	/* Parca shows a profile by its time. */
	put_number(&p.out, PROFILE_TIME, (m->saved ? m->saved : (u64)time(NULL)) * 1000000000);
	put_number(&p.out, PROFILE_PERIOD, 1);
	for (s = m->stacks; s != stacks_end(m); s++)
		put_sample(&p, m, s);
	/* The first string is empty. */
	put_string(&p.out, PROFILE_STRING, "", &p.part);
	for (i = 1; i <= names->nr; i++)
		put_string(&p.out, PROFILE_STRING, pool_string(names, i), &p.part);
	write_gzip(p.out.data, p.out.len);
	free(p.out.data);
	free(p.message.data);
	free(p.part.data);
}
