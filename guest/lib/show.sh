# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What a command prints, between lines "@@ NAME" and "@@", for this machine's part of a test.

show() { # NAME command
	echo "@@ $1"
	"${@:2}"
	echo "@@"
}
