package extsort

import (
	"golang.org/x/sys/unix"

	"sequins/internal/fsys"
)

// cacheStep is how much of a run is read or written before the page cache hears of it, in bytes.
const cacheStep = 4 << 20

// cacheWindow keeps a run, which is written once and read once, from driving out of the page cache
// the blocks that are being served. All it does is advice, and errors mean nothing: a file system
// that does not take advice caches as it likes.
type cacheWindow struct {
	fd      int
	known   bool  // whether there is a descriptor
	started int64 // up to there, writing to the disk has begun
	dropped int64 // up to there, nothing is in the page cache
}

func newCacheWindow(f fsys.File) cacheWindow {
	if f, ok := f.(interface{ Fd() uintptr }); ok {
		return cacheWindow{fd: int(f.Fd()), known: true}
	}
	return cacheWindow{}
}

// used says that the file was read up to this offset.
func (c *cacheWindow) used(off int64) {
	if c.known && off-c.dropped >= cacheStep {
		c.drop(off)
	}
}

// drop takes what lies before this offset out of the page cache, if it is on the disk.
func (c *cacheWindow) drop(off int64) {
	_ = unix.Fadvise(c.fd, c.dropped, off-c.dropped, unix.FADV_DONTNEED)
	c.dropped = off &^ (pageCacheUnit - 1)
}

// pageCacheUnit is a multiple of the length of a page in the page cache.
const pageCacheUnit = 64 << 10

// written says that the file was written up to this offset. The kernel starts to write it to the
// disk, and what was started a step earlier is waited for and dropped, as only clean pages can be.
func (c *cacheWindow) written(off int64) {
	if !c.known || off-c.started < cacheStep {
		return
	}
	_ = unix.SyncFileRange(c.fd, c.started, off-c.started, unix.SYNC_FILE_RANGE_WRITE)
	c.settle(c.started)
	c.started = off
}

// finished says that the file is written, up to this offset. Less than a step is not waited for.
func (c *cacheWindow) finished(off int64) {
	if c.known && off >= cacheStep {
		c.settle(off)
	}
}

// settle waits until the file is on the disk up to this offset, and drops it.
func (c *cacheWindow) settle(off int64) {
	if off <= c.dropped {
		return
	}
	const wait = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	_ = unix.SyncFileRange(c.fd, c.dropped, off-c.dropped, wait)
	c.drop(off)
}
