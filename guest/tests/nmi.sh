#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Stacks from NMIs, timers and softirqs for a minute. Asks all CPUs for a back trace by NMI again and
# again, while the function tracer records the functions of the NMI with stacks. Counts are exact, and
# no stack is stored twice.
# takes: 60
# full: a minute of NMIs; user-delay.sh records some, too
# timeout: 600
. /guest/lib/lib.sh

seconds=${1:-60}
# The back traces themselves would fill the console.
echo 1 > /proc/sys/kernel/printk
set_opt buffer_size_kb 32768
set_opt options/func_stack_trace 0
stackmap_on
show_frames 0
nmi='nmi_cpu_backtrace* default_do_nmi exc_nmi nmi_handle* perf_ibs_nmi_handler nmi_cpu_backtrace_handler'
irq='hrtimer_run_softirq __hrtimer_run_queues tick_nohz_handler run_timer_softirq handle_softirqs
	rcu_core_si wake_up_process kmem_cache_free'
for f in $nmi $irq; do
	echo "$f" >> set_ftrace_filter || true
done 2> /dev/null
grep -q nmi set_ftrace_filter || fail "no function of the NMI path can be traced"
cat set_ftrace_filter
echo 1 > options/func_stack_trace
record_functions
echo 1 > events/irq/softirq_entry/enable
echo 1 > events/timer/hrtimer_expire_entry/enable
end=$(($(cut -d. -f1 /proc/uptime) + seconds))
requests=0
while [ "$(cut -d. -f1 /proc/uptime)" -lt $end ]; do
	echo l > /proc/sysrq-trigger
	requests=$((requests + 1))
	[ $((requests % 20)) -ne 0 ] || stackmap_work 1
done
stop_recording
cat stack_map_stat
check_map
echo "$requests requests for back traces"
check_counts
awk '/^stack_id / { stack = $0; seen = 0; next }
	/exc_nmi|nmi_handle|nmi_cpu_backtrace/ && !seen { seen = 1; n++; match(stack, /ref [0-9]+/); refs += substr(stack, RSTART + 4, RLENGTH - 4) }
	END { print n + 0 " stacks from NMIs, " refs + 0 " references"; exit !(n > 0 && refs > 50) }' stack_map ||
	fail "too few NMIs were recorded"
grep -q 'softirq' stack_map || fail "no softirq was recorded"
grep -q 'hrtimer' stack_map || fail "no timer was recorded"
