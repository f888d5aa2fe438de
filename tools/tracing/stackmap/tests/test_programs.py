# SPDX-License-Identifier: GPL-2.0
"""The functions of programs of user space."""

import os
import random
import re
import shutil
import subprocess

import mkmap
from common import FOLDED, WITHOUT, Case, RecordingCase, compiled, lacks_libraries, vdso_image


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
    """The functions of programs: user_maps, files of the map, and ELF files."""

    def setUp(self):
        super().setUp()
        if lacks_libraries():
            self.skipTest(WITHOUT)
        self.prog = self.build("-pie", "-fPIE")

    def build(self, *flags, name="prog", source=None, compiler="cc"):
        """Compiles the program, and finds its symbols and segments."""
        path = self.executable(name, compiled(
            "prog.c" if compiler == "cc" else "prog.cc", source or PROGRAM, compiler, "-g", "-O1",
            "-fno-omit-frame-pointer", *flags, "-Wl,--build-id=0x" + "ab" * 20))
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

    def frames(self, offsets, path=None, build_id="ab" * 20, args=(), rc=0):
        """The frames of one stack by file: the functions."""
        words = [self.word(1, o) for o in offsets]
        section = self.files((1, bytes.fromhex(build_id), path or self.prog))
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

    def test_stripped_behind_a_label(self):
        """In a stripped program, what follows it may be a function whose name is gone."""
        for kind in "", ".type before,@function;":
            source = f'asm(".globl before;{kind} before: ret");\n' + PROGRAM
            for strip, named in [(["-x"], False), (["-s"], False), (["-d"], True)]:
                path = self.build("-pie", "-fPIE", "-rdynamic", "-fno-toplevel-reorder", source=source)
                self.assertLess(self.addr["before"], self.addr["inner_static"])
                subprocess.run(["strip", *strip, path], check=True)
                offsets = [self.offset(n, 1) for n in ["inner_static", "outer_global", "before"]]
                inner, outer, before = self.frames(offsets)
                self.assertEqual(inner, "inner_static+0x1" if named else f"{path}+{offsets[0]:#x}")
                self.assertEqual(outer, "outer_global+0x1")
                self.assertEqual(before == "before+0x1", named)

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
            out, err = recording.tool(dat, *FOLDED, more={"user_maps": line % ident})
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
        """Each has its own difference of address and offset."""
        path = self.build("-no-pie", "-Wl,--section-start=.far=0x900000", source=SEGMENTS)
        for name in ["main", "far_function"]:
            self.assertEqual(self.frames([self.place(path, name, 1)]), [f"{name}+0x1"])

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
            err = recording.tool(dat, *FOLDED, more={"user_maps": maps})[1]
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
        word = self.word(1, int(addr, 16) + 1)
        name = name.split("@")[0]
        data = lambda i: mkmap.make([(5, 1, [word], 3)],
                                    [self.files((1, bytes.fromhex(i), "[vdso]"))])
        self.assertRegex(self.run_tool("-", stdin=data(ident))[0], r"\[vdso\]\+\w+ \(\w+\+0x1\)")
        other = "12" * 20
        err = self.run_tool("-", stdin=data(other))[1]
        self.assertIn("[vdso]: not used, as it is another file", err)
        self.file("stack_map_bin", data(other))
        self.file("vdso", image.replace(bytes.fromhex(ident), bytes.fromhex(other)))
        self.assertRegex(self.run_tool("map", self.dir)[0], r"\[vdso\]\+\w+ \(\w+\+0x1\)")
        # By address, nothing tells which one it was: programs of 32 bits have another.
        recording = RecordingCase()
        recording.dir = self.dir
        dat = recording.dat()
        recording.event(dat, "kmalloc", 1, 8, stack="A")
        dat.add(recording.now, "user_stack", 7, [0x5510])
        err = recording.tool(dat, *FOLDED, more={"user_maps": "map 7 5500-5600 0 - [vdso]\n",
                                              "vdso": image})[1]
        self.assertIn("[vdso]: not here, so without names", err)
