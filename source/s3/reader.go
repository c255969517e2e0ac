package s3

import (
	"context"
	"io"
	"io/fs"
	"math/bits"
	"sync"
	"time"

	"sequins/source"
)

const (
	// parallel is how many parts of an object are read at the same time.
	parallel = 16

	// minPart and maxPart are the sizes of a reader's first part and of its
	// largest, powers of two as all between them. Servers of S3 answer a
	// request in some 30 ms and then send some 50 MB/s: with 4 MiB, most of
	// the time is spent sending.
	minPart = 256 << 10
	maxPart = 4 << 20

	// maxWindow is how far one reader reads ahead.
	maxWindow = parallel * maxPart

	// aheadOfLimit is how far readers whose bandwidth is limited read ahead:
	// more than a request takes, and little enough that what is fetched at once
	// does not show.
	aheadOfLimit = 250 * time.Millisecond
)

// A part is a range of an object, and the buffer for it.
type part struct {
	offset int64
	data   []byte
	buffer *[]byte       // that data is cut from
	paid   bool          // its buffer counts against the budget
	done   chan struct{} // closed when data has been filled, or err says why not
	err    error
}

// A reader reads an object from some offset to its end. Its fields belong to
// the caller of Read and Close; the goroutines have their part and look at
// object alone.
type reader struct {
	source *Source
	ctx    context.Context
	cancel context.CancelFunc
	object object

	start  int64   // of what is read
	pos    int64   // the next byte to hand out
	next   int64   // the first byte that is in no part yet
	parts  []*part // in order; the first is being handed out
	closed bool
	err    error // that every Read returns from now on
	wg     sync.WaitGroup
}

// Open opens a file of a version, or of the one that it is a link to, for
// reading. That an object is the one that was listed is told by its ETag.
func (s *Source) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	dir, err := s.versionDir(ctx, db, version)
	if err != nil {
		return nil, err
	}
	if !source.ValidFile(file.Name) || o.Offset < 0 {
		return nil, s.fail(ctx, "open", dir+"/"+file.Name, fs.ErrInvalid)
	}
	if dir, err = s.resolve(ctx, dir); err != nil {
		return nil, err
	}
	return s.openKey(ctx, dir+"/"+file.Name, file, o)
}

// openKey asks for the first part of an object, whose answer says what the
// object is.
func (s *Source) openKey(ctx context.Context, key string, listed source.File, o source.ReadOptions) (io.ReadCloser, error) {
	r := &reader{
		source: s, object: object{source: s, key: key, limit: o.Bandwidth},
		start: o.Offset, pos: o.Offset, next: o.Offset,
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	body, err := r.first(listed)
	if err != nil {
		err = s.fail(ctx, "open", key, err)
		r.cancel()
		return nil, err
	}
	s.readers.Add(1)
	if body != nil {
		r.begin(min(minPart, r.object.size-r.start), false, body)
	}
	return r, nil
}

// first asks for the first part.
func (r *reader) first(listed source.File) (io.ReadCloser, error) {
	n := int64(minPart)
	if !listed.ModTime.IsZero() {
		n = max(1, min(n, listed.Size-r.start))
	}
	if err := source.Wait(r.ctx, r.object.limit, n); err != nil {
		return nil, err
	}
	return r.object.open(r.ctx, listed, r.start, n)
}

// window is how far the reader may be ahead of what has been handed out: twice
// as much as that, as long as the budget has room for all readers to do so, and
// the bandwidth for what that would take a moment later.
func (r *reader) window() int64 {
	readers := max(1, r.source.readers.Load())
	window := min(2*(r.pos-r.start), maxWindow, r.source.memory/readers)
	if rate, limited := source.Limited(r.object.limit); limited {
		window = min(window, int64(rate*aheadOfLimit.Seconds())/readers)
	}
	return max(minPart, window)
}

// readAhead begins as many parts as there is room for. One is always there, so
// that a reader that gets nothing of the budget goes on, if slowly.
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

// partSize is how large the next part is to be: as large as leaves room for
// all that can be read in parallel.
func partSize(window int64) int64 {
	n := max(minPart, min(window/parallel, maxPart))
	return 1 << (bits.Len64(uint64(n)) - 1)
}

// begin begins the next part, with an answer to it or without one.
func (r *reader) begin(size int64, paid bool, body io.ReadCloser) {
	p := &part{offset: r.next, buffer: r.source.getBuffer(size), paid: paid, done: make(chan struct{})}
	p.data = (*p.buffer)[:size]
	r.parts = append(r.parts, p)
	r.next += size
	r.wg.Go(func() {
		defer close(p.done)
		p.err = r.object.fill(r.ctx, p.data, p.offset, body)
	})
}

// end gives back what a part holds. Its goroutine has ended.
func (r *reader) end(p *part) {
	if p.paid {
		r.source.budget.Release(int64(len(*p.buffer)))
	}
	r.source.putBuffer(p.buffer)
}

// classes is how many sizes buffers have: those of parts.
const classes = 5

// bufferSize is the size of the buffer for a part, which the last of an object
// does not fill.
func bufferSize(part int64) int64 {
	return max(minPart, int64(1)<<bits.Len64(uint64(part-1)))
}

func class(size int64) int { return bits.Len64(uint64(size/minPart)) - 1 }

// getBuffer returns a buffer for a part. They are used again: the collector
// would let several times as much memory pile up.
func (s *Source) getBuffer(part int64) *[]byte {
	size := bufferSize(part)
	if b, ok := s.buffers[class(size)].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, size)
	return &b
}

func (s *Source) putBuffer(b *[]byte) {
	s.buffers[class(int64(len(*b)))].Put(b)
}

// Read hands out what has been read ahead, or waits for it.
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

// wait waits until the first part is there.
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

// Close ends the reading ahead, and waits for its end.
func (r *reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.err == nil {
		r.err = &fs.PathError{Op: "read", Path: r.source.display(r.object.key), Err: fs.ErrClosed}
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
