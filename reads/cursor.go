package reads

import (
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"

	"sequins/blocks"
	"sequins/internal/content"
)

// cursor is a position in a range of a content: after the key last. As text it is opaque to clients. Its checksum,
// which includes the db, detects mistakes; it does not protect against forgery, which would gain nothing, because a
// client may request every position.
type cursor struct {
	content content.Content
	last    []byte
	end     []byte // of the range; nil for none
}

const (
	cursorFormat = 1
	checksumSize = 8
	// maxVersion is more than the longest name of a version, in bytes.
	maxVersion = 4 << 10
	// maxCode is the length of content.Content.Code, in bytes.
	maxCode = 2*content.Digits + 1
	// maxBound is the longest bound of a range, in bytes: the least key after the longest one.
	maxBound = blocks.MaxKey + 1
)

var errCursor = errors.New("the cursor is not one that this database has given out")

// encode returns the cursor as base64url.
func (c *cursor) encode(db string) []byte {
	b := []byte{cursorFormat}
	b = appendField(b, []byte(c.content.Name))
	b = appendField(b, []byte(c.content.Code()))
	b = appendField(b, c.last)
	b = appendEnd(b, c.end)
	b = binary.BigEndian.AppendUint64(b, cursorChecksum(b, db))
	return base64.RawURLEncoding.AppendEncode(nil, b)
}

func cursorChecksum(b []byte, db string) uint64 {
	d := xxhash.New()
	d.Write(b)
	d.WriteString(db) //nolint:errcheck // hashes never fail
	return d.Sum64()
}

// parseCursor decodes the cursor of a db.
func parseCursor(text []byte, db string) (c cursor, err error) {
	b, err := decodeText(text)
	if err != nil || len(b) < 1+checksumSize || b[0] != cursorFormat {
		return c, errCursor
	}
	body := b[:len(b)-checksumSize]
	if binary.BigEndian.Uint64(b[len(body):]) != cursorChecksum(body, db) {
		return c, errCursor
	}
	f := fields{b: body[1:]}
	name, code := f.bytes(maxVersion), f.bytes(maxCode)
	c.last = f.bytes(maxBound)
	c.end = f.end()
	c.content, err = content.Parse(string(name), string(code))
	if !f.finished() || err != nil {
		return cursor{}, errCursor
	}
	return c, nil
}

// decodeText decodes base64url without padding. It refuses other forms of the same bytes.
func decodeText(text []byte) ([]byte, error) {
	for _, c := range text {
		if c == '\r' || c == '\n' { // which encoding/base64 ignores
			return nil, errCursor
		}
	}
	return base64.RawURLEncoding.Strict().AppendDecode(nil, text)
}

// appendField appends the length of p and p.
func appendField(b, p []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(p))), p...)
}

// appendEnd appends the end of a range, which may be nil.
func appendEnd(b, end []byte) []byte {
	if end == nil {
		return append(b, 0)
	}
	return appendField(append(b, 1), end)
}

// fields decodes what appendField and appendEnd append. After an error it returns zero values.
type fields struct {
	b      []byte
	failed bool
}

func (f *fields) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(f.b)
	if f.failed || n <= 0 || v > limit {
		f.failed = true
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) take(n int) []byte {
	if f.failed || n > len(f.b) {
		f.failed = true
		return nil
	}
	p := f.b[:n:n]
	f.b = f.b[n:]
	return p
}

func (f *fields) bytes(limit int) []byte { return f.take(int(f.uvarint(uint64(limit)))) }

func (f *fields) end() []byte {
	if f.uvarint(1) == 0 {
		return nil
	}
	return f.bytes(maxBound)
}

// finished reports whether there was no error and nothing is left.
func (f *fields) finished() bool { return !f.failed && len(f.b) == 0 }
