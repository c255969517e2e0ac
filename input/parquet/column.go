package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// valuesAtOnce is the number of values taken from a page at a time.
const valuesAtOnce = 256

// maxRow bounds the bytes of a row in all columns together. Each value counts with its bytes and an overhead: see
// node.cost.
const maxRow = 256 << 20

// value is one value of a column.
type value struct {
	bits     uint64 // of a number or boolean
	bytes    []byte // of everything else
	def, rep int16  // levels
}

// column returns the values of one column of the file, row by row.
type column struct {
	leaf   *node
	pager  *pager
	source source  // of the current row group
	read   []value // taken out of the page
	used   int     // of them
	buffer [valuesAtOnce]value

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
func (c *column) start(chunk chunk) (err error) {
	if err := c.pager.start(chunk); err != nil {
		return err
	}
	c.read, c.used, c.row = nil, 0, c.row[:0]
	c.source, err = newSource(c.leaf, c.pager)
	return err
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
	n, err := c.source(c.buffer[:])
	c.read, c.used = c.buffer[:n], 0
	return n > 0, err
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

// source sets elements of out to the next values of a column, and returns how many; 0 after the last.
type source func(out []value) (n int, err error)

// unused is a buffer pool that column readers require but do not use here.
var unused = &sync.Pool{New: func() any { return memory.NewResizableBuffer(memory.DefaultAllocator) }}

// newSource returns the values of a column, as arrow-go decodes the pages of p.
func newSource(leaf *node, p *pager) (source, error) {
	// It is deprecated as it can be used wrongly. What it needs is that a page stays until the next is read.
	r := file.NewColumnReader(leaf.descriptor, p, memory.DefaultAllocator, unused) //nolint:staticcheck
	switch r := r.(type) {
	case *file.BooleanColumnChunkReader:
		return batches(leaf, r.ReadBatchInPage, func(v *value, b *bool) {
			if v.bits = 0; *b {
				v.bits = 1
			}
		}), nil
	case *file.Int32ColumnChunkReader:
		return batches(leaf, r.ReadBatchInPage, func(v *value, n *int32) { v.bits = uint64(int64(*n)) }), nil
	case *file.Int64ColumnChunkReader:
		return batches(leaf, r.ReadBatchInPage, func(v *value, n *int64) { v.bits = uint64(*n) }), nil
	case *file.Int96ColumnChunkReader:
		return batches(leaf, r.ReadBatchInPage, func(v *value, b *parquet.Int96) { v.bytes = b[:] }), nil
	case *file.Float32ColumnChunkReader:
		return batches(leaf, r.ReadBatchInPage, func(v *value, f *float32) { v.bits = uint64(math.Float32bits(*f)) }), nil
	case *file.Float64ColumnChunkReader:
		return batches(leaf, r.ReadBatchInPage, func(v *value, f *float64) { v.bits = math.Float64bits(*f) }), nil
	case *file.ByteArrayColumnChunkReader:
		return batches(leaf, r.ReadBatchInPage, func(v *value, b *parquet.ByteArray) { v.bytes = *b }), nil
	case *file.FixedLenByteArrayColumnChunkReader:
		return batches(leaf, r.ReadBatchInPage, func(v *value, b *parquet.FixedLenByteArray) { v.bytes = *b }), nil
	}
	return nil, unsupported("the type of number %d", leaf.physical)
}

// batches reads by read and sets values by set. Nulls are in the levels, but not among what read gives.
func batches[T any](leaf *node, read func(int64, []T, []int16, []int16) (int64, int, error), set func(*value, *T)) source {
	present := make([]T, valuesAtOnce)
	var defs, reps []int16
	if leaf.def > 0 {
		defs = make([]int16, valuesAtOnce)
	}
	if leaf.rep > 0 {
		reps = make([]int16, valuesAtOnce)
	}
	most := value{def: int16(leaf.def), rep: int16(leaf.rep)}
	return func(out []value) (int, error) {
		levels, values, err := read(int64(len(out)), present, defs, reps)
		if err != nil {
			return 0, err
		}
		next := 0
		for i := range out[:levels] {
			v := value{def: most.def}
			if defs != nil {
				v.def = defs[i]
			}
			if reps != nil {
				v.rep = reps[i]
			}
			if v.def < 0 || v.rep < 0 || v.def > most.def || v.rep > most.rep || v.def == most.def && next == values {
				return 0, errLevels
			}
			if v.def == most.def {
				set(&v, &present[next])
				next++
			}
			out[i] = v
		}
		if next != values {
			return 0, errLevels
		}
		return int(levels), nil
	}
}
