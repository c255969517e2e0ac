#!/usr/bin/env bash
# Prints the licences of the modules that are in the programs of a release, of any system, and the licence of Go: most of
# them ask for it.
#
#   packaging/notices.sh
set -euo pipefail
export LC_ALL=C

cd "$(dirname "$0")/.."
go=${GO:-go}
export CGO_ENABLED=0 GOFLAGS=

# licences NAME DIR
licences() {
	local file found=
	for file in "$2"/{LICENSE,LICENCE,COPYING,NOTICE,License,license}*; do
		[ -f "$file" ] || continue
		found=yes
		printf '%s\n%s: %s\n\n' "$(printf '=%.0s' {1..80})" "$1" "$(basename "$file")"
		sed 's/\r$//' "$file"
		echo
	done
	[ -n "$found" ] || { echo "packaging/notices.sh: $1 has no licence in $2" >&2; exit 1; }
}

echo "sequins contains the following software."
echo
# The directory of a module that is replaced by one of this repository is a part of sequins.
modules=$(for system in linux/{amd64,arm64} darwin/arm64; do
	GOOS=${system%/*} GOARCH=${system#*/} "$go" list -deps -f '{{with .Module}}{{if not (or .Main .Replace)}}{{.Path}} {{.Version}}|{{.Dir}}{{end}}{{end}}' ./cmd/sequins
done | sort -u)
licences "Go $("$go" env GOVERSION)" "$("$go" env GOROOT)"
while IFS='|' read -r name dir; do
	licences "$name" "$dir"
done <<< "$modules"
