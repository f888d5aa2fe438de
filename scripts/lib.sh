# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the other scripts: paths, messages, progress lines, package installation.

set -u -o pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$ROOT/build
LOGS=$BUILD/log
DEFAULT_BASE=7.3

# The output of apt, awk and sort must not depend on the user's language.
export LC_ALL=C.UTF-8

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
# What was asked for cannot be done. Nothing has been installed or built yet.
refuse() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 2; }

case $ROOT in *[[:space:]:]*) refuse "Linux cannot be built in a path with a blank or a colon: $ROOT" ;; esac
[ -z "${BASE:-}" ] || [ -d "$ROOT/patches/$BASE" ] ||
	refuse "BASE=$BASE: there are patches for $(cd "$ROOT/patches" && echo *)"
if [ -n "${KERNEL_SRC:-}" ]; then
	[ -f "$KERNEL_SRC/kernel/trace/trace.c" ] || refuse "KERNEL_SRC=$KERNEL_SRC holds no kernel source"
	KERNEL_SRC=$(realpath "$KERNEL_SRC")
	case $KERNEL_SRC in *[[:space:]:]*) refuse "Linux cannot be built in a path with a blank or a colon: $KERNEL_SRC" ;; esac
fi
mkdir -p "$LOGS"

# Each script of tests ends with finish, whose line "N passed, N failed, N skipped" is the last one.
# pass, fail, skip TEXT: count a test and print its line. check: see below. $failures has what failed.
passed=0 failed=0 skipped=0 failures=()
pass() { passed=$((passed + 1)); say "  pass  $*"; }
fail() { failed=$((failed + 1)); failures+=("$*"); say "  FAIL  $*"; }
skip() { skipped=$((skipped + 1)); say "  skip  $*"; }
finish() {
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
	exit
}

# Path relative to the repository, for messages.
rel() { printf '%s' "${1#"$ROOT"/}"; }

# The base version: BASE=, or the choice of scripts/source, or the default.
base() {
	if [ -n "${BASE:-}" ]; then
		printf '%s' "$BASE"
	elif [ -s "$BUILD/base" ]; then
		cat "$BUILD/base"
	else
		printf '%s' "$DEFAULT_BASE"
	fi
}

# machine FLAVOUR: sets the kernel's and Debian's name of the architecture, the prefix of the compiler,
# the kernel image, and the fragments of configs/.
# shellcheck disable=SC2034
machine() {
	case ${1%%+*} in
	arm64) ARCH=arm64 DEB=arm64 CROSS=aarch64-linux-gnu- IMAGE=arch/arm64/boot/Image CONFIGS=(arm64) ;;
	i386) ARCH=i386 DEB=i386 CROSS='' IMAGE=arch/x86/boot/bzImage CONFIGS=(pc i386) ;;
	s390x) ARCH=s390 DEB=s390x CROSS=s390x-linux-gnu- IMAGE=arch/s390/boot/bzImage CONFIGS=(s390x) ;;
	*) ARCH=x86_64 DEB=amd64 CROSS='' IMAGE=arch/x86/boot/bzImage CONFIGS=(pc x86_64) ;;
	esac
}

KINDS=(x86_64 pristine debug kcsan startup off nofunc objects arm64 i386 s390x)

# known_flavour KIND[+FRAGMENT...]: ends the script where scripts/kernel can't build that.
known_flavour() {
	local more f
	[[ " ${KINDS[*]} " == *" ${1%%+*} "* ]] || refuse "no such flavour: $1 (${KINDS[*]})"
	IFS=+ read -r -a more <<<"$1"
	for f in "${more[@]:1}"; do
		[ -f "$ROOT/configs/$f.config" ] || refuse "no such flavour: $1 (there is no configs/$f.config)"
	done
}

# kernel_dir FLAVOUR: where it is built.
kernel_dir() {
	case $1 in
	pristine) printf '%s' "$BUILD/$(base)/plain/x86_64" ;;
	*) printf '%s' "$BUILD/$(base)/$1" ;;
	esac
}

# The root file system of the guests of that Debian architecture.
base_cpio() {
	[ "$1" = amd64 ] && printf '%s' "$BUILD/guest/base.cpio" || printf '%s' "$BUILD/guest/base-$1.cpio"
}

# Copies the pristine source to build/<base>/plain/linux, once for each origin. In a subshell, for its lock.
plain_source() (
	from=$BUILD/$(base)/pristine plain=$BUILD/$(base)/plain
	lock "$plain.lock"
	! cmp -s "$from.ok" "$plain/ok" || exit 0
	rm -rf "$plain"
	mkdir -p "$plain"
	cp -aLl "$from" "$plain/linux" 2>/dev/null || { rm -rf "$plain/linux" && cp -aL "$from" "$plain/linux"; } ||
		die "could not copy the source"
	cp "$from.ok" "$plain/ok"
)

# Prints the files of this repository that belong into a kernel tree, terminated by zero bytes. Those in
# patches/<base>/without have no use in that version.
overlay_files() {
	local d dirs=() without
	without=$ROOT/patches/$(base)/without
	for d in kernel Documentation tools arch include lib scripts/gdb; do
		[ ! -d "$ROOT/$d" ] || dirs+=("$d")
	done
	[ ${#dirs[@]} -eq 0 ] || (cd "$ROOT" && find "${dirs[@]}" -type f ! -name '*~' ! -name '.*.sw?' \
		! -name '*.orig' ! -name '*.rej' ! -name '*.o' -print0 |
		if [ -f "$without" ]; then grep -zvxFf "$without"; else cat; fi)
}

# One builder at a time in a build directory; the lock ends with the script.
lock() {
	mkdir -p "$(dirname "$1")"
	exec {LOCK_FD}>"$1"
	flock -n "$LOCK_FD" && return
	say "waiting for another run that holds $(rel "$1")"
	flock "$LOCK_FD"
}

# What was built from a directory need not be looked at again before something has changed.
# unchanged STAMP DIRECTORY RESULT: the text on standard input (a command, a version) is that of STAMP, nothing in
# DIRECTORY is newer, and RESULT is there. If not, build, then call "built STAMP".
# A file that changes during the build is newer than STAMP.
unchanged() {
	local text
	text=$(sha256sum)
	[ "$(cat "$1" 2>/dev/null)" = "$text" ] && [ -e "$3" ] &&
		[ -z "$(find "$2/" \( -newer "$1" -o -cnewer "$1" \) -print -quit)" ] && return
	mkdir -p "$(dirname "$1")"
	rm -f "$1"
	printf '%s\n' "$text" >"$1.new"
	false
}
built() { mv "$1.new" "$1"; }

# lost CONFIG WANTED: the lines of WANTED that CONFIG lacks.
lost() {
	local line symbol
	while IFS= read -r line; do
		case $line in
		*"# optional"*) continue ;;
		"# "*)
			symbol=${line#\# } symbol=${symbol%% *}
			! grep -q "^$symbol=" "$1" ;;
		*) grep -qxF "$line" "$1" ;;
		esac || printf '%s\n' "$line"
	done <<<"$2"
}

# configure TREE OUT FRAGMENT...: makes OUT/.config from these fragments, unless it is up to date. Fails if
# a line of them does not survive. kmake is the caller's make for TREE and OUT.
configure() {
	local tree=$1 out=$2 wanted
	shift 2
	# Later fragments win; one symbol, one line.
	wanted=$(cat "$@" | awk '
		match($0, /CONFIG_[A-Za-z0-9_]+/) && /^(CONFIG_|# CONFIG_[A-Za-z0-9_]+ is not set)/ {
			symbol = substr($0, RSTART, RLENGTH)
			if (!(symbol in line)) order[++n] = symbol
			line[symbol] = $0
		}
		END { for (i = 1; i <= n; i++) print line[order[i]] }')
	[ ! -f "$out/.config" ] || [ -n "$(lost "$out/.config" "$wanted")" ] ||
		[ "$wanted" != "$(cat "$out/.wanted" 2>/dev/null)" ] || return 0
	say "configuring $(rel "$out")"
	kmake tinyconfig >/dev/null || return
	# shellcheck disable=SC2001
	sed 's/[[:space:]]*# optional.*//' <<<"$wanted" >"$out/.fragment"
	(cd "$out" && "$tree/scripts/kconfig/merge_config.sh" -m -Q .config .fragment) || return
	kmake olddefconfig || return
	if [ -n "$(lost "$out/.config" "$wanted")" ]; then
		lost "$out/.config" "$wanted"
		say "these lines of the configuration did not survive in $(rel "$out")/.config"
		return 1
	fi
	printf '%s\n' "$wanted" >"$out/.wanted"
}

# progress LOG: says from time to time how many objects a build has compiled.
progress() {
	local n
	trap 'kill $!; exit' TERM
	while :; do
		sleep 20 >/dev/null 2>&1 &
		wait $!
		n=$(grep -cE '^  (CC|AS|HOSTCC)  ' "$1")
		[ "$n" -eq 0 ] || printf '      %d objects\n' "$n"
	done
}

# step TEXT LOGNAME COMMAND...: a progress line, output to a log, the log's tail on failure.
# STEP_TOTAL is set by the caller.
STEP=0
step() {
	local text=$1 log=$LOGS/$2.log start=$SECONDS rc watcher
	shift 2
	STEP=$((STEP + 1))
	printf '[%d/%d] %s, log: %s\n' "$STEP" "${STEP_TOTAL:-1}" "$text" "$(rel "$log")"
	: >"$log"
	progress "$log" &
	watcher=$!
	"$@" >"$log" 2>&1 </dev/null && rc=0 || rc=$?
	kill $watcher
	wait $watcher 2>/dev/null
	if [ $rc -ne 0 ]; then
		tail -n 25 "$log" | sed 's/^/    | /'
		printf '    FAILED after %ds (status %d); the whole log: %s\n' \
			$((SECONDS - start)) $rc "$(rel "$log")"
		return $rc
	fi
	[ $((SECONDS - start)) -lt 5 ] || printf '      done in %ds\n' $((SECONDS - start))
}

# check TEXT LOGNAME COMMAND...: a step that is a test.
check() {
	if step "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) failures+=("$1"); return 1; fi
}

# What stackmap_dump and its plugin are built with.
# shellcheck disable=SC2034 # for who sources this
TOOL_PACKAGES=(gcc libc6-dev make pkgconf libdw-dev libelf-dev libtracecmd-dev libtracefs-dev libtraceevent-dev)

# build_tool DIRECTORY [VARIABLE=VALUE...]: DIRECTORY/stackmap_dump, for this machine. The objects stay in
# DIRECTORY/obj.
build_tool() {
	mkdir -p "$1/obj"
	make -s -C "$ROOT/tools/tracing/stackmap" O="$1/obj" CFLAGS=-O2 "${@:2}" &&
		cp "$1/obj/tracing/stackmap/stackmap_dump" "$1/stackmap_dump"
}

# build_plugin DIRECTORY [VARIABLE=VALUE...]: the plugin of libtraceevent, for this machine.
build_plugin() {
	mkdir -p "$1/obj"
	make -s -C "$ROOT/tools/tracing/stackmap" O="$1/obj" CFLAGS=-O2 "${@:2}" plugin &&
		cp "$1/obj/tracing/stackmap/plugin_stackmap.so" "$1/plugin_stackmap.so" && rm -r "$1/obj"
}

# need_packages NAME...: installs the Debian packages that are missing.
need_packages() {
	local p missing=() safe=(setsid -w env DEBIAN_FRONTEND=noninteractive)
	# An apt that was killed leaves packages without their configuration. In a session of its own, it sees no
	# signal for this script, and goes on.
	if [ "$(id -u)" = 0 ] &&
	   [ -n "$(dpkg-query -W -f='${db:Status-Status}\n' 2>/dev/null | grep -vxE 'installed|config-files|not-installed')" ]; then
		say "configuring the packages that an earlier run of apt has left"
		"${safe[@]}" dpkg --configure -a
	fi
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
	local get=("${safe[@]}" apt-get -y -q -o DPkg::Lock::Timeout=600 --no-install-recommends install)
	"${get[@]}" "${missing[@]}" && return
	say "trying again with fresh package lists"
	apt-get -q update && "${get[@]}" "${missing[@]}" ||
		die "apt-get could not install: ${missing[*]}"
}

# Kernel complaints on a console that no test may leave there.
splat() {
	tr -d '\r' <"$1" | grep -aE 'WARNING: |\bBUG[: ]|INFO: (task|rcu)|suspicious RCU|possible (recursive|circular)|KASAN: |Oops: |general protection|[Pp]oison overwritten|Redzone overwritten'
}

# count_ftracetest LOG STATUS: adds what ftracetest counted to $passed, $failed and $skipped.
count_ftracetest() {
	local -A n=()
	local key count bad
	while read -r _ _ key count; do n[${key%%[:(]*}]=${count##* }; done < <(grep '^# of ' "$1")
	passed=$((passed + ${n[passed]:-0} + ${n[xfailed]:-0}))
	skipped=$((skipped + ${n[unsupported]:-0} + ${n[untested]:-0}))
	bad=$((${n[failed]:-0} + ${n[unresolved]:-0} + ${n[undefined]:-0}))
	# The guest died, or the counts do not explain the status.
	if [ "$2" -ne 0 ] || [ -z "${n[passed]:-}" ]; then bad=$((bad > 0 ? bad : 1)); fi
	failed=$((failed + bad))
}

# count_kunit LOG STATUS: adds what kunit.py counted to $passed, $failed and $skipped, and sets $summary.
count_kunit() {
	local -A ran=()
	local key count bad
	summary=$(grep -o 'Testing complete\..*' "$1" | tail -n 1)
	while IFS=': ' read -r key count; do ran[$key]=$count; done < <(grep -oE '[a-z]+: [0-9]+' <<<"$summary")
	passed=$((passed + ${ran[passed]:-0}))
	skipped=$((skipped + ${ran[skipped]:-0}))
	bad=$((${ran[failed]:-0} + ${ran[crashed]:-0} + ${ran[errors]:-0}))
	if [ "$2" -ne 0 ] || [ -z "$summary" ]; then bad=$((bad > 0 ? bad : 1)); fi
	failed=$((failed + bad))
}

# checkpatch_ignores FILE: a source file, a patch or a mail. Whoever sends the mails signs off. The list macros of
# trace.h (C(name, "option"), ...) can't have parentheses.
checkpatch_ignores() {
	printf FILE_PATH_CHANGES,MISSING_SIGN_OFF,NO_AUTHOR_SIGN_OFF,COMPLEX_MACRO
	# libelf and libdw use CamelCase.
	if [[ $1 = tools/tracing/* ]] || grep -q '^+++ b/tools/tracing/.*\.[ch]$' "$1"; then printf ,CAMELCASE; fi
	# The body of the kernel's macro is not in the patch.
	! grep -q '^+++ b/include/trace/trace_events.h' "$1" || printf ,MACRO_ARG_UNUSED
}

# A check whose result depends on nothing but a text need not run again. known FILE: has the text on standard input
# passed before? remember FILE: now it has. FULL=1 runs all.
known() {
	known_key=$(sha256sum)
	[ -z "${FULL:-}" ] && grep -qxF -- "$known_key" "$1" 2>/dev/null
}
remember() { grep -qxF -- "$known_key" "$1" 2>/dev/null || printf '%s\n' "$known_key" >>"$1"; }
