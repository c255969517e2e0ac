package avro

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"sequins/internal/render"
)

const (
	// MaxBlock is the maximum size of a block in the file, in bytes. Writers use 64 KiB or a little more.
	MaxBlock = 256 << 20
	// MaxValue is the maximum size of a value as served, and of a string in a record, in bytes.
	MaxValue = 256 << 20
)

// ErrCorrupt is matched (errors.Is) by every error about a damaged or truncated file, or one of another format.
var ErrCorrupt = errors.New("corrupt Avro file")

// Reader reads the records of a file in order.
type Reader struct {
	name      string
	file      container
	root      *typ
	noKey     bool // records are read without their keys
	keyPath   []string
	valuePath []string // nil is the whole record
	record    int64    // number of the current one; -1 before the first
	row       row
	noBytes   int   // number of consecutive records without any bytes
	err       error // io.EOF at the end
}

// NewReader reads the header of a file and looks up the fields in paths. name is used in errors. Errors wrap ErrCorrupt
// for a damaged file, and render.ErrField if the fields do not exist.
func NewReader(r io.Reader, name string, paths render.Paths) (*Reader, error) {
	rd := &Reader{name: name, record: -1}
	rd.file.in.Reset(r, 0)
	schema, err := rd.file.header()
	if err != nil {
		return nil, rd.failed(err)
	}
	if rd.root, err = parseSchema(schema); err != nil {
		return nil, rd.corrupt(err)
	}
	if err := rd.resolve(paths); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rd, nil
}

// resolve looks up paths in the file's schema.
func (r *Reader) resolve(paths render.Paths) error {
	key, value, err := paths.Find(r.root, r.fieldNames)
	if err != nil {
		return err
	}
	r.noKey = paths.NoKey
	if t, ok := key.Name.(*typ); ok && !t.scalar() {
		return fmt.Errorf("%w: %q, of type %s, cannot be the key", render.ErrField, paths.Key, t.kind)
	}
	r.keyPath, r.valuePath = key.Path, value.Path
	return nil
}

// Fields returns the names of the fields of a record.
func (r *Reader) Fields() []string {
	t := r.root.record()
	if t == nil {
		return nil
	}
	names := make([]string, len(t.fields))
	for i, f := range t.fields {
		names[i] = f.name
	}
	return names
}

func (r *Reader) fieldNames() string {
	if r.root.record() == nil {
		return fmt.Sprintf("the file is of type %s, not of records", r.root.kind)
	}
	return render.FieldNames(r.Fields())
}

// Scan reads the next record. It returns false at the end and after an error; see Err. After a null key it can be called again.
func (r *Reader) Scan() bool {
	if r.err == nil || errors.Is(r.err, render.ErrNullKey) {
		r.err = r.next()
	}
	return r.err == nil
}

func (r *Reader) next() error {
	r.record++
	if err := r.file.next(); err == io.EOF {
		return io.EOF
	} else if err != nil {
		return r.failed(err)
	}
	data := &r.file.data
	before := data.pos
	r.row = row{stream: data, start: data.pos, key: r.row.key[:0], value: r.row.value[:0]}
	r.row.visit(r.root, place{r.keyPath, !r.noKey}, place{r.valuePath, true}, 0)
	if r.noBytes++; data.pos > before {
		r.noBytes = 0
	}
	if r.noBytes > maxEmpty {
		data.fail(fmt.Errorf("more than %d records that take no bytes", maxEmpty))
	}
	if data.err != nil {
		return r.failed(data.err)
	}
	if !r.row.hasKey && !r.noKey {
		return fmt.Errorf("%s: record %d: %w: %s", r.name, r.record, render.ErrNullKey, strings.Join(r.keyPath, "."))
	}
	return nil
}

// Key returns the key of the current record, until the next Scan.
func (r *Reader) Key() []byte { return r.row.key }

// Value returns the value of the current record, until the next Scan. A null value is an empty one.
func (r *Reader) Value() []byte { return r.row.value }

// Err returns why Scan ended, or nil at the end of a complete file.
func (r *Reader) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return r.err
}

// Offset returns how far the file has been read, which is at or after the current record.
func (r *Reader) Offset() int64 { return r.file.in.Offset() }

// Close releases buffers and decoders. It does not close the underlying reader.
func (r *Reader) Close() error {
	r.err = cmp.Or(r.err, io.EOF)
	r.file.in.Close(io.EOF)
	r.row, r.file.codec, r.file.data, r.file.plain = row{}, nil, stream{}, nil
	return nil
}

// failed returns the error of the underlying reader if there is one, otherwise an ErrCorrupt.
func (r *Reader) failed(err error) error {
	if source := r.file.in.Err(); source != nil && source != io.EOF {
		return fmt.Errorf("%s: %w", r.name, source)
	}
	return r.corrupt(err)
}

// corrupt returns an ErrCorrupt with the current record and how far the file has been read.
func (r *Reader) corrupt(reason error) error {
	at := "in the header"
	if r.record >= 0 {
		at = fmt.Sprintf("in record %d", r.record)
	}
	return fmt.Errorf("%s: %s, by offset %d: %w: %s", r.name, at, r.Offset(), ErrCorrupt, reason.Error())
}
