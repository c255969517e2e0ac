package parquet

import (
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"
)

// valuesAtOnce is how many values are taken out of a page at a time.
const valuesAtOnce = 256

// A column hands out the values of one column of a row group, row by row.
type column struct {
	repeated bool // a row can have several values
	pages    parquet.Pages
	page     parquet.Page // the one being read; nil before the first and after the last
	values   parquet.ValueReader
	read     []parquet.Value // taken out of the page
	used     int             // of them
	buffer   [valuesAtOnce]parquet.Value

	// row has the values of the current row. They lie in the memory of page and of spent.
	row   []parquet.Value
	at    int // the next one to be used
	spent []parquet.Page
}

var (
	errShort  = errors.New("a column ends before its row group")
	errLong   = errors.New("a column goes on after its row group")
	errLevels = errors.New("the levels of a column do not fit its schema")
)

// nextRow takes the values of the next row.
func (c *column) nextRow() error {
	c.release()
	c.row, c.at = c.row[:0], 0
	switch more, err := c.fill(); {
	case err != nil:
		return err
	case !more:
		return errShort
	case c.read[c.used].RepetitionLevel() != 0:
		return errLevels
	}
	c.take()
	for c.repeated {
		more, err := c.fill()
		if err != nil {
			return err
		}
		if !more || c.read[c.used].RepetitionLevel() == 0 {
			break
		}
		c.take()
	}
	return nil
}

func (c *column) take() {
	c.row = append(c.row, c.read[c.used])
	c.used++
}

// fill sees to it that there is a value to take, and reports whether there is.
func (c *column) fill() (more bool, err error) {
	for c.used == len(c.read) {
		if c.page == nil {
			if c.page, err = c.pages.ReadPage(); err != nil {
				c.page = nil
				if err == io.EOF {
					return false, nil
				}
				return false, err
			}
			c.values = c.page.Values()
		}
		n, err := c.values.ReadValues(c.buffer[:])
		c.read, c.used = c.buffer[:n], 0
		if err == io.EOF || err == nil && n == 0 {
			c.spent = append(c.spent, c.page)
			c.page = nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// end checks that nothing is left.
func (c *column) end() error {
	more, err := c.fill()
	if err == nil && more {
		err = errLong
	}
	return err
}

// release gives back the pages that no value is used of any more.
func (c *column) release() {
	if c.used < len(c.read) && c.page == nil {
		return // the last values of a spent page are yet to come
	}
	for _, p := range c.spent {
		parquet.Release(p)
	}
	c.spent = c.spent[:0]
}

func (c *column) close() error {
	if c.page != nil {
		c.spent = append(c.spent, c.page)
		c.page = nil
	}
	c.read, c.used = nil, 0
	c.release()
	return c.pages.Close()
}
