# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Sourced by guest/tests/*.sh: the helpers of the stackmap selftests, outside of ftracetest.
# What a test changed is put back at its end, as there.

set -e
export LC_ALL=C
TRACING_DIR=/sys/kernel/tracing
TMPDIR=$(mktemp -d)
export TMPDIR

exit_fail() { exit 1; }
skip() { echo "skipped: $1"; trap - EXIT; exit 4; }
clear_trace() { echo > trace; }

cd $TRACING_DIR
[ -e options/stackmap ] || { echo "this kernel has no stack map"; exit 1; }
# shellcheck source=/dev/null
. /selftests/ftrace/test.d/stackmap/functions
