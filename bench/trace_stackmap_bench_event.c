// SPDX-License-Identifier: GPL-2.0
/*
 * Measures one traced event with its stack, end to end, and its shares: the event itself,
 * unwinding, the look-up in the map, the place of the id in the ring buffer. Unwinds along frame
 * pointers, as x86 does; User-Mode Linux reads every word of the stack.
 */
#include <linux/sched/task_stack.h>
#include <linux/stacktrace.h>
#include <linux/trace.h>
#include <linux/trace_recursion.h>

#include <asm/stacktrace.h>

#include "bench.h"
#include "bench_map.h"

#define BENCH_CALLS	10000

enum bench_stacks {
	BENCH_NONE, BENCH_FULL, BENCH_IDS, BENCH_FULL_LARGE, BENCH_IDS_LARGE, BENCH_INSTANCES
};

static const struct {
	const char	*name;
	unsigned long	size;
} bench_instances[BENCH_INSTANCES] = {
	[BENCH_NONE]		= { "event_none", SZ_512K },
	[BENCH_FULL]		= { "event_full", SZ_512K },
	[BENCH_IDS]		= { "event_ids", SZ_512K },
	[BENCH_FULL_LARGE]	= { "event_full_large", SZ_64M },
	[BENCH_IDS_LARGE]	= { "event_ids_large", SZ_64M },
};

static struct trace_array *bench_tr[BENCH_INSTANCES];
static unsigned long bench_ips[BENCH_MAX_DEPTH];
static unsigned int bench_depth;
static unsigned int bench_nr;

struct bench_entry {
	struct trace_entry	ent;
	unsigned long		fields[3];
};

/* Like x86: unwind_next_frame(), unwind_get_return_address(), consume_entry(). */
struct bench_unwind {
	const struct stack_frame	*frame;
	unsigned long			begin;
	unsigned long			end;
	unsigned long			ip;
};

static noinline bool bench_next_frame(struct bench_unwind *state, const struct stack_frame *next)
{
	unsigned long addr = (unsigned long)next;

	if (addr < state->begin || addr + sizeof(*next) > state->end)
		return false;
	/* The next frame must be above this one and near it. */
	if (state->frame && next < state->frame + 1)
		return false;
	state->frame = next;
	state->ip = READ_ONCE_NOCHECK(next->return_address);
	return true;
}

static noinline bool bench_consume(void *cookie, unsigned long addr)
{
	bench_ips[bench_nr++] = addr;
	return bench_nr < bench_depth;
}

static noinline void bench_walk(bool (*consume)(void *cookie, unsigned long addr), void *cookie)
{
	struct bench_unwind state = { .begin = (unsigned long)task_stack_page(current) };
	const struct stack_frame *next = (void *)current_bp();

	state.end = state.begin + THREAD_SIZE;
	while (bench_next_frame(&state, next)) {
		if (!__kernel_text_address(state.ip) || !consume(cookie, state.ip))
			break;
		next = READ_ONCE_NOCHECK(state.frame->next_frame);
	}
}

static noinline void bench_unwind(void)
{
	bench_nr = 0;
	bench_walk(bench_consume, NULL);
}

static __always_inline struct ring_buffer_event *
bench_reserve(struct trace_array *tr, unsigned int trace_ctx)
{
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct ring_buffer_event *event;
	struct bench_entry *entry;

	event = trace_buffer_lock_reserve(buffer, TRACE_CTX, sizeof(*entry), trace_ctx);
	if (!event)
		return NULL;
	entry = ring_buffer_event_data(event);
	for (int i = 0; i < ARRAY_SIZE(entry->fields); i++)
		entry->fields[i] = (unsigned long)tr;
	return event;
}

static __always_inline void bench_event(struct trace_array *tr)
{
	struct ring_buffer_event *event = bench_reserve(tr, tracing_gen_ctx());

	if (event)
		trace_buffer_unlock_commit_nostack(tr->array_buffer.buffer, event);
}

/* __ftrace_trace_stack() with the other unwinder. */
static noinline void bench_trace_stack(struct trace_array *tr, unsigned int trace_ctx)
{
	int bit = trace_test_and_set_recursion(_THIS_IP_, _RET_IP_, TRACE_EVENT_START);

	if (bit < 0)
		return;
	scoped_guard(preempt_notrace) {
		bench_unwind();
		trace_record_stack(tr, tr->array_buffer.buffer, trace_ctx, bench_ips, bench_nr);
	}
	trace_clear_recursion(bit);
}

static __always_inline void bench_whole(struct trace_array *tr)
{
	unsigned int trace_ctx = tracing_gen_ctx();
	struct ring_buffer_event *event = bench_reserve(tr, trace_ctx);

	if (!event)
		return;
	trace_buffer_unlock_commit_nostack(tr->array_buffer.buffer, event);
	bench_trace_stack(tr, trace_ctx);
}

static __always_inline void bench_place(struct trace_array *tr)
{
	struct trace_buffer *buffer = tr->array_buffer.buffer;
	struct ring_buffer_event *event;
	struct stack_id_entry *entry;

	event = trace_buffer_lock_reserve(buffer, TRACE_STACK_ID, sizeof(*entry), 0);
	if (!event)
		return;
	entry = ring_buffer_event_data(event);
	entry->stack_id = 1;
	trace_buffer_unlock_commit_nostack(buffer, event);
}

#define BENCH_LOOP(name, op)							\
static noinline void name(struct trace_array *tr, unsigned int calls)		\
{										\
	while (calls--) {							\
		op;								\
		barrier();							\
	}									\
}

BENCH_LOOP(bench_run_event, bench_event(tr))
BENCH_LOOP(bench_run_unwind, bench_unwind())
BENCH_LOOP(bench_run_look_up,
	   bench_look_up(rcu_access_pointer(tr->stackmap->map), bench_ips, bench_depth))
BENCH_LOOP(bench_run_place, bench_place(tr))
BENCH_LOOP(bench_run_whole, bench_whole(tr))

struct bench_variant {
	const char		*name;
	enum bench_stacks	stacks;
	void			(*run)(struct trace_array *tr, unsigned int calls);
};

static const struct bench_variant bench_variants[] = {
	{ "event", BENCH_NONE, bench_run_event },
	{ "unwinding", BENCH_NONE, bench_run_unwind },
	{ "look-up", BENCH_IDS, bench_run_look_up },
	{ "place of the id", BENCH_NONE, bench_run_place },
	{ "full stack", BENCH_FULL, bench_run_whole },
	{ "stack map", BENCH_IDS, bench_run_whole },
	{ "full stack, 64 MB", BENCH_FULL_LARGE, bench_run_whole },
	{ "stack map, 64 MB", BENCH_IDS_LARGE, bench_run_whole },
};

static u64 bench_took[ARRAY_SIZE(bench_variants)][BENCH_MAX_REPS];

/* Measures @more calls deeper, so that there are frames to unwind. */
static noinline u64 bench_deeper(const struct bench_variant *v, unsigned int calls,
				 unsigned int more)
{
	u64 took;

	if (more) {
		took = bench_deeper(v, calls, more - 1);
	} else {
		took = bench_now();
		v->run(bench_tr[v->stacks], calls);
		took = bench_now() - took;
	}
	barrier();
	return took;
}

/* Returns the depth of the last stack in the buffer, which must be an id if there is a map. */
static unsigned int bench_recorded(struct trace_array *tr)
{
	struct stackmap_gens *gens = tr->stackmap ? rcu_access_pointer(tr->stackmap->gens) : NULL;
	const struct stackmap_record *rec;
	struct ring_buffer_event *event;
	struct stack_id_entry *id;
	struct stack_entry *stack;
	unsigned int nr = 0;

	while ((event = ring_buffer_consume(tr->array_buffer.buffer, raw_smp_processor_id(), NULL,
					    NULL))) {
		stack = ring_buffer_event_data(event);
		id = ring_buffer_event_data(event);
		if (!gens && stack->ent.type == TRACE_STACK)
			nr = stack->size;
		if (!gens || id->ent.type != TRACE_STACK_ID)
			continue;
		rec = stackmap_lookup(gens, id->stack_id);
		nr = rec ? rec->nr : 0;
	}
	return nr;
}

static void bench_check_depth(const struct bench_variant *v)
{
	unsigned int nr;

	bench_deeper(v, 1, BENCH_MAX_DEPTH);
	nr = bench_recorded(bench_tr[v->stacks]);
	if (nr != bench_depth)
		pr_err("bench: %s has %u of %u frames\n", v->name, nr, bench_depth);
}

static int bench_event_setup(void)
{
	for (int i = 0; i < BENCH_INSTANCES; i++) {
		bench_tr[i] = bench_instance(bench_instances[i].name, bench_instances[i].size);
		if (!bench_tr[i])
			return -ENOMEM;
	}
	return bench_enable_map(bench_tr[BENCH_IDS], ftrace_stackmap_bits) &&
	       bench_enable_map(bench_tr[BENCH_IDS_LARGE], ftrace_stackmap_bits) ? 0 : -ENOMEM;
}

static void bench_one_depth(unsigned int depth, unsigned int reps)
{
	u64 took;

	bench_depth = depth;
	for (int i = 0; i < ARRAY_SIZE(bench_variants); i++)
		if (bench_variants[i].run == bench_run_whole)
			bench_check_depth(&bench_variants[i]);
	for (unsigned int rep = 0; rep < reps; rep++) {
		for (int i = 0; i < ARRAY_SIZE(bench_variants); i++) {
			preempt_disable();
			took = bench_deeper(&bench_variants[i], BENCH_CALLS, BENCH_MAX_DEPTH);
			bench_took[i][rep] = took * 100 / BENCH_CALLS;
			preempt_enable();
			cond_resched();
		}
	}
	for (int i = 0; i < ARRAY_SIZE(bench_variants); i++)
		bench_report("event", bench_variants[i].name, depth, 1, 1, bench_took[i], reps);
}

void bench_one_event(unsigned int reps)
{
	if (bench_event_setup()) {
		pr_err("bench: no instances for events\n");
		return;
	}
	for (int i = 0; i < BENCH_NR_DEPTHS; i++)
		bench_one_depth(bench_depths[i], reps);
	for (int i = 0; i < BENCH_INSTANCES; i++)
		bench_instance_free(bench_tr[i]);
}
