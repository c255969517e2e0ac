# Sums up the log of `go test -v`: the line of each package as go test writes it without -v, everything a
# package said when it failed, and an exit status of 1 when any test was skipped.
{ said = said $0 "\n" }
/^ *--- SKIP/ { skipped = skipped $0 "\n" }
/^(ok|\?) +\t/ { print; said = ""; fflush() }
/^FAIL\t/ { printf "%s", said; said = ""; fflush() }
/^FAIL$/ { }
END {
	if (skipped) { printf "skipped tests:\n%s", skipped; exit 1 }
	if (said != "FAIL\n") printf "%s", said # what belongs to no package: a build that failed, a crash
}
