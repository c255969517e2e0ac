// Package names has the rules for the names of databases, versions and tokens. A valid name cannot leave its directory,
// is one element of the path of a URL without escapes, has no other meaning in a header field, and differs from the
// files of a source or store, which begin with a dot or an underscore. In the query of a URL, '+' must be sent as %2B;
// see FromQuery.
package names

import "strings"

// Max is the maximum length of a name, in bytes: the limit of file systems.
const Max = 255

// Valid reports whether s is a valid name of a version: letters, digits and ._-=+,@: beginning with a letter or digit.
// These are the names of directories that Hive and Spark write, such as day=2026-01-31, and times. The directory that
// file systems keep at their root, lost+found, has another meaning.
func Valid(s string) bool { return s != "lost+found" && valid(s, "._-=+,@:") }

// ValidDatabase reports whether s is a valid name of a database: a valid name without another meaning in a URL.
func ValidDatabase(s string) bool {
	switch s {
	case "healthz", "livez", "readyz":
		return false
	}
	return Valid(s)
}

// ValidToken reports whether s is a valid name of a token: letters, digits, dots, underscores and dashes, beginning with
// a letter or digit.
func ValidToken(s string) bool { return valid(s, "._-") }

const lettersAndDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// valid reports whether s consists of letters, digits and, after the first character, bytes of others.
func valid(s, others string) bool {
	return s != "" && len(s) <= Max && strings.IndexByte(others, s[0]) < 0 && strings.Trim(s, lettersAndDigits+others) == ""
}

// FromQuery returns the names in a value of a query that was decoded as a form, such as by net/url: a '+' that was sent
// without escape has become a space there, and names have no spaces.
func FromQuery(value string) string { return strings.ReplaceAll(value, " ", "+") }
