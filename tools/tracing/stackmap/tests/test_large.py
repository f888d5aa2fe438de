# SPDX-License-Identifier: GPL-2.0
"""What takes long: the largest maps, large recordings, damage at every byte."""

import os
import random
import resource
import struct
import subprocess
import sys

import mkmap
from common import (FOLDED, KALLSYMS, MAP_FOLDED, MAP_PPROF, MAPS, PERF, SANITIZED, TEXT, TOOL, Case, RecordingCase, golden_map,
                    golden_text)


class Maps(Case):
    """Maps of the largest size."""

    def test_largest_map_in_seconds(self):
        nr, depth = 1 << (13 if SANITIZED else 18), 16
        syms = "".join(f"{TEXT + i * 256:x} T function_number_{i}\n" for i in range(60000))
        rnd = random.Random(1)
        sites = [TEXT + rnd.randrange(59000 * 256) for _ in range(20000)]
        record = struct.Struct(f"<4I{depth}Q")
        data = [struct.pack("<4I", mkmap.MAGIC, 2, nr, 0)]
        data += [record.pack(i, depth, i, 0, *rnd.choices(sites, k=depth)) for i in range(nr)]
        path = self.file("map", b"".join(data))
        kallsyms = self.file("k", syms)
        for form, head in [(["map"], b"stack_id"), (MAP_FOLDED, b"function"),
                           (["map", "--json"], b" {")]:
            self.large_dump(nr, head, *form, "-k", kallsyms, path)

    def test_two_maps_and_the_stacks_that_are_kept(self):
        nr = 600000
        record = struct.Struct("<4IQ")
        data = [struct.pack("<4I", mkmap.MAGIC, 2, nr, 0)]
        data += [record.pack(i, 1, i, 0, TEXT + 0x20) for i in range(nr)]
        out = self.dump(b"".join(data), "--top", "1")
        self.assertTrue(out.startswith(f"stack_id {nr - 1} [ref {nr - 1}, depth 1]"), out)

    def large_dump(self, nr, head, *args):
        """Dumps a map; nr lines must begin with the head."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(os.path.join(self.dir, "out"), "wb") as out:
            subprocess.run([TOOL, *args, "-q"], stdout=out, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(os.path.join(self.dir, "out"), "rb") as out:
            self.assertEqual(sum(line.startswith(head) for line in out), nr)
        if SANITIZED:
            return
        # The CPU time of the tool: the machine may be shared.
        spent = sum(getattr(after, f) - getattr(before, f) for f in ("ru_utime", "ru_stime"))
        print(f"{nr} stacks, {args[:-3]}: {spent:.2f} s", file=sys.stderr)
        self.assertLess(spent, 10.0)
        self.assertLess(after.ru_maxrss, 256 << 10)


class Recordings(RecordingCase):
    """Recordings with many events."""

    @staticmethod
    def memory(*args):
        """The most memory that the tool had at a time, in KB."""
        done = subprocess.run(["/usr/bin/python3", "-c", "import resource, subprocess, sys\n"
                               "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
                               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                               TOOL, *args], capture_output=True, check=True)
        return int(done.stdout)

    def test_memory_does_not_grow_with_the_events(self):
        if SANITIZED:
            self.skipTest("the sanitizer takes memory of its own")
        # libtracecmd keeps the file mapped.
        sizes = {}
        for n in [2000, 200000]:
            dat = self.dat()
            for i in range(n // 2):
                self.event(dat, "kmalloc", 1 + i, 8, stack="AB")
                self.event(dat, "kfree", 1 + i, stack="CB")
                if i % 10 == 0:
                    self.event(dat, "sched_waking", "x", 1 + i % 20, 120, 0, stack="A")
                    self.switch(dat, 1 + i % 20, 1 + (i + 10) % 20, stack="AB")
            path = self.file("one.dat", dat.bytes())
            for key in [FOLDED, (*FOLDED, "-w", "off-cpu"), ("report",), ("report", "-w", "leaks"),
                        ("stacks", "-w", "latency=kmalloc,kfree,ptr"),
                        ("stacks", "-w", "off-cpu", "--wakers")]:
                sizes.setdefault(key, []).append(self.memory(*key, "-q", path) - os.path.getsize(path) // 1024)
        for key, (small, large) in sizes.items():
            self.assertLess(large, small + 3000, (key, sizes))

    def test_map_of_an_instance_that_begins_late(self):
        """A map is not used for another instance, however many samples are printed before."""
        dat = self.dat(instances=("late",), cpus=1)
        for _ in range(201000):
            self.event(dat, "kmalloc", 1, 8)
            dat.add(self.now, "stack_id", 7)
        self.event(dat, "kmalloc", 1, 8, instance="late")
        dat.add(self.now, "stack_id", 7, instance="late")
        more = {"stack_map_bin": golden_map("le64")}
        for args in [PERF, FOLDED]:
            out, err = self.tool(dat, *args, more=more)
            self.assertIn("the map is not used", err)
            self.assertNotIn("schedule", out)
        out = self.tool(dat, *FOLDED, "-q", "-i", "late", more=more)[0]
        self.assertEqual(out, "schedule;do_exit;schedule 1\n")


class Damage(Case):
    """Damage of every byte."""

    def test_truncated_anywhere(self):
        for name in ["le64", "be32"]:
            data = golden_map(name)
            for cut in range(0, len(data), 7 if SANITIZED else 1):
                self.refuse(data[:cut], cut, "truncated in")

    def test_what_was_whole_is_printed(self):
        stacks = [(i, 9 - i, [TEXT + i] * 5) for i in range(3)]
        data = mkmap.make(stacks)
        size = len(mkmap.record(*stacks[0]))
        for cut in range(16, len(data), 5 if SANITIZED else 1):
            out = self.refuse(data[:cut], cut, "truncated", "map")
            self.assertEqual(out.count("stack_id"), (cut - 16) // size)
        # A difference would be wrong.
        self.assertEqual(self.refuse(data[:-1], len(data) - 1, "truncated", "diff", "--map",
                                     self.file("old", data)), "")

    def test_kallsyms_that_is_empty_or_cut_off(self):
        text = golden_text("kallsyms64")
        for cut in range(0, len(text), 7 if SANITIZED else 1):
            path = self.file("k", text[:cut])
            done = subprocess.run([TOOL, "-q", "-k", path, "-"], input=golden_map("bare"),
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, int(text[cut - 1] != "\n" or not cut), cut)
            if done.returncode:
                self.assertRegex(done.stderr.decode(), "k: (empty|byte)")
        for content in ["", "ffffffff81000000 T _te"]:
            self.file("stack_map_bin", golden_map("le64"))
            self.file("kallsyms", content)
            out, err = self.run_tool("map", self.dir)
            self.assertEqual(out, golden_text("raw64.txt"))
            self.assertIn("/kallsyms: " + ("byte 22: cut off" if content else "empty"), err)
            self.assertIn("raw addresses", err)

    def test_random_damage_never_crashes(self):
        rnd = random.Random(3)
        for _ in range(100 if SANITIZED else 300):
            data = bytearray(golden_map(rnd.choice(MAPS)))
            for _ in range(rnd.randrange(1, 6)):
                data[rnd.randrange(len(data))] = rnd.choice([0, 1, 0x7F, 0x80, 0xFF])
            form = rnd.choice([["map", "-j"], MAP_FOLDED, MAP_PPROF, ["report", "--map"], ["map"]])
            done = subprocess.run([TOOL, *form, "-k", KALLSYMS, "-"], input=bytes(data),
                                  capture_output=True, timeout=60, check=False)
            self.assertIn(done.returncode, (0, 1))
            self.assertNotIn(b"Sanitizer", done.stderr)
            self.assertNotIn(b"runtime error", done.stderr)
