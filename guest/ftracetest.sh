#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/ftracetest: runs the kernel's ftracetest, and prints the logs of failed tests.
cd /selftests/ftrace || exit 1
./ftracetest --logdir /tmp/logs "$@"
rc=$?
for log in /tmp/logs/*-log.*; do
	[ -f "$log" ] || continue
	echo "===== ${log##*/}"
	tail -n 60 "$log"
done
exit $rc
