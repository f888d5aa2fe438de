# SPDX-License-Identifier: GPL-2.0
"""Recordings: what events weigh."""

import os
import re

import mkdat
import mkmap
from common import FOLDED, MAP_FOLDED, PERF, PPROF, TEXT, Pprof, RecordingCase, golden_text


class Weights(RecordingCase):
    """Fields of events."""

    def test_weight(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 100, stack="AB")
        self.event(dat, "kmem_cache_alloc", 1, 23, stack="CB")
        self.event(dat, "kfree", 1, stack="CB")
        self.assertEqual(self.folded(dat, "-w", "bytes_alloc"), {"do_exit;schedule": 100,
                                                                 "do_exit;weak_one": 23})
        self.assertEqual(self.all_forms(dat, "-w", "bytes_alloc"), 123)

    def test_weight_that_is_no_number(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 100, stack="AB")
        self.switch(dat, 5, 6, stack="AB")
        for field in ["nothing", "prev_comm"]:
            err = self.tool(dat, *FOLDED, "-w", field, rc=1)[1]
            self.assertIn(f"has no event with a field {field} that is a number", err)
        self.assertEqual(self.folded(dat, "-w", "prev_prio"), {"do_exit;schedule": 120})
        err = self.tool(dat, *FOLDED, "-w", "prev_prio", "-e", "kmalloc,kfree", rc=1)[1]
        self.assertIn("has no event kmalloc,kfree with a field prev_prio that is a number", err)
        text = mkdat.format_text
        self.addCleanup(setattr, mkdat, "format_text", text)
        mkdat.format_text = lambda *args: text(*args).replace("unsigned long bytes",
                                                              "__data_loc char[] bytes")
        self.tool(dat, *FOLDED, "-w", "bytes_alloc", rc=1)

    def test_weight_that_is_no_field(self):
        """A wrong word may be meant for another weight. The CPU is none, nor is what libtracecmd adds."""
        dat = self.dat()
        self.event(dat, "kfree", 1, stack="AB")
        for weight in "offcpu", "latncy", "cpu", "bytes":
            self.assertIn(f"with a field {weight} that is a number (--weight knows events, FIELD, off-cpu, latency=, ",
                          self.tool(dat, "report", "-w", weight, rc=1)[1])

    def test_several_values(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 10, stack="A")
        self.switch(dat, 5, 6, stack="AB")
        self.switch(dat, 6, 5, after=1000, stack="CB")
        pprof = Pprof()
        pprof.dir = self.dir
        types, samples = pprof.values(self.tool, dat, "-w", "off-cpu", "-w", "bytes_alloc")
        # An allocation is no switch, and nobody ends it.
        self.assertEqual(types, [("events", "count"), ("bytes_alloc", "bytes"),
                                 ("delay", "microseconds")])
        self.assertEqual(sorted(samples), [(1, 0, 0), (1, 0, 1000), (1, 10, 0)])
        self.assertIn("two weights", self.tool(dat, *FOLDED, "-w", "off-cpu", "-w", "x", rc=2)[1])
        self.assertIn(" 2 times off the CPU, of which nothing tells", self.tool(
            dat, *PPROF, "-o", "/dev/null", "-w", "off-cpu", "--wakers", "-w", "bytes_alloc")[1])

    def test_counts_of_what_weighs_nothing(self):
        """It has happened as well. Here in two places of one function."""
        dat = self.dat()
        self.FULL = dict(self.FULL, D=[self.A + 4, self.B])
        for size, stack in [(0, "AB"), (0, "AB"), (8, "D"), (0, "CB")]:
            self.event(dat, "kmalloc", 1, size, stack=stack)
        args = ["-w", "bytes_alloc"]
        self.assertEqual(self.tool(dat, "-q", *args)[0], "# 8 bytes_alloc (bytes)\n"
                         "8 (100.0%), 3 events, at most 8\n        schedule\n        do_exit\n\n"
                         "0 (0.0%), 1 events, at most 0\n        weak_one\n        do_exit\n\n")
        self.assertEqual(self.all_forms(dat, *args), 8)
        self.assertEqual(self.folded(dat, *args), {"do_exit;schedule": 8})
        self.assertNotIn("weak_one", self.tool(dat, "report", *args)[0])
        self.assertNotIn("weak_one", self.tool(dat, "-m1", *args)[0])
        old = self.dat()
        for size, stack in [(5, "CB"), (0, "AB")]:
            self.event(old, "kmalloc", 1, size, stack=stack)
        os.mkdir(os.path.join(self.dir, "old"))
        self.file("old/trace.dat", old.bytes())
        self.file("old/kallsyms", golden_text("kallsyms64"))
        self.assertEqual(self.tool(dat, "diff", "-q", *args, os.path.join(self.dir, "old"))[0],
                         "+8 new 8, 3 events, at most 8\n        schedule\n        do_exit\n\n"
                         "-5 gone 5, 1 events, at most 5\n        weak_one\n        do_exit\n\n")

    def test_no_event(self):
        """A stack without an event is of no use to what needs numbers."""
        dat = self.dat()
        self.event(dat, "kfree", 1, stack="AB")
        for weight in "outstanding", "latency":
            self.assertIn("has no event stacktrace", self.tool(
                dat, *FOLDED, "-w", weight + "=stacktrace,kfree,common_pid", rc=1)[1])


class OffCpu(RecordingCase):
    """off-cpu: times without a CPU."""

    def test_off_cpu(self):
        """Two CPUs; a task that is preempted, one that ends, one that still sleeps."""
        dat = self.dat()
        self.switch(dat, 5, 6, stack="AB")
        self.switch(dat, 6, 5, state=0, after=1000, stack="CB")       # 5: 1000 us
        self.switch(dat, 5, 0, stack="AB", after=10)
        self.switch(dat, 0, 6, after=500, cpu=1, stack="A")           # 6: 510 us preempted
        self.switch(dat, 6, 5, after=1490, cpu=1, state=16, stack="CB")  # 5: 1990 us; 6 is dead
        self.switch(dat, 5, 0, after=5, cpu=1, stack="AB")
        self.event(dat, "kfree", 1, after=7, stack="A")               # 5: 7 us at the end
        out, err = self.tool(dat, *FOLDED, "-w", "off-cpu")
        self.assertEqual(out, "do_exit 2997\n")
        self.assertIn("1 tasks were away at the end", err)
        self.assertIn("1 switches were preemptions", err)
        self.assertEqual(self.all_forms(dat, "-w", "off-cpu"), 2997)
        self.assertEqual(self.folded(dat, "-w", "off-cpu:preempted"), {"do_exit;weak_one": 510})
        self.assertEqual(self.folded(dat, "-w", "off-cpu", "--pid", "6"), {})
        # The leave selects, whenever the task comes back.
        args = ["-w", "off-cpu", "--time", ",1.0005"]
        self.assertEqual(self.folded(dat, *args), {"do_exit": 1000})
        self.assertIn(" 1.001001: 1000 sched_switch:", self.tool(dat, *PERF, *args)[0])

    def test_off_cpu_of_some_tasks(self):
        """With set_event_pid, other tasks are only seen next to those."""
        dat = self.dat()
        self.switch(dat, 5, 6, stack="AB")
        self.switch(dat, 7, 5, after=100, stack="CB")
        self.switch(dat, 5, 8, after=100, stack="AB")
        self.switch(dat, 8, 5, after=100, stack="CB")
        self.switch(dat, 5, 7, after=100, stack="AB")
        out, err = self.tool(dat, *FOLDED, "-w", "off-cpu")
        self.assertIn("2 tasks left out", err)
        self.assertEqual(out, "do_exit 200\n")

    def test_off_cpu_without_a_switch(self):
        """One is missing, of 6 to 7. That no pids select is seen, as these switch with idle."""
        dat = self.dat()
        self.switch(dat, 0, 6, stack="A")
        self.switch(dat, 5, 8, after=100, stack="CB", cpu=1)
        self.switch(dat, 7, 0, after=100, stack="AB")
        self.switch(dat, 8, 5, after=100, stack="AB", cpu=1)
        self.switch(dat, 0, 7, after=100, stack="A")
        self.switch(dat, 5, 8, after=100, stack="CB", cpu=1)
        out, err = self.tool(dat, *FOLDED, "-w", "off-cpu")
        self.assertIn(" 1 tasks left out", err)
        self.assertEqual(out, "do_exit;weak_one 200\ndo_exit 200\n")

    def test_off_cpu_and_gaps(self):
        """A time counts only if no CPU has lost records meanwhile."""
        def result():
            out, err = self.tool(dat, *FOLDED, "-w", "off-cpu")
            found = re.search(r": (\d+) times left out: records were lost", err)
            return out, int(found[1]) if found else 0

        # On the same CPU. Then the task goes again, until the end.
        dat = self.dat()
        self.switch(dat, 5, 0, stack="AB")
        self.switch(dat, 0, 5, after=1000, lost=True)
        self.switch(dat, 5, 0, after=10, stack="CB")
        self.event(dat, "kfree", 1, after=20)
        self.assertEqual(result(), ("do_exit;weak_one 20\n", 1))
        # CPU 1 loses records: 5 goes before and comes behind, 6 comes meanwhile, 8 goes twice, and
        # nothing shows that it has come back on CPU 1. Times behind the gap count.
        dat = self.dat(cpus=3)
        self.switch(dat, 9, 0, state=0, cpu=1)
        self.switch(dat, 5, 8, stack="AB")
        self.switch(dat, 8, 0, stack="AB")
        self.switch(dat, 6, 0, after=400, stack="AB", cpu=2)
        self.switch(dat, 0, 6, after=400, cpu=2)
        self.switch(dat, 8, 0, after=1000, cpu=1, lost=True)
        self.stack(dat, "A", pid=8, cpu=1)
        self.switch(dat, 0, 7)
        self.switch(dat, 7, 0, stack="CB")
        self.switch(dat, 0, 7, after=30)
        self.switch(dat, 0, 8, after=10, cpu=1)
        self.switch(dat, 6, 5, state=0, cpu=2)
        self.assertEqual(result(), ("schedule 42\ndo_exit;weak_one 30\n", 3))
        # A buffer that has wrapped: its first record tells that there were more.
        dat = self.dat(instances=("x",))
        self.switch(dat, 5, 0, stack="AB", cpu=1)
        self.switch(dat, 5, 0, stack="CB", cpu=1, instance="x")
        self.switch(dat, 0, 5, after=3000, lost=True)
        self.switch(dat, 0, 5, after=100, cpu=1, instance="x")
        self.assertEqual(result(), ("do_exit;weak_one 3100\n", 1))
        # A CPU that was idle at first has lost nothing.
        dat = self.dat()
        self.switch(dat, 5, 0, stack="AB", cpu=1)
        self.switch(dat, 0, 5, after=3000)
        self.assertEqual(result(), ("do_exit 3000\n", 0))

    def test_clocks(self):
        dat = self.dat(clock="[counter]")
        self.switch(dat, 5, 6, stack="AB")
        self.assertIn("the clock counter does not count time", self.tool(dat, *FOLDED, "-w", "off-cpu",
                                                                         rc=1)[1])
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 1})

    def test_states_of_tasks(self):
        """Their bits are those of the kernel that has recorded: here Linux 4.9."""
        letters = "1 S 2 D 4 T 8 t 16 Z 32 X 64 x 128 K 256 W 512 P 1024 N".split()
        pairs = ", ".join('{ %s, "%s" }' % p for p in zip(letters[::2], letters[1::2]))
        old = f'REC->prev_state & (2048-1) ? __print_flags(REC->prev_state & (2048-1), "|", {pairs}) ' \
            ': "R"'
        dat = self.dat()
        self.switch(dat, 5, 0, state=64, stack="AB")
        self.switch(dat, 0, 6)
        self.switch(dat, 6, 0, state=512, stack="AB")
        self.switch(dat, 0, 6, after=1000)
        self.switch(dat, 6, 7, state=16)
        self.switch(dat, 7, 0, state=2048, stack="AB")
        self.switch(dat, 0, 7, after=300)
        self.addCleanup(setattr, mkdat, "STATES", mkdat.STATES)
        self.assertEqual(self.folded(dat, "-w", "off-cpu"), {"do_exit": 1304})
        mkdat.STATES = old
        self.assertEqual(self.folded(dat, "-w", "off-cpu"), {"do_exit": 1000})
        self.assertEqual(self.folded(dat, "-w", "off-cpu:preempted"), {"do_exit": 300})

    def test_clocks_that_differ(self):
        """A task is seen to come to a CPU before it has left another one: it did not sleep."""
        dat = self.dat(clock="[local]")
        self.switch(dat, 0, 7)
        self.switch(dat, 0, 7, after=995, cpu=1)
        self.switch(dat, 7, 0, after=5, stack="AB")
        self.switch(dat, 7, 0, after=1000, cpu=1, stack="CB")
        self.switch(dat, 0, 7, after=300)
        self.event(dat, "kfree", 1, after=60000, pid=9, cpu=1)
        out, err = self.tool(dat, *FOLDED, "-w", "off-cpu")
        self.assertEqual(out, "do_exit;weak_one 300\n")
        self.assertIn("1 times off the CPU count as 0, as the clocks of the CPUs differ", err)
        self.assertNotIn("away at the end", err)
        self.assertEqual(self.all_forms(dat, "-w", "off-cpu"), 300)
        # It is no matter of clocks if that takes longer, as when only some switches are recorded.
        dat = self.dat(clock="[local]")
        self.switch(dat, 0, 7)
        self.switch(dat, 0, 7, after=995, cpu=1)
        self.switch(dat, 7, 0, after=2000, stack="AB")
        self.switch(dat, 0, 7, after=300)
        self.assertEqual(self.folded(dat, "-w", "off-cpu"), {"do_exit": 300})
        # If the leave was lost, it sleeps.
        dat = self.dat(clock="[local]", cpus=3)
        self.switch(dat, 0, 7)
        self.switch(dat, 0, 7, after=995, cpu=1)
        self.switch(dat, 7, 0, after=10, cpu=1, stack="CB")
        self.switch(dat, 0, 7, after=200, cpu=2)
        self.assertEqual(self.folded(dat, "-w", "off-cpu"), {"do_exit;weak_one": 200})

    def test_uninterruptible(self):
        """State D, apart from other sleeps."""
        dat = self.dat()
        for state, stack in [(1, "AB"), (2, "CB"), (0, "A"), (2, "AB")]:
            self.switch(dat, 5, 0, state=state, stack=stack)
            self.switch(dat, 0, 5, after=100 + state)
        self.assertEqual(self.folded(dat, "-w", "off-cpu"), {"do_exit": 203, "do_exit;weak_one": 102})
        self.assertEqual(self.folded(dat, "-w", "off-cpu:uninterruptible"),
                         {"do_exit": 102, "do_exit;weak_one": 102})
        self.assertEqual(self.folded(dat, "-w", "off-cpu:preempted"), {"schedule": 100})
        self.assertEqual(self.all_forms(dat, "-w", "off-cpu:uninterruptible"), 204)


class Wakers(RecordingCase):
    """--wakers: who has ended a sleep."""

    def waking(self, dat, woken, stack=None, **where):
        """Someone wakes a task."""
        self.event(dat, "sched_waking", f"t{woken}", woken, 120, 0, stack=stack, **where)

    def test_wakers(self):
        """Who has ended a sleep: in any order of what happens on two CPUs, and never an old one."""
        dat = self.dat(comms=[(7, "seven"), (8, "eight")])
        self.switch(dat, 5, 0, stack="AB")
        self.waking(dat, 5, pid=7, cpu=1, stack="CB")
        self.switch(dat, 0, 5, after=100)
        # Woken just before it leaves; of a sleep that it did not begin, it was woken before.
        self.waking(dat, 5, pid=8, cpu=1, stack="A")
        self.waking(dat, 5, pid=7, cpu=1, stack="CB")
        self.switch(dat, 5, 0, stack="AB")
        self.switch(dat, 0, 5, after=1000)
        # By an interrupt, which has hit someone.
        self.switch(dat, 5, 0, stack="CB")
        self.waking(dat, 5, pid=7, flags=8, preempt=1, stack="A")
        self.switch(dat, 0, 5, after=30)
        # By someone who is not recorded, and not as before it was preempted; and it was not woken yet.
        self.waking(dat, 5, pid=8, cpu=1, stack="A")
        self.switch(dat, 5, 0, state=0, stack="A")
        self.switch(dat, 0, 5)
        self.switch(dat, 5, 0, stack="CB")
        self.switch(dat, 0, 5, after=7)
        self.switch(dat, 5, 0, stack="CB")
        self.event(dat, "kfree", 1, after=9)
        args = ["-w", "off-cpu", "--wakers"]
        self.assertEqual(self.folded(dat, *args), {
            "do_exit;[woken_by];[seven];weak_one;do_exit": 1101,
            "do_exit;weak_one;[woken_by];[interrupt_handler];schedule": 31, "do_exit;weak_one": 16})
        self.assertIn("2 times off the CPU, of which nothing tells", self.tool(dat, *FOLDED, *args)[1])
        self.assertEqual(self.all_forms(dat, *args), 1148)
        self.assertEqual(self.folded(dat, *args, "--callees", "[woken by]"), {
            "[woken_by];[seven];weak_one;do_exit": 1101,
            "[woken_by];[interrupt_handler];schedule": 31})
        self.assertEqual(self.folded(dat, "-w", "off-cpu"), {"do_exit": 1101, "do_exit;weak_one": 47})
        self.assertEqual(sum(self.folded(dat, "-e", "sched_waking").values()), 5)
        for bad in [["--wakers"], ["-w", "off-cpu:preempted", "--wakers"]]:
            self.assertIn("--weight off-cpu --wakers", self.tool(dat, *FOLDED, *bad, rc=2)[1])
        del mkdat.EVENTS["sched"]["sched_waking"]
        self.addCleanup(mkdat.EVENTS["sched"].update, sched_waking=[
            ("char", "comm[16]"), ("int", "pid"), ("int", "prio"), ("int", "target_cpu")])
        dat = self.dat()
        self.switch(dat, 5, 0, stack="AB")
        self.assertIn("(record with -e sched_switch,sched_waking)",
                      self.tool(dat, *FOLDED, *args, rc=1)[1])

    def test_hit_in_full(self):
        """Behind the code where interrupts enter the kernel is no return address."""
        ips = [self.A, self.C + 4, TEXT + 0x100, self.B]
        dat = self.dat(comms=[(7, "seven")])
        self.switch(dat, 5, 0)
        dat.add(self.now, "kernel_stack", 4, ips, pid=5)
        self.waking(dat, 5, pid=7, flags=8, preempt=1)
        dat.add(self.now, "kernel_stack", 4, ips, pid=7, flags=8, preempt=1)
        self.switch(dat, 0, 5, after=30)
        entry = f"{TEXT + 0x180:x} T __entry_text_start\n{TEXT + 0x200:x} T __entry_text_end\n"
        known = {"kallsyms": golden_text("kallsyms64") + entry}
        # The second one begins with the tracer's trampoline, which the profile does not have.
        data = mkmap.make([(7, 1, ips), (8, 1, [0xFFFFFFFFC0400010, *ips])])
        wakers = ["-w", "off-cpu", "--wakers"]
        for more, hit, woken in [({}, "do_exit", ";weak_one;do_exit;do_exit"),
                                 (known, "schedule", ";weak_one")]:
            stack = f"do_exit;{hit};weak_one"
            self.assertEqual(self.folded(dat, "-e", "sched_switch", more=more),
                             {stack + ";schedule": 1, "[no_stack]": 1})
            self.assertEqual(self.folded(dat, *wakers, more=more),
                             {stack + ";[woken_by];[interrupt_handler];schedule" + woken: 31})
            self.file("dir/stack_map_bin", data)
            path = os.path.join(self.dir, "dir")
            out = self.run_tool(*MAP_FOLDED, "-q", path)[0]
            self.assertEqual(out, stack + ";schedule 2\n")
            out = self.run_tool("annotate", "-q", "-", path, stdin=b"<stack_id 7>\n")[0]
            self.assertIn(f" => {hit}+", out.splitlines()[3])

    def test_wakers_that_are_not(self):
        """A task that ran was woken before it slept; a name is that of the time."""
        args = ["-w", "off-cpu", "--wakers"]
        dat = self.dat(comms=[(7, "seven")])
        self.waking(dat, 5, pid=7, cpu=1, stack="CB")
        self.switch(dat, 5, 0, stack="AB", after=400)
        self.switch(dat, 0, 5, after=100)
        self.assertEqual(list(self.folded(dat, *args)), ["do_exit"])
        # By a clock that is ahead, it was woken after it came.
        dat = self.dat(comms=[(7, "seven")])
        for _ in range(2):
            self.switch(dat, 5, 0, stack="AB", after=400)
            self.switch(dat, 0, 5, after=100)
            self.waking(dat, 5, pid=7, cpu=1, stack="CB", after=3)
        self.assertEqual(list(self.folded(dat, *args)), ["do_exit"])
        dat = self.dat(comms=[(7, "later")])
        self.switch(dat, 5, 0, stack="AB")
        self.waking(dat, 5, pid=7, cpu=1, stack="CB")
        self.event(dat, "task_rename", 7, "earlier", "later", 0, pid=7, cpu=1)
        self.switch(dat, 0, 5, after=100)
        self.assertEqual(list(self.folded(dat, *args)), ["do_exit;[woken_by];[earlier];weak_one;do_exit"])
        # Of a waker, frames of schedule() are left.
        dat = self.dat(comms=[(7, "seven")])
        self.switch(dat, 5, 0, stack="AB")
        self.waking(dat, 5, pid=7, cpu=1, stack="AB")
        self.switch(dat, 0, 5, after=100)
        self.assertEqual(list(self.folded(dat, *args)), ["do_exit;[woken_by];[seven];schedule;do_exit"])
        # The stack of a waker is turned round: no callers there.
        self.assertIn("no stack has a function weak_one",
                      self.tool(dat, *FOLDED, *args, "--callers", "weak_one", rc=1)[1])
        self.assertEqual(list(self.folded(dat, *args, "--callers", "[woken by]")), ["[woken_by];do_exit"])

    def test_interrupt_that_wakes(self):
        """Has its own part of a stack only. A task may be named interrupt."""
        dat = self.dat(comms=[(7, "interrupt")])
        for ident, stack in [(1, [self.C, self.A]), (2, [self.A, self.B])]:
            dat.add(self.now, "stack_def", ident, len(stack), stack)
        for flags in [8, 0x10, 0]:
            self.switch(dat, 5, 0, stack="AB")
            self.waking(dat, 5, pid=7, flags=flags, cpu=1)
            dat.add(self.now, "stack_split", 1, 2, self.B, pid=7, flags=flags, cpu=1)
            self.switch(dat, 0, 5, after=99)
        args = ["-w", "off-cpu", "--wakers"]
        self.assertEqual(self.folded(dat, *args), {
            "do_exit;[woken_by];[interrupt_handler];weak_one;schedule": 200,
            "do_exit;[woken_by];[interrupt];weak_one;schedule;do_exit;schedule;do_exit": 100})

    def test_wakers_of_user_space(self):
        """The stack of user space of who wakes comes on its way back, maybe after the task runs."""
        for late in [False, True]:
            dat = self.dat(comms=[(7, "seven")])
            self.switch(dat, 5, 0, stack="AB")
            self.add(dat, "user_unwind_cookie", 3, pid=5)
            self.add(dat, "user_unwind_cookie", 4, pid=7, cpu=1)
            self.waking(dat, 5, pid=7, cpu=1, stack="CB")
            self.add(dat, "user_unwind_cookie", 4, pid=7, cpu=1)
            back = lambda: self.add(dat, "user_unwind_stack", 4, 7, 2, [0x5000, 0x6000], pid=7, cpu=1)
            if not late:
                back()
            self.switch(dat, 0, 5, after=100)
            if late:
                back()
            self.add(dat, "user_unwind_stack", 3, 5, 1, [0x5500], pid=5)
            (line, us), = self.folded(dat, "-w", "off-cpu", "--wakers").items()
            self.assertRegex(line, r"^0x5500\[user\];do_exit;\[woken_by\];\[seven\];weak_one;do_exit;"
                             r"0x5000\[user\];0x6000\[user\]$")
            self.assertGreater(us, 100)


class Outstanding(RecordingCase):
    """Memory that is not freed."""

    def test_outstanding(self):
        dat = self.dat()
        self.event(dat, "kfree", 9, stack="A")
        for ptr, size, stack in [(1, 10, "AB"), (2, 20, "AB"), (3, 30, "CB"), (4, 40, "A")]:
            self.event(dat, "kmalloc", ptr, size, stack=stack)
        self.event(dat, "kmem_cache_alloc", 5, 50, stack="A")
        self.event(dat, "kfree", 1, stack="A", pid=2, cpu=1)
        self.event(dat, "kmem_cache_free", 4, stack="A")
        self.event(dat, "kmalloc", 1, 11, stack="CB")
        self.event(dat, "kmalloc", 2, 21, stack="CB")
        args = ["-w", "outstanding=kmalloc,kfree,ptr"]
        out, err = self.tool(dat, *FOLDED, *args)
        self.assertEqual(out, "do_exit;weak_one 3\nschedule 1\n")
        self.assertIn("1 frees of what was not seen", err)
        self.assertIn("1 allocations at addresses in use", err)
        self.assertEqual(self.all_forms(dat, *args), 4)
        self.assertEqual(self.all_forms(dat, *args, "-w", "bytes_alloc"), 62 + 40)
        self.assertEqual(self.folded(dat, "-w", "leaks"), {"do_exit;weak_one": 62, "schedule": 50})

    def test_outstanding_needs_its_events(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 0x1000, 8, stack="A")
        self.event(dat, "kfree", 0x1000)
        for what in ["kmalloc,kfre,ptr", "kmaloc,kfree,ptr", "kmalloc,kfree,pt",
                     "kmalloc,sched_switch,ptr", "kmalloc+x,kfree,ptr", "kmalloc,x+kfree,ptr",
                     "kmalloc+kfree,kfree+sched_switch,ptr", "sched_switch,sched_switch,prev_comm"]:
            self.assertIn("has no event", self.tool(dat, *FOLDED, "-w", "outstanding=" + what,
                                                    rc=1)[1])
        out, err = self.tool(dat, "report", "-w", "leaks")
        self.assertTrue(out.startswith("# 0 bytes_alloc (bytes)"), out)

    def test_outstanding_without_frees(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 0x1000, 8, stack="A")
        for what, state in [("outstanding", "freed"), ("latency", "ended")]:
            args = ["-w", what + "=kmalloc,kfree,ptr"]
            self.assertIn("no event kfree was recorded, so all counts as not " + state,
                          self.tool(dat, *FOLDED, *args, rc=what == "latency")[1])
        self.event(dat, "kfree", 0x2000)
        self.assertNotIn("was recorded", self.tool(dat, *FOLDED, "-w", "outstanding=kmalloc,kfree,ptr")[1])

    def test_outstanding_and_gaps(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 0x1000, 8, stack="A")
        self.event(dat, "kmalloc", 0x2000, 8, stack="AB")
        self.event(dat, "kfree", 0x2000)
        self.event(dat, "kfree", 0x2000, cpu=1, lost=True)
        self.event(dat, "kmalloc", 0x3000, 8, stack="CB")
        out, err = self.tool(dat, *FOLDED, "-w", "leaks")
        self.assertEqual(out, "schedule 8\ndo_exit;weak_one 8\n")
        self.assertIn(": 1 allocations may have been freed: records were lost", err)

    def test_outstanding_of_a_selection(self):
        """What others do with the address counts."""
        dat = self.dat()
        for pid in [1, 2]:
            self.event(dat, "kmalloc", 0x1000, 64, stack="A", pid=pid)
        self.event(dat, "kmalloc", 0x2000, 8, stack="A", pid=1)
        self.event(dat, "kmalloc", 0x3000, 8, stack="A", pid=2)
        self.event(dat, "kfree", 0x3000, pid=2)
        self.assertEqual(self.folded(dat, "-w", "leaks", "--pid", "1"), {"schedule": 8})
        self.assertNotIn("not seen allocated", self.tool(dat, *FOLDED, "-w", "leaks", "--pid", "1")[1])


class Latency(RecordingCase):
    """latency: from one event to another."""

    def test_latency(self):
        """From one event to another, by the stack of the first."""
        dat = self.dat()
        for dev, sector, stack in [(1, 0, "AB"), (2, 0, "CB"), (1, 8, "AB"), (1, 16, "A")]:
            self.event(dat, "block_rq_issue", dev, sector, stack=stack)
        self.event(dat, "block_rq_complete", 1, 0, after=100, pid=0, cpu=1)     # 104
        self.event(dat, "block_rq_complete", 1, 8, after=10, pid=0, cpu=1)      # 112
        self.event(dat, "block_rq_complete", 2, 0, after=10, pid=0, cpu=1)      # 123
        self.event(dat, "block_rq_complete", 2, 8, after=10, pid=0, cpu=1)
        args = ["-w", "latency=block_rq_issue,block_rq_complete,dev,sector"]
        out, err = self.tool(dat, *args)
        self.assertEqual(self.folded(dat, *args), {"do_exit;schedule": 103 + 111, "do_exit;weak_one": 122})
        self.assertIn("214 (63.7%), 2 events, at most 111\n        schedule\n        do_exit\n\n", out)
        self.assertIn(": 1 times left out: they had not ended", err)
        self.assertIn(": 1 ends of what was not seen to begin", err)
        self.assertEqual(self.all_forms(dat, *args), 336)
        self.assertIn(" 1.000104: 103 block_rq_issue:", self.tool(dat, *PERF, *args)[0])
        # The CPU of a group is that of the end, it is selected by the begin.
        self.assertEqual(self.groups(dat, "cpu", *args), {"CPU 1": 336})
        self.assertEqual(sum(self.folded(dat, *args, "--cpu", "0").values()), 336)
        self.tool(dat, *FOLDED, *args, "--cpu", "1", rc=1)
        # By the sector alone, a request to another disk is the same, which gives the same sum.
        out, err = self.tool(dat, *FOLDED, "-w", "latency=block_rq_issue,block_rq_complete,sector")
        self.assertIn(": 1 times are in others that have begun with the same fields", err)
        self.assertEqual(sum(int(line.split()[1]) for line in out.splitlines()), 336)
        for bad in ["block_rq_issue,block_rq_complete", ",,x", "a,,c", "a,b,", ""]:
            self.assertIn("latency=BEGIN,END,KEY", self.tool(dat, "-w", "latency=" + bad, rc=2)[1])
        for bad in ["block_rq_issue,block_rq_complete,dev,x", "block_rq_issue,nothing,dev",
                    "block_rq_issue,kfree,dev", "block_rq_issue,block_rq_complete,dev,"]:
            self.assertIn("has no event", self.tool(dat, "-w", "latency=" + bad, rc=1)[1])
        self.assertIn("one weight", self.tool(dat, *args, "-w", "leaks", rc=2)[1])
        dat.clock = "[counter]"
        self.assertIn("needed by --weight latency", self.tool(dat, *args, rc=1)[1])

    def test_latency_of_a_task(self):
        """By the number of the task; from one event to the next of its kind; and in gaps."""
        dat = self.dat()
        for pid in [1, 2, 0]:
            self.event(dat, "kmalloc", 1, 8, stack="AB", pid=pid, cpu=pid & 1, after=10)
        for pid in [1, 2, 0]:
            self.event(dat, "kfree", 1, pid=pid, cpu=pid & 1, after=5)
        self.assertEqual(self.folded(dat, "-w", "latency=kmalloc,kfree,common_pid"),
                         {"do_exit;schedule": 25 + 20 + 15})
        self.assertEqual(self.folded(dat, "-w", "latency=kmalloc,kfree,common_pid", "--pid", "2"),
                         {"do_exit;schedule": 20})
        self.assertEqual(self.folded(dat, "-w", "latency=kmalloc,kmalloc,ptr"),
                         {"do_exit;schedule": 20})
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.event(dat, "kmalloc", 2, 8, stack="CB", cpu=1)
        self.event(dat, "kfree", 1, lost=True)
        self.event(dat, "kmalloc", 3, 8, stack="A", after=10)
        self.event(dat, "kfree", 2, cpu=1)
        self.event(dat, "kfree", 3)
        out, err = self.tool(dat, *FOLDED, "-w", "latency=kmalloc,kfree,ptr")
        self.assertEqual(out, "schedule 2\n")
        self.assertIn(": 2 times left out: records were lost meanwhile", err)

    def test_fields_of_two_names(self):
        """How long a task that was woken waits for a CPU; events by their systems."""
        dat = self.dat()
        for pid, after, stack in [(5, 1, "AB"), (6, 10, "CB")]:
            self.event(dat, "sched_waking", f"t{pid}", pid, 120, 0, stack=stack, after=after)
        self.switch(dat, 0, 6, after=100)
        self.switch(dat, 6, 5, after=30)
        for events in ["sched_waking,sched_switch", "sched:sched_waking,sched:sched_switch"]:
            args = ["-w", f"latency={events},pid=next_pid"]
            self.assertEqual(self.folded(dat, *args), {"do_exit;schedule": 140, "do_exit;weak_one": 100})
            self.assertEqual(self.folded(dat, *args, "--pid", "1", "--grep", "weak"),
                             {"do_exit;weak_one": 100})
        for bad in ["pid", "next_pid=pid", "pid=", "=next_pid", "pid=next_pid,x"]:
            self.assertIn("has no event", self.tool(dat, *FOLDED, "-w", "latency=sched_waking,"
                                                    "sched_switch," + bad, rc=1)[1])

    def test_woken_while_it_runs(self):
        """It does not wait then. But it may be woken on its way from the CPU."""
        args = "-w", "latency=sched_waking,sched_switch,pid=next_pid"
        for before_it_leaves, want in (11, {"do_exit;weak_one": 1010}), (5, {"do_exit;schedule": 105,
                                                                             "do_exit;weak_one": 1010}):
            dat = self.dat()
            self.event(dat, "sched_waking", "t1", 1, 120, 0, stack="AB", pid=2, cpu=1)
            self.switch(dat, 1, 3, state=0, after=before_it_leaves)
            self.switch(dat, 3, 1, after=100)
            self.switch(dat, 1, 3, after=1000)
            self.event(dat, "sched_waking", "t1", 1, 120, 0, stack="CB", pid=2, cpu=1)
            self.switch(dat, 3, 1, after=1010)
            self.assertEqual(self.folded(dat, *args), want)
            err = self.tool(dat, *FOLDED, *args)[1]
            self.assertEqual(": 1 times left out: they had not ended" in err, before_it_leaves == 11)

    def test_latency_of_idle_tasks(self):
        """Each CPU has its own, with one number."""
        dat = self.dat()
        for name, cpu, after in [("kmalloc", 0, 1), ("kmalloc", 1, 100), ("kfree", 0, 10), ("kfree", 1, 500)]:
            self.event(dat, name, 1, *[8] * (name == "kmalloc"), pid=0, cpu=cpu, after=after,
                       stack="AB" if name == "kmalloc" and not cpu else "CB")
        self.assertEqual(sorted(self.folded(dat, "-w", "latency=kmalloc,kfree,common_pid")),
                         ["do_exit;schedule", "do_exit;weak_one"])

    def test_short_times(self):
        """Their sum is right in each form, as long as it is."""
        dat = self.dat()
        records = dat.cpus[""][0]
        for i in range(1000):
            self.event(dat, "kmalloc", 1, 8, stack="AB" if i % 2 else "CB")
            self.event(dat, "kfree", 1)
            time, data, lost = records[-1]
            records[-1] = (time - 600, data, lost)
        args = ["-w", "latency=kmalloc,kfree,ptr"]
        self.assertEqual(self.all_forms(dat, *args), 400)
        self.assertEqual(self.folded(dat, *args), {"do_exit;schedule": 200, "do_exit;weak_one": 200})

    def test_nested(self):
        """The last begin ends first. Pairs of two CPUs have the same sum."""
        for cpus in (0, 0, 0, 0), (0, 1, 0, 1):
            dat = self.dat()
            for event, cpu, after, stack in [("block_rq_issue", cpus[0], 1, "AB"),
                                             ("block_rq_issue", cpus[1], 100, "CB"),
                                             ("block_rq_complete", cpus[2], 20, None),
                                             ("block_rq_complete", cpus[3], 3, None)]:
                self.event(dat, event, 8, 77, after=after, stack=stack, cpu=cpu)
            args = ["-w", "latency=block_rq_issue,block_rq_complete,dev"]
            self.assertEqual(self.folded(dat, *args), {"do_exit;schedule": 123, "do_exit;weak_one": 20})
            self.assertEqual(self.all_forms(dat, *args), 143)
        self.event(dat, "block_rq_complete", 8, 77)
        self.assertIn(": 1 ends of what was not seen", self.tool(dat, *FOLDED, *args)[1])

    def test_many_nested(self):
        """Begins that never end do not grow without an end."""
        dat = self.dat()
        for _ in range(1000):
            self.event(dat, "block_rq_issue", 8, 77, stack="AB")
        for _ in range(2):
            self.event(dat, "block_rq_complete", 8, 77)
        args = ["-w", "latency=block_rq_issue,block_rq_complete,dev"]
        out, err = self.tool(dat, *FOLDED, *args)
        self.assertEqual(out, "do_exit;schedule 4\n")
        self.assertIn(": 998 times left out: they had not ended", err)


class Sums(RecordingCase):
    """Numbers that are too large, and what two instances have."""

    def test_too_large(self):
        """Sums of 64 bits that would wrap, or would be negative in pprof."""
        for values in [1 << 62] * 2, [1 << 62] * 5, [(1 << 63) - 1, 1]:
            dat = self.dat()
            for n, stack in zip(values, ["AB", "CB", "A", "AB", "CB"]):
                self.event(dat, "kmalloc", 1, n, stack=stack)
            for args in FOLDED, ["report"], ["-j"], PPROF, []:
                out, err = self.tool(dat, *args, "-w", "bytes_alloc", rc=1)
                self.assertEqual(out, "")
                self.assertIn("the sum of the weights is too large", err)
        dat = self.dat()
        for n in (1 << 62, (1 << 62) - 1):
            self.event(dat, "kmalloc", 1, n, stack="AB")
        self.assertEqual(self.all_forms(dat, "-w", "bytes_alloc"), (1 << 63) - 1)

    def test_below_0(self):
        """Also of a field without a sign."""
        dat = self.dat()
        for n in (1 << 64) - 12, 5, 1 << 63:
            self.event(dat, "kmalloc", 1, n, stack="AB")
        self.event(dat, "sys_enter_close", -1, stack="AB")
        self.assertEqual(self.all_forms(dat, "-w", "bytes_alloc"), 5)
        self.assertIn(": 2 values are below 0, and", self.tool(dat, *FOLDED, "-w", "bytes_alloc")[1])
        self.assertIn(": 1 values are below 0, and", self.tool(dat, "-w", "fd")[1])

    def test_two_instances(self):
        """They may have recorded the same events."""
        dat = self.dat(instances=["x"])
        for instance, event in [("", "kfree"), ("x", "kmem_cache_free"), ("x", "kfree")]:
            self.event(dat, event, 1, stack="AB", instance=instance)
        says = "samples are of events that another instance has, maybe the same (-i NAME, -i '')"
        self.assertIn(": 1 " + says, self.tool(dat, *FOLDED)[1])
        for args in ["-e", "kmem_cache_free"], ["-i", "x"]:
            self.assertNotIn(says, self.tool(dat, *FOLDED, *args)[1])
