package term

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AppendEscaped appends the escaped form of b, which stays on one line, is harmless to a terminal, and can be decoded:
// printable UTF-8 is unchanged, a backslash becomes \\, tab and newlines become \t, \n and \r, anything else becomes \xNN.
func AppendEscaped(out, b []byte) []byte {
	for {
		n := plainLength(b)
		out, b = append(out, b[:n]...), b[n:]
		if len(b) == 0 {
			return out
		}
		r, size := utf8.DecodeRune(b)
		switch i := strings.IndexRune("\\\t\n\r", r); {
		case i >= 0:
			out = append(out, '\\', `\tnr`[i])
		case r == utf8.RuneError && size == 1 || !strconv.IsPrint(r):
			for _, c := range b[:size] {
				out = fmt.Appendf(out, `\x%02x`, c)
			}
		default:
			out = append(out, b[:size]...)
		}
		b = b[size:]
	}
}

// plainLength returns the number of bytes at the beginning of b that are printable ASCII and stand for themselves, which most
// data is.
func plainLength(b []byte) int {
	for i, c := range b {
		if c < ' ' || c > '~' || c == '\\' {
			return i
		}
	}
	return len(b)
}

// Escape returns the escaped form of b.
func Escape(b []byte) string { return string(AppendEscaped(nil, b)) }

// Clean escapes what is not printable in a text of our own that may quote others, and leaves the rest as it is.
func Clean(text string) string {
	parts := strings.Split(text, `\`)
	for i := range parts {
		parts[i] = Escape([]byte(parts[i]))
	}
	return strings.Join(parts, `\`)
}
