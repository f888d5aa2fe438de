# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced after lib.sh: the tests that run in the guest.
#
# A script guest/tests/NAME.sh is one test; status 0 passes, 4 skips. Its first comment lines may hold:
#   # takes: seconds          on an idle machine
#   # alone: reason           it needs a guest of its own, as does a test that has one of the lines above "full";
#                             others share one
#   # flavour: debug          # append: kernel arguments      # cpus: N      # mem: MiB
#   # thread: multi           # splat: allowed
#   # out: directory          copy the files in /out to this directory
#   # expect: panic           the kernel must panic
#   # expect-console: REGEX   the console must show that (grep -E); may be repeated
#   # reject-console: REGEX   the console must not show that; may be repeated
#   # full: reason            why it runs only with FULL=1 (make test-full), or if it is named
#   # timeout: seconds        (600)
#   # file: path              copy this file of the repository to the guest's /guest
#   # program: name           copy this program and its libraries to the guest, if the machine has it
# If there is a guest/host/NAME.sh, it runs on this machine after the test has passed, with the directory of what the
# test has left in $OUT, or in /out. $STACKMAP_DUMP is the tool of the guest.

# field FILE KEY: the values of "# KEY: value" in the comment at the top of a script, one a line.
field() { sed -n "/^#/!q; s/^# $2:[[:space:]]*//p" "$1"; }

# The tests whose names match PATTERN, those that take longest first. Without a pattern, the everyday ones.
guest_tests() { # PATTERN
	local f
	for f in "$ROOT"/guest/tests/*"$1"*; do
		[ -n "${FULL:-}$1" ] || [ -z "$(field "$f" full)" ] || continue
		printf '%d %s\n' "$(field "$f" takes)" "$f"
	done | sort -s -n -r | cut -d' ' -f2
}

# Can the test run in a guest in which others ran before?
is_shared() { # FILE
	! sed '/^#/!q' "$1" | grep -qE '^# (alone|flavour|append|cpus|mem|thread|splat|out|expect|expect-console|reject-console):'
}

# Share tests, the longest first, out to N guests; prints those of guest number I, from 0 on.
share_out() { # I N NAME...
	local i=$1 n=$2 name
	shift 2
	for name; do
		printf '%d %s\n' "$(field "$ROOT/guest/tests/$name.sh" takes)" "$name"
	done | awk -v i="$i" -v n="$n" '{
		for (least = k = 0; k < n; k++)
			if (sum[k] < sum[least])
				least = k
		sum[least] += $1
		if (least == i)
			print $2
	}'
}
