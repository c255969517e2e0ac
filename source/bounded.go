package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// A Bounded is a source whose calls return when their context ends. A system call on a hanging
// file system may never return, and must not block the start or the shutdown. At most one call of each
// kind hangs at a time. Open reads the whole file, up to the maximum size of a marker and one byte more, so
// that it is not for data files.
type Bounded struct {
	Source
	mu      sync.Mutex
	hanging map[string]bool // calls that have not returned although their context has ended
}

// NewBounded returns s with calls that return when their context ends.
func NewBounded(s Source) *Bounded {
	return &Bounded{Source: s, hanging: make(map[string]bool)}
}

// endTime is how long a call may take to return when its context has ended.
const endTime = 100 * time.Millisecond

// bounded runs a call of a source. what identifies the call.
func bounded[T any](ctx context.Context, b *Bounded, what string, call func() (T, error)) (result T, err error) {
	b.mu.Lock()
	hangs := b.hanging[what]
	b.mu.Unlock()
	if hangs {
		return result, fmt.Errorf("%s: an earlier attempt has not returned yet; the file system may hang", what)
	}
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	returned := false // guarded by b.mu
	go func() {
		v, err := call()
		done <- outcome{v, err}
		b.mu.Lock()
		defer b.mu.Unlock()
		returned = true
		delete(b.hanging, what)
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		select {
		case o := <-done: // it has seen the end, too, and may know more: that a connection was refused
			return o.value, o.err
		case <-time.After(endTime):
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if !returned {
			b.hanging[what] = true
		}
		return result, fmt.Errorf("%s: the source does not answer: %w", what, ctx.Err())
	}
}

// ReadDir implements [Source].
func (b *Bounded) ReadDir(ctx context.Context, dir string) (Entries, error) {
	return bounded(ctx, b, "listing "+b.Path(dir, ""), func() (Entries, error) { return b.Source.ReadDir(ctx, dir) })
}

// Contents implements [Source].
func (b *Bounded) Contents(ctx context.Context, db, version string) (Contents, error) {
	return bounded(ctx, b, "listing "+b.Path(db, version), func() (Contents, error) { return b.Source.Contents(ctx, db, version) })
}

// Open implements [Source]. It reads the whole file.
func (b *Bounded) Open(ctx context.Context, db, version string, file File, o ReadOptions) (io.ReadCloser, error) {
	return bounded(ctx, b, "reading "+b.Path(db, version)+"/"+file.Name, func() (_ io.ReadCloser, err error) {
		f, err := b.Source.Open(ctx, db, version, file, o)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(f, maxMarkers+1))
		if cerr := f.Close(); err == nil && len(data) <= maxMarkers {
			err = cerr
		}
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(data)), nil
	})
}
