package reads

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/internal/wire"
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
	cursorFormat = 2
	checksumSize = 8
	// maxBound is the longest bound of a range, in bytes: the least key after the longest one.
	maxBound = blocks.MaxKey + 1
)

var errCursor = errors.New("the cursor is not one that this database has given out")

// encode returns the cursor as base64url: its format, the frames of the name, the code and the key, and the end.
func (c *cursor) encode(db string) []byte {
	b := wire.AppendFrame([]byte{cursorFormat}, []byte(c.content.Name))
	b = wire.AppendFrame(b, []byte(c.content.Code()))
	b = wire.AppendFrame(b, c.last)
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

func parseCursor(text []byte, db string) (c cursor, err error) {
	b, err := decodeText(text)
	if err != nil || len(b) < 1+checksumSize || b[0] != cursorFormat {
		return c, errCursor
	}
	body := b[:len(b)-checksumSize]
	if binary.BigEndian.Uint64(b[len(body):]) != cursorChecksum(body, db) {
		return c, errCursor
	}
	name, rest, _ := wire.CutFrame(body[1:])
	code, rest, _ := wire.CutFrame(rest)
	last, rest, ok := wire.CutFrame(rest)
	if !ok || len(last) > maxBound {
		return c, errCursor
	}
	end, rest, ok := cutEnd(rest)
	if !ok || len(rest) > 0 {
		return c, errCursor
	}
	if c.content, err = content.Parse(string(name), string(code)); err != nil {
		return c, errCursor
	}
	c.last, c.end = last, end
	return c, nil
}

// decodeText decodes base64url without padding. It refuses other forms of the same bytes.
func decodeText(text []byte) ([]byte, error) {
	if bytes.ContainsAny(text, "\r\n") { // which encoding/base64 ignores
		return nil, errCursor
	}
	return base64.RawURLEncoding.Strict().AppendDecode(nil, text)
}

// appendEnd appends the end of a range: its frame, or wire.Absent if it is nil.
func appendEnd(b, end []byte) []byte {
	if end == nil {
		return binary.BigEndian.AppendUint32(b, wire.Absent)
	}
	return wire.AppendFrame(b, end)
}

// cutEnd cuts off what appendEnd has appended.
func cutEnd(b []byte) (end, rest []byte, ok bool) {
	if len(b) >= wire.LengthSize && binary.BigEndian.Uint32(b) == wire.Absent {
		return nil, b[wire.LengthSize:], true
	}
	end, rest, ok = wire.CutFrame(b)
	return end, rest, ok && len(end) <= maxBound
}
