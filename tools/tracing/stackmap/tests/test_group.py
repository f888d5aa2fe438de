# SPDX-License-Identifier: GPL-2.0
"""Any field as a key, filters of recordings, and distributions."""

import json
import os
import re
from unittest import mock

from common import TEXT, RecordingCase, golden_text


class ByField(RecordingCase):
    """--by FIELD."""

    def softirqs(self):
        """Of three vectors, one of which has no name."""
        dat = self.dat()
        for vec, stack in [(9, "AB"), (1, "AB"), (9, "CB"), (9, "AB"), (30, "A")]:
            self.event(dat, "softirq_entry", vec, stack=stack)
            self.event(dat, "softirq_exit", vec, stack=stack, after=vec)
        return dat

    def test_number(self):
        dat = self.softirqs()
        self.assertEqual(self.groups(dat, "vec", "-e", "softirq_entry"),
                         {"vec=9 (RCU)": 3, "vec=1 (TIMER)": 1, "vec=30": 1})
        self.assertEqual(self.groups(dat, "vec", "-w", "latency=softirq_entry,softirq_exit,cpu"),
                         {"vec=9 (RCU)": 27, "vec=1 (TIMER)": 1, "vec=30": 30})
        # Also of a stack that has no event.
        dat = self.dat()
        self.stack(dat, "AB", pid=7)
        self.assertEqual(self.groups(dat, "common_pid"), {"common_pid=7": 1})

    def test_text(self):
        """Fixed, dynamic, empty; with bytes that no terminal should get."""
        dat = self.dat()
        for name in "dentry", "kmalloc-64", "", "dentry", "a\x1b;b":
            self.event(dat, "consume", name, 8, 0, b"x", stack="AB")
        out = json.loads(self.tool(dat, "-q", "-j", "--by", "name")[0])
        self.assertEqual(sorted((s["by"], s["weight"]) for s in out), [
            ("name=", 1), ("name=a\x1b;b", 1), ("name=dentry", 2), ("name=kmalloc-64", 1)])
        self.assertIn("\n# name=a?;b: 1 (20.0%)\n", self.tool(dat, "report", "-q", "--by", "name")[0])
        dat = self.dat()
        self.switch(dat, 1, 2, stack="AB")
        self.switch(dat, 2, 1, stack="AB")
        self.assertEqual(self.groups(dat, "next_comm"), {"next_comm=t2": 1, "next_comm=t1": 1})

    def test_address(self):
        """Those of the kernel have names."""
        dat = self.dat()
        for func in TEXT + 0x100, TEXT + 0x20, TEXT + 0x100, TEXT + 0x104, 0x1000, 0, (1 << 64) - 2:
            self.event(dat, "initcall_start", func, stack="AB")
        self.assertEqual(self.groups(dat, "func"), {
            "func=schedule": 2, "func=do_exit": 1, "func=schedule+0x4": 1, "func=4096": 1,
            "func=0": 1, "func=18446744073709551614": 1})
        dat = self.dat()
        for lock in TEXT + 0x100, 0xffff888012345678:
            self.event(dat, "contention_begin", lock, 0, stack="AB")
        self.assertEqual(self.groups(dat, "lock_addr"),
                         {"lock_addr=schedule": 1, "lock_addr=0xffff888012345678": 1})

    def test_replaced_address(self):
        """A name that was another one meanwhile is none."""
        module = 0xffffffffc0000010
        text = golden_text("kallsyms64").split("ffffffffc")[0] + f"{module:x} t one\t[m]\n"
        start = text.replace("one", "two")
        dat = self.dat()
        self.event(dat, "initcall_start", module, stack="AB")
        out = self.tool(dat, "report", "-q", "--by", "func", more={"kallsyms": text})[0]
        self.assertIn("# func=one: 1", out)
        out = self.tool(dat, "report", "-q", "--by", "func", more={"kallsyms": text, "kallsyms.start": start})[0]
        self.assertIn(f"# func={module}: 1", out)

    def test_signs_and_devices(self):
        dat = self.dat()
        for ret in 0, -22, 5:
            self.event(dat, "consume", "x", 8, ret, b"x", stack="AB")
        self.assertEqual(self.groups(dat, "ret"), {"ret=0": 1, "ret=-22": 1, "ret=5": 1})
        dat = self.dat()
        self.event(dat, "block_rq_issue", 8 << 20 | 16, 0, stack="AB")
        self.event(dat, "block_rq_complete", 8 << 20 | 16, 0, after=9)
        args = "-w", "latency=block_rq_issue,block_rq_complete,dev"
        self.assertEqual(self.groups(dat, "dev", *args), {"dev=8,16": 9})

    def test_off_cpu(self):
        dat = self.dat()
        for state, after in (1, 10), (2, 100), (1, 1000):
            self.switch(dat, 1, 2, state=state, stack="AB")
            self.switch(dat, 2, 1, stack="CB", after=after)
        self.assertEqual(self.groups(dat, "prev_state", "-w", "off-cpu", "--tid", "1"),
                         {"prev_state=1": 1010, "prev_state=2": 100})

    def test_what_is_not_freed(self):
        """Which cache, by its name."""
        dat = self.dat()
        for ptr, size, name in (1, 8, "a"), (2, 16, "b"), (3, 32, "a"), (4, 64, "a"):
            self.event(dat, "kmem_cache_alloc", ptr, size, name, stack="AB")
        self.event(dat, "kmem_cache_free", 3)
        args = "-w", "outstanding=kmem_cache_alloc,kmem_cache_free,ptr"
        self.assertEqual(self.groups(dat, "name", *args), {"name=a": 2, "name=b": 1})
        self.assertEqual(self.groups(dat, "name", *args, "-w", "bytes_alloc"), {"name=a": 72, "name=b": 16})

    def test_no_such_field(self):
        dat = self.softirqs()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.assertIn("has no event with a field nothing", self.tool(dat, "--by", "nothing", rc=1)[1])
        self.assertIn("has no event kmalloc with a field vec\n",
                      self.tool(dat, "--by", "vec", "-e", "kmalloc", rc=1)[1])
        self.assertIn("with a field caller\n", self.tool(dat, "--by", "caller", rc=1)[1])
        for bad in "", "a,b", "a b", "vec=1":
            self.assertIn("--by knows", self.tool(dat, "--by", bad, rc=2)[1])
        # What lacks it does not count.
        self.assertEqual(sum(self.groups(dat, "vec").values()), 10)

    def test_cut_record(self):
        """The text would be behind the end of the record."""
        dat = self.dat()
        self.event(dat, "consume", "abcdefghijkl", 8, 0, b"x" * 20, stack="AB")
        time, data, lost = dat.cpus[""][0][0]
        for size in range(8, len(data), 3):
            dat.cpus[""][0][0] = time, data[:size], lost
            for args in (["--by", "name"], ["--by", "len"], ["--where", "len == 8"],
                         ["--where", "name == 'abc'"]):
                out, err = self.tool(dat, "report", *args, rc=(0, 1))
                self.assertNotIn("abcdefghijkl", out)


class Where(RecordingCase):
    """--where."""

    def known_leaks(self):
        """What libtraceevent (1.7.1) does not free. Only whole backtraces show that it is there."""
        known = self.file("known", "leak:tep_filter_add_filter_str\n")
        env = mock.patch.dict(os.environ, ASAN_OPTIONS="fast_unwind_on_malloc=0",
                              LSAN_OPTIONS=f"suppressions={known}:print_suppressions=0")
        env.start()
        self.addCleanup(env.stop)

    def test_where(self):
        dat = self.dat()
        for i, size in enumerate([8, 64, 4096]):
            self.event(dat, "kmalloc", i, size, stack="AB", pid=1 + i)
            self.event(dat, "kfree", i, stack="CB")
        ab, cb = "do_exit;schedule", "do_exit;weak_one"
        for where, want in [("bytes_alloc > 8", {ab: 2}), ("kmalloc: bytes_alloc > 64", {ab: 1}),
                            ("kmem/kfree:ptr==1", {cb: 1}), ("ptr == 1", {ab: 1, cb: 1}),
                            ("bytes_alloc == 64 || ptr == 0", {ab: 2, cb: 1}),
                            ("kfree:ptr!=1", {cb: 2}), ("common_pid == 2", {ab: 1})]:
            self.assertEqual(self.folded(dat, "--where", where), want, where)
        self.assertEqual(self.all_forms(dat, "--where", "ptr == 1"), 2)
        self.assertEqual(self.folded(dat, "--where", "bytes_alloc < 100", "-w", "bytes_alloc"), {ab: 72})

    def test_not(self):
        self.known_leaks()
        dat = self.dat()
        for i in range(3):
            self.event(dat, "kmalloc", i, 8, stack="AB")
        self.assertEqual(self.folded(dat, "--where", "!(ptr == 1)"), {"do_exit;schedule": 2})

    def test_text(self):
        dat = self.dat()
        for name in "dentry", "kmalloc-64", "a:b":
            self.event(dat, "consume", name, 8, 0, b"x", stack="AB")
        for where in 'name == "a:b"', "name == 'kmalloc-64'", "name =~ '^kmalloc'", "consume: name == 'a:b'":
            self.assertEqual(sum(self.folded(dat, "--where", where).values()), 1, where)

    def test_signs(self):
        """As the kernel's own filters."""
        self.known_leaks()
        dat = self.dat()
        for ret in 0, -22, -11, 5:
            self.event(dat, "initcall_finish", 1, ret, stack="AB")
        for where, nr in (("ret == -22", 1), ("ret <= -1", 2), ("ret >= 0", 2), ("ret > 0", 1), ("ret < 0", 2),
                          ("ret > - 12 && ret < 5", 2), ("!(ret<-11)", 3), ("!(ret >= -11) || ret == 5", 2),
                          ("ret - 5", 3), ("initcall_finish: ret != -0x16", 3),
                          ("common_pid > 0", 4)):
            self.assertEqual(sum(self.folded(dat, "--where", where).values()), nr, where)
        dat = self.dat()
        for n in 1, 1 << 63:
            self.event(dat, "kmalloc", 1, n, stack="AB")
        self.assertEqual(sum(self.folded(dat, "--where", "bytes_alloc > 1").values()), 1)

    def test_what_would_be_ignored(self):
        dat = self.dat()
        self.event(dat, "consume", "5k -3", 64, 0, b"x", stack="AB")
        for bad in "len > 64k", "len == 1M", "len > 0b1", "consume: len >= 12_000", "len == 010s":
            self.assertIn("a number has no unit", self.tool(dat, "--where", bad, rc=2)[1], bad)
        for bad in "len == 64 len == 128", "(len == 64) len", "name == 'x' len == 64", "len (64)":
            self.assertIn("an operator is missing", self.tool(dat, "--where", bad, rc=2)[1], bad)
        for good in 'name == "5k -3"', "len==0x40&&ret==0", "consume: len == 64 && name =~ '^5k '", "len == 0100 && ret==0":
            self.assertEqual(sum(self.folded(dat, "--where", good).values()), 1, good)

    def test_pairs(self):
        """Of latency, the begin is selected."""
        dat = self.dat()
        for dev, sector in (1, 0), (2, 8):
            self.event(dat, "block_rq_issue", dev, sector, stack="AB")
            self.event(dat, "block_rq_complete", dev, sector, after=dev * 10)
        args = "-w", "latency=block_rq_issue,block_rq_complete,dev"
        self.assertEqual(sum(self.folded(dat, *args, "--where", "sector == 8").values()), 20)

    def test_not_a_filter(self):
        self.known_leaks()
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        for bad in "nothing == 1", "kmalloc: nothing == 1", "nothing: ptr == 1", "(ptr", "", "'x'":
            self.assertIn("no event takes the filter " + bad, self.tool(dat, "--where", bad, rc=1)[1], bad)
        for bad in "kmalloc: ptr ==", "ptr + ", "ptr == +", "(ptr >)", "ptr == 1 &&", "=~", "ptr -":
            self.assertIn("an operand is missing", self.tool(dat, "--where", bad, rc=2)[1], bad)
        for bad in ["comm == 'a", "comm =~ \"x", "kmalloc: comm == 'a\"", "comm == 'a' || comm == 'b",
                    r"comm == 'a\'"]:
            self.assertIn("a quote is not closed", self.tool(dat, "--where", bad, rc=2)[1], bad)
        self.assertIn("has no stacks of such events",
                      self.tool(dat, "--where", "ptr == 99", rc=1)[1])


class CpuKey(RecordingCase):
    """cpu is a key as the fields are."""

    def test_cpu(self):
        dat = self.dat()
        for cpu in 0, 1:
            self.event(dat, "softirq_entry", 9, stack="AB", cpu=cpu)
        for cpu, after in (1, 10), (0, 100):
            self.event(dat, "softirq_exit", 9, after=after, cpu=cpu)
        args = "-w", "latency=softirq_entry,softirq_exit,vec,cpu"
        self.assertEqual(self.groups(dat, "cpu", *args), {"CPU 0": 111, "CPU 1": 10})
        self.assertEqual(self.groups(dat, "cpu", "-w", "latency=softirq_entry,softirq_exit,cpu"),
                         {"CPU 0": 111, "CPU 1": 10})
        # One that the event does not run on is a field.
        dat = self.dat()
        self.event(dat, "sched_waking", "t1", 1, 120, 1, stack="AB", cpu=0)
        self.switch(dat, 0, 1, cpu=1, after=7)
        self.assertEqual(self.folded(dat, "-w", "latency=sched_waking,sched_switch,target_cpu=cpu"),
                         {"do_exit;schedule": 7})


class Histogram(RecordingCase):
    """--histogram, and p50, p90, p99."""

    WEIGHTS = [0, 1, 1, 3, 4, 7, 8, 100, 1000, 5000, 100000]

    def sizes(self):
        """Of two stacks and two tasks."""
        dat = self.dat()
        for i, n in enumerate(self.WEIGHTS):
            self.event(dat, "kmalloc", 1, n, stack="AB" if i % 3 else "CB", pid=1 + i % 2)
        return dat

    @staticmethod
    def expected(weights):
        """p50, p90, p99, and the rows."""
        weights = sorted(weights)
        at = lambda percent: weights[-(-len(weights) * percent // 100) - 1]
        rows, first = [], 0
        while first <= weights[-1]:
            last = max(2 * first - 1, 1)
            rows.append((first, last, sum(first <= w <= last for w in weights)))
            first = last + 1
        return [at(50), at(90), at(99), rows]

    def close(self, got, want):
        """The first ten bits of a weight are right."""
        for a, b in zip(got[:3], want[:3]):
            self.assertTrue(a <= b <= a * 1.002, (a, b))
        self.assertEqual(got[3], want[3])

    def test_of_all(self):
        dat = self.sizes()
        args = "report", "-q", "-w", "bytes_alloc", "--histogram"
        out = self.tool(dat, *args)[0]
        self.assertTrue(out.startswith("# 106124 bytes_alloc (bytes)\n106124 (100.0%), 11 events, at most 100000, "
                                       "p50 7, p90 5000, p99 99968\n"), out)
        rows = [tuple(map(int, r)) for r in re.findall(r"^ +(\d+) -> (\d+) +: (\d+) +\|[* ]{40}\|$", out, re.M)]
        self.assertEqual(rows, self.expected(self.WEIGHTS)[3])
        self.assertIn("         0 -> 1          : 3        |" + "*" * 40 + "|\n", out)
        self.assertIn("         2 -> 3          : 1        |" + "*" * 13 + " " * 27 + "|\n", out)
        out = json.loads(self.tool(dat, *args, "-j")[0])
        self.assertEqual([len(out), out[0]["weight"], out[0]["symbols"]], [1, 106124, []])

    def json(self, dat, *args):
        """By what, and what is expected() of it."""
        out = json.loads(self.tool(dat, *args, "-q", "-j", "--histogram")[0])
        return [(s, [s["p50"], s["p90"], s["p99"],
                     [(h["from"], h["to"], h["count"]) for h in s["histogram"]]]) for s in out]

    def test_of_groups_and_stacks(self):
        dat = self.sizes()
        self.assertEqual(len(self.json(dat, "-w", "bytes_alloc")), 2)
        for s, got in self.json(dat, "-w", "bytes_alloc"):
            want = [w for i, w in enumerate(self.WEIGHTS) if (i % 3 > 0) == (s["symbols"][0] == "schedule")]
            self.assertEqual((s["weight"], s["count"]), (sum(want), len(want)))
            self.close(got, self.expected(want))
        for args in [], ["report"]:
            for s, got in self.json(dat, *args, "-w", "bytes_alloc", "--by", "common_pid"):
                want = [w for i, w in enumerate(self.WEIGHTS) if f"common_pid={1 + i % 2}" == s["by"] and (
                    args or (i % 3 > 0) == (s["symbols"][0] == "schedule"))]
                self.assertEqual((s["weight"], s["count"]), (sum(want), len(want)))
                self.close(got, self.expected(want))
        self.assertEqual(len(self.json(dat, "report", "-w", "bytes_alloc", "--by", "common_pid", "-t", "1")), 1)

    def test_merged_stacks(self):
        """Those that differ only in offsets are one."""
        dat = self.dat()
        for i in range(1, 100):
            self.event(dat, "kmalloc", 1, i)
            dat.add(self.now, "kernel_stack", 2, [self.A + i % 4, self.B])
        (_, got), = self.json(dat, "-w", "bytes_alloc")
        self.assertEqual(got, self.expected(range(1, 100)))

    def test_times(self):
        dat = self.dat()
        for us in 5, 50, 500:
            self.switch(dat, 1, 0, stack="AB")
            self.switch(dat, 0, 1, after=us)
            self.event(dat, "softirq_entry", 1, stack="AB")
            self.event(dat, "softirq_exit", 1, after=us)
        for args in ["off-cpu"], ["latency=softirq_entry,softirq_exit,cpu"]:
            out = self.tool(dat, "-q", "--histogram", "-w", *args)[0]
            self.assertIn(", at most 500, p50 50, p90 500, p99 500\n", out)
            self.assertIn("            microseconds : count    distribution\n", out)

    def test_large(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, (1 << 62) + 5, stack="AB")
        (_, got), = self.json(dat, "-w", "bytes_alloc")
        self.assertEqual(got[3][-1], (1 << 62, (1 << 63) - 1, 1))

    def test_needs_a_weight(self):
        dat = self.sizes()
        for args in [], ["-w", "events"], ["-w", "outstanding=kmalloc,kfree,ptr"]:
            self.assertIn("--histogram is of a --weight", self.tool(dat, "--histogram", *args, rc=2)[1])
