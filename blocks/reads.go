package blocks

import (
	"io"
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
	if !r.beginRead() {
		if r.readCached(buf, off) {
			return buf, nil
		}
		if !r.awaitRead() {
			return nil, ErrBusy
		}
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

// beginRead takes a place among the reads; false if there is none.
func (r *Reader) beginRead() bool {
	select {
	case r.reads <- struct{}{}:
	default:
		return false
	}
	select {
	case reading <- struct{}{}:
		return true
	default:
		<-r.reads
		return false
	}
}

// readCached reads what the kernel has in memory, as it may have while the disk does not answer.
func (r *Reader) readCached(buf []byte, off int64) bool {
	if r.file == nil {
		return false
	}
	select {
	case caching <- struct{}{}:
	default:
		return false
	}
	defer func() { <-caching }()
	return r.file.ReadCached(buf, off)
}

// awaitRead is beginRead that waits for a while.
func (r *Reader) awaitRead() bool {
	patience := time.NewTimer(readPatience)
	defer patience.Stop()
	select {
	case r.reads <- struct{}{}:
	case <-patience.C:
		return false
	}
	select {
	case reading <- struct{}{}:
		return true
	case <-patience.C:
		<-r.reads
		return false
	}
}
