# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced: a private apt for another Debian release than the machine's. It does not touch the machine's
# lists, caches or packages, and uses the machine's mirror. Set APTBOX_ARCH before for another
# architecture.

APTBOX=$BUILD/apt${APTBOX_ARCH:+-$APTBOX_ARCH}
APTBOX_SUITES="trixie trixie-updates trixie-backports"

# Prints "URI<TAB>keyring" of the main Debian archive in the machine's apt sources. apt tells the file and the
# number of a source's line or stanza, but not its keyring.
aptbox_mirror() {
	local codename uri entry
	codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
	IFS=$'\t' read -r uri entry < <(apt-get indextargets --no-release-info \
		--format $'$(REPO_URI)\t$(SOURCESENTRY)\t$(RELEASE)' 'Created-By: Packages' 'Component: main' |
		awk -F'\t' -v codename="$codename" '
			$1 ~ /^(https?|file|mirror|mirror\+file|mirror\+https?):/ && $1 !~ /security/ &&
			($3 == codename || $3 ~ /^(stable|oldstable|testing|unstable|sid)$/) { print $1 "\t" $2; exit }') ||
		return
	printf '%s\t' "${uri%/}"
	# A key block written into the sources file is no path.
	case $entry in
	*.sources:*) sed '/^#/d' "${entry%:*}" | awk -v RS= -v n="${entry##*:}" 'NR == n' ;;
	*) sed -n "${entry##*:}p" "${entry%:*}" ;;
	esac | tr -s '[:space:]' ' ' | sed -nE 's,.*signed-by ?[:=] ?(/[^] ]*).*,\1,Ip'
}

aptbox() {
	"$1" ${APTBOX_ARCH:+-o "APT::Architecture=$APTBOX_ARCH" -o "APT::Architectures::=$APTBOX_ARCH"} \
		-o "Dir::Etc::sourcelist=$APTBOX/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
		-o "Dir::State::lists=$APTBOX/lists" -o "Dir::Cache=$APTBOX/cache" \
		-o Dir::State::status=/dev/null -o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none -o Acquire::Retries=3 "${@:2}"
}

# Updates the private lists if they are a day old.
aptbox_update() {
	local mirror key suite
	command -v apt-get >/dev/null ||
		die "this machine has no apt; please set KERNEL_SRC=directory of a kernel source"
	IFS=$'\t' read -r mirror key < <(aptbox_mirror) || true
	[ -n "${mirror:-}" ] ||
		die "no Debian mirror found in apt's sources; please set KERNEL_SRC=directory of a kernel source"
	mkdir -p "$APTBOX/lists/partial" "$APTBOX/cache/archives/partial"
	for suite in $APTBOX_SUITES; do
		printf 'deb %s%s %s main\n' "${key:+[signed-by=$key] }" "$mirror" "$suite"
	done >"$APTBOX/sources.list.new"
	if [ -n "$(find "$APTBOX/updated" -mtime -1 2>/dev/null)" ] &&
	   cmp -s "$APTBOX/sources.list.new" "$APTBOX/sources.list"; then
		rm "$APTBOX/sources.list.new"
		return
	fi
	mv "$APTBOX/sources.list.new" "$APTBOX/sources.list"
	say "reading the package lists of $APTBOX_SUITES"
	aptbox apt-get -q update || die "could not read the package lists of $APTBOX_SUITES"
	touch "$APTBOX/updated"
}
