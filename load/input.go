package load

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/time/rate"

	"sequins/sequencefile"
	"sequins/source"
	"sequins/sparkey"
)

// ErrChanged is the class of errors about a file that has not the size with
// which it was listed. A version is immutable; this one is being written to,
// or the connection was lost in a way that looks like the file's end.
var ErrChanged = errors.New("the file's size has changed")

// records is what both input formats offer.
type records interface {
	Scan() bool
	Key() []byte
	Value() []byte
	Err() error
	Offset() int64
	Close() error
}

var (
	_ records = (*sequencefile.Reader)(nil)
	_ records = (*sparkey.Reader)(nil)
)

// An input is an open data file.
type input struct {
	records
	deletes interface{ Deleted() bool } // nil where the format knows no deletes
	path    string
	meter   *meter
	body    io.Closer
}

// open opens a file of the plan and reads its header.
func (l *Loader) open(ctx context.Context, plan *Plan, file source.File) (*input, error) {
	body, err := l.src.Open(ctx, plan.DB, plan.Version, file.Name, 0)
	if err != nil {
		return nil, err
	}
	path := l.src.Path(plan.DB, plan.Version) + "/" + file.Name
	in := &input{path: path, body: body, meter: &meter{
		ctx: ctx, r: body, limiter: l.opts.Bandwidth, size: file.Size, path: path,
	}}
	if plan.Format == FormatSparkey {
		r, err := sparkey.NewReader(in.meter, path)
		if err != nil {
			return nil, errors.Join(err, body.Close())
		}
		in.records, in.deletes = r, r
		return in, nil
	}
	in.records, err = sequencefile.NewReader(in.meter, path)
	if err != nil {
		return nil, errors.Join(err, body.Close())
	}
	return in, nil
}

func (in *input) deleted() bool { return in.deletes != nil && in.deletes.Deleted() }

func (in *input) close() error {
	return errors.Join(in.records.Close(), in.body.Close())
}

// A meter counts and slows down what is read of a file, and compares its
// length with the one it was listed with. The formats themselves cannot tell a
// file that was cut off between two records from a whole one.
type meter struct {
	ctx     context.Context
	r       io.Reader
	limiter *rate.Limiter // may be nil
	n, size int64
	path    string
}

func (m *meter) Read(p []byte) (int, error) {
	if m.limiter != nil {
		p = p[:min(len(p), max(1, m.limiter.Burst()))]
	}
	n, err := m.r.Read(p)
	m.n += int64(n)
	if m.n > m.size || err == io.EOF && m.n != m.size {
		return n, fmt.Errorf("%s: %w: it was listed with %d bytes, and %d were read",
			m.path, ErrChanged, m.size, m.n)
	}
	if m.limiter != nil && n > 0 {
		if werr := m.limiter.WaitN(m.ctx, n); werr != nil {
			return n, werr
		}
	}
	return n, err
}
