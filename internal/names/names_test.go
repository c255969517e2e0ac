package names

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	tests := []struct {
		name              string
		database, version bool
	}{
		{"a", true, true},
		{"0", true, true},
		{"Db.1_x-Y", true, true},
		{strings.Repeat("a", 255), true, true},
		{"healthz", false, true},
		{"livez", false, true},
		{"readyz", false, true},
		{"healthz2", true, true},
		{"", false, false},
		{strings.Repeat("a", 256), false, false},
		{".", false, false},
		{"..", false, false},
		{"_x", false, false},
		{"-x", false, false},
		{"a/b", false, false},
		{"a b", false, false},
		{"a%20b", false, false},
		{"a\x00", false, false},
		{"ä", false, false},
		{"a\xff", false, false},
	}
	for _, tt := range tests {
		if got := ValidDatabase(tt.name); got != tt.database {
			t.Errorf("ValidDatabase(%q) = %v", tt.name, got)
		}
		if got := Valid(tt.name); got != tt.version {
			t.Errorf("Valid(%q) = %v", tt.name, got)
		}
	}
}
