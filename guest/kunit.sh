#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/test-arch: the KUnit tests of the stack map.
cd /sys/kernel/debug/kunit/ftrace_stackmap || exit 1
echo 1 > run
cat results
