// Package http1 owns the framing of HTTP/1 headers that the server and the proxy share. Both read a header into a
// buffer, call HeaderEnd after each read until it is complete, and validate its fields against RFC 9110. It also has
// the escapes of a request target, and the parameters of its query.
package http1

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
)

// HeaderEnd returns the length of the header at the beginning of b, including the empty line at its end, or 0 if it is
// incomplete. Lines end with LF or CR LF. The first searched bytes are known not to contain the end.
func HeaderEnd(b []byte, searched int) int {
	for i := max(0, searched-3); ; {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return 0
		}
		i += n + 1
		if i < len(b) && b[i] == '\n' {
			return i + 1
		}
		if i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n' {
			return i + 2
		}
	}
}

// IsToken reports whether a field may have this name: a folded line, or white space before the colon, is none.
func IsToken(name []byte) bool {
	for _, c := range name {
		if !tokenBytes[c] {
			return false
		}
	}
	return len(name) > 0
}

var tokenBytes = func() (t [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") {
		t[c] = true
	}
	return t
}()

// HasControl reports whether a field's value has a control character, which none may have.
func HasControl[T string | []byte](value T) bool {
	for i := range len(value) {
		c := value[i]
		if c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}

// Trim cuts off the white space that may stand around a value.
func Trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// HasToken reports whether a comma-separated list has a token, in any letter case.
func HasToken(list []byte, token string) bool {
	for item := range bytes.SplitSeq(list, []byte{','}) {
		if bytes.EqualFold(Trim(item), []byte(token)) {
			return true
		}
	}
	return false
}

// ErrEscape is the error of Unescape.
var ErrEscape = errors.New("bad percent escape in the request target: % must be followed by two hex digits")

// Unescape decodes %xx once. A string without escapes is returned unchanged; otherwise the result is appended to buf.
// The error is ErrEscape.
func Unescape(s, buf []byte) (decoded, newBuf []byte, err error) {
	i := bytes.IndexByte(s, '%')
	if i < 0 {
		return s, buf, nil
	}
	start := len(buf)
	for i >= 0 {
		buf = append(append(buf, s[:i]...), 0)
		if len(s) < i+3 {
			return nil, buf[:start], ErrEscape
		}
		if _, err := hex.Decode(buf[len(buf)-1:], s[i+1:i+3]); err != nil {
			return nil, buf[:start], ErrEscape
		}
		s = s[i+3:]
		i = bytes.IndexByte(s, '%')
	}
	buf = append(buf, s...)
	return buf[start:], buf, nil
}

// AppendEscaped appends s with %xx for all bytes but letters, digits and those of keep.
func AppendEscaped[T string | []byte](b []byte, s T, keep string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(keep, c) >= 0:
			b = append(b, c)
		default:
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return b
}
