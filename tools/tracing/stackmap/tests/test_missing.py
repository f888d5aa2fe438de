# SPDX-License-Identifier: GPL-2.0
"""Recordings that lack something, and how the tool knows it."""

import bz2
import gzip
import json
import lzma
import os
import re
import unittest.mock

import mkdat
from common import FOLDED, MAP_FOLDED, PERF, SANITIZED, RecordingCase, golden_map


def stats(cpu, nr_read=0, left=0, oldest=0, dropped=0):
    """What the kernel counts of a CPU, as trace-cmd writes it."""
    return (f"CPU: {cpu}\nentries: {left}\noverrun: 0\ncommit overrun: 0\nbytes: 0\n"
            f"oldest event ts: {oldest // 1000000:5}.{oldest % 1000000:06}\nnow ts:     9.000000\n"
            f"dropped events: {dropped}\nread events: {nr_read}\n\n")


class Ends(RecordingCase):
    """Records of a CPU are missing before its first or behind its last one."""

    def two_sleeps(self, at, **args):
        """Task 7 sleeps twice on CPU 1, 900 us. CPU 0 has records at that time."""
        dat = self.dat(**args)
        where = {"cpu": 1, "instance": args.get("instances", [""])[0]}
        if at < 1000100:
            self.on_cpu_0(dat, at, where)
        self.now = 1000100
        self.switch(dat, 7, 0, stack="AB", after=0, **where)
        self.switch(dat, 0, 7, after=900, **where)
        if at > self.now:
            self.on_cpu_0(dat, at, where)
        self.now = 1004000
        self.switch(dat, 7, 0, stack="CB", after=0, **where)
        self.switch(dat, 0, 7, after=900, **where)
        return dat

    def on_cpu_0(self, dat, at, where):
        """Two records."""
        self.now = at
        self.switch(dat, 0, 9, after=0, **dict(where, cpu=0))
        self.switch(dat, 9, 0, state=16, after=10, **dict(where, cpu=0))

    BOTH = "do_exit 900\ndo_exit;weak_one 900\n"

    def off_cpu(self, dat, rc=0, **files):
        """The times, and what was said."""
        return self.tool(dat, *FOLDED, "-w", "off-cpu", rc=rc, more=files)

    def test_overwritten_by_trace_cmd(self):
        """Of what was read, the first records are missing: trace-cmd record -m."""
        for nr_read, left, out in [(2, 0, self.BOTH), (0, 2, self.BOTH), (1, 1, self.BOTH),
                                   (3, 0, "do_exit;weak_one 900\n")]:
            dat = self.two_sleeps(1002000, stats=stats(0, nr_read, left, oldest=1002000))
            got, err = self.off_cpu(dat)
            self.assertEqual(got, out, (nr_read, left))
            self.assertEqual(" 1 times left out: records were lost" in err, out != self.BOTH)
        self.assertIn(" 1 buffer entries lost", err)
        # It is at the beginning: what comes later counts.
        dat = self.two_sleeps(1000000, stats=stats(0, 99999))
        self.assertEqual(self.off_cpu(dat)[0], self.BOTH)
        # The kernel's own mark of the first record stays.
        dat = self.two_sleeps(1002000, stats=stats(1, 4))
        dat.cpus[""][0][0] = dat.cpus[""][0][0][:2] + (True,)
        self.assertEqual(self.off_cpu(dat)[0], "do_exit;weak_one 900\n")

    def test_end(self):
        """A full buffer that is not overwritten; a recorder that has ended: CPU 0 lacks the end."""
        for more, offset in [({"dropped": 5, "nr_read": 2}, ""), ({"dropped": 5}, ""),
                             *(({"left": 5, "oldest": 1002100, "nr_read": 2}, offset)
                               for offset in ("", "1790000000000000", "-300000000"))]:
            dat = self.two_sleeps(1002000, stats=stats(0, **more), offset=offset)
            out, err = self.off_cpu(dat)
            self.assertEqual(out, "do_exit 900\n", (more, offset))
            self.assertIn(" 1 gaps", err)
            self.assertIn(" 5 buffer entries lost", err)
            self.assertIn(" 1 times left out", err)
        # Also what has not ended then.
        dat = self.two_sleeps(1000000, stats=stats(1, dropped=5))
        self.switch(dat, 7, 0, stack="AB", cpu=1)
        self.event(dat, "kfree", 1, after=500)
        self.assertEqual(self.off_cpu(dat)[0], self.BOTH)

    def test_instances(self):
        """Each has its own counts."""
        text = stats(0, dropped=7) + "\nBuffer: x\n\n" + stats(0)
        dat = self.two_sleeps(1002000, stats=text, instances=["x"])
        self.switch(dat, 5, 0)
        self.assertEqual(self.off_cpu(dat)[0], self.BOTH)
        dat = self.two_sleeps(1002000, stats=text.replace("Buffer: x", "Buffer: y"), instances=["x"])
        self.assertEqual(self.off_cpu(dat)[0], self.BOTH)
        text = stats(0) + "\nBuffer: x\n\n" + stats(0, dropped=7) + stats(5, 7) + "CPU: 0"
        dat = self.two_sleeps(1002000, stats=text, instances=["x"])
        self.assertEqual(self.off_cpu(dat)[0], "do_exit 900\n")
        self.assertEqual(self.off_cpu(dat, lost="")[0], self.BOTH)

    def test_file(self):
        """What record and save have written goes before that."""
        for lost, out in [("", self.BOTH), ("0 8\n", "do_exit 900\n"), ("7 8\n0 0\nx", self.BOTH),
                          ("1 8\n", self.BOTH)]:
            dat = self.two_sleeps(1002000, stats=stats(0, 99))
            got, err = self.off_cpu(dat, lost=lost)
            self.assertEqual(got, out)
            self.assertEqual(" 8 buffer entries lost" in err, bool(re.search("[01] 8", lost)))

    def test_no_records(self):
        """A CPU may be idle, or not traced."""
        dat = self.two_sleeps(1002000, cpus=4)
        self.assertIn(" 2 CPUs have no records: if they", self.off_cpu(dat)[1])
        self.assertNotIn("have no records", self.tool(dat, *FOLDED)[1])
        self.assertNotIn("have no records", self.off_cpu(dat, lost="")[1])
        # Its recorder has ended before it has read any.
        self.assertNotIn("do_exit", self.off_cpu(dat, lost="2 7\n", rc=1)[0])

    def test_what_is_not_freed(self):
        """The same for memory and for latencies."""
        for text, freed in [("", 0), (stats(0, dropped=3), 1), (stats(1, 99), 0),
                            (stats(0, 99), 1)]:
            dat = self.dat(stats=text)
            self.event(dat, "kmalloc", 9, 64, stack="AB", cpu=1)
            self.event(dat, "kfree", 5, cpu=0)
            err = self.tool(dat, *FOLDED, "-w", "leaks")[1]
            self.assertEqual("1 allocations may have been freed" in err, bool(freed), text)
        for text, out in [("", "do_exit;schedule 1000\n"), (stats(0, dropped=3), "")]:
            dat = self.dat(stats=text)
            self.event(dat, "kfree", 5, cpu=0)
            self.event(dat, "block_rq_issue", 8, 77, stack="AB", cpu=1)
            self.event(dat, "block_rq_complete", 8, 77, after=1000, cpu=1)
            self.assertEqual(self.tool(dat, *FOLDED, "-w", "latency=block_rq_issue,block_rq_complete,dev",
                                       rc=not out)[0], out)


class Threads(RecordingCase):
    """Nothing in the recording tells the begin of a thread."""

    def user_stack(self, dat, pid, tgid, kind="user_stack", **where):
        """It tells the process."""
        values = {"user_stack": [tgid, [0x5500]], "user_stack_id": [9, tgid],
                  "user_unwind_stack": [6, tgid, 1, [0x5500]]}[kind]
        self.add(dat, kind, *values, pid=pid, **where)

    def test_late_user_stack(self):
        """It is told behind the last sample of the thread, on any CPU, in any instance."""
        for kind in "user_stack", "user_stack_id", "user_unwind_stack":
            for where in {}, {"cpu": 1}, {"instance": "x"}:
                dat = self.dat(instances=["x"])
                self.event(dat, "kfree", 1, stack="AB", pid=8)
                self.event(dat, "kfree", 1, stack="CB", pid=6)
                self.event(dat, "kfree", 1, stack="A", pid=7)
                self.user_stack(dat, 8, 7, kind, **where)
                self.assertEqual(self.folded(dat, "--pid", "7"),
                                 {"do_exit;schedule": 1, "schedule": 1})
                self.assertIn(": 1 samples left out, of threads whose process is not known",
                              self.tool(dat, *FOLDED, "--pid", "7")[1])
                groups = self.groups(dat, "process")
                self.assertEqual([n for name, n in groups.items() if name.endswith("-7")], [2])

    def test_another_task_of_that_number(self):
        """Only the thread that begins in the recording has the user stack."""
        for begin in ("task_newtask", 8, "x", 0), ("sched_process_fork", "a", 5, "b", 8):
            dat = self.dat()
            self.user_stack(dat, 5, 5)
            self.event(dat, "kfree", 1, stack="AB", pid=8)
            self.event(dat, *begin)
            self.event(dat, "kfree", 1, stack="CB", pid=8)
            self.user_stack(dat, 8, 7)
            err = self.tool(dat, *FOLDED, "-e", "kfree", "--pid", "7", rc=1)[1]
            self.assertIn(": 1 samples left out, of threads", err)

    def test_off_cpu(self):
        """Also of a recording that lacks a switch, of which nothing is wrong."""
        dat = self.dat()
        for pid in 7, 8, 9:
            self.switch(dat, pid, 0, stack="AB")
        for pid in 7, 8, 9:
            self.switch(dat, 0, pid, after=1000)
            self.user_stack(dat, pid, 9 if pid == 9 else 7)
            self.switch(dat, pid, 0, state=16)
        self.assertEqual(self.folded(dat, "-w", "off-cpu", "--pid", "7"), {"do_exit": 3005})
        self.assertEqual(self.folded(dat, "-w", "off-cpu", "--pid", "9"), {"do_exit": 3004})

    def test_file(self):
        """What record has written."""
        dat = self.dat()
        for pid in 7, 8, 9, 10:
            self.event(dat, "kfree", 1, stack="AB", pid=pid)
        for threads, n, unknown in [("7 7\n8 7\n9 9\n10 10\n", 2, 0), ("8 7\n9 7\n", 3, 1),
                                    ("", 1, 3), ("x\n8\n8 7\n7 8\n", 2, 2)]:
            out, err = self.tool(dat, *FOLDED, "--pid", "7", more={"threads": threads})
            self.assertEqual(out, f"do_exit;schedule {n}\n")
            self.assertEqual(f": {unknown} samples left out, of threads" in err, unknown > 0)
        # Other tasks than the command's are no question of that.
        err = self.tool(dat, *FOLDED, "--pid", "7", more={"command": "7\n"})[1]
        self.assertNotIn("whose process", err)


class Clock(RecordingCase):
    """The clock of a CPU goes back: a virtual machine was moved, a time stamp counter jumps."""

    def back(self, dat, *args, out, rc=0, left_out=1, jumps=1):
        """The folded stacks, and how many times are left out."""
        got, err = self.tool(dat, *FOLDED, *args, rc=rc)
        self.assertEqual(got, out)
        self.assertEqual(f": {left_out} times left out: the clock of a CPU went back" in err,
                         left_out > 0, err)
        self.assertIn(f": {jumps} records are earlier than the one before them on their CPU", err)
        pprof = self.tool(dat, *PERF, "-q", *args, rc=rc)[0]
        self.assertNotRegex(pprof, r": \d{7,} ")

    def test_off_cpu(self):
        """What begins before and ends behind it, whichever of these is later."""
        for clock in "[mono]", "[local]", "[global]":
            for back, after in [(3000, 100), (300, 100), (3000, 9000)]:
                for state, how in [(1, ""), (0, ":preempted")]:
                    dat = self.dat(clock=clock)
                    self.now += 5000
                    self.switch(dat, 0, 7)
                    self.switch(dat, 7, 0, state=state, stack="AB")
                    self.now -= back
                    self.event(dat, "kfree", 1)
                    self.switch(dat, 0, 7, after=after)
                    self.switch(dat, 7, 0, state=state, stack="CB")
                    self.switch(dat, 0, 7, after=500)
                    self.back(dat, "-w", "off-cpu" + how, out="do_exit;weak_one 500\n")

    def test_others(self):
        """Latencies, who wakes, and what is away at the end."""
        dat = self.dat()
        self.event(dat, "block_rq_issue", 8, 77, stack="AB")
        self.event(dat, "block_rq_complete", 8, 77, after=-1000)
        self.back(dat, "-w", "latency=block_rq_issue,block_rq_complete,dev", out="", rc=1)
        dat = self.dat()
        self.switch(dat, 7, 9, stack="AB")
        self.event(dat, "sched_waking", "t7", 7, 120, 0, stack="CB", pid=9)
        self.switch(dat, 9, 7, after=-1000)
        self.back(dat, "-w", "off-cpu", "--wakers", out="")
        dat = self.dat()
        self.switch(dat, 7, 0, stack="AB")
        self.switch(dat, 0, 8, after=-1000)
        self.switch(dat, 8, 0, after=10, stack="CB")
        self.event(dat, "kfree", 1, after=50)
        self.back(dat, "-w", "off-cpu", out="do_exit;weak_one 50\n")
        # Of another CPU. Then its times may be earlier.
        dat = self.dat()
        self.switch(dat, 7, 0, stack="AB", cpu=1)
        self.now += 1000
        self.event(dat, "kfree", 1)
        self.event(dat, "kfree", 1, after=-500)
        self.switch(dat, 0, 7, after=9000, cpu=1)
        self.back(dat, "-w", "off-cpu", out="", rc=1)


class Undescribed(RecordingCase):
    """Events whose formats the file lacks."""

    def data(self, *events):
        dat = self.dat()
        for name, value, stack in events:
            self.event(dat, name, *value, stack=stack)
        with unittest.mock.patch.dict(mkdat.EVENTS, {"syscalls": {}}):
            return dat.bytes()

    def test_its_stack_is_of_no_other_event(self):
        data = self.data(("kfree", [1], "CB"), ("kmalloc", [1, 64], None), ("sys_enter_close", [3], "AB"))
        out, err = self.tool(data, "report", "-j", "--by", "event")
        self.assertEqual({s["by"] for s in json.loads(out)}, {"kmem:kfree"})
        self.assertIn("1 events left out, of kinds that the recording does not describe", err)
        self.assertIn("1 events left out, of kinds that have no stacks", err)

    def test_its_stack_is_no_second_one(self):
        out, err = self.tool(self.data(("kmalloc", [1, 64], "AB"), ("sys_enter_close", [3], "AB")), *FOLDED)
        self.assertEqual(out, "do_exit;schedule 1\n")
        self.assertIn("1 events left out, of kinds that the recording does not describe", err)


class WhatItIs(RecordingCase):
    """What is no recording of events with stacks, and why."""

    def test_latency_tracer(self):
        """Its file has a text."""
        if SANITIZED:
            self.skipTest("libtracecmd takes some of the text for a size")
        dat = self.dat()
        self.event(dat, "kfree", 1, stack="AB")
        data = dat.bytes()
        at = data.index(b"flyrecord\0")
        err = self.tool(data[:at] + b"latency  \0# tracer: irqsoff\n#\n", *FOLDED, rc=1)[1]
        self.assertIn("dir/trace.dat: is of a latency tracer, a text without events", err)

    def test_compressed(self):
        """By another program than trace-cmd."""
        dat = self.dat()
        self.event(dat, "kfree", 1, stack="AB")
        for pack, how in (lzma.compress, "xz"), (gzip.compress, "gzip"), (bz2.compress, "bzip2"), (
                lambda data: b"\x28\xb5\x2f\xfd" + data, "zstd"):
            data = pack(dat.bytes())
            path = self.file("trace.dat." + how, data)
            for form, where in (FOLDED, ""), (["report"], ""), ([], " byte 0:"), (MAP_FOLDED, " byte 0:"):
                err = self.run_tool(*form, "-q", path, rc=1)[1]
                self.assertRegex(err, rf"{path}:{where} this is compressed \({how} -d\)\n$")
            err = self.run_tool("-q", "-", stdin=data, rc=1)[1]
            self.assertRegex(err, rf"stdin: byte 0: this is compressed \({how} -d\)\n$")
        for form in [], ["map"], MAP_FOLDED:
            self.assertIn("this is a trace.dat, which is read from a file only",
                          self.run_tool(*form, "-", stdin=dat.bytes(), rc=1)[1])

    def test_no_task_slept(self):
        """A program that computes is not an error."""
        def result(dat, *args, rc=0):
            out, err = self.tool(dat, *args, rc=rc)
            return out, err.replace("stackmap_dump: ", "").splitlines()[-1]

        dat = self.dat()
        for _ in range(3):
            self.switch(dat, 7, 9, state=0, stack="AB")
            self.switch(dat, 9, 7, state=0, stack="AB")
        preempted = "; 6 switches were preemptions (see --weight off-cpu:preempted)"
        self.assertEqual(result(dat, *FOLDED, "-w", "off-cpu"), ("", "no task slept" + preempted))
        self.assertEqual(result(dat, "report", "-w", "off-cpu:uninterruptible", "--tid", "7"), (
            "# 0 delay (microseconds)\n#           self                   total         function\n",
            "no task slept in state D" + preempted.replace("6", "3")))
        self.assertIn("has no stacks of such events of tasks with such a name\n",
                      self.tool(dat, *FOLDED, "-w", "off-cpu", "--comm", "nobody", rc=1)[1])
        dat = self.dat()
        self.switch(dat, 7, 0, stack="AB")
        self.assertEqual(result(dat, *FOLDED, "-w", "off-cpu:preempted")[1], "no task was preempted")
        # It is one if the switches have no stacks, or there are none of the selected tasks.
        self.tool(dat, *FOLDED, "-w", "off-cpu:preempted", "--tid", "8", rc=1)
        dat = self.dat()
        self.switch(dat, 7, 0)
        for how in "", ":preempted":
            err = self.tool(dat, *FOLDED, "-w", "off-cpu" + how, rc=1)[1]
            self.assertIn("(record with -e sched_switch)", err)

    def test_what_it_has(self):
        """It is told if nothing of what was selected is there, also of events that it does not describe."""
        dat = self.dat(cpus=4)
        self.event(dat, "kfree", 1, pid=7)
        self.event(dat, "kmalloc", 1, 8, stack="AB", pid=7, cpu=2)
        self.switch(dat, 7, 0, stack="CB", cpu=1)
        self.event(dat, "kfree", 1, after=500000)
        has = "dir/trace.dat: 1.000001 to 1.500003 s, up to CPU 2, stacks of 2 kinds of events: sched_switch kmalloc\n"
        for args in (["--cpu", "9"], ["--time", "2,3"], ["--time", ",1"], ["-e", "sched_waking"], ["-e", "kfree"],
                     ["-e", "kmalloc,nosuch"], ["-w", "offcpu"], ["--where", "nosuch == 1"], ["--comm", "x"],
                     ["-w", "latency=softirq_entry,softirq_exit,vec"]):
            for form in FOLDED, PERF, ["report"], ["export", "--format", "perfetto", "-o", "/dev/null"]:
                with self.subTest(args=args, form=form):
                    out, err = self.tool(dat, *form, *args, rc=1)
                    self.assertEqual((out, err[-len(has):]), ("", has))
                    self.assertNotIn(has, self.tool(dat, *form, "-q", *args, rc=1)[1])
        # Nothing is printed beside it.
        self.assertEqual(self.tool(dat, "export", "--format", "perfetto", "-e", "nosuch", rc=1)[0], "")
        self.assertNotIn(" kinds of events", self.tool(dat, *FOLDED, "-e", "kmalloc")[1])
        for args in (["--cpu", "9"], ["-e", "nosuch"]):
            self.assertNotIn(" kinds of events", self.tool(self.dat(), *FOLDED, *args, rc=1)[1])

    def test_all_is_lost(self):
        """The advice is another one then."""
        dat = self.dat()
        self.switch(dat, 7, 0, stack="AB")
        self.switch(dat, 0, 7, lost=True)
        err = self.tool(dat, *FOLDED, "-q", "-w", "off-cpu", rc=1)[1]
        self.assertIn("trace.dat: all times are over lost records, or a clock that went back\n", err)


class Notes(RecordingCase):
    """What is told on standard error."""

    def test_nothing_is_unusual(self):
        """Then there is only what was read."""
        dat = self.dat()
        for cpu in 0, 1:
            for _ in range(3):
                self.switch(dat, 7 + cpu, 20 + cpu, stack="AB", cpu=cpu)
                self.switch(dat, 20 + cpu, 7 + cpu, state=0, stack="CB", cpu=cpu)
        more = {"command": "7\n8\n20\n21\n", "own_pids": "30\n", "lost": "", "threads": "7 7\n8 7\n20 20\n21 21\n",
                "stack_map_bin": golden_map("le64")}
        for args in [], ["-w", "off-cpu"], ["--pid", "7"], ["-e", "sched_switch"], ["--by", "process"]:
            for form in ["report"], ["-j"]:
                with self.subTest(args=args, form=form):
                    err = self.tool(dat, *form, *args, more=more)[1]
                    self.assertNotRegex(err, r"(?m)^(?!.*away at the end|.*: 24 records, ).")

    def test_name_of_the_file(self):
        """Errors name the recording, not the map beside it."""
        dat = self.dat()
        self.event(dat, "kfree", 1, stack="AB")
        path = os.path.join(self.dir, "dir/trace.dat")
        err = self.tool(dat, *FOLDED, "-q", "--callers", "nobody", rc=1, more={"stack_map_bin": golden_map("le64")})[1]
        self.assertEqual(err, f"stackmap_dump: {path}: no stack has a function nobody\n")

    def test_frame_pointers(self):
        """Of programs that have none, stacks end soon, or with what is no code."""
        says = "user stacks end in code without frame pointers"
        maps = {"user_maps": "map 7 5000-6000 0 - /x/cat\n"}
        for stacks, nr in [([[0x5500]] * 18 + [[0x5500, 0x5600]] * 2, "18 of 20"), ([[0x5500, 0x5600]], None),
                           ([[0x5500]] + [[0x5500, 0x5600]] * 2, None), ([[0x5500, 0x7FFE12345678]], "1 of 1"),
                           ([[0x5500, 0x5600, 3], [0x5500, 0x5600]], "1 of 2"), ([], None)]:
            dat = self.dat()
            for frames in stacks:
                self.event(dat, "kfree", 1, stack="AB", pid=7)
                dat.add(self.now, "user_stack", 7, frames, pid=7)
            self.event(dat, "kfree", 1, stack="AB", pid=8)
            for form in FOLDED, ["report"], PERF:
                err = self.tool(dat, *form, more=maps)[1]
                if form != PERF:
                    self.assertEqual(f": {nr} {says}\n" in err, bool(nr), err)
                    self.assertEqual(says in err, bool(nr))
