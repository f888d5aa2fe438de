#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The growth of the map over ten minutes: after the first one, splitting keeps it below 1 % of what
# the map gains without.
# when: full
# timeout: 900
# out: build/growth-long
exec /guest/tests/growth.sh 600 10
