#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes of the memory file of a guest (scripts/guest -M) a core as /proc/vmcore after a crash: it has the kernel's
image and the direct mapping, and not what is mapped elsewhere. x86-64, up to 3 GB.

Usage: vmcore.py MEMORY CORE SYSTEM_MAP TEXT CODE    TEXT: address of _text; CODE: where it is in memory
"""
import mmap
import os
import struct
import sys

PAGE = 4096
PT_LOAD, PT_NOTE = 1, 4
NT_PRSTATUS = 1

memory, core, system_map, text, code = sys.argv[1:]
text, code, size = int(text, 16), int(code, 16), os.path.getsize(memory)
with open(system_map) as f:
    symbols = {name: int(addr, 16) for addr, _, name in map(str.split, f)}
with open(memory, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
    direct, = struct.unpack_from("<Q", m, code + symbols["page_offset_base"] - symbols["_text"])

# One CPU without registers.
note = struct.pack("<III8s", 5, 336, NT_PRSTATUS, b"CORE") + bytes(336)
headers = [(PT_NOTE, PAGE // 2, 0, 0, len(note)),
           (PT_LOAD, PAGE + code, text, code, symbols["_end"] - symbols["_text"]),
           (PT_LOAD, PAGE, direct, 0, size)]
head = struct.pack("<4s5B7xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 0, 4, 62, 1, 0, 64, 0, 0, 64, 56, len(headers), 0, 0, 0)
head += b"".join(struct.pack("<IIQQQQQQ", kind, 7, offset, virt, phys, n, n, 0) for kind, offset, virt, phys, n in headers)
with open(core, "wb") as out, open(memory, "rb") as f:
    out.write(head.ljust(PAGE // 2, b"\0") + note)
    for at in range(0, size, 1 << 20):
        chunk = f.read(1 << 20)
        if any(chunk):
            out.seek(PAGE + at)
            out.write(chunk)
    out.truncate(PAGE + size)
