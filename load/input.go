package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"sequins/source"
)

// Open opens a file of a plan at an offset.
func (l *Loader) Open(ctx context.Context, plan *Plan, file source.File, offset int64) (io.ReadCloser, error) {
	return l.src.Open(ctx, plan.DB, plan.Version, file, source.ReadOptions{Offset: offset, Bandwidth: l.opts.Bandwidth})
}

// records is the interface of all input formats. After a render.ErrNullKey, Scan can be called again.
type records interface {
	Scan() bool
	Key() []byte
	Value() []byte
	Err() error
	Offset() int64
	Close() error
}

// Records are the records of an open data file. Key and Value return those of the current record, until the next Scan.
type Records struct {
	records
	deletes   interface{ Deleted() bool } // nil if the format has no deletes
	path      string
	tolerance *tolerance // what may be left out
	leftOut   int64
	// firstLeftOut is why the first of them was left out.
	firstLeftOut error
	body         io.Closer
	size         int64

	meter *meter // of a file that is read sequentially
	// Of a file that is read at several offsets:
	ranged *RangedFile
	rows   interface{ Rows() (read, all int64) }

	consumed int64 // what Consumed has returned so far
}

func (l *Loader) open(ctx context.Context, plan *Plan, file source.File) (*Records, error) {
	in, err := l.openFields(ctx, plan, file, l.opts.Fields)
	if err == nil {
		in.tolerance = l.tolerance
	}
	return in, err
}

// openKeys is open for readers that need the keys alone: values are the keys. A
// Parquet reader holds a page of each column that it reads, and a version can have
// many columns.
func (l *Loader) openKeys(ctx context.Context, plan *Plan, file source.File) (*Records, error) {
	fields := l.opts.Fields
	fields.Value = fields.Key
	in, err := l.openFields(ctx, plan, file, fields)
	if err == nil && l.tolerance != nil {
		in.tolerance = newTolerance(math.MaxInt64) // of its own: what a sample leaves out is not counted
	}
	return in, err
}

func (l *Loader) openFields(ctx context.Context, plan *Plan, file source.File, fields Fields) (*Records, error) {
	f := File{
		Format: plan.Format, Name: file.Name, Path: l.src.Path(plan.DB, plan.Version) + "/" + file.Name, Size: file.Size, Columns: plan.columns,
		Open: func(offset int64) (io.ReadCloser, error) { return l.Open(ctx, plan, file, offset) },
	}
	in, err := f.open(fields, plan.classes)
	if err != nil {
		return nil, l.explain(ctx, plan, file, err)
	}
	return in, nil
}

// noRecords is a file of 0 bytes: a part without records, as Hive, Spark and Trino take it. It is of every format.
type noRecords struct{}

func (noRecords) Scan() bool    { return false }
func (noRecords) Key() []byte   { return nil }
func (noRecords) Value() []byte { return nil }
func (noRecords) Err() error    { return nil }
func (noRecords) Offset() int64 { return 0 }
func (noRecords) Close() error  { return nil }

// explain adds to the error of a file that the reader of the version's format rejects what the file begins with, if it is of
// another format or of none.
func (l *Loader) explain(ctx context.Context, plan *Plan, file source.File, err error) error {
	if plan.Format == FormatSparkey || ctx.Err() != nil || errors.Is(err, ErrSource) {
		return err
	}
	head, herr := l.head(ctx, plan, file)
	switch format := magics[head]; {
	case herr != nil || format == plan.Format || isTruncated(head):
		return err
	case format != "":
		return plan.mixed(file.Name, format)
	}
	return fmt.Errorf("%w; it begins with %q, unlike the other files (%s): %s", err, head, plan.Format, notData)
}

// done returns how many bytes of the file have been processed. If the file is not read sequentially,
// they are estimated from the share of its records.
func (in *Records) done() int64 {
	if in.ranged == nil {
		return in.meter.n
	}
	read, all := in.rows.Rows()
	if read >= all {
		return in.size
	}
	return int64(float64(in.size) * float64(max(0, read)) / float64(all))
}

// fetched returns how many bytes were read from the source.
func (in *Records) fetched() int64 {
	if in.ranged == nil {
		return in.meter.n
	}
	return in.ranged.n
}

// Deleted reports whether the current record deletes its key.
func (in *Records) Deleted() bool { return in.deletes != nil && in.deletes.Deleted() }

// Consumed returns how many bytes of the file have been processed since the last call.
func (in *Records) Consumed() int64 {
	before := in.consumed
	in.consumed = in.done()
	return in.consumed - before
}

// Close closes the file.
func (in *Records) Close() error { return errors.Join(in.records.Close(), in.body.Close()) }

// A meter counts the bytes read of a file and compares them with its listed size. The formats cannot
// detect a file that was truncated between two records.
type meter struct {
	r       io.Reader
	n, size int64
	path    string
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	if m.n > m.size || err == io.EOF && m.n != m.size {
		return n, fmt.Errorf("%s: %w: it was listed with %d bytes, and %d were read",
			m.path, source.ErrChanged, m.size, m.n)
	}
	return n, err
}
