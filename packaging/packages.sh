#!/usr/bin/env bash
# Makes a deb and an rpm for each architecture.
#
#   packaging/packages.sh OUT VERSION NFPM FILES ARCH=BINARY...
#
# OUT is the directory that they are put into, VERSION what git describe says, NFPM the packager, FILES the directory that
# files.sh has filled, and BINARY the program for the architecture ARCH, which has the name that Go gives it.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
VERSION=$("$here/version.sh" "$2")
nfpm=$(realpath "$3")
files=$(realpath "$4")
shift 4

# The same commit gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH VERSION ARCH

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
for pair in "$@"; do
	ARCH=${pair%%=*}
	rm -rf "${stage:?}"/*
	cp -r "$here/scripts" "$here/sequins.service" "$files"/* "$stage"
	install -D -m 755 "${pair#*=}" "$stage/usr/bin/sequins"
	chmod -R u=rwX,go=rX "$stage" # whatever those of the repository are
	find "$stage" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
	for packager in deb rpm; do
		(cd "$stage" && "$nfpm" package --config "$here/nfpm.yaml" --packager $packager --target "$out/")
	done
done
