package transfer

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Loading is a load of this node, as other nodes see it. Its methods may be called concurrently.
type Loading struct {
	board *board
	key   key
	plan  string // "" while it is being planned

	partitions []int
	progress   atomic.Int64
}

type key struct{ db, version string }

// board lists the loads of this node.
type board struct {
	mu    sync.Mutex
	loads map[key][]*Loading
}

// Planning announces that this node is about to load a version, by its name in the source, and does not know its plan yet.
func (t *Transfer) Planning(db, version string) *Loading { return t.Loading(db, version, "", nil) }

// Loading announces that this node is loading partitions of a version, by its name in the source and its plan.
// It must be ended.
func (t *Transfer) Loading(db, version, plan string, partitions []int) *Loading {
	l := &Loading{board: &t.board, key: key{db, version}, plan: plan, partitions: slices.Clone(partitions)}
	t.board.mu.Lock()
	defer t.board.mu.Unlock()
	t.board.loads[l.key] = append(t.board.loads[l.key], l)
	return l
}

// Progress sets how far the load is, in any unit that grows while it advances.
func (l *Loading) Progress(done int64) { l.progress.Store(done) }

// End takes the announcement back. It may be called again.
func (l *Loading) End() {
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	left := slices.DeleteFunc(l.board.loads[l.key], func(each *Loading) bool { return each == l })
	if len(left) == 0 {
		delete(l.board.loads, l.key)
		return
	}
	l.board.loads[l.key] = left
}

// describe adds the loads of a version to its state.
func (b *board) describe(k key, s *State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.loads[k] {
		switch {
		case l.plan == "":
			s.Planning = true
		case s.Plan == "" || s.Plan == l.plan:
			s.Plan = l.plan
			s.Loading = append(s.Loading, l.partitions...)
			s.Progress += l.progress.Load()
		}
	}
	slices.Sort(s.Loading)
	s.Loading = slices.Compact(s.Loading)
}
