#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/test-livepatch: a line for each of the kernel's selftests of livepatch.
for name in modprobe insmod rmmod modinfo lsmod; do
	ln -sf "$(command -v kmod)" /usr/local/bin/$name
done
tar -C /tmp -xf /guest/livepatch.tar && cd /tmp/livepatch || exit 1
export KDIR=/tmp PATH=/usr/local/bin:$PATH
rc=0
for test in test-*.sh; do
	./"$test"
	case $? in
	0) echo "ok $test" ;;
	4) echo "skip $test" ;;
	*) echo "FAIL $test"; rc=1 ;;
	esac
done
exit $rc
