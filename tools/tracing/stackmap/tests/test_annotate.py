# SPDX-License-Identifier: GPL-2.0
"""annotate: the frames of ids in a text."""

import subprocess

import mkmap
from common import (HEAD, KALLSYMS, SANITIZED, TEXT, TOOL, Case, Tracefs, golden_map, golden_path,
                    golden_text)


class Ids(Case):
    """Which ids are found, and what is printed there."""

    SPLIT_TRACE = (" bash-1 [000] d.h1. 1.000001: <stack_split 7 @ffffffff81000148 4>\n"
                   " <idle>-0 [000] d.h1. 1.000002: <stack_split 7 @ffffffff81000148 4"
                   " @1234 524289>\n"
                   " bash-1 [000] d.h1. 1.000003: <stack_id 4>\n"
                   " => what the kernel said\n")
    REPORT = golden_text("report.txt").splitlines(True)[2:5]

    def annotated(self, text):
        """The text with frames, and whether it has stacks."""
        path = self.file("map", golden_map("le64"))
        done = subprocess.run([TOOL, "annotate", "-q", "-k", KALLSYMS, "-", path], input=text.encode(),
                              capture_output=True, timeout=60, check=False)
        return done.stdout.decode(), 1 - done.returncode

    def test_annotate_twice_is_once(self):
        path = self.file("map", golden_map("le64"))
        once = golden_text("annotated.txt")
        out = self.run_tool("annotate", "-q", "-k", KALLSYMS, "-", path, stdin=once.encode())[0]
        self.assertEqual(out, once)

    def test_annotate_loses_no_line(self):
        path = self.file("map", golden_map("le64"))
        text = golden_text("trace.txt")
        out = self.run_tool("annotate", "-q", "-k", KALLSYMS, golden_path("trace.txt"), path)[0]
        for line in text.splitlines():
            if not line.startswith(" => ") or "kernel_said" in line:
                self.assertIn(line + "\n", out)

    def test_annotate_odd_text(self):
        path = self.file("map", golden_map("le64"))
        for text in ["<stack_id ", "<stack_id >\n", "<stack_id -1>\n", "<stack_id 7",
                     "<stack_id 99999999999999999999>\n", "<stack_id 4294967303>\n"]:
            self.assertEqual(self.annotated(text), (text, 0))
        out = self.run_tool("annotate", "-q", "-", path, stdin=b"<stack_id 7>")[0]
        self.assertTrue(out.startswith("<stack_id 7>\n => 0x"), out)
        self.assertIn("No such file", self.run_tool("annotate", "/nonexistent", path, rc=1)[1])

    def test_annotate_joins_parts(self):
        path = self.file("map", golden_map("be64"))
        seven = " => schedule+0x0/0x80\n => do_exit+0xe0/0xe0\n => schedule+0x48/0x80\n"
        hit, four = " => schedule+0x48/0x80\n", " => weak_one+0x0/0x80\n"
        other = " => do_exit+0x7f/0xe0\n => [FTRACE TRAMPOLINE]\n => _text+0x20/0x20\n"
        # In the second part, the first frame is a return address.
        behind = " => schedule+0x80/0x80\n"
        lines = self.SPLIT_TRACE.splitlines(True)
        out = self.run_tool("annotate", "-k", KALLSYMS, "-", path, stdin=self.SPLIT_TRACE.encode())[0]
        self.assertEqual(out, lines[0] + seven + hit + behind + lines[1] + seven + hit + behind +
                         " => 0x1234\n" + other + lines[2] + four)
        # The format of libtraceevent, and a part that is not in the map.
        for text, want in [("stack_split3: <stack_split 7 @ffffffff81000148 4>\n",
                            seven + hit + behind),
                           ("<stack_split 7 @ffffffff81000148 5> (stale)\n",
                            " => [not in this map]\n")]:
            out = self.run_tool("annotate", "-q", "-k", KALLSYMS, "-", path, stdin=text.encode())[0]
            self.assertEqual(out, text + want)

    def test_annotate_odd_splits(self):
        many = "".join(f" @{i:x} 7" for i in range(1, 20))
        for text in ["<stack_split ", "<stack_split 7>\n", "<stack_split 7 @>\n",
                     "<stack_split 7 @12>\n", "<stack_split 7 @12 >\n", "<stack_split 7 @12 7",
                     "<stack_split 7 12 7>\n", "<stack_split 7 @-1 7>\n",
                     "<stack_split 7 @11111111111111111 7>\n", "<stack_split 7 @0 -1>\n",
                     "<stack_split 7 @12 4 @0 -1>\n", "<stack_split 7 @12 4 @0 7>\n",
                     "<stack_split 7 @12 4 @5 7 @6 7>\n", "<stack_split 7 @12 -2>\n",
                     "<stack_id 7 @12 7>\n", f"<stack_split 7{many}>\n"]:
            self.assertEqual(self.annotated(text), (text, 0))

    def test_trace_cut_anywhere(self):
        path = self.file("map", golden_map("le64"))
        text = self.SPLIT_TRACE
        whole = [i + 1 for i, c in enumerate(text) if c == ">" and "<stack" in text[i - 60:i]
                 and text[i + 1] == "\n"]
        for cut in range(0, len(text), 7 if SANITIZED else 2):
            done = subprocess.run([TOOL, "annotate", "-q", "-", path], input=text[:cut].encode(),
                                  capture_output=True, check=False)
            got = any(end <= cut for end in whole)
            self.assertEqual(done.returncode, int(not got), text[:cut])

    def test_report_of_trace_cmd(self):
        two, three = self.REPORT[1:]
        for text, want in [(two, 3 + 2), (three, 3 + 2 + 1 + 3)]:
            out, ok = self.annotated(text)
            self.assertEqual((out.count(" => "), out.startswith(text), ok), (want, True, 1))
        path = self.file("map", golden_map("le64"))
        for last in [4 - 2 ** 31, 4 + 2 ** 31]:
            text = three.replace("@1234 7", f"@1234 {last}") * 3
            out, err = self.run_tool("annotate", "-k", KALLSYMS, "-", path, stdin=text.encode(), rc=1)
            self.assertIn("3 lines have ids that cannot be read", err)
            self.assertEqual(out, text)

    def test_what_only_looks_like_an_id(self):
        head, cmd = " bash-123     [000] d..2.  1000.000003: ", " bash-123   [000]  12.345678: "
        for line in ["      <stack_id 4>-123     [000] d..2.  1000.000003: sched_waking: pid=1",
                     "   x: <stack_id 4>-123     [000] d..2.  1000.000003: sched_waking: pid=1",
                     "   x 1: <stack_id-123     [000] d..2.  1000.000003: sched_waking: pid=1",
                     head + "tracing_mark_write: <stack_id 4>",
                     head + "tracing_mark_write: x <stack_id 4> y",
                     head + "tracing_mark_write: 1: <stack_id 4>",
                     head + "tracing_mark_write: stack_id: <stack_id 4>",
                     head + "0xffffffff81000148: <stack_id 4>",
                     head + "x <stack_split 7 @ffffffff81000148 4>",
                     head + "tracing_mark_write: two lines\n<stack_id 4>",
                     head + "<stack_id 4> x", head + "<stack_id 4>(stale)",
                     "tracing_mark_write: step 3: <stack_id 4>", "kfree: x 5: <stack_id 4>",
                     cmd + "print:                tracing_mark_write: <stack_id 4>",
                     cmd + "print:                tracing_mark_write: stack_id: <stack_id 4>",
                     cmd + "kmalloc:              <stack_id 4>"]:
            self.assertEqual(self.annotated(line + "\n"), (line + "\n", 0))

    def test_ids_under_each_kind_of_head(self):
        four = " => weak_one+0x0/0x80\n"
        for head in ["      <stack_id 7>-123     [000] d..2.  1000.000003: ",
                     "            bash-123     (    120) [000] .....  1000.000003: ",
                     "            bash-123     (-------) [000]  1000.000003: ",
                     "            bash-123     [000] d..2.    1234567: ",
                     "    bash-123       0d..2.   12us : ", "    bash-123       0dNh2. 2000us!: ",
                     "            bash     123   0 1 00000000 00000000 [000004d2] 1.234ms (+0.001ms): ",
                     "          <idle>-0     [001]    12.345678: stack_id:             ",
                     "  x-1 [0] 1:  -77    [001] d..3.    12.345678901: stack_id:             ",
                     "  other:           <idle>-0     [001]    12.345678: stack_id:             ",
                     "          <idle>-0     [001]    12.345678: (+0)     stack_id:             ",
                     "  other:           <idle>-0     [001]    12.345678: (+1234567) stack_id:     ",
                     "of_instance_123456:   <idle>-0    [001]    12.345678: stack_id:           ",
                     " => abcdefghijkl-5       [000] d..2.  1000.000003: ",
                     ""]:
            for end in ["\n", " (stale)\n"]:
                line = head + "<stack_id 4>" + end
                self.assertEqual(self.annotated(line), (line + four, 1))

    def test_without_context(self):
        four = " => weak_one+0x0/0x80\n"
        text = "tracing_mark_write: then came 3: x\n<stack_id 4>\n"
        self.assertEqual(self.annotated(text), (text + four, 1))

    def test_a_task_named_like_a_frame(self):
        head = " => abcdefghijkl-5       [000] d..2.  1000.000003: "
        text = "  bash-6  [000] d..2.  1000.000002: <stack_id 4>\n => f\n" + head + "kmalloc: x\n"
        self.assertEqual(self.annotated(text)[0], text.replace("=> f", "=> weak_one+0x0/0x80"))

    def test_line_ends_of_dos(self):
        text = self.SPLIT_TRACE
        out, found = self.annotated(text.replace("\n", "\r\n"))
        self.assertEqual((out.replace("\r", ""), found), self.annotated(text))

    def test_nul_in_a_trace(self):
        nul = " bash-123 [000] d..2.  1.000003: tracing_mark_write: a\0b\n"
        line = " bash-123 [000] d..2.  1.000003: <stack_id 4>\n"
        four = " => weak_one+0x0/0x80\n"
        for before in [nul, "\0\n", " \0ash-123 [000] d..2. 1: x\n"]:
            self.assertEqual(self.annotated(before + line), (before + line + four, 1))
        for line in [line.replace("4>", "4>\0"), "\0" + line]:
            self.assertEqual(self.annotated(line), (line, 0))


class Filter(Case):
    """A pipe: what goes in comes out at once."""

    """annotate."""

    def test_streams(self):
        """What goes in comes out at once."""
        path = self.file("map", golden_map("le64"))
        with subprocess.Popen([TOOL, "annotate", "-q", "-k", KALLSYMS, "-", path], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as p:
            for _ in range(3):
                p.stdin.write((HEAD + "<stack_id 4>\n").encode())
                p.stdin.flush()
                self.assertIn(b"<stack_id 4>", p.stdout.readline())
                self.assertEqual(p.stdout.readline(), b" => weak_one+0x0/0x80\n")
            p.stdin.close()
            self.assertEqual(p.wait(10), 0)

    def test_text_without_stacks(self):
        path = self.file("map", golden_map("le64"))
        for text in ["", "root:x:0:0\n", HEAD + "sched_switch: x\n"]:
            out, err = self.run_tool("annotate", "-", path, stdin=text.encode(), rc=1)
            self.assertEqual(out, text)
            self.assertIn("-: has no ids of stacks", err)

    def test_full_disk(self):
        """It ends, though more lines come."""
        path = self.file("map", golden_map("le64"))
        for line in [HEAD + "<stack_id 4>", "no ids"]:
            with subprocess.Popen(["yes", line], stdout=subprocess.PIPE) as yes, \
                    open("/dev/full", "wb") as full:
                try:
                    done = subprocess.run([TOOL, "annotate", "-q", "-", path], stdin=yes.stdout,
                                          stdout=full, stderr=subprocess.PIPE, timeout=10,
                                          check=False)
                finally:
                    yes.kill()
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, b"stackmap_dump: stdout: No space left on device\n")


class Live(Tracefs):
    """The map of this machine, which grows."""

    def test_annotate_a_map_that_grows(self):
        """What an event has is in the map before. What it does not have then comes no more."""
        self.make_map()
        stacks = mkmap.golden_stacks(TEXT, 0xFFFFFFFFC0201000)
        with self.popen("annotate", "-q", "-k", KALLSYMS, "-", stdin=subprocess.PIPE) as p:
            for ident in range(10, 15):
                stacks.append((ident, 1, [TEXT + 0x180]))
                self.file("stack_map_bin", mkmap.make(stacks))
                for i in [ident, 4]:
                    p.stdin.write(f"{HEAD}<stack_id {i}>\n".encode())
                    p.stdin.flush()
                    self.assertIn(b"<stack_id", p.stdout.readline())
                    self.assertEqual(p.stdout.readline(), b" => weak_one+0x0/0x80\n")
            p.stdin.write((f"{HEAD}<stack_id 99>\n" * 400).encode())
            p.stdin.close()
            self.assertEqual(p.stdout.read().count(b"[not in this map]"), 400)
            self.assertEqual(p.wait(10), 0)
