#!/usr/bin/env bash
# Prints what CHANGELOG.md says of a version, as git describe gives it: of the version 1.2.0 for the tag v1.2.0, else of
# what is not released yet.
#
#   packaging/notes.sh VERSION
set -euo pipefail

changelog=$(dirname "$0")/../CHANGELOG.md
section=Unreleased
if [[ $1 =~ ^v?([0-9]+\.[0-9]+\.[0-9]+(-[a-z]+[.0-9]*)?)$ ]]; then
	section=${BASH_REMATCH[1]}
fi
notes=$(awk -v heading="## [$section]" '
	/^## / { inside = index($0, heading) == 1; next }
	/^\[[^]]*\]: / { next }
	inside { print }' "$changelog")
if [ -z "${notes//[[:space:]]/}" ]; then
	echo "packaging/notes.sh: CHANGELOG.md has nothing under [$section]: write what is new, and release then" >&2
	exit 1
fi
sed '/./,$!d' <<< "$notes"
