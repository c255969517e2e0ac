package metrics

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sequins/observe/status"
)

// Process measures the disk. It is safe for concurrent use.
type Process struct {
	store atomic.Pointer[string]
	disk  atomic.Pointer[status.Disk] // nil: there is no store, or its disk could not be read
}

// SetStore sets the directory of the local store and measures its disk.
func (p *Process) SetStore(dir string) {
	p.store.Store(&dir)
	p.MeasureDisk()
}

// Disk returns the last measurement; nil if there is no store or its file system
// could not be read. The result is read-only.
func (p *Process) Disk() *status.Disk { return p.disk.Load() }

// FreeDisk measures the disk again, and returns its free bytes. known is false if there is no store or its file system cannot be
// read. It can block forever on a faulty disk.
func (p *Process) FreeDisk() (bytes int64, known bool) {
	p.MeasureDisk()
	if d := p.Disk(); d != nil {
		return d.Free, true
	}
	return 0, false
}

// MeasureDisk measures the disk again. It can block forever on a faulty disk.
func (p *Process) MeasureDisk() {
	dir := p.store.Load()
	var fs unix.Statfs_t
	if dir == nil || unix.Statfs(*dir, &fs) != nil {
		p.disk.Store(nil)
		return
	}
	p.disk.Store(&status.Disk{Bytes: inBytes(float64(fs.Blocks), float64(fs.Bsize)), Free: inBytes(float64(fs.Bavail), float64(fs.Bsize))})
}

// inBytes returns blocks·size, clamped: a file system may report any numbers.
func inBytes(blocks, size float64) int64 {
	return int64(max(0, min(blocks*size, 1<<62)))
}
