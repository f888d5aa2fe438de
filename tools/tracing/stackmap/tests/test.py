#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of stackmap_dump. They need no kernel with a stack map.

STACKMAP_DUMP names the program (default: the one beside the sources). The last line is
"N passed, N failed, N skipped".
"""

import fcntl
import gzip
import json
import os
import pty
import random
import re
import resource
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.dont_write_bytecode = True
import mkdat  # noqa: E402 pylint: disable=wrong-import-position
import mkmap  # noqa: E402 pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "golden")
SOURCES = os.path.join(HERE, "..")
TOOL = os.environ.get("STACKMAP_DUMP", os.path.join(SOURCES, "stackmap_dump"))
SANITIZED = "STACKMAP_SANITIZED" in os.environ
TEXT = 0xFFFFFFFF81000000
WITHOUT = "built without elfutils and libtracecmd"
MAPS = ["le64", "be64", "le32", "be32", "bare"]


def golden_path(name):
    """Path of a golden file."""
    return os.path.join(GOLDEN, name)


def golden_text(name):
    """Contents of a golden file."""
    with open(golden_path(name), encoding="utf-8") as f:
        return f.read()


def golden_map(name):
    """The bytes of a golden map, from its hex dump."""
    return bytes.fromhex(golden_text(name + ".hex"))


KALLSYMS = golden_path("kallsyms64")


def live_build_id():
    """The build id of the running kernel, None if it is unknown."""
    try:
        with open("/sys/kernel/notes", "rb") as f:
            notes = f.read()
    except OSError:
        return None
    at = notes.find(struct.pack("=3I", 4, 20, 3) + b"GNU\0")
    return notes[at + 16:at + 36] if at >= 0 else None


LIVE_ID = live_build_id()


def live_text():
    """The address of _text in the running kernel, 0 if it is hidden."""
    with open("/proc/kallsyms", encoding="latin-1") as f:
        return next((int(line[:16].split()[0], 16) for line in f if line.endswith(" _text\n")), 0)


def vdso_image():
    """What the kernel has mapped into this program, None if it has not."""
    with open("/proc/self/maps", encoding="utf-8") as f:
        line = next((line for line in f if line.endswith("[vdso]\n")), None)
    if not line:
        return None
    start, end = (int(n, 16) for n in line.split()[0].split("-"))
    with open("/proc/self/mem", "rb") as f:
        f.seek(start)
        return f.read(end - start)


class Case(unittest.TestCase):
    """A scratch directory and ways to run the tool."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="stackmap-test.")
        self.addCleanup(shutil.rmtree, self.dir)

    def file(self, name, content):
        """Writes a file into the scratch directory."""
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return path

    def run_tool(self, *args, stdin=b"", rc=0):
        """Runs the tool, checks its exit status, returns stdout and stderr."""
        done = subprocess.run([TOOL, *args], input=stdin, capture_output=True, timeout=120,
                              check=False)
        out = done.stdout.decode("latin-1")
        err = done.stderr.decode("latin-1")
        self.assertNotRegex(err, "Sanitizer|runtime error")
        self.assertEqual(done.returncode, rc, f"{args}: {err}")
        return out, err

    def program(self, name, source):
        """Compiles a program with the files of the tool, but for those that it includes."""
        source = '#include "record.h"\nconst char * const program = "test";\n' + source
        own = [os.path.basename(f) for f in re.findall(r'#include "(.*\.c)"', source)]
        others = [f for f in os.listdir(SOURCES) if f.endswith(".c") and f not in (
            "dat.c", "elf.c", "event.c", "profile.c", "sample.c", "plugin_stackmap.c", *own)]
        path = os.path.join(self.dir, name)
        subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-I", SOURCES,
                        "-o", path, self.file(name + "-main.c", source)] +
                       [os.path.join(SOURCES, f) for f in others], check=True)
        return path

    def dump(self, data, *args, rc=0):
        """Runs the tool on map bytes, returns stdout."""
        return self.run_tool("-q", *args, "-", stdin=data, rc=rc)[0]

    def refuse(self, data, byte, what, *args):
        """The tool must refuse the data with one line that has the offset and the reason."""
        out, err = self.run_tool("-q", *args, "-", stdin=data, rc=1)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertIn(f"stdin: byte {byte}: ", err)
        self.assertIn(what, err)
        return out


class Golden(Case):
    """Fixed bytes in, fixed text out."""

    def test_generator_makes_the_golden_bytes(self):
        for name in MAPS:
            self.assertEqual(mkmap.golden(name), golden_map(name), name)

    def test_text(self):
        for name in MAPS:
            syms = golden_path("kallsyms32" if "32" in name else "kallsyms64")
            self.assertEqual(self.dump(golden_map(name), "-k", syms), golden_text("text64.txt"),
                             name)

    def test_raw(self):
        self.assertEqual(self.dump(golden_map("bare")), golden_text("raw64.txt"))

    def test_raw_32(self):
        want = golden_text("raw64.txt").replace("0xffffffff81", "0xc1")
        want = want.replace("0xffffffffc0", "0xf8")
        for name in ["le32", "be32"]:
            self.assertEqual(self.dump(golden_map(name)), want)

    def test_folded(self):
        for name in ["le64", "be64"]:
            out = self.dump(golden_map(name), "-k", KALLSYMS, "--folded")
            self.assertEqual(out, golden_text("folded64.txt"))

    def test_json(self):
        for name in ["le64", "be64"]:
            out = self.dump(golden_map(name), "-k", KALLSYMS, "--json")
            self.assertEqual(out, golden_text("json64.txt"))

    def test_annotate(self):
        path = self.file("map", golden_map("be64"))
        out, err = self.run_tool("-k", KALLSYMS, "--annotate", golden_path("trace.txt"), path)
        self.assertEqual(out, golden_text("annotated.txt"))
        self.assertIn("2 ids are not in", err)

    def test_file_pipe_and_dash(self):
        data = golden_map("le64")
        path = self.file("map", data)
        want = self.dump(data)
        self.assertEqual(self.run_tool(path)[0], want)
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            out = subprocess.run([TOOL, "-q", "/dev/stdin"], stdin=cat.stdout,
                                 capture_output=True, check=True).stdout
        self.assertEqual(out.decode(), want)


class Damage(Case):
    """Each kind of damage is reported with its offset."""

    def test_truncated_anywhere(self):
        for name in ["le64", "be32"]:
            data = golden_map(name)
            for cut in range(0, len(data), 7 if SANITIZED else 1):
                self.refuse(data[:cut], cut, "truncated in")

    def test_partial_prints_what_was_whole(self):
        stacks = [(i, 9 - i, [TEXT + i] * 5) for i in range(3)]
        data = mkmap.make(stacks)
        size = len(mkmap.record(*stacks[0]))
        for cut in range(16, len(data), 5 if SANITIZED else 1):
            out = self.refuse(data[:cut], cut, "truncated", "--partial")
            self.assertEqual(out.count("stack_id"), (cut - 16) // size)
        self.assertEqual(self.refuse(data[:-1], len(data) - 1, "truncated"), "")

    def test_magic_and_version(self):
        self.refuse(mkmap.make([], magic=0x12345678), 0, "bad magic")
        self.refuse(mkmap.make([], version=3), 4, "version 3")
        self.refuse(mkmap.make([], version=1), 4, "version 1")

    def test_counts(self):
        self.refuse(struct.pack("<4I", mkmap.MAGIC, 2, 0, 0xFFFFFFFF), 16, "truncated")
        for nr in [1, 0x80001, 0xFFFFFFFF]:
            self.refuse(struct.pack("<4I", mkmap.MAGIC, 2, nr, 0), 16, "truncated")

    def test_depth(self):
        for nr in [1025, 0x20000000, 0x40000001, 0xFFFFFFFF]:
            data = struct.pack("<8I", mkmap.MAGIC, 2, 1, 0, 5, nr, 1, 0) + bytes(64)
            self.refuse(data, 20, f"stack_id 5 has {nr} frames")
        data = struct.pack("<8I", mkmap.MAGIC, 2, 1, 0, 5, 9, 1, 0) + bytes(64)
        self.refuse(data, len(data), "truncated in the frames")
        self.assertIn("depth 1024", self.dump(mkmap.make([(1, 1, [TEXT] * 1024)])))

    def test_zero_depth(self):
        self.refuse(mkmap.make([(1, 1, [TEXT]), (5, 1, [])]), 44, "stack_id 5 has no frames")

    def test_negative_id(self):
        self.refuse(mkmap.make([(0x80000001, 1, [TEXT])]), 16, "negative")

    def test_unknown_flags_are_ignored(self):
        for order in "<>":
            data = mkmap.make([(1, 2, [TEXT], 4), (2, 1, [5], 9)], order=order)
            out, err = self.run_tool("-", stdin=data)
            self.assertEqual(out, self.dump(mkmap.make([(1, 2, [TEXT]), (2, 1, [5], 1)])))
            self.assertEqual(re.findall(".*flags.*", err),
                             ["stackmap_dump: stdin: ignored unknown flags 0xc of stacks"])
        self.refuse(mkmap.make([(5, 1, [], 4)]), 20, "stack_id 5 has no frames")

    def test_sections(self):
        for kind, payload, what in [(1, bytes(4), "_text"), (1, bytes(16), "_text"),
                                    (2, b"", "build id"), (2, bytes(65), "build id"),
                                    (3, bytes(256), "release")]:
            self.refuse(mkmap.make([], [(kind, payload)]), 20, what)
        self.refuse(struct.pack("<6I", mkmap.MAGIC, 2, 0, 1, 9, 0xFFFFFFFF), 24, "unknown section")

    def test_unknown_section_is_skipped(self):
        data = mkmap.make([(1, 1, [TEXT])], [(77, b"abc"), (3, b"7.3-after")])
        out, err = self.run_tool("--summary", "-", stdin=data)
        self.assertIn("byte 40: skipped a section of unknown type 77", err)
        self.assertIn("kernel: 7.3-after", out)

    def test_bytes_after_the_end(self):
        data = golden_map("le64")
        self.refuse(data + b"x", len(data), "more bytes")

    def test_missing_file(self):
        self.assertIn("No such file", self.run_tool("/nonexistent", rc=1)[1])
        self.assertIn("stack_map_bin", self.run_tool(self.dir, rc=1)[1])

    def test_kallsyms_damage(self):
        for text, byte in [("ffffffff81000000 T _text\nrubbish\n", 25), ("12 T\n", 0),
                           ("12 T name\t[mod\n", 0), ("12 T a\n\0\n", 7), ("12Tx\n", 0)]:
            path = self.file("k", text)
            out, err = self.run_tool("-k", path, "-", stdin=golden_map("le64"), rc=1)
            self.assertIn(f"byte {byte}: not a line of kallsyms", err)
            self.assertEqual(out, "")

    def test_kallsyms_that_is_empty_or_cut_off(self):
        text = golden_text("kallsyms64")
        for cut in range(0, len(text), 7 if SANITIZED else 1):
            path = self.file("k", text[:cut])
            done = subprocess.run([TOOL, "-q", "-k", path, "-"], input=golden_map("bare"),
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, int(text[cut - 1] != "\n" or not cut), cut)
            if done.returncode:
                self.assertRegex(done.stderr.decode(), "k: (empty|byte)")
        for content in ["", "ffffffff81000000 T _te"]:
            self.file("stack_map_bin", golden_map("le64"))
            self.file("kallsyms", content)
            out, err = self.run_tool(self.dir)
            self.assertEqual(out, golden_text("raw64.txt"))
            self.assertIn("/kallsyms: " + ("byte 22: cut off" if content else "empty"), err)
            self.assertIn("raw addresses", err)

    def test_random_damage_never_crashes(self):
        rnd = random.Random(3)
        for _ in range(100 if SANITIZED else 300):
            data = bytearray(golden_map(rnd.choice(MAPS)))
            for _ in range(rnd.randrange(1, 6)):
                data[rnd.randrange(len(data))] = rnd.choice([0, 1, 0x7F, 0x80, 0xFF])
            mode = rnd.choice(["-j", "-F", "-S", "-s", "-q"])
            done = subprocess.run([TOOL, "--partial", "-k", KALLSYMS, mode, "-"], input=bytes(data),
                                  capture_output=True, timeout=60, check=False)
            self.assertIn(done.returncode, (0, 1))
            self.assertNotIn(b"Sanitizer", done.stderr)
            self.assertNotIn(b"runtime error", done.stderr)

    def test_memory_follows_the_input_and_not_the_counts(self):
        if SANITIZED:
            self.skipTest("the sanitizer takes address space of its own")
        data = struct.pack("<8I", mkmap.MAGIC, 2, 0xFFFFFFFF, 1, 5, 1024, 1, 0)

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20))

        done = subprocess.run([TOOL, "-"], input=data, capture_output=True, preexec_fn=limit,
                              check=False)
        self.assertIn(b"byte 32: truncated", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TOOL, "-q", "-"], input=golden_map("le64"), stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)


class Symbols(Case):
    """The names of addresses."""

    def frames(self, ips, kallsyms, *args):
        """The frames of one stack."""
        path = self.file("kallsyms", kallsyms)
        out = self.dump(mkmap.make([(1, 1, ips)]), "-k", path, *args)
        return [line.split("] ", 1)[1] for line in out.splitlines()[1:-1]]

    def test_return_address_is_looked_up_one_byte_back(self):
        syms = "1000 T caller_that_ends_with_a_call\n1100 T next_function\n1200 T _etext\n"
        self.assertEqual(self.frames([0x1100, 0x1100], syms),
                         ["next_function+0x0/0x100", "caller_that_ends_with_a_call+0x100/0x100"])

    def test_first_alias_wins_whatever_its_name(self):
        syms = "1000 T z_first\n1000 T a_second\n1080 T next\n"
        self.assertEqual(self.frames([0x1010], syms), ["z_first+0x10/0x80"])

    def test_unsorted_input(self):
        syms = "1080 T next\n1000 T a\n"
        self.assertEqual(self.frames([0x1010], syms), ["a+0x10/0x80"])

    def test_mapping_and_absolute_symbols_are_skipped(self):
        syms = "1000 T real\n1004 t $x\n1006 t $d.17\n1008 A abs\n1009 a abs2\n1100 T next\n"
        self.assertEqual(self.frames([0x1010], syms), ["real+0x10/0x100"])

    def test_nothing_beyond_the_kernel(self):
        syms = "1000 T _text\n1000 T f\n2000 B _end\n"
        self.assertEqual(self.frames([0x1FFF, 0x2001, 0x9999, 0xFFF], syms),
                         ["_text+0xfff/0x1000", "0x2001", "0x9999", "0xfff"])

    def test_module_and_what_kernel_does_not_name(self):
        syms = golden_text("kallsyms64")
        self.assertEqual(
            self.frames([0xFFFFFFFFC0201500, 0xFFFFFFFFC0400010, 0xFFFFFFFFC0500110,
                         0xFFFFFFFFC0209000], syms),
            ["last_of_mod+0x100/0xc00 [golden_mod]", "0xffffffffc0400010",
             "bpf_prog_1234_demo+0x10", "0xffffffffc0209000"])

    def test_two_modules_side_by_side(self):
        syms = "5000 t a\t[ma]\n5100 t b\t[ma]\n5800 t c\t[mb]\n"
        self.assertEqual(self.frames([0x5010, 0x5110, 0x5810], syms),
                         ["a+0x10/0x100 [ma]", "b+0x10/0x700 [ma]", "c+0x10/0x800 [mb]"])

    def test_lines_that_end_as_on_windows(self):
        syms = golden_text("kallsyms64").replace("\n", "\r\n")
        path = self.file("k", syms)
        self.assertEqual(self.dump(golden_map("le64"), "-k", path), golden_text("text64.txt"))

    def test_odd_type(self):
        self.assertEqual(self.frames([0x1010], "1000 M odd\n1100 T end\n"), ["odd+0x10/0x100"])

    def test_kptr_restrict(self):
        path = self.file("k", "0000000000000000 T _text\n0000000000000000 T a\n")
        err = self.run_tool("-k", path, "-", stdin=golden_map("le64"), rc=1)[1]
        self.assertIn("kptr_restrict", err)

    def test_directory_with_hidden_addresses_still_shows_addresses(self):
        self.file("stack_map_bin", golden_map("bare"))
        self.file("kallsyms", "0000000000000000 T _text\n")
        out, err = self.run_tool(self.dir)
        self.assertEqual(out, golden_text("raw64.txt"))
        self.assertIn("kptr_restrict", err)
        self.assertIn("raw addresses", err)

    def test_kallsyms_of_another_boot(self):
        syms = golden_text("kallsyms64").replace("ffffffff8100", "ffffffff9a00")
        path = self.file("k", syms)
        err = self.run_tool("-k", path, "-", stdin=golden_map("le64"), rc=1)[1]
        self.assertIn("another boot", err)
        out = self.dump(golden_map("le64"), "-k", path, "--force")
        self.assertIn("schedule+0x48/0x80", out)
        self.assertNotIn("golden_mod", out)

    def test_kallsyms_of_another_kernel(self):
        path = self.file("kallsyms", golden_text("kallsyms64"))
        data = golden_map("le64")
        for build_id in ["ff" * 20, "000102"]:
            self.file("build_id", build_id + "\n")
            out, err = self.run_tool("-k", path, "-", stdin=data, rc=1)
            self.assertEqual(out, "")
            self.assertIn(path + ": has another build id than the kernel of stdin", err)
            self.assertIn("schedule+0x48", self.dump(data, "-k", path, "--force"))
        self.file("build_id", bytes(range(20)).hex() + "\n")
        self.assertEqual(self.dump(data, "-k", path), golden_text("text64.txt"))
        self.file("build_id", "")
        self.assertEqual(self.dump(data, "-k", path), golden_text("text64.txt"))

    def test_directory_of_two_kernels(self):
        self.file("stack_map_bin", golden_map("le64"))
        self.file("kallsyms", golden_text("kallsyms64"))
        self.file("build_id", "ff" * 20 + "\n")
        path = self.file("map", golden_map("le64"))
        for args in [[self.dir], ["--diff", self.dir, path]]:
            out, err = self.run_tool(*args, rc=1)
            self.assertEqual(out, "")
        out, err = self.run_tool(self.dir, rc=1)
        self.assertIn("kallsyms: has another build id than the kernel of", err)
        self.assertEqual(self.run_tool("--force", self.dir)[0], golden_text("text64.txt"))
        self.file("build_id", bytes(range(20)).hex() + "\n")
        self.assertEqual(self.run_tool(self.dir)[0], golden_text("text64.txt"))

    def test_proc_kallsyms_of_another_kernel(self):
        if not LIVE_ID:
            self.skipTest("no build id in /sys/kernel/notes")
        err = self.run_tool("-k", "/proc/kallsyms", "-", stdin=golden_map("le64"), rc=1)[1]
        self.assertIn("/proc/kallsyms: has another build id than the kernel of stdin", err)

    def test_map_of_the_running_kernel(self):
        text = live_text()
        if not LIVE_ID or not text:
            self.skipTest("the running kernel does not tell its build id, or hides its addresses")
        hint = "raw addresses (-k kallsyms or -v vmlinux)"
        for build_id, base, live in [(LIVE_ID, text, True), (LIVE_ID, text - 4096, True),
                                     (bytes(20), text, False), (LIVE_ID, None, False),
                                     (None, text, False)]:
            sections = [(mkmap.BUILD_ID, build_id)] if build_id else []
            sections += [(mkmap.TEXT, struct.pack("=Q", base))] if base else []
            path = self.file("map", mkmap.make([(1, 1, [text])], sections))
            trace = b" bash-1   [000]   12.345678: stack_id:     <stack_id 1>\n"
            out, err = self.run_tool("--annotate", "-", path, stdin=trace)
            self.assertEqual(f"=> 0x{text:x}" not in out, live, out)
            self.assertEqual("symbols: kallsyms /proc/kallsyms" in err, live, err)
            self.assertEqual(hint in err, not live, err)

    def test_source_is_said(self):
        err = self.run_tool("-k", KALLSYMS, "-", stdin=golden_map("le64"))[1]
        self.assertIn("symbols: kallsyms " + KALLSYMS, err)
        self.assertIn("raw addresses", self.run_tool("-", stdin=golden_map("le64"))[1])

    def test_many_addresses(self):
        rnd = random.Random(5)
        stacks = [(i, 1, [rnd.randrange(1 << 64) for _ in range(1024)]) for i in range(200)]
        out = self.dump(mkmap.make(stacks), "--sort", "id")
        self.assertEqual(re.findall(r"\] 0x([0-9a-f]+)$", out, re.M),
                         [f"{ip:x}" for _, _, ips in stacks for ip in ips])

    def test_long_names(self):
        name = "n" * 3000
        self.assertEqual(self.frames([0x1010], f"1000 t {name}\t[m]\n1100 t o\t[m]\n"),
                         [f"{name}+0x10/0x100 [m]"])


class Output(Case):
    """The other forms of output."""

    NASTY = "1000 t we\"ird\\na;me \x01\x7f\xc3\xa9\xff</script>\t[mo;d \"]\n2000 t end\t[mo;d \"]\n"

    def nasty(self, *args):
        """One stack of one frame; its name has all special bytes."""
        path = os.path.join(self.dir, "k")
        with open(path, "wb") as f:
            f.write(self.NASTY.encode("latin-1"))
        return self.dump(mkmap.make([(1, 5, [0x1010])]), "-k", path, *args)

    def test_json_is_valid_whatever_a_symbol_holds(self):
        stacks = json.loads(self.nasty("--json"))
        self.assertEqual(stacks[0]["symbols"],
                         ["we\"ird\\na;me \x01\x7f\xc3\xa9\xff</script>+0x10/0x1000 [mo;d \"]"])

    def test_control_characters(self):
        """They are for JSON only: a terminal would obey."""
        name = "we\"ird\\na;me ??\xc3\xa9\xff</script>"
        self.assertIn(f"  [0] {name}+0x10/0x1000 [mo;d \"]\n", self.nasty())
        path = os.path.join(self.dir, "k")
        data = mkmap.make([(1, 5, [0x1010])], [(mkmap.RELEASE, b"7\x1b[2J")])
        out = self.run_tool("report", "-q", "-k", path, "-", stdin=data)[0]
        self.assertIn(f"  {name}[mo;d \"]\n", out)
        old = self.file("old", mkmap.make([]))
        for args in [["--diff", old], ["--annotate", self.file("trace", "<stack_id 1>\n")]]:
            self.assertIn(f" {name}+0x10", self.dump(mkmap.make([(1, 5, [0x1010])]), "-k", path,
                                                    *args))
        self.assertIn("kernel: 7?[2J\n", self.dump(data, "--summary"))

    def test_json_fields(self):
        stacks = {s["id"]: s for s in json.loads(self.dump(golden_map("be64"), "--json"))}
        self.assertEqual(sorted(stacks), [3, 4, 7, 524289])
        self.assertEqual(stacks[4]["ref_count"], 4294967295)
        for i, ref, ips in mkmap.golden_stacks(TEXT, 0xFFFFFFFFC0201000):
            self.assertEqual([int(x, 16) for x in stacks[i]["ips"]], ips)
            self.assertEqual((stacks[i]["ref_count"], stacks[i]["depth"]), (ref, len(ips)))

    def test_empty_map(self):
        data = mkmap.make([])
        self.assertEqual(json.loads(self.dump(data, "--json")), [])
        self.assertEqual(self.dump(data), "")
        self.assertEqual(self.dump(data, "--folded"), "")
        self.assertIn("stacks: 0", self.dump(data, "--summary"))
        self.assertEqual(json.loads(self.dump(data, "--speedscope"))["shared"]["frames"], [])
        empty = self.file("empty", data)
        self.assertEqual(self.dump(data, "--diff", empty), "")

    def test_speedscope(self):
        prof = json.loads(self.dump(golden_map("le64"), "-k", KALLSYMS, "--speedscope"))
        self.assertEqual(prof["$schema"], "https://www.speedscope.app/file-format-schema.json")
        names = [f["name"] for f in prof["shared"]["frames"]]
        self.assertEqual(len(names), len(set(names)))
        p = prof["profiles"][0]
        self.assertEqual((p["type"], p["unit"], p["startValue"]), ("sampled", "none", 0))
        self.assertEqual(p["endValue"], sum(p["weights"]))
        lines = [";".join(names[i] for i in s) + f" {w}" for s, w in
                 zip(p["samples"], p["weights"])]
        want = golden_text("folded64.txt").replace("[FTRACE_TRAMPOLINE]", "[FTRACE TRAMPOLINE]")
        self.assertEqual("\n".join(lines) + "\n", want)
        json.loads(self.nasty("--speedscope"))

    MERGED = [(1, 5, [TEXT + 0x148, TEXT + 0x30]), (2, 4294967295, [TEXT + 0x120, TEXT + 0x40]),
              (3, 7, [TEXT + 0x30]), (4, 6, [TEXT + 0x31])]

    def test_folded_lines_are_distinct(self):
        data = mkmap.make(self.MERGED)
        out = self.dump(data, "-k", KALLSYMS, "--folded")
        self.assertEqual(out, "do_exit;schedule 4294967300\ndo_exit 13\n")
        out = self.dump(data, "-k", KALLSYMS, "--folded", "--min-ref", "13", "--sort", "depth")
        self.assertEqual(out, "do_exit;schedule 4294967300\ndo_exit 13\n")
        self.assertEqual(self.dump(data, "-k", KALLSYMS, "--folded", "--min-ref", "14"),
                         "do_exit;schedule 4294967300\n")
        out = self.dump(data, "-k", KALLSYMS, "--folded", "--grep", "(schedule.0x48|exit.0x11)")
        self.assertEqual(out, "do_exit 6\ndo_exit;schedule 5\n")
        rnd = random.Random(7)
        stacks = [(i, rnd.randrange(99), [rnd.choice([TEXT + 0x21, TEXT + 0x101, TEXT + 0x181]) +
                                          rnd.randrange(50) for _ in range(rnd.randrange(1, 5))])
                  for i in range(5000)]
        want = {}
        for _, ref, ips in stacks:
            names = ["do_exit" if ip < TEXT + 0x100 else "schedule" if ip < TEXT + 0x180 else
                     "weak_one" for ip in ips]
            path = ";".join(reversed(names))
            want[path] = want.get(path, 0) + ref
        lines = self.dump(mkmap.make(stacks), "-k", KALLSYMS, "--folded").splitlines()
        got = {line.split(" ")[0]: int(line.split(" ")[1]) for line in lines}
        self.assertEqual((len(lines), got), (len(want), want))

    def test_folded_line_by_line(self):
        for data in [self.nasty("--folded"), golden_text("folded64.txt")]:
            for line in data.splitlines():
                self.assertRegex(line, r"^[^;\s]+(;[^;\s]+)* \d+$")
                self.assertNotRegex(line, r"\+0x")

    def test_sort_top_min_ref_grep(self):
        data = golden_map("le64")

        def ids(*args):
            out = self.dump(data, "-k", KALLSYMS, *args)
            return [int(x) for x in re.findall(r"^stack_id (\d+)", out, re.M)]

        self.assertEqual(ids(), [4, 524289, 7, 3])
        self.assertEqual(ids("--sort", "id"), [3, 4, 7, 524289])
        self.assertEqual(ids("--sort", "depth"), [3, 7, 524289, 4])
        self.assertEqual(ids("--top", "2"), [4, 524289])
        self.assertEqual(ids("--min-ref", "12"), [4, 524289, 7])
        self.assertEqual(ids("--grep", "^(sched|last_of)"), [7, 3])
        self.assertEqual(ids("--grep", "golden_mod", "--min-ref", "2"), [])

    def test_summary(self):
        out = self.dump(golden_map("le64"), "--summary")
        self.assertIn("kernel: 7.3.0-golden, build id 00010203", out)
        self.assertIn("stacks: 4\nframes: 11\nreferences: 8294967308\n", out)
        self.assertIn("depth: 2.8 on average, at most 4\n", out)

    def test_summary_share(self):
        stacks = [(i, 10 if i < 10 else 1, [TEXT + i]) for i in range(110)]
        self.assertIn("top 10 hold: 50.0%", self.dump(mkmap.make(stacks), "--summary"))

    def test_annotate_twice_is_once(self):
        path = self.file("map", golden_map("le64"))
        once = golden_text("annotated.txt")
        out = self.run_tool("-q", "-k", KALLSYMS, "--annotate", "-", path, stdin=once.encode())[0]
        self.assertEqual(out, once)

    def test_annotate_loses_no_line(self):
        path = self.file("map", golden_map("le64"))
        text = golden_text("trace.txt")
        out = self.run_tool("-q", "-k", KALLSYMS, "--annotate", golden_path("trace.txt"), path)[0]
        for line in text.splitlines():
            if not line.startswith(" => ") or "kernel_said" in line:
                self.assertIn(line + "\n", out)

    def test_annotate_odd_text(self):
        path = self.file("map", golden_map("le64"))
        for text in ["<stack_id ", "<stack_id >\n", "<stack_id -1>\n", "<stack_id 7",
                     "<stack_id 99999999999999999999>\n", "<stack_id 4294967303>\n"]:
            self.assertEqual(self.annotated(text), (text, 0))
        out = self.run_tool("-q", "--annotate", "-", path, stdin=b"<stack_id 7>")[0]
        self.assertTrue(out.startswith("<stack_id 7>\n => 0x"), out)
        self.assertIn("No such file", self.run_tool("--annotate", "/nonexistent", path, rc=1)[1])

    SPLIT_TRACE = (" bash-1 [000] d.h1. 1.000001: <stack_split 7 @ffffffff81000148 4>\n"
                   " <idle>-0 [000] d.h1. 1.000002: <stack_split 7 @ffffffff81000148 4"
                   " @1234 524289>\n"
                   " bash-1 [000] d.h1. 1.000003: <stack_id 4>\n"
                   " => what the kernel said\n")

    def test_annotate_joins_parts(self):
        path = self.file("map", golden_map("be64"))
        seven = " => schedule+0x0/0x80\n => do_exit+0xe0/0xe0\n => schedule+0x48/0x80\n"
        hit, four = " => schedule+0x48/0x80\n", " => weak_one+0x0/0x80\n"
        other = " => do_exit+0x7f/0xe0\n => [FTRACE TRAMPOLINE]\n => _text+0x20/0x20\n"
        # In the second part, the first frame is a return address.
        behind = " => schedule+0x80/0x80\n"
        lines = self.SPLIT_TRACE.splitlines(True)
        out = self.run_tool("-k", KALLSYMS, "--annotate", "-", path, stdin=self.SPLIT_TRACE.encode())[0]
        self.assertEqual(out, lines[0] + seven + hit + behind + lines[1] + seven + hit + behind +
                         " => 0x1234\n" + other + lines[2] + four)
        # The format of libtraceevent, and a part that is not in the map.
        for text, want in [("stack_split: <stack_split 7 @ffffffff81000148 4 @0 -1 @0 -1>\n",
                            seven + hit + behind),
                           ("<stack_split 7 @ffffffff81000148 5> (stale)\n",
                            " => [not in this map]\n")]:
            out = self.run_tool("-q", "-k", KALLSYMS, "--annotate", "-", path, stdin=text.encode())[0]
            self.assertEqual(out, text + want)

    def test_annotate_odd_splits(self):
        many = "".join(f" @{i:x} 7" for i in range(1, 20))
        for text in ["<stack_split ", "<stack_split 7>\n", "<stack_split 7 @>\n",
                     "<stack_split 7 @12>\n", "<stack_split 7 @12 >\n", "<stack_split 7 @12 7",
                     "<stack_split 7 12 7>\n", "<stack_split 7 @-1 7>\n",
                     "<stack_split 7 @11111111111111111 7>\n", "<stack_split 7 @0 -1>\n",
                     "<stack_split 7 @12 4 @0 -1 @0 -1", "<stack_split 7 @12 4 @0 -1 @0 7>\n",
                     "<stack_split 7 @12 -1 @0 -1 @0 -1>\n", "<stack_split 7 @12 -2>\n",
                     "<stack_id 7 @12 7>\n", f"<stack_split 7{many}>\n"]:
            self.assertEqual(self.annotated(text), (text, 0))

    REPORT = "".join(golden_text("report.txt").splitlines(True)[2:5])

    def test_trace_cut_anywhere(self):
        path = self.file("map", golden_map("le64"))
        text = self.SPLIT_TRACE
        whole = [i + 1 for i, c in enumerate(text) if c == ">" and "<stack" in text[i - 60:i]
                 and text[i + 1] == "\n"]
        for cut in range(0, len(text), 7 if SANITIZED else 2):
            done = subprocess.run([TOOL, "-q", "--annotate", "-", path], input=text[:cut].encode(),
                                  capture_output=True, check=False)
            got = any(end <= cut for end in whole)
            self.assertEqual(done.returncode, int(not got), text[:cut])

    def test_parts_that_trace_cmd_does_not_print(self):
        path = self.file("map", golden_map("le64"))
        for last in [4 - 2 ** 31, 4 + 2 ** 31]:
            text = self.REPORT.splitlines(True)[2].replace("2147483652", str(last)) * 3
            out, err = self.run_tool("-k", KALLSYMS, "--annotate", "-", path, stdin=text.encode(), rc=1)
            self.assertIn("3 lines have ids that cannot be read, or not all of them", err)
            self.assertEqual(out, text)

    def annotated(self, text):
        """The text with frames, and whether it has stacks."""
        path = self.file("map", golden_map("le64"))
        done = subprocess.run([TOOL, "-q", "-k", KALLSYMS, "--annotate", "-", path], input=text.encode(),
                              capture_output=True, timeout=60, check=False)
        return done.stdout.decode(), 1 - done.returncode

    def test_what_only_looks_like_an_id(self):
        head, cmd = " bash-123     [000] d..2.  1000.000003: ", " bash-123   [000]  12.345678: "
        for line in ["      <stack_id 4>-123     [000] d..2.  1000.000003: sched_waking: pid=1",
                     "   x: <stack_id 4>-123     [000] d..2.  1000.000003: sched_waking: pid=1",
                     "   x 1: <stack_id-123     [000] d..2.  1000.000003: sched_waking: pid=1",
                     head + "tracing_mark_write: <stack_id 4>",
                     head + "tracing_mark_write: x <stack_id 4> y",
                     head + "tracing_mark_write: 1: <stack_id 4>",
                     head + "tracing_mark_write: stack_id: <stack_id 4>",
                     head + "0xffffffff81000148: <stack_id 4>",
                     head + "x <stack_split 7 @ffffffff81000148 4>",
                     head + "tracing_mark_write: two lines\n<stack_id 4>",
                     head + "<stack_id 4> x", head + "<stack_id 4>(stale)",
                     "tracing_mark_write: step 3: <stack_id 4>", "kfree: x 5: <stack_id 4>",
                     cmd + "print:                tracing_mark_write: <stack_id 4>",
                     cmd + "print:                tracing_mark_write: stack_id: <stack_id 4>",
                     cmd + "kmalloc:              <stack_id 4>"]:
            self.assertEqual(self.annotated(line + "\n"), (line + "\n", 0))

    def test_ids_under_each_kind_of_head(self):
        four = " => weak_one+0x0/0x80\n"
        for head in ["      <stack_id 7>-123     [000] d..2.  1000.000003: ",
                     "            bash-123     (    120) [000] .....  1000.000003: ",
                     "            bash-123     (-------) [000]  1000.000003: ",
                     "            bash-123     [000] d..2.    1234567: ",
                     "    bash-123       0d..2.   12us : ", "    bash-123       0dNh2. 2000us!: ",
                     "            bash     123   0 1 00000000 00000000 [000004d2] 1.234ms (+0.001ms): ",
                     "          <idle>-0     [001]    12.345678: stack_id:             ",
                     "  x-1 [0] 1:  -77    [001] d..3.    12.345678901: stack_id:             ",
                     "  other:           <idle>-0     [001]    12.345678: stack_id:             ",
                     "of_instance_123456:   <idle>-0    [001]    12.345678: stack_id:           ",
                     " => abcdefghijkl-5       [000] d..2.  1000.000003: ",
                     ""]:
            for end in ["\n", " (stale)\n"]:
                line = head + "<stack_id 4>" + end
                self.assertEqual(self.annotated(line), (line + four, 1))

    def test_without_context(self):
        four = " => weak_one+0x0/0x80\n"
        text = "tracing_mark_write: then came 3: x\n<stack_id 4>\n"
        self.assertEqual(self.annotated(text), (text + four, 1))

    def test_a_task_named_like_a_frame(self):
        head = " => abcdefghijkl-5       [000] d..2.  1000.000003: "
        text = "  bash-6  [000] d..2.  1000.000002: <stack_id 4>\n => f\n" + head + "kmalloc: x\n"
        self.assertEqual(self.annotated(text)[0], text.replace("=> f", "=> weak_one+0x0/0x80"))

    def test_line_ends_of_dos(self):
        text = self.SPLIT_TRACE
        out, found = self.annotated(text.replace("\n", "\r\n"))
        self.assertEqual((out.replace("\r", ""), found), self.annotated(text))

    def test_nul_in_a_trace(self):
        nul = " bash-123 [000] d..2.  1.000003: tracing_mark_write: a\0b\n"
        line = " bash-123 [000] d..2.  1.000003: <stack_id 4>\n"
        four = " => weak_one+0x0/0x80\n"
        for before in [nul, "\0\n", " \0ash-123 [000] d..2. 1: x\n"]:
            self.assertEqual(self.annotated(before + line), (before + line + four, 1))
        for line in [line.replace("4>", "4>\0"), "\0" + line]:
            self.assertEqual(self.annotated(line), (line, 0))

    def test_parts_stand_alone(self):
        for order in "<>":
            split = (mkmap.SPLIT, struct.pack(f"{order}Q", 5))
            path = self.file("map", mkmap.make([(7, 1, [TEXT])], [split], order))
            for mode in [["-F"], ["-j"], []]:
                self.assertIn("interrupts split 5 stacks", self.run_tool(*mode, path)[1])
            self.assertNotIn("split", self.run_tool("--annotate", "-", path, rc=1)[1])
            self.assertIn("split by interrupts: 5\n", self.run_tool("-s", path)[0])
        data = mkmap.make([], [(mkmap.SPLIT, bytes(4))])
        self.refuse(data, 20, "split stacks has 4 bytes")

    def test_diff(self):
        a, b, c, d = ([TEXT + i, TEXT + 0x21] for i in (0x101, 0x102, 0x103, 0x104))
        old = self.file("old", mkmap.make([(1, 10, a), (2, 7, b), (3, 5, c)]))
        new = mkmap.make([(101, 13, a), (103, 5, c), (104, 100, d)])
        out = self.dump(new, "-k", KALLSYMS, "--diff", old)
        heads = re.findall(r"^[-+].*", out, re.M)
        self.assertEqual(heads, ["+100 new stack_id 104 [ref 100, depth 2]",
                                 "-7 gone stack_id 2 [ref 7, depth 2]",
                                 "+3 moved stack_id 101 [ref 13, depth 2]"])
        self.assertIn("  [0] schedule+0x4/0x80\n", out)
        out = self.dump(new, "-k", KALLSYMS, "--diff", old, "--top", "1")
        self.assertEqual(out.count("stack_id"), 1)
        out = self.dump(new, "-k", KALLSYMS, "--diff", old, "--grep", r"schedule\+0x2/")
        self.assertEqual(re.findall(r"^[-+]\S+", out, re.M), ["-7"])

    def test_diff_of_generations(self):
        a, b = ([TEXT + i, TEXT + 0x21] for i in (0x101, 0x102))
        gen = 1 << 19
        one = self.file("one", mkmap.make([(5, 100, a), (6, 3, b)]))
        two = self.file("two", mkmap.make([(5, 100, a), (9 + gen, 50, a), (6, 3, b)]))
        for new, old, by, stack in [(two, one, "+50", 9 + gen), (one, two, "-50", 5)]:
            out = self.run_tool("-k", KALLSYMS, "--diff", old, new)[0]
            ref = 150 if new == two else 100
            self.assertEqual(re.findall(r"^[-+].*", out, re.M),
                             [f"{by} moved stack_id {stack} [ref {ref}, depth 2]"])
        self.assertEqual(self.run_tool("-k", KALLSYMS, "--diff", two, two)[0], "")

    def test_diff_with_itself_is_empty(self):
        old = self.file("old", golden_map("le64"))
        self.assertEqual(self.dump(golden_map("be64"), "-k", KALLSYMS, "--diff", old), "")

    def test_diff_across_boots_of_one_kernel(self):
        base = TEXT + 0x7000000
        build = (mkmap.BUILD_ID, bytes(range(20)))
        old = self.file("old", mkmap.make([(1, 4, [base + 0x110, base + 0x30])],
                                          [(mkmap.TEXT, struct.pack("<Q", base)), build]))
        new = mkmap.make([(1, 9, [TEXT + 0x110, TEXT + 0x30])],
                         [(mkmap.TEXT, struct.pack("<Q", TEXT)), build])
        out = self.dump(new, "-k", KALLSYMS, "--diff", old)
        self.assertEqual(re.findall(r"^[-+]\S+ \S+", out, re.M), ["+5 moved"])

    def test_diff_of_a_plain_file(self):
        """The kernel's own symbols are those of the other map, if it is of the same kernel."""
        for name in ["new", "old"]:
            os.mkdir(os.path.join(self.dir, name))
            self.file(f"{name}/stack_map_bin", golden_map("le64"))
        self.file("new/kallsyms", golden_text("kallsyms64"))
        old = os.path.join(self.dir, "old/stack_map_bin")
        self.assertEqual(self.run_tool("-q", os.path.join(self.dir, "new"), "--diff", old)[0], "")

    def test_directory(self):
        self.file("stack_map_bin", golden_map("le64"))
        self.file("kallsyms", golden_text("kallsyms64"))
        out, err = self.run_tool(self.dir)
        self.assertEqual(out, golden_text("text64.txt"))
        self.assertIn(self.dir + "/kallsyms", err)
        self.assertEqual(self.run_tool("-q", self.dir, "--diff", self.dir)[0], "")


class Pprof(Case):
    """--pprof, decoded by the rules of protobuf."""

    @staticmethod
    def varint(data, at):
        """A number and the place behind it."""
        n = shift = 0
        while True:
            n |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                return n, at

    def numbers(self, data):
        """Numbers that are packed."""
        out, at = [], 0
        while at < len(data):
            n, at = self.varint(data, at)
            out.append(n)
        return out

    def message(self, data):
        """The fields of a message: number -> values."""
        fields, at = {}, 0
        while at < len(data):
            key, at = self.varint(data, at)
            self.assertIn(key & 7, (0, 2))
            value, at = self.varint(data, at)
            if key & 7:
                self.assertLessEqual(at + value, len(data))
                value, at = data[at:at + value], at + value
            fields.setdefault(key >> 3, []).append(value)
        return fields

    def profile(self, data, *args):
        """Runs the tool, returns samples (names from the leaf, count, labels), and the profile."""
        done = subprocess.run([TOOL, "-q", "--pprof", *args], input=data, capture_output=True,
                              check=True)
        prof = self.message(gzip.decompress(done.stdout))
        self.assertEqual(set(prof) - {1, 2, 4, 5, 6, 9, 11, 12}, set())
        texts = [s.decode() for s in prof[6]]
        self.assertEqual((texts[0], len(texts)), ("", len(set(texts))))
        types = [self.message(m) for m in prof[1] + prof[11]]
        self.assertEqual([(texts[t[1][0]], texts[t[2][0]]) for t in types],
                         [("events", "count")] * 2)
        funcs = [self.message(m) for m in prof.get(5, [])]
        names = {f[1][0]: texts[f[2][0]] for f in funcs}
        self.assertEqual([sorted(names), len(set(names.values()))],
                         [list(range(1, len(funcs) + 1)), len(funcs)])
        locs = {m[1][0]: m for m in map(self.message, prof.get(4, []))}
        self.assertEqual(sorted(locs), list(range(1, len(prof.get(4, [])) + 1)))
        samples = []
        for s in map(self.message, prof.get(2, [])):
            path = [names[self.message(locs[i][4][0])[1][0]] for i in self.numbers(s[1][0])]
            labels = {}
            for label in map(self.message, s.get(3, [])):
                labels[texts[label[1][0]]] = texts[label[2][0]] if 2 in label else \
                    label.get(3, [0])[0]
            samples.append((path, *self.numbers(s[2][0]), labels))
        return samples, prof

    def values(self, tool, dat, *args):
        """Types and values of a recording's samples. tool() writes the recording's directory."""
        tool(dat, "-q", "-F", "--top", "1")
        done = subprocess.run([TOOL, "-q", "--pprof", *args, os.path.join(self.dir, "dir")],
                              capture_output=True, check=True)
        prof = self.message(gzip.decompress(done.stdout))
        texts = [s.decode() for s in prof[6]]
        types = [(texts[t[1][0]], texts[t[2][0]]) for t in map(self.message, prof[1])]
        return types, [tuple(self.numbers(self.message(s)[2][0])) for s in prof.get(2, [])]

    def test_map(self):
        samples, _ = self.profile(golden_map("be64"), "-k", KALLSYMS, "-")
        self.assertEqual(samples, [
            (["weak_one"], 4294967295, {}),
            (["do_exit", "[FTRACE TRAMPOLINE]", "_text"], 4000000000, {}),
            (["schedule", "do_exit", "schedule"], 12, {}),
            (["first_of_mod[golden_mod]", "last_of_mod[golden_mod]", "weak_one", "0x1234"], 1,
             {})])

    def test_time(self):
        """That of the file, or now: Parca has a profile without a time in 1970."""
        path = self.file("map", golden_map("le64"))
        os.utime(path, (1, 1700000000))
        self.assertEqual(self.profile(b"", path)[1].get(9), [1700000000 * 10 ** 9])
        start = int(time.time())
        now = self.profile(golden_map("le64"), "-")[1].get(9, [0])
        self.assertTrue(start <= now[0] // 10 ** 9 <= time.time())

    def test_no_symbols(self):
        samples, _ = self.profile(golden_map("bare"), "-")
        self.assertEqual(samples[2], ([f"{TEXT + 0x100:#x}", f"{TEXT + 0x100:#x}",
                                       f"{TEXT + 0x148:#x}"], 12, {}))
        samples, prof = self.profile(mkmap.make([]), "-")
        self.assertEqual((samples, prof.get(4)), ([], None))

    def test_merged(self):
        """Stacks of the same functions are one sample, as in --folded."""
        data = mkmap.make(Output.MERGED)
        samples, _ = self.profile(data, "-k", KALLSYMS, "-")
        self.assertEqual(samples, [(["schedule", "do_exit"], 4294967300, {}), (["do_exit"], 13, {})])

    def test_nasty_names(self):
        path = os.path.join(self.dir, "k")
        with open(path, "wb") as f:
            f.write(Output.NASTY.encode("latin-1"))
        samples, _ = self.profile(mkmap.make([(1, 5, [0x1010])]), "-k", path, "-")
        self.assertEqual(samples[0][0], ["we\"ird\\na;me \x01\x7f\xc3\xa9\xff</script>[mo;d \"]"])

    def test_many_blocks(self):
        rnd = random.Random(2)
        stacks = [(i, rnd.randrange(1 << 32), [TEXT + rnd.randrange(0x200) for _ in range(20)])
                  for i in range(4000)]
        samples, _ = self.profile(mkmap.make(stacks), "-k", KALLSYMS, "--sort", "id", "-")
        self.assertEqual([s[1] for s in samples], [ref for _, ref, _ in stacks])
        lines = self.dump(mkmap.make(stacks), "-k", KALLSYMS, "-F").splitlines()
        want = dict(line.rsplit(" ", 1) for line in lines)
        got = {}
        for path, ref, _ in samples:
            path = ";".join(reversed(path))
            got[path] = got.get(path, 0) + ref
        self.assertEqual(got, {k: int(v) for k, v in want.items()})

    def test_terminal(self):
        leader, follower = os.openpty()
        done = subprocess.run([TOOL, "--pprof", "-"], stdin=subprocess.DEVNULL, stdout=follower,
                              stderr=subprocess.PIPE, check=False)
        os.close(follower)
        os.close(leader)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--pprof is binary", done.stderr)


class Filter(Case):
    """--annotate."""

    HEAD = "     bash-7       [000]    12.345678: "

    def test_streams(self):
        """What goes in comes out at once."""
        path = self.file("map", golden_map("le64"))
        with subprocess.Popen([TOOL, "-q", "-k", KALLSYMS, "--annotate", "-", path], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as p:
            for _ in range(3):
                p.stdin.write((self.HEAD + "<stack_id 4>\n").encode())
                p.stdin.flush()
                self.assertIn(b"<stack_id 4>", p.stdout.readline())
                self.assertEqual(p.stdout.readline(), b" => weak_one+0x0/0x80\n")
            p.stdin.close()
            self.assertEqual(p.wait(10), 0)

    def test_text_without_stacks(self):
        path = self.file("map", golden_map("le64"))
        for text in ["", "root:x:0:0\n", self.HEAD + "sched_switch: x\n"]:
            out, err = self.run_tool("--annotate", "-", path, stdin=text.encode(), rc=1)
            self.assertEqual(out, text)
            self.assertIn("-: has no ids of stacks", err)


    def test_full_disk(self):
        """It ends, though more lines come."""
        path = self.file("map", golden_map("le64"))
        for line in [self.HEAD + "<stack_id 4>", "no ids"]:
            with subprocess.Popen(["yes", line], stdout=subprocess.PIPE) as yes, \
                    open("/dev/full", "wb") as full:
                try:
                    done = subprocess.run([TOOL, "-q", "--annotate", "-", path], stdin=yes.stdout,
                                          stdout=full, stderr=subprocess.PIPE, timeout=10,
                                          check=False)
                finally:
                    yes.kill()
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, b"stackmap_dump: stdout: No space left on device\n")


PROGRAM = """\
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static int inner_static(int n)
{
	asm volatile(".globl mark_inner\\nmark_inner: nop");
	return n + getpid();
}

__attribute__((noinline)) int outer_global(int n)
{
	return inner_static(n) + 1;
}

int main(void)
{
	printf("%p\\n", (void *)outer_global);
	fflush(stdout);
	getchar();
	return outer_global(1) == 0;
}
"""


class User(Case):
    """Stacks of user space in a map."""

    # The address of a function of the kernel: some machines use the same ones in user space.
    USER = [TEXT + 0x148, 0x5500, 0x5600]
    FULL = f"0x5600[user];0x5500[user];{TEXT + 0x148:#x}[user]"

    def map(self, order="<"):
        """The golden map with a stack of user space."""
        return mkmap.make([*mkmap.golden_stacks(TEXT, 0xFFFFFFFFC0201000),
                           (9, 6, self.USER, 1)], order=order)

    def test_map(self):
        for order in "<>":
            data = self.map(order)
            out = self.dump(data, "-k", KALLSYMS)
            raw = "".join(f"  [{i}] {ip:#x}\n" for i, ip in enumerate(self.USER))
            self.assertIn(f"user_stack_id 9 [ref 6, depth 3]\n{raw}\n", out)
            self.assertEqual(out.replace(f"user_stack_id 9 [ref 6, depth 3]\n{raw}\n", ""),
                             golden_text("text64.txt"))
            stacks = {s["id"]: s for s in json.loads(self.dump(data, "-k", KALLSYMS, "-j"))}
            self.assertEqual([i for i, s in stacks.items() if "user" in s], [9])
            self.assertIs(stacks[9]["user"], True)
            self.assertEqual(stacks[9]["ips"], [f"{ip:#x}" for ip in self.USER])
            self.assertEqual(stacks[9]["symbols"], stacks[9]["ips"])
            self.assertIn(self.FULL + " 6\n", self.dump(data, "-k", KALLSYMS, "-F"))
            self.assertNotIn("user", self.dump(data, "-k", KALLSYMS, "-g", "schedule"))
        self.assertEqual(self.dump(data, "-k", KALLSYMS, "-t", "1", "-m", "6", "-g", "0x55"),
                         f"user_stack_id 9 [ref 6, depth 3]\n{raw}\n")


class RecordingCase(Case):
    """Makes recordings, and profiles of them."""

    SWITCH = ("sched_switch", "sched_switch")
    A, B, C = TEXT + 0x148, TEXT + 0x30, TEXT + 0x180
    FULL = {"A": [A], "AB": [A, B], "CB": [C, B]}

    def setUp(self):
        super().setUp()
        if WITHOUT in self.run_tool("report", "/dev/null", rc=1)[1] + \
                subprocess.run([TOOL, "-F", self.file("t", b"\x17\x08\x44tracing6\0")],
                               capture_output=True, check=False).stderr.decode():
            self.skipTest(WITHOUT)
        self.now = 0

    def dat(self, **args):
        """A recording without records."""
        self.now = 1000000
        args.setdefault("comms", [(1, "one"), (2, "two")])
        args.setdefault("clock", "[mono]")
        return mkdat.Dat(**args)

    def event(self, dat, name, *values, stack=None, after=1, **where):
        """An event, and a full stack behind it."""
        self.now += after
        dat.add(self.now, name, *values, **where)
        if stack:
            self.stack(dat, stack, **where)

    def stack(self, dat, stack, **where):
        """A full stack of the kernel."""
        dat.add(self.now, "kernel_stack", len(self.FULL[stack]), self.FULL[stack], **where)

    def add(self, dat, name, *values, **where):
        """A record, later than all before it."""
        self.now += 1
        dat.add(self.now, name, *values, **where)

    def switch(self, dat, prev, following, state=1, after=1, stack=None, **where):
        """A task leaves its CPU."""
        self.event(dat, "sched_switch", f"t{prev}", prev, 120, state, f"t{following}", following,
                   120, stack=stack, after=after, pid=prev, **where)

    def tool(self, dat, *args, rc=0, more=None):
        """Runs the tool on a directory with the recording, returns stdout and stderr."""
        path = os.path.join(self.dir, "dir")
        if not os.path.isdir(path):
            os.mkdir(path)
        for name, data in dict({"trace.dat": dat if isinstance(dat, bytes) else dat.bytes(),
                                "kallsyms": golden_text("kallsyms64")}, **(more or {})).items():
            self.file("dir/" + name, data)
        return self.run_tool(*args, path, rc=rc)

    def folded(self, dat, *args, **more):
        """The folded stacks, as a dictionary."""
        out = self.tool(dat, "-q", "-F", *args, **more)[0]
        return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in out.splitlines()}

    def all_forms(self, dat, *args, perf=True):
        """The sums of all forms, which must be equal; returns the sum."""
        folded = sum(self.folded(dat, *args).values())
        out = json.loads(self.tool(dat, "-q", "-S", *args)[0])
        self.assertEqual(sum(out["profiles"][0]["weights"]), folded)
        if perf:
            out = self.tool(dat, "-q", "--perf-script", *args)[0]
            heads = [line for line in out.splitlines() if re.match(r"\S", line)]
            weights = [re.search(r"\.\d{6}: (?:(\d+) )?\w+:", h)[1] for h in heads]
            self.assertEqual(sum(int(w or 1) for w in weights), folded)
        pprof = Pprof()
        pprof.dir = self.dir
        types, samples = pprof.values(self.tool, dat, *args)
        self.assertEqual(sum(s[-1] for s in samples), folded, types)
        path = os.path.join(self.dir, "dir")
        for form in [["report"], []]:
            out = self.run_tool(*form, "-q", *args, path)[0]
            self.assertEqual(int(out.split()[1]), folded)
        weights = [int(n) for n in re.findall(r"^(\d+) \(", out, re.M)]
        self.assertEqual((sum(weights), weights), (folded, sorted(weights, reverse=True)))
        out = json.loads(self.run_tool("-q", "-j", *args, path)[0])
        self.assertEqual([s["weight"] for s in out], weights)
        self.assertEqual(sum(s["count"] for s in out), sum(s[0] for s in samples))
        self.assertEqual(self.run_tool("-q", "--diff", path, *args, path)[0], "")
        return folded


class Recording(RecordingCase):
    """Profiles of recordings."""

    def test_no_table_behind_an_error(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A")
        for args in [["report", "--pid", "99"], ["-F", "-e", "nothing"], ["report", "--off-cpu"],
                     ["-S", "--pid", "99"]]:
            self.assertEqual(self.tool(dat, *args, rc=1)[0], "")

    def test_last_recording(self):
        """A profile without a name is of ./stackmap.data, if that is there."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A")
        self.tool(dat, "-F")
        os.rename(os.path.join(self.dir, "dir"), os.path.join(self.dir, "stackmap.data"))
        for args, ok in [(["-F"], True), (["report"], True), (["-F", "-M"], False), ([], False),
                         (["-F", "-i", "nothing"], False)]:
            done = subprocess.run([TOOL, "-q", *args] if args[:1] != ["report"] else
                                  [TOOL, "report", "-q"], cwd=self.dir, capture_output=True,
                                  check=False)
            self.assertEqual(b"schedule" in done.stdout, ok, args)

    def test_full_stacks(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.event(dat, "kmalloc", 1, 8, stack="AB", cpu=1)
        self.event(dat, "kfree", 1, stack="CB")
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 2, "do_exit;weak_one": 1})
        self.assertEqual(self.folded(dat, "-e", "kfree"), {"do_exit;weak_one": 1})
        self.assertEqual(self.folded(dat, "-e", "kmem:kmalloc,kmem:kfree"), self.folded(dat))
        self.assertEqual(self.folded(dat, "-e", "kmem"), self.folded(dat))
        self.assertEqual(self.folded(dat, "--cpu", "1-3"), {"do_exit;schedule": 1})
        self.assertEqual(self.all_forms(dat), 3)

    def test_without_kallsyms(self):
        """The file's own are used, which have no ends of functions."""
        dat = self.dat(kallsyms=golden_text("kallsyms64"))
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        path = self.file("one.dat", dat.bytes())
        out = self.run_tool("-q", "-F", path)[0]
        self.assertRegex(out, r"^\S+;\S+ 1\n$")
        self.assertNotIn("0x", out)
        out = self.run_tool("-q", "--perf-script", path)[0]
        self.assertRegex(out, r"\tffffffff81000148 \S+\+0x[0-9a-f]+ \(\[kernel.kallsyms\]\)\n")
        # That is the text, if nothing else is said.
        self.assertRegex(self.run_tool("-q", path)[0], r"^# 1 events\n1 \(100.0%\)\n        \S+\n")

    def test_names_of_functions(self):
        """Those of the recording as well."""
        dat = self.dat(kallsyms="ffffffff81000100 t a\x1b[31m\nffffffff81000200 t end\n")
        self.event(dat, "kmalloc", 1, 8, stack="A")
        out = self.run_tool("report", "-q", self.file("one.dat", dat.bytes()))[0]
        self.assertIn("  a?[31m\n", out)

    def test_events_nest(self):
        """An interrupt comes between an event and its stack, and the unwinder may be traced."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8)
        self.event(dat, "kfree", 1, flags=8, preempt=1, stack="CB")
        for _ in range(40):
            self.event(dat, "kfree", 1, flags=8, preempt=2, stack="A")
        self.stack(dat, "AB")
        self.event(dat, "kfree", 5, pid=2)
        self.stack(dat, "A", pid=3)
        out, err = self.tool(dat, "-F", "-e", "kmalloc")
        self.assertEqual(out, "do_exit;schedule 1\n")
        self.assertNotIn("have no event", err)
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 1, "do_exit;weak_one": 1,
                                            "schedule": 41, "[no_stack]": 1})
        self.assertEqual(self.folded(dat, "-e", "stacktrace"), {"schedule": 1})

    def test_gap(self):
        """Behind a gap, a stack is not that of an event before it."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.event(dat, "kmalloc", 1, 8)
        self.now += 1
        dat.add(self.now, "kernel_stack", 1, [self.A], lost=True)
        out, err = self.tool(dat, "-F")
        self.assertEqual(sorted(out.splitlines()), ["[no_stack] 1", "do_exit;schedule 1"])
        self.assertIn("1 gaps", err)
        self.assertIn("1 stacks have no event", err)

    def test_ids(self):
        """Definitions behind the use, on another CPU, changed, missing, and those of the map."""
        dat = self.dat()
        for id_, before in [(5, True), (6, False)]:
            if before:
                self.add(dat, "stack_def", id_, 2, [self.A, self.B])
            self.event(dat, "kmalloc", 1, 8)
            self.add(dat, "stack_id", id_)
            if not before:
                self.add(dat, "stack_def", id_, 2, [self.C, self.B], cpu=1)
        for _ in range(3):
            self.event(dat, "kmalloc", 1, 8)
            self.add(dat, "stack_id", 7)
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 1, "do_exit;weak_one": 1,
                                            "[stack_not_defined]": 3})
        for form in ["-F", "--perf-script"]:
            self.assertIn(": 3 stacks have ids that nothing defines", self.tool(dat, form)[1])
        out = self.tool(dat, "-q", "--perf-script")[0]
        self.assertIn("weak_one", out.split("\n\n")[1])
        golden = {"stack_map_bin": golden_map("le64")}
        self.assertIn("schedule;do_exit;schedule", self.folded(dat, more=golden))
        # An id that comes to mean another stack.
        self.add(dat, "stack_def", 5, 1, [self.C])
        self.event(dat, "kmalloc", 1, 8)
        self.add(dat, "stack_id", 5)
        os.remove(os.path.join(self.dir, "dir/stack_map_bin"))
        want = {"do_exit;schedule": 1, "do_exit;weak_one": 1, "[stack_not_defined]": 3,
                "weak_one": 1}
        self.assertEqual(self.folded(dat), want)
        # The map has the last of them.
        self.assertEqual(self.folded(dat, more={"stack_map_bin": mkmap.make([(5, 1, [self.C])])}),
                         want)

    def test_split(self):
        dat = self.dat()
        self.add(dat, "stack_def", 5, 1, [self.C])
        self.add(dat, "stack_def", 6, 1, [self.B])
        self.event(dat, "kmalloc", 1, 8)
        self.add(dat, "stack_split", 5, TEXT + 0x100, 6 | 1 << 31, [self.A, 5])
        # The address that was hit is none of a return.
        self.assertEqual(self.folded(dat), {"schedule;schedule;do_exit;schedule;weak_one": 1})
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8)
        self.add(dat, "stack_split", 5, TEXT + 0x100, 6 | 1 << 31, [self.A])
        self.assertIn("1 records are shorter", self.tool(dat, "-F", rc=1)[1])

    def test_wrong_map(self):
        dat = self.dat()
        self.add(dat, "stack_def", 7, 1, [self.C])
        self.event(dat, "kmalloc", 1, 8)
        self.add(dat, "stack_id", 7)
        err = self.tool(dat, "-F", rc=1, more={"stack_map_bin": golden_map("le64")})[1]
        self.assertIn("1 ids are other stacks in the map", err)
        other = golden_text("kallsyms64").replace("ffffffff81", "ffffffff8f")
        dat.kallsyms = golden_text("kallsyms64")
        os.remove(os.path.join(self.dir, "dir/stack_map_bin"))
        self.assertIn("of another boot", self.tool(dat, "-F", rc=1, more={"kallsyms": other})[1])

    def test_instances(self):
        dat = self.dat(instances=("x", "y"))
        for name, stack in [("", self.A), ("x", self.B), ("y", self.C)]:
            self.add(dat, "stack_def", 5, 1, [stack], instance=name)
            self.event(dat, "kmalloc", 1, 8, instance=name)
            self.add(dat, "stack_id", 5, instance=name)
        self.assertEqual(self.folded(dat), {"do_exit": 1, "schedule": 1, "weak_one": 1})
        self.assertEqual(self.folded(dat, "-i", "y"), {"weak_one": 1})
        self.assertIn("has no instance z", self.tool(dat, "-F", "-i", "z", rc=1)[1])

    def test_map_of_an_instance_that_begins_late(self):
        """A map is not used for another instance, however many samples are printed before."""
        dat = self.dat(instances=("late",), cpus=1)
        for _ in range(201000):
            self.event(dat, "kmalloc", 1, 8)
            dat.add(self.now, "stack_id", 7)
        self.event(dat, "kmalloc", 1, 8, instance="late")
        dat.add(self.now, "stack_id", 7, instance="late")
        more = {"stack_map_bin": golden_map("le64")}
        for args in [["--perf-script"], ["-F"]]:
            out, err = self.tool(dat, *args, more=more)
            self.assertIn("the map is not used", err)
            self.assertNotIn("schedule", out)
        out = self.tool(dat, "-q", "-F", "-i", "late", more=more)[0]
        self.assertEqual(out, "schedule;do_exit;schedule 1\n")

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
            err = self.tool(dat, "-F", "-w", field, rc=1)[1]
            self.assertIn(f"has no event with a field {field} that is a number", err)
        self.assertEqual(self.folded(dat, "-w", "prev_prio"), {"do_exit;schedule": 120})
        err = self.tool(dat, "-F", "-w", "prev_prio", "-e", "kmalloc,kfree", rc=1)[1]
        self.assertIn("has no event kmalloc,kfree with a field prev_prio that is a number", err)
        text = mkdat.format_text
        self.addCleanup(setattr, mkdat, "format_text", text)
        mkdat.format_text = lambda *args: text(*args).replace("unsigned long bytes",
                                                              "__data_loc char[] bytes")
        self.tool(dat, "-F", "-w", "bytes_alloc", rc=1)

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
        out, err = self.tool(dat, "-F", "--off-cpu")
        self.assertEqual(out, "do_exit 2997\n")
        self.assertIn("1 tasks were away at the end", err)
        self.assertIn("1 switches were preemptions", err)
        self.assertEqual(self.all_forms(dat, "--off-cpu"), 2997)
        self.assertEqual(self.folded(dat, "--off-cpu=preempted"), {"do_exit;weak_one": 510})
        self.assertEqual(self.folded(dat, "--off-cpu", "--pid", "6", rc=1), {})
        # The leave selects, whenever the task comes back.
        args = ["--off-cpu", "--to", "1.0005"]
        self.assertEqual(self.folded(dat, *args), {"do_exit": 1000})
        self.assertEqual(self.folded(dat, *args, "--tracer"), {"do_exit;schedule": 1000})
        self.assertIn(" 1.001001: 1000 sched_switch:", self.tool(dat, "--perf-script", *args)[0])

    def test_off_cpu_of_some_tasks(self):
        """With set_event_pid, other tasks are only seen next to those."""
        dat = self.dat()
        self.switch(dat, 5, 6, stack="AB")
        self.switch(dat, 7, 5, after=100, stack="CB")
        self.switch(dat, 5, 8, after=100, stack="AB")
        self.switch(dat, 8, 5, after=100, stack="CB")
        self.switch(dat, 5, 7, after=100, stack="AB")
        out, err = self.tool(dat, "-F", "--off-cpu")
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
        out, err = self.tool(dat, "-F", "--off-cpu")
        self.assertIn(" 1 tasks left out", err)
        self.assertEqual(out, "do_exit;weak_one 200\ndo_exit 200\n")

    def test_off_cpu_and_gaps(self):
        """A time counts only if no CPU has lost records meanwhile."""
        def result():
            out, err = self.tool(dat, "-F", "--off-cpu")
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
        self.assertIn("the clock counter does not count time", self.tool(dat, "-F", "--off-cpu",
                                                                         rc=1)[1])
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 1})

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
        args = ["--outstanding", "kmalloc:kfree:ptr"]
        out, err = self.tool(dat, "-F", *args)
        self.assertEqual(out, "do_exit;weak_one 3\nschedule 1\n")
        self.assertIn("1 frees of what was not seen", err)
        self.assertIn("1 allocations at addresses in use", err)
        self.assertEqual(self.all_forms(dat, *args), 4)
        self.assertEqual(self.all_forms(dat, *args, "-w", "bytes_alloc"), 62 + 40)
        self.assertEqual(self.folded(dat, "--leaks"), {"do_exit;weak_one": 62, "schedule": 50})

    def test_several_values(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 10, stack="A")
        self.switch(dat, 5, 6, stack="AB")
        self.switch(dat, 6, 5, after=1000, stack="CB")
        pprof = Pprof()
        pprof.dir = self.dir
        types, samples = pprof.values(self.tool, dat, "--off-cpu", "-w", "bytes_alloc")
        # An allocation is no switch, and nobody ends it.
        self.assertEqual(types, [("events", "count"), ("bytes_alloc", "bytes"),
                                 ("delay", "microseconds")])
        self.assertEqual(sorted(samples), [(1, 0, 0), (1, 0, 1000), (1, 10, 0)])
        self.assertIn("two weights", self.tool(dat, "-F", "--off-cpu", "-w", "x", rc=2)[1])
        self.assertIn(" 2 times off the CPU, of which nothing tells", self.tool(
            dat, "--pprof", "-o", "/dev/null", "--off-cpu", "--wakers", "-w", "bytes_alloc")[1])

    def test_selections(self):
        dat = self.dat()
        for pid, stack in [(1, "A"), (2, "AB"), (2, "CB")]:
            self.event(dat, "kmalloc", 1, 8, stack=stack, pid=pid, after=1000000)
        self.assertEqual(self.folded(dat, "--pid", "1"), {"schedule": 1})
        self.assertEqual(self.folded(dat, "--comm", "t*"), {"do_exit;schedule": 1,
                                                            "do_exit;weak_one": 1})
        self.assertEqual(self.folded(dat, "--from", "2.5", "--to", "3.5"), {"do_exit;schedule": 1})
        self.assertEqual(self.folded(dat, "--grep", "weak"), {"do_exit;weak_one": 1})
        out = self.tool(dat, "-q", "--perf-script", "--grep", "weak")[0]
        self.assertEqual(out.count("\n\n"), 1)
        for form in ["-F", "--perf-script"]:
            for events in ["x", "kmalloc,x", "x,kmalloc"]:
                self.assertIn("has no event x\n", self.tool(dat, form, "-e", events, rc=1)[1])
            err = self.tool(dat, form, "-e", "kfree", rc=1)[1]
            self.assertIn("has no stacks of such events", err)
        for option in [["-e", "x"], ["--pid", "1"], ["--from", "1"], ["-w", "x"], ["--off-cpu"],
                       ["--leaks"], ["--outstanding", "a:b:c"], ["--comm", "x"], ["--cpu", "1"]]:
            err = self.run_tool("-F", *option, self.file("map", golden_map("le64")), rc=2)[1]
            self.assertIn("needs a recording", err)
            self.run_tool("-s", *option, self.file("map", golden_map("le64")), rc=2)
        for option in [["--pid", "x"], ["--from", "x"], ["--outstanding", "a:b"],
                       ["--off-cpu=x"], ["--by", "x"], ["--by", ""], ["--by", "cpu"], ["--pid", "1-"], ["--cpu", "1,-"]]:
            self.tool(dat, "-F", *option, rc=2)

    def test_outstanding_needs_its_events(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 0x1000, 8, stack="A")
        self.event(dat, "kfree", 0x1000)
        for what in ["kmalloc:kfre:ptr", "kmaloc:kfree:ptr", "kmalloc:kfree:pt",
                     "kmalloc:sched_switch:ptr", "kmalloc,x:kfree:ptr", "kmalloc:x,kfree:ptr",
                     "kmalloc,kfree:kfree,sched_switch:ptr", "sched_switch:sched_switch:prev_comm"]:
            self.assertIn("has no event", self.tool(dat, "-F", "--outstanding", what, rc=1)[1])
        out, err = self.tool(dat, "report", "--leaks")
        self.assertTrue(out.startswith("# 0 bytes_alloc (bytes)"), out)

    def test_outstanding_and_gaps(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 0x1000, 8, stack="A")
        self.event(dat, "kmalloc", 0x2000, 8, stack="AB")
        self.event(dat, "kfree", 0x2000)
        self.event(dat, "kfree", 0x2000, cpu=1, lost=True)
        self.event(dat, "kmalloc", 0x3000, 8, stack="CB")
        out, err = self.tool(dat, "-F", "--leaks")
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
        self.assertEqual(self.folded(dat, "--leaks", "--pid", "1"), {"schedule": 8})
        self.assertNotIn("not seen allocated", self.tool(dat, "-F", "--leaks", "--pid", "1")[1])

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
                           (["--off-cpu"], ["rm-7: 4", "sh-7: 8"])]:
            out = self.tool(dat, "report", "-q", "--by", "task", *args)[0]
            self.assertEqual(sorted(re.findall(r"\n# (.*) \(", out)), want)
        out = self.tool(dat, "-q", "--perf-script", "--pid", "7")[0]
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

    def test_many_instances(self):
        names = [f"i{n}" for n in range(70)]
        dat = self.dat(instances=names)
        self.event(dat, "kmalloc", 1, 8, stack="A", instance="i3")
        self.assertIn("more than 64 instances", self.tool(dat, "-F", rc=1)[1])
        self.assertEqual(self.folded(dat, "-i", "i3"), {"schedule": 1})
        self.assertIn("2 records", self.run_tool("-i", "i3", os.path.join(self.dir, "dir/trace.dat"))[1])
        self.run_tool("-F", "-i", "i3", self.file("map", golden_map("le64")), rc=2)

    def test_field_before_the_record(self):
        dat = self.dat()
        self.switch(dat, 1, 2, stack="A")
        text = mkdat.format_text
        self.addCleanup(setattr, mkdat, "format_text", text)
        mkdat.format_text = lambda *args: text(*args).replace("prev_comm[16];\toffset:8;",
                                                              "prev_comm[16];\toffset:3000000000;")
        self.assertEqual(self.folded(dat), {"schedule": 1})

    def test_report(self):
        dat = self.dat()
        for pid, stack, n in [(1, "AB", 3), (2, "CB", 2), (2, "AB", 1)]:
            for _ in range(n):
                self.event(dat, "kmalloc", 1, 8, stack=stack, pid=pid)
        path = os.path.join(self.dir, "dir")
        self.folded(dat)
        out = self.run_tool("report", "-q", path)[0]
        rows = [line.split() for line in out.splitlines() if not line.startswith("#")]
        self.assertEqual(rows, [["4", "66.7%", "4", "66.7%", "schedule"],
                                ["2", "33.3%", "2", "33.3%", "weak_one"],
                                ["0", "0.0%", "6", "100.0%", "do_exit"]])
        out = self.run_tool("report", "-q", "--by", "task", "--top", "1", path)[0]
        rows = [line.split() for line in out.splitlines()[2:] if line]
        self.assertEqual(rows, [["#", "one-1:", "3", "(50.0%)"],
                                ["3", "50.0%", "3", "50.0%", "schedule"],
                                ["#", "two-2:", "3", "(50.0%)"],
                                ["2", "33.3%", "2", "33.3%", "weak_one"]])
        # Of a map as well; a function that calls itself counts once.
        out = self.run_tool("report", "-q", "-k", KALLSYMS, "-", stdin=golden_map("le64"))[0]
        self.assertRegex(out, r"\n +12 +0\.0% +12 +0\.0%  schedule\n")

    def test_tracer(self):
        """Its frames are left out."""
        syms = golden_text("kallsyms64") + "ffffffff81000300 t trace_event_raw_event_x\n" \
            "ffffffff81000380 t __traceiter_x\nffffffff81000400 t plain\nffffffff81000480 t end\n"
        dat = self.dat()
        self.FULL = dict(self.FULL, T=[TEXT + 0x310, mkmap.MARKER, TEXT + 0x390, self.A, self.B])
        self.event(dat, "kmalloc", 1, 8, stack="T")
        more = {"kallsyms": syms}
        self.assertEqual(self.folded(dat, more=more), {"do_exit;schedule": 1})
        whole = "do_exit;schedule;__traceiter_x;[FTRACE_TRAMPOLINE];trace_event_raw_event_x"
        self.assertEqual(self.folded(dat, "--tracer", more=more), {whole: 1})
        data = mkmap.make([(1, 1, self.FULL["T"])])
        args = ["-k", self.file("k", syms), "-F"]
        self.assertEqual(self.dump(data, *args), whole + " 1\n")
        self.assertEqual(self.dump(data, "--no-tracer", *args), "do_exit;schedule 1\n")

    def test_perf_script(self):
        dat = self.dat(comms=[(1, "a b;c")])
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.event(dat, "sys_enter_close", 3, stack="A", pid=0, cpu=1)
        out = self.tool(dat, "-q", "--perf-script")[0]
        kernel = " ([kernel.kallsyms])\n"
        self.assertEqual(out, "a_b_c        1 [000]     1.000001: kmalloc: ptr=1 bytes_alloc=8\n"
                         f"\tffffffff81000148 schedule+0x48{kernel}"
                         f"\tffffffff81000030 do_exit+0x10{kernel}\n"
                         "swapper        0 [001]     1.000002: sys_enter_close: fd=3\n"
                         f"\tffffffff81000148 schedule+0x48{kernel}\n")
        # As the regular expressions of the readers have it.
        heads = [s.split("\n")[0] for s in out.split("\n\n")[:-1]]
        got = [re.match(r"(\S.+?)\s+(\d+)(?:/?(\d+))?\s+", h).groups() for h in heads]
        self.assertEqual([(g[0].strip(), g[1]) for g in got], [("a_b_c", "1"), ("swapper", "0")])
        self.assertFalse([h for h in heads if re.search(r"\S+:\s*$", h)])
        self.assertEqual([re.match(r"(.*)\s+([\d.]+):", h)[2] for h in heads],
                         ["1.000001", "1.000002"])
        err = self.run_tool("--perf-script", self.file("map", golden_map("le64")), rc=2)[1]
        self.assertIn("--perf-script: needs a recording", err)

    def test_kinds_without_stacks(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.event(dat, "function", 1, 2)
        self.event(dat, "kmalloc", 1, 8)
        for form in ["-F", "--perf-script"]:
            out, err = self.tool(dat, form)
            self.assertIn("1 events left out, of kinds that have no stacks", err)
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 1, "[no_stack]": 1})

    def test_damage(self):
        """A recording that is cut off or changed: an error, or what is whole; never a crash."""
        dat = self.dat(kallsyms="ffffffff81000000 T _text\n")
        for i in range(300):
            self.event(dat, "kmalloc", i, 8, stack="AB", cpu=i % 2)
        data = dat.bytes()
        for cut in [0, 5, 10, 20, 500, len(data) // 2, len(data) - 4096, len(data) - 1]:
            err = self.tool(data[:cut], "-F", rc=1)[1]
            self.assertRegex(err, "trace.dat")
        self.assertEqual(sum(self.folded(dat).values()), 300)
        for name, whole in [("stack_map_bin", golden_map("le64")),
                            ("kallsyms", golden_text("kallsyms64").encode())]:
            self.assertEqual(sum(self.folded(dat, more={name: whole}).values()), 300)
            err = self.tool(dat, "-F", more={name: whole[:-7]}, rc=int(name != "kallsyms"))[1]
            self.assertRegex(err, f"dir/{name}: .*(truncated|cut off)")
            self.tool(dat, "-F", more={name: whole})

    def test_what_is_no_recording(self):
        """All of the magic counts, and nothing but a file is opened."""
        path = self.file("map", b"\x17 is no trace.dat")
        self.assertIn("bad magic", self.run_tool(path, rc=1)[1])
        self.file("stack_map_bin", golden_map("le64"))
        dat = os.path.join(self.dir, "trace.dat")
        os.mkfifo(dat)
        for options in [["-F"], ["--partial", "-S"]]:
            self.assertIn(dat + ": not a trace.dat", self.run_tool(*options, self.dir, rc=1)[1])
        self.assertTrue(self.run_tool("-MF", self.dir)[0])

    def test_memory_does_not_grow_with_the_events(self):
        if SANITIZED:
            self.skipTest("the sanitizer takes memory of its own")
        # libtracecmd keeps the file mapped.
        sizes = {}
        for n in [2000, 200000]:
            dat = self.dat()
            for i in range(n // 2):
                self.event(dat, "kmalloc", 1 + i, 8, stack="AB")
                self.event(dat, "kfree", 1 + i, stack="CB")
                if i % 10 == 0:
                    self.event(dat, "sched_waking", "x", 1 + i % 20, 120, 0, stack="A")
                    self.switch(dat, 1 + i % 20, 1 + (i + 10) % 20, stack="AB")
            path = self.file("one.dat", dat.bytes())
            for key in [("-F",), ("-F", "--off-cpu"), ("report",), ("report", "--leaks"),
                        ("--latency", "kmalloc:kfree:ptr"), ("--off-cpu", "--wakers")]:
                sizes.setdefault(key, []).append(self.memory(*key, "-q", path) - os.path.getsize(path) // 1024)
        for key, (small, large) in sizes.items():
            self.assertLess(large, small + 3000, (key, sizes))

    @staticmethod
    def memory(*args):
        """The most memory that the tool had at a time, in KB."""
        done = subprocess.run(["/usr/bin/python3", "-c", "import resource, subprocess, sys\n"
                               "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
                               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                               TOOL, *args], capture_output=True, check=True)
        return int(done.stdout)


class Truth(RecordingCase):
    """What is in a profile is true, or it is said that it is not known."""

    def by_task(self, dat, *args, more=None):
        """What each task weighs."""
        out = self.tool(dat, "report", "-q", "--by", "task", *args, more=more)[0]
        return dict((name, int(n)) for name, n in re.findall(r"\n# (.*): (\d+) \(", out))

    def calls(self, dat, names, at=TEXT + 0x100000):
        """An event with a stack of these functions, and their kallsyms. A number has no symbol."""
        syms = {n: at + 0x100 * i for i, n in enumerate(dict.fromkeys(names)) if isinstance(n, str)}
        ips = [syms[n] + 0x10 if n in syms else n for n in names]
        self.event(dat, "kmalloc", 1, 8)
        dat.add(self.now, "kernel_stack", len(ips), ips)
        return "".join(f"{a:x} t {n}\n" for n, a in syms.items())

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
        out, err = self.tool(dat, "-F", "--off-cpu", more=more)
        self.assertEqual(out, "do_exit;weak_one 110\n")
        self.assertIn("5 events left out, of other tasks than the command's", err)
        self.assertNotIn("away at the end", err)
        self.assertEqual(self.all_forms(dat, "--off-cpu"), 110)
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
        out, err = self.tool(dat, "-F", more=every)
        self.assertEqual(sorted(out.splitlines()), ["do_exit;weak_one 1",
                                                    "vm_mmap;perf_event_mmap;kmalloc 1"])
        self.assertIn("4 events left out, which stackmap_dump itself has caused", err)
        more["user_maps"] = "@5 map 1 5000-6000 0 - /x\n"
        out, err = self.tool(dat, "-F", more=more)
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
        out, err = self.tool(dat, "-F", "--off-cpu", more={"own_pids": "9\n10\n"})
        self.assertEqual(out, "do_exit 150\n")
        self.assertNotIn("left out: not all", err)

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

    def test_text_that_changes(self):
        """Modules, BPF programs and trampolines; what two copies of kallsyms tell."""
        ips = [0xFFFFFFFFC0000010 + 0x10000 * i for i in range(9)]
        last = ["stays\t[one]", "after\t[two]", "", "comes\t[four]", "bpf_prog_12ab_b\t[bpf]",
                "bpf_prog_34cd_same\t[bpf]", "bpf_trampoline_789\t[bpf]",
                "ftrace_trampoline\t[__builtin__ftrace]", "was_module\t[bpf]"]
        first = ["stays\t[one]", "before\t[six]", "goes\t[five]", "", "bpf_prog_56ef_a\t[bpf]",
                 "bpf_prog_34cd_same\t[bpf]", "", "kprobe_insn_page\t[__builtin__kprobes]",
                 "module\t[seven]"]
        syms = lambda names: golden_text("kallsyms64").split("ffffffffc")[0] + \
            "".join(f"{a - 16:x} t {n}\n" for a, n in zip(ips, names) if n)
        dat = self.dat()
        for ip in ips:
            self.event(dat, "kmalloc", 1, 8)
            dat.add(self.now, "kernel_stack", 2, [self.A, ip])
        want = ["stays[one]", hex(ips[1]), "goes[five]", "comes[four]", "bpf_prog",
                "bpf_prog_34cd_same", "bpf_trampoline", hex(ips[7]), hex(ips[8])]
        both = {"kallsyms": syms(last), "kallsyms.start": syms(first)}
        out, err = self.tool(dat, "-F", more=both)
        self.assertEqual(sorted(line.split(";")[0] for line in out.splitlines()), sorted(want))
        self.assertIn("3 addresses have no name: their text was replaced meanwhile", err)
        # Their loads and frees explain the difference.
        for name, event in [("five", "free"), ("six", "free"), ("two", "load"), ("four", "load"),
                            ("seven", "free")]:
            self.add(dat, f"module_{event}", *([0] if event == "load" else []), name)
        out = self.tool(dat, "-q", "-F", "-e", "kmalloc", more=both)[0]
        self.assertEqual(sorted(line.split(";")[0] for line in out.splitlines()), sorted(want))
        # But then, something else may have been there.
        self.add(dat, "module_load", 0, "passing")
        self.add(dat, "module_free", "passing")
        for i in [2, 3, 4, 6]:
            want[i] = hex(ips[i])
        out, err = self.tool(dat, "-F", "-e", "kmalloc", more=both)
        self.assertEqual(sorted(line.split(";")[0] for line in out.splitlines()), sorted(want))
        self.assertIn("7 addresses have no name", err)
        # A copy of the end alone, of a module that was loaded, and of one that was always there.
        os.remove(os.path.join(self.dir, "dir/kallsyms.start"))
        out, err = self.tool(dat, "-F", "-e", "kmalloc", more={"kallsyms": syms(last)})
        names = [line.split(";")[0] for line in out.splitlines()]
        self.assertIn("stays[one]", names)
        self.assertNotIn("comes[four]", names)
        self.assertIn("ftrace_trampoline", names)

    def test_names_of_the_map(self):
        """The text of a map has names of both copies, too."""
        ip = 0xFFFFFFFFC0000010
        self.file("stack_map_bin", mkmap.make([(1, 1, [ip, ip + 0x10001])]))
        self.file("kallsyms", golden_text("kallsyms64") + f"{ip:x} t one\t[m]\n")
        self.file("kallsyms.start", golden_text("kallsyms64") +
                  f"{ip:x} t other\t[m]\n{ip + 0x10000:x} t two\t[n]\n")
        out, err = self.run_tool(self.dir)
        self.assertRegex(out, rf"\[0\] {ip:#x}\n  \[1\] two\+0x1/0x\w+ \[n\]\n")
        self.assertIn("1 addresses have no name", err)

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
        self.assertEqual(self.folded(dat, "--off-cpu"), {"do_exit": 1304})
        mkdat.STATES = old
        self.assertEqual(self.folded(dat, "--off-cpu"), {"do_exit": 1000})
        self.assertEqual(self.folded(dat, "--off-cpu=preempted"), {"do_exit": 300})

    def test_stacks_that_end_with_ones(self):
        """As before Linux 5.2, with words of 64 and of 32 bits."""
        for bits in (64, 32):
            ones = (1 << bits) - 1
            dat = self.dat(kallsyms="81000000 t f\n81000100 t g\n81000200 t h\n")
            self.event(dat, "kmalloc", 1, 8)
            dat.add(self.now, "kernel_stack", 3, [0x81000010, 0x81000110, ones])
            dat.add(self.now, "user_stack", 7, [0x5500, 0x5600, ones])
            path = self.file("one.dat", dat.bytes())
            self.assertEqual(self.run_tool("-q", "-F", path)[0],
                             "0x5600[user];0x5500[user];g;f 1\n")
            for table, values in [("SIZES", {"unsigned long": 4, "long": 4}),
                                  ("CODES", {"unsigned long": "I", "long": "i"})]:
                self.addCleanup(setattr, mkdat, table, getattr(mkdat, table))
                setattr(mkdat, table, dict(getattr(mkdat, table), **values))

    def test_clocks_that_differ(self):
        """A task is seen to come to a CPU before it has left another one: it did not sleep."""
        dat = self.dat(clock="[local]")
        self.switch(dat, 0, 7)
        self.switch(dat, 0, 7, after=995, cpu=1)
        self.switch(dat, 7, 0, after=5, stack="AB")
        self.switch(dat, 7, 0, after=1000, cpu=1, stack="CB")
        self.switch(dat, 0, 7, after=300)
        self.event(dat, "kfree", 1, after=60000, pid=9, cpu=1)
        out, err = self.tool(dat, "-F", "--off-cpu")
        self.assertEqual(out, "do_exit;weak_one 300\n")
        self.assertIn("1 times off the CPU count as 0, as the clocks of the CPUs differ", err)
        self.assertNotIn("away at the end", err)
        self.assertEqual(self.all_forms(dat, "--off-cpu"), 300)
        # It is no matter of clocks if that takes longer, as when only some switches are recorded.
        dat = self.dat(clock="[local]")
        self.switch(dat, 0, 7)
        self.switch(dat, 0, 7, after=995, cpu=1)
        self.switch(dat, 7, 0, after=2000, stack="AB")
        self.switch(dat, 0, 7, after=300)
        self.assertEqual(self.folded(dat, "--off-cpu"), {"do_exit": 300})
        # If the leave was lost, it sleeps.
        dat = self.dat(clock="[local]", cpus=3)
        self.switch(dat, 0, 7)
        self.switch(dat, 0, 7, after=995, cpu=1)
        self.switch(dat, 7, 0, after=10, cpu=1, stack="CB")
        self.switch(dat, 0, 7, after=200, cpu=2)
        self.assertEqual(self.folded(dat, "--off-cpu"), {"do_exit;weak_one": 200})

    def test_stacks_without_an_event(self):
        """They are samples, but for the second one of an event, and behind a gap."""
        dat = self.dat()
        for _ in range(3):
            self.stack(dat, "AB")
        self.stack(dat, "CB", pid=2, cpu=1)
        self.add(dat, "stack_def", 5, 1, [self.C])
        self.add(dat, "stack_id", 5, flags=8)
        self.assertEqual(self.folded(dat), {"do_exit;schedule": 3, "do_exit;weak_one": 1,
                                            "weak_one": 1})
        self.assertEqual(self.all_forms(dat, "-e", "stacktrace"), 5)
        self.assertEqual(self.folded(dat, "-e", "stacktrace", "--pid", "2"), {"do_exit;weak_one": 1})
        self.assertRegex(self.tool(dat, "-q", "--perf-script")[0], r": stacktrace: -\n")
        dat = self.dat()
        syms = "ffffffff81000300 t event_triggers_post_call\nffffffff81000380 t end\n"
        self.FULL = dict(self.FULL, T=[TEXT + 0x310, self.A, self.B])
        for _ in range(2):
            self.event(dat, "kmalloc", 1, 8, stack="AB")
            self.event(dat, "kfree", 1, flags=8, stack="CB")
            self.stack(dat, "T")
        self.stack(dat, "T")
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.stack(dat, "CB")
        out, err = self.tool(dat, "-F", more={"kallsyms": golden_text("kallsyms64").replace(
            "ffffffff81000200 T _etext\n", "ffffffff81000200 T trace_event_buffer_commit\n" + syms +
            "ffffffff81000400 T event_triggers_call\n")})
        self.assertEqual(sorted(out.splitlines()), ["do_exit;schedule 4", "do_exit;weak_one 3"])
        self.assertNotIn("no event", err)
        dat.add(self.now + 1, "kernel_stack", 1, [self.A], lost=True)
        self.assertIn("1 stacks have no event, it was lost", self.tool(dat, "-F")[1])

    def test_tracer_of_all_ways(self):
        """From a border of its text to the other is the tracer, and trampolines; not what it calls."""
        borders = ["trace_clock_local", "new_in_2030", "fexit_dispatcher"]
        for ways, leaf in [
                (["new_in_2030", "trace_event_raw_event_x", "vfs_read"], "vfs_read"),
                (["new_in_2030", 0xFFFFFFFFC0200083, "vfs_read", "ksys_read"], "vfs_read"),
                (["new_in_2030", mkmap.MARKER, "vfs_read"], "vfs_read"),
                (["new_in_2030", "return_to_handler", "vfs_read"], "vfs_read"),
                (["new_in_2030", "ftrace_graph_func", 0xFFFFFFFFC0400010, "vfs_read"], "vfs_read"),
                (["new_in_2030", "handler_chain", "uprobe_notify_resume", "resume"], "resume"),
                (["new_in_2030", 0xFFFFFFFFC0200083, 0xFFFFFFFFC0200093, "f"], "0xffffffffc0200093"),
                (["kmalloc", "new_in_2030", "vfs_read"], "kmalloc"),
                (["after", "vfs_read"], "after")]:
            dat = self.dat()
            names = borders + ["after"] + ways
            dat2 = self.dat()
            syms = self.calls(dat2, names)
            table = {line.split()[2]: int(line.split()[0], 16) for line in syms.splitlines()}
            self.event(dat, "kmalloc", 1, 8)
            dat.add(self.now, "kernel_stack", len(ways), [table[n] + 16 if n in table else n
                                                          for n in ways])
            more = {"kallsyms": golden_text("kallsyms64").replace("ffffffff81002000 B _end\n", "") +
                    syms + "ffffffff81200000 B _end\n"}
            out = self.tool(dat, "-q", "-F", more=more)[0]
            self.assertEqual(out.split()[0].split(";")[-1], leaf, ways)

    READERS = [r"^(\S.+?)\s+(\d+)\/*(\d+)*\s+", r"^(\S.+?)\s+(\d+)(?:\/?(\d+))?\s+",
               r"^(.*)\s+(?:(\d+)\/)?(\d+)\b.*\s+[\d.]+:"]
    FRAMES = [r"^\s*(\w+)\s*(.+) \((.*)\)", r"^\s*(\w+)\s*(.+) \((\S*)\)",
              r"^\s*(\w+)\s*(.+) \(([^)]*)\)"]

    def test_names_in_perf_script(self):
        """By the rules of stackcollapse-perf.pl, speedscope and Firefox Profiler."""
        comms = ["[ET_NET 0]", "", "#1 worker", "12 34", "a/b:c [k]", "#", "a"]
        want = ["[ET_NET_0]", ":101", "_1_worker", "12_34", "a/b:c_[k]", "_", "a"]
        paths = ["/x/a b", "/x/cat (deleted)", "/x/(a) #b", "/x/c"]
        objects = UserStacks.objects(*((i + 1, b"", 0, p) for i, p in enumerate(paths)))
        more = {"stack_map_bin": mkmap.make([(i + 1, 1, [UserStacks.word(i + 1, 5)], 3)
                                             for i in range(len(paths))], [objects])}
        for first in range(len(comms)):
            dat = self.dat(comms=[])
            for i in range(len(comms)):
                pid = 100 + (first + i) % len(comms)
                self.add(dat, "sched_switch", "swapper/0", 0, 120, 0, comms[pid - 100], pid, 120,
                         pid=0)
                self.event(dat, "kfree", 1, stack="A", pid=pid)
                dat.add(self.now, "user_stack_id", 1 + i % len(paths), 7, pid=pid)
            out = self.tool(dat, "-q", "--perf-script", "-e", "kfree", more=more)[0]
            samples = [s.split("\n") for s in out.split("\n\n")[:-1]]
            self.assertEqual(len(samples), len(comms))
            for i, lines in enumerate(samples):
                for head in self.READERS:
                    self.assertEqual(re.match(head, lines[0])[1].strip(),
                                     want[(first + i) % len(want)], lines[0])
                self.assertNotEqual(lines[0][0], "#")
                for frame in self.FRAMES:
                    got = re.match(frame, lines[2])
                    self.assertEqual(got[2], "[unknown]", lines[2])
                    self.assertEqual(got[3], re.sub(r"[ ()]", lambda c: {" ": "_", "(": "["}.get(
                        c[0], "]"), paths[i % len(paths)]))

    def test_stackcollapse(self):
        """FlameGraph's own program, if it is here."""
        program = shutil.which("stackcollapse-perf.pl")
        if not program:
            self.skipTest("no stackcollapse-perf.pl")
        dat = self.dat(comms=[(1, "#1 a"), (2, "b c")])
        for pid in (1, 2):
            self.event(dat, "kfree", 1, stack="AB", pid=pid)
        out = self.tool(dat, "-q", "--perf-script")[0]
        done = subprocess.run(["perl", program], input=out.encode(), capture_output=True, check=True)
        self.assertEqual(sorted(done.stdout.decode().splitlines()),
                         ["_1_a;do_exit;schedule 1", "b_c;do_exit;schedule 1"])

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
        # A thread is known by the number of its process in its user stacks, from then on.
        dat = self.dat()
        for _ in range(2):
            self.event(dat, "kmalloc", 1, 8, stack="A", pid=6)
            dat.add(self.now, "user_stack", 5, [0x5500], pid=6)
        self.assertEqual(self.folded(dat, "--pid", "5"), {"0x5500[user];schedule": 1})

    def test_units_of_speedscope(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A")
        self.switch(dat, 5, 0, stack="AB")
        self.switch(dat, 0, 5, after=100, stack="AB")
        for args, unit in [([], "none"), (["-w", "bytes_alloc"], "bytes"),
                           (["--off-cpu"], "microseconds"), (["-w", "prev_prio"], "none")]:
            out = json.loads(self.tool(dat, "-q", "-S", *args)[0])
            self.assertEqual(out["profiles"][0]["unit"], unit)

    def test_nothing_to_show(self):
        """An error, which says what to record."""
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8)
        for form in ["-F", "--perf-script"]:
            self.assertIn("has no stacks\n", self.tool(dat, form, rc=1)[1])
            err = self.tool(dat, form, "--off-cpu", rc=1)[1]
            self.assertIn("has no stacks of such events (record with -e sched_switch)\n", err)
        dat = self.dat()
        self.switch(dat, 5, 6, stack="A")
        for form in ["-F", "--perf-script"]:
            err = self.tool(dat, form, "--leaks", rc=1)[1]
            self.assertIn("has no stacks of such events (record with -e kmem)\n", err)


class Questions(RecordingCase):
    """What one asks a recording."""

    def test_text(self):
        """What a recording is, if nothing else is said."""
        dat = self.dat()
        for size, stack in [(30, "AB"), (5, "CB"), (40, "AB"), (7, "A")]:
            self.event(dat, "kmalloc", 1, size, stack=stack)
        self.assertEqual(self.tool(dat, "-q")[0], "# 4 events\n"
                         "2 (50.0%)\n        schedule\n        do_exit\n\n"
                         "1 (25.0%)\n        weak_one\n        do_exit\n\n"
                         "1 (25.0%)\n        schedule\n\n")
        out = self.tool(dat, "-q", "-w", "bytes_alloc", "--top", "1")[0]
        self.assertEqual(out, "# 82 bytes_alloc (bytes)\n70 (85.4%), 2 events, at most 40\n"
                         "        schedule\n        do_exit\n\n")
        self.assertEqual(json.loads(self.tool(dat, "-q", "-j", "-w", "bytes_alloc")[0])[0],
                         {"weight": 70, "count": 2, "largest": 40, "symbols": ["schedule", "do_exit"]})
        more = {"stack_map_bin": golden_map("le64")}
        self.assertEqual(self.tool(dat, "-q", "-M", more=more)[0], golden_text("text64.txt"))
        self.assertIn("# 4 events", self.tool(dat, "-q", more=more)[0])
        self.assertIn("for maps, not for recordings",
                      self.run_tool("-s", self.file("one.dat", dat.bytes()), rc=2)[1])
        # What only a recording has is of the last one.
        os.rename(os.path.join(self.dir, "dir"), os.path.join(self.dir, "stackmap.data"))
        done = subprocess.run([TOOL, "-q", "-w", "bytes_alloc"], cwd=self.dir, capture_output=True,
                              check=True)
        self.assertIn(b"# 82 bytes_alloc (bytes)", done.stdout)

    def test_diff(self):
        """Of two recordings, whatever their addresses are."""
        dat = self.dat()
        for stack in ["AB", "AB", "CB"]:
            self.event(dat, "kmalloc", 1, 8, stack=stack)
        old = self.dat()
        for name in self.FULL["AB"], self.FULL["A"]:
            self.event(old, "kmalloc", 1, 8)
            old.add(self.now, "kernel_stack", len(name), [ip + 0x10000001 for ip in name])
        path = os.path.join(self.dir, "old")
        os.mkdir(path)
        self.file("old/trace.dat", old.bytes())
        self.file("old/kallsyms", golden_text("kallsyms64").replace("fffffff81", "fffffff91"))
        for args in [[], ["--grep", "schedule|weak"]]:
            out = self.tool(dat, "-q", "--diff", path, *args)[0]
            self.assertEqual(out, "+1 moved 2\n        schedule\n        do_exit\n\n"
                             "+1 new 1\n        weak_one\n        do_exit\n\n"
                             "-1 gone 1\n        schedule\n\n")
        self.assertEqual(self.tool(dat, "-q", "--diff", path, "-g", "weak")[0],
                         "+1 new 1\n        weak_one\n        do_exit\n\n")
        none = self.file("none.dat", self.dat().bytes())
        self.assertEqual(self.run_tool("-q", "--diff", none, self.file("dir.dat", dat.bytes()), rc=1), (
            "", f"stackmap_dump: {none}: has no records\n"))
        # A trace.dat has no names of modules.
        out, err = self.tool(dat, "-q", "--diff", self.file("dir.dat", dat.bytes()), rc=1)
        self.assertEqual(out, "")
        self.assertIn("only one of", err)
        self.assertEqual(self.run_tool("-q", "--diff", os.path.join(self.dir, "dir/trace.dat"),
                                       os.path.join(self.dir, "dir.dat"))[0], "")
        self.assertEqual(self.tool(dat, "-q", "-k", KALLSYMS, "--diff",
                                   os.path.join(self.dir, "dir.dat"))[0], "")
        self.assertIn("two recordings, or two maps (--map-only)",
                      self.tool(dat, "--diff", KALLSYMS, rc=2)[1])
        more = {"stack_map_bin": golden_map("le64")}
        self.assertEqual(self.tool(dat, "-q", "--diff", self.file("map", golden_map("le64")), "-M",
                                   more=more)[0], "")

    def test_callers(self):
        """And callees, of one function."""
        dat = self.dat()
        # do_exit calls schedule, which calls schedule and weak_one; once more without do_exit
        self.FULL = dict(self.FULL, CAAB=[self.C, self.A, self.A, self.B], BA=[self.B, self.A])
        for stack, n in [("CAAB", 3), ("AB", 4), ("CB", 1), ("A", 2), ("BA", 6)]:
            for _ in range(n):
                self.event(dat, "kmalloc", 1, 8, stack=stack)
        self.assertEqual(self.folded(dat, "--callees", "schedule"),
                         {"schedule;schedule;weak_one": 3, "schedule": 6, "schedule;do_exit": 6})
        self.assertEqual(self.folded(dat, "--callers", "schedule"),
                         {"schedule;do_exit": 7, "schedule": 8})
        for option, rows in [("--callers", [["8", "schedule"], ["7", "do_exit"]]),
                             ("--callees", [["6", "schedule"], ["6", "do_exit"]])]:
            out = self.tool(dat, "report", "-q", option, "schedule")[0]
            got = [line.split()[0::4] for line in out.splitlines() if line[0] == " "]
            self.assertEqual(sorted(got), sorted(rows if option == "--callers" else
                                                 [["9", "schedule"], ["6", "do_exit"]]))
            self.assertIn("# 15 events\n", out)
            self.assertEqual(self.all_forms(dat, option, "schedule", perf=False), 15)
        self.assertIn("no stack has a function sched", self.tool(dat, "-F", "--callers", "sched",
                                                                rc=1)[1])
        self.assertIn("--callers goes with", self.tool(dat, "--perf-script", "--callers", "schedule",
                                                      rc=2)[1])
        # Of a map, and with the name of a module.
        data = golden_map("le64")
        out = self.dump(data, "-k", KALLSYMS, "-F", "--callers", "first_of_mod")
        self.assertEqual(out, self.dump(data, "-k", KALLSYMS, "-F", "--callers",
                                        "first_of_mod[golden_mod]"))
        self.assertTrue(out.startswith("first_of_mod[golden_mod]"), out)

    def test_uninterruptible(self):
        """State D, apart from other sleeps."""
        dat = self.dat()
        for state, stack in [(1, "AB"), (2, "CB"), (0, "A"), (2, "AB")]:
            self.switch(dat, 5, 0, state=state, stack=stack)
            self.switch(dat, 0, 5, after=100 + state)
        self.assertEqual(self.folded(dat, "--off-cpu"), {"do_exit": 203, "do_exit;weak_one": 102})
        self.assertEqual(self.folded(dat, "--off-cpu=uninterruptible"),
                         {"do_exit": 102, "do_exit;weak_one": 102})
        self.assertEqual(self.folded(dat, "--off-cpu=preempted"), {"schedule": 100})
        self.assertEqual(self.all_forms(dat, "--off-cpu=uninterruptible"), 204)

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
        args = ["--off-cpu", "--wakers"]
        self.assertEqual(self.folded(dat, *args), {
            "do_exit;[woken_by];[seven];weak_one;do_exit": 1101,
            "do_exit;weak_one;[woken_by];[interrupt_handler];schedule": 31, "do_exit;weak_one": 16})
        self.assertIn("2 times off the CPU, of which nothing tells", self.tool(dat, "-F", *args)[1])
        self.assertEqual(self.all_forms(dat, *args), 1148)
        self.assertEqual(self.folded(dat, *args, "--callees", "[woken by]"), {
            "[woken_by];[seven];weak_one;do_exit": 1101,
            "[woken_by];[interrupt_handler];schedule": 31})
        self.assertEqual(self.folded(dat, "--off-cpu"), {"do_exit": 1101, "do_exit;weak_one": 47})
        self.assertEqual(sum(self.folded(dat, "-e", "sched_waking").values()), 5)
        for bad in [["--wakers"], ["--off-cpu=preempted", "--wakers"]]:
            self.assertIn("--off-cpu --wakers", self.tool(dat, "-F", *bad, rc=2)[1])
        del mkdat.EVENTS["sched"]["sched_waking"]
        self.addCleanup(mkdat.EVENTS["sched"].update, sched_waking=[
            ("char", "comm[16]"), ("int", "pid"), ("int", "prio"), ("int", "target_cpu")])
        dat = self.dat()
        self.switch(dat, 5, 0, stack="AB")
        self.assertIn("(record with -e sched_switch,sched_waking)",
                      self.tool(dat, "-F", *args, rc=1)[1])

    def test_wakers_that_are_not(self):
        """A task that ran was woken before it slept; a name is that of the time."""
        args = ["--off-cpu", "--wakers"]
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
                      self.tool(dat, "-F", *args, "--callers", "weak_one", rc=1)[1])
        self.assertEqual(list(self.folded(dat, *args, "--callers", "[woken by]")), ["[woken_by];do_exit"])

    def test_interrupt_that_wakes(self):
        """Has its own part of a stack only. A task may be named interrupt."""
        dat = self.dat(comms=[(7, "interrupt")])
        for ident, stack in [(1, [self.C, self.A]), (2, [self.A, self.B])]:
            dat.add(self.now, "stack_def", ident, len(stack), stack)
        for flags in [8, 0x10, 0]:
            self.switch(dat, 5, 0, stack="AB")
            self.waking(dat, 5, pid=7, flags=flags, cpu=1)
            dat.add(self.now, "stack_split", 1, self.B, 2, [], pid=7, flags=flags, cpu=1)
            self.switch(dat, 0, 5, after=99)
        args = ["--off-cpu", "--wakers"]
        self.assertEqual(self.folded(dat, *args), {
            "do_exit;[woken_by];[interrupt_handler];weak_one;schedule": 200,
            "do_exit;[woken_by];[interrupt];weak_one;schedule;do_exit;schedule;do_exit": 100})

    def test_no_event(self):
        """A stack without an event is of no use to what needs numbers."""
        dat = self.dat()
        self.event(dat, "kfree", 1, stack="AB")
        for option in "--outstanding", "--latency":
            self.assertIn("has no event stacktrace", self.tool(
                dat, "-F", option, "stacktrace:kfree:common_pid", rc=1)[1])

    def test_latency_of_idle_tasks(self):
        """Each CPU has its own, with one number."""
        dat = self.dat()
        for name, cpu, after in [("kmalloc", 0, 1), ("kmalloc", 1, 100), ("kfree", 0, 10), ("kfree", 1, 500)]:
            self.event(dat, name, 1, *[8] * (name == "kmalloc"), pid=0, cpu=cpu, after=after,
                       stack="AB" if name == "kmalloc" and not cpu else "CB")
        self.assertEqual(sorted(self.folded(dat, "--latency", "kmalloc:kfree:common_pid")),
                         ["do_exit;schedule", "do_exit;weak_one"])

    def test_output_stays(self):
        """A file is not touched before there is what goes into it."""
        out = self.file("out", b"mine")
        self.run_tool("-F", "-o", out, self.file("cut.dat", self.dat().bytes()[:200]), rc=1)
        with open(out, "rb") as file:
            self.assertEqual(file.read(), b"mine")

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
            (line, us), = self.folded(dat, "--off-cpu", "--wakers").items()
            self.assertRegex(line, r"^0x5500\[user\];do_exit;\[woken_by\];\[seven\];weak_one;do_exit;"
                             r"0x5000\[user\];0x6000\[user\]$")
            self.assertGreater(us, 100)

    def test_latency(self):
        """From one event to another, by the stack of the first."""
        dat = self.dat()
        for dev, sector, stack in [(1, 0, "AB"), (2, 0, "CB"), (1, 8, "AB"), (1, 16, "A")]:
            self.event(dat, "block_rq_issue", dev, sector, stack=stack)
        self.event(dat, "block_rq_complete", 1, 0, after=100, pid=0, cpu=1)     # 104
        self.event(dat, "block_rq_complete", 1, 8, after=10, pid=0, cpu=1)      # 112
        self.event(dat, "block_rq_complete", 2, 0, after=10, pid=0, cpu=1)      # 123
        self.event(dat, "block_rq_complete", 2, 8, after=10, pid=0, cpu=1)
        args = ["--latency", "block_rq_issue:block_rq_complete:dev,sector"]
        out, err = self.tool(dat, *args)
        self.assertEqual(self.folded(dat, *args), {"do_exit;schedule": 103 + 111, "do_exit;weak_one": 122})
        self.assertIn("214 (63.7%), 2 events, at most 111\n        schedule\n        do_exit\n\n", out)
        self.assertIn(": 1 times left out: they had not ended", err)
        self.assertIn(": 1 ends of what was not seen to begin", err)
        self.assertEqual(self.all_forms(dat, *args), 336)
        self.assertIn(" 1.000104: 103 block_rq_issue:", self.tool(dat, "--perf-script", *args)[0])
        # The CPU of a group is that of the end, it is selected by the begin.
        self.assertEqual(self.groups(dat, "cpu", *args), {"CPU 1": 336})
        self.assertEqual(sum(self.folded(dat, *args, "--cpu", "0").values()), 336)
        self.tool(dat, "-F", *args, "--cpu", "1", rc=1)
        # By the sector alone, a request to another disk is the same.
        err = self.tool(dat, "-F", "--latency", "block_rq_issue:block_rq_complete:sector")[1]
        self.assertIn(": 1 times left out: the same has begun again", err)
        for bad in ["block_rq_issue:block_rq_complete", "::x", "a:b:c:d"]:
            self.assertIn("--latency is BEGIN:END:FIELDS", self.tool(dat, "--latency", bad, rc=2)[1])
        for bad in ["block_rq_issue:block_rq_complete:dev,x", "block_rq_issue:nothing:dev",
                    "block_rq_issue:kfree:dev", "block_rq_issue:block_rq_complete:dev,",
                    "block_rq_issue:block_rq_complete:" + ",".join(["dev"] * 5)]:
            self.assertIn("has no event", self.tool(dat, "--latency", bad, rc=1)[1])
        self.assertIn("once", self.tool(dat, *args, "--leaks", rc=2)[1])
        dat.clock = "[counter]"
        self.assertIn("needed by --latency", self.tool(dat, *args, rc=1)[1])

    def test_latency_of_a_task(self):
        """By the number of the task; from one event to the next of its kind; and in gaps."""
        dat = self.dat()
        for pid in [1, 2, 0]:
            self.event(dat, "kmalloc", 1, 8, stack="AB", pid=pid, cpu=pid & 1, after=10)
        for pid in [1, 2, 0]:
            self.event(dat, "kfree", 1, pid=pid, cpu=pid & 1, after=5)
        self.assertEqual(self.folded(dat, "--latency", "kmalloc:kfree:common_pid"),
                         {"do_exit;schedule": 25 + 20 + 15})
        self.assertEqual(self.folded(dat, "--latency", "kmalloc:kfree:common_pid", "--pid", "2"),
                         {"do_exit;schedule": 20})
        self.assertEqual(self.folded(dat, "--latency", "kmalloc:kmalloc:ptr"),
                         {"do_exit;schedule": 20})
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        self.event(dat, "kmalloc", 2, 8, stack="CB", cpu=1)
        self.event(dat, "kfree", 1, lost=True)
        self.event(dat, "kmalloc", 3, 8, stack="A", after=10)
        self.event(dat, "kfree", 2, cpu=1)
        self.event(dat, "kfree", 3)
        out, err = self.tool(dat, "-F", "--latency", "kmalloc:kfree:ptr")
        self.assertEqual(out, "schedule 2\n")
        self.assertIn(": 2 times left out: records were lost meanwhile", err)

    def test_short_times(self):
        """Their sum is right in each form, as long as it is."""
        dat = self.dat()
        records = dat.cpus[""][0]
        for i in range(1000):
            self.event(dat, "kmalloc", 1, 8, stack="AB" if i % 2 else "CB")
            self.event(dat, "kfree", 1)
            time, data, lost = records[-1]
            records[-1] = (time - 600, data, lost)
        args = ["--latency", "kmalloc:kfree:ptr"]
        self.assertEqual(self.all_forms(dat, *args), 400)
        self.assertEqual(self.folded(dat, *args), {"do_exit;schedule": 200, "do_exit;weak_one": 200})

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
        self.assertEqual(self.tool(dat, "-q", *args, "--diff", os.path.join(self.dir, "old"))[0],
                         "+8 new 8, 3 events, at most 8\n        schedule\n        do_exit\n\n"
                         "-5 gone 5, 1 events, at most 5\n        weak_one\n        do_exit\n\n")

    def groups(self, dat, by, *args):
        """What each weighs, in the report, which the other forms must say, too."""
        out = self.tool(dat, "report", "-q", "--by", by, *args)[0]
        groups = {name: int(n) for name, n in re.findall(r"\n# (.*): (\d+) \(", out)}
        stacks = json.loads(self.tool(dat, "-q", "-j", "--by", by, *args)[0])
        text = re.findall(r"^(\d+) \(.*, (.*)$", self.tool(dat, "-q", "--by", by, *args)[0], re.M)
        for name, n in groups.items():
            self.assertEqual(sum(s["weight"] for s in stacks if s["by"] == name), n)
            self.assertEqual(sum(int(w) for w, g in text if g == name), n)
        self.assertEqual(sum(groups.values()), sum(int(w) for w, _ in text))
        return groups

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
        self.assertEqual(self.groups(dat, "event", "--off-cpu"), {"sched:sched_switch": 110})
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


class UserStacks(RecordingCase):
    """Stacks of user space in recordings."""

    USER = [0x5500, 0x5600]

    def test_at_once(self):
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(self.now, "user_stack", 7, self.USER)
        self.add(dat, "user_stack_def", 9, 2, self.USER)
        self.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(self.now, "user_stack_id", 9, 7)
        want = {"0x5600[user];0x5500[user];schedule": 2}
        self.assertEqual(self.folded(dat), want)
        maps = {"user_maps": "map 7 5000-6000 1000 - /nonexistent/cat\n"}
        self.assertEqual(self.folded(dat, more=maps), {"[cat];[cat];schedule": 2})
        err = self.tool(dat, "-F", more=maps)[1]
        self.assertIn("not here", err)
        if "elfutils" not in err:
            self.assertIn("/nonexistent/cat: not here", err)

    def test_maps_change(self):
        """dlopen, dlclose, dlopen at one address; exec; a process id that is used again; fork."""
        dat = self.dat()
        for at in (100, 200, 300, 400):
            self.event(dat, "kmalloc", 1, 8, stack="A", after=1000)
            dat.add(self.now, "user_stack", 7, [0x5500])
        self.event(dat, "kmalloc", 1, 8, stack="A", after=1000)
        dat.add(self.now, "user_stack", 8, [0x5500])
        time = lambda ms: 1000000000 + ms * 1000000 - 500000
        maps = f"""\
@{time(1)} map 7 5000-6000 0 - /x/one
@{time(2)} map 7 5000-6000 0 - /x/two
@{time(3)} exec 7
map 8 5000-6000 0 - /x/eight
@{time(4)} fork 7 8
@{time(5)} map 7 5000-6000 0 - /x/late
"""
        # A line without a time is as late as the one before it.
        out = self.folded(dat, more={"user_maps": maps})
        self.assertEqual(out, {"[one];schedule": 1, "[two];schedule": 1,
                               "0x5500[user];schedule": 1, "[eight];schedule": 2})
        dat.clock = "[local]"
        out = self.folded(dat, more={"user_maps": maps})
        self.assertEqual(sum(out.values()), 5)

    def test_cookies(self):
        """Events get the stack that comes later; what does not come is lost."""
        dat = self.dat()
        self.add(dat, "user_stack_def", 9, 2, self.USER)
        for _ in range(3):
            self.event(dat, "kmalloc", 1, 8, stack="A")
            dat.add(self.now, "user_unwind_cookie", 100)
        self.event(dat, "kmalloc", 1, 8, stack="A", pid=2)
        dat.add(self.now, "user_unwind_cookie", 200, pid=2)
        self.add(dat, "user_unwind_stack_id", 9, 7, 100, cpu=1)
        self.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(self.now, "user_unwind_cookie", 100)
        self.event(dat, "kmalloc", 1, 8, stack="CB", pid=2)
        dat.add(self.now, "user_unwind_cookie", 201, pid=2)
        self.add(dat, "user_unwind_stack", 201, 7, 1, [0x77], pid=2)
        want = {"0x5600[user];0x5500[user];schedule": 4, "schedule": 1,
                "0x77[user];do_exit;weak_one": 1}
        self.assertEqual(self.folded(dat), want)
        self.assertIn("1 user stacks were lost", self.tool(dat, "-F")[1])
        out = self.tool(dat, "-q", "--perf-script")[0]
        self.assertEqual(out.count("0x5600 ([unknown])"), 4)
        self.assertEqual(self.all_forms(dat), 6)

    @staticmethod
    def word(number, offset):
        """A frame in a file."""
        return 1 << 63 | number << 44 | offset

    @staticmethod
    def objects(*objects):
        """A section of type 5."""
        out = b""
        for number, build_id, bias, path in objects:
            path = path.encode()
            out += struct.pack("<IIQII", number, len(build_id), bias, len(path), 0)
            out += build_id.ljust(-(-len(build_id) // 8) * 8, b"\0")
            out += path.ljust(-(-len(path) // 8) * 8, b"\0")
        return (5, out)

    def test_by_file(self):
        words = [self.word(2, 0x123), self.word(1, 0x3A3B1), self.word(3, 5), 0x77,
                 0xFFFFFFFFFF600000]
        section = self.objects((2, b"\xab" * 20, 0, "/x/cat"), (1, b"", 0, "/lib/libc\\012.so"))
        data = mkmap.make([(5, 3, words, 3)], [section])
        lines = ["/x/cat+0x123", "/lib/libc?.so+0x3a3b1", "0x8000000000000005", "0x77",
                 "0xffffffffff600000"]
        want = "user_stack_id 5 [ref 3, depth 5]\n" + \
            "".join(f"  [{i}] {line}\n" for i, line in enumerate(lines)) + "\n"
        self.assertEqual(self.dump(data), want)
        out = "0xffffffffff600000[user];0x77[user];0x8000000000000005[user];[libc?.so];[cat] 3\n"
        self.assertEqual(self.dump(data, "-F"), out)
        # At once, a word is an address, whatever the program has put there.
        data = mkmap.make([(5, 3, words, 1)], [section])
        out_at_once = self.dump(data)
        self.assertIn("  [0] 0xfffff00000000123\n", out_at_once)
        self.assertIn("  [3] 0x77\n  [4] 0xffffffffff600000\n", out_at_once)
        # In a recording: by the map, and with the instruction that was hit.
        dat = self.dat()
        self.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(self.now, "user_unwind_cookie", 100)
        self.add(dat, "user_unwind_stack_split", 5, 7, 100, self.word(1, 0x10))
        got = self.folded(dat, more={"stack_map_bin": mkmap.make([(5, 3, words, 3)], [section])})
        self.assertEqual(got, {out[:-3] + ";[libc?.so];schedule": 1})

    def test_top_without_symbols(self):
        path = self.program("top", '#include "top.c"\nint main(int n, char **args)\n{ struct map m '
                            "= {}; load_map(&m, args[1]); print_use(&m, m.stacks, 1000, 0); }\n")
        words = [self.word(1, 5), self.word(2, 5), 0x77]
        section = self.objects((1, b"", 0, "/x/cat"), (2, b"", 0, ""))
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

    def test_objects_that_are_damaged(self):
        good = self.objects((1, b"\xab" * 20, 0, "/x/cat"))[1]
        for bad, what in [(good[:-1], "has"), (good[:8], "truncated|have"),
                          (struct.pack("<IIQII", 0, 0, 0, 0, 0), "object 0"),
                          (struct.pack("<IIQII", 0x7FFFF, 0, 0, 0, 0), "object 524287"),
                          (struct.pack("<IIQII", 1, 65, 0, 0, 0), "build id of 65"),
                          (struct.pack("<IIQII", 1, 0, 0, 1 << 20, 0), "path of")]:
            out, err = self.run_tool("-", stdin=mkmap.make([(1, 1, [5], 3)], [(5, bad)]), rc=1)
            self.assertEqual(out, "")
            self.assertIn("stdin: byte", err)


SEGMENTS = """\
asm(".section .last, \\"ax\\"\\n.globl no_size\\nno_size: .skip 100, 0x90\\n.text");

__attribute__((section(".far"), noinline)) int far_function(int n)
{
	asm volatile("");
	return n + 1;
}

int main(void)
{
	return far_function(1);
}
"""


class UserSymbols(Case):
    """The functions of programs: user_maps, objects, and ELF files."""

    def setUp(self):
        super().setUp()
        err = self.run_tool("-v", "/nonexistent", "-", stdin=mkmap.make([]), rc=1)[1]
        if WITHOUT in err:
            self.skipTest(WITHOUT)
        self.prog = self.build("-pie", "-fPIE")

    def build(self, *flags, name="prog", source=None, compiler="cc"):
        """Compiles the program, and finds its symbols and segments."""
        path = os.path.join(self.dir, name)
        subprocess.run([compiler, "-g", "-O1", "-fno-omit-frame-pointer", *flags,
                        "-Wl,--build-id=0x" + "ab" * 20, "-o", path,
                        self.file("prog.c" if compiler == "cc" else "prog.cc",
                                  source or PROGRAM)], check=True)
        out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        self.addr = {f[-1]: int(f[0], 16) for f in map(str.split, out.splitlines())
                     if len(f) == 3}
        out = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True,
                             check=True).stdout
        load = [line.split() for line in out.splitlines() if line.startswith("  LOAD")]
        self.load = [(int(f[1], 16), int(f[2], 16), int(f[5], 16)) for f in load if "E" in f[6:8]
                     or "E" in "".join(f[6:-1])][0]
        return path

    def offset(self, name, more=0):
        """Of a function in the file."""
        off, addr, _ = self.load
        return self.addr[name] + more - addr + off

    def frames(self, offsets, path=None, build_id="ab" * 20, bias=None, args=(), rc=0):
        """The frames of one stack by file: the functions."""
        bias = self.load[1] - self.load[0] if bias is None else bias
        words = [UserStacks.word(1, o) for o in offsets]
        section = UserStacks.objects((1, bytes.fromhex(build_id), bias, path or self.prog))
        out, self.err = self.run_tool(*args, "-", stdin=mkmap.make([(5, 1, words, 3)], [section]),
                                      rc=rc)
        return [re.sub(r"^\S+ \((.*)\)$", r"\1", line.split("] ", 1)[1])
                for line in out.splitlines()[1:-1]]

    def test_static_and_pie(self):
        for flags in [("-pie", "-fPIE"), ("-static", "-no-pie")]:
            path = self.build(*flags)
            offsets = [self.offset("inner_static"), self.offset("outer_global", 9),
                       self.offset("main", 5)]
            self.assertEqual(self.frames(offsets), ["inner_static+0x0", "outer_global+0x9",
                                                    "main+0x5"])
            # A return address at the start of the next function.
            name = min((a, n) for n, a in self.addr.items() if a > self.addr["inner_static"])[1]
            got = self.frames([self.offset(name)] * 2)[1]
            self.assertIn(got.split("+")[0], ("inner_static", "mark_inner"))
            subprocess.run(["strip", path], check=True)
            self.assertEqual(self.frames([self.offset("main")]),
                             [f"{path}+{self.offset('main'):#x}"])

    def test_dynamic_symbols(self):
        path = self.build("-pie", "-fPIE", "-rdynamic")
        subprocess.run(["strip", path], check=True)
        self.assertEqual(self.frames([self.offset("outer_global", 1)]), ["outer_global+0x1"])

    def test_names_of_c_plus_plus(self):
        if not shutil.which("c++"):
            self.skipTest("no compiler for C++")
        self.build("-pie", "-fPIE", source="namespace ns { struct s { void f(int); };\n"
                   "__attribute__((noinline)) void s::f(int) { asm volatile(\"\"); } }\n"
                   "int main() { ns::s s; s.f(1); }\n", compiler="c++")
        self.assertEqual(self.frames([self.offset("_ZN2ns1s1fEi")]), ["ns::s::f(int)+0x0"])

    def test_debug_file_and_symfs(self):
        root = os.path.join(self.dir, "root")
        debug = os.path.join(root, "usr/lib/debug/.build-id/ab", "ab" * 19 + ".debug")
        os.makedirs(os.path.dirname(debug))
        os.makedirs(os.path.join(root, "usr/bin"))
        subprocess.run(["objcopy", "--only-keep-debug", self.prog, debug], check=True)
        subprocess.run(["strip", "-o", os.path.join(root, "usr/bin/prog"), self.prog], check=True)
        offsets, args = [self.offset("inner_static", 1)], ["--symfs", root]
        self.assertEqual(self.frames(offsets, "/usr/bin/prog", args=args), ["inner_static+0x1"])
        # The debug file alone has lost where the text is in the program.
        self.assertEqual(self.frames(offsets, "/usr/bin/gone", args=args),
                         [f"/usr/bin/gone+{offsets[0]:#x}"])
        self.assertIn("/usr/bin/gone: only its debug file is here, without offsets; the file is needed",
                      self.err)
        os.remove(debug)
        self.assertEqual(self.frames(offsets, "/usr/bin/prog", args=args),
                         [f"/usr/bin/prog+{offsets[0]:#x}"])
        self.assertNotIn("not here", self.err)
        self.frames(offsets, "/usr/bin/gone", args=args)
        self.assertIn("/usr/bin/gone: not here, so without names of functions (--symfs DIR)\n",
                      self.err)

    def test_build_id(self):
        offsets = [self.offset("main")]
        self.assertEqual(self.frames(offsets, build_id="cd" * 20), [f"{self.prog}+{offsets[0]:#x}"])
        self.assertIn(f"{self.prog}: not used, as it is another file than the one", self.err)

    def test_files_without_a_build_id(self):
        """Reported as not checked. If the mapped file had a build id, it is another file."""
        path = os.path.join(self.dir, "none")
        subprocess.run(["objcopy", "-R", ".note.gnu.build-id", self.prog, path], check=True)
        off, addr, size = self.load
        line = f"map 7 {0x5500000000 + addr & ~0xFFF:x}-{0x5500000000 + addr + size + 4096:x} " \
            f"{off & ~0xFFF:x} %s {path}\n"
        recording = RecordingCase()
        recording.dir = self.dir
        recording.setUp = None
        dat = recording.dat()
        recording.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(recording.now, "user_stack", 7, [0x5500000000 + self.addr["main"]])
        for ident, name, why in [("-", "main[none]", "nothing tells"),
                                 ("ab" * 20, "[none]", "another file")]:
            out, err = recording.tool(dat, "-F", more={"user_maps": line % ident})
            self.assertEqual(out, f"{name};schedule 1\n")
            self.assertIn(why, err)
            self.assertIn(path, err)

    def test_control_characters(self):
        """Names of files and functions do nothing to a terminal, and the file is found."""
        with open(self.prog, "rb") as f:
            data = f.read()
        path = self.file("prog\x1b[2Jé", data.replace(b"inner_static\0", b"inner\x1bstatic\0"))
        got = self.frames([self.offset("outer_global")], path)
        self.assertEqual(got, ["outer_global+0x0"])
        got = self.frames([self.offset("inner_static")], path)
        self.assertNotIn("\x1b", "".join(got) + self.err)

    def test_damage(self):
        not_elf = self.file("text", "no elf")
        self.assertEqual(self.frames([5], not_elf), [f"{not_elf}+0x5"])
        with open(self.prog, "rb") as f:
            data = f.read()
        for cut in [0, 1, 16, 63, 64, 100, 1000, 5000]:
            self.frames([self.offset("main")], self.file("cut", data[:cut]))
        rnd = random.Random(4)
        for _ in range(20):
            bad = bytearray(data)
            for _ in range(20):
                bad[rnd.randrange(2000)] = rnd.randrange(256)
            self.frames([self.offset("main")], self.file("bad", bytes(bad)))

    def place(self, path, name, more=0):
        """The offset of a function in a file with several executable segments."""
        out = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True,
                             check=True).stdout
        for line in out.splitlines():
            f = line.split()
            if f[:1] == ["LOAD"] and "E" in "".join(f[6:-1]):
                off, addr, size = int(f[1], 16), int(f[2], 16), int(f[4], 16)
                if addr <= self.addr[name] < addr + size:
                    return self.addr[name] + more - addr + off
        raise ValueError(name)

    def test_two_segments(self):
        """Each has its own difference of address and offset, whatever the kernel says."""
        path = self.build("-no-pie", "-Wl,--section-start=.far=0x900000", source=SEGMENTS)
        for bias in [0, 0x1234000]:
            for name in ["main", "far_function"]:
                self.assertEqual(self.frames([self.place(path, name, 1)], bias=bias),
                                 [f"{name}+0x1"])

    def test_symbol_without_a_size(self):
        """It ends with its section."""
        path = self.build("-no-pie", "-Wl,--section-start=.far=0x900000",
                          "-Wl,--section-start=.last=0xa00000", source=SEGMENTS)
        self.assertEqual(self.frames([self.place(path, "no_size", 99)]), ["no_size+0x63"])
        place = self.place(path, "no_size", 100)
        self.assertEqual(self.frames([place]), [f"{path}+{place:#x}"])

    def test_debug_file_with_offsets(self):
        """eu-strip leaves the program headers as they are in the program."""
        root = os.path.join(self.dir, "root")
        debug = os.path.join(root, "usr/lib/debug/.build-id/ab", "ab" * 19 + ".debug")
        os.makedirs(os.path.dirname(debug))
        shutil.copy(self.prog, debug)
        self.assertEqual(self.frames([self.offset("main", 1)], "/usr/bin/gone",
                                     args=["--symfs", root]), ["main+0x1"])

    def test_deleted(self):
        """The kernel puts that behind the path. A file may have such a name."""
        deleted = self.prog + " (deleted)"
        offsets = [self.offset("main")]
        self.assertIn("(main+0x0", self.frames(offsets, deleted)[0])
        os.rename(self.prog, deleted)
        self.assertIn("(main+0x0", self.frames(offsets, deleted)[0])
        self.assertEqual(self.frames(offsets, deleted, build_id="cd" * 20),
                         [f"{deleted}+{offsets[0]:#x}"])

    def read_id(self, path):
        """The length of the build id, why there is none, and if it is behind the first page."""
        if not hasattr(self, "reader"):
            self.reader = self.program("id", "int main(int n, char **args)\n{ struct build_id id = {};"
                                       "\nread_file_id(args[1], &id);\n"
                                       "printf(\"%d %d %d\", (int)id.len, id.lack, id.is_deep); }\n")
        out = subprocess.run([self.reader, path], capture_output=True, check=True).stdout
        return tuple(int(n) for n in out.split())

    def test_why_there_is_no_build_id(self):
        """Another program is not the one that was mapped, as far as this can be told."""
        deep = self.build("-no-pie", "-Wl,--section-start=.note.gnu.build-id=0x900000", name="deep")
        self.assertEqual(self.read_id(deep), (20, 1, 1))
        prog = self.build("-no-pie")
        self.assertEqual(self.read_id(prog), (20, 1, 0))
        plain = os.path.join(self.dir, "plain")
        subprocess.run(["objcopy", "-R", ".note.gnu.build-id", prog, plain], check=True)
        self.assertEqual(self.read_id(plain), (0, 1, 0))
        self.assertEqual(self.read_id(os.path.join(self.dir, "missing")), (0, 2, 0))
        recording = RecordingCase()
        recording.dir = self.dir
        dat = recording.dat()
        recording.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(recording.now, "user_stack", 7, [0x5510])
        for lack, path, why in [("-", prog, "another file"), ("none", prog, "another file"),
                                ("?", prog, "could not be read"), ("-", deep, "nothing tells"),
                                ("none", deep, "another file"), ("?", plain, "nothing tells"),
                                ("none", plain, "nothing tells"), ("-", plain, "nothing tells")]:
            maps = f"map 7 5500-5600 1000 {lack} {path}\n"
            err = recording.tool(dat, "-F", more={"user_maps": maps})[1]
            self.assertRegex(err, rf"{path}: .*{why}", (lack, path))

    def test_vdso(self):
        """Saved beside the recording, or that of this kernel."""
        image = vdso_image()
        if not image:
            self.skipTest("no vdso")
        path = self.file("image", image)
        out = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True,
                             check=True).stdout
        ident = re.search(r"Build ID: (\w+)", out)[1]
        out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True,
                             check=True).stdout
        addr, _, name = next(line.split() for line in out.splitlines() if " T " in line)
        word = UserStacks.word(1, int(addr, 16) + 1)
        name = name.split("@")[0]
        data = lambda i: mkmap.make([(5, 1, [word], 3)],
                                    [UserStacks.objects((1, bytes.fromhex(i), 0, "[vdso]"))])
        self.assertRegex(self.run_tool("-", stdin=data(ident))[0], r"\[vdso\]\+\w+ \(\w+\+0x1\)")
        other = "12" * 20
        err = self.run_tool("-", stdin=data(other))[1]
        self.assertIn("[vdso]: not used, as it is another file", err)
        self.file("stack_map_bin", data(other))
        self.file("vdso", image.replace(bytes.fromhex(ident), bytes.fromhex(other)))
        self.assertRegex(self.run_tool(self.dir)[0], r"\[vdso\]\+\w+ \(\w+\+0x1\)")
        # By address, nothing tells which one it was: programs of 32 bits have another.
        recording = RecordingCase()
        recording.dir = self.dir
        dat = recording.dat()
        recording.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(recording.now, "user_stack", 7, [0x5510])
        err = recording.tool(dat, "-F", more={"user_maps": "map 7 5500-5600 0 - [vdso]\n",
                                              "vdso": image})[1]
        self.assertIn("[vdso]: not here, so without names", err)


class UserMaps(Case):
    """Lines of user_maps."""

    def test_damage(self):
        good = "map 123 5500-6600 0 abab /x/y\n@7 fork 7 5\nexec 7\n"
        self.file("stack_map_bin", golden_map("le64"))
        for cut in range(1, len(good)):
            self.file("user_maps", good[:cut])
            self.run_tool(self.dir, rc=int(good[cut - 1] != "\n"))
        for bad in ["map 1 2-3 4\n", "map x 2-3 4 -\n", "map 1 2 3 4 -\n", "map 1 2-3 4 abc\n",
                    "map 1 2-3 4 " + "ab" * 65 + " x\n", "fork 1\n", "fork 1 x\n", "exec x\n",
                    "map 1 -1-3 4 -\n", "maps\n", "fork 1 2\0\n",
                    "@x map 1 2-3 4 -\n", "map 1 2-3 4 =1 x\n"]:
            self.file("user_maps", good + bad)
            err = self.run_tool(self.dir, rc=1)[1]
            self.assertIn(f"user_maps: byte {len(good)}: not a line of user_maps", err)


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
                     ["-o", "../.."], ["-o", "/"], ["-d", ""], ["-d", "1s"]]:
            self.record(*args, "true", rc=2)
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


FAKE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char *redirect(const char *path)
{
	static char buf[4096];
	const char *tracefs = "/sys/kernel/tracing/";

	if (strncmp(path, tracefs, strlen(tracefs)))
		return path;
	snprintf(buf, sizeof(buf), "%s/%s", getenv("TRACEFS"), path + strlen(tracefs));
	return buf;
}

static ssize_t stale_read(void *cookie, char *buf, size_t size)
{
	if (!ftell(cookie))
		return fread(buf, 1, 20, cookie);
	errno = ESTALE;
	return -1;
}

FILE *fopen(const char *path, const char *mode)
{
	static int nr;
	FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
	FILE *f = next(redirect(path), mode);

	if (!f || *mode != 'r' || !strstr(path, "stack_map_bin") || nr >= atoi(getenv("STALE")))
		return f;
	nr++;
	return fopencookie(f, mode, (cookie_io_functions_t) { .read = stale_read });
}

FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));

int access(const char *path, int mode)
{
	int (*next)(const char *, int) = dlsym(RTLD_NEXT, "access");

	return next(redirect(path), mode);
}

int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");

	return next(redirect(path), flags);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int statfs64(const char *path, struct statfs64 *fs)
{
	int (*next)(const char *, struct statfs64 *) = dlsym(RTLD_NEXT, "statfs64");
	const char *real = redirect(path);
	int ret = next(real, fs);

	if (real != path)
		fs->f_type = 0x74726163;
	return ret;
}

FILE *setmntent(const char *path, const char *mode)
{
	return NULL;
}
"""


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


class Tracefs(Case):
    """The scratch directory is in place of tracefs."""

    def setUp(self):
        super().setUp()
        if SANITIZED:
            self.skipTest("the sanitizer does not go with LD_PRELOAD")
        self.lib = os.path.join(self.dir, "fake.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.lib, self.file("fake.c", FAKE),
                        "-ldl"], check=True)
        self.map = self.file("stack_map_bin", golden_map("le64"))
        self.file("trace", golden_text("trace.txt"))
        self.file("stack_map_stat", "entries: 4 / 16384\n")

    def run_fake(self, times, *args, rc=0, stdout=subprocess.PIPE):
        """Runs the tool; so many reads of the map end with ESTALE, as by a reset or a rotation."""
        env = {**os.environ, "LD_PRELOAD": self.lib, "STALE": str(times), "TRACEFS": self.dir,
               "PATH": self.dir}
        done = subprocess.run([TOOL, *args], env=env, stdout=stdout, stderr=subprocess.PIPE,
                              check=False)
        self.assertEqual(done.returncode, rc, done.stderr)
        return (done.stdout or b"").decode(), done.stderr.decode()

    def test_stale_read(self):
        self.make_map()
        for times in range(5):
            out = self.run_fake(times, "-q", "-k", KALLSYMS)[0]
            self.assertEqual(out, golden_text("text64.txt"))
        for args in [[], ["--partial"], [self.map]]:
            # A file is opened once more, to see if it is a recording.
            out, err = self.run_fake(6, "-k", KALLSYMS, *args, rc=1)
            self.assertEqual(out, "")
            self.assertIn("stack_map_bin: the map was reset or replaced each time", err)

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

    def make_map(self):
        """What the tool looks for in tracefs."""
        self.file("tracing_on", "1")
        os.mkdir(os.path.join(self.dir, "options"))
        for option in ["stackmap", "stacktrace"]:
            self.file("options/" + option, "1")

    def popen(self, *args, **more):
        """Runs the tool beside the test."""
        env = {**os.environ, "LD_PRELOAD": self.lib, "STALE": "0", "TRACEFS": self.dir}
        return subprocess.Popen(["timeout", "30", TOOL, *args], env=env, stdout=subprocess.PIPE,
                                **more)

    def test_annotate_a_map_that_grows(self):
        """What an event has is in the map before. What it does not have then comes no more."""
        self.make_map()
        stacks = mkmap.golden_stacks(TEXT, 0xFFFFFFFFC0201000)
        with self.popen("-q", "-k", KALLSYMS, "--annotate", "-", stdin=subprocess.PIPE) as p:
            for ident in range(10, 15):
                stacks.append((ident, 1, [TEXT + 0x180]))
                self.file("stack_map_bin", mkmap.make(stacks))
                for i in [ident, 4]:
                    p.stdin.write(f"{Filter.HEAD}<stack_id {i}>\n".encode())
                    p.stdin.flush()
                    self.assertIn(b"<stack_id", p.stdout.readline())
                    self.assertEqual(p.stdout.readline(), b" => weak_one+0x0/0x80\n")
            p.stdin.write((f"{Filter.HEAD}<stack_id 99>\n" * 400).encode())
            p.stdin.close()
            self.assertEqual(p.stdout.read().count(b"[not in this map]"), 400)
            self.assertEqual(p.wait(10), 0)

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

    def on_terminal(self, rows, columns, key, *args):
        """Runs top on a terminal of that size, and types a key when it shows stacks. Returns these."""
        pid, terminal = pty.fork()
        if not pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.environ.update(LD_PRELOAD=self.lib, STALE="0", TRACEFS=self.dir)
            os.execv(TOOL, [TOOL, "top", "-q", "--delay", "0.2", *args])
        out, typed = b"", False
        try:
            for count in range(1000):
                if b"0x1010 <" in out.rpartition(b"\r\n\r\n")[0] and not typed:
                    os.write(terminal, key)
                    typed = True
                self.file("new", mkmap.make([(i, count, [0x1010] * 20) for i in range(50)]))
                os.replace(os.path.join(self.dir, "new"), self.map)
                if select.select([terminal], [], [], 0.1)[0]:
                    out += os.read(terminal, 65536)
        except OSError:
            pass
        self.assertEqual(termios.tcgetattr(terminal)[3] & (termios.ICANON | termios.ECHO),
                         termios.ICANON | termios.ECHO)
        os.close(terminal)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        looks = [look for look in out.decode().split("\033[H\033[J") if "0x1010 <" in look]
        return [line for line in looks[0].split("\r\n") if "0x1010 <" in line]

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
        self.file("tracing_on", "1")
        self.assertIn("this kernel has no stack map", self.run_fake(0, *args, rc=1)[1])
        os.mkdir(os.path.join(self.dir, "options"))
        self.file("options/stackmap", "0")
        if not os.path.exists("/sys/kernel/tracing/instances"):
            err = self.run_fake(0, *args, rc=1)[1]
            self.assertRegex(err, r"instances/stackmap_record_\d+: No such file")
        for name in os.listdir(self.dir):
            self.assertNotRegex(name, "ran|out")


FAKE_MAP = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
        subprocess.run(["cc", "-shared", "-fPIC", "-o", os.path.join(self.dir, "fake.so"),
                        self.file("fake.c", FAKE_MAP), "-ldl"], check=True)
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
        own = self.lines("own_events")
        self.assertIn("sched:sched_process_fork", own)
        self.assertNotIn("sched:sched_switch", own)
        events = self.report()
        for event in ["sched_process_fork", "sched_process_exec", "task_rename"]:
            self.assertIn(("sh" if event != "task_rename" else "sleep", event),
                          [(task, name) for task, _, name in events])
        self.assertNotIn("kallsyms.start", os.listdir(self.out))
        folded = self.run_tool("--perf-script", "-q", self.out)[0]
        self.assertTrue(folded)
        self.assertNotIn(" sched_process_", folded)

    def test_own_event_that_is_wanted(self):
        self.record("-e", "sched:sched_process_exec,sched:sched_switch", "true")
        self.assertNotIn("sched:sched_process_exec", self.lines("own_events"))
        self.assertIn("sched_process_exec:", self.run_tool("--perf-script", "-q", self.out)[0])
        for events in ["sched", "sched_process_exec"]:
            err = self.record("-e", events, "-f", "common_pid < 0", "touch", self.ran, rc=1)
            self.assertRegex(err, r"sched_process_\w+: all of these are needed, without a filter")
        self.assertFalse(os.path.exists(self.ran))

    def test_recorders_are_left_out(self):
        self.record("-a", "-e", "sched", "--", "sh", "-c", "sleep .3; ls /")
        own = self.lines("own_pids")
        self.assertGreaterEqual(len(own), 2)
        events = [(pid, name) for _, pid, name in self.report() if pid in own]
        self.assertNotIn("sched_process_fork", [name for _, name in events])
        samples = self.run_tool("--perf-script", "-q", self.out)[0]
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
            folded = self.run_tool("-F", "-q", "--tracer", self.out)[0]
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
        for path, ident in zip(progs, ["ab", "cd", "ef"]):
            subprocess.run(["cc", "-o", path, "-Wl,--build-id=0x" + ident * 20,
                            self.file("prog.c", "int main(void) { return getchar(); }\n"), "-w"],
                           check=True)
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


FIXTURE = """\
volatile int sink;

void _text(void)
{
	sink++;
}

static inline __attribute__((always_inline)) void inner(void)
{
	sink += 2;
	asm volatile(".globl mark_inner\\nmark_inner: nop");
}

static inline __attribute__((always_inline)) void middle(void)
{
	sink += 3;
	inner();
}

__attribute__((noinline)) void outer(void)
{
	sink += 4;
	middle();
	sink += 5;
}

void _start(void)
{
	outer();
	sink += 6;
}
"""


class Vmlinux(Case):
    """--vmlinux, with a small ELF file in place of a kernel: one inlined caller."""

    SHIFT = 0x12000000

    def setUp(self):
        super().setUp()
        err = self.run_tool("-v", "/nonexistent", "-", stdin=mkmap.make([]), rc=1)[1]
        if WITHOUT in err:
            self.skipTest(WITHOUT)
        self.elf = os.path.join(self.dir, "vmlinux")
        self.build()

    def build(self, *flags):
        """Compiles this ELF file for the machine."""
        subprocess.run(["cc", "-g", "-O1", "-nostdlib", "-static", "-ffreestanding", "-fno-pie",
                        "-no-pie", "-fcf-protection=none", "-fno-stack-protector",
                        "-fno-asynchronous-unwind-tables", "-Wl,--build-id=0x" + "ab" * 20,
                        *flags, "-o", self.elf, self.file("fixture.c", FIXTURE)], check=True)
        out = subprocess.run(["nm", "-n", self.elf], capture_output=True, text=True, check=True)
        self.addr = {f[2]: int(f[0], 16) for f in map(str.split, out.stdout.splitlines())}

    def map(self, names, build_id=b"\xab" * 20, shift=SHIFT, text=True):
        """A map with a stack of the addresses of @names (name, offset) after KASLR."""
        ips = [self.addr[n] + off + shift for n, off in names]
        sections = [(mkmap.BUILD_ID, build_id)] if build_id else []
        if text:
            sections.append((mkmap.TEXT, struct.pack("<Q", self.addr["_text"] + shift)))
        return mkmap.make([(1, 1, ips)], sections)

    def test_symbols_under_kaslr(self):
        out = self.dump(self.map([("outer", 4), ("_start", 3)]), "-v", self.elf)
        self.assertIn("[0] outer+0x4/", out)
        self.assertIn("[1] _start+0x3/", out)

    def test_map_without_text(self):
        """The kallsyms may tell where the kernel is."""
        data = self.map([("outer", 4)], text=False)
        out, err = self.run_tool("-v", self.elf, "-", stdin=data)
        self.assertNotIn("outer", out)
        self.assertIn("cannot undo KASLR", err)
        start = self.addr["_text"] + self.SHIFT
        path = self.file("k", f"{start:x} T _text\n{start + 1:x} T _end\n")
        self.assertIn("[0] outer+0x4/", self.dump(data, "-v", self.elf, "-k", path))

    def test_build_id(self):
        data = self.map([("outer", 4)], build_id=b"\xcd" * 20)
        out, err = self.run_tool("-v", self.elf, "-", stdin=data, rc=1)
        self.assertEqual(out, "")
        self.assertIn("another build id", err)
        self.assertIn("outer+0x4", self.dump(data, "-v", self.elf, "--force"))
        err = self.run_tool("-v", self.elf, "-", stdin=self.map([("outer", 4)], build_id=b""))[1]
        self.assertIn("no build id in the map", err)

    def test_lines_and_inlined_callers(self):
        out = self.dump(self.map([("mark_inner", 0), ("mark_inner", 1)]), "-v", self.elf,
                        "--lines")
        line = {what: i + 1 for i, text in enumerate(FIXTURE.splitlines())
                for what in ("mark_inner", "\tinner();", "\tmiddle();") if what in text}
        chain = [("inner (inlined)", "mark_inner"), ("middle (inlined)", "\tinner();"),
                 ("outer", "\tmiddle();")]
        want = [rf"^        {re.escape(name)} at \S*fixture\.c:{line[at]}$" for name, at in chain]
        got = out.splitlines()
        self.assertEqual(len(got), 10, out)
        for i in range(3):
            self.assertRegex(got[2 + i], want[i])
            self.assertRegex(got[6 + i], want[i])

    def test_lines_in_json(self):
        out = json.loads(self.dump(self.map([("mark_inner", 0)]), "-v", self.elf, "--lines", "-j"))
        self.assertEqual(out[0]["lines"][0].count("\n"), 3)
        self.assertRegex(out[0]["lines"][0], r"^inner \(inlined\) at ")

    def test_kallsyms_are_trusted_more(self):
        path = self.file("k", f"{self.addr['outer']:x} T another_name\n")
        data = self.map([("outer", 4)], shift=0)
        self.assertIn("another_name+0x4/", self.dump(data, "-v", self.elf, "-k", path))

    def test_stripped_and_not_elf(self):
        subprocess.run(["strip", self.elf], check=True)
        data = self.map([("outer", 4)])
        self.assertIn("no symbols", self.run_tool("-v", self.elf, "-", stdin=data, rc=1)[1])
        path = self.file("text", "no elf")
        self.assertIn("not an ELF", self.run_tool("-v", path, "-", stdin=data, rc=1)[1])

    def test_no_debug_information(self):
        subprocess.run(["strip", "-g", self.elf], check=True)
        data = self.map([("outer", 4)])
        self.assertIn("outer+0x4", self.dump(data, "-v", self.elf))
        err = self.run_tool("-v", self.elf, "--lines", "-", stdin=data, rc=1)[1]
        self.assertIn("CONFIG_DEBUG_INFO", err)

    def test_32_bit(self):
        try:
            self.build("-m32")
        except subprocess.CalledProcessError:
            self.skipTest("the compiler has no -m32")
        out = self.dump(self.map([("outer", 4), ("mark_inner", 1)]), "-v", self.elf, "--lines")
        self.assertIn("[0] outer+0x4/", out)
        self.assertIn("inner (inlined) at", out)


class Large(Case):
    """Maps of the largest size."""

    def test_largest_map_in_seconds(self):
        nr, depth = 1 << (13 if SANITIZED else 18), 16
        syms = "".join(f"{TEXT + i * 256:x} T function_number_{i}\n" for i in range(60000))
        rnd = random.Random(1)
        sites = [TEXT + rnd.randrange(59000 * 256) for _ in range(20000)]
        record = struct.Struct(f"<4I{depth}Q")
        data = [struct.pack("<4I", mkmap.MAGIC, 2, nr, 0)]
        data += [record.pack(i, depth, i, 0, *rnd.choices(sites, k=depth)) for i in range(nr)]
        path = self.file("map", b"".join(data))
        kallsyms = self.file("k", syms)
        for mode, head in [("--sort=ref", b"stack_id"), ("--folded", b"function"),
                           ("--json", b" {")]:
            self.large_dump(nr, head, mode, "-k", kallsyms, path)

    def test_two_maps_and_the_stacks_that_are_kept(self):
        nr = 600000
        record = struct.Struct("<4IQ")
        data = [struct.pack("<4I", mkmap.MAGIC, 2, nr, 0)]
        data += [record.pack(i, 1, i, 0, TEXT + 0x20) for i in range(nr)]
        out = self.dump(b"".join(data), "--top", "1")
        self.assertTrue(out.startswith(f"stack_id {nr - 1} [ref {nr - 1}, depth 1]"), out)

    def large_dump(self, nr, head, *args):
        """Dumps a map; nr lines must begin with the head."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(os.path.join(self.dir, "out"), "wb") as out:
            subprocess.run([TOOL, "-q", *args], stdout=out, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(os.path.join(self.dir, "out"), "rb") as out:
            self.assertEqual(sum(line.startswith(head) for line in out), nr)
        if SANITIZED:
            return
        # The CPU time of the tool: the machine may be shared.
        spent = sum(getattr(after, f) - getattr(before, f) for f in ("ru_utime", "ru_stime"))
        print(f"{nr} stacks, {args[0]}: {spent:.2f} s", file=sys.stderr)
        self.assertLess(spent, 10.0)
        self.assertLess(after.ru_maxrss, 256 << 10)


def main():
    """Runs all tests. The last line has the counts."""
    result = unittest.main(exit=False, verbosity=1).result
    failed = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
