# SPDX-License-Identifier: GPL-2.0
"""The command line."""

import os
import re
import shutil
import subprocess

from common import (FOLDED, HERE, KALLSYMS, MAP_FOLDED, TOOL, WITHOUT, Case, RecordingCase, golden_map,
                    golden_text)


class Usage(Case):
    """The command line."""

    COMMANDS = ["map", "stacks", "report", "export", "diff", "annotate", "record", "save", "top"]

    @staticmethod
    def page(command):
        """The text of a manual page, with what it includes."""
        top = os.path.join(HERE, "../../../../Documentation/tools/stackmap_dump")
        name = "stackmap_dump-" + command if command else "stackmap_dump"
        with open(os.path.join(top, name + ".rst"), encoding="utf-8") as f:
            text = f.read()
        for name in re.findall(r"^\.\. include:: (.*)\n", text, re.M):
            with open(os.path.join(top, name), encoding="utf-8") as f:
                text += f.read()
        return text

    def helps(self):
        """The help of each command, and the options in it, as {name: letter}."""
        for command in [[], *([c] for c in self.COMMANDS)]:
            out = self.run_tool(*command, "--help")[0]
            self.assertEqual(out, self.run_tool("help", *command)[0])
            lines = re.findall(r"^  (-\w, |    )(--\w.*?)(?:  |$)", out, re.M)
            yield command, out, {name: letter.strip(" ,") for letter, names in lines
                                 for name in re.findall(r"--[a-z-]+", names)}

    def test_help(self):
        """Each command has one of its own, with an example, and a page with the same options."""
        seen = set()
        for command, out, options in self.helps():
            self.assertIn("Usage: stackmap_dump " + "".join(command), out)
            self.assertIn("\nExample", out)
            self.assertNotIn(out, seen)
            self.assertLessEqual(max(map(len, out.splitlines())), 100)
            seen.add(out)
            self.assertLessEqual(len(options), 25, command)
            page = self.page("".join(command))
            told = set(re.findall(r"\*\*(--[a-z-]+)\*\*", "".join(re.findall(r"^\*\*-.*", page, re.M))))
            self.assertEqual(told, set(options), command)
            self.assertIn("\nDESCRIPTION\n===========\n", page)
            self.assertNotIn("==== ", page)
            for option, letter in options.items():
                self.assertIn(f"**{letter}**, **{option}**" if letter else f"**{option}**", page)
        for command in self.COMMANDS:
            self.assertRegex(self.run_tool("--help")[0], rf"\n  {command} +\w")
            self.assertIn(f"**stackmap_dump-{command}**\\ (1)", self.page(""))

    def test_one_letter_has_one_meaning(self):
        letters = {}
        for _, _, options in self.helps():
            for name, letter in options.items():
                if letter:
                    self.assertEqual(letters.setdefault(letter, name), name)
        self.assertEqual(letters["-o"], "--output")
        self.assertEqual(letters["-d"], "--duration")

    def test_version(self):
        for option in ["--version", "-V", "version"]:
            self.assertRegex(self.run_tool(option)[0], r"^stackmap_dump \d+\.\d+\n$")

    def test_without_a_command(self):
        """What the file is decides: a map, a recording, or a directory, which has one."""
        out, err = self.run_tool(rc=2)
        self.assertEqual((out, err), ("", self.run_tool("--help")[0]))
        data = golden_map("le64")
        path = self.file("map", data)
        want = self.run_tool("map", "-q", "--top", "1", "-k", KALLSYMS, path)[0]
        for args in [[path, "--top", "1", "-k", KALLSYMS, "-q"],
                     ["--top", "1", "-k", KALLSYMS, "-q", path],
                     ["-", "-k", KALLSYMS, "-q", "-t1"], ["-qt1", "-k", KALLSYMS, "-"]]:
            self.assertEqual(self.run_tool(*args, stdin=data)[0], want, args)
        self.assertEqual(self.run_tool(path, "--json", "-q")[0], self.run_tool("map", "-qj", path)[0])
        for args in [["--top", "3"], ["-q"], ["--json"], ["-i", "x"]]:
            self.assertIn("name a command, or a file", self.run_tool(*args, rc=2)[1])
        for args in [["recrod"], ["-q", "recrod"], ["recrod", "-q"], ["-q", "report"]]:
            self.assertIn("no such command or file", self.run_tool(*args, rc=2)[1])
        self.assertIn("unrecognized option", self.run_tool("--by", "cpu", path, rc=2)[1])
        # A directory without a recording.
        os.mkdir(os.path.join(self.dir, "dir"))
        top = os.path.join(self.dir, "dir")
        for args in [[top], ["stacks", top], ["report", top], ["diff", top, top], ["export",
                     "--format", "perf", top]]:
            self.assertIn(f"{top}: has no trace.dat\n", self.run_tool(*args, rc=1)[1])
        self.file("dir/stack_map_bin", golden_map("le64"))
        self.assertIn(f"{top}: has no trace.dat; the map in it: stackmap_dump map {top}, or --map\n",
                      self.run_tool(top, rc=1)[1])
        self.file("dir/head.dat", "")
        self.assertIn(f"{top}: has no trace.dat. To make it, there: trace-cmd restore ",
                      self.run_tool(top, rc=1)[1])

    def test_old_spellings(self):
        """They are refused, and the new one is named."""
        path = self.file("map", golden_map("le64"))
        for old, new in [
                (["--folded"], "export --format folded"), (["-F"], "export --format folded"),
                (["-S"], "export --format pprof"), (["--speedscope"], "export --format pprof"),
                (["--pprof"], "export --format pprof"), (["--perf-script"], "export --format perf"),
                (["--annotate", "x"], "annotate TEXT"), (["--annotate=x"], "annotate TEXT"),
                (["--diff", "x"], "diff OLD NEW"), (["-M"], "map DIR"), (["--map-only"], "map DIR"),
                (["-s"], "note of stackmap_dump map"), (["--summary"], "note of stackmap_dump map"),
                (["--sort", "id"], "gone"), (["--partial"], "gone"), (["--tracer"], "gone"),
                (["--no-tracer"], "gone"), (["--off-cpu"], "--weight off-cpu"),
                (["--off-cpu=preempted"], "off-cpu:preempted"), (["--leaks"], "--weight leaks"),
                (["--latency", "a:b:c"], "--weight latency=BEGIN,END,KEY"),
                (["--outstanding", "a:b:c"], "--weight outstanding=ALLOC,FREE,KEY"),
                (["--from", "1"], "--time FROM,"), (["--to", "1"], "--time ,TO")]:
            for args in [[*old], [*old, path], [path, *old], ["report", *old], ["map", *old, path],
                         ["export", "--format", "folded", *old], ["stacks", *old],
                         ["diff", *old, path], ["annotate", "-", *old]]:
                out, err = self.run_tool(*args, rc=2)
                self.assertEqual(out, "")
                self.assertIn(new, err, args)

    def test_wrong_usage(self):
        for args in [["--nosuch"], ["map", "--top", "x", "-"], ["map", "--top", "0", "-"],
                     ["map", "--top", "-1", "-"], ["map", "--top"], ["map", "--grep", "(", "-"],
                     ["map", "a", "b"], ["map", "--lines", "-"], ["map", "-i", "../x"],
                     ["map", "-i", "x", "file"], *(["map", "-i", "a" + c] for c in "*?[]{}\\"),
                     ["top", "-i", "*"], ["map", "--min-ref", "x", "-"],
                     ["map", "--text-base", "1", "-"], ["report", "--map", "--callers", "", "-"],
                     ["map", "--callers", "f", "-"], ["diff", "--map", "--callers", "f", "x", "-"],
                     ["report", "--map", "--callers", "f", "--callees", "f", "-"],
                     ["export"], ["export", "--format", "x"], ["export", "--format", ""],
                     ["report", "--min-ref", "1", "x"], ["diff", "a", "b", "c"], ["diff", "--map"],
                     ["annotate"], ["annotate", "a", "b", "c"], ["report", "a", "b"],
                     ["save"], ["save", "a", "b"], ["-i", "x", "save"],
                     ["map", "-v", "x", "-v", "y", "-"], ["map", "-i", "x", "-i", "y"],
                     ["-i", "x", "save", "dir"], ["save", "-x", "dir"],
                     ["export", "--format", "folded", "--format", "perf", "x"],
                     ["report", "--time", "1"], ["report", "--time", "1,2,3"],
                     ["report", "--time", "x,"], ["report", "-w", ""], ["report", "-w", "a,b"],
                     ["report", "-w", "a", "-w", "b"], ["report", "-w", "leak=a"],
                     ["report", "-w", "off-cpu:x"], ["report", "-w", "off-cpu:"],
                     ["report", "-w", "off-cpu", "-w", "leaks"], ["report", "-w", "leaks", "-w",
                     "outstanding=a,b,c"], ["stacks", "-l", "-v", "x", "x"],
                     ["diff", "-l", "-v", "x", "x", "x"],
                     ["top", "x"], ["map", "-d", "x", "-"], ["map", "-p", "-"],
                     ["map", "-f", "-"], ["map", "-a", "-"]]:
            out, err = self.run_tool(*args, rc=2)
            self.assertEqual(out, "")
            self.assertTrue(err)

    def test_errors_say_what_to_type(self):
        for args, text in [
                (["map", "-l", "-"], "needs --vmlinux FILE"),
                (["report", "--map", "--weight", "off-cpu", "-"], "--weight: needs a recording"),
                (["report", "--cpu", "0,4-1", "-"], "a range begins with the smaller number: 0,4-1"),
                (["report", "-w", "latency=a,b"], "--weight latency=BEGIN,END,KEY"),
                (["report", "-w", "off-cpu=x"], "off-cpu knows :preempted and :uninterruptible"),
                (["report", "--filter", "ptr > 1"], "of a recording are selected by --where"),
                (["stacks", "-f", "ptr > 1"], "of a recording are selected by --where"),
                (["record", "-e", "kmem", "--where=ptr > 1", "true"], "record has --filter"),
                (["export"], "name a --format: folded, pprof, perf or perfetto"),
                (["save"], "name one directory"),
                (["help", "recrod"], "no such command: recrod"), (["help", "x.dat"], "no such command"),
                (["annotate", "-", "-"], "only one of both can be stdin"),
                (["diff", "--map", "-", "-"], "only one of both can be stdin"),
                (["export", "--format", "perf", "--map", "x"], "--map: does not go with --format perf"),
                (["report", "-w", "latency=a,b,c,d,e,f,g"], "takes four KEYs at most, not: c,d,e,f,g")]:
            self.assertIn(text, self.run_tool(*args, rc=2)[1])
        self.assertEqual(self.run_tool("help", "help"), self.run_tool("help"))
        self.assertIn("stackmap_dump 3", self.run_tool("help", "version")[0])
        for command in ["stacks", "report"]:
            self.assertIn("stdin can only be a map", self.run_tool(command, "-", rc=1)[1])
        done = subprocess.run([TOOL, "report"], cwd=self.dir, capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no ./stackmap.data: name a recording, or make one: stackmap_dump record",
                      done.stderr)

    def test_output(self):
        """Into a file, if there is some."""
        path = self.file("out", "kept")
        data = golden_map("le64")
        for args in [["map", "-k", KALLSYMS], [*MAP_FOLDED, "-k", KALLSYMS]]:
            done = subprocess.run([TOOL, *args, "-q", "-"], input=data, capture_output=True,
                                  check=True)
            self.assertEqual(self.dump(data, *args, "-o", path), "")
            with open(path, "rb") as f:
                self.assertEqual(f.read(), done.stdout)
        self.dump(data[:30], "map", "-o", path, rc=1)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), done.stdout)
        self.assertIn("/dev/full: No space",
                      self.run_tool("map", "-o", "/dev/full", "-", stdin=data, rc=1)[1])
        self.assertIn("x: Not a dir", self.run_tool("map", "-o", path + "/x", "-", stdin=data, rc=1)[1])

    def test_options_that_would_be_ignored(self):
        for command, options in [
                ("export --format perf", ["-t1", "-m1", "--callers=x", "--callees=x", "--map"]),
                ("export --map --format folded", ["-ex", "--pid=1", "-wx", "--time=1,2"]),
                ("report --map", ["-ex", "--wakers", "--by=cpu"]),
                ("diff --map x", ["-ex", "--callers=f"]), ("diff", ["-lvx"])]:
            for option in options:
                self.run_tool(*command.split(), option, "/nonexistent", rc=2)
        one = self.file("one.dat", b"\x17\x08\x44tracing6\0")
        if WITHOUT in self.run_tool("stacks", one, rc=1)[1]:
            self.assertIn(WITHOUT, self.run_tool("map", "--symfs", "x", "-", rc=2)[1])
        for option in ["-l", "-t1", "-m1", "-gx", "-j", "-kx", "-vx", "--force"]:
            new = os.path.join(self.dir, "new")
            self.run_tool(option, "save", new, rc=2)
            self.run_tool("save", new, option, rc=2)
            self.assertFalse(os.path.exists(new))

    def test_without_libraries(self):
        """A directory has a map as well."""
        self.file("trace.dat", b"\x17\x08\x44tracing6\0")
        self.file("stack_map_bin", golden_map("le64"))
        self.file("kallsyms", golden_text("kallsyms64"))
        self.assertEqual(self.run_tool("map", "-q", self.dir)[0], golden_text("text64.txt"))
        if WITHOUT not in self.run_tool(self.dir, rc=1)[1]:
            self.skipTest("it has the libraries")
        self.assertIn(WITHOUT, self.run_tool("report", self.dir, rc=1)[1])

    def test_no_live_map(self):
        if os.path.exists("/sys/kernel/tracing/stack_map_bin"):
            self.skipTest("this kernel has a stack map")
        for args in [["map"], ["map", "-i", "x"], ["report", "--map"], ["annotate", "-"]]:
            self.assertRegex(self.run_tool(*args, rc=1)[1], "no stack map|no tracefs|no trace instance")

    def test_save_without_a_map(self):
        if os.path.exists("/sys/kernel/tracing/stack_map_bin"):
            self.skipTest("this kernel has a stack map")
        self.run_tool("save", os.path.join(self.dir, "new"), rc=1)


class Examples(RecordingCase):
    """Those of the man page and of each --help, as they stand there."""

    # These need a kernel with the map, a vmlinux, parts of a recording, or a display. The guest's
    # tests have them.
    ELSEWHERE = (r"stackmap_dump (record|save|top) |stackmap_dump map --top 3$|/sys/kernel/|^make |"
                 r"^rmdir |^trace-cmd (record|restore) |--vmlinux|kernelshark|^cd DIR$|"
                 r"probe_events$|^trace-cmd report \||^libc=|^at\(\)|/tmp/(read|heap|boot)$|"
                 r"^stackmap_dump diff --map|^# 2997|^1990|^futex_wait$|^do_syscall_64$")

    def commands(self):
        """Each once."""
        lines = []
        for command in ["", *Usage.COMMANDS]:
            blocks = re.findall(r"::\n\n((?:        .*\n|\n)+)", Usage.page(command))
            lines += "".join(blocks).replace("|\n", "|").splitlines()
            out = self.run_tool(*command.split(), "--help")[0]
            example = re.search(r"\nExamples?[:,].*", out, re.S)[0]
            lines += re.findall(r"^  (.*stackmap_dump .*)", example, re.M)
        lines = [re.sub(" +", " ", line.split(" # ")[0]).strip() for line in lines]
        return [c for c in dict.fromkeys(lines) if c and not c.startswith("@")]

    def test_typed(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB", pid=99)
        self.event(dat, "kmem_cache_alloc", 2, 8, "dentry", stack="CB", pid=99)
        for pair in ("softirq_entry", 9), ("softirq_exit", 9), ("contention_begin", 1, 0), ("contention_end", 1, 0):
            self.event(dat, *pair, stack="AB")
        self.event(dat, "block_rq_issue", 1, 8, stack="AB")
        self.event(dat, "block_rq_complete", 1, 8)
        self.switch(dat, 99, 0, stack="AB")
        self.event(dat, "sched_waking", "t99", 99, 120, 0, stack="AB")
        self.switch(dat, 0, 99, after=100)
        names = {"kallsyms": golden_text("kallsyms64").replace("weak_one", "mutex_lock")
                                                      .replace("do_exit", "vfs_read"),
                 "stack_map_bin": golden_map("le64")}
        self.tool(dat, *FOLDED, more=names)
        os.rename(os.path.join(self.dir, "dir"), os.path.join(self.dir, "stackmap.data.old"))
        self.switch(dat, 99, 0, stack="AB")
        self.switch(dat, 0, 99, after=100)
        self.tool(dat, *FOLDED, more=names)
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
