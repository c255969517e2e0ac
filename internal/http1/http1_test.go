package http1

import "testing"

func TestHeaderEnd(t *testing.T) {
	tests := map[string]int{
		"": 0, "a": 0, "a\n": 0, "a\r\n": 0, "a\r\n\r": 0, "a\r\nb\r\n": 0, "\r\r": 0, "a\n\rb\n": 0,
		"a\r\n\r\n": 5, "a\r\n\r\nb": 5, "a\n\n": 3, "a\n\r\n": 4, "a\r\n\n\r\n": 4, "a\r\nb: c\r\n\r\nd\r\n\r\n": 11,
	}
	for b, want := range tests {
		for searched := range len(b) + 1 {
			if HeaderEnd([]byte(b[:searched]), 0) > 0 {
				break
			}
			if got := HeaderEnd([]byte(b), searched); got != want {
				t.Errorf("HeaderEnd(%q, %d) = %d, want %d", b, searched, got, want)
			}
		}
	}
}
