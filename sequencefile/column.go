package sequencefile

import (
	"errors"
	"fmt"
	"io"
)

// prefill is how much of a column is decompressed at once, in bytes. Hadoop ends a block at a million bytes, so that
// nearly every column comes out whole, and its checksum is verified, before the first record is given to anyone. What
// is larger goes through the window piece by piece: the memory that a column takes is bounded by this, by the largest
// record in it and by the largest piece that its codec can make, however far it expands.
const prefill = 4 << 20

// MaxExpanded bounds a key and a value that are compressed, in bytes before compression: a few KB can expand to any length.
const MaxExpanded = 256 << 20

// column is a decompressed stream: one of the four parts of a block, or the value of a record.
type column struct {
	dec  decoder
	buf  []byte // the window: buf[pos:] is decompressed and not used yet
	pos  int
	done bool  // dec has come to the end
	err  error // why nothing more comes out of dec
}

var (
	errColumnShort  = errors.New("it has fewer bytes than the records need")
	errColumnLong   = errors.New("it has bytes that belong to no record")
	errColumnLength = errors.New("it has an impossible length in it")
	errTooLarge     = fmt.Errorf("it decompresses to more than %d bytes", MaxExpanded)
)

// reset starts to decompress src, which must stay as it is until the next reset.
func (c *column) reset(src []byte) error {
	c.dec.reset(src)
	c.buf, c.pos, c.done, c.err = c.buf[:0], 0, false, nil
	for !c.done && c.err == nil && len(c.buf) < prefill {
		c.more()
	}
	return c.err
}

// all decompresses src, which is the value of a record, and returns the whole of it, valid until the next call.
func (c *column) all(src []byte) ([]byte, error) {
	c.dec.reset(src)
	b, err := c.buf[:0], error(nil)
	for err == nil {
		if b, err = c.dec.more(b); len(b) > MaxExpanded {
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
	b, err := c.dec.more(c.buf)
	if err == nil {
		c.buf = b
		return
	}
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

// fill slides the window on until n unused bytes are in it, or all that are left.
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

// fail keeps the first error, and returns it.
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
