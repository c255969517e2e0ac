#!/usr/bin/env bash
# Makes a deb and an rpm.
#
#   packaging/build.sh OUT VERSION BINARY NFPM
#
# OUT is the directory that they are put into, VERSION what git describe says, BINARY the program, for the
# machine that this runs on, and NFPM the packager. Everything in a package but the program is made here:
# manual pages and completions by the program itself, sequins.conf from sequins.conf.example.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
mkdir -p "$1"
out=$(cd "$1" && pwd)
binary=$(realpath "$3")
nfpm=$(realpath "$4")

# The same commit gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

version=$("$here/version.sh" "$2")

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
cd "$stage"
mkdir -p usr/bin etc doc man completion
cp -r "$here/scripts" "$here/sequins.service" .
install -m 755 "$binary" usr/bin/sequins
# Documentation has the layout of the repository, so that its links are good.
install -m 644 -t doc "$top"/*.md "$top/LICENSE" "$top/sequins.conf.example"
install -m 644 "$top/LICENSE" doc/copyright
cp -r "$top/docs" "$top/contrib" doc
rm doc/contrib/prometheus/alerts_test.yml doc/docs/*.go doc/docs/pictures/*.{mjs,json,sh}
chmod -R u=rwX,go=rX doc
"$binary" man man
gzip -9n man/*.1
"$binary" completion bash > completion/sequins.bash
"$binary" completion fish > completion/sequins.fish
"$binary" completion zsh > completion/_sequins

# The unit keeps its state where distributions have it, and stops after load balancers have noticed; everything
# else is as the example has it.
sed -e 's|^# local_store = .*|local_store = "/var/lib/sequins"|' -e 's|^# shutdown_delay = .*|shutdown_delay = "5s"|' \
	"$top/sequins.conf.example" > etc/sequins.conf
grep -q '^local_store = "/var/lib/sequins"$' etc/sequins.conf
grep -q '^shutdown_delay = "5s"$' etc/sequins.conf

case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) echo "packaging/build.sh: no packages are made for $(uname -m)" >&2; exit 1 ;;
esac
export VERSION=$version ARCH=$arch
for packager in deb rpm; do
	"$nfpm" package --config "$here/nfpm.yaml" --packager $packager --target "$out/"
done
ls "$out"/sequins[-_]*
