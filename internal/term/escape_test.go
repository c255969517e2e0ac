package term_test

import (
	"bytes"
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

// However a text is cut up, it comes out as in one piece, on one line and in UTF-8.
func FuzzEscaper(f *testing.F) {
	f.Add([]byte("é 日本 😀\xff\xe2\x82\\\n"), uint8(1))
	f.Add([]byte{0xf0, 0x9f, 0x98}, uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		var out bytes.Buffer
		e := term.NewEscaper(&out)
		for rest := in; len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			if written, err := e.Write(rest[:n]); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), term.Escape(in); got != want {
			t.Errorf("in pieces %q, whole %q", got, want)
		}
		if !utf8.Valid(out.Bytes()) || strings.ContainsAny(out.String(), "\n\r\t\x1b\x00") {
			t.Errorf("not safe: %q", out.String())
		}
	})
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("x", 81)
	for in, want := range map[string]string{"ab": "ab", long[:80]: long[:80], long: long[:80] + "… (81 bytes)"} {
		if got := term.Excerpt([]byte(in), int64(len(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
