// Package pagecache keeps files that are read or written once, from their beginning to their end, from driving out of the page
// cache what is being served, and begins to write a file to the disk while it grows. All of it is advice to the kernel. Errors
// mean nothing: a file system that does not take advice caches as it likes.
package pagecache

const (
	// Step is how many bytes are read or written between two calls of the kernel.
	Step = 4 << 20
	// unit is a multiple of the length of a page in the page cache.
	unit = 64 << 10
)

// A Window is what the page cache has of a file. The zero value gives no advice.
type Window struct {
	fd      int
	known   bool  // there is a descriptor
	begun   int64 // up to there, writing to the disk has begun
	dropped int64 // up to there, nothing is in the page cache
}

// Of returns the window of a file that is read or written from an offset on.
func Of(file any, from int64) Window {
	if f, ok := file.(interface{ Fd() uintptr }); ok {
		return Window{fd: int(f.Fd()), known: true, begun: from, dropped: from}
	}
	return Window{}
}

// Read drops what was read up to an offset, once it is a step.
func (w *Window) Read(off int64) {
	if off-w.dropped >= Step {
		w.Drop(off)
	}
}

// Drop takes what lies before an offset out of the page cache, if it is on the disk.
func (w *Window) Drop(off int64) {
	if w.known && off > w.dropped { // a length of 0 would mean the rest of the file
		drop(w.fd, w.dropped, off-w.dropped)
		w.dropped = off &^ (unit - 1)
	}
}

// Begin makes the kernel begin to write to the disk what was written up to an offset, once it is a step. It reports whether it is.
func (w *Window) Begin(off int64) bool {
	if !w.known || off-w.begun < Step {
		return false
	}
	write(w.fd, w.begun, off-w.begun, false)
	w.begun = off
	return true
}

// Written is Begin, and waits for what was begun a step earlier and drops it, as only clean pages can be.
func (w *Window) Written(off int64) {
	if before := w.begun; w.Begin(off) {
		w.settle(before)
	}
}

// Finished drops a file that is written up to an offset. Less than a step is not waited for.
func (w *Window) Finished(off int64) {
	if off >= Step {
		w.settle(off)
	}
}

// settle waits until the file is on the disk up to an offset, and drops it.
func (w *Window) settle(off int64) {
	if w.known && off > w.dropped {
		write(w.fd, w.dropped, off-w.dropped, true)
		w.Drop(off)
	}
}
