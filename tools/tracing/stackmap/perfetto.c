// SPDX-License-Identifier: GPL-2.0
/*
 * A trace for Perfetto: what the scheduler did, and the samples with their stacks. It is a sequence
 * of packets; names, frames and stacks are interned by numbers.
 */
#include "profile.h"
#include "proto.h"

/* Numbers of fields, by message. */
enum {
	TRACE_PACKET = 1,
	PACKET_FTRACE = 1, PACKET_PROCESS_TREE = 2, PACKET_TIME = 8, PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11, PACKET_INTERNED = 12, PACKET_FLAGS = 13, PACKET_SYSTEM = 45,
	PACKET_TRACK = 60, PACKET_SAMPLE = 66,
	BUNDLE_CPU = 1, BUNDLE_EVENT = 2,
	EVENT_TIME = 1, EVENT_PID = 2,
	TREE_PROCESS = 1, TREE_THREAD = 2,
	PROCESS_PID = 1, PROCESS_CMDLINE = 3,
	THREAD_TID = 1, THREAD_NAME = 2, THREAD_TGID = 3,
	SYSTEM_UTSNAME = 1, UTSNAME_SYSTEM = 1, UTSNAME_RELEASE = 3,
	TRACK_UUID = 1, TRACK_NAME = 2, TRACK_THREAD = 4,
	TRACK_THREAD_PID = 1, TRACK_THREAD_TID = 2, TRACK_THREAD_NAME = 5,
	TRACK_EVENT_ARG = 4, TRACK_EVENT_TYPE = 9, TRACK_EVENT_UUID = 11, TRACK_EVENT_NAME = 23,
	TRACK_EVENT_STACK = 56,
	ARG_NUMBER = 3, ARG_TEXT = 6, ARG_NAME = 10,
	SAMPLE_CPU = 1, SAMPLE_PID = 2, SAMPLE_TID = 3, SAMPLE_STACK = 4, SAMPLE_MODE = 5,
	INTERNED_FUNCTION = 5, INTERNED_FRAME = 6, INTERNED_STACK = 7, INTERNED_PATH = 17,
	INTERNED_MAPPING = 19,
	STRING_ID = 1, STRING_TEXT = 2,
	FRAME_ID = 1, FRAME_FUNCTION = 2, FRAME_MAPPING = 3, FRAME_ADDRESS = 4,
	STACK_ID = 1, STACK_FRAMES = 2,
	MAPPING_ID = 1, MAPPING_PATH = 7,
};

#define TYPE_INSTANT	3
#define MODE_KERNEL	1
#define MODE_USER	2
#define NEW_SEQUENCE	1	/* flags of a packet */
#define USES_INTERNED	2
#define SAME_STATES	0x3f	/* of a task, in all kernels */
#define CLOCK_TRACK	1	/* other tracks have higher numbers */

/* A thread that has samples. */
struct track {
	u32	pid;		/* of its process; its own number if that is not known */
	u64	uuid;
};

static struct {
	struct bytes	packet;
	struct bytes	interned;
	struct bytes	message;
	struct bytes	part;
	struct bytes	text;
	struct pool	functions;	/* names */
	struct pool	mappings;	/* names */
	struct pool	stacks;		/* of numbers of frames */
	struct pool	tracks;		/* of a task's number and which it is to a track */
	u32		nr_frames;
	bool		has_begun;
	bool		has_clock;
	bool		has_release;
} out;

/* Empties @message, and what was interned for it. */
static void put_packet(u32 field, struct bytes *message, u64 ts)
{
	struct bytes trace = {};

	put_message(&out.packet, field, message);
	put_number(&out.packet, PACKET_TIME, ts);
	put_number(&out.packet, PACKET_SEQUENCE, 1);
	if (out.interned.len)
		put_message(&out.packet, PACKET_INTERNED, &out.interned);
	put_number(&out.packet, PACKET_FLAGS, out.has_begun ? USES_INTERNED : NEW_SEQUENCE);
	out.has_begun = true;
	put_message(&trace, TRACE_PACKET, &out.packet);
	fwrite(trace.data, 1, trace.len, stdout);
	free(trace.data);
}

/* Its events are those of tasks and of the scheduler that Perfetto knows, their fields in order. */
static const struct known_event {
	const char	*name;
	u32		id;
	const char	*fields[7];
} known_events[] = {
	{ "sched_switch", 4, { "prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm",
			       "next_pid", "next_prio" } },
	{ "sched_wakeup", 17, { "comm", "pid", "prio", "success", "target_cpu" } },
	{ "sched_waking", 20, { "comm", "pid", "prio", "success", "target_cpu" } },
	{ "sched_wakeup_new", 114, { "comm", "pid", "prio", "success", "target_cpu" } },
	{ "task_newtask", 235, { "pid", "comm", "clone_flags", "oom_score_adj" } },
	{ "task_rename", 236, { "pid", "oldcomm", "newcomm", "oom_score_adj" } },
	{ "sched_process_free", 240, { "comm", "pid", "prio" } },
};

static void put_text(struct bytes *b, u32 field, const char *text, u32 len)
{
	char *copy __free(pointer) = format("%.*s", (int)len, text);

	put_string(b, field, copy, &out.text);
}

/* Of a task; "<...>" if nothing tells it. */
static void put_comm(struct bytes *b, u32 field, const struct task *task)
{
	if (strcmp(task->comm, "<...>"))
		put_string(b, field, task->comm, &out.text);
}

static void put_field(struct record *r, u32 nr, const char *name)
{
	const struct tep_format_field *f = tep_find_field(r->kind->event, name);
	const char *text;
	u32 len;
	u64 n;

	if (f && f->flags & TEP_FIELD_IS_STRING) {
		if (field_bytes(r, f, &text, &len))
			put_text(&out.part, nr, text, len);
	} else if (f && field_number(r, f, &n)) {
		if (f == r->kind->field[FIELD_PREV_STATE] && !out.has_release)
			n &= SAME_STATES;
		put_number(&out.part, nr, signed_number(f, n));
	}
}

static void put_event(struct record *r, const struct known_event *e)
{
	u32 i;

	put_number(&out.message, EVENT_TIME, r->rec->ts);
	put_value(&out.message, EVENT_PID, r->pid);
	for (i = 0; i < ARRAY_SIZE(e->fields) && e->fields[i]; i++)
		put_field(r, i + 1, e->fields[i]);
	put_message(&out.message, e->id, &out.part);
	put_value(&out.part, BUNDLE_CPU, r->rec->cpu);
	put_message(&out.part, BUNDLE_EVENT, &out.message);
	put_packet(PACKET_FTRACE, &out.part, 0);
}

/* The bits of a task's state differ between kernels. */
static void put_release(const struct profile *p)
{
	const char *uname = tracecmd_get_uname(p->top);
	char release[MAX_RELEASE] = "";

	if (*p->map->release)
		snprintf(release, sizeof(release), "%s", p->map->release);
	else if (uname)
		sscanf(uname, "%*s %*s %255s", release);
	out.has_release = *release;
	if (!*release)
		return;
	put_string(&out.part, UTSNAME_SYSTEM, "Linux", &out.text);
	put_string(&out.part, UTSNAME_RELEASE, release, &out.text);
	put_message(&out.message, SYSTEM_UTSNAME, &out.part);
	put_packet(PACKET_SYSTEM, &out.message, 0);
}

/* Perfetto has no place for a clock that it does not know, so it is an event. */
static void put_clock(const struct profile *p, u64 ts)
{
	char *name __free(pointer) = format("times are of the clock %s", p->clock);

	put_number(&out.message, TRACK_UUID, CLOCK_TRACK);
	put_string(&out.message, TRACK_NAME, "clock", &out.text);
	put_packet(PACKET_TRACK, &out.message, 0);
	put_number(&out.message, TRACK_EVENT_TYPE, TYPE_INSTANT);
	put_number(&out.message, TRACK_EVENT_UUID, CLOCK_TRACK);
	put_string(&out.message, TRACK_EVENT_NAME, name, &out.text);
	put_packet(PACKET_TRACK_EVENT, &out.message, ts);
	note("%s", name);
	out.has_clock = true;
}

/* Perfetto would take it for one of the process of who made it, which is not known. */
static bool is_lone_thread(struct record *r)
{
	u64 pid;

	return r->kind->learn == take_newtask && get_number(r, FIELD_TASK, &pid) &&
	       !get_task(r, pid)->process;
}

static void see_record(struct record *r)
{
	const struct config *cfg = r->profile->cfg;
	const struct tep_event *ev = r->kind->event;
	const struct known_event *e;

	if (r->rec->ts < cfg->from || (cfg->end && r->rec->ts >= cfg->end))
		return;
	if (!out.has_clock) {
		put_release(r->profile);
		put_clock(r->profile, r->rec->ts);
	}
	if ((strcmp(ev->system, "sched") && strcmp(ev->system, "task")) || is_lone_thread(r))
		return;
	for (e = known_events; e < known_events + ARRAY_SIZE(known_events); e++) {
		if (!strcmp(ev->name, e->name))
			put_event(r, e);
	}
}

/* Returns its number. */
static u32 intern_string(struct pool *pool, u32 field, const char *name)
{
	u32 before = pool->nr, id = intern(pool, name);

	if (id > before) {
		put_number(&out.message, STRING_ID, id);
		put_string(&out.message, STRING_TEXT, name, &out.text);
		put_message(&out.interned, field, &out.message);
	}
	return id;
}

static u32 intern_mapping(const char *name)
{
	u32 before = out.mappings.nr, id = intern_string(&out.mappings, INTERNED_PATH, name);

	if (id > before) {
		put_number(&out.message, MAPPING_ID, id);
		put_number(&out.message, MAPPING_PATH, id);
		put_message(&out.interned, INTERNED_MAPPING, &out.message);
	}
	return id;
}

static u32 intern_frame(struct frame *f)
{
	u32 function, mapping;
	const char *name, *mod;

	if (f->uid)
		return f->uid;
	f->uid = ++out.nr_frames;
	name = frame_name(f, &mod);
	function = intern_string(&out.functions, INTERNED_FUNCTION, *name ? name : "[unknown]");
	mapping = intern_mapping(!f->user && !mod ? "[kernel.kallsyms]" :
				 f->object ? f->object->path : mod);
	put_number(&out.message, FRAME_ID, f->uid);
	put_number(&out.message, FRAME_FUNCTION, function);
	put_number(&out.message, FRAME_MAPPING, mapping);
	put_number(&out.message, FRAME_ADDRESS, f->addr);
	put_message(&out.interned, INTERNED_FRAME, &out.message);
	return f->uid;
}

static u32 intern_stack(struct map *m, const struct stack *s)
{
	u32 before = out.stacks.nr, id, i;
	struct words w = {};

	/* From the outermost frame on. */
	for (i = s->nr; i--; )
		add_word(&w, intern_frame(frame_get(m, s, i)));
	id = pool_add(&out.stacks, w.w, w.nr);
	if (id > before) {
		put_number(&out.message, STACK_ID, id);
		for (i = 0; i < w.nr; i++)
			put_number(&out.message, STACK_FRAMES, w.w[i]);
		put_message(&out.interned, INTERNED_STACK, &out.message);
	}
	free(w.w);
	return id;
}

static const struct track *get_track(struct profile *p, const struct sample *s)
{
	const struct task *task = task_of(p, s);
	struct track *t = pool_get(&out.tracks, s->task->nr, task->nth, sizeof(*t));

	if (t->uuid)
		return t;
	t->uuid = CLOCK_TRACK + out.tracks.nr;
	t->pid = s->process ? s->process->pid : task->pid;
	put_value(&out.part, TRACK_THREAD_PID, t->pid);
	put_value(&out.part, TRACK_THREAD_TID, task->pid);
	put_comm(&out.part, TRACK_THREAD_NAME, task);
	put_number(&out.message, TRACK_UUID, t->uuid);
	put_message(&out.message, TRACK_THREAD, &out.part);
	put_packet(PACKET_TRACK, &out.message, 0);
	return t;
}

static void put_arg(const char *name, u64 number, const char *text)
{
	put_string(&out.part, ARG_NAME, name, &out.text);
	if (text)
		put_string(&out.part, ARG_TEXT, text, &out.text);
	else
		put_value(&out.part, ARG_NUMBER, number);
	put_message(&out.message, TRACK_EVENT_ARG, &out.part);
}

/* On the track of its thread: an event with what it weighs. */
static void put_instant(struct profile *p, const struct sample *s, u64 uuid, u32 stack, u64 ts)
{
	const struct map *m = p->map;
	int i;

	put_number(&out.message, TRACK_EVENT_TYPE, TYPE_INSTANT);
	put_number(&out.message, TRACK_EVENT_UUID, uuid);
	put_string(&out.message, TRACK_EVENT_NAME, s->kind->name, &out.text);
	put_number(&out.message, TRACK_EVENT_STACK, stack);
	for (i = VAL_EVENTS + 1; i < VAL_LARGEST; i++) {
		if (m->values[i].type)
			put_arg(m->values[i].type, s->val[i], NULL);
	}
	if (s->text && *s->text)
		put_arg("fields", 0, s->text);
	put_packet(PACKET_TRACK_EVENT, &out.message, ts);
}

/* A time has the stack with which it began. */
static void print_sample(struct profile *p, const struct sample *sample, const struct stack *s)
{
	u64 ts = sample->since ? sample->since : sample->ts;
	const struct track *t;
	u32 stack;

	if (!stack_matches(p->map, s, p->cfg))
		return;
	t = get_track(p, sample);
	stack = intern_stack(p->map, s);
	if (!sample->since)
		put_value(&out.message, SAMPLE_CPU, sample->cpu);
	put_number(&out.message, SAMPLE_PID, t->pid);
	put_number(&out.message, SAMPLE_TID, sample->task->id.pid);
	put_number(&out.message, SAMPLE_STACK, stack);
	put_number(&out.message, SAMPLE_MODE, sample->kernel ? MODE_KERNEL : MODE_USER);
	put_packet(PACKET_SAMPLE, &out.message, ts);
	put_instant(p, sample, t->uuid, stack, ts);
}

/* As far as processes are known. */
static void put_tree(const struct profile *p)
{
	const struct task_state *t;
	const struct task *process;
	struct bytes tree = {};
	u32 i;

	for (i = 1; i <= p->processes.nr; i++) {
		process = p->processes.list[i].ptr;
		put_number(&out.message, PROCESS_PID, process->pid);
		put_comm(&out.message, PROCESS_CMDLINE, process);
		put_message(&tree, TREE_PROCESS, &out.message);
	}
	for (i = 1; i <= p->tasks.nr; i++) {
		t = p->tasks.list[i].ptr;
		if (!t->process || !t->id.pid)
			continue;
		put_number(&out.message, THREAD_TID, t->id.pid);
		put_comm(&out.message, THREAD_NAME, &t->id);
		put_number(&out.message, THREAD_TGID, t->process->pid);
		put_message(&tree, TREE_THREAD, &out.message);
	}
	put_packet(PACKET_PROCESS_TREE, &tree, p->last_ts);
	free(tree.data);
}

int print_perfetto(struct map *m, const char *path, const struct config *cfg)
{
	int ret;

	ret = make_profile(m, path, print_sample, see_record, cfg);
	if (out.has_clock)
		put_tree(m->sym.profile);
	free(out.packet.data);
	free(out.interned.data);
	free(out.message.data);
	free(out.part.data);
	free(out.text.data);
	pool_free(&out.functions);
	pool_free(&out.mappings);
	pool_free(&out.stacks);
	pool_free_all(&out.tracks);
	memset(&out, 0, sizeof(out));
	return ret;
}
