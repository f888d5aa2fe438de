/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The recycling of stack maps, for Spin: rotations of kernel/trace/trace_stackmap_rotate.c while
 * stacks are recorded. model/stackmap.pml has what happens within one map. The inlines have the
 * names of the C functions that they model. Each step is one access to shared memory, or several
 * to what belongs to one CPU.
 *
 * A writer records stacks by their ids in a ring buffer, an interrupt records one in the midst of
 * that. A worker walks the buffer and the snapshot's, keeps the stacks of older maps that an event
 * refers to, and publishes an empty map. A snapshot swaps the two buffers. A reader looks up the id
 * of an event. Spin checks in every interleaving:
 *   - the id of an event in a buffer stands for the stack that was recorded with it;
 *   - one from before a reset stands for none, so that its generation is not used again;
 *   - nobody touches a map, or a table of kept stacks, that has been freed.
 *
 * The buffers are those of one CPU, and full. A page holds one event, so that the writer moves to
 * the next page, and overwrites the oldest, each time. This is done in the steps of
 * kernel/trace/ring_buffer.c, since the iterator has no lock against them. Nobody takes events out
 * of a buffer: the access lock holds that up. So the reader page is empty. The model leaves out
 * weak memory, and that a map is nearly full when it is replaced.
 *
 * Configuration:
 *   WRITES=n          how many stacks the writer records
 *   ROTATIONS=n       how often the map is replaced
 *   NR_PAGES=n        pages of a buffer
 *   INTERRUPTS=n      how many interrupts there are
 *   SNAPSHOT          a snapshot swaps the buffers of the instance
 *   SINGLE            a snapshot swaps the buffers of the CPU
 *   LOOKUP            there is a reader
 *
 * Each of these breaks the protocol, and scripts/test-model demands that Spin finds it:
 *   NO_GRACE          the next walk does not wait for the grace period after a rotation
 *   FREE_EARLY        the old maps are freed before the grace period
 *   DEEP_READER       a reader follows the map before the map before the current one
 *   ONE_BUFFER        the snapshot's buffer is not walked
 *   READ_LATE         the second buffer is looked up when the first one was walked
 *   NO_SEQ            a swap of the CPU's buffers is not noticed
 *   ANY_GENERATION    the next generation is used, whether or not an event has it
 *   ANY_CURRENT       a walk ends at any event of the current map
 *   NO_OVERRUN        that the writer has overtaken the iterator is not noticed
 *   LOST_HEAD         nor is it where the writer is just taking the page that the iterator begins at
 *   OLD_HEAD          the end of the buffer is found by the head page that was the last one known
 */
#ifndef WRITES
#define WRITES		2
#endif
#ifndef ROTATIONS
#define ROTATIONS	2
#endif
#ifndef INTERRUPTS
#define INTERRUPTS	0
#endif
#ifndef NR_PAGES
#define NR_PAGES	2
#endif

#define NR_MAPS		(ROTATIONS + 1)
#define NR_STACKS	3	/* what a map has room for */
#define NR_GENS		3	/* the generations wrap */
#define NONE		255

/* An event, by what was recorded: 0 is none, then come the stacks of each map, and a stale id. */
#define EVENT(m, i)	((m) * NR_STACKS + (i) + 1)
#define MAP(e)		(((e) - 1) / NR_STACKS)
#define IDX(e)		(((e) - 1) % NR_STACKS)
#define STALE		(NR_MAPS * NR_STACKS + 1)
#define STALE_GEN	1
#define GEN(e)		((e) == STALE -> STALE_GEN : gen[MAP(e)])
#define BIT(n)		(1 << (n))

/* Whoever runs. The writer stands still while the interrupt runs. */
#define WRITER		0
#define IRQ		1
#define READER		2

/* The maps. The one before map m is map m - 1, and kept[m] are stacks of those before it. */
byte current;			/* tr->stackmap */
byte gen[NR_MAPS];
byte tail[NR_MAPS];		/* stacks in it */
byte settled[NR_MAPS];
int kept[NR_MAPS];		/* a set of events */
bool freed[NR_MAPS];
bool kept_freed[NR_MAPS];
bool forgotten[NR_MAPS];	/* map->prev is NULL, after it was freed */

/* The ring buffers: two of NR_PAGES each, and a reader page. */
#define NORMAL		0
#define HEAD		1
#define UPDATE		2
#define READER_PAGE	NR_PAGES
#define ALL_LOST	-10000

byte event[2 * NR_PAGES];
bool write[2 * NR_PAGES];	/* the event of the page is reserved ... */
bool commit[2 * NR_PAGES];	/* ... and committed ... */
bool taken[2 * NR_PAGES];	/* ... and about to be overwritten */
byte flag[2 * NR_PAGES];	/* HEAD if it is the oldest page, UPDATE while the writer takes it */
byte tail_page[2];
byte commit_page[2];
byte head_page[2];		/* the last one that a reader or an iterator knew */
byte pages_lost[2];
byte committing[2];

bit array;			/* which buffer is tr->array_buffer; the other is the snapshot */
bit swapped;			/* whether they have exchanged the buffer of this CPU */
byte snapshot_cpu_seq;

bool watching[3];		/* in a section that a grace period waits for */
bool irq_runs;

#define PAGE(b, p)	(b) * NR_PAGES + (p)
#define NEXT(p)		(((p) + 1) % NR_PAGES)

/* Comes first in each step on shared memory, since the writer stands still while its interrupt runs. */
#define turn(who)	((who) != WRITER || !irq_runs)

/* Waits until everybody has been seen outside of a section. */
inline synchronize_rcu()
{
	!watching[WRITER];
	!watching[IRQ];
	!watching[READER]
}

/*
 * Leaves found at the stack that map m has for the id of event e: itself, another one, or 0. With
 * old, only older maps are looked at.
 */
inline ftrace_stackmap_lookup(m, e, old, found)
{
	found = 0;
	assert(!freed[m]);
	if
	:: !old && GEN(e) == gen[m] -> found = EVENT(m, (e == STALE -> 0 : IDX(e)))
	:: else ->
		assert(m == 0 || !freed[m - 1]);
		assert(!kept_freed[m]);
		if
		:: m > 0 && GEN(e) == gen[m - 1] ->
			found = EVENT(m - 1, (e == STALE -> 0 : IDX(e)))
		:: else ->
			for (k : 1 .. STALE - 1) {
				if
				:: (kept[m] & BIT(k)) && gen[MAP(k)] == GEN(e) &&
				   IDX(k) == (e == STALE -> 0 : IDX(e)) -> found = k
				:: else
				fi
			}
			k = 0
		fi
	fi
}

/* The event of page number i is in the buffer. */
#define in_buffer(i)	(commit[i] && !taken[i])

/* Comes last in the steps that let an event appear, or another map. */
inline check_events(found)
{
	for (j : 0 .. 2 * NR_PAGES - 1) {
		if
		:: in_buffer(j) ->
			ftrace_stackmap_lookup(current, event[j], false, found);
			assert(found == (event[j] == STALE -> 0 : event[j]))
		:: else
		fi
	}
	j = 0;
	found = 0
}

inline rb_set_commit_to_write(b)
{
	do
	:: commit_page[b] != tail_page[b] ->
		commit[PAGE(b, commit_page[b])] = write[PAGE(b, commit_page[b])];
		commit_page[b] = NEXT(commit_page[b])
	:: else -> break
	od;
	commit[PAGE(b, commit_page[b])] = write[PAGE(b, commit_page[b])]
}

/* The outermost writer commits the events of all. */
inline rb_end_commit(b)
{
	if
	:: committing[b] == 1 -> rb_set_commit_to_write(b)
	:: else
	fi
}

/* Leaves type at what the head page was, NORMAL if an interrupt has moved it meanwhile. */
inline rb_handle_head_page(who, b, old, next, type, ret)
{
	d_step {
		turn(who);
		type = flag[PAGE(b, next)];
		if
		:: type == HEAD ->
			flag[PAGE(b, next)] = UPDATE;
			taken[PAGE(b, next)] = true
		:: else
		fi
	}
	if
	:: type == HEAD ->
		d_step {
			turn(who);
			pages_lost[b]++
		}
	:: else
	fi;
	if
	:: type != NORMAL ->
		d_step {
			turn(who);
			ret = flag[PAGE(b, NEXT(next))];
			flag[PAGE(b, NEXT(next))] = (ret == NORMAL -> HEAD : ret)
		}
		if
		:: ret == NORMAL ->
			d_step {
				turn(who);
				if
				:: tail_page[b] != old && tail_page[b] != next ->
					flag[PAGE(b, NEXT(next))] = NORMAL
				:: else
				fi
			}
		:: else
		fi;
		if
		:: type == HEAD ->
			d_step {
				turn(who);
				assert(flag[PAGE(b, next)] == UPDATE);
				flag[PAGE(b, next)] = NORMAL
			}
		:: else
		fi
	:: else
	fi
}

inline rb_tail_page_update(who, b, old, next)
{
	d_step {
		turn(who);
		if
		:: tail_page[b] == old ->
			write[PAGE(b, next)] = false;
			commit[PAGE(b, next)] = false;
			taken[PAGE(b, next)] = false;
			event[PAGE(b, next)] = 0
		:: else
		fi
	}
	d_step {
		turn(who);
		tail_page[b] = (tail_page[b] == old -> next : tail_page[b])
	}
}

/* Leaves page at where the event goes, or at NONE where interrupts have filled the buffer. */
inline trace_buffer_lock_reserve(who, b, page, old, next, type, ret)
{
	d_step {
		turn(who);
#ifdef SINGLE
		b = b ^ swapped;
#endif
		committing[b]++
	}
	do
	:: d_step {
			turn(who);
			old = tail_page[b];
			next = NEXT(old);
			page = (write[PAGE(b, old)] -> NONE : old);
			if
			:: page != NONE -> write[PAGE(b, old)] = true
			:: else
			fi
		}
		if
		:: page != NONE || next == commit_page[b] -> break
		:: else
		fi;
		/* rb_move_tail() */
		d_step {
			turn(who);
			type = flag[PAGE(b, next)]
		}
		if
		:: type != NORMAL -> rb_handle_head_page(who, b, old, next, type, ret)
		:: else -> type = HEAD
		fi;
		if
		:: type != NORMAL -> rb_tail_page_update(who, b, old, next)
		:: else
		fi;
		d_step {
			turn(who);
			rb_end_commit(b)
		}
	od
}

/* Leaves idx at a stack that is in the map, or at a new one. */
inline ftrace_stackmap_store(who, m, idx)
{
	assert(!freed[m]);
	if
	:: d_step {
			turn(who) && tail[m] < NR_STACKS;
			idx = tail[m];
			tail[m]++
		}
	:: d_step {
			turn(who) && tail[m] != 0;
			idx = 0
		}
	fi
}

/* A grace period waits for it, because preemption is off. */
inline trace_record_stack(who)
{
	d_step {
		turn(who);
		watching[who] = true;
		m = current;		/* ftrace_stackmap_active() */
		b = array
	}
	trace_buffer_lock_reserve(who, b, page, old, next, type, ret);
	if
	:: page != NONE -> ftrace_stackmap_store(who, m, idx)
	:: else
	fi;
	d_step {
		turn(who);
		if
		:: page != NONE -> event[PAGE(b, page)] = EVENT(m, idx)
		:: else
		fi;
		rb_end_commit(b);
		committing[b]--;
		check_events(page);
		watching[who] = false;
		irq_runs = (who == IRQ -> false : irq_runs);
		m = 0;
		idx = 0;
		b = 0;
		old = 0;
		next = 0;
		type = 0;
		ret = 0
	}
}

proctype writer()
{
	byte m, idx, page, old, next, type, ret, n, j, k;
	bit b;

	do
	:: n < WRITES ->
		trace_record_stack(WRITER);
		n++
	:: else -> break
	od
}

#if INTERRUPTS > 0
proctype irq()
{
	byte m, idx, page, old, next, type, ret, n, j, k;
	bit b;

	do
	:: n < INTERRUPTS ->
		irq_runs = true;
		trace_record_stack(IRQ);
		n++
	:: else -> break
	od
}
#endif

#if defined(SNAPSHOT) || defined(SINGLE)
/* Whoever takes a snapshot is on another CPU, or has interrupts off where the CPU's buffers are swapped. */
proctype snapshot()
{
#ifdef SINGLE
	/* update_max_tr_single() */
	d_step {
		!irq_runs && committing[0] == 0 && committing[1] == 0;
		swapped = 1 - swapped;
		snapshot_cpu_seq++
	}
#else
	array = 1 - array	/* update_max_tr() */
#endif
}
#endif

/*
 * Leaves it_lost at the pages that were lost before it_page. How many are counted by now is not
 * known while the writer is taking that page, and interrupts the next ones.
 */
inline rb_inc_iter(b)
{
	if
	:: it_page == READER_PAGE ->
		d_step {
			it_lost = pages_lost[b];
			it_page = head_page[b]
		}
		/* rb_set_head_page() */
		do
		:: d_step {
				flag[PAGE(b, it_page)] == NORMAL;
				it_page = NEXT(it_page)
			}
		:: d_step {
				flag[PAGE(b, it_page)] != NORMAL;
				head_page[b] = it_page
			}
			break
		od;
#ifndef LOST_HEAD
		it_lost = (flag[PAGE(b, it_page)] == HEAD -> it_lost : ALL_LOST)
#endif
	:: else ->
		it_lost++;
		it_page = NEXT(it_page)
	fi;
	it_read = false
}

#ifdef OLD_HEAD
#define is_head(b, p)	(head_page[b] == (p))
#else
#define is_head(b, p)	(flag[PAGE(b, p)] == HEAD)
#endif

#define ring_buffer_iter_empty(b) \
	((it_page == commit_page[b] && (it_read || !commit[PAGE(b, it_page)])) || \
	 (it_page == READER_PAGE && is_head(b, commit_page[b]) && !commit[PAGE(b, commit_page[b])]))

/* Leaves e at the event, or at 0. */
inline ring_buffer_iter_peek(b)
{
	do
	:: e != 0 || ring_buffer_iter_empty(b) -> break
	:: else ->
		d_step {
			if
			:: it_page != READER_PAGE && !it_read && commit[PAGE(b, it_page)] ->
				e = event[PAGE(b, it_page)]
			:: else
			fi
		}
		if
		:: e == 0 -> rb_inc_iter(b)
		:: else
		fi
	od
}

/* Sets done if every later event has an id of the current map. */
inline stackmap_mark(e)
{
	gens = gens | BIT(GEN(e));
	if
	:: GEN(e) != gen[current] ->
		ftrace_stackmap_lookup(current, e, true, found);
		marks = (found != 0 -> marks | BIT(found) : marks);
		found = 0
	:: else ->
#ifdef ANY_CURRENT
		done = true
#else
		done = (e != STALE && IDX(e) >= settled[current])
#endif
	fi
}

/* Clears done if it has to be walked again. */
inline stackmap_walk_buffer(buffer)
{
	d_step {
		b = buffer;
#ifdef SINGLE
		b = b ^ swapped;
#endif
		it_page = READER_PAGE;
		done = false
	}
	do
	:: ring_buffer_iter_peek(b);
		if
		:: e != 0 ->
			d_step {
				stackmap_mark(e);
				e = 0;
				it_read = true
			}
			/* ring_buffer_iter_advance() */
			if
			:: it_page != commit_page[b] -> rb_inc_iter(b)
			:: it_page == commit_page[b]
			fi
		:: else -> done = ring_buffer_iter_empty(b)
		fi;
		/* ring_buffer_iter_overrun() */
		d_step {
			overrun = (it_page != READER_PAGE && pages_lost[b] > it_lost);
#ifdef NO_OVERRUN
			overrun = false
#endif
		}
		if
		:: done || overrun -> break
		:: else
		fi
	od;
	done = done && !overrun;
	d_step {
		overrun = false;
		it_page = 0;
		it_lost = 0;
		it_read = false;
		b = 0
	}
}

inline stackmap_walk_buffers()
{
	do
	:: d_step {
			seq = snapshot_cpu_seq;
			first = array
		}
		stackmap_walk_buffer(first);
#ifndef ONE_BUFFER
		if
		:: done ->
#ifdef READ_LATE
			first = array;
#endif
			stackmap_walk_buffer(1 - first)
		:: else
		fi;
#endif
#ifndef NO_SEQ
		done = done && seq == snapshot_cpu_seq;
#endif
		if
		:: done -> break
		:: else
		fi
	od;
	done = false;
	d_step {
		seq = 0;
		first = 0
	}
}

/* Leaves g at the generation of the next map, or at NONE. */
inline stackmap_free_gen()
{
	g = NONE;
	for (i : 1 .. NR_GENS - 1) {
		if
#ifdef ANY_GENERATION
		:: g == NONE ->
#else
		:: g == NONE && !(gens & BIT((gen[current] + i) % NR_GENS)) ->
#endif
			g = (gen[current] + i) % NR_GENS
		:: else
		fi
	}
	i = 0
}

/* Frees what map m has of older maps. */
inline free_older(m)
{
	d_step {
		if
		:: m > 0 -> freed[m - 1] = true
		:: else
		fi;
		kept_freed[m] = true
	}
	forgotten[m] = true
}

inline stackmap_publish()
{
	d_step {
		kept[current + 1] = marks;
		gen[current + 1] = g;
		current++;
		check_events(found);
		marks = 0;
		gens = 0;
		g = 0
	}
#ifdef FREE_EARLY
	free_older(current - 1);
#endif
#ifndef NO_GRACE
	synchronize_rcu();
#endif
	settled[current] = tail[current];
#ifdef NO_GRACE
	/* What the rotation before has not freed. */
	if
	:: current > 1 ->
		synchronize_rcu();
		free_older(current - 2)
	:: else
	fi
#elif !defined(FREE_EARLY)
	free_older(current - 1)
#endif
}

proctype rotate()
{
	byte e, g, gens, found, it_page, seq, i, j, k;
	int marks;
	short it_lost;
	bool it_read, done, overrun;
	bit b, first;

	do
	:: current < ROTATIONS ->
		stackmap_walk_buffers();
		stackmap_free_gen();
		if
		:: g != NONE -> stackmap_publish()
		:: else ->
			d_step {	/* -EBUSY */
				marks = 0;
				gens = 0;
				g = 0
			}
		fi
	:: else -> break
	od
}

#ifdef LOOKUP
proctype reader()
{
	byte m, e, i, found, k;

	watching[READER] = true;
	do
	:: i < 2 * NR_PAGES - 1 -> i++
	:: break
	od;
	e = (commit[i] -> event[i] : 0);
	m = current;
	d_step {
		if
		:: e != 0 ->
			ftrace_stackmap_lookup(m, e, false, found);
			assert(event[i] != e || !in_buffer(i) || found == (e == STALE -> 0 : e))
		:: else
		fi;
		found = 0;
		e = 0;
		i = 0
	}
#ifdef DEEP_READER
	/* ftrace_stackmap_memory() */
	assert(m < 2 || forgotten[m - 1] || !freed[m - 2]);
#endif
	d_step {
		watching[READER] = false;
		m = 0
	}
}
#endif

/* Both buffers are full. One holds an id from before a reset. */
init
{
	byte i;

	d_step {
		tail[0] = NR_STACKS - 1;
		for (i : 0 .. 2 * NR_PAGES - 1) {
			event[i] = EVENT(0, (i < NR_PAGES -> 0 : 1));
			write[i] = true;
			commit[i] = true
		}
		event[0] = STALE;
		for (i : 0 .. 1) {
			flag[i * NR_PAGES] = HEAD;
			tail_page[i] = NR_PAGES - 1;
			commit_page[i] = NR_PAGES - 1
		}
		i = 0
	}
	atomic {
		run writer();
#if INTERRUPTS > 0
		run irq();
#endif
#if defined(SNAPSHOT) || defined(SINGLE)
		run snapshot();
#endif
#ifdef LOOKUP
		run reader();
#endif
		run rotate()
	}
}
