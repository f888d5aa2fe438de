#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of stackmap_dump. They need no kernel with a stack map.

STACKMAP_DUMP names the program (default: the one beside the sources). The last line is
"N passed, N failed, N skipped".
"""

import gzip
import json
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
import mkmap  # noqa: E402 pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "golden")
TOOL = os.environ.get("STACKMAP_DUMP", os.path.join(HERE, "..", "stackmap_dump"))
SANITIZED = "STACKMAP_SANITIZED" in os.environ
TEXT = 0xFFFFFFFF81000000
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
        out, err = self.run_tool("-k", KALLSYMS, "-a", golden_path("trace.txt"), path)
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

    def test_magic_of_the_other_series(self):
        stacks = mkmap.golden_stacks(TEXT, 0xFFFFFFFFC0201000)
        for order in "<>":
            data = mkmap.make(stacks, order=order, version=1, magic=mkmap.OTHER_MAGIC)
            self.assertEqual(self.dump(data, "-k", KALLSYMS), golden_text("text64.txt"))
            self.refuse(data[:-1], len(data) - 1, "truncated")
            self.refuse(data + bytes(1), len(data), "more bytes")
        self.refuse(mkmap.make([], version=2, magic=mkmap.OTHER_MAGIC), 4, "version 2")
        data = mkmap.make([], [(mkmap.RELEASE, b"7")], version=1, magic=mkmap.OTHER_MAGIC)
        self.refuse(data, 12, "1 sections, a map has at most 0")

    def test_counts(self):
        self.refuse(struct.pack("<4I", mkmap.MAGIC, 2, 0, 0xFFFFFFFF), 12, "sections")
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

    def test_negative_id_and_reserved_word(self):
        self.refuse(mkmap.make([(0x80000001, 1, [TEXT])]), 16, "negative")
        data = struct.pack("<8IQ", mkmap.MAGIC, 2, 1, 0, 5, 1, 1, 7, TEXT)
        self.refuse(data, 28, "0x7 where 0 belongs")

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
            done = subprocess.run([TOOL, "-p", "-k", KALLSYMS, mode, "-"], input=bytes(data),
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

    def test_where_an_interrupt_came_is_no_return_address(self):
        syms = "1000 T before\n1100 T interrupted\n1200 T asm_sysvec_reboot\n1300 T handler\n" \
               "1400 t asm_not_an_entry\t[m]\n1500 t end\t[m]\n"
        for entry in ["asm_sysvec_reboot", "end_repeat_nmi", "ext_int_handler"]:
            self.assertEqual(self.frames([0x1310, 0x1210, 0x1100, 0x1100],
                                         syms.replace("asm_sysvec_reboot", entry))[2:],
                             ["interrupted+0x0/0x100", "before+0x100/0x100"])
        self.assertEqual(self.frames([0x1310, 0x1410, 0x1100], syms)[2:], ["before+0x100/0x100"])

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
        path = self.file("last_boot_info", "ffffffff81000000\t[kernel]\r\nc0100000\tother\r\n")
        self.assertEqual(self.frames([0xC0100123], syms, "-k", path), ["[other]+0x123"])

    def test_last_boot_info(self):
        info = "ffffffff81000000\t[kernel]\nffffffffc0100000\tother\n"
        path = self.file("last_boot_info", info)
        ips = [TEXT + 0x120, 0xFFFFFFFFC0100123, 0xFFFFFFFFC0201010]
        self.assertEqual(self.frames(ips, golden_text("kallsyms64"), "-k", path),
                         ["schedule+0x20/0x80", "[other]+0x123",
                          "first_of_mod+0x10/0x400 [golden_mod]"])
        self.assertEqual(self.frames([0x1, 0x2], "# Current\n"), ["0x1", "0x2"])

    def test_last_boot_info_of_a_known_module_adds_nothing(self):
        path = self.file("last_boot_info", "ffffffffc0201100\tgolden_mod\n")
        self.assertEqual(self.frames([0xFFFFFFFFC0201210], golden_text("kallsyms64"), "-k", path),
                         ["first_of_mod+0x210/0x400 [golden_mod]"])

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
        for args in [[self.dir], ["-k", KALLSYMS, self.dir], ["--diff", self.dir, path]]:
            out, err = self.run_tool(*args, rc=1)
            self.assertEqual(out, "")
        out, err = self.run_tool(self.dir, rc=1)
        self.assertIn("build_id: has another build id than the kernel of", err)
        self.assertEqual(self.run_tool("-f", self.dir)[0], golden_text("text64.txt"))
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
        hint = "give the kallsyms (-k) or the vmlinux (-v) of the map's kernel"
        for build_id, base, live in [(LIVE_ID, text, True), (LIVE_ID, text + 4096, False),
                                     (bytes(20), text, False), (LIVE_ID, None, False),
                                     (None, text, False)]:
            sections = [(mkmap.BUILD_ID, build_id)] if build_id else []
            sections += [(mkmap.TEXT, struct.pack("=Q", base))] if base else []
            path = self.file("map", mkmap.make([(1, 1, [text])], sections))
            trace = b" bash-1   [000]   12.345678: stack_id:     <stack_id 1>\n"
            out, err = self.run_tool("-a", "-", path, stdin=trace)
            self.assertEqual(f"=> 0x{text:x}" not in out, live, out)
            self.assertEqual("symbols: kallsyms /proc/kallsyms" in err, live, err)
            self.assertEqual(hint in err, not live, err)

    def test_source_is_said(self):
        err = self.run_tool("-k", KALLSYMS, "-", stdin=golden_map("le64"))[1]
        self.assertIn("symbols: kallsyms " + KALLSYMS, err)
        self.assertIn("raw addresses", self.run_tool("-", stdin=golden_map("le64"))[1])

    def test_more_addresses_than_are_kept(self):
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

    def test_speedscope_has_callers_side_by_side(self):
        stacks = [(i, 100 - i, [TEXT + leaf, TEXT + root]) for i, (leaf, root) in enumerate(
            [(0x148, 0x30), (0x190, 0x190), (0x30, 0x30), (0x148, 0x190), (0x149, 0x30)])]
        prof = json.loads(self.dump(mkmap.make(stacks), "-k", KALLSYMS, "--speedscope"))
        names = [f["name"] for f in prof["shared"]["frames"]]
        got = [[names[i] for i in s] for s in prof["profiles"][0]["samples"]]
        self.assertEqual(got, [["do_exit", "schedule"], ["do_exit", "do_exit"],
                               ["weak_one", "schedule"], ["weak_one", "weak_one"]])
        self.assertEqual(prof["profiles"][0]["weights"], [196, 98, 97, 99])

    def test_saved_trace_is_taken(self):
        self.file("stack_map_bin", golden_map("le64"))
        self.file("kallsyms", golden_text("kallsyms64"))
        self.file("trace", self.SPLIT_TRACE)
        whole = "schedule;schedule;schedule;do_exit;schedule"
        want = f"{whole} 1\n_text;[FTRACE_TRAMPOLINE];do_exit;0x1234;{whole} 1\nweak_one 1\n"
        out, err = self.run_tool("-F", self.dir)
        self.assertEqual(out, want)
        self.assertIn(f"the stacks are those of {self.dir}/trace (--map-only: of the map)", err)
        out = json.loads(self.run_tool("-S", self.dir)[0])
        self.assertEqual(sum(out["profiles"][0]["weights"]), 3)
        for args in [["-M", self.dir], [self.dir + "/stack_map_bin", "-k", KALLSYMS]]:
            out, err = self.run_tool("-F", *args)
            self.assertEqual(out, golden_text("folded64.txt"))
            self.assertNotIn("/trace", err)
        self.assertEqual(self.run_tool(self.dir)[0], golden_text("text64.txt"))
        self.assertEqual(self.run_tool("-F", "-a", self.file("other", ""), self.dir)[0], "")
        self.file("trace", "# tracer: nop\n")
        out, err = self.run_tool("-F", self.dir)
        self.assertEqual(out, "")
        self.assertIn("trace has no stacks (--map-only prints those of the map)", err)
        os.remove(os.path.join(self.dir, "trace"))
        self.assertEqual(self.run_tool("-F", self.dir)[0], golden_text("folded64.txt"))

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
        self.assertRegex(out, r"2-3 +2 \|#{40}\n")
        self.assertIn("duplicates: 0 stacks, 0 ids", out)

    def test_summary_share(self):
        stacks = [(i, 10 if i < 10 else 1, [TEXT + i]) for i in range(110)]
        self.assertIn("top 10 hold: 50.0%", self.dump(mkmap.make(stacks), "--summary"))

    def test_summary_finds_duplicates(self):
        data = mkmap.make([(1, 1, [5, 6]), (2, 1, [5, 6]), (3, 1, [5]), (3, 1, [6])])
        self.assertIn("duplicates: 1 stacks, 1 ids", self.dump(data, "--summary", rc=1))

    def test_summary_of_two_generations(self):
        data = mkmap.make([(2, 1, [5, 6]), ((1 << 19) + 7, 1, [5, 6])])
        self.assertIn("duplicates: 0 stacks, 0 ids", self.dump(data, "--summary"))

    def test_annotate_twice_is_once(self):
        path = self.file("map", golden_map("le64"))
        once = golden_text("annotated.txt")
        out = self.run_tool("-q", "-k", KALLSYMS, "-a", "-", path, stdin=once.encode())[0]
        self.assertEqual(out, once)

    def test_annotate_loses_no_line(self):
        path = self.file("map", golden_map("le64"))
        text = golden_text("trace.txt")
        out = self.run_tool("-q", "-k", KALLSYMS, "-a", golden_path("trace.txt"), path)[0]
        for line in text.splitlines():
            if not line.startswith(" => ") or "kernel_said" in line:
                self.assertIn(line + "\n", out)

    def test_annotate_odd_text(self):
        path = self.file("map", golden_map("le64"))
        for text in ["<stack_id ", "<stack_id >\n", "<stack_id -1>\n", "<stack_id 7",
                     "<stack_id 99999999999999999999>\n", "<stack_id 4294967303>\n"]:
            out = self.run_tool("-q", "-a", "-", path, stdin=text.encode())[0]
            self.assertEqual(out, text)
        out = self.run_tool("-q", "-a", "-", path, stdin=b"<stack_id 7>")[0]
        self.assertTrue(out.startswith("<stack_id 7>\n => 0x"), out)
        self.assertIn("No such file", self.run_tool("-a", "/nonexistent", path, rc=1)[1])

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
        out = self.run_tool("-k", KALLSYMS, "-a", "-", path, stdin=self.SPLIT_TRACE.encode())[0]
        self.assertEqual(out, lines[0] + seven + hit + behind + lines[1] + seven + hit + behind +
                         " => 0x1234\n" + other + lines[2] + four)
        # The format of libtraceevent, and a part that is not in the map.
        for text, want in [("stack_split: <stack_split 7 @ffffffff81000148 4 @0 -1 @0 -1>\n",
                            seven + hit + behind),
                           ("<stack_split 7 @ffffffff81000148 5> (stale)\n",
                            " => [not in this map]\n")]:
            out = self.run_tool("-q", "-k", KALLSYMS, "-a", "-", path, stdin=text.encode())[0]
            self.assertEqual(out, text + want)

    def test_annotate_odd_splits(self):
        path = self.file("map", golden_map("le64"))
        many = "".join(f" @{i:x} 7" for i in range(1, 20))
        for text in ["<stack_split ", "<stack_split 7>\n", "<stack_split 7 @>\n",
                     "<stack_split 7 @12>\n", "<stack_split 7 @12 >\n", "<stack_split 7 @12 7",
                     "<stack_split 7 12 7>\n", "<stack_split 7 @-1 7>\n",
                     "<stack_split 7 @11111111111111111 7>\n", "<stack_split 7 @0 -1>\n",
                     "<stack_split 7 @12 4 @0 -1 @0 -1", "<stack_split 7 @12 4 @0 -1 @0 7>\n",
                     "<stack_split 7 @12 -1 @0 -1 @0 -1>\n", "<stack_split 7 @12 -2>\n",
                     "<stack_id 7 @12 7>\n", f"<stack_split 7{many}>\n"]:
            for mode in [[], ["-F"]]:
                out = self.run_tool("-q", *mode, "-a", "-", path, stdin=text.encode())[0]
                self.assertEqual(out, "" if mode else text)

    def test_folded_from_a_trace(self):
        path = self.file("map", golden_map("le64"))
        text = self.SPLIT_TRACE + self.SPLIT_TRACE.splitlines(True)[0]
        text += " bash-1 [000] d.h1. 1.000004: <stack trace>\n => full\n"
        text += " bash-1 [000] d.h1. 1.000005: <stack_id 99> (stale)\n"
        args = ["-k", KALLSYMS, "-F", "-a", "-", path]
        out, err = self.run_tool(*args, stdin=text.encode())
        whole = "schedule;schedule;schedule;do_exit;schedule"
        self.assertEqual(out, f"{whole} 2\n_text;[FTRACE_TRAMPOLINE];do_exit;0x1234;{whole} 1\n"
                         "weak_one 1\nfull 1\n")
        self.assertIn("1 ids are not in", err)
        out = self.run_tool("-q", "--min-ref", "2", *args, stdin=text.encode())[0]
        self.assertEqual(out, f"{whole} 2\n")
        out = self.run_tool("-q", "-k", KALLSYMS, "-S", "-a", "-", path, stdin=text.encode())[0]
        self.assertEqual(json.loads(out)["profiles"][0]["weights"], [2, 1, 1, 1])

    REPORT = "".join(golden_text("report.txt").splitlines(True)[2:5])

    def test_trace_cut_anywhere(self):
        path = self.file("map", golden_map("le64"))
        for text in [self.REPORT.replace("2147483652", "4"), self.SPLIT_TRACE]:
            whole = [i + 1 for i, c in enumerate(text) if c == ">" and "<stack" in text[i - 60:i]
                     and text[i + 1] == "\n"]
            for cut in range(0, len(text), 3 if SANITIZED else 1):
                args = ["-q", "-a", "-", path]
                out = self.run_tool("-F", *args, stdin=text[:cut].encode())[0]
                got = sum(int(line.rsplit(" ", 1)[1]) for line in out.splitlines())
                self.assertEqual(got, sum(end <= cut for end in whole), text[:cut])
            for cut in range(0, len(text), 7):
                self.run_tool("-S", *args, stdin=text[:cut].encode())
                self.run_tool(*args, stdin=text[:cut].encode())

    def test_parts_that_trace_cmd_does_not_print(self):
        path = self.file("map", golden_map("le64"))
        for last in [4 - 2 ** 31, 4 + 2 ** 31]:
            text = self.REPORT.splitlines(True)[2].replace("2147483652", str(last))
            for mode in [[], ["-F"], ["-S"]]:
                out, err = self.run_tool("-k", KALLSYMS, *mode, "-a", "-", path,
                                         stdin=(text * 3).encode())
                self.assertIn("3 stacks are not resolved", err)
                if mode == ["-S"]:
                    self.assertEqual(json.loads(out)["profiles"][0]["samples"], [])
                else:
                    self.assertEqual(out, "" if mode else text * 3)

    def annotated(self, text, *args):
        """The text with frames, and the number of stacks that --folded finds in it."""
        path = self.file("map", golden_map("le64"))
        args = ["-q", "-k", KALLSYMS, "-a", "-", path]
        folded = self.run_tool("-F", *args, stdin=text.encode())[0]
        counts = [int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()]
        return self.run_tool(*args, stdin=text.encode())[0], sum(counts)

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
                     "          <idle>-0     [001]    12.345678:  (+12)    stack_id:             ", ""]:
            for end in ["\n", " (stale)\n"]:
                line = head + "<stack_id 4>" + end
                self.assertEqual(self.annotated(line), (line + four, 1))

    def test_without_context(self):
        four = " => weak_one+0x0/0x80\n"
        text = "tracing_mark_write: then came 3: x\n<stack_id 4>\n"
        self.assertEqual(self.annotated(text), (text + four, 1))

    def test_a_task_named_like_a_frame(self):
        head = " => abcdefghijkl-5       [000] d..2.  1000.000003: "
        text = "  bash-6  [000] d..2.  1000.000002: <stack trace>\n => f\n" + head + "kmalloc: x\n"
        self.assertEqual(self.folded(text)[0], "f 1\n")

    def test_line_ends_of_dos(self):
        text = self.FULL + "  bash-1 [000] d..2. 1.0: <stack_def 9> {0x1}\n"
        dos = text.replace("\n", "\r\n")
        self.assertEqual(self.annotated(dos), self.annotated(text))

    def test_nul_in_a_trace(self):
        nul = " bash-123 [000] d..2.  1.000003: tracing_mark_write: a\0b\n"
        line = " bash-123 [000] d..2.  1.000003: <stack_id 4>\n"
        four = " => weak_one+0x0/0x80\n"
        for before in [nul, "\0", "\0\n", " \0ash-123 [000] d..2. 1: x\n"]:
            self.assertEqual(self.annotated(before + line), (before + line + four, 1))
        line = line.replace("4>", "4>\0")
        self.assertEqual(self.annotated(line), (line, 0))

    FULL = ("  <idle>-0     [001]    12.345678: kernel_stack:         <stack trace >\n"
            "=> schedule (ffffffff81000148)\n"
            "=> first_of_mod (ffffffffc0201010)\n"
            "=> ffffffffc0400010\n"
            "  <idle>-0     [001]    12.345680: stack_id:             <stack_id 4>\n")

    def folded(self, text, *args):
        """--folded of a trace: stdout and stderr."""
        path = self.file("map", golden_map("le64"))
        return self.run_tool(*args, "-F", "-a", "-", path, stdin=text.encode())

    def test_full_stacks_of_trace_cmd(self):
        out = self.folded(self.FULL * 3)[0]
        self.assertEqual(out, "0xffffffffc0400010;first_of_mod;schedule 3\n0xffffffff81000180 3\n")
        # If all addresses have names, the stack prints like that of an id.
        known = self.FULL.replace("=> ffffffffc0400010\n", "=> 7fffffff\n=> x (ffffffff81000100)\n")
        out = self.folded(known, "-k", KALLSYMS)[0]
        self.assertEqual(out, "do_exit;[FTRACE_TRAMPOLINE];first_of_mod[golden_mod];schedule 1\n"
                         "weak_one 1\n")
        out = self.folded(self.FULL, "-k", KALLSYMS)[0]
        self.assertIn("0xffffffffc0400010;first_of_mod;schedule 1\n", out)
        self.assertEqual(self.annotated(self.FULL)[0], self.FULL + " => weak_one+0x0/0x80\n")

    def test_full_stacks_of_the_kernel(self):
        head = " bash-1       [000] d.h1.     1.000004: "
        text = (head + "<stack trace>\n => schedule\n => [FTRACE TRAMPOLINE]\n => f [mod]\n"
                " => 0xffffffffc0400010\n" + head + "<stack_id 4>\n => weak_one\n" +
                head + "<user stack trace>\n =>  <00007f00>\n" +
                head + "x: <stack trace>\n => no\n" +
                head + "<stack trace>\n => schedule+0x48/0x80\n => f+0x1/0x2 [mod]\n" +
                head + "<stack trace>\n => a <ffffffff81000148>\n => b <ffffffff81000030>\n")
        out, err = self.folded(text, "-k", KALLSYMS)
        self.assertEqual(out, "0xffffffffc0400010;f[mod];[FTRACE_TRAMPOLINE];schedule 1\n"
                         "0x7f00[user];weak_one 1\nf[mod];schedule 1\ndo_exit;schedule 1\n")
        self.assertNotIn("left out", err)
        out = self.folded(text, "-g", "schedule.0x48")[0]
        self.assertEqual(out, "f[mod];schedule 1\n")
        path = self.file("map", golden_map("le64"))
        out = self.run_tool("-q", "-S", "-a", "-", path, stdin=text.encode())[0]
        self.assertEqual(sum(json.loads(out)["profiles"][0]["weights"]), 4)

    def test_full_stacks_that_are_cut_off(self):
        full = self.FULL.split("  <idle>-0     [001]    12.345680")[0]
        for cut in range(len(full)):
            out, err = self.folded(full[:cut])
            whole = full[:cut].count("\n") > 1 and full[cut - 1] == "\n"
            self.assertEqual(bool(out), whole, full[:cut])
            self.assertEqual("left out 1 stacks" in err, cut > full.find(" >\n") + 1 and not whole)

    def test_parts_stand_alone(self):
        for order in "<>":
            split = (mkmap.SPLIT, struct.pack(f"{order}Q", 5))
            path = self.file("map", mkmap.make([(7, 1, [TEXT])], [split], order))
            for mode in [["-F"], ["-j"], []]:
                self.assertIn("interrupts split 5 stacks", self.run_tool(*mode, path)[1])
            self.assertNotIn("split", self.run_tool("-a", "-", path)[1])
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

    def test_directory(self):
        self.file("stack_map_bin", golden_map("le64"))
        self.file("kallsyms", golden_text("kallsyms64"))
        out, err = self.run_tool(self.dir)
        self.assertEqual(out, golden_text("text64.txt"))
        self.assertIn(self.dir + "/kallsyms", err)
        self.assertEqual(self.run_tool("-q", self.dir, "--diff", self.dir)[0], "")


class PerfScript(Case):
    """--perf-script, as perf script prints it and as its readers take it."""

    def samples(self, text, *args, rc=0):
        """The samples of a trace: head without blanks, and frames."""
        path = self.file("map", golden_map("le64"))
        out, err = self.run_tool("-k", KALLSYMS, "--perf-script", "-a", "-", path, *args, rc=rc,
                                 stdin=text.encode("latin-1"))
        self.assertTrue(not out or out.endswith("\n\n"))
        samples = [s.split("\n\t") for s in out.split("\n\n")[:-1]]
        return [(" ".join(s[0].split()), s[1:]) for s in samples], err

    FOUR = ["ffffffff81000180 weak_one+0x0 ([kernel.kallsyms])"]

    @staticmethod
    def line(text, task="bash-123", cpu=0, time="1000.000001"):
        """A line of trace."""
        return f"{task:>20}   [{cpu:03}] d..2.  {time}: {text}\n"

    def test_format(self):
        text = self.line("sched_switch: prev_comm=bash prev_pid=123") + self.line("<stack_id 7>")
        path = self.file("map", golden_map("le64"))
        out = self.run_tool("-q", "-k", KALLSYMS, "--perf-script", "-a", "-", path,
                            stdin=text.encode())[0]
        self.assertEqual(out, "bash      123 [000]  1000.000001: sched_switch: prev_comm=bash "
                         "prev_pid=123\n\tffffffff81000100 schedule+0x0 ([kernel.kallsyms])\n"
                         "\tffffffff81000100 do_exit+0xe0 ([kernel.kallsyms])\n"
                         "\tffffffff81000148 schedule+0x48 ([kernel.kallsyms])\n\n")

    def test_frames(self):
        text = self.line("x: y") + self.line("<stack_split 524289 @ffffffff81000148 3>")
        kernel = " ([kernel.kallsyms])"
        self.assertEqual(self.samples(text)[0][0][1], [
            "ffffffff8100009f do_exit+0x7f" + kernel, "        7fffffff [FTRACE_TRAMPOLINE]" +
            kernel, "ffffffff81000020 _text+0x20" + kernel, "ffffffff81000148 schedule+0x48" +
            kernel, "ffffffffc0201010 first_of_mod+0x10 ([golden_mod])",
            "ffffffffc02014e0 last_of_mod+0xe0 ([golden_mod])",
            "ffffffff810001ff weak_one+0x7f" + kernel, "            1234 0x1234" + kernel])
        text = self.line("x: y") + self.line("<stack trace>") + " => a+0x1/0x2 [m]\n => 0x55\n"
        want = ("bash 123 [000] 1000.000001: x: y", ["               0 a ([m])",
                                                     "               0 0x55" + kernel])
        self.assertEqual(self.samples(text * 3)[0], [want] * 3)

    def test_event_of_a_stack(self):
        four = "<stack_id 4>"
        cases = [
            ([("a: x=1", 0), ("b: x=2", 1), (four, 0), (four, 1)],
             ["[000] 1000.000000: a: x=1", "[001] 1000.000001: b: x=2"]),
            # An interrupt came before the stack of a. A CPU never goes back in time.
            ([("a: x=1", 0), ("b: x=2", 0), (four, 0), (four, 0)],
             ["[000] 1000.000001: b: x=2", "[000] 1000.000003: a: x=1"]),
            ([("a: x=1", 0), ("b: x=2", 0), (four, 0), ("c: x=3", 0), (four, 0)],
             ["[000] 1000.000001: b: x=2", "[000] 1000.000003: c: x=3"]),
            ([(four, 0)], ["[000] 1000.000000: unknown: -"]),
            ([("a: x=1", 0), ("<user stack trace>", 0), ("<stack_def 9> {0x1}", 0), (four, 0)],
             ["[000] 1000.000000: a: x=1"]),
            ([("schedule <-do_exit", 0), (four, 0)], ["[000] 1000.000000: function: schedule "
                                                      "<-do_exit"]),
            ([("a: x=1", 0), ("stack_id: <stack_id 99>", 0), ("stack_id: " + four, 0)],
             ["[000] 1000.000000: a: x=1"]),
            ([("#1 context irq", 0), (four, 0)], ["[000] 1000.000000: trace: #1 context irq"]),
            ([("a: ", 0), (four, 0)], ["[000] 1000.000000: a: -"]),
            ([("a: ends:", 0), (four, 0)], ["[000] 1000.000000: a: ends: -"]),
            ([("a: dev 8 12.5: 13: x1: 1:2", 0), (four, 0)],
             ["[000] 1000.000000: a: dev 8 12.5; 13; x1: 1;2"]),
        ]
        for lines, want in cases:
            text = "".join(self.line(t, cpu=c, time=f"1000.{i:06}")
                           for i, (t, c) in enumerate(lines))
            self.assertEqual(self.samples(text)[0], [("bash 123 " + w, self.FOUR) for w in want])
        text = "".join(self.line(f"e{i}: x") for i in range(20)) + self.line(four) * 9
        self.assertEqual([re.sub(".*: (e?[a-z0-9]+): .*", r"\1", s[0]) for s in
                          self.samples(text)[0]], [f"e{i}" for i in range(19, 11, -1)] +
                         ["unknown"])
        text = self.line("a: x", "other-5") + self.line(four)
        self.assertIn("unknown: -", self.samples(text)[0][0][0])

    def test_heads(self):
        for head, want in [
                ("          <idle>-0       [001] d..2.  1000.000001: ", "swapper 0 [001] 1000.000001"),
                ("  bash-123     (    120) [002] .....  1000.000003: ", "bash 123 [002] 1000.000003"),
                ("  bash-123     (-------) [000]  1000.000003: ", "bash 123 [000] 1000.000003"),
                ("  bash-4194304 [4095]    12.345678901: ", "bash 4194304 [4095] 12.345678"),
                ("  bash-4194304 [001] 1234567: ", "bash 4194304 [001] 1.234567"),
                ("     x-1 [0] 1:  -77    [001] d..3.    12.5: ", "x-1_[0]_1:__ 77 [001] 12.500000"),
                ("                -77    [001] d..3.    12.5: ", ":77 77 [001] 12.500000"),
                ("  other:           a b;c-1 [001]    12.345678: ", "a_b_c 1 [001] 12.345678"),
                ("              a-12345 [001]    12.345678: ", "a 12345 [001] 12.345678")]:
            text = head + "x: y\n" + head + "<stack_id 4>\n"
            self.assertEqual(self.samples(text)[0], [(want + ": x: y", self.FOUR)])
            text = head + " (+12) x:      y\n" + head + "stack_id:    <stack_id 4>\n"
            self.assertEqual(self.samples(text)[0], [(want + ": x: y", self.FOUR)])
        for head in ["    bash-123       0d..2.   12us : ", "", "  bash-123   [65536]  12.34: ",
                     "  bash-123   [000]  12.34.5: ", "  bash-123   [000]  99999999999999.34: ",
                     "  bash-1 123   [000]  12.34: ", "  bash-1 23)   [000]  12.34: "]:
            out, err = self.samples(head + "x: y\n" + head + "<stack_id 4>\n")
            self.assertEqual(out, [])
            self.assertIn("left out 1 stacks without a task", err)

    def test_readers(self):
        text = self.line("a: ") + self.line("<stack_id 7>")
        text += self.line("b: z 5.5: 7: q:", "x 1-4194303", 1) + \
            self.line("<stack_id 4>", "x 1-4194303", 1)
        path = self.file("map", golden_map("le64"))
        out = self.run_tool("-q", "-k", KALLSYMS, "--perf-script", "-a", "-", path,
                            stdin=text.encode())[0]
        heads = [s.split("\n")[0] for s in out.split("\n\n")[:-1]]
        # speedscope, stackcollapse-perf.pl; an event at the end of the line is a filter.
        got = [re.match(r"(\S.+?)\s+(\d+)(?:/?(\d+))?\s+", h).groups() for h in heads]
        self.assertEqual([(g[0].strip(), g[1]) for g in got], [("bash", "123"),
                                                               ("x_1", "4194303")])
        self.assertFalse([h for h in heads if re.search(r"\S+:\s*$", h)])
        # Firefox Profiler: the last number with a colon is the time.
        self.assertEqual([re.match(r"(.*)\s+([\d.]+):", h)[2] for h in heads],
                         ["1000.000001"] * 2)
        # Perfetto: the first colon after a number with six digits behind the point.
        self.assertEqual([re.search(r" (\d+\.\d{6}):", h)[1] for h in heads], ["1000.000001"] * 2)

    def test_selection_definitions_and_usage(self):
        text = self.line("a: x") + self.line("<stack_id 4>") + self.line("b: x") + \
            self.line("<stack_id 7>") + self.line("c: x") + self.line("<stack_id 99>")
        out, err = self.samples(text, "--grep", "weak")
        self.assertEqual(len(out), 1)
        self.assertIn("1 ids are not in", err)
        text += "".join(self.line(f"<stack_def 99> {{{w:#x}}}") for w in (TEXT + 1, TEXT + 2))
        self.assertEqual(len(self.samples(text, rc=1)[0]), 2)
        self.file("stack_map_bin", golden_map("le64"))
        err = self.run_tool("--perf-script", self.dir, rc=2)[1]
        self.assertIn("--perf-script needs", err)
        self.file("trace", text)
        self.assertIn("weak_one+0x0", self.run_tool("--perf-script", "-k", KALLSYMS, self.dir,
                                                    rc=1)[0])
        for args in [["-M", self.dir], ["-S", "-a", "x", "y"], ["-F", self.dir], ["-t1", self.dir],
                     ["-m1", self.dir], ["-o", "id", self.dir]]:
            self.run_tool("--perf-script", *args, rc=2)


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
        self.assertEqual(set(prof) - {1, 2, 3, 4, 5, 6, 9, 11, 12}, set())
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
        maps = [self.message(m) for m in prof[3]]
        self.maps = [(m.get(2, [0])[0], m.get(3, [0])[0], texts[m[5][0]],
                      texts[m.get(6, [0])[0]], m.get(7, [0])[0]) for m in maps]
        self.assertEqual([m[1][0] for m in maps], list(range(1, len(maps) + 1)))
        self.addr = {}
        for loc in locs.values():
            name = names[self.message(loc[4][0])[1][0]]
            self.addr.setdefault(name, []).append((loc.get(3, [0])[0], loc.get(2, [0])[0]))
        samples = []
        for s in map(self.message, prof.get(2, [])):
            path = [names[self.message(locs[i][4][0])[1][0]] for i in self.numbers(s[1][0])]
            labels = {}
            for label in map(self.message, s.get(3, [])):
                labels[texts[label[1][0]]] = texts[label[2][0]] if 2 in label else \
                    label.get(3, [0])[0]
            samples.append((path, *self.numbers(s[2][0]), labels))
        return samples, prof

    def test_map(self):
        samples, _ = self.profile(golden_map("be64"), "-k", KALLSYMS, "-")
        self.assertEqual(samples, [
            (["weak_one"], 4294967295, {}),
            (["do_exit", "[FTRACE TRAMPOLINE]", "_text"], 4000000000, {}),
            (["schedule", "do_exit", "schedule"], 12, {}),
            (["first_of_mod", "last_of_mod", "weak_one", "0x1234"], 1, {})])
        self.assertEqual(self.maps, [
            (TEXT, TEXT + 0x2000, "[kernel.kallsyms]", bytes(range(20)).hex(), 1),
            (0xFFFFFFFFC0201000, 0xFFFFFFFFC0202000, "[golden_mod]", "", 1)])
        # A call's address is inside of it, that of a leaf is not changed.
        self.assertEqual(self.addr["schedule"], [(TEXT + 0x100, 1), (TEXT + 0x147, 1)])
        self.assertEqual(self.addr["do_exit"], [(TEXT + 0x9F, 1), (TEXT + 0xFF, 1)])
        self.assertEqual(self.addr["last_of_mod"], [(0xFFFFFFFFC02014DF, 2)])
        self.assertEqual(self.addr["[FTRACE TRAMPOLINE]"], [(mkmap.MARKER, 0)])
        self.assertEqual(self.addr["0x1234"], [(0x1233, 0)])

    def test_time(self):
        """That of the file, or now: Parca has a profile without a time in 1970."""
        path = self.file("map", golden_map("le64"))
        os.utime(path, (1, 1700000000))
        self.assertEqual(self.profile(b"", path)[1].get(9), [1700000000 * 10 ** 9])
        self.assertEqual(self.profile(b"", "-a", "-", path)[1].get(9), [1700000000 * 10 ** 9])
        trace = b"  bash-7   [000]   1.0: <stack_def 5> {0x1}\n  bash-7   [000]   1.0: <stack_id 5>\n"
        for data, args in (golden_map("le64"), ["-"]), (trace, ["-a", "-"]):
            start = int(time.time())
            now = self.profile(data, *args)[1].get(9, [0])
            self.assertTrue(start <= now[0] // 10 ** 9 <= time.time())

    def test_no_symbols(self):
        samples, _ = self.profile(golden_map("bare"), "-")
        self.assertEqual(samples[2], ([f"{TEXT + 0x100:#x}", f"{TEXT + 0x100:#x}",
                                       f"{TEXT + 0x148:#x}"], 12, {}))
        self.assertEqual(self.maps, [(0, 0, "[kernel.kallsyms]", "", 0)])
        self.profile(golden_map("le64"), "-")
        self.assertEqual(self.maps, [(TEXT, 2 ** 64 - 1, "[kernel.kallsyms]",
                                      bytes(range(20)).hex(), 0)])
        samples, prof = self.profile(mkmap.make([]), "-")
        self.assertEqual((samples, len(prof[3])), ([], 1))

    def test_another_boot(self):
        base = TEXT + 0x7000000
        data = mkmap.make([(1, 4, [base + 0x110])], [(mkmap.TEXT, struct.pack("<Q", base))])
        self.profile(data, "-k", KALLSYMS, "--force", "-")
        self.assertEqual(self.maps[0][:2], (base, base + 0x2000))

    def test_trace(self):
        path = self.file("map", golden_map("le64"))
        head, idle = " bash-123     [000]   12.3: ", "   <idle>-0       [000]   12.3: "
        text = (head + "<stack_id 4>\n") * 2 + idle + "<stack_id 4>\n" + head + \
            "<stack trace>\n => a+0x1/0x2 [m]\n => 0x55\n => a+0x1/0x2\n" + \
            "    bash-9       0d..2.   12us : <stack_id 4>\n"
        samples, _ = self.profile(text.encode(), "-k", KALLSYMS, "-a", "-", path)
        bash = {"comm": "bash", "pid": 123}
        self.assertEqual(samples, [(["weak_one"], 2, bash),
                                   (["weak_one"], 1, {"comm": "<idle>", "pid": 0}),
                                   (["a", "0x55", "a"], 1, bash), (["weak_one"], 1, {})])
        self.assertEqual(self.addr["a"], [(0, 2), (0, 0)])
        self.assertEqual(self.maps[1:], [(0, 0, "[m]", "", 1)])
        samples, _ = self.profile(text.encode(), "-k", KALLSYMS, "-t", "1", "-a", "-", path)
        self.assertEqual(samples, [(["weak_one"], 2, bash)])

    def test_nasty_names(self):
        path = os.path.join(self.dir, "k")
        with open(path, "wb") as f:
            f.write(Output.NASTY.encode("latin-1"))
        samples, _ = self.profile(mkmap.make([(1, 5, [0x1010])]), "-k", path, "-")
        self.assertEqual(samples[0][0], ["we\"ird\\na;me \x01\x7f\xc3\xa9\xff</script>"])

    def test_many_blocks(self):
        rnd = random.Random(2)
        stacks = [(i, rnd.randrange(1 << 32), [TEXT + rnd.randrange(0x200) for _ in range(20)])
                  for i in range(4000)]
        samples, _ = self.profile(mkmap.make(stacks), "-k", KALLSYMS, "-o", "id", "-")
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


class Definitions(Case):
    """A trace that defines its stacks: no map is needed."""

    HEAD = "     bash-7       [000] d..2.    12.345678: "
    CMD = "     bash-7       [000]    12.345678: stack_def:            "
    ONE, TWO = "schedule+0x48/0x80", "do_exit+0x7f/0xe0"

    def setUp(self):
        super().setUp()
        self.words = [TEXT + 0x148, TEXT + 0x9F]

    def use(self, stack_id):
        """An event's line with this id."""
        return self.HEAD + f"<stack_id {stack_id}>\n"

    def cmd(self, stack_id, words=None, form="{0x%x}"):
        """A definition as trace-cmd prints it: libtraceevent, or the kernel's __print_array()."""
        words = self.words if words is None else words
        text = ",".join(f"{w:#x}" for w in words) if "{" in form else \
            " ".join(str(w) for w in words)
        return self.CMD + f"<stack_def {stack_id}> " + ("{" + text + "}" if "{" in form else text) \
            + "\n"

    def kernel(self, stack_id, frames=None):
        """A definition as the kernel prints it."""
        frames = frames or [self.ONE, self.TWO]
        return self.HEAD + f"<stack_def {stack_id}>\n" + "".join(f" => {f}\n" for f in frames)

    def tool(self, text, *args, rc=0):
        """Runs the tool on a trace alone, as a file and through a pipe."""
        path = self.file("trace", text)
        out, err = self.run_tool(*args, "-a", path, rc=rc)
        self.assertEqual(self.run_tool(*args, "-a", "-", stdin=text.encode(), rc=rc)[0],
                         out.replace(path, "-"))
        return out, err

    def test_each_form_and_either_order(self):
        frames = f" => {self.ONE}\n => {self.TWO}\n"
        forms = [(self.cmd(42), ["-k", KALLSYMS]), (self.cmd(42, form="%d"), ["-k", KALLSYMS]),
                 (self.CMD + "<stack_def 42>\n=> a (ffffffff81000148)\n=> b (ffffffff8100009f)\n",
                  ["-k", KALLSYMS]),
                 (self.kernel(42), [])]
        for text, args in forms:
            out = self.tool(text + self.use(42), *args)[0]
            self.assertEqual(out, text + self.use(42) + frames)
            out = self.tool(self.use(42) + text, *args)[0]
            self.assertEqual(out, self.use(42) + frames + text if "=>" not in text else
                             self.use(42) + " => [not in this map]\n" + text)
            text = self.use(42) + text + self.use(42)
            self.assertEqual(self.tool(text, "-F", *args)[0], "do_exit;schedule 2\n")
            out = json.loads(self.tool(text, "-S", *args)[0])
            self.assertEqual(out["profiles"][0]["weights"], [2])

    def test_addresses_in_the_text(self):
        text = self.kernel(5, [f"schedule <{TEXT + 0x148:x}>", f"odd <{TEXT + 0x9f:x}>"]) + \
            self.use(5)
        self.assertEqual(self.tool(text, "-F")[0], "odd;schedule 1\n")
        self.assertEqual(self.tool(text, "-F", "-k", KALLSYMS)[0], "do_exit;schedule 1\n")
        text = self.kernel(5, [f"a <{TEXT + 0x148:x}>", f"b <{TEXT - 5:x}>"]) + self.use(5)
        self.assertEqual(self.tool(text, "-F", "-k", KALLSYMS)[0], "b;a 1\n")
        out, err = self.tool(self.cmd(5) + self.use(5), "-F")
        self.assertEqual(out, "0xffffffff8100009f;0xffffffff81000148 1\n")
        self.assertIn("the names in the trace; for addresses, give the kallsyms (-k)", err)
        marker = self.cmd(5, [TEXT + 0x148, mkmap.MARKER]) + self.use(5)
        self.assertIn(" => [FTRACE TRAMPOLINE]\n", self.tool(marker)[0])

    def test_golden(self):
        out, err = self.run_tool("-k", KALLSYMS, "-F", "-a", golden_path("defined.txt"))
        self.assertEqual(out, "do_exit[golden_mod];schedule 1\n"
                         "[FTRACE_TRAMPOLINE];schedule;schedule;do_exit[golden_mod];schedule 1\n"
                         "[FTRACE_TRAMPOLINE];schedule 1\nweak_one;schedule 1\n")
        self.assertNotIn("not defined", err)

    def test_defined_twice(self):
        for text in [self.cmd(5), self.kernel(5)]:
            out, err = self.tool(text * 3 + self.use(5), "-F", "-k", KALLSYMS)
            self.assertEqual(out, "do_exit;schedule 1\n")
            self.assertNotIn("two definitions", err)
        other = [TEXT + 0x149, TEXT + 0x9F]
        for pair in [self.cmd(5) + self.cmd(5, other), self.cmd(5) + self.cmd(5, other[:1]),
                     self.kernel(5) + self.kernel(5, [self.TWO, self.ONE]),
                     self.cmd(5) + self.kernel(5, [self.ONE])]:
            text = pair + self.use(5) + self.cmd(6) + self.use(6)
            out, err = self.tool(text, "-F", "-k", KALLSYMS, rc=1)
            self.assertEqual(out, "do_exit;schedule 1\n")
            self.assertEqual(err.count("stack_id 5 has two definitions that differ"), 1)
            out = self.tool(text, "-q", "-k", KALLSYMS, rc=1)[0]
            self.assertIn(self.use(5) + " => [not in this map]\n", out)

    def test_definitions_complement_a_map(self):
        path = self.file("map", golden_map("le64"))
        text = self.cmd(50) + self.use(50) + self.use(4) + self.use(51)
        out, err = self.run_tool("-k", KALLSYMS, "-F", "-a", "-", path, stdin=text.encode())
        self.assertEqual(out, "do_exit;schedule 1\nweak_one 1\n")
        self.assertIn("1 ids are not in " + path, err)
        err = self.tool(self.cmd(50) + self.use(51), "-k", KALLSYMS)[1]
        self.assertIn("1 ids are not defined there", err)
        # The map may be of another boot.
        same = [TEXT + 0x100, TEXT + 0x100, TEXT + 0x148]
        for words, rc in [(same, 0), (same[:2], 1), ([TEXT, TEXT, TEXT], 1)]:
            text = self.cmd(7, words) + self.use(7)
            out = self.run_tool("-q", "-k", KALLSYMS, "-F", "-a", "-", path, rc=rc,
                                stdin=text.encode())[0]
            self.assertEqual(out, "" if rc else "schedule;do_exit;schedule 1\n")
        text = self.kernel(7, ["a", "b", "c"]) + self.use(7)
        out = self.run_tool("-F", "-a", "-", path, stdin=text.encode())[0]
        self.assertEqual(out, "c;b;a 1\n")

    def test_parts_of_a_split_stack(self):
        path = self.file("map", golden_map("le64"))
        use = self.HEAD + "<stack_split 5 @ffffffff81000100 4>\n"
        for text in [self.cmd(5), self.kernel(5)]:
            out = self.run_tool("-k", KALLSYMS, "-a", "-", path, stdin=(text + use).encode())[0]
            # Addresses in the middle of a stack are looked up one byte back.
            hit = [" => do_exit+0xe0/0xe0\n", " => schedule+0x80/0x80\n"]
            if "=>" in text:
                hit = [" => schedule+0x0/0x80\n", " => weak_one+0x0/0x80\n"]
            self.assertEqual(out, text + use + f" => {self.ONE}\n => {self.TWO}\n" + "".join(hit))

    def test_what_only_looks_like_a_definition(self):
        good = self.cmd(5)
        for line in [good.replace(",", ";"), good.replace("}", ""), good.replace("{", ""),
                     good.replace("}", ")"), good.replace("def 5", "def 4294967301"),
                     good.replace("}", "} x"), good.replace("stack_def:", "print:"),
                     good.replace("def 5", "def -5"), good.replace("def 5", "def 2147483648"),
                     self.CMD + "<stack_def 5> {}\n", self.CMD + "<stack_def 5> \n",
                     self.HEAD + "tracing_mark_write: <stack_def 5> {0x1}\n",
                     self.cmd(5, [1] * 1025), self.cmd(5, [1 << 64]), good[:-1]]:
            out = self.tool(self.cmd(6) + self.use(5) + line, "-q", "-F")[0]
            self.assertEqual(out, "", line)

    def test_cut_anywhere(self):
        for text in [self.cmd(5), self.cmd(5, form="%d"), self.kernel(5)]:
            text += self.use(5)
            for cut in range(len(text) + 1):
                out = self.run_tool("-q", "-F", "-k", KALLSYMS, "-a", "-", self.file(
                    "map", mkmap.make([])), stdin=(self.use(5) + text[:cut]).encode())[0]
                # The next line tells that no frame is cut off.
                known = cut >= text.rindex("     bash") + 2 * ("=>" in text)
                want = known + (known and cut >= len(text) - 1)
                self.assertEqual(out, f"do_exit;schedule {want:d}\n" if want else "", text[:cut])

    def test_pipe_that_is_no_stdin(self):
        text = self.use(5) + self.kernel(5) + self.use(5)
        fifo = os.path.join(self.dir, "fifo")
        os.mkfifo(fifo)
        with subprocess.Popen([TOOL, "-q", "-F", "-a", fifo], stdout=subprocess.PIPE) as tool:
            with open(fifo, "w", encoding="ascii") as f:
                f.write(text)
            self.assertEqual(tool.stdout.read(), b"do_exit;schedule 2\n")


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
    """Stacks of user space, in a map and in a trace."""

    # The address of a function of the kernel: some machines use the same ones in user space.
    USER = [TEXT + 0x148, 0x5500, 0x5600]
    HEAD = "            bash-123     [000] d..2.  1000.000001: "
    KERNEL = "schedule;do_exit;schedule"
    FULL = f"0x5600[user];0x5500[user];{TEXT + 0x148:#x}[user]"

    def map(self, order="<"):
        """The golden map with a stack of user space."""
        return mkmap.make([*mkmap.golden_stacks(TEXT, 0xFFFFFFFFC0201000),
                           (9, 6, self.USER, 1)], order=order)

    def trace(self, text, *args, rc=0):
        """Runs the tool on a trace and this map."""
        path = self.file("map", self.map())
        return self.run_tool("-k", KALLSYMS, *args, "-a", "-", path, stdin=text.encode(), rc=rc)

    def folded(self, text, *args):
        """The folded stacks of a trace, sorted by their numbers."""
        return self.trace(text, "-F", *args)[0]

    def line(self, text, task="bash-123", cpu=0, flags="d..2.", usec=1):
        """A line of trace."""
        return f"{task:>20}   [{cpu:03}] {flags}  1000.{usec:06}: {text}\n"

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

    GOLDEN = """\
[cat];[cat];schedule;do_exit;schedule 2
[cat];[cat];weak_one 1
0x7ffd1a10[user];[dog];weak_one 1
[dog];schedule 1
0x77[user];0x5581c0a0d123[user] 1
"""
    CAT = " => /nonexistent/cat+0xe123\n => /nonexistent/cat+0xe456\n"

    def test_golden(self):
        """Each form of a stack, of three processes, two of which are known."""
        self.file("stack_map_bin", golden_map("le64"))
        self.file("kallsyms", golden_text("kallsyms64"))
        out = self.run_tool("-F", self.dir, "-a", golden_path("user.txt"))[0]
        self.assertNotIn("[cat]", out)
        self.file("user_maps", golden_text("user_maps"))
        out, err = self.run_tool("-F", self.dir, "-a", golden_path("user.txt"))
        want = self.GOLDEN.replace("0x7ffd1a10[user];[dog]", "[vdso];[dog_(deleted)]")
        self.assertEqual(out, want)
        self.assertIn("1 stacks of user space were overwritten", err)
        self.assertIn("2 ids are not in", err)
        out = self.run_tool("-q", self.dir, "-a", golden_path("user.txt"))[0]
        self.assertEqual(out.count(self.CAT), 4)
        self.assertEqual(self.run_tool("-q", self.dir, "-a", "-", stdin=out.encode())[0], out)

    def test_equal_words(self):
        words = [TEXT + 0x148, 0x5500]
        data = mkmap.make([(1, 2, words), (2, 3, words, 1)])
        out = self.dump(data, "--summary")
        self.assertIn("stacks: 2\nframes: 4\nstacks of user space: 1\n", out)
        self.assertIn("duplicates: 0 stacks, 0 ids", out)
        out = self.dump(data, "-F")
        self.assertEqual(out, f"0x5500[user];{words[0]:#x}[user] 3\n0x5500;{words[0]:#x} 2\n")
        old = self.file("old", mkmap.make([(7, 5, words)]))
        heads = re.findall(r"^[-+].*", self.dump(data, "--diff", old), re.M)
        self.assertEqual(heads, ["-3 moved stack_id 1 [ref 2, depth 2]",
                                 "+3 new user_stack_id 2 [ref 3, depth 2]"])
        heads = re.findall(r"^[-+].*", self.dump(mkmap.make([(7, 6, words, 1)]), "--diff", old),
                           re.M)
        self.assertEqual(heads, ["+6 new user_stack_id 7 [ref 6, depth 2]",
                                 "-5 gone stack_id 7 [ref 5, depth 2]"])
        self.assertNotIn("user space", self.dump(golden_map("le64"), "--summary"))

    def test_halves(self):
        kernel, user = "<stack_id 7>", "<user_stack_id 9>"
        both = f"{self.FULL};{self.KERNEL}"
        for lines, want in [
                ([("e: x", {}), (kernel, {}), (user, {})], {both: 1}),
                ([("e: x", {}), (user, {})], {self.FULL: 1}),
                ([("e: x", {}), (kernel, {})], {self.KERNEL: 1}),
                ([("e: x", {}), (kernel, {}), ("e: y", {}), (user, {})],
                 {self.KERNEL: 1, self.FULL: 1}),
                # Another CPU writes meanwhile.
                ([("e: x", {}), ("e: y", {"cpu": 1}), (kernel, {}), (kernel, {"cpu": 1}),
                  (user, {}), (user, {"cpu": 1})], {both: 2}),
                # An interrupt comes between the stacks.
                ([("e: x", {}), (kernel, {}), ("i: y", {"flags": "d.h2."}),
                  ("<stack_id 4>", {"flags": "d.h2."}), (user, {})],
                 {both: 1, "weak_one": 1}),
                ([("e: x", {}), (kernel, {}), ("i: y", {"flags": "d.h2."}),
                  ("<stack_id 4>", {"flags": "d.h2."}), (user, {"flags": "d.h2."}), (user, {})],
                 {both: 1, f"{self.FULL};weak_one": 1}),
                ([(kernel, {})] + [("<stack_id 4>", {"flags": f"d.h{i}."}) for i in range(9)] +
                 [(user, {}), ("<stack_id 4>", {}), (user, {})],
                 {both: 1, "weak_one": 9, f"{self.FULL};weak_one": 1}),
                ([("<stack_id 4>", {"flags": "d.h2."}), (kernel, {}), (kernel, {}),
                  (user, {"flags": "d.h2."}), (user, {})],
                 {f"{self.FULL};weak_one": 1, self.KERNEL: 2, self.FULL: 1}),
                # Another task.
                ([(kernel, {}), (user, {"task": "cat-5"})], {self.KERNEL: 1, self.FULL: 1}),
                ([(kernel, {}), ("<stack_id 4>", {"task": "cat-5"}), (user, {})],
                 {self.KERNEL: 1, "weak_one": 1, self.FULL: 1}),
                ([(kernel, {}), ("<stack_id 4>", {"flags": "d.h2."}), (user, {}), (user, {})],
                 {both: 1, "weak_one": 1, self.FULL: 1}),
                ([(kernel, {}), (user, {}), (user, {})], {both: 1, self.FULL: 1}),
                # Each id is of one kind.
                ([(kernel, {}), ("<user_stack_id 7>", {})], {self.KERNEL: 1}),
                ([("<stack_id 9>", {}), (user, {})], {self.FULL: 1}),
                ([("<stack_id 99>", {}), (user, {})], {self.FULL: 1}),
                ([("<stack_split 7 @ffffffff81000148 9>", {})], {}),
                ([(kernel, {}), (user + " (stale)", {})], {both: 1}),
                ([(kernel, {}), ("stack_def: <stack_def 50> {0x1}", {}),
                  ("user_stack_id:     " + user, {})], {both: 1})]:
            text = "".join(self.line(t, **kw) for t, kw in lines)
            got = dict(x.rsplit(" ", 1) for x in self.folded(text).splitlines())
            self.assertEqual({k: int(n) for k, n in got.items()}, want, text)
        text = (kernel + "\n" + user + "\n") * 2 + "e: x\n" + user + "\n"
        self.assertEqual(self.folded(text), f"{both} 2\n{self.FULL} 1\n")
        err = self.trace(self.line("<user_stack_id 7>") + self.line("<stack_id 9>"), "-F")[1]
        self.assertIn("2 ids are not in", err)

    def test_cookies(self):
        kernel, cookie = self.line("<stack_id 7>"), self.line("<user_unwind_cookie 300000001>")
        by_id = self.line("<user_unwind_stack_id 300000001 9>", cpu=1)
        full = self.line("<user_unwind_stack 300000001>") + \
            "".join(f" =>  <{ip:016x}>\n" for ip in self.USER)
        words = self.line("user_unwind_stack:   <user_unwind_stack 300000001> {" +
                          ",".join(f"{ip:#x}" for ip in self.USER) + "}")
        both = f"{self.FULL};{self.KERNEL}"
        for stack in [by_id, full, words, words.replace("}", "").replace("{", "")]:
            text = self.line("e: x") + kernel + cookie + self.line("e: x") + kernel + cookie + \
                self.line("e: z") + cookie
            for trace in [text + stack, stack + text]:
                self.assertEqual(self.folded(trace), f"{both} 2\n{self.FULL} 1\n")
        out, err = self.trace(text, "-F")
        self.assertEqual(out, f"{self.KERNEL} 2\n")
        self.assertIn("3 stacks of user space were overwritten or not yet taken", err)
        # A cookie may have two stacks, of which one is empty.
        empty = full[:full.index(" =>")]
        for trace in [full + empty, empty + full, empty + by_id, by_id + empty]:
            self.assertEqual(self.folded(trace + kernel + cookie), f"{both} 1\n", trace)
        # A stack whose events are gone counts for nothing.
        self.assertEqual(self.folded(by_id + full.replace("1>", "2>")), "")
        for bad in ["<user_unwind_cookie 3000", "<user_unwind_cookie x>\n",
                    "<user_unwind_cookie 11111111111111111>\n", "<user_unwind_cookie 1 >\n",
                    "<user_unwind_stack_id 1>\n", "<user_unwind_stack_id 1 -9>\n",
                    "<user_unwind_stack_id 1 9 @1 7>\n", "<user_unwind_stack 1> {}\n",
                    "<user_stack_id >\n", "<user_stack_id 4294967305>\n",
                    "<user_stack_id 9 @1 7>\n"]:
            self.assertEqual(self.folded(self.HEAD + bad), "", bad)
            out, err = self.trace(self.HEAD + bad)
            self.assertEqual(out, self.HEAD + bad)
            self.assertNotIn("overwritten", err)

    def test_annotate(self):
        raw = "".join(f" => {ip:#x}\n" for ip in self.USER)
        kernel = " => schedule+0x0/0x80\n => do_exit+0xe0/0xe0\n => schedule+0x48/0x80\n"
        lines = [self.line("<stack_id 7>"), self.line("<user_stack_id 9>"),
                 self.line("<user_unwind_cookie 30>"), self.line("<user_unwind_cookie 40>"),
                 self.line("<user_unwind_stack_id 30 9>"), self.line("<user_stack_id 7>")]
        out, err = self.trace("".join(lines))
        want = [lines[0] + kernel, lines[1] + raw, lines[2] + raw, lines[3], lines[4] + raw,
                lines[5] + " => [not in this map]\n"]
        self.assertEqual(out, "".join(want))
        self.assertIn("1 stacks of user space were overwritten", err)
        self.assertIn("1 ids are not in", err)
        self.assertEqual(self.trace(out)[0], "".join(want))
        full = self.line("<user_unwind_stack 50>") + " =>  <0000000000005500>\n"
        text = full + self.line("<user_unwind_cookie 50>") + self.line("<user stack trace>") + \
            " => /usr/bin/cat[+0x12]\n" + self.line("e: x")
        out = self.trace(text)[0]
        self.assertEqual(out, text.replace("cookie 50>\n", "cookie 50>\n => 0x5500\n"))
        words = self.line("user_unwind_stack:  <user_unwind_stack 50> {0x5500}")
        self.assertEqual(self.trace(words)[0], words + " => 0x5500\n")

    def test_full_stacks(self):
        kernel = self.line("<stack trace>") + " => schedule+0x48/0x80\n"
        full = self.line("<user stack trace>")
        frames = " => /lib/lib c++.so.6[+0x12] <00007f0000000012>\n => /bin/cat[+0x1]\n" \
            " =>  <0000000000000077>\n"
        self.assertEqual(self.folded(kernel + full + frames),
                         "0x77[user];[cat];[lib_c++.so.6];schedule 1\n")
        self.assertEqual(self.folded(kernel + full + " =>  <0000000000000077>\n"),
                         "0x77[user];schedule 1\n")
        # A stack without frames, and one that is cut off.
        self.assertEqual(self.folded(kernel + full), "schedule 1\n")
        out, err = self.trace(kernel + full + " =>  <0000", "-F")
        self.assertEqual(out, "schedule 1\n")
        self.assertIn("left out 1 stacks that are cut off", err)
        # trace-cmd prints 8 frames.
        cmd = "   bash-124   [000]  1000.000001: user_stack:           " + \
            "\t=> 0x5581c0a0d123\n\t=> 0x5600\n" + "\t=> 0x0\n" * 6 + "\n"
        kernel = "   bash-124   [000]  1000.000001: stack_id:             <stack_id 7>\n"
        self.assertEqual(self.folded(kernel + cmd),
                         f"0x5600[user];0x5581c0a0d123[user];{self.KERNEL} 1\n")
        zeros = re.sub("=> 0x[0-9a-f]+", "=> 0x0", cmd)
        out, err = self.trace(kernel + zeros, "-F")
        self.assertEqual(out, self.KERNEL + " 1\n")
        self.assertNotIn("cut off", err)
        self.assertEqual(self.folded(zeros), "")
        self.assertEqual(self.trace(cmd)[0], cmd)
        self.file("stack_map_bin", golden_map("le64"))
        self.file("user_maps", golden_text("user_maps"))
        out = self.run_tool("-q", self.dir, "-a", "-", stdin=cmd.encode())[0]
        self.assertEqual(out, cmd[:cmd.index("\t")] + "<user stack trace>\n"
                         " => /nonexistent/cat+0xe123\n => 0x5600\n\n")
        self.assertEqual(self.run_tool("-q", self.dir, "-a", "-", stdin=out.encode())[0], out)
        kernel = self.line("<stack trace>") + " => schedule+0x48/0x80\n"
        # What --annotate has printed.
        self.assertEqual(self.folded(kernel + full + " => main+0x12\n => a+b\n"),
                         "a+b[user];main[user];schedule 1\n")

    def test_definitions(self):
        kernel = self.line("<stack_id 50>")
        text = self.line("<stack_def 50>") + " => schedule+0x48/0x80\n" + kernel + \
            self.line("<user_stack_def 51>") + " =>  <0000000000005500>\n" + \
            " =>  <00007f12a4b3c4d5>\n" + self.line("<user_stack_id 51>")
        cmd = self.line("stack_def:  <stack_def 50> {0xffffffff81000148}") + kernel + \
            self.line("user_stack_def:   <user_stack_def 51> {0x5500,0x7f12a4b3c4d5}") + \
            self.line("user_stack_id:    <user_stack_id 51>")
        for trace in [text, cmd]:
            out = self.run_tool("-q", "-k", KALLSYMS, "-F", "-a", "-", stdin=trace.encode())[0]
            self.assertEqual(out, "0x7f12a4b3c4d5[user];0x5500[user];schedule 1\n")
        text = cmd.replace("stack_def 50> {0xffffffff81000148}", "stack_def 51> {0x5500,0x1}")
        err = self.run_tool("-F", "-a", "-", stdin=text.encode(), rc=1)[1]
        self.assertIn("stack_id 51 has two definitions that differ", err)

    def test_perf_script(self):
        text = "".join(self.line(t, usec=i, flags=f) for i, (t, f) in enumerate(
            [("a: x=1", "d..2."), ("<stack_id 4>", "d..2."), ("b: x=2", "d.h2."),
             ("<stack_id 4>", "d.h2."), ("<user_stack_id 9>", "d.h2."),
             ("<user_stack_id 9>", "d..2."), ("c: x=3", "d..2."), ("<stack_id 4>", "d..2."),
             ("d: x=4", "d..2."), ("<user_stack_id 9>", "d..2.")]))
        out = self.trace(text, "--perf-script")[0]
        samples = [s.split("\n\t") for s in out.split("\n\n")[:-1]]
        four = ["ffffffff81000180 weak_one+0x0 ([kernel.kallsyms])"]
        user = [f"{ip:16x} {ip:#x} ([unknown])" for ip in self.USER]
        self.assertEqual([(" ".join(s[0].split()[3:]), s[1:]) for s in samples],
                         [("1000.000002: b: x=2", four + user),
                          ("1000.000002: a: x=1", four + user),
                          ("1000.000006: c: x=3", four), ("1000.000008: d: x=4", user)])
        out = self.trace(text, "--perf-script", "-g", "0x5500")[0]
        self.assertEqual(out.count("\n\n"), 3)


class UserSymbols(Case):
    """The functions of programs: user_maps and ELF files."""

    HEAD = User.HEAD

    def setUp(self):
        super().setUp()
        err = self.run_tool("-v", "/nonexistent", "-", stdin=mkmap.make([]), rc=1)[1]
        if "built without elfutils" in err:
            self.skipTest("built without elfutils")
        self.file("stack_map_bin", mkmap.make([(4, 1, [TEXT + 0x180])]))
        self.file("kallsyms", golden_text("kallsyms64"))
        self.prog = self.build("-pie", "-fPIE")

    def build(self, *flags, name="prog"):
        """Compiles the program, and finds its symbols and segments."""
        path = os.path.join(self.dir, name)
        subprocess.run(["cc", "-g", "-O1", "-fno-omit-frame-pointer", *flags,
                        "-Wl,--build-id=0x" + "ab" * 20, "-o", path,
                        self.file("prog.c", PROGRAM)], check=True)
        out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        self.addr = {f[-1]: int(f[0], 16) for f in map(str.split, out.splitlines())
                     if len(f) == 3}
        out = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True,
                             check=True).stdout
        load = [line.split() for line in out.splitlines() if line.startswith("  LOAD")]
        self.load = [(int(f[1], 16), int(f[2], 16), int(f[5], 16)) for f in load if "E" in f[6:8]
                     or "E" in "".join(f[6:-1])][0]
        return path

    def mapping(self, tgid, base, path, build_id="ab" * 20):
        """A line of user_maps: the program's text, loaded at base."""
        off, addr, size = self.load
        start = (base + addr) & ~0xFFF
        end = (base + addr + size + 0xFFF) & ~0xFFF
        return f"map {tgid} {start:x}-{end:x} {off & ~0xFFF:x} {build_id} {path}\n"

    def frames(self, ips, tid=123, text="", args=(), rc=0):
        """The frames of one stack."""
        if text:
            self.file("user_maps", text)
        trace = f"   bash-{tid:<9}     [000] d..2.  1000.000001: <user_unwind_stack 1> {{" + \
            ",".join(f"{ip:#x}" for ip in ips) + "}\n"
        out, self.err = self.run_tool(*args, "-a", "-", self.dir, stdin=trace.encode(), rc=rc)
        return [line[4:] for line in out.splitlines()[1:]]

    def test_static_and_pie(self):
        for flags, base in [(("-pie", "-fPIE"), 0x7F1200000000), (("-static", "-no-pie"), 0)]:
            path = self.build(*flags)
            main, inner = self.addr["main"], self.addr["inner_static"]
            ips = [base + inner, base + self.addr["outer_global"] + 9, base + main + 5]
            self.assertEqual(self.frames(ips, text=self.mapping(123, base, path)),
                             ["inner_static+0x0", "outer_global+0x9", "main+0x5"])
            # A return address at the start of the next function.
            after = min(a for a in self.addr.values() if a > inner)
            got = self.frames([base + after, base + after])[1]
            self.assertIn(got.split("+")[0], ("inner_static", "mark_inner"))
            subprocess.run(["strip", path], check=True)
            off, addr, _ = self.load
            self.assertEqual(self.frames([base + main]), [f"{path}+{main - addr + off:#x}"])

    def test_dynamic_symbols(self):
        path = self.build("-pie", "-fPIE", "-rdynamic")
        subprocess.run(["strip", path], check=True)
        base = 0x5500000000
        got = self.frames([base + self.addr["outer_global"] + 1], text=self.mapping(123, base,
                                                                                     path))
        self.assertEqual(got, ["outer_global+0x1"])

    def test_debug_file_and_symfs(self):
        base, root = 0x5500000000, os.path.join(self.dir, "root")
        debug = os.path.join(root, "usr/lib/debug/.build-id/ab", "ab" * 19 + ".debug")
        os.makedirs(os.path.dirname(debug))
        os.makedirs(os.path.join(root, "usr/bin"))
        subprocess.run(["objcopy", "--only-keep-debug", self.prog, debug], check=True)
        subprocess.run(["strip", "-o", os.path.join(root, "usr/bin/prog"), self.prog], check=True)
        text = self.mapping(123, base, "/usr/bin/prog")
        ips = [base + self.addr["inner_static"] + 1]
        self.assertEqual(self.frames(ips, text=text, args=["--symfs", root]), ["inner_static+0x1"])
        os.remove(debug)
        got = self.frames(ips, args=["--symfs", root])[0]
        self.assertTrue(got.startswith("/usr/bin/prog+0x"), got)
        self.assertNotIn("not here", self.err)
        text = text.replace("usr/bin", "nonexistent")
        self.assertTrue(self.frames(ips, text=text)[0].startswith("/nonexistent/prog+0x"))
        self.assertIn("1 files with functions of user space are not here (--symfs DIR)", self.err)

    def test_build_id(self):
        base = 0x5500000000
        ips = [base + self.addr["main"], base + self.addr["outer_global"] + 1]
        got = self.frames(ips, text=self.mapping(123, base, self.prog, "cd" * 20))
        self.assertTrue(all(f.startswith(self.prog + "+0x") for f in got), got)
        self.assertEqual(self.err.count("has another build id than the file that was mapped"), 1)
        self.assertEqual(self.frames(ips, text=self.mapping(123, base, self.prog, "-")),
                         ["main+0x0", "outer_global+0x1"])

    def test_file_cut_off_meanwhile(self):
        """By someone who writes another version over it."""
        base = 0x5500000000
        self.file("user_maps", self.mapping(123, base, self.prog))
        line = f"   bash-123   [000] d..2.  1000.000001: user_unwind_stack: <user_unwind_stack 1> "
        trace = (line + f"{{{base + self.addr['main']:#x}}}\n") * 50000 + \
            line + f"{{{base + self.addr['outer_global'] + 1:#x}}}\n"
        with subprocess.Popen([TOOL, "-q", "-a", self.file("text", trace), self.dir],
                              stdout=subprocess.PIPE) as p:
            self.assertEqual(p.stdout.read(1), b" ")
            os.truncate(self.prog, 0)
            out = p.stdout.read()
        self.assertEqual(p.returncode, 0)
        self.assertTrue(out.endswith(b" => outer_global+0x1\n"), out[-100:])

    def test_control_characters(self):
        """Names of files and functions do nothing to a terminal."""
        base = 0x5500000000
        with open(self.prog, "rb") as f:
            data = f.read()
        path = self.file("prog\x1b[2Jé", data.replace(b"inner_static\0", b"inner\x1bstatic\0"))
        text = self.mapping(123, base, path, "-").encode() + \
            self.mapping(123, 2 * base, self.file("ok", data.replace(
                b"inner_static\0", b"inner\x1bstatic\0"))).encode()
        ips = [2 * base + self.addr["inner_static"], base + self.addr["inner_static"]]
        got = self.frames(ips, text=text)
        self.assertNotIn("\x1b", "".join(got))
        self.assertIn("prog?[2Jé".encode().decode("latin-1"), got[1])
        trace = f"   bash-123   [000] d..2.  1000.000001: e: x\n" \
            f"   bash-123   [000] d..2.  1000.000001: <user stack trace>\n =>  <{ips[1]:016x}>\n"
        for form in ["-F", "--perf-script"]:
            out = self.run_tool(form, "-a", "-", self.dir, stdin=trace.encode())[0]
            self.assertNotIn("\x1b", out)

    def test_processes(self):
        base, other = 0x5500000000, 0x6600000000
        main = self.addr["main"]
        one = self.mapping(100, base, self.prog)
        ip = [base + main]
        raw = [f"{base + main:#x}"]
        self.assertEqual(self.frames(ip, 123, one), raw)
        self.assertEqual(self.frames(ip, 123, one + "task 123 100\n"), ["main+0x0"])
        self.assertEqual(self.frames(ip, 123, one + "task 123 99\ntask 123 100\n"), ["main+0x0"])
        self.assertEqual(self.frames(ip, 123, one + "fork 123 100\n"), ["main+0x0"])
        self.assertEqual(self.frames(ip, 123, "fork 123 100\n" + one), raw)
        self.assertEqual(self.frames(ip, 123, one + "fork 7 100\nfork 123 7\n"), ["main+0x0"])
        self.assertEqual(self.frames(ip, 100, "task 100 99\n" + one), ["main+0x0"])
        self.assertEqual(self.frames(ip, 100, one + "task 100 99\n"), raw)
        # Newer mappings count more, here and there.
        gone = f"map 123 {base:x}-{base + 0x10000000:x} 0 -\n"
        self.assertEqual(self.frames(ip, 123, one + "fork 123 100\n" + gone), raw)
        self.assertEqual(self.frames(ip, 123, gone + one + "fork 123 100\n"), ["main+0x0"])
        self.assertEqual(self.frames(ip, 123, one + "fork 123 100\n" + gone +
                                     "fork 123 100\n"), ["main+0x0"])
        # No process is its own parent, but a damaged file may say so.
        self.assertEqual(self.frames([base + main, 1], 123, self.mapping(123, base, self.prog) +
                                     "fork 123 123\n"), ["main+0x0", "0x1"])
        self.assertEqual(self.frames([1], 123, "fork 7 123\nfork 123 7\nfork 7 123\n"), ["0x1"])
        vdso = "map 123 7ffd1000-7ffd2000 0 - [vdso]\n"
        self.assertEqual(self.frames([0x7FFD1A10, 0x7FFD1A12], 123, vdso),
                         ["[vdso]+0xa10", "[vdso]+0xa12"])
        text = self.mapping(100, base, self.prog) + self.mapping(200, other, self.prog)
        trace = "".join(f"  x-{pid}  [000] d..2.  1.000001: <user stack trace>\n"
                        f" =>  <{b + main:016x}>\n" for pid, b in [(100, base), (200, other),
                                                                   (200, base)])
        self.file("user_maps", text)
        out = self.run_tool("-q", "-F", "-a", "-", self.dir, stdin=trace.encode())[0]
        self.assertEqual(out, f"main[prog] 2\n{base + main:#x}[user] 1\n")
        # options/record-tgid
        trace = "  x-7     (    100) [000] d..2.  1.000001: <user stack trace>\n" + \
            f" =>  <{base + main:016x}>\n"
        out = self.run_tool("-q", "-F", "-a", "-", self.dir, stdin=trace.encode())[0]
        self.assertEqual(out, "main[prog] 1\n")

    def test_profiles(self):
        base = 0x5500000000
        main, outer = self.addr["main"], self.addr["outer_global"]
        head = "   bash-123   [000] d..2.  1000.000001: "
        vdso = 0x7FFD1A10
        self.file("user_maps", self.mapping(123, base, self.prog) +
                  "map 123 7ffd1000-7ffd2000 0 - [vdso]\n")
        self.file("trace", head + "e: x\n" + head + "<stack_id 4>\n" + head +
                  f"<user stack trace>\n =>  <{vdso:016x}>\n =>  <{base + outer + 9:016x}>\n"
                  f" =>  <{base + main + 5:016x}>\n")
        out = self.run_tool("-q", "-F", self.dir)[0]
        self.assertEqual(out, "main[prog];outer_global[prog];[vdso];weak_one 1\n")
        out = self.run_tool("-q", "--perf-script", self.dir)[0]
        self.assertEqual(out.split("\n")[1:-2], [
            "\tffffffff81000180 weak_one+0x0 ([kernel.kallsyms])",
            f"\t{vdso:16x} [unknown] ([vdso])",
            f"\t{base + outer + 9:16x} outer_global+0x9 ({self.prog})",
            f"\t{base + main + 5:16x} main+0x5 ({self.prog})"])
        out = json.loads(self.run_tool("-q", "-S", self.dir)[0])
        self.assertEqual([f["name"] for f in out["shared"]["frames"]],
                         ["weak_one", "[vdso]", "outer_global[prog]", "main[prog]"])
        pprof = Pprof()
        pprof.dir = self.dir
        samples, _ = pprof.profile(b"", self.dir)
        self.assertEqual(samples, [(["weak_one", "vdso", "outer_global", "main"], 1,
                                    {"comm": "bash", "pid": 123})])
        maps = {m[2]: m for m in pprof.maps}
        off, addr, size = self.load
        limit = (off + size + 0xFFF) & ~0xFFF
        self.assertEqual(maps[self.prog], (0, limit, self.prog, "ab" * 20, 1))
        self.assertEqual(maps["[vdso]"], (0, 0x1000, "[vdso]", "", 0))
        place = [m[2] for m in pprof.maps].index(self.prog) + 1
        self.assertEqual(pprof.addr["main"], [(main + 4 - addr + off, place)])

    def test_owners(self):
        """A map with a trace beside it."""
        base = 0x5500000000
        words = [base + self.addr["outer_global"] + 1, base + self.addr["main"] + 1]
        names = "  [0] outer_global+0x1\n  [1] main+0x1\n"
        raw = "".join(f"  [{i}] {w:#x}\n" for i, w in enumerate(words))
        self.file("stack_map_bin", mkmap.make([(4, 1, words), (9, 1, words, 1)]))
        other = self.mapping(300, base, self.prog).replace(f"{self.load[0] & ~0xFFF:x} ab", "0 ab")
        self.file("user_maps", self.mapping(100, base, self.prog) + "fork 200 100\n" + other)
        for lines, want in [([(100, "<user_stack_id 9>")], names), ([], raw),
                            ([(7, "<user_stack_id 9>")], raw),
                            ([(100, "<stack_id 9>"), (100, "<user_stack_id 4>")], raw),
                            ([(7, "<user_unwind_stack_id 1 9>"),
                              (200, "<user_unwind_stack_id 2 9>")], names),
                            ([(100, "<user_stack_id 9>"), (200, "<user_stack_id 9>")], names),
                            ([(100, "<user_stack_id 9>"), (300, "<user_stack_id 9>")], raw)]:
            self.file("trace", "".join(f"   x-{pid}   [000] d..2.  1000.000001: {text}\n"
                                       for pid, text in lines))
            out = self.run_tool("-q", "-o", "id", self.dir)[0]
            self.assertIn("user_stack_id 9 [ref 1, depth 2]\n" + want, out, lines)
            self.assertIn("stack_id 4 [ref 1, depth 2]\n" + raw, out)
        out = self.run_tool("-q", "--diff", self.dir, self.dir)[0]
        self.assertEqual(out, "")

    def test_damage(self):
        good = self.mapping(123, 0x5500000000, self.prog) + "task 5 123\nfork 7 5\n"
        ips = [0x5500000000 + self.addr["main"]]
        for cut in range(0, len(good), 5 if SANITIZED else 1):
            got = self.frames(ips, text=good[:cut] or "\n")
            whole = cut and good[cut - 1] == "\n"
            self.assertEqual(got, ["main+0x0"] if whole else [f"{ips[0]:#x}"], good[:cut])
            self.assertEqual("user_maps: byte" in self.err, not whole)
        for bad in ["map 1 2-3 4\n", "map x 2-3 4 -\n", "map 1 2 3 4 -\n", "map 1 2-3 4 abc\n",
                    "map 1 2-3 4 " + "ab" * 65 + " x\n", "task 1\n", "task 1 2 3\n", "fork 1 x\n",
                    "task 4294967296 1\n", "map 1 -1-3 4 -\n", "maps\n", "fork 1 2\0\n"]:
            self.assertEqual(self.frames(ips, text=good + bad), [f"{ips[0]:#x}"], bad)
            self.assertIn(f"user_maps: byte {len(good)}: not a line of user_maps", self.err)
        not_elf = self.file("text", "no elf")
        text = self.mapping(123, 0x5500000000, not_elf)
        self.assertTrue(self.frames(ips, text=text)[0].startswith(not_elf + "+0x"))
        for cut in [0, 1, 16, 63, 64, 100, 1000, 5000]:
            with open(self.prog, "rb") as f:
                path = self.file("cut", f.read(cut))
            self.frames(ips, text=self.mapping(123, 0x5500000000, path))


class Usage(Case):
    """The command line."""

    def test_help(self):
        out = self.run_tool("--help")[0]
        self.assertIn("Examples:", out)
        man = os.path.join(HERE, "../../../../Documentation/tools/stackmap_dump.rst")
        with open(man, encoding="utf-8") as f:
            text = f.read()
        for option in re.findall(r"--[a-z][a-z-]+", out):
            self.assertIn(option, text)

    def test_version(self):
        for option in ["--version", "-V"]:
            self.assertRegex(self.run_tool(option)[0], r"^stackmap_dump \d+\.\d+\n$")

    def test_wrong_usage(self):
        for args in [["--nosuch"], ["--top", "x", "-"], ["--top", "0", "-"],
                     ["--top", "-1", "-"], ["--top"],
                     ["--sort", "name", "-"], ["--grep", "(", "-"], ["-F", "-j", "-"],
                     ["a", "b"], ["--lines", "-"], ["-i", "../x"], ["-i", "x", "file"],
                     ["--min-ref", "4294967296", "-"], ["--text-base", "zz", "-"],
                     ["--annotate", "-", "-"], ["-j", "-a", "x", "-"],
                     ["-F", "-M", "-a", "x", "y"], ["-M", "-"], ["-s", "-M", "-"],
                     ["save"], ["save", "a", "b"], ["-i", "x", "save"], ["--diff", "-", "-"],
                     ["-a", "x", "-a", "y", "-"], ["-d", "x", "-d", "y", "-"],
                     ["-v", "x", "-v", "y", "-"], ["-i", "x", "-i", "y"]]:
            out, err = self.run_tool(*args, rc=2)
            self.assertEqual(out, "")
            self.assertTrue(err)

    def test_options_that_would_be_ignored(self):
        modes = {"": "-q", "F": "-F", "j": "-j", "S": "-S", "a": "-atrace", "d": "-dold", "s": "-s"}
        unused = {"-l": "FSs", "-oid": "ads", "-t1": "as", "-m1": "as", "-gx": "as"}
        for option, refused in unused.items():
            for mode, arg in modes.items():
                used = mode not in refused if mode else True
                args = [option, arg, *(["-vx"] if option == "-l" else []), "/nonexistent"]
                err = self.run_tool(*args, rc=1 if used else 2)[1]
                self.assertEqual("form of output does not use it" in err, not used, args)
        for arg in [modes["F"], modes["S"]]:
            self.run_tool("-t1", "-g", "x", "-atrace", arg, "/nonexistent", rc=1)
        for option in ["-l", "-b1"]:
            self.assertIn(": needs --vmlinux", self.run_tool(option, "-", rc=2)[1])
        for option in [*unused, *list(modes.values())[1:], "-p", "-kx", "-vx", "-b1", "-f"]:
            new = os.path.join(self.dir, "new")
            self.run_tool(option, "save", new, rc=2)
            self.run_tool("save", new, option, rc=2)
            self.assertFalse(os.path.exists(new))

    def test_no_live_map(self):
        if os.path.exists("/sys/kernel/tracing/stack_map_bin"):
            self.skipTest("this kernel has a stack map")
        self.assertIn("stack_map_bin", self.run_tool(rc=1)[1])
        self.assertIn("instances/x/stack_map_bin", self.run_tool("-i", "x", rc=1)[1])

    def test_save_without_a_map(self):
        if os.path.exists("/sys/kernel/tracing/stack_map_bin"):
            self.skipTest("this kernel has a stack map")
        self.run_tool("save", os.path.join(self.dir, "new"), rc=1)


class Record(Case):
    """record, as far as it needs no kernel: guest tests have the rest."""

    def record(self, *args, rc=1):
        """Runs record, which fails; returns what it said."""
        out, err = self.run_tool("record", *args, rc=rc)
        self.assertEqual(out, "")
        self.assertEqual(err.count("\n"), 1, err)
        return err

    def test_help(self):
        out = self.run_tool("record", "--help")[0]
        man = os.path.join(HERE, "../../../../Documentation/tools/stackmap_dump.rst")
        with open(man, encoding="utf-8") as f:
            text = f.read()
        section = text[text.index("\nRECORD\n"):text.index("\nOPTIONS\n")]
        for option in re.findall(r"--[a-z][a-z-]+", out):
            self.assertIn(option, section)

    def test_wrong_usage(self):
        for args in [["--nosuch"], ["-e", ""], ["-e", "!sched"], ["-e", "a b"], ["-o", ""],
                     ["-o", "-"], ["-b", "0"], ["-b", "x"], ["-b", "-1"], ["-b", "99999999999"],
                     ["-i", "a/b"], ["-i", ".."], ["-F"], ["--user=x"], ["-u=delay"],
                     ["-e", ","], ["-e", "x,"], ["-e", ",x"], ["-e", "a,,b"], ["-e", "a,!a"],
                     ["-o", "."], ["-o", ".."], ["-o", "./"], ["-o", "x/."], ["-o", "x/.//"],
                     ["-o", "../.."], ["-o", "/"]]:
            self.record(*args, "true", rc=2)
        self.assertIn("record comes before its options",
                      self.run_tool("-q", "record", "true", rc=2)[1])

    def test_output_that_is_no_recording(self):
        for name in ["trace", "x"]:
            path = os.path.join(self.dir, name)
            os.mkdir(path)
            with open(os.path.join(path, name), "w", encoding="utf-8") as f:
                f.write("kept")
            self.assertIn(path + ": exists and is no recording", self.record("-o", path, "true"))
            self.assertEqual(os.listdir(path), [name])
        path = self.file("file", "")
        self.assertIn("no recording", self.record("-o", path, "true"))
        link = os.path.join(self.dir, "link")
        os.symlink(".", link)
        self.assertIn("no recording", self.record("-o", link, "true"))
        self.assertIn("none/out", self.record("-o", os.path.join(self.dir, "none/out"), "true"))
        self.assertEqual(sorted(os.listdir(self.dir)), ["file", "link", "trace", "x"])

    def test_earlier_recording_with_other_files(self):
        for name, files in [("out", ["stack_map_bin", "note"]),
                            ("out.old", ["stack_map_bin", "trace", "note"])]:
            os.mkdir(os.path.join(self.dir, name))
            for f in files:
                self.file(name + "/" + f, "kept")
        err = self.record("-o", os.path.join(self.dir, "out"), "true")
        self.assertIn("out.old: has other files", err)
        self.assertEqual(sorted(os.listdir(self.dir)), ["out", "out.old"])

    def test_no_stack_map(self):
        if os.path.exists("/sys/kernel/tracing/options/stackmap"):
            self.skipTest("this kernel has a stack map")
        ran = os.path.join(self.dir, "ran")
        for args in [[], ["-i", "x", "-e", "x"], ["-a", "--"]]:
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

FILE *setmntent(const char *path, const char *mode)
{
	return NULL;
}
"""


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

    def run_fake(self, times, *args, rc=0):
        """Runs the tool; so many reads of the map end with ESTALE, as by a reset or a rotation."""
        env = {**os.environ, "LD_PRELOAD": self.lib, "STALE": str(times), "TRACEFS": self.dir}
        done = subprocess.run([TOOL, *args], env=env, capture_output=True, check=False)
        self.assertEqual(done.returncode, rc, done.stderr)
        return done.stdout.decode(), done.stderr.decode()

    def test_stale_read(self):
        for times in range(5):
            out = self.run_fake(times, "-q", "-k", KALLSYMS)[0]
            self.assertEqual(out, golden_text("text64.txt"))
        for args in [[], ["-p"], [self.map]]:
            out, err = self.run_fake(5, "-k", KALLSYMS, *args, rc=1)
            self.assertEqual(out, "")
            self.assertIn("stack_map_bin: the map was reset or replaced each time", err)

    def test_stale_save(self):
        saved = os.path.join(self.dir, "saved")
        for times in [0, 1, 4]:
            out, err = self.run_fake(times, "save", saved)
            self.assertIn(saved + ": saved 4 stacks", err)
            with open(os.path.join(saved, "stack_map_bin"), "rb") as f:
                self.assertEqual(f.read(), golden_map("le64"))
            shutil.rmtree(saved)
        out, err = self.run_fake(5, "save", saved, rc=1)
        self.assertEqual(out, "")
        self.assertIn("stack_map_bin: the map was reset or replaced each time", err)

    def test_record_needs_a_stack_map(self):
        ran, out = (os.path.join(self.dir, name) for name in ("ran", "out"))
        args = ["record", "-o", out, "touch", ran]
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


WATCH = """\
#include <sys/mman.h>
#include <unistd.h>

#include "%s"

int main(void)
{
	struct watch w = {};
	size_t i, nr, page = sysconf(_SC_PAGESIZE);
	void *p;

	watch_start(&w);
	nr = w.nr_cpus;
	for (i = 0; nr && i < 40000; i++) {
		p = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANON, -1, 0);
		munmap(p, page);
	}
	watch_stop(&w);
	printf("%%zu %%zu\\n", nr, w.nr_changes);
	watch_free(&w);
	return 0;
}
"""


class Watch(Case):
    """The changes of mappings that record follows."""

    def test_lost_changes_are_counted(self):
        """Also if nothing comes behind them."""
        path = os.path.join(self.dir, "watch")
        main = self.file("watch.c", WATCH % os.path.join(HERE, "../watch.c"))
        with open(main, "a", encoding="ascii") as f:
            f.write('const char program[] = "watch";\n')
        others = [os.path.join(HERE, "..", name) for name in os.listdir(os.path.join(HERE, ".."))
                  if name.endswith(".c") and name not in ("main.c", "watch.c")
                  and not name.startswith("plugin")]
        subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-I", os.path.join(HERE, ".."), "-o", path,
                        main] + others, check=True)
        done = subprocess.run(["taskset", "-c", "0", path], capture_output=True, text=True,
                              check=True)
        cpus, changes = map(int, done.stdout.split())
        if not cpus:
            self.skipTest(done.stderr)
        lost = re.search(r"(\d+) changes of mappings were lost", done.stderr)
        self.assertTrue(lost, done)
        self.assertGreaterEqual(changes + int(lost[1]), 40000)


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
        if "built without elfutils" in err:
            self.skipTest("built without elfutils")
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

    def test_text_base(self):
        data = self.map([("outer", 4)], text=False)
        base = f"{self.addr['_text'] + self.SHIFT:x}"
        self.assertIn("[0] outer+0x4/", self.dump(data, "-v", self.elf, "--text-base", base))
        self.assertNotIn("outer", self.dump(data, "-v", self.elf))
        err = self.run_tool("-v", self.elf, "-", stdin=data)[1]
        self.assertIn("cannot undo KASLR", err)

    def test_build_id(self):
        data = self.map([("outer", 4)], build_id=b"\xcd" * 20)
        out, err = self.run_tool("-v", self.elf, "-", stdin=data, rc=1)
        self.assertEqual(out, "")
        self.assertIn("another build id", err)
        self.assertIn("outer+0x4", self.dump(data, "-v", self.elf, "--force"))
        err = self.run_tool("-v", self.elf, "-", stdin=self.map([("outer", 4)], build_id=b""))[1]
        self.assertIn("no build id in the map", err)

    def test_build_id_of_a_saved_directory(self):
        self.file("stack_map_bin", self.map([("outer", 4)], build_id=b""))
        self.file("build_id", "cd" * 20 + "\n")
        self.run_tool("-v", self.elf, self.dir, rc=1)

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
        self.assertEqual(len(out[0]["lines"][0]), 3)
        self.assertRegex(out[0]["lines"][0][0], r"^inner \(inlined\) at ")

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
