package source_test

import (
	"strings"
	"testing"

	"sequins/source"
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
		if got := source.ValidDatabase(tt.name); got != tt.database {
			t.Errorf("ValidDatabase(%q) = %v", tt.name, got)
		}
		if got := source.ValidName(tt.name); got != tt.version {
			t.Errorf("ValidName(%q) = %v", tt.name, got)
		}
	}
}

func TestValidFile(t *testing.T) {
	for name, want := range map[string]bool{
		"part-00000": true, "part-00000/data": true, "_SUCCESS": true, "...": true, "a b\xff": true,
		"": false, "/": false, "/a": false, "a/": false, "a//b": false, ".": false, "a/./b": false, "a/../b": false, "..": false, "a\x00": false,
	} {
		if got := source.ValidFile(name); got != want {
			t.Errorf("ValidFile(%q) = %v", name, got)
		}
	}
}

func TestHidden(t *testing.T) {
	for name, want := range map[string]bool{"_SUCCESS": true, ".part.crc": true, "part_0": false, "a.b": false, "": false} {
		if got := source.Hidden(name); got != want {
			t.Errorf("Hidden(%q) = %v", name, got)
		}
	}
}
