package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"sequins/source"
)

// maxMarker limits the files that the node itself reads, in bytes: one more than the maximum size of a
// marker.
const maxMarker = 16<<20 + 1

// A boundedSource is a source whose calls return when their context ends. A system call on a hanging
// file system may never return, and must not block the start or the shutdown. At most one call of each
// kind hangs at a time. Files are read completely, because the node reads only markers.
type boundedSource struct {
	source.Source
	mu      sync.Mutex
	hanging map[string]bool // calls that have not returned although their context has ended
}

func newBoundedSource(s source.Source) *boundedSource {
	return &boundedSource{Source: s, hanging: make(map[string]bool)}
}

// bounded runs a call of a source. what identifies the call.
func bounded[T any](ctx context.Context, b *boundedSource, what string, call func() (T, error)) (result T, err error) {
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
		b.mu.Lock()
		defer b.mu.Unlock()
		if !returned {
			b.hanging[what] = true
		}
		return result, fmt.Errorf("%s: the source does not answer: %w", what, ctx.Err())
	}
}

// Databases implements source.Source.
func (b *boundedSource) Databases(ctx context.Context) ([]string, error) {
	return bounded(ctx, b, "listing the databases", func() ([]string, error) { return b.Source.Databases(ctx) })
}

// Versions implements source.Source.
func (b *boundedSource) Versions(ctx context.Context, db string) ([]string, error) {
	return bounded(ctx, b, "listing the versions of "+db, func() ([]string, error) { return b.Source.Versions(ctx, db) })
}

// Contents implements source.Source.
func (b *boundedSource) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	return bounded(ctx, b, "listing "+b.Path(db, version), func() (source.Contents, error) { return b.Source.Contents(ctx, db, version) })
}

// Open implements source.Source. It reads the whole file.
func (b *boundedSource) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	return bounded(ctx, b, "reading "+b.Path(db, version)+"/"+file.Name, func() (_ io.ReadCloser, err error) {
		f, err := b.Source.Open(ctx, db, version, file, o)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(f, maxMarker))
		if cerr := f.Close(); err == nil && len(data) < maxMarker {
			err = cerr
		}
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(data)), nil
	})
}

// Exists implements source.Finder. It reads no data.
func (b *boundedSource) Exists(ctx context.Context, db, version, name string) (bool, error) {
	return bounded(ctx, b, "looking for "+b.Path(db, version)+"/"+name, func() (bool, error) { return source.Exists(ctx, b.Source, db, version, name) })
}

// Invalid implements source.Reporter.
func (b *boundedSource) Invalid(ctx context.Context, db string) ([]string, error) {
	return bounded(ctx, b, "looking for names that are left out of "+db, func() ([]string, error) { return source.Invalid(ctx, b.Source, db) })
}
