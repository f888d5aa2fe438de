#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/test-arch: saves a map in /out, as text and binary, with its symbols.
. /guest/lib/lib.sh

record_some
check_map
cat stack_map_stat
cat stack_map > /out/text
cat stack_map_bin > /out/bin
cat /proc/kallsyms > /out/kallsyms
