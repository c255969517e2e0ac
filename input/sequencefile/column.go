package sequencefile

import (
	"errors"

	"sequins/internal/unpack"
)

// MaxExpanded bounds a compressed key or value, in bytes before compression: a few KB can expand to any length.
const MaxExpanded = 256 << 20

// maxBlock bounds all columns of a block, in bytes before compression, and each of them after it. Hadoop ends a block at a million bytes.
const maxBlock = MaxExpanded

// column is a decompressed stream: one of the four columns of a block, or the value of a record.
type column struct {
	buf  []byte
	rest []byte // of buf, not used yet
}

var errColumnShort = errors.New("fewer bytes than its records need")

// reset decompresses src, to not more than limit bytes. They are valid until the next reset.
func (c *column) reset(decode unpack.Decoder, src []byte, limit int) (err error) {
	c.buf, err = decode(c.buf[:0], src, limit)
	c.rest = c.buf
	return err
}

func (c *column) take(n int) ([]byte, error) {
	if n > MaxExpanded {
		return nil, unpack.TooLong(MaxExpanded)
	}
	if n > len(c.rest) {
		return nil, errColumnShort
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b, nil
}

func (c *column) length() (int, error) {
	n, size := decodeLength(c.rest)
	switch {
	case size < 0:
		return 0, errors.New("invalid length")
	case size == 0:
		return 0, errColumnShort
	}
	c.rest = c.rest[size:]
	return n, nil
}
