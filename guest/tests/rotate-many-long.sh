#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The generations wrap by 5,000 rotations.
# when: full
# timeout: 4000
exec /guest/tests/rotate-many.sh 2 5000
