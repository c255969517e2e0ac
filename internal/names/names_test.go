package names

import (
	"net/url"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	tests := []struct {
		name                     string
		database, version, token bool
	}{
		{"a", true, true, true},
		{"0", true, true, true},
		{"Db.1_x-Y", true, true, true},
		{strings.Repeat("a", 255), true, true, true},
		{"healthz", false, true, true},
		{"livez", false, true, true},
		{"readyz", false, true, true},
		{"healthz2", true, true, true},
		{"dt=2026-01-31", true, true, false},
		{"run@2026-01-31T10:00:00+01:00", true, true, false},
		{"a,b", true, true, false},
		{"a=+,@:._-", true, true, false},
		{"=a", false, false, false},
		{"+a", false, false, false},
		{",a", false, false, false},
		{"@a", false, false, false},
		{":a", false, false, false},
		{"a#b", false, false, false},
		{"a%3Db", false, false, false},
		{"a?b", false, false, false},
		{"a&b", false, false, false},
		{"a;b", false, false, false},
		{"a\\b", false, false, false},
		{"a~b", false, false, false},
		{"", false, false, false},
		{strings.Repeat("a", 256), false, false, false},
		{".", false, false, false},
		{"..", false, false, false},
		{"_x", false, false, false},
		{"-x", false, false, false},
		{"a/b", false, false, false},
		{"a b", false, false, false},
		{"a%20b", false, false, false},
		{"a\x00", false, false, false},
		{"ä", false, false, false},
		{"a\xff", false, false, false},
	}
	for _, tt := range tests {
		if got := ValidDatabase(tt.name); got != tt.database {
			t.Errorf("ValidDatabase(%q) = %v", tt.name, got)
		}
		if got := Valid(tt.name); got != tt.version {
			t.Errorf("Valid(%q) = %v", tt.name, got)
		}
		if got := ValidToken(tt.name); got != tt.token {
			t.Errorf("ValidToken(%q) = %v", tt.name, got)
		}
	}
}

// A name is the same after it was sent in a query, escaped or not.
func TestFromQuery(t *testing.T) {
	const name = "run@2026-01-31T10:00:00+01:00,a=b"
	for _, text := range []string{name, url.QueryEscape(name)} {
		values, err := url.ParseQuery("x=" + text)
		if got := FromQuery(values.Get("x")); err != nil || got != name {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
