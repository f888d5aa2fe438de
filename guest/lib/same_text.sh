# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Sourced. Compares the text of stackmap_dump with the kernel's. The caller has a function "fail".

# Sorts what "stackmap_dump map" prints by the ids, as stack_map is sorted.
by_id() {
	awk -v RS= '{ gsub(/\n/, "\t"); print }' | sort -s -n -k 2,2 | awk '{ gsub(/\t/, "\n"); print $0 "\n" }'
}

# Fails unless two texts are equal line by line. One difference is allowed: if a return address is
# the first byte of a function, %pS names that function, and stackmap_dump names the caller.
same_text() { # what kernel's ours
	awk -v what="$1" 'NR == FNR { kernel[NR] = $0; n = NR; next }
	$0 == kernel[FNR] { same++; next }
	{
		# schedule+0x0/0xc0 there, do_exit+0xe0/0xe0 here
		split(kernel[FNR], k, /\+0x/)
		split($0, o, /\+0x/)
		split(k[2], ks, /[\/ ]/)
		split(o[2], os, /[\/ ]/)
		if (k[2] ~ /^0\// && os[2] == "0x" os[1]) {
			if (!back++)
				print what ": one byte back, for example: " kernel[FNR] " is " $0
			next
		}
		print what ", line " FNR ": the kernel has " kernel[FNR] ", stackmap_dump has " $0
		bad = 1
		exit
	}
	END {
		if (!bad && FNR != n) {
			print what ": " n " lines of the kernel, " FNR " of stackmap_dump"
			bad = 1
		}
		print what ": " same + 0 " lines the same, " back + 0 " looked up one byte back"
		exit bad
	}' "$2" "$3" || fail "$1"
}
