#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# User stacks by file: programs that know their stacks (guest/programs/userstack.c), of all kinds, in files of all
# kinds. Each frame has the right file and offset, or is an address; never a wrong name.
# takes: 36
# timeout: 600
# program: perl
. /guest/lib/lib.sh
[ -e options/userstacktrace_delay ] || skip "no deferred unwinding"
command -v userstack.pie > /dev/null || skip "there are no programs for this here"

make_instance files
dir=$TRACING_DIR/instances/files
truth=$TMPDIR/truth
bin=/usr/local/bin
cd "$dir"
echo 0 > tracing_on
echo 16384 > buffer_size_kb
trace_closes .

# Programs that record() runs are elsewhere in memory each time.
random=/proc/sys/kernel/randomize_va_space
set_opt $random 0
record() { # command, which prints its stacks
	echo > trace
	echo 1 > tracing_on
	echo 2 > $random
	"$@" > "$truth"
	echo 0 > $random
	echo 0 > tracing_on
}

# The stacks of the trace, those that the programs have printed, and those of stack_map.
same() { # name
	stacks_of trace > "$TMPDIR/trace"
	[ -s "$truth" ] || fail "$1: nothing was recorded"
	diff "$truth" "$TMPDIR/trace" || fail "$1: wrong stacks"
	in_map
	echo "$1: $(wc -l < "$truth") stacks, of $(tr ' ' '\n' < "$truth" | sed -n 's/\[+.*//p' | grep -c /) frames in files"
}

# Each stack of the trace is in the map, with the same frames.
in_map() {
	awk '/^user_stack_id/ { id = $2; next } /^  \[/ { sub(/^  \[[0-9]+\] /, ""); s[id] = s[id] " " $0 }
		END { for (id in s) print id s[id] }' stack_map | sort > "$TMPDIR/map"
	awk '/^ => / { if (id) { sub(/^ => +/, ""); sub(/^<0*/, "0x"); sub(/>$/, ""); sub(/\[\+/, "+"); sub(/\]$/, "")
			s[id] = s[id] " " $0 } next }
		{ id = 0 }
		match($0, /<user_unwind_stack_id [0-9a-f]+ [0-9]+>/) {
			split(substr($0, RSTART, RLENGTH - 1), f, " "); id = f[3]
			if (id in seen) id = 0; else seen[id] }
		END { for (id in s) print id s[id] }' trace | sort > "$TMPDIR/used"
	comm -13 "$TMPDIR/map" "$TMPDIR/used" > "$TMPDIR/missing"
	[ ! -s "$TMPDIR/missing" ] || { cat "$TMPDIR/missing"; fail "stack_map has other frames"; }
}

# The frames of FILE, whatever is behind them, are said to be of PATH.
renamed() { # file path name
	sed -i "s,$1\\[,$2[,g" "$truth"
	same "$3"
}

files() { stat_of files .; }

record userstack -f 1 5 50 124
same "static PIE"
before=$(files)
record userstack -f 1 5 50 124
same "the same at another address"
[ "$(files)" -eq "$before" ] || fail "another file for the same one"
record userstack.nopie -f 1 5 50
same "non-PIE"
record userstack.stripped -f 3
same "stripped, without a build id"
record userstack.pie -f 3
same "PIE"
record userstack.pie -f -d /usr/local/lib/liba.so -d /usr/local/lib/libb.so 2
same "one library, then another one at its address"
[ "$(grep -c 'lib[ab]\.so' "$truth")" -eq 2 ] || fail "no libraries"
record userstack.nopie -f -x $bin/userstack.stripped 2
same "non-PIE, which executes another one"
record userstack -f -t 1 2 3 4 5 6 7 8 9
same "threads"
two() {
	userstack.nopie -f -p 31999 4
	userstack.stripped -f -p 31999 4
}
record two
same "two programs with one pid"

echo "== memory that is no file"
for kind in anon memfd; do
	record userstack -f -m $kind 2
	grep -q ' 0x' "$truth" || fail "no address"
	same "code in $kind"
done
grep -q '^addresses: [1-9]' stack_map_stat || fail "addresses are not counted"
before=$(stat_of cut .)
record userstack -f -u -m anon 3
same "code that is unmapped before the stack is taken"
[ "$(stat_of cut .)" -gt "$before" ] || fail "the cut is not counted"

echo "== forged words"
# A program that jumps to one dies. That is no complaint of the kernel.
[ ! -e /proc/sys/debug/exception-trace ] || echo 0 > /proc/sys/debug/exception-trace
# Small numbers, the last number, no file, [vsyscall], the kernel, and nowhere.
for word in 0x8000100000001000 0x8000200000001000 0xffffe00000000000 0x8000000000000000 \
	0xffffffffff600000 0xffffffff81000000 0x1234 0x8000100000000000; do
	record userstack -f -r $word 2
	same "$word on the stack"
done
jump_to_a_word() {
	echo 1 > tracing_on
	userstack -r 0x8000100000001000 -f -s > /dev/null 2>&1 || true
	echo 0 > tracing_on
}
echo 1 > events/syscalls/sys_enter_rt_sigreturn/enable
echo > trace
jump_to_a_word
echo 0 > events/syscalls/sys_enter_rt_sigreturn/enable
! grep -q '+0x1000\]' trace || fail "a forged instruction has a file"

# At once, its stack has no frame to store. It is in full, and counted.
before=$(stat_of drops_empty .)
echo 0 > options/userstacktrace_delay
echo 1 > options/userstacktrace
echo 1 > events/signal/signal_generate/enable
jump_to_a_word
echo 0 > events/signal/signal_generate/enable
echo 0 > options/userstacktrace
echo 1 > options/userstacktrace_delay
[ "$(stat_of drops_empty .)" -gt "$before" ] || fail "a stack that begins with a forged instruction is lost"

echo "== files"
cp $bin/userstack "$TMPDIR/first"
cp $bin/userstack "$TMPDIR/second"
record "$TMPDIR/first" -f 2
same "a copy, with the build id of another file"
cp $bin/userstack.stripped "$TMPDIR/first"
record "$TMPDIR/first" -f 2
same "overwritten in place"
record "$TMPDIR/second" -f 2
before=$(files)
chmod 700 "$TMPDIR/second"
record "$TMPDIR/second" -f 2
chmod 755 "$TMPDIR/second"
record "$TMPDIR/second" -f 2
same "another mode"
[ "$(files)" -eq $((before + 2)) ] || fail "$(($(files) - before)) files for two modes"
changes() {
	for ((i = 0; i < 40; i++)); do
		printf '\n' >> "$TMPDIR/second"
		"$TMPDIR/second" -f 2
	done
}
record changes
same "changed 40 times"
[ "$(files)" -eq $((before + 42)) ] || fail "$(($(files) - before - 2)) files for 40 changes"
cp $bin/userstack.stripped "$TMPDIR/new"
record "$TMPDIR/new" -f 4
same "a file that is replaced"
cp $bin/userstack.stripped "$TMPDIR/newer"
mv "$TMPDIR/newer" "$TMPDIR/new"
record "$TMPDIR/new" -f 5
same "replaced"
rm "$TMPDIR/new"
same "deleted afterwards"
cp $bin/userstack.nopie "$TMPDIR/gone"
cp $bin/userstack.stripped "$TMPDIR/gone.stripped"
gone() { # program [command...]: deletes it when it runs, by the command
	exec 7< "$1"
	rm "$1"
	"${@:2}" /proc/self/fd/7 -f 2
	exec 7<&-
}
printf '\n' >> "$TMPDIR/gone"
record gone "$TMPDIR/gone"
grep -q ' (deleted)\[' "$truth" || fail "not deleted"
same "deleted before, with a build id"
record gone "$TMPDIR/gone.stripped"
[ -s "$truth" ] || fail "nothing was recorded"
stacks_of trace > "$TMPDIR/trace"
! grep -q / "$TMPDIR/trace" || { cat "$TMPDIR/trace"; fail "a deleted file without a build id has a name"; }

newline="$TMPDIR/a
b"
cp $bin/userstack.stripped "$newline"
record "$newline" -f 2
grep -qF 'a\012b[' "$truth" || fail "no newline"
same "a newline in the path"
long=$TMPDIR
for ((i = 0; i < 5; i++)); do long=$long/$(printf '%0200d' $i); done
mkdir -p "$long"
cp $bin/userstack.stripped "$long/long"
record "$long/long" -f 1 5
same "a path of $((${#long} + 5)) bytes"

mkdir "$TMPDIR/root"
mkdir -p "$TMPDIR/root/proc"
mount -t proc proc "$TMPDIR/root/proc"
cp $bin/userstack.stripped "$TMPDIR/root/prog"
record chroot "$TMPDIR/root" /prog -f 2
renamed /prog "$TMPDIR/root/prog" "in a chroot"
cp $bin/userstack.nopie "$TMPDIR/root/gone"
printf '\n\n' >> "$TMPDIR/root/gone"
record gone "$TMPDIR/root/gone" chroot "$TMPDIR/root"
umount "$TMPDIR/root/proc"
renamed '/gone (deleted)' "$TMPDIR/root/gone (deleted)" "deleted in a chroot"

echo "== file systems"
mkdir "$TMPDIR"/{mnt,lower,upper,work,huge}
if grep -q overlay /proc/filesystems; then
	mount -t tmpfs tmpfs "$TMPDIR/mnt"
	mkdir "$TMPDIR/mnt"/{lower,upper,work,merged}
	cp $bin/userstack.stripped "$TMPDIR/mnt/lower/prog"
	mount -t overlay -o "lowerdir=$TMPDIR/mnt/lower,upperdir=$TMPDIR/mnt/upper,workdir=$TMPDIR/mnt/work" \
		overlay "$TMPDIR/mnt/merged"
	record "$TMPDIR/mnt/merged/prog" -f 2
	grep -q merged "$truth" || fail "not in the overlay"
	same "overlay"
	umount "$TMPDIR/mnt/merged"
	umount "$TMPDIR/mnt"
else
	echo "no overlayfs here"
fi
if grep -q hugetlbfs /proc/filesystems && echo 4 > /proc/sys/vm/nr_hugepages; then
	mount -t hugetlbfs huge "$TMPDIR/huge"
	record userstack -f -m "$TMPDIR/huge/huge" 2
	same "hugetlbfs"
	rm "$TMPDIR/huge/huge"
	umount "$TMPDIR/huge"
	echo 0 > /proc/sys/vm/nr_hugepages
fi
mount -t tmpfs tmpfs "$TMPDIR/mnt"
record userstack -f -m "$TMPDIR/mnt/far" -o 0xff000000000 2
grep -q 'far\[+0xff00000000b\]' "$truth" || fail "not far enough"
same "the last offset but one page"
record userstack -f -m "$TMPDIR/mnt/farther" -o 0x100000000000 2
sed -i 's,[^ ]*farther[^ ]*,ADDRESS,' "$truth"
stacks_of trace | sed 's/ 0x[0-9a-f]*/ ADDRESS/' | diff "$truth" - || fail "an offset that does not fit"
cp $bin/userstack.stripped "$TMPDIR/mnt/prog"
record "$TMPDIR/mnt/prog" -f 2
same "on a file system of its own"
for ((i = 0; i < 20; i++)); do
	! umount "$TMPDIR/mnt" 2> /dev/null || break
	sleep .1
done
! mountpoint -q "$TMPDIR/mnt" || fail "the file system is in use"
same "which is unmounted"

echo "== entries"
echo 1 > events/syscalls/sys_enter_clock_gettime/enable
echo > trace
echo 1 > tracing_on
userstack -f -c
echo 0 > tracing_on
echo 0 > events/syscalls/sys_enter_clock_gettime/enable
grep -q '^ => \[vdso\]\[+0x' trace || fail "no frame in the vDSO"
perl -0777 -ne 'exit !/\x14\0{3}(?!\0{20}).{20}\x06\0{3}\[vdso\]\0\0/s' stack_map_bin || fail "the vDSO has no build id"
# What an interrupt has hit is in the event, and not in the map.
echo "address >= 0x10000000000 && address < 0x10000010000" > events/exceptions/page_fault_user/filter
echo 1 > events/exceptions/page_fault_user/enable
record userstack -f -y 2 5
echo 0 > events/exceptions/page_fault_user/enable
sed 's/: page_fault_user: address=0x10000002000 .*/: sys_close(fd: 3ea)/
	s/: page_fault_user: address=0x10000005000 .*/: sys_close(fd: 3ed)/' trace > "$TMPDIR/faults"
stacks_of "$TMPDIR/faults" | diff "$truth" - || fail "wrong stacks of page faults"
[ "$(grep -c '<user_unwind_stack_split [0-9a-f]* @[0-9a-f]* [0-9]*>$' trace)" -eq 2 ] || fail "no split stacks"
hit=$(sed -n 's/^2 [^ ]*\[\(+0x[0-9a-f]*\)\] .*/\1/p' "$truth")
[ -n "$hit" ] || fail "no instruction"
! grep "$hit\$" stack_map || fail "what was hit is in the map"
# The stack that execve() comes back with is that of the new program, which has one frame.
echo 1 > events/syscalls/sys_enter_execve/enable
echo > trace
echo 1 > tracing_on
userstack.nopie -f 1 > /dev/null
echo 0 > tracing_on
echo 0 > events/syscalls/sys_enter_execve/enable
awk '/^ => / { if (exec) { print; n++ } next } { exec = 0 } /sys_execve/ { e = 1; next }
	e && /user_unwind_stack/ { exec = 1; e = 0 } END { exit n != 1 }' trace > "$TMPDIR/exec" ||
	{ cat "$TMPDIR/exec"; fail "execve has no stack of one frame"; }
grep -q 'userstack.nopie\[' "$TMPDIR/exec" || { cat "$TMPDIR/exec"; fail "not that of the new program"; }

echo "== more than a line of trace holds"
cp $bin/userstack.stripped "$long/deep"
record "$long/deep" -f 149
grep -q '^\[LINE TOO BIG\]$' trace || fail "the cut is not marked"
grep '^ => ' trace > "$TMPDIR/cut"
[ "$(grep -c '\[+0x[0-9a-f]*\]$' "$TMPDIR/cut")" -eq "$(wc -l < "$TMPDIR/cut")" ] || fail "half a line"
echo "$(wc -l < "$TMPDIR/cut") of 127 frames fit"
[ "$(grep -c "deep+0x" stack_map)" -eq 127 ] || fail "stack_map is cut"

echo "== a reset"
# The next map is not replaced.
set_opt /sys/module/ftrace_stackmap/parameters/recycle 0
echo reset > stack_map
[ "$(files)" -eq 0 ] || fail "files after a reset"
grep -q '(stale)$' trace || fail "the ids are not stale"
! grep -q '^ => ' trace || fail "frames of stale ids"
record userstack.nopie -f 3
same "after it"

echo "== a full map"
mkdir "$long/many"
mount -t tmpfs tmpfs "$long/many"
[ "$(stat_of drops .)" -eq 0 ] || fail "drops"
(
	cd "$long/many"
	echo 1 > "$dir/tracing_on"
	userstack -b 9000
	echo 0 > "$dir/tracing_on"
)
n=$(files)
echo "$n files, $(stat_of memory .) bytes"
[ "$n" -lt 9000 ] || fail "there is no bound"
[ "$n" -gt 2500 ] || fail "the bound is too low"
[ "$(stat_of drops .)" -eq "$(stat_of drops_arena .)" ] || fail "other drops"
umount "$long/many"
cp $bin/userstack.stripped "$TMPDIR/late"
record "$TMPDIR/late" -f 2
stacks_of trace > "$TMPDIR/trace"
! grep -q / "$TMPDIR/trace" || fail "a file that a full map has taken"
record userstack.nopie -f 3
same "stacks that are there stay"
check_map .
cd "$TRACING_DIR"
echo "user stacks by file: passed"
