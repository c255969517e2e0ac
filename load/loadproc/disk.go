package loadproc

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"sequins/internal/fsys"
	"sequins/load"
)

// A disk is the file system of a load process. It asks the node before it writes more than the node allows: a node that only measured its
// disk now and then would be too late when the machine is busy.
type disk struct {
	fsys.FS
	ask     func(pending int64) (limit int64)
	written atomic.Int64 // bytes to the files that are there
	pending atomic.Int64 // bytes that are being written
	limit   atomic.Int64 // of both
	mu      sync.Mutex   // held while one write asks
}

// Create creates a file whose writes wait until the node allows them.
func (d *disk) Create(name string) (fsys.File, error) {
	f, err := d.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return &file{f.(*os.File), d}, nil
}

// Remove gives back what was written to a file.
func (d *disk) Remove(name string) error {
	info, unknown := d.FS.Stat(name)
	err := d.FS.Remove(name)
	if err == nil && unknown == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.written.Add(-info.Size())
		d.limit.Add(-info.Size()) // others may write as much
	}
	return err
}

type file struct {
	*os.File // with its descriptor, for package pagecache
	disk     *disk
}

func (f *file) Write(b []byte) (int, error) {
	size := int64(len(b))
	f.disk.begin(size)
	defer f.disk.pending.Add(-size)
	n, err := f.File.Write(b)
	f.disk.written.Add(int64(n))
	return n, err
}

func (d *disk) begin(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if pending := d.pending.Add(bytes); d.written.Load()+pending > d.limit.Load() {
		d.limit.Store(d.ask(pending))
	}
}

// maxAhead is how many bytes a process may write before it asks again.
const maxAhead = 16 << 20

// allow answers a process that asks whether it may write pending bytes, with a limit of what it has written then. It allows some more, if that is at most half of
// what is free: temporary files without names take of it, too. The error is a *RoomError if there is no room beside the reserve and what other
// loads will still write or are allowed to.
func (p *Process) allow(pending int64) error {
	l := p.launcher
	l.allowing.Lock() // while a disk hangs, loads wait, and nobody else
	defer l.allowing.Unlock()
	free, known := l.Free()
	room, ahead := l.room(p, free), int64(maxAhead)
	switch {
	case room.Reserve < 0: // the disk is not checked
	case !known:
		ahead = 0
	case room.left() < pending:
		return &room
	default:
		ahead = min(ahead, room.left()/2)
	}
	if pending > 0 {
		p.allowed.Store(max(pending, ahead))
		limit := p.written + max(pending, ahead)
		_ = p.order(order{Limit: &limit}) // if that fails, the process has ended, which next reports
	}
	return nil
}

// room returns what is free of the disk for p, of free bytes.
func (l *Launcher) room(p *Process, free int64) RoomError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return RoomError{Free: free, Claimed: l.claimed(p), Reserve: l.reserve}
}

// lacked returns err, with which a load has failed, whose files are removed. It is or wraps a *RoomError if the disk was too small for
// the load: another attempt needs a little more room than this one had.
func (p *Process) lacked(err error) error {
	if e, ok := errors.AsType[*RoomError](err); ok {
		e.Written, e.Freed = max(1, p.written), p.freed
		e.Needs = p.needs(max(p.written, e.left()))
		return fmt.Errorf("loading version %s of %s: %w", p.input.Name, p.db, e)
	}
	free, known := p.launcher.Free()
	e := p.launcher.room(p, free-p.written)
	e.Written, e.Freed, e.Needs = max(1, p.written), p.freed, p.needs(p.written)
	if load.Outcome(err) != load.DiskFull || !known || e.Needs <= e.left() { // the limit may be another one, such as a quota
		return err
	}
	return fmt.Errorf("%w: %w", err, &e)
}

// needs returns how many bytes another attempt needs, if some bytes were too few for this one.
func (p *Process) needs(tooFew int64) int64 {
	return max(int64(p.demand.left(load.Snapshot{})), tooFew+tooFew/10)
}
