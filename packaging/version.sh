#!/usr/bin/env bash
# Prints the version of the packages for a version of git describe.
#
#   packaging/version.sh VERSION
#
# dpkg and rpm order the packages as git orders the commits:
#
#   0~TIME+COUNT+3359f70    a commit before the first tag
#   1.2.0~rc1               the tag v1.2.0-rc1
#   1.2.0                   the tag v1.2.0
#   1.2.0+4+g3359f70        the fourth commit after it
#
# TIME is that of the newest commit up to this one, and COUNT their number: times of commits can be equal and go
# back, and COUNT grows with each commit.
set -euo pipefail
export LC_ALL=C

version=${1#v}
if [[ $version =~ ^[0-9]+\.[0-9] ]]; then
	sed -E 's/-dirty$/+dirty/; s/-([0-9]+)-(g[0-9a-f]+)(\+dirty)?$/+\1+\2\3/; s/-/~/; s/-/./g' <<< "$version"
	exit
fi
# Without a repository, the time is that of the build.
times=$(git -C "$(dirname "$0")" log --format=%ct 2>/dev/null || true)
newest=$(sort -n <<< "$times" | tail -n 1)
count=$(grep -c . <<< "$times" || true)
echo "0~$(date -u -d "@${newest:-${SOURCE_DATE_EPOCH:-0}}" +%Y%m%d%H%M%S)+$count+${version//-/+}"
