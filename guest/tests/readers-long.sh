#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Readers keep the files open during five minutes of resets.
# takes: 400
# full: five minutes; readers.sh is the short form
# timeout: 900
exec /guest/tests/readers.sh 300
