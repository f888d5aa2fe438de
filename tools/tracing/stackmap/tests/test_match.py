# SPDX-License-Identifier: GPL-2.0
"""Recordings: which stack is that of an event, and which events count."""

import os
import subprocess

import mkdat
import mkmap
from common import FOLDED, MAP_FOLDED, PERF, TEXT, TOOL, RecordingCase, golden_map, golden_text


class Match(RecordingCase):
    """The stacks of events."""

    def test_full_stacks(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.event(dat, "kmalloc", 1, 8, stack="AB", cpu=1)
        self.event(dat, "kfree", 1, stack="CB")
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 2, "do_exit;weak_one": 1})
        self.assertEqual(self.folded(dat, "-e", "kfree"), {"do_exit;weak_one": 1})
        self.assertEqual(self.folded(dat, "-e", "kmem:kmalloc,kmem:kfree"), self.folded(dat))
        self.assertEqual(self.folded(dat, "-e", "kmem"), self.folded(dat))
        self.assertEqual(self.folded(dat, "--cpu", "1-3"), {"do_exit;schedule": 1})
        self.assertEqual(self.all_forms(dat), 3)

    def test_events_nest(self):
        """An interrupt comes between an event and its stack, and the unwinder may be traced."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8)
        self.event(dat, "kfree", 1, flags=8, preempt=1, stack="CB")
        for _ in range(40):
            self.event(dat, "kfree", 1, flags=8, preempt=2, stack="A")
        self.stack(dat, "AB")
        self.event(dat, "kfree", 5, pid=2)
        self.stack(dat, "A", pid=3)
        out, err = self.tool(dat, *FOLDED, "-e", "kmalloc")
        self.assertEqual(out, "do_exit;schedule 1\n")
        self.assertNotIn("have no event", err)
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 1, "do_exit;weak_one": 1,
                                            "schedule": 41, "[no_stack]": 1})
        self.assertEqual(self.folded(dat, "-e", "stacktrace"), {"schedule": 1})

    def test_gap(self):
        """Behind a gap, a stack is not that of an event before it."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.event(dat, "kmalloc", 1, 8)
        self.now += 1
        dat.add(self.now, "kernel_stack", 1, [self.A], lost=True)
        out, err = self.tool(dat, *FOLDED)
        self.assertEqual(sorted(out.splitlines()), ["[no_stack] 1", "do_exit;schedule 1"])
        self.assertIn("1 gaps", err)
        self.assertIn("1 stacks have no event", err)

    def test_ids(self):
        """Definitions behind the use, on another CPU, changed, missing, and those of the map."""
        dat = self.dat()
        for id_, before in [(5, True), (6, False)]:
            if before:
                self.add(dat, "stack_def", id_, 2, [self.A, self.B])
            self.event(dat, "kmalloc", 1, 8)
            self.add(dat, "stack_id", id_)
            if not before:
                self.add(dat, "stack_def", id_, 2, [self.C, self.B], cpu=1)
        for _ in range(3):
            self.event(dat, "kmalloc", 1, 8)
            self.add(dat, "stack_id", 7)
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 1, "do_exit;weak_one": 1,
                                            "[stack_not_defined]": 3})
        for form in [FOLDED, PERF]:
            self.assertIn(": 3 stacks have ids that nothing defines: record with -O stackmap-define",
                          self.tool(dat, *form)[1])
        out = self.tool(dat, *PERF, "-q")[0]
        self.assertIn("weak_one", out.split("\n\n")[1])
        golden = {"stack_map_bin": golden_map("le64")}
        self.assertIn("schedule;do_exit;schedule", self.folded(dat, more=golden))
        # An id that comes to mean another stack.
        self.add(dat, "stack_def", 5, 1, [self.C])
        self.event(dat, "kmalloc", 1, 8)
        self.add(dat, "stack_id", 5)
        os.remove(os.path.join(self.dir, "dir/stack_map_bin"))
        want = {"do_exit;schedule": 1, "do_exit;weak_one": 1, "[stack_not_defined]": 3,
                "weak_one": 1}
        self.assertEqual(self.folded(dat), want)
        # The map has the last of them.
        self.assertEqual(self.folded(dat, more={"stack_map_bin": mkmap.make([(5, 1, [self.C])])}),
                         want)

    def test_split(self):
        dat = self.dat()
        self.add(dat, "stack_def", 5, 1, [self.C])
        self.add(dat, "stack_def", 6, 1, [self.B])
        self.event(dat, "kmalloc", 1, 8)
        self.add(dat, "stack_split3", 5, 6, TEXT + 0x100, self.A, 5)
        # The address that was hit is none of a return.
        self.assertEqual(self.folded(dat), {"schedule;schedule;do_exit;schedule;weak_one": 1})
        self.event(dat, "kmalloc", 1, 8)
        self.add(dat, "stack_split", 5, 6, TEXT + 0x100)
        self.assertEqual(self.folded(dat), {"schedule;schedule;do_exit;schedule;weak_one": 1,
                                            "do_exit;schedule;weak_one": 1})

    def test_last_boot(self):
        """The events are of the boot before, in which the kernel and a module were elsewhere."""
        shift, gone = 0x5000000, 0x7000000
        dat = self.dat()
        self.add(dat, "stack_def", 5, 2, [self.C + shift, self.B + shift])
        for name, *args in [("kernel_stack", 2, [self.A + shift, self.B + shift]), ("stack_id", 5),
                            ("stack_split", 7, 5, TEXT + 0x100 + shift),
                            ("kernel_stack", 2, [self.A + gone, self.B + shift])]:
            self.event(dat, "kmalloc", 1, 8)
            self.add(dat, name, *args)
        more = {"stack_map_bin": mkmap.make([(7, 1, [self.A])]),
                "moved": f"{TEXT + shift:x} {TEXT + shift + 0x100000:x} {TEXT:x}\n"}
        self.assertEqual(self.folded(dat, more=more), {
            "do_exit;schedule": 1, "do_exit;weak_one": 1, "do_exit;schedule;schedule;schedule": 1,
            "do_exit;[not_loaded]": 1})

    def test_wrong_map(self):
        dat = self.dat()
        self.add(dat, "stack_def", 7, 1, [self.C])
        self.event(dat, "kmalloc", 1, 8)
        self.add(dat, "stack_id", 7)
        err = self.tool(dat, *FOLDED, rc=1, more={"stack_map_bin": golden_map("le64")})[1]
        self.assertIn("1 ids are other stacks in the map", err)
        other = golden_text("kallsyms64").replace("ffffffff81", "ffffffff8f")
        dat.kallsyms = golden_text("kallsyms64")
        os.remove(os.path.join(self.dir, "dir/stack_map_bin"))
        self.assertIn("of another boot", self.tool(dat, *FOLDED, rc=1, more={"kallsyms": other})[1])

    def test_kinds_without_stacks(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.event(dat, "function", 1, 2)
        self.event(dat, "kmalloc", 1, 8)
        for form in [FOLDED, PERF]:
            out, err = self.tool(dat, *form)
            self.assertIn("1 events left out, of kinds that have no stacks", err)
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 1, "[no_stack]": 1})

    def test_field_before_the_record(self):
        dat = self.dat()
        self.switch(dat, 1, 2, stack="A")
        text = mkdat.format_text
        self.addCleanup(setattr, mkdat, "format_text", text)
        mkdat.format_text = lambda *args: text(*args).replace("prev_comm[16];\toffset:8;",
                                                              "prev_comm[16];\toffset:3000000000;")
        self.assertEqual(self.folded(dat), {"schedule": 1})

    def test_stacks_without_an_event(self):
        """They are samples, but for the second one of an event, and behind a gap."""
        dat = self.dat()
        for _ in range(3):
            self.stack(dat, "AB")
        self.stack(dat, "CB", pid=2, cpu=1)
        self.add(dat, "stack_def", 5, 1, [self.C])
        self.add(dat, "stack_id", 5, flags=8)
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 3, "do_exit;weak_one": 1,
                                            "weak_one": 1})
        self.assertEqual(self.all_forms(dat, "-e", "stacktrace"), 5)
        self.assertEqual(self.folded(dat, "-e", "stacktrace", "--pid", "2"), {"do_exit;weak_one": 1})
        self.assertRegex(self.tool(dat, *PERF, "-q")[0], r": stacktrace: -\n")
        dat = self.dat()
        syms = "ffffffff81000300 t event_triggers_post_call\nffffffff81000380 t end\n"
        self.FULL = dict(self.FULL, T=[TEXT + 0x310, self.A, self.B])
        for _ in range(2):
            self.event(dat, "kmalloc", 1, 8, stack="AB")
            self.event(dat, "kfree", 1, flags=8, stack="CB")
            self.stack(dat, "T")
        self.stack(dat, "T")
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.stack(dat, "CB")
        out, err = self.tool(dat, *FOLDED, more={"kallsyms": golden_text("kallsyms64").replace(
            "ffffffff81000200 T _etext\n", "ffffffff81000200 T trace_event_buffer_commit\n" + syms +
            "ffffffff81000400 T event_triggers_call\n")})
        self.assertEqual(sorted(out.splitlines()), ["do_exit;schedule 4", "do_exit;weak_one 3"])
        self.assertNotIn("no event", err)
        dat.add(self.now + 1, "kernel_stack", 1, [self.A], lost=True)
        self.assertIn("1 stacks have no event, it was lost", self.tool(dat, *FOLDED)[1])

    def test_stacks_that_end_with_ones(self):
        """As before Linux 5.2, with words of 64 and of 32 bits."""
        for bits in (64, 32):
            ones = (1 << bits) - 1
            dat = self.dat(kallsyms="81000000 t f\n81000100 t g\n81000200 t h\n")
            self.event(dat, "kmalloc", 1, 8)
            dat.add(self.now, "kernel_stack", 3, [0x81000010, 0x81000110, ones])
            dat.add(self.now, "user_stack", 7, [0x5500, 0x5600, ones])
            path = self.file("one.dat", dat.bytes())
            self.assertEqual(self.run_tool(*FOLDED, "-q", path)[0],
                             "0x5600[user];0x5500[user];g;f 1\n")
            for table, values in [("SIZES", {"unsigned long": 4, "long": 4}),
                                  ("CODES", {"unsigned long": "I", "long": "i"})]:
                self.addCleanup(setattr, mkdat, table, getattr(mkdat, table))
                setattr(mkdat, table, dict(getattr(mkdat, table), **values))


class Select(RecordingCase):
    """Instances, and the options that select events."""

    def test_instances(self):
        dat = self.dat(instances=("x", "y"))
        for name, stack in [("", self.A), ("x", self.B), ("y", self.C)]:
            self.add(dat, "stack_def", 5, 1, [stack], instance=name)
            self.event(dat, "kmalloc", 1, 8, instance=name)
            self.add(dat, "stack_id", 5, instance=name)
        self.assertEqual(self.folded(dat), {"do_exit": 1, "schedule": 1, "weak_one": 1})
        self.assertEqual(self.folded(dat, "-i", "y"), {"weak_one": 1})
        self.assertEqual(self.folded(dat, "-i", ""), {"schedule": 1})
        self.assertIn("has no instance z", self.tool(dat, *FOLDED, "-i", "z", rc=1)[1])

    def test_many_instances(self):
        names = [f"i{n}" for n in range(70)]
        dat = self.dat(instances=names)
        self.event(dat, "kmalloc", 1, 8, stack="A", instance="i3")
        self.assertIn("more than 64 instances", self.tool(dat, *FOLDED, rc=1)[1])
        self.assertEqual(self.folded(dat, "-i", "i3"), {"schedule": 1})
        self.assertIn("2 records", self.run_tool("-i", "i3", os.path.join(self.dir, "dir/trace.dat"))[1])
        self.run_tool(*MAP_FOLDED, "-i", "i3", self.file("map", golden_map("le64")), rc=2)

    def test_selections(self):
        dat = self.dat()
        for pid, stack in [(1, "A"), (2, "AB"), (2, "CB")]:
            self.event(dat, "kmalloc", 1, 8, stack=stack, pid=pid, after=1000000)
        self.assertEqual(self.folded(dat, "--pid", "1"), {"schedule": 1})
        self.assertEqual(self.folded(dat, "--comm", "t*"), {"do_exit;schedule": 1,
                                                            "do_exit;weak_one": 1})
        self.assertEqual(self.folded(dat, "--time", "2.5,3.5"), {"do_exit;schedule": 1})
        self.assertIn("has no stacks of such events", self.tool(dat, *FOLDED, "--time", ",0", rc=1)[1])
        self.assertIn("ends before it begins", self.tool(dat, *FOLDED, "--time", "2,0", rc=2)[1])
        self.assertEqual(self.folded(dat, "--grep", "weak"), {"do_exit;weak_one": 1})
        out = self.tool(dat, *PERF, "-q", "--grep", "weak")[0]
        self.assertEqual(out.count("\n\n"), 1)
        for form in [FOLDED, PERF]:
            for events in ["x", "kmalloc,x", "x,kmalloc"]:
                self.assertIn("has no event x\n", self.tool(dat, *form, "-e", events, rc=1)[1])
            err = self.tool(dat, *form, "-e", "kfree", rc=1)[1]
            self.assertIn("has no stacks of such events", err)
        for option in [["-e", "x"], ["--pid", "1"], ["--time", "1,"], ["-w", "x"], ["-w", "off-cpu"],
                       ["-w", "leaks"], ["-w", "outstanding=a,b,c"], ["--comm", "x"], ["--cpu", "1"]]:
            path = self.file("map", golden_map("le64"))
            err = self.run_tool(*MAP_FOLDED, *option, path, rc=2)[1]
            self.assertIn("needs a recording", err)
            self.run_tool("map", *option, path, rc=2)
            self.assertIn("map: not a recording", self.run_tool("stacks", *option, path, rc=1)[1])
        for option in [["--pid", "x"], ["--time", "x,"], ["-w", "outstanding=a,b"],
                       ["-w", "off-cpu:x"], ["--by", "x"], ["--by", ""], ["--by", "cpu"], ["--pid", "1-"], ["--cpu", "1,-"]]:
            self.tool(dat, *FOLDED, *option, rc=2)


class Damage(RecordingCase):
    """What is no recording, or no whole one."""

    def test_of_another_user(self):
        """Who may not read it is told so."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.tool(dat, "report")
        top = os.path.join(self.dir, "dir")
        limited = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
        if os.geteuid() or subprocess.run([*limited, "true"], check=False).returncode:
            self.skipTest("this needs root")
        for path in top + "/trace.dat", top:
            os.chmod(path, 0)
            for form in ["report"], ["stacks"], FOLDED:
                for name in top, top + "/trace.dat":
                    done = subprocess.run([*limited, TOOL, *form, name], capture_output=True, check=False)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn(b": Permission denied\n", done.stderr, (path, form, name))

    def test_damage(self):
        """A recording that is cut off or changed: an error, or what is whole; never a crash."""
        dat = self.dat(kallsyms="ffffffff81000000 T _text\n")
        for i in range(300):
            self.event(dat, "kmalloc", i, 8, stack="AB", cpu=i % 2)
        data = dat.bytes()
        for cut in [0, 5, 10, 20, 500, len(data) // 2, len(data) - 4096, len(data) - 1]:
            err = self.tool(data[:cut], *FOLDED, rc=1)[1]
            self.assertRegex(err, "trace.dat")
        # What stays open is no leak, also of two.
        both = self.file("new", data[:-1]), self.file("old", data[:-1])
        err = self.run_tool("diff", *both, rc=1)[1]
        self.assertEqual(err.count(": is cut off\n"), 2, err)
        self.assertEqual(sum(self.folded(dat).values()), 300)
        for name, whole in [("stack_map_bin", golden_map("le64")),
                            ("kallsyms", golden_text("kallsyms64").encode())]:
            self.assertEqual(sum(self.folded(dat, more={name: whole}).values()), 300)
            err = self.tool(dat, *FOLDED, more={name: whole[:-7]}, rc=int(name != "kallsyms"))[1]
            self.assertRegex(err, f"dir/{name}: .*(truncated|cut off)")
            self.tool(dat, *FOLDED, more={name: whole})

    def test_what_is_no_recording(self):
        """All of the magic counts, and nothing but a file is opened."""
        path = self.file("map", b"\x17 is no trace.dat")
        self.assertIn("bad magic", self.run_tool(path, rc=1)[1])
        self.file("stack_map_bin", golden_map("le64"))
        dat = os.path.join(self.dir, "trace.dat")
        os.mkfifo(dat)
        for form in [FOLDED, ["report"], []]:
            self.assertIn(dat + ": not a trace.dat", self.run_tool(*form, self.dir, rc=1)[1])
        self.assertTrue(self.run_tool(*MAP_FOLDED, self.dir)[0])
