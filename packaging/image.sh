#!/usr/bin/env bash
# Makes the image for containers, by the Go program in image/.
#
#   packaging/image.sh OUT VERSION NOTICES ARCH=BINARY...
#
# OUT is the archive, VERSION what git describe says, NOTICES the file with the licences of others.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "$1") version=$2 notices=$(realpath "$3")
shift 3
binaries=()
for pair in "$@"; do
	binaries+=("${pair%%=*}=$(realpath "${pair#*=}")")
done
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct 2>/dev/null || echo 0)}
revision=$(git -C "$here" rev-parse HEAD 2>/dev/null || true)
mkdir -p "$(dirname "$out")"
# The toolchain that go.mod names: another one may compress in another way.
GOTOOLCHAIN=go$(awk '$1 == "go" { print $2 }' "$here/image/go.mod")
export GOTOOLCHAIN
GOFLAGS='' "${GO:-go}" -C "$here/image" run . -version "${version#v}" -revision "$revision" -epoch "$epoch" \
	-docs "$here/../LICENSE,$notices" "$out" "${binaries[@]}"
