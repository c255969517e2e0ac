package parquet

import (
	"bytes"
	"errors"
	"fmt"
)

// valuesAtOnce is the number of values taken from a page at a time.
const valuesAtOnce = 256

// maxRow bounds the bytes of a row in all columns together. Each value counts with its bytes and an overhead: see
// node.cost.
const maxRow = 256 << 20

// column returns the values of one column of the file, row by row.
type column struct {
	leaf    *node
	pager   *pager
	page    page
	read    []value // taken out of the page
	used    int     // of them
	buffer  [valuesAtOnce]value
	numbers [valuesAtOnce]uint32 // levels and indexes of these values, one after another

	row    []value // of the current row
	copied int     // values of it whose bytes are in memory of their own
	at     int     // the next one to be used
}

var (
	errShort  = errors.New("the column ends before its row group")
	errLong   = errors.New("the column continues after its row group")
	errLevels = errors.New("the levels do not match the schema")
	errRow    = fmt.Errorf("the row has more than %d bytes", maxRow)
)

// start begins with the column's chunk of a row group.
func (c *column) start(chunk chunk) error {
	c.page, c.read, c.used, c.row = page{}, nil, 0, c.row[:0]
	return c.pager.start(chunk)
}

// nextRow takes the values of the next row, which may have as many bytes as room says, and lowers that.
func (c *column) nextRow(room *int64) error {
	c.row, c.at, c.copied = c.row[:0], 0, 0
	switch more, err := c.fill(); {
	case err != nil:
		return err
	case !more:
		return errShort
	case c.read[c.used].rep != 0:
		return errLevels
	}
	if err := c.take(room); err != nil {
		return err
	}
	for c.leaf.rep > 0 {
		more, err := c.fill()
		if err != nil {
			return err
		}
		if !more || c.read[c.used].rep == 0 {
			break
		}
		if err := c.take(room); err != nil {
			return err
		}
	}
	return nil
}

func (c *column) take(room *int64) error {
	v := &c.read[c.used]
	*room -= c.leaf.cost + int64(len(v.bytes))
	if *room < 0 {
		return errRow
	}
	c.row = append(c.row, *v)
	c.used++
	return nil
}

// fill reads until there is a value to take, and reports whether there is one. What the row has so far is copied
// before, as its bytes are those of the page.
func (c *column) fill() (more bool, err error) {
	if c.used < len(c.read) {
		return true, nil
	}
	for ; c.copied < len(c.row); c.copied++ {
		c.row[c.copied].bytes = bytes.Clone(c.row[c.copied].bytes)
	}
	c.read, c.used = nil, 0
	if c.page.left == 0 {
		if c.page, err = c.pager.next(); err != nil {
			return false, err
		}
	}
	n, err := c.page.take(c.buffer[:], c.numbers[:], c.leaf)
	if err != nil {
		return false, err
	}
	c.read = c.buffer[:n]
	return n > 0, nil
}

// end checks that nothing is left.
func (c *column) end() error {
	c.row = c.row[:0]
	more, err := c.fill()
	if err != nil {
		return err
	}
	if more {
		return errLong
	}
	return c.pager.finish()
}
