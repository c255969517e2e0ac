#!/usr/bin/env bash
# Makes all files of a release.
#
#   packaging/release.sh OUT VERSION NFPM SBOM
#
# OUT is the directory, which must be empty or absent, VERSION what git describe says, NFPM the packager and SBOM
# cyclonedx-gomod. In OUT are then, each for amd64 and arm64, but for macOS, which is for arm64 alone:
#
#   sequins-VERSION-OS-ARCH.tar.gz        the program and all that belongs to it, for Linux and macOS
#   sequins-VERSION-OS-ARCH.cdx.json      the modules in it (CycloneDX)
#   sequins_VERSION_ARCH.deb, sequins-VERSION-1.ARCH.rpm
#   sequins-VERSION-image.tar             the image for containers, of both architectures (OCI image layout)
#   sequins-VERSION-notes.md              what is new
#   SHA256SUMS                            of all of the above
#
# The same commit gives the same bytes, in whatever directory and by whomever it is built.
set -euo pipefail
export LC_ALL=C TZ=UTC

here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
version=$2
name=${version#v}
nfpm=$(realpath "$3")
sbom=$(realpath "$4")
systems=(linux/amd64 linux/arm64 darwin/arm64)

mkdir -p "$1"
out=$(cd "$1" && pwd)
if [ -n "$(ls -A "$out")" ]; then
	echo "packaging/release.sh: $out is not empty: remove it first" >&2
	exit 1
fi
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
native=linux/$("${GO:-go}" env GOHOSTARCH)
if [[ " ${systems[*]} " != *" $native "* || $(uname -s) != Linux ]]; then
	echo "packaging/release.sh: releases are made on Linux, on amd64 or arm64" >&2
	exit 1
fi
umask 022
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# Without notes there is no release, which is better said before everything is built.
"$here/notes.sh" "$version" > "$stage/notes.md"
for system in "${systems[@]}"; do
	echo "building $system" >&2
	"$here/binary.sh" "$stage/$system/sequins" "$version" "${system%/*}" "${system#*/}"
done
"$here/notices.sh" > "$stage/THIRD_PARTY_NOTICES"
"$here/files.sh" "$stage/files" "$stage/$native/sequins" "$stage/THIRD_PARTY_NOTICES"

for system in "${systems[@]}"; do
	base=sequins-$name-${system/\//-}
	tree=$stage/tree/$base
	mkdir -p "$tree"
	install -m 755 "$stage/$system/sequins" "$tree"
	cp -r "$stage/files"/{man,completion} "$tree"
	cp -r "$stage/files/doc"/* "$tree"
	rm "$tree/copyright" # the same as LICENSE
	tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$stage/tree" -c "$base" |
		gzip -6n > "$out/$base.tar.gz"
	# Hashes of the tool itself, which depend on where it was built, say nothing of the program; and a module that is
	# replaced by one of this repository is a part of the program.
	"$sbom" bin -json -noserial -notimestamp -std -version "$version" "$stage/$system/sequins" 2>"$stage/sbom.log" |
		jq 'del(.metadata.tools[]?.hashes)
			| [.components[] | select(.version == "(devel)") | ."bom-ref"] as $own
			| .components |= map(select(.version != "(devel)"))
			| .dependencies |= (map(select(.ref | IN($own[]) | not)) | map(if .dependsOn then .dependsOn -= $own else . end))' \
			> "$out/$base.cdx.json" || { cat "$stage/sbom.log" >&2; exit 1; }
done

binaries=("amd64=$stage/linux/amd64/sequins" "arm64=$stage/linux/arm64/sequins")
"$here/packages.sh" "$out" "$version" "$nfpm" "$stage/files" "${binaries[@]}"
"$here/image.sh" "$out/sequins-$name-image.tar" "$version" "$stage/THIRD_PARTY_NOTICES" "${binaries[@]}"
install -m 644 "$stage/notes.md" "$out/sequins-$name-notes.md"
cd "$out"
sha256sum -- * > "$stage/SHA256SUMS"
install -m 644 "$stage/SHA256SUMS" SHA256SUMS
