#!/usr/bin/env bash
# Tests the packages that have changed since $1 (a commit or a branch; uncommitted changes count), and those that depend on them, also by
# their tests: what needs Go alone.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0

changed=$({ git diff --name-only "$1"; git ls-files --others --exclude-standard; } | sort -u)
[[ -n $changed ]] || { echo "nothing has changed since $1"; exit; }
all=$(go list -test -f '{{if not .ForTest}}{{.ImportPath}} {{.Dir}} {{join .Deps " "}}{{end}}' ./...)
# A file belongs to the nearest package above it, as testdata does.
packages=$(awk -v root="$PWD/" '
  FNR == NR { if ($1 !~ /\.test$/) path[substr($2 "/", length(root) + 1)] = $1; next }
  { dir = $0; do { sub(/[^\/]*\/?$/, "", dir) } while (dir != "" && !(dir in path)); if (dir in path) print path[dir] }
  ' <(echo "$all") <(echo "$changed") | sort -u)
tests=$(awk '
  FNR == NR { changed[$1]; next }
  $1 ~ /\.test$/ { name = $1; sub(/\.test$/, "", name); if (name in changed) { print name; next }
    for (i = 3; i <= NF; i++) if ($i in changed) { print name; next } }
  ' <(echo "$packages") <(echo "$all") | sort -u)
[[ -n $tests ]] || { echo "no test depends on what has changed"; exit; }
# shellcheck disable=SC2086
go test -vet off $tests
