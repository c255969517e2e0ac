package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// escaper escapes bytes so that they stay on one line, are harmless to a terminal, and can be decoded:
// printable UTF-8 is unchanged, a backslash becomes \\, tab and newlines become \t, \n and \r, anything
// else becomes \xNN. A character may be split between two calls of Write; Flush writes an incomplete
// one.
type escaper struct {
	w    io.Writer
	left []byte // the beginning of a character
	out  []byte
}

func (e *escaper) Write(p []byte) (int, error) {
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

func (e *escaper) Flush() error {
	e.out = e.out[:0]
	for i := range e.left {
		e.out = appendEscaped(e.out, utf8.RuneError, e.left[i:i+1])
	}
	e.left = e.left[:0]
	_, err := e.w.Write(e.out)
	return err
}

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

// escape returns the escaped form of b.
func escape(b []byte) string {
	var out []byte
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		out = appendEscaped(out, r, b[:size])
		b = b[size:]
	}
	return string(out)
}

// excerpt returns the escaped form of b, the first bytes of data of the given size.
func excerpt(b []byte, size int64) string {
	const longest = 80
	if size <= longest {
		return escape(b)
	}
	return fmt.Sprintf("%s… (%d bytes)", escape(b[:min(len(b), longest)]), size)
}

// jsonBytes returns the field name and the JSON value for a byte string: a string under name if it is
// UTF-8, otherwise base64 under another name.
func jsonBytes(name string, b []byte) (string, json.RawMessage, error) {
	if !utf8.Valid(b) {
		name, b = name+"_base64", []byte(base64.StdEncoding.EncodeToString(b))
	}
	text, err := json.Marshal(string(b))
	return name, text, err
}
