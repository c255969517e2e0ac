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

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"stauts", "status", 2}, {"flaw", "lawn", 2}, {"ab", "ba", 2}} {
		if got := nearest.Distance(test.a, test.b); got != test.want {
			t.Errorf("%q and %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
