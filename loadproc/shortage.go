package loadproc

import (
	"errors"

	"sequins/load"
)

// A Shortage is what a load that has failed lacked on the disk.
type Shortage struct {
	needs int64 // the needs of a RoomError; 0 if the disk became full during the load
	free  int64 // otherwise, how many bytes must be free before another attempt is likely to get further
}

// Shortage returns what a load lacked that failed with err, nil if that was not room. source is the size of what the load reads.
func (l *Launcher) Shortage(err error, source int64) *Shortage {
	var room *RoomError
	switch {
	case l.Free == nil:
		return nil
	case errors.As(err, &room):
		return &Shortage{needs: room.Needs}
	case load.Outcome(err) != load.DiskFull:
		return nil
	}
	free, known := l.Free()
	if !known {
		return nil
	}
	return &Shortage{free: free + max(1, source/10)}
}

// IsOver reports whether there is room for another attempt of a load that lacked it.
func (l *Launcher) IsOver(s *Shortage) bool {
	free, known := l.Free()
	if !known {
		return false
	}
	if s.needs == 0 {
		return free >= s.free
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reserve < 0 || s.needs <= free-l.claimed(nil)-l.reserve
}

// claimed returns how many bytes the running loads other than p will still write. l.mu is held.
func (l *Launcher) claimed(p *Process) int64 {
	var bytes float64
	for other := range l.running {
		if other != p {
			bytes += other.left
		}
	}
	return int64(bytes)
}
