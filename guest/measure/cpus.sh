#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a map costs on a machine with that many CPUs. Prints a row: possible CPUs, online CPUs; KiB of Percpu and of
# VmallocUsed before there is a map, what a map adds to each, KiB of memory of the empty and of the full map as
# stack_map_stat says; ms to set the option, to read stack_map, stack_map_stat and stack_map_bin, the minimum of 5.
# Run with scripts/guest -j icount, where a ms is a million instructions, and rcupdate.rcu_expedited=1.
# Usage: cpus.sh
#        cpus.sh instances N     N instances: KiB of Percpu before, with the instances, with their maps
. /guest/lib/lib.sh

meminfo() { sed -n "s/^$1: *\([0-9]*\) kB/\1/p" /proc/meminfo; }
cpus() { awk -F- -v RS=, '{ n += ($2 == "" ? $1 : $2) - $1 + 1 } END { print n }' "/sys/devices/system/cpu/$1"; }
memory() { echo $(($(stat_of memory "$1") / 1024)); }

# The shortest of 5 runs of a command in us.
us() {
	local from to best='' us
	for _ in 1 2 3 4 5; do
		from=${EPOCHREALTIME/./}
		"$@" > /dev/null
		to=${EPOCHREALTIME/./}
		us=$((to - from))
		[ -n "$best" ] && [ "$best" -le $us ] || best=$us
		[ "$1" != enable ] || disable
	done
	echo "$best"
}
ms() { awk -v us="$1" 'BEGIN { printf "%.2f", us / 1000 }'; }
# Without the time that cat takes.
read_ms() {
	local us=$(($(us cat "$1") - $(us cat /dev/null)))
	ms $((us > 0 ? us : 0))
}
enable() { echo 1 > options/stackmap; }
disable() { echo 0 > options/stackmap; echo reset > stack_map; }

if [ "${1:-}" = instances ]; then
	before=$(meminfo Percpu)
	for ((i = 0; i < $2; i++)); do
		make_instance "many$i"
	done
	made=$(meminfo Percpu)
	for ((i = 0; i < $2; i++)); do
		echo 1 > "instances/many$i/options/stackmap"
	done
	echo "row $(cpus possible) $(cpus online) $2 $before $made $(meminfo Percpu)"
	exit 0
fi

set_opt tracing_on 0
set_opt /sys/module/ftrace_stackmap/parameters/recycle 0
percpu=$(meminfo Percpu)
vmalloc=$(meminfo VmallocUsed)
row="$(cpus possible) $(cpus online) $percpu $vmalloc"
enable
row="$row $(($(meminfo Percpu) - percpu)) $(($(meminfo VmallocUsed) - vmalloc)) $(memory .)"
disable
took=$(ms "$(us enable)")
enable

# Fill the map. The program is elsewhere in memory each time that it runs, so all its stacks are new.
set_opt buffer_size_kb 16
echo "fd > 1000" > events/syscalls/sys_enter_close/filter
echo 1 > events/syscalls/sys_enter_close/enable
set_opt options/userstacktrace 1
echo 1 > tracing_on
max=$(sed -n 's/^entries: .* //p' stack_map_stat)
for ((n = 0; n < 1000 && $(stat_of entries) < max; n++)); do
	userstack {1..40} > /dev/null
done
echo 0 > tracing_on
[ "$(stat_of entries)" -eq "$max" ] || fail "the map is not full: $(cat stack_map_stat)"
cat stack_map_stat
echo "row $row $(memory .) $took $(read_ms stack_map) $(read_ms stack_map_stat) $(read_ms stack_map_bin)"
check_map
