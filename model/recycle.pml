/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The replacement of stack maps, for Spin: the work of kernel/trace/trace_stackmap_replace.c and
 * trace_stackmap_gens.c, a reset, and ring_buffer_position(), while stacks are recorded and read.
 * model/stackmap.pml has what happens within one map. The inlines have the names of the C functions
 * that they model. Each step is one access to shared memory, or what a lock makes one.
 *
 * Each CPU records the ids of stacks. A work replaces the map, and forgets the stacks that no event
 * refers to. Spin checks in every interleaving:
 *   - the id of an event in a buffer leads to the stack that was recorded with it, or after a reset
 *     of the map to none, but never to another one;
 *   - nobody touches a map, an old generation or a set that has been freed;
 *   - a CPU pins a generation only if its buffers hold an event of that time, or one on the same page.
 *
 * A map has one stack. An event is the number of its map, and its id is the map's generation. The
 * place of an event in event[] is its true number: the ring has those from head on, the reader page
 * those from reader on. The counters are those of the C code. The model leaves out weak memory,
 * counters that wrap, and the copy of an event that a reader of trace may print later.
 *
 * Configuration:
 *   REPLACEMENTS=n    how often the map is replaced
 *   NR_GENS=n         generations; then they wrap
 *   CPUS=n, WRITES=n  CPUs, and stacks that each of them records
 *   PAGE_EVENTS=n     events of a page
 *   BUFFERS=2         there is another buffer, and a snapshot swaps them, or those of a CPU
 *   WITH=...+...      what else happens, see below
 *   BREAK=...         breaks the protocol by one of these; Spin must find each
 */
#define EARLY_END	1	/* the end is read before the grace period */
#define LATE_BEGIN	2	/* the begin is read after the map is published */
#define NO_READER_PAGE	3	/* the reader page is not looked at */
#define ONE_NUMBER	4	/* it has no range of its own: the ring begins with it */
#define ONE_BUFFER	5	/* the snapshot's buffer is not looked at */
#define SAME_RING	6	/* a buffer may be read twice, as its place is swapped */
#define SAME_EPOCH	7	/* it is told by its epoch, which a reset changes */
#define OLD_EPOCH	8	/* a reset of a buffer keeps its epoch */
#define OLD_BEGIN	9	/* it keeps the begin */
#define BY_PLACE	10	/* the begin is that of the buffer that was in this place */
#define LATE_COUNT	11	/* removed events are counted after the reader_lock, as in mainline */
#define NO_GRACE	12	/* a set is freed without a grace period */
#define NO_REF		13	/* a reader of the files has no reference to its set */
#define MAP_FIRST	14	/* the map is published before its set */
#define NEXT_GEN	15	/* the next generation is used, even if it is pinned */
#define NO_STALE	16	/* generations that a reset has ended are not kept */
#define NO_NOTE		17	/* a CPU does not note that it uses a stack */

#define IRQ		1	/* an interrupt hits the first CPU and records a stack */
#define CONSUMER	2	/* a reader prints and consumes events */
#define FILE		4	/* a reader of the files has a set open */
#define RESET		8	/* the map is reset */
#define BUFFER_RESET	16	/* a buffer is reset */
#define RESIZE		32	/* a page of a buffer is removed */
#ifndef BREAK
#define BREAK		0
#endif
#ifndef WITH
#define WITH		0
#endif
#ifndef REPLACEMENTS
#define REPLACEMENTS	2
#endif
#ifndef NR_GENS
#define NR_GENS		3
#endif
#ifndef CPUS
#define CPUS		1
#endif
#ifndef WRITES
#define WRITES		2
#endif
#ifndef PAGE_EVENTS
#define PAGE_EVENTS	1
#endif
#ifndef BUFFERS
#define BUFFERS		1
#endif
#define NR_PAGES	2	/* of the ring */
#define FIRST		1	/* the first map; number 0 is none */
#define NR_MAPS		(FIRST + REPLACEMENTS + 2)
#define NR_SETS		(4 + 3 * REPLACEMENTS)
#define NR_RINGS	(CPUS * BUFFERS)
#define NR_EVENTS	((NR_PAGES + 1) * PAGE_EVENTS + WRITES + 1)
#define NONE		255
#define BIT(n)		(1 << (n))
#define MIN(a, b)	((a) < (b) -> (a) : (b))
#define when(cond, steps) if :: cond -> steps :: else fi

/* Generations: that of map number m is m. Packed, or without its stack, it is another one. */
#define PACKED(m)	(NR_MAPS + (m))
#define STALE(m)	(2 * NR_MAPS + (m))
#define LAST_GEN	(3 * NR_MAPS - 1)
#define MAP(g)		((g) % NR_MAPS)

byte current = FIRST;		/* inst->map */
byte set;			/* inst->set */
byte since = FIRST;		/* the first map since a reset */
byte id[NR_MAPS];		/* of the stack of a map */
byte cpus[NR_MAPS];		/* that have used it */
byte gen_users[LAST_GEN + 1];	/* 0: it is freed */
byte set_users[NR_SETS];
int gens[NR_SETS];		/* of a set */

typedef mark { byte epoch, begin, end };
#define MARK(m, i)	marks[((m) * CPUS + cpu) * BUFFERS + (i)]
mark marks[NR_MAPS * NR_RINGS];

typedef ring_buffer {
	byte event[NR_EVENTS];
	byte reserved, committed;	/* numbers of events */
	byte head;			/* the first one in the ring */
	byte reader, reader_end;	/* the next one on the reader page, and where that ends */
	byte pages, epoch, entries, overrun, last_overrun, read;
	bool locked, disabled
};
ring_buffer rings[NR_RINGS];
bit at[2];			/* the instance's buffer, the snapshot's */
byte committing[CPUS];
byte epochs = NR_RINGS;
#define RB		rings[r]
#define UNREAD		(MIN(RB.reader_end, RB.committed) - RB.reader)
#define FULL		(RB.reserved == RB.head + RB.pages * PAGE_EVENTS)

/* Sections that a grace period waits for: those of the CPUs, of the interrupt, and of the printer. */
#define IRQ_SECTION	CPUS
#define PRINT_SECTION	(CPUS + 1)
byte sections;
byte waits[2];			/* those that a grace period still waits for */

inline leave(section)
{
	sections = sections & ~BIT(section);
	waits[0] = waits[0] & ~BIT(section); waits[1] = waits[1] & ~BIT(section)
}

inline synchronize_rcu(n) { waits[n] = sections; waits[n] == 0 }

/* Leaves found at the map to whose stack the id of a map's events leads, or at 0. */
inline stackmap_lookup(s, map, found)
{
	assert(set_users[s] != 0);
	for (j : 1 .. LAST_GEN) { when((gens[s] & BIT(j)) && id[MAP(j)] == id[map], found = j) }
	assert(found == 0 || gen_users[found] != 0);
	found = (found < STALE(0) -> MAP(found) : 0);
	assert(found == map || (found == 0 && map < since));
	found = 0; j = 0
}

/* Comes last in the steps that bring an event or change the set. */
inline check_events()
{
	for (k : 0 .. NR_RINGS * NR_EVENTS - 1) {
		e = rings[k / NR_EVENTS].event[k % NR_EVENTS];
		when(e != 0, stackmap_lookup(set, e, found))
	}
	k = 0; e = 0
}

inline lose_page(counted)
{
	for (k : 0 .. PAGE_EVENTS - 1) { RB.event[RB.head + k] = 0 }
	RB.head = RB.head + PAGE_EVENTS; RB.overrun = RB.overrun + counted; k = 0
}

/* The CPU stands still while an interrupt runs. */
#define turn()		(section != 0 || !(sections & BIT(IRQ_SECTION)))

proctype writer(byte cpu; byte section; byte writes)
{
	byte map, r, n, e, found, j, k;

	do
	:: writes > 0 ->
		d_step {			/* stackmap_active() */
			turn();
			sections = sections | BIT(section);
			map = current; r = cpu * BUFFERS + at[0]; n = NONE; writes--
		}
		d_step {			/* __trace_buffer_lock_reserve() */
			turn();
			when(map != 0 && !RB.disabled,
			     n = RB.reserved; committing[cpu]++;
			     when(n % PAGE_EVENTS == 0 && FULL, lose_page(PAGE_EVENTS));
			     RB.reserved++)
		}
		d_step {			/* stackmap_store(), __buffer_unlock_commit() */
			turn();
			when(n != NONE,
			     assert(gen_users[map] != 0);
			     when(BREAK != NO_NOTE || cpu == 0, cpus[map] = cpus[map] | BIT(cpu));
			     RB.event[n] = map; RB.entries++; committing[cpu]--;
			     when(committing[cpu] == 0, RB.committed = RB.reserved);
			     check_events());
			leave(section);
			map = 0; r = 0; n = 0
		}
	:: else -> break
	od
}

/* trace_pipe */
proctype consumer()
{
	byte r, e, s, found, j;

end:	do
	:: d_step {			/* __rb_get_reader_page() */
			!RB.locked && RB.reader == RB.reader_end && RB.head < RB.committed;
			RB.last_overrun = RB.overrun;
			RB.reader = RB.head; RB.head = RB.head + PAGE_EVENTS; RB.reader_end = RB.head
		}
	:: d_step {			/* stackmap_resolve() */
			!RB.locked && UNREAD != 0;
			e = RB.event[RB.reader]; sections = sections | BIT(PRINT_SECTION); s = set
		}
		d_step { stackmap_lookup(s, e, found); leave(PRINT_SECTION); e = 0; s = 0 }
		d_step {		/* rb_advance_reader(), unless the buffer was reset */
			!RB.locked;
			when(UNREAD != 0, RB.event[RB.reader] = 0; RB.reader++; RB.read++)
		}
	:: NR_RINGS > 1 -> r = (r + 1) % NR_RINGS
	od
}

inline stackmap_put(s)
{
	set_users[s]--;
	for (j : 1 .. LAST_GEN) { when(set_users[s] == 0 && (gens[s] & BIT(j)), gen_users[j]--) }
	gens[s] = (set_users[s] == 0 -> 0 : gens[s]); j = 0
}

/* stack_map_bin */
proctype file()
{
	byte s, j;

	d_step { s = set; set_users[s] = set_users[s] + (BREAK != NO_REF) }	/* stackmap_take_gens() */
	d_step {			/* stackmap_next() */
		assert(set_users[s] != 0);
		for (j : 1 .. LAST_GEN) { assert(!(gens[s] & BIT(j)) || gen_users[j] != 0) }
	}
	d_step { when(BREAK != NO_REF, stackmap_put(s)) }
}

/* update_max_tr(), or that of a CPU */
proctype snapshot() { at[0] = 1; at[1] = 0 }

proctype reset_buffer()
{
	byte r, k;

	atomic { if :: r = at[0] :: r = at[1] fi; RB.disabled = true }
	synchronize_rcu(1);
	d_step {			/* rb_reset_cpu() */
		!RB.locked;
		for (k : 0 .. NR_EVENTS - 1) { RB.event[k] = 0 }
		epochs++; RB.epoch = (BREAK == OLD_EPOCH -> RB.epoch : epochs);
		RB.reserved = 0; RB.committed = 0; RB.head = 0; RB.reader = 0; RB.reader_end = 0;
		RB.entries = 0; RB.overrun = 0; RB.last_overrun = 0; RB.read = 0;
		RB.disabled = false
	}
}

/* rb_remove_pages(), of a full buffer; it counts what it removes under the reader_lock */
proctype resize()
{
	byte r, k;

end:	d_step {
		!RB.locked && committing[0] == 0 && FULL;
		lose_page((BREAK == LATE_COUNT -> 0 : PAGE_EVENTS));
		RB.pages--
	}
	RB.overrun = RB.overrun + (BREAK == LATE_COUNT -> PAGE_EVENTS : 0)
}

typedef position {
	byte ring, epoch, written, oldest, page, page_end;
	byte first		/* where oldest has to be: it counts what is left on the reader page */
};

/* Marks need only what was written. */
inline ring_buffer_position(i, all)
{
	d_step {
		!rings[cpu * BUFFERS + at[i]].locked;
		r = cpu * BUFFERS + at[i];
		RB.locked = all;
		pos[i].ring = r; pos[i].epoch = RB.epoch; pos[i].written = RB.entries
	}
	when(all,
	     d_step {
		pos[i].first = MIN(RB.head, RB.committed) - UNREAD;
		pos[i].oldest = RB.overrun + RB.read
	     }
	     d_step {
		pos[i].page = RB.last_overrun + RB.read;
		pos[i].page_end = pos[i].page + (UNREAD == 0 -> 0 :
			MIN(RB.reader_end, RB.reserved) - RB.reader_end + PAGE_EVENTS);
		when(BREAK == ONE_NUMBER && UNREAD != 0, pos[i].oldest = pos[i].page);
		RB.locked = false
	     })
}

inline stackmap_get_position(all)
{
	do
	:: ring_buffer_position(0, all);
		when(BUFFERS == 2 && BREAK != ONE_BUFFER, ring_buffer_position(1, all));
		when(BUFFERS == 1 || BREAK == SAME_RING || (BREAK == SAME_EPOCH ->
		     pos[0].epoch != pos[1].epoch : pos[0].ring != pos[1].ring), break)
	od;
	r = 0
}

inline forget_positions()
{
	for (k : 0 .. 1) {
		pos[k].ring = 0; pos[k].epoch = 0; pos[k].written = 0; pos[k].oldest = 0;
		pos[k].page = 0; pos[k].page_end = 0; pos[k].first = 0
	}
	j = 0; k = 0
}

/* Sets the marks of a map that begins, or has ended. */
inline stackmap_set_range(m, ended)
{
	for (cpu : 0 .. CPUS - 1) {
		stackmap_get_position(false);
		d_step {
			for (k : 0 .. BUFFERS - 1) {	/* stackmap_begun() */
				begun[k] = (BREAK == OLD_BEGIN || BREAK == BY_PLACE -> MARK(m, k).begin : 0);
				for (j : 0 .. BUFFERS - 1) { when(MARK(m, j).epoch == pos[k].epoch &&
					BREAK != BY_PLACE, begun[k] = MARK(m, j).begin) }
			}
			for (k : 0 .. BUFFERS - 1) {
				MARK(m, k).epoch = pos[k].epoch;
				MARK(m, k).begin = (ended -> begun[k] : pos[k].written);
				MARK(m, k).end = (ended -> pos[k].written : 0); begun[k] = 0
			}
			forget_positions()
		}
	}
	cpu = 0
}
#define stackmap_begin(m)	stackmap_set_range(m, false)
#define stackmap_end(m)		stackmap_set_range(m, true)

#define in_ring(p, m)	(p.oldest < p.written && p.oldest < m.end)
#define on_page(p, m)	(p.page < m.end && m.begin < p.page_end)
#define holds(p, m)	(p.epoch != 0 && p.epoch == m.epoch && m.begin != m.end && \
			 (in_ring(p, m) || (on_page(p, m) && BREAK != NO_READER_PAGE)))

/* Adds to pins a bit for each map that a CPU pins. */
inline stackmap_in_use()
{
	d_step {
		for (j : 0 .. NR_MAPS * BUFFERS * BUFFERS - 1) {
			m = j / BUFFERS / BUFFERS; k = j % BUFFERS;
			n = (m * CPUS + cpu) * BUFFERS + j / BUFFERS % BUFFERS;
			when(m != current && holds(pos[k], marks[n]),
			     assert(pos[k].first < marks[n].end || on_page(pos[k], marks[n]) ||
				    BREAK == LATE_COUNT);
			     pins = pins | BIT(m * CPUS + cpu))
		}
		m = 0; n = 0;
		forget_positions()
	}
}
#define PINS(m)		(pins >> (m) * CPUS & BIT(CPUS) - 1)

/* Publishes the new set, then a map. */
inline stackmap_publish(map)
{
	when(BREAK == MAP_FIRST, current = map);
	d_step { old = set; set = new_set; check_events() }
	current = map;
	when(BREAK != NO_GRACE, synchronize_rcu(0));
	d_step { stackmap_put(old); old = 0 }
}

inline stackmap_add_gen(g) { gens[new_set] = gens[new_set] | BIT(g); gen_users[g]++ }

inline stackmap_free_unused()
{
	for (cpu : 0 .. CPUS - 1) { stackmap_get_position(true); stackmap_in_use() }
	cpu = 0;
	d_step {
		new_set++; set_users[new_set] = 1;
		for (j : 1 .. LAST_GEN) {
			m = MAP(j);
			when(gens[set] & BIT(j),
			     when(j == current, stackmap_add_gen(j));
			     when(j != current && j < STALE(0) && (cpus[m] & PINS(m)),
				  stackmap_add_gen(PACKED(m)));
			     when(j > STALE(0) && PINS(m) && BREAK != NO_STALE, stackmap_add_gen(j)))
		}
		j = 0; m = 0; pins = 0
	}
	stackmap_publish(current)
}

/* Leaves gen at the generation of the next map, or at NONE. */
inline stackmap_unused_id()
{
	d_step {
		gen = NONE;
		for (k : 0 .. NR_GENS - 1) {
			n = (next_gen + k) % NR_GENS;
			for (j : 1 .. LAST_GEN) { when((gens[set] & BIT(j)) && id[MAP(j)] == n, n = NONE) }
			when(gen == NONE, gen = (BREAK == NEXT_GEN -> (next_gen + k) % NR_GENS : n))
		}
		j = 0; k = 0; n = 0
	}
}

/* Leaves new at a new map, or at 0. */
inline stackmap_create()
{
	stackmap_unused_id();
	when(gen == NONE, stackmap_free_unused(); stackmap_unused_id());
	d_step {
		when(gen != NONE, last++; id[last] = gen; next_gen = (gen + 1) % NR_GENS);
		new = (gen != NONE -> last : 0); map = current; gen = 0
	}
}

inline stackmap_replace()
{
	when(BREAK != LATE_BEGIN, stackmap_begin(new));
	d_step {			/* stackmap_gens_with() */
		new_set++; set_users[new_set] = 1;
		for (j : 1 .. LAST_GEN) { when(j == new || (gens[set] & BIT(j)), stackmap_add_gen(j)) }
		j = 0
	}
	when(BREAK == EARLY_END, stackmap_end(map));
	stackmap_publish(new);
	when(BREAK == LATE_BEGIN, stackmap_begin(new));
	when(BREAK != EARLY_END, stackmap_end(map));
	stackmap_free_unused()
}

inline stackmap_reset()
{
	d_step {			/* stackmap_gens_stale() */
		new_set++; set_users[new_set] = 1;
		for (j : 1 .. LAST_GEN) { when(gens[set] & BIT(j), stackmap_add_gen(STALE(MAP(j)))) }
		stackmap_add_gen(new);
		since = new; j = 0
	}
	stackmap_publish(0);
	stackmap_end(map);
	stackmap_begin(new);
	current = new;
	stackmap_free_unused()
}

/* All that is done under inst->lock: by the work, and by a reset. */
proctype work()
{
	byte map, new, old, new_set, last = FIRST, gen, next_gen = 1, e, found, j, k, m, n, r, cpu;
	byte replacements = REPLACEMENTS, begun[2];
	bool reset = ((WITH) & RESET) != 0;
	position pos[2];
	int pins;

	do
	:: replacements > 0 -> replacements--; stackmap_create(); when(new != 0, stackmap_replace())
	:: reset -> reset = false; stackmap_create(); when(new != 0, stackmap_reset())
	:: else -> break
	od
}

/* All pages have events of the first map. */
init
{
	byte r, k;

	d_step {
		gen_users[FIRST] = 1; set_users[0] = 1; gens[0] = BIT(FIRST); cpus[FIRST] = BIT(CPUS) - 1;
		for (r : 0 .. NR_RINGS - 1) {
			RB.epoch = r + 1; marks[FIRST * NR_RINGS + r].epoch = r + 1;
			RB.pages = NR_PAGES; RB.entries = NR_PAGES * PAGE_EVENTS;
			RB.reserved = RB.entries; RB.committed = RB.entries;
			for (k : 0 .. NR_PAGES * PAGE_EVENTS - 1) { RB.event[k] = FIRST }
		}
		at[1] = BUFFERS - 1; r = 0; k = 0
	}
	atomic {
		run work();
		for (k : 0 .. CPUS - 1) { run writer(k, k, WRITES) }
		when((WITH) & IRQ, run writer(0, IRQ_SECTION, 1));
		when((WITH) & CONSUMER, run consumer());
		when((WITH) & FILE, run file());
		when((WITH) & BUFFER_RESET, run reset_buffer());
		when((WITH) & RESIZE, run resize());
		when(BUFFERS == 2, run snapshot())
	}
}
