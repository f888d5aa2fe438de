# SPDX-License-Identifier: GPL-2.0
"""Sourced by gdb for scripts/test-gdb: compares what lx-stackmap prints with what the guest has printed.

$PRINTED and $SYSTEM_MAP: files.
"""
import base64
import os
import re
import struct

import gdb

USER = 1
OFFSET = (1 << 44) - 1


def parse(path):
    sections, name = {}, None
    with open(path) as f:
        for line in f:
            if line.startswith("@@"):
                name = line[3:].strip()
            elif name:
                sections.setdefault(name, []).append(line.rstrip("\n"))
    return sections


def stacks_of(bin_lines, text_lines):
    """Of each id, the lines of lx-stackmap. The symbols of kernel stacks are those of stack_map."""
    data = base64.b64decode("".join(bin_lines))
    at, raw, text = 16, {}, {}
    for _ in range(struct.unpack_from("<4I", data)[2]):
        stack_id, nr, _, flags = struct.unpack_from("<4I", data, at)
        raw[stack_id] = flags & USER, struct.unpack_from("<%dQ" % nr, data, at + 16)
        at += 16 + 8 * nr
    for line in text_lines:
        if (m := re.match(r"(?:user_)?stack_id (\d+)", line)):
            stack_id = int(m[1])
            text[stack_id] = []
        elif line:
            text[stack_id].append(line.split("] ", 1)[1])
    assert raw.keys() == text.keys() and raw, "stack_map and stack_map_bin differ"
    return {i: (user, ips, text[i]) for i, (user, ips) in raw.items()}


def same_frame(line, ip, text):
    """gdb may take another name that leads to the address. It has no symbols of modules."""
    m = re.fullmatch(r"0x([0-9a-f]+)(?: <([\w.]+)([+-]\d+)?>( \+ 1)?)?", line)
    if text == "[FTRACE TRAMPOLINE]" or not m:
        return line == text
    at = int(m[1], 16)
    named = text.endswith("]") or text == hex(ip) or at - int(m[3] or 0) - slide in symbols.get(base_name(m[2] or ""), ())
    return at + bool(m[4]) == ip and named


def base_name(name):
    """Debug information is without the compiler's .isra.0."""
    return name.split(".")[0]


def dir_of(name):
    return name[0] if name else "."


def lx_stackmap(*args):
    return gdb.execute("lx-stackmap " + " ".join(args), to_string=True).splitlines()


def check_stacks(name, stacks):
    frames = users = by_file = 0
    for stack_id, (user, ips, text) in stacks.items():
        head, *lines = lx_stackmap(str(stack_id), *name)
        assert head == "%sstack_id %d" % ("user_" * user, stack_id), head
        lines = [line[2:] for line in lines]
        same = [a == c if user else same_frame(a, b, c) for a, b, c in zip(lines, ips, text)]
        assert len(lines) == len(text) and all(same), (stack_id, [hex(ip) for ip in ips], text, lines)
        frames += len(text)
        users += user
        by_file += any(line.startswith("/") for line in lines) and user
    print("%s: %d stacks, %d of user space, %d of these by file, %d frames, %d generations" % (
        dir_of(name), len(stacks), users, by_file, frames, len({i >> 19 for i in stacks})))
    return users, by_file, len({i >> 19 for i in stacks})


def check_stale(name, stacks):
    """Ids of a slot that is empty, of one behind the last, and of generations that are not there."""
    last = max(stacks)
    empty = next(i for i in range(last, 0, -1) if i not in stacks and i >> 19 == last >> 19)
    for stack_id in empty, last | (1 << 19) - 1, 4000 << 19, last & (1 << 19) - 1, -1 & (1 << 31) - 1:
        assert lx_stackmap(str(stack_id), *name) == ["stack_id %d (stale)" % stack_id], stack_id


def last_of(lines):
    """Of each CPU, what its events have of stacks: ids, and what was hit between them, of user space the offset."""
    cpus = {}
    for line in lines:
        # "CPU 0" or "CPU 0, pid 1, stack_id"; "stack_id 1"; "@ 0xffffffff81000000 <symbol>"; "@ /bin/sh+0x1"
        if line.startswith("CPU "):
            last = cpus.setdefault(int(re.match(r"CPU (\d+)", line)[1]), [])
        elif line.startswith("@"):
            m = re.match(r"@ (?:.*\+)?0x([0-9a-f]+)", line)
            last.append("@%x" % (int(m[1], 16) & OFFSET))
        elif line[0] == "<":
            # "<stack_split 1 @ffffffff81000000 2>", "<user_unwind_stack_split 21300000002 @800db00000056810 5>"
            line = re.sub(r"(unwind_stack_(id|split)) [0-9a-f]+", r"\1", line)
            last += ["@%x" % (int(i[1:], 16) & OFFSET) if i[0] == "@" else i for i in re.findall(r" (@?[0-9a-f]+)", line)]
        elif not line.startswith("  "):
            last.append(line.split()[1])
    return cpus


def check_last(name, printed):
    found, printed = last_of(lx_stackmap("last", *name)), last_of(printed)
    for cpu, ids in printed.items():
        assert ids[-len(found[cpu]):] == found[cpu] and found[cpu], (cpu, ids[-200:], found[cpu])
    print("%s: last events: %s" % (dir_of(name), {cpu: len(ids) for cpu, ids in found.items()}))


sections = parse(os.environ["PRINTED"])
symbols = {}
with open(os.environ["SYSTEM_MAP"]) as f:
    for addr, _, symbol in map(str.split, f):
        symbols.setdefault(base_name(symbol), set()).add(int(addr, 16))
slide = int(sections["text"][0].split()[0], 16) - min(symbols["_text"])
for name in (), ("old",):
    stacks = stacks_of(sections["bin " + dir_of(name)], sections["stacks " + dir_of(name)])
    users, by_file, generations = check_stacks(name, stacks)
    assert len(stacks) > 250
    assert users > 5 and (generations > 1 if name else by_file > 5)
    check_stale(name, stacks)
    check_last(name, sections["ids " + dir_of(name)])
print("all is the same")
