# SPDX-License-Identifier: GPL-2.0
"""Recordings: the tasks that events are of."""

import os
import re

from common import FOLDED, PERF, RecordingCase, golden_text


class Names(RecordingCase):
    """The name of a task is that of the time."""

    def test_names_of_tasks(self):
        """They can have any bytes."""
        dat = self.dat(comms=[(1, "a\x1b[31m")])
        self.event(dat, "kmalloc", 1, 8, stack="A")
        self.folded(dat)
        out = self.run_tool("report", "-q", "--by", "task", os.path.join(self.dir, "dir"))[0]
        self.assertIn("# a?[31m-1: 1", out)

    def test_task_that_changes_its_name(self):
        dat = self.dat(comms=[(7, "rm")])
        for cpu in [0, 1]:
            for comm, stack in [("sh", "A"), ("rm", "AB"), ("sh", "A")]:
                idle = f"swapper/{cpu}"
                self.event(dat, "sched_switch", comm, 7, 120, 1, idle, 0, 120, pid=7, cpu=cpu,
                           stack=stack)
                self.event(dat, "kmalloc", 1, 8, stack="CB", pid=0, cpu=cpu)
                self.event(dat, "sched_switch", idle, 0, 120, 0, comm, 7, 120, pid=0, cpu=cpu)
        for args, want in [([], ["rm-7: 2", "sh-7: 4", "swapper/1-0: 12"]),
                           (["--comm", "sh"], ["sh-7: 4"]),
                           (["-w", "off-cpu"], ["rm-7: 4", "sh-7: 8"])]:
            out = self.tool(dat, "report", "-q", "--by", "task", *args)[0]
            self.assertEqual(sorted(re.findall(r"\n# (.*) \(", out)), want)
        out = self.tool(dat, *PERF, "-q", "--pid", "7")[0]
        self.assertEqual(re.findall(r"^(\w+) +7 ", out, re.M), ["sh", "rm", "sh"] * 2)

    def test_name_that_only_a_switch_tells(self):
        """As the process comes to a CPU, or as it leaves it."""
        dat = self.dat(comms=[(7, "old"), (8, "old")])
        self.event(dat, "sched_switch", "swapper/0", 0, 120, 0, "new", 7, 120, pid=0)
        self.event(dat, "kmalloc", 1, 8, stack="A", pid=7)
        self.event(dat, "sched_switch", "left", 8, 120, 1, "swapper/1", 0, 120, pid=8, cpu=1,
                   stack="AB")
        out = self.tool(dat, "report", "-q", "--by", "task")[0]
        self.assertIn("\n# left-8: 1 ", out)
        self.assertIn("\n# new-7: 1 ", out)

    def by_task(self, dat, *args, more=None):
        """What each task weighs."""
        out = self.tool(dat, "report", "-q", "--by", "task", *args, more=more)[0]
        return dict((name, int(n)) for name, n in re.findall(r"\n# (.*): (\d+) \(", out))

    def test_names_of_the_time(self):
        """By fork, exec and rename; a name longer than a task can have; a name that comes back."""
        dat = self.dat(comms=[(7, "last")])
        memory = lambda: self.event(dat, "kmalloc", 1, 8, stack="A", pid=7)
        self.add(dat, "sched_process_fork", "sh", 5, "sh", 7, pid=5)
        memory()
        self.add(dat, "sched_process_exec", "/usr/bin/a-name-that-is-too-long", 7, 7, pid=7)
        memory()
        memory()
        self.add(dat, "task_rename", 7, "a-name-that-is-", "x y", 0, pid=7)
        for _ in range(3):
            memory()
        self.add(dat, "task_rename", 7, "x y", "sh", 0, pid=7)
        for _ in range(4):
            memory()
        self.assertEqual(self.by_task(dat, "-e", "kmalloc"),
                         {"sh-7": 5, "a-name-that-is--7": 2, "x y-7": 3})

    def test_names_that_are_told_late(self):
        """prev_comm and oldcomm correct what came before them."""
        dat = self.dat(comms=[(7, "last"), (8, "last")])
        for comms in [("sh", "ls"), ("ls", "ls"), ("sh", "cat")]:
            self.add(dat, "sched_switch", "swapper/0", 0, 120, 0, comms[0], 7, 120, pid=0)
            self.event(dat, "kmalloc", 1, 8, stack="A", pid=7)
            self.event(dat, "kmalloc", 1, 8, stack="AB", pid=7)
            self.add(dat, "sched_switch", comms[1], 7, 120, 1, "swapper/0", 0, 120, pid=7)
        self.event(dat, "kmalloc", 1, 8, stack="A", pid=8, cpu=1)
        self.add(dat, "task_rename", 8, "first", "second", 0, pid=8, cpu=1)
        self.event(dat, "kmalloc", 1, 8, stack="A", pid=8, cpu=1)
        args = ["-e", "kmalloc"]
        self.assertEqual(self.by_task(dat, *args), {"ls-7": 4, "cat-7": 2, "first-8": 1,
                                                    "second-8": 1})
        self.assertEqual(self.by_task(dat, *args, "--comm", "ls"), {"ls-7": 4})
        self.assertEqual(self.all_forms(dat, *args, "--comm", "first"), 1)
        # Only the memory for that has a limit.
        for _ in range(30000):
            self.event(dat, "kmalloc", 1, 8, stack="A", pid=8, cpu=1)
        self.add(dat, "task_rename", 8, "third", "fourth", 0, pid=8, cpu=1)
        self.assertEqual(self.by_task(dat, *args, "--pid", "8"),
                         {"first-8": 1, "second-8": 10001, "third-8": 20000})


class Command(RecordingCase):
    """What the command has done, and not the recorder."""

    def test_command(self):
        """Others do not count, though the kernel records switches to it. It ends, its number stays."""
        dat = self.dat()
        self.switch(dat, 7, 5, stack="AB")
        self.add(dat, "sched_process_fork", "t5", 5, "t5", 6, pid=5)
        self.event(dat, "kmalloc", 1, 8, stack="CB", pid=6, cpu=1)
        self.switch(dat, 6, 8, stack="CB", cpu=1)
        self.switch(dat, 8, 6, after=100, stack="AB", cpu=1)
        self.switch(dat, 6, 9, state=16, stack="CB", cpu=1)
        self.switch(dat, 9, 6, stack="AB", cpu=1)
        self.switch(dat, 6, 9, stack="AB", cpu=1)
        self.switch(dat, 5, 7, after=5, stack="CB")
        self.switch(dat, 7, 5, after=10, stack="AB")
        more = {"command": "5\n"}
        out, err = self.tool(dat, *FOLDED, "-w", "off-cpu", more=more)
        self.assertEqual(out, "do_exit;weak_one 110\n")
        self.assertIn("5 events left out, of other tasks than the command's", err)
        self.assertNotIn("away at the end", err)
        self.assertEqual(self.all_forms(dat, "-w", "off-cpu"), 110)
        self.assertEqual(self.folded(dat), {"do_exit;weak_one": 4})

    def test_exec_of_a_thread(self):
        """It gets the number of its process."""
        dat = self.dat()
        self.add(dat, "sched_process_fork", "t5", 5, "t5", 6, pid=5)
        self.switch(dat, 5, 6, state=32)
        self.add(dat, "sched_process_exec", "/x/cat", 5, 6, pid=5)
        self.event(dat, "kmalloc", 1, 8, stack="A", pid=5)
        self.assertEqual(self.folded(dat, "-e", "kmalloc", more={"command": "5\n"}),
                         {"schedule": 1})

    def test_own(self):
        """Neither the recorders, nor what is recorded for their names, nor what perf events need."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A", pid=9)
        self.add(dat, "sched_process_fork", "t9", 9, "t9", 10, pid=9)
        self.event(dat, "kmalloc", 1, 8, stack="A", pid=10)
        self.event(dat, "task_rename", 1, "one", "new", 0, stack="AB")
        syms = self.calls(dat, ["kmalloc", "perf_event_mmap", "vm_mmap"])
        self.event(dat, "kmalloc", 1, 8, stack="CB")
        more = {"own_events": "sched:sched_process_fork\ntask:task_rename\n", "own_pids": "9\n",
                "kallsyms": golden_text("kallsyms64") + syms}
        every = dict(more, user_maps="map 1 5000-6000 0 - /x\n")
        out, err = self.tool(dat, *FOLDED, more=every)
        self.assertEqual(sorted(out.splitlines()), ["do_exit;weak_one 1",
                                                    "vm_mmap;perf_event_mmap;kmalloc 1"])
        self.assertIn("4 events left out, which stackmap_dump itself has caused", err)
        more["user_maps"] = "@5 map 1 5000-6000 0 - /x\n"
        out, err = self.tool(dat, *FOLDED, more=more)
        self.assertEqual(out, "do_exit;weak_one 1\n")
        self.assertIn("5 events left out, which stackmap_dump itself has caused", err)
        self.assertEqual(self.folded(dat, "-e", "task_rename"), {"do_exit;schedule": 1})

    def test_switches_between_recorders(self):
        """These are missing, and nothing else is."""
        dat = self.dat()
        self.switch(dat, 5, 9, stack="AB")
        self.switch(dat, 10, 5, after=100, stack="CB")
        self.switch(dat, 5, 6, stack="AB")
        self.switch(dat, 6, 5, after=50, stack="AB")
        out, err = self.tool(dat, *FOLDED, "-w", "off-cpu", more={"own_pids": "9\n10\n"})
        self.assertEqual(out, "do_exit 150\n")
        self.assertNotIn("left out: not all", err)


class Processes(RecordingCase):
    """Threads and processes."""

    def test_pid_is_a_process(self):
        """With its threads and its children to come, as --pid of record."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A", pid=5)
        self.add(dat, "sched_process_fork", "t5", 5, "t5", 6, pid=5)
        self.add(dat, "sched_process_fork", "t6", 6, "t6", 7, pid=6)
        self.event(dat, "kmalloc", 1, 8, stack="AB", pid=7)
        self.event(dat, "kmalloc", 1, 8, stack="CB", pid=8)
        self.add(dat, "sched_process_fork", "t8", 8, "t8", 7, pid=8)
        self.event(dat, "kmalloc", 1, 8, stack="CB", pid=7)
        args = ["-e", "kmalloc", "--pid"]
        self.assertEqual(self.folded(dat, *args, "5"), {"schedule": 1, "do_exit;schedule": 1})
        self.assertEqual(self.folded(dat, *args, "6"), {"do_exit;schedule": 1})
        self.assertEqual(self.folded(dat, "-e", "kmalloc", "--tid", "5"), {"schedule": 1})
        self.assertEqual(self.folded(dat, *args, "7-8"), {"do_exit;schedule": 1,
                                                          "do_exit;weak_one": 2})
        # A thread is known by the number of its process in its user stacks, wherever they are.
        dat = self.dat()
        for _ in range(2):
            self.event(dat, "kmalloc", 1, 8, stack="A", pid=6)
            dat.add(self.now, "user_stack", 5, [0x5500], pid=6)
        self.assertEqual(self.folded(dat, "--pid", "5"), {"0x5500[user];schedule": 2})

    def test_by(self):
        """CPU, event, task."""
        dat = self.dat(comms=[(1, "one"), (2, "two")])
        for pid, event, cpu, n in [(1, "kfree", 0, 3), (2, "kfree", 1, 2), (1, "kmem_cache_free", 1, 1)]:
            for _ in range(n):
                self.event(dat, event, 1, stack="AB", pid=pid, cpu=cpu)
        self.assertEqual(self.groups(dat, "cpu"), {"CPU 0": 3, "CPU 1": 3})
        self.assertEqual(self.groups(dat, "event"), {"kmem:kfree": 5, "kmem:kmem_cache_free": 1})
        self.assertEqual(self.groups(dat, "task"), {"one-1": 4, "two-2": 2})
        self.assertEqual(self.groups(dat, "cpu", "-e", "kfree"), {"CPU 0": 3, "CPU 1": 2})
        self.switch(dat, 5, 0, stack="AB")
        self.switch(dat, 0, 5, after=100, cpu=1)
        self.switch(dat, 5, 0, stack="AB", after=10, cpu=1)
        self.switch(dat, 0, 5, after=10, cpu=1)
        self.assertEqual(self.groups(dat, "event", "-w", "off-cpu"), {"sched:sched_switch": 110})
        err = self.tool(dat, "report", "--by", "process")[1]
        self.assertIn("samples of threads whose process is not known", err)

    def test_by_process(self):
        """What is known of threads; a number is that of another process later."""
        dat = self.dat(comms=[(1, "one"), (2, "two"), (3, "three"), (4, "four")])
        self.event(dat, "sched_process_exec", "/bin/one", 1, 1)
        for thread, flags in [(2, 0x10000), (3, 0)]:
            self.event(dat, "task_newtask", thread, "x", flags)
            self.event(dat, "sched_process_fork", "one", 1, "x", thread)
        for pid in [1, 2, 2, 3]:
            self.event(dat, "kfree", 1, stack="AB", pid=pid)
        # 4 is a thread of 3, as its stack of user space tells.
        self.event(dat, "kfree", 1, stack="AB", pid=4)
        self.add(dat, "user_stack", 3, [0x5000], pid=4)
        self.assertEqual(self.groups(dat, "process"), {"one-1": 3, "x-3": 2})
        self.assertNotIn("not known", self.tool(dat, "report", "--by", "process")[1])
        # Without the event that tells what it is.
        self.event(dat, "sched_process_fork", "one", 1, "x", 2)
        self.event(dat, "kfree", 1, stack="AB", pid=2)
        self.assertEqual(self.groups(dat, "process"), {"one-1": 3, "x-3": 2, "x-2 (2)": 1})
        self.assertIn(": 1 samples of threads whose", self.tool(dat, "report", "--by", "process")[1])

    def test_number_that_is_used_again(self):
        """By a process of another or of the same name, and by a thread, which names no process."""
        for newtask in [True, False]:
            dat = self.dat()
            for comm, flags in [("sh", 0), ("cc", 0), ("cc", 0), ("worker", 0x10000)]:
                if newtask:
                    self.event(dat, "task_newtask", 100, comm, flags, pid=200)
                self.event(dat, "sched_process_fork", "main", 200, comm, 100, pid=200)
                if not flags:
                    self.event(dat, "sched_process_exec", "/bin/" + comm, 100, 100, pid=100)
                self.event(dat, "kfree", 1, stack="AB", pid=100)
                self.event(dat, "sched_switch", comm, 100, 120, 16, "swapper", 0, 120, pid=100)
            groups = {"sh-100": 1, "cc-100 (2)": 1, "cc-100 (3)": 1, "worker-100 (4)": 1}
            self.assertEqual(self.groups(dat, "task", "-e", "kfree"), groups)
            self.assertEqual(self.groups(dat, "process", "-e", "kfree"), groups)
            self.assertEqual(self.all_forms(dat, "-e", "kfree"), 4)
        # A program may be a file descriptor, as fexecve() has it.
        dat = self.dat()
        self.event(dat, "task_rename", 100, "sh", "service", 0, pid=100)
        self.event(dat, "sched_process_exec", "/dev/fd/7", 100, 100, pid=100)
        self.event(dat, "kfree", 1, stack="AB", pid=100)
        self.assertEqual(self.groups(dat, "process", "-e", "kfree"), {"service-100": 1})

    def test_process_of_a_thread(self):
        """By its stack of user space. Its leader is renamed late, and has no samples."""
        dat = self.dat()
        for comm in "main", "cook":
            self.event(dat, "sched_process_fork", "sh", 1, comm, 200)
            self.event(dat, "kfree", 1, stack="AB", pid=100)
            self.add(dat, "user_stack", 200, [0x5000], pid=100)
            self.event(dat, "sched_process_fork", "sh", 1, "thread", 100)
        self.event(dat, "task_rename", 200, "cook", "maker", 0, pid=200)
        self.assertEqual(self.groups(dat, "process", "-e", "kfree"), {"main-200": 1, "maker-200 (2)": 1})
