#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes stack_map_bin files for the tests of stackmap_dump.

  mkmap.py golden NAME    the golden map NAME (le64, be64, le32, be32, bare, files) to stdout
"""

import struct
import sys

MAGIC = 0x464D5342
MARKER = 0x7FFFFFFF
TEXT, BUILD_ID, RELEASE, SPLIT = 1, 2, 3, 4


def record(stack_id, ref, ips, user=0, order="<"):
    """One stack, of the kernel or of user space; order is struct's < or >."""
    return struct.pack(f"{order}4I{len(ips)}Q", stack_id, len(ips), ref, user, *ips)


def section(kind, payload, order="<"):
    """One section with its padding."""
    head = struct.pack(f"{order}2I", kind, len(payload))
    return head + payload + bytes(-len(payload) % 8)


def make(stacks, sections=(), order="<", version=2, magic=MAGIC):
    """A whole map: stacks are (id, ref, ips) or (id, ref, ips, 1), sections (type, bytes)."""
    out = [struct.pack(f"{order}4I", magic, version, len(stacks), len(sections))]
    out += [record(*s, order=order) for s in stacks]
    out += [section(*s, order=order) for s in sections]
    return b"".join(out)


def golden_stacks(text, module):
    """Stacks with each kind of frame, and addresses at the ends of functions."""
    return [
        # do_exit ends and schedule begins at 0x100. A leaf there is schedule. A return address
        # there belongs to do_exit, which ends with a call.
        (7, 12, [text + 0x100, text + 0x100, text + 0x148]),
        (524289, 4000000000, [text + 0x9F, MARKER, text + 0x20]),
        (3, 1, [module + 0x10, module + 0x4E0, text + 0x1FF, 0x1234]),
        (4, 4294967295, [text + 0x180]),
    ]


def golden(name):
    """The golden maps: both byte orders and word sizes, one without any section, one with files."""
    if name == "files":
        files = struct.pack("<II20sI8s", 1, 4, b"abcd", 6, b"/x/cat")
        return make([(5, 3, [1 << 63 | 1 << 44 | 0x123, 0x77], 3)], [(5, files)])
    order = ">" if name.startswith("be") else "<"
    text = 0xFFFFFFFF81000000
    module = 0xFFFFFFFFC0201000
    if name.endswith("32"):
        text, module = 0xC1000000, 0xF8201000
    sections = [
        (TEXT, struct.pack(f"{order}Q", text)),
        (BUILD_ID, bytes(range(20))),
        (RELEASE, b"7.3.0-golden"),
    ]
    return make(golden_stacks(text, module), [] if name == "bare" else sections, order)


def main():
    """Command line."""
    if len(sys.argv) == 3 and sys.argv[1] == "golden":
        sys.stdout.buffer.write(golden(sys.argv[2]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
