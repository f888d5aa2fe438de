# SPDX-License-Identifier: GPL-2.0
"""What the tests of stackmap_dump share."""

import functools
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import mkdat
import mkmap


HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "golden")
SOURCES = os.path.join(HERE, "..")
TOOL = os.environ.get("STACKMAP_DUMP", os.path.join(SOURCES, "stackmap_dump"))
SANITIZED = "STACKMAP_SANITIZED" in os.environ
TEXT = 0xFFFFFFFF81000000
WITHOUT = "built without elfutils and libtracecmd"
MAPS = ["le64", "be64", "le32", "be32", "bare"]
# What is before an id in a trace.
FOLDED = ("export", "--format", "folded")
PERF = ("export", "--format", "perf")
PPROF = ("export", "--format", "pprof")
MAP_FOLDED = (*FOLDED, "--map")
MAP_PPROF = (*PPROF, "--map")
HEAD = "     bash-7       [000]    12.345678: "


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


@functools.cache
def compiled(name, source, compiler, *options):
    """What a compiler makes of a source file of that name. It is asked once."""
    with tempfile.TemporaryDirectory(prefix="stackmap-test.") as top:
        with open(os.path.join(top, name), "w", encoding="utf-8") as f:
            f.write(source)
        subprocess.run([compiler, name, *options, "-o", "out"], cwd=top, check=True)
        with open(os.path.join(top, "out"), "rb") as f:
            return f.read()


@functools.cache
def lacks_libraries():
    """Whether the tool has none but libc."""
    done = subprocess.run([TOOL, "map", "-v", "/nonexistent", "-"], input=mkmap.make([]),
                          capture_output=True, check=False)
    return WITHOUT in done.stderr.decode()


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
        self.assertIn(done.returncode, rc if isinstance(rc, tuple) else (rc,), f"{args}: {err}")
        return out, err

    def executable(self, name, content):
        """Writes a program into the scratch directory."""
        path = self.file(name, content)
        os.chmod(path, 0o755)
        return path

    def program(self, name, source):
        """Compiles a program with the files of the tool that need no recording."""
        own = re.findall(r'#include "(.*\.c)"', source)
        with open(os.path.join(SOURCES, "Makefile"), encoding="utf-8") as f:
            with_libs = re.search(r"^WITH_LIBS\s*:= ((.*\\\n)*.*)", f.read(), re.M)[1].split()
        # As one: most of the time goes into the headers.
        others = [f for f in sorted(os.listdir(SOURCES)) if f.endswith(".c") and f not in (
            *(set(with_libs) - {"elf.c"}), "plugin_stackmap.c", "read.c", *own)]
        others = "".join(f'#include "{f}"\n' for f in others)
        flags = ["-w", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-DHAVE_LIBS", "-I", SOURCES]
        source = '#include "record.h"\nconst char * const program = "test";\n' + source
        return self.executable(name, compiled(
            "main.c", source, "cc", *flags,
            self.file("others.o", compiled("others.c", others, "cc", "-c", *flags)),
            "-ldw", "-lelf"))

    def dump(self, data, *args, rc=0):
        """Runs the tool on map bytes, returns stdout."""
        return self.run_tool(*args, "-q", "-", stdin=data, rc=rc)[0]

    def refuse(self, data, byte, what, *args):
        """The tool must refuse the data with one line that has the offset and the reason."""
        out, err = self.run_tool(*args, "-q", "-", stdin=data, rc=1)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertIn(f"stdin: byte {byte}: ", err)
        self.assertIn(what, err)
        return out

    @staticmethod
    def word(number, offset):
        """A frame in a file."""
        return 1 << 63 | number << 44 | offset

    @staticmethod
    def files(*files):
        """A section of type 5."""
        out = b""
        for file_id, build_id, path in files:
            path = path.encode()
            out += struct.pack("<II20sI", file_id, len(build_id), build_id, len(path))
            out += path.ljust(-(-len(path) // 8) * 8, b"\0")
        return (5, out)


class Pprof(Case):
    """Reads profiles for pprof, by the rules of protobuf."""

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
        done = subprocess.run([TOOL, *MAP_PPROF, "-q", *args], input=data, capture_output=True,
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
        tool(dat, *FOLDED, "-q", "--top", "1")
        done = subprocess.run([TOOL, *PPROF, "-q", *args, os.path.join(self.dir, "dir")],
                              capture_output=True, check=True)
        prof = self.message(gzip.decompress(done.stdout))
        texts = [s.decode() for s in prof[6]]
        types = [(texts[t[1][0]], texts[t[2][0]]) for t in map(self.message, prof[1])]
        return types, [tuple(self.numbers(self.message(s)[2][0])) for s in prof.get(2, [])]


class RecordingCase(Case):
    """Makes recordings, and profiles of them."""

    SWITCH = ("sched_switch", "sched_switch")
    A, B, C = TEXT + 0x148, TEXT + 0x30, TEXT + 0x180
    FULL = {"A": [A], "AB": [A, B], "CB": [C, B]}

    def setUp(self):
        super().setUp()
        if lacks_libraries():
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
        out = self.tool(dat, *FOLDED, "-q", *args, **more)[0]
        return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in out.splitlines()}

    def all_forms(self, dat, *args, perf=True):
        """The sums of all forms, which must be equal; returns the sum."""
        folded = sum(self.folded(dat, *args).values())
        if perf:
            out = self.tool(dat, *PERF, "-q", *args)[0]
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
        out = json.loads(self.run_tool("report", "-q", "-j", *args, path)[0])
        self.assertEqual(sum(f["self"] for f in out), folded)
        out = json.loads(self.run_tool("-q", "-j", *args, path)[0])
        self.assertEqual([s["weight"] for s in out], weights)
        self.assertEqual(sum(s["count"] for s in out), sum(s[0] for s in samples))
        self.assertEqual(self.run_tool("diff", "-q", *args, path, path)[0], "")
        return folded

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

    def calls(self, dat, names, at=TEXT + 0x100000):
        """An event with a stack of these functions, and their kallsyms. A number has no symbol."""
        syms = {n: at + 0x100 * i for i, n in enumerate(dict.fromkeys(names)) if isinstance(n, str)}
        ips = [syms[n] + 0x10 if n in syms else n for n in names]
        self.event(dat, "kmalloc", 1, 8)
        dat.add(self.now, "kernel_stack", len(ips), ips)
        return "".join(f"{a:x} t {n}\n" for n, a in syms.items())


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


class Tracefs(Case):
    """The scratch directory is in place of tracefs."""

    def setUp(self):
        super().setUp()
        if SANITIZED:
            self.skipTest("the sanitizer does not go with LD_PRELOAD")
        self.lib = self.file("fake.so", compiled("fake.c", FAKE, "cc", "-shared", "-fPIC", "-ldl"))
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

    def make_map(self):
        """What the tool looks for in tracefs."""
        self.file("tracing_on", "1")
        self.file("trace_clock", "[local]")
        os.mkdir(os.path.join(self.dir, "options"))
        for option in ["stackmap", "stacktrace"]:
            self.file("options/" + option, "1")

    def popen(self, *args, **more):
        """Runs the tool beside the test."""
        env = {**os.environ, "LD_PRELOAD": self.lib, "STALE": "0", "TRACEFS": self.dir}
        return subprocess.Popen(["timeout", "30", TOOL, *args], env=env, stdout=subprocess.PIPE,
                                **more)
