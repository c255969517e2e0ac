package avro

import (
	"fmt"
	"io"
	"strings"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"sequins/internal/render"
)

// MaxBlock is how large a block may be, in bytes, before and after compression. A record lies in one
// block, and writers make them of 64 KiB or a little more.
const MaxBlock = 256 << 20

// A Reader reads the records of a file, one after another.
type Reader struct {
	name       string
	in         *counter
	file       *ocf.Reader
	root       *typ
	keyPath    []string
	valuePath  []string // nil is the whole record
	record     int64    // number of the current one; -1 before the first
	key, value []byte
	err        error
	unfit      error // why the fields that are set cannot be read
	done       bool
}

// NewReader reads the header of a file, whose name is for errors, and finds the fields that paths name.
// Errors wrap ErrCorrupt where the file is damaged, and render.ErrField where it has no such fields.
func NewReader(r io.Reader, name string, paths render.Paths) (_ *Reader, err error) {
	rd := &Reader{name: name, in: &counter{r: r}, record: -1}
	defer rd.recover(&err)
	if rd.file, err = ocf.NewReader(rd.in, rd.options(paths)...); err == nil {
		return rd, nil
	}
	if rd.unfit != nil {
		return nil, fmt.Errorf("%s: %w", name, rd.unfit)
	}
	return nil, rd.failed(err)
}

// options has the reader call plan as soon as it knows the schema.
func (r *Reader) options(paths render.Paths) []ocf.ReaderOpt {
	return []ocf.ReaderOpt{
		ocf.WithCodec(bzip2Codec{}),
		ocf.WithSchemaOpts(plain()...),
		ocf.WithDecodeOpts(avro.TaggedUnions()),
		ocf.WithMaxBlockBytes(MaxBlock),
		ocf.WithMaxDecompressedBlockBytes(MaxBlock),
		ocf.WithReaderSchemaFunc(func(file *ocf.Reader) (*avro.Schema, error) {
			return r.plan(file.Schema().Root(), paths)
		}),
	}
}

// plan finds the fields in the schema, and returns the schema to read by; nil for the whole.
func (r *Reader) plan(root *avro.SchemaNode, paths render.Paths) (_ *avro.Schema, err error) {
	c := compiler{named: map[string]*typ{}}
	if r.root, err = c.compile(root, ""); err != nil {
		return nil, err
	}
	if r.unfit = r.resolve(paths); r.unfit != nil {
		return nil, r.unfit
	}
	if paths.Value == "" || r.root.kind != "record" || r.root.contains(r.root, map[*typ]bool{}) {
		return nil, nil // to leave a field out of a record in a record of the same type would leave it out of both
	}
	return project(root, paths), nil
}

// project returns the schema without the fields that are not asked for, which are then skipped; nil where
// there is nothing to leave out.
func project(root *avro.SchemaNode, paths render.Paths) *avro.Schema {
	kept := *root
	kept.Fields = nil
	for _, f := range root.Fields {
		if begins(paths.Key, f.Name) || begins(paths.Value, f.Name) {
			kept.Fields = append(kept.Fields, f)
		}
	}
	if len(kept.Fields) == 0 || len(kept.Fields) == len(root.Fields) {
		return nil
	}
	projected, err := kept.Schema(plain()...)
	if err != nil {
		return nil // everything is decoded then, which is only slower
	}
	return projected
}

func begins(path, name string) bool {
	return path == name || strings.HasPrefix(path, name+".")
}

// resolve finds the fields of paths in the file's schema.
func (r *Reader) resolve(paths render.Paths) error {
	key, value, err := paths.Find(r.root, r.fieldNames)
	if err != nil {
		return err
	}
	if t := key.Name.(*typ); !t.scalar() {
		return fmt.Errorf("%w: %q, of type %s, cannot be the key", render.ErrField, paths.Key, t.kind)
	}
	r.keyPath, r.valuePath = key.Path, value.Path
	return nil
}

// fieldNames says which fields there are.
func (r *Reader) fieldNames() string {
	t := r.root.record()
	if t == nil {
		return fmt.Sprintf("the file is of type %s, not of records", r.root.kind)
	}
	const most = 20
	var names []string
	for _, f := range t.fields[:min(len(t.fields), most)] {
		names = append(names, f.name)
	}
	return "there are " + strings.Join(names, ", ")
}

// Scan reads the next record. It returns false at the end and at an error; see Err.
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
	r.record++
	var v any
	if err := r.file.Decode(&v); err != nil {
		if err == io.EOF && r.in.err == nil {
			return io.EOF
		}
		return r.failed(err)
	}
	key, err := r.root.find(v, r.keyPath)
	if err != nil {
		return r.corrupt(err)
	}
	if key == nil {
		return fmt.Errorf("%s: record %d: %w: %s", r.name, r.record, render.ErrNullKey, strings.Join(r.keyPath, "."))
	}
	value, err := r.root.find(v, r.valuePath)
	if err != nil {
		return r.corrupt(err)
	}
	r.key = render.AppendText(r.key[:0], key)
	r.value = render.AppendText(r.value[:0], value)
	return nil
}

// Key returns the key of the current record, until the next Scan.
func (r *Reader) Key() []byte { return r.key }

// Value returns the value of the current record, until the next Scan. A null value is an empty one.
func (r *Reader) Value() []byte { return r.value }

// Err returns why Scan ended early, and nil at the end of a whole file.
func (r *Reader) Err() error { return r.err }

// Offset returns up to where the file has been read, which is at or behind the current record.
func (r *Reader) Offset() int64 { return r.in.n }

// Close releases decoders. It does not close the underlying reader.
func (r *Reader) Close() error {
	r.done = true
	return r.file.Close()
}

// failed tells an error of the underlying reader from one about what was read.
func (r *Reader) failed(err error) error {
	if r.in.err != nil {
		return fmt.Errorf("%s: %w", r.name, r.in.err)
	}
	return r.corrupt(err)
}

func (r *Reader) corrupt(err error) error {
	return &CorruptError{Name: r.name, Offset: r.in.n, Record: r.record, Reason: err.Error()}
}

// recover turns a panic into an error: whatever the library trips over is in the file.
func (r *Reader) recover(err *error) {
	if p := recover(); p != nil {
		*err = r.corrupt(fmt.Errorf("the decoder gave up: %v", p))
	}
}

// A counter counts what is read, and keeps the error that ended reading if it was not the end.
type counter struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}
