# Sums up the log of `go test -v`: the line of each package as go test writes it without -v, everything a
# package said when it failed, and an exit status of 1 when any test was skipped. At the end stand how much ran, the packages
# that took longest, and once more what the tests that failed have said last.
{ said = said $0 "\n" }
/^=== (RUN|CONT|NAME) / { test = $3 }
/^ +[a-z0-9_]+_test\.go:[0-9]+: / { last[test] = last[test] substr($0, 1, 300) "\n"; if (length(last[test]) > 3000) last[test] = substr(last[test], length(last[test]) - 2999) }
/^--- PASS: / { passed++ }
/^(ok|FAIL) *\t/ { packages++; if ($3 ~ /^[0-9.]+s$/) took[$2] = $3 }
/^ *--- FAIL: / { failed = failed $3 ":\n" last[$3] }
/^ *--- SKIP/ { skipped = skipped $0 "\n"; skips++ }
/^(ok|\?) +\t/ { print; said = ""; fflush() }
/^FAIL\t/ { printf "%s", said; said = ""; fflush() }
/^FAIL$/ { }
END {
	if (said != "FAIL\n") printf "%s", said # what belongs to no package: a build that failed, a crash
	longest = "sort -rn | head"
	for (name in took) printf "%8.1f s  %s\n", took[name], name | longest
	close(longest)
	printf "%d packages tested, %d tests passed, %d skipped\n", packages, passed, skips
	if (failed) printf "tests that failed:\n%s", failed
	if (skipped) { printf "skipped tests:\n%s", skipped; exit 1 }
}
