package load

import (
	"sequins/internal/fsys"
	"sequins/internal/pagecache"
)

// writeback starts writing a block to disk while it is being built. Otherwise Sync would write all of
// it at the end.
type writeback struct {
	fsys.File
	written int64
	cache   pagecache.Window
}

func newWriteback(f fsys.File) *writeback { return &writeback{File: f, cache: pagecache.Of(f, 0)} }

func (w *writeback) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	w.written += int64(n)
	w.cache.Begin(w.written)
	return n, err
}
