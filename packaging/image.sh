#!/usr/bin/env bash
# Makes the image for containers: its layers by tar, the rest by the Go program in image/.
#
#   packaging/image.sh OUT VERSION NOTICES ARCH=BINARY...
#
# OUT is the archive, VERSION what git describe says, NOTICES the file with the licences of others. The bytes depend on these and the
# files alone. A layer has the program, the authorities of the web, a user, and the two directories that the user may write to. There
# is no shell and no library.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "$1") version=$2 notices=$(realpath "$3")
shift 3
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct 2>/dev/null || echo 0)}
revision=$(git -C "$here" rev-parse HEAD 2>/dev/null || true)
user=65532 # as in image/main.go
# The toolchain that go.mod names: another one may compress in another way.
GOTOOLCHAIN=go$(awk '$1 == "go" { print $2 }' "$here/image/go.mod")
export GOTOOLCHAIN
# With the flags of binary.sh, so that what they share is compiled once.
image() { CGO_ENABLED=0 GOAMD64=v1 GOFLAGS='-trimpath -gcflags=all=-dwarf=false' "${GO:-go}" -C "$here/image" run . "$@"; }
archive() { tar --sort=name --format=ustar --numeric-owner --mtime="@$epoch" --mode=u=rwX,go=rX "$@"; }

mkdir -p "$(dirname "$out")"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
tree=$stage/tree
mkdir -p "$tree"/{etc/ssl/certs,tmp,usr/bin,usr/share/doc/sequins,var/sequins}
printf 'root:x:0:\nsequins:x:%d:\n' $user > "$tree/etc/group"
printf 'root:x:0:0::/:/sbin/nologin\nsequins:x:%d:%d::/var/sequins:/sbin/nologin\n' $user $user > "$tree/etc/passwd"
image certificates > "$tree/etc/ssl/certs/ca-certificates.crt"
cp "$here/../LICENSE" "$notices" "$tree/usr/share/doc/sequins"
layers=()
for pair in "$@"; do
	install -m 755 "${pair#*=}" "$tree/usr/bin/sequins"
	layer=$stage/${pair%%=*}.tar
	archive --owner=0 --group=0 -C "$tree" -cf "$layer" etc usr --no-recursion var
	archive --owner=$user --group=$user -C "$tree" -rf "$layer" tmp var/sequins
	layers+=("${pair%%=*}=$layer")
done
image -version "${version#v}" -revision "$revision" -epoch "$epoch" "$stage/layout" "${layers[@]}"
archive --owner=0 --group=0 -C "$stage/layout" -cf "$out" blobs index.json oci-layout
