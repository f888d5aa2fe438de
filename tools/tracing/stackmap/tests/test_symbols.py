# SPDX-License-Identifier: GPL-2.0
"""The names of addresses of the kernel: kallsyms, modules, vmlinux."""

import json
import os
import random
import re
import struct
import subprocess

import mkmap
from common import (FOLDED, KALLSYMS, MAP_FOLDED, PERF, TEXT, WITHOUT, Case, RecordingCase, compiled,
                    golden_map, golden_text, lacks_libraries)


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


class Symbols(Case):
    """Those of a map, by kallsyms."""

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
        out, err = self.run_tool("map", self.dir)
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
        for args in [["map", self.dir], ["diff", "--map", self.dir, path]]:
            out, err = self.run_tool(*args, rc=1)
            self.assertEqual(out, "")
        out, err = self.run_tool("map", self.dir, rc=1)
        self.assertIn("kallsyms: has another build id than the kernel of", err)
        self.assertEqual(self.run_tool("map", "--force", self.dir)[0], golden_text("text64.txt"))
        self.file("build_id", bytes(range(20)).hex() + "\n")
        self.assertEqual(self.run_tool("map", self.dir)[0], golden_text("text64.txt"))

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
            out, err = self.run_tool("annotate", "-", path, stdin=trace)
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
        out = self.dump(mkmap.make(stacks))
        self.assertEqual(re.findall(r"\] 0x([0-9a-f]+)$", out, re.M),
                         [f"{ip:x}" for _, _, ips in stacks for ip in ips])

    def test_long_names(self):
        name = "n" * 3000
        self.assertEqual(self.frames([0x1010], f"1000 t {name}\t[m]\n1100 t o\t[m]\n"),
                         [f"{name}+0x10/0x100 [m]"])

    def test_names_of_the_map(self):
        """The text of a map has names of both copies, too."""
        ip = 0xFFFFFFFFC0000010
        self.file("stack_map_bin", mkmap.make([(1, 1, [ip, ip + 0x10001])]))
        self.file("kallsyms", golden_text("kallsyms64") + f"{ip:x} t one\t[m]\n")
        self.file("kallsyms.start", golden_text("kallsyms64") +
                  f"{ip:x} t other\t[m]\n{ip + 0x10000:x} t two\t[n]\n")
        out, err = self.run_tool("map", self.dir)
        self.assertRegex(out, rf"\[0\] {ip:#x}\n  \[1\] two\+0x1/0x\w+ \[n\]\n")
        self.assertIn("1 addresses have no name", err)

    def test_kallsyms_damage(self):
        for text, byte in [("ffffffff81000000 T _text\nrubbish\n", 25), ("12 T\n", 0),
                           ("12 T name\t[mod\n", 0), ("12 T a\n\0\n", 7), ("12Tx\n", 0)]:
            path = self.file("k", text)
            out, err = self.run_tool("-k", path, "-", stdin=golden_map("le64"), rc=1)
            self.assertIn(f"byte {byte}: not a line of kallsyms", err)
            self.assertEqual(out, "")


class Recorded(RecordingCase):
    """Those of a recording. Some may change meanwhile, others are the tracer's."""

    def test_without_kallsyms(self):
        """The file's own are used."""
        dat = self.dat(kallsyms=golden_text("kallsyms64"))
        self.event(dat, "kmalloc", 1, 8, stack="AB")
        path = self.file("one.dat", dat.bytes())
        out = self.run_tool(*FOLDED, "-q", path)[0]
        self.assertRegex(out, r"^\S+;\S+ 1\n$")
        self.assertNotIn("0x", out)
        out = self.run_tool(*PERF, "-q", path)[0]
        self.assertRegex(out, r"\tffffffff81000148 \S+\+0x[0-9a-f]+ \(\[kernel.kallsyms\]\)\n")
        # That is the text, if nothing else is said.
        self.assertRegex(self.run_tool("-q", path)[0], r"^# 1 events\n1 \(100.0%\)\n        \S+\n")

    def test_alone_as_in_a_directory(self):
        """Each address has one name, whatever was looked up before, or a number."""
        names = golden_text("kallsyms64")
        places = [TEXT - 0x1000, TEXT + 0x148, TEXT + 0x1500, TEXT + 0x2000, TEXT + 0x7010]
        places += [0xffffffffc0200000 + n for n in (
            0xfff, 0x1004, 0x1404, 0x1fff, 0x2004, 0x3004, 0x4010, 0x100000, 0x200010, 0x300108)]
        for order in places, places[::-1]:
            dat = self.dat(kallsyms=names)
            for ip in order:
                self.event(dat, "kfree", ip)
                dat.add(self.now, "kernel_stack", 1, [ip])
            whole = self.tool(dat, *PERF, "-q")[0]
            alone = self.run_tool(*PERF, "-q", self.file("one.dat", dat.bytes()))[0]
            self.assertEqual(alone, whole)
            self.assertIn(" first_of_mod+0x4 ([golden_mod])", whole)
            self.assertEqual(whole.count(" 0x"), 7)

    def test_damaged_names_alone(self):
        """Of a recording. Addresses may be hidden."""
        for names in "", "x", "ffffffff81000100 t a", "0000000000000000 t a\n0000000000000000 t b\n":
            dat = self.dat(kallsyms=names)
            self.event(dat, "kmalloc", 1, 8, stack="A")
            out = self.run_tool(*FOLDED, "-q", self.file("one.dat", dat.bytes()))[0]
            self.assertEqual(out, "0xffffffff81000148 1\n")

    def test_local_labels(self):
        """Of LoongArch and RISC-V, as the kernel knows them; a program may have such functions."""
        names = "ffffffff81000100 t schedule\n"
        for label in ".L7", "L0\x01", "L0", "L012", "$x", "$xrv64i2p1_m2p0":
            for alone in True, False:
                dat = self.dat(kallsyms=names + f"ffffffff81000140 t {label}\n")
                self.event(dat, "kmalloc", 1, 8, stack="A")
                args = [self.file("one.dat", dat.bytes())] if alone else ["-k", self.file(
                    "k", dat.kallsyms), os.path.join(self.dir, "one.dat")]
                self.assertEqual(self.run_tool(*FOLDED, "-q", *args)[0], "schedule 1\n", label)

    def test_names_of_functions(self):
        """Those of the recording as well."""
        dat = self.dat(kallsyms="ffffffff81000100 t a\x1b[31m\nffffffff81000200 t end\n")
        self.event(dat, "kmalloc", 1, 8, stack="A")
        out = self.run_tool("report", "-q", self.file("one.dat", dat.bytes()))[0]
        self.assertIn("  a?[31m\n", out)

    def test_tracer(self):
        """Its frames are left out."""
        syms = golden_text("kallsyms64") + "ffffffff81000300 t trace_event_raw_event_x\n" \
            "ffffffff81000380 t __traceiter_x\nffffffff81000400 t plain\nffffffff81000480 t end\n"
        dat = self.dat()
        self.FULL = dict(self.FULL, T=[TEXT + 0x310, mkmap.MARKER, TEXT + 0x390, self.A, self.B])
        self.event(dat, "kmalloc", 1, 8, stack="T")
        more = {"kallsyms": syms}
        self.assertEqual(self.folded(dat, more=more), {"do_exit;schedule": 1})
        data = mkmap.make([(1, 1, self.FULL["T"])])
        args = ["-k", self.file("k", syms)]
        self.assertEqual(self.dump(data, *MAP_FOLDED, *args), "do_exit;schedule 1\n")
        below = mkmap.make([(1, 1, [self.A, mkmap.MARKER, self.B])])
        self.assertEqual(self.dump(below, *MAP_FOLDED, *args), "do_exit;[FTRACE_TRAMPOLINE];schedule 1\n")
        out = json.loads(self.dump(data, "report", "--map", "-j", *args))
        self.assertEqual({f["function"] for f in out}, {"do_exit", "schedule"})
        out, = json.loads(self.dump(data, "map", "-j", *args))
        self.assertEqual([name.split("+")[0] for name in out["symbols"]], [
            "trace_event_raw_event_x", "[FTRACE TRAMPOLINE]", "__traceiter_x", "schedule", "do_exit"])

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
        out, err = self.tool(dat, *FOLDED, more=both)
        self.assertEqual(sorted(line.split(";")[0] for line in out.splitlines()), sorted(want))
        self.assertIn("3 addresses have no name: their text was replaced meanwhile", err)
        # Their loads and frees explain the difference.
        for name, event in [("five", "free"), ("six", "free"), ("two", "load"), ("four", "load"),
                            ("seven", "free")]:
            self.add(dat, f"module_{event}", *([0] if event == "load" else []), name)
        out = self.tool(dat, *FOLDED, "-q", "-e", "kmalloc", more=both)[0]
        self.assertEqual(sorted(line.split(";")[0] for line in out.splitlines()), sorted(want))
        # But then, something else may have been there.
        self.add(dat, "module_load", 0, "passing")
        self.add(dat, "module_free", "passing")
        for i in [2, 3, 4, 6]:
            want[i] = hex(ips[i])
        out, err = self.tool(dat, *FOLDED, "-e", "kmalloc", more=both)
        self.assertEqual(sorted(line.split(";")[0] for line in out.splitlines()), sorted(want))
        self.assertIn("7 addresses have no name", err)
        # A copy of the end alone, of a module that was loaded, and of one that was always there.
        os.remove(os.path.join(self.dir, "dir/kallsyms.start"))
        out, err = self.tool(dat, *FOLDED, "-e", "kmalloc", more={"kallsyms": syms(last)})
        names = [line.split(";")[0] for line in out.splitlines()]
        self.assertIn("stays[one]", names)
        self.assertNotIn("comes[four]", names)
        self.assertIn("ftrace_trampoline", names)

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
            out = self.tool(dat, *FOLDED, "-q", more=more)[0]
            self.assertEqual(out.split()[0].split(";")[-1], leaf, ways)


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
        if lacks_libraries():
            self.skipTest(WITHOUT)
        self.elf = os.path.join(self.dir, "vmlinux")
        self.build()

    def build(self, *flags):
        """Compiles this ELF file for the machine."""
        self.file("vmlinux", compiled(
            "fixture.c", FIXTURE, "cc", "-g", "-O1", "-nostdlib", "-static", "-ffreestanding",
            "-fno-pie", "-no-pie", "-fcf-protection=none", "-fno-stack-protector",
            "-fno-asynchronous-unwind-tables", "-Wl,--build-id=0x" + "ab" * 20, *flags))
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
        self.assertIn("cannot be the output, too",
                      self.run_tool("-v", self.elf, "-o", self.elf, "-", stdin=data, rc=1)[1])
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
