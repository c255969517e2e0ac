// Package knownjson reads JSON that is laid out exactly as this program writes it, in a fraction of the time that
// encoding/json takes. Anything else is not read; the caller leaves it to encoding/json.
package knownjson

import (
	"bytes"
	"encoding/base64"
)

// maxDigits is how many digits an int64 has room for.
const maxDigits = 18

// Reader reads JSON in a straight line. Once something is not as expected, OK stays false and nothing more is read.
type Reader struct {
	Rest []byte // what is not yet read
	OK   bool
}

// NewReader returns a reader of b.
func NewReader(b []byte) *Reader { return &Reader{Rest: b, OK: true} }

// Literal reads s.
func (r *Reader) Literal(s string) {
	if r.OK {
		r.Rest, r.OK = bytes.CutPrefix(r.Rest, []byte(s))
	}
}

// Number reads a name and its value, a number of up to maxDigits digits.
func (r *Reader) Number(name string) (v int64) {
	r.Literal(name)
	n := 0
	for ; n < len(r.Rest) && '0' <= r.Rest[n] && r.Rest[n] <= '9' && n <= maxDigits; n++ {
		v = 10*v + int64(r.Rest[n]-'0')
	}
	if n == 0 || n > maxDigits || n > 1 && r.Rest[0] == '0' {
		r.OK = false
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Text reads a name and its value, a string without escapes.
func (r *Reader) Text(name string) []byte {
	r.Literal(name)
	r.Literal(`"`)
	for i, c := range r.Rest {
		if c == '"' {
			s := r.Rest[:i]
			r.Rest = r.Rest[i+1:]
			return s
		}
		if c < ' ' || c >= 0x7f || c == '\\' {
			break
		}
	}
	r.OK = false
	return nil
}

// Base64 reads a name and its value, bytes in base64.
func (r *Reader) Base64(name string) []byte {
	text := r.Text(name)
	if !r.OK {
		return nil
	}
	b := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(b, text)
	r.OK = err == nil
	return b[:n]
}
