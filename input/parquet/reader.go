package parquet

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"

	"sequins/internal/render"
)

// Reader reads the rows of a file in order.
type Reader struct {
	name       string
	shared     shared
	footer     footer
	root       *node
	leaves     []*node
	keyName    string
	keyNode    *node // nil if records are read without their keys
	valueNode  *node // the root is the whole record
	group      int   // the row group being read, from 0
	left       int64 // rows of it
	offset     int64 // of it
	columns    row
	record     int64 // number of the current row; -1 before the first
	key, value []byte
	err        error // io.EOF at the end
}

// The sizes of reads: a total for all columns, with a minimum and a maximum for each.
const (
	buffers   = 16 << 20
	minBuffer = 16 << 10
	maxBuffer = 1 << 20
)

// NewReader reads the footer of a file of size bytes and looks up the fields in paths. name is used in errors. Errors
// wrap ErrCorrupt for a damaged file, and render.ErrField if the fields do not exist.
func NewReader(r io.ReaderAt, size int64, name string, paths render.Paths) (_ *Reader, err error) {
	rd := &Reader{name: name, shared: shared{in: &tail{r: r, size: size}, most: maxHeld}, record: -1, group: -1}
	defer rd.recover(&err)
	b, err := rd.shared.in.footer()
	if err == nil {
		rd.footer, err = parseFooter(b)
	}
	if err == nil {
		rd.shared.alwaysCompressed = rd.footer.alwaysCompressed
		times := rd.footer.spark.calendar()
		rd.root, rd.leaves, err = newTree(rd.footer.fields, &times)
	}
	if err != nil {
		return nil, rd.failed(err)
	}
	if err := rd.resolve(paths); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	rd.columns = make(row, len(rd.leaves))
	for _, n := range []*node{rd.keyNode, rd.valueNode} {
		if n == nil {
			continue
		}
		if err := rd.open(n); err != nil {
			return nil, rd.failed(err)
		}
	}
	return rd, nil
}

// open creates the columns below a field, with buffers that are no larger than the file.
func (r *Reader) open(n *node) error {
	buffer := int(min(int64(max(buffers/r.valueNode.columns, minBuffer)), maxBuffer, r.shared.in.size))
	if most := (r.shared.most - r.shared.held) / pagerCost(buffer); int64(n.columns) > most {
		return unsupported("%d columns would have to be read, and up to %d can be: name fewer as the value", n.columns, most)
	}
	for i := n.first; i < n.first+n.columns; i++ {
		if r.columns[i] != nil {
			continue
		}
		if err := r.shared.hold(pagerCost(buffer)); err != nil {
			return err
		}
		p := &pager{shared: &r.shared, leaf: r.leaves[i], in: bufio.NewReaderSize(nil, buffer)}
		r.columns[i] = &column{leaf: r.leaves[i], pager: p}
	}
	return nil
}

// resolve looks up paths in the file's schema.
func (r *Reader) resolve(paths render.Paths) error {
	key, value, err := paths.Find(r.root, func() string { return render.FieldNames(r.Fields()) })
	if err != nil {
		return err
	}
	r.keyName, r.valueNode = paths.Key, value.Name.(*node)
	r.keyNode, _ = key.Name.(*node)
	if r.keyNode != nil && !r.keyNode.scalar() {
		return fmt.Errorf("%w: %q is a group or a list and cannot be the key", render.ErrField, paths.Key)
	}
	if d := r.valueNode.duplicate(); d != nil {
		return fmt.Errorf("%w: the file has two columns named %s, which cannot both be in a value", render.ErrField, d.path())
	}
	return nil
}

// Fields returns the names of the fields of a record.
func (r *Reader) Fields() []string {
	names := make([]string, len(r.root.children))
	for i, n := range r.root.children {
		names[i] = n.name
	}
	return names
}

// Scan reads the next row. It returns false at the end and after an error; see Err. After a null key it can be called again.
func (r *Reader) Scan() bool {
	if r.err == nil || errors.Is(r.err, render.ErrNullKey) {
		r.err = r.next()
	}
	return r.err == nil
}

func (r *Reader) next() (err error) {
	defer r.recover(&err)
	for r.left == 0 {
		if r.group >= 0 {
			if err := r.each((*column).end); err != nil {
				return r.failed(err)
			}
		}
		if r.group+1 == len(r.footer.groups) {
			// Other differences are ignored: some writers (fastparquet before 2022.12) count the rows of other files, or leave out
			// those that were appended.
			if r.record < 0 && r.footer.rows > 0 {
				return r.failed(fmt.Errorf("%w: the file has %d rows, and its row groups have none", errFooter, r.footer.rows))
			}
			return io.EOF
		}
		if err := r.nextGroup(); err != nil {
			return r.failed(err)
		}
	}
	r.left--
	r.record++
	room := int64(maxRow)
	err = r.each(func(c *column) error { return c.nextRow(&room) })
	if err != nil {
		return r.failed(err)
	}
	return r.render()
}

// each calls do for the columns that are read. Errors name the column.
func (r *Reader) each(do func(*column) error) error {
	for _, c := range r.columns {
		if c == nil {
			continue
		}
		if err := do(c); err != nil {
			return fmt.Errorf("column %s: %w", c.leaf.path(), err)
		}
	}
	return nil
}

// render renders key and value of the current row.
func (r *Reader) render() error {
	if err := r.renderKey(); err != nil {
		return err
	}
	value, err := r.columns.text(r.value[:0], r.valueNode)
	if err != nil {
		return r.corrupt(err)
	}
	r.value = value
	for _, c := range r.columns[r.valueNode.first : r.valueNode.first+r.valueNode.columns] {
		if c.at != len(c.row) {
			return r.corrupt(errLevels)
		}
	}
	return nil
}

func (r *Reader) renderKey() error {
	if r.keyNode == nil {
		return nil
	}
	key, err := r.columns.scalar(r.keyNode)
	if err != nil {
		return r.corrupt(err)
	}
	if key == nil {
		return fmt.Errorf("%s: row %d: %w: %s", r.name, r.record, render.ErrNullKey, r.keyName)
	}
	r.key = render.AppendText(r.key[:0], key)
	r.columns[r.keyNode.first].at = 0 // the value may contain the key
	return nil
}

func (r *Reader) nextGroup() error {
	r.group++
	g, err := parseRowGroup(r.footer.groups[r.group], len(r.columns))
	if err != nil {
		return err
	}
	r.left, r.offset = g.rows, g.offset
	return r.each(func(c *column) error { return c.start(g.chunks[c.leaf.first]) })
}

// Key returns the key of the current row, until the next Scan.
func (r *Reader) Key() []byte { return r.key }

// Value returns the value of the current row, until the next Scan. A null value is an empty one.
func (r *Reader) Value() []byte { return r.value }

// Err returns why Scan ended, or nil at the end of a complete file.
func (r *Reader) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return r.err
}

// Offset returns the offset of the current row group; 0 if the file does not contain it.
func (r *Reader) Offset() int64 { return r.offset }

// Rows returns the number of rows read, and of rows in the file.
func (r *Reader) Rows() (read, all int64) { return r.record + 1, r.footer.rows }

// Close ends reading. It does not close the underlying reader.
func (r *Reader) Close() error {
	r.err = cmp.Or(r.err, io.EOF)
	return nil
}

// failed tells an error of the underlying reader from one about what was read.
func (r *Reader) failed(err error) error {
	if r.shared.in.err != nil {
		return fmt.Errorf("%s: %w", r.name, r.shared.in.err)
	}
	return r.corrupt(err)
}

// corrupt returns an ErrCorrupt with the current row and its row group.
func (r *Reader) corrupt(reason error) error {
	at, what := "in the footer", "corrupt"
	if r.record >= 0 {
		at = fmt.Sprintf("in row %d, in the row group at offset %d", r.record, r.offset)
	}
	if errors.Is(reason, errUnsupported) {
		what = "unsupported"
	}
	return fileError(fmt.Sprintf("%s: %s: %s Parquet file: %v", r.name, at, what, reason))
}

// recover turns a panic into an error: whatever a codec's library fails at is in the file.
func (r *Reader) recover(err *error) {
	if p := recover(); p != nil {
		*err = r.corrupt(fmt.Errorf("the decoder panicked: %v", p))
	}
}
