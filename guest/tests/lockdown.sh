#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Locked down for confidentiality, the kernel does not open the files of the map.
# alone: nothing undoes the lockdown
# takes: 5
# timeout: 300
. /guest/lib/lib.sh

lockdown=/sys/kernel/security/lockdown
[ -w $lockdown ] || skip "no $lockdown"
for file in stack_map stack_map_stat stack_map_bin; do
	cat $file > /dev/null || fail "$file does not open before the lockdown"
done
trap - EXIT
echo confidentiality > $lockdown
cat $lockdown
for file in trace stack_map stack_map_stat stack_map_bin; do
	if cat $file > /dev/null 2> "$TMPDIR/errno"; then
		fail "$file opens"
	fi
	grep "Operation not permitted" "$TMPDIR/errno" || fail "$file: $(cat "$TMPDIR/errno")"
done
if write_once stack_map reset; then
	fail "stack_map opens for writing"
fi
grep "Operation not permitted" "$TMPDIR/errno"

command -v stackmap_dump > /dev/null || exit 0
if stackmap_dump record -o "$TMPDIR/out" touch "$TMPDIR/ran" 2> "$TMPDIR/errno"; then
	fail "stackmap_dump records"
fi
grep "Operation not permitted (the kernel may be locked down)" "$TMPDIR/errno" || fail "$(cat "$TMPDIR/errno")"
[ -z "$(ls instances)" ] || fail "an instance is left"
[ "$(echo "$TMPDIR"/out* "$TMPDIR"/ran*)" = "$TMPDIR/out* $TMPDIR/ran*" ] || fail "files are left"
