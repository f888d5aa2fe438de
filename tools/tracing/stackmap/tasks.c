// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks: their names at a time, whose children they are, and their processes. fork, exec and rename
 * tell them, and switches.
 */
#include "profile.h"

/*
 * In the profile, a task is another one with each name that it has had. The idle tasks are one. A
 * process has the last name of its leader.
 */
static void set_comm(struct profile *p, struct task_state *t, const char *comm)
{
	char *key __free(pointer) = NULL;
	struct pooled *e;

	snprintf(t->id.comm, sizeof(t->id.comm), "%.*s", COMM_LEN, comm);
	if (t->process && t->process->pid == t->id.pid)
		*t->process = t->id;
	key = format("%u %u %s", t->nr, t->id.nth, t->id.pid ? t->id.comm : "");
	t->named = intern(&p->named, key);
	e = pool_at(&p->named, t->named);
	if (!e->ptr)
		e->ptr = check_mem(malloc(sizeof(t->id)));
	memcpy(e->ptr, &t->id, sizeof(t->id));
}

/* "1,5-7" */
bool number_in(const char *list, u32 n)
{
	unsigned long first, last;
	char *end;

	for (; *list; list = *end ? end + 1 : end) {
		first = strtoul(list, &end, 10);
		last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
		if (n >= first && n <= last)
			return true;
		end += strcspn(end, ",");
	}
	return false;
}

/* Of which this task is the leader. */
static struct task *process_of(struct profile *p, struct task_state *t)
{
	t->process = pool_get(&p->processes, t->nr, t->id.nth, sizeof(*t->process));
	*t->process = t->id;
	t->seen = true;
	return t->process;
}

/* It was there before the recording, and something tells its process. */
static void join_process(struct record *r, struct task_state *t)
{
	const struct thread *known = pool_find(&r->profile->threads, t->id.pid, 0)->ptr;
	struct task_state *leader = known && known->tgid ? get_task(r, known->tgid) : NULL;

	if (!leader)
		return;
	t->process = process_of(r->profile, leader);
	t->family |= leader->family;
}

static u32 family_by_number(const struct profile *p, u32 pid)
{
	return p->cfg->pids && number_in(p->cfg->pids, pid) ? FAMILY_PID : 0;
}

struct task_state *get_task(struct record *r, u32 pid)
{
	struct profile *p = r->profile;
	struct task_state *t = r->cpu->task;

	if (t && t->id.pid == pid)
		return t;
	t = pool_get(&p->tasks, r->in->nr, pid, sizeof(*t));
	r->cpu->task = t;
	if (!t->nr) {
		t->nr = p->tasks.nr;
		t->in = r->in;
		t->id.pid = pid;
		t->family = pool_find(&p->roots, pid, 0)->value | family_by_number(p, pid);
		set_comm(p, t, tep_data_comm_from_pid(p->tep, pid));
		join_process(r, t);
		r->cpu->task = t;
	}
	return t;
}

/* Of what it did since the last time that it was told, that may have been the name @before. */
void set_name(struct profile *p, struct task_state *t, const char *comm, bool before)
{
	struct sample *s;

	if (strncmp(t->id.comm, comm, COMM_LEN))
		set_comm(p, t, comm);
	while ((s = t->unnamed)) {
		t->unnamed = s->next_unnamed;
		p->nr_unnamed--;
		if (before)
			s->named = t->named;
		sample_put(p, s);
	}
}

void wait_for_name(struct profile *p, struct sample *s)
{
	if (p->nr_unnamed == MAX_UNNAMED)
		return;
	p->nr_unnamed++;
	s->holders++;
	s->next_unnamed = s->task->unnamed;
	s->task->unnamed = s;
}

void learn_name(struct record *r, u64 pid, enum field which, bool before)
{
	char comm[COMM_LEN + 1];

	get_text(r, which, comm, sizeof(comm));
	set_name(r->profile, get_task(r, pid), comm, before);
}

#define THREAD		0x10000		/* the kernel's CLONE_THREAD */

/* Its number may have been that of another task, whose samples keep their name. */
static void begin_task(struct record *r, struct task_state *t, enum field which)
{
	char comm[COMM_LEN + 1];

	set_name(r->profile, t, t->id.comm, false);
	t->id.nth += t->seen && t->id.pid;
	t->seen = false;
	t->process = NULL;
	t->is_child = false;
	get_text(r, which, comm, sizeof(comm));
	set_comm(r->profile, t, comm);
}

/* Tells if it is a thread. */
void take_newtask(struct record *r)
{
	struct task_state *t;
	u64 pid, flags;

	if (!get_number(r, FIELD_TASK, &pid) || !get_number(r, FIELD_CLONE_FLAGS, &flags))
		return;
	t = get_task(r, pid);
	begin_task(r, t, FIELD_COMM);
	t->process = flags & THREAD ? get_task(r, r->pid)->process : process_of(r->profile, t);
	t->is_new = true;
}

/* Of a process or a thread. */
void take_fork(struct record *r)
{
	struct task_state *child;
	u64 parent, pid;

	if (!get_number(r, FIELD_PARENT_PID, &parent) || !get_number(r, FIELD_CHILD_PID, &pid))
		return;
	child = get_task(r, pid);
	if (!child->is_new)
		begin_task(r, child, FIELD_CHILD_COMM);
	child->is_new = false;
	child->is_child = get_task(r, parent)->process || get_task(r, parent)->is_child;
	child->family = get_task(r, parent)->family | family_by_number(r->profile, pid);
	learn_name(r, pid, FIELD_CHILD_COMM, false);
}

/* A thread gets the number of its process. */
void take_exec(struct record *r)
{
	struct task_state *t;
	char path[0x1000];
	u64 pid, old;
	bool fd;

	if (!get_number(r, FIELD_TASK, &pid) || !get_number(r, FIELD_OLD_PID, &old))
		return;
	t = get_task(r, pid);
	t->family |= get_task(r, old)->family;
	process_of(r->profile, t);
	get_text(r, FIELD_FILENAME, path, sizeof(path));
	/* That of a file descriptor is no name; task_rename has told it. */
	fd = !strncmp(path, "/dev/fd/", 8) && !strchr(path + 8, '/');
	set_name(r->profile, t, fd ? t->id.comm : basename(path), false);
}

void take_rename(struct record *r)
{
	u64 pid;

	if (!get_number(r, FIELD_TASK, &pid))
		return;
	learn_name(r, pid, FIELD_OLD_COMM, true);
	learn_name(r, pid, FIELD_NEW_COMM, false);
}

void set_process(struct record *r, u64 tgid)
{
	struct task *process = process_of(r->profile, get_task(r, tgid));

	get_task(r, r->pid)->process = process;
}

/*
 * Before any record is taken. User stacks tell the process of a thread, which was there before if
 * it does not begin first.
 */
void look_ahead(struct record *r)
{
	bool begins = r->kind->learn == take_newtask || r->kind->learn == take_fork;
	enum field which = r->kind->learn == take_fork ? FIELD_CHILD_PID : FIELD_TASK;
	u64 pid, tgid = 0;
	struct thread *t;

	if (!begins && (r->kind->is_event || !r->kind->is_user))
		return;
	if (!get_number(r, begins ? which : FIELD_PID, &pid) ||
	    (!begins && !get_number(r, FIELD_TGID, &tgid)))
		return;
	t = pool_get(&r->profile->threads, pid, 0, sizeof(*t));
	if (t->first && t->first <= r->rec->ts)
		return;
	t->first = r->rec->ts;
	t->tgid = tgid;
}
