package load

import (
	"errors"
	"fmt"
	"io"

	"sequins/source"
)

// A ranged reads a file of a source from several places in turn, as the columns
// of a Parquet file lie: each of them is read forward by a stream of its own.
// It is a meter of all of them, and made for one goroutine.
type ranged struct {
	open    func(offset int64) (io.ReadCloser, error)
	size    int64 // with which the file was listed
	path    string
	n       int64           // bytes that were read
	streams []*rangedStream // the one used last is last
}

type rangedStream struct {
	meter
	body io.Closer
}

const (
	// maxStreams is how many places are read from without opening the file
	// anew.
	maxStreams = 16
	// maxGap is how many bytes a stream passes over before another is opened
	// behind them.
	maxGap = 64 << 10
)

// ReadAt implements io.ReaderAt.
func (r *ranged) ReadAt(p []byte, off int64) (int, error) {
	short := false
	if left := r.size - off; int64(len(p)) > left {
		p, short = p[:max(0, left)], true
	}
	s, err := r.at(off)
	if err != nil {
		return 0, err
	}
	before := s.n
	n, err := io.ReadFull(s, p)
	r.n += s.n - before
	if err == nil && off+int64(n) == r.size {
		err = r.probe(s)
	}
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		err = fmt.Errorf("%s: %w: it was listed with %d bytes, and ended at %d", r.path, source.ErrChanged, r.size, s.n)
	}
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

// probe looks whether the file goes on after its end.
func (r *ranged) probe(s *rangedStream) error {
	_, err := s.Read(make([]byte, 1)) // a byte more is an error of the meter
	if err == io.EOF {
		return nil
	}
	return err
}

// at returns a stream that is at off.
func (r *ranged) at(off int64) (*rangedStream, error) {
	for i, s := range r.streams {
		if gap := off - s.n; 0 <= gap && gap <= maxGap {
			r.streams = append(append(r.streams[:i:i], r.streams[i+1:]...), s)
			before := s.n
			_, err := io.CopyN(io.Discard, s, gap)
			r.n += s.n - before
			return s, err
		}
	}
	body, err := r.open(off)
	if err != nil {
		return nil, err
	}
	if len(r.streams) == maxStreams {
		_ = r.streams[0].body.Close() // what was wanted of it has been read
		r.streams = r.streams[1:]
	}
	s := &rangedStream{body: body, meter: meter{r: body, n: off, size: r.size, path: r.path}}
	r.streams = append(r.streams, s)
	return s, nil
}

// Close closes the streams.
func (r *ranged) Close() error {
	var errs []error
	for _, s := range r.streams {
		errs = append(errs, s.body.Close())
	}
	r.streams = nil
	return errors.Join(errs...)
}
