#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Guest side of scripts/test-kernel-ftracetest: runs each test of the kernel's ftracetest, except those of the
# stack map, with a time limit. Prints "RESULT seconds test" lines with the result of ftracetest,
# TIMEOUT or NONE, and at the end whether the stack map was on and used.
# Usage: suite.sh [pattern]      run only tests with a matching path
cd /selftests/ftrace || exit 1
limit=300
tracing=/sys/kernel/tracing

# Some tests trace a program called ping. They only need it to sleep and wake up, which this one does
# without a network.
printf '#!/bin/busybox sh\nfor i in 1 2 3; do sleep .2; done\n' >/usr/local/bin/ping
chmod +x /usr/local/bin/ping

# The results of one call of ftracetest. It runs some tests a second time, in an instance.
results() { # test seconds status
	awk -v test="$1" -v seconds="$2" -v status="$3" '
	/^\[[0-9]+\]/ {
		name = /^\[[0-9]+\] +\(instance\)/ ? test " (instance)" : test
		result = status == 124 || status == 137 ? "TIMEOUT" : "NONE"
		if (match($0, /\[[A-Z]+\]$/))
			result = substr($0, RSTART + 1, RLENGTH - 2)
		printf "%-11s %4d %s\n", result, seconds, name
		n++
	}
	END { if (!n) printf "%-11s %4d %s\n", "NONE", seconds, test }'
}

while IFS= read -r test; do
	if grep -q "^${test}[[:space:]]" /guest/suite.skip; then
		printf '%-11s %4d %s\n' SKIPPED 0 "$test"
		continue
	fi
	begin=$SECONDS
	rm -rf /tmp/logs
	timeout -k 5 $limit ./ftracetest --logdir /tmp/logs "$test" >/tmp/words 2>&1 </dev/null
	rc=$?
	results "$test" $((SECONDS - begin)) $rc </tmp/words
	# A killed test leaves these behind; ftracetest restores all else.
	rmdir $tracing/instances/ftracetest.* 2>/dev/null
	for log in /tmp/logs/*-log.*; do
		[ -f "$log" ] || continue
		mkdir -p "/out/logs"
		cp "$log" "/out/logs/${test//\//_}"
	done
done < <(find test.d -name '*.tc' -path "*${1:-}*" ! -path 'test.d/ftrace/stackmap/*' | sort)

echo "stackmap: $(cat $tracing/options/stackmap 2>/dev/null || echo absent)" \
	"$(sed -n 's/^\(generation\|successes\|drops\):/\1/p' $tracing/stack_map_stat 2>/dev/null | tr '\n' ' ')"
echo end
