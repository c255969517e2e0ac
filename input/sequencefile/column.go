package sequencefile

import (
	"errors"
	"fmt"
	"io"
)

// prefill is how much of a column is decompressed at once, in bytes. Hadoop ends a block at a million bytes, so nearly
// every column is decompressed completely, and its checksum verified, before its first record is returned. A larger
// column passes through the window piece by piece: its memory is bounded by prefill, its largest record and the largest
// piece of its codec.
const prefill = 4 << 20

// MaxExpanded bounds a compressed key or value, in bytes before compression: a few KB can expand to any length.
const MaxExpanded = 256 << 20

// column is a decompressed stream: one of the four columns of a block, or the value of a record.
type column struct {
	dec  decoder
	buf  []byte // the window: buf[pos:] is decompressed and unused
	pos  int
	done bool  // dec has reached its end
	err  error // error of dec
}

var (
	errColumnShort  = errors.New("fewer bytes than its records need")
	errColumnLong   = errors.New("bytes after its last record")
	errColumnLength = errors.New("invalid length")
	errTooLarge     = fmt.Errorf("decompressed size exceeds %d bytes", MaxExpanded)
)

// reset starts to decompress src, which must not change until the next reset.
func (c *column) reset(src []byte) error {
	c.dec.Reset(src)
	c.buf, c.pos, c.done, c.err = c.buf[:0], 0, false, nil
	for !c.done && c.err == nil && len(c.buf) < prefill {
		c.more()
	}
	return c.err
}

// all decompresses src, which is the value of a record, and returns the whole of it, valid until the next call.
func (c *column) all(src []byte) ([]byte, error) {
	c.dec.Reset(src)
	b, err := c.buf[:0], error(nil)
	for err == nil {
		if b, err = c.dec.More(b); len(b) > MaxExpanded {
			err = errTooLarge
		}
	}
	c.buf = b
	if err != io.EOF {
		return nil, err
	}
	return b, nil
}

// more decompresses the next piece.
func (c *column) more() {
	b, err := c.dec.More(c.buf)
	if err == nil {
		c.buf = b
		return
	}
	c.buf = b[:len(c.buf)] // which may have been made larger
	if err == io.EOF {
		c.done = true
		return
	}
	c.err = err
}

// take returns the next n bytes, valid until the next take.
func (c *column) take(n int) ([]byte, error) {
	if n > len(c.buf)-c.pos && !c.fill(n) {
		return nil, c.fail(errColumnShort)
	}
	b := c.buf[c.pos : c.pos+n]
	c.pos += n
	return b, nil
}

// fill reads until the window has n unused bytes, or all that are left.
func (c *column) fill(n int) bool {
	c.buf = c.buf[:copy(c.buf, c.buf[c.pos:])]
	c.pos = 0
	for len(c.buf) < n {
		if c.done || c.err != nil {
			return false
		}
		c.more()
	}
	return true
}

// length returns the next vint.
func (c *column) length() (int, error) {
	if len(c.buf)-c.pos < maxVIntLen {
		c.fill(maxVIntLen) // or less, near the end
	}
	n, size := decodeLength(c.buf[c.pos:])
	switch {
	case size < 0:
		return 0, c.fail(errColumnLength)
	case size == 0:
		return 0, c.fail(errColumnShort)
	}
	c.pos += size
	return n, nil
}

// fail records the first error, and returns it.
func (c *column) fail(err error) error {
	if c.err == nil {
		c.err = err
	}
	return c.err
}

// finish checks that everything has been used.
func (c *column) finish() error {
	if c.pos == len(c.buf) && !c.done && c.err == nil {
		c.buf, c.pos = c.buf[:0], 0
		c.more()
	}
	if c.pos < len(c.buf) {
		return c.fail(errColumnLong)
	}
	return c.err
}
