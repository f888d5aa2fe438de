#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/ftracetest: the kernel's ftracetest, and the logs of what did not pass.
cd /selftests/ftrace || exit 1
./ftracetest --logdir /tmp/logs "$@"
rc=$?
for log in /tmp/logs/*-log.*; do
	[ -f "$log" ] || continue
	echo "===== ${log##*/}"
	tail -n 60 "$log"
done
exit $rc
