#!/usr/bin/env bash
# Prints the size of the repository as it is committed or staged: lines of Go outside of tests for each folder, folders at the
# root, configuration keys, and words of documents.
#
#   .ci/size.sh [COMMIT]
#
# Of COMMIT, or of the index. Not counted as the product are bench, test and testdata.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
commit=${1:-$(git write-tree)}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git archive "$commit" | tar -x -C "$tree"
cd "$tree"

# lines DIR... counts the lines of Go files that are not tests.
lines() {
	find "$@" -name '*.go' ! -name '*_test.go' ! -path '*/testdata/*' -exec cat {} + | wc -l
}

for folder in */; do
	printf '%7d  %s\n' "$(lines "$folder")" "${folder%/}"
done | awk '$1 > 0' | sort -rn
mapfile -t product < <(find . -mindepth 1 -maxdepth 1 -type d ! -name '.*' ! -name bench ! -name test ! -name testdata)
printf '%7d  lines of the product\n' "$(lines "${product[@]}")"
printf '%7d  folders at the root\n' "$(find . -mindepth 1 -maxdepth 1 -type d ! -name '.*' | wc -l)"
printf '%7d  configuration keys\n' "$(grep -cE '^(# )?[a-z_0-9."]+ = ' sequins.conf.example)"
printf '%7d  words of documents\n' "$(cat ./*.md docs/*.md docs/design/*.md | wc -w)"
