package parquet

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"

	"sequins/internal/render"
)

// A Reader reads the rows of a file, one after another.
type Reader struct {
	name       string
	in         *tail
	file       *parquet.File
	root       *node
	keyName    string
	keyNode    *node
	valueNode  *node // the root is the whole record
	group      int   // the row group being read, from 0
	left       int64 // rows of it
	offset     int64 // of it
	columns    row
	record     int64 // number of the current row; -1 before the first
	key, value []byte
	err        error
	done       bool
}

// How much is read at once: so much of all columns together, but not less or more than this of each.
const (
	buffers   = 16 << 20
	minBuffer = 16 << 10
	maxBuffer = 1 << 20
)

// NewReader reads the footer of a file of size bytes, whose name is for errors, and finds the fields that
// paths name. Errors wrap ErrCorrupt where the file is damaged, and render.ErrField where it has no such
// fields.
func NewReader(r io.ReaderAt, size int64, name string, paths render.Paths) (_ *Reader, err error) {
	rd := &Reader{name: name, in: &tail{r: r, size: size}, record: -1, group: -1}
	defer rd.recover(&err)
	if err := rd.in.check(); err != nil {
		return nil, rd.failed(err)
	}
	if err := rd.open(maxBuffer); err != nil {
		return nil, rd.failed(err)
	}
	if rd.root, err = newTree(rd.file.Metadata().Schema); err != nil {
		return nil, rd.corrupt(err)
	}
	if err := rd.resolve(paths); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	rd.columns = make(row, rd.root.columns)
	if n := buffers / rd.valueNode.columns; n < maxBuffer {
		err = rd.open(max(n, minBuffer)) // only now it is known how many columns are read
	}
	return rd, err
}

// open reads the footer. Later, so many bytes will be read at once of each column.
func (r *Reader) open(buffer int) (err error) {
	r.file, err = parquet.OpenFile(r.in, r.in.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
		parquet.FileReadMode(parquet.ReadModeSync), parquet.ReadBufferSize(buffer))
	return err
}

// resolve finds the fields of paths in the file's schema.
func (r *Reader) resolve(paths render.Paths) error {
	key, value, err := paths.Find(r.root, r.fieldNames)
	if err != nil {
		return err
	}
	r.keyName, r.keyNode, r.valueNode = paths.Key, key.Name.(*node), value.Name.(*node)
	if !r.keyNode.scalar() {
		return fmt.Errorf("%w: %q is a group or a list and cannot be the key", render.ErrField, paths.Key)
	}
	return nil
}

// fieldNames says which fields there are.
func (r *Reader) fieldNames() string {
	const most = 20
	var names []string
	for _, n := range r.root.children[:min(len(r.root.children), most)] {
		names = append(names, n.name)
	}
	return "there are " + strings.Join(names, ", ")
}

// Scan reads the next row. It returns false at the end and at an error; see Err.
func (r *Reader) Scan() bool {
	if r.done {
		return false
	}
	r.err = r.next()
	if r.err != nil {
		r.done = true
	}
	if r.err == io.EOF {
		r.err = nil
	}
	return !r.done
}

func (r *Reader) next() (err error) {
	defer r.recover(&err)
	for r.left == 0 {
		if err := r.nextGroup(); err == io.EOF && r.in.err == nil {
			return io.EOF
		} else if err != nil {
			return r.failed(err)
		}
	}
	r.left--
	r.record++
	for _, c := range r.columns {
		if c == nil {
			continue
		}
		if err := c.nextRow(); err != nil {
			return r.failed(err)
		}
	}
	return r.render()
}

// render makes key and value of what the columns have for this row.
func (r *Reader) render() error {
	key, err := r.columns.field(r.keyNode)
	if err != nil {
		return r.corrupt(err)
	}
	if key == nil {
		return fmt.Errorf("%s: row %d: %w: %s", r.name, r.record, render.ErrNullKey, r.keyName)
	}
	r.key = render.AppendText(r.key[:0], key)
	r.columns[r.keyNode.first].at = 0 // the value may have the key in it
	value, err := r.columns.field(r.valueNode)
	if err != nil {
		return r.corrupt(err)
	}
	for _, c := range r.columns[r.valueNode.first : r.valueNode.first+r.valueNode.columns] {
		if c.at != len(c.row) {
			return r.corrupt(errLevels)
		}
	}
	r.value = render.AppendText(r.value[:0], value)
	return nil
}

// nextGroup goes to the next row group; io.EOF after the last.
func (r *Reader) nextGroup() error {
	if err := r.endGroup(); err != nil {
		return err
	}
	groups := r.file.RowGroups()
	if r.group+1 == len(groups) {
		return io.EOF
	}
	r.group++
	g := groups[r.group]
	if r.left = g.NumRows(); r.left < 0 {
		return fmt.Errorf("a row group has %d rows", r.left)
	}
	r.offset = r.file.Metadata().RowGroups[r.group].FileOffset
	chunks := g.ColumnChunks()
	if len(chunks) != len(r.columns) {
		return errSchema
	}
	for _, n := range []*node{r.keyNode, r.valueNode} {
		for i := n.first; i < n.first+n.columns; i++ {
			if r.columns[i] != nil {
				continue
			}
			pages, err := r.pages(chunks[i], i)
			if err != nil {
				return err
			}
			r.columns[i] = &column{repeated: r.root.leaf(i).rep > 0, pages: pages}
		}
	}
	return nil
}

// pages returns the pages of a column of the current row group, behind their guard.
func (r *Reader) pages(chunk parquet.ColumnChunk, column int) (parquet.Pages, error) {
	columns := r.file.Metadata().RowGroups[r.group].Columns
	file, ok := chunk.(*parquet.FileColumnChunk)
	if !ok || column >= len(columns) {
		return nil, errSchema
	}
	g, err := newGuard(r.in, &columns[column].MetaData, r.in.size)
	if err != nil {
		return nil, err
	}
	return file.PagesFrom(g), nil
}

// endGroup checks that the columns have no more values than the row group has rows, and closes them.
func (r *Reader) endGroup() error {
	for i, c := range r.columns {
		if c == nil {
			continue
		}
		if err := errors.Join(c.end(), c.close()); err != nil {
			return err
		}
		r.columns[i] = nil
	}
	return nil
}

// Key returns the key of the current row, until the next Scan.
func (r *Reader) Key() []byte { return r.key }

// Value returns the value of the current row, until the next Scan. A null value is an empty one.
func (r *Reader) Value() []byte { return r.value }

// Err returns why Scan ended early, and nil at the end of a whole file.
func (r *Reader) Err() error { return r.err }

// Offset returns where the row group of the current row begins; 0 if the writer did not say.
func (r *Reader) Offset() int64 { return r.offset }

// Rows returns how many rows have been read, and how many there are.
func (r *Reader) Rows() (read, all int64) { return r.record + 1, r.file.NumRows() }

// Close gives back what is held of columns. It does not close the underlying reader.
func (r *Reader) Close() (err error) {
	defer r.recover(&err)
	r.done = true
	for i, c := range r.columns {
		if c != nil {
			err = errors.Join(err, c.close())
			r.columns[i] = nil
		}
	}
	return err
}

// failed tells an error of the underlying reader from one about what was read.
func (r *Reader) failed(err error) error {
	if r.in.err != nil {
		return fmt.Errorf("%s: %w", r.name, r.in.err)
	}
	return r.corrupt(err)
}

func (r *Reader) corrupt(err error) error {
	return &CorruptError{Name: r.name, Offset: r.offset, Record: r.record, Reason: err.Error()}
}

// recover turns a panic into an error: whatever the library trips over is in the file.
func (r *Reader) recover(err *error) {
	if p := recover(); p != nil {
		*err = r.corrupt(fmt.Errorf("the decoder gave up: %v", p))
	}
}
