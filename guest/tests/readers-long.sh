#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Readers that keep the files open over five minutes of resets.
# when: full
# timeout: 900
exec /guest/tests/readers.sh 300
