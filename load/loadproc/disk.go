package loadproc

import (
	"errors"
	"fmt"
	"math"
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
	written atomic.Int64 // bytes, in all
	pending atomic.Int64 // bytes that are being written

	mu    sync.Mutex // held while one write asks
	limit int64      // of written and pending
}

// Create creates a file whose writes wait until the node allows them.
func (d *disk) Create(name string) (fsys.File, error) {
	f, err := d.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return &file{f.(*os.File), d}, nil
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
	if pending := d.pending.Add(bytes); d.written.Load()+pending > d.limit {
		d.limit = d.ask(pending)
	}
}

// allow answers a process that asks whether it may write pending bytes, with a limit of what it writes in all. It allows half of what is
// free if that is more, as other loads and temporary files without names take of it, too. The error is a *RoomError if
// there is no room for them beside what other loads will still write and the reserve.
func (p *Process) allow(pending int64) error {
	free, known := p.launcher.Free()
	room, limit := p.launcher.room(p, free), int64(math.MaxInt64)
	if known && room.Reserve >= 0 {
		if room.left() < pending {
			return &room
		}
		limit = p.written + max(pending, room.left()/2)
	}
	if pending > 0 {
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
		e.Needs = p.needs(e.left())
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
