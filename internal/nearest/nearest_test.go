package nearest_test

import (
	"strings"
	"testing"

	"sequins/internal/nearest"
)

func TestOf(t *testing.T) {
	commands := []string{"status", "versions", "verify", "get", "mget", "cat", "check-config", "words"}
	for name, want := range map[string]string{
		"stauts": "status", "statu": "status", "versionz": "versions", "gte": "get", "Status": "status", "ver": "versions", "check": "check-config",
		"wrds": "words", "frobnicate": "", "x": "", "": "", strings.Repeat("x", 1000): "",
	} {
		if got := nearest.Of(name, commands); got != want {
			t.Errorf("%q is taken for %q, want %q", name, got, want)
		}
	}
	if got := nearest.Of("words", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
