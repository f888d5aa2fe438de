# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced: a private apt for another Debian release than the machine's. It does not touch the machine's
# lists, caches or packages, and uses the machine's mirror. Set APTBOX_ARCH before for another
# architecture.

APTBOX=$BUILD/apt${APTBOX_ARCH:+-$APTBOX_ARCH}
APTBOX_SUITES="trixie trixie-updates trixie-backports"

# Prints "URI<TAB>keyring" of the main Debian archive in the machine's apt sources.
aptbox_mirror() {
	local codename
	codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
	{
		# One-line form: deb [options] URI suite component...
		cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
		awk '$1 == "deb" {
			key = ""
			if (match($0, /\[[^]]*\]/)) {
				options = substr($0, RSTART + 1, RLENGTH - 2)
				$0 = substr($0, 1, RSTART - 1) " " substr($0, RSTART + RLENGTH)
				n = split(options, o, " ")
				for (i = 1; i <= n; i++)
					if (tolower(o[i]) ~ /^signed-by=/)
						key = substr(o[i], 11)
			}
			print $2 "\t" $3 "\t" key
		}'
		# deb822 form: stanzas of fields; lists may hold several words.
		for f in /etc/apt/sources.list.d/*.sources; do
			if [ -f "$f" ]; then cat "$f"; echo; fi
		done |
		awk '
		function flush_stanza(   i, j, n, m, u, s) {
			if (f["types"] ~ /(^| )deb( |$)/ && tolower(f["enabled"]) != "no") {
				n = split(f["uris"], u, " "); m = split(f["suites"], s, " ")
				for (i = 1; i <= n; i++)
					for (j = 1; j <= m; j++)
						print u[i] "\t" s[j] "\t" f["signed-by"]
			}
			split("", f)
		}
		/^#/ { next }
		/^[ \t]*$/ { flush_stanza(); next }
		/^[ \t]/ { f[name] = f[name] " " $0; next }
		{ name = tolower($0); sub(/:.*/, "", name)
		  value = $0; sub(/^[^:]*:[ \t]*/, "", value); f[name] = value }
		END { flush_stanza() }'
	} | awk -F'\t' -v codename="$codename" '
		$1 ~ /^(https?|file|mirror|mirror\+file|mirror\+https?):/ &&
		($2 == codename || $2 ~ /^(stable|oldstable|testing|unstable|sid)$/) &&
		$1 !~ /security/ {
			# A key block written into the sources file is no path.
			print $1 "\t" ($3 ~ /^\// && $3 !~ / / ? $3 : ""); exit
		}'
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
