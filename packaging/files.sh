#!/usr/bin/env bash
# Makes the files of packages and archives that are the same for all systems.
#
#   packaging/files.sh DIR BINARY NOTICES
#
# In DIR, it makes doc, man, completion and etc. Manual pages and completions are by the program, a BINARY for the machine
# that this runs on, and sequins.conf is from sequins.conf.example. NOTICES is the file with the licences of others.
set -euo pipefail
export LC_ALL=C

top=$(cd "$(dirname "$0")/.." && pwd)
binary=$(realpath "$2")
notices=$(realpath "$3")
umask 022
mkdir -p "$1"
cd "$1"
mkdir -p etc doc man completion
# Documentation has the layout of the repository, so that its links are good.
install -m 644 -t doc "$top"/*.md "$top/LICENSE" "$top/sequins.conf.example"
install -m 644 "$top/LICENSE" doc/copyright
install -m 644 "$notices" doc/THIRD_PARTY_NOTICES
cp -r "$top/docs" doc
install -D -m 644 "$top/bench/README.md" doc/bench/README.md
mkdir doc/packaging
cp -r "$top/packaging"/{contrib,helm,kubernetes} doc/packaging
rm doc/packaging/contrib/prometheus/alerts_test.yml doc/docs/*.go doc/docs/pictures/*.{mjs,json,sh}
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
