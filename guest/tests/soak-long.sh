#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The small map over half an hour.
# takes: 2500
# full: half an hour; soak.sh is the short form
# timeout: 4000
exec /guest/tests/soak.sh 1800 60
