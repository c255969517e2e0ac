#!/usr/bin/env bash
# Makes the pictures of the README from real runs: the status page of a node by headless Chromium, a terminal session,
# and a chart of the figures in figures.json. `make pictures` runs it. It needs Go, Node.js and Chromium, and takes a minute.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
root=$(cd ../.. && pwd)

node chart.mjs figures.json chart.svg
if [ "${1-}" = chart ]; then
  exit
fi

(cd "$root" && make build VERSION="$(git describe --tags --always)")
[ -d "$root/test/browser/node_modules" ] || (cd "$root/test/browser" && npm ci --no-audit --no-fund)

dir=$(mktemp -d /tmp/sequins.XXXX)
started=()
finish() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  rm -rf "$dir"
}
trap finish EXIT

# await COMMAND...: returns when the command succeeds, and fails after a minute.
await() {
  for _ in $(seq 600); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  echo "gave up waiting for: $*" >&2
  return 1
}

free_port() { node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'; }

# The data: both versions of the demo's database, and the example.
"$root/bin/sequins" demo --pause 100ms >"$dir/demo.log" 2>&1 &
demo=$!
started+=("$demo")
await grep -q 'upgraded:' "$dir/demo.log"
products=$(sed -n 's|.*SequenceFiles, in \(.*\)/[^/]*$|\1|p' "$dir/demo.log" | head -1)
cp -r "$products" "$dir/made"
kill "$demo"
wait "$demo" || true
mkdir -p "$dir/source/products"
cp -r "$dir/made/2026-01-30" "$dir/source/products/"
cp -r "$root/docs/example/words" "$dir/source/words"

# The page: two databases are served, and a new version of one is being loaded.
port=$(free_port)
config() {
  printf 'source = "%s"\nlocal_store = "%s"\nbind = "127.0.0.1:%s"\nthrottle_loads = "%s"\n' "$dir/source" "$dir/store" "$port" "$1"
}
config 0s >"$dir/sequins.conf"
"$root/bin/sequins" --config "$dir/sequins.conf" 2>"$dir/node.log" &
server=$!
started+=("$server")
await "$root/bin/sequins" status --server "127.0.0.1:$port"
cp -r "$dir/made/2026-01-31" "$dir/source/products/"
config 5ms >"$dir/sequins.conf"
kill -HUP "$server"
node page.mjs "http://127.0.0.1:$port" "$(command -v chromium)" "$here"
kill "$server"
wait "$server" || true

# The terminal.
mkdir "$dir/terminal"
cp -r "$dir/made" "$dir/terminal/made"
PORT=$(free_port) SEQUINS="$root/bin/sequins" DIR="$dir/terminal" node terminal.mjs "$here/terminal.svg"
ls -l "$here"/*.png "$here"/*.svg
