package blocks

import (
	"io"
	"runtime"
	"time"
)

// A read of the disk keeps a thread, of which a Go process has 10,000 at most and ends if it needs more: without a
// bound, a disk that hangs would take with it all that is in memory.
const (
	maxReads      = 1000 // at a time, of all blocks
	maxBlockReads = 100  // of one block, so that a part of the disk that hangs leaves the others the rest

	// readPatience is how long a read waits for its turn. A disk that works gives it in less.
	readPatience = time.Second
)

var reading = make(chan struct{}, maxReads)

// read reads n bytes at off into buf, grown as needed. The file's own length has been compared
// with both, so that n is never more than the file holds.
//
// A goroutine that waits for the disk in a pread keeps its processor: the Go scheduler gives it to others only when it has
// seen the same system call in two of its rounds, which are up to 10 ms apart. With as many reads at a time as there are
// processors, the network waits for the disk. So the kernel is asked to begin reading, the others that can run do, and
// the pread waits for what is left.
func (r *Reader) read(buf []byte, off int64, n int) ([]byte, error) {
	buf = grow(buf[:0], n)[:n]
	if r.file != nil && r.file.ReadCached(buf, off) {
		return buf, nil
	}
	if !r.beginRead(nil) && !r.beginRead(time.After(readPatience)) {
		return nil, ErrBusy
	}
	if r.file != nil {
		r.file.Prefetch(off, int64(n))
		runtime.Gosched()
	}
	m, err := r.at.ReadAt(buf, off)
	<-reading
	<-r.reads
	if m == n {
		return buf, nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

// beginRead takes a place among the reads; see take.
func (r *Reader) beginRead(patience <-chan time.Time) bool {
	if !take(r.reads, patience) {
		return false
	}
	if !take(reading, patience) {
		<-r.reads
		return false
	}
	return true
}

// take takes a place, and reports whether there is one, at the latest when patience ends. If that is nil, it does not wait.
func take(places chan struct{}, patience <-chan time.Time) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	if patience == nil {
		return false
	}
	select {
	case places <- struct{}{}:
		return true
	case <-patience:
		return false
	}
}
