#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A map size out of range on the command line: the kernel's own message, and the default.
# takes: 3
# append: ftrace_stackmap.bits=99
# timeout: 300
. /guest/lib/lib.sh

bits=/sys/module/ftrace_stackmap/parameters/bits
[ "$(cat $bits)" = 14 ] || fail "bits is $(cat $bits)"
dmesg | grep -F "\`99' invalid for parameter \`ftrace_stackmap.bits'" || fail "no message"

echo 0 > tracing_on
echo 1 > options/stackmap
cat stack_map_stat
[ "$(sed -n 's/^entries: 0 \/ //p' stack_map_stat)" -eq 4096 ] || fail "the map has another size"
