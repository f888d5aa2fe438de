#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Ids and full stacks of the same events agree frame by frame, while the map is replaced all the time
# and both buffers overwrite.
# Usage: rotate-equivalence.sh [rotations]
# takes: 34
# timeout: 400
. /guest/lib/lib.sh
. /guest/lib/compare.sh

make_pair equivalence 1024
start_pair
await_rotations "${1:-20}"
stop_pair
cat $ids/stack_map_stat
[ "$(lost_events $ids)" -gt 0 ] || fail "the buffer did not wrap"
# Some of the current map and of the one before it; on a fast machine, also of those that are kept. That
# these are right is for sleepy.sh and rotate-many.sh.
compare_pair 1000 2
check_map $ids

# The comparison itself must be able to fail.
awk '/: <stack_(id|split) / { n++ } n == 500 && /^ => / { n++; next } { print }' "$TMPDIR/ids" \
	> "$TMPDIR/mutilated"
[ "$(wc -l < "$TMPDIR/ids")" -eq $(($(wc -l < "$TMPDIR/mutilated") + 1)) ]
normalise "$TMPDIR/mutilated" > "$TMPDIR/ids.txt"
! agree "$TMPDIR/full.txt" "$TMPDIR/ids.txt" || fail "a frame is gone, and nobody noticed"
