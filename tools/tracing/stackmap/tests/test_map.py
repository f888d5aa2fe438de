# SPDX-License-Identifier: GPL-2.0
"""Maps: their format, and what is not one."""

import json
import re
import resource
import struct
import subprocess

import mkmap
from common import (KALLSYMS, MAP_FOLDED, MAPS, SANITIZED, TEXT, TOOL, Case, Tracefs, golden_map, golden_path,
                    golden_text)


class Golden(Case):
    """Fixed bytes in, fixed text out."""

    def test_generator_makes_the_golden_bytes(self):
        for name in MAPS:
            self.assertEqual(mkmap.golden(name), golden_map(name), name)

    def test_text(self):
        for name in MAPS:
            syms = golden_path("kallsyms32" if "32" in name else "kallsyms64")
            self.assertEqual(self.dump(golden_map(name), "-k", syms), golden_text("text64.txt"),
                             name)

    def test_raw(self):
        self.assertEqual(self.dump(golden_map("bare")), golden_text("raw64.txt"))

    def test_raw_32(self):
        want = golden_text("raw64.txt").replace("0xffffffff81", "0xc1")
        want = want.replace("0xffffffffc0", "0xf8")
        for name in ["le32", "be32"]:
            self.assertEqual(self.dump(golden_map(name)), want)

    def test_folded(self):
        for name in ["le64", "be64"]:
            out = self.dump(golden_map(name), *MAP_FOLDED, "-k", KALLSYMS)
            self.assertEqual(out, golden_text("folded64.txt"))

    def test_json(self):
        for name in ["le64", "be64"]:
            out = self.dump(golden_map(name), "-k", KALLSYMS, "--json")
            self.assertEqual(out, golden_text("json64.txt"))

    def test_annotate(self):
        path = self.file("map", golden_map("be64"))
        out, err = self.run_tool("annotate", "-k", KALLSYMS, golden_path("trace.txt"), path)
        self.assertEqual(out, golden_text("annotated.txt"))
        self.assertIn("2 ids are not in", err)

    def test_file_pipe_and_dash(self):
        data = golden_map("le64")
        path = self.file("map", data)
        want = self.dump(data)
        self.assertEqual(self.run_tool(path)[0], want)
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            out = subprocess.run([TOOL, "-q", "/dev/stdin"], stdin=cat.stdout,
                                 capture_output=True, check=True).stdout
        self.assertEqual(out.decode(), want)


class Input(Case):
    """Which map is read."""

    def test_directory(self):
        self.file("stack_map_bin", golden_map("le64"))
        self.file("kallsyms", golden_text("kallsyms64"))
        out, err = self.run_tool("map", self.dir)
        self.assertEqual(out, golden_text("text64.txt"))
        self.assertIn(self.dir + "/kallsyms", err)
        self.assertEqual(self.run_tool("diff", "--map", "-q", self.dir, self.dir)[0], "")

    def test_parts_stand_alone(self):
        for order in "<>":
            split = (mkmap.SPLIT, struct.pack(f"{order}Q", 5))
            path = self.file("map", mkmap.make([(7, 1, [TEXT])], [split], order))
            for mode in [MAP_FOLDED, ["map", "-j"], []]:
                self.assertIn("interrupts split 5 stacks", self.run_tool(*mode, path)[1])
            self.assertNotIn("split", self.run_tool("annotate", "-", path, rc=1)[1])
        data = mkmap.make([], [(mkmap.SPLIT, bytes(4))])
        self.refuse(data, 20, "split stacks has 4 bytes")

    def test_empty_map(self):
        data = mkmap.make([])
        self.assertEqual(json.loads(self.dump(data, "--json")), [])
        self.assertEqual(self.dump(data), "")
        self.assertEqual(self.dump(data, *MAP_FOLDED), "")
        self.assertIn("stacks: 0,", self.run_tool("-", stdin=data)[1])
        self.assertEqual(json.loads(self.dump(data, "report", "--map", "--json")), [])
        empty = self.file("empty", data)
        self.assertEqual(self.dump(data, "diff", "--map", empty), "")


class Live(Tracefs):
    """A map that is replaced while it is read."""

    def test_stale_read(self):
        self.make_map()
        for times in range(5):
            out = self.run_fake(times, "map", "-q", "-k", KALLSYMS)[0]
            self.assertEqual(out, golden_text("text64.txt"))
        for args in [["map"], ["map", self.map]]:
            # A file is opened once more, to see if it is a recording.
            out, err = self.run_fake(6, *args, "-k", KALLSYMS, rc=1)
            self.assertEqual(out, "")
            self.assertIn("stack_map_bin: the map was reset or replaced each time", err)


class Damage(Case):
    """Each kind of damage is reported with its offset."""

    def test_magic_and_version(self):
        self.refuse(mkmap.make([], magic=0x12345678), 0, "bad magic")
        self.refuse(mkmap.make([], version=3), 4, "version 3")
        self.refuse(mkmap.make([], version=1), 4, "version 1")

    def test_counts(self):
        self.refuse(struct.pack("<4I", mkmap.MAGIC, 2, 0, 0xFFFFFFFF), 16, "truncated")
        for nr in [1, 0x80001, 0xFFFFFFFF]:
            self.refuse(struct.pack("<4I", mkmap.MAGIC, 2, nr, 0), 16, "truncated")

    def test_depth(self):
        for nr in [1025, 0x20000000, 0x40000001, 0xFFFFFFFF]:
            data = struct.pack("<8I", mkmap.MAGIC, 2, 1, 0, 5, nr, 1, 0) + bytes(64)
            self.refuse(data, 20, f"stack_id 5 has {nr} frames")
        data = struct.pack("<8I", mkmap.MAGIC, 2, 1, 0, 5, 9, 1, 0) + bytes(64)
        self.refuse(data, len(data), "truncated in the frames")
        self.assertIn("depth 1024", self.dump(mkmap.make([(1, 1, [TEXT] * 1024)])))

    def test_zero_depth(self):
        self.refuse(mkmap.make([(1, 1, [TEXT]), (5, 1, [])]), 44, "stack_id 5 has no frames")

    def test_negative_id(self):
        self.refuse(mkmap.make([(0x80000001, 1, [TEXT])]), 16, "negative")

    def test_unknown_flags_are_ignored(self):
        for order in "<>":
            data = mkmap.make([(1, 2, [TEXT], 4), (2, 1, [5], 9)], order=order)
            out, err = self.run_tool("-", stdin=data)
            self.assertEqual(out, self.dump(mkmap.make([(1, 2, [TEXT]), (2, 1, [5], 1)])))
            self.assertEqual(re.findall(".*flags.*", err),
                             ["stackmap_dump: stdin: ignored unknown flags 0xc of stacks"])
        self.refuse(mkmap.make([(5, 1, [], 4)]), 20, "stack_id 5 has no frames")

    def test_sections(self):
        for kind, payload, what in [(1, bytes(4), "_text"), (1, bytes(16), "_text"),
                                    (2, b"", "build id"), (2, bytes(65), "build id"),
                                    (3, bytes(256), "release")]:
            self.refuse(mkmap.make([], [(kind, payload)]), 20, what)
        self.refuse(struct.pack("<6I", mkmap.MAGIC, 2, 0, 1, 9, 0xFFFFFFFF), 24, "unknown section")

    def test_unknown_section_is_skipped(self):
        data = mkmap.make([(1, 1, [TEXT])], [(77, b"abc"), (3, b"7.3-after")])
        err = self.run_tool("-", stdin=data)[1]
        self.assertIn("byte 40: skipped a section of unknown type 77", err)
        self.assertIn("kernel: 7.3-after", err)

    def test_bytes_after_the_end(self):
        data = golden_map("le64")
        self.refuse(data + b"x", len(data), "more bytes")

    def test_missing_file(self):
        self.assertIn("No such file", self.run_tool("/nonexistent", rc=1)[1])
        self.assertIn("stack_map_bin", self.run_tool("map", self.dir, rc=1)[1])

    def test_memory_follows_the_input_and_not_the_counts(self):
        if SANITIZED:
            self.skipTest("the sanitizer takes address space of its own")
        data = struct.pack("<8I", mkmap.MAGIC, 2, 0xFFFFFFFF, 1, 5, 1024, 1, 0)

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20))

        done = subprocess.run([TOOL, "-"], input=data, capture_output=True, preexec_fn=limit,
                              check=False)
        self.assertIn(b"byte 32: truncated", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TOOL, "-q", "-"], input=golden_map("le64"), stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)
