package discovery

import "testing"

func TestNumberedAfter(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"10", "9", true}, {"9", "10", false}, {"10", "10", false}, {"v10", "v9", true}, {"v10", "w9", false}, {"0010", "9", true}, {"009", "9", false},
		{"100", "99", true}, {"a", "b", false}, {"b", "a", false}, {"", "1", false}, {"1", "", true}, {"2026-01-31", "2026-01-4", true},
		{"99999999999999999999999999999999", "9999999999999999999999999999999", true},
	} {
		if got := numberedAfter(tt.a, tt.b); got != tt.want {
			t.Errorf("%q, %q: %v", tt.a, tt.b, got)
		}
	}
}
