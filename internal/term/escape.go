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
	in := append(e.left, p...)
	e.out = e.out[:0]
	for len(in) > 0 && utf8.FullRune(in) {
		r, size := utf8.DecodeRune(in)
		e.out = appendEscaped(e.out, r, in[:size])
		in = in[size:]
	}
	e.left = append(e.left[:0], in...)
	if _, err := e.w.Write(e.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the beginning of a character that no other bytes have followed.
func (e *Escaper) Flush() error {
	e.out = e.out[:0]
	for i := range e.left {
		e.out = appendEscaped(e.out, utf8.RuneError, e.left[i:i+1])
	}
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
	var out []byte
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		out = appendEscaped(out, r, b[:size])
		b = b[size:]
	}
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
	var out []byte
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if raw := text[i : i+size]; r == '\\' {
			out = append(out, raw...)
		} else {
			out = appendEscaped(out, r, []byte(raw))
		}
		i += size
	}
	return string(out)
}
