package top

import (
	"slices"
	"testing"
)

// Keys are found in what a terminal sends, however it is cut up.
func TestKeys(t *testing.T) {
	const in = "a\x1b[A\x1b[B\x1bOA\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[99;5uü\n\x7f\x08\x03\x1bq"
	want := []Key{'a', Up, Down, Up, Down, PageUp, PageDown, Home, End, Unknown, 'ü', Enter, Backspace, Backspace, CtrlC, Escape, 'q'}
	for step := 1; step <= len(in); step++ {
		var got []Key
		var rest []byte
		for i := 0; i < len(in); i += step {
			var some []Key
			some, rest = keys(append(rest, in[i:min(i+step, len(in))]...), false)
			got = append(got, some...)
		}
		some, rest := keys(rest, true)
		if got = append(got, some...); !slices.Equal(got, want) || len(rest) > 0 {
			t.Errorf("by %d bytes: %v and %q, want %v", step, got, rest, want)
		}
	}
	if got, rest := keys([]byte("\x1b"), false); len(got) > 0 || string(rest) != "\x1b" {
		t.Errorf("the beginning of a key is %v", got)
	}
	if got, _ := keys([]byte("\x1b"), true); !slices.Equal(got, []Key{Escape}) {
		t.Errorf("an escape alone is %v", got)
	}
}

// Whatever is sent is taken, and nothing is kept for good.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("\x1b[A\xff\x1b[1;"))
	f.Fuzz(func(t *testing.T, in []byte) {
		all, rest := keys(in, false)
		if len(all) > len(in) || len(rest) > maxSequence+2 {
			t.Errorf("%d keys and %d bytes left of %q", len(all), len(rest), in)
		}
		if _, rest := keys(rest, true); len(rest) > 0 {
			t.Errorf("%q is left at the end of %q", rest, in)
		}
	})
}
