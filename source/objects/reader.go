package objects

import (
	"context"
	"io"
	"io/fs"
	"math/bits"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sequins/source"
)

const (
	// parallel is the maximum number of parts of an object that are fetched
	// concurrently.
	parallel = 16

	// minPart and maxPart are the sizes of a reader's first part and of its
	// largest; all sizes are powers of two. Servers answer a request after
	// some 30 ms and then send some 50 MB/s: with 4 MiB, most of the time is
	// spent sending.
	minPart = 256 << 10
	maxPart = 4 << 20

	// maxWindow is the maximum read-ahead of one reader.
	maxWindow = parallel * maxPart

	// aheadOfLimit is the read-ahead of readers with limited bandwidth: longer
	// than a request takes, and short enough to keep bursts small.
	aheadOfLimit = 250 * time.Millisecond
)

// part is a range of an object, and its buffer.
type part struct {
	offset int64
	data   []byte
	buffer *[]byte       // data is a slice of it
	paid   bool          // its buffer counts against the budget
	done   chan struct{} // closed when data is filled or err is set
	err    error
}

// reader reads an object from an offset to its end. Its fields belong to the
// caller of Read and Close; the goroutines only use their part and object.
type reader struct {
	source *Source
	ctx    context.Context
	cancel context.CancelFunc
	object object

	start  int64   // offset where reading began
	pos    int64   // offset of the next byte to return
	next   int64   // offset of the next part
	parts  []*part // in order; the first one is being returned
	closed bool
	err    error // error of every further Read
	wg     sync.WaitGroup
}

// Open opens a file of a version, or of the target of its link, for reading. The
// listed object is recognized by its id.
func (s *Source) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	key, err := s.key(ctx, db, version, file, o)
	if err != nil {
		return nil, err
	}
	return s.openKey(ctx, key, file, o)
}

// openKey requests the first part of an object, whose response identifies the
// object.
func (s *Source) openKey(ctx context.Context, key string, listed source.File, o source.ReadOptions) (io.ReadCloser, error) {
	r := &reader{
		source: s, object: object{source: s, key: key, limit: o.Bandwidth},
		start: o.Offset, pos: o.Offset, next: o.Offset,
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	n := int64(minPart)
	if !listed.ModTime.IsZero() {
		n = max(1, min(n, listed.Size-r.start))
	}
	var body *Body
	err := source.Wait(r.ctx, r.object.limit, n)
	if err == nil {
		body, err = r.object.open(r.ctx, listed, r.start, n)
	}
	if err != nil {
		r.cancel()
		return nil, s.fail(ctx, "open", key, err)
	}
	s.readers.Add(1)
	if body != nil {
		r.begin(min(minPart, r.object.size-r.start), false, body)
	}
	return r, nil
}

// window returns the maximum read-ahead: twice what has been returned so far,
// limited by this reader's share of the budget and by the bandwidth.
func (r *reader) window() int64 {
	readers := max(1, r.source.readers.Load())
	window := min(2*(r.pos-r.start), maxWindow, r.source.memory/readers)
	if l := r.object.limit; l != nil && l.Limit() != rate.Inf {
		window = min(window, int64(float64(l.Limit())*aheadOfLimit.Seconds())/readers)
	}
	return max(minPart, window)
}

// readAhead starts as many parts as fit into the window. It always starts one, so
// that a reader without a share of the budget makes progress.
func (r *reader) readAhead() {
	for r.next < r.object.size {
		window := r.window()
		size := min(partSize(window), r.object.size-r.next)
		if len(r.parts) == 0 {
			r.begin(size, false, nil)
			continue
		}
		if len(r.parts) >= parallel || r.next+size-r.pos > window || !r.source.budget.TryAcquire(bufferSize(size)) {
			return
		}
		r.begin(size, true, nil)
	}
}

// partSize returns the size of the next part: the largest that allows the maximum
// number of parallel parts.
func partSize(window int64) int64 {
	n := max(minPart, min(window/parallel, maxPart))
	return 1 << (bits.Len64(uint64(n)) - 1)
}

// begin starts the next part, with a response for it or without one.
func (r *reader) begin(size int64, paid bool, body *Body) {
	p := &part{offset: r.next, buffer: r.source.getBuffer(size), paid: paid, done: make(chan struct{})}
	p.data = (*p.buffer)[:size]
	r.parts = append(r.parts, p)
	r.next += size
	r.wg.Go(func() {
		defer close(p.done)
		p.err = r.object.fill(r.ctx, p.data, p.offset, body)
	})
}

// end releases the buffer of a part whose goroutine has ended.
func (r *reader) end(p *part) {
	if p.paid {
		r.source.budget.Release(int64(len(*p.buffer)))
	}
	r.source.buffers[class(int64(len(*p.buffer)))].Put(p.buffer)
}

// classes is the number of buffer sizes.
const classes = 5

// bufferSize returns the size of the buffer for a part; the last part of an
// object may be shorter.
func bufferSize(part int64) int64 {
	return max(minPart, int64(1)<<bits.Len64(uint64(part-1)))
}

func class(size int64) int { return bits.Len64(uint64(size/minPart)) - 1 }

// getBuffer returns a buffer for a part. Buffers are pooled: otherwise several
// times as much memory would be in use between garbage collections.
func (s *Source) getBuffer(part int64) *[]byte {
	size := bufferSize(part)
	if b, ok := s.buffers[class(size)].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, size)
	return &b
}

// Read returns data that was read ahead, or waits for it.
func (r *reader) Read(p []byte) (int, error) {
	if r.err == nil {
		r.err = r.wait()
	}
	if r.err != nil {
		return 0, r.err
	}
	head := r.parts[0]
	n := copy(p, head.data)
	head.data = head.data[n:]
	r.pos += int64(n)
	if len(head.data) == 0 {
		r.parts = r.parts[1:]
		r.end(head)
		r.readAhead()
	}
	return n, nil
}

// wait waits until the first part is complete.
func (r *reader) wait() error {
	if r.ctx.Err() != nil {
		return r.source.fail(r.ctx, "read", r.object.key, r.ctx.Err())
	}
	if r.pos >= r.object.size {
		return io.EOF
	}
	head := r.parts[0]
	var err error
	select {
	case <-head.done:
		err = head.err
	case <-r.ctx.Done():
		err = r.ctx.Err()
	}
	if err != nil {
		err = r.source.fail(r.ctx, "read", r.object.key, err)
	}
	return err
}

// Close stops reading ahead and waits for the goroutines.
func (r *reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.err == nil {
		r.err = &fs.PathError{Op: "read", Path: r.source.store.URL(r.object.key), Err: fs.ErrClosed}
	}
	r.cancel()
	r.wg.Wait()
	for _, p := range r.parts {
		r.end(p)
	}
	r.parts = nil
	r.source.readers.Add(-1)
	return nil
}
