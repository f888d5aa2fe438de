#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Damages the stack map of a persistent instance in the memory file of a guest (scripts/guest -M).

Usage: memory.py FILE ADDRESS SIZE KIND [SEED]    ADDRESS and SIZE of the reserved memory; KIND is show or one of
  bits lines slots frames swap copy kinds words header:FIELD header:rest range
header:rest are all fields of the header that are not proven, but made anew.
       memory.py fields    prints the kinds that damage one field of the header
"""
import mmap
import random
import struct
import sys

# The offsets and sizes of struct ftrace_stackmap.
FIELDS = {"first_id": (0, 4), "max_entries": (4, 4), "nr_slots": (8, 4), "offset_mask": (12, 4), "arena_units": (16, 4),
          "hash_key": (24, 16), "irqentry_start": (40, 8), "irqentry_size": (48, 8), "gen": (56, 8), "arena": (64, 8),
          "cache": (72, 8), "persistent": (80, 1), "flushed": (81, 1), "check": (84, 4), "entries": (128, 4),
          "files": (132, 4), "tail": (136, 4)}
PROVEN = ("first_id", "hash_key", "check")
SLOTS_ALIGN = 64
RECORD = struct.Struct("<QQIHBB")	# ref, proof, defined, nr, user, file


class Map:
    def __init__(self, memory, start, size):
        self.m = memory
        self.start, self.size = start, size
        for at in range(start, start + size, 64):
            first, entries, slots, mask, units = struct.unpack_from("<5I", memory, at)
            if (1 << 10 <= entries <= 1 << 18 and entries & (entries - 1) == 0 and slots == 2 * entries and
                    units == 27 * entries and mask & (mask + 1) == 0 and first & 0x7ffff == 0):
                break
        else:
            sys.exit("there is no map")
        self.at, self.nr, self.mask, self.units = at, slots, mask, units
        # The slots follow the header: the arena's end, as the first slot that leads to a record with frames tells.
        for off in range(128, 512, 64):
            self.slots = at + off
            used = [i for i in range(slots) if self.slot(i)]
            if used and all(0 < self.slot(i) & mask < units for i in used) and len(used) <= entries and \
               sum(self.ok(i) for i in used) > 0.9 * len(used):
                self.used = used
                return
        sys.exit("there are no slots")

    def slot(self, i):
        return struct.unpack_from("<I", self.m, self.slots + 4 * i)[0]

    def set_slot(self, i, value):
        struct.pack_into("<I", self.m, self.slots + 4 * i, value)

    def record(self, i):
        return self.slots + 4 * self.nr + 8 * (self.slot(i) & self.mask)

    def ok(self, i):
        _, _, _, nr, user, file = RECORD.unpack_from(self.m, self.record(i))
        return 0 < nr <= 1024 and user + file <= 1

    def nr_frames(self, i):
        return RECORD.unpack_from(self.m, self.record(i))[3]


def damage(m, kind):
    pick = lambda part: random.sample(m.used, max(1, len(m.used) // part))
    if kind == "bits":
        for i in pick(4):
            at = m.record(i) + random.randrange(8, 24 + 8 * m.nr_frames(i))
            m.m[at] ^= 1 << random.randrange(8)
    elif kind == "lines":
        for i in pick(4):
            at = (m.record(i) + random.randrange(24 + 8 * m.nr_frames(i))) & ~63
            m.m[at:at + 64] = bytes(64)
    elif kind == "slots":
        for i in pick(4):
            m.set_slot(i, random.choice([0, m.slot(i) ^ 1 << random.randrange(32), random.getrandbits(32)]))
    elif kind == "frames":
        for i in pick(4):
            at = m.record(i) + 24
            a, b = (at + 8 * random.randrange(m.nr_frames(i)) for _ in range(2))
            m.m[a:a + 8], m.m[b:b + 8] = m.m[b:b + 8], m.m[a:a + 8]
    elif kind in ("swap", "copy"):
        # Neighbours, which are often in one chain of probes, and others.
        for i in pick(4):
            j = random.choice([(i + 1) % m.nr, random.choice(m.used)])
            a, b = m.slot(i), m.slot(j)
            m.set_slot(j, a)
            if kind == "swap":
                m.set_slot(i, b)
    elif kind == "kinds":
        for i in pick(4):
            m.m[m.record(i) + 22 + random.randrange(2)] ^= random.choice([1, 1, 1, 2, 0x80, 0xff])
    elif kind == "words":
        for _ in range(2000):
            at = random.randrange(m.slots // 8, (m.slots + 4 * m.nr + 8 * m.units) // 8) * 8
            m.m[at:at + 8] = random.randbytes(8)
    elif kind == "range":
        for _ in range(20000):
            at = random.randrange(m.start // 8, (m.start + m.size) // 8) * 8
            m.m[at:at + 8] = random.randbytes(8)
    elif kind.startswith("header:"):
        for field in [f for f in FIELDS if f not in PROVEN] if kind == "header:rest" else [kind[7:]]:
            at, size = FIELDS[field]
            m.m[m.at + at + random.randrange(size)] ^= 1 << random.randrange(8)
    elif kind != "show":
        sys.exit(f"no such kind: {kind}")


def main():
    if sys.argv[1:] == ["fields"]:
        print(*(f"header:{f}" for f in FIELDS))
        return
    path, start, size, kind = sys.argv[1], int(sys.argv[2], 0), int(sys.argv[3], 0), sys.argv[4]
    random.seed(int(sys.argv[5]) if len(sys.argv) > 5 else 0)
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), 0) as memory:
        m = Map(memory, start, size)
        print(f"map at {m.at - start:#x} of {size:#x}, {len(m.used)} stacks of {m.nr // 2}")
        damage(m, kind)


main()
