# SPDX-License-Identifier: GPL-2.0
"""record with the tracing of this machine."""

import os
import re
import shutil
import signal
import subprocess
import time
from unittest import mock

import mkmap
from common import FOLDED, PERF, SANITIZED, TOOL, Case, compiled


FAKE_MAP = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *redirect(const char *path)
{
	static char buf[4096];
	const char *name = strrchr(path, '/');

	if (strncmp(path, "/sys/kernel/tracing/", 20))
		return path;
	if (strstr(path, "/options/stackmap") || !strcmp(name, "/userstacktrace_delay"))
		return "/dev/null";
	if (strncmp(name, "/stack_map_", 11))
		return path;
	snprintf(buf, sizeof(buf), "%s%s", getenv("MAP"), name);
	return buf;
}

FILE *fopen(const char *path, const char *mode)
{
	return ((FILE *(*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen"))(redirect(path), mode);
}

FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));

int access(const char *path, int mode)
{
	return ((int (*)(const char *, int))dlsym(RTLD_NEXT, "access"))(redirect(path), mode);
}

/* Of the command that was not started. */
void _exit(int status)
{
	usleep(getenv("SLOW") ? 300000 : 0);
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

int open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open"))(redirect(path), flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
"""


# Some machines let nobody write ftrace_enabled, which trace-cmd does.
MOUNT = """\
[ -e /sys/kernel/tracing/instances ] || mount -t tracefs none /sys/kernel/tracing || exit 99
echo 1 > "$MAP/enabled"
mount --bind "$MAP/enabled" /proc/sys/kernel/ftrace_enabled || exit 99
export LD_PRELOAD="$MAP/fake.so"
exec "$@"
"""


class Kernel(Case):
    """record with this machine's tracing. Only the map is made up."""

    def setUp(self):
        super().setUp()
        if SANITIZED or os.geteuid() or not shutil.which("trace-cmd"):
            self.skipTest("needs root, trace-cmd, and no sanitizer")
        if os.path.exists("/sys/kernel/tracing/options/stackmap"):
            self.skipTest("this kernel has a stack map")
        self.file("fake.so", compiled("fake.c", FAKE_MAP, "cc", "-shared", "-fPIC", "-ldl"))
        self.file("stack_map_bin", mkmap.make([(1, 1, [0x1010])]))
        self.file("stack_map_stat", "successes: 1\nentries: 1 / 16384\n")
        self.out = os.path.join(self.dir, "out")
        self.ran = os.path.join(self.dir, "ran")
        with self.start("true") as p:
            p.communicate(timeout=60)
        if p.returncode == 99:
            self.skipTest("no tracefs can be mounted here")

    def start(self, *args):
        """Runs a command where tracefs is mounted."""
        return subprocess.Popen(["unshare", "-m", "sh", "-c", MOUNT, "sh", *args],
                                env={**os.environ, "MAP": self.dir}, stderr=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, text=True)

    def record(self, *args, rc=0):
        """Records into out/; returns what it said. Its instance is gone."""
        run = ('"$@" & wait $!; s=$?; ls -d /sys/kernel/tracing/instances/*_$! >&2 2> /dev/null; '
               "exit $s")
        with self.start("sh", "-c", run, "sh", TOOL, "record", "-o", self.out, *args) as p:
            err = p.communicate(timeout=60)[1]
        self.assertEqual(p.returncode, rc, err)
        self.assertNotIn("stackmap_record_", err)
        return err

    def lines(self, name, where="out"):
        """The lines of a file of the recording."""
        with open(os.path.join(self.dir, where, name), encoding="utf-8") as f:
            return f.read().splitlines()

    def report(self, where="out"):
        """What trace-cmd says, as (task, pid, event)."""
        out = subprocess.run(["trace-cmd", "report", "-q", "-i",
                              os.path.join(self.dir, where, "trace.dat")],
                             capture_output=True, check=True).stdout.decode("latin-1")
        return re.findall(r": +(\S.*)-(\d+) +\[\d+\].*? [\d.]+: (\w+):", out)

    def test_command(self):
        err = self.record("-e", "sched:sched_switch", "--", "sh", "-c", "sleep .1; true")
        self.assertRegex(err, f"\nstackmap_dump: see: stackmap_dump report {self.out}\n")
        pid = self.lines("command")
        self.assertRegex(" ".join(pid), r"^\d+$")
        self.assertEqual(self.lines("threads"), [f"{pid[0]} {pid[0]}"])
        own = self.lines("own_events")
        self.assertIn("sched:sched_process_fork", own)
        self.assertNotIn("sched:sched_switch", own)
        # By number: the names that trace-cmd knows may be those of before exec.
        events = [(name, task == pid[0]) for _, task, name in self.report()]
        for event, is_command in [("sched_process_fork", True), ("sched_process_exec", True),
                                  ("sched_process_exec", False), ("task_rename", False)]:
            self.assertIn((event, is_command), events)
        self.assertNotIn("kallsyms.start", os.listdir(self.out))
        folded = self.run_tool(*PERF, "-q", self.out)[0]
        self.assertTrue(folded)
        self.assertNotIn(" sched_process_", folded)

    def test_own_event_that_is_wanted(self):
        self.record("-e", "sched:sched_process_exec,sched:sched_switch", "true")
        self.assertNotIn("sched:sched_process_exec", self.lines("own_events"))
        self.assertIn("sched_process_exec:", self.run_tool(*PERF, "-q", self.out)[0])
        for events in ["sched", "sched_process_exec"]:
            err = self.record("-e", events, "-f", "common_pid < 0", "touch", self.ran, rc=1)
            self.assertRegex(err, r"sched_process_\w+: all of these are needed, without a filter")
        self.assertFalse(os.path.exists(self.ran))

    def test_recorders_are_left_out(self):
        self.record("-a", "-e", "sched", "--", "sh", "-c", "sleep .3; ls /")
        own = self.lines("own_pids")
        self.assertGreaterEqual(len(own), 2)
        self.assertIn(f"{os.getpid()} {os.getpid()}", self.lines("threads"))
        events = [(pid, name) for _, pid, name in self.report() if pid in own]
        self.assertNotIn("sched_process_fork", [name for _, name in events])
        samples = self.run_tool(*PERF, "-q", self.out)[0]
        pids = set(re.findall(r"^\S+ +(\d+) \[", samples, re.M))
        self.assertGreater(len(pids), 2)
        self.assertFalse(pids & set(own))
        self.assertNotIn("command", os.listdir(self.out))

    def test_filters(self):
        err = self.record("-e", "kmem", "-f", "bytes_alloc > 3000", "touch", self.ran, rc=1)
        self.assertIn("bytes_alloc > 3000: not a filter of events/kmem/kfree\n", err)
        self.assertNotIn("not a filter of events/kmem/kmalloc\n", err)
        self.assertIn("name only events that have all its fields\n", err)
        err = self.record("-e", "kmem:kfree", "-f", "bytes_alloc > 3000", "touch", self.ran, rc=1)
        self.assertIn("Field not found", err)
        self.assertFalse(os.path.exists(self.ran) or os.path.exists(self.out))
        self.record("-e", "kmem:kmalloc", "-f", "bytes_alloc > 3000", "ls")

    def test_stacks_of_user_space(self):
        """Where the kernel tells the file of a frame, no perf events follow the mappings."""
        for args, way in [(["-u"], "_delay"), (["--user=now"], "")]:
            err = self.record(*args, "-e", "kmem", "--", "sh", "-c", "ls -R /etc | wc -l")
            self.assertIn(f"options/userstacktrace{way}\n", err)
            self.assertEqual("user_maps" in os.listdir(self.out), not way)
            folded = self.run_tool(*FOLDED, "-q", self.out)[0]
            self.assertIn("kmem_cache_alloc", folded)
            self.assertNotIn("perf_event_mmap", folded)

    def test_duration(self):
        self.record("-d", "0.5", "-e", "sched_switch")
        self.assertTrue(self.report())

    def began(self):
        """Waits until a command runs that makes a file."""
        for _ in range(300):
            if os.path.exists(self.ran):
                return
            time.sleep(0.1)
        self.fail("it did not begin")

    def test_two_into_one_directory(self):
        """The second one fails, the first one goes on; also if it is renamed meanwhile."""
        wait = f"touch {self.ran}; sleep 2; ls /"
        with self.start(TOOL, "record", "-o", self.out, "--", "sh", "-c", wait) as first:
            self.began()
            err = self.record("touch", self.ran + "2", rc=1)
            self.assertIn(f"{self.out}: another stackmap_dump writes it", err)
            self.assertEqual(sorted(n for n in os.listdir(self.dir) if n.startswith("out")), ["out"])
            os.rename(self.out, self.out + "-moved")
            os.mkdir(self.out)
            self.file("out/kept", "kept")
            err = first.communicate(timeout=60)[1]
        self.assertEqual(first.returncode, 0, err)
        self.assertEqual(os.listdir(self.out), ["kept"])
        self.assertFalse(os.path.exists(self.ran + "2"))
        self.assertIn("ls", [task for task, _, _ in self.report("out-moved")])
        self.assertIn("kallsyms", os.listdir(self.out + "-moved"))

    def test_recorder_that_is_killed(self):
        """The recording has what it lacks, and the status tells it."""
        kill = ('kill -9 $(pgrep -P $(pgrep -P $PPID -x trace-cmd) | head -1); '
                'for i in 1 2 3 4 5 6 7 8 9; do sleep .05; done')
        err = self.record("-a", "--", "sh", "-c", kill, rc=1)
        self.assertIn("a recorder of trace-cmd has ended early", err)
        self.assertRegex(self.lines("lost")[0], r"^\d+ \d+$")
        self.assertRegex(self.run_tool(*FOLDED, self.out)[1], r"[1-9]\d* buffer entries lost")
        self.record("-a", "true")
        self.assertEqual(self.lines("lost"), [])

    def test_signal_before_the_begin(self):
        """It is told, and the status is that of a program that a signal has ended."""
        self.executable("trace-cmd", "#!/bin/sh\n[ $1 = restore ] || exec sleep 20\ntouch head.dat\n")
        for sig in signal.SIGINT, signal.SIGTERM:
            with self.start("sh", "-c", 'PATH="$MAP:$PATH" exec "$@"', "sh", TOOL, "record", "-q", "-o",
                            self.out, "--", "touch", self.ran) as p:
                for _ in range(300):
                    if os.path.exists(os.path.join(self.out, "head.dat")):
                        break
                    time.sleep(0.1)
                time.sleep(0.3)
                p.send_signal(sig)
                err = p.communicate(timeout=60)[1]
            self.assertEqual(p.returncode, 128 + sig, err)
            self.assertRegex(err, r"^stackmap_dump: \w+, before the recording began\n$")
            self.assertEqual([os.path.exists(f) for f in (self.out, self.ran)], [False, False])

    def test_command_that_goes_on(self):
        """After the recording."""
        err = self.record("-d", "0.3", "--", "sh", "-c", "trap '' TERM; sleep 6")
        self.assertRegex(err, r"waiting for the end of sh \(\d+\), which is not recorded any more\n$")
        self.assertNotIn("waiting", self.record("true"))

    def test_command_that_does_not_begin(self):
        """There is nothing to wait for, and the event that is missing is named."""
        with mock.patch.dict(os.environ, SLOW="1"):
            err = self.record("-e", "sched_switch,nosuch", "touch", self.ran, rc=1)
        self.assertEqual(err, "stackmap_dump: there is no event nosuch (see /sys/kernel/tracing/available_events)\n")
        self.assertEqual([os.path.exists(f) for f in (self.out, self.ran)], [False, False])

    def test_dead_instance(self):
        """Of a record that was killed."""
        top = "/sys/kernel/tracing/instances/stackmap_record_"
        names = [top + "4194399", top + "1", top + "mine"]
        with self.start("sh", "-c", f'mkdir {" ".join(names)}; "$@"; rmdir {" ".join(names)}', "sh",
                        TOOL, "record", "-o", self.out, "--", "true") as p:
            err = p.communicate(timeout=60)[1]
        self.assertEqual([name for name in names if f"to remove it: rmdir {name}\n" in err], names[:1])

    def test_hidden_addresses(self):
        """They are told at once, and not when someone reads the recording."""
        self.file("none", "".join(f"{0:016x} t f{n}\n" for n in range(100)))
        self.file("some", "".join(f"{n << 30:016x} t f{n}\n" for n in range(100)))
        for name, hidden in ("none", True), ("some", False):
            with self.start("sh", "-c", f'mount --bind "$MAP/{name}" /proc/kallsyms; exec "$@"', "sh",
                            TOOL, "record", "-q", "-o", self.out, "--", "true") as p:
                err = p.communicate(timeout=60)[1]
            self.assertEqual((p.returncode, "kptr_restrict hides" in err), (0, hidden))
