# SPDX-License-Identifier: GPL-2.0
"""export --format perfetto, by the rules of protobuf and the numbers of Perfetto's schema."""

import os

from common import Pprof, RecordingCase

PERFETTO = ("export", "--format", "perfetto")


class Perfetto(RecordingCase, Pprof):
    """Reads the packets."""

    def packets(self, dat, *args, more=None):
        """Their fields, and the interned data of all."""
        out = os.path.join(self.dir, "out")
        self.err = self.tool(dat, *PERFETTO, "-o", out, *args, more=more)[1]
        with open(out, "rb") as f:
            trace = self.message(f.read())
        self.assertEqual(set(trace), {1})
        packets = [self.message(p) for p in trace[1]]
        self.interned = {5: {}, 6: {}, 7: {}, 17: {}, 19: {}}
        for i, p in enumerate(packets):
            self.assertEqual((p[10], p[13]), ([1], [2 if i else 1]))
            for data in p.get(12, []):
                for kind, entries in self.message(data).items():
                    for e in map(self.message, entries):
                        self.assertNotIn(e[1][0], self.interned[kind])
                        self.interned[kind][e[1][0]] = e
        return packets

    def events(self, packets):
        """The scheduler's: time, CPU, task, number and fields."""
        out = []
        for p in packets:
            for bundle in map(self.message, p.get(1, [])):
                event = self.message(bundle[2][0])
                (kind,) = set(event) - {1, 2}
                fields = {k: v[0] for k, v in self.message(event[kind][0]).items()}
                out.append((event[1][0], bundle[1][0], event[2][0], kind, fields))
        return out

    def path(self, number):
        """Names from the root, as folded ones."""
        names = []
        for i in self.interned[7][number][2]:
            frame = self.interned[6][i]
            mapping = self.interned[17][self.interned[19][frame[3][0]][7][0]][2][0].decode()
            name = self.interned[5][frame[2][0]][2][0].decode()
            names.append(name if mapping == "[kernel.kallsyms]" else f"{name}[{mapping}]")
        return ";".join(names).replace(" ", "_")

    def samples(self, packets):
        """Time, thread, process, stack."""
        out = []
        for p in packets:
            for s in map(self.message, p.get(66, [])):
                out.append((p[8][0], s.get(3, [0])[0], s.get(2, [0])[0], self.path(s[4][0])))
        return out

    def instants(self, packets):
        """Time, track, name, arguments."""
        out = []
        for p in packets:
            for e in map(self.message, p.get(11, [])):
                args = {a[10][0].decode(): a[6][0].decode() if 6 in a else a[3][0]
                        for a in map(self.message, e.get(4, []))}
                self.assertEqual(e[9], [3])
                out.append((p[8][0], e[11][0], e[23][0].decode(), args))
        return out

    def check(self, dat, *args, **more):
        """The samples are those of the folded stacks. Returns the packets."""
        packets = self.packets(dat, *args, **more)
        count = {}
        for sample, (_, _, _, a) in zip(self.samples(packets), [
                i for i in self.instants(packets) if i[1] != 1]):
            weight = a.get("delay", a.get("bytes_alloc", 1))
            count[sample[3]] = count.get(sample[3], 0) + weight
        self.assertEqual(count, self.folded(dat, *args, **more))
        return packets

    def switches(self, **args):
        """Three tasks on two CPUs, an event with user space, the second with a process."""
        dat = self.dat(clock="[local]", **args)
        self.switch(dat, 1, 2, stack="AB")
        self.event(dat, "sched_waking", "t1", 1, 120, 1, pid=0, cpu=1)
        self.switch(dat, 2, 0, state=0x100, stack="CB", after=100)
        self.switch(dat, 0, 1, state=0, cpu=1, after=10)
        self.event(dat, "kmalloc", 77, 64, stack="A", pid=1, cpu=1)
        self.add(dat, "user_stack", 7, [0x5500, 0x6600], pid=1, cpu=1)
        self.switch(dat, 1, 0, state=2, stack="AB", cpu=1)
        return dat

    def test_scheduler(self):
        """The switches and wakeups as they are."""
        packets = self.packets(self.switches(uname="Linux host 7.3.0 x86_64"))
        us = 1000
        self.assertEqual(self.events(packets), [
            (1000001 * us, 0, 1, 4, {1: b"t1", 2: 1, 3: 120, 4: 1, 5: b"t2", 6: 2, 7: 120}),
            (1000002 * us, 1, 0, 20, {1: b"t1", 2: 1, 3: 120, 5: 1}),
            (1000102 * us, 0, 2, 4, {1: b"t2", 2: 2, 3: 120, 4: 0x100, 5: b"t0", 7: 120}),
            (1000112 * us, 1, 0, 4, {1: b"t0", 3: 120, 5: b"t1", 6: 1, 7: 120}),
            (1000115 * us, 1, 1, 4, {1: b"t1", 2: 1, 3: 120, 4: 2, 5: b"t0", 7: 120})])
        self.assertEqual([self.message(self.message(p[45][0])[1][0])[3] for p in packets if 45 in p],
                         [[b"7.3.0"]])
        # The bits of a state that another kernel may have are left out if nothing tells the kernel.
        states = [e[4].get(4, 0) for e in self.events(self.packets(self.switches())) if e[3] == 4]
        self.assertEqual(states, [1, 0, 0, 2])
        times = [e[0] for e in self.events(self.packets(self.switches(), "--time", "1.000002,1.000102"))]
        self.assertEqual(times, [1000002 * us, 1000102 * us])

    def test_clock(self):
        """It is told, by a note and by an event at the begin."""
        instants = self.instants(self.packets(self.switches()))
        self.assertIn((1000001000, 1, "times are of the clock local", {}), instants)
        self.assertIn("times are of the clock local\n", self.err)

    def test_samples(self):
        dat = self.switches()
        packets = self.check(dat)
        self.assertEqual(self.samples(packets), [
            (1000001000, 1, 7, "do_exit;schedule"), (1000102000, 2, 2, "do_exit;weak_one"),
            (1000112000, 0, 0, "[no_stack]"), (1000113000, 1, 7, "0x6600[user];0x5500[user];schedule"),
            (1000115000, 1, 7, "do_exit;schedule")])
        self.assertEqual([i[3] for i in self.instants(packets) if i[2] == "kmalloc"],
                         [{"fields": "ptr=77 bytes_alloc=64"}])
        for args in (["-e", "kmalloc"], ["--tid", "2"], ["--grep", "weak_one"], ["--where", "ptr == 77"],
                     ["-w", "bytes_alloc"]):
            packets = self.check(dat, *args)
            self.assertEqual(len(self.events(packets)), 5)

    def test_names(self):
        packets = self.packets(self.switches())
        tracks = [self.message(self.message(p[60][0])[4][0]) for p in packets if 60 in p and
                  4 in self.message(p[60][0])]
        self.assertEqual([(t[1][0], t[2][0], t[5][0]) for t in tracks], [(7, 1, b"t1"), (2, 2, b"t2"), (0, 0, b"t0")])
        tree = [self.message(p[2][0]) for p in packets if 2 in p]
        threads = {t[1][0]: (t[3][0], t.get(2)) for t in map(self.message, tree[0][2])}
        self.assertEqual(threads, {1: (7, [b"t1"]), 7: (7, None)})
        self.assertEqual([self.message(p)[1][0] for p in tree[0][1]], [7])

    def test_times(self):
        """A time off the CPU begins where the task has left, with its stack."""
        dat = self.switches()
        packets = self.check(dat, "-w", "off-cpu")
        self.assertEqual(self.samples(packets), [(1000001000, 1, 7, "do_exit")])
        self.assertEqual([(t, a["delay"]) for t, track, _, a in self.instants(packets) if track > 1],
                         [(1000001000, 111)])
        # It has another CPU at its end.
        self.assertEqual([self.message(p[66][0]).get(1) for p in packets if 66 in p], [None])

    def test_threads(self):
        """Only a thread whose process is known begins in it."""
        for leader in [], [("user_stack", 5, [0x5500])]:
            dat = self.dat()
            for name, *values in leader:
                self.add(dat, name, *values, pid=5)
            self.add(dat, "task_newtask", 9, "new", 0x10000, pid=5)
            self.add(dat, "task_newtask", 10, "other", 0, pid=5)
            self.event(dat, "kmalloc", 1, 8, stack="AB", pid=9)
            packets = self.packets(dat)
            self.assertEqual([e[4][1] for e in self.events(packets)], [9, 10] if leader else [10])
            self.assertEqual(self.samples(packets)[0][1:3], (9, 5 if leader else 9))

    def test_refused(self):
        dat = self.switches()
        for args in ["--top", "1"], ["--min-ref", "1"], ["--map"], ["--callers", "schedule"]:
            self.tool(dat, *PERFETTO, *args, rc=2)
