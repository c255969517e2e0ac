package loadproc

import (
	"errors"
	"fmt"
	"time"

	"sequins/load"
	"sequins/store"
)

// diskPeriod is the interval at which the disk is measured while a load writes to it.
const diskPeriod = 10 * time.Millisecond

// watchDisk kills the process when what is free of the disk, beside what other loads will still write and the reserve,
// would not last for two more periods like the one, of about the last second, in which the most was written. It returns when
// the load has written all.
func (p *Process) watchDisk(written <-chan struct{}) {
	l := p.launcher
	tick := time.NewTicker(diskPeriod)
	defer tick.Stop()
	for before, most := int64(0), int64(0); ; {
		free, known := l.Free()
		most = max(most-most/64, before-free)
		if room := l.room(p, free); known && room.Reserve >= 0 && room.left() < 2*most {
			p.short.Store(&room)
			_ = p.cmd.Process.Kill()
			return
		}
		before = free
		select {
		case <-written:
			return
		case <-tick.C:
		}
	}
}

// room returns what is free of the disk for p, of free bytes.
func (l *Launcher) room(p *Process, free int64) RoomError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return RoomError{Free: free, Claimed: l.claimed(p), Reserve: l.reserve}
}

// lacked returns err, with which a load has failed after it had written some bytes, which are removed. It is or wraps a *RoomError if the
// disk was too small for the load: another attempt needs a little more room than this one had.
func (p *Process) lacked(err error, written int64) error {
	if e := p.short.Load(); e != nil && errors.Is(err, load.ErrDied) {
		e.Written, e.Freed = max(1, written), p.freed
		e.Needs = p.needs(e.left())
		return fmt.Errorf("loading version %s of %s: %w", p.input.Name, p.db, e)
	}
	needs := p.needs(written)
	free, known := p.launcher.free()
	if load.Outcome(err) != load.DiskFull || !known || p.launcher.HasRoom(needs) { // the limit may be another one, such as a quota
		return err
	}
	e := p.launcher.room(p, free-written)
	e.Written, e.Freed, e.Needs = max(1, written), p.freed, needs
	return fmt.Errorf("%w: %w", err, &e)
}

// needs returns how many bytes another attempt needs, if some bytes were too few for this one.
func (p *Process) needs(tooFew int64) int64 {
	return max(int64(p.demand.left(load.Snapshot{})), tooFew+tooFew/10)
}

// HasRoom reports whether the disk has room for a load that needs some bytes, beside what running loads will still write.
func (l *Launcher) HasRoom(bytes int64) bool {
	free, known := l.free()
	room := l.room(nil, free)
	return known && bytes <= room.left()
}

func (l *Launcher) free() (bytes int64, known bool) {
	if l.Free == nil {
		return 0, false
	}
	return l.Free()
}

// written returns how many bytes a load has written for some partitions that had no block before it. What it had in temporary files is
// the most that was seen of them.
func (p *Process) written(dir *store.Dir, want []int) int64 {
	p.staged = max(p.staged, dir.Staged(p.staging))
	return p.staged + dir.Size(want)
}
