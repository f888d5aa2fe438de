#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A map size out of range on the command line: a warning, and the nearest bound.
# append: ftrace_stackmap.bits=99
# timeout: 300
. /guest/lib.sh

bits=/sys/module/ftrace_stackmap/parameters/bits
[ "$(cat $bits)" = 18 ] || fail "bits is $(cat $bits)"
dmesg | grep -E 'stackmap.*range.* 18' || fail "no warning"

echo 0 > tracing_on
echo 1 > options/stackmap
cat stack_map_stat
[ "$(sed -n 's/^entries: 0 \/ //p' stack_map_stat)" -eq 262144 ] || fail "the map has another size"
