package load

import (
	"errors"
	"fmt"
	"io"

	"sequins/source"
)

// A RangedFile reads a file of a source at several alternating offsets, as needed for the columns of a
// Parquet file. A stream of its own reads each column forward. It counts the bytes of all
// streams, and must be used by one goroutine.
type RangedFile struct {
	open    func(offset int64) (io.ReadCloser, error)
	size    int64 // as listed
	path    string
	n       int64           // bytes read
	streams []*rangedStream // least recently used first
}

// NewRangedFile returns a reader of a file; path is for errors.
func NewRangedFile(path string, size int64, open func(offset int64) (io.ReadCloser, error)) *RangedFile {
	return &RangedFile{size: size, path: path, open: open}
}

type rangedStream struct {
	meter
	body io.Closer
}

const (
	// maxStreams is the maximum number of open streams.
	maxStreams = 16
	// maxGap is how many bytes a stream skips by reading; for larger gaps a new stream is opened.
	maxGap = 64 << 10
)

// ReadAt implements io.ReaderAt.
func (r *RangedFile) ReadAt(p []byte, off int64) (int, error) {
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
	if err == nil && off+int64(n) == r.size { // it should end here: the meter returns an error for one more byte
		if _, err = s.Read(make([]byte, 1)); err == io.EOF {
			err = nil
		}
	}
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		err = fmt.Errorf("%s: %w: it was listed with %d bytes, and ended at %d", r.path, source.ErrChanged, r.size, s.n)
	}
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

func (r *RangedFile) at(off int64) (*rangedStream, error) {
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
		_ = r.streams[0].body.Close() // everything needed was read from it
		r.streams = r.streams[1:]
	}
	s := &rangedStream{body: body, meter: meter{r: body, n: off, size: r.size, path: r.path}}
	r.streams = append(r.streams, s)
	return s, nil
}

// Close closes the streams.
func (r *RangedFile) Close() error {
	var errs []error
	for _, s := range r.streams {
		errs = append(errs, s.body.Close())
	}
	r.streams = nil
	return errors.Join(errs...)
}
