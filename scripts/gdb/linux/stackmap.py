# SPDX-License-Identifier: GPL-2.0
#
# gdb helper commands and functions for Linux kernel debugging
#
#  stacks of the ftrace stack map
#

import gdb

from linux import cpus, lists, utils
from linux.vmalloc import read_memory

# As in kernel/trace/: trace_stackmap_map.h, trace_user_file.h, and trace.h.
SLOT_MASK = (1 << 19) - 1
UNIT = 8
FILE_SHIFT = 44
FTRACE_TRAMPOLINE_MARKER = (1 << 31) - 1

# Events with ids, and what they have of a stack, innermost first.
EVENTS = {"stack_id": ["stack_id"], "stack_split": ["stack_id", "ip", "outer_id"],
          "stack_split3": ["stack_id", "ip", "outer_id", "outer2_ip", "outer2_id"],
          "user_stack_id": ["stack_id"], "user_unwind_stack_id": ["stack_id"],
          "user_unwind_stack_split": ["ip", "stack_id"]}


def pointer_to(name):
    return gdb.lookup_type("struct " + name).pointer()


def load(ptr):
    return gdb.Value(read_memory(int(ptr), ptr.type.target().sizeof), ptr.type.target())


def get_instance(name):
    head = gdb.parse_and_eval("ftrace_trace_arrays")
    # Stacks of the last boot have its addresses.
    last_boot = int(gdb.parse_and_eval("TRACE_ARRAY_FL_LAST_BOOT"))
    for tr in lists.list_for_each_entry(head, pointer_to("trace_array"), "list"):
        if (tr['name'].string() if tr['name'] else None) == name and not tr['flags'] & last_boot:
            return tr
    raise gdb.GdbError("No such instance has recorded in this boot.")


def find(tr, stack_id):
    """The record of an id, and its words."""
    idx = stack_id & SLOT_MASK
    gens = tr['stackmap']['gens'] if tr['stackmap'] else None
    for i in range(int(load(gens)['nr']) if gens else 0):
        gen = load(load(gens['gen'][i].address))
        if gen['first_id'] != stack_id - idx:
            continue
        # The records are in a map, or behind an index.
        if gen['map']:
            base, unit = load(gen['map'])['arena'], 0
            if idx < load(gen['map'])['nr_slots']:
                unit = load(gen['map']['slots'][idx].address) & load(gen['map'])['offset_mask']
        else:
            index = read_memory(int(gen['index']), int(gen['nr']) * UNIT)
            units = {utils.read_u32(index, at): utils.read_u32(index, at + 4)
                     for at in range(0, len(index), UNIT)}
            base, unit = gen['index'], units.get(idx, 0)
        if unit:
            ptr = gdb.Value(int(base) + int(unit) * UNIT).cast(pointer_to("stackmap_record"))
            size = int(load(ptr)['nr']) * utils.get_ulong_type().sizeof
            return load(ptr), read_memory(int(ptr['ips'].address), size)
    return None, b""


def frame(tr, stack_id, word, user):
    nr = word >> FILE_SHIFT & SLOT_MASK
    rec, data = find(tr, stack_id & ~SLOT_MASK | nr) if user and word >> 63 else (None, b"")
    if rec and rec['file']:
        path = data[gdb.lookup_type("struct user_file")['path'].bitpos // 8:].split(b"\0")[0]
        return "%s+0x%x" % (path.decode(), word & (1 << FILE_SHIFT) - 1)
    if user or word == FTRACE_TRAMPOLINE_MARKER:
        return "0x%x" % word if user else "[FTRACE TRAMPOLINE]"
    # A call that does not return may be the end of a function.
    text, before = [gdb.execute("output/a %d" % at, to_string=True) for at in (word, word - 1)]
    return text if "<" in text or "<" not in before else before + " + 1"


def print_stack(tr, stack_id):
    rec, data = find(tr, stack_id)
    user = rec and rec['user']
    gdb.write("%sstack_id %d%s\n" % ("user_" if user else "", stack_id, "" if rec else " (stale)"))
    # A user stack without frames has a 0.
    for at in range(0, len(data) if any(data) else 0, utils.get_ulong_type().sizeof):
        gdb.write("  %s\n" % frame(tr, stack_id, utils.read_ulong(data, at), user))


def print_last(tr, cpu, page):
    """The stacks of the events in the page that a CPU has written last."""
    kinds = {int(gdb.parse_and_eval("TRACE_" + name.upper())): name for name in EVENTS}
    at = int(page['data'].address)
    end = at + (int(page['commit']['a']['counter']) & 0xfffff)
    while at < end:
        event = gdb.Value(at).cast(pointer_to("ring_buffer_event"))
        kind, size = int(event['type_len']), int(event['array'][0])
        at += {0: size, 29: size, 30: 4, 31: 4}.get(kind, 4 * kind) + 4
        entry = event['array'][int(kind == 0)].address.cast(pointer_to("trace_entry"))
        name = kinds.get(int(entry['type'])) if kind < 29 else None
        if not name:
            continue
        gdb.write("CPU %d, pid %d, %s\n" % (cpu, entry['pid'], name))
        # All begin with stack_id.
        entry = entry.cast(pointer_to((name if EVENTS[name][1:] else "stack_id") + "_entry"))
        for field in EVENTS[name]:
            if field.endswith("id"):
                print_stack(tr, int(entry[field]))
            else:
                gdb.write("@ %s\n" % frame(tr, int(entry['stack_id']), int(entry[field]),
                                           name.startswith("user")))


class LxStackmap(gdb.Command):
    """Print stacks of the ftrace stack map.

lx-stackmap ID [INSTANCE]: print the stack of an id of a trace instance, by
default of the top level.
lx-stackmap last [INSTANCE]: print those of what each CPU has recorded last."""

    def invoke(self, arg, from_tty):
        argv = gdb.string_to_argv(arg) or ["last"]
        tr = get_instance(argv[1] if argv[1:] else None)
        if argv[0] != "last":
            return print_stack(tr, int(argv[0]))
        for cpu in cpus.each_possible_cpu():
            buffer = tr['array_buffer']['buffer']['buffers'][cpu]
            if buffer:
                print_last(tr, cpu, buffer['commit_page']['page'])


LxStackmap("lx-stackmap", gdb.COMMAND_DATA)
