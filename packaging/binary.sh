#!/usr/bin/env bash
# Builds the program of a release for a system.
#
#   packaging/binary.sh OUT VERSION OS ARCH
#
# The bytes depend on the source, on VERSION and on the release of Go that go.mod names: not on the directory, on the
# settings of who builds, or on whether there is a repository. Without tables for debuggers, which -s -w would leave out, and with a
# compiler that is as quick as the Makefile's.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
out=$(realpath -m "$1")
export GOOS=$3 GOARCH=$4 CGO_ENABLED=0 GOFLAGS= GOEXPERIMENT= GOAMD64=v1 GOARM64=v8.0 GOGC=400
GOTOOLCHAIN=go$(awk '$1 == "go" { print $2 }' "$top/go.mod")
export GOTOOLCHAIN
cd "$top"
"${GO:-go}" build -trimpath -gcflags=all=-dwarf=false -buildvcs=false -ldflags "-s -w -X main.release=$2" -o "$out" ./cmd/sequins
