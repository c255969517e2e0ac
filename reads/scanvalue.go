package reads

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"sequins/proxy"
)

// Open returns the current value if it is large. It can be opened several times, and must be closed before Next. A node
// or a block that fails in the middle is replaced by others; if none is left, Read fails, and so does the scan: see
// Outcome.
func (s *Scan) Open() io.ReadCloser {
	v := &scannedValue{s: s, key: s.current.Key, left: s.item.length}
	if src, local := s.current.Source.(*localSource); local {
		v.src = src
		v.body = s.item.local.Section(0, s.item.length)
	}
	return v
}

// scannedValue reads a large value from a local block or from other nodes.
type scannedValue struct {
	s      *Scan
	key    []byte
	src    *localSource  // while it is read from there
	body   io.ReadCloser // nil before the first answer
	off    int64
	left   int64
	failed int
	err    error
}

// maxValueFailures limits how often a value is requested.
const maxValueFailures = 4

// Read implements io.Reader.
func (v *scannedValue) Read(p []byte) (n int, err error) {
	for v.err == nil && v.left > 0 {
		if v.body == nil {
			if v.err = v.fetch(); v.err != nil {
				break
			}
		}
		n, err = v.body.Read(p[:min(int64(len(p)), v.left)])
		v.off, v.left = v.off+int64(n), v.left-int64(n)
		if err == nil || n > 0 {
			return n, nil // an error comes again
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if v.src != nil {
			v.s.report(v.src.partition, v.src.block, err)
			v.src = nil
		}
		v.body.Close() //nolint:errcheck // it was only read from
		v.body = nil
		if v.failed++; v.failed == maxValueFailures || v.s.ctx.Err() != nil {
			v.err = err
		}
	}
	switch s := v.s; {
	case v.err == nil:
		return 0, io.EOF
	case s.outcome != Found:
	case len(s.lost) > 0 && s.r.reader.opts.Proxy == nil:
		s.outcome = Unreadable
	case s.ctx.Err() != nil:
		s.outcome = GivenUp
	default:
		s.outcome = Unreachable
	}
	return 0, v.err
}

// fetch requests the value and skips what has been read of it.
func (v *scannedValue) fetch() error {
	s := v.s
	if s.r.reader.opts.Proxy == nil || s.r.query.fromPeer() {
		return errors.New("no other node can be asked")
	}
	peers := s.r.peers(s.r.handle.Partition(v.key))
	q := s.query(&PageRequest{kind: pageValue, interval: interval{start: v.key}}, peers, 1)
	err := s.r.fetch(s.ctx, q, func(a *proxy.Answer) (err error) {
		if a.Status != http.StatusOK || a.Length != v.off+v.left {
			err = fmt.Errorf("%w: status %d, a value of %d bytes instead of %d", errPage, a.Status, a.Length, v.off+v.left)
		} else {
			_, err = io.CopyN(io.Discard, a.Body, v.off)
		}
		if err != nil {
			a.Body.Close() //nolint:errcheck // it was only read from
			return err
		}
		v.body = a.Body
		return nil
	})
	if err != nil {
		s.r.fetchError(peers, err)
	}
	return err
}

// Close implements io.Closer.
func (v *scannedValue) Close() error {
	if v.body != nil {
		v.body.Close() //nolint:errcheck // it was only read from
		v.body = nil
	}
	return nil
}
