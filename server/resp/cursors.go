package resp

import (
	"math/rand/v2"
	"sync"
)

// position is where a page of HSCAN or SCAN begins.
type position struct {
	db     string
	cursor []byte // see reads.Range.After
}

// cursors are the positions that clients have got as numbers, because clients of Redis expect numbers. The oldest ones are
// forgotten. They are known to this node alone. It is safe for concurrent use.
type cursors struct {
	mu    sync.Mutex
	all   map[uint64]position
	order []uint64 // the oldest first
	size  int
}

// Limits of cursors: their number, and the bytes of their positions.
const (
	maxCursors     = 100_000
	maxCursorBytes = 16 << 20
)

// add returns the number of a position: not 0, and exact in a float64, as some clients have no other numbers.
func (s *cursors) add(p position) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[uint64]position)
	}
	id := uint64(0)
	for _, taken := s.all[id]; id == 0 || taken; _, taken = s.all[id] {
		id = rand.Uint64N(1 << 53)
	}
	s.all[id], s.order = p, append(s.order, id)
	s.size += len(p.cursor)
	for len(s.order) > maxCursors || s.size > maxCursorBytes && len(s.order) > 1 {
		oldest := s.order[0]
		s.size -= len(s.all[oldest].cursor)
		delete(s.all, oldest)
		s.order = s.order[1:]
	}
	return id
}

func (s *cursors) find(id uint64, db []byte) (cursor []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.all[id]
	return p.cursor, ok && p.db == string(db)
}
