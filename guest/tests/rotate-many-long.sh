#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The generations wrap twice by rotations alone.
# takes: 2600
# full: two wraps of all generations; rotate-many.sh has one that resets bring near
# timeout: 9000
exec /guest/tests/rotate-many.sh 2 8300 2
