package load

import "sequins/internal/fsys"

// writebackStep is how many bytes of a block are written before their writeback starts. It is large
// enough for the file system to allocate them contiguously.
const writebackStep = 8 << 20

// writeback starts writing a block to disk while it is being built. Otherwise Sync would write all of
// it at the end.
type writeback struct {
	fsys.File
	written, begun int64
}

func (w *writeback) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	w.written += int64(n)
	if w.written-w.begun >= writebackStep {
		if f, ok := w.File.(interface{ Fd() uintptr }); ok {
			startWriteback(f.Fd(), w.begun, w.written-w.begun)
		}
		w.begun = w.written
	}
	return n, err
}
