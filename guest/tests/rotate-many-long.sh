#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The generations wrap twice by rotations alone. They follow each other without the pause that keeps their
# share of the CPU small.
# takes: 2600
# flavour: x86_64+kunit
# full: two wraps of all generations; rotate-many.sh has one that resets bring near
# timeout: 9000
echo 0 > /sys/module/ftrace_stackmap/parameters/pause
exec /guest/tests/rotate-many.sh 2 8300 2
