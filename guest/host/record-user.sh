#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# After guest/tests/record-user.sh: the recordings of a program whose stacks are known. Here are its functions.
# shellcheck source=scripts/lib.sh
. "${0%/*}/../../scripts/lib.sh"

out=$1
frames_of() { # depth
	printf 'call_at_end[userstack];'
	# shellcheck disable=SC2046
	printf 'level%d[userstack];' $(seq "$1")
	printf 'leaf[userstack];entry_SYSCALL_64_after_hwframe;'
}
for name in now delay; do
	[ -d "$out/$name" ] || [ $name = now ] || continue
	"$STACKMAP_DUMP" export --format folded --symfs "$out/root" "$out/$name" >"$out/$name.folded" || exit
	for depth in 3 100 7; do
		grep -F "$(frames_of $depth)" "$out/$name.folded" || { echo "$name: no stack of depth $depth"; exit 1; }
	done
done
