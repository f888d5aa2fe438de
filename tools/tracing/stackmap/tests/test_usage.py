# SPDX-License-Identifier: GPL-2.0
"""The command line."""

import os
import re
import shutil
import subprocess

from common import HERE, KALLSYMS, TOOL, WITHOUT, Case, RecordingCase, golden_map, golden_text


class Usage(Case):
    """The command line."""

    @staticmethod
    def man():
        """The text of the man page."""
        path = os.path.join(HERE, "../../../../Documentation/tools/stackmap_dump.rst")
        with open(path, encoding="utf-8") as f:
            return f.read()

    def helps(self):
        """The help of each command, and the options in it, as {name: letter}."""
        for command in [[], ["report"], ["record"], ["save"], ["top"]]:
            out = self.run_tool(*command, "--help")[0]
            self.assertEqual(out, self.run_tool("help", *command)[0])
            lines = re.findall(r"^  (-\w, |    )(--\w.*?)(?:  |$)", out, re.M)
            yield command, out, {name: letter.strip(" ,") for letter, names in lines
                                 for name in re.findall(r"--[a-z-]+", names)}

    def test_help(self):
        """Each command has one of its own, with an example. The man page has all options."""
        seen = set()
        for command, out, options in self.helps():
            self.assertIn("Usage: stackmap_dump " + "".join(command), out)
            self.assertIn("\nExample", out)
            self.assertNotIn(out, seen)
            seen.add(out)
            self.assertTrue(options)
            for option in options:
                self.assertTrue(re.search(rf"\*\*{option}\b", self.man()), option)

    def test_one_letter_has_one_meaning(self):
        letters = {}
        for _, _, options in self.helps():
            for name, letter in options.items():
                if letter:
                    self.assertEqual(letters.setdefault(letter, name), name)
        self.assertEqual(letters["-o"], "--output")
        self.assertEqual(letters["-d"], "--duration")

    def test_version(self):
        for option in ["--version", "-V"]:
            self.assertRegex(self.run_tool(option)[0], r"^stackmap_dump \d+\.\d+\n$")

    def test_wrong_usage(self):
        for args in [["--nosuch"], ["--top", "x", "-"], ["--top", "0", "-"],
                     ["--top", "-1", "-"], ["--top"],
                     ["--sort", "name", "-"], ["--grep", "(", "-"], ["-F", "-j", "-"],
                     ["a", "b"], ["--lines", "-"], ["-i", "../x"], ["-i", "x", "file"],
                     *(["-i", "a" + c] for c in "*?[]{}\\"), ["top", "-i", "*"],
                     ["--min-ref", "x", "-"], ["--text-base", "1", "-"],
                     ["-j", "--annotate", "x", "-"],
                     ["-F", "--annotate", "x", "-"], ["-s", "-M", "-"], ["recrod"],
                     ["report", "--callers", "", "-"], ["--callers", "f", "-"],
                     ["-F", "--callers", "f", "--callees", "f", "-"],
                     ["-F", "report", "-"],
                     ["save"], ["save", "a", "b"], ["-i", "x", "save"],
                     ["--annotate", "x", "--annotate", "y", "-"], ["--diff", "x", "--diff", "y", "-"],
                     ["-v", "x", "-v", "y", "-"], ["-i", "x", "-i", "y"],
                     ["-i", "x", "save", "dir"], ["-q", "report"], ["save", "-x", "dir"],
                     ["top", "x"], ["-d", "x", "-"], ["-p", "-"], ["-f", "-"], ["-a", "-"]]:
            out, err = self.run_tool(*args, rc=2)
            self.assertEqual(out, "")
            self.assertTrue(err)

    def test_errors_say_what_to_type(self):
        for args, text in [
                (["-s", "--off-cpu", "-"], "--off-cpu goes with the text --folded --json "
                                           "--speedscope --diff --perf-script --pprof report"),
                (["-l", "-F", "-"], "--lines goes with the text --json --annotate --diff"),
                (["-l", "-"], "needs --vmlinux FILE"),
                (["report", "--off-cpu", "-"], "stackmap_dump record -- COMMAND"),
                (["report", "--cpu", "0,4-1", "-"], "a range begins with the smaller number: 0,4-1"),
                (["save"], "name one directory")]:
            self.assertIn(text, self.run_tool(*args, rc=2)[1])

    def test_output(self):
        """Into a file, if there is some."""
        path = self.file("out", "kept")
        data = golden_map("le64")
        for args in [["-k", KALLSYMS], ["-k", KALLSYMS, "-F"]]:
            done = subprocess.run([TOOL, "-q", *args, "-"], input=data, capture_output=True,
                                  check=True)
            self.assertEqual(self.dump(data, *args, "-o", path), "")
            with open(path, "rb") as f:
                self.assertEqual(f.read(), done.stdout)
        self.dump(data[:-1], "-o", path, rc=1)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), done.stdout)
        self.assertIn("/dev/full: No space", self.run_tool("-o", "/dev/full", "-", stdin=data, rc=1)[1])
        self.assertIn("x: Not a dir", self.run_tool("-o", path + "/x", "-", stdin=data, rc=1)[1])

    def test_options_that_would_be_ignored(self):
        modes = {"": "-q", "F": "-F", "j": "-j", "S": "-S", "a": "--annotate=trace",
                 "d": "--diff=old", "s": "-s"}
        unused = {"-l": "FSs", "--sort=id": "ads", "-t1": "as", "-m1": "as", "-gx": "as"}
        for option, refused in unused.items():
            for mode, arg in modes.items():
                used = mode not in refused if mode else True
                args = [option, arg, *(["-vx"] if option == "-l" else []), "/nonexistent"]
                err = self.run_tool(*args, rc=1 if used else 2)[1]
                self.assertEqual("goes with " in err, not used, args)
        self.assertIn(": needs --vmlinux", self.run_tool("-l", "-", rc=2)[1])
        one, other = self.file("one.dat", b"\x17\x08\x44tracing6\0"), self.file("map", b"")
        for args, text in [(["--no-tracer", one], "is for maps"), (["--partial", one], "there is no map"),
                           (["-s", "--symfs", "x", other], "--symfs goes with"),
                           (["--tracer", other], "needs a recording"),
                           (["-F", "--symfs", "x", other], WITHOUT)]:
            if text != WITHOUT or WITHOUT in self.run_tool("-F", one, rc=1)[1]:
                self.assertIn(text, self.run_tool(*args, rc=2)[1])
        for option in [*unused, *list(modes.values())[1:], "--partial", "-kx", "-vx", "--force"]:
            new = os.path.join(self.dir, "new")
            self.run_tool(option, "save", new, rc=2)
            self.run_tool("save", new, option, rc=2)
            self.assertFalse(os.path.exists(new))

    def test_without_libraries(self):
        """A directory has a map as well."""
        self.file("trace.dat", b"\x17\x08\x44tracing6\0")
        self.file("stack_map_bin", golden_map("le64"))
        self.file("kallsyms", golden_text("kallsyms64"))
        if WITHOUT not in self.run_tool("-F", self.dir, rc=1)[1]:
            self.skipTest("it has the libraries")
        self.assertEqual(self.run_tool("-q", self.dir)[0], golden_text("text64.txt"))
        self.assertIn(WITHOUT, self.run_tool("--off-cpu", self.dir, rc=1)[1])

    def test_no_live_map(self):
        if os.path.exists("/sys/kernel/tracing/stack_map_bin"):
            self.skipTest("this kernel has a stack map")
        for args in [[], ["-i", "x"]]:
            self.assertRegex(self.run_tool(*args, rc=1)[1], "no stack map|no tracefs|no trace instance")

    def test_save_without_a_map(self):
        if os.path.exists("/sys/kernel/tracing/stack_map_bin"):
            self.skipTest("this kernel has a stack map")
        self.run_tool("save", os.path.join(self.dir, "new"), rc=1)


class Examples(RecordingCase):
    """Those of the man page and of each --help, as they stand there."""

    # These need a kernel with the map, a vmlinux, parts of a recording, or a display. The guest's
    # tests have them.
    ELSEWHERE = (r"stackmap_dump (record|save|top) |stackmap_dump --top 3$|/sys/kernel/|^make |"
                 r"^rmdir |^trace-cmd (record|restore) |--vmlinux|kernelshark|^cd DIR$|"
                 r"probe_events$|^libc=|^at\(\)|/tmp/(read|heap)$|"
                 r"^stackmap_dump --diff|^# 2997|^1990|^futex_wait$|^do_syscall_64$")

    def commands(self):
        """Each once."""
        blocks = re.findall(r"::\n\n((?:        .*\n|\n)+)", Usage.man())
        lines = "".join(blocks).replace("|\n", "|").splitlines()
        for command in ["", "report", "record", "save", "top"]:
            out = self.run_tool(*command.split(), "--help")[0]
            example = re.search(r"\nExamples?[:,].*", out, re.S)[0]
            lines += re.findall(r"stackmap_dump .*", example)
        lines = [re.sub(" +", " ", line.split(" # ")[0]).strip() for line in lines]
        return [c for c in dict.fromkeys(lines) if c and not c.startswith("@")]

    def test_typed(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB", pid=99)
        self.event(dat, "kmem_cache_alloc", 2, 8, stack="CB", pid=99)
        self.event(dat, "block_rq_issue", 1, 8, stack="AB")
        self.event(dat, "block_rq_complete", 1, 8)
        self.switch(dat, 99, 0, stack="AB")
        self.event(dat, "sched_waking", "t99", 99, 120, 0, stack="AB")
        self.switch(dat, 0, 99, after=100)
        names = {"kallsyms": golden_text("kallsyms64").replace("weak_one", "mutex_lock")
                                                      .replace("do_exit", "vfs_read"),
                 "stack_map_bin": golden_map("le64")}
        self.tool(dat, "-F", more=names)
        os.rename(os.path.join(self.dir, "dir"), os.path.join(self.dir, "stackmap.data.old"))
        self.switch(dat, 99, 0, stack="AB")
        self.switch(dat, 0, 99, after=100)
        self.tool(dat, "-F", more=names)
        self.file("trace.dat", dat.bytes())
        self.file("map.bin", golden_map("le64"))
        for name in ["DIR", "stackmap.data", "map"]:
            os.symlink("dir", os.path.join(self.dir, name))
        bindir = os.path.join(self.dir, "bin")
        os.mkdir(bindir)
        os.symlink(os.path.abspath(TOOL), os.path.join(bindir, "stackmap_dump"))
        typed = 0
        for command in self.commands():
            if re.search(self.ELSEWHERE, command) or not self.has_programs(command):
                continue
            out = os.path.join(self.dir, "out")
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command.replace("/tmp/map", "map")
                                   .replace("/tmp/now", "map")], cwd=self.dir, capture_output=True,
                                  check=False, env=dict(os.environ, PATH=bindir + ":/usr/bin:/bin"))
            self.assertEqual(done.returncode, 0, (command, done.stderr))
            name = re.search(r"(?:> |-o )(\S+)", command)
            if name:
                self.assertTrue(os.path.getsize(os.path.join(self.dir, name[1])), (command, out))
            else:
                self.assertTrue(done.stdout, command)
            typed += 1
        self.assertGreaterEqual(typed, 10)

    @staticmethod
    def has_programs(command):
        """Whether the others in it are here."""
        return all(shutil.which(p) or os.path.exists(p) for p in
                   re.findall(r"^trace-cmd|/usr/share/\S+", command))
