package term_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"sequins/internal/term"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		"plain text":         "plain text",
		"\t\n\r\\":           `\t\n\r\\`,
		"\x00\x1b\x7f\u0085": `\x00\x1b\x7f\xc2\x85`,
		"é 日本 😀":             "é 日本 😀",
		"\xff\xe2\x82":       `\xff\xe2\x82`,
		"\u202e\u200b\ufeff": `\xe2\x80\xae\xe2\x80\x8b\xef\xbb\xbf`,
		"\ufffd":             "\ufffd",
	} {
		if got := term.Escape([]byte(in)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// Whatever the bytes are, their escaped form is UTF-8 on one line.
func FuzzEscape(f *testing.F) {
	f.Add([]byte("é 日本 😀\xff\xe2\x82\\\n"))
	f.Add([]byte{0xf0, 0x9f, 0x98})
	f.Fuzz(func(t *testing.T, in []byte) {
		if got := term.Escape(in); !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\t\x1b\x00") {
			t.Errorf("not safe: %q", got)
		}
	})
}
