# SPDX-License-Identifier: GPL-2.0
"""top."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios

import mkmap
from common import TOOL, Case, Tracefs


class Counts(Case):
    """What it prints of maps."""

    def test_top_without_symbols(self):
        path = self.program("top", '#include "top.c"\nint main(int n, char **args)\n{ struct map m '
                            "= {}; load_map(&m, args[1]); print_use(&m, m.stacks, 1000, 0); }\n")
        words = [self.word(1, 5), self.word(2, 5), 0x77]
        section = self.files((1, b"", "/x/cat"), (2, b"", ""))
        data = mkmap.make([(5, 3, words, 3)], [section])
        done = subprocess.run([path, self.file("map", data)], capture_output=True, check=True)
        self.assertEqual(done.stdout.split(b"  ")[-1], b"cat < [unknown] < 0x77\n")

    def test_counts_after_a_reset(self):
        """All of them are since the reset, also one that is not less than before."""
        path = self.program("top", '#include "top.c"\nint main(int n, char **args)\n{ struct top t '
                            "= {}; int i; for (i = 1; i < n; i++) { t.map.name = args[i]; "
                            'reload_map(&t.map); printf("%llu ", take_refs(&t)); } }\n')
        maps = [self.file(f"map{n}", mkmap.make([(1, ref, [5]), (2, 1, [6])]))
                for n, ref in enumerate([10, 12, 3, 4])]
        done = subprocess.run([path, *maps], capture_output=True, check=True)
        self.assertEqual(done.stdout, b"11 2 4 1 ")


class Top(Tracefs):
    """On a terminal and elsewhere."""

    def on_terminal(self, rows, columns, key, *args):
        """Runs top on a terminal of that size, and types a key when it shows stacks. Returns these."""
        pid, terminal = pty.fork()
        if not pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.environ.update(LD_PRELOAD=self.lib, STALE="0", TRACEFS=self.dir)
            os.execv(TOOL, [TOOL, "top", "-q", "--delay", "0.05", *args])
        out, typed = b"", False
        try:
            for count in range(1000):
                if b"0x1010 <" in out.rpartition(b"\r\n\r\n")[0] and not typed:
                    os.write(terminal, key)
                    typed = True
                self.file("new", mkmap.make([(i, count, [0x1010] * 20) for i in range(50)]))
                os.replace(os.path.join(self.dir, "new"), self.map)
                if select.select([terminal], [], [], 0.02)[0]:
                    out += os.read(terminal, 65536)
        except OSError:
            pass
        self.assertEqual(termios.tcgetattr(terminal)[3] & (termios.ICANON | termios.ECHO),
                         termios.ICANON | termios.ECHO)
        os.close(terminal)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        looks = [look for look in out.decode().split("\033[H\033[J") if "0x1010 <" in look]
        return [line for line in looks[0].split("\r\n") if "0x1010 <" in line]

    def test_top_after_a_reset(self):
        """All counts begin again, also where they are larger than before by now."""
        self.make_map()
        self.file("stack_map_bin", mkmap.make([(1, 100, [0x1010]), (2, 3, [0x2010])]))
        with self.popen("top", "-n", "3", "--delay", "0.5") as p:
            while b"STACK" not in p.stdout.readline():
                pass
            self.file("new", mkmap.make([(1, 5, [0x1010]), (2, 7, [0x2010])]))
            os.replace(os.path.join(self.dir, "new"), self.map)
            out = p.stdout.read().decode()
            self.assertEqual(p.wait(10), 0)
        self.assertRegex(out, r"[\d.]+ +7  0x2010\n +[\d.]+ +5  0x1010")

    def test_top_on_a_terminal(self):
        """One that does not tell its size, as a serial console; keys; long lines."""
        self.make_map()
        self.file("stack_map_bin", mkmap.make([]))
        for rows, columns, nr, width in [(0, 0, 19, 80), (10, 50, 5, 50), (3, 200, 1, 200)]:
            for key in [b"q", b"\x03", b"xq"]:
                shown = self.on_terminal(rows, columns, key)
                self.assertEqual({len(line) for line in shown}, {width})
                self.assertEqual(len(shown), nr)
        self.assertEqual(len(self.on_terminal(3, 200, b"q", "-t", "7")), 7)

    def test_top_on_a_full_disk(self):
        self.make_map()
        self.file("stack_map_bin", mkmap.make([(1, 1, [0x1010])]))
        with open("/dev/full", "wb") as full:
            err = self.run_fake(0, "top", "-n", "9", "--delay", "0.01", rc=1, stdout=full)[1]
        self.assertEqual(err, "stackmap_dump: stdout: No space left on device\n")
