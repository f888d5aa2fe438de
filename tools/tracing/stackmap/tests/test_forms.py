# SPDX-License-Identifier: GPL-2.0
"""The forms of output."""

import json
import os
import random
import re
import shutil
import struct
import subprocess
import time

import mkmap
from common import (FOLDED, KALLSYMS, MAP_FOLDED, MAP_PPROF, PERF, TEXT, TOOL, Case, Pprof,
                    RecordingCase, golden_map, golden_text)


class Maps(Case):
    """Of maps."""

    NASTY = "1000 t we\"ird\\na;me \x01\x7f\xc3\xa9\xff</script>\t[mo;d \"]\n2000 t end\t[mo;d \"]\n"

    def nasty(self, *args):
        """One stack of one frame; its name has all special bytes."""
        path = os.path.join(self.dir, "k")
        with open(path, "wb") as f:
            f.write(self.NASTY.encode("latin-1"))
        return self.dump(mkmap.make([(1, 5, [0x1010])]), *args, "-k", path)

    def test_json_is_valid_whatever_a_symbol_holds(self):
        stacks = json.loads(self.nasty("--json"))
        self.assertEqual(stacks[0]["symbols"],
                         ["we\"ird\\na;me \x01\x7f\xc3\xa9\xff</script>+0x10/0x1000 [mo;d \"]"])

    def test_control_characters(self):
        """They are for JSON only: a terminal would obey."""
        name = "we\"ird\\na;me ??\xc3\xa9\xff</script>"
        self.assertIn(f"  [0] {name}+0x10/0x1000 [mo;d \"]\n", self.nasty())
        path = os.path.join(self.dir, "k")
        data = mkmap.make([(1, 5, [0x1010])], [(mkmap.RELEASE, b"7\x1b[2J")])
        out = self.run_tool("report", "--map", "-q", "-k", path, "-", stdin=data)[0]
        self.assertIn(f"  {name}[mo;d \"]\n", out)
        old = self.file("old", mkmap.make([]))
        for args in [["diff", "--map", old], ["annotate", self.file("trace", "<stack_id 1>\n")]]:
            self.assertIn(f" {name}+0x10", self.dump(mkmap.make([(1, 5, [0x1010])]), *args, "-k",
                                                    path))
        self.assertIn("kernel: 7?[2J\n", self.run_tool("-", stdin=data)[1])

    def test_json_fields(self):
        stacks = {s["id"]: s for s in json.loads(self.dump(golden_map("be64"), "--json"))}
        self.assertEqual(sorted(stacks), [3, 4, 7, 524289])
        self.assertEqual(stacks[4]["ref_count"], 4294967295)
        for i, ref, ips in mkmap.golden_stacks(TEXT, 0xFFFFFFFFC0201000):
            self.assertEqual([int(x, 16) for x in stacks[i]["ips"]], ips)
            self.assertEqual((stacks[i]["ref_count"], stacks[i]["depth"]), (ref, len(ips)))

    MERGED = [(1, 5, [TEXT + 0x148, TEXT + 0x30]), (2, 4294967295, [TEXT + 0x120, TEXT + 0x40]),
              (3, 7, [TEXT + 0x30]), (4, 6, [TEXT + 0x31])]

    def test_folded_lines_are_distinct(self):
        data = mkmap.make(self.MERGED)
        out = self.dump(data, *MAP_FOLDED, "-k", KALLSYMS)
        self.assertEqual(out, "do_exit;schedule 4294967300\ndo_exit 13\n")
        out = self.dump(data, *MAP_FOLDED, "-k", KALLSYMS, "--min-ref", "13")
        self.assertEqual(out, "do_exit;schedule 4294967300\ndo_exit 13\n")
        self.assertEqual(self.dump(data, *MAP_FOLDED, "-k", KALLSYMS, "--min-ref", "14"),
                         "do_exit;schedule 4294967300\n")
        out = self.dump(data, *MAP_FOLDED, "-k", KALLSYMS, "--grep", "(schedule.0x48|exit.0x11)")
        self.assertEqual(out, "do_exit 6\ndo_exit;schedule 5\n")
        rnd = random.Random(7)
        stacks = [(i, rnd.randrange(99), [rnd.choice([TEXT + 0x21, TEXT + 0x101, TEXT + 0x181]) +
                                          rnd.randrange(50) for _ in range(rnd.randrange(1, 5))])
                  for i in range(5000)]
        want = {}
        for _, ref, ips in stacks:
            names = ["do_exit" if ip < TEXT + 0x100 else "schedule" if ip < TEXT + 0x180 else
                     "weak_one" for ip in ips]
            path = ";".join(reversed(names))
            want[path] = want.get(path, 0) + ref
        lines = self.dump(mkmap.make(stacks), *MAP_FOLDED, "-k", KALLSYMS).splitlines()
        got = {line.split(" ")[0]: int(line.split(" ")[1]) for line in lines}
        self.assertEqual((len(lines), got), (len(want), want))

    def test_folded_line_by_line(self):
        for data in [self.nasty(*MAP_FOLDED), golden_text("folded64.txt")]:
            for line in data.splitlines():
                self.assertRegex(line, r"^[^;\s]+(;[^;\s]+)* \d+$")
                self.assertNotRegex(line, r"\+0x")

    def test_top_min_ref_grep(self):
        data = golden_map("le64")

        def ids(*args):
            out = self.dump(data, "-k", KALLSYMS, *args)
            return [int(x) for x in re.findall(r"^stack_id (\d+)", out, re.M)]

        self.assertEqual(ids(), [4, 524289, 7, 3])
        self.assertEqual(ids("--top", "2"), [4, 524289])
        self.assertEqual(ids("--min-ref", "12"), [4, 524289, 7])
        self.assertEqual(ids("--grep", "^(sched|last_of)"), [7, 3])
        self.assertEqual(ids("--grep", "golden_mod", "--min-ref", "2"), [])

    def test_summary(self):
        out = self.run_tool("map", "--top", "1", "-", stdin=golden_map("le64"))[1]
        self.assertIn("kernel: 7.3.0-golden, build id 00010203", out)
        self.assertIn("stacks: 4, of user space: 0, frames: 11, references: 8294967308\n", out)
        self.assertIn("stdin: 1 stacks have 4294967295 references, or more\n", out)
        self.assertIn("depth: 2.8 on average, at most 4\n", out)

    def test_summary_share(self):
        stacks = [(i, 10 if i < 10 else 1, [TEXT + i]) for i in range(110)]
        for form in [[], ["--json"]]:
            err = self.run_tool("map", *form, "-", stdin=mkmap.make(stacks))[1]
            self.assertIn("top 10 hold: 50.0%", err)


class Diff(Case):
    """diff of maps."""

    def test_diff(self):
        a, b, c, d = ([TEXT + i, TEXT + 0x21] for i in (0x101, 0x102, 0x103, 0x104))
        old = self.file("old", mkmap.make([(1, 10, a), (2, 7, b), (3, 5, c)]))
        new = mkmap.make([(101, 13, a), (103, 5, c), (104, 100, d)])
        out = self.dump(new, "diff", "--map", "-k", KALLSYMS, old)
        heads = re.findall(r"^[-+].*", out, re.M)
        self.assertEqual(heads, ["+100 new stack_id 104 [ref 100, depth 2]",
                                 "-7 gone stack_id 2 [ref 7, depth 2]",
                                 "+3 moved stack_id 101 [ref 13, depth 2]"])
        self.assertIn("  [0] schedule+0x4/0x80\n", out)
        out = self.dump(new, "diff", "--map", "-k", KALLSYMS, old, "--top", "1")
        self.assertEqual(out.count("stack_id"), 1)
        out = self.dump(new, "diff", "--map", "-k", KALLSYMS, old, "--grep", r"schedule\+0x2/")
        self.assertEqual(re.findall(r"^[-+]\S+", out, re.M), ["-7"])

    def test_of_functions(self):
        a, b, c = ([TEXT + i, TEXT + 0x21] for i in (0x101, 0x181, 0x102))
        old = self.file("old", mkmap.make([(1, 10, a), (2, 7, b)]))
        new = mkmap.make([(101, 13, a), (104, 2, c), (105, 1, a[1:] + a)])
        args = "diff", "--map", "-k", KALLSYMS, "--format"
        out = self.dump(new, *args, "functions", old)
        rows = [line.split() for line in out.splitlines()[1:]]
        self.assertEqual(rows, [["-7", "0", "-7", "0", "weak_one"], ["+5", "15", "+6", "16", "schedule"],
                                ["+1", "1", "-1", "16", "do_exit"]])
        self.assertEqual(self.dump(new, *args, "functions", "-t", "1", old).count("\n"), 2)
        self.assertNotIn("do_exit", self.dump(new, *args, "functions", "-m", "2", old))
        self.assertEqual(self.dump(new, *args, "functions", "-g", "weak", old).split()[10::5],
                         ["weak_one", "do_exit"])
        same = self.file("new", new)
        self.assertEqual(self.dump(new, *args, "functions", same), "")
        # For difffolded.pl: the weights of both, also of what is the same.
        out = self.dump(new, *args, "folded", old)
        self.assertEqual(out, "do_exit;weak_one 7 0\ndo_exit;schedule 10 15\ndo_exit;schedule;do_exit 0 1\n")
        self.assertEqual(self.dump(new, *args, "folded", same),
                         "do_exit;schedule 15 15\ndo_exit;schedule;do_exit 1 1\n")
        self.assertIn("--format of diff knows", self.run_tool(*args, "perf", old, rc=2)[1])
        self.assertIn("--format knows", self.run_tool("export", "--format", "functions", rc=2)[1])

    def test_of_what_moved(self):
        """To a function that it calls, or from a stack that is hardly left."""
        a, b, c = ([TEXT + i, TEXT + 0x21] for i in (0x101, 0x181, 0x102))
        old = self.file("old", mkmap.make([(1, 10, a), (2, 100, b)]))
        new = mkmap.make([(1, 10, [TEXT + 0x181] + a), (2, 2, b), (3, 4, c)])
        args = "diff", "--map", "-k", KALLSYMS, "-m", "5", "--format"
        self.assertEqual([r.split()[:3:2] + r.split()[-1:] for r in
                          self.dump(new, *args, "functions", old).splitlines()[1:]],
                         [["-88", "-88", "weak_one"], ["-6", "+4", "schedule"], ["+0", "-94", "do_exit"]])
        self.assertEqual(set(self.dump(new, *args, "folded", old).splitlines()),
                         {"do_exit;weak_one 100 2", "do_exit;schedule;weak_one 0 10", "do_exit;schedule 10 4"})

    def test_diff_of_generations(self):
        a, b = ([TEXT + i, TEXT + 0x21] for i in (0x101, 0x102))
        gen = 1 << 19
        one = self.file("one", mkmap.make([(5, 100, a), (6, 3, b)]))
        two = self.file("two", mkmap.make([(5, 100, a), (9 + gen, 50, a), (6, 3, b)]))
        for new, old, by, stack in [(two, one, "+50", 9 + gen), (one, two, "-50", 5)]:
            out = self.run_tool("diff", "--map", "-k", KALLSYMS, old, new)[0]
            ref = 150 if new == two else 100
            self.assertEqual(re.findall(r"^[-+].*", out, re.M),
                             [f"{by} moved stack_id {stack} [ref {ref}, depth 2]"])
        self.assertEqual(self.run_tool("diff", "--map", "-k", KALLSYMS, two, two)[0], "")

    def test_diff_with_itself_is_empty(self):
        old = self.file("old", golden_map("le64"))
        self.assertEqual(self.dump(golden_map("be64"), "diff", "--map", "-k", KALLSYMS, old), "")

    def test_diff_across_boots_of_one_kernel(self):
        base = TEXT + 0x7000000
        build = (mkmap.BUILD_ID, bytes(range(20)))
        old = self.file("old", mkmap.make([(1, 4, [base + 0x110, base + 0x30])],
                                          [(mkmap.TEXT, struct.pack("<Q", base)), build]))
        new = mkmap.make([(1, 9, [TEXT + 0x110, TEXT + 0x30])],
                         [(mkmap.TEXT, struct.pack("<Q", TEXT)), build])
        out = self.dump(new, "diff", "--map", "-k", KALLSYMS, old)
        self.assertEqual(re.findall(r"^[-+]\S+ \S+", out, re.M), ["+5 moved"])

    def test_diff_of_a_plain_file(self):
        """The kernel's own symbols are those of the other map, if it is of the same kernel."""
        for name in ["new", "old"]:
            os.mkdir(os.path.join(self.dir, name))
            self.file(f"{name}/stack_map_bin", golden_map("le64"))
        self.file("new/kallsyms", golden_text("kallsyms64"))
        old = os.path.join(self.dir, "old/stack_map_bin")
        self.assertEqual(self.run_tool("diff", "--map", "-q", old, os.path.join(self.dir, "new"))[0], "")


class PprofOfMaps(Pprof):
    """Profiles of maps for pprof."""

    def test_map(self):
        samples, _ = self.profile(golden_map("be64"), "-k", KALLSYMS, "-")
        self.assertEqual(samples, [
            (["weak_one"], 4294967295, {}),
            (["do_exit", "[FTRACE TRAMPOLINE]", "_text"], 4000000000, {}),
            (["schedule", "do_exit", "schedule"], 12, {}),
            (["first_of_mod[golden_mod]", "last_of_mod[golden_mod]", "weak_one", "0x1234"], 1,
             {})])

    def test_time(self):
        """That of the file, or now: Parca has a profile without a time in 1970."""
        path = self.file("map", golden_map("le64"))
        os.utime(path, (1, 1700000000))
        self.assertEqual(self.profile(b"", path)[1].get(9), [1700000000 * 10 ** 9])
        start = int(time.time())
        now = self.profile(golden_map("le64"), "-")[1].get(9, [0])
        self.assertTrue(start <= now[0] // 10 ** 9 <= time.time())

    def test_no_symbols(self):
        samples, _ = self.profile(golden_map("bare"), "-")
        self.assertEqual(samples[2], ([f"{TEXT + 0x100:#x}", f"{TEXT + 0x100:#x}",
                                       f"{TEXT + 0x148:#x}"], 12, {}))
        samples, prof = self.profile(mkmap.make([]), "-")
        self.assertEqual((samples, prof.get(4)), ([], None))

    def test_merged(self):
        """Stacks of the same functions are one sample, as in folded ones."""
        data = mkmap.make(Maps.MERGED)
        samples, _ = self.profile(data, "-k", KALLSYMS, "-")
        self.assertEqual(samples, [(["schedule", "do_exit"], 4294967300, {}), (["do_exit"], 13, {})])

    def test_nasty_names(self):
        path = os.path.join(self.dir, "k")
        with open(path, "wb") as f:
            f.write(Maps.NASTY.encode("latin-1"))
        samples, _ = self.profile(mkmap.make([(1, 5, [0x1010])]), "-k", path, "-")
        self.assertEqual(samples[0][0], ["we\"ird\\na;me \x01\x7f\xc3\xa9\xff</script>[mo;d \"]"])

    def test_many_blocks(self):
        rnd = random.Random(2)
        stacks = [(i, rnd.randrange(1 << 32), [TEXT + rnd.randrange(0x200) for _ in range(20)])
                  for i in range(4000)]
        samples, _ = self.profile(mkmap.make(stacks), "-k", KALLSYMS, "-")
        self.assertEqual([s[1] for s in samples], sorted((ref for _, ref, _ in stacks), reverse=True))
        lines = self.dump(mkmap.make(stacks), *MAP_FOLDED, "-k", KALLSYMS).splitlines()
        want = dict(line.rsplit(" ", 1) for line in lines)
        got = {}
        for path, ref, _ in samples:
            path = ";".join(reversed(path))
            got[path] = got.get(path, 0) + ref
        self.assertEqual(got, {k: int(v) for k, v in want.items()})

    def test_terminal(self):
        leader, follower = os.openpty()
        done = subprocess.run([TOOL, *MAP_PPROF, "-"], stdin=subprocess.DEVNULL, stdout=follower,
                              stderr=subprocess.PIPE, check=False)
        os.close(follower)
        os.close(leader)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--format pprof is binary", done.stderr)


class Recordings(RecordingCase):
    """Of recordings."""

    def test_text(self):
        """What a recording is, if nothing else is said."""
        dat = self.dat()
        for size, stack in [(30, "AB"), (5, "CB"), (40, "AB"), (7, "A")]:
            self.event(dat, "kmalloc", 1, size, stack=stack)
        self.assertEqual(self.tool(dat, "-q")[0], "# 4 events\n"
                         "2 (50.0%)\n        schedule\n        do_exit\n\n"
                         "1 (25.0%)\n        weak_one\n        do_exit\n\n"
                         "1 (25.0%)\n        schedule\n\n")
        out = self.tool(dat, "-q", "-w", "bytes_alloc", "--top", "1")[0]
        self.assertEqual(out, "# 82 bytes_alloc (bytes)\n70 (85.4%), 2 events, at most 40\n"
                         "        schedule\n        do_exit\n\n")
        self.assertEqual(json.loads(self.tool(dat, "-q", "-j", "-w", "bytes_alloc")[0])[0],
                         {"weight": 70, "count": 2, "largest": 40, "symbols": ["schedule", "do_exit"]})
        more = {"stack_map_bin": golden_map("le64")}
        self.assertEqual(self.tool(dat, "map", "-q", more=more)[0], golden_text("text64.txt"))
        self.assertIn("# 4 events", self.tool(dat, "-q", more=more)[0])
        one = self.file("one.dat", dat.bytes())
        self.assertIn(f"a recording, not a map: stackmap_dump stacks {one}",
                      self.run_tool("map", one, rc=1)[1])
        # Without a name, it is the last one.
        os.rename(os.path.join(self.dir, "dir"), os.path.join(self.dir, "stackmap.data"))
        done = subprocess.run([TOOL, "stacks", "-q", "-w", "bytes_alloc"], cwd=self.dir, capture_output=True,
                              check=True)
        self.assertIn(b"# 82 bytes_alloc (bytes)", done.stdout)

    def test_diff(self):
        """Of two recordings, whatever their addresses are."""
        dat = self.dat()
        for stack in ["AB", "AB", "CB"]:
            self.event(dat, "kmalloc", 1, 8, stack=stack)
        old = self.dat()
        for name in self.FULL["AB"], self.FULL["A"]:
            self.event(old, "kmalloc", 1, 8)
            old.add(self.now, "kernel_stack", len(name), [ip + 0x10000001 for ip in name])
        path = os.path.join(self.dir, "old")
        os.mkdir(path)
        self.file("old/trace.dat", old.bytes())
        self.file("old/kallsyms", golden_text("kallsyms64").replace("fffffff81", "fffffff91"))
        for args in [[], ["--grep", "schedule|weak"]]:
            out = self.tool(dat, "diff", "-q", *args, path)[0]
            self.assertEqual(out, "+1 moved 2\n        schedule\n        do_exit\n\n"
                             "+1 new 1\n        weak_one\n        do_exit\n\n"
                             "-1 gone 1\n        schedule\n\n")
        self.assertEqual(self.tool(dat, "diff", "-q", "-g", "weak", path)[0],
                         "+1 new 1\n        weak_one\n        do_exit\n\n")
        none = self.file("none.dat", self.dat().bytes())
        self.assertEqual(self.run_tool("diff", "-q", none, self.file("dir.dat", dat.bytes()), rc=1), (
            "", f"stackmap_dump: {none}: has no records\n"))
        # A trace.dat has no names of modules.
        out, err = self.tool(dat, "diff", "-q", self.file("dir.dat", dat.bytes()), rc=1)
        self.assertEqual(out, "")
        self.assertIn("only one of", err)
        self.assertEqual(self.run_tool("diff", "-q", os.path.join(self.dir, "dir/trace.dat"),
                                       os.path.join(self.dir, "dir.dat"))[0], "")
        self.assertEqual(self.tool(dat, "diff", "-q", "-k", KALLSYMS,
                                   os.path.join(self.dir, "dir.dat"))[0], "")
        self.assertIn("not a recording", self.tool(dat, "diff", KALLSYMS, rc=1)[1])
        more = {"stack_map_bin": golden_map("le64")}
        self.assertEqual(self.tool(dat, "diff", "--map", "-q", self.file("map", golden_map("le64")),
                                   more=more)[0], "")

    def test_callers(self):
        """And callees, of one function."""
        dat = self.dat()
        # do_exit calls schedule, which calls schedule and weak_one; once more without do_exit
        self.FULL = dict(self.FULL, CAAB=[self.C, self.A, self.A, self.B], BA=[self.B, self.A])
        for stack, n in [("CAAB", 3), ("AB", 4), ("CB", 1), ("A", 2), ("BA", 6)]:
            for _ in range(n):
                self.event(dat, "kmalloc", 1, 8, stack=stack)
        self.assertEqual(self.folded(dat, "--callees", "schedule"),
                         {"schedule;schedule;weak_one": 3, "schedule": 6, "schedule;do_exit": 6})
        self.assertEqual(self.folded(dat, "--callers", "schedule"),
                         {"schedule;do_exit": 7, "schedule": 8})
        for option, rows in [("--callers", [["8", "schedule"], ["7", "do_exit"]]),
                             ("--callees", [["6", "schedule"], ["6", "do_exit"]])]:
            out = self.tool(dat, "report", "-q", option, "schedule")[0]
            got = [line.split()[0::4] for line in out.splitlines() if line[0] == " "]
            self.assertEqual(sorted(got), sorted(rows if option == "--callers" else
                                                 [["9", "schedule"], ["6", "do_exit"]]))
            self.assertIn("# 15 events\n", out)
            self.assertEqual(self.all_forms(dat, option, "schedule", perf=False), 15)
        self.assertIn("no stack has a function sched", self.tool(dat, *FOLDED, "--callers", "sched",
                                                                rc=1)[1])
        self.assertIn("--callers: does not go", self.tool(dat, *PERF, "--callers", "schedule",
                                                      rc=2)[1])
        # Of a map, and with the name of a module.
        data = golden_map("le64")
        out = self.dump(data, *MAP_FOLDED, "-k", KALLSYMS, "--callers", "first_of_mod")
        self.assertEqual(out, self.dump(data, *MAP_FOLDED, "-k", KALLSYMS, "--callers",
                                        "first_of_mod[golden_mod]"))
        self.assertTrue(out.startswith("first_of_mod[golden_mod]"), out)

    def test_output_stays(self):
        """A file is not touched before there is what goes into it."""
        out = self.file("out", b"mine")
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        for size in 200, -3000:
            cut = self.file("cut.dat", dat.bytes()[:size])
            for form in "folded", "perf", "perfetto":
                self.run_tool("export", "--format", form, "-o", out, cut, rc=1)
                with open(out, "rb") as file:
                    self.assertEqual(file.read(), b"mine")
            self.assertEqual(self.run_tool(*FOLDED, cut, rc=1)[0], "")
        path = self.file("map", golden_map("le64"))
        text = self.file("text", golden_text("trace.txt"))
        for args in [out, os.path.join(self.dir, "nothing"), path], [text, text, path]:
            self.run_tool("annotate", "-o", *args, rc=1)
            with open(args[0], "rb") as file:
                self.assertEqual(file.read(), b"mine" if args[0] == out else golden_text("trace.txt").encode())

    def test_output_is_an_input(self):
        """What is read stays as it was, by any name."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        top = os.path.join(self.dir, "dir")
        self.tool(dat, "report")
        self.file("dir/stack_map_bin", golden_map("le64"))
        self.file("dir/lost", "")
        link = os.path.join(self.dir, "link")
        os.symlink("dir/trace.dat", link)
        forms = [["report"], ["stacks"], ["report", "--json"], *(
            ["export", "--format", form] for form in ("folded", "pprof", "perf", "perfetto"))]
        for path, args in [*((link, [*form, top]) for form in forms),
                           *((top + "/trace.dat", [*form, top]) for form in forms),
                           (top + "/kallsyms", ["report", top]), (top + "/lost", [*PERF, top]),
                           (top + "/stack_map_bin", ["map", top]),
                           (top + "/stack_map_bin", ["annotate", self.file("t", golden_text("trace.txt")), top])]:
            with open(path, "rb") as file:
                before = file.read()
            err = self.run_tool(*args[:1], "-o", path, *args[1:], rc=1)[1]
            self.assertIn(f"{path}: cannot be the output, too", err, args)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), before, args)

    def test_output_of_nothing(self):
        """A file stays if the text is a directory, or no stack has the function."""
        out = self.file("out", b"mine")
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        top = os.path.join(self.dir, "dir")
        self.tool(dat, "report")
        self.file("dir/stack_map_bin", golden_map("le64"))
        for args in ["annotate", top, top], ["report", "--callers", "x", top], [
                "stacks", "--callers", "x", top], [*FOLDED, "--callees", "x", top], [
                "diff", "--callers", "x", top, top]:
            self.run_tool(*args, "-o", out, rc=1)
            with open(out, "rb") as file:
                self.assertEqual(file.read(), b"mine", args)

    def test_report(self):
        dat = self.dat()
        for pid, stack, n in [(1, "AB", 3), (2, "CB", 2), (2, "AB", 1)]:
            for _ in range(n):
                self.event(dat, "kmalloc", 1, 8, stack=stack, pid=pid)
        path = os.path.join(self.dir, "dir")
        self.folded(dat)
        out = self.run_tool("report", "-q", path)[0]
        rows = [line.split() for line in out.splitlines() if not line.startswith("#")]
        self.assertEqual(rows, [["4", "66.7%", "4", "66.7%", "schedule"],
                                ["2", "33.3%", "2", "33.3%", "weak_one"],
                                ["0", "0.0%", "6", "100.0%", "do_exit"]])
        out = self.run_tool("report", "-q", "--by", "task", "--top", "1", path)[0]
        rows = [line.split() for line in out.splitlines()[2:] if line]
        self.assertEqual(rows, [["#", "one-1:", "3", "(50.0%)"],
                                ["3", "50.0%", "3", "50.0%", "schedule"],
                                ["#", "two-2:", "3", "(50.0%)"],
                                ["2", "33.3%", "2", "33.3%", "weak_one"]])
        out = json.loads(self.run_tool("report", "--json", "-q", path)[0])
        self.assertEqual([tuple(f.values()) for f in out],
                         [(4, 4, "schedule"), (2, 2, "weak_one"), (0, 6, "do_exit")])
        out = self.run_tool("report", "-j", "-q", "--by", "task", "--top", "1", path)[0]
        self.assertEqual(json.loads(out),
                         [{"self": 3, "total": 3, "function": "schedule", "by": "one-1"},
                          {"self": 2, "total": 2, "function": "weak_one", "by": "two-2"}])
        # Of a map as well; a function that calls itself counts once.
        out = self.run_tool("report", "--map", "-q", "-k", KALLSYMS, "-", stdin=golden_map("le64"))[0]
        self.assertRegex(out, r"\n +12 +0\.0% +12 +0\.0%  schedule\n")

    def test_perf_script(self):
        dat = self.dat(comms=[(1, "a b;c")])
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.event(dat, "sys_enter_close", 3, stack="A", pid=0, cpu=1)
        out = self.tool(dat, *PERF, "-q")[0]
        kernel = " ([kernel.kallsyms])\n"
        self.assertEqual(out, "a_b_c        1 [000]     1.000001: kmalloc: ptr=1 bytes_alloc=8\n"
                         f"\tffffffff81000148 schedule+0x48{kernel}"
                         f"\tffffffff81000030 do_exit+0x10{kernel}\n"
                         "swapper        0 [001]     1.000002: sys_enter_close: fd=3\n"
                         f"\tffffffff81000148 schedule+0x48{kernel}\n")
        # As the regular expressions of the readers have it.
        heads = [s.split("\n")[0] for s in out.split("\n\n")[:-1]]
        got = [re.match(r"(\S.+?)\s+(\d+)(?:/?(\d+))?\s+", h).groups() for h in heads]
        self.assertEqual([(g[0].strip(), g[1]) for g in got], [("a_b_c", "1"), ("swapper", "0")])
        self.assertFalse([h for h in heads if re.search(r"\S+:\s*$", h)])
        self.assertEqual([re.match(r"(.*)\s+([\d.]+):", h)[2] for h in heads],
                         ["1.000001", "1.000002"])
        path = self.file("map", golden_map("le64"))
        self.assertIn("map: not a recording", self.run_tool(*PERF, path, rc=1)[1])
        self.run_tool(*PERF, "--map", path, rc=2)

    def test_no_table_behind_an_error(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A")
        for args in [["report", "--pid", "99"], [*FOLDED, "-e", "nothing"],
                     ["report", "-w", "off-cpu"], ["report", "--json", "--pid", "99"]]:
            self.assertEqual(self.tool(dat, *args, rc=1)[0], "")

    def test_last_recording(self):
        """A profile without a name is of ./stackmap.data, if that is there."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A")
        self.tool(dat, *FOLDED)
        os.rename(os.path.join(self.dir, "dir"), os.path.join(self.dir, "stackmap.data"))
        for args, ok in [(FOLDED, True), (["report"], True), (["stacks", "--json"], True),
                         (MAP_FOLDED, False), (["map"], False), ([], False),
                         ([*FOLDED, "-i", "nothing"], False)]:
            done = subprocess.run([TOOL, *args, "-q"], cwd=self.dir, capture_output=True,
                                  check=False)
            self.assertEqual(b"schedule" in done.stdout, ok, args)

    READERS = [r"^(\S.+?)\s+(\d+)\/*(\d+)*\s+", r"^(\S.+?)\s+(\d+)(?:\/?(\d+))?\s+",
               r"^(.*)\s+(?:(\d+)\/)?(\d+)\b.*\s+[\d.]+:"]
    FRAMES = [r"^\s*(\w+)\s*(.+) \((.*)\)", r"^\s*(\w+)\s*(.+) \((\S*)\)",
              r"^\s*(\w+)\s*(.+) \(([^)]*)\)"]

    def test_names_in_perf_script(self):
        """By the rules of stackcollapse-perf.pl, speedscope and Firefox Profiler."""
        comms = ["[ET_NET 0]", "", "#1 worker", "12 34", "a/b:c [k]", "#", "a"]
        want = ["[ET_NET_0]", ":101", "_1_worker", "12_34", "a/b:c_[k]", "_", "a"]
        paths = ["/x/a b", "/x/cat (deleted)", "/x/(a) #b", "/x/c"]
        files = self.files(*((i + 1, b"", p) for i, p in enumerate(paths)))
        more = {"stack_map_bin": mkmap.make([(i + 1, 1, [self.word(i + 1, 5)], 3)
                                             for i in range(len(paths))], [files])}
        for first in range(len(comms)):
            dat = self.dat(comms=[])
            for i in range(len(comms)):
                pid = 100 + (first + i) % len(comms)
                self.add(dat, "sched_switch", "swapper/0", 0, 120, 0, comms[pid - 100], pid, 120,
                         pid=0)
                self.event(dat, "kfree", 1, stack="A", pid=pid)
                dat.add(self.now, "user_stack_id", 1 + i % len(paths), 7, pid=pid)
            out = self.tool(dat, *PERF, "-q", "-e", "kfree", more=more)[0]
            samples = [s.split("\n") for s in out.split("\n\n")[:-1]]
            self.assertEqual(len(samples), len(comms))
            for i, lines in enumerate(samples):
                for head in self.READERS:
                    self.assertEqual(re.match(head, lines[0])[1].strip(),
                                     want[(first + i) % len(want)], lines[0])
                self.assertNotEqual(lines[0][0], "#")
                for frame in self.FRAMES:
                    got = re.match(frame, lines[2])
                    self.assertEqual(got[2], "[unknown]", lines[2])
                    self.assertEqual(got[3], re.sub(r"[ ()]", lambda c: {" ": "_", "(": "["}.get(
                        c[0], "]"), paths[i % len(paths)]))

    def test_stackcollapse(self):
        """FlameGraph's own program, if it is here."""
        program = shutil.which("stackcollapse-perf.pl")
        if not program:
            self.skipTest("no stackcollapse-perf.pl")
        dat = self.dat(comms=[(1, "#1 a"), (2, "b c")])
        for pid in (1, 2):
            self.event(dat, "kfree", 1, stack="AB", pid=pid)
        out = self.tool(dat, *PERF, "-q")[0]
        done = subprocess.run(["perl", program], input=out.encode(), capture_output=True, check=True)
        self.assertEqual(sorted(done.stdout.decode().splitlines()),
                         ["_1_a;do_exit;schedule 1", "b_c;do_exit;schedule 1"])

    def test_units(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A")
        self.switch(dat, 5, 0, stack="AB")
        self.switch(dat, 0, 5, after=100, stack="AB")
        pprof = Pprof()
        pprof.dir = self.dir
        for args, unit in [([], "count"), (["-w", "bytes_alloc"], "bytes"),
                           (["-w", "off-cpu"], "microseconds"), (["-w", "prev_prio"], "count")]:
            self.assertEqual(pprof.values(self.tool, dat, *args)[0][-1][1], unit)

    def test_nothing_to_show(self):
        """An error, which says what to record."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8)
        for form in [FOLDED, PERF]:
            self.assertIn("has no stacks\n", self.tool(dat, *form, rc=1)[1])
            err = self.tool(dat, *form, "-w", "off-cpu", rc=1)[1]
            self.assertIn("has no stacks of such events (record with -e sched_switch)\n", err)
        dat = self.dat()
        self.switch(dat, 5, 6, stack="A")
        for form in [FOLDED, PERF]:
            err = self.tool(dat, *form, "-w", "leaks", rc=1)[1]
            self.assertIn("has no stacks of such events (record with -e kmem)\n", err)
