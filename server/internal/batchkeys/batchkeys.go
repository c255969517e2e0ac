// Package batchkeys parses the keys of a batch: as JSON, or in bytes. Keys point into the request, and are decoded in place.
package batchkeys

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"sequins/internal/wire"
)

// Parse parses the keys of a batch in frames. They point into b.
func Parse(b []byte, limit int) (keys [][]byte, err error) {
	for len(b) > 0 {
		key, rest, ok := wire.CutFrame(b)
		if !ok {
			return nil, fmt.Errorf("the request ends in key %d or its length", len(keys))
		}
		if keys, err = Append(keys, key, limit); err != nil {
			return nil, err
		}
		b = rest
	}
	return keys, nil
}

// Append appends a key, unless it or their number is too large.
func Append(keys [][]byte, key []byte, limit int) ([][]byte, error) {
	if len(keys) == limit {
		return nil, fmt.Errorf("%w: more than %d keys", ErrTooLarge, limit)
	}
	if len(key) > wire.MaxKey {
		return nil, fmt.Errorf("key %d is longer than %d bytes", len(keys), wire.MaxKey)
	}
	return append(keys, key), nil
}

// ErrTooLarge is the class of batches that exceed a limit that is configured.
var ErrTooLarge = errors.New("the batch is too large")

// ParseJSON parses {"keys": [KEY, ...]}, where KEY is a string, {"base64": "..."} or an integer, which is its decimal text. Strings are decoded in
// place, so the keys point into b, which is overwritten. It is stricter than encoding/json, which replaces bytes that are not UTF-8,
// and so would look up other keys.
func ParseJSON(b []byte, limit int) (keys [][]byte, err error) {
	p := jsonParser{b: b}
	keys = make([][]byte, 0, min(limit, bytes.Count(b, []byte{','})+1))
	p.member("keys")
	p.want('[')
	if !p.accept(']') {
		for {
			key := p.key(len(keys))
			if p.err == nil {
				keys, p.err = Append(keys, key, limit)
			}
			if p.err != nil || !p.accept(',') {
				break
			}
		}
		p.want(']')
	}
	p.end()
	if p.space(); p.err == nil && p.i < len(p.b) {
		p.fail("something follows it")
	}
	if p.err != nil {
		return nil, p.err
	}
	return keys, nil
}

// jsonParser parses JSON of a known structure. After an error it does nothing.
type jsonParser struct {
	b   []byte
	i   int
	err error
}

func (p *jsonParser) fail(reason string) {
	if p.err == nil {
		p.err = fmt.Errorf(`the request is not {"keys": ["...", 12, {"base64": "..."}]}: %s at byte %d`, reason, p.i)
	}
}

func (p *jsonParser) space() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\n' || p.b[p.i] == '\t' || p.b[p.i] == '\r') {
		p.i++
	}
}

func (p *jsonParser) accept(c byte) bool {
	p.space()
	if p.err != nil || p.i == len(p.b) || p.b[p.i] != c {
		return false
	}
	p.i++
	return true
}

// want skips c, which must be next.
func (p *jsonParser) want(c byte) {
	if !p.accept(c) {
		p.fail(fmt.Sprintf("no %q", c))
	}
}

// member skips the beginning of an object up to the value of its only member.
func (p *jsonParser) member(name string) {
	p.want('{')
	if got := p.string(); p.err == nil && string(got) != name {
		p.fail(fmt.Sprintf("the field %.40q instead of %q", got, name))
	}
	p.want(':')
}

// end skips the end of an object, which has no other members.
func (p *jsonParser) end() {
	if p.accept(',') {
		if name := p.string(); p.err == nil {
			p.fail(fmt.Sprintf("the unknown field %.40q", name))
		}
	}
	p.want('}')
}

// key parses the key at an index: a string, an object with the key in base64, or an integer.
func (p *jsonParser) key(index int) []byte {
	p.space()
	if p.err != nil || p.i == len(p.b) {
		return p.string()
	}
	switch c := p.b[p.i]; {
	case c == '"':
		return p.string()
	case c == '-', isDigit(c):
		return p.integer(index)
	case c != '{':
		p.fail(fmt.Sprintf("key %d is neither a string nor an integer", index))
		return nil
	}
	p.member("base64")
	text := p.string()
	n, err := base64.StdEncoding.Strict().Decode(text, text)
	if err != nil {
		p.fail("malformed base64")
		return nil
	}
	p.end()
	return text[:n:n]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// integer parses an integer. There is one text for each, so that no key is written in two ways.
func (p *jsonParser) integer(index int) []byte {
	start := p.i
	for p.i < len(p.b) && (isDigit(p.b[p.i]) || bytes.IndexByte([]byte("+-.eE"), p.b[p.i]) >= 0) {
		p.i++
	}
	text := p.b[start:p.i:p.i]
	digits := bytes.TrimPrefix(text, []byte{'-'})
	if string(text) != "0" && (len(digits) == 0 || digits[0] == '0' || bytes.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' })) {
		p.fail(fmt.Sprintf("key %d is a number and no integer such as -12: write other keys as strings", index))
	}
	return text
}

// string parses a string and decodes it in place: no escape is shorter than the text that it encodes.
func (p *jsonParser) string() []byte {
	p.want('"')
	start := p.i
	for p.i < len(p.b) && p.b[p.i] >= ' ' && p.b[p.i] != '"' && p.b[p.i] != '\\' {
		p.i++
	}
	to := p.i
	for p.err == nil {
		switch {
		case p.i == len(p.b):
			p.fail("a string without its end")
		case p.b[p.i] == '"':
			p.i++
			if !utf8.Valid(p.b[start:to]) {
				p.fail("a string that is not UTF-8")
			}
			return p.b[start:to:to]
		case p.b[p.i] < ' ':
			p.fail("a control character in a string")
		case p.b[p.i] == '\\':
			to += p.escape(p.b[to:])
		default:
			p.b[to] = p.b[p.i]
			p.i, to = p.i+1, to+1
		}
	}
	return nil
}

// escape decodes an escape to an earlier place of the buffer, and returns the length of the decoded text.
func (p *jsonParser) escape(to []byte) int {
	if p.i+1 == len(p.b) {
		p.fail("a string without its end")
		return 0
	}
	c := p.b[p.i+1]
	if c == 'u' {
		r := p.hex(p.i)
		p.i += 6
		if utf16.IsSurrogate(r) {
			r = utf16.DecodeRune(r, p.hex(p.i))
			p.i += 6
			if r == utf8.RuneError {
				p.fail("half of a surrogate pair")
			}
		}
		if p.err != nil {
			return 0
		}
		return utf8.EncodeRune(to, r)
	}
	const names, values = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	for i := range len(names) {
		if names[i] == c {
			p.i += 2
			to[0] = values[i]
			return 1
		}
	}
	p.fail("an unknown escape")
	return 0
}

// hex returns the number of the escape \uXXXX at i.
func (p *jsonParser) hex(i int) rune {
	if len(p.b) < i+6 || p.b[i] != '\\' || p.b[i+1] != 'u' {
		p.fail("a malformed escape")
		return 0
	}
	n, err := strconv.ParseUint(string(p.b[i+2:i+6]), 16, 32)
	if err != nil {
		p.fail("a malformed escape")
	}
	return rune(n)
}
