package loadproc

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"sequins/load"
	"sequins/source"
)

// maxStall is how long calls of the source may run without one of them returning. Otherwise a hanging file
// system or server would block the load, and its slot, forever.
const maxStall = 10 * time.Minute

// calls tracks running calls of a source. The zero value is ready.
type calls struct {
	mu    sync.Mutex
	n     int
	since time.Time // when a call last returned, or the first one began
}

func (c *calls) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == 0 {
		c.since = time.Now()
	}
	c.n++
}

func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	c.since = time.Now()
}

// stalled returns an error if the running calls have made no progress for maxStall.
func (c *calls) stalled() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == 0 || time.Since(c.since) < maxStall {
		return nil
	}
	return fmt.Errorf("%w: it has not answered for %v", load.ErrSource, maxStall)
}

// A watchedSource tracks the calls of a source and of its files.
type watchedSource struct {
	source.Source
	calls *calls
}

// Contents implements source.Source.
func (s watchedSource) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	s.calls.begin()
	defer s.calls.end()
	return s.Source.Contents(ctx, db, version)
}

// Open implements source.Source.
func (s watchedSource) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	s.calls.begin()
	defer s.calls.end()
	f, err := s.Source.Open(ctx, db, version, file, o)
	if err != nil {
		return nil, err
	}
	return watchedFile{f, s.calls}, nil
}

type watchedFile struct {
	file  io.ReadCloser
	calls *calls
}

// Read implements io.Reader.
func (f watchedFile) Read(p []byte) (int, error) {
	f.calls.begin()
	defer f.calls.end()
	return f.file.Read(p)
}

// Close implements io.Closer.
func (f watchedFile) Close() error {
	f.calls.begin()
	defer f.calls.end()
	return f.file.Close()
}
