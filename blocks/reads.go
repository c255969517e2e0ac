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
	maxCached     = 1000 // that are to be answered from memory when there are as many as that

	// readPatience is how long a read waits for its turn. A disk that works gives it in less.
	readPatience = time.Second
)

var (
	reading = make(chan struct{}, maxReads)
	caching = make(chan struct{}, maxCached)
)

// read reads n bytes at off into buf, grown as needed. The file's own length has been compared
// with both, so that n is never more than the file holds.
func (r *Reader) read(buf []byte, off int64, n int) ([]byte, error) {
	buf = grow(buf[:0], n)[:n]
	if !r.beginRead(nil) {
		if r.readCached(buf, off) {
			return buf, nil
		}
		if !r.beginRead(time.After(readPatience)) {
			return nil, ErrBusy
		}
	}
	m, err := r.readInTurn(buf, off)
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

// readInTurn reads from the file.
//
// A goroutine that waits for the disk in a pread keeps its processor: the Go scheduler gives it to others only when it has
// seen the same system call in two of its rounds, which are up to 10 ms apart. With as many reads at a time as there are
// processors, the network waits for the disk. So what is not in memory the kernel begins to read, the others that can run do, and
// the pread waits for what is left. A file that does not stay open is read at once.
func (r *Reader) readInTurn(buf []byte, off int64) (int, error) {
	if r.file != nil {
		if r.file.ReadCached(buf, off) {
			return len(buf), nil
		}
		r.file.Prefetch(off, int64(len(buf)))
		runtime.Gosched()
	}
	return r.at.ReadAt(buf, off)
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

// readCached reads what the kernel has in memory, as it may have while the disk does not answer.
func (r *Reader) readCached(buf []byte, off int64) bool {
	if r.file == nil || !take(caching, nil) {
		return false
	}
	defer func() { <-caching }()
	return r.file.ReadCached(buf, off)
}
