# SPDX-License-Identifier: GPL-2.0
"""Stacks of user space."""

import json
import struct

import mkmap
from common import FOLDED, KALLSYMS, MAP_FOLDED, PERF, TEXT, Case, RecordingCase, golden_map, golden_text


class Maps(Case):
    """Those of a map."""

    # The address of a function of the kernel: some machines use the same ones in user space.
    USER = [TEXT + 0x148, 0x5500, 0x5600]
    FULL = f"0x5600[user];0x5500[user];{TEXT + 0x148:#x}[user]"

    def map(self, order="<"):
        """The golden map with a stack of user space."""
        return mkmap.make([*mkmap.golden_stacks(TEXT, 0xFFFFFFFFC0201000),
                           (9, 6, self.USER, 1)], order=order)

    def test_map(self):
        for order in "<>":
            data = self.map(order)
            out = self.dump(data, "-k", KALLSYMS)
            raw = "".join(f"  [{i}] {ip:#x}\n" for i, ip in enumerate(self.USER))
            self.assertIn(f"user_stack_id 9 [ref 6, depth 3]\n{raw}\n", out)
            self.assertEqual(out.replace(f"user_stack_id 9 [ref 6, depth 3]\n{raw}\n", ""),
                             golden_text("text64.txt"))
            stacks = {s["id"]: s for s in json.loads(self.dump(data, "-k", KALLSYMS, "-j"))}
            self.assertEqual([i for i, s in stacks.items() if "user" in s], [9])
            self.assertIs(stacks[9]["user"], True)
            self.assertEqual(stacks[9]["ips"], [f"{ip:#x}" for ip in self.USER])
            self.assertEqual(stacks[9]["symbols"], stacks[9]["ips"])
            self.assertIn(self.FULL + " 6\n", self.dump(data, *MAP_FOLDED, "-k", KALLSYMS))
            self.assertNotIn("user", self.dump(data, "-k", KALLSYMS, "-g", "schedule"))
        self.assertEqual(self.dump(data, "-k", KALLSYMS, "-t", "1", "-m", "6", "-g", "0x55"),
                         f"user_stack_id 9 [ref 6, depth 3]\n{raw}\n")


class Stacks(RecordingCase):
    """Those of a recording."""

    USER = [0x5500, 0x5600]

    def test_at_once(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(self.now, "user_stack", 7, self.USER)
        self.add(dat, "user_stack_def", 9, 2, self.USER)
        self.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(self.now, "user_stack_id", 9, 7)
        want = {"0x5600[user];0x5500[user];schedule": 2}
        self.assertEqual(self.folded(dat), want)
        maps = {"user_maps": "map 7 5000-6000 1000 - /nonexistent/cat\n"}
        self.assertEqual(self.folded(dat, more=maps), {"[cat];[cat];schedule": 2})
        err = self.tool(dat, *FOLDED, more=maps)[1]
        self.assertIn("not here", err)
        if "elfutils" not in err:
            self.assertIn("/nonexistent/cat: not here", err)

    def test_maps_change(self):
        """dlopen, dlclose, dlopen at one address; exec; a process id that is used again; fork."""
        dat = self.dat()
        for at in (100, 200, 300, 400):
            self.event(dat, "kmalloc", 1, 8, stack="A", after=1000)
            dat.add(self.now, "user_stack", 7, [0x5500])
        self.event(dat, "kmalloc", 1, 8, stack="A", after=1000)
        dat.add(self.now, "user_stack", 8, [0x5500])
        time = lambda ms: 1000000000 + ms * 1000000 - 500000
        maps = f"""\
@{time(1)} map 7 5000-6000 0 - /x/one
@{time(2)} map 7 5000-6000 0 - /x/two
@{time(3)} exec 7
map 8 5000-6000 0 - /x/eight
@{time(4)} fork 7 8
@{time(5)} map 7 5000-6000 0 - /x/late
"""
        # A line without a time is as late as the one before it.
        out = self.folded(dat, more={"user_maps": maps})
        self.assertEqual(out, {"[one];schedule": 1, "[two];schedule": 1,
                               "0x5500[user];schedule": 1, "[eight];schedule": 2})
        dat.clock = "[local]"
        out = self.folded(dat, more={"user_maps": maps})
        self.assertEqual(sum(out.values()), 5)

    def test_cookies(self):
        """Events get the stack that comes later; what does not come is lost."""
        dat = self.dat()
        self.add(dat, "user_stack_def", 9, 2, self.USER)
        for _ in range(3):
            self.event(dat, "kmalloc", 1, 8, stack="A")
            dat.add(self.now, "user_unwind_cookie", 100)
        self.event(dat, "kmalloc", 1, 8, stack="A", pid=2)
        dat.add(self.now, "user_unwind_cookie", 200, pid=2)
        self.add(dat, "user_unwind_stack_id", 9, 7, 100, cpu=1)
        self.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(self.now, "user_unwind_cookie", 100)
        self.event(dat, "kmalloc", 1, 8, stack="CB", pid=2)
        dat.add(self.now, "user_unwind_cookie", 201, pid=2)
        self.add(dat, "user_unwind_stack", 201, 7, 1, [0x77], pid=2)
        want = {"0x5600[user];0x5500[user];schedule": 4, "schedule": 1,
                "0x77[user];do_exit;weak_one": 1}
        self.assertEqual(self.folded(dat), want)
        self.assertIn("1 user stacks were lost", self.tool(dat, *FOLDED)[1])
        out = self.tool(dat, *PERF, "-q")[0]
        self.assertEqual(out.count("0x5600 ([unknown])"), 4)
        self.assertEqual(self.all_forms(dat), 6)

    def test_by_file(self):
        words = [self.word(2, 0x123), self.word(1, 0x3A3B1), self.word(3, 5), 0x77,
                 0xFFFFFFFFFF600000]
        section = self.files((2, b"\xab" * 20, "/x/cat"), (1, b"", "/lib/libc\\012.so"))
        data = mkmap.make([(5, 3, words, 3)], [section])
        lines = ["/x/cat+0x123", "/lib/libc?.so+0x3a3b1", "0x8000000000000005", "0x77",
                 "0xffffffffff600000"]
        want = "user_stack_id 5 [ref 3, depth 5]\n" + \
            "".join(f"  [{i}] {line}\n" for i, line in enumerate(lines)) + "\n"
        self.assertEqual(self.dump(data), want)
        out = "0xffffffffff600000[user];0x77[user];0x8000000000000005[user];[libc?.so];[cat] 3\n"
        self.assertEqual(self.dump(data, *MAP_FOLDED), out)
        # At once, a word is an address, whatever the program has put there.
        data = mkmap.make([(5, 3, words, 1)], [section])
        out_at_once = self.dump(data)
        self.assertIn("  [0] 0xfffff00000000123\n", out_at_once)
        self.assertIn("  [3] 0x77\n  [4] 0xffffffffff600000\n", out_at_once)
        # In a recording: by the map, and with the instruction that was hit.
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(self.now, "user_unwind_cookie", 100)
        self.add(dat, "user_unwind_stack_split", 5, 7, 100, self.word(1, 0x10))
        got = self.folded(dat, more={"stack_map_bin": mkmap.make([(5, 3, words, 3)], [section])})
        self.assertEqual(got, {out[:-3] + ";[libc?.so];schedule": 1})

    def test_generations(self):
        """A number is that of another file in another generation."""
        old, new = 5 << 19 | 9, 4095 << 19 | 9
        files = self.files((old - 8, b"", "/x/old"), (new - 8, b"\xab" * 20, "/x/new"))
        data = mkmap.make([(old, 1, [self.word(1, 0x10)], 3), (new, 1, [self.word(1, 0x20)], 3)],
                          [files])
        self.assertEqual(self.dump(data),
                         f"user_stack_id {old} [ref 1, depth 1]\n  [0] /x/old+0x10\n\n"
                         f"user_stack_id {new} [ref 1, depth 1]\n  [0] /x/new+0x20\n\n")
        # In a recording, by definitions, which are behind the first use, or by the map.
        for by_map in True, False:
            dat = self.dat()
            for stack in old, new:
                self.event(dat, "kmalloc", 1, 8, stack="A")
                dat.add(self.now, "user_unwind_cookie", stack)
                self.add(dat, "user_unwind_stack_split", stack, 7, stack, self.word(1, 8))
            if not by_map:
                for stack, path in (new, "/x/new"), (old, "/x/old"):
                    self.add(dat, "user_stack_def", stack, 1, [self.word(1, 0x10)])
                    self.add(dat, "user_file_def", stack - 8, 0, b"\0" * 20, path)
            got = self.folded(dat, more={"stack_map_bin": data} if by_map else None)
            self.assertEqual(got, {"[old];[old];schedule": 1, "[new];[new];schedule": 1})

    def test_number_of_two_files(self):
        """After some thousand generations, a number is another file. Which one is not known."""
        build_id, other = b"\xab" * 20, b"\xcd" * 20
        for defs, want in [
                ([("/x/old", b""), ("/x/new", b"")], None),
                ([("/x/old", b""), ("/x/new", b""), ("/x/old", b"")], None),
                ([("/x/old", build_id), ("/x/old", other)], None),
                ([("/x/old", b""), ("/x/old", build_id)], build_id),
                ([("/x/old", build_id), ("/x/old", b"")], build_id)]:
            dat = self.dat()
            self.event(dat, "kmalloc", 1, 8, stack="A")
            dat.add(self.now, "user_unwind_cookie", 100)
            self.add(dat, "user_stack_def", 5, 1, [self.word(1, 0x10)])
            for path, file_id in defs:
                self.add(dat, "user_file_def", 1, len(file_id), file_id.ljust(20, b"\0"), path)
            self.add(dat, "user_unwind_stack_id", 5, 7, 100)
            frame = "[old]" if want else "0x8000000000000010[user]"
            self.assertEqual(self.folded(dat), {f"{frame};schedule": 1}, defs)
        # The map has the last one.
        data = mkmap.make([(6, 1, [self.word(1, 0x10)], 3)], [self.files((1, b"", "/x/new"))])
        self.assertEqual(self.folded(dat, more={"stack_map_bin": data}),
                         {"0x8000000000000010[user];schedule": 1})

    def test_files_that_are_damaged(self):
        good = self.files((1, b"\xab" * 20, "/x/cat"))[1]
        for bad, what in [(good[:-1], "has"), (good[:8], "truncated|have"),
                          (struct.pack("<II20sI", 0, 0, b"", 0), "file 0"),
                          (struct.pack("<II20sI", 0x7FFFF, 0, b"", 0), "file 524287"),
                          (struct.pack("<II20sI", 3 << 19, 0, b"", 0), "file 1572864"),
                          (struct.pack("<II20sI", 1 << 31 | 1, 0, b"", 0), "file 2147483649"),
                          (struct.pack("<II20sI", 1, 21, b"", 0), "build id of 21"),
                          (struct.pack("<II20sI", 1, 1 << 31, b"", 0), "build id of 2147483648"),
                          (struct.pack("<II20sI", 1, 0, b"", 1 << 20), "path of")]:
            out, err = self.run_tool("-", stdin=mkmap.make([(1, 1, [5], 3)], [(5, bad)]), rc=1)
            self.assertEqual(out, "user_stack_id 1 [ref 1, depth 1]\n  [0] 0x5\n\n")
            self.assertIn("stdin: byte", err)


class UserMaps(Case):
    """Lines of user_maps."""

    def test_damage(self):
        good = "map 123 5500-6600 0 abab /x/y\n@7 fork 7 5\nexec 7\n"
        self.file("stack_map_bin", golden_map("le64"))
        for cut in range(1, len(good)):
            self.file("user_maps", good[:cut])
            self.run_tool("map", self.dir, rc=int(good[cut - 1] != "\n"))
        for bad in ["map 1 2-3 4\n", "map x 2-3 4 -\n", "map 1 2 3 4 -\n", "map 1 2-3 4 abc\n",
                    "map 1 2-3 4 " + "ab" * 65 + " x\n", "fork 1\n", "fork 1 x\n", "exec x\n",
                    "map 1 -1-3 4 -\n", "maps\n", "fork 1 2\0\n",
                    "@x map 1 2-3 4 -\n", "map 1 2-3 4 =1 x\n"]:
            self.file("user_maps", good + bad)
            err = self.run_tool("map", self.dir, rc=1)[1]
            self.assertIn(f"user_maps: byte {len(good)}: not a line of user_maps", err)
