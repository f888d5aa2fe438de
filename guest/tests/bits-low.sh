#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A map size out of range on the command line: a warning, and the nearest bound.
# append: ftrace_stackmap.bits=3
# timeout: 300
. /guest/lib.sh

bits=/sys/module/ftrace_stackmap/parameters/bits
[ "$(cat $bits)" = 10 ] || fail "bits is $(cat $bits)"
dmesg | grep -E 'stackmap.*range.* 10' || fail "no warning"

echo 0 > tracing_on
echo 1 > options/stackmap
cat stack_map_stat
[ "$(sed -n 's/^entries: 0 \/ //p' stack_map_stat)" -eq 1024 ] || fail "the map has another size"
