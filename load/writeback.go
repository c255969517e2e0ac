package load

import "sequins/internal/fsys"

// writebackStep is how much of a block is written before the disk begins with
// it. Large enough for the file system to keep it in one place.
const writebackStep = 8 << 20

// writeback is a block that the disk writes while the next records are read.
// Left to Sync, all of it would be written at the end, with nothing else to do
// for the load meanwhile, and everything to do at once for the disk.
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
