package reads

import (
	"fmt"
	"strings"
	"testing"
)

func TestTag(t *testing.T) {
	for _, h := range []uint64{0, 1, 0x0123456789abcdef, 1<<64 - 1} {
		if got, want := string(appendTag(nil, h)), fmt.Sprintf(`"%016x"`, h); got != want {
			t.Errorf("appendTag(%d) = %s, want %s", h, got, want)
		}
	}
}

// Nothing in a target can break a line of a log, or make it longer than a line should be.
func TestAppendTarget(t *testing.T) {
	for key, want := range map[string]string{
		"a/b": "/db/a/b", "a\n\"b": "/db/a%0A%22b", "ä": "/db/%C3%A4", strings.Repeat("k", 2000): "/db/" + strings.Repeat("k", 1024) + "...",
	} {
		if got := string(AppendTarget(nil, []byte("db"), []byte(key))); got != want {
			t.Errorf("%.20q: %.100s", key, got)
		}
	}
}
