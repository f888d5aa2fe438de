#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The generations wrap twice by 8,300 rotations.
# flavour: x86_64+kunit
# when: full
# timeout: 7200
exec /guest/tests/rotate-many.sh 2 8300 2
