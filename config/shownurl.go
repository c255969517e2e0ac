package config

import (
	"regexp"
	"strings"
)

// userOfURL matches the beginning of a URL up to its user and password, also if these have characters that must be escaped.
var userOfURL = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*://)?.*@`)

// shownURL returns a URL, which need not be valid, as problems show it: without user, password and query, which may be secret.
func shownURL(v string) string {
	v = userOfURL.ReplaceAllString(v, "$1***@")
	if i := strings.IndexAny(v, "?#"); i >= 0 {
		v = v[:i+1] + "***"
	}
	return v
}
