#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Three real programs are recorded: a build, a database, a server with sockets. Where they wait and what they
# allocate is what awk makes of the report, what perf says of the same allocations, and what strace says of the
# time in a system call.
# takes: 80
# full: real programs take long in an emulator; leaks.sh, off-cpu.sh and user-delay.sh have programs whose figures are known
# program: make
# program: gcc
# program: /usr/lib/gcc/x86_64-linux-gnu/12/cc1
# program: /usr/libexec/gcc/x86_64-linux-gnu/14/cc1
# program: as
# program: ld
# program: sqlite3
# program: redis-check-rdb
# program: redis-cli
# program: redis-benchmark
# program: strace
# program: chrt
# program: perf
# timeout: 900
. /guest/lib/lib.sh
. /guest/lib/record.sh
. /guest/lib/profile.sh

for program in make gcc sqlite3 redis-check-rdb redis-cli strace chrt perf; do
	command -v $program > /dev/null || skip "there is no $program here"
done
[ -x "$(gcc -print-prog-name=cc1)" ] || skip "gcc has another compiler here"
# Each runs in a directory of its own.
cat > "$TMPDIR/build" << 'W'
for n in 1 2 3; do
	for i in {1..50}; do echo "int f${n}_$i(int a) { return a / $i; }"; done > part$n.c
done
printf '%s: %s\n\t%s\n' all.o 'part1.o part2.o part3.o' 'ld -r -o $@ $^' %.o %.c 'gcc -O1 -ffreestanding -c -o $@ $<' > Makefile
make -s -j2
W
# The second one finds the database locked, and sleeps until it is not.
cat > "$TMPDIR/database" << 'W'
sqlite3 db 'create table t(a integer primary key, b)'
sqlite3 db 'begin exclusive' '.shell touch locked' '.shell sleep 2' \
	'insert into t(b) with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) select i from n' commit &
while [ ! -e locked ]; do sleep .1; done
sqlite3 db '.timeout 60000' 'update t set b = b * 2' 'select sum(b) from t'
wait
W
# The same program is the server, by another name.
cp "$(command -v redis-check-rdb)" "$TMPDIR/redis-server"
cat > "$TMPDIR/server" << 'W'
../redis-server --port 0 --unixsocket "$PWD/socket" --save '' > log &
while [ ! -S socket ]; do sleep .1; done
redis-benchmark -s socket -c 2 -n 10 -t set,get -q
for i in 1 2 3; do
	redis-cli -s socket incr n
	sleep .5
done
redis-cli -s socket flushall async
redis-cli -s socket shutdown nosave
wait
W

# perf counts allocations by itself, of what it starts and from that exec on. It leaves a task where that begins to end.
same_for_perf() {
	first=$(cat "$work/pid")
	perf script -i "$work/perf.data" -F tid,event,trace 2> "$TMPDIR/perf.err" | awk -v first="$first" '
		$1 != first {
			event = $2
			sub(/:$/, "", event)
			sub(/.*:/, "", event)
			match($0, / bytes_alloc=[0-9]+/)
			sum[event " " $1] += substr($0, RSTART + 13, RLENGTH - 13)
		}
		END { for (key in sum) print key, sum[key] }' | sort > "$TMPDIR/perf.bytes"
	echo "$program: perf: $(total < "$TMPDIR/perf.bytes") bytes of $(wc -l < "$TMPDIR/perf.bytes")"
	profile bytes --grep '^do_exit[+]' | awk '
		FILENAME ~ /perf/ { task[$2]; perf[$1 " " $2] = $3 }
		FILENAME ~ /tool/ && $2 in task { tool[$1 " " $2] = $3; perf[$1 " " $2] += 0 }
		FILENAME == "-" { at_end[$1 " " $2] = $3 }
		END {
			for (key in perf)
				if (perf[key] > tool[key] || perf[key] < tool[key] - at_end[key])
					print key ": " perf[key] ", not " tool[key] + 0, "of them at the end", at_end[key] + 0
		}' "$TMPDIR/perf.bytes" "$TMPDIR/tool.bytes" - > "$TMPDIR/bad"
	cat "$TMPDIR/bad"
	[ ! -s "$TMPDIR/bad" ] || fail "perf says something else"
	[ "$(wc -l < "$TMPDIR/perf.bytes")" -ge 4 ] || fail "too few tasks"
}

waits() { stackmap_dump export --format folded -q --weight off-cpu --grep "^${function}[+]" --comm "$1" "$out" | total; } # pattern of names

in_directory() { # name
	work=$TMPDIR/$1
	mkdir "$work"
	printf 'cd %s\necho $$ > pid\n' "$work" | cat - "$TMPDIR/$program" > "$work/work"
}

for program in build database server; do
	case $program in
	build) call=wait4 function=do_wait ;;
	database) call=clock_nanosleep function=hrtimer_nanosleep ;;
	server) call=epoll_wait function=do_epoll_wait ;;
	esac

	in_directory $program.1
	recorded 0 -o "$out" -b 16384 -e sched:sched_switch,sched:sched_waking,kmem:kmalloc,kmem:kmem_cache_alloc -- \
		perf record -q -m 1024 -e kmem:kmalloc,kmem:kmem_cache_alloc -o "$work/perf.data" bash "$work/work"
	case $err in
	*"were lost"*) fail "entries were lost" ;;
	esac
	whole "$out"
	same_profile time
	same_profile preempted
	same_profile bytes
	same_for_perf

	in_directory $program.2
	# It is not to wait for a CPU itself when a call has ended. Its tasks have the usual priority.
	recorded 0 -o "$out" -b 16384 -u -e sched:sched_switch -- chrt -R -f 1 strace -f -T -e trace="$call" -o "$work/strace" bash "$work/work"
	truth=$(sed -n 's/.*<\([0-9.]*\)>$/\1/p' "$work/strace" | awk '{ n += $1 } END { print int(n * 1000000) }')
	# It waits itself for what its tasks do.
	us=$(($(waits '*') - $(waits strace)))
	calls=$(grep -c '>$' "$work/strace")
	echo "$program: $call: $us us in $calls calls, $truth says strace"
	# It takes milliseconds for a call itself on a busy machine.
	if [ "$us" -lt 1000000 ] || [ "$us" -gt "$truth" ] || [ "$us" -lt $((truth - 5000 * calls)) ]; then
		fail "strace says something else"
	fi
done
