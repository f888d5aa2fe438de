#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Readers keep the files open during five minutes of resets.
# takes: 400
# when: full
# timeout: 900
exec /guest/tests/readers.sh 300
