package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// escaper writes bytes so that they stay on one line, do no harm to a terminal, and can be read back:
// printable UTF-8 as it is, a backslash as \\, tab and newlines as \t, \n and \r, anything else as \xNN.
// A character may be cut in two by two calls of Write; Flush writes what is left of one that never ended.
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

// appendEscaped appends one character, whose bytes are raw.
func appendEscaped(out []byte, r rune, raw []byte) []byte {
	switch {
	case r == '\\':
		return append(out, `\\`...)
	case r == '\t':
		return append(out, `\t`...)
	case r == '\n':
		return append(out, `\n`...)
	case r == '\r':
		return append(out, `\r`...)
	case r == utf8.RuneError && len(raw) == 1, !strconv.IsPrint(r):
		for _, b := range raw {
			out = fmt.Appendf(out, `\x%02x`, b)
		}
		return out
	}
	return append(out, raw...)
}

// escape is the escaped form of b.
func escape(b []byte) string {
	var out []byte
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		out = appendEscaped(out, r, b[:size])
		b = b[size:]
	}
	return string(out)
}

// excerpt is the escaped form of the first bytes of something that has size bytes.
func excerpt(b []byte, size int64) string {
	const longest = 80
	if size <= longest {
		return escape(b)
	}
	return fmt.Sprintf("%s… (%d bytes)", escape(b[:min(len(b), longest)]), size)
}

// jsonBytes is a byte string in JSON: itself if it is UTF-8, which the field name says, or base64.
func jsonBytes(name string, b []byte) (string, json.RawMessage, error) {
	if !utf8.Valid(b) {
		name, b = name+"_base64", []byte(base64.StdEncoding.EncodeToString(b))
	}
	text, err := json.Marshal(string(b))
	return name, text, err
}
