package term

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Escaper escapes bytes so that they stay on one line, are harmless to a terminal, and can be decoded:
// printable UTF-8 is unchanged, a backslash becomes \\, tab and newlines become \t, \n and \r, anything
// else becomes \xNN. A character may be split between two calls of Write; Flush writes an incomplete
// one.
type Escaper struct {
	w    io.Writer
	left []byte // the beginning of a character
	out  []byte
}

// Write implements io.Writer.
func (e *Escaper) Write(p []byte) (int, error) {
	in := p
	if len(e.left) > 0 {
		in = append(e.left, p...)
	}
	var rest []byte
	e.out, rest = escape(e.out[:0], in, false)
	e.left = append(e.left[:0], rest...)
	if _, err := e.w.Write(e.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escape appends the escaped form of in, and returns an incomplete character at its end unless nothing follows.
func escape(out, in []byte, last bool) (escaped, rest []byte) {
	for len(in) > 0 {
		n := plainLength(in)
		out, in = append(out, in[:n]...), in[n:]
		if len(in) == 0 || !last && !utf8.FullRune(in) {
			break
		}
		r, size := utf8.DecodeRune(in)
		out = appendEscaped(out, r, in[:size])
		in = in[size:]
	}
	return out, in
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

// Flush writes the beginning of a character that no other bytes have followed.
func (e *Escaper) Flush() error {
	if len(e.left) == 0 {
		return nil
	}
	e.out, _ = escape(e.out[:0], e.left, true)
	e.left = e.left[:0]
	_, err := e.w.Write(e.out)
	return err
}

// NewEscaper returns an Escaper that writes to w.
func NewEscaper(w io.Writer) *Escaper { return &Escaper{w: w} }

// appendEscaped appends one character with the bytes raw.
func appendEscaped(out []byte, r rune, raw []byte) []byte {
	if i := strings.IndexRune("\\\t\n\r", r); i >= 0 {
		return append(out, '\\', `\tnr`[i])
	}
	if r == utf8.RuneError && len(raw) == 1 || !strconv.IsPrint(r) {
		for _, b := range raw {
			out = fmt.Appendf(out, `\x%02x`, b)
		}
		return out
	}
	return append(out, raw...)
}

// Escape returns the escaped form of b.
func Escape(b []byte) string {
	out, _ := escape(nil, b, true)
	return string(out)
}

// Excerpt returns the escaped form of b, the first bytes of data of the given size.
func Excerpt(b []byte, size int64) string {
	const longest = 80
	if size <= longest {
		return Escape(b)
	}
	return fmt.Sprintf("%s… (%d bytes)", Escape(b[:min(len(b), longest)]), size)
}

// Clean escapes what is not printable in a text of our own that may quote others, and leaves the rest as it is.
func Clean(text string) string {
	parts := strings.Split(text, `\`)
	for i := range parts {
		parts[i] = Escape([]byte(parts[i]))
	}
	return strings.Join(parts, `\`)
}
