package source_test

import (
	"testing"

	"sequins/source"
)

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
