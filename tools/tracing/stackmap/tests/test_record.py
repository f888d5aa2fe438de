# SPDX-License-Identifier: GPL-2.0
"""record and save."""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import time

import mkmap
from common import Case, Tracefs, golden_map, vdso_image


class Record(Case):
    """record, as far as it needs no kernel: guest tests have the rest."""

    def record(self, *args, rc=1):
        """Runs record, which fails; returns what it said."""
        out, err = self.run_tool("record", *args, rc=rc)
        self.assertEqual(out, "")
        self.assertEqual(err.count("\n"), 1, err)
        return err

    def test_wrong_usage(self):
        for args in [["--nosuch"], ["-e", ""], ["-e", "!sched"], ["-e", "a b"], ["-o", ""],
                     ["-o", "-"], ["-b", "0"], ["-b", "x"], ["-b", "-1"], ["-b", "99999999999"],
                     ["-i", "a/b"], ["-i", ".."], ["-i", "a[1]"], ["-F"], ["--user=x"],
                     ["-u=delay"],
                     ["--function", ""], ["-u", "--function", "x"], ["--function", "x:stacktrace"], ["--function", "!x"],
                     ["-e", ","], ["-e", "x,"], ["-e", ",x"], ["-e", "a,,b"], ["-e", "a,!a"],
                     ["-o", "."], ["-o", ".."], ["-o", "./"], ["-o", "x/."], ["-o", "x/.//"],
                     ["-o", "../.."], ["-o", "/"], ["-d", ""], ["-d", "1s"], ["-d", "0"], ["-d", "0.0"]]:
            self.record(*args, "true", rc=2)
        for name, value in ("-o", "x"), ("-i", "x"), ("-d", "5"), ("-b", "64"), ("--realtime", "1"):
            self.assertIn("given twice", self.record(name, value, name, value, "true", rc=2))
        self.assertIn("no stack map", self.record("-u", "-u", "true", rc=1))
        self.assertIn("an event has one", self.record("-e", "a,b", "-f", "x>1", "-f", "y>1", "true", rc=2))
        for args in [["-u", "now"], ["-u", "delay", "x"], ["-e", "x", "-u", "now"]]:
            self.assertIn("write --user=now or --user=delay", self.record(*args, rc=2))
        self.assertIn("options come behind the command): record",
                      self.run_tool("-q", "record", "true", rc=2)[1])

    def test_no_stack_map(self):
        if os.path.exists("/sys/kernel/tracing/options/stackmap"):
            self.skipTest("this kernel has a stack map")
        ran = os.path.join(self.dir, "ran")
        for args in [[], ["-i", "x", "-e", "x"], ["-a", "--"], ["-d", "1.5"], ["-unow"],
                     ["--user=now", "now"], ["-u", "--", "now"]]:
            err = self.record("-o", os.path.join(self.dir, "out"), *args, "touch", ran)
            self.assertRegex(err, "no tracefs|no stack map|only root")
            self.assertEqual(os.listdir(self.dir), [])


class Programs(Case):
    """Where record looks for trace-cmd and the command."""

    def test_find_program(self):
        find = self.program("find", "int main(int n, char **args)\n"
                            "{ return !find_program(args[1]); }\n")
        sub = os.path.join(self.dir, "sub")
        os.makedirs(os.path.join(self.dir, "dir"))
        os.mkdir(sub)
        for name, mode in [("dir/prog", 0o644), ("sub/prog", 0o755), ("sub/text", 0o644),
                           ("here", 0o755)]:
            os.chmod(self.file(name, "#!/bin/true\n"), mode)
        for path, name, found in [(None, "sh", True), (None, "here", False),
                                  ("dir:sub", "prog", True), ("dir", "prog", False), ("sub", "text", False),
                                  ("dir", "here", False), ("dir:", "here", True),
                                  (":dir", "here", True), ("", "here", True), ("", "sh", False),
                                  ("dir", "sub/prog", True), ("", "sub", False), ("sub", "", False),
                                  ("dir", sub + "/prog", True), ("x\ny:sub", "prog", True),
                                  ("*", "prog", False), ("s*", "prog", False)]:
            done = subprocess.run([find, name], env={} if path is None else {"PATH": path},
                                  cwd=self.dir, check=False)
            self.assertEqual(done.returncode, int(not found), (path, name))


    def test_paths_in_advice(self):
        """They are words of the shell."""
        quote = self.program("quote", "int main(int n, char **args)\n{ puts(quote(args[1])); return 0; }\n")
        for path, plain in [("a/b-c_1.2", True), ("", False), ("a b", False), ("it's", False), ("-x", False),
                            ("$(x)`y`\\n\"*?", False), ("a\nb", False), ("~", False), ("\xe4", False)]:
            out = subprocess.run([quote, path], capture_output=True, check=True, text=True).stdout[:-1]
            self.assertEqual(out == path, plain)
            got = subprocess.run(["sh", "-c", "printf %s " + out], capture_output=True, check=True,
                                 text=True).stdout
            self.assertEqual(got, "./" + path if path == "-x" else path)


class Filters(Case):
    """Events that a filter is for."""

    def test_filters(self):
        path = self.program("filter", 'int main(int n, char **args)\n{ return enable_event('
                            'args[1], args[2], "x") ? 1 : 0; }\n')
        events = ["irq", "kmem", "kmem/kfree", "kmem/kmalloc", "sched", "sched/kmalloc"]
        both = ["kmem/kfree", "kmem/kmalloc"]
        for event, want in [("kmem:*", both), ("kmem", both), ("kmem:", both),
                            ("kmem:kmalloc", ["kmem/kmalloc"]),
                            ("kmalloc", ["kmem/kmalloc", "sched/kmalloc"]),
                            ("*:kfree", ["kmem/kfree"]), (":kfree", ["kmem/kfree"]),
                            ("kmem:kfre", None)]:
            top = tempfile.mkdtemp(dir=self.dir)
            open(os.path.join(top, "set_event"), "w", encoding="utf-8").close()
            for name in events:
                os.makedirs(os.path.join(top, "events", name))
                for f in ["enable", "filter"]:
                    open(os.path.join(top, "events", name, f), "w", encoding="utf-8").close()
            done = subprocess.run([path, top, event], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, int(want is None), (event, done.stderr))
            self.assertEqual("name only events that" in done.stderr, want is None)
            got = [n for n in events if os.path.getsize(os.path.join(top, "events", n, "filter"))]
            self.assertEqual(got, want or [], event)

    def test_events_without_the_field(self):
        """The filter of a system leaves them alone, so they would be recorded in full."""
        path = self.program("filter", 'int main(int n, char **args)\n{ return enable_event('
                            'args[1], args[2], "bytes > 3") ? 1 : 0; }\n')
        self.file("set_event", "")
        self.file("error_log", "the log\n")
        for name in ["kmem/kmalloc", "kmem/kfree", "kmem/rss_stat"]:
            os.makedirs(os.path.join(self.dir, "events", name))
            if name == "kmem/kmalloc":
                self.file(f"events/{name}/filter", "none\n")
            else:
                os.mkdir(os.path.join(self.dir, "events", name, "filter"))
        for event, bad in [("kmem", ["kmem/kfree", "kmem/rss_stat"]),
                           ("kmem:kfree", ["kmem/kfree"]), ("kmem:kmalloc", [])]:
            done = subprocess.run([path, self.dir, event], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, int(bool(bad)))
            self.assertEqual(re.findall("bytes > 3: not a filter of events/(.*)\n", done.stderr), bad)
            self.assertEqual("the log" in done.stderr, event == "kmem:kfree")


class Output(Tracefs):
    """The directory that is written."""

    def test_stale_save(self):
        saved = os.path.join(self.dir, "saved")
        self.make_map()
        for times in [0, 1, 4]:
            out, err = self.run_fake(times, "save", saved)
            self.assertIn(saved + ": saved 4 stacks", err)
            with open(os.path.join(saved, "stack_map_bin"), "rb") as f:
                self.assertEqual(f.read(), golden_map("le64"))
            self.assertNotIn("vdso", os.listdir(saved))
            shutil.rmtree(saved)
        out, err = self.run_fake(5, "save", saved, rc=1)
        self.assertEqual(out, "")
        self.assertIn(f"stack_map_bin, copied into {saved}: the map was reset or replaced each", err)

    def test_save_the_vdso(self):
        """For stacks of user space. It is no other file of the user's."""
        image = vdso_image()
        if not image:
            self.skipTest("no vdso")
        saved = os.path.join(self.dir, "saved")
        self.make_map()
        self.file("stack_map_bin", mkmap.make([(5, 1, [0x5510], 1)]))
        for _ in range(3):
            self.run_fake(0, "save", saved)
        for path in [saved, saved + ".old"]:
            with open(os.path.join(path, "vdso"), "rb") as f:
                written = f.read()
            self.assertGreater(len(written), 1000)
            self.assertTrue(image.startswith(written))

    def refused(self, path):
        """What save says about a directory that it does not replace."""
        return self.run_fake(0, "save", path, rc=1)[1]

    def test_output_that_is_no_recording(self):
        self.make_map()
        for name in ["data", "x"]:
            path = os.path.join(self.dir, name)
            os.mkdir(path)
            with open(os.path.join(path, name), "w", encoding="utf-8") as f:
                f.write("kept")
            self.assertIn(path + ": exists and is no recording", self.refused(path))
            self.assertEqual(os.listdir(path), [name])
        self.assertIn("no recording", self.refused(self.file("file", "")))
        link = os.path.join(self.dir, "link")
        os.symlink(".", link)
        self.assertIn("no recording", self.refused(link))

    def test_earlier_recording_with_other_files(self):
        self.make_map()
        for name, files in [("out", ["stack_map_bin", "note"]),
                            ("out.old", ["stack_map_bin", "trace", "note"])]:
            os.mkdir(os.path.join(self.dir, name))
            for f in files:
                self.file(name + "/" + f, "kept")
        out = os.path.join(self.dir, "out")
        self.assertIn("out.old: has other files", self.refused(out))
        self.assertEqual([sorted(os.listdir(d)) for d in [out, out + ".old"]],
                         [["note", "stack_map_bin"], ["note", "stack_map_bin", "trace"]])

    def test_directory_that_is_written(self):
        """By another one: also what an earlier recording would become is safe."""
        self.make_map()
        for name in ["out", "out.old"]:
            for old in ["out", "out.old"]:
                os.makedirs(os.path.join(self.dir, old), exist_ok=True)
                self.file(old + "/stack_map_bin", old)
            path = os.path.join(self.dir, name)
            fd = os.open(path, os.O_RDONLY)
            fcntl.flock(fd, fcntl.LOCK_EX)
            self.assertIn(path + ": another stackmap_dump writes it",
                          self.refused(os.path.join(self.dir, "out")))
            os.close(fd)
            for old in ["out", "out.old"]:
                with open(os.path.join(self.dir, old, "stack_map_bin"), encoding="utf-8") as f:
                    self.assertEqual(f.read(), old)

    def test_record_needs_a_stack_map(self):
        ran, out = (os.path.join(self.dir, name) for name in ("ran", "out"))
        args = ["record", "-o", out, "/usr/bin/touch", ran]
        os.chmod(self.file("trace-cmd", "#!/bin/sh\nexit 1\n"), 0o755)
        self.assertIn("no tracefs is mounted", self.run_fake(0, *args, rc=1)[1])
        self.file("trace_clock", "[local]")
        self.assertIn("this kernel has no stack map", self.run_fake(0, *args, rc=1)[1])
        os.mkdir(os.path.join(self.dir, "options"))
        self.file("options/stackmap", "0")
        if not os.path.exists("/sys/kernel/tracing/instances"):
            err = self.run_fake(0, *args, rc=1)[1]
            self.assertRegex(err, r"instances/stackmap_record_\d+: No such file")
        for name in os.listdir(self.dir):
            self.assertNotRegex(name, "ran|out")


WATCH = """\
#include <sys/mman.h>
#include <unistd.h>

#include "watch.c"

int main(int argc, char **argv)
{
	FILE *f = open_in(argv[1], "user_maps", "w");
	size_t i, nr, page = sysconf(_SC_PAGESIZE);
	void *p;

	watch_start(f);
	nr = nr_cpus;
	for (i = 0; nr && i < 40000; i++) {
		p = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANON, -1, 0);
		munmap(p, page);
	}
	watch_stop();
	fclose(f);
	printf("%zu\\n", nr);
	return 0;
}
"""


class Watch(Case):
    """What processes have mapped, which record and save write down."""

    def mappings(self, pid, path):
        """The build ids of the file in user_maps."""
        with open(os.path.join(self.dir, "user_maps"), encoding="utf-8") as f:
            lines = [line.split(" ", 5) for line in f if line.startswith(f"map {pid} ")]
        return [line[4] for line in lines if line[5].startswith(path)]

    def test_lost_changes_are_counted(self):
        """Also if nothing comes behind them."""
        path = self.program("watch", WATCH)
        done = subprocess.run(["taskset", "-c", "0", path, self.dir], capture_output=True, text=True,
                              check=True)
        if not int(done.stdout):
            self.skipTest(done.stderr)
        with open(os.path.join(self.dir, "user_maps"), encoding="utf-8") as f:
            changes = len([line for line in f if line.startswith("@")])
        lost = re.search(r"(\d+) changes of mappings were lost", done.stderr)
        self.assertTrue(lost, done)
        self.assertGreaterEqual(changes + int(lost[1]), 40000)

    def test_file_that_was_replaced(self):
        """Its build id is that of the file that is mapped, whatever is at its path now."""
        if os.geteuid():
            self.skipTest("only root can read the mapped files of others")
        save = self.program("save", "int main(int n, char **args)\n"
                            "{ scan_processes(open_in(args[1], \"user_maps\", \"w\")); }\n")
        progs = [os.path.join(self.dir, name) for name in ("prog", "other", "prog (deleted)")]
        text = "#include <stdio.h>\nint main(void) { return getchar(); }\n"
        for path, ident in zip(progs, ["ab", "cd", "ef"]):
            subprocess.run(["cc", "-o", path, "-Wl,--build-id=0x" + ident * 20,
                            self.file("prog.c", text)], check=True)
        with subprocess.Popen(progs[:1], stdin=subprocess.PIPE) as p:
            for _ in range(2):
                subprocess.run([save, self.dir], check=True)
                self.assertEqual(set(self.mappings(p.pid, progs[0])), {"ab" * 20})
                os.replace(progs[1], progs[0])
                shutil.copy(progs[0], progs[1])
            p.stdin.close()

    def test_only_files_are_opened(self):
        """Who writes into a pipe would go on."""
        path = self.program("id", "int main(int n, char **args)\n{ struct build_id id = {};\n"
                            "read_file_id(args[1], &id); return id.len; }\n")
        pipe = os.path.join(self.dir, "pipe")
        os.mkfifo(pipe)
        self.assertEqual(subprocess.run([path, path], check=False).returncode, 20)
        with subprocess.Popen(["sh", "-c", 'echo > "$0"', pipe], stderr=subprocess.DEVNULL) as p:
            time.sleep(0.2)
            self.assertEqual(subprocess.run([path, pipe], check=False).returncode, 0)
            self.assertRaises(subprocess.TimeoutExpired, p.wait, 0.2)
            p.terminate()
