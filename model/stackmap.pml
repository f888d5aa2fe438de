/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The protocol of the stack map, for Spin. The steps have the order of
 * kernel/trace/trace_stackmap*.c, and the inlines have the names of the C functions that they
 * model. Each step is one access to shared memory. Only a record is read in one step with the slot,
 * or the word of the cache, that leads to it: the record never changes again.
 *
 * Two CPUs record stacks, and an NMI records one on the first CPU. A reset replaces the map. A
 * reader exports the map, or looks an id up. All stacks hash to the same slot and to the same word
 * of the cache, which is the worst case. Spin checks in every interleaving:
 *   - a slot leads to a whole record of the stack that its id stands for;
 *   - a stack has one id in a generation;
 *   - no access to a freed map;
 *   - at the end, there are as many references as events with an id;
 *   - unless tracing is stopped, each stack gets an event, with its id or with its frames (a drop);
 *   - a reader finds the stacks that stackmap_snapshot_tail() counted;
 *   - an id from before a reset finds nothing.
 *
 * Spin does not model weak memory. In C, a release and an address dependency order the record
 * before its slot. PUBLISH_FIRST shows the order that another CPU could see without them. The model
 * leaves out the parts of a split stack. model/recycle.pml has older maps and the ring buffer.
 *
 * Configuration:
 *   CALLS=n           how many stacks each CPU records
 *   NR_ENTRIES=n      how many stacks the map may hold
 *   NR_SLOTS=n        how many slots a look-up may probe
 *   RESET             the map is reset
 *   EXPORT            a reader exports the map
 *   LOOKUP            a reader looks up the id of the last event
 *
 * Each of these breaks the protocol. scripts/test-model fails if Spin does not find it:
 *   PUBLISH_FIRST     the slot is written before the frames
 *   NO_CMPXCHG        the slot is written even if it is not empty
 *   LOSER_MOVES_ON    the loser of a race for a slot goes on to the next slot
 *   NO_GRACE          the old map is freed without synchronize_rcu()
 *   LOSSY_REF         a word of the cache is incremented without a cmpxchg
 *   NO_XCHG           a word of the cache is replaced without an xchg
 *   FORGET_EVICTED    the references that leave the cache are not added to their record
 *   KEEP_PLACE        an insert that loses to the same stack keeps its place among the entries
 *   NO_LATCH_WAIT     stackmap_snapshot_tail() does not call synchronize_rcu()
 *   ANY_GENERATION    the generation of an id is not checked
 */
#ifndef CALLS
#define CALLS		1
#endif
#ifndef NR_ENTRIES
#define NR_ENTRIES	2
#endif
#ifndef NR_SLOTS
#define NR_SLOTS	3	/* one more than the stacks take */
#endif

#define NR_MAPS		2	/* generation 0, and generation 1 after the reset */
#define NR_RECORDS	(2 * CALLS + 2)	/* one for each call, the NMI's too; number 0 is not used */
#define NONE		255

/* The contexts. CPU 0 stands still while the NMI runs. */
#define CPU0		0
#define CPU1		1
#define NMI		2
#define READER		3

byte slots[NR_MAPS * NR_SLOTS];
byte rec_low[NR_MAPS * NR_RECORDS];	/* the frames, in two halves that are written separately */
byte rec_high[NR_MAPS * NR_RECORDS];
byte rec_ref[NR_MAPS * NR_RECORDS];
byte entries[NR_MAPS];
byte tail[NR_MAPS] = 1;
/* The cache of each CPU is one word: slot index + 1, and a count. */
byte word_slot[NR_MAPS * 2];
byte word_count[NR_MAPS * 2];
byte drops[NR_MAPS];
byte id_events[NR_MAPS];
bool freed[NR_MAPS];

byte current;			/* tr->stackmap */
bool watching[4];		/* in a section that a grace period waits for */
bool nmi_runs;
byte done;


#ifdef LOOKUP
/* The last event: its id and its stack. */
byte event_gen = NONE;
byte event_idx;
byte event_stack;
#endif

#define SLOT(m, i)	slots[(m) * NR_SLOTS + (i)]
#define LOW(m, r)	rec_low[(m) * NR_RECORDS + (r)]
#define HIGH(m, r)	rec_high[(m) * NR_RECORDS + (r)]
#define REF(m, r)	rec_ref[(m) * NR_RECORDS + (r)]
#define WORD_SLOT(m, c)	word_slot[(m) * 2 + (c)]
#define WORD_COUNT(m, c) word_count[(m) * 2 + (c)]

/* The start of each step on shared memory: CPU 0 stands still while its NMI runs. */
#define turn(who)	((who) != CPU0 || !nmi_runs)
/* The same for a step on the map. */
#define in_map(who, m)	turn(who); assert(!freed[m])

inline rcu_read_lock(who)
{
	d_step {
		turn(who);
		watching[who] = true
	}
}

inline rcu_read_unlock(who)
{
	d_step {
		turn(who);
		watching[who] = false
	}
}

/* Waits until each context was outside of a section once. */
inline synchronize_rcu()
{
	!watching[CPU0];
	!watching[CPU1];
	!watching[NMI];
	!watching[READER]
}

/* Sets found, and asserts that the record is whole. */
inline stackmap_same(m, r, stack, found)
{
	assert(LOW(m, r) != 0 && LOW(m, r) == HIGH(m, r));
	found = (LOW(m, r) == stack)
}

/*
 * Probes from slot number idx. Sets idx to the slot of the stack, or else to the empty slot where
 * it belongs, or to NONE if that is too far away.
 */
inline stackmap_probe(who, m, stack, idx, found, hole)
{
	do
	:: idx == NR_SLOTS ->
		idx = NONE;
		break
	:: else ->
		d_step {
			in_map(who, m);
			hole = (SLOT(m, idx) == 0);
			if
			:: !hole ->
				stackmap_same(m, SLOT(m, idx), stack, found);
				idx = (found -> idx : idx + 1)
			:: else
			fi
		}
		if
		:: found || hole -> break
		:: else
		fi
	od;
	hole = false
}

/* Sets idx to the slot if this CPU remembers the stack, else to 0. */
inline stackmap_cache_lookup(who, m, cpu, stack, idx, found)
{
	d_step {
		in_map(who, m);
		idx = WORD_SLOT(m, cpu);
		if
		:: idx != 0 ->
			idx--;
			assert(SLOT(m, idx) != 0);
			stackmap_same(m, SLOT(m, idx), stack, found);
			idx = (found -> idx : 0)
		:: else
		fi
	}
}

/* Sets idx to NONE if the map is full. */
inline stackmap_check_room(who, m, idx)
{
	d_step {
		in_map(who, m);
		idx = (entries[m] >= NR_ENTRIES -> NONE : idx)
	}
}

/* Sets idx to NONE if the stack is not in the map and can't be stored. */
inline stackmap_find(who, m, cpu, stack, idx, found, hole)
{
	stackmap_cache_lookup(who, m, cpu, stack, idx, found);
	if
	:: !found ->
		stackmap_probe(who, m, stack, idx, found, hole);
		if
		:: !found && idx != NONE -> stackmap_check_room(who, m, idx)
		:: else
		fi
	:: else
	fi
}

inline put_place(who, m)
{
	d_step {
		in_map(who, m);
		entries[m]--
	}
}

/* Leaves new == 0 if the map is full. */
inline stackmap_reserve(who, m, new)
{
	d_step {
		in_map(who, m);
		entries[m]++;
		new = (entries[m] > NR_ENTRIES -> 0 : 1)
	}
	if
	:: new == 0 -> put_place(who, m)
	:: else ->
		d_step {
			in_map(who, m);
			new = tail[m];
			tail[m]++;
			assert(new < NR_RECORDS)
		}
	fi
}

inline stackmap_fill(who, m, new, stack)
{
	d_step {
		in_map(who, m);
		LOW(m, new) = stack
	}
	d_step {
		in_map(who, m);
		HIGH(m, new) = stack
	}
}

/* This is the cmpxchg in stackmap_insert(). */
inline publish(who, m, idx, new, won)
{
	d_step {
		in_map(who, m);
#ifdef NO_CMPXCHG
		won = true;
#else
		won = (SLOT(m, idx) == 0);
#endif
		if
		:: won -> SLOT(m, idx) = new
		:: else
		fi
	}
}

/* Sets idx to the slot of the stack, or to NONE. */
inline stackmap_insert(who, m, stack, idx, found, hole, new)
{
	idx = 0;
	do
	:: stackmap_probe(who, m, stack, idx, found, hole);
		if
		:: found || idx == NONE -> break
		:: else
		fi;
		if
		:: new == 0 ->
			stackmap_reserve(who, m, new);
			if
			:: new == 0 ->
				idx = NONE;
				break
			:: else
			fi;
#ifndef PUBLISH_FIRST
			stackmap_fill(who, m, new, stack)
#endif
		:: else
		fi;
		publish(who, m, idx, new, found);
#ifdef PUBLISH_FIRST
		stackmap_fill(who, m, new, stack);
#endif
		if
		:: found ->
			new = 0;
			break
		:: else ->
#ifdef LOSER_MOVES_ON
			idx++
#else
			idx = 0
#endif
		fi
	od;
#ifndef KEEP_PLACE
	if
	:: new != 0 -> put_place(who, m)
	:: else
	fi;
#endif
	new = 0
}

inline add_to_record(who, m, idx, n)
{
	d_step {
		in_map(who, m);
		assert(SLOT(m, idx) != 0);
		REF(m, SLOT(m, idx)) = REF(m, SLOT(m, idx)) + n
	}
}

/* Increments the count of the word by a cmpxchg, or else takes the word over by an xchg. */
inline stackmap_add_ref(who, m, cpu, idx, old_slot, old_count, counted)
{
	d_step {
		in_map(who, m);
		old_slot = WORD_SLOT(m, cpu);
		old_count = WORD_COUNT(m, cpu)
	}
	counted = false;
	if
	:: old_slot == idx + 1 ->
		d_step {
			in_map(who, m);
#ifdef LOSSY_REF
			counted = true;
#else
			counted = (WORD_SLOT(m, cpu) == old_slot && WORD_COUNT(m, cpu) == old_count);
#endif
			if
			:: counted -> WORD_COUNT(m, cpu) = old_count + 1
			:: else
			fi
		}
	:: else
	fi;
	if
	:: !counted ->
		d_step {
			in_map(who, m);
#ifndef NO_XCHG
			old_slot = WORD_SLOT(m, cpu);
			old_count = WORD_COUNT(m, cpu);
#endif
			WORD_SLOT(m, cpu) = idx + 1;
			WORD_COUNT(m, cpu) = 1
		}
#ifndef FORGET_EVICTED
		if
		:: old_count != 0 -> add_to_record(who, m, old_slot - 1, old_count)
		:: else
		fi
#endif
	:: else
	fi
}

/* Sets idx to NONE if the stack could not be stored. */
inline stackmap_store(who, m, cpu, stack, idx, found, hole, new, slot, count)
{
	if
	:: !found -> stackmap_insert(who, m, stack, idx, found, hole, new)
	:: else
	fi;
	if
	:: idx != NONE -> stackmap_add_ref(who, m, cpu, idx, slot, count, found)
	:: else
	fi
}

/* Sets ok if the buffer has room for an event. */
inline trace_buffer_lock_reserve(who, buffer, ok)
{
	ok = true
}

inline trace_buffer_unlock_commit(who, m, buffer, idx, stack)
{
	d_step {
		in_map(who, m);
		assert(LOW(m, SLOT(m, idx)) == stack);
		id_events[m]++;
#ifdef LOOKUP
		event_gen = m;
		event_idx = idx;
		event_stack = stack
#endif
	}
}

/* Sets idx to NONE if the stack must be recorded in full. */
inline stackmap_record_ids(who, m, cpu, stack, idx, found, hole, new, slot, count, buffer, ok)
{
	stackmap_find(who, m, cpu, stack, idx, found, hole);
	if
	:: idx != NONE ->
		trace_buffer_lock_reserve(who, buffer, ok);
		if
		:: ok -> stackmap_store(who, m, cpu, stack, idx, found, hole, new, slot, count)
		:: else
		fi;
		if
		:: ok && idx != NONE -> trace_buffer_unlock_commit(who, m, buffer, idx, stack)
		:: else
		fi
	:: else
	fi
}

/* A grace period waits for it, because preemption is off. */
inline trace_record_stack(who, cpu, stack)
{
	d_step {
		turn(who);
		watching[who] = true
	}
	d_step {
		turn(who);
		m = current		/* stackmap_active() */
	}
	stackmap_record_ids(who, m, cpu, stack, idx, found, hole, new, slot, count, buffer, ok);
	if
	:: idx == NONE ->
		trace_buffer_lock_reserve(who, buffer, ok);
		if
		:: ok ->
			d_step {
				in_map(who, m);
				drops[m]++	/* stackmap_count() */
			}
		:: else
		fi
	:: else
	fi;
	d_step {
		turn(who);
		watching[who] = false;
		m = 0;
		idx = 0;
		found = false;
		slot = 0;
		count = 0;
		buffer = 0;
		ok = false
	}
}

inline some_stack(stack)
{
	if
	:: stack = 1
	:: stack = 2
	fi
}

/* The two stacks are alike, so the first one that CPU 0 records is number 1. */
active proctype cpu0()
{
	byte m, idx, new, slot, count, n;
	byte stack = 1;
	bool found, hole, ok;
	bit buffer;

	do
	:: n < CALLS ->
		trace_record_stack(CPU0, 0, stack);
		n++;
		some_stack(stack)
	:: else -> break
	od;
	stack = 0;
	done++
}

active proctype cpu1()
{
	byte m, idx, new, slot, count, stack, n;
	bool found, hole, ok;
	bit buffer;

	do
	:: n < CALLS ->
		some_stack(stack);
		trace_record_stack(CPU1, 1, stack);
		n++
	:: else -> break
	od;
	stack = 0;
	done++
}

active proctype nmi()
{
	byte m, idx, new, slot, count, stack;
	bool found, hole, ok;
	bit buffer;

	some_stack(stack);
	nmi_runs = true;
	trace_record_stack(NMI, 0, stack);
	d_step {
		nmi_runs = false;
		stack = 0
	}
	done++
}

/* Checks a map after the last insert. */
inline check_map(m)
{
	d_step {
		refs = WORD_COUNT(m, 0) + WORD_COUNT(m, 1);
		used = 0;
		for (i : 0 .. NR_SLOTS - 1) {
			if
			:: SLOT(m, i) != 0 ->
				used++;
				refs = refs + REF(m, SLOT(m, i));
				for (j : 0 .. NR_SLOTS - 1) {
					assert(i == j || SLOT(m, j) == 0 ||
					       LOW(m, SLOT(m, i)) != LOW(m, SLOT(m, j)))
				}
			:: else
			fi
		}
		assert(entries[m] == used);
		assert(refs == id_events[m]);
		refs = 0;
		used = 0;
		i = 0;
		j = 0
	}
}

inline stackmap_publish()
{
	current = 1;
#ifndef NO_GRACE
	synchronize_rcu();
	check_map(0);
#endif
	freed[0] = true
}


active proctype reset()
{
	byte refs, used, i, j;

#ifdef RESET
	stackmap_publish();
#endif
	done++;
	(done == 5);
#ifdef RESET
	check_map(1);
#else
	check_map(0);
#endif
	assert(id_events[0] + id_events[1] + drops[0] + drops[1] == 2 * CALLS + 1)
}

/* Counts the stacks that a reader sees, in n. */
inline count_stacks(m, n)
{
	i = 0;
	n = 0;
	do
	:: i < NR_SLOTS ->
		d_step {
			assert(!freed[m]);
			n = n + (SLOT(m, i) != 0 && SLOT(m, i) < end -> 1 : 0);
			i++
		}
	:: else -> break
	od;
	i = 0
}

active proctype reader()
{
#ifdef EXPORT
	byte m, end, first, second, i;

	/* stackmap_snapshot_tail() */
	rcu_read_lock(READER);
	m = current;
	end = tail[m];
	rcu_read_unlock(READER);
#ifndef NO_LATCH_WAIT
	synchronize_rcu();
#endif
	rcu_read_lock(READER);
	if
	:: current == m -> count_stacks(m, first)
	:: else -> end = NONE	/* -ESTALE */
	fi;
	rcu_read_unlock(READER);

	/* stackmap_next() */
	rcu_read_lock(READER);
	if
	:: end != NONE && current == m ->
		count_stacks(m, second);
		assert(first == second)
	:: else
	fi;
	rcu_read_unlock(READER);
#endif
#ifdef LOOKUP
	byte m, gen, idx, stack;

	rcu_read_lock(READER);
	d_step {
		gen = event_gen;
		idx = event_idx;
		stack = event_stack
	}
	m = current;
	/* stackmap_lookup() */
#ifdef ANY_GENERATION
	if
	:: gen != NONE ->
#else
	if
	:: gen == m ->
#endif
		d_step {
			assert(!freed[m]);
			assert(SLOT(m, idx) != 0 && LOW(m, SLOT(m, idx)) == stack)
		}
	:: else
	fi;
	rcu_read_unlock(READER);
#endif
	done++
}
