#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The weights outstanding and leaks of a program that allocates a known number of objects in two
# functions of the kernel and frees some of them. The whole profile is what awk makes of the report.
# takes: 18
# timeout: 300
. /guest/lib/lib.sh
. /guest/lib/record.sh

# The short target of a symbolic link in tmpfs is one kmalloc() in shmem_symlink(); an open FIFO is two below
# fifo_open(). The shell ends before the recording does, so another process has the FIFOs open, too.
mkdir "$TMPDIR/work"
cat > "$TMPDIR/leak" <<'W'
cd "$TMPDIR/work"
target=$(printf '%0100d' 0)
mkfifo fifo{1..60}
for i in {1..120}; do ln -s "$target" link$i; done
for i in {1..60}; do exec {fd[$i]}<> fifo$i; done
for i in {1..20}; do exec {fd[$i]}<&-; done
rm link{1..90}
sleep 1000 &
echo $! > "$TMPDIR/holder"
# The removed links are freed after a grace period.
sleep 3
W
recorded 0 -o "$out" --all -b 16384 -e kmem:kmalloc,kmem:kfree -- bash "$TMPDIR/leak"
kill "$(cat "$TMPDIR/holder")"
whole "$out"
case $err in
*"were lost"*) fail "entries were lost" ;;
esac

# outstanding NUMBER FUNCTION OPTION...
outstanding() {
	n=$(stackmap_dump export --format folded -q --weight outstanding=kmalloc,kfree,ptr --grep "$2" "${@:3}" "$out" | total)
	echo "$2: $n outstanding ${*:3}, $1 are right"
	[ "$n" -eq "$1" ] || fail "wrong"
}
outstanding 30 shmem_symlink
outstanding 30 shmem_symlink --comm ln
outstanding 80 fifo_open
outstanding $((30 * 128)) shmem_symlink --weight bytes_alloc

for weight in leaks events; do
	[ $weight = events ] && args=(--weight 'outstanding=kmalloc,kfree,ptr') || args=(--weight leaks)
	tool=$(stackmap_dump export --format folded -q "${args[@]}" "$out" | total)
	truth=$(awk -v weight=$weight '{ ptr = bytes = ""
			for (i = 1; i <= NF; i++)
				if (sub(/^ptr=/, "", $i)) ptr = $i; else if (sub(/^bytes_alloc=/, "", $i)) bytes = $i }
		/ kmalloc: / { held[ptr] = weight == "leaks" ? bytes : 1 }
		/ kfree: / { delete held[ptr] }
		END { for (ptr in held) n += held[ptr]; print n + 0 }' "$TMPDIR/report")
	echo "all of the machine, $weight: $tool, of the report: $truth"
	[ "$tool" -gt 0 ] && [ "$tool" = "$truth" ] || fail "the sums differ"
done
