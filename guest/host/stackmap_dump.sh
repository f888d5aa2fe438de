#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# After guest/tests/stackmap_dump.sh: the map that it has saved, whose text was that of the kernel's %pS. The saved
# kallsyms and the vmlinux, with KASLR undone, give the same text. Only kallsyms has modules. A flame graph is drawn.
# shellcheck source=scripts/lib.sh
. "${0%/*}/../../scripts/lib.sh"
. "$ROOT/guest/lib/same_text.sh"

out=$1 map=$1/map
vmlinux=$(kernel_dir x86_64)/vmlinux
linked=$(nm "$vmlinux" | awk '$3 == "_text" { print $1 }')
booted=$(awk '$3 == "_text" { print $1 }' "$map/kallsyms")
echo "_text: linked at $linked, booted at $booted"
grep -F '[' "$map/kallsyms" >"$out/modules"
"$STACKMAP_DUMP" map "$map" | by_id | cmp - "$out/text" || exit
"$STACKMAP_DUMP" map -k "$out/modules" -v "$vmlinux" "$map" | by_id | cmp - "$out/text" || exit
"$ROOT/scripts/flamegraph" "$map" "$out/map.svg" && grep -q '<title>schedule ' "$out/map.svg" || exit
# Once in some hundred boots, KASLR does not move the kernel. Then this shows less.
[ "$linked" != "$booted" ] || exit 4
