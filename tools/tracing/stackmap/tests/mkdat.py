#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes trace.dat files (version 6, see trace-cmd.dat.v6(5)) for the tests of stackmap_dump.

  mkdat.py FILE DIR             a recording with all formats, and inputs of the fuzzer with its
                                records
"""

import os
import struct
import sys

PAGE = 4096
COMMON = [("unsigned short", "common_type", 2), ("unsigned char", "common_flags", 1),
          ("unsigned char", "common_preempt_count", 1), ("int", "common_pid", 4)]

# The events, with their fields. The last one may be an array whose length a record tells.
EVENTS = {
    "ftrace": {
        "kernel_stack": [("int", "size"), ("unsigned long", "caller[]")],
        "user_stack": [("unsigned int", "tgid"), ("unsigned long", "caller[8]")],
        "stack_id": [("int", "stack_id")],
        "stack_split": [("int", "stack_id"), ("int", "outer_id"), ("unsigned long", "ip")],
        "stack_split3": [("int", "stack_id"), ("int", "outer_id"), ("unsigned long", "ip"),
                         ("unsigned long", "outer2_ip"), ("int", "outer2_id")],
        "stack_def": [("int", "stack_id"), ("int", "size"), ("unsigned long", "caller[]")],
        "user_stack_id": [("int", "stack_id"), ("unsigned int", "tgid")],
        "user_stack_def": [("int", "stack_id"), ("int", "size"), ("unsigned long", "caller[]")],
        "user_unwind_cookie": [("u64", "cookie")],
        "user_unwind_stack_id": [("int", "stack_id"), ("unsigned int", "tgid"), ("u64", "cookie")],
        "user_unwind_stack_split": [("int", "stack_id"), ("unsigned int", "tgid"), ("u64", "cookie"),
                                    ("unsigned long", "ip")],
        "user_unwind_stack": [("u64", "cookie"), ("unsigned int", "tgid"), ("int", "size"),
                              ("unsigned long", "caller[]")],
        "user_file_def": [("int", "file_id"), ("unsigned int", "id_size"),
                          ("u8", "build_id[20]"), ("char", "path[]")],
        "function": [("unsigned long", "ip"), ("unsigned long", "parent_ip")],
    },
    "sched": {
        "sched_switch": [("char", "prev_comm[16]"), ("int", "prev_pid"), ("int", "prev_prio"),
                         ("long", "prev_state"), ("char", "next_comm[16]"), ("int", "next_pid"),
                         ("int", "next_prio")],
        "sched_process_fork": [("string", "parent_comm"), ("int", "parent_pid"),
                               ("string", "child_comm"), ("int", "child_pid")],
        "sched_process_exec": [("string", "filename"), ("int", "pid"), ("int", "old_pid")],
        "sched_waking": [("char", "comm[16]"), ("int", "pid"), ("int", "prio"),
                         ("int", "target_cpu")],
    },
    "task": {
        "task_newtask": [("int", "pid"), ("char", "comm[16]"), ("unsigned long", "clone_flags")],
        "task_rename": [("int", "pid"), ("char", "oldcomm[16]"), ("char", "newcomm[16]"),
                        ("int", "oom_score_adj")],
    },
    "module": {
        "module_load": [("unsigned int", "taints"), ("string", "name")],
        "module_free": [("string", "name")],
    },
    "kmem": {
        "kmalloc": [("unsigned long", "ptr"), ("unsigned long", "bytes_alloc")],
        "kfree": [("unsigned long", "ptr")],
        "kmem_cache_alloc": [("unsigned long", "ptr"), ("unsigned long", "bytes_alloc"), ("string", "name")],
        "kmem_cache_free": [("unsigned long", "ptr")],
    },
    "syscalls": {
        "sys_enter_close": [("int", "fd")],
    },
    "block": {
        "block_rq_issue": [("dev_t", "dev"), ("u64", "sector")],
        "block_rq_complete": [("dev_t", "dev"), ("u64", "sector")],
    },
    "irq": {
        "softirq_entry": [("unsigned int", "vec")],
        "softirq_exit": [("unsigned int", "vec")],
    },
    "initcall": {
        "initcall_start": [("initcall_t", "func")],
        "initcall_finish": [("initcall_t", "func"), ("int", "ret")],
    },
    "lock": {
        "contention_begin": [("void *", "lock_addr"), ("unsigned int", "flags")],
        "contention_end": [("void *", "lock_addr"), ("int", "ret")],
    },
    "skb": {
        "consume": [("string", "name"), ("unsigned long", "len"), ("int", "ret"),
                    ("u8", "where[20]")],
    },
}
SIZES = {"int": 4, "unsigned int": 4, "unsigned long": 8, "long": 8, "u64": 8, "u8": 1, "char": 1,
         "string": 4, "dev_t": 4, "initcall_t": 8, "void *": 8}
CODES = {"dev_t": "I", "initcall_t": "Q", "void *": "Q", "int": "i", "unsigned int": "I", "unsigned long": "Q", "long": "q", "u64": "Q"}
# The states of a task in the print format of sched_switch.
STATES = '''(REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | \
0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & \
((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | \
0x00000040) + 1) << 1) - 1), "|", { 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000004, "T" }, \
{ 0x00000008, "t" }, { 0x00000010, "X" }, { 0x00000020, "Z" }, { 0x00000040, "P" }, \
{ 0x00000080, "I" }) : "R"'''
# libtracecmd has an event of its own behind user_stack, TRACE_BLK.
IDS = {name: 10 + 2 * i for i, name in enumerate(n for s in EVENTS.values() for n in s)}


def layout(system, name):
    """The fields of an event: type, name, offset, size and signedness."""
    at, fields = 8, []
    for kind, field in EVENTS[system][name]:
        array = field.partition("[")[2].rstrip("]")
        size = SIZES[kind] * (int(array) if array else 0 if "[" in field else 1)
        at = -(-at // SIZES[kind]) * SIZES[kind]
        fields.append((kind, field, at, size, int(kind in ("int", "long"))))
        at += size
    return fields


def format_text(system, name):
    """As events/*/*/format of tracefs."""
    lines = [f"name: {name}", f"ID: {IDS[name]}", "format:"]
    at = 0
    for kind, field, size in COMMON:
        lines.append(f"\tfield:{kind} {field};\toffset:{at};\tsize:{size};\tsigned:"
                     f"{int(kind == 'int')};")
        at += size
    lines.append("")
    fields = layout(system, name)
    for kind, field, at, size, signed in fields:
        kind = "__data_loc char[]" if kind == "string" else kind
        lines.append(f"\tfield:{kind} {field};\toffset:{at};\tsize:{size};\tsigned:{signed};")
    args = {f[1]: f"REC->{f[1]}" for f in fields if "[" not in f[1] and f[0] != "string"}
    text = " ".join(f"{n}=%llu" for n in args)
    if "prev_state" in args:
        text = text.replace("prev_state=%llu", "prev_state=%s")
        args["prev_state"] = STATES
    if "vec" in args:
        text += " [action=%s]"
        args["action"] = '__print_symbolic(REC->vec, { 1, "TIMER" }, { 9, "RCU" })'
    lines += ["", "print fmt: \"%s\"%s" % (text, "".join(f", {a}" for a in args.values())), ""]
    return "\n".join(lines)


def payload(name, pid, flags, preempt, values):
    """The bytes of a record."""
    system = next(s for s, events in EVENTS.items() if name in events)
    out = bytearray(struct.pack("<HBBi", IDS[name], flags, preempt, pid))
    fields = layout(system, name)
    end, strings = fields[-1][2] + fields[-1][3], b""
    if fields[-1][0] == "string" and len(values) == len(fields) - 1:
        values = *values, ""
    for (kind, field, at, size, _), value in zip(fields, values):
        out += bytes(at - len(out))
        if kind == "string":
            value = value.encode() + b"\0"
            out += struct.pack("<HH", end + len(strings), len(value))
            strings += value
        elif kind == "char":
            out += value.encode().ljust(size or len(value) + 1, b"\0")
        elif kind == "u8":
            out += value.ljust(size, b"\0")
        elif "[" in field:
            value = list(value) + [0] * (size // SIZES[kind] - len(value))
            out += struct.pack(f"<{len(value)}{CODES[kind]}", *value)
        else:
            out += struct.pack("<" + CODES[kind], value)
    return bytes(out) + strings


class Dat:
    """A recording. Records of a CPU are added in the order of time."""

    def __init__(self, cpus=2, kallsyms="", comms=(), instances=(), clock=None, stats="", uname="",
                 offset=""):
        self.cpus = {name: [[] for _ in range(cpus)] for name in ("",) + tuple(instances)}
        self.kallsyms, self.comms, self.clock = kallsyms, comms, clock
        self.stats, self.uname, self.offset = stats, uname, offset

    def add(self, time, name, *values, pid=1, cpu=0, flags=0, preempt=0, instance="", lost=False):
        """One record, at that many microseconds."""
        self.cpus[instance][cpu].append((time * 1000, payload(name, pid, flags, preempt, values),
                                         lost))

    @staticmethod
    def pages(records):
        """The sub-buffers: a time, a length, and records with the time since the one before."""
        pages, page, last = [], b"", 0
        first = 0
        for time, data, lost in records:
            data += bytes(-len(data) % 4)
            if len(data) <= 28 * 4:
                head = lambda delta: struct.pack("<I", delta << 5 | len(data) // 4)
            else:
                head = lambda delta: struct.pack("<II", delta << 5, len(data) + 4)
            full = 16 + len(page) + len(data) + 8 > PAGE
            if page and (lost or full or not 0 <= time - last < 1 << 27):
                pages.append((first, page, missed))
                page = b""
            if not page:
                first = last = time
                missed = lost
            page += head(time - last) + data
            last = time
        if page:
            pages.append((first, page, missed))
        return b"".join((struct.pack("<QQ", t, len(p) | (1 << 31 if m else 0)) + p).ljust(PAGE, b"\0")
                        for t, p, m in pages)

    def head(self):
        """All before the options."""
        page = ("\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
                "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
                "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
                "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n").encode()
        event = ("# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
                 "\tarray       :   32 bits\n").encode()
        out = b"\x17\x08\x44tracing6\0\x00" + bytes([SIZES["unsigned long"]]) + struct.pack("<I", PAGE)
        out += b"header_page\0" + struct.pack("<Q", len(page)) + page
        out += b"header_event\0" + struct.pack("<Q", len(event)) + event
        texts = {s: [format_text(s, n).encode() for n in e] for s, e in EVENTS.items()}
        out += struct.pack("<I", len(texts["ftrace"]))
        out += b"".join(struct.pack("<Q", len(t)) + t for t in texts.pop("ftrace"))
        out += struct.pack("<I", len(texts))
        for system, formats in texts.items():
            out += system.encode() + b"\0" + struct.pack("<I", len(formats))
            out += b"".join(struct.pack("<Q", len(t)) + t for t in formats)
        comms = "".join(f"{pid} {comm}\n" for pid, comm in self.comms).encode()
        out += struct.pack("<I", len(self.kallsyms)) + self.kallsyms.encode()
        out += struct.pack("<I", 0) + struct.pack("<Q", len(comms)) + comms
        return out + struct.pack("<I", len(self.cpus[""]))

    def bytes(self):
        """The file."""
        out = self.head() + b"options  \0"
        clock = struct.pack("<HI", 4, len(self.clock)) + self.clock.encode() if self.clock else b""
        if self.stats:
            clock += struct.pack("<HI", 2, len(self.stats) + 1) + self.stats.encode() + b"\0"
        if self.offset:
            clock += struct.pack("<HI", 7, len(self.offset) + 1) + self.offset.encode() + b"\0"
        if self.uname:
            clock += struct.pack("<HI", 5, len(self.uname) + 1) + self.uname.encode() + b"\0"
        fixed = []
        top = [self.pages(c) for c in self.cpus[""]]
        names = [n for n in self.cpus if n]
        # Offsets come first, so the length of all that precedes the data is known.
        size = len(out) + len(clock) + 2 + 10 + 16 * len(top)
        size += sum(6 + 8 + len(n) + 1 for n in names)
        at = -(-size // PAGE) * PAGE
        data = b""
        top_table = b""
        for pages in top:
            top_table += struct.pack("<QQ", at + len(data), len(pages))
            data += pages
        for name in names:
            fixed.append((name, at + len(data)))
            block = [self.pages(c) for c in self.cpus[name]]
            table_size = 10 + 16 * len(block)
            start = at + len(data) + -(-table_size // PAGE) * PAGE
            table, rest = b"flyrecord\0", b""
            for pages in block:
                table += struct.pack("<QQ", start + len(rest), len(pages))
                rest += pages
            data += table.ljust(start - at - len(data), b"\0") + rest
        out += clock
        for name, offset in fixed:
            out += struct.pack("<HIQ", 3, 8 + len(name) + 1, offset) + name.encode() + b"\0"
        out += struct.pack("<H", 0) + b"flyrecord\0" + top_table
        return out.ljust(at, b"\0") + data


def corpus(path, directory):
    """Writes the recording, and its records in several orders."""
    dat = Dat()
    records = [
        ("stack_def", 7, 2, [1, 2]), ("sched_switch", "a", 1, 120, 1, "b", 2, 120), ("stack_id", 7),
        ("stack_split", 7, 7, 5), ("stack_split3", 7, 7, 5, 6, 7), ("kernel_stack", 2, [3, 4]),
        ("sched_switch", "b", 2, 120, 0, "a", 1, 120), ("user_stack_id", 9, 1),
        ("kmalloc", 16, 64), ("user_unwind_cookie", 5), ("user_stack_def", 9, 1, [1 << 63 | 1 << 44]),
        ("user_file_def", 1, 20, b"1" * 20, "/x/cat"), ("user_unwind_stack_id", 9, 1, 5),
        ("kfree", 16), ("user_unwind_stack_split", 9, 1, 6, 77), ("user_stack", 1, [1, 2]),
        ("user_unwind_stack", 6, 1, 1, [0x5500]), ("function", 1, 2),
        ("sched_process_fork", "a", 1, "a", 2), ("kernel_stack", 1, [1]), ("module_load", 0, "m"),
        ("sched_process_exec", "/x/cat", 2, 1), ("task_rename", 2, "cat", "dog", 0),
        ("task_newtask", 9, "dog", 0x10000),
        ("module_free", "m"), ("kernel_stack", 2, [3, (1 << 64) - 1]),
        ("sched_switch", "b", 2, 120, 2, "a", 1, 120), ("sched_waking", "b", 2, 120, 0),
        ("stack_id", 7), ("sched_switch", "a", 1, 120, 0, "b", 2, 120),
        ("softirq_entry", 9), ("stack_id", 7), ("consume", "x", 8, 0, b"y"), ("stack_id", 7),
    ]
    data = b""
    for name, *values in records:
        dat.add(1, name, *values)
        record = payload(name, 1, 0, 0, values)
        data += bytes([len(record)]) + record
    with open(path, "wb") as f:
        f.write(dat.bytes())
    for mode in range(128):
        with open(os.path.join(directory, str(mode)), "wb") as f:
            f.write(b"R" + bytes([mode]) + data)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        corpus(sys.argv[1], sys.argv[2])
    else:
        sys.exit(__doc__)
