/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The protocol of the stack map, for Spin. Each step below is one access to shared memory, in
 * the order of kernel/trace/trace_stackmap.c; the names are those of the C functions.
 *
 * Two CPUs record stacks, an NMI does so in between on the first one, a reset replaces the map,
 * and a reader exports it. All stacks hash to the same slot, which is the worst case. Checked for
 * every interleaving:
 *   - a slot leads to a whole record, the one that the stack of the id stands for (no torn record);
 *   - a stack has one id in a generation;
 *   - nobody touches a map that has been freed;
 *   - references == successes, and successes + drops == calls, when all is over;
 *   - what stackmap_latch() saw is what the reader finds later;
 *   - an id from before a reset finds nothing.
 *
 * Spin knows no weak memory. The order of the record against its slot is that of the release and of
 * the address dependency in the C code; without them PUBLISH_FIRST is what other CPUs may see.
 *
 * What may be configured: CALLS (of each CPU), NR_ENTRIES, RESET and READ (0 or 1). What breaks the
 * protocol on purpose, each found by scripts/test-model:
 *   PUBLISH_FIRST     the slot is written before the frames
 *   LOSER_MOVES_ON    who loses the race for a slot goes on to the next one
 *   NO_GRACE          the old map is freed without synchronize_rcu()
 *   LOSSY_REF         the reference cache is read and written, without a cmpxchg
 *   FORGET_EVICTED    what is evicted from the cache is not added to its record
 *   KEEP_PLACE        a failed insert keeps its place among the entries
 *   NO_LATCH_WAIT     stackmap_latch() without synchronize_rcu()
 *   ANY_GENERATION    the generation of an id is not looked at
 */
#ifndef CALLS
#define CALLS		1
#endif
#ifndef NR_ENTRIES
#define NR_ENTRIES	2
#endif
#ifndef RESET
#define RESET		1
#endif
#ifndef READ
#define READ		1
#endif

#define NR_MAPS		2	/* generation 0, and generation 1 after the reset */
#define NR_STACKS	2	/* stacks are numbered from 1 */
#define NR_SLOTS	4
#define NR_RECORDS	5
#define NONE		255

/* Whoever runs; CPU 0 stands still while the NMI does. */
#define CPU0		0
#define CPU1		1
#define NMI		2
#define READER		3

byte slots[NR_MAPS * NR_SLOTS];
byte rec_low[NR_MAPS * NR_RECORDS];	/* the frames, in two halves that are written apart */
byte rec_high[NR_MAPS * NR_RECORDS];
byte rec_ref[NR_MAPS * NR_RECORDS];
byte entries[NR_MAPS];
byte tail[NR_MAPS] = 1;		/* record 0 is not used: a slot in use is never 0 */
/* Of each CPU, a cache of one word: slot index + 1, and a count. */
byte word_slot[NR_MAPS * 2];
byte word_count[NR_MAPS * 2];
byte successes[NR_MAPS];
byte drops[NR_MAPS];
byte calls[NR_MAPS];
bool freed[NR_MAPS];

byte current;			/* tr->stackmap */
bool watching[4];		/* in a section that a grace period waits for */
bool nmi_runs;
byte done;

/* One event of the ring buffer, the last one: an id and the stack that it was made from. */
byte event_gen = NONE;
byte event_idx;
byte event_stack;

#define SLOT(m, i)	slots[(m) * NR_SLOTS + (i)]
#define LOW(m, r)	rec_low[(m) * NR_RECORDS + (r)]
#define HIGH(m, r)	rec_high[(m) * NR_RECORDS + (r)]
#define REF(m, r)	rec_ref[(m) * NR_RECORDS + (r)]
#define WORD_SLOT(m, c)	word_slot[(m) * 2 + (c)]
#define WORD_COUNT(m, c) word_count[(m) * 2 + (c)]

/* First in each step on shared memory: CPU 0 stands still while its NMI runs. */
#define turn(who)	((who) != CPU0 || !nmi_runs)

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

/* Waits until everybody has been seen outside of a section. */
inline synchronize_rcu()
{
	!watching[CPU0];
	!watching[CPU1];
	!watching[NMI];
	!watching[READER]
}

inline stackmap_fill(who, m, r, stack)
{
	d_step {
		turn(who);
		LOW(m, r) = stack
	}
	d_step {
		turn(who);
		HIGH(m, r) = stack
	}
}

inline stackmap_publish(who, m, i, r, won)
{
	d_step {
		turn(who);
		assert(!freed[m]);
		won = (SLOT(m, i) == 0);
		if
		:: won -> SLOT(m, i) = r
		:: else
		fi
	}
}

inline put_place(who, m)
{
	d_step {
		turn(who);
		entries[m]--
	}
}

/* Leaves r == 0 when the map is full. */
inline stackmap_reserve(who, m, r)
{
	d_step {
		turn(who);
		entries[m]++;
		r = (entries[m] > NR_ENTRIES -> 0 : 1)
	}
	if
	:: r == 0 -> put_place(who, m)
	:: else ->
		d_step {
			turn(who);
			r = tail[m];
			tail[m]++;
			assert(r < NR_RECORDS)
		}
	fi
}

/* The slot index in idx, or NONE. */
inline stackmap_find_slot(who, m, stack, idx, new, slot, won)
{
	do
	:: idx == NR_SLOTS ->
		idx = NONE;
		break
	:: else ->
		d_step {
			turn(who);
			assert(!freed[m]);
			slot = SLOT(m, idx)
		}
		if
		:: slot != 0 ->
			d_step {
				turn(who);
				assert(LOW(m, slot) != 0 && LOW(m, slot) == HIGH(m, slot));
				won = (LOW(m, slot) == stack)
			}
			if
			:: won -> break
			:: else -> idx++
			fi
		:: else ->
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
			stackmap_publish(who, m, idx, new, won);
#ifdef PUBLISH_FIRST
			stackmap_fill(who, m, new, stack);
#endif
			if
			:: won ->
				new = 0;
				break
			:: else ->
#ifdef LOSER_MOVES_ON
				idx++
#else
				skip	/* look at the same slot again */
#endif
			fi
		fi
	od;
#ifndef KEEP_PLACE
	if
	:: new != 0 -> put_place(who, m)
	:: else
	fi
#endif
}

inline add_ref(who, m, i, n)
{
	d_step {
		turn(who);
		assert(!freed[m] && SLOT(m, i) != 0);
		REF(m, SLOT(m, i)) = REF(m, SLOT(m, i)) + n
	}
}

inline stackmap_count_ref(who, m, cpu, idx, old_slot, old_count, won)
{
	d_step {
		turn(who);
		old_slot = WORD_SLOT(m, cpu);
		old_count = WORD_COUNT(m, cpu)
	}
	d_step {
		turn(who);
#ifdef LOSSY_REF
		won = true;
#else
		won = (WORD_SLOT(m, cpu) == old_slot && WORD_COUNT(m, cpu) == old_count);
#endif
		if
		:: won && old_slot == idx + 1 ->
			WORD_COUNT(m, cpu) = old_count + 1;
			old_count = 0
		:: won && old_slot != idx + 1 ->
			WORD_SLOT(m, cpu) = idx + 1;
			WORD_COUNT(m, cpu) = 1
		:: else
		fi
	}
	/* The C code tries a few times, then counts in the record. */
	if
	:: !won -> add_ref(who, m, idx, 1)
	:: won && old_count != 0 ->
#ifdef FORGET_EVICTED
		skip
#else
		add_ref(who, m, old_slot - 1, old_count)
#endif
	:: else
	fi
}

/* ftrace_stackmap_get_id() in a section with preemption off, and the event. */
inline record(who, cpu, stack)
{
	d_step {
		turn(who);
		watching[who] = true
	}
	d_step {
		turn(who);
		m = current;
		calls[m]++
	}
	stackmap_find_slot(who, m, stack, idx, new, slot, won);
	if
	:: idx == NONE ->
		d_step {
			turn(who);
			drops[m]++
		}
	:: else ->
		d_step {
			turn(who);
			assert(LOW(m, SLOT(m, idx)) == stack)
		}
		stackmap_count_ref(who, m, cpu, idx, slot, count, won);
		d_step {
			turn(who);
			successes[m]++;
#if READ
			event_gen = m;
			event_idx = idx;
			event_stack = stack
#endif
		}
	fi;
	d_step {
		turn(who);
		watching[who] = false
	}
	d_step {
		m = 0;
		idx = 0;
		new = 0;
		won = false;
		slot = 0;
		count = 0
	}
}

inline some_stack(stack)
{
	if
	:: stack = 1
	:: stack = 2
	fi
}

/* The stacks are alike: the first one that CPU 0 records is called 1. */
active proctype cpu0()
{
	byte m, idx, new, slot, count, n;
	byte stack = 1;
	bool won;

	do
	:: n < CALLS ->
		record(CPU0, 0, stack);
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
	bool won;

	do
	:: n < CALLS ->
		some_stack(stack);
		record(CPU1, 1, stack);
		n++
	:: else -> break
	od;
	stack = 0;
	done++
}

active proctype nmi()
{
	byte m, idx, new, slot, count, stack;
	bool won;

	some_stack(stack);
	nmi_runs = true;
	record(NMI, 0, stack);
	d_step {
		nmi_runs = false;
		stack = 0
	}
	done++
}

/* What must hold for a map that nobody inserts into any more. */
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
		assert(refs == successes[m]);
		assert(successes[m] + drops[m] == calls[m]);
		refs = 0;
		used = 0;
		i = 0;
		j = 0
	}
}

active proctype reset()
{
	byte refs, used, i, j;

#if RESET
	current = 1;
#ifndef NO_GRACE
	synchronize_rcu();
	check_map(0);
#endif
	freed[0] = true;
#endif
	done++;
	(done == 5);
#if RESET
	check_map(1)
#else
	check_map(0)
#endif
}

/* Counts the stacks below the tail in n. */
inline stackmap_count(m, n)
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

/* An export, and the look-up of the last event's id. */
active proctype reader()
{
	byte m, end, first, second, i, gen, idx, stack;

#if READ
	rcu_read_lock(READER);
	m = current;
	end = tail[m];
	rcu_read_unlock(READER);
#ifndef NO_LATCH_WAIT
	synchronize_rcu();
#endif
	rcu_read_lock(READER);
	if
	:: current == m ->
		stackmap_count(m, first)
	:: else -> end = NONE	/* -ESTALE */
	fi;
	rcu_read_unlock(READER);

	rcu_read_lock(READER);
	if
	:: end != NONE && current == m ->
		stackmap_count(m, second);
		assert(first == second)
	:: else
	fi;
	rcu_read_unlock(READER);

	rcu_read_lock(READER);
	d_step {
		gen = event_gen;
		idx = event_idx;
		stack = event_stack
	}
	m = current;
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
