/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The replacement of stack maps, for Spin: the work of kernel/trace/trace_stackmap_instance.c and
 * trace_stackmap_old.c, and the walk of kernel/trace/ring_buffer.c, while stacks are recorded and
 * read. model/stackmap.pml has what happens within one map. The inlines have the names of the C
 * functions that they model. Each step is one access to shared memory, or what a lock makes one.
 *
 * A writer records the ids of stacks. A consumer takes pages from the ring buffer. An iterator
 * copies an event, and prints it later. A work replaces the map: by a larger one, or it walks the
 * buffers, keeps the stacks of older maps that events refer to, and lets those maps go. Spin checks
 * in every interleaving:
 *   - the id of an event in a buffer, or in the copy of an iterator, leads to the stack that was
 *     recorded with it, or after a reset to none;
 *   - so no generation is used again that such an id, or a kept stack, has;
 *   - nobody touches a map, a cache or a page that has been freed.
 *
 * The buffers are those of one CPU. A page holds one event, so that the writer moves to the next
 * page, and overwrites the oldest event of a full buffer, each time. A map has one stack. An event
 * is the number of that map, and its id is the map's generation. An interrupt's event is committed
 * with that of what it hit, so it would only make the section longer. What is read while the writer
 * overwrites it may be garbage, which can only keep more. The model leaves out weak memory.
 *
 * Configuration:
 *   REPLACEMENTS=n    how often the map is replaced
 *   NR_PAGES=n        pages of the ring, the reader page not included
 *   CONSUME, ITERATE  there is a consumer, an iterator
 *   SNAPSHOT          there is another buffer, and a snapshot swaps them, or those of the CPU
 *   RESIZE            a page of the buffer is removed
 *   RESET             the map is reset
 *   BREAK=...         breaks the protocol by one of these; Spin must find each
 */
#define READER_FIRST	1	/* the reader page is visited before the ring */
#define COPIES_FIRST	2	/* so are the copies of iterators */
#define NO_COPIES	3	/* they are not visited */
#define UNTIL_ADVANCED	4	/* they are only visited until the iterator has advanced */
#define STAY		5	/* a walk stays at a page that a reader has taken */
#define NO_RESTART	6	/* it goes on when pages were removed */
#define FIRST_CURRENT	7	/* it ends at the first event of the current map */
#define ONE_BUFFER	8	/* the snapshot's buffer is not walked */
#define SAME_BUFFER	9	/* the same buffer may be walked twice */
#define FOLLOW		10	/* a walk goes on with the buffer that took the place of its own */
#define KEPT_UNUSED	11	/* a stack that is kept already is not marked as used */
#define NO_KEPT		12	/* kept stacks are not looked up */
#define EARLY_WALK	13	/* the next walk does not wait for the grace period of a replacement */
#define EARLY_FREE	14	/* older maps are freed before that grace period */
#define LATE_CUT	15	/* the chain is cut after it */
#define EARLY_RETIRE	16	/* the caches are emptied before it */
#define CACHE_FREED	17	/* they are freed without another one */
#define ANY_GENERATION	18	/* the next generation is used, no matter what has it */
#define MAP_GENS	19	/* a walk finds the generations of maps unused */
#define KEPT_GENS	20	/* or those of kept stacks */
#define RUNNING_WORK	21	/* a reset does not wait for the work */

#ifndef BREAK
#define BREAK		0
#endif
#ifndef REPLACEMENTS
#define REPLACEMENTS	3
#endif
#ifndef NR_PAGES
#define NR_PAGES	2
#endif
#ifdef SNAPSHOT
#define NR_BUFFERS	2
#else
#define NR_BUFFERS	1
#endif
#define WRITES		2	/* stacks that the writer records */
#define STALE		1	/* the map before the last reset */
#define FIRST		2	/* the first one after it */
#define NR_MAPS		(FIRST + REPLACEMENTS + 1)
#define NR_GENS		4	/* the generations wrap */
#define NONE		255
#define BIT(n)		(1 << (n))

/* The maps. Number 0 is none, and has a generation of its own. */
byte current = FIRST;		/* tr->stackmap */
byte last = FIRST;
byte gen[NR_MAPS + 1];
byte prev[NR_MAPS + 1];
byte shared[NR_MAPS + 1];	/* the first map since a reset */
bool freed[NR_MAPS + 1];
bool retired[NR_MAPS + 1];	/* map->cache is NULL ... */
bool uncached[NR_MAPS + 1];	/* ... and what it was is freed */
int kept;			/* the stacks of these maps are kept ... */
int used;			/* ... and the walk has found events with them */
int gens;			/* tr->stackmap_gens */
bool stop, working;

/* The ring buffers. The oldest page is the head. */
#define NR_ALL		(NR_PAGES + 1)
#define PAGE(b, p)	(b) * NR_ALL + (p)
#define COPY		(NR_BUFFERS * NR_ALL)

byte event[COPY + 1];		/* of all pages, and the copy that the iterator is going to print */
byte next[COPY];
bool page_freed[COPY];
byte pages[NR_BUFFERS];		/* any page of the ring */
byte nr_pages[NR_BUFFERS] = NR_PAGES;
byte head[NR_BUFFERS];
byte head_page[NR_BUFFERS];	/* the last head that a reader knew */
byte tail[NR_BUFFERS] = NR_PAGES - 1;
byte reader[NR_BUFFERS] = NR_PAGES;
bool resized[NR_BUFFERS];
bit buffer[2];			/* tr->array_buffer, tr->snapshot_buffer */
bit copy_of;			/* the buffer of the iterator */
bool advanced;

/* In a section that a grace period waits for, because preemption is off, or under RCU. */
bool recording, printing;

inline synchronize_rcu()
{
	!recording;
	!printing
}

/* Leaves found at the map before m that made the id of event e, or at 0. */
inline stackmap_of(m, e, found)
{
	found = m;
	do
	:: found != 0 && gen[found] != gen[e] -> found = prev[found]
	:: else -> break
	od;
	assert(!freed[found])
}

/* Leaves found at the kept stack of event e, unless it is at a map. */
inline stackmap_find_kept(m, e, found)
{
	for (k : 1 .. NR_MAPS) {
		found = (found == 0 && (kept & BIT(k)) && shared[k] == shared[m] && gen[k] == gen[e] &&
			 BREAK != NO_KEPT -> k : found)
	}
}

/* Comes last in the steps that bring an event or change the maps. */
inline check_events(found)
{
	for (j : 0 .. COPY) {
		stackmap_of(current, event[j], found);
		stackmap_find_kept(current, event[j], found);
		assert(found == (shared[event[j]] == shared[current] -> event[j] : 0))
	}
	found = 0
}

proctype writer()
{
	byte map, page, n, found, j, k;
	bit b;

	do
	:: n < WRITES ->
		d_step {
			recording = true;
			map = current;		/* stackmap_active() */
			b = buffer[0]; n++
		}
		d_step {			/* __trace_buffer_lock_reserve() */
			page = next[PAGE(b, tail[b])];
			head[b] = (page == head[b] && tail[b] != reader[b] -> next[PAGE(b, page)] : head[b]);
			tail[b] = page;
			event[PAGE(b, page)] = 0
		}
		d_step {
			assert(!freed[map] && !retired[map]);
			event[PAGE(b, page)] = map;
			check_events(found);
			recording = false;
			map = 0; page = 0; b = 0
		}
	:: else -> break
	od
}

/* Readers, the walk and a resize have the reader_lock. */
proctype consumer()
{
	byte page, i;
	bit b;

end:	do
	:: event[PAGE(b, reader[b])] != 0 -> event[PAGE(b, reader[b])] = 0
	:: d_step {			/* rb_get_reader_page() */
			event[PAGE(b, reader[b])] == 0 && tail[b] != reader[b] && event[PAGE(b, head[b])] != 0;
			page = head[b];
			head[b] = next[PAGE(b, page)];
			head_page[b] = head[b];
			for (i : 0 .. NR_PAGES) {
				pages[b] = (next[PAGE(b, i)] == page && i != reader[b] &&
					    !page_freed[PAGE(b, i)] -> i : pages[b])
			}
			next[PAGE(b, reader[b])] = head[b];
			next[PAGE(b, pages[b])] = reader[b];
			reader[b] = page; page = 0
		}
	:: NR_BUFFERS == 2 -> b = 1 - b
	od
}

proctype iterator()
{
	byte map, found, i, k;

end:	do
	:: atomic {			/* rb_iter_head_event() */
			select(i : 0 .. COPY - 1);
			event[COPY] = event[i];
			copy_of = i / NR_ALL;
			head_page[copy_of] = head[copy_of];
			i = 0
		}
		advanced = true;	/* rb_advance_iter(), then print it */
		d_step {
			printing = true;
			map = current; found = map
		}
		do			/* stackmap_of() */
		:: d_step {
				found != 0 && gen[found] != gen[event[COPY]];
				assert(!freed[found]);
				found = prev[found]
			}
		:: found == 0 || gen[found] == gen[event[COPY]] -> break
		od;
		assert(!freed[found]);
		if
		:: !retired[found] -> assert(!uncached[found])	/* stackmap_ref() of the files */
		:: retired[found]
		fi;
		d_step {
			stackmap_find_kept(map, event[COPY], found);
			assert(found == event[COPY] ||
			       (found == 0 && shared[event[COPY]] != shared[current]));
			printing = false; advanced = false;
			event[COPY] = 0; copy_of = 0;
			map = 0; found = 0
		}
	od
}

/* update_max_tr(), or that of a CPU */
proctype snapshot()
{
	buffer[0] = 1; buffer[1] = 0
}

/* rb_remove_pages() */
proctype resize()
{
	byte page, i;

	d_step {
		i = (tail[0] == reader[0] -> next[tail[0]] : tail[0]);
		page = next[i];
		next[i] = next[page];
		pages[0] = next[page];
		nr_pages[0]--; resized[0] = true;
		head_page[0] = (head[0] == page -> next[page] : head_page[0]);
		head[0] = (head[0] == page -> next[page] : head[0]);
		event[page] = 0; page_freed[page] = true
	}
}

/* Keep the stack of an event that the walk has found. */
inline stackmap_use(e)
{
	walk_gens = walk_gens | BIT(gen[e]);
	stackmap_of(current, e, found);
	stackmap_find_kept(current, e, found);
	left = (found == current && BREAK == FIRST_CURRENT -> 0 : left);
	used = used | (found == 0 || found == current || ((kept & BIT(found)) && BREAK == KEPT_UNUSED) ->
		       0 : BIT(found));
	kept = kept | used;
	found = 0
}

/* Leaves left at 0 after the last step: one for each position, the reader page, the copies. */
inline ring_buffer_walk_next()
{
	d_step {
		b = (BREAK == FOLLOW -> buffer[nr] : walked[nr]);
		if
		:: left == 0 || (was_resized != resized[b] && BREAK != NO_RESTART) ->
			was_resized = resized[b]; page = pages[b];
			left = nr_pages[b] + 2;
			e = (BREAK == READER_FIRST -> event[PAGE(b, reader[b])] :
			     (BREAK == COPIES_FIRST && copy_of == b -> event[COPY] : 0))
		:: else ->
			if
			:: left > 2 && page == reader[b] -> page = (BREAK == STAY -> page : head_page[b])
			:: left > 2 && page != reader[b] ->
				assert(!page_freed[PAGE(b, page)]);
				e = event[PAGE(b, page)];
				page = next[PAGE(b, page)]
			:: left == 2 -> e = (page == reader[b] && BREAK != READER_FIRST -> event[PAGE(b, page)] : 0)
			:: left == 1 -> e = (copy_of == b && BREAK != NO_COPIES && BREAK != COPIES_FIRST &&
					     !(advanced && BREAK == UNTIL_ADVANCED) -> event[COPY] : 0)
			fi;
			left--; page = (left == 2 -> reader[b] : page)
		fi;
		stackmap_use(e);
		nr = (left == 0 -> (BREAK == ONE_BUFFER -> NR_BUFFERS : nr + 1) : nr);
		e = 0; b = 0
	}
}

/* Leaves nr at NR_BUFFERS, unless a reset waits for the work. */
inline stackmap_mark()
{
	do
	:: walked[0] = buffer[0];
		walked[1] = buffer[1];
		if
		:: NR_BUFFERS == 2 && walked[0] == walked[1] && BREAK != SAME_BUFFER
		:: else -> break
		fi
	od;
	do
	:: nr < NR_BUFFERS && !stop -> ring_buffer_walk_next()
	:: else -> break
	od;
	left = 0;
	d_step {			/* stackmap_set_gens() */
		for (k : 1 .. NR_MAPS) {
			stackmap_of(current, k, found);
			walk_gens = walk_gens | (found == k && BREAK != MAP_GENS -> BIT(gen[k]) : 0) |
				    ((kept & BIT(k)) && BREAK != KEPT_GENS -> BIT(gen[k]) : 0)
		}
		gens = (nr == NR_BUFFERS -> walk_gens : gens);
		walked[0] = 0; walked[1] = 0; was_resized = false;
		walk_gens = 0; found = 0
	}
}

/* Leaves g at the generation of the next map, or at NONE. */
inline stackmap_unused_gen()
{
	d_step {
		g = NONE;
		for (k : 1 .. NR_GENS) {
			g = (g == NONE && (!(gens & BIT((gen[current] + k) % NR_GENS)) || BREAK == ANY_GENERATION) ->
			     (gen[current] + k) % NR_GENS : g)
		}
		k = 0
	}
}

/* Publish a map that leads to the one before, or to none. */
inline stackmap_publish(before)
{
	d_step {
		last++;
		gen[last] = g; gens = gens | BIT(g);
		prev[last] = before;
		shared[last] = (before == 0 -> last : shared[before]);
		stackmap_find_kept(last, last, found);
		assert(found == 0);
		current = last;
		check_events(found)
	}
}

/* Free a map and those before it. */
inline stackmap_free(map)
{
	d_step {
		found = map;
		do
		:: found != 0 ->
			freed[found] = true;
			found = prev[found]
		:: else -> break
		od;
		found = 0
	}
}

proctype work()
{
	byte map, old, page, left, n, nr, g, e, found, j, k;
	int walk_gens;
	bool grow, was_resized;
	bit b, walked[2];

end:	do
	:: d_step {
			n < REPLACEMENTS && !stop;
			working = true; map = current
		}
		if
		:: grow = true
		:: stackmap_mark()
		fi;
		stackmap_unused_gen();
		if
		:: g != NONE && (grow || nr == NR_BUFFERS) ->	/* stackmap_replace() */
			if
			:: !grow ->		/* stackmap_forget() */
				old = prev[map];
				prev[map] = (BREAK == LATE_CUT -> old : 0);
				d_step {
					kept = kept & used;
					check_events(found)
				}
			:: else
			fi;
			stackmap_publish(map);
			retired[map] = (BREAK == EARLY_RETIRE);
			stackmap_free(old * (BREAK == EARLY_FREE));
			if
			:: BREAK != EARLY_WALK ->
				synchronize_rcu();
				retired[map] = true;		/* stackmap_retire() */
				if
				:: BREAK != CACHE_FREED -> synchronize_rcu()
				:: else
				fi;
				uncached[map] = true;
				prev[map] = (BREAK == LATE_CUT && !grow -> 0 : prev[map]);
				stackmap_free(old)
			:: else
			fi;
			n++
		:: !grow ->		/* no memory, or stackmap_take_gen() */
			d_step {	/* stackmap_unmark() */
				for (k : 1 .. NR_MAPS) {
					stackmap_of(current, k, found);
					kept = (found != 0 -> kept & ~BIT(k) : kept)
				}
				check_events(found)
			}
		:: else
		fi;
		d_step {
			map = 0; old = 0; nr = 0; page = 0; g = 0; used = 0;
			grow = false; working = false
		}
	od
}

/* stackmap_reset() */
proctype reset()
{
	byte map, g, found, j, k;

	stop = true;
	!working || BREAK == RUNNING_WORK;
	synchronize_rcu();
	map = current;
	stackmap_unused_gen();
	if
	:: g != NONE ->
		stackmap_publish(0);
		synchronize_rcu();
		stackmap_free(map);
		kept = 0
	:: else				/* -EBUSY */
	fi;
	stop = false
}

/* All pages have events. One of them is from before a reset. */
init
{
	byte i;

	d_step {
		gen[0] = NR_GENS; gen[FIRST] = 1;
		gens = BIT(0) | BIT(1);
		shared[STALE] = STALE; shared[FIRST] = FIRST;
		freed[STALE] = true;
		for (i : 0 .. COPY - 1) {
			event[i] = (i == 0 -> STALE : FIRST);
			next[i] = (i % NR_ALL + 1) % NR_PAGES
		}
		buffer[1] = NR_BUFFERS - 1
	}
	atomic {
		run writer();
		run work();
#ifdef CONSUME
		run consumer();
#endif
#ifdef ITERATE
		run iterator();
#endif
#ifdef SNAPSHOT
		run snapshot();
#endif
#ifdef RESIZE
		run resize();
#endif
#ifdef RESET
		run reset();
#endif
	}
}
