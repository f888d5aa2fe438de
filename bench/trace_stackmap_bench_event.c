// SPDX-License-Identifier: GPL-2.0
/*
 * Measures one traced event with its stack, end to end, and its shares: the event itself,
 * unwinding, the look-up in the map, the place of the id in the ring buffer. Unwinds by User-Mode
 * Linux, which reads every word of the stack, and along frame pointers, as x86 does.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/sched/task_stack.h>
#include <linux/stacktrace.h>
#include <linux/trace.h>
#include <linux/trace_recursion.h>

#include <asm/stacktrace.h>

#include "bench.h"
#include "bench_map.h"

#define BENCH_CALLS	10000
#define BENCH_FRAMES	16

enum bench_stacks { BENCH_NONE, BENCH_FULL, BENCH_IDS, BENCH_INSTANCES };

static struct trace_array *bench_tr[BENCH_INSTANCES];
static unsigned long bench_ips[BENCH_MAX_DEPTH];
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
	if (bench_nr >= ARRAY_SIZE(bench_ips))
		return false;
	bench_ips[bench_nr++] = addr;
	return true;
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

static noinline void bench_unwind_pointers(void)
{
	bench_nr = 0;
	bench_walk(bench_consume, NULL);
}

static noinline void bench_unwind_um(void)
{
	bench_nr = stack_trace_save(bench_ips, ARRAY_SIZE(bench_ips), 0);
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

/* With its stack, if options/stacktrace is set. */
static __always_inline void bench_event_um(struct trace_array *tr)
{
	unsigned int trace_ctx = tracing_gen_ctx();
	struct ring_buffer_event *event = bench_reserve(tr, trace_ctx);

	if (event)
		trace_buffer_unlock_commit(tr, tr->array_buffer.buffer, event, trace_ctx);
}

/* __ftrace_trace_stack() with the other unwinder. */
static noinline void bench_trace_stack(struct trace_array *tr, unsigned int trace_ctx)
{
	int bit = trace_test_and_set_recursion(_THIS_IP_, _RET_IP_, TRACE_EVENT_START);

	if (bit < 0)
		return;
	scoped_guard(preempt_notrace) {
		bench_unwind_pointers();
		trace_record_stack(tr, tr->array_buffer.buffer, trace_ctx, bench_ips, bench_nr);
	}
	trace_clear_recursion(bit);
}

static __always_inline void bench_event_pointers(struct trace_array *tr)
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

BENCH_LOOP(bench_run_event_um, bench_event_um(tr))
BENCH_LOOP(bench_run_event_pointers, bench_event_pointers(tr))
BENCH_LOOP(bench_run_unwind_um, bench_unwind_um())
BENCH_LOOP(bench_run_unwind_pointers, bench_unwind_pointers())
BENCH_LOOP(bench_run_place, bench_place(tr))
BENCH_LOOP(bench_run_look_up,
	   bench_look_up(rcu_access_pointer(tr->stackmap), bench_ips, BENCH_FRAMES))

struct bench_variant {
	const char		*name;
	enum bench_stacks	stacks;
	void			(*run)(struct trace_array *tr, unsigned int calls);
};

static const struct bench_variant bench_variants[] = {
	{ "event", BENCH_NONE, bench_run_event_um },
	{ "unwinding, UML", BENCH_NONE, bench_run_unwind_um },
	{ "unwinding, frame pointers", BENCH_NONE, bench_run_unwind_pointers },
	{ "look-up", BENCH_IDS, bench_run_look_up },
	{ "place of the id", BENCH_NONE, bench_run_place },
	{ "whole, full stack, UML", BENCH_FULL, bench_run_event_um },
	{ "whole, stack map, UML", BENCH_IDS, bench_run_event_um },
	{ "whole, full stack, frame pointers", BENCH_FULL, bench_run_event_pointers },
	{ "whole, stack map, frame pointers", BENCH_IDS, bench_run_event_pointers },
};

static u64 bench_took[ARRAY_SIZE(bench_variants)][BENCH_MAX_REPS];

/* Measures @more calls deeper. User-Mode Linux reads the locals, too. */
static noinline u64 bench_deeper(const struct bench_variant *v, unsigned int calls,
				 unsigned int more)
{
	unsigned long locals[8];
	u64 took;

	barrier_data(locals);
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
static unsigned int bench_recorded(enum bench_stacks stacks)
{
	struct trace_array *tr = bench_tr[stacks];
	const struct stackmap_record *rec;
	struct ring_buffer_event *event;
	struct stack_id_entry *id;
	struct stack_entry *stack;
	unsigned int nr = 0;

	while ((event = ring_buffer_consume(tr->array_buffer.buffer, raw_smp_processor_id(), NULL,
					    NULL))) {
		stack = ring_buffer_event_data(event);
		id = ring_buffer_event_data(event);
		if (stacks == BENCH_FULL && stack->ent.type == TRACE_STACK)
			nr = stack->size;
		if (stacks != BENCH_IDS || id->ent.type != TRACE_STACK_ID)
			continue;
		rec = stackmap_lookup(rcu_access_pointer(tr->stackmap), id->stack_id);
		nr = rec ? rec->nr : 0;
	}
	return nr;
}

static unsigned int bench_frames(const struct bench_variant *v, unsigned int more)
{
	bench_nr = 0;
	bench_deeper(v, 1, more);
	return bench_recorded(v->stacks) ?: bench_nr;
}

/* Returns the number of calls that are missing to BENCH_FRAMES frames. */
static unsigned int bench_more(const struct bench_variant *v)
{
	unsigned int nr = bench_frames(v, 0);

	if (!nr)
		return 0;
	if (nr > BENCH_FRAMES || bench_frames(v, BENCH_FRAMES - nr) != BENCH_FRAMES)
		pr_err("bench: %s has %u frames\n", v->name, nr);
	return BENCH_FRAMES - min(nr, BENCH_FRAMES);
}

static int bench_event_setup(void)
{
	static const char *const names[] = { "event_none", "event_full", "event_ids" };
	char option[] = "stacktrace";

	for (int i = 0; i < BENCH_INSTANCES; i++) {
		bench_tr[i] = bench_instance(names[i]);
		if (!bench_tr[i])
			return -ENOMEM;
		if (i != BENCH_NONE && trace_set_options(bench_tr[i], option))
			return -EINVAL;
	}
	return bench_enable_map(bench_tr[BENCH_IDS], STACKMAP_BITS_DEFAULT) ? 0 : -ENOMEM;
}

struct bench_work {
	struct completion	done;
	unsigned int		reps;
};

/* In a thread, because its stack has few frames at first. */
static int bench_event_fn(void *data)
{
	unsigned int more[ARRAY_SIZE(bench_variants)];
	struct bench_work *work = data;
	u64 took;

	preempt_disable();
	for (int i = 0; i < ARRAY_SIZE(bench_variants); i++)
		more[i] = bench_more(&bench_variants[i]);
	preempt_enable();

	for (unsigned int rep = 0; rep < work->reps; rep++) {
		for (int i = 0; i < ARRAY_SIZE(bench_variants); i++) {
			preempt_disable();
			took = bench_deeper(&bench_variants[i], BENCH_CALLS, more[i]);
			bench_took[i][rep] = took * 100 / BENCH_CALLS;
			preempt_enable();
			cond_resched();
		}
	}
	complete(&work->done);
	return 0;
}

void bench_one_event(unsigned int reps)
{
	struct bench_work work = { .reps = reps };
	struct task_struct *task;

	if (bench_event_setup()) {
		pr_err("bench: no instances for events\n");
		return;
	}
	init_completion(&work.done);
	task = kthread_create_on_cpu(bench_event_fn, &work, 0, "event/%u");
	if (WARN_ON(IS_ERR(task)))
		return;
	wake_up_process(task);
	wait_for_completion(&work.done);

	for (int i = 0; i < ARRAY_SIZE(bench_variants); i++)
		bench_report("event", bench_variants[i].name, BENCH_FRAMES, 1, 1, bench_took[i],
			     reps);
	for (int i = 0; i < BENCH_INSTANCES; i++)
		bench_instance_free(bench_tr[i]);
}
