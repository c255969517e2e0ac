package loadproc

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sequins/internal/fsys"
	"sequins/load"
)

// A disk is the file system of a load process. It asks the node before it writes more than the node allows: a node that only measured its
// disk now and then would be too late when the machine is busy.
type disk struct {
	fsys.FS
	ask     func(pending int64) (limit int64)
	written atomic.Int64 // bytes, in all
	kept    atomic.Int64 // of these, bytes of files that are there
	most    atomic.Int64 // that were kept
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

// Remove removes a file that Create has made.
func (d *disk) Remove(name string) error {
	info, unknown := d.FS.Stat(name)
	err := d.FS.Remove(name)
	if err == nil && unknown == nil {
		d.kept.Add(-info.Size())
	}
	return err
}

type file struct {
	*os.File // with its descriptor, for package pagecache
	disk     *disk
}

func (f *file) Write(b []byte) (int, error) {
	d, size := f.disk, int64(len(b))
	d.mu.Lock()
	if pending := d.pending.Add(size); d.written.Load()+pending > d.limit {
		d.limit = d.ask(pending)
	}
	d.mu.Unlock()
	defer d.pending.Add(-size)
	n, err := f.File.Write(b)
	d.written.Add(int64(n))
	d.most.Store(max(d.most.Load(), d.kept.Add(int64(n))))
	return n, err
}

// maxAhead is how many bytes a process may write before it asks again.
const maxAhead = 16 << 20

// allow answers a process that has written some bytes in all, and asks whether it may write those that are pending, with a limit of both. It
// allows some more, if that is at most half of what is free: temporary files without names take of it, too. The error is a *RoomError if there
// is no room beside the reserve and what other loads will still write or are allowed to.
func (p *Process) allow(written, pending int64) error {
	l := p.launcher
	l.allowing.Lock() // while a disk hangs, loads wait, and nobody else
	defer l.allowing.Unlock()
	room, known := l.measure(p)
	for again := 2; again > 0 && known && room.Reserve >= 0 && room.Claimed > 0 && room.left() < pending; again-- {
		time.Sleep(2 * reportPeriod) // what others have written, and not said yet, counts twice
		room, known = l.measure(p)
	}
	ahead := int64(maxAhead)
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
		p.limit = written + max(pending, ahead)
		p.allowed.Store(p.limit - written)
		_ = p.order(order{Limit: &p.limit}) // if that fails, the process has ended, which next reports
	}
	return nil
}

// measure returns the room for p. What others write before the disk is measured counts twice, and not never.
func (l *Launcher) measure(p *Process) (room RoomError, known bool) {
	l.mu.Lock()
	room.Claimed, room.Reserve = l.claimed(p), l.reserve
	l.mu.Unlock()
	room.Free, known = l.Free()
	return room, known
}

// lacked returns err, with which a load has failed, whose files are removed. It is or wraps a *RoomError if the disk was too small for
// the load: another attempt needs a little more room than this one had.
func (p *Process) lacked(err error) error {
	if e, ok := errors.AsType[*RoomError](err); ok {
		e.Written, e.Freed = max(1, p.kept), p.freed
		e.Needs = p.needs(max(p.kept, e.left()))
		return fmt.Errorf("loading version %s of %s: %w", p.input.Name, p.db, e)
	}
	e, known := p.launcher.measure(p)
	e.Free, e.Written, e.Freed, e.Needs = e.Free-p.kept, max(1, p.kept), p.freed, p.needs(p.kept)
	if load.Outcome(err) != load.DiskFull || !known || e.Needs <= e.left() { // the limit may be another one, such as a quota
		return err
	}
	return fmt.Errorf("%w: %w", err, &e)
}

// needs returns how many bytes another attempt needs for all partitions that were missing, if some bytes were too few for those of this one.
func (p *Process) needs(tooFew int64) int64 {
	return max(int64(p.demand.left(load.Snapshot{})), int64(1.1*float64(tooFew)/p.own))
}
