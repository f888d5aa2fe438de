# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the other scripts: paths, messages, progress lines, package installation.

set -u -o pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$ROOT/build
LOGS=$BUILD/log
DEFAULT_BASE=7.3
mkdir -p "$LOGS"

# apt, awk and sort must speak one language, whatever the user's is.
export LC_ALL=C.UTF-8

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# Path relative to the repository, for messages.
rel() { printf '%s' "${1#"$ROOT"/}"; }

# The base version in use: BASE=, else what scripts/source settled on, else the default.
base() {
	if [ -n "${BASE:-}" ]; then
		printf '%s' "$BASE"
	elif [ -s "$BUILD/base" ]; then
		cat "$BUILD/base"
	else
		printf '%s' "$DEFAULT_BASE"
	fi
}

# Prints the files of this repository that go into a kernel tree, each ended by a zero byte.
overlay_files() {
	local d dirs=()
	for d in kernel Documentation tools arch include lib; do
		[ ! -d "$ROOT/$d" ] || dirs+=("$d")
	done
	[ ${#dirs[@]} -eq 0 ] || (cd "$ROOT" && find "${dirs[@]}" -type f ! -name '*~' ! -name '.*.sw?' \
		! -name '*.orig' ! -name '*.rej' ! -name '*.o' -print0)
}

# One builder at a time in a build directory; the lock ends with the script.
lock() {
	mkdir -p "$(dirname "$1")"
	exec {LOCK_FD}>"$1"
	flock -n "$LOCK_FD" && return
	say "waiting for another run that holds $(rel "$1")"
	flock "$LOCK_FD"
}

# step TEXT LOGNAME COMMAND...: a progress line, output to a log, the log's tail on failure.
# STEP_TOTAL is set by the caller.
STEP=0
step() {
	local text=$1 log=$LOGS/$2.log start=$SECONDS rc
	shift 2
	STEP=$((STEP + 1))
	printf '[%d/%d] %s, log: %s\n' "$STEP" "${STEP_TOTAL:-1}" "$text" "$(rel "$log")"
	"$@" >"$log" 2>&1 </dev/null && rc=0 || rc=$?
	if [ $rc -ne 0 ]; then
		tail -n 25 "$log" | sed 's/^/    | /'
		printf '    FAILED after %ds (status %d); the whole log: %s\n' \
			$((SECONDS - start)) $rc "$(rel "$log")"
		return $rc
	fi
	[ $((SECONDS - start)) -lt 5 ] || printf '      done in %ds\n' $((SECONDS - start))
}

# need_packages NAME...: installs the Debian packages that are missing.
need_packages() {
	local p missing=()
	for p; do
		dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed ||
			missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null ||
		die "these Debian packages are missing and there is no apt-get: ${missing[*]}"
	[ "$(id -u)" = 0 ] ||
		die "not root; please run: sudo apt-get install --no-install-recommends ${missing[*]}"
	say "installing: ${missing[*]}"
	local get=(env DEBIAN_FRONTEND=noninteractive apt-get -y -q --no-install-recommends install)
	"${get[@]}" "${missing[@]}" && return
	say "trying again with fresh package lists"
	apt-get -q update && "${get[@]}" "${missing[@]}" ||
		die "apt-get could not install: ${missing[*]}"
}
